/* name.c - the names of matrices, and of whom they are shared with. */
#include "server/matrices/internal.h"

#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool gm_matrix_name_ok(const char *text, size_t len)
{
    bool ok = len > 0 && len < GM_MATRIX_NAME_MAX && is_letter(*text);

    for (size_t i = 0; ok && i < len; i++)
        ok = is_letter(text[i]) || is_digit(text[i]);
    return ok;
}

/* Names have no dots, owners may. */
size_t gm_matrix_owner_len(const char *text, size_t len)
{
    const char *dot = memrchr(text, '.', len);

    return dot ? (size_t)(dot - text) : SIZE_MAX;
}

bool gm_matrix_ref_ok(const char *text, size_t len)
{
    size_t owner = gm_matrix_owner_len(text, len);

    if (owner == SIZE_MAX)
        return gm_matrix_name_ok(text, len);
    return gm_key_name_ok(text, owner) && gm_matrix_name_ok(text + owner + 1, len - owner - 1);
}

bool gm_matrix_is_of_other(const char *ref, const char *owner)
{
    size_t len = gm_matrix_owner_len(ref, strlen(ref));

    return len != SIZE_MAX && (strlen(owner) != len || memcmp(owner, ref, len) != 0);
}

bool gm_matrix_share_ok(const char *text, size_t len)
{
    if (len == 0 || len >= GM_MATRIX_SHARE_MAX)
        return false;
    if (strcmp(text, "*") == 0)
        return true;
    for (;;) {
        size_t n = strcspn(text, ",");
        if (!gm_key_name_ok(text, n))
            return false;
        if (!text[n])
            return true;
        text += n + 1;
    }
}

bool gm_matrix_share_has(const char *share, const char *key)
{
    size_t len = strlen(key);

    if (strcmp(share, "*") == 0)
        return true;
    for (const char *at = share; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == len && memcmp(at, key, len) == 0)
            return true;
    return false;
}
