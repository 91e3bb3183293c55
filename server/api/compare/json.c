/*
 * json.c - a comparison's report as JSON. Figures that were not measured are absent.
 */
#include "kernels/device_facts.h"
#include "server/api/compare/compare.h"

#include "server/text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Writes a figure with five digits; more would be noise. */
static void set_rate(json_t *object, const char *name, double value)
{
    char text[32];

    if (!isfinite(value) || value < 0)
        return;
    snprintf(text, sizeof text, "%.5g", value);
    json_object_set_new(object, name, json_real(strtod(text, NULL)));
}

/* Writes a time in microseconds, with the clock's resolution of a nanosecond. */
static void set_time(json_t *object, const char *name, double us)
{
    if (us >= 0)
        json_object_set_new(object, name, json_real(round(us * 1e3) * 1e-3));
}

static void set_count(json_t *object, const char *name, double value)
{
    if (value >= 0 && value < 0x1p63)
        json_object_set_new(object, name, json_integer((json_int_t)value));
    else if (value >= 0)
        json_object_set_new(object, name, json_real(value));
}

static json_t *shapes_json(const struct gm_op *op)
{
    static const char *const names[GM_OPERANDS_MAX] = {"a", "b", "c"};
    json_t *shapes = json_object();

    for (unsigned i = 0; i <= op->operands; i++) {
        const struct gm_matrix *m = i < op->operands ? &op->operand[i] : &op->result;
        json_t *shape = json_array();
        if (m->stacked)
            json_array_append_new(shape, json_integer((json_int_t)m->batch));
        json_array_append_new(shape, json_integer((json_int_t)m->rows));
        json_array_append_new(shape, json_integer((json_int_t)m->cols));
        json_object_set_new(shapes, i < op->operands ? names[i] : "result", shape);
    }
    return shapes;
}

static json_t *error_json(const struct gm_compare *c, const struct gm_compare_row *row)
{
    static const char *const words[] = {[GM_VERDICT_EXACT] = "exact",
                                        [GM_VERDICT_WITHIN] = "within",
                                        [GM_VERDICT_WRONG] = "wrong",
                                        [GM_VERDICT_AGAINST] = "compared"};
    const struct gm_deviation *d = &row->deviation;
    bool floats = !row->baseline && (c->reference.value || row->verdict == GM_VERDICT_AGAINST);
    json_t *error = json_object();

    json_object_set_new(error, "verdict", json_string(words[row->verdict]));
    json_object_set_new(error, row->verdict == GM_VERDICT_AGAINST ? "different" : "wrong",
                        json_integer((json_int_t)d->wrong));
    if (d->wrong > 0)
        json_object_set_new(error, "first", json_integer((json_int_t)d->first));
    if (!floats || !gm_op_computes(c->op.kind))
        return error;
    if (row->verdict == GM_VERDICT_WITHIN || row->verdict == GM_VERDICT_WRONG)
        set_rate(error, "worst", d->worst);
    set_rate(error, "max_absolute", d->absolute);
    set_rate(error, "max_relative", d->relative);
    return error;
}

static json_t *accesses_json(const struct gm_compare_row *row, const struct gm_compare_figures *f)
{
    json_t *accesses = json_object();

    set_count(accesses, "global_sectors", f->sectors);
    set_rate(accesses, "global_sectors_ratio", f->sectors_ratio);
    set_count(accesses, "shared_wavefronts", f->wavefronts);
    set_count(accesses, "shared_wavefronts_ideal", f->wavefronts_ideal);
    set_count(accesses, "barriers", row->accesses.barriers);
    return accesses;
}

static json_t *row_json(const struct gm_compare *c, const struct gm_device_facts *facts,
                        const struct gm_compare_row *row)
{
    struct gm_compare_figures f;
    json_t *o = json_object();

    gm_compare_figures(c, facts, row, &f);
    json_object_set_new(o, "op", json_string(gm_op_name(row->variant->op)));
    json_object_set_new(o, "kernel", json_string(row->variant->name));
    json_object_set_new(o, "auto", json_boolean(row->automatic));
    json_object_set_new(o, "baseline", json_boolean(row->baseline));
    json_object_set_new(o, "yardstick", json_boolean(row->baseline)); /* alias until 0.3 */
    if (row->failure.status != GM_OK)
        json_object_set_new(o, "failure",
                            json_pack("{s:s, s:s}", "code", gm_status_code(row->failure.status),
                                      "detail", row->failure.detail));
    if (row->runs > 0) {
        json_object_set_new(o, "runs", json_integer(row->runs));
        set_time(o, "kernel_us_min", row->us_min);
        set_time(o, "kernel_us_median", row->us_median);
        set_time(o, "prepare_us", row->us_prepare);
    }
    set_time(o, "estimated_us", f.estimated_us);
    set_rate(o, "effective_gbs", f.gbs);
    set_rate(o, "percent_of_copy", f.percent_of_copy);
    set_rate(o, "gflops", f.gflops);
    set_rate(o, "percent_of_roofline", f.percent_of_roofline);
    set_rate(o, "speed", f.speed);
    if (row->has_accesses)
        json_object_set_new(o, "accesses", accesses_json(row, &f));
    if (row->verdict != GM_VERDICT_NONE)
        json_object_set_new(o, "error", error_json(c, row));
    json_object_set_new(o, "note", json_string(row->variant->note));
    return o;
}

static json_t *times_json(const struct gm_request *r)
{
    const struct gm_account *a = &r->account;
    json_t *us = json_object();

    set_time(us, "receive", a->us[GM_STAGE_RECEIVE]);
    set_time(us, "decode", a->us[GM_STAGE_DECODE]);
    set_time(us, "queue", a->us[GM_STAGE_QUEUE]);
    set_time(us, "runs", gm_compare_of(r)->us_runs);
    set_time(us, "check", gm_compare_of(r)->us_check);
    set_time(us, "total", a->total_us);
    return us;
}

char *gm_compare_json(const struct gm_request *r)
{
    const struct gm_compare *c = gm_compare_of(r);
    const struct gm_device_facts *facts = r->plan.device->facts;
    double roof = -1;
    const char *bound = gm_compare_bound(&c->op, NULL, facts, &roof);
    json_t *o = json_object(), *rows = json_array(), *reference = json_object();

    json_object_set_new(o, "id", json_string(r->id));
    json_object_set_new(o, "op", json_string(gm_op_name(c->op.kind)));
    json_object_set_new(o, "device", json_string(r->plan.device->name));
    json_object_set_new(o, "model", json_string(facts->name));
    json_object_set_new(o, "dtype", json_string(gm_dtype_name(c->op.result.dtype)));
    json_object_set_new(o, "shapes", shapes_json(&c->op));
    set_count(o, "bytes_min", (double)gm_op_bytes_min(&c->op));
    set_count(o, "flops", gm_op_flops(&c->op));
    if (bound)
        json_object_set_new(o, "bound", json_string(bound));
    if (gm_rate(&facts->copy_gbs) > 0)
        set_rate(o, "copy_gbs", gm_rate(&facts->copy_gbs));
    set_rate(o, "roofline_gflops", roof);
    json_object_set_new(reference, "against",
                        c->has_reference ? json_string("reference")
                        : c->against     ? json_string(c->against->name)
                                         : json_null());
    json_object_set_new(reference, "what", json_string(gm_compare_reference_words(c)));
    json_object_set_new(o, "reference", reference);
    for (unsigned i = 0; i < c->count; i++)
        json_array_append_new(rows, row_json(c, facts, &c->row[i]));
    json_object_set_new(o, "rows", rows);
    json_object_set_new(o, "us", times_json(r));
    return gm_document_text(o, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
}
