/*
 * estimate.c - estimates a kernel's time on a GPU from counted accesses, and what it is due to.
 *
 * Each resource alone would take a time. The kernel takes their norm, because resources overlap
 * only in part, and the less, the fewer blocks share a multiprocessor. The resources:
 *
 *   DRAM         the bytes that cache.c leaves to it
 *   L2 cache     lines
 *   data stage   passes: L1 and shared memory have it in common
 *   schedulers   instructions: arithmetic, and some around each request (near Nsight's counts)
 *   latency      of loads that a warp cannot have under way together, and of barriers, for each
 *                generation of resident blocks; an asynchronous copy lets the warp go on
 *
 * DRAM_SHARE and LOAD_US are measured. The other numbers are fitted to half of the shapes of
 * tests/bench/results/kernels_h200.json; on the other half GM_ESTIMATE_ERROR holds.
 */
#include "server/api/explain/explain.h"

#include <math.h>
#include <string.h>

/* Degree of the norm: with many resident blocks, and with one. */
#define NORM 3.11
#define NORM_ALONE 1.79
#define LAUNCH_US 4.15  /* an empty kernel (3.3), and the way to the first block */
#define DRAM_SHARE 0.87 /* of the data sheet's bandwidth: what a copy reaches */
#define L2_SHARE 0.84   /* of the rate of a kernel that only reads */
#define L1_SHARE 0.857  /* of one pass a clock */
/* Instructions of a warp around each request to global memory: its first ones, and the further ones
 * of a loop; and around each to shared memory. */
#define GLOBAL_FIRST 16.0
#define GLOBAL_INSTRUCTIONS 17.0
#define LOOP_INSTRUCTIONS 3.0
#define SHARED_INSTRUCTIONS 2.2
#define LOAD_US 0.65      /* latency of memory under load */
#define HIT_US 0.228      /* of loads that hit L1, often what another warp still waits for */
#define BLOCK_US 0.104    /* of a generation of blocks, to begin */
#define BARRIER_US 0.99   /* more, if a block stores only after all of it has loaded */
#define BARRIERS_US 0.233 /* for each further barrier, as of a tile in a loop */
#define SCHEDULERS 4.0

/* What a warp has under way before it waits, where its loop has more: compilers unroll that far. */
#define LOADS_AHEAD_MAX 8.0

static const char *const names[GM_BOUNDS] = {
    [GM_BOUND_DRAM] = "dram",
    [GM_BOUND_L2] = "l2",
    [GM_BOUND_L1] = "l1_and_shared",
    [GM_BOUND_ISSUE] = "instructions",
    [GM_BOUND_ARITHMETIC] = "arithmetic",
    [GM_BOUND_LATENCY] = "latency",
};

const char *gm_bound_name(enum gm_bound bound)
{
    return names[bound];
}

/* Cycles of all multiprocessors in a microsecond. */
static double cycles(const struct gm_gpu *gpu)
{
    return gpu->sms * gm_gpu_ghz(gpu) * 1e3;
}

static double sum_of(const struct gm_explain *e, bool shared)
{
    double requests = 0;

    for (unsigned kind = 0; kind < GM_ACCESS_KINDS; kind++)
        if (gm_access_is_shared((enum gm_access_kind)kind) == shared)
            requests += e->report->totals.kind[kind].requests;
    return requests;
}

/* Instructions of warps beside arithmetic. */
static double instructions(const struct gm_explain *e)
{
    double global = sum_of(e, false), loading = e->report->totals.loading;
    /* Where nothing is loaded, all warps may store. */
    double first = GLOBAL_FIRST * (loading > 0 ? loading : e->report->totals.warps);

    first = global < first ? global : first;
    return GLOBAL_INSTRUCTIONS * first + LOOP_INSTRUCTIONS * (global - first) +
           SHARED_INSTRUCTIONS * sum_of(e, true);
}

/* How much more the busiest multiprocessor has to do than the mean one. */
static double uneven(const struct gm_gpu *gpu, double blocks)
{
    return blocks > 0 ? ceil(blocks / gpu->sms) * gpu->sms / blocks : 1;
}

static double norm(const struct gm_explain_figures *f, const double part[GM_BOUNDS])
{
    double degree = NORM - (NORM - NORM_ALONE) / fmax(1, f->occupancy.blocks);
    double busy = part[GM_BOUND_ISSUE] + part[GM_BOUND_ARITHMETIC], sum = pow(busy, degree);

    for (unsigned i = 0; i < GM_BOUNDS; i++)
        if (i != GM_BOUND_ISSUE && i != GM_BOUND_ARITHMETIC)
            sum += pow(part[i], degree);
    return LAUNCH_US + pow(sum, 1 / degree);
}

/* The largest part. The schedulers' is one sum, named by its larger part. */
static enum gm_bound largest(const double part[GM_BOUNDS])
{
    double busy = part[GM_BOUND_ISSUE] + part[GM_BOUND_ARITHMETIC];
    enum gm_bound bound =
        part[GM_BOUND_ISSUE] > part[GM_BOUND_ARITHMETIC] ? GM_BOUND_ISSUE : GM_BOUND_ARITHMETIC;

    for (unsigned i = 0; i < GM_BOUNDS; i++) {
        if (i == GM_BOUND_ISSUE || i == GM_BOUND_ARITHMETIC || !(part[i] > busy))
            continue;
        busy = part[i];
        bound = (enum gm_bound)i;
    }
    return bound;
}

/* Latency of the loads of a warp, which has LOADS_AHEAD_MAX of them under way at a time. Warps that
 * leave at once, as those beyond the last row, wait for none. */
static double loads_us(const struct gm_explain *e, const struct gm_explain_figures *f)
{
    double loads = e->report->totals.kind[GM_GLOBAL_LOAD].requests;
    double warps = e->report->totals.loading;
    double rounds = warps > 0 ? fmax(1, loads / warps / LOADS_AHEAD_MAX) : 1;
    double hit = fmax(0, f->l1_hit_percent) / 100;
    bool copies = e->gpu->capability >= 80; /* before, an asynchronous copy is a load and a store */
    double waited = loads > 0 ? 1 - (copies ? e->report->totals.async / loads : 0) : 0;

    return LOAD_US + waited * (rounds - 1) * (hit * HIT_US + (1 - hit) * LOAD_US);
}

double gm_explain_peak(const struct gm_explain *e)
{
    enum gm_dtype dtype = e->op->result.dtype;

    return dtype == GM_I64 ? e->gpu->int32_gflops / GM_I64_PRODUCTS : gm_gpu_gflops(e->gpu, dtype);
}

void gm_explain_estimate(const struct gm_explain *e, const struct gm_explain_figures *f,
                         struct gm_estimate *ret)
{
    const struct gm_gpu *gpu = e->gpu;
    struct gm_estimate r = {.launch_us = LAUNCH_US,
                            .known = f->launch && !e->report->cut && f->occupancy.blocks > 0};
    double *part = r.part, most = uneven(gpu, f->blocks);
    double peak = gm_explain_peak(e);

    *ret = r;
    if (!r.known)
        return;
    r.waves = f->blocks / ((double)f->occupancy.blocks * gpu->sms);
    r.uneven = most;
    double barriers = f->barriers_per_block > 0 ? f->barriers_per_block : 0;
    part[GM_BOUND_DRAM] = fmax(f->bytes_min, f->dram_bytes) / (DRAM_SHARE * gpu->dram_gbs * 1e3);
    part[GM_BOUND_L2] =
        f->l2_lines * GM_LINE / (L2_SHARE * gm_gpu_l2_bytes_per_clock(gpu) * cycles(gpu));
    part[GM_BOUND_L1] = most * f->passes / (L1_SHARE * cycles(gpu));
    part[GM_BOUND_ISSUE] = most * instructions(e) / (SCHEDULERS * cycles(gpu));
    part[GM_BOUND_ARITHMETIC] = peak > 0 ? most * f->flops / (peak * 1e3) : 0;
    part[GM_BOUND_LATENCY] =
        fmax(1, r.waves) * (BLOCK_US + loads_us(e, f) + BARRIER_US * fmin(1, barriers) +
                            BARRIERS_US * fmax(0, barriers - 1));
    r.us = norm(f, part);
    r.bound = largest(part);
    *ret = r;
}

double gm_estimate_without(const struct gm_explain *e, const struct gm_explain_figures *f,
                           const struct gm_estimate *estimate, const struct gm_access_site *site)
{
    double most = uneven(e->gpu, f->blocks), part[GM_BOUNDS];
    const struct gm_access_sums *s = &site->sums;
    bool shared = gm_access_is_shared(site->kind);

    for (unsigned i = 0; i < GM_BOUNDS; i++)
        part[i] = estimate->part[i];
    /* Global: the lines that its sectors would fill at best, as far as it asks L2 for more; and
     * 128 bytes a pass. */
    double ideal =
        shared ? s->units_ideal : fmax(s->units_ideal * GM_SECTOR / GM_LINE, s->requests);
    double beyond = s->passes - ideal;
    if (beyond > 0)
        part[GM_BOUND_L1] -= fmin(part[GM_BOUND_L1], most * beyond / (L1_SHARE * cycles(e->gpu)));
    beyond = shared ? 0 : gm_explain_beyond_lines(e, site);
    if (beyond > 0)
        part[GM_BOUND_L2] -= fmin(
            part[GM_BOUND_L2],
            beyond * GM_LINE / (L2_SHARE * gm_gpu_l2_bytes_per_clock(e->gpu) * cycles(e->gpu)));
    return norm(f, part);
}

double gm_explain_beyond_lines(const struct gm_explain *e, const struct gm_access_site *site)
{
    double lines = 0, ideal = 0, own = gm_explain_lines(site);

    /* Of one memory together: what one request fetches may serve the next. */
    for (size_t i = 0; i < e->report->sites; i++) {
        const struct gm_access_site *other = &e->report->site[i];
        if (other->kind != site->kind || strcmp(other->memory, site->memory) != 0)
            continue;
        lines += gm_explain_lines(other);
        ideal += fmax(other->sums.units_ideal * GM_SECTOR / GM_LINE, 1);
    }
    return lines > ideal ? own * (1 - ideal / lines) : 0;
}

struct gm_in_flight gm_explain_in_flight(const struct gm_explain *e,
                                         const struct gm_explain_figures *f)
{
    const struct gm_access_sums *load = &e->report->totals.kind[GM_GLOBAL_LOAD];
    double warps = e->report->totals.loading, all = f->bytes_moved;
    struct gm_in_flight r = {-1, -1, -1, -1};

    if (!f->launch || !(load->requests > 0) || !(warps > 0) || e->report->cut)
        return r;
    double rounds = fmax(1, f->barriers_per_block / 2); /* two barriers for each tile of a loop */
    r.requests = fmin(LOADS_AHEAD_MAX, fmax(1, load->requests / warps / rounds));
    /* Of the resident warps, those that load; of a grid that does not fill the GPU, its own. */
    r.warps = fmin(f->occupancy.warps * warps / e->report->totals.warps, warps / e->gpu->sms);
    r.bytes = r.warps * r.requests * load->bytes_moved / load->requests;
    /* Loads have their part of the bandwidth. */
    double part = all > 0 ? load->bytes_moved / all : 1;
    r.needed = part * DRAM_SHARE * e->gpu->dram_gbs * 1e3 * LOAD_US / e->gpu->sms;
    return r;
}
