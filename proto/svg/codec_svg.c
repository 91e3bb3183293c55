/*
 * codec_svg.c - writes a matrix as a heat map, in the colours viridis (van der Walt and Smith,
 * 2015).
 *
 * For papers and slides: nothing reads it back, so the format is not in the table. Of more rows or
 * columns than the picture can show evenly chosen ones are drawn; the matrices of a stack are one
 * under the other. Neighbours of one colour in a row are one rectangle, and all of a colour one
 * path: 160 x 160 random elements take 0.4 MB.
 */
#include "proto/codec.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The most rows and columns that are drawn. */
#define SIDE_MAX 160
#define LEVELS 64
#define NOT_A_NUMBER LEVELS

/* The longest rectangle is M159 159h160v1h-160z; the rest has LEVELS rectangles and paths of at
 * most 64 bytes each, the numbers, and the title. */
#define RECTANGLE_TEXT_MAX 24
#define FIXED_TEXT_MAX 12288

/* What is drawn: rows and columns, and the range of their finite elements. */
struct picture {
    const struct gm_matrix *matrix;
    unsigned rows, cols;
    double low, high;
    unsigned char level[SIDE_MAX][SIDE_MAX];
};

struct text {
    char *at, *end;
    bool full;
};

static __attribute__((format(printf, 2, 3))) void put(struct text *text, const char *format, ...)
{
    const size_t room = (size_t)(text->end - text->at);
    va_list list;

    va_start(list, format);
    int len = vsnprintf(text->at, room, format, list);
    va_end(list);
    if (len < 0 || (size_t)len >= room)
        text->full = true;
    else
        text->at += len;
}

static bool is_number(enum gm_dtype dtype)
{
    return dtype > GM_DTYPE_NONE && dtype <= GM_U64;
}

/* The element at row and col of the picture. */
static double seen(const struct picture *picture, unsigned row, unsigned col)
{
    const struct gm_matrix *m = picture->matrix;
    const struct gm_steps steps = gm_steps_of(m);
    /* In doubles: a product of two sizes could overflow. Where nothing is left out both scales are
     * 1, and nothing is rounded. */
    uint64_t r = (uint64_t)(row * ((double)m->batch * (double)m->rows / picture->rows));
    uint64_t c = (uint64_t)(col * ((double)m->cols / picture->cols));
    uint64_t batch = r / m->rows;

    if (batch >= m->batch) /* rounded up */
        batch = m->batch - 1;
    if (c >= m->cols)
        c = m->cols - 1;
    return gm_element_value(
        m->dtype,
        (const char *)m->data + batch * steps.batch + r % m->rows * steps.row + c * steps.col, 0);
}

static void find_range(struct picture *picture)
{
    picture->low = INFINITY;
    picture->high = -INFINITY;
    for (unsigned r = 0; r < picture->rows; r++)
        for (unsigned c = 0; c < picture->cols; c++) {
            double value = seen(picture, r, c);
            if (!isfinite(value))
                continue;
            picture->low = fmin(picture->low, value);
            picture->high = fmax(picture->high, value);
        }
    if (!(picture->low <= picture->high))
        picture->low = picture->high = 0;
}

static unsigned char level_of(const struct picture *picture, double value)
{
    /* Of halves, so that no range of f64 overflows. */
    double range = picture->high / 2 - picture->low / 2;
    double part = range > 0 ? (value / 2 - picture->low / 2) / range : value > picture->high;

    if (isnan(value))
        return NOT_A_NUMBER;
    return (unsigned char)fmin(LEVELS - 1, fmax(0, part) * LEVELS);
}

/* "#rrggbb" */
static const char *colour(unsigned level, char out[8])
{
    static const unsigned char viridis[9][3] = {{68, 1, 84},    {72, 40, 120},  {62, 74, 137},
                                                {49, 104, 142}, {38, 130, 142}, {31, 158, 137},
                                                {53, 183, 121}, {109, 205, 89}, {253, 231, 37}};
    double at = level / (LEVELS - 1.0) * 8;
    unsigned i = at < 8 ? (unsigned)at : 7;
    unsigned rgb[3] = {213, 94, 0};

    for (unsigned k = 0; k < 3 && level != NOT_A_NUMBER; k++)
        rgb[k] = (unsigned)(viridis[i][k] + (viridis[i + 1][k] - viridis[i][k]) * (at - i) + 0.5);
    snprintf(out, 8, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
    return out;
}

/* All cells of one level. */
static void put_level(struct text *text, const struct picture *picture, unsigned level)
{
    char rgb[8];
    bool any = false;

    for (unsigned r = 0; r < picture->rows; r++)
        for (unsigned c = 0; c < picture->cols; c++) {
            unsigned end = c;
            while (end < picture->cols && picture->level[r][end] == level)
                end++;
            if (end == c)
                continue;
            if (!any)
                put(text, "<path fill=\"%s\" d=\"", colour(level, rgb));
            any = true;
            put(text, "M%u %uh%uv1h-%uz", c, r, end - c, end - c);
            c = end;
        }
    if (any)
        put(text, "\"/>\n");
}

static void put_scale(struct text *text, const struct picture *picture, double top)
{
    char rgb[8];

    put(text, "<text x=\"16\" y=\"%.0f\">%.4g</text>\n", top + 10, picture->low);
    for (unsigned i = 0; i < LEVELS; i++)
        put(text, "<rect x=\"%u\" y=\"%.0f\" width=\"4\" height=\"12\" fill=\"%s\"/>\n",
            128 + 4 * i, top, colour(i, rgb));
    put(text, "<text x=\"496\" y=\"%.0f\" text-anchor=\"end\">%.4g</text>\n", top + 10,
        picture->high);
}

static void put_picture(struct text *text, struct picture *picture)
{
    const struct gm_matrix *m = picture->matrix;
    bool empty = picture->rows == 0 || picture->cols == 0;
    double ratio = empty ? 4 : fmin(4, fmax(0.6, (double)picture->cols / picture->rows));
    double high = floor(480 / ratio);
    char shape[GM_SHAPE_TEXT_MAX];

    find_range(picture);
    for (unsigned r = 0; r < picture->rows; r++)
        for (unsigned c = 0; c < picture->cols; c++)
            picture->level[r][c] = level_of(picture, seen(picture, r, c));
    put(text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 512 %.0f\" width=\"512\" "
        "height=\"%.0f\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\" "
        "fill=\"#1b2430\">\n<title>%s %s, from %.4g to %.4g</title>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        high + 52, high + 52, gm_matrix_shape_text(m, shape), gm_dtype_name(m->dtype), picture->low,
        picture->high);
    if (empty) {
        put(text, "<text x=\"16\" y=\"32\">no elements</text>\n</svg>\n");
        return;
    }
    put(text,
        "<g transform=\"translate(16 16) scale(%.6g %.6g)\" shape-rendering=\"crispEdges\">\n",
        480.0 / picture->cols, high / picture->rows);
    for (unsigned level = 0; level <= LEVELS; level++)
        put_level(text, picture, level);
    put(text, "</g>\n");
    put_scale(text, picture, high + 28);
    put(text, "</svg>\n");
}

static unsigned side(double n)
{
    return n < SIDE_MAX ? (unsigned)n : SIDE_MAX;
}

static enum gm_status encode_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                   struct gm_error *err)
{
    if (!is_number(matrix->dtype))
        return gm_fail(err, GM_CANNOT_ENCODE,
                       "elements of dtype %s have no place on a scale; ask for application/x-npy "
                       "with Accept",
                       gm_dtype_name(matrix->dtype));
    *ret_bytes = FIXED_TEXT_MAX + (uint64_t)RECTANGLE_TEXT_MAX *
                                      side((double)matrix->batch * (double)matrix->rows) *
                                      side((double)matrix->cols);
    return GM_OK;
}

static enum gm_status encode(const struct gm_matrix *matrix,
                             const struct gm_encode_options *options, char *out, uint64_t capacity,
                             uint64_t *ret_len, struct gm_error *err)
{
    struct picture picture = {.matrix = matrix,
                              .rows = side((double)matrix->batch * (double)matrix->rows),
                              .cols = side((double)matrix->cols)};
    struct text text = {.at = out, .end = out + capacity};
    uint64_t bound;
    enum gm_status status = encode_bound(matrix, &bound, err);

    (void)options; /* NaN has a colour of its own */
    if (status != GM_OK)
        return status;
    if (picture.rows == 0 || picture.cols == 0)
        picture.rows = picture.cols = 0;
    put_picture(&text, &picture);
    if (text.full)
        return gm_fail(err, GM_INTERNAL,
                       "%" PRIu64 " bytes were given for a picture of up to %" PRIu64, capacity,
                       bound);
    *ret_len = (uint64_t)(text.at - out);
    return GM_OK;
}

const struct gm_codec gm_codec_svg = {
    .name = "svg",
    .media_type = "image/svg+xml",
    .encode_bound = encode_bound,
    .encode = encode,
};
