/*
 * marks.h - lines of the tests' kernels that are marked, so that what names a line can be checked.
 */
#ifndef GM_TESTS_SIM_MARKS_H
#define GM_TESTS_SIM_MARKS_H

#include "tests/unit/check.h"

/* The line of FOLDER/FILE.cu with a comment `KIND: NAME`; 0
 * and a failed check where there is none. */
static inline unsigned marked_line(const char *folder, const char *file, const char *kind,
                                   const char *name)
{
    char path[512], line[256], mark[96];
    unsigned number = 0, found = 0;

    snprintf(path, sizeof(path), "%s/%s.cu", folder, file);
    snprintf(mark, sizeof(mark), "%s: %s */", kind, name);
    FILE *source = fopen(path, "r");
    if (!CHECK(source != NULL))
        return 0;
    while (found == 0 && fgets(line, sizeof(line), source)) {
        number++;
        if (strstr(line, mark))
            found = number;
    }
    fclose(source);
    CHECK(found > 0);
    return found;
}

#endif
