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

#include "sink.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
