/*
 * accept.h - content negotiation: chooses the format of a result or report (RFC 9110, section
 * 12.5.1).
 *
 * A report is a reply about an operation, not its result. It is text for people, unless the client
 * asks for another format.
 */
#ifndef GM_SERVER_REQUEST_ACCEPT_H
#define GM_SERVER_REQUEST_ACCEPT_H

#include "proto/codec.h"

/*
 * The codec with the highest q in the Accept header. `preferred` (the format of the request) wins
 * ties, then the order of the table. No header (NULL), or an empty one, accepts everything. The
 * error GM_NOT_ACCEPTABLE lists the formats.
 */
enum gm_status gm_accept_choose(const char *accept, const struct gm_codec *preferred,
                                const struct gm_codec **ret, struct gm_error *err);

/* The weight (q) of a media type in Accept: 0 if it is not accepted, 1 if there is no Accept. */
double gm_accept_weight(const char *accept, const char *media_type);

/* Whether Accept-Encoding takes this coding (RFC 9110, section 12.5.3). NULL, no such header: no.
 */
bool gm_accept_has_coding(const char *accept_encoding, const char *coding);

#define GM_REPORT_LIST(X)                                                                          \
    X(TEXT, "text", "text/plain", "; charset=utf-8")                                               \
    X(JSON, "json", "application/json", "")                                                        \
    X(SVG, "svg", "image/svg+xml", "")

enum gm_report_format {
#define X(name, text, media_type, charset) GM_REPORT_##name,
    GM_REPORT_LIST(X)
#undef X
        GM_REPORT_FORMATS
};

#define GM_REPORT_BIT(format) (1u << (format))

/* The value of Content-Type. */
const char *gm_report_media_type(enum gm_report_format format);

/*
 * Chooses one of a report's formats (`formats`, of GM_REPORT_BIT): the one named by `format` if
 * that is not "", else the one with the highest q in Accept, text on ties. Errors:
 * GM_BAD_PARAMETER, GM_NOT_ACCEPTABLE.
 */
enum gm_status gm_report_choose(const char *accept, const char *format, unsigned formats,
                                enum gm_report_format *ret, struct gm_error *err);

#endif
