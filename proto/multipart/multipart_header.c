/*
 * multipart_header.c - reads the Content-Type of multipart/form-data, and the fields of a part's
 * header. Both are a word and parameters: `form-data; name="a"; filename="a.npy"`.
 *
 * A name is quoted in one of two ways. Browsers, and curl since 7.81, write %22 for a quote; a
 * backslash is an ordinary character. Older clients write a backslash before a quote. The older way
 * is tried first, because text of the newer is seldom valid in it. The rest of a header, such as a
 * file's name, is only skipped.
 */
#include "proto/multipart/multipart.h"

#include <string.h>
#include <strings.h>

/* A message repeats at most this much of a client's text. */
#define SHOWN_MAX 60

static bool is_token(char c)
{
    return c > ' ' && c < 0x7F && !strchr("()<>@,;:\\\"/[]?={}", c);
}

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* One `; name=value`. The value points into the text, as written. */
struct parameter {
    const char *name, *value;
    size_t name_len, value_len;
    bool escapes; /* it was quoted, and a backslash escapes the next character */
};

/*
 * Reads the parameter at *at and moves *at behind it. Returns false if there is none: then *at is
 * the text's end, or is at something that is no parameter.
 */
static bool next_parameter(const char **at, bool escapes, struct parameter *ret)
{
    const char *p = skip_blanks(*at);

    while (*p == ';')
        p = skip_blanks(p + 1);
    *at = p;
    ret->name = p;
    while (is_token(*p))
        p++;
    ret->name_len = (size_t)(p - ret->name);
    p = skip_blanks(p);
    if (ret->name_len == 0 || *p != '=')
        return false;
    p = skip_blanks(p + 1);
    ret->escapes = escapes && *p == '"';
    if (*p == '"') {
        ret->value = ++p;
        while (*p && *p != '"')
            p += escapes && p[0] == '\\' && p[1] ? 2 : 1;
        ret->value_len = (size_t)(p - ret->value);
        if (*p++ != '"')
            return false;
    } else {
        ret->value = p;
        ret->value_len = strcspn(p, "; \t");
        p += ret->value_len;
    }
    p = skip_blanks(p);
    if (*p && *p != ';')
        return false;
    *at = p;
    return true;
}

static bool parameter_is(const struct parameter *parameter, const char *name)
{
    return parameter->name_len == strlen(name) &&
           strncasecmp(parameter->name, name, parameter->name_len) == 0;
}

/* Copies a quoted value without its backslashes to out, which may be the value itself. Returns the
 * length. */
static size_t unquote(const struct parameter *parameter, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < parameter->value_len; i++) {
        if (parameter->escapes && parameter->value[i] == '\\' && i + 1 < parameter->value_len)
            i++;
        out[n++] = parameter->value[i];
    }
    return n;
}

/* Length of a media type without its parameters. */
static size_t type_len(const char *content_type)
{
    return strcspn(content_type, "; \t");
}

bool gm_multipart_is(const char *content_type)
{
    size_t len = strlen(GM_MULTIPART_TYPE);

    return content_type && type_len(content_type) == len &&
           strncasecmp(content_type, GM_MULTIPART_TYPE, len) == 0;
}

/* RFC 2046: letters, digits and "'()+_,-./:=? and blanks", no blank at the end. */
static bool boundary_valid(const char *boundary, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = boundary[i];
        bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && (c == '\0' || !strchr("'()+_,-./:=? ", c)))
            return false;
    }
    return len > 0 && boundary[len - 1] != ' ';
}

enum gm_status gm_multipart_boundary(const char *content_type,
                                     char ret[GM_MULTIPART_BOUNDARY_MAX + 1], struct gm_error *err)
{
    char boundary[2 * GM_MULTIPART_BOUNDARY_MAX];
    const char *at = content_type + type_len(content_type);
    struct parameter parameter;
    size_t len = 0;
    bool found = false;

    while (!found && next_parameter(&at, true, &parameter))
        found = parameter_is(&parameter, "boundary");
    if (!found)
        return gm_fail(
            err, GM_BAD_MULTIPART,
            "Content-Type is '%.100s', without the boundary that the client chose: leave "
            "that header to the client, as with curl -F a=@a.npy",
            content_type);
    bool fits = parameter.value_len < sizeof(boundary);
    if (fits)
        len = unquote(&parameter, boundary);
    if (!fits || len > GM_MULTIPART_BOUNDARY_MAX || !boundary_valid(boundary, len))
        return gm_fail(err, GM_BAD_MULTIPART,
                       "the boundary in Content-Type is '%.*s'; it is 1 to %d letters, digits and "
                       "characters of '()+_,-./:=?",
                       (int)(parameter.value_len < 100 ? parameter.value_len : 100),
                       parameter.value, GM_MULTIPART_BOUNDARY_MAX);
    memcpy(ret, boundary, len);
    ret[len] = '\0';
    return GM_OK;
}

/* Resolves %22, %0D and %0A in place, the three escapes that clients write. */
static size_t unescape(char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++, n++) {
        text[n] = text[i];
        if (text[i] != '%' || len - i < 3)
            continue;
        const char *hex = text + i + 1;
        char c = strncmp(hex, "22", 2) == 0       ? '"'
                 : strncasecmp(hex, "0D", 2) == 0 ? '\r'
                 : strncasecmp(hex, "0A", 2) == 0 ? '\n'
                                                  : '\0';
        if (c) {
            text[n] = c;
            i += 2;
        }
    }
    return n;
}

/* Finds the parameter `name`, and counts its occurrences in *ret_count. Returns whether the whole
 * text is well-formed. */
static bool find_name(const char *at, bool escapes, struct parameter *ret, unsigned *ret_count)
{
    struct parameter parameter;

    *ret_count = 0;
    while (next_parameter(&at, escapes, &parameter)) {
        if (!parameter_is(&parameter, "name"))
            continue;
        *ret = parameter;
        ++*ret_count;
    }
    return *at == '\0';
}

/* Changes the value of Content-Disposition to the name in it. */
static enum gm_status read_disposition(char *value, const char **ret, struct gm_error *err)
{
    const char *rest = value + type_len(value);
    struct parameter name = {0};
    unsigned count;

    if (type_len(value) != strlen("form-data") ||
        strncasecmp(value, "form-data", strlen("form-data")) != 0)
        return gm_fail(err, GM_BAD_MULTIPART,
                       "the Content-Disposition of a part is '%.*s'; it must be form-data with a "
                       "name, as in form-data; name=\"a\"",
                       SHOWN_MAX, value);
    if (!find_name(rest, true, &name, &count) && !find_name(rest, false, &name, &count))
        return gm_fail(err, GM_BAD_MULTIPART,
                       "the Content-Disposition of a part cannot be read: '%.*s'", SHOWN_MAX,
                       value);
    if (count != 1)
        return gm_fail(err, GM_BAD_MULTIPART, "a part has %s: its Content-Disposition is '%.*s'",
                       count ? "two names" : "no name", SHOWN_MAX, value);
    char *text = value + (name.value - value);
    text[unescape(text, unquote(&name, text))] = '\0';
    *ret = text;
    return GM_OK;
}

/* Checks an encoding: only those are allowed that leave the bytes as they are. */
static enum gm_status check_encoding(const char *field, const char *value, struct gm_error *err)
{
    static const char *const plain[] = {"binary", "8bit", "7bit", "identity"};

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strcasecmp(value, plain[i]) == 0)
            return GM_OK;
    return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                   "the %s of a part is '%.40s', which is not known; send its bytes as they are",
                   field, value);
}

/* Fields of a header that have been read. */
struct fields {
    char *disposition, *type, *transfer_encoding, *encoding;
};

/* Reads a field's line, NUL-terminated: `Name: value`. */
static enum gm_status read_field(char *line, struct fields *fields, struct gm_error *err)
{
    const struct {
        const char *name;
        char **field;
    } wanted[] = {{"Content-Disposition", &fields->disposition},
                  {"Content-Type", &fields->type},
                  {"Content-Transfer-Encoding", &fields->transfer_encoding},
                  {"Content-Encoding", &fields->encoding}};
    size_t name_len = 0;

    while (is_token(line[name_len]))
        name_len++;
    if (name_len == 0 || line[name_len] != ':')
        return gm_fail(err, GM_BAD_MULTIPART,
                       "in the header of a part stands '%.*s'; it must be lines like "
                       "Content-Disposition: form-data; name=\"a\"",
                       SHOWN_MAX, line);
    char *value = line + (skip_blanks(line + name_len + 1) - line);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (strlen(wanted[i].name) != name_len || strncasecmp(line, wanted[i].name, name_len) != 0)
            continue;
        if (*wanted[i].field)
            return gm_fail(err, GM_BAD_MULTIPART, "a part has two lines %s", wanted[i].name);
        *wanted[i].field = value;
    }
    return GM_OK;
}

/*
 * Splits the header into NUL-terminated lines. A line that begins with a blank continues the one
 * before; both are joined. Blanks at line ends are removed. Other control characters are errors.
 */
static enum gm_status split_lines(char *header, size_t len, struct gm_error *err)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)header[i];
        bool ends = c == '\r' && i + 1 < len && header[i + 1] == '\n';
        if (!ends && c != '\t' && (c < ' ' || c == 0x7F))
            return gm_fail(err, GM_BAD_MULTIPART,
                           "the header of a part holds a control character (%d)", c);
        if (!ends)
            continue;
        bool goes_on = i + 2 < len && (header[i + 2] == ' ' || header[i + 2] == '\t');
        header[i] = header[i + 1] = goes_on ? ' ' : '\0';
        for (size_t j = i; !goes_on && j > 0 && (header[j - 1] == ' ' || header[j - 1] == '\t');)
            header[--j] = '\0';
        i++;
    }
    return GM_OK;
}

enum gm_status gm_multipart_header_read(char *header, size_t len, struct gm_multipart_part *ret,
                                        struct gm_error *err)
{
    struct fields fields = {0};
    struct gm_multipart_part part = {.type = ""};
    enum gm_status status = split_lines(header, len, err);

    /* Removes blanks between the boundary and its line's end. */
    if (status == GM_OK && len > 0 && *header)
        return gm_fail(err, GM_BAD_MULTIPART, "the line of a boundary goes on with '%.*s'",
                       SHOWN_MAX, header);
    for (char *line = header; status == GM_OK && line < header + len;) {
        if (*line)
            status = read_field(line, &fields, err);
        line += strlen(line) + 1;
    }
    if (status == GM_OK && !fields.disposition)
        status = gm_fail(err, GM_BAD_MULTIPART,
                         "a part has no line Content-Disposition: form-data; name=\"a\"");
    if (status == GM_OK && fields.transfer_encoding)
        status = check_encoding("Content-Transfer-Encoding", fields.transfer_encoding, err);
    if (status == GM_OK && fields.encoding)
        status = check_encoding("Content-Encoding", fields.encoding, err);
    if (status == GM_OK)
        status = read_disposition(fields.disposition, &part.name, err);
    if (status != GM_OK)
        return status;
    if (fields.type)
        part.type = fields.type;
    *ret = part;
    return GM_OK;
}
