#include "server/report.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *type, *media_type;
} rows[GM_REPORT_FORMS] = {
#define X(name, text, media_type, charset) {text, media_type, media_type charset},
    GM_REPORT_LIST(X)
#undef X
};

const char *gm_report_media_type(enum gm_report_form form)
{
    return rows[form].media_type;
}

#define LIST_MAX 80

/* "a, b and c": names or media types. */
static void list(unsigned forms, bool types, char out[LIST_MAX])
{
    size_t at = 0;

    for (unsigned i = 0; i < GM_REPORT_FORMS; i++) {
        const char *join = at == 0 ? "" : forms >> (i + 1) ? ", " : " and ";
        if (forms & GM_REPORT_BIT(i))
            at += (size_t)snprintf(out + at, LIST_MAX - at, "%s%s", join,
                                   types ? rows[i].type : rows[i].name);
    }
}

enum gm_status gm_report_choose(const char *const accept[GM_ACCEPT_LINES_MAX], const char *format,
                                unsigned forms, enum gm_report_form *ret, struct gm_error *err)
{
    char able[LIST_MAX];
    double best = 0;

    for (unsigned i = 0; i < GM_REPORT_FORMS; i++) {
        if (!(forms & GM_REPORT_BIT(i)))
            continue;
        bool named = strcmp(format, rows[i].name) == 0;
        double weight = *format ? (named ? 1 : 0) : gm_accept_weight(accept, rows[i].type);
        if (weight > best) {
            best = weight;
            *ret = (enum gm_report_form)i;
        }
    }
    if (best > 0)
        return GM_OK;
    list(forms, !*format, able);
    return *format ? gm_fail(err, GM_BAD_PARAMETER, "format is '%s'; it must be one of %s", format,
                             able)
                   : gm_fail(err, GM_NOT_ACCEPTABLE,
                             "Accept is '%.100s', and this report can be written as %s", accept[0],
                             able);
}
