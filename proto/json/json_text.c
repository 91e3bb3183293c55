/*
 * json_text.c - strings, members and errors of JSON text.
 */
#include "proto/json/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum gm_status gm_json_fail(const struct gm_json *json, const char *at, const char *format, ...)
{
    char sentence[GM_ERROR_DETAIL_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    return gm_fail(json->err, GM_BAD_JSON, "byte %zu: %s", (size_t)(at - json->start), sentence);
}

enum gm_status gm_json_begin(struct gm_json *json, const char *text, size_t len,
                             struct gm_error *err)
{
    *json = (struct gm_json){.start = text, .end = text + len, .at = text, .err = err};
    while (json->end > text && strchr(" \t\r\n", json->end[-1]) && json->end[-1])
        json->end--;
    gm_json_space(json);

    char first = gm_json_peek(json);
    if (json->at == json->end)
        return gm_json_fail(json, json->at,
                            "the text is empty; a matrix is sent as "
                            "[[1,2],[3,4]] or {\"a\":[[1,2],[3,4]]}");
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        return gm_json_fail(json, text,
                            "the text begins with a byte order mark, which JSON "
                            "does not allow; save it as UTF-8 without one");
    if (first != '[' && first != '{')
        return gm_json_fail(json, json->at,
                            "a matrix is an array or an object, as in "
                            "[[1,2],[3,4]] or {\"a\":[[1,2],[3,4]]}");
    if (json->end[-1] != ']' && json->end[-1] != '}')
        return gm_json_fail(json, json->end - 1,
                            "the text does not end in ] or }; was all of it sent?");
    return GM_OK;
}

enum gm_status gm_json_end(const struct gm_json *json)
{
    return json->at == json->end ? GM_OK
                                 : gm_json_fail(json, json->at, "text after the end of the value");
}

/* Reads four hexadecimal digits. The caller has checked that there are four bytes. */
static bool hex4(const char *text, uint32_t *ret)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = text[i], lower = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value << 4 | (uint32_t)(lower - 'a' + 10);
        else
            return false;
    }
    *ret = value;
    return true;
}

/* Reads the escape at *at, after its backslash. Returns the code point, and moves *at on. */
static bool unescape(const char **at, const char *end, uint32_t *ret)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *p = *at;
    if (p == end)
        return false;
    if (*p != 'u') {
        const char *name = *p ? strchr(names, *p) : NULL;
        if (name)
            *ret = (uint32_t)values[name - names];
        *at = p + 1;
        return name;
    }

    uint32_t code, low;
    if (end - p < 5 || !hex4(p + 1, &code) || (code >= 0xDC00 && code <= 0xDFFF))
        return false;
    p += 5;
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (end - p < 6 || p[0] != '\\' || p[1] != 'u' || !hex4(p + 2, &low) || low < 0xDC00 ||
            low > 0xDFFF)
            return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        p += 6;
    }
    *at = p;
    *ret = code;
    return true;
}

/* Reads the UTF-8 sequence at *at, a byte of 0x80 or more. Returns the code point, and moves *at
 * on. */
static bool decode_utf8(const char **at, const char *end, uint32_t *ret)
{
    const unsigned char *s = (const unsigned char *)*at;
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || end - *at < n)
        return false;
    uint32_t code = s[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return false;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    if (code < lowest[n] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return false;
    *at += n;
    *ret = code;
    return true;
}

static size_t encode_utf8(char out[4], uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xFF) | code);
    return n;
}

enum gm_status gm_json_text(struct gm_json *json, char *to, size_t most, size_t *ret_len)
{
    const char *open = json->at, *p = open + 1;
    size_t len = 0;
    for (;;) {
        const char *here = p;
        uint32_t code;
        if (p == json->end)
            return gm_json_fail(json, open, "the string that begins here does not end");
        unsigned char c = (unsigned char)*p;
        if (c == '"')
            break;
        if (c < 0x20)
            return gm_json_fail(json, here, "a control character inside a string");
        if (c == '\\') {
            p++;
            if (!unescape(&p, json->end, &code))
                return gm_json_fail(json, here,
                                    "an escape that JSON does not have, or half of a "
                                    "surrogate pair");
        } else if (c >= 0x80) {
            if (!decode_utf8(&p, json->end, &code))
                return gm_json_fail(json, here, "bytes that are not UTF-8");
        } else {
            code = c;
            p++;
        }

        char bytes[4];
        size_t n = encode_utf8(bytes, code);
        if (len + n > most) {
            *ret_len = most + 1;
            return gm_json_fail(json, open, "the string that begins here is longer than %zu bytes",
                                most);
        }
        memcpy(to + len, bytes, n);
        len += n;
    }
    to[len] = '\0';
    *ret_len = len;
    json->at = p + 1;
    return GM_OK;
}

enum gm_status gm_json_string(struct gm_json *json, struct gm_json_string *ret)
{
    ret->len = 0;
    return gm_json_text(json, ret->text, GM_JSON_STRING_MAX, &ret->len);
}

bool gm_json_string_is(const struct gm_json_string *string, const char *text)
{
    return string->len == strlen(text) && memcmp(string->text, text, string->len) == 0;
}

enum gm_status gm_json_member(struct gm_json *json, struct gm_json_object *object,
                              const struct gm_json_string **ret_name)
{
    bool first = object->count == 0;
    gm_json_space(json);
    char c = gm_json_peek(json);
    if (!first && c != ',' && c != '}')
        return gm_json_fail(json, json->at, "',' or '}' is expected after a member");
    if (first || c == ',') {
        json->at++;
        gm_json_space(json);
    }
    if ((first || c == '}') && gm_json_peek(json) == '}') {
        json->at++;
        gm_json_space(json);
        *ret_name = NULL;
        return GM_OK;
    }
    if (gm_json_peek(json) != '"')
        return gm_json_fail(json, json->at, "a member's name in \"quotes\" is expected");
    if (object->count == GM_JSON_MEMBERS_MAX)
        return gm_json_fail(json, json->at, "an object of more than %d members",
                            GM_JSON_MEMBERS_MAX);

    const char *where = json->at;
    struct gm_json_string *name = &object->name[object->count];
    enum gm_status status = gm_json_string(json, name);
    if (status != GM_OK)
        return status;
    for (unsigned i = 0; i < object->count; i++)
        if (name->len == object->name[i].len &&
            memcmp(name->text, object->name[i].text, name->len) == 0)
            return gm_json_fail(json, where, "the member \"%s\" is there twice", name->text);
    object->count++;

    gm_json_space(json);
    if (gm_json_peek(json) != ':')
        return gm_json_fail(json, json->at, "':' is expected after a member's name");
    json->at++;
    gm_json_space(json);
    *ret_name = name;
    return GM_OK;
}
