/*
 * load.h - the operands that bench sends again and again: files, read once, or random elements of
 * stated shapes.
 */
#ifndef GM_CLIENTS_C_GEMMCTL_LOAD_H
#define GM_CLIENTS_C_GEMMCTL_LOAD_H

#include "clients/c/gemmctl/files.h"

struct gm_load {
    struct gemmd_source source[GM_OPERANDS_MAX]; /* in memory */
    size_t count;
    uint64_t bytes; /* of all */
    char shape[GM_OPERANDS_MAX][64];
    void *memory[GM_OPERANDS_MAX];
    char what[256]; /* for people */
};

/* Of ref:NAME there is nothing to send. With no paths: random operands; adds the parameters that
 * state their shapes and type. */
enum gm_exit gm_load_make(struct gm_load *load, struct gm_options *options, const char *op,
                          char *const *paths, size_t count);
void gm_load_free(struct gm_load *load);

#endif
