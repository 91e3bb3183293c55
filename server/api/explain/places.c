/*
 * places.c - writes what is wrong at one place of the source, and how to fix it; finds variants
 * that have a fix.
 */
#include "kernels/choose/choose.h"
#include "kernels/gpu.h"
#include "server/api/explain/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const no_words[] = {NULL};

/* What kernels take on the GPU: as measured, and as estimated. */
struct times {
    const struct gm_measured *measured; /* NULL: nothing near was */
    struct gm_candidate estimated[GM_CANDIDATES_MAX];
    unsigned count;
};

static double estimated_us(const struct times *times, const char *name)
{
    for (unsigned i = 0; i < times->count; i++)
        if (strcmp(times->estimated[i].name, name) == 0)
            return times->estimated[i].estimate.us;
    return -1;
}

/* Whether another variant is faster: else advice that is followed could lead back. Estimates count
 * where not both were measured, and where not both are estimated either the order of variants.def,
 * in which each kernel improves on those before. */
static bool is_faster(const struct gm_explain *e, const struct times *times, const char *other,
                      bool is_later)
{
    double ours = times->measured ? gm_measured_us(times->measured, e->variant->name) : -1;
    double theirs = times->measured ? gm_measured_us(times->measured, other) : -1;

    if (!(ours > 0 && theirs > 0)) {
        ours = estimated_us(times, e->variant->name);
        theirs = estimated_us(times, other);
    }
    return ours > 0 && theirs > 0 ? theirs <= GM_EXPLAIN_FASTER * ours : is_later;
}

/* The first other variant of the operation whose name or note contains one of the words, earlier
 * words first; the variant has to be faster, as far as that is known. */
const char *gm_explain_variant(const struct gm_explain *e, const char *const *words)
{
    const struct gm_variant *v;
    struct times times;
    size_t own = 0;
    bool same;

    times.measured = gm_measured_find(e->gpu, e->op, &same);
    times.count = gm_candidates_for_gpu(e->op, e->gpu, &e->facts, times.estimated);
    for (size_t i = 0; (v = gm_variant_at(i)); i++)
        own = v == e->variant ? i : own;
    for (; *words; words++) {
        for (size_t i = 0; (v = gm_variant_at(i)); i++) {
            bool speaks = strstr(v->name, *words) || strstr(v->note, *words);
            if (v != e->variant && v->op == e->op->kind && speaks &&
                gm_variant_check(v, e->op, &e->facts, NULL) == GM_OK &&
                is_faster(e, &times, v->name, i >= own))
                return v->name;
        }
    }
    return NULL;
}

/* Writes a technique, and the name of a variant that uses it, if there is one. */
void gm_explain_cure(const struct gm_explain *e, const char *technique, const char *const *words,
                     char cure[GM_EXPLAIN_WORDS_MAX])
{
    const char *name = gm_explain_variant(e, words);

    snprintf(cure, GM_EXPLAIN_WORDS_MAX, "%.500s%s%s%s", technique, name ? GM_EXPLAIN_CURED_BY : "",
             name ? name : "", ".");
}

const char *gm_explain_verb(enum gm_access_kind kind)
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
    static const char *const tile[] = {"padded", "swizzl", "tiled", NULL};
    static const char *const staged[] = {"staged", "structure of arrays", "aligned", NULL};
    long long apart = llabs((long long)f->stride);

    if (f->pattern == GM_PATTERN_STRIDE && apart >= (long long)GM_SECTOR) {
        snprintf(why, GM_EXPLAIN_WORDS_MAX, "neighbouring lanes' addresses are %lld bytes apart",
                 apart);
        gm_explain_cure(
            e,
            "Let neighbouring lanes access neighbouring elements of a row; if the other side "
            "then has the stride, transpose the data in a tile of shared memory",
            tile, cure);
    } else if (f->pattern == GM_PATTERN_STRIDE) {
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "neighbouring lanes' addresses are %lld bytes apart, and each lane accesses %u "
                 "bytes; the bytes between them move too, and move again for later requests",
                 apart, site->example.bytes);
        gm_explain_cure(
            e,
            "Stage the records in shared memory, so that neighbouring lanes access "
            "neighbouring words; or store each member in an array of its own; or pad the "
            "records to 16 bytes and access each as one vector",
            staged, cure);
    } else if (f->pattern == GM_PATTERN_ROW) {
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "its lanes are contiguous, but the first begins in the middle of a sector");
        gm_explain_cure(
            e,
            "Align rows to 32 bytes (pad the leading dimension), or let each warp begin at "
            "the start of a sector",
            no_words, cure);
    } else if (f->pattern == GM_PATTERN_ROWS) {
        snprintf(why, GM_EXPLAIN_WORDS_MAX,
                 "its lanes access %u separate spans, which do not fill their sectors", f->spans);
        gm_explain_cure(e, "Make the block at least a warp wide, so that all lanes access one row",
                        no_words, cure);
    } else {
        snprintf(why, GM_EXPLAIN_WORDS_MAX, "its lanes' addresses have no pattern");
        gm_explain_cure(
            e,
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
    gm_explain_cure(e, technique, padded, cure);
}

void gm_explain_place_words(const struct gm_explain *e, const struct gm_access_site *site,
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
             "%s:%u: each warp's %s %s `%s` %s %.3g %s instead of %.3g: %.300s.", site->file,
             site->line, gm_explain_verb(site->kind),
             strcmp(gm_explain_verb(site->kind), "load") == 0 ? "from" : "to", site->memory,
             shared ? "takes" : "touches", f.units,
             shared ? "wavefronts (passes over the banks)" : "sectors of 32 bytes", f.ideal, why);
}
