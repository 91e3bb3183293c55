/*
 * codec_npy.c - reads NPY files, one or several back to back, as a stream. A file's prefix and
 * header are collected, since they are small. Its elements are copied once, from the caller's
 * buffer to the operand, unless the caller put them there (`places`), and byte-swapped there if the
 * file has the other byte order.
 *
 *   state:  PREFIX -> HEADER -> DATA -> PREFIX of the next file ...; the end comes in PREFIX
 */
#include "proto/npy/npy_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct gm_decoder {
    const struct gm_decode_plan *plan;
    unsigned index;    /* index of the operand being read; operands_max: there can be no more */
    uint64_t received; /* bytes of the body used so far */

    enum { PREFIX, HEADER, DATA } state;
    size_t have, need; /* bytes of the prefix or of the header */
    unsigned major;
    unsigned char prefix[GM_NPY_PREFIX_MAX];
    char header[GM_NPY_HEADER_MAX];

    char *data;
    uint64_t data_have, data_need;
    uint64_t data_swapped; /* bytes in native order so far */
    size_t swap_unit;      /* bytes per unit to swap; 1: no swap */
};

static char letter(const struct gm_decoder *decoder)
{
    return (char)('a' + decoder->index);
}

static void expect_prefix(struct gm_decoder *decoder)
{
    decoder->state = PREFIX;
    decoder->have = 0;
    decoder->need = GM_NPY_MAGIC_LEN;
}

static enum gm_status npy_open(const struct gm_decode_plan *plan, struct gm_decoder **ret,
                               struct gm_error *err)
{
    if (plan->body_bytes < GM_NPY_PREFIX_MIN)
        return gm_fail(err, GM_BODY_TRUNCATED,
                       "a body of %" PRIu64 " bytes is too short for an NPY file (%s)",
                       plan->body_bytes, GM_NPY_CURL_HINT);

    struct gm_decoder *decoder = malloc(sizeof(*decoder));
    if (!decoder)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for reading an NPY file");
    decoder->plan = plan;
    decoder->index = plan->operand_first;
    decoder->received = 0;
    expect_prefix(decoder);
    *ret = decoder;
    return GM_OK;
}

/* The bytes still to come, if the body's length is known. */
static uint64_t remaining(const struct gm_decoder *decoder)
{
    uint64_t total = decoder->plan->body_bytes;
    if (total == GM_SIZE_UNKNOWN)
        return GM_SIZE_UNKNOWN;
    return total > decoder->received ? total - decoder->received : 0;
}

/* Checks the prefix as far as it has come, and returns how many bytes it needs. */
static enum gm_status check_prefix(struct gm_decoder *decoder, struct gm_error *err)
{
    const unsigned char *prefix = decoder->prefix;
    size_t len = decoder->have < GM_NPY_MAGIC_LEN ? decoder->have : GM_NPY_MAGIC_LEN;
    bool full = decoder->index == decoder->plan->operands_max;
    enum gm_status status;

    if (memcmp(prefix, GM_NPY_MAGIC, len) != 0)
        return decoder->index == decoder->plan->operand_first
                   ? gm_fail(err, GM_BAD_NPY, "the body does not begin as an NPY file does")
                   : gm_fail(err, GM_BODY_TRAILING,
                             "after operand %c come bytes that are no NPY file",
                             letter(decoder) - 1);
    if (decoder->have < decoder->need)
        return GM_OK;

    switch (decoder->need) {
    case GM_NPY_MAGIC_LEN:
        if (full)
            return gm_fail(err, GM_EXTRA_OPERAND,
                           "after operand %c comes another NPY file; this operation takes %u",
                           letter(decoder) - 1, decoder->plan->operands_max);
        decoder->need += 2;
        return GM_OK;
    case GM_NPY_MAGIC_LEN + 2:
        status = gm_npy_version(prefix, &decoder->major, err);
        if (status == GM_OK)
            decoder->need = decoder->major == 1 ? GM_NPY_PREFIX_MIN : GM_NPY_PREFIX_MAX;
        return status;
    default:
        break;
    }

    uint64_t header = prefix[8] | (unsigned)prefix[9] << 8;
    if (decoder->major > 1)
        header |= (uint64_t)prefix[10] << 16 | (uint64_t)prefix[11] << 24;
    if (header > GM_NPY_HEADER_MAX)
        return gm_fail(err, GM_BAD_NPY,
                       "the header of operand %c has %" PRIu64 " bytes; at most %d are read (%s)",
                       letter(decoder), header, GM_NPY_HEADER_MAX, GM_NPY_CURL_HINT);
    if (header > remaining(decoder))
        return gm_fail(err, GM_BODY_TRUNCATED,
                       "the header of operand %c has %" PRIu64 " bytes, the body has %" PRIu64
                       " left (%s)",
                       letter(decoder), header, remaining(decoder), GM_NPY_CURL_HINT);
    decoder->state = HEADER;
    decoder->have = 0;
    decoder->need = (size_t)header;
    return GM_OK;
}

/* Chooses the element type by the file and the request. */
static enum gm_status settle_dtype(const struct gm_decoder *decoder, enum gm_dtype *dtype,
                                   struct gm_error *err)
{
    enum gm_dtype asked = decoder->plan->dtype;
    if (asked == GM_BF16 && *dtype == GM_V2)
        *dtype = GM_BF16;
    if (asked != GM_DTYPE_NONE && asked != *dtype)
        return gm_fail(err, GM_BAD_DTYPE, "operand %c is %s in its file, the request says %s",
                       letter(decoder), gm_dtype_name(*dtype), gm_dtype_name(asked));
    return GM_OK;
}

/* Whether the layout affects the order of elements in memory. */
static bool has_layout(const struct gm_shape *shape)
{
    unsigned longer = 0;
    for (unsigned i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] == 0)
            return false;
        longer += shape->dim[i] > 1;
    }
    return longer > 1;
}

/* Checks that the rest of the body has the operand's length. */
static enum gm_status check_remaining(const struct gm_decoder *decoder,
                                      const struct gm_matrix *matrix, struct gm_error *err)
{
    uint64_t left = remaining(decoder), need = gm_matrix_bytes(matrix);
    bool last = decoder->index + 1 == decoder->plan->operands_max;
    char shape[GM_SHAPE_TEXT_MAX];
    if (left == GM_SIZE_UNKNOWN || left == need || (left > need && !last))
        return GM_OK;
    gm_matrix_shape_text(matrix, shape);
    if (left > need)
        return gm_fail(err, GM_BODY_TRAILING,
                       "operand %c, %s %s, needs %" PRIu64 " bytes and is the last that this "
                       "operation takes; the body goes on for %" PRIu64,
                       letter(decoder), shape, gm_dtype_name(matrix->dtype), need, left);
    return gm_fail(err, GM_BODY_TRUNCATED,
                   "operand %c, %s %s, needs %" PRIu64 " bytes; the body has %" PRIu64 " left (%s)",
                   letter(decoder), shape, gm_dtype_name(matrix->dtype), need, left,
                   GM_NPY_CURL_HINT);
}

static enum gm_status begin_data(struct gm_decoder *decoder, struct gm_error *err)
{
    const struct gm_sink *sink = &decoder->plan->sink;
    struct gm_npy_header header;
    struct gm_matrix matrix;
    void *data;

    enum gm_status status =
        gm_npy_header_read(decoder->header, decoder->need, decoder->major, &header, err);
    if (status != GM_OK)
        return status;
    status = settle_dtype(decoder, &header.dtype, err);
    if (status != GM_OK)
        return status;
    bool columns = header.fortran_order && has_layout(&header.shape);
    status = gm_matrix_init(&matrix, header.dtype, columns ? GM_COL_MAJOR : GM_ROW_MAJOR,
                            &header.shape, err);
    if (status != GM_OK)
        return status;
    status = check_remaining(decoder, &matrix, err);
    if (status != GM_OK)
        return status;
    status = sink->operand(sink->cls, decoder->index, &matrix, &data, err);
    if (status != GM_OK)
        return status;

    bool complex = matrix.dtype == GM_C64 || matrix.dtype == GM_C128;
    size_t size = gm_dtype_size(matrix.dtype);
    decoder->swap_unit = !header.big_endian ? 1 : complex ? size / 2 : size;
    decoder->data = data;
    decoder->data_have = decoder->data_swapped = 0;
    decoder->data_need = gm_matrix_bytes(&matrix);
    decoder->state = DATA;
    return GM_OK;
}

#define SWAP_LOOP(type, swap)                                                                      \
    for (uint64_t i = 0; i < bytes; i += sizeof(type)) {                                           \
        type value;                                                                                \
        memcpy(&value, data + i, sizeof(value));                                                   \
        value = swap(value);                                                                       \
        memcpy(data + i, &value, sizeof(value));                                                   \
    }

static void swap_bytes(char *data, uint64_t bytes, size_t unit)
{
    if (unit == 2)
        SWAP_LOOP(uint16_t, __builtin_bswap16)
    else if (unit == 4)
        SWAP_LOOP(uint32_t, __builtin_bswap32)
    else
        SWAP_LOOP(uint64_t, __builtin_bswap64)
}

static void take_data(struct gm_decoder *decoder, const char *bytes, size_t len)
{
    if (bytes)
        memcpy(decoder->data + decoder->data_have, bytes, len);
    decoder->data_have += len;
    if (decoder->swap_unit > 1) {
        uint64_t whole = decoder->data_have - decoder->data_have % decoder->swap_unit;
        swap_bytes(decoder->data + decoder->data_swapped, whole - decoder->data_swapped,
                   decoder->swap_unit);
        decoder->data_swapped = whole;
    }
}

/* Takes all steps that need no further bytes. */
static enum gm_status advance(struct gm_decoder *decoder, struct gm_error *err)
{
    if (decoder->state == PREFIX) {
        enum gm_status status = check_prefix(decoder, err);
        if (status != GM_OK)
            return status;
    }
    if (decoder->state == HEADER && decoder->have == decoder->need) {
        enum gm_status status = begin_data(decoder, err);
        if (status != GM_OK)
            return status;
    }
    if (decoder->state == DATA && decoder->data_have == decoder->data_need) {
        decoder->index++;
        expect_prefix(decoder);
    }
    return GM_OK;
}

static enum gm_status npy_push(struct gm_decoder *decoder, const void *bytes, size_t len,
                               struct gm_error *err)
{
    const char *at = bytes;
    while (len > 0) {
        bool data = decoder->state == DATA;
        uint64_t want = data ? decoder->data_need - decoder->data_have
                             : (uint64_t)(decoder->need - decoder->have);
        size_t n = len < want ? len : (size_t)want;
        if (data) {
            take_data(decoder, at, n);
        } else {
            char *to = decoder->state == PREFIX ? (char *)decoder->prefix : decoder->header;
            memcpy(to + decoder->have, at, n);
            decoder->have += n;
        }
        decoder->received += n;
        at += at ? n : 0;
        len -= n;
        enum gm_status status = advance(decoder, err);
        if (status != GM_OK)
            return status;
    }
    return GM_OK;
}

static unsigned npy_places(const struct gm_decoder *decoder, struct iovec place[GM_OPERANDS_MAX])
{
    if (decoder->state != DATA)
        return 0;
    place[0] = (struct iovec){decoder->data + decoder->data_have,
                              (size_t)(decoder->data_need - decoder->data_have)};
    return 1;
}

static enum gm_status npy_finish(struct gm_decoder *decoder, struct gm_error *err)
{
    if (decoder->state == PREFIX && decoder->have == 0 &&
        decoder->index > decoder->plan->operand_first)
        return GM_OK;
    if (decoder->state == DATA)
        return gm_fail(err, GM_BODY_TRUNCATED,
                       "the body ends after %" PRIu64 " of the %" PRIu64
                       " bytes of operand %c's elements (%s)",
                       decoder->data_have, decoder->data_need, letter(decoder), GM_NPY_CURL_HINT);
    if (decoder->index == decoder->plan->operands_max)
        return gm_fail(err, GM_BODY_TRAILING,
                       "after operand %c come %zu bytes that are no NPY file", letter(decoder) - 1,
                       decoder->have);
    return gm_fail(err, GM_BODY_TRUNCATED, "the body ends in the header of operand %c (%s)",
                   letter(decoder), GM_NPY_CURL_HINT);
}

static void npy_close(struct gm_decoder *decoder)
{
    free(decoder);
}

static enum gm_status npy_head(const struct gm_matrix *matrix, char out[GM_HEAD_MAX],
                               size_t *ret_len, struct gm_error *err)
{
    (void)err; /* every matrix has an NPY format */
    *ret_len = gm_npy_header_write(matrix, out);
    return GM_OK;
}

const struct gm_codec gm_codec_npy = {
    .name = "npy",
    .media_type = "application/x-npy",
    .open = npy_open,
    .push = npy_push,
    .places = npy_places,
    .finish = npy_finish,
    .close = npy_close,
    .head = npy_head,
};
