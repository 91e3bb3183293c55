/*
 * replay.c - a main for fuzz targets where there is no fuzzer: runs every file of the folders (or
 * the files) it is given through the target once. So the corpora are plain tests, in any build.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

/* Longer inputs are no part of a corpus. */
#define INPUT_MAX (1 << 20)

static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(INPUT_MAX);
    bool ok = file && text;
    size_t len = ok ? fread(text, 1, INPUT_MAX, file) : 0;

    ok = ok && !ferror(file);
    if (!ok)
        fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
    if (file)
        fclose(file);
    if (ok) {
        /* Of its exact size: a sanitizer sees whoever reads beyond it. */
        uint8_t *input = fuzz_alloc(len);
        memcpy(input, text, len);
        fprintf(stderr, "%s\n", path); /* the last one is what failed */
        LLVMFuzzerTestOneInput(input, len);
        free(input);
    }
    free(text);
    return ok;
}

/* Adds what it ran to *count. */
static bool run_folder(const char *path, unsigned *count)
{
    DIR *folder = opendir(path);
    bool ok = folder;

    if (!folder)
        fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
    for (struct dirent *entry; ok && (entry = readdir(folder)) != NULL;) {
        char file[4096];
        if (entry->d_name[0] == '.')
            continue;
        int len = snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        ok = len > 0 && (size_t)len < sizeof file && run_file(file);
        *count += ok;
    }
    if (folder)
        closedir(folder);
    return ok;
}

int main(int argc, char **argv)
{
    unsigned count = 0;

    for (int i = 1; i < argc; i++) {
        struct stat info;
        bool folder = stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode);
        if (!(folder ? run_folder(argv[i], &count) : run_file(argv[i])))
            return 1;
        count += !folder;
    }
    printf("%u inputs\n", count);
    return count == 0;
}
