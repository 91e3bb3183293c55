/*
 * launch.c - runs the blocks of a grid on the host's cores: all to compute, a sample to explain.
 *
 * The sample has the blocks at the ends of each dimension of the grid, where bounds checks take
 * effect, and some in between that stand for the others. Of long blocks few warps run, by the same
 * rule. Of long loops the first iterations are traced and the rest counted; if even that takes too
 * long, threads are stopped. Small grids run whole, and their reports are exact. Launches of the
 * same shape are run once.
 */
#include "exec.h"
#include "job.h"
#include "kernels/access.h"
#include "kernels/sim/watch/dependent.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Events (steps and accesses of a thread) that all samples of a request may take; a launch may take
 * half of what is left. Events do not depend on the machine and its load, so a request always has
 * the same report. They take some tenths of a second of one core. */
#define REQUEST_EVENTS UINT64_C(48000000)
#define LAUNCH_EVENTS_MIN UINT64_C(100000) /* with fewer, running a launch is not worthwhile */
/* Events that are only counted take this many times less time than traced ones. */
#define COUNTED_PER_TRACED 4u
/* Launches of different shapes: each has its own tally. */
#define LAUNCHES_MAX 64u
/* Launches of one shape that are run if that is cheap, so that small operations are reported
 * exactly. */
#define ALIKE_MAX 4u
/* Traced iterations of a loop in a sample: more than it takes for alignment to repeat. */
#define SAMPLE_REPEATS 96u
/* The most events of a probed block: a block beyond this is long, and few are run. */
#define PROBE_EVENTS UINT64_C(6000000)
#define CHUNKS 64u       /* pieces of a grid, which the cores share */
#define SAMPLE_CHUNKS 8u /* fewer, because each core needs stacks for a block's threads */

/* ---- Blocks ------------------------------------------------------------------------------ */

struct grid {
    struct gm_sim_machine *machine;
    const struct gm_sim_job *job;
    uint64_t blocks, chunk;         /* all blocks; blocks per chunk */
    const struct gm_sim_pick *pick; /* or only these */
};

static struct gm_sim_dim block_at(const struct gm_sim_launch *launch, uint64_t index)
{
    struct gm_sim_dim grid = launch->grid;

    return (struct gm_sim_dim){(unsigned)(index % grid.x), (unsigned)(index / grid.x % grid.y),
                               (unsigned)(index / grid.x / grid.y)};
}

static void run_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct grid *grid = cls;
    struct gm_sim_worker *w = grid->machine->worker[thread];
    uint64_t first = chunk * grid->chunk;
    uint64_t end = grid->blocks - first < grid->chunk ? grid->blocks : first + grid->chunk;

    gm_sim_worker = w;
    w->job = grid->job;
    w->statics = gm_symbols_shared_here(grid->job->symbols);
    w->alone = true; /* what a chunk counts does not depend on who runs it */
    gm_sim_count_time(w, true);
    for (uint64_t i = first; i < end && !w->fault.found; i++) {
        struct gm_sim_dim block = grid->pick ? grid->pick[i].block : block_at(grid->job->launch, i);
        if (!gm_sim_block_run(w, block, grid->pick ? grid->pick[i].weight : 1))
            break;
    }
    gm_sim_count_time(w, false);
    gm_sim_worker = NULL;
}

static bool run_blocks(struct grid *grid)
{
    uint64_t chunks;

    chunks = grid->job->cpu_ns ? SAMPLE_CHUNKS : CHUNKS;
    grid->chunk = grid->blocks / chunks + (grid->blocks % chunks != 0);
    if (grid->job->cpu_ns && grid->chunk == 1)
        grid->chunk = 2; /* a block and one beside it */
    chunks = grid->blocks / grid->chunk + (grid->blocks % grid->chunk != 0);
    return gm_pool_run(grid->machine->pool, chunks, grid->job->stop, run_chunk, grid);
}

/* ---- A launch ------------------------------------------------------------------------------ */

static void reset_workers(struct gm_sim_machine *machine)
{
    for (unsigned i = 0; i < gm_pool_threads(machine->pool); i++) {
        struct gm_sim_worker *w = machine->worker[i];
        gm_tally_reset(&w->tally);
        memset(&w->touched, 0, sizeof(w->touched));
        w->fault.found = w->refused = w->cut = w->late = false;
        w->events = w->page_events = w->launch_events = 0;
    }
}

static uint64_t launch_events(const struct gm_sim_machine *machine)
{
    uint64_t events = 0;

    for (unsigned i = 0; i < gm_pool_threads(machine->pool); i++)
        events += machine->worker[i]->launch_events;
    return events;
}

/* In a sample, makes each worker count how often each thread executes each place. */
static bool count_repeats(struct gm_sim_machine *machine, bool on)
{
    const size_t bytes = GM_SIM_THREADS_MAX * sizeof(*machine->worker[0]->repeats);

    for (unsigned i = 0; i < gm_pool_threads(machine->pool); i++) {
        struct gm_sim_worker *w = machine->worker[i];
        if (on && !w->repeats) {
            void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            w->repeats = map == MAP_FAILED ? NULL : map;
            if (!w->repeats)
                return false;
        } else if (!on && w->repeats) {
            munmap(w->repeats, bytes);
            w->repeats = NULL;
        }
    }
    return true;
}

static enum gm_status fail_launch(struct gm_exec *exec, const struct gm_sim_launch *launch,
                                  const char *what, unsigned long long value,
                                  unsigned long long limit)
{
    struct gm_symbol_line at;

    gm_symbols_line((uintptr_t)launch->kernel, &at);
    return gm_fail(exec->error, GM_KERNEL_FAULT,
                   "%s: a launch with %llu %s, and %s allows at %s %llu", at.function, value, what,
                   exec->machine->gpu->name, value > limit ? "most" : "least", limit);
}

static enum gm_status check_launch(struct gm_exec *exec, const struct gm_sim_job *job)
{
    const struct gm_sim_launch *l = job->launch;
    const struct {
        const char *what;
        uint64_t value, limit;
    } limits[] = {
        {"threads in a block along x", l->block.x, 1024},
        {"threads in a block along y", l->block.y, 1024},
        {"threads in a block along z", l->block.z, 64},
        {"threads in a block", (uint64_t)l->block.x * l->block.y * l->block.z, GM_SIM_THREADS_MAX},
        {"blocks along x", l->grid.x, 2147483647},
        {"blocks along y", l->grid.y, 65535},
        {"blocks along z", l->grid.z, 65535},
        {"bytes of static shared memory", job->shared_static, 49152},
        {"bytes of shared memory a block", job->shared_static + l->dynamic_shared,
         exec->machine->gpu->shared_per_block},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (limits[i].value > limits[i].limit)
            return fail_launch(exec, l, limits[i].what, limits[i].value, limits[i].limit);
    for (size_t i = 0; i < 3; i++)
        if (limits[i].value == 0)
            return fail_launch(exec, l, limits[i].what, 0, 1);
    return GM_OK;
}

static enum gm_status fail_fault(struct gm_exec *exec, const struct gm_sim_launch *launch,
                                 const struct gm_sim_fault *fault)
{
    struct gm_symbol_line kernel, at;

    gm_symbols_line((uintptr_t)launch->kernel, &kernel);
    gm_symbols_line(fault->pc, &at);
    return gm_fail(exec->error, GM_KERNEL_FAULT,
                   "%s, %s:%u, block (%u,%u,%u), thread (%u,%u,%u): %s", kernel.function, at.file,
                   at.line, fault->block.x, fault->block.y, fault->block.z, fault->thread.x,
                   fault->thread.y, fault->thread.z, fault->text);
}

/* Runs the blocks of `grid`, and returns the status. */
static enum gm_status run_grid(struct gm_exec *exec, struct grid *grid)
{
    struct gm_sim_machine *machine = exec->machine;
    bool ran = run_blocks(grid);

    for (unsigned i = 0; i < gm_pool_threads(machine->pool); i++) {
        if (machine->worker[i]->fault.found)
            return fail_fault(exec, grid->job->launch, &machine->worker[i]->fault);
        if (machine->worker[i]->refused)
            return gm_fail(exec->error, GM_INTERNAL,
                           "the system does not start the simulator's threads");
        exec->late |= machine->worker[i]->late;
    }
    return ran ? GM_OK : GM_CANCELLED;
}

/* The cost of one block, in events: of its threads, and of the pages that they touch. */
struct cost {
    uint64_t threads, pages;
};

/* Measures the cost of a block. A cost above PROBE_EVENTS is not measured further. No thread is
 * stopped before that: one of them may do most of the work. */
static enum gm_status probe(struct gm_exec *exec, struct gm_sim_job *job, struct cost *ret)
{
    struct gm_sim_dim size = job->launch->grid;
    struct gm_sim_pick pick = {{size.x / 2, size.y / 2, size.z / 2}, 1};
    struct grid grid = {.machine = exec->machine, .job = job, .blocks = 1, .pick = &pick};

    job->probe_max = PROBE_EVENTS;
    job->block_max = 0;
    enum gm_status status = run_grid(exec, &grid);
    job->probe_max = 0;
    *ret = (struct cost){.threads = 1};
    for (unsigned i = 0; i < gm_pool_threads(exec->machine->pool); i++) {
        const struct gm_sim_worker *w = exec->machine->worker[i];
        ret->threads += w->events - w->page_events;
        ret->pages += w->page_events;
    }
    reset_workers(exec->machine);
    return status;
}

/* Runs `count` blocks, and adds their number to *traced. */
static enum gm_status run_picks(struct gm_exec *exec, struct gm_sim_job *job,
                                const struct gm_sim_pick *pick, uint64_t count, double *traced)
{
    struct grid grid = {.machine = exec->machine, .job = job, .blocks = count, .pick = pick};

    *traced += (double)count;
    return run_grid(exec, &grid);
}

/*
 * Runs a sample of long blocks, of which one may use the whole budget. One from the middle runs
 * first. If the rest of the budget allows it, those at the far ends of all dimensions follow, or
 * only the one at the far end of all. The block from the middle stands for all that are not run.
 */
static enum gm_status run_long(struct gm_exec *exec, struct gm_sim_job *job, uint64_t blocks,
                               uint64_t budget, struct gm_sim_pick *pick, double *traced)
{
    unsigned ends = gm_sim_pick_blocks(job->launch->grid, 1, pick), count = ends;
    struct gm_sim_pick middle = {pick[0].block, 1}, beside = pick[1], far = pick[ends - 1];

    job->few_warps = true;
    job->block_max = budget;
    enum gm_status status = run_picks(exec, job, &middle, 1, traced);
    uint64_t took = launch_events(exec->machine);
    if (took > budget / ends) {
        count = ends > 1 && took <= budget / 2 ? 2 : 1;
        pick[1] = (struct gm_sim_pick){far.block, 1};
        pick[0].weight = (double)(blocks - (count - 1));
    } else if (ends > 2) { /* the others in pairs that lie side by side */
        memmove(&pick[1], &pick[2], (ends - 2) * sizeof(*pick));
        pick[ends - 1] = beside;
    }
    for (unsigned i = 0; i < gm_pool_threads(exec->machine->pool); i++)
        gm_tally_multiply(&exec->machine->worker[i]->tally, pick[0].weight);
    job->block_max = budget / count;
    return status == GM_OK && count > 1 ? run_picks(exec, job, pick + 1, count - 1, traced)
                                        : status;
}

/* Selects the blocks to run, and runs them. *traced: their number. */
static enum gm_status run_sample(struct gm_exec *exec, struct gm_sim_job *job, uint64_t blocks,
                                 double *traced)
{
    uint64_t budget = exec->events_left / 2, spent;
    struct gm_sim_pick *pick;
    struct cost cost;

    *traced = 0;
    if (exec->late || budget < LAUNCH_EVENTS_MIN)
        return GM_OK;
    job->repeats_max = SAMPLE_REPEATS;
    job->cpu_ns = &exec->cpu_ns;
    if (!count_repeats(exec->machine, true) || !(pick = calloc(GM_SIM_PICKS_MAX, sizeof(*pick))))
        return gm_fail(exec->error, GM_MEMORY_FULL, "no memory for a sample of blocks");
    enum gm_status status = probe(exec, job, &cost);
    if (status != GM_OK || exec->late) {
        free(pick);
        return status;
    }
    job->block_max = budget;
    if (cost.threads + cost.pages > PROBE_EVENTS) {
        status = run_long(exec, job, blocks, COUNTED_PER_TRACED * budget, pick, traced);
        spent = launch_events(exec->machine) / COUNTED_PER_TRACED;
    } else if (blocks <= budget / cost.threads) {
        struct grid grid = {.machine = exec->machine, .job = job, .blocks = blocks};
        job->repeats_max = 0;
        count_repeats(exec->machine, false);
        *traced = (double)blocks;
        status = run_grid(exec, &grid);
        spent = blocks * cost.threads;
    } else {
        uint64_t most = budget / (cost.threads + cost.pages);
        unsigned count = gm_sim_pick_blocks(job->launch->grid, most, pick);
        status = run_picks(exec, job, pick, count, traced);
        spent = launch_events(exec->machine);
    }
    free(pick);
    exec->events_left -= spent < budget ? spent : budget;
    return status;
}

/* Finds an earlier launch that differs at most in its arguments, as parts of one launch do. */
static struct gm_sim_ran *find_like(struct gm_exec *exec, const struct gm_sim_launch *l)
{
    for (size_t i = 0; i < exec->ran_count; i++) {
        struct gm_sim_ran *ran = &exec->ran[i];
        if (ran->kernel == (const void *)l->kernel && ran->dynamic_shared == l->dynamic_shared &&
            ran->report.prepares == (exec->pass == GM_PASS_PREPARES) &&
            memcmp(ran->report.grid, &l->grid, sizeof(l->grid)) == 0 &&
            memcmp(ran->report.block, &l->block, sizeof(l->block)) == 0)
            return ran;
    }
    return NULL;
}

/* Whether a launch need not be run because one of the same shape was. If there were too many
 * shapes, the last one stands for the rest. */
static bool count_like(struct gm_exec *exec, const struct gm_sim_launch *launch, double blocks)
{
    struct gm_sim_ran *like = find_like(exec, launch);

    if (like) {
        bool whole = like->report.traced >= like->report.blocks && !like->report.cut;
        if (whole && like->runs < ALIKE_MAX && like->events <= exec->events_left / 4)
            return false;
        like->times++;
    } else if (exec->ran_count == LAUNCHES_MAX) {
        like = &exec->ran[LAUNCHES_MAX - 1];
        like->report.blocks += blocks;
        like->report.cut = true;
    }
    return like != NULL;
}

/* Merges the workers' tallies into that of the launch's shape. */
static enum gm_status merge_tallies(struct gm_exec *exec, struct gm_sim_ran *ran)
{
    bool cut = exec->late;

    for (unsigned i = 0; i < gm_pool_threads(exec->machine->pool); i++) {
        gm_tally_merge(&ran->tally, &exec->machine->worker[i]->tally);
        cut |= exec->machine->worker[i]->cut;
    }
    ran->report.cut |= cut;
    ran->events = launch_events(exec->machine);
    if (ran->tally.lacking)
        return gm_fail(exec->error, GM_MEMORY_FULL, "no memory for the access report of a launch");
    if (ran->tally.overflow)
        return gm_fail(exec->error, GM_INTERNAL,
                       "a kernel has more lines that access memory than can be counted");
    return GM_OK;
}

static enum gm_status add_ran(struct gm_exec *exec, const struct gm_sim_job *job, double blocks,
                              double traced)
{
    const struct gm_sim_launch *l = job->launch;
    struct gm_sim_ran *like = find_like(exec, l);

    if (like) {
        like->report.blocks += blocks;
        like->report.traced += traced;
        like->times++;
        like->runs++;
        return merge_tallies(exec, like);
    }
    if (exec->ran_count == exec->ran_room) {
        size_t room = exec->ran_room > 0 ? 2 * exec->ran_room : 4;
        struct gm_sim_ran *larger = realloc(exec->ran, room * sizeof(*larger));
        if (!larger)
            return gm_fail(exec->error, GM_MEMORY_FULL,
                           "no memory for the access report of a launch");
        exec->ran = larger;
        exec->ran_room = room;
    }
    struct gm_sim_ran *ran = &exec->ran[exec->ran_count++];
    memset(ran, 0, sizeof(*ran));
    ran->kernel = l->kernel;
    ran->dynamic_shared = l->dynamic_shared;
    ran->times = ran->runs = 1;
    ran->report = (struct gm_launch_report){
        .symbol = job->kernel->symbol,
        .prepares = exec->pass == GM_PASS_PREPARES,
        .grid = {l->grid.x, l->grid.y, l->grid.z},
        .block = {l->block.x, l->block.y, l->block.z},
        .shared = job->shared_static + l->dynamic_shared,
        .blocks = blocks,
        .traced = traced,
        .cut = traced == 0,
    };
    enum gm_status status = merge_tallies(exec, ran);
    ran->report.steps_sampled = gm_tally_scale(&ran->tally);
    return status;
}

static void find_variables(struct gm_sim_job *job)
{
    job->shared_static = gm_symbols_shared_bytes(job->symbols, job->kernel);
    for (size_t i = 0; i < gm_symbols_shared_count(job->symbols); i++) {
        const struct gm_symbol_shared *shared = gm_symbols_shared(job->symbols, i);
        if (shared->from->owner == job->kernel && job->variables < GM_SIM_VARIABLES_MAX)
            job->variable[job->variables++] =
                (struct gm_sim_variable){shared->begin, shared->end, (unsigned)i};
    }
}

enum gm_status gm_sim_run(struct gm_exec *exec, const struct gm_sim_launch *launch)
{
    struct gm_sim_machine *machine = exec->machine;
    struct gm_sim_job job = {.launch = launch,
                             .memory = &exec->memory,
                             .before = &exec->before,
                             .symbols = machine->symbols,
                             .kernel = gm_symbols_kernel(launch->kernel),
                             .stop = exec->stop};
    uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    double traced = (double)blocks;
    enum gm_status status;

    if (blocks == 0)
        return GM_OK;
    if (exec->stop && atomic_load_explicit(exec->stop, memory_order_relaxed))
        return GM_CANCELLED;
    if (exec->sampling && count_like(exec, launch, (double)blocks))
        return GM_OK;
    if (!job.kernel)
        return gm_fail(exec->error, GM_INTERNAL, "a kernel without a symbol");
    find_variables(&job);
    if ((status = check_launch(exec, &job)) != GM_OK)
        return status;
    reset_workers(machine);
    if (exec->sampling) {
        status = run_sample(exec, &job, blocks, &traced);
        count_repeats(machine, false);
    } else {
        struct grid grid = {.machine = machine, .job = &job, .blocks = blocks};
        status = run_grid(exec, &grid);
    }
    if (status != GM_OK)
        return status;
    gm_sim_note_launch(exec, launch);
    return add_ran(exec, &job, (double)blocks, traced);
}

void gm_sim_exec_sample(struct gm_exec *exec, bool has_data)
{
    exec->sampling = true;
    exec->events_left = REQUEST_EVENTS;
    exec->memory.pages_max = has_data ? 0 : gm_sim_memory_pages(GM_REPORT_BYTES);
}

unsigned gm_op_count(const struct gm_exec *exec)
{
    return 1 + exec->more;
}

void *gm_scratch(const struct gm_exec *exec)
{
    return exec->scratch;
}

struct gm_kept *gm_kept_of(const struct gm_exec *exec)
{
    (void)exec;
    return NULL; /* the simulator runs a task once */
}

const struct gm_gpu *gm_gpu_of(const struct gm_exec *exec)
{
    return exec->gpu ? exec->gpu : exec->machine->gpu;
}

enum gm_status gm_begin_pass(struct gm_exec *exec, enum gm_pass pass)
{
    exec->pass = pass;
    return GM_OK;
}

void gm_sim_exec_clear(struct gm_exec *exec)
{
    for (size_t i = 0; i < exec->ran_count; i++)
        gm_tally_free(&exec->ran[i].tally);
    free(exec->ran);
    gm_sim_memory_clear(&exec->memory);
    *exec = (struct gm_exec){0};
}
