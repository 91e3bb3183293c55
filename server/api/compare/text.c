/*
 * text.c - a comparison's report for people: a table, and its meaning below. Empty columns are
 * omitted.
 */
#include "kernels/device_facts.h"
#include "server/api/compare/compare.h"

#include "server/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_MAX GM_COMPARE_ERROR_MAX

struct table_row {
    const struct gm_compare *compare;
    const struct gm_compare_row *row;
    struct gm_compare_figures figures;
};

typedef void cell_fn(const struct table_row *t, char out[CELL_MAX]);

/* Writes a number with four digits, which is the precision of a measurement. */
static void number(double value, char out[CELL_MAX])
{
    if (value >= 0)
        snprintf(out, CELL_MAX, value >= 9999.5 ? "%.0f" : "%.4g", value);
}

static void cell_kernel(const struct table_row *t, char out[CELL_MAX])
{
    snprintf(out, CELL_MAX, "%s%s%s", t->row->baseline ? "copy/" : "", t->row->variant->name,
             t->row->automatic ? " *" : "");
}

static void cell_median(const struct table_row *t, char out[CELL_MAX])
{
    number(t->row->us_median, out);
}

static void cell_min(const struct table_row *t, char out[CELL_MAX])
{
    number(t->row->us_min, out);
}

static void cell_runs(const struct table_row *t, char out[CELL_MAX])
{
    if (t->row->runs > 0)
        snprintf(out, CELL_MAX, "%u", t->row->runs);
}

static void cell_prepare(const struct table_row *t, char out[CELL_MAX])
{
    number(t->row->us_prepare, out);
}

static void cell_speed(const struct table_row *t, char out[CELL_MAX])
{
    if (t->figures.speed >= 0)
        snprintf(out, CELL_MAX, "%.3g", t->figures.speed);
}

static void cell_estimate(const struct table_row *t, char out[CELL_MAX])
{
    number(t->figures.estimated_us, out);
}

static void cell_gbs(const struct table_row *t, char out[CELL_MAX])
{
    number(t->figures.gbs, out);
}

static void cell_copy(const struct table_row *t, char out[CELL_MAX])
{
    number(t->figures.percent_of_copy, out);
}

static void cell_gflops(const struct table_row *t, char out[CELL_MAX])
{
    number(t->figures.gflops, out);
}

static void cell_roof(const struct table_row *t, char out[CELL_MAX])
{
    number(t->figures.percent_of_roofline, out);
}

static void cell_sectors(const struct table_row *t, char out[CELL_MAX])
{
    number(t->figures.sectors, out);
}

static void cell_sectors_ratio(const struct table_row *t, char out[CELL_MAX])
{
    number(t->figures.sectors_ratio, out);
}

static void cell_wavefronts(const struct table_row *t, char out[CELL_MAX])
{
    number(t->figures.wavefronts, out);
}

static void cell_wavefronts_ratio(const struct table_row *t, char out[CELL_MAX])
{
    if (t->figures.wavefronts_ideal > 0)
        number(t->figures.wavefronts / t->figures.wavefronts_ideal, out);
}

static void cell_barriers(const struct table_row *t, char out[CELL_MAX])
{
    if (t->row->has_accesses)
        number(t->row->accesses.barriers, out);
}

static void cell_error(const struct table_row *t, char out[CELL_MAX])
{
    gm_compare_error_words(t->compare, t->row, out);
}

static const struct column {
    const char *title;
    cell_fn *cell;
} columns[] = {
    {"kernel", cell_kernel},
    {"time us", cell_median},
    {"min us", cell_min},
    {"runs", cell_runs},
    {"prepare us", cell_prepare},
    {"estimate us", cell_estimate},
    {"speed", cell_speed},
    {"GB/s", cell_gbs},
    {"% of copy", cell_copy},
    {"GFLOP/s", cell_gflops},
    {"% of roof", cell_roof},
    {"sectors", cell_sectors},
    {"of minimum", cell_sectors_ratio},
    {"wavefronts", cell_wavefronts},
    {"of ideal", cell_wavefronts_ratio},
    {"barriers", cell_barriers},
    {"error", cell_error},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static void make_cell(const struct gm_request *r, unsigned row, unsigned column, char out[CELL_MAX])
{
    struct table_row t = {.compare = gm_compare_of(r), .row = &gm_compare_of(r)->row[row]};

    gm_compare_figures(t.compare, r->plan.device->facts, t.row, &t.figures);
    out[0] = '\0';
    columns[column].cell(&t, out);
}

/* Width of a column; 0: it is empty. */
static size_t width_of(const struct gm_request *r, unsigned column)
{
    size_t width = 0;
    char cell[CELL_MAX];

    for (unsigned i = 0; i < gm_compare_of(r)->count; i++) {
        make_cell(r, i, column, cell);
        width = strlen(cell) > width ? strlen(cell) : width;
    }
    size_t title = strlen(columns[column].title);
    return width > 0 && width < title ? title : width;
}

static void write_table(FILE *out, const struct gm_request *r)
{
    size_t width[COLUMNS];
    char cell[CELL_MAX];

    for (unsigned k = 0; k < COLUMNS; k++)
        width[k] = width_of(r, k);
    for (unsigned i = 0; i <= gm_compare_of(r)->count; i++) {
        for (unsigned k = 0; k < COLUMNS; k++) {
            if (width[k] == 0)
                continue;
            if (i > 0)
                make_cell(r, i - 1, k, cell);
            else
                snprintf(cell, sizeof cell, "%s", columns[k].title);
            fprintf(out, k == 0 ? "%s%-*s" : "%s%*s", k == 0 ? "" : "  ", (int)width[k],
                    i > 0 && !*cell ? "-" : cell);
        }
        fputc('\n', out);
    }
}

/* "12.6 MB" */
static void write_quantity(FILE *out, double value, const char *unit)
{
    static const char prefix[] = {'\0', 'k', 'M', 'G', 'T'};
    unsigned i = 0;

    for (; value >= 1000 && i + 1 < sizeof prefix; i++)
        value *= 1e-3;
    fprintf(out, "%.4g %.1s%s", value, &prefix[i], unit);
}

static void write_head(FILE *out, const struct gm_request *r)
{
    const struct gm_op *op = &gm_compare_of(r)->op;
    const struct gm_device_facts *facts = r->plan.device->facts;
    char shape[GM_SHAPE_TEXT_MAX];
    double roof = -1;
    const char *bound = gm_compare_bound(op, NULL, facts, &roof);

    fprintf(out, "%s of", gm_op_name(op->kind));
    for (unsigned i = 0; i < op->operands; i++)
        fprintf(out, "%s %s", i == 0 ? "" : ",", gm_matrix_shape_text(&op->operand[i], shape));
    fprintf(out, " %s on %s (%s)\n", gm_dtype_name(op->result.dtype), r->plan.device->name,
            facts->name);
    fputs("It must move at least ", out);
    write_quantity(out, (double)gm_op_bytes_min(op), "B");
    if (gm_op_flops(op) > 0) {
        fputs(" and do ", out);
        write_quantity(out, gm_op_flops(op), "flop");
    }
    fputc('.', out);
    if (bound)
        fprintf(out, " It is %s-bound", bound);
    if (roof > 0)
        fprintf(out, ": %.4g GFLOP/s", roof);
    if (bound)
        fputc('.', out);
    if (gm_rate(&facts->copy_gbs) > 0)
        fprintf(out, " A copy reaches %.4g GB/s.", gm_rate(&facts->copy_gbs));
    fputs("\n\n", out);
}

static void write_legend(FILE *out, const struct gm_request *r)
{
    const struct gm_compare *c = gm_compare_of(r);
    const struct gm_device_facts *facts = r->plan.device->facts;
    bool baselines = false;

    fputc('\n', out);
    for (unsigned i = 0; i < c->count; i++) {
        const struct gm_compare_row *row = &c->row[i];
        baselines = baselines || row->baseline;
        if (row->failure.status != GM_OK)
            fprintf(out, "%s: no result: %s\n", row->variant->name, row->failure.detail);
        if (row->verdict == GM_VERDICT_WRONG)
            fprintf(out, "%s: wrong: %llu of %llu elements; the first has the index %llu\n",
                    row->variant->name, (unsigned long long)row->deviation.wrong,
                    (unsigned long long)gm_matrix_elements(&gm_compare_op(c, row)->result),
                    (unsigned long long)row->deviation.first);
    }
    fputs("* marks the kernel that auto takes.", out);
    if (baselines)
        fputs(" copy/ marks copies of the bytes of a: the baselines.", out);
    fprintf(out, " Results were compared with %s.\n", gm_compare_reference_words(c));
    if (facts->has_kernel_times)
        fputs("speed is relative to the operation's fastest kernel. Runs follow one another on the "
              "same matrices, which a cache may hold.\n",
              out);
    else
        fprintf(
            out,
            "This device measures no times. A sector is %u bytes of global memory, a wavefront a "
            "pass over the banks of shared memory; fewer are better.\n",
            GM_SECTOR);
    fputc('\n', out);
    for (unsigned i = 0; i < c->count; i++)
        fprintf(out, "%s%s: %s\n", c->row[i].baseline ? "copy/" : "", c->row[i].variant->name,
                c->row[i].variant->note);
}

char *gm_compare_text(const struct gm_request *r)
{
    struct gm_text_stream text;

    if (!gm_text_stream_begin(&text))
        return NULL;
    write_head(text.out, r);
    write_table(text.out, r);
    write_legend(text.out, r);
    return gm_text_stream_end(&text, NULL);
}
