/*
 * json_line.c - writes JSON on one line, in place: commas, names, escapes and numbers.
 */
#include "proto/json/json.h"

#include "proto/number/number.h"

#include <math.h>
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

/* Writes the comma, if one is needed, and the name. */
static void put_name(struct gm_json_line *line, const char *name)
{
    bool comma = line->at > line->begin && line->at[-1] != '{' && line->at[-1] != '[';
    size_t len = name ? strlen(name) : 0;

    if (line->full || comma + (name ? len + 3 : 0) > (size_t)(line->end - line->at)) {
        line->full = true;
        return;
    }
    if (comma)
        *line->at++ = ',';
    if (!name)
        return;
    *line->at++ = '"';
    memcpy(line->at, name, len);
    line->at += len;
    *line->at++ = '"';
    *line->at++ = ':';
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
    for (const char *p = value; *p;) {
        const char *plain = p;
        while ((unsigned char)*p >= 0x20 && *p != '"' && *p != '\\')
            p++;
        put(line, plain, (size_t)(p - plain));
        if (!*p)
            break;
        unsigned char c = (unsigned char)*p++;
        const char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        put(line, escape, sizeof escape);
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
    /* Keep a decimal point, even if the value is a whole number. */
    if (dtype == GM_F64 && !memchr(text, '.', (size_t)(end - text)) &&
        !memchr(text, 'e', (size_t)(end - text)))
        put(line, ".0", 2);
}

void gm_json_line_shape(struct gm_json_line *line, const char *name, const struct gm_matrix *matrix)
{
    gm_json_line_open(line, name, '[');
    if (matrix->stacked)
        put_number(line, NULL, GM_U64, &matrix->batch);
    put_number(line, NULL, GM_U64, &matrix->rows);
    put_number(line, NULL, GM_U64, &matrix->cols);
    gm_json_line_close(line, '[');
}

void gm_json_line_integer(struct gm_json_line *line, const char *name, int64_t value)
{
    put_number(line, name, GM_I64, &value);
}

void gm_json_line_real(struct gm_json_line *line, const char *name, double value)
{
    put_number(line, name, GM_F64, &value);
}

void gm_json_line_decimal(struct gm_json_line *line, const char *name, int64_t value,
                          unsigned places)
{
    char text[GM_DECIMAL_PLACES_MAX + 24], *const end = text + sizeof text, *at = end;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;

    for (unsigned place = places; place > 0; place--, left /= 10)
        if (left % 10 != 0 || at < end || place == 1)
            *--at = (char)('0' + left % 10);
    if (places == 0)
        *--at = '0';
    *--at = '.';
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0)
        *--at = '-';
    put_name(line, name);
    put(line, at, (size_t)(end - at));
}

void gm_json_line_rounded(struct gm_json_line *line, const char *name, double value,
                          unsigned digits)
{
    double ten_to_digits = 1, unit = 1;
    unsigned places = 0;

    if (!(fabs(value) < 1e18)) {
        gm_json_line_real(line, name, value);
        return;
    }
    for (unsigned i = 0; i < digits; i++)
        ten_to_digits *= 10;
    for (; places < GM_DECIMAL_PLACES_MAX && fabs(value) * unit * 10 < ten_to_digits; places++)
        unit *= 10;
    int64_t rounded = (int64_t)round(value * unit), step = 1;
    while (fabs(value) >= (double)step * ten_to_digits) /* digits before the point that are noise */
        step *= 10;
    if (step > 1)
        rounded = (int64_t)round(value / (double)step) * step;
    gm_json_line_decimal(line, name, rounded, places);
}

void gm_json_line_true(struct gm_json_line *line, const char *name)
{
    put_name(line, name);
    put(line, "true", 4);
}
