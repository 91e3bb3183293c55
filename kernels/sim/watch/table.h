/*
 * table.h - declares what the build knows of each kernel file: source lines, functions, shared
 * variables.
 *
 * kernels/sim/object.sh writes it as C. So a daemon reads no debugging information, and may be
 * stripped.
 */
#ifndef GM_KERNELS_SIM_WATCH_TABLE_H
#define GM_KERNELS_SIM_WATCH_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The line of the code from `at` up to the next entry. Addresses are relative to the file's
 * code. */
struct gm_sim_line {
    uint32_t at;
    uint16_t function, file; /* indices of texts */
    uint32_t line;
};

/* Functions in the order of `at`. Each instance of a template is a function, and has its mangled
 * name, by which nvcc's figures of it are found (kernels/resources.def). */
struct gm_sim_function {
    uint32_t at;
    const char *symbol;
};

/* A variable declared __shared__, by its distance from the file's first one. */
#define GM_SIM_DIMS_MAX 4
struct gm_sim_shared {
    uint32_t begin, bytes;
    uint32_t dim[GM_SIM_DIMS_MAX];       /* tile[32][33]: 32, 33, 0, 0; a scalar has none */
    const struct gm_sim_function *owner; /* NULL: an inlined function */
    const char *name;
};

struct gm_sim_table {
    const char *code, *code_end;
    const char *const *text;
    const struct gm_sim_line *line;
    const struct gm_sim_function *function;
    const struct gm_sim_shared *shared;
    size_t lines, functions, shareds;
    /* The address, for the calling thread, of the file's first shared variable. */
    uintptr_t (*shared_here)(void);
};

/* The text of a kernel file, so that a report can quote a line without the sources. */
struct gm_sim_source {
    const char *file; /* "kernels/cuda/copy/direct.cu" */
    const char *begin, *end;
};

/* The build generates these. */
extern const struct gm_sim_source gm_sim_sources[];
extern const size_t gm_sim_source_count;

#endif
