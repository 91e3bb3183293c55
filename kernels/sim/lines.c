/*
 * lines.c - elfutils' libdw reads the debugging information, when first asked.
 */
#include "lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files of the simulator itself: what they define is a kernel's vocabulary, not its code. */
#define OURS "kernels/sim/"

struct gm_lines {
    pthread_mutex_t mutex; /* libdw is not for several threads */
    Dwfl *dwfl;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
};

struct gm_lines *gm_lines_open(void)
{
    struct gm_lines *lines = calloc(1, sizeof(*lines));

    if (lines)
        pthread_mutex_init(&lines->mutex, NULL);
    return lines;
}

void gm_lines_close(struct gm_lines *lines)
{
    if (!lines)
        return;
    if (lines->dwfl)
        dwfl_end(lines->dwfl);
    pthread_mutex_destroy(&lines->mutex);
    free(lines);
}

static Dwfl *reader(struct gm_lines *lines)
{
    if (lines->dwfl || !(lines->dwfl = dwfl_begin(&callbacks)))
        return lines->dwfl;
    if (dwfl_linux_proc_report(lines->dwfl, getpid()) != 0 ||
        dwfl_report_end(lines->dwfl, NULL, NULL) != 0) {
        dwfl_end(lines->dwfl);
        lines->dwfl = NULL;
    }
    return lines->dwfl;
}

/* "transpose_tiled<float>" is transpose_tiled */
static void set_function(struct gm_symbol_line *ret, Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);

    if (name)
        snprintf(ret->function, sizeof(ret->function), "%.*s", (int)strcspn(name, "<"), name);
}

static bool is_ours(const char *file)
{
    return strncmp(file, OURS, strlen(OURS)) == 0 || strstr(file, "/" OURS) != NULL;
}

/* The line where an inlined function is called. */
static bool call_line(Dwarf_Die *inlined, Dwarf_Files *files, struct gm_symbol_line *ret)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file, line;

    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
        dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0)
        return false;
    const char *name = dwarf_filesrc(files, file, NULL, NULL);
    if (!name)
        return false;
    snprintf(ret->file, sizeof(ret->file), "%s", name);
    ret->line = (unsigned)line;
    return true;
}

/* From the code outwards: through functions that were inlined to the one they are in. Beyond the
 * innermost of them dwarf_getscopes tells where it was written, dwarf_getscopes_die where it was
 * put. */
static void walk_scopes(Dwarf_Die *unit, Dwarf_Addr address, struct gm_symbol_line *ret)
{
    Dwarf_Die *around = NULL, *scopes = NULL;
    Dwarf_Files *files;
    size_t file_count;
    int count = dwarf_getscopes(unit, address, &around);

    if (count > 0)
        count = dwarf_getscopes_die(&around[0], &scopes);
    if (count > 0 && dwarf_getsrcfiles(unit, &files, &file_count) == 0) {
        for (int i = 0; i < count; i++) {
            int tag = dwarf_tag(&scopes[i]);
            if (tag == DW_TAG_inlined_subroutine && is_ours(ret->file))
                call_line(&scopes[i], files, ret);
            if (tag == DW_TAG_subprogram) {
                set_function(ret, &scopes[i]);
                break;
            }
        }
    }
    free(scopes);
    free(around);
}

void gm_lines_find(struct gm_lines *lines, uintptr_t pc, struct gm_symbol_line *ret)
{
    Dwarf_Addr bias;
    int line;

    *ret = (struct gm_symbol_line){.line = 0};
    pthread_mutex_lock(&lines->mutex);
    Dwfl *dwfl = reader(lines);
    Dwarf_Die *unit = dwfl ? dwfl_addrdie(dwfl, pc, &bias) : NULL;
    Dwfl_Line *source = dwfl ? dwfl_getsrc(dwfl, pc) : NULL;
    const char *file = source ? dwfl_lineinfo(source, NULL, &line, NULL, NULL, NULL) : NULL;
    if (file && unit) {
        snprintf(ret->file, sizeof(ret->file), "%s", file);
        ret->line = (unsigned)line;
        walk_scopes(unit, pc - bias, ret);
    }
    pthread_mutex_unlock(&lines->mutex);
}
