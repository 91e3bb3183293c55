/*
 * symbols.h - knows the program's kernels: their shared variables, and source lines of addresses.
 */
#ifndef GM_KERNELS_SIM_WATCH_SYMBOLS_H
#define GM_KERNELS_SIM_WATCH_SYMBOLS_H

#include "proto/status.h"
#include "table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A variable declared __shared__. */
struct gm_symbol_shared {
    size_t begin, end; /* distance from the beginning of a thread's shared variables */
    const struct gm_sim_shared *from;
};

struct gm_symbols;

enum gm_status gm_symbols_open(struct gm_symbols **ret, struct gm_error *err);
void gm_symbols_close(struct gm_symbols *symbols);

/* The beginning of the program, from which code addresses are counted. */
static inline uintptr_t gm_symbols_base(void)
{
    extern const char __ehdr_start[] __attribute__((visibility("hidden")));

    return (uintptr_t)__ehdr_start;
}

/* The kernel, one instance of a template, at an address; NULL if the address is no function of a
 * kernel file. */
const struct gm_sim_function *gm_symbols_kernel(const void *address);

/* The shared variables, in the order of `begin`. */
size_t gm_symbols_shared_count(const struct gm_symbols *symbols);
const struct gm_symbol_shared *gm_symbols_shared(const struct gm_symbols *symbols, size_t index);
/* The variable that holds the byte at `offset`, or GM_SYMBOLS_NONE. */
#define GM_SYMBOLS_NONE SIZE_MAX
size_t gm_symbols_shared_at(const struct gm_symbols *symbols, size_t offset);
/* Whether a kernel may access a variable: other kernels' variables are out of bounds. */
bool gm_symbols_shared_of(const struct gm_symbol_shared *shared,
                          const struct gm_sim_function *kernel);
/* Bytes of shared memory that the kernel's own variables take, each 16-byte aligned. */
uint64_t gm_symbols_shared_bytes(const struct gm_symbols *symbols,
                                 const struct gm_sim_function *kernel);
/* Bytes from the first shared variable to the end of the last, and where the calling thread's
 * copies are. */
size_t gm_symbols_shared_span(const struct gm_symbols *symbols);
uintptr_t gm_symbols_shared_here(const struct gm_symbols *symbols);

/* Whether bytes of the program are constants, which it cannot write. */
bool gm_symbols_constant(const struct gm_symbols *symbols, uintptr_t at, size_t bytes);

struct gm_symbol_line {
    char function[64]; /* without template arguments; "" if not known */
    char file[96];
    unsigned line; /* 0 if not known */
};

/* The source line, in a kernel file, of the code at pc. For an inlined function of the simulator's
 * headers, it is the line that calls it. Any thread. */
void gm_symbols_line(uintptr_t pc, struct gm_symbol_line *ret);

/* The text of a line of a kernel file, trimmed; "" if not known. */
void gm_symbols_source(const char *file, unsigned line, char *buf, size_t size);

#endif
