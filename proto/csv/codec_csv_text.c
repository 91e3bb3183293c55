/*
 * codec_csv_text.c - finds the separator, a header and the number of columns in the first lines of
 * a CSV text.
 *
 * Unless the request states it, a line is a header if its first non-empty field begins like a name,
 * none of its other fields is a number, and lines follow. Names do not begin like a number, a sign,
 * a bracket, a missing value or a truth value. So a first row with a damaged number or a label is
 * an error, and is never skipped.
 */
#include "proto/codec.h"
#include "proto/csv/internal.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* Skips the quoted text at p; returns the text's end if the quote is not closed. Two quotes inside
 * stand for one. */
static const char *skip_quoted(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        p = memchr(p, '"', (size_t)(end - p));
        if (!p)
            return end;
        if (++p == end || *p != '"')
            return p;
    }
    return end;
}

const char *gm_csv_field_end(const struct gm_csv *csv, const char *p)
{
    const char *begin = gm_csv_skip_blanks(csv, p);

    p = begin < csv->end && *begin == '"' ? skip_quoted(begin, csv->end) : p;
    while (p < csv->end && *p != csv->separator && !gm_csv_ends_line(*p))
        p++;
    return p;
}

uint64_t gm_csv_line_number(const struct gm_csv *csv, const char *p)
{
    uint64_t line = 1;

    for (const char *q = csv->start; q < p;) {
        bool ends = gm_csv_ends_line(*q);
        q = ends ? gm_csv_next_line(q, csv->end) : q + 1;
        line += ends && q <= p;
    }
    return line;
}

/* Finds the next line that is not blank. p is at the beginning of a line. */
static const char *skip_blank_lines(const char *p, const char *end)
{
    for (;;) {
        const char *q = gm_csv_skip_white(p, end);
        if (q == end || !gm_csv_ends_line(*q))
            return q == end ? end : p;
        p = gm_csv_next_line(q, end);
    }
}

/*
 * Returns the first separator of the line at p; a comma if there is none. A tab beside another
 * separator, or at the line's end, only aligns columns.
 */
static char find_separator(const char *p, const char *end)
{
    for (p = gm_csv_skip_white(p, end); p < end && !gm_csv_ends_line(*p);) {
        if (*p == ',' || *p == ';')
            return *p;
        if (*p == '\t') {
            p = gm_csv_skip_white(p, end);
            if (p < end && *p != ',' && *p != ';' && !gm_csv_ends_line(*p))
                return '\t';
        } else {
            p = *p == '"' ? skip_quoted(p, end) : p + 1;
        }
    }
    return ',';
}

static void set_separator(struct gm_csv *csv, const char *line)
{
    csv->separator = find_separator(line, csv->end);
    csv->blank = csv->separator == '\t' ? ' ' : '\t';
}

bool gm_csv_is_missing(const char *text, size_t len)
{
    static const char *const words[] = {"na",   "n/a",   "none",    "null",  "missing",
                                        "#n/a", "#num!", "#div/0!", "#ref!", "#value!"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == len && strncasecmp(words[i], text, len) == 0)
            return true;
    return false;
}

/* Whether it begins with a character that people write before a number, or for one: digits, signs,
 * brackets, currencies; in UTF-8 also the no-break space, cents, pounds, yens, plus-minus, dashes
 * and quotation marks, other currencies, minus, infinity, comparisons. */
static bool is_like_number(const char *text, size_t len)
{
    static const char *const signs[] = {"\xC2\xA0",     "\xC2\xA2",    "\xC2\xA3", "\xC2\xA5",
                                        "\xC2\xB1",     "\xE2\x80",    "\xE2\x82", "\xE2\x89",
                                        "\xE2\x88\x92", "\xE2\x88\x9E"};

    if (strchr("0123456789+-.,;'?$~()[]{}<>=*&!|^`", *text))
        return true;
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (strlen(signs[i]) <= len && memcmp(signs[i], text, strlen(signs[i])) == 0)
            return true;
    return false;
}

/* Whether the field's text can only be a name. */
static bool is_name(const char *text, size_t len)
{
    static const char *const values[] = {"nan", "inf", "infinity", "true", "false"};

    if (len == 0 || is_like_number(text, len) || gm_csv_is_missing(text, len))
        return false;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (strlen(values[i]) == len && strncasecmp(values[i], text, len) == 0)
            return false;
    return true;
}

/* What a line is. */
enum line {
    LINE_NUMBERS,
    LINE_NAMES, /* a header */
    LINE_MIXED  /* it begins like a header and has numbers */
};

/* Classifies the line at p. Also returns its end and its number of fields. */
static enum line prescan_line(const struct gm_csv *csv, const char *p, const char **ret_end,
                              uint64_t *ret_cols)
{
    enum line line = LINE_NUMBERS;
    bool any = false;
    uint64_t cols = 0;

    for (;; p++) {
        const char *begin = p, *end = gm_csv_field_end(csv, p), *name = p, *last = end;
        while (name < end && (*name == ' ' || *name == '\t' || *name == '"'))
            name++;
        while (last > name && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '"'))
            last--;
        if (!any && name < last) {
            line = is_name(name, (size_t)(last - name)) ? LINE_NAMES : LINE_NUMBERS;
            any = true;
        } else if (line == LINE_NAMES && gm_csv_is_number(csv, begin)) {
            line = LINE_MIXED;
        }
        cols++;
        p = end;
        if (p == csv->end || *p != csv->separator)
            break;
    }
    *ret_end = p;
    *ret_cols = cols;
    return line;
}

/* Bytes that suffice to recognize a file that is no text. */
#define FIRST_BYTES 16

/* Other formats begin like this, and no name does. */
static enum gm_status check_form(const struct gm_csv *csv)
{
    size_t len = (size_t)(csv->end - csv->start);
    const struct gm_codec *other = gm_codec_by_first_bytes(csv->start, len);

    if (other)
        return gm_fail(csv->err, GM_BAD_CSV,
                       "the body is said to be text/csv and begins like %s: send that as its "
                       "Content-Type",
                       other->media_type);
    if (len >= 2 && (memcmp(csv->start, "\xFF\xFE", 2) == 0 ||
                     memcmp(csv->start, "\xFE\xFF", 2) == 0 || memchr(csv->start, 0, 2)))
        return gm_fail(csv->err, GM_BAD_CSV,
                       "the text is UTF-16: save it as UTF-8, or convert it with iconv -f UTF-16 "
                       "-t UTF-8");
    for (size_t i = 0; i < len && i < FIRST_BYTES; i++)
        if (csv->start[i] >= 0 && csv->start[i] < ' ' && !memchr("\t\r\n\f\v", csv->start[i], 5))
            return gm_fail(csv->err, GM_BAD_CSV,
                           "the body is said to be text/csv and is no text; a packed file is "
                           "unpacked first, as in gunzip -c a.csv.gz | curl --data-binary @- ...");
    return GM_OK;
}

/* The first line begins like a name, but is not a header. */
static enum gm_status doubtful(const struct gm_csv *csv, const char *line, const char *end,
                               enum line is)
{
    int len = end - line > 40 ? 40 : (int)(end - line);

    if (is == LINE_MIXED)
        return gm_fail(csv->err, GM_BAD_CSV,
                       "line %" PRIu64 " is '%.*s': it begins like a header and has numbers; add "
                       "header=true to pass over it, or send numbers alone",
                       gm_csv_line_number(csv, line), len, line);
    if (end < csv->end)
        return gm_fail(csv->err, GM_BAD_CSV,
                       "the text is the header '%.*s' alone: add header=true where no rows are "
                       "meant",
                       len, line);
    return gm_fail(csv->err, GM_BAD_CSV, "the text is '%.*s', which is no row of numbers%s", len,
                   line,
                   *line == '@' ? ": curl reads a file with --data-binary @FILE"
                                : " (curl -d takes the line ends out of a file, "
                                  "--data-binary keeps them)");
}

enum gm_status gm_csv_begin(struct gm_csv *csv, uint64_t *ret_cols)
{
    static const char mark[] = "\xEF\xBB\xBF", no_end[] = "0123456789+-.";
    const char *end = csv->end;

    if (end - csv->start >= 3 && memcmp(csv->start, mark, 3) == 0)
        csv->start += 3;
    enum gm_status status = check_form(csv);
    if (status != GM_OK)
        return status;
    for (csv->stop = end; csv->stop > csv->start; csv->stop--) {
        unsigned char c = (unsigned char)csv->stop[-1], letter = c | 0x20;
        if (!(letter >= 'a' && letter <= 'z') && !memchr(no_end, c, sizeof(no_end) - 1))
            break;
    }
    csv->stop -= csv->stop > csv->start;

    const char *line = skip_blank_lines(csv->start, end);
    uint64_t cols = 0;
    if (line < end) {
        const char *first = line, *line_end;
        set_separator(csv, first);
        enum line is = prescan_line(csv, first, &line_end, &cols);
        csv->has_header =
            csv->header == GM_HEADER_TELLS ? is != LINE_NUMBERS : csv->header == GM_HEADER_PRESENT;
        const char *first_end = line_end;
        if (csv->has_header)
            line = skip_blank_lines(gm_csv_next_line(line_end, end), end);
        if (csv->header == GM_HEADER_TELLS &&
            (is == LINE_MIXED || (is == LINE_NAMES && line == end)))
            return doubtful(csv, first, first_end, is);
        if (csv->has_header && line < end) {
            set_separator(csv, line);
            prescan_line(csv, line, &line_end, &cols);
        }
    }
    csv->data = line;
    *ret_cols = cols;
    return GM_OK;
}
