/*
 * words.c - writes a report's two sentences: what is slow and why, and how to fix it.
 *
 * The rules use the figures alone, never a kernel's name, so they also fit kernels that nobody has
 * seen. A variant that has the fix is named if its name or note in the list mentions it.
 */
#include "server/api/explain/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_PERCENT 70 /* active lanes: below this, idle lanes get a sentence */
#define AGAIN_MIN 1.5   /* sectors / compulsory sectors: above this, data is loaded repeatedly */
#define OCCUPANCY_PERCENT 50 /* warps: up to this, there may be too few to hide latency */
#define RATIO_FINE 1.05      /* sectors / compulsory sectors: up to this, there is no excess */

static const char *const no_words[] = {NULL};

/* The first other variant of the operation whose name or note contains one of the words; earlier
 * words win. */
static const char *variant_with(const struct gm_explain *e, const char *const *words)
{
    const struct gm_variant *v;

    for (; *words; words++) {
        for (size_t i = 0; (v = gm_variant_at(i)); i++) {
            bool speaks = strstr(v->name, *words) || strstr(v->note, *words);
            if (v != e->variant && v->op == e->op->kind && speaks &&
                gm_variant_check(v, e->op, e->facts, NULL) == GM_OK)
                return v->name;
        }
    }
    return NULL;
}

/* Writes a technique, and the name of a variant that uses it, if there is one. */
static void say_cure(const struct gm_explain *e, const char *technique, const char *const *words,
                     char cure[GM_EXPLAIN_WORDS_MAX])
{
    const char *name = variant_with(e, words);

    snprintf(cure, GM_EXPLAIN_WORDS_MAX, "%s%s%s%s", technique, name ? ": see kernel=" : "",
             name ? name : "", ".");
}

static const char *verb(enum gm_access_kind kind)
{
    switch (kind) {
    case GM_GLOBAL_STORE:
    case GM_SHARED_STORE:
        return "store";
    case GM_GLOBAL_ATOMIC:
    case GM_SHARED_ATOMIC:
        return "atomic";
    default:
        return "load";
    }
}

/* Writes why a request to global memory touches so many sectors. */
static void say_global(const struct gm_explain *e, const struct gm_access_site *site,
                       const struct gm_site_figures *f, char why[GM_EXPLAIN_WORDS_MAX],
                       char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const tile[] = {"padded", "swizzl", NULL};
    static const char *const staged[] = {"staged", "structure of arrays", "aligned", NULL};
    long long apart = llabs((long long)f->stride);

    if (f->pattern == GM_PATTERN_STRIDE && apart >= (long long)GM_SECTOR) {
        snprintf(why, GM_EXPLAIN_WORDS_MAX, "neighbouring lanes' addresses are %lld bytes apart",
                 apart);
        say_cure(e,
                 "Let neighbouring lanes access neighbouring elements of a row; if the other side "
                 "then has the stride, transpose the data in a tile of shared memory",
                 tile, cure);
    } else if (f->pattern == GM_PATTERN_STRIDE) {
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "neighbouring lanes' addresses are %lld bytes apart, and each lane accesses %u "
                 "bytes; the bytes between them move too, and move again for later requests",
                 apart, site->example.bytes);
        say_cure(e,
                 "Stage the records in shared memory, so that neighbouring lanes access "
                 "neighbouring words; or store each member in an array of its own; or pad the "
                 "records to 16 bytes and access each as one vector",
                 staged, cure);
    } else if (f->pattern == GM_PATTERN_ROW) {
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "its lanes are contiguous, but the first begins in the middle of a sector");
        say_cure(e,
                 "Align rows to 32 bytes (pad the leading dimension), or let each warp begin at "
                 "the start of a sector",
                 no_words, cure);
    } else if (f->pattern == GM_PATTERN_ROWS) {
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "its lanes access %u separate spans, which do not fill their sectors", f->spans);
        say_cure(e, "Make the block at least a warp wide, so that all lanes access one row",
                 no_words, cure);
    } else {
        snprintf(why, GM_EXPLAIN_WORDS_MAX, "its lanes' addresses have no pattern");
        say_cure(e,
                 "Sort the work so that neighbouring lanes access neighbouring elements, or gather "
                 "through shared memory",
                 no_words, cure);
    }
}

/* Number of banks that an example's words are in. */
static unsigned banks_of(const struct gm_access_example *example)
{
    struct gm_banks map;
    unsigned banks = 0;

    gm_map_banks(example, &map);
    for (unsigned bank = 0; bank < GM_BANKS; bank++)
        banks += map.words[bank] > 0;
    return banks;
}

static void say_shared(const struct gm_explain *e, const struct gm_access_site *site,
                       const struct gm_site_figures *f, char why[GM_EXPLAIN_WORDS_MAX],
                       char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const padded[] = {"padded", "swizzl", "padding", "no bank", NULL};
    long long apart = llabs((long long)f->stride);
    unsigned bytes = site->example.bytes, banks = banks_of(&site->example);
    char technique[GM_EXPLAIN_WORDS_MAX], row[80] = "";

    if (f->pattern != GM_PATTERN_STRIDE)
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "its words are in %u of the 32 banks, and a bank delivers different words one "
                 "after another",
                 banks);
    else
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "neighbouring lanes' words in `%s` are %lld bytes apart, so that they share %u of "
                 "the 32 banks and wait for each other",
                 site->memory, apart, banks);
    if (f->pattern == GM_PATTERN_STRIDE && bytes > 0 && apart % bytes == 0)
        snprintf(row, sizeof row, " (from %lld to %lld)", apart / bytes, apart / bytes + 1);
    snprintf(technique, sizeof technique,
             "Pad each row of the array by one element%s, so that a column spreads over all banks, "
             "or swizzle the column index with the row index",
             row);
    say_cure(e, technique, padded, cure);
}

static void say_site(const struct gm_explain *e, const struct gm_access_site *site,
                     char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    bool shared = gm_access_is_shared(site->kind);
    char why[GM_EXPLAIN_WORDS_MAX];
    struct gm_site_figures f;

    gm_explain_site(e, site, &f);
    if (shared)
        say_shared(e, site, &f, why, cure);
    else
        say_global(e, site, &f, why, cure);
    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "Line %u: each warp's %s %s `%s` %s %.3g %s instead of %.3g: %.300s.", site->line,
             verb(site->kind), strcmp(verb(site->kind), "load") == 0 ? "from" : "to", site->memory,
             shared ? "takes" : "touches", f.units,
             shared ? "wavefronts (passes over the banks)" : "sectors of 32 bytes", f.ideal, why);
}

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

static void say_idle(const struct gm_explain *e, const struct gm_explain_figures *f,
                     char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    const uint32_t *block = f->launch->block;
    bool ragged = block[0] * block[1] * block[2] % GM_WARP != 0;

    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "On average %.3g of a warp's 32 lanes are active; the idle ones cost as much%s.",
             busy_percent(e, f) * GM_WARP / 100,
             ragged ? " (the block size is not a multiple of 32)" : "");
    say_cure(e,
             ragged ? "Make the block size a multiple of 32 threads"
                    : "Let all lanes of a warp take the same branch, and fit the blocks to the "
                      "shape, so that fewer threads lie outside of it",
             no_words, cure);
}

static void say_again(const struct gm_explain *e, const struct gm_explain_figures *f,
                      char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    static const char *const tile[] = {"tiled", NULL}, *const larger[] = {"register", NULL};
    bool tiled = f->wavefronts > 0;

    snprintf(
        problem, GM_EXPLAIN_WORDS_MAX,
        "Each request takes the fewest sectors that can hold its bytes, but all requests "
        "together take %.3g times the minimum: each %s that needs an element fetches it again.",
        f->sectors_ratio, tiled ? "tile" : "thread");
    say_cure(e,
             tiled ? "Compute more with each loaded element: larger tiles, and several results per "
                     "thread, kept in registers"
                   : "Load each element once per block into a tile in shared memory, where all "
                     "threads of the block read it",
             tiled ? larger : tile, cure);
}

static void say_occupancy(const struct gm_explain *e, const struct gm_explain_figures *f,
                          char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    const struct gm_occupancy *o = &f->occupancy;
    bool shared = strcmp(o->limited_by, "shared memory") == 0;

    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "No access is wasteful, but on %s only %u of %u warps fit on a multiprocessor: few to "
             "hide the latency of memory. The limit is %s.",
             e->gpu->name, o->warps, e->gpu->threads_per_sm / GM_WARP, o->limited_by);
    say_cure(e,
             shared ? "Use less shared memory per block, or more threads on the same amount"
                    : "Use blocks of 128 to 512 threads, so that several fit",
             no_words, cure);
}

static unsigned preparing(const struct gm_access_report *report)
{
    unsigned passes = 0;

    for (size_t i = 0; i < report->launches; i++)
        passes += report->launch[i].prepares;
    return passes;
}

static void say_fine(const struct gm_explain *e, const struct gm_explain_figures *f,
                     char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX])
{
    double ratio = f->sectors_ratio;
    unsigned more = preparing(e->report);
    char times[32] = "", passes[96] = ".";

    if (ratio >= RATIO_FINE)
        snprintf(times, sizeof times, "%.3g times ", ratio);
    snprintf(problem, GM_EXPLAIN_WORDS_MAX,
             "%s is wasted: each request takes the fewest sectors%s that can hold its bytes, and "
             "the sectors of all requests are %sthe minimum.",
             *times ? "Little" : "Nothing", f->wavefronts > 0 ? " and wavefronts" : "", times);
    if (more > 0)
        snprintf(passes, sizeof passes, "; rearranging the data before and after takes %u more %s.",
                 more, more == 1 ? "pass" : "passes");
    snprintf(
        cure, GM_EXPLAIN_WORDS_MAX,
        f->compute_bound
            ? "The limit is now arithmetic: %s reaches %.5g GFLOP/s without tensor cores%s"
            : "The limit is now the memory itself: %s moves at most %.5g GB/s, and a copy is no "
              "faster%s",
        e->gpu->name, f->compute_bound ? f->peak_gflops : e->gpu->dram_gbs, passes);
}

void gm_explain_words(const struct gm_explain *e, char problem[GM_EXPLAIN_WORDS_MAX],
                      char cure[GM_EXPLAIN_WORDS_MAX])
{
    const struct gm_access_site *worst = gm_explain_worst(e);
    struct gm_explain_figures f;

    gm_explain_figures(e, &f);
    if (!f.launch || f.sectors + f.wavefronts == 0) {
        snprintf(problem, GM_EXPLAIN_WORDS_MAX, "%s",
                 e->report->cut ? "The traced part of the kernel accesses no memory."
                                : "Nothing to improve: the kernel accesses no memory.");
        cure[0] = '\0';
    } else if (worst) {
        say_site(e, worst, problem, cure);
    } else if (busy_percent(e, &f) < IDLE_PERCENT) {
        say_idle(e, &f, problem, cure);
    } else if (f.sectors_ratio > AGAIN_MIN) {
        say_again(e, &f, problem, cure);
    } else if (f.occupancy.percent <= OCCUPANCY_PERCENT) {
        say_occupancy(e, &f, problem, cure);
    } else if (e->report->cut) {
        snprintf(problem, GM_EXPLAIN_WORDS_MAX,
                 "Nothing is wasted in the traced part of the kernel: each request takes the "
                 "fewest sectors that can hold its bytes.");
        snprintf(cure, GM_EXPLAIN_WORDS_MAX,
                 "The kernel runs too long to be traced to its end; a smaller shape can be.");
    } else {
        say_fine(e, &f, problem, cure);
    }
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
        snprintf(out, GM_EXPLAIN_WORDS_MAX,
                 "%s of the ridge: %.4g operations per byte, and the ridge is at %.4g",
                 f->compute_bound ? "right" : "left", f->executed_intensity, f->ridge);
}
