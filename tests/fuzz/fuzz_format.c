/*
 * fuzz_format.c - finding out what a body or a part is. Input: a line that is its Content-Type,
 * then its bytes.
 *
 * Checked: what is found is a format of the table, or a sentence says what to type instead; it is
 * the same however slowly the bytes come, and is found once GM_BODY_HINT_BYTES are there; a type
 * that is known decides alone; and a part whose bytes are NPY, or which has a shape, is never taken
 * for a text, nor the other way round.
 */
#include "server/request/body/internal.h"
#include "tests/fuzz/fuzz.h"

static bool is_of_table(const struct gm_codec *codec)
{
    for (size_t i = 0; gm_codec_at(i); i++)
        if (gm_codec_at(i) == codec)
            return true;
    return false;
}

/* By the first `len` bytes, from storage that has no more. */
static enum gm_status look(const char *text, size_t len, bool all, uint64_t *space,
                           const struct gm_codec **ret)
{
    struct gm_error err = {0};
    char *copy = fuzz_alloc(len);
    memcpy(copy, text, len);
    *ret = NULL;
    enum gm_status status = gm_body_format_by_first_bytes(copy, len, all, space, ret, &err);
    free(copy);
    MUST(*space <= len);
    if (status != GM_OK) {
        fuzz_check_error(status, &err);
        MUST(status == GM_UNSUPPORTED_MEDIA_TYPE && !*ret);
    }
    MUST(!*ret || is_of_table(*ret));
    return status;
}

/* As they come, `step` bytes at a time. */
static void check_slowly(const char *text, size_t len, size_t step, enum gm_status expected,
                         const struct gm_codec *codec)
{
    uint64_t space = 0;
    const struct gm_codec *found = NULL;
    enum gm_status status = GM_OK;
    for (size_t n = 1; n < len && status == GM_OK && !found; n += step) {
        status = look(text, n, false, &space, &found);
        MUST(status != GM_OK || found || n - space < GM_BODY_HINT_BYTES);
    }
    if (status == GM_OK && !found)
        status = look(text, len, true, &space, &found);
    MUST(status == expected && found == codec);
}

static void check_part(const char *type, const char *text, size_t len, char operand, bool has_shape)
{
    struct gm_part_format format = {0};
    struct gm_error err = {0};
    const struct gm_codec *codec = NULL;
    enum gm_status status = gm_part_format_by_type(type, operand, &format, &err);
    size_t first = len < GM_PART_FIRST_BYTES ? len : GM_PART_FIRST_BYTES;

    if (status == GM_OK && !format.codec && len > 0) {
        char *copy = fuzz_alloc(first);
        memcpy(copy, text, first);
        status = gm_part_format_by_first_bytes(copy, first, operand, has_shape, &format, &err);
        free(copy);
        bool npy = gm_codec_by_first_bytes(text, first) == &gm_codec_npy;
        MUST(status != GM_OK || !npy || format.codec == &gm_codec_npy);
        MUST(status != GM_OK || format.codec || format.text);
    }
    if (status == GM_OK && format.text && !format.codec) {
        status = gm_part_format_of_text(text, len, operand, &codec, &err);
        MUST(status != GM_OK || (is_of_table(codec) && codec->decode));
    }
    if (status == GM_OK && format.codec)
        MUST(is_of_table(format.codec) && format.text == (format.codec->decode != NULL));
    if (status != GM_OK)
        fuzz_check_error(status, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    unsigned operand = fuzz_choice(&in, 6);
    const uint8_t *end = memchr(in.at, '\n', in.left);
    size_t line = end ? (size_t)(end - in.at) : in.left;
    char *type = fuzz_string(in.at, line);
    const struct gm_codec *stated = NULL, *found;
    struct gm_error err = {0};
    uint64_t space = 0;

    in.at += line + (end != NULL);
    in.left -= line + (end != NULL);
    const char *text = (const char *)in.at;
    enum gm_status status = gm_body_format_by_type(type, &stated, &err);
    if (status != GM_OK)
        fuzz_check_error(status, &err);
    MUST(!stated || (status == GM_OK && is_of_table(stated)));

    status = look(text, in.left, true, &space, &found);
    MUST(status != GM_OK || found);
    check_slowly(text, in.left, 1, status, found);
    check_slowly(text, in.left, 100, status, found);
    const char *file = gm_body_hint_file(text, in.left);
    MUST(!file || *file);
    check_part(type, text, in.left, (char)('a' + operand % 3), operand >= 3);
    free(type);
    return 0;
}
