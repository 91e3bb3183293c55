/*
 * sink.h - what a decoder is told before the body, and where it puts what it reads. Decoders
 * allocate no storage for operands: the sink does, for the caller.
 */
#ifndef GM_PROTO_SINK_H
#define GM_PROTO_SINK_H

#include "matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GM_OPERANDS_MAX 3 /* a, b, c */
#define GM_SIZE_UNKNOWN UINT64_MAX

/* Where a decoder puts what it finds. Each function may refuse: its status ends the decoding. */
struct gm_sink {
    /*
     * An operand begins: index 0, 1, 2 for a, b, c, at most once each, index below
     * operands_max. Sets *ret_data to gm_matrix_bytes(matrix) writable bytes, 64-byte aligned
     * (not NULL even when that is 0). The sink keeps them; they are filled when decode or
     * finish returns GM_OK.
     */
    enum gm_status (*operand)(void *cls, unsigned index, const struct gm_matrix *matrix,
                              void **ret_data, struct gm_error *err);
    /*
     * A parameter found in the body (a JSON member that is neither an operand nor part of
     * one): its name and its value as text (a string's content, a number or true/false as
     * written). All parameters come before the first operand.
     */
    enum gm_status (*parameter)(void *cls, const char *name, size_t name_len, const char *value,
                                size_t value_len, struct gm_error *err);
    void *cls;
};

/* Whether the first line of a text is a header: whoever sends it has said so, or the line tells. */
enum gm_header { GM_HEADER_TELLS, GM_HEADER_PRESENT, GM_HEADER_ABSENT };

/* What the reader of a body knows before it. */
struct gm_decode_plan {
    enum gm_dtype
        dtype; /* as asked for, or GM_DTYPE_NONE; may change in `parameter` (text formats) */
    enum gm_header header;  /* of CSV; may change in the same way */
    unsigned operands_max;  /* 1 to 3: how many operands the operation can take */
    unsigned operand_first; /* which of them the body's first is: 0, but for a part of a body */
    bool has_shape[GM_OPERANDS_MAX];
    struct gm_shape shape[GM_OPERANDS_MAX]; /* of raw operands */
    uint64_t body_bytes;                    /* Content-Length, or GM_SIZE_UNKNOWN */
    struct gm_sink sink;
};

#ifdef __cplusplus
}
#endif
#endif
