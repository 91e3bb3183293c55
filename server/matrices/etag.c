/* etag.c - see matrices.h. */
#include "server/matrices/internal.h"

#include <string.h>

struct tag {
    const char *text;
    size_t len;
    bool weak;
};

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t");
}

/* Reads the next tag of a list and what separates it from the one after. false: there is none. */
static bool next_tag(const char **at, struct tag *ret)
{
    const char *p = skip_space(*at);

    while (*p == ',') /* empty elements are to be ignored */
        p = skip_space(p + 1);
    ret->weak = p[0] == 'W' && p[1] == '/';
    p += ret->weak ? 2 : 0;
    if (*p != '"')
        return false;
    ret->text = ++p;
    while (*p && *p != '"')
        p++;
    if (!*p)
        return false;
    ret->len = (size_t)(p - ret->text);
    p = skip_space(p + 1);
    if (*p && *p != ',')
        return false;
    while (*p == ',')
        p = skip_space(p + 1);
    *at = p;
    return true;
}

static bool is_star(const char *list)
{
    const char *at = skip_space(list);

    return *at == '*' && !*skip_space(at + 1);
}

/* The length of a tag without the format that it ends in. */
static size_t without_format(const char *text, size_t len)
{
    const char *dash = memchr(text, '-', len);

    return dash ? (size_t)(dash - text) : len;
}

/* Whether the list has the tag. weak: W/"x" is as good as "x". *ret_ok: it is a list. */
static bool has_tag(const char *list, const char *etag, bool weak, bool *ret_ok)
{
    struct tag tag;
    bool found = false, any = false;

    for (*ret_ok = true; *list; any = true) {
        if (!next_tag(&list, &tag)) {
            *ret_ok = false;
            return false;
        }
        size_t len = without_format(tag.text, tag.len);
        found = found || ((weak || !tag.weak) && etag && strlen(etag) == len &&
                          memcmp(tag.text, etag, len) == 0);
    }
    *ret_ok = any;
    return found;
}

static enum gm_status fail_list(const char *name, const char *value, struct gm_error *err)
{
    return gm_fail(err, GM_BAD_REQUEST,
                   "%s is '%.80s'; it is * or a list of entity tags, as \"a1b2\", \"c3d4\"", name,
                   value);
}

enum gm_status gm_etag_check(const struct gm_conditions *conditions, const char *etag,
                             struct gm_error *err)
{
    const char *want = conditions->if_match, *other = conditions->if_none_match;
    bool ok = true;

    if (want && !etag)
        return gm_fail(err, GM_PRECONDITION_FAILED,
                       "there is no such matrix, and If-Match wants one");
    if (want && !is_star(want)) {
        bool has = has_tag(want, etag, false, &ok);
        if (!ok)
            return fail_list("If-Match", want, err);
        if (!has)
            return gm_fail(err, GM_PRECONDITION_FAILED,
                           "the matrix has ETag \"%s\", which If-Match does not list (a weak "
                           "one, W/\"...\", never matches)",
                           etag);
    }
    if (other && !is_star(other)) {
        bool has = has_tag(other, etag, true, &ok);
        if (!ok)
            return fail_list("If-None-Match", other, err);
        if (has)
            return gm_fail(err, GM_PRECONDITION_FAILED,
                           "the matrix has ETag \"%s\", which If-None-Match lists", etag);
    } else if (other && etag) {
        return gm_fail(err, GM_PRECONDITION_FAILED,
                       "there is such a matrix, with ETag \"%s\", and If-None-Match wants none",
                       etag);
    }
    return GM_OK;
}

bool gm_etag_listed(const char *list, const char *etag)
{
    struct tag tag;

    if (!list)
        return false;
    if (is_star(list))
        return true;
    while (*list && next_tag(&list, &tag))
        if (tag.len == strlen(etag) && memcmp(tag.text, etag, tag.len) == 0)
            return true;
    return false;
}
