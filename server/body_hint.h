/*
 * body_hint.h - a body in no form that gemmd takes: what it looks like, and what to type instead.
 * Pure: knows no request.
 */
#ifndef GM_SERVER_BODY_HINT_H
#define GM_SERVER_BODY_HINT_H

#include "proto/status.h"

#include <stdbool.h>

/* So many bytes, or all that there are, are enough. */
#define GM_BODY_HINT_BYTES 512

/*
 * A kind of file that is known by its first bytes, and what to do with it ("gzip: unpack it
 * first, ..."); NULL if it is none.
 */
const char *gm_body_hint_file(const void *bytes, size_t len);

/* GM_UNSUPPORTED_MEDIA_TYPE with the sentence for a body that begins like this; `all`: and is no
 * longer. */
enum gm_status gm_body_hint_fail(const void *bytes, size_t len, bool all, struct gm_error *err);

#endif
