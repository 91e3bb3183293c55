/*
 * codec_input.h - gives a codec its input from storage of exactly the size that is granted.
 *
 * So a sanitizer sees every byte that is read beyond it.
 */
#ifndef GM_TESTS_UNIT_CODEC_INPUT_H
#define GM_TESTS_UNIT_CODEC_INPUT_H

#include "tests/unit/in_place.h"
#include "tests/unit/sink.h"

/* Storage that a test cannot go on without. */
static inline void *check_alloc(size_t size)
{
    void *storage = malloc(size ? size : 1);
    if (!storage) {
        fprintf(stderr, "no memory for the test itself\n");
        abort();
    }
    return storage;
}

/*
 * Decodes a text that lies in storage of its own, behind it exactly the padding that the
 * contract grants, full of `filler`.
 */
static inline enum gm_status sink_decode(struct sink *sink, const struct gm_codec *codec,
                                         const char *text, size_t len, char filler,
                                         struct gm_error *err)
{
    char *copy = check_alloc(len + GM_TEXT_PADDING);
    memcpy(copy, text, len);
    memset(copy + len, filler, GM_TEXT_PADDING);
    enum gm_status status = codec->decode(copy, len, &sink->plan, err);
    free(copy);
    CHECK(!sink->late_parameter);
    return status;
}

/* Puts what it can of a piece in place, and pushes the rest. */
static inline enum gm_status push_in_place(const struct gm_codec *codec, struct gm_decoder *decoder,
                                           const char *piece, size_t n, struct gm_error *err)
{
    size_t placed = put_in_place(codec, decoder, piece, n);
    enum gm_status status = placed > 0 ? codec->push(decoder, NULL, placed, err) : GM_OK;
    return status == GM_OK && placed < n ? codec->push(decoder, piece + placed, n - placed, err)
                                         : status;
}

/* Streams a body in pieces: first bytes, then pieces of `step` (0: all the rest). Each second one
 * is put in place as far as the codec lets it. */
static inline enum gm_status sink_stream(struct sink *sink, const struct gm_codec *codec,
                                         const char *body, size_t len, size_t first, size_t step,
                                         struct gm_error *err)
{
    struct gm_decoder *decoder = NULL;
    enum gm_status status = codec->open(&sink->plan, &decoder, err);
    size_t at = 0, n = first < len ? first : len;
    for (bool placed = false; status == GM_OK && at < len; placed = !placed) {
        char *piece = check_alloc(n); /* of its own: reading beyond it is seen */
        memcpy(piece, body + at, n);
        status = placed ? push_in_place(codec, decoder, piece, n, err)
                        : codec->push(decoder, piece, n, err);
        free(piece);
        at += n;
        n = step && step < len - at ? step : len - at;
    }
    if (status == GM_OK)
        status = codec->finish(decoder, err);
    codec->close(decoder);
    return status;
}

/*
 * The same, with many fillers in turn: what lies behind the text must not matter. What the last
 * one found stays in the sink.
 */
static inline enum gm_status sink_decode_all(struct sink *sink, const struct gm_codec *codec,
                                             const char *text, size_t len, struct gm_error *err)
{
    static const char fillers[] = "\0]}7,\"[";
    enum gm_dtype dtype = sink->plan.dtype; /* a parameter may change it */
    enum gm_status status = GM_INTERNAL;
    char first[GM_ERROR_DETAIL_MAX] = "";
    for (size_t i = 0; i < sizeof(fillers) - 1; i++) {
        sink_clear(sink);
        sink->plan.dtype = dtype;
        *err = (struct gm_error){0};
        status = sink_decode(sink, codec, text, len, fillers[i], err);
        if (i == 0)
            strcpy(first, err->detail);
        CHECK_STR(err->detail, first);
    }
    return status;
}

#endif
