/*
 * requests_svg.c - draws the last accounts as points under the roofline.
 *
 * For papers and slides: no scripts, generic fonts, a palette for the colour-blind (Okabe and Ito,
 * 2008). Each mark has a title that says what it is.
 */
#include "kernels/device_facts.h"
#include "server/api/routes.h"
#include "server/api/stats.h"
#include "server/request/request.h"
#include "server/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 760
#define INK GM_SVG_INK
#define FAINT GM_SVG_FAINT
#define MUTED GM_SVG_MUTED

/* A logarithmic axis: whole powers of ten between two places. */
struct axis {
    double low, high; /* exponents */
    double from, to;  /* places */
};

/* A point of the roofline. */
struct mark {
    double x, y; /* operations per byte, or 0; GFLOP/s, or GB/s */
    const struct gm_recent *recent;
};

static double place(const struct axis *axis, double value)
{
    return axis->from +
           (log10(value) - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

static void widen(struct axis *axis, double value)
{
    if (!(value > 0))
        return;
    axis->low = fmin(axis->low, floor(log10(value)));
    axis->high = fmax(axis->high, ceil(log10(value) + 1e-9));
}

/* "0.01", "100", "1e4" */
static const char *power(double exponent, char out[16])
{
    if (exponent > 3)
        snprintf(out, 16, "1e%.0f", exponent);
    else
        snprintf(out, 16, "%g", pow(10, exponent));
    return out;
}

static void draw_axes(FILE *out, const struct axis *x, const struct axis *y)
{
    char label[16];

    for (double e = x->low; e <= x->high; e++) {
        double at = place(x, pow(10, e));
        gm_svg_line(out, at, y->from, at, y->to, "stroke=\"" FAINT "\"");
        gm_svg_text(out, at, y->from + 16, "middle", MUTED, power(e, label));
    }
    for (double e = y->low; e <= y->high; e++) {
        double at = place(y, pow(10, e));
        gm_svg_line(out, x->from, at, x->to, at, "stroke=\"" FAINT "\"");
        gm_svg_text(out, x->from - 6, at + 4, "end", MUTED, power(e, label));
    }
}

static double gflops_of(const struct gm_recent *recent, double *ret_intensity, double *ret_gbs)
{
    const struct gm_task task = {.op = recent->op,
                                 .variant = recent->variant,
                                 .times = recent->times,
                                 .volume = recent->volume};
    struct gm_volume volume =
        recent->batch > 1 ? recent->volume : gm_volume_of(&task, recent->facts);
    double seconds = recent->facts->has_kernel_times ? recent->times.kernel * 1e-6 : -1;

    *ret_intensity = volume.bytes > 0 ? volume.flops / volume.bytes : 0;
    *ret_gbs = seconds > 0 ? volume.bytes / seconds * 1e-9 : 0;
    return seconds > 0 ? volume.flops / seconds * 1e-9 : 0;
}

/* The ceilings that belong to a record: of its device, and of the arithmetic of its variant. */
struct ceiling {
    const char *name, *device;
    double gbs, gflops; /* one of them */
};

#define CEILINGS_MAX 48

static size_t add_ceiling(struct ceiling *list, size_t n, struct ceiling one)
{
    if (!(one.gbs + one.gflops > 0) || n == CEILINGS_MAX)
        return n;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, one.name) == 0 && strcmp(list[i].device, one.device) == 0)
            return n;
    list[n] = one;
    return n + 1;
}

/* Of all arithmetic that the device has. */
static size_t add_arithmetic(struct ceiling *list, size_t n, const char *device,
                             const struct gm_device_facts *facts)
{
    for (unsigned i = 1; i < GM_DTYPE_COUNT; i++)
        if (facts->peak_name[i])
            n = add_ceiling(
                list, n,
                (struct ceiling){facts->peak_name[i], device, 0, gm_rate(&facts->peak_gflops[i])});
    if (facts->kind != GM_DEVICE_CUDA || !facts->gpu)
        return n;
    n = add_ceiling(list, n,
                    (struct ceiling){"tensor f16, bf16", device, 0, facts->gpu->tensor_f16_gflops});
    n = add_ceiling(list, n,
                    (struct ceiling){"tensor tf32", device, 0, facts->gpu->tensor_tf32_gflops});
    return add_ceiling(list, n,
                       (struct ceiling){"tensor fp64", device, 0, facts->gpu->tensor_fp64_gflops});
}

/* Whether it is an arithmetic of several steps, such as "tensor bf16, several products". */
static bool is_compound(const char *unit)
{
    return strchr(unit, ',') != NULL;
}

static size_t find_ceilings(const struct gm_recent *recent, size_t n,
                            struct ceiling list[CEILINGS_MAX])
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        const struct gm_recent *r = &recent[i];
        struct gm_roof roof = gm_roof_of(r->variant, &r->op, r->facts);
        if (!r->facts->has_kernel_times)
            continue;
        found = add_ceiling(list, found,
                            (struct ceiling){"dram", r->device, gm_rate(&r->facts->copy_gbs), 0});
        found = add_ceiling(
            list, found, (struct ceiling){"link", r->device, gm_rate(&r->facts->link_in_gbs), 0});
        if (r->facts->gpu) /* of what fits in it */
            found = add_ceiling(list, found,
                                (struct ceiling){"L2", r->device, gm_gpu_l2_gbs(r->facts->gpu), 0});
        found = add_arithmetic(list, found, r->device, r->facts);
        if (gm_op_flops(&r->op) > 0 && roof.unit && is_compound(roof.unit))
            found =
                add_ceiling(list, found, (struct ceiling){roof.unit, r->device, 0, roof.gflops});
    }
    return found;
}

static const char *colour_of_op(enum gm_op_kind kind)
{
    static const char *const colours[GM_OP_COUNT] = {
        [GM_OP_MATMUL] = "#0072b2", [GM_OP_ADD] = "#d55e00", [GM_OP_TRANSPOSE] = "#009e73",
        [GM_OP_FLIP] = "#cc79a7",   [GM_OP_COPY] = "#777",   [GM_OP_EVAL] = "#e69f00",
    };

    return colours[kind];
}

/* The highest of the other kind that the ceiling's device has; 0: none. */
static double meets(const struct ceiling *list, size_t n, const struct ceiling *one)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].device, one->device) == 0)
            most = fmax(most, one->gbs > 0 ? list[i].gflops : list[i].gbs);
    return most;
}

/* GFLOP/s = GB/s x operations per byte, up to where it meets the arithmetic. */
static void draw_slope(FILE *out, const struct ceiling *one, double peak, const struct axis *x,
                       const struct axis *y)
{
    char words[128];
    double low = fmax(pow(10, x->low), pow(10, y->low) / one->gbs);
    double high = fmin(pow(10, x->high), (peak > 0 ? peak : pow(10, y->high)) / one->gbs);

    if (!(low < high))
        return;
    gm_svg_line(out, place(x, low), place(y, low * one->gbs), place(x, high),
                place(y, high * one->gbs), "stroke=\"" INK "\" stroke-width=\"1.5\"");
    snprintf(words, sizeof words, "%s %s: %.4g GB/s", one->device, one->name, one->gbs);
    double middle = sqrt(low * high);
    gm_svg_text(out, place(x, middle) + 10, place(y, middle * one->gbs) + 12, "start", INK, words);
}

/* Where the name of ceiling i ends: as far right as those before it leave room. end: of each of
 * them. */
static double label_end(const struct ceiling *list, size_t i, double end[CEILINGS_MAX],
                        const struct axis *x, const struct axis *y)
{
    const double wide = 175, high = 13;

    end[i] = x->to - 4;
    for (size_t j = 0; j < i; j++)
        if (list[j].gflops > 0 && fabs(end[j] - end[i]) < wide &&
            fabs(place(y, list[j].gflops) - place(y, list[i].gflops)) < high &&
            end[i] - 2 * wide > x->from) {
            end[i] -= wide;
            j = (size_t)-1; /* those before may be there too */
        }
    return end[i];
}

static void draw_ceilings(FILE *out, const struct ceiling *list, size_t n, const struct axis *x,
                          const struct axis *y)
{
    double end[CEILINGS_MAX] = {0};
    char words[128];

    for (size_t i = 0; i < n; i++) {
        double other = meets(list, n, &list[i]);
        if (list[i].gbs > 0) {
            draw_slope(out, &list[i], other, x, y);
            continue;
        }
        double ridge = other > 0 ? list[i].gflops / other : 0;
        double from = ridge > pow(10, x->low) ? place(x, ridge) : x->from;
        double at = place(y, list[i].gflops);
        if (from < x->to)
            gm_svg_line(out, from, at, x->to, at, "stroke=\"" INK "\" stroke-width=\"1.5\"");
        snprintf(words, sizeof words, "%s %s: %.4g GFLOP/s", list[i].device, list[i].name,
                 list[i].gflops);
        gm_svg_text(out, label_end(list, i, end, x, y), at - 4, "end", INK, words);
    }
}

static void draw_mark(FILE *out, double x, double y, const struct gm_recent *recent,
                      const char *rate)
{
    char shape[GM_SHAPE_TEXT_MAX];

    fprintf(out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" fill-opacity=\"0.75\" "
            "stroke=\"#fff\"><title>%s %s on %s, result %s: %s</title></circle>\n",
            x, y, colour_of_op(recent->op.kind), gm_op_name(recent->op.kind), recent->variant->name,
            recent->device, gm_matrix_shape_text(&recent->op.result, shape), rate);
}

/* What only moves bytes has no place under a roofline: it is held against the copy, in GB/s. */
static void draw_moves(FILE *out, const struct mark *mark, size_t n, const struct ceiling *list,
                       size_t ceilings, double right)
{
    struct axis y = {.low = 0, .high = 1, .from = 372, .to = 48};
    const struct axis x = {.low = 0, .high = 1, .from = 56, .to = right};
    char words[96];

    for (size_t i = 0; i < n; i++)
        if (mark[i].x == 0)
            widen(&y, mark[i].y);
    for (size_t i = 0; i < ceilings; i++)
        widen(&y, list[i].gbs);
    gm_svg_text(out, 16, 24, "start", INK, "Moving bytes, GB/s");
    for (double e = y.low; e <= y.high; e++) {
        double at = place(&y, pow(10, e));
        gm_svg_line(out, x.from, at, x.to, at, "stroke=\"" FAINT "\"");
        gm_svg_text(out, x.from - 6, at + 4, "end", MUTED, power(e, words));
    }
    for (size_t i = 0; i < ceilings; i++) {
        if (!(list[i].gbs > 0))
            continue;
        gm_svg_line(out, x.from, place(&y, list[i].gbs), x.to, place(&y, list[i].gbs),
                    "stroke=\"" INK "\" stroke-width=\"1.5\"");
        snprintf(words, sizeof words, "%s %s", list[i].device, list[i].name);
        gm_svg_text(out, x.to, place(&y, list[i].gbs) - 5, "end", INK, words);
    }
    for (size_t i = 0; i < n; i++) {
        if (mark[i].x > 0)
            continue;
        snprintf(words, sizeof words, "%.4g GB/s", mark[i].y);
        /* Spread over the width, so that equal ones are seen. */
        double spread = (double)(mark[i].recent->number % 16 + 1) / 17;
        draw_mark(out, x.from + spread * (x.to - x.from), place(&y, mark[i].y), mark[i].recent,
                  words);
    }
}

static size_t find_marks(const struct gm_recent *recent, size_t n, struct mark *ret)
{
    size_t marks = 0;

    for (size_t i = 0; i < n; i++) {
        double intensity, gbs, gflops = gflops_of(&recent[i], &intensity, &gbs);
        if (gbs > 0)
            ret[marks++] =
                (struct mark){gflops > 0 ? intensity : 0, gflops > 0 ? gflops : gbs, &recent[i]};
    }
    return marks;
}

static void draw_roofline(FILE *out, const struct mark *mark, size_t n, const struct ceiling *list,
                          size_t ceilings)
{
    struct axis x = {.low = -1, .high = 2, .from = 300, .to = WIDTH - 16};
    struct axis y = {.low = 0, .high = 2, .from = 372, .to = 48};
    char words[96];

    for (size_t i = 0; i < n; i++) {
        widen(&x, mark[i].x / 2);
        widen(&x, mark[i].x * 2);
        if (mark[i].x > 0)
            widen(&y, mark[i].y);
    }
    for (size_t i = 0; i < ceilings; i++)
        widen(&y, 2 * list[i].gflops);
    draw_moves(out, mark, n, list, ceilings, 220);
    gm_svg_text(out, 262, 24, "start", INK, "Computing, GFLOP/s");
    draw_axes(out, &x, &y);
    gm_svg_text(out, (x.from + x.to) / 2, 408, "middle", INK, "operations per byte that must move");
    draw_ceilings(out, list, ceilings, &x, &y);
    for (size_t i = 0; i < n; i++) {
        if (mark[i].x == 0)
            continue;
        snprintf(words, sizeof words, "%.4g GFLOP/s at %.4g operations a byte", mark[i].y,
                 mark[i].x);
        draw_mark(out, place(&x, mark[i].x), place(&y, mark[i].y), mark[i].recent, words);
    }
    static const enum gm_op_kind ops[] = {GM_OP_MATMUL, GM_OP_ADD, GM_OP_TRANSPOSE, GM_OP_FLIP,
                                          GM_OP_EVAL};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        fprintf(out, "<circle cx=\"%zu\" cy=\"432\" r=\"4\" fill=\"%s\"/>\n", 300 + i * 100,
                colour_of_op(ops[i]));
        gm_svg_text(out, 310 + (double)i * 100, 436, "start", INK, gm_op_name(ops[i]));
    }
}

char *gm_requests_roofline_svg(const struct gm_recent *recent, size_t n,
                               const struct gm_window *window)
{
    (void)window;
    struct gm_text_stream stream;
    struct ceiling list[CEILINGS_MAX];
    struct mark *mark = calloc(n + 1, sizeof *mark);

    if (!mark || !gm_text_stream_begin(&stream)) {
        free(mark);
        return NULL;
    }
    size_t marks = find_marks(recent, n, mark);
    gm_svg_begin(stream.out, WIDTH, 448, "The last requests under the roofline");
    draw_roofline(stream.out, mark, marks, list, find_ceilings(recent, n, list));
    if (marks == 0)
        gm_svg_text(stream.out, 480, 200, "middle", MUTED, "no request was timed yet");
    fputs("</svg>\n", stream.out);
    free(mark);
    return gm_text_stream_end(&stream, NULL);
}
