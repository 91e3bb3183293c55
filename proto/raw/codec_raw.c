/*
 * codec_raw.c - reads raw elements: row-major, little-endian, one operand after the other. The
 * request states their shapes and type. Only sizes can be wrong. They are checked before the first
 * byte if the body's length is known.
 */
#include "proto/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gm_decoder {
    unsigned operands, index;
    uint64_t have; /* bytes of the current operand */
    struct {
        char *data;
        uint64_t bytes;
    } operand[GM_OPERANDS_MAX];
    uint64_t need; /* bytes of all */
    uint64_t received;
};

/* Number of operands with shapes in the plan: a, and those that follow without a gap. */
static enum gm_status plan_operands(const struct gm_decode_plan *plan,
                                    struct gm_matrix matrix[GM_OPERANDS_MAX], unsigned *ret_n,
                                    uint64_t *ret_bytes, struct gm_error *err)
{
    enum gm_dtype dtype = plan->dtype == GM_DTYPE_NONE ? GM_F32 : plan->dtype;
    uint64_t bytes = 0;
    unsigned first = plan->operand_first, next = first;
    for (; next < plan->operands_max && plan->has_shape[next]; next++) {
        struct gm_matrix *operand = &matrix[next - first];
        enum gm_status status =
            gm_matrix_init(operand, dtype, GM_ROW_MAJOR, &plan->shape[next], err);
        if (status != GM_OK)
            return status;
        if (!gm_size_add(bytes, gm_matrix_bytes(operand), &bytes))
            return gm_fail(err, GM_BAD_SHAPE, "the operands have more bytes than can be counted");
    }
    bool missing = next == first;
    for (unsigned i = next; i < GM_OPERANDS_MAX; i++) {
        if (plan->has_shape[i] && i >= plan->operands_max)
            return gm_fail(err, GM_EXTRA_OPERAND,
                           "there is a shape for operand %c; this operation takes %u", 'a' + (int)i,
                           plan->operands_max);
        missing |= plan->has_shape[i];
    }
    if (missing)
        return gm_fail(
            err, GM_BAD_PARAMETER,
            "a raw body needs the shape of operand %c: add ?shape=RxC (for one operand), "
            "or ?shape_a=RxC&shape_b=RxC (for two, one after the other)",
            'a' + (int)next);
    *ret_n = next - first;
    *ret_bytes = bytes;
    return GM_OK;
}

/* "2x3 f32 needs 24 bytes" or "2x3 and 3x4 f32 need 72 bytes" */
static enum gm_status bad_size(const struct gm_decode_plan *plan, const struct gm_matrix *matrix,
                               unsigned n, uint64_t need, struct gm_error *err)
{
    char text[GM_OPERANDS_MAX][GM_SHAPE_TEXT_MAX] = {""}, more[48] = "";
    bool trailing = plan->body_bytes > need;
    unsigned next = plan->operand_first + n;

    for (unsigned i = 0; i < n; i++)
        gm_matrix_shape_text(&matrix[i], text[i]);
    bool whole = (plan->body_bytes - need) % gm_dtype_size(matrix[0].dtype) == 0;
    if (trailing && whole && next < plan->operands_max)
        snprintf(more, sizeof more, "; shape_%c is not stated", 'a' + (int)next);
    return gm_fail(err, trailing ? GM_BODY_TRAILING : GM_BODY_TRUNCATED,
                   "%s%s%s%s%s %s need%s %" PRIu64 " bytes, the body has %" PRIu64 "%s", text[0],
                   n > 1 ? " and " : "", text[1], n > 2 ? " and " : "", text[2],
                   gm_dtype_name(matrix[0].dtype), n > 1 ? "" : "s", need, plan->body_bytes, more);
}

static enum gm_status raw_open(const struct gm_decode_plan *plan, struct gm_decoder **ret,
                               struct gm_error *err)
{
    struct gm_matrix matrix[GM_OPERANDS_MAX];
    uint64_t need = 0;
    unsigned n = 0;
    enum gm_status status = plan_operands(plan, matrix, &n, &need, err);
    if (status != GM_OK)
        return status;
    if (plan->body_bytes != GM_SIZE_UNKNOWN && plan->body_bytes != need)
        return bad_size(plan, matrix, n, need, err);

    struct gm_decoder *decoder = calloc(1, sizeof(*decoder));
    if (!decoder)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for reading a raw body");
    decoder->operands = n;
    decoder->need = need;
    for (unsigned i = 0; i < n && status == GM_OK; i++) {
        void *data;
        status =
            plan->sink.operand(plan->sink.cls, plan->operand_first + i, &matrix[i], &data, err);
        if (status != GM_OK)
            goto out;
        decoder->operand[i].data = data;
        decoder->operand[i].bytes = gm_matrix_bytes(&matrix[i]);
    }
    *ret = decoder;
    decoder = NULL;
out:
    free(decoder);
    return status;
}

static enum gm_status raw_push(struct gm_decoder *decoder, const void *bytes, size_t len,
                               struct gm_error *err)
{
    const char *at = bytes;
    while (len > 0) {
        if (decoder->index == decoder->operands)
            return gm_fail(err, GM_BODY_TRAILING,
                           "the shapes need %" PRIu64 " bytes, the body goes on", decoder->need);
        uint64_t want = decoder->operand[decoder->index].bytes - decoder->have;
        size_t n = len < want ? len : (size_t)want;
        if (at)
            memcpy(decoder->operand[decoder->index].data + decoder->have, at, n);
        decoder->have += n;
        decoder->received += n;
        at += at ? n : 0;
        len -= n;
        if (n == want) {
            decoder->index++;
            decoder->have = 0;
        }
    }
    return GM_OK;
}

static unsigned raw_places(const struct gm_decoder *decoder, struct iovec place[GM_OPERANDS_MAX])
{
    unsigned count = 0;

    for (unsigned i = decoder->index; i < decoder->operands; i++) {
        uint64_t have = i == decoder->index ? decoder->have : 0;
        place[count++] = (struct iovec){decoder->operand[i].data + have,
                                        (size_t)(decoder->operand[i].bytes - have)};
    }
    return count;
}

static enum gm_status raw_finish(struct gm_decoder *decoder, struct gm_error *err)
{
    if (decoder->received < decoder->need)
        return gm_fail(err, GM_BODY_TRUNCATED,
                       "the shapes need %" PRIu64 " bytes, the body has %" PRIu64, decoder->need,
                       decoder->received);
    return GM_OK;
}

static void raw_close(struct gm_decoder *decoder)
{
    free(decoder);
}

static enum gm_status raw_head(const struct gm_matrix *matrix, char out[GM_HEAD_MAX],
                               size_t *ret_len, struct gm_error *err)
{
    (void)out;
    if (matrix->layout != GM_ROW_MAJOR)
        return gm_fail(err, GM_CANNOT_ENCODE,
                       "raw bytes are row-major, this matrix is not; ask "
                       "for application/x-npy with Accept");
    *ret_len = 0;
    return GM_OK;
}

const struct gm_codec gm_codec_raw = {
    .name = "raw",
    .media_type = "application/octet-stream",
    .open = raw_open,
    .push = raw_push,
    .places = raw_places,
    .finish = raw_finish,
    .close = raw_close,
    .head = raw_head,
};
