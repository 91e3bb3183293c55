/*
 * against.c - sets two kernels side by side: their figures, what differs, and what that brings.
 */
#include "server/api/explain/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct side {
    const struct gm_explain *explain;
    struct gm_explain_figures f;
    struct gm_estimate estimate;
    double measured_us; /* negative: not measured */
};

static struct side side_of(const struct gm_explain *e)
{
    struct side side = {.explain = e};

    gm_explain_figures(e, &side.f);
    gm_explain_estimate(e, &side.f, &side.estimate);
    side.measured_us = gm_explain_measured_us(e);
    return side;
}

/* What a part of the time is counted in, and how many. */
static double counted(const struct side *s, enum gm_bound part, const char **ret_unit)
{
    switch (part) {
    case GM_BOUND_L2:
        *ret_unit = "lines asked of L2";
        return s->f.l2_lines;
    case GM_BOUND_L1:
        *ret_unit = "wavefronts through L1 and shared memory";
        return s->f.passes;
    case GM_BOUND_ISSUE:
        *ret_unit = "requests";
        return s->f.requests;
    case GM_BOUND_LATENCY:
        *ret_unit = "waves of blocks";
        return s->estimate.waves;
    case GM_BOUND_DRAM:
        *ret_unit = "bytes that must move";
        return s->f.bytes_min;
    default:
        *ret_unit = "operations";
        return s->f.flops;
    }
}

/* The part of the time that differs most. */
static enum gm_bound most_changed(const struct side *a, const struct side *b)
{
    enum gm_bound most = GM_BOUND_DRAM;

    for (unsigned i = 0; i < GM_BOUNDS; i++)
        if (fabs(a->estimate.part[i] - b->estimate.part[i]) >
            fabs(a->estimate.part[most] - b->estimate.part[most]))
            most = (enum gm_bound)i;
    return most;
}

/* Smaller differences are rounded away, or chance. */
static bool differ(double a, double b)
{
    return fabs(a - b) > 0.005 * fmax(fabs(a), fabs(b));
}

void gm_explain_changed(const struct gm_explain *e, char changed[GM_EXPLAIN_WORDS_MAX],
                        char brought[GM_EXPLAIN_WORDS_MAX])
{
    struct side a = side_of(e), b = side_of(e->against);
    bool measured = a.measured_us > 0 && b.measured_us > 0;
    double us = measured ? a.measured_us : a.estimate.us;
    double other = measured ? b.measured_us : b.estimate.us;
    const char *unit, *name = e->variant->name, *than = e->against->variant->name;

    if (!a.estimate.known || !b.estimate.known) {
        snprintf(changed, GM_EXPLAIN_WORDS_MAX,
                 "One of the two could not be traced to its end: compare figures per request.");
    } else {
        enum gm_bound part = most_changed(&a, &b);
        double from = counted(&a, part, &unit), to = counted(&b, part, &unit);
        double now = b.estimate.part[part], before = a.estimate.part[part];
        char counts[128] = "";
        if (differ(from, to))
            snprintf(counts, sizeof counts, " (%s: %.4g instead of %.4g)", unit, to, from);
        if (differ(now, before))
            snprintf(changed, GM_EXPLAIN_WORDS_MAX,
                     "What changes most from %s to %s: %s, %.4g us instead of %.4g%s.", name, than,
                     gm_bound_name(part), now, before, counts);
        else
            snprintf(changed, GM_EXPLAIN_WORDS_MAX,
                     "What is counted of %s and %s takes the same time: it does not tell them "
                     "apart.",
                     name, than);
    }
    char times[64] = "as fast";
    if (differ(us, other))
        snprintf(times, sizeof times, "%.3g times as %s", us > other ? us / other : other / us,
                 us > other ? "fast" : "slow");
    if (us > 0 && other > 0)
        snprintf(brought, GM_EXPLAIN_WORDS_MAX,
                 "What it brings: %s takes %.4g us and %s %.4g (%s on %s): %s.", than, other, name,
                 us, measured ? "measured" : "estimated", e->gpu->name, times);
    else
        snprintf(brought, GM_EXPLAIN_WORDS_MAX, "What it brings has not been measured.");
}

static void say_row(FILE *out, const char *what, double a, double b)
{
    if (a >= 0 || b >= 0) {
        char text[2][32] = {"-", "-"};
        const double value[2] = {a, b};
        for (int i = 0; i < 2; i++)
            if (value[i] >= 0)
                snprintf(text[i], sizeof text[i], "%.6g", value[i]);
        fprintf(out, "%-40s  %16s  %16s\n", what, text[0], text[1]);
    }
}

void gm_explain_side_by_side(FILE *out, const struct gm_explain *e)
{
    const struct side a = side_of(e), b = side_of(e->against);
    const double none = -1;

    fprintf(out, "%-40s  %16s  %16s\n", "", e->variant->name, e->against->variant->name);
    say_row(out, "measured, us", a.measured_us, b.measured_us);
    say_row(out, "estimate, us", a.estimate.known ? a.estimate.us : none,
            b.estimate.known ? b.estimate.us : none);
    for (unsigned i = 0; i < GM_BOUNDS; i++) {
        char what[48];
        snprintf(what, sizeof what, "  %s", gm_bound_name((enum gm_bound)i));
        say_row(out, what, a.estimate.known ? a.estimate.part[i] : none,
                b.estimate.known ? b.estimate.part[i] : none);
    }
    say_row(out, "requests", a.f.requests, b.f.requests);
    say_row(out, "sectors of global memory", a.f.sectors, b.f.sectors);
    say_row(out, "  times the minimum", a.f.sectors_ratio, b.f.sectors_ratio);
    say_row(out, "  bytes used / moved, %", 100 * a.f.bytes_used / fmax(a.f.bytes_moved, 1),
            100 * b.f.bytes_used / fmax(b.f.bytes_moved, 1));
    say_row(out, "  that hit L1, %", a.f.l1_hit_percent, b.f.l1_hit_percent);
    say_row(out, "lines asked of L2", a.f.l2_lines, b.f.l2_lines);
    say_row(out, "  loads that hit L2, %", a.f.l2_hit_percent, b.f.l2_hit_percent);
    say_row(out, "wavefronts of shared memory", a.f.wavefronts, b.f.wavefronts);
    say_row(out, "  the ideal", a.f.wavefronts_ideal, b.f.wavefronts_ideal);
    say_row(out, "barriers per block", a.f.barriers_per_block, b.f.barriers_per_block);
    say_row(out, "warps of a multiprocessor", a.f.occupancy.warps, b.f.occupancy.warps);
    say_row(out, "waves of blocks", a.estimate.known ? a.estimate.waves : none,
            b.estimate.known ? b.estimate.waves : none);
}
