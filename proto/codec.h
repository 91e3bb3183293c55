/*
 * codec.h - the table of matrix formats, by media type. Each format (json, csv, npy, raw) has one
 * folder, and one row in codec.c.
 *
 * Text formats are read whole (`decode`). Binary formats are streamed (`open`, `push`..., `finish`,
 * `close`): bytes go from the socket's buffer straight to their final place.
 *
 * Operand storage comes from the sink, which belongs to the caller. One thread at a time may use a
 * decoder; different decoders are independent.
 */
#ifndef GM_PROTO_CODEC_H
#define GM_PROTO_CODEC_H

#include "matrix.h"

#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A decoder's input besides the body, and its output. ---- */

#define GM_OPERANDS_MAX 3 /* a, b, c */
#define GM_SIZE_UNKNOWN UINT64_MAX

/* Receives what a decoder finds. Each function may fail; its status ends the decoding. */
struct gm_sink {
    /*
     * An operand begins. index: 0, 1, 2 for a, b, c, each at most once, below operands_max. Sets
     * *ret_data to gm_matrix_bytes(matrix) writable bytes, aligned to 64 bytes; not NULL even for 0
     * bytes. The sink owns them. They are filled when decode or finish returns GM_OK.
     */
    enum gm_status (*operand)(void *cls, unsigned index, const struct gm_matrix *matrix,
                              void **ret_data, struct gm_error *err);
    /*
     * A parameter in the body (a JSON member that is neither an operand nor part of one). Its value
     * is text: a string's content, or a number, true or false as written. All parameters come
     * before the first operand. An operand that is not in the body is a parameter "a", "b" or "c",
     * whose value is "ref:" and its name.
     */
    enum gm_status (*parameter)(void *cls, const char *name, size_t name_len, const char *value,
                                size_t value_len, struct gm_error *err);
    void *cls;
};

/* Whether the first line of a text is a header: as the request states, or as the line suggests. */
enum gm_header { GM_HEADER_TELLS, GM_HEADER_PRESENT, GM_HEADER_ABSENT };

/* What is known before the body is read. */
struct gm_decode_plan {
    enum gm_dtype
        dtype; /* as requested, or GM_DTYPE_NONE; `parameter` may change it (text formats) */
    enum gm_header header;  /* for CSV; `parameter` may change it */
    unsigned operands_max;  /* 1 to 3: the most operands that the operation takes */
    unsigned operand_first; /* index of the body's first operand: 0, except for a part of a body */
    bool has_shape[GM_OPERANDS_MAX];
    struct gm_shape shape[GM_OPERANDS_MAX]; /* for raw operands */
    uint64_t body_bytes;                    /* Content-Length, or GM_SIZE_UNKNOWN */
    struct gm_sink sink;
};

/* ---- A format. ---- */

/* `decode` may read this many bytes past the end of a text. Their content does not matter. */
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
     * Binary formats, else NULL. The plan must outlive the decoder. `open` fails if the plan is
     * impossible (a Content-Length that contradicts the shapes). `push` takes bytes in any pieces,
     * and fails as early as they allow. After a failure only `close` may be called. `close(NULL)`
     * is fine.
     */
    enum gm_status (*open)(const struct gm_decode_plan *plan, struct gm_decoder **ret,
                           struct gm_error *err);
    enum gm_status (*push)(struct gm_decoder *decoder, const void *bytes, size_t len,
                           struct gm_error *err);
    enum gm_status (*finish)(struct gm_decoder *decoder, struct gm_error *err);
    void (*close)(struct gm_decoder *decoder);
    /*
     * Where the next bytes of the body are to go, one place after the other; returns how many: 0 if
     * `push` must see them. The caller may put them there, and push NULL with their number instead.
     * NULL: `push` must see all.
     */
    unsigned (*places)(const struct gm_decoder *decoder, struct iovec place[GM_OPERANDS_MAX]);

    /*
     * Writing. Binary formats: `head` writes what precedes the elements, which are then sent from
     * memory. Text formats: `encode` writes the whole text to out; `encode_bound` is an upper bound
     * of its length (GM_TOO_LARGE on overflow). If carries_stats is set, the outer object is left
     * open, so that the caller can append `,"stats":{...}}`.
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

/* The table's rows, in the order of messages; NULL past the end. */
const struct gm_codec *gm_codec_at(size_t index);

/* "application/json, ...": all of them, for messages and headers. */
#define GM_MEDIA_TYPES_MAX 256
const char *gm_codec_media_types(char buf[GM_MEDIA_TYPES_MAX]);

/* Finds a format by media type (without parameters, in any case); NULL if there is none. */
const struct gm_codec *gm_codec_by_media_type(const char *type, size_t len);

/* Finds a format by a body's first bytes: NPY's magic, or '[' or '{' after white space. NULL if
 * they do not tell. */
const struct gm_codec *gm_codec_by_first_bytes(const void *bytes, size_t len);

extern const struct gm_codec gm_codec_json, gm_codec_csv, gm_codec_npy, gm_codec_raw;
/* Not in the table: JSON without elements, for a matrix that is stored elsewhere; and a heat map,
 * which is only written. */
extern const struct gm_codec gm_codec_json_shape, gm_codec_svg;

/* ---- For encoders. ---- */

/* Byte strides of a matrix. */
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
