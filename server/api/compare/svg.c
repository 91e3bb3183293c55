/*
 * svg.c - draws a comparison: a bar for each kernel, in the order of the report, with the ceiling
 * and the error beside it.
 *
 * Left: the time; right: the rate that this is. Where the device measures no times, sectors of
 * global memory and wavefronts of shared memory instead.
 */
#include "kernels/device_facts.h"
#include "server/api/compare/compare.h"

#include "server/text.h"

#include <math.h>
#include <stdio.h>

#define WIDTH 900
#define NAMES 172 /* where names end */
#define ROW 24
#define TOP 92     /* of the first bar */
#define NUMBERS 56 /* right of the longest bar */
#define COLOUR "#0072b2"
#define BASELINE "#8a93a0" /* a copy: not the operation */
#define BEST "#d55e00"     /* what auto takes */

typedef double figure_fn(const struct gm_compare_row *row, const struct gm_compare_figures *f);

static double time_of(const struct gm_compare_row *row, const struct gm_compare_figures *f)
{
    (void)f;
    return row->us_median;
}

static double gflops_of(const struct gm_compare_row *row, const struct gm_compare_figures *f)
{
    (void)row;
    return f->gflops;
}

static double gbs_of(const struct gm_compare_row *row, const struct gm_compare_figures *f)
{
    (void)row;
    return f->gbs;
}

static double sectors_of(const struct gm_compare_row *row, const struct gm_compare_figures *f)
{
    (void)row;
    return f->sectors;
}

static double wavefronts_of(const struct gm_compare_row *row, const struct gm_compare_figures *f)
{
    (void)row;
    return f->wavefronts;
}

/* One of the two columns of bars. */
struct panel {
    const char *title;
    figure_fn *figure;
    double from, to; /* places */
    double ceiling;  /* <= 0: none */
    const char *ceiling_name;
};

/* The rate that bounds the operation by plain arithmetic, and what it is: a copy's, or a roof. */
static void set_ceiling(const struct gm_request *r, struct panel *panel)
{
    const struct gm_op *op = &gm_compare_of(r)->op;
    const struct gm_device_facts *facts = r->plan.device->facts;
    double roof = -1;

    if (gm_op_flops(op) > 0) {
        gm_compare_bound(op, NULL, facts, &roof);
        panel->ceiling = roof;
        panel->ceiling_name = "roof";
    } else {
        panel->ceiling = gm_rate(&facts->copy_gbs);
        panel->ceiling_name = "copy";
    }
}

static void make_panels(const struct gm_request *r, struct panel panel[2])
{
    const struct gm_op *op = &gm_compare_of(r)->op;

    panel[0] = (struct panel){"sectors of global memory", sectors_of, NAMES + 8, 470, 0, ""};
    panel[1] = (struct panel){"wavefronts of shared memory", wavefronts_of, 500, 720, 0, ""};
    if (!r->plan.device->facts->has_kernel_times) {
        panel[0].ceiling = gm_access_sectors_min(op);
        panel[0].ceiling_name = "least";
        return;
    }
    panel[0].title = "time, us";
    panel[0].figure = time_of;
    panel[1].title = gm_op_flops(op) > 0 ? "GFLOP/s" : "GB/s";
    panel[1].figure = gm_op_flops(op) > 0 ? gflops_of : gbs_of;
    set_ceiling(r, &panel[1]);
}

/* The width of a bar; negative: the row has none. */
static double width_of(const struct gm_request *r, const struct panel *panel, unsigned row,
                       double most, double *ret_value)
{
    const struct gm_compare *c = gm_compare_of(r);
    struct gm_compare_figures f;

    gm_compare_figures(c, r->plan.device->facts, &c->row[row], &f);
    *ret_value = panel->figure(&c->row[row], &f);
    return *ret_value < 0 ? -1 : fmax(1, *ret_value / most * (panel->to - panel->from - NUMBERS));
}

static void draw_ceiling(FILE *out, const struct panel *panel, double most, double bottom)
{
    double x = panel->from + panel->ceiling / most * (panel->to - panel->from - NUMBERS);
    char words[64];

    gm_svg_line(out, x, TOP - 6, x, bottom, "stroke=\"" GM_SVG_INK "\" stroke-dasharray=\"4 3\"");
    snprintf(words, sizeof words, "%s %.4g", panel->ceiling_name, panel->ceiling);
    gm_svg_text(out, x, TOP - 10, x > panel->from + 40 ? "middle" : "start", GM_SVG_MUTED, words);
}

static void draw_panel(FILE *out, const struct gm_request *r, const struct panel *panel)
{
    const struct gm_compare *c = gm_compare_of(r);
    double most = fmax(panel->ceiling, 1e-9), value;
    char words[32];

    for (unsigned i = 0; i < c->count; i++) {
        width_of(r, panel, i, 1, &value);
        most = fmax(most, value);
    }
    gm_svg_text(out, panel->from, TOP - 28, "start", GM_SVG_INK, panel->title);
    for (unsigned i = 0; i < c->count; i++) {
        double width = width_of(r, panel, i, most, &value);
        if (width >= 0)
            fprintf(out,
                    "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\" "
                    "fill=\"%s\"/>\n",
                    panel->from, TOP + (int)i * ROW + 4, width, ROW - 8,
                    c->row[i].baseline    ? BASELINE
                    : c->row[i].automatic ? BEST
                                          : COLOUR);
    }
    if (panel->ceiling > 0)
        draw_ceiling(out, panel, most, TOP + (double)c->count * ROW);
    for (unsigned i = 0; i < c->count; i++) {
        double width = width_of(r, panel, i, most, &value);
        snprintf(words, sizeof words, value >= 9999.5 ? "%.0f" : "%.4g", value);
        if (width >= 0)
            gm_svg_text(out, panel->from + width + 5, TOP + (int)i * ROW + 16, "start", GM_SVG_INK,
                        words);
    }
}

static void draw_names(FILE *out, const struct gm_compare *c)
{
    char words[64];

    gm_svg_text(out, 736, TOP - 28, "start", GM_SVG_INK, "error");
    for (unsigned i = 0; i < c->count; i++) {
        const struct gm_compare_row *row = &c->row[i];
        int y = TOP + (int)i * ROW + 16;
        snprintf(words, sizeof words, "%s%s", row->baseline ? "copy/" : "", row->variant->name);
        gm_svg_text(out, NAMES, y, "end", GM_SVG_INK, words);
        gm_compare_error_words(c, row, words);
        gm_svg_text(out, 736, y, "start", GM_SVG_MUTED,
                    row->failure.status != GM_OK ? "no result" : words);
    }
}

static void draw_legend(FILE *out, const struct gm_request *r, int y)
{
    static const struct {
        const char *colour, *words;
        int x;
    } marks[] = {{BEST, "what auto takes", 16},
                 {COLOUR, "other kernels", 156},
                 {BASELINE, "copies of as many bytes", 276}};
    bool baselines = false;

    for (unsigned i = 0; i < gm_compare_of(r)->count; i++)
        baselines |= gm_compare_of(r)->row[i].baseline;
    for (unsigned i = 0; i < (baselines ? 3u : 2u); i++) {
        fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/>\n",
                marks[i].x, y, marks[i].colour);
        gm_svg_text(out, marks[i].x + 16, y + 10, "start", GM_SVG_INK, marks[i].words);
    }
}

char *gm_compare_svg(const struct gm_request *r)
{
    const struct gm_compare *c = gm_compare_of(r);
    struct gm_text_stream stream;
    struct panel panel[2];
    char title[256], shape[GM_SHAPE_TEXT_MAX];
    int bottom = TOP + (int)c->count * ROW + 16;

    if (!gm_text_stream_begin(&stream))
        return NULL;
    int at = snprintf(title, sizeof title, "%s of", gm_op_name(c->op.kind));
    for (unsigned i = 0; i < c->op.operands; i++)
        at += snprintf(title + at, sizeof title - (size_t)at, "%s %s", i == 0 ? "" : ",",
                       gm_matrix_shape_text(&c->op.operand[i], shape));
    snprintf(title + at, sizeof title - (size_t)at, " %s on %s (%.60s)",
             gm_dtype_name(c->op.result.dtype), r->plan.device->name, r->plan.device->facts->name);
    gm_svg_begin(stream.out, WIDTH, bottom + 24, title);
    gm_svg_text(stream.out, 16, 26, "start", GM_SVG_INK, title);
    make_panels(r, panel);
    draw_panel(stream.out, r, &panel[0]);
    draw_panel(stream.out, r, &panel[1]);
    draw_names(stream.out, c);
    draw_legend(stream.out, r, bottom);
    fputs("</svg>\n", stream.out);
    return gm_text_stream_end(&stream, NULL);
}
