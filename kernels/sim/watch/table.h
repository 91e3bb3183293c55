/*
 * table.h - what the build knows of the kernels. Of each file (kernels/sim/object.sh writes it as
 * C): its source lines, functions and shared variables. So a daemon reads no debugging information,
 * and may be stripped.
 */
#ifndef GM_KERNELS_SIM_WATCH_TABLE_H
#define GM_KERNELS_SIM_WATCH_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The code from `at` on, up to the next line's. Addresses are distances from the file's code. */
struct gm_sim_line {
    uint32_t at;
    uint16_t function, file; /* numbers of texts */
    uint32_t line;
};

/* In the order of `at`. An instance of a template is a function of its own. */
struct gm_sim_function {
    uint32_t at;
};

/* A variable declared __shared__, as a distance from the file's first one. */
#define GM_SIM_DIMS_MAX 4
struct gm_sim_shared {
    uint32_t begin, bytes;
    uint32_t dim[GM_SIM_DIMS_MAX];       /* tile[32][33]: 32, 33, 0, 0; a scalar has none */
    const struct gm_sim_function *owner; /* NULL: a function that is put where it is called */
    const char *name;
};

struct gm_sim_table {
    const char *code, *code_end;
    const char *const *text;
    const struct gm_sim_line *line;
    const struct gm_sim_function *function;
    const struct gm_sim_shared *shared;
    size_t lines, functions, shareds;
    /* Where the calling thread has the file's first shared variable. */
    uintptr_t (*shared_here)(void);
};

/* The text of the kernels' files, so that a report can show a line where the sources are not. */
struct gm_sim_source {
    const char *file; /* "kernels/cuda/copy/direct.cu" */
    const char *begin, *end;
};

/* Made when the program is built. */
extern const struct gm_sim_source gm_sim_sources[];
extern const size_t gm_sim_source_count;

#endif
