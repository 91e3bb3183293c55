/*
 * text.c - an access report for people: two sentences on what is slow and why, then a table.
 *
 * The table lists the access sites in the source, their lines, and the totals.
 */
#include "server/request/text.h"
#include "server/api/explain/explain.h"

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
        fprintf(out, "Traced: all %.0f blocks.\n", f->blocks);
}

static void say_sites(FILE *out, const struct gm_explain *e)
{
    const struct gm_access_site *worst = gm_explain_worst(e);

    if (e->report->sites == 0)
        return;
    fprintf(out, "\n%5s  %-13s  %-10s  %12s  %9s  %8s  %8s  %s\n", "line", "what", "memory",
            "requests", "lanes/req", "each", "ideal", "verdict");
    for (size_t i = 0; i < e->report->sites; i++) {
        const struct gm_access_site *s = &e->report->site[i];
        struct gm_site_figures f;
        gm_explain_site(e, s, &f);
        fprintf(out, "%5u  %-13s  %-10s  %12.0f  %9.4g  %8.4g  %8.4g  %s%s\n", s->line,
                gm_access_name(s->kind), s->memory, s->sums.requests, f.lanes, f.units, f.ideal,
                f.verdict, s == worst ? "  <--" : "");
    }
    fprintf(out, "each, ideal: per request of a warp; in global memory sectors of 32 bytes,\n"
                 "in shared memory wavefronts (passes over its 32 banks)\n");
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
    fprintf(out, "\n");
    if (f->wavefronts > 0)
        fprintf(out, "shared memory   %.0f wavefronts; the ideal is %.0f\n", f->wavefronts,
                f->wavefronts_ideal);
    if (f->barriers_per_block > 0)
        fprintf(out, "barriers        %.0f, %.4g per block\n", e->report->totals.barriers,
                f->barriers_per_block);
    if (f->active_percent >= 0)
        fprintf(out, "active lanes    %.4g %%\n", f->active_percent);
}

static void say_ceilings(FILE *out, const struct gm_explain *e, const struct gm_explain_figures *f)
{
    const struct gm_gpu *gpu = e->gpu;
    char place[GM_EXPLAIN_WORDS_MAX];

    if (f->launch)
        fprintf(out,
                "occupancy       on %s: %u blocks, %u of %u warps (%.4g %%) per multiprocessor, "
                "limited by %s; registers are not counted\n",
                gpu->name, f->occupancy.blocks, f->occupancy.warps, gpu->threads_per_sm / GM_WARP,
                f->occupancy.percent, f->occupancy.limited_by);
    if (f->flops > 0)
        fprintf(out, "arithmetic      %.4g operations: %.4g per byte that must move", f->flops,
                f->intensity);
    if (f->executed_intensity >= 0)
        fprintf(out, ", %.4g per byte moved", f->executed_intensity);
    fputs(f->flops > 0 ? "\n" : "", out);
    gm_explain_place(e, f, place);
    fprintf(out, "roofline        %s\n", place);
    if (f->attainable_gflops >= 0)
        fprintf(out, "                without caches at most %.5g of %s's %.5g GFLOP/s (%.3g %%)\n",
                f->attainable_gflops, gpu->name, f->peak_gflops, f->percent_of_peak);
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

char *gm_explain_text(const struct gm_explain *e)
{
    char problem[GM_EXPLAIN_WORDS_MAX], cure[GM_EXPLAIN_WORDS_MAX];
    struct gm_explain_figures f;
    struct gm_text_stream text;

    if (!gm_text_stream_begin(&text))
        return NULL;
    FILE *out = text.out;
    gm_explain_figures(e, &f);
    gm_explain_words(e, problem, cure);
    say_head(out, e, &f);
    fputc('\n', out);
    say_sentence(out, problem);
    if (*cure)
        say_sentence(out, cure);
    say_sites(out, e);
    say_source(out, e);
    if (f.launch) {
        say_traffic(out, e, &f);
        say_ceilings(out, e, &f);
    }
    return gm_text_stream_end(&text, NULL);
}
