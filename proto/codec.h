/*
 * codec.h - the table of formats of matrices, by media type. One folder a format (json, csv, npy,
 * raw), one row each in codec.c.
 *
 * Text formats are read whole (`decode`). Binary formats are streamed (`open`, `push`..., `finish`,
 * `close`): bytes go from the socket's buffer to their final place and are never collected.
 *
 * Nothing here allocates operand storage: it asks the sink, which belongs to the caller.
 * A decoder is used by one thread at a time; different decoders are independent.
 */
#ifndef GM_PROTO_CODEC_H
#define GM_PROTO_CODEC_H

#include "matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a decoder is told before the body, and where it puts what it reads. ---- */

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

/* ---- A format. ---- */

/* Bytes past the end of a text that `decode` may read (their content does not matter). */
#define GM_TEXT_PADDING 64

/* The longest head that `head` writes: an NPY header of a 3-D array fits in 192. */
#define GM_HEAD_MAX 256

struct gm_encode_options {
    bool nonfinite_null; /* text: write NaN and infinity as null instead of failing */
};

struct gm_decoder; /* each streaming codec's own */

struct gm_codec {
    const char *name;       /* "json" */
    const char *media_type; /* "application/json" */

    /* Text formats, else NULL. text[len .. len+GM_TEXT_PADDING) is readable. */
    enum gm_status (*decode)(const char *text, size_t len, const struct gm_decode_plan *plan,
                             struct gm_error *err);

    /*
     * Binary formats, else NULL. The plan must outlive the decoder. `open` already refuses what
     * the plan shows to be impossible (a Content-Length that the shapes contradict). `push`
     * takes any split of the bytes and fails as early as the bytes allow; after a failure only
     * `close` may be called. `close(NULL)` is fine.
     */
    enum gm_status (*open)(const struct gm_decode_plan *plan, struct gm_decoder **ret,
                           struct gm_error *err);
    enum gm_status (*push)(struct gm_decoder *decoder, const void *bytes, size_t len,
                           struct gm_error *err);
    enum gm_status (*finish)(struct gm_decoder *decoder, struct gm_error *err);
    void (*close)(struct gm_decoder *decoder);

    /*
     * Writing. Binary formats: `head` writes what precedes the elements, which are then sent
     * from memory. Text formats: `encode` writes the whole into out; `encode_bound` is
     * an upper bound of its bytes (GM_TOO_LARGE on overflow). A text format with carries_stats
     * leaves its outer object open, so that the caller can append `,"stats":{...}}`.
     */
    bool carries_stats;
    enum gm_status (*head)(const struct gm_matrix *matrix, char out[GM_HEAD_MAX], size_t *ret_len,
                           struct gm_error *err);
    enum gm_status (*encode_bound)(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                   struct gm_error *err);
    enum gm_status (*encode)(const struct gm_matrix *matrix,
                             const struct gm_encode_options *options, char *out, uint64_t capacity,
                             uint64_t *ret_len, struct gm_error *err);
};

/* The rows, in the order in which messages list them; NULL past the end. */
const struct gm_codec *gm_codec_at(size_t index);

/* "application/json, ...": all of them, for messages and headers. */
#define GM_MEDIA_TYPES_MAX 256
const char *gm_codec_media_types(char buf[GM_MEDIA_TYPES_MAX]);

/* By media type, compared without case, parameters already cut off. NULL if there is none. */
const struct gm_codec *gm_codec_by_media_type(const char *type, size_t len);

/* By how a body begins (NPY's magic, or '[' or '{' after white space). NULL if it does not say. */
const struct gm_codec *gm_codec_by_first_bytes(const void *bytes, size_t len);

extern const struct gm_codec gm_codec_json, gm_codec_csv, gm_codec_npy, gm_codec_raw;
/* No row: JSON without the elements, of a matrix that goes elsewhere. */
extern const struct gm_codec gm_codec_json_shape;

/* ---- For encoders, which find elements by their indices. ---- */

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

#ifdef __cplusplus
}
#endif
#endif
