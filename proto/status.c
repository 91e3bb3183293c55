/*
 * status.c - texts of the status list; error messages that are safe to send; suggestions for
 * mistyped words. A message has a bounded length, and is valid UTF-8 without control characters,
 * whatever text of a client it repeats.
 */
#include "proto/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int http;
    const char *code, *title;
} rows[GM_STATUS_COUNT] = {
#define X(name, http, code, title) {http, code, title},
    GM_STATUS_LIST(X)
#undef X
};

static enum gm_status known(enum gm_status status)
{
    return (unsigned)status < GM_STATUS_COUNT ? status : GM_INTERNAL;
}

int gm_status_http(enum gm_status status)
{
    return rows[known(status)].http;
}

const char *gm_status_code(enum gm_status status)
{
    return rows[known(status)].code;
}

const char *gm_status_title(enum gm_status status)
{
    return rows[known(status)].title;
}

/*
 * Length of the printable UTF-8 sequence at s, of which len > 0 bytes are readable. 0 if it is a
 * control character, a stray or missing continuation, overlong, or a surrogate.
 */
static size_t printable(const unsigned char *s, size_t len)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7F;

    size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || len < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((s[0] == 0xC2 && s[1] < 0xA0) || /* C1 controls */
        (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}

/* Copies len bytes of text without NUL, and makes them printable. cut: more text followed. */
static void copy_printable(char *out, const char *text, size_t len, int cut)
{
    const unsigned char *s = (const unsigned char *)text;
    static const char dots[] = "...";
    size_t room = GM_ERROR_DETAIL_MAX - sizeof(dots);
    size_t at = 0, n = 0;

    while (at < len && n < room) {
        size_t step = printable(s + at, len - at);
        if (n + step > room)
            break;
        if (step) {
            memcpy(out + n, text + at, step);
            n += step;
            at += step;
        } else {
            out[n++] = '?';
            at++;
        }
    }
    if (at < len || cut) {
        memcpy(out + n, dots, sizeof(dots) - 1);
        n += sizeof(dots) - 1;
    }
    out[n] = '\0';
}

enum gm_status gm_fail(struct gm_error *err, enum gm_status status, const char *format, ...)
{
    if (!err)
        return status;

    char text[GM_ERROR_DETAIL_MAX] = "";
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);

    err->status = status;
    err->at = 0;
    copy_printable(err->detail, text, strlen(text), len >= (int)sizeof(text));
    return status;
}

size_t gm_edit_distance(const char *from, size_t from_len, const char *to)
{
    size_t row[GM_WORD_MAX + 1], to_len = strnlen(to, GM_WORD_MAX);

    if (from_len > GM_WORD_MAX)
        from_len = GM_WORD_MAX;
    for (size_t j = 0; j <= to_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= from_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= to_len; j++) {
            size_t change = diagonal + (from[i - 1] != to[j - 1]);
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < other ? change : other;
        }
    }
    return row[to_len];
}

bool gm_is_near(const char *from, size_t from_len, const char *to)
{
    size_t to_len = strnlen(to, GM_WORD_MAX);

    return 2 * gm_edit_distance(from, from_len, to) <= (from_len > to_len ? from_len : to_len);
}
