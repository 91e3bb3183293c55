/*
 * lines.h - from code addresses to source lines, by the program's debugging information.
 */
#ifndef GM_KERNELS_SIM_LINES_H
#define GM_KERNELS_SIM_LINES_H

#include "symbols.h"

#include <stdbool.h>

struct gm_lines;

/* Reads all there is to know of kernels, if the program has its debugging information in it: that
 * is what `there` says. Addresses in it are counted from `base`. NULL without memory. */
struct gm_lines *gm_lines_open(bool there, uintptr_t base);
void gm_lines_close(struct gm_lines *lines);
/* See gm_symbols_line. */
void gm_lines_find(const struct gm_lines *lines, uintptr_t pc, struct gm_symbol_line *ret);

#endif
