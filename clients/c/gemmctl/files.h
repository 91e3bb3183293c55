/*
 * files.h - the files of a command line: operands as sources of a body, each with its format; and
 * the file that a result goes to, which is there as a whole or not at all.
 */
#ifndef GM_CLIENTS_C_GEMMCTL_FILES_H
#define GM_CLIENTS_C_GEMMCTL_FILES_H

#include "clients/c/gemmctl/options.h"

/* What matmul takes. */
#define GM_OPERANDS_MAX 3

/* One row a format: its name, media type, and the suffixes of its files. */
struct gm_format {
    const char *name, *type;
    const char *suffixes; /* ".npy", or several with a blank between */
    bool binary, report;  /* report: of compare and explain, not of matrices */
};

/* NULL if there is none. */
const struct gm_format *gm_format_by_name(const char *name);
const struct gm_format *gm_format_by_suffix(const char *path, bool report);
/* The format to write a matrix in: as --to says, else by the suffix of -o, else JSON with --json,
 * else `own`, but no bytes onto a terminal. NULL: said what is wrong. */
const struct gm_format *gm_format_of_result(const struct gm_options *options,
                                            const struct gm_format *own);

/* An operand's file, "-" for standard input. */
struct gm_input {
    const char *path;
    int fd;
    const struct gm_format *format;
    char first[4096]; /* of a pipe: what was read to see the format */
    size_t first_len, first_at;
    size_t operand; /* 0 for a, 1 for b, 2 for c */
};

/*
 * Opens the files, and fills one source for each: parts named a, b, c, or where there is one file
 * the whole body. ref:NAME is no file, but a parameter. What fails is said on standard error.
 */
struct gm_inputs {
    struct gm_input input[GM_OPERANDS_MAX];
    struct gemmd_source source[GM_OPERANDS_MAX];
    size_t count;
};
enum gm_exit gm_inputs_open(struct gm_inputs *inputs, struct gm_options *options,
                            char *const *paths, size_t count);
/* Of several files: gives --shape to each raw one that has no shape of its own, and to no other.
 * false: it has said why not. */
bool gm_inputs_share_shape(const struct gm_inputs *inputs, struct gm_options *options);
void gm_inputs_close(struct gm_inputs *inputs);

/* Where a result goes: standard output, or a file beside its final name. */
struct gm_output {
    const char *path; /* NULL: standard output */
    char *final, *temporary;
    int fd;
    int error;  /* errno of a write that failed */
    bool begun; /* something was written */
};
enum gm_exit gm_output_open(struct gm_output *output, const char *path);
bool gm_output_write(void *output, const void *bytes, size_t len); /* a gemmd_write_fn */
/* Keeps the file where `good`, else removes it. GM_EXIT_FILE where that fails, and says so. */
enum gm_exit gm_output_close(struct gm_output *output, bool good);

#endif
