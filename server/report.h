/*
 * report.h - in which form a report is written. A report is a reply about an operation rather
 * than its result: for people unless the client asks for another form.
 */
#ifndef GM_SERVER_REPORT_H
#define GM_SERVER_REPORT_H

#include "server/accept.h"

#define GM_REPORT_LIST(X)                                                                          \
    X(TEXT, "text", "text/plain", "; charset=utf-8")                                               \
    X(JSON, "json", "application/json", "")                                                        \
    X(SVG, "svg", "image/svg+xml", "")

enum gm_report_form {
#define X(name, text, media_type, charset) GM_REPORT_##name,
    GM_REPORT_LIST(X)
#undef X
        GM_REPORT_FORMS
};

#define GM_REPORT_BIT(form) (1u << (form))

/* As Content-Type says it. */
const char *gm_report_media_type(enum gm_report_form form);

/*
 * Of the forms (GM_REPORT_BIT) that a report can take: the one that `format` names, where that is
 * not ""; else the one that Accept likes best, text where it does not care. GM_BAD_PARAMETER,
 * GM_NOT_ACCEPTABLE.
 */
enum gm_status gm_report_choose(const char *const accept[GM_ACCEPT_LINES_MAX], const char *format,
                                unsigned forms, enum gm_report_form *ret, struct gm_error *err);

#endif
