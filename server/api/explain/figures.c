/*
 * figures.c - derives the figures of an access report: costs per site, access patterns, the
 * roofline.
 *
 * Costs are lower bounds on `gpu`: sectors at the bandwidth of its memory, as if there were no
 * cache; wavefronts at one per cycle and multiprocessor. They tell sites that matter from those
 * that do not. They do not predict times.
 */
#include "server/api/explain/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A site is a problem if it exceeds its ideal by this ratio, and costs this part of the operation's
 * least time. */
#define RATIO_MIN 1.1
#define COST_MIN 0.05

#define NONE (-1.0)

static double per(double sum, double count)
{
    return count > 0 ? sum / count : 0;
}

/* Lanes of a multiprocessor that do fp32 arithmetic. */
static double fp32_lanes(const struct gm_gpu *gpu)
{
    return gpu->capability < 86 ? 64 : 128;
}

/* Least time to move this many sectors, in microseconds. */
static double sectors_us(const struct gm_gpu *gpu, double sectors)
{
    return sectors * GM_SECTOR / (gpu->dram_gbs * 1e3);
}

static double wavefronts_us(const struct gm_gpu *gpu, double wavefronts)
{
    double per_us = gpu->fp32_gflops / (2 * fp32_lanes(gpu)) *
                    1e3; /* per microsecond, of all multiprocessors */

    return wavefronts / per_us;
}

/* ---- A site ------------------------------------------------------------------------------- */

/* The most frequent distance between neighbouring lanes; *ret_have of *ret_pairs pairs have it. */
static int64_t usual_distance(const struct gm_access_example *example, unsigned *ret_have,
                              unsigned *ret_pairs)
{
    int64_t distance[GM_WARP], usual = 0;
    unsigned pairs = 0, most = 0;
    int before = -1;

    for (int lane = 0; lane < (int)GM_WARP; lane++) {
        if (!(example->active >> lane & 1))
            continue;
        if (before >= 0)
            distance[pairs++] = (example->offset[lane] - example->offset[before]) / (lane - before);
        before = lane;
    }
    for (unsigned i = 0; i < pairs; i++) {
        unsigned have = 0;
        for (unsigned j = 0; j < pairs; j++)
            have += distance[j] == distance[i];
        if (have > most) {
            most = have;
            usual = distance[i];
        }
    }
    *ret_have = most;
    *ret_pairs = pairs;
    return usual;
}

static void set_pattern(const struct gm_access_example *example, struct gm_site_figures *f)
{
    unsigned have, pairs;

    f->stride = usual_distance(example, &have, &pairs);
    f->spans = pairs - have + 1;
    if (pairs == 0 || (f->stride == 0 && 4 * have >= 3 * pairs))
        f->pattern = GM_PATTERN_SAME;
    else if (llabs(f->stride) == (int64_t)example->bytes && 2 * have >= pairs)
        f->pattern = have == pairs ? GM_PATTERN_ROW : GM_PATTERN_ROWS;
    else if (4 * have >= 3 * pairs)
        f->pattern = GM_PATTERN_STRIDE;
    else
        f->pattern = GM_PATTERN_SCATTERED;
}

static const char *global_verdict(const struct gm_site_figures *f)
{
    if (f->ratio < RATIO_MIN)
        return f->pattern == GM_PATTERN_SAME ? "one address" : "coalesced";
    switch (f->pattern) {
    case GM_PATTERN_STRIDE:
        return llabs(f->stride) >= GM_SECTOR ? "strided" : "interleaved";
    case GM_PATTERN_ROW:
        return "misaligned";
    case GM_PATTERN_ROWS:
        return "short spans";
    default:
        return "scattered";
    }
}

static void set_verdict(enum gm_access_kind kind, struct gm_site_figures *f)
{
    if (!gm_access_is_shared(kind))
        snprintf(f->verdict, sizeof f->verdict, "%s", global_verdict(f));
    else if (f->ratio >= RATIO_MIN)
        snprintf(f->verdict, sizeof f->verdict, "%.3g-way bank conflict", f->ratio);
    else
        snprintf(f->verdict, sizeof f->verdict, "%s",
                 f->pattern == GM_PATTERN_SAME ? "one address" : "no conflict");
}

double gm_explain_lines(const struct gm_access_site *site)
{
    const struct gm_access_sums *s = &site->sums;

    return site->kind == GM_GLOBAL_LOAD ? s->lines * per(s->first, s->units) : s->lines;
}

void gm_explain_site(const struct gm_explain *e, const struct gm_access_site *site,
                     struct gm_site_figures *ret)
{
    const struct gm_access_sums *s = &site->sums;
    double beyond = s->units - s->units_ideal;
    struct gm_site_figures f = {.units = per(s->units, s->requests),
                                .ideal = per(s->units_ideal, s->requests),
                                .lanes = per(s->lanes, s->requests),
                                .ratio = s->units_ideal > 0 ? s->units / s->units_ideal : 1};

    f.cost = gm_access_is_shared(site->kind) ? wavefronts_us(e->gpu, beyond)
                                             : sectors_us(e->gpu, beyond);
    set_pattern(&site->example, &f);
    set_verdict(site->kind, &f);
    *ret = f;
}

const struct gm_access_site *gm_explain_worst(const struct gm_explain *e)
{
    const struct gm_access_site *worst = NULL;
    double peak = gm_gpu_gflops(e->gpu, e->op->result.dtype);
    double least = sectors_us(e->gpu, gm_access_sectors_min(e->op));
    double arithmetic = peak > 0 ? gm_op_flops(e->op) / (peak * 1e3) : 0;
    double most = COST_MIN * (arithmetic > least ? arithmetic : least);

    if (e->report->cut) /* the report is truncated: the sites' costs cover only a part */
        most = 0;

    for (size_t i = 0; i < e->report->sites; i++) {
        struct gm_site_figures f;
        gm_explain_site(e, &e->report->site[i], &f);
        if (f.ratio >= RATIO_MIN && f.cost > most) {
            most = f.cost;
            worst = &e->report->site[i];
        }
    }
    return worst;
}

/* ---- The whole ------------------------------------------------------------------------------ */

static double launched_threads(const struct gm_launch_report *l)
{
    return l->blocks * l->block[0] * l->block[1] * l->block[2];
}

static void set_launches(const struct gm_explain *e, struct gm_explain_figures *f)
{
    for (size_t i = 0; i < e->report->launches; i++) {
        const struct gm_launch_report *l = &e->report->launch[i];
        if (l->prepares)
            continue;
        f->traced += l->traced;
        f->blocks += l->blocks;
        if (!f->launch || launched_threads(l) > launched_threads(f->launch))
            f->launch = l;
    }
    if (f->launch)
        f->occupancy = gm_gpu_occupancy(
            e->gpu, f->launch->block[0] * f->launch->block[1] * f->launch->block[2],
            f->launch->shared, 0);
}

static void set_traffic(const struct gm_explain *e, struct gm_explain_figures *f)
{
    const struct gm_access_totals *t = &e->report->totals;

    for (unsigned kind = 0; kind < GM_ACCESS_KINDS; kind++) {
        bool shared = gm_access_is_shared((enum gm_access_kind)kind);
        *(shared ? &f->wavefronts : &f->sectors) += t->kind[kind].units;
        *(shared ? &f->wavefronts_ideal : &f->sectors_ideal) += t->kind[kind].units_ideal;
        f->bytes_moved += shared ? 0 : t->kind[kind].bytes_moved;
        f->requests += t->kind[kind].requests;
        f->passes += t->kind[kind].passes;
    }
    const struct gm_access_sums *load = &t->kind[GM_GLOBAL_LOAD];
    f->l1_hit_percent = load->units > 0 ? 100 * (1 - load->first / load->units) : NONE;
    for (size_t i = 0; i < e->report->sites; i++)
        f->l2_lines += gm_explain_lines(&e->report->site[i]);
    f->sectors_min = gm_access_sectors_min(e->op);
    f->sectors_ratio = f->sectors_min > 0 && !e->report->cut ? f->sectors / f->sectors_min : NONE;
    f->barriers_per_block = t->blocks > 0 ? t->barriers / t->blocks : NONE;
    f->active_percent = t->steps > 0 ? 100 * t->lanes / (t->steps * GM_WARP) : NONE;
}

/* Sets the roofline of the chosen GPU, for the bytes that the kernel moves, not the compulsory
 * ones: as if there were no cache. */
static void set_roofline(const struct gm_explain *e, struct gm_explain_figures *f)
{
    f->flops = gm_op_flops(e->op);
    f->bytes_min = (double)gm_op_bytes_min(e->op);
    f->intensity = f->flops > 0 && f->bytes_min > 0 ? f->flops / f->bytes_min : NONE;
    f->executed_intensity =
        f->flops > 0 && f->bytes_moved > 0 && !e->report->cut ? f->flops / f->bytes_moved : NONE;
    double peak = gm_gpu_gflops(e->gpu, e->op->result.dtype);
    f->peak_gflops = peak > 0 ? peak : NONE;
    f->ridge = peak > 0 ? peak / e->gpu->dram_gbs : NONE;
    f->attainable_gflops = f->percent_of_peak = NONE;
    if (f->executed_intensity < 0 || peak <= 0)
        return;
    f->compute_bound = f->executed_intensity >= f->ridge;
    f->attainable_gflops = f->compute_bound ? peak : f->executed_intensity * e->gpu->dram_gbs;
    f->percent_of_peak = 100 * f->attainable_gflops / peak;
}

void gm_explain_figures(const struct gm_explain *e, struct gm_explain_figures *ret)
{
    struct gm_explain_figures f = {0};

    set_launches(e, &f);
    set_traffic(e, &f);
    set_roofline(e, &f);
    *ret = f;
}
