#include "server/request/body/internal.h"

#include <string.h>
#include <strings.h>

/* curl's default type, which says nothing about the body. */
#define CURL_DEFAULT_TYPE "application/x-www-form-urlencoded"

/* Length of the media type without its parameters; 0 if the type does not state the format. */
static size_t stated_type_len(const char *content_type)
{
    size_t len = content_type ? strcspn(content_type, "; \t") : 0;
    bool curl =
        len == strlen(CURL_DEFAULT_TYPE) && strncasecmp(content_type, CURL_DEFAULT_TYPE, len) == 0;

    return curl ? 0 : len;
}

enum gm_status gm_body_format_by_type(const char *content_type, const struct gm_codec **ret,
                                      struct gm_error *err)
{
    char types[GM_MEDIA_TYPES_MAX];
    size_t len = stated_type_len(content_type);
    const struct gm_codec *codec = len > 0 ? gm_codec_by_media_type(content_type, len) : NULL;

    if (len > 0 && !codec)
        return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                       "Content-Type '%.80s' is not known; this takes %s (bare elements, with "
                       "?shape=RxC&dtype=f32) and multipart/form-data (curl -F a=@a.npy)",
                       content_type, gm_codec_media_types(types));
    *ret = codec;
    return GM_OK;
}

enum gm_status gm_body_format_by_first_bytes(const char *text, uint64_t len, bool all,
                                             uint64_t *space_len, const struct gm_codec **ret,
                                             struct gm_error *err)
{
    while (*space_len < len && memchr(" \t\r\n", text[*space_len], 4))
        ++*space_len;
    const struct gm_codec *codec = gm_codec_by_first_bytes(text + *space_len, len - *space_len);
    if (!codec && (all || len - *space_len >= GM_BODY_HINT_BYTES))
        return gm_body_hint_fail(text + *space_len, len - *space_len, all, err);
    *ret = codec;
    return GM_OK;
}

enum gm_status gm_body_format_check_operands(const struct gm_codec *codec, unsigned operands_min,
                                             struct gm_error *err)
{
    if (codec != &gm_codec_csv || operands_min < 2)
        return GM_OK;
    return gm_fail(err, GM_MISSING_OPERAND,
                   "a CSV body is one matrix, and this needs two: send them as parts, with curl -F "
                   "a=@a.csv -F b=@b.csv and no Content-Type");
}
