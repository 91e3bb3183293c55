/*
 * json.c - an access report as JSON. Figures that are unknown or not applicable are absent.
 */
#include "kernels/gpu.h"
#include "server/api/explain/explain.h"
#include "server/text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes a figure with six digits; a negative one is omitted. */
static void set_figure(json_t *object, const char *name, double value)
{
    char text[32];

    if (!isfinite(value) || value < 0)
        return;
    snprintf(text, sizeof text, "%.6g", value);
    json_object_set_new(object, name, json_real(strtod(text, NULL)));
}

static void set_count(json_t *object, const char *name, double value)
{
    if (value >= 0 && value < 0x1p53)
        json_object_set_new(object, name, json_integer((json_int_t)llround(value)));
    else
        set_figure(object, name, value);
}

static void set_text(json_t *object, const char *name, const char *text)
{
    json_object_set_new(object, name, json_string(text));
}

static json_t *dimensions(const uint32_t d[3])
{
    return json_pack("[I, I, I]", (json_int_t)d[0], (json_int_t)d[1], (json_int_t)d[2]);
}

static json_t *shape_json(const struct gm_matrix *m)
{
    json_t *shape = json_array();

    if (m->stacked)
        json_array_append_new(shape, json_integer((json_int_t)m->batch));
    json_array_append_new(shape, json_integer((json_int_t)m->rows));
    json_array_append_new(shape, json_integer((json_int_t)m->cols));
    return shape;
}

static json_t *shapes_json(const struct gm_op *op)
{
    static const char *const names[GM_OPERANDS_MAX] = {"a", "b", "c"};
    json_t *shapes = json_object();

    for (unsigned i = 0; i < op->operands; i++)
        json_object_set_new(shapes, names[i], shape_json(&op->operand[i]));
    json_object_set_new(shapes, "result", shape_json(&op->result));
    return shapes;
}

static json_t *example_json(const struct gm_access_example *x)
{
    json_t *addresses = json_array(), *o = json_object();

    for (unsigned lane = 0; lane < GM_WARP; lane++) {
        bool active = x->active >> lane & 1;
        json_array_append_new(addresses, active ? json_integer(x->offset[lane]) : json_null());
    }
    json_object_set_new(o, "block", dimensions(x->block));
    json_object_set_new(o, "warp", json_integer(x->warp));
    json_object_set_new(o, "bytes_per_lane", json_integer(x->bytes));
    json_object_set_new(o, "addresses", addresses);
    return o;
}

static json_t *warps_json(const struct gm_access_site *site)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < GM_WARPS_SHOWN; i++)
        if (site->warp[i].active)
            json_array_append_new(list, example_json(&site->warp[i]));
    return list;
}

static json_t *site_json(const struct gm_explain *e, const struct gm_access_site *site)
{
    bool shared = gm_access_is_shared(site->kind);
    struct gm_site_figures f;
    json_t *o = json_object();

    gm_explain_site(e, site, &f);
    set_text(o, "kind", gm_access_name(site->kind));
    set_text(o, "kernel", site->kernel);
    set_text(o, "file", site->file);
    json_object_set_new(o, "line", json_integer(site->line));
    set_text(o, "source", site->source);
    set_text(o, "memory", site->memory);
    set_count(o, "requests", site->sums.requests);
    set_figure(o, "lanes_per_request", f.lanes);
    set_figure(o, shared ? "wavefronts_per_request" : "sectors_per_request", f.units);
    set_figure(o, shared ? "ideal_wavefronts_per_request" : "ideal_sectors_per_request", f.ideal);
    if (!shared && site->kind == GM_GLOBAL_LOAD && site->sums.units > 0)
        set_figure(o, "l1_hit_percent", 100 * (1 - site->sums.first / site->sums.units));
    set_figure(o, "used_percent", f.used_percent);
    set_count(o, "bytes_useful", site->sums.bytes_useful);
    set_count(o, "bytes_moved", site->sums.bytes_moved);
    set_text(o, "verdict", f.verdict);
    json_object_set_new(o, "example", example_json(&site->example));
    json_object_set_new(o, "warps", warps_json(site));
    return o;
}

static json_t *launch_json(const struct gm_launch_report *l)
{
    json_t *o = json_object();

    set_text(o, "kernel", l->kernel);
    if (l->symbol)
        set_text(o, "symbol", l->symbol);
    json_object_set_new(o, "prepares", json_boolean(l->prepares));
    json_object_set_new(o, "grid", dimensions(l->grid));
    json_object_set_new(o, "block", dimensions(l->block));
    set_count(o, "shared_bytes", (double)l->shared);
    set_count(o, "blocks", l->blocks);
    set_count(o, "blocks_traced", l->traced);
    json_object_set_new(o, "steps_sampled", json_boolean(l->steps_sampled));
    json_object_set_new(o, "cut", json_boolean(l->cut));
    return o;
}

static json_t *occupancy_json(const struct gm_explain *e, const struct gm_explain_figures *f)
{
    json_t *o = json_object();

    set_text(o, "gpu", e->gpu->name);
    set_text(o, "kernel", f->launch->kernel);
    json_object_set_new(o, "blocks", json_integer(f->occupancy.blocks));
    json_object_set_new(o, "warps", json_integer(f->occupancy.warps));
    set_figure(o, "percent", f->occupancy.percent);
    set_text(o, "limited_by", f->occupancy.limited_by);
    if (f->registers > 0)
        set_count(o, "registers_per_thread", f->registers);
    if (f->registers > 0 && f->spilled > 0)
        set_count(o, "spilled_bytes", f->spilled);
    if (f->registers == 0)
        set_text(o, "note", "registers are not known here, and may allow fewer");
    return o;
}

static json_t *roofline_json(const struct gm_explain *e, const struct gm_explain_figures *f)
{
    char place[GM_EXPLAIN_WORDS_MAX];
    json_t *o = json_object();

    set_text(o, "gpu", e->gpu->name);
    set_figure(o, "dram_gbs", e->gpu->dram_gbs);
    if (f->flops > 0) {
        set_figure(o, "peak_gflops", f->peak_gflops);
        set_figure(o, "ridge", f->ridge);
    }
    set_figure(o, "attainable_gflops", f->attainable_gflops);
    set_figure(o, "percent_of_peak", f->percent_of_peak);
    if (!e->report->cut)
        set_text(o, "bound", f->compute_bound ? "compute" : "memory");
    set_text(o, "roof", f->roof);
    gm_explain_place(e, f, place);
    set_text(o, "place", place);
    return o;
}

static json_t *estimate_json(const struct gm_explain *e, const struct gm_estimate *estimate)
{
    json_t *o = json_object(), *parts = json_object();

    for (unsigned i = 0; i < GM_BOUNDS; i++)
        set_figure(parts, gm_bound_name((enum gm_bound)i), estimate->part[i]);
    set_text(o, "gpu", e->gpu->name);
    set_figure(o, "us", estimate->us);
    set_figure(o, "launch_us", estimate->launch_us);
    set_text(o, "bound", gm_bound_name(estimate->bound));
    json_object_set_new(o, "parts_us", parts);
    set_figure(o, "waves", estimate->waves);
    set_text(o, "error", GM_ESTIMATE_ERROR);
    return o;
}

static json_t *in_flight_json(const struct gm_in_flight *flight)
{
    json_t *o = json_object();

    set_figure(o, "bytes", flight->bytes);
    set_figure(o, "bytes_needed", flight->needed);
    set_figure(o, "requests_per_warp", flight->requests);
    return o;
}

static json_t *measured_json(const struct gm_explain *e, const struct gm_measured *m, bool same)
{
    json_t *o = json_object(), *times = json_object();
    const struct gm_variant *v;

    set_text(o, "gpu", m->gpu);
    set_text(o, "shape", m->shape);
    json_object_set_new(o, "same_shape", json_boolean(same));
    set_figure(o, "us", gm_measured_us(m, e->variant->name));
    if (m->copy_us > 0)
        set_figure(o, "copy_us", m->copy_us);
    for (size_t i = 0; (v = gm_variant_at(i)); i++)
        if (v->op == e->op->kind)
            set_figure(times, v->name, gm_measured_us(m, v->name));
    json_object_set_new(o, "times_us", times);
    return o;
}

static json_t *totals_json(const struct gm_explain *e, const struct gm_explain_figures *f)
{
    const struct gm_access_totals *t = &e->report->totals;
    json_t *o = json_object();

    set_count(o, "global_sectors", f->sectors);
    set_count(o, "global_sectors_ideal", f->sectors_ideal);
    set_count(o, "global_sectors_min", f->sectors_min);
    set_figure(o, "global_sectors_ratio", f->sectors_ratio);
    set_count(o, "shared_wavefronts", f->wavefronts);
    set_count(o, "shared_wavefronts_ideal", f->wavefronts_ideal);
    set_count(o, "requests", f->requests);
    set_count(o, "lsu_wavefronts", f->passes);
    set_figure(o, "l1_hit_percent", f->l1_hit_percent);
    set_figure(o, "l2_hit_percent", f->l2_hit_percent);
    set_count(o, "l2_lines", f->l2_lines);
    set_count(o, "dram_bytes", f->dram_bytes);
    set_count(o, "barriers", t->barriers);
    set_figure(o, "barriers_per_block", f->barriers_per_block);
    set_figure(o, "active_lanes_percent", f->active_percent);
    set_count(o, "blocks", t->blocks);
    set_count(o, "warps", t->warps);
    set_count(o, "bytes_min", f->bytes_min);
    set_count(o, "bytes_moved", f->bytes_moved);
    if (f->flops > 0)
        set_count(o, "flops", f->flops);
    set_figure(o, "intensity", f->intensity);
    set_figure(o, "executed_intensity", f->executed_intensity);
    if (f->launch)
        json_object_set_new(o, "occupancy", occupancy_json(e, f));
    json_object_set_new(o, "roofline", roofline_json(e, f));
    struct gm_in_flight flight = gm_explain_in_flight(e, f);
    if (flight.bytes >= 0)
        json_object_set_new(o, "in_flight", in_flight_json(&flight));
    struct gm_estimate estimate;
    gm_explain_estimate(e, f, &estimate);
    if (estimate.known)
        json_object_set_new(o, "estimate", estimate_json(e, &estimate));
    return o;
}

static json_t *auto_json(const struct gm_explain *e)
{
    json_t *o = json_object();

    set_text(o, "gpu", e->gpu->name);
    set_text(o, "kernel", e->automatic);
    json_object_set_new(o, "traced", json_boolean(strcmp(e->automatic, e->variant->name) == 0));
    return o;
}

static json_t *report_json(const struct gm_explain *e)
{
    char problem[GM_EXPLAIN_WORDS_MAX], cure[GM_EXPLAIN_WORDS_MAX];
    json_t *o = json_object(), *launches = json_array(), *sites = json_array();
    struct gm_explain_figures f;

    gm_explain_figures(e, &f);
    gm_explain_words(e, problem, cure);
    for (size_t i = 0; i < e->report->launches; i++)
        json_array_append_new(launches, launch_json(&e->report->launch[i]));
    for (size_t i = 0; i < e->report->sites; i++)
        json_array_append_new(sites, site_json(e, &e->report->site[i]));
    set_text(o, "id", e->id);
    set_text(o, "kernel", e->variant->name);
    set_text(o, "op", gm_op_name(e->op->kind));
    set_text(o, "device", e->device);
    json_object_set_new(o, "shape", shapes_json(e->op));
    set_text(o, "dtype", gm_dtype_name(e->op->result.dtype));
    set_text(o, "problem", problem);
    set_text(o, "cure", cure);
    if (e->automatic)
        json_object_set_new(o, "auto", auto_json(e));
    bool same;
    const struct gm_measured *measured = gm_measured_find(e->gpu, e->op, &same);
    if (measured)
        json_object_set_new(o, "measured", measured_json(e, measured, same));
    json_object_set_new(o, "totals", totals_json(e, &f));
    json_object_set_new(o, "sites", sites);
    json_object_set_new(o, "launches", launches);
    json_object_set_new(o, "sampled", json_boolean(e->report->sampled));
    json_object_set_new(o, "cut", json_boolean(e->report->cut));
    if (e->report->cut)
        set_text(o, "cut_by", e->report->late ? "time" : "count");
    set_count(o, "blocks_traced", f.traced);
    set_count(o, "blocks", f.blocks);
    return o;
}

char *gm_explain_json(const struct gm_explain *e)
{
    char changed[GM_EXPLAIN_WORDS_MAX], brought[GM_EXPLAIN_WORDS_MAX];
    json_t *o = report_json(e);

    if (e->against) {
        gm_explain_changed(e, changed, brought);
        set_text(o, "changed", changed);
        set_text(o, "brought", brought);
        json_object_set_new(o, "against", report_json(e->against));
    }
    return gm_document_text(o, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
}
