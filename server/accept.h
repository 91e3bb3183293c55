/*
 * accept.h - content negotiation: which form a reply takes (RFC 9110, section 12.5.1).
 */
#ifndef GM_SERVER_ACCEPT_H
#define GM_SERVER_ACCEPT_H

#include "proto/codec.h"

/* Accept may come in several lines, which are one list; more than these are not looked at. */
#define GM_ACCEPT_LINES_MAX 4

/*
 * The codec with the highest q in the Accept header's lines (NULL past the last); `preferred`
 * (the form of the request) wins ties, then the order of the table. No header, or an empty one,
 * accepts anything. GM_NOT_ACCEPTABLE names what can be written.
 */
enum gm_status gm_accept_choose(const char *const accept[GM_ACCEPT_LINES_MAX],
                                const struct gm_codec *preferred, const struct gm_codec **ret,
                                struct gm_error *err);

/* The weight that Accept gives a media type: 0 where it is not wanted, 1 where nothing is said. */
double gm_accept_weight(const char *const accept[GM_ACCEPT_LINES_MAX], const char *media_type);

#endif
