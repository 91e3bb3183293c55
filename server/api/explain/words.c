/*
 * words.c - writes a report's two sentences: what is slow and why, and how to fix it.
 *
 * The rules use the figures alone, never a kernel's name, so they also fit kernels that nobody has
 * seen. A variant that has the fix is named if its name or note in the list mentions it.
 */
#include "kernels/gpu.h"
#include "server/api/explain/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_PERCENT 70 /* active lanes: below this, idle lanes get a sentence */
#define AGAIN_MIN                                                                                  \
    1.2 /* lines asked of L2 / lines that hold the data: above this, some are fetched again */
#define L1_HIT_MIN 5      /* percent: from this on hits in L1 are told of */
#define LIMIT_PART 0.85   /* of a kernel's time: from this on its largest part is its limit */
#define LIMIT_COPY 0.9    /* of a copy's rate, which a kernel that moves data has at its limit */
#define LIMIT_CUBLAS 0.95 /* of cuBLAS's rate, which a product at its limit has */
#define UNEVEN 1.25       /* blocks of the busiest multiprocessor: above this, it gets a sentence */
#define BEATEN 0.93 /* another kernel's time in the measured one of this, to be clearly faster */
#define UNEXPLAINED                                                                                \
    1.3 /* times the estimate: what was measured says that something else counts                   \
         */

static const char *const no_words[] = {NULL};

/* Percentage of a warp's lanes that run on average, or that take part in a request to global
 * memory, whichever is less. */
static double busy_percent(const struct gm_explain *e, const struct gm_explain_figures *f)
{
    double lanes = 0, requests = 0;

    for (int kind = GM_GLOBAL_LOAD; kind <= GM_GLOBAL_STORE; kind++) {
        lanes += e->report->totals.kind[kind].lanes;
        requests += e->report->totals.kind[kind].requests;
    }
    double asking = requests > 0 ? 100 * lanes / (requests * GM_WARP) : 100;
    return f->active_percent >= 0 && f->active_percent < asking ? f->active_percent : asking;
}

/* To three digits, for %.15g: that has no exponent where %.3g has one. */
static double three(double number)
{
    double unit = number > 0 ? pow(10, floor(log10(number)) - 2) : 1;

    return number > 0 ? round(number / unit) * unit : number;
}

static void say_idle(const struct gm_explain *e, const struct gm_explain_figures *f,
                     char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const thin[] = {"split_k", "skinny", "batched", NULL};
    const uint32_t *block = f->launch->block;
    bool ragged = block[0] * block[1] * block[2] % GM_WARP != 0;

    double busy = busy_percent(e, f);
    bool idle = f->active_percent >= 0 && busy >= f->active_percent; /* else they have no address */

    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "On average %.3g of a warp's 32 lanes %s; the %s cost as much%s.",
             busy * GM_WARP / 100, idle ? "are active" : "take part in a request to global memory",
             idle ? "idle ones" : "others",
             ragged ? " (the block size is not a multiple of 32)" : "");
    gm_explain_cure(e,
                    ragged
                        ? "Make the block size a multiple of 32 threads"
                        : "Let all lanes of a warp take the same branch, and fit the blocks to the "
                          "shape, so that fewer threads lie outside of it",
                    ragged ? no_words : thin, cure);
}

/* Bytes that lanes ask for in a request to global memory, on average. */
static double bytes_each(const struct gm_explain *e)
{
    double bytes = 0, requests = 0;

    for (int kind = GM_GLOBAL_LOAD; kind <= GM_GLOBAL_ATOMIC; kind++) {
        bytes += e->report->totals.kind[kind].bytes_useful;
        requests += e->report->totals.kind[kind].requests;
    }
    return requests > 0 ? bytes / requests : 0;
}

static void say_latency(const struct gm_explain *e, const struct gm_explain_figures *f,
                        char why[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const vector[] = {"vector", "per access", NULL};
    struct gm_in_flight flight = gm_explain_in_flight(e, f);
    bool enough = flight.bytes > flight.needed;

    if (flight.bytes < 0) {
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "blocks load nothing, and each wave of them takes the time to begin and to store");
        gm_explain_cure(e, "Let each thread store more results", no_words, cure);
        return;
    }
    if (f->barriers_per_block > 0)
        snprintf(why, GM_EXPLAIN_WORDS_MAX, "a block waits for its loads and at %.3g barrier%s",
                 f->barriers_per_block, f->barriers_per_block == 1 ? "" : "s");
    else
        snprintf(
            why, GM_EXPLAIN_WORDS_MAX,
            "the %.3g warps of a multiprocessor have %.3g kB of loads under way at a time, and "
            "none between one block and the next; to keep memory busy the loads' share of "
            "bandwidth times latency is needed at any time, %.3g kB (Little's law)",
            flight.warps, flight.bytes * 1e-3, flight.needed * 1e-3);
    gm_explain_cure(e,
                    enough ? "Let blocks overlap: more and smaller ones on a multiprocessor, so "
                             "that some load while others wait or store"
                           : "Have more bytes under way: 16 bytes for each lane and request, or "
                             "several loads before the first is used",
                    enough ? no_words : vector, cure);
}

static void say_issue(const struct gm_explain *e, char why[GM_EXPLAIN_WORDS_MAX],
                      char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const vector[] = {"vector", "per access", "register", NULL};
    double each = bytes_each(e);

    snprintf(why, GM_EXPLAIN_WORDS_MAX,
             "a request moves %.3g of 512 bytes that it could, and some ten instructions go with "
             "each",
             each);
    gm_explain_cure(e, "Move 16 bytes for each lane and request, so that fewer requests do", vector,
                    cure);
}

static void cure_of_product(const struct gm_explain *e, bool tiled, char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const tile[] = {"tiled", NULL}, *const larger[] = {"register", NULL};

    gm_explain_cure(e,
                    tiled ? "Compute more with each loaded element: larger tiles, and several "
                            "results per thread, kept in registers"
                          : "Load each element once per block into a tile in shared memory, where "
                            "all threads of the block read it",
                    tiled ? larger : tile, cure);
}

/* Passes through L1 and shared memory, or lines of L2. */
static void say_reuse(const struct gm_explain *e, const struct gm_explain_figures *f, bool lines,
                      char why[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const vector[] = {"vector", NULL}, *const whole[] = {"vectorized",
                                                                            "unaligned", "vector",
                                                                            NULL};
    bool tiled = f->wavefronts > 0, product = e->op->kind == GM_OP_MATMUL;

    if (lines)
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "%.4g lines of 128 bytes are asked of the L2 cache, and %.4g hold the operands "
                 "and the result: %s",
                 f->l2_lines, f->bytes_min / GM_LINE,
                 !product ? "some are asked for again, or for bytes that are not needed"
                 : tiled  ? "each tile that needs an element fetches it again"
                          : "each block that needs an element fetches it again");
    else
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "%s passes %.4g wavefronts, one a clock on each multiprocessor%s",
                 tiled ? "the data stage of L1 and shared memory" : "the L1 cache", f->passes,
                 product ? ", because each multiply-add takes its operands from there, with "
                           "instructions of its own"
                         : "");
    if (!product && lines)
        gm_explain_cure(e, "Let rows, tiles and warps begin at lines of 128 bytes, without padding",
                        whole, cure);
    else if (!product)
        gm_explain_cure(e, "Move 16 bytes for each lane and request", vector, cure);
    else
        cure_of_product(e, tiled, cure);
}

/* The place that costs most beyond its ideal, though the kernel would hardly be faster without;
 * NULL if there is none. */
static const struct gm_access_site *hidden(const struct gm_explain *e, struct gm_site_figures *ret)
{
    const struct gm_access_site *most = NULL;

    for (size_t i = 0; i < e->report->sites; i++) {
        struct gm_site_figures f;
        gm_explain_site(e, &e->report->site[i], &f);
        if (f.wasteful && (!most || f.cost > ret->cost)) {
            most = &e->report->site[i];
            *ret = f;
        }
    }
    return most;
}

/* "tiled.cu:40, load of `tile`, 32-way bank conflict" */
#define WASTE_MAX 192
static const char *place_of(const struct gm_access_site *site, const struct gm_site_figures *f,
                            char out[WASTE_MAX])
{
    const char *name = strrchr(site->file, '/');

    snprintf(out, WASTE_MAX, "%s:%u, %s of `%s`, %s", name ? name + 1 : site->file, site->line,
             gm_explain_verb(site->kind), site->memory, f->verdict);
    return out;
}

/* How a sentence begins that does not blame a place. */
#define OPENING_MAX 256
static const char *opening(const struct gm_explain *e, char out[OPENING_MAX])
{
    char place[WASTE_MAX];
    struct gm_site_figures f;
    const struct gm_access_site *site = hidden(e, &f);

    if (site)
        snprintf(out, OPENING_MAX, "What is wasted (%s) costs little, but ",
                 place_of(site, &f, place));
    else
        snprintf(out, OPENING_MAX, "No request is wasteful, but ");
    return out;
}

/* What memory moves: caches may be too small for what is loaded again. */
static const char *moved_bytes(const struct gm_explain_figures *f)
{
    return f->dram_bytes > AGAIN_MIN * f->bytes_min ? "the bytes that miss the caches"
                                                    : "the bytes that must move";
}

/* What takes the time, where no place is to blame and memory is not the limit. */
static void say_part(const struct gm_explain *e, const struct gm_explain_figures *f,
                     const struct gm_estimate *estimate, enum gm_bound bound,
                     char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const words[GM_BOUNDS] = {
        [GM_BOUND_L2] = "the L2 cache", [GM_BOUND_L1] = "the data stage of L1 and shared memory",
        [GM_BOUND_ISSUE] = "issuing",   [GM_BOUND_ARITHMETIC] = "arithmetic",
        [GM_BOUND_LATENCY] = "latency", [GM_BOUND_DRAM] = "memory",
    };
    char why[GM_EXPLAIN_WORDS_MAX], begin[OPENING_MAX];
    const struct gm_access_site *site;
    struct gm_site_figures wasted;

    if (bound == GM_BOUND_LATENCY)
        say_latency(e, f, why, cure);
    else if (bound == GM_BOUND_ISSUE && e->op->kind != GM_OP_MATMUL)
        say_issue(e, why, cure);
    else
        say_reuse(e, f, bound == GM_BOUND_L2, why, cure);
    if (bound == GM_BOUND_L2 && e->op->kind != GM_OP_MATMUL && (site = hidden(e, &wasted)))
        gm_explain_place_words(e, site, problem, cure); /* whose lines they are */
    const double dram = estimate->part[GM_BOUND_DRAM];
    const double arithmetic = estimate->part[GM_BOUND_ARITHMETIC];
    const double most = fmax(dram, arithmetic);
    if (bound == GM_BOUND_L2 && dram >= estimate->part[bound] && dram >= arithmetic)
        snprintf(problem, GM_EXPLAIN_WORDS_MAX,
                 "%s%s take memory %.15g of the estimated %.15g us: %.300s.", opening(e, begin),
                 moved_bytes(f), three(dram), three(estimate->us), why);
    else if (most >= estimate->part[bound])
        snprintf(problem, GM_EXPLAIN_WORDS_MAX,
                 "%s%s takes %.15g of the estimated %.15g us, and beside it %s %.15g: %.300s.",
                 opening(e, begin), arithmetic >= dram ? "arithmetic" : "memory", three(most),
                 three(estimate->us), words[bound], three(estimate->part[bound]), why);
    else
        snprintf(
            problem, GM_EXPLAIN_WORDS_MAX,
            "%s%s takes %.15g of the estimated %.15g us, where memory needs %.15g for %s: %.300s.",
            opening(e, begin), words[bound], three(estimate->part[bound]), three(estimate->us),
            three(dram), moved_bytes(f), why);
}

static unsigned preparing(const struct gm_access_report *report)
{
    unsigned passes = 0;

    for (size_t i = 0; i < report->launches; i++)
        passes += report->launch[i].prepares;
    return passes;
}

/* A kernel at its limit, in which something is wasted that this limit hides: a student would
 * stumble over a bank conflict of which nothing is said. */
static void say_hidden(const struct gm_explain *e, const struct gm_estimate *estimate,
                       const struct gm_access_site *site, const struct gm_site_figures *f,
                       bool arithmetic, const char *what, const char *again,
                       char problem[GM_EXPLAIN_WORDS_MAX], char more[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const padded[] = {"padded", "swizzl", NULL}, *const none[] = {NULL};
    bool shared = gm_access_is_shared(site->kind);
    const char *name = gm_explain_variant(e, shared ? padded : none);
    char place[WASTE_MAX], costs[96] = "";

    if (shared)
        snprintf(costs, sizeof costs, ", which costs %.3g us of shared memory's time,", f->cost);
    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "%s, and hides what is wasted (%s)%s behind %s: they take %.15g of the estimated "
             "%.15g us, of which an empty kernel takes %.3g%s.",
             arithmetic ? "Arithmetic is the limit" : "Memory is the limit",
             place_of(site, f, place), costs, what,
             three(estimate->part[arithmetic ? GM_BOUND_ARITHMETIC : GM_BOUND_DRAM]),
             three(estimate->us), estimate->launch_us, again);
    snprintf(more, GM_EXPLAIN_WORDS_MAX,
             " Without the waste%s%s%s the kernel would hardly be faster here; %s.",
             name ? " (kernel=" : "", name ? name : "", name ? ")" : "",
             arithmetic ? "where arithmetic is faster it counts"
                        : "on a GPU with faster memory it counts");
}

static void say_fine(const struct gm_explain *e, const struct gm_explain_figures *f,
                     const struct gm_estimate *estimate, char problem[GM_EXPLAIN_WORDS_MAX],
                     char cure[GM_EXPLAIN_WORDS_MAX])
{
    bool arithmetic = estimate->bound == GM_BOUND_ARITHMETIC;
    unsigned more = preparing(e->report);
    char passes[96] = ".", again[128] = "", hides[GM_EXPLAIN_WORDS_MAX] = "";
    struct gm_site_figures wasted;
    const struct gm_access_site *site = hidden(e, &wasted);

    if (f->l1_hit_percent >= L1_HIT_MIN)
        snprintf(again, sizeof again, "; %.3g %% of loaded sectors hit the L1 cache",
                 f->l1_hit_percent);
    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "Nothing is wasted that costs time: %s take %.15g of the estimated %.15g us, of which "
             "an empty kernel takes %.3g%s.",
             arithmetic ? "the multiply-adds" : moved_bytes(f),
             three(estimate->part[arithmetic ? GM_BOUND_ARITHMETIC : GM_BOUND_DRAM]),
             three(estimate->us), estimate->launch_us, again);
    if (site)
        say_hidden(e, estimate, site, &wasted, arithmetic,
                   arithmetic ? "the multiply-adds" : moved_bytes(f), again, problem, hides);
    if (more > 0)
        snprintf(passes, sizeof passes, "; rearranging the data before and after takes %u more %s.",
                 more, more == 1 ? "pass" : "passes");
    snprintf(cure, GM_EXPLAIN_WORDS_MAX,
             arithmetic
                 ? "The limit is arithmetic: %s reaches %.5g GFLOP/s without tensor cores%s"
                 : "The limit is the memory itself: %s moves at most %.5g GB/s, and a copy is no "
                   "faster%s",
             e->gpu->name, arithmetic ? gm_explain_peak(e) : e->gpu->dram_gbs, passes);
    strncat(cure, hides, GM_EXPLAIN_WORDS_MAX - 1 - strlen(cure));
}

/* The part of the time that is beside DRAM's and the arithmetic's, and the largest. */
static enum gm_bound most_beside(const struct gm_explain_figures *f,
                                 const struct gm_estimate *estimate)
{
    /* Lines that hold the data once are no excess. */
    bool again = f->l2_lines > AGAIN_MIN * f->bytes_min / GM_LINE;
    enum gm_bound most = again ? GM_BOUND_L2 : GM_BOUND_L1;

    for (unsigned i = most; i < GM_BOUNDS; i++)
        if (i != GM_BOUND_ARITHMETIC && estimate->part[i] > estimate->part[most])
            most = (enum gm_bound)i;
    return most;
}

/* The fastest variant of those that were measured, which has a time. */
static const char *fastest(const struct gm_explain *e, const struct gm_measured *measured)
{
    const struct gm_variant *v, *best = NULL;

    for (size_t i = 0; (v = gm_variant_at(i)); i++) {
        double us =
            v->op == e->op->kind && v->run[GM_DEVICE_SIM] ? gm_measured_us(measured, v->name) : -1;
        if (us > 0 && (!best || us < gm_measured_us(measured, best->name)))
            best = v;
    }
    return best ? best->name : NULL;
}

/* What was measured of this operation, and the kernel's time there; NULL: nothing, or not it alone.
 */
static const struct gm_measured *measured_of(const struct gm_explain *e, double *ret_us)
{
    bool same;
    const struct gm_measured *measured = gm_measured_find(e->gpu, e->op, &same);

    *ret_us = measured ? gm_measured_us(measured, e->variant->name) : -1;
    return *ret_us > 0 && preparing(e->report) == 0 ? measured : NULL;
}

/* Whether a measurement shows that the kernel is at its limit: it nearly has the rate of a copy, or
 * of cuBLAS if no plain kernel is faster. */
static bool is_measured_at_limit(const struct gm_explain *e)
{
    double us;
    const struct gm_measured *measured = measured_of(e, &us);

    if (!measured)
        return false;
    if (e->op->kind != GM_OP_MATMUL)
        return measured->copy_us >= LIMIT_COPY * us;
    return gm_measured_us(measured, "cublas") >= LIMIT_CUBLAS * us &&
           gm_measured_us(measured, fastest(e, measured)) >= GM_EXPLAIN_FASTER * us;
}

/* The time of the fastest plain kernel as a part of this one's, as measured; -1: not known. */
static double part_of_fastest(const struct gm_explain *e)
{
    double us;
    const struct gm_measured *measured = measured_of(e, &us);

    return measured ? gm_measured_us(measured, fastest(e, measured)) / us : -1;
}

/* Whether another plain kernel was measured to be faster, clearly. */
static bool is_beaten(const struct gm_explain *e)
{
    double part = part_of_fastest(e);

    return part > 0 && part < BEATEN;
}

static bool is_at_limit(const struct gm_explain *e, const struct gm_explain_figures *f,
                        const struct gm_estimate *estimate)
{
    /* What idle multiprocessors would do is no limit of the arithmetic. */
    double dram = estimate->part[GM_BOUND_DRAM],
           most = estimate->part[GM_BOUND_ARITHMETIC] / fmax(1, estimate->uneven);

    /* Moves fetch each line once; products rely on caches. */
    double fetched = f->dram_bytes >= 0 ? f->dram_bytes : f->l2_lines * GM_LINE;
    bool again = e->op->kind != GM_OP_MATMUL && f->l1_hit_percent < L1_HIT_MIN &&
                 fetched > AGAIN_MIN * f->bytes_min;

    return estimate->known && !is_beaten(e) && !again &&
           (dram > most ? dram : most) >= LIMIT_PART * (estimate->us - estimate->launch_us);
}

/* A kernel that took longer than all that was counted explains. */
static void say_waits(const struct gm_explain *e, const struct gm_explain_figures *f,
                      const struct gm_estimate *estimate, char problem[GM_EXPLAIN_WORDS_MAX],
                      char cure[GM_EXPLAIN_WORDS_MAX])
{
    char begin[OPENING_MAX], why[GM_EXPLAIN_WORDS_MAX];

    if (e->op->kind == GM_OP_MATMUL)
        say_reuse(e, f, true, why, cure);
    else
        say_latency(e, f, why, cure);
    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "%son an %s it takes %.4g us, and what was counted explains %.4g of them: the rest is "
             "latency, of loads that wait for one another and of warps that wait for these.",
             opening(e, begin), e->gpu->name, gm_explain_measured_us(e), estimate->us);
}

/* Where blocks are fewer than multiprocessors, or some of these have one more to do. */
static void say_few_blocks(const struct gm_explain *e, const struct gm_explain_figures *f,
                           char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const smaller[] = {"split-K", "several matrices", "smaller", NULL};
    char begin[OPENING_MAX];

    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "%sthe grid has %.0f block%s, and %s has %u multiprocessors: %s.", opening(e, begin),
             f->blocks, f->blocks == 1 ? "" : "s", e->gpu->name, e->gpu->sms,
             f->blocks < e->gpu->sms ? "the others are idle"
                                     : "some have one block more to do, and the others wait");
    gm_explain_cure(e, "Use smaller tiles, or divide the sums among blocks", smaller, cure);
}

static bool is_launch(const struct gm_estimate *estimate)
{
    return estimate->us - estimate->launch_us < estimate->launch_us / 2;
}

static void say_launch(const struct gm_estimate *estimate, char problem[GM_EXPLAIN_WORDS_MAX],
                       char cure[GM_EXPLAIN_WORDS_MAX])
{
    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "The launch takes most of the time: of the estimated %.3g us an empty kernel takes "
             "%.3g.",
             estimate->us, estimate->launch_us);
    snprintf(cure, GM_EXPLAIN_WORDS_MAX,
             "Give one launch more to do; what the kernel does matters little at this size.");
}

static void say_kernel(const struct gm_explain *e, const struct gm_explain_figures *f,
                       const struct gm_estimate *estimate, char problem[GM_EXPLAIN_WORDS_MAX],
                       char cure[GM_EXPLAIN_WORDS_MAX])
{
    enum gm_bound beside = most_beside(f, estimate);
    /* What multiprocessors do by themselves; memory and its caches serve all alike. */
    bool own = estimate->bound == GM_BOUND_L1 || estimate->bound == GM_BOUND_ISSUE ||
               estimate->bound == GM_BOUND_ARITHMETIC;

    if (is_at_limit(e, f, estimate))
        say_fine(e, f, estimate, problem, cure);
    else if (gm_explain_measured_us(e) > UNEXPLAINED * estimate->us && f->blocks >= e->gpu->sms)
        say_waits(e, f, estimate, problem, cure);
    else if (is_launch(estimate))
        say_launch(estimate, problem, cure);
    else if (f->blocks < e->gpu->sms && (beside != GM_BOUND_LATENCY || e->op->kind == GM_OP_MATMUL))
        say_few_blocks(e, f, problem, cure);
    else if (f->blocks >= e->gpu->sms && own && estimate->uneven > UNEVEN)
        say_few_blocks(e, f, problem, cure);
    else
        say_part(e, f, estimate, beside, problem, cure);
    if (part_of_fastest(e) >= GM_EXPLAIN_FASTER) /* then the technique has been tried */
        snprintf(cure, GM_EXPLAIN_WORDS_MAX,
                 "No other plain kernel was faster on this shape, or on one like it.");
}

static void say_measured_limit(const struct gm_explain *e, const struct gm_explain_figures *f,
                               const struct gm_estimate *estimate,
                               char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    bool product = e->op->kind == GM_OP_MATMUL;
    double dram = estimate->part[GM_BOUND_DRAM], arithmetic = estimate->part[GM_BOUND_ARITHMETIC];
    /* A product is taken for one that arithmetic limits unless it is known to be another. */
    bool moves = estimate->known && dram > arithmetic;

    if (moves && (!product || is_at_limit(e, f, estimate))) {
        say_fine(e, f, estimate, problem, cure);
        return;
    }
    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "Nothing is wasted that costs time: on an %s the kernel has the rate of %s.",
             e->gpu->name, product ? "cuBLAS" : "a copy");
    snprintf(cure, GM_EXPLAIN_WORDS_MAX, "%s",
             !product ? "The limit is the memory itself."
             : moves  ? "No plain kernel here is faster."
                      : "No plain kernel here is faster; tensor cores are.");
}

/* A kernel without an estimate. */
static void say_cut(const struct gm_explain *e, const struct gm_explain_figures *f,
                    char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    bool tiled = f->wavefronts > 0;

    if (!e->report->cut) {
        snprintf(problem, GM_EXPLAIN_WORDS_MAX,
                 "No block of this kernel fits on a multiprocessor of %s.", e->gpu->name);
        snprintf(cure, GM_EXPLAIN_WORDS_MAX, "Use smaller blocks, or less shared memory for each.");
        return;
    }
    struct gm_site_figures wasted;
    snprintf(problem, GM_EXPLAIN_WORDS_MAX, "%s in the traced part of the kernel%s.",
             hidden(e, &wasted) ? "Little is wasted" : "No request is wasteful",
             e->op->kind != GM_OP_MATMUL ? ", which runs too long to be traced to its end"
             : tiled ? "; what counts is how many multiply-adds each load from shared memory serves"
                     : ", but each multiply-add loads both of its operands");
    if (e->op->kind != GM_OP_MATMUL)
        snprintf(cure, GM_EXPLAIN_WORDS_MAX, "A smaller shape can be traced to its end.");
    else
        cure_of_product(e, tiled, cure);
}

void gm_explain_words(const struct gm_explain *e, char problem[GM_EXPLAIN_WORDS_MAX],
                      char cure[GM_EXPLAIN_WORDS_MAX])
{
    const struct gm_access_site *worst = gm_explain_worst(e);
    struct gm_explain_figures f;
    struct gm_estimate estimate;

    gm_explain_figures(e, &f);
    gm_explain_estimate(e, &f, &estimate);
    if (!f.launch || f.sectors + f.wavefronts == 0) {
        snprintf(problem, GM_EXPLAIN_WORDS_MAX, "%s",
                 e->report->cut ? "The traced part of the kernel accesses no memory."
                                : "Nothing to improve: the kernel accesses no memory.");
        cure[0] = '\0';
    } else if (is_measured_at_limit(e)) {
        say_measured_limit(e, &f, &estimate, problem, cure);
    } else if (worst) {
        gm_explain_place_words(e, worst, problem, cure);
    } else if (!estimate.known) {
        say_cut(e, &f, problem, cure);
    } else if (busy_percent(e, &f) < IDLE_PERCENT && !is_at_limit(e, &f, &estimate) &&
               !is_launch(&estimate)) {
        say_idle(e, &f, problem, cure);
    } else {
        say_kernel(e, &f, &estimate, problem, cure);
    }
}

const struct gm_variant *gm_explain_cured(const struct gm_explain *e)
{
    char problem[GM_EXPLAIN_WORDS_MAX], cure[GM_EXPLAIN_WORDS_MAX];
    const struct gm_variant *v;

    gm_explain_words(e, problem, cure);
    const char *name = strstr(cure, GM_EXPLAIN_CURED_BY);
    for (size_t i = 0; name && (v = gm_variant_at(i)); i++) {
        size_t len = strlen(v->name);
        if (v->op == e->op->kind &&
            strncmp(name + strlen(GM_EXPLAIN_CURED_BY), v->name, len) == 0 &&
            name[strlen(GM_EXPLAIN_CURED_BY) + len] == '.' &&
            gm_variant_check(v, e->op, &e->facts, NULL) == GM_OK)
            return v;
    }
    return NULL;
}

double gm_explain_measured_us(const struct gm_explain *e)
{
    bool same;
    const struct gm_measured *measured = gm_measured_find(e->gpu, e->op, &same);

    return measured && same && preparing(e->report) == 0
               ? gm_measured_us(measured, e->variant->name)
               : -1;
}

bool gm_explain_measured(const struct gm_explain *e, char out[GM_EXPLAIN_WORDS_MAX])
{
    bool same, product = e->op->kind == GM_OP_MATMUL;
    const struct gm_measured *m = gm_measured_find(e->gpu, e->op, &same);
    double us = m ? gm_measured_us(m, e->variant->name) : -1;

    if (!(us > 0))
        return false;
    const char *best = fastest(e, m);
    double baseline = product ? gm_measured_us(m, "cublas") : m->copy_us;
    double best_us = gm_measured_us(m, best);
    char share[64] = "", other[128] = "";
    if (baseline > 0)
        snprintf(share, sizeof share, ", %.3g %% of %s", 100 * baseline / us,
                 product ? "cuBLAS" : "a copy");
    if (strcmp(best, e->variant->name) == 0)
        snprintf(other, sizeof other, "; no other plain kernel was faster");
    else if (baseline > 0)
        snprintf(other, sizeof other, "; %s %.4g us, %.3g %%", best, best_us,
                 100 * baseline / best_us);
    else
        snprintf(other, sizeof other, "; %s %.4g us", best, best_us);
    snprintf(out, GM_EXPLAIN_WORDS_MAX, "Measured on an %s%s%s%s: %.4g us%s%s.", e->gpu->name,
             preparing(e->report) > 0 ? ", with the passes before it" : "",
             same ? "" : ", the nearest shape, ", same ? "" : m->shape, us, share, other);
    return true;
}

void gm_explain_place(const struct gm_explain *e, const struct gm_explain_figures *f,
                      char out[GM_EXPLAIN_WORDS_MAX])
{
    if (e->report->cut)
        snprintf(out, GM_EXPLAIN_WORDS_MAX, "not known: only a part of the kernel was traced");
    else if (f->executed_intensity < 0 || f->ridge < 0)
        snprintf(out, GM_EXPLAIN_WORDS_MAX, "memory is the %s",
                 f->flops > 0 ? "only known limit: this arithmetic has no known ceiling"
                              : "limit: there is no arithmetic");
    else
        snprintf(
            out, GM_EXPLAIN_WORDS_MAX,
            "%s of the ridge, at %.4g operations per byte that DRAM must move; the lowest roof "
            "is %s",
            f->intensity >= f->ridge ? "right" : "left", f->ridge,
            strcmp(f->roof, "l1_and_shared") == 0 ? "that of L1 and shared memory" : f->roof);
}
