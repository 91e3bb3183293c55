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
#include <string.h>

/* A site is a problem if it exceeds its ideal by this ratio, and the kernel would save this part of
 * its estimated time without. */
#define RATIO_MIN 1.1
#define SAVING_MIN 0.1
/* Bytes that a multiprocessor gets from the L2 cache in a cycle at most: a bound, not a rate that
 * is reached. */
#define L2_BYTES_MAX 64.0

#define NONE (-1.0)

static double per(double sum, double count)
{
    return count > 0 ? sum / count : 0;
}

/* Least time to move this many sectors, in microseconds. */
static double sectors_us(const struct gm_gpu *gpu, double sectors)
{
    return sectors * GM_SECTOR / (gpu->dram_gbs * 1e3);
}

/* Wavefronts at one per cycle and multiprocessor. */
static double wavefronts_us(const struct gm_gpu *gpu, double wavefronts)
{
    return wavefronts / (gpu->sms * gm_gpu_ghz(gpu) * 1e3);
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

/* How many different addresses the lanes of a request have. */
static unsigned addresses(const struct gm_access_example *x)
{
    unsigned count = 0;

    for (unsigned lane = 0; lane < GM_WARP; lane++) {
        unsigned before = 0;
        while (before < lane &&
               (!(x->active >> before & 1) || x->offset[before] != x->offset[lane]))
            before++;
        count += (x->active >> lane & 1) && before == lane;
    }
    return count;
}

/* Whether the sectors of a request are in several places, each shorter than a line. */
static bool is_apart(const struct gm_access_example *x)
{
    struct gm_sectors map;
    unsigned places = 1;

    gm_map_sectors(x, &map);
    for (unsigned i = 1; i < map.rows; i++)
        places += map.row[i].index > map.row[i - 1].index + 1;
    return places > 1 && map.rows * GM_SECTOR < places * GM_LINE;
}

/* What a place without waste is called. */
static const char *good_verdict(const struct gm_access_site *site, const struct gm_site_figures *f)
{
    const struct gm_access_sums *s = &site->sums;
    const struct gm_access_example *x = &site->example;
    bool loads = site->kind == GM_GLOBAL_LOAD || site->kind == GM_SHARED_LOAD;
    unsigned count = addresses(x), lanes = (unsigned)__builtin_popcount(x->active);
    /* A line of source may have several loads, of which the example is one. */
    bool all = per(s->bytes_useful, s->requests) <= RATIO_MIN * count * x->bytes;

    if (f->pattern == GM_PATTERN_SAME && all && count <= 1)
        return "one address";
    if (f->pattern == GM_PATTERN_SAME && all && loads && lanes >= 2 * count)
        return "broadcast";
    if (gm_access_is_shared(site->kind))
        return "no conflict";
    return is_apart(x) ? "whole sectors" : "coalesced";
}

static const char *global_verdict(const struct gm_access_site *site,
                                  const struct gm_site_figures *f)
{
    if (!f->wasteful)
        return good_verdict(site, f);
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

static void set_verdict(const struct gm_access_site *site, struct gm_site_figures *f)
{
    if (!gm_access_is_shared(site->kind))
        snprintf(f->verdict, sizeof f->verdict, "%s", global_verdict(site, f));
    else if (f->wasteful)
        snprintf(f->verdict, sizeof f->verdict, "%.3g-way bank conflict", f->ratio);
    else if (f->units >= RATIO_MIN * f->ideal)
        snprintf(f->verdict, sizeof f->verdict, "no conflict as vectors");
    else
        snprintf(f->verdict, sizeof f->verdict, "%s", good_verdict(site, f));
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
                                .used_percent = 100 * per(s->bytes_useful, s->bytes_moved),
                                .ratio = s->units_ideal > 0 ? s->units / s->units_ideal : 1};

    /* What a compiler makes vector loads of has the conflicts of those. */
    if (site->kind == GM_SHARED_LOAD && s->passes < s->units && s->units_ideal > 0) {
        f.ratio = s->passes / s->units_ideal;
        beyond = s->passes - s->units_ideal;
    }
    f.cost = gm_access_is_shared(site->kind) ? wavefronts_us(e->gpu, beyond)
                                             : sectors_us(e->gpu, beyond);
    f.wasteful = f.ratio >= RATIO_MIN;
    set_pattern(&site->example, &f);
    set_verdict(site, &f);
    *ret = f;
}

/* Part of the kernel's time that it would save if a site's requests were ideal; where that is not
 * known, a measure of what it wastes. */
static double saving(const struct gm_explain *e, const struct gm_explain_figures *figures,
                     const struct gm_estimate *estimate, const struct gm_access_site *site,
                     const struct gm_site_figures *f)
{
    if (!estimate->known)
        return f->cost;
    double without = gm_estimate_without(e, figures, estimate, site);
    return (estimate->us - without) / (estimate->us - estimate->launch_us);
}

const struct gm_access_site *gm_explain_worst(const struct gm_explain *e)
{
    const struct gm_access_site *worst = NULL;
    struct gm_explain_figures figures;
    struct gm_estimate estimate;

    gm_explain_figures(e, &figures);
    gm_explain_estimate(e, &figures, &estimate);
    double most = estimate.known ? SAVING_MIN : 0;
    for (size_t i = 0; i < e->report->sites; i++) {
        struct gm_site_figures f;
        gm_explain_site(e, &e->report->site[i], &f);
        double saved = saving(e, &figures, &estimate, &e->report->site[i], &f);
        if (f.wasteful && saved > most) {
            most = saved;
            worst = &e->report->site[i];
        }
    }
    return worst;
}

/* ---- The whole ------------------------------------------------------------------------------ */

/* Whether a launch does more than another: requests, else threads. */
static bool does_more(const struct gm_explain *e, const struct gm_launch_report *l,
                      const struct gm_launch_report *than)
{
    double requests[2] = {0}, threads[2];
    const struct gm_launch_report *both[2] = {l, than};

    for (unsigned k = 0; k < 2; k++) {
        threads[k] = both[k]->blocks * both[k]->block[0] * both[k]->block[1] * both[k]->block[2];
        for (size_t i = 0; i < e->report->sites; i++)
            if (strcmp(e->report->site[i].kernel, both[k]->kernel) == 0)
                requests[k] += e->report->site[i].sums.requests;
    }
    return requests[0] != requests[1] ? requests[0] > requests[1] : threads[0] > threads[1];
}

static void set_launches(const struct gm_explain *e, struct gm_explain_figures *f)
{
    for (size_t i = 0; i < e->report->launches; i++) {
        const struct gm_launch_report *l = &e->report->launch[i];
        if (l->prepares)
            continue;
        f->traced += l->traced;
        f->blocks += l->blocks;
        if (!f->launch || does_more(e, l, f->launch))
            f->launch = l;
    }
    if (f->launch) {
        struct gm_resources resources = {0};
        gm_gpu_resources(e->gpu, f->launch->symbol, &resources);
        f->registers = resources.registers;
        f->spilled = resources.spilled;
        f->occupancy = gm_gpu_occupancy(
            e->gpu, f->launch->block[0] * f->launch->block[1] * f->launch->block[2],
            f->launch->shared, f->registers);
    }
}

static void set_traffic(const struct gm_explain *e, struct gm_explain_figures *f)
{
    const struct gm_access_totals *t = &e->report->totals;

    for (unsigned kind = 0; kind < GM_ACCESS_KINDS; kind++) {
        bool shared = gm_access_is_shared((enum gm_access_kind)kind);
        *(shared ? &f->wavefronts : &f->sectors) += t->kind[kind].units;
        *(shared ? &f->wavefronts_ideal : &f->sectors_ideal) += t->kind[kind].units_ideal;
        f->bytes_moved += shared ? 0 : t->kind[kind].bytes_moved;
        f->bytes_used += shared ? 0 : t->kind[kind].bytes_useful;
        f->requests += t->kind[kind].requests;
        f->passes += t->kind[kind].passes;
    }
    const struct gm_access_sums *load = &t->kind[GM_GLOBAL_LOAD];
    f->l1_hit_percent = load->units > 0 ? 100 * (1 - load->first / load->units) : NONE;
    f->l2_sectors = f->sectors - load->units + load->first;
    for (size_t i = 0; i < e->report->sites; i++)
        f->l2_lines += gm_explain_lines(&e->report->site[i]);
    f->sectors_min = gm_access_sectors_min(e->op);
    f->sectors_ratio = f->sectors_min > 0 && !e->report->cut ? f->sectors / f->sectors_min : NONE;
    f->barriers_per_block = t->blocks > 0 ? t->barriers / t->blocks : NONE;
    f->active_percent = t->steps > 0 ? 100 * t->lanes / (t->steps * GM_WARP) : NONE;
}

/* The least time on the chosen GPU, in microseconds, by any of: DRAM for the bytes that must move,
 * the L2 cache for what misses L1, the data stage of L1 and shared memory. *ret_name: the longest.
 */
static double least_memory_us(const struct gm_explain *e, const struct gm_explain_figures *f,
                              const char **ret_name)
{
    double per_us = e->gpu->sms * gm_gpu_ghz(e->gpu) * 1e3;
    const struct {
        const char *name;
        double us;
    } roofs[] = {{"dram", f->bytes_min / (e->gpu->dram_gbs * 1e3)},
                 {"l2", f->l2_sectors * GM_SECTOR / (L2_BYTES_MAX * per_us)},
                 {"l1_and_shared", f->passes / per_us}};
    double most = -1;

    for (size_t i = 0; i < sizeof roofs / sizeof *roofs; i++) {
        if (roofs[i].us > most) {
            most = roofs[i].us;
            *ret_name = roofs[i].name;
        }
    }
    return most;
}

/* Sets the roofline of the chosen GPU: one roof for each level of memory, and the arithmetic's. */
static void set_roofline(const struct gm_explain *e, struct gm_explain_figures *f)
{
    f->flops = gm_op_flops(e->op);
    f->bytes_min = (double)gm_op_bytes_min(e->op);
    f->intensity = f->flops > 0 && f->bytes_min > 0 ? f->flops / f->bytes_min : NONE;
    f->executed_intensity =
        f->flops > 0 && f->bytes_moved > 0 && !e->report->cut ? f->flops / f->bytes_moved : NONE;
    double peak = gm_explain_peak(e);
    f->peak_gflops = peak > 0 ? peak : NONE;
    f->ridge = peak > 0 ? peak / e->gpu->dram_gbs : NONE;
    f->attainable_gflops = f->percent_of_peak = NONE;
    f->roof = "dram";
    if (f->executed_intensity < 0 || peak <= 0)
        return;
    double memory = least_memory_us(e, f, &f->roof), arithmetic = f->flops / (peak * 1e3);
    f->compute_bound = arithmetic >= memory;
    f->roof = f->compute_bound ? "arithmetic" : f->roof;
    f->attainable_gflops = f->flops / (1e3 * (f->compute_bound ? arithmetic : memory));
    f->percent_of_peak = 100 * f->attainable_gflops / peak;
}

void gm_explain_figures(const struct gm_explain *e, struct gm_explain_figures *ret)
{
    struct gm_explain_figures f = {0};

    set_launches(e, &f);
    set_traffic(e, &f);
    gm_explain_caches(e, &f);
    set_roofline(e, &f);
    *ret = f;
}
