/*
 * head.h - a request's first lines, as they came: what of them gemmd looks at. The strings are the
 * HTTP library's and live as long as the request. NULL: there was no such header.
 */
#ifndef GM_SERVER_HEAD_H
#define GM_SERVER_HEAD_H

#include "server/accept.h"
#include "server/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_request_head {
    const char *method, *path;
    const char *content_type, *content_encoding, *expect;
    const char *accept[GM_ACCEPT_LINES_MAX];
    const char *traceparent, *request_id;
    const char *repeated;     /* the name of a header that came twice and may not */
    uint64_t content_length;  /* GM_SIZE_UNKNOWN: none was stated */
    unsigned content_lengths; /* headers of that name */
    bool content_length_bad;  /* one of them is no number */
    unsigned chunked; /* Transfer-Encoding headers: the library lets none but "chunked" pass */
    unsigned queries;
    struct {
        const char *name, *value;
        size_t name_len, value_len;
    } query[GM_QUERY_PARAMETERS_MAX + 1]; /* one more than may be: shows that there are too many */
};

#endif
