/*
 * figures.c - the order and the derived figures of a comparison's report, for all its formats.
 */
#include "server/api/compare/compare.h"

#include "kernels/choose/choose.h"
#include "kernels/device_facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gm_compare_bound(const struct gm_op *op, const struct gm_variant *variant,
                             const struct gm_device_facts *facts, double *ret_gflops)
{
    double flops = gm_op_flops(op), bytes = (double)gm_op_bytes_min(op);
    double peak = gm_roof_of(variant, op, facts).gflops;

    if (flops == 0)
        return "memory";
    if (!(peak > 0) || !(gm_rate(&facts->copy_gbs) > 0) || bytes == 0)
        return NULL;
    double slope = flops / bytes * gm_rate(&facts->copy_gbs);
    *ret_gflops = fmin(slope, peak);
    return slope >= peak ? "compute" : "memory";
}

static double sum(const struct gm_access_totals *totals, bool shared, bool ideal)
{
    double units = 0;

    for (unsigned kind = 0; kind < GM_ACCESS_KINDS; kind++)
        if (gm_access_is_shared((enum gm_access_kind)kind) == shared)
            units += ideal ? totals->kind[kind].units_ideal : totals->kind[kind].units;
    return units;
}

/* Time of the fastest kernel, in microseconds; baselines do not count. */
static double fastest_us(const struct gm_compare *c)
{
    double least = -1;

    for (unsigned i = 0; i < c->count; i++) {
        const struct gm_compare_row *row = &c->row[i];
        if (!row->baseline && row->us_median > 0 && (least < 0 || row->us_median < least))
            least = row->us_median;
    }
    return least;
}

static void set_rates(const struct gm_compare *c, const struct gm_device_facts *facts,
                      const struct gm_compare_row *row, struct gm_compare_figures *f)
{
    double s = row->us_median * 1e-6, roof = 0, fastest = fastest_us(c);

    f->gbs = f->bytes_min / s * 1e-9;
    if (gm_rate(&facts->copy_gbs) > 0)
        f->percent_of_copy = 100 * f->gbs / gm_rate(&facts->copy_gbs);
    if (f->flops > 0) {
        f->gflops = f->flops / s * 1e-9;
        if (gm_compare_bound(&c->op, row->variant, facts, &roof) && roof > 0)
            f->percent_of_roofline = 100 * f->gflops / roof;
    }
    if (fastest > 0)
        f->speed = fastest / row->us_median;
}

void gm_compare_figures(const struct gm_compare *c, const struct gm_device_facts *facts,
                        const struct gm_compare_row *row, struct gm_compare_figures *ret)
{
    const struct gm_op *op = gm_compare_op(c, row);
    struct gm_compare_figures f = {
        (double)gm_op_bytes_min(op), gm_op_flops(op), -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

    if (facts->kind != GM_DEVICE_SIM)
        f.estimated_us = gm_estimate(op, row->variant->op, row->variant->name, facts).us;
    if (row->us_median > 0)
        set_rates(c, facts, row, &f);
    if (row->has_accesses) {
        double least = gm_access_sectors_min(op);
        f.sectors = sum(&row->accesses, false, false);
        f.sectors_ratio = least > 0 ? f.sectors / least : -1;
        f.wavefronts = sum(&row->accesses, true, false);
        f.wavefronts_ideal = sum(&row->accesses, true, true);
    }
    *ret = f;
}

const char *gm_compare_reference_words(const struct gm_compare *c)
{
    enum gm_dtype dtype = c->op.result.dtype;

    if (!c->has_reference)
        return c->against ? "the result of another kernel: plain loops would take too long"
                          : "nothing: plain loops would take too long, and no kernel had a result";
    if (!gm_op_computes(c->op.kind) || dtype == GM_I32 || dtype == GM_I64)
        return "plain loops: every byte must be equal";
    if (c->op.kind == GM_OP_ADD)
        return "the exact sums, rounded once: every element must be equal";
    return "plain loops in f64: each element may differ by the rounding errors of its sum";
}

void gm_compare_error_words(const struct gm_compare *c, const struct gm_compare_row *row,
                            char out[GM_COMPARE_ERROR_MAX])
{
    const struct gm_deviation *d = &row->deviation;

    out[0] = '\0';
    switch (row->verdict) {
    case GM_VERDICT_NONE:
        if (c->against == row->variant)
            snprintf(out, GM_COMPARE_ERROR_MAX, "(the reference)");
        break;
    case GM_VERDICT_EXACT:
        snprintf(out, GM_COMPARE_ERROR_MAX, "exact");
        break;
    case GM_VERDICT_WITHIN:
        snprintf(out, GM_COMPARE_ERROR_MAX, "%.2g of bound", d->worst);
        break;
    case GM_VERDICT_WRONG:
        snprintf(out, GM_COMPARE_ERROR_MAX, "WRONG: %llu", (unsigned long long)d->wrong);
        break;
    case GM_VERDICT_AGAINST:
        if (d->wrong == 0)
            snprintf(out, GM_COMPARE_ERROR_MAX, "same");
        else if (d->relative > 0)
            snprintf(out, GM_COMPARE_ERROR_MAX, "%.2g relative", d->relative);
        else
            snprintf(out, GM_COMPARE_ERROR_MAX, "%llu different", (unsigned long long)d->wrong);
        break;
    }
}

/* Compares two figures; unknown ones sort last. */
static int by_figure(double left, double right)
{
    if ((left < 0) != (right < 0))
        return left < 0 ? 1 : -1;
    return left < right ? -1 : left > right;
}

/* Sort key: wrong results sort after right ones, whatever their speed. */
static int badness(const struct gm_compare_row *row)
{
    return row->failure.status != GM_OK ? 2 : row->verdict == GM_VERDICT_WRONG ? 1 : 0;
}

static int by_row(const void *left, const void *right)
{
    const struct gm_compare_row *a = left, *b = right;
    int order = badness(a) - badness(b);

    if (order == 0)
        order = by_figure(a->us_median, b->us_median);
    if (order == 0)
        order = by_figure(a->has_accesses ? sum(&a->accesses, false, false) : -1,
                          b->has_accesses ? sum(&b->accesses, false, false) : -1);
    if (order == 0)
        order = by_figure(a->has_accesses ? sum(&a->accesses, true, false) : -1,
                          b->has_accesses ? sum(&b->accesses, true, false) : -1);
    return order != 0 ? order : strcmp(a->variant->name, b->variant->name);
}

void gm_compare_sort(struct gm_compare *c)
{
    qsort(c->row, c->count, sizeof c->row[0], by_row);
}
