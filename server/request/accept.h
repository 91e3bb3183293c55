/*
 * accept.h - content negotiation: in which format a result, or a report, is written (RFC 9110,
 * section 12.5.1). A report is a reply about an operation rather than its result: for people unless
 * the client asks for another format.
 */
#ifndef GM_SERVER_REQUEST_ACCEPT_H
#define GM_SERVER_REQUEST_ACCEPT_H

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

#define GM_REPORT_BIT(form) (1u << (form))

/* As Content-Type says it. */
const char *gm_report_media_type(enum gm_report_format form);

/*
 * Of the forms (GM_REPORT_BIT) that a report can take: the one that `format` names, where that is
 * not ""; else the one that Accept likes best, text where it does not care. GM_BAD_PARAMETER,
 * GM_NOT_ACCEPTABLE.
 */
enum gm_status gm_report_choose(const char *const accept[GM_ACCEPT_LINES_MAX], const char *format,
                                unsigned forms, enum gm_report_format *ret, struct gm_error *err);

#endif
