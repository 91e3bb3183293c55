/*
 * codec.c - the table of formats; finds a body's format by its media type or first bytes.
 */
#include "proto/codec.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Raw bodies and NPY replies are copied between socket and memory unchanged. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "gemmd runs on little-endian machines");

static const struct gm_codec *const codecs[] = {&gm_codec_json, &gm_codec_npy, &gm_codec_csv,
                                                &gm_codec_raw};

const struct gm_codec *gm_codec_at(size_t index)
{
    return index < sizeof(codecs) / sizeof(codecs[0]) ? codecs[index] : NULL;
}

const char *gm_codec_media_types(char buf[GM_MEDIA_TYPES_MAX])
{
    size_t at = 0;

    buf[0] = '\0';
    for (size_t i = 0; gm_codec_at(i) && at < GM_MEDIA_TYPES_MAX; i++)
        at += (size_t)snprintf(buf + at, GM_MEDIA_TYPES_MAX - at, "%s%s", i ? ", " : "",
                               codecs[i]->media_type);
    return buf;
}

const struct gm_codec *gm_codec_by_media_type(const char *type, size_t len)
{
    for (size_t i = 0; gm_codec_at(i); i++) {
        const char *own = codecs[i]->media_type;
        if (strlen(own) == len && strncasecmp(own, type, len) == 0)
            return codecs[i];
    }
    return NULL;
}

const struct gm_codec *gm_codec_by_first_bytes(const void *bytes, size_t len)
{
    static const char npy_magic[] = "\x93NUMPY";
    const char *at = bytes, *end = at + len;

    if (len >= sizeof(npy_magic) - 1 && memcmp(at, npy_magic, sizeof(npy_magic) - 1) == 0)
        return &gm_codec_npy;
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at < end && (*at == '[' || *at == '{') ? &gm_codec_json : NULL;
}
