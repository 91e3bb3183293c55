/*
 * lines.h - from code addresses to source lines, by the program's debugging information.
 */
#ifndef GM_KERNELS_SIM_LINES_H
#define GM_KERNELS_SIM_LINES_H

#include "symbols.h"

struct gm_lines;

/* Reads nothing yet. NULL without memory. */
struct gm_lines *gm_lines_open(void);
void gm_lines_close(struct gm_lines *lines);
/* See gm_symbols_line. */
void gm_lines_find(struct gm_lines *lines, uintptr_t pc, struct gm_symbol_line *ret);

#endif
