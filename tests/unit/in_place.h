/*
 * in_place.h - puts bytes of a body where a codec says that they go, as who reads a socket does.
 */
#ifndef GM_TESTS_UNIT_IN_PLACE_H
#define GM_TESTS_UNIT_IN_PLACE_H

#include "proto/codec.h"

#include <string.h>

/* Puts the first of n bytes in place, as many as the codec lets it. Returns how many. */
static inline size_t put_in_place(const struct gm_codec *codec, const struct gm_decoder *decoder,
                                  const char *bytes, size_t n)
{
    struct iovec place[GM_OPERANDS_MAX];
    unsigned count = codec->places ? codec->places(decoder, place) : 0;
    size_t placed = 0;

    for (unsigned i = 0; i < count; i++) {
        size_t part = place[i].iov_len < n - placed ? place[i].iov_len : n - placed;
        memcpy(place[i].iov_base, bytes + placed, part);
        placed += part;
    }
    return placed;
}

#endif
