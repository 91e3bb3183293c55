/*
 * text.c - an access report for people: two sentences on what is slow and why, then a table.
 *
 * The table lists the access sites in the source, their lines, and the totals.
 */
#include "server/text.h"
#include "server/api/explain/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRAP 92 /* characters in a line of text */

static void say_head(FILE *out, const struct gm_explain *e, const struct gm_explain_figures *f)
{
    static const char *const names[GM_OPERANDS_MAX] = {"a", "b", "c"};
    char shape[GM_SHAPE_TEXT_MAX];

    fprintf(out, "%s, kernel %s, %s: ", gm_op_name(e->op->kind), e->variant->name,
            gm_dtype_name(e->op->result.dtype));
    for (unsigned i = 0; i < e->op->operands; i++)
        fprintf(out, "%s%s %s", i ? ", " : "", names[i],
                gm_matrix_shape_text(&e->op->operand[i], shape));
    fprintf(out, " -> %s\n", gm_matrix_shape_text(&e->op->result, shape));
    for (size_t i = 0; i < e->report->launches; i++) {
        const struct gm_launch_report *l = &e->report->launch[i];
        fprintf(out, "%s%s: grid %ux%ux%u, block %ux%ux%u, %llu bytes of shared memory per block\n",
                l->kernel, l->prepares ? " (prepares, not counted below)" : "", l->grid[0],
                l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
                (unsigned long long)l->shared);
    }
    if (e->report->cut)
        fprintf(out,
                "Traced: %.0f of %.0f blocks, not to their end (too %s): sums cover the traced "
                "part alone.\n",
                f->traced, f->blocks, e->report->late ? "slow" : "many steps");
    else if (e->report->sampled)
        fprintf(out, "Traced: %.0f of %.0f blocks, interior and edge; figures are for all.\n",
                f->traced, f->blocks);
    else if (f->blocks > 0)
        fprintf(out, "Traced: %s %.0f block%s.\n", f->blocks == 1 ? "the" : "all", f->blocks,
                f->blocks == 1 ? "" : "s");
}

/* Marks the place that `problem` tells of, if it tells of one. */
static void say_sites(FILE *out, const struct gm_explain *e, const char *problem)
{
    const struct gm_access_site *worst = gm_explain_worst(e);
    bool told = worst && strncmp(problem, worst->file, strlen(worst->file)) == 0;

    if (e->report->sites == 0)
        return;
    fprintf(out, "\n%-22s  %-13s  %-10s  %12s  %9s  %8s  %8s  %9s  %s\n", "line", "what", "memory",
            "requests", "lanes/req", "each", "ideal", "used", "verdict");
    for (size_t i = 0; i < e->report->sites; i++) {
        const struct gm_access_site *s = &e->report->site[i];
        struct gm_site_figures f;
        gm_explain_site(e, s, &f);
        const char *name = strrchr(s->file, '/');
        char place[128];
        snprintf(place, sizeof place, "%s:%u", name ? name + 1 : s->file, s->line);
        fprintf(out, "%-22s  %-13s  %-10s  %12.0f  %9.4g  %8.4g  %8.4g  %7.4g %%  %s%s\n", place,
                gm_access_name(s->kind), s->memory, s->sums.requests, f.lanes, f.units, f.ideal,
                f.used_percent, f.verdict, told && s == worst ? "  <--" : "");
    }
    fprintf(out,
            "each, ideal: per request of a warp; in global memory sectors of 32 bytes,\n"
            "in shared memory wavefronts (passes over its 32 banks). used: bytes used / moved\n");
}

static void say_source(FILE *out, const struct gm_explain *e)
{
    const struct gm_access_site *before = NULL;

    for (size_t i = 0; i < e->report->sites; i++) {
        const struct gm_access_site *s = &e->report->site[i];
        bool same_file = before && strcmp(before->file, s->file) == 0;
        if (!same_file)
            fprintf(out, "\n%s\n", s->file);
        if (!same_file || before->line != s->line)
            fprintf(out, "%5u  %s\n", s->line, *s->source ? s->source : "(source not available)");
        before = s;
    }
}

static void say_traffic(FILE *out, const struct gm_explain *e, const struct gm_explain_figures *f)
{
    fprintf(out, "\nglobal memory   %.0f sectors of 32 bytes", f->sectors);
    if (f->sectors_ratio >= 0)
        fprintf(out, ", %.4g times the minimum of %.0f", f->sectors_ratio, f->sectors_min);
    if (f->bytes_moved > 0)
        fprintf(out, "\nbytes           used / moved: %.5g / %.5g, %.4g %%", f->bytes_used,
                f->bytes_moved, 100 * f->bytes_used / f->bytes_moved);
    fprintf(out, "\n");
    if (f->l1_hit_percent >= 0)
        fprintf(out, "caches          %.4g %% of loaded sectors hit L1; %.5g lines are asked of L2",
                f->l1_hit_percent, f->l2_lines);
    if (f->l1_hit_percent >= 0 && f->l2_hit_percent >= 0)
        fprintf(out, ", %.3g %% of what is loaded hits", f->l2_hit_percent);
    fputs(f->l1_hit_percent >= 0 ? "\n" : "", out);
    if (f->wavefronts > 0)
        fprintf(out, "shared memory   %.0f wavefronts; the ideal is %.0f\n", f->wavefronts,
                f->wavefronts_ideal);
    if (f->barriers_per_block > 0)
        fprintf(out, "barriers        %.0f, %.4g per block\n", e->report->totals.barriers,
                f->barriers_per_block);
    if (f->active_percent >= 0)
        fprintf(out, "active lanes    %.4g %%\n", f->active_percent);
}

static void say_occupancy(FILE *out, const struct gm_explain *e, const struct gm_explain_figures *f,
                          const struct gm_estimate *estimate)
{
    const struct gm_gpu *gpu = e->gpu;
    struct gm_in_flight flight = gm_explain_in_flight(e, f);
    double whole = ceil(estimate->waves);

    fprintf(
        out,
        "occupancy       on %s: %u block%s, %u of %u warps (%.4g %%) per multiprocessor, limited "
        "by %s; ",
        gpu->name, f->occupancy.blocks, f->occupancy.blocks == 1 ? "" : "s", f->occupancy.warps,
        gpu->threads_per_sm / GM_WARP, f->occupancy.percent, f->occupancy.limited_by);
    if (f->registers > 0 && f->spilled > 0)
        fprintf(out, "%u registers per thread, and %u bytes spilled\n", f->registers, f->spilled);
    else if (f->registers > 0)
        fprintf(out, "%u registers per thread\n", f->registers);
    else
        fprintf(out, "registers are not counted\n");
    if (estimate->known)
        fprintf(out,
                "waves           %.4g of the blocks that fit at once; in the last, %.3g %% of the "
                "places are idle\n",
                estimate->waves, 100 * (whole - estimate->waves));
    if (flight.bytes >= 0)
        fprintf(out,
                "in flight       %.3g kB of loads per multiprocessor, %.3g request%s of a warp; "
                "bandwidth x latency, the loads' share of it, is %.3g kB\n",
                flight.bytes * 1e-3, flight.requests, flight.requests == 1 ? "" : "s",
                flight.needed * 1e-3);
}

static void say_ceilings(FILE *out, const struct gm_explain *e, const struct gm_explain_figures *f)
{
    const struct gm_gpu *gpu = e->gpu;
    char place[GM_EXPLAIN_WORDS_MAX];

    if (f->flops > 0)
        fprintf(out, "arithmetic      %.4g operations: %.4g per byte that must move", f->flops,
                f->intensity);
    if (f->executed_intensity >= 0)
        fprintf(out, ", %.4g per byte that L1 moves", f->executed_intensity);
    fputs(f->flops > 0 ? "\n" : "", out);
    gm_explain_place(e, f, place);
    fprintf(out, "roofline        %s\n", place);
    if (f->attainable_gflops >= 0)
        fprintf(out, "                at most %.5g of %s's %.5g GFLOP/s (%.3g %%)\n",
                f->attainable_gflops, gpu->name, f->peak_gflops, f->percent_of_peak);
}

static void say_estimate(FILE *out, const struct gm_explain *e, const struct gm_estimate *estimate)
{
    if (!estimate->known)
        return;
    fprintf(out, "estimate        %.4g us on %s, %.3g of them launch; the longest: %s\n",
            estimate->us, e->gpu->name, estimate->launch_us, gm_bound_name(estimate->bound));
    fprintf(out, "                ");
    for (unsigned i = 0; i < GM_BOUNDS; i++)
        fprintf(out, "%s%s %.3g", i ? ", " : "", gm_bound_name((enum gm_bound)i),
                estimate->part[i]);
    fprintf(out, " us\n                %s\n", GM_ESTIMATE_ERROR);
    double measured = gm_explain_measured_us(e);
    if (measured > 0 && fabs(estimate->us / measured - 1) > 0.25)
        fprintf(out,
                "                of this shape %.4g us were measured; the estimate is %.2g times "
                "that\n",
                measured, estimate->us / measured);
}

/* Writes a paragraph, wrapped at spaces. */
static void say_sentence(FILE *out, const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > 0 && column + 1 + word > WRAP) {
            fputc('\n', out);
            column = 0;
        }
        fprintf(out, "%s%.*s", column > 0 ? " " : "", (int)word, text);
        column += word + (column > 0);
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* Says what auto takes, where a kernel was not named and that is not the one that follows. */
static void say_automatic(FILE *out, const struct gm_explain *e)
{
    if (e->automatic && strcmp(e->automatic, e->variant->name) != 0)
        fprintf(out,
                "On %s auto takes %s, which cannot be traced (it uses tensor cores, TMA or a "
                "library); the fastest that can follows.\n",
                e->gpu->name, e->automatic);
}

static void say_verdict(FILE *out, const struct gm_explain *e, const char *problem,
                        const char *cure)
{
    char measured[GM_EXPLAIN_WORDS_MAX];

    fputc('\n', out);
    say_sentence(out, problem);
    if (*cure)
        say_sentence(out, cure);
    if (gm_explain_measured(e, measured))
        say_sentence(out, measured);
}

static void say_kernel(FILE *out, const struct gm_explain *e)
{
    struct gm_explain_figures f;
    struct gm_estimate estimate;
    char problem[GM_EXPLAIN_WORDS_MAX], cure[GM_EXPLAIN_WORDS_MAX];

    gm_explain_figures(e, &f);
    gm_explain_estimate(e, &f, &estimate);
    gm_explain_words(e, problem, cure);
    say_head(out, e, &f);
    say_verdict(out, e, problem, cure);
    say_sites(out, e, problem);
    say_source(out, e);
    if (f.launch) {
        say_traffic(out, e, &f);
        say_occupancy(out, e, &f, &estimate);
        say_ceilings(out, e, &f);
        say_estimate(out, e, &estimate);
    }
}

static void say_against(FILE *out, const struct gm_explain *e)
{
    char changed[GM_EXPLAIN_WORDS_MAX], brought[GM_EXPLAIN_WORDS_MAX];

    gm_explain_changed(e, changed, brought);
    say_sentence(out, changed);
    say_sentence(out, brought);
    fputc('\n', out);
    gm_explain_side_by_side(out, e);
    fputs("\n----\n\n", out);
}

char *gm_explain_text(const struct gm_explain *e)
{
    struct gm_text_stream text;

    if (!gm_text_stream_begin(&text))
        return NULL;
    say_automatic(text.out, e);
    if (e->against)
        say_against(text.out, e);
    say_kernel(text.out, e);
    if (e->against) {
        fputs("\n----\n\n", text.out);
        say_kernel(text.out, e->against);
    }
    return gm_text_stream_end(&text, NULL);
}
