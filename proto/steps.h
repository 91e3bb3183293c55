/*
 * steps.h - distances between elements, for code that writes them by their indices.
 */
#ifndef GM_PROTO_STEPS_H
#define GM_PROTO_STEPS_H

#include "proto/matrix.h"

/* Bytes from one element to the next in each direction. */
struct gm_steps {
    uint64_t batch, row, col;
};

static inline struct gm_steps gm_steps_of(const struct gm_matrix *matrix)
{
    uint64_t size = gm_dtype_size(matrix->dtype);
    if (matrix->layout == GM_ROW_MAJOR)
        return (struct gm_steps){matrix->rows * matrix->cols * size, matrix->cols * size, size};
    return (struct gm_steps){size, matrix->batch * size, matrix->batch * matrix->rows * size};
}

#endif
