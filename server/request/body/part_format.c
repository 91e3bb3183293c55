#include "server/request/body/internal.h"

#include <string.h>
#include <strings.h>

/* Maximum length of a text without a line end that may be a mistyped word. */
#define WORD_MAX 200

bool gm_first_bytes_take(struct gm_first_bytes *first, const char **bytes, size_t *len)
{
    size_t n = sizeof first->bytes - first->len;

    n = *len < n ? *len : n;
    memcpy(first->bytes + first->len, *bytes, n);
    first->len += n;
    *bytes += n;
    *len -= n;
    return first->len == sizeof first->bytes;
}

static bool type_is(const char *type, size_t len, const char *name)
{
    return strlen(name) == len && strncasecmp(type, name, len) == 0;
}

enum gm_status gm_part_format_by_type(const char *type, char operand, struct gm_part_format *ret,
                                      struct gm_error *err)
{
    struct gm_part_format format = {0};
    char types[GM_MEDIA_TYPES_MAX];
    size_t len = strcspn(type, "; \t");

    if (type_is(type, len, "text/plain"))
        format.text = true;
    else if (len > 0 && !type_is(type, len, gm_codec_raw.media_type))
        format.codec = gm_codec_by_media_type(type, len);
    if (format.codec)
        format.text = format.codec->decode != NULL;
    else if (strncasecmp(type, "multipart/", strlen("multipart/")) == 0)
        return gm_fail(
            err, GM_UNSUPPORTED_MEDIA_TYPE,
            "part %c is '%.60s', parts within a part; each operand is a part of its own, "
            "as with curl -F a=@a.npy -F b=@b.npy",
            operand, type);
    else if (len > 0 && !format.text && !type_is(type, len, gm_codec_raw.media_type))
        return gm_fail(
            err, GM_UNSUPPORTED_MEDIA_TYPE,
            "part %c is '%.60s', which is not known; it may be %s, or have no type; curl "
            "states one so: -F '%c=@FILE;type=text/csv'",
            operand, type, gm_codec_media_types(types), operand);
    *ret = format;
    return GM_OK;
}

/* Whether bytes can begin a text: none is a control character that texts lack. */
static bool is_text(const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == 0x7F || (bytes[i] < ' ' && !(bytes[i] >= '\t' && bytes[i] <= '\r')))
            return false;
    return true;
}

enum gm_status gm_part_format_by_first_bytes(const void *bytes, size_t len, char operand,
                                             bool has_shape, struct gm_part_format *format,
                                             struct gm_error *err)
{
    const char *file;

    if (gm_codec_by_first_bytes(bytes, len) == &gm_codec_npy) {
        format->codec = &gm_codec_npy;
        format->text = false;
    } else if (has_shape && !format->text) {
        format->codec = &gm_codec_raw;
    } else if ((file = gm_body_hint_file(bytes, len)) != NULL) {
        return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE, "part %c is %s", operand, file);
    } else if (is_text(bytes, len)) {
        format->text = true;
    } else {
        return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                       "part %c is neither NPY nor text; for bare elements say their shape before "
                       "them: ?shape_%c=RxC&dtype=f32 in the URL, or -F shape_%c=RxC -F dtype=f32",
                       operand, operand, operand);
    }
    return GM_OK;
}

/* Whether a text is one line with letters that no number has. */
static bool is_word(const char *text, uint64_t len)
{
    bool letters = false;

    for (uint64_t i = 0; i < len && len <= WORD_MAX; i++) {
        if (text[i] == '\n' || text[i] == '\r')
            return false;
        bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
        letters |= letter && !strchr("einfatyEINFATY", text[i]);
    }
    return letters;
}

enum gm_status gm_part_format_of_text(const char *text, uint64_t len, char operand,
                                      const struct gm_codec **ret, struct gm_error *err)
{
    uint64_t at = 0;

    while (at < len && memchr(" \t\r\n", text[at], 4))
        at++;
    if (at == len)
        return gm_fail(err, GM_MISSING_OPERAND, "part %c is empty", operand);
    const struct gm_codec *codec = gm_codec_by_first_bytes(text + at, len - at);
    if (!codec && is_word(text + at, len - at))
        return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                       "part %c is the text '%.*s'; to send a file write its name after an @, as "
                       "in -F %c=@%c.npy",
                       operand, (int)(len - at < 60 ? len - at : 60), text + at, operand, operand);
    if (codec && !codec->decode)
        return gm_fail(
            err, GM_UNSUPPORTED_MEDIA_TYPE,
            "part %c has an NPY file after white space, which is not part of it; send it "
            "as it is, with -F %c=@FILE",
            operand, operand);
    *ret = codec ? codec : &gm_codec_csv;
    return GM_OK;
}
