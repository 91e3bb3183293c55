/*
 * codec_csv_field.c - reads a field that is not a number in JSON's grammar: rewrites it as one, or
 * says what is wrong.
 */
#include "proto/csv/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct span {
    const char *at, *end;
};

/* Bytes behind a number: one that ends it, and those that a reader may read. */
#define NUMBER_TAIL 16

/* Strips blanks, then quotes, then blanks from both ends of the field from p to end. */
static struct span trim(const struct gm_csv *csv, const char *p, const char *end)
{
    for (int pass = 0; pass < 2; pass++) {
        while (p < end && (*p == ' ' || *p == csv->blank))
            p++;
        while (end > p && (end[-1] == ' ' || end[-1] == csv->blank))
            end--;
        if (pass == 0 && end - p >= 2 && *p == '"' && end[-1] == '"') {
            p++;
            end--;
        }
    }
    return (struct span){p, end};
}

static bool is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

static char *copy_digits(const char **p, const char *end, char *out)
{
    while (is_digit(*p, end))
        *out++ = *(*p)++;
    return out;
}

/*
 * Rewrites the field in JSON's grammar: no plus sign, no leading zeros, digits on both sides of the
 * point. A field that is no number does not become one. Returns the end; NULL if the field is too
 * long for any number.
 */
static char *rewrite(struct span f, char out[GM_NUMBER_TEXT_MAX + NUMBER_TAIL])
{
    const char *p = f.at, *end = f.end;

    if (p < end && *p == '-')
        *out++ = *p++;
    else if (end - p > 1 && *p == '+' && p[1] != '-')
        p++;
    if (end - p > GM_NUMBER_TEXT_MAX - 2) /* the sign, and a digit before the point */
        return NULL;
    while (is_digit(p, end) && *p == '0' && is_digit(p + 1, end))
        p++;
    bool whole = is_digit(p, end);
    out = copy_digits(&p, end, out);
    if (p < end && *p == '.' && (whole || is_digit(p + 1, end))) {
        if (!whole)
            *out++ = '0';
        if (is_digit(++p, end) || (p < end && *p == '.')) /* a second point is kept, as an error */
            *out++ = '.';
        out = copy_digits(&p, end, out);
    }
    memcpy(out, p, (size_t)(end - p));
    out += end - p;
    memset(out, 0, NUMBER_TAIL);
    return out;
}

static bool is_word(struct span f, const char *word)
{
    size_t len = (size_t)(f.end - f.at);
    return strlen(word) == len && strncasecmp(f.at, word, len) == 0;
}

/* 'n' for NaN, 'i' for infinity, of either sign; 0 for anything else. */
static char nonfinite(struct span f)
{
    f.at += f.at < f.end && (*f.at == '-' || *f.at == '+');
    if (is_word(f, "nan"))
        return 'n';
    return is_word(f, "inf") || is_word(f, "infinity") ? 'i' : '\0';
}

/* false for types that have neither. */
static bool store_nonfinite(enum gm_dtype dtype, char which, bool negative, void *out)
{
    static const struct {
        uint64_t infinity, quiet;
    } bits[GM_DTYPE_COUNT] = {
        [GM_F16] = {0x7C00, 0x0200},
        [GM_BF16] = {0x7F80, 0x0040},
        [GM_F32] = {0x7F800000, 0x00400000},
        [GM_F64] = {UINT64_C(0x7FF0000000000000), UINT64_C(0x0008000000000000)},
    };
    size_t size = gm_dtype_size(dtype);
    uint64_t value = bits[dtype].infinity | (which == 'n' ? bits[dtype].quiet : 0) |
                     (uint64_t)negative << (8 * size - 1);

    if (!bits[dtype].infinity)
        return false;
    memcpy(out, &value, size); /* little-endian, like all platforms of gemmd */
    return true;
}

const char *gm_csv_read_field(const struct gm_csv *csv, const char *p, void *ret_element)
{
    const char *end = gm_csv_field_end(csv, p);
    struct span f = trim(csv, p, end);
    char which = nonfinite(f), number[GM_NUMBER_TEXT_MAX + NUMBER_TAIL];

    if (which)
        return store_nonfinite(csv->dtype, which, *f.at == '-', ret_element) ? end : NULL;
    if (csv->dtype == GM_BOOL && (is_word(f, "true") || is_word(f, "false"))) {
        *(bool *)ret_element = is_word(f, "true");
        return end;
    }
    char *number_end = rewrite(f, number);
    return number_end && csv->read(number, ret_element) == number_end ? end : NULL;
}

bool gm_csv_is_number(const struct gm_csv *csv, const char *p)
{
    struct span f = trim(csv, p, gm_csv_field_end(csv, p));
    char number[GM_NUMBER_TEXT_MAX + NUMBER_TAIL];
    char *end = f.at < f.end && !nonfinite(f) ? rewrite(f, number) : NULL;

    return nonfinite(f) || (end && gm_number_end(number) == end);
}

/* Whether the field contains the character. */
static bool holds(struct span f, char c)
{
    return memchr(f.at, c, (size_t)(f.end - f.at)) != NULL;
}

static bool has_line_end(const struct gm_csv *csv)
{
    size_t len = (size_t)(csv->end - csv->start);
    return memchr(csv->start, '\n', len) || memchr(csv->start, '\r', len);
}

/* The advice for a field that is no number. */
static const char *advice(const struct gm_csv *csv, struct span f, bool second_line)
{
    bool digits = is_digit(f.at, f.end) || is_digit(f.at + (f.at < f.end), f.end);

    if (digits && csv->separator == ',' && holds(f, ','))
        return ": write it without commas between its digits";
    if (digits && (holds(f, ',') || holds(f, ';') || holds(f, '\t')))
        return ": numbers have a decimal point and one separator all over (for decimal commas: tr "
               "',;' '.,' < FILE | curl --data-binary @- ...)";
    if (digits && holds(f, ' '))
        return ": separate numbers by commas, semicolons or tabs (tr -s ' ' ',' < FILE | curl "
               "--data-binary @- ...)";
    if (!has_line_end(csv))
        return ": there is no line end in the whole text; curl -d takes them out of a file, "
               "--data-binary keeps them";
    if (gm_csv_is_missing(f.at, (size_t)(f.end - f.at)))
        return ": write nan where a number is missing";
    if (csv->has_header && second_line)
        return ": one header line is passed over, not more";
    return "";
}

enum gm_status gm_csv_bad_field(const struct gm_csv *csv, const char *p, uint64_t field)
{
    const char *end = gm_csv_field_end(csv, p), *dtype = gm_dtype_name(csv->dtype);
    struct span f = trim(csv, p, end);
    ptrdiff_t len = f.end - f.at;
    char number[GM_NUMBER_TEXT_MAX + NUMBER_TAIL], text[64], place[64];

    snprintf(text, sizeof(text), "'%.*s%s'", len > 40 ? 40 : (int)len, f.at, len > 40 ? "..." : "");
    snprintf(place, sizeof(place), "line %" PRIu64 ", field %" PRIu64, gm_csv_line_number(csv, p),
             field + 1);
    if (len == 0)
        return gm_fail(
            csv->err, GM_BAD_CSV, "%s is empty%s: write nan where a number is missing", place,
            end == csv->end || *end != csv->separator ? ", behind the line's last separator" : "");
    if (nonfinite(f))
        return gm_fail(csv->err, GM_OUT_OF_RANGE, "%s is %s, which dtype %s does not have", place,
                       text, dtype);
    if (is_word(f, "true") || is_word(f, "false"))
        return gm_fail(csv->err, GM_BAD_DTYPE, "%s is %s, which needs dtype bool; this is %s",
                       place, text, dtype);

    char *number_end = rewrite(f, number);
    if (!number_end)
        return gm_fail(csv->err, GM_BAD_CSV, "%s has more than %d characters", place,
                       GM_NUMBER_TEXT_MAX);
    if (gm_number_end(number) != number_end)
        return gm_fail(csv->err, GM_BAD_CSV, "%s is %s, which is not a number%s", place, text,
                       advice(csv, f, p == csv->data));
    return gm_fail(csv->err, GM_OUT_OF_RANGE, "%s is %s, which %s %s", place, text,
                   gm_number_fault(number, csv->dtype) == GM_NUMBER_FRACTION
                       ? "is not a whole number, as those of dtype"
                       : "does not fit dtype",
                   dtype);
}
