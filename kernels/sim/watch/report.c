/*
 * report.c - turns sums by code address into a report by source line and memory.
 */
#include "kernels/sim/run/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gm_access_totals gm_sim_totals(const struct gm_exec *exec, enum gm_pass pass)
{
    struct gm_access_totals totals = {0};

    for (size_t i = 0; i < exec->ran_count; i++) {
        const struct gm_tally *tally = &exec->ran[i].tally;
        if (exec->ran[i].report.prepares != (pass == GM_PASS_PREPARES))
            continue;
        for (size_t j = 0; j < tally->count; j++) {
            const struct gm_tally_site *site = &tally->site[j];
            gm_access_add(&totals.kind[site->kind], &site->sums);
            if (site->key % GM_SIM_PIECES == GM_SIM_ASYNC)
                totals.async += site->sums.requests;
        }
        totals.barriers += tally->barriers;
        totals.steps += tally->steps;
        totals.lanes += tally->step_lanes;
        totals.blocks += tally->blocks;
        totals.warps += tally->warps;
        totals.loading += tally->loading;
    }
    return totals;
}

static void name_memory(const struct gm_exec *exec, unsigned memory, char *buf, size_t size)
{
    const struct gm_symbols *symbols = exec->machine->symbols;

    if (memory == GM_SIM_DYNAMIC)
        snprintf(buf, size, "dynamic shared");
    else if (memory >= GM_SIM_SHARED)
        snprintf(buf, size, "%s", gm_symbols_shared(symbols, memory - GM_SIM_SHARED)->from->name);
    else
        snprintf(buf, size, "%s", exec->memory.buffer[memory].name);
}

/* Turns the addresses of an example into offsets, by where the memory began for the thread that
 * made it. Each host thread has its own shared memory, whose variables begin at multiples of
 * 128. */
static void set_offsets(const struct gm_exec *exec, unsigned memory, struct gm_access_example *e)
{
    uintptr_t begin = 0;

    if (memory < GM_SIM_DYNAMIC) {
        begin = exec->memory.buffer[memory].begin;
    } else {
        for (unsigned i = 0; i < gm_pool_threads(exec->machine->pool); i++) {
            const struct gm_sim_worker *w = exec->machine->worker[i];
            uintptr_t at = (uintptr_t)e->offset[__builtin_ctz(e->active)];
            uintptr_t from = (uintptr_t)w->dynamic, bytes = w->shadow.dynamic_bytes;
            if (memory != GM_SIM_DYNAMIC) {
                const struct gm_symbol_shared *s =
                    gm_symbols_shared(exec->machine->symbols, memory - GM_SIM_SHARED);
                from = w->statics + s->begin;
                bytes = s->end - s->begin;
            }
            if (w->statics != 0 && at - from < bytes)
                begin = from;
        }
    }
    for (unsigned lane = 0; lane < GM_WARP; lane++)
        if (e->active >> lane & 1)
            e->offset[lane] -= (int64_t)begin;
}

static struct gm_access_site site_of(const struct gm_exec *exec, const struct gm_tally_site *from)
{
    struct gm_access_site site = {
        .kind = (enum gm_access_kind)from->kind, .sums = from->sums, .example = from->example};
    struct gm_symbol_line line;

    gm_symbols_line(gm_sim_key_pc(from->key), &line);
    memcpy(site.kernel, line.function, sizeof(site.kernel));
    memcpy(site.file, line.file, sizeof(site.file));
    site.line = line.line;
    gm_symbols_source(line.file, line.line, site.source, sizeof(site.source));
    name_memory(exec, from->memory, site.memory, sizeof(site.memory));
    set_offsets(exec, from->memory, &site.example);
    for (unsigned i = 0; i < GM_WARPS_SHOWN; i++) {
        site.warp[i] = from->warp[i];
        if (site.warp[i].active)
            set_offsets(exec, from->memory, &site.warp[i]);
    }
    return site;
}

/* Several instructions are one place to a reader: copies of a loop's body, or members of a
 * structure. */
static bool same_place(const struct gm_access_site *a, const struct gm_access_site *b)
{
    return a->kind == b->kind && a->line == b->line && strcmp(a->kernel, b->kernel) == 0 &&
           strcmp(a->file, b->file) == 0 && strcmp(a->memory, b->memory) == 0;
}

static int by_line(const void *left, const void *right)
{
    const struct gm_access_site *a = left, *b = right;
    int order = strcmp(a->file, b->file);

    if (order == 0)
        order = a->line < b->line ? -1 : a->line > b->line;
    if (order == 0)
        order = (int)a->kind - (int)b->kind;
    return order != 0 ? order : strcmp(a->memory, b->memory);
}

static void add_site(struct gm_access_report *report, const struct gm_access_site *site)
{
    for (size_t i = 0; i < report->sites; i++) {
        struct gm_access_site *other = &report->site[i];
        if (!same_place(other, site))
            continue;
        gm_access_add(&other->sums, &site->sums);
        if (gm_tally_better(&site->example, &other->example)) {
            other->example = site->example;
            memcpy(other->warp, site->warp, sizeof other->warp);
        }
        return;
    }
    report->site[report->sites++] = *site;
}

/* Adds a launch. Parts of one launch are one to a reader. */
static void add_launch(struct gm_access_report *report, const struct gm_launch_report *launch)
{
    struct gm_launch_report *last =
        report->launches > 0 ? &report->launch[report->launches - 1] : NULL;

    if (last && strcmp(last->kernel, launch->kernel) == 0 &&
        memcmp(last->block, launch->block, sizeof(last->block)) == 0 &&
        last->shared == launch->shared && last->prepares == launch->prepares) {
        last->blocks += launch->blocks;
        last->traced += launch->traced;
        last->steps_sampled |= launch->steps_sampled;
        last->cut |= launch->cut;
        return;
    }
    report->launch[report->launches++] = *launch;
}

enum gm_status gm_sim_report(struct gm_exec *exec, struct gm_access_report *ret,
                             struct gm_error *err)
{
    struct gm_access_report report = {.late = exec->late};
    size_t sites = 0;

    for (size_t i = 0; i < exec->ran_count; i++) {
        struct gm_sim_ran *ran = &exec->ran[i];
        double alike = (double)ran->times / (double)ran->runs;
        gm_tally_multiply(&ran->tally, alike);
        ran->report.blocks *= alike;
        ran->times = ran->runs;
        sites += ran->tally.count;
    }
    report.totals = gm_sim_totals(exec, GM_PASS_COMPUTES);
    report.launch = calloc(exec->ran_count + 1, sizeof(*report.launch));
    report.site = calloc(sites + 1, sizeof(*report.site));
    if (!report.launch || !report.site) {
        gm_access_report_clear(&report);
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the access report");
    }
    for (size_t i = 0; i < exec->ran_count; i++) {
        struct gm_launch_report launch = exec->ran[i].report;
        struct gm_symbol_line line;
        gm_symbols_line((uintptr_t)exec->ran[i].kernel, &line);
        memcpy(launch.kernel, line.function, sizeof(launch.kernel));
        add_launch(&report, &launch);
        report.sampled |= launch.traced < launch.blocks || launch.steps_sampled || launch.cut;
        report.cut |= launch.cut;
        for (size_t j = 0; j < exec->ran[i].tally.count && !launch.prepares; j++) {
            struct gm_access_site site = site_of(exec, &exec->ran[i].tally.site[j]);
            add_site(&report, &site);
        }
    }
    qsort(report.site, report.sites, sizeof(*report.site), by_line);
    *ret = report;
    return GM_OK;
}
