#include "server/request/accept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* One element of the header: a media range and its weight. */
struct range {
    const char *type;
    size_t len;
    double q;
};

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* The weight among an element's parameters; 1 if there is none, 0 if it is malformed. */
static double read_weight(const char *p, const char *end)
{
    while (p < end && (p = memchr(p, ';', (size_t)(end - p))) != NULL) {
        p = skip_space(p + 1);
        if (p + 1 < end && (*p == 'q' || *p == 'Q') && p[1] == '=') {
            const char *after = p + 2 + strspn(p + 2, "0123456789."); /* no sign, no 0x */
            char *stop;
            double q = strtod(p + 2, &stop);
            bool whole = stop == after && stop > p + 2 && strchr(" \t;,", *after);
            return whole && q >= 0 && q <= 1 ? q : 0;
        }
    }
    return 1;
}

/* Reads the element at p. Returns where the next one starts, or NULL past the last. */
static const char *next_range(const char *p, struct range *ret)
{
    p = skip_space(p);
    const char *end = p + strcspn(p, ",");
    ret->type = p;
    ret->len = strcspn(p, ";, \t");
    ret->q = read_weight(p, end);
    return *end ? end + 1 : NULL;
}

/* How specific a range's match is: 3 the exact type, 2 the main type, 1 any type, 0 no match. */
static int specificity(const struct range *range, const char *media_type)
{
    size_t main_len = strcspn(media_type, "/") + 1;

    if (range->len == 3 && memcmp(range->type, "*/*", 3) == 0)
        return 1;
    if (range->len == main_len + 1 && range->type[main_len] == '*' &&
        strncasecmp(range->type, media_type, main_len) == 0)
        return 2;
    return range->len == strlen(media_type) && strncasecmp(range->type, media_type, range->len) == 0
               ? 3
               : 0;
}

/* The weight that the closest matching range gives a media type; 0 if none matches. */
static double weight_of(const char *accept, const char *media_type)
{
    int closest = 0;
    double q = 0;

    for (const char *p = accept; p;) {
        struct range range;
        p = next_range(p, &range);
        int match = specificity(&range, media_type);
        if (match > closest) {
            closest = match;
            q = range.q;
        }
    }
    return q;
}

/* Whether the list is empty. Empty elements do not count (RFC 9110, section 5.6.1). */
static bool says_nothing(const char *accept)
{
    return !accept || !accept[strspn(accept, " \t,")];
}

double gm_accept_weight(const char *accept, const char *media_type)
{
    return says_nothing(accept) ? 1 : weight_of(accept, media_type);
}

bool gm_accept_has_coding(const char *accept_encoding, const char *coding)
{
    bool named = false;
    double q = 0;

    for (const char *p = accept_encoding; p && !named;) {
        struct range range;
        p = next_range(p, &range);
        named = range.len == strlen(coding) && strncasecmp(range.type, coding, range.len) == 0;
        if (named || (range.len == 1 && *range.type == '*'))
            q = range.q;
    }
    return q > 0;
}

enum gm_status gm_accept_choose(const char *accept, const struct gm_codec *preferred,
                                const struct gm_codec **ret, struct gm_error *err)
{
    const struct gm_codec *best = preferred;

    if (!says_nothing(accept)) {
        double best_q = weight_of(accept, preferred->media_type);
        for (size_t i = 0; gm_codec_at(i); i++) {
            double q = weight_of(accept, gm_codec_at(i)->media_type);
            if (q > best_q) {
                best_q = q;
                best = gm_codec_at(i);
            }
        }
        if (weight_of(accept, gm_codec_svg.media_type) > best_q) {
            best_q = weight_of(accept, gm_codec_svg.media_type);
            best = &gm_codec_svg;
        }
        if (best_q <= 0) {
            char types[GM_MEDIA_TYPES_MAX];
            return gm_fail(err, GM_NOT_ACCEPTABLE,
                           "Accept is '%.100s', and a result can be written as %s, %s", accept,
                           gm_codec_media_types(types), gm_codec_svg.media_type);
        }
    }
    *ret = best;
    return GM_OK;
}

/* Reports. */

static const struct {
    const char *name, *type, *media_type;
} reports[GM_REPORT_FORMATS] = {
#define X(name, text, media_type, charset) {text, media_type, media_type charset},
    GM_REPORT_LIST(X)
#undef X
};

const char *gm_report_media_type(enum gm_report_format format)
{
    return reports[format].media_type;
}

/* For all names, or all media types, and what joins them. */
enum {
    LIST_MAX = 1
#define X(name, text, media_type, charset) +(int)(sizeof text + sizeof media_type + sizeof " and ")
    GM_REPORT_LIST(X)
#undef X
};

/* "a, b and c": names or media types. */
static void list(unsigned formats, bool types, char out[LIST_MAX])
{
    size_t at = 0;

    for (unsigned i = 0; i < GM_REPORT_FORMATS; i++) {
        const char *join = at == 0 ? "" : formats >> (i + 1) ? ", " : " and ";
        if (formats & GM_REPORT_BIT(i))
            at += (size_t)snprintf(out + at, LIST_MAX - at, "%s%s", join,
                                   types ? reports[i].type : reports[i].name);
    }
}

enum gm_status gm_report_choose(const char *accept, const char *format, unsigned formats,
                                enum gm_report_format *ret, struct gm_error *err)
{
    char able[LIST_MAX];
    double best = 0;

    for (unsigned i = 0; i < GM_REPORT_FORMATS; i++) {
        if (!(formats & GM_REPORT_BIT(i)))
            continue;
        bool named = strcmp(format, reports[i].name) == 0;
        double weight = *format ? (named ? 1 : 0) : gm_accept_weight(accept, reports[i].type);
        if (weight > best) {
            best = weight;
            *ret = (enum gm_report_format)i;
        }
    }
    if (best > 0)
        return GM_OK;
    list(formats, !*format, able);
    return *format
               ? gm_fail(err, GM_BAD_PARAMETER, "format is '%s'; it must be one of %s", format,
                         able)
               : gm_fail(err, GM_NOT_ACCEPTABLE,
                         "Accept is '%.100s', and this report can be written as %s", accept, able);
}
