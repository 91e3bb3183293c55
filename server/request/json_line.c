#include "server/request/json_line.h"

#include "proto/number/number.h"

#include <string.h>

struct gm_json_line gm_json_line_begin(char *text, size_t size)
{
    return (struct gm_json_line){.begin = text, .at = text, .end = text + size - 1};
}

bool gm_json_line_end(struct gm_json_line *line)
{
    *line->at = '\0';
    return !line->full;
}

static void put(struct gm_json_line *line, const char *text, size_t len)
{
    if (line->full || len > (size_t)(line->end - line->at)) {
        line->full = true;
        return;
    }
    memcpy(line->at, text, len);
    line->at += len;
}

/* The comma that whatever stands before calls for, and the name. */
static void put_name(struct gm_json_line *line, const char *name)
{
    if (line->at > line->begin && line->at[-1] != '{' && line->at[-1] != '[')
        put(line, ",", 1);
    if (!name)
        return;
    put(line, "\"", 1);
    put(line, name, strlen(name));
    put(line, "\":", 2);
}

void gm_json_line_open(struct gm_json_line *line, const char *name, char bracket)
{
    put_name(line, name);
    put(line, &bracket, 1);
}

void gm_json_line_close(struct gm_json_line *line, char bracket)
{
    put(line, bracket == '[' ? "]" : "}", 1);
}

void gm_json_line_string(struct gm_json_line *line, const char *name, const char *value)
{
    static const char hex[] = "0123456789abcdef";

    put_name(line, name);
    put(line, "\"", 1);
    for (const char *p = value; *p; p++) {
        unsigned char c = (unsigned char)*p;
        const char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        if (c < 0x20 || c == '"' || c == '\\')
            put(line, escape, sizeof escape);
        else
            put(line, p, 1);
    }
    put(line, "\"", 1);
}

static void put_number(struct gm_json_line *line, const char *name, enum gm_dtype dtype,
                       const void *value)
{
    char text[GM_NUMBER_WIDTH_MAX];
    const char *end = gm_number_writer_of(dtype)(text, value);

    put_name(line, name);
    if (!end) {
        put(line, "null", 4);
        return;
    }
    put(line, text, (size_t)(end - text));
    /* A measure stays one, also where it happens to be whole. */
    if (dtype == GM_F64 && !memchr(text, '.', (size_t)(end - text)) &&
        !memchr(text, 'e', (size_t)(end - text)))
        put(line, ".0", 2);
}

void gm_json_line_integer(struct gm_json_line *line, const char *name, int64_t value)
{
    put_number(line, name, GM_I64, &value);
}

void gm_json_line_real(struct gm_json_line *line, const char *name, double value)
{
    put_number(line, name, GM_F64, &value);
}

void gm_json_line_true(struct gm_json_line *line, const char *name)
{
    put_name(line, name);
    put(line, "true", 4);
}
