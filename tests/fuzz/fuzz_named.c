/*
 * fuzz_named.c - what a client writes of named matrices: lists of entity tags, names, whom they are
 * shared with. Input: a choice of the matrix's tag, the text.
 *
 * Checked: a list is one for both headers or for none; one more tag at its end leaves it a list,
 * and decides where it is the matrix's; names are as a second, plainer reading has them.
 */
#include "server/matrices/matrices.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>

static enum gm_status check(const char *match, const char *none_match, const char *etag)
{
    const struct gm_conditions conditions = {.if_match = match, .if_none_match = none_match};
    struct gm_error err = {0};
    enum gm_status status = gm_etag_check(&conditions, etag, &err);

    if (status != GM_OK)
        fuzz_check_error(status, &err);
    MUST(status == GM_OK || status == GM_PRECONDITION_FAILED || status == GM_BAD_REQUEST);
    return status;
}

static char *join(const char *list, const char *more)
{
    char *out = fuzz_alloc(strlen(list) + strlen(more) + 1);

    strcpy(out, list);
    return strcat(out, more);
}

static void check_tags(const char *text, const char *etag)
{
    char tag[32];
    enum gm_status match = check(text, NULL, etag), none = check(NULL, text, etag);

    MUST((match == GM_BAD_REQUEST) == (none == GM_BAD_REQUEST));
    /* What matches strongly matches weakly. */
    MUST(match != GM_OK || none == GM_PRECONDITION_FAILED);
    MUST(check(text, NULL, NULL) == GM_PRECONDITION_FAILED);
    enum gm_status without = check(NULL, text, NULL);
    MUST(without == GM_OK || without == GM_BAD_REQUEST);
    (void)gm_etag_listed(text, etag);
    MUST(!gm_etag_listed(NULL, etag));
    if (match == GM_BAD_REQUEST || strchr(text, '"') == NULL)
        return;
    static const char *const ends[] = {", \"other\"", ",\"%s\"", " ,, \"%s-npy\"", ", W/\"%s\""};
    for (unsigned i = 0; i < 4; i++) {
        snprintf(tag, sizeof tag, ends[i], etag);
        char *longer = join(text, tag);
        enum gm_status now = check(longer, NULL, etag), none_now = check(NULL, longer, etag);
        MUST(now == (i == 1 || i == 2 ? GM_OK : match));
        MUST(none_now == (i == 0 ? none : GM_PRECONDITION_FAILED));
        free(longer);
    }
}

static bool is_name(const char *text, size_t len)
{
    bool ok = len >= 1 && len <= 64 && !isdigit((unsigned char)*text);

    for (size_t i = 0; i < len; i++)
        ok = ok && (text[i] == '_' || (isalnum((unsigned char)text[i]) && (text[i] & 0x80) == 0));
    return ok;
}

static bool is_key(const char *text, size_t len)
{
    bool ok = len >= 1 && len <= 63;

    for (size_t i = 0; i < len; i++)
        ok = ok && text[i] && (text[i] & 0x80) == 0 &&
             (isalnum((unsigned char)text[i]) || strchr("._-", text[i]));
    return ok;
}

static void check_names(const char *text, size_t len)
{
    size_t dot = len;

    while (dot > 0 && text[dot - 1] != '.')
        dot--;
    bool ref =
        dot > 0 ? is_key(text, dot - 1) && is_name(text + dot, len - dot) : is_name(text, len);
    MUST(gm_matrix_name_ok(text, len) == is_name(text, len));
    MUST(gm_matrix_ref_ok(text, len) == ref);
    if (strlen(text) != len)
        return;
    bool shared = len > 0 && len <= GM_PARAMETER_BYTES_MAX;
    for (const char *at = text; shared && strcmp(text, "*") != 0; at++) {
        size_t n = strcspn(at, ",");
        shared = is_key(at, n);
        at += n;
        if (!*at)
            break;
    }
    MUST(gm_matrix_share_ok(text, len) == shared);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const etags[] = {"0123456789abcdef", "a", "ffffffffffffffff"};
    struct fuzz_input in = {bytes, len};
    const char *etag = etags[fuzz_choice(&in, 3)];
    char *text = fuzz_string(in.at, in.left);

    if (strlen(text) == in.left)
        check_tags(text, etag);
    check_names(text, in.left);
    free(text);
    return 0;
}
