/*
 * shapes.h - the lists of what benchmarks time: a line each, as
 *
 *   matmul f32 4096x4096 4096x4096 transb      # and a remark
 *
 * operation, element type, shapes of the operands, and options: transa, transb, col (a is
 * column-major), ieee, tf32.
 */
#ifndef GM_TESTS_BENCH_SHAPES_H
#define GM_TESTS_BENCH_SHAPES_H

#include "kernels/op.h"

#include <stdio.h>

/* The next operation of the list, without data; false at its end. What cannot be read ends the
 * program, with a message. */
bool shapes_next(FILE *list, struct gm_op *ret);

/* "4096x4096 col 4096x4096^T": the operands' shapes, layouts and transpositions. */
#define SHAPES_TEXT_MAX (2 * GM_SHAPE_TEXT_MAX + 32)
void shapes_text(const struct gm_op *op, char ret[SHAPES_TEXT_MAX]);

#endif
