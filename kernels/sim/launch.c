/*
 * launch.c - a grid of blocks on the host's cores: all of them to compute, or a sample to explain.
 *
 * The sample: blocks at the ends of each dimension of the grid are taken, since that is where
 * bounds checks bite, and some in between that stand for all the others there. Of long loops the
 * first rounds are traced and the rest counted. Small grids are run whole, and then what is
 * reported is exact.
 */
#include "exec.h"
#include "sample.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Events (steps and accesses of a thread) that the sample of one launch may take: some tenths of
 * a second of one core. */
#define SAMPLE_EVENTS UINT64_C(24000000)
/* Rounds of a loop that are traced in a sample: more than alignment takes to repeat. */
#define SAMPLE_REPEATS 96u
/* Of one block, beyond which its cost is not looked for any further: a few are all that is run. */
#define PROBE_EVENTS UINT64_C(6000000)
#define CHUNKS 64u /* pieces of work that a grid is cut into, for the cores to share */

/* ---- Blocks ------------------------------------------------------------------------------ */

struct grid {
    struct gm_sim_machine *machine;
    const struct gm_sim_job *job;
    uint64_t blocks, chunk;         /* all of them, this many a chunk */
    const struct gm_sim_pick *pick; /* or these alone */
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
    for (uint64_t i = first; i < end && !w->fault.found; i++) {
        struct gm_sim_dim block = grid->pick ? grid->pick[i].block : block_at(grid->job->launch, i);
        if (!gm_sim_block_run(w, block, grid->pick ? grid->pick[i].weight : 1))
            break;
    }
    gm_sim_worker = NULL;
}

static bool run_blocks(struct grid *grid)
{
    uint64_t chunks;

    grid->chunk = grid->pick ? 1 : grid->blocks / CHUNKS + (grid->blocks % CHUNKS != 0);
    chunks = grid->blocks / grid->chunk + (grid->blocks % grid->chunk != 0);
    return gm_pool_run(grid->machine->pool, chunks, grid->job->stop, run_chunk, grid);
}

/* ---- A launch ------------------------------------------------------------------------------ */

static void reset_workers(struct gm_sim_machine *machine)
{
    for (unsigned i = 0; i < gm_pool_threads(machine->pool); i++) {
        gm_tally_reset(&machine->worker[i]->tally);
        memset(&machine->worker[i]->touched, 0, sizeof(machine->worker[i]->touched));
        machine->worker[i]->fault.found = false;
        machine->worker[i]->events = 0;
    }
}

/* In a sample each worker counts how often each thread was where. */
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

    gm_symbols_line(exec->machine->symbols, (uintptr_t)launch->kernel, &at);
    return gm_fail(exec->error, GM_KERNEL_FAULT, "%s: a launch with %llu %s, and %s allows %llu",
                   at.function, value, what, exec->machine->gpu->name, limit);
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
    if (l->block.x == 0 || l->block.y == 0 || l->block.z == 0)
        return fail_launch(exec, l, "threads in a block", 0, GM_SIM_THREADS_MAX);
    return GM_OK;
}

static enum gm_status fail_fault(struct gm_exec *exec, const struct gm_sim_launch *launch,
                                 const struct gm_sim_fault *fault)
{
    struct gm_symbol_line kernel, at;

    gm_symbols_line(exec->machine->symbols, (uintptr_t)launch->kernel, &kernel);
    gm_symbols_line(exec->machine->symbols, fault->pc, &at);
    return gm_fail(exec->error, GM_KERNEL_FAULT,
                   "%s, %s:%u, block (%u,%u,%u), thread (%u,%u,%u): %s", kernel.function, at.file,
                   at.line, fault->block.x, fault->block.y, fault->block.z, fault->thread.x,
                   fault->thread.y, fault->thread.z, fault->text);
}

/* Runs what grid says; whether all is well. */
static enum gm_status run_grid(struct gm_exec *exec, struct grid *grid)
{
    struct gm_sim_machine *machine = exec->machine;
    bool ran = run_blocks(grid);

    for (unsigned i = 0; i < gm_pool_threads(machine->pool); i++)
        if (machine->worker[i]->fault.found)
            return fail_fault(exec, grid->job->launch, &machine->worker[i]->fault);
    return ran ? GM_OK : GM_CANCELLED;
}

/* What one block costs, in events; much more than PROBE_EVENTS where it is more. */
static enum gm_status probe(struct gm_exec *exec, struct gm_sim_job *job, uint64_t *ret)
{
    struct gm_sim_dim size = job->launch->grid;
    struct gm_sim_pick pick = {{size.x / 2, size.y / 2, size.z / 2}, 1};
    struct grid grid = {.machine = exec->machine, .job = job, .blocks = 1, .pick = &pick};

    job->events_max = PROBE_EVENTS;
    enum gm_status status = run_grid(exec, &grid);
    job->events_max = 0;
    *ret = 1;
    for (unsigned i = 0; i < gm_pool_threads(exec->machine->pool); i++)
        *ret += exec->machine->worker[i]->events;
    if (*ret > PROBE_EVENTS)
        *ret = SAMPLE_EVENTS;
    return status;
}

/* Decides which blocks to run, and runs them. *traced: how many those were. */
static enum gm_status run_sample(struct gm_exec *exec, struct gm_sim_job *job, uint64_t blocks,
                                 double *traced)
{
    uint64_t budget = SAMPLE_EVENTS * gm_pool_threads(exec->machine->pool), events;
    struct grid grid = {.machine = exec->machine, .job = job, .blocks = blocks};
    struct gm_sim_pick *picks;

    job->repeats_max = SAMPLE_REPEATS;
    if (!count_repeats(exec->machine, true))
        return gm_fail(exec->error, GM_MEMORY_FULL, "no memory for the simulator's counters");
    enum gm_status status = probe(exec, job, &events);
    reset_workers(exec->machine);
    if (status != GM_OK)
        return status;
    if (blocks <= budget / events) {
        job->repeats_max = 0;
        count_repeats(exec->machine, false);
        *traced = (double)blocks;
        return run_grid(exec, &grid);
    }
    if (!(picks = calloc(GM_SIM_PICKS_MAX, sizeof(*picks))))
        return gm_fail(exec->error, GM_MEMORY_FULL, "no memory for a sample of blocks");
    grid.blocks = gm_sim_pick_blocks(job->launch->grid, budget / events, picks);
    grid.pick = picks;
    *traced = (double)grid.blocks;
    status = run_grid(exec, &grid);
    free(picks);
    return status;
}

static enum gm_status add_ran(struct gm_exec *exec, const struct gm_sim_job *job, double blocks,
                              double traced)
{
    const struct gm_sim_launch *l = job->launch;

    if (exec->ran_count == exec->ran_room) {
        size_t room = exec->ran_room > 0 ? 2 * exec->ran_room : 4;
        struct gm_sim_ran *larger = realloc(exec->ran, room * sizeof(*larger));
        if (!larger)
            return gm_fail(exec->error, GM_MEMORY_FULL, "no memory for the account of a launch");
        exec->ran = larger;
        exec->ran_room = room;
    }
    struct gm_sim_ran *ran = &exec->ran[exec->ran_count++];
    memset(ran, 0, sizeof(*ran));
    ran->kernel = l->kernel;
    for (unsigned i = 0; i < gm_pool_threads(exec->machine->pool); i++)
        gm_tally_merge(&ran->tally, &exec->machine->worker[i]->tally);
    ran->report = (struct gm_launch_report){
        .prepares = exec->pass == GM_PASS_PREPARES,
        .grid = {l->grid.x, l->grid.y, l->grid.z},
        .block = {l->block.x, l->block.y, l->block.z},
        .shared = job->shared_static + l->dynamic_shared,
        .blocks = blocks,
        .traced = traced,
        .steps_sampled = gm_tally_scale(&ran->tally),
    };
    if (ran->tally.lacking)
        return gm_fail(exec->error, GM_MEMORY_FULL, "no memory for the account of a launch");
    if (ran->tally.overflow)
        return gm_fail(exec->error, GM_INTERNAL, "a kernel has more places than can be counted");
    return GM_OK;
}

static void find_variables(struct gm_sim_job *job)
{
    job->shared_static = gm_symbols_shared_bytes(job->symbols, job->kernel);
    for (size_t i = 0; i < gm_symbols_shared_count(job->symbols); i++) {
        const struct gm_symbol_shared *shared = gm_symbols_shared(job->symbols, i);
        if (strcmp(shared->owner, job->kernel->mangled) == 0 &&
            job->variables < GM_SIM_VARIABLES_MAX)
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
                             .kernel = gm_symbols_kernel(machine->symbols, launch->kernel),
                             .stop = exec->stop};
    uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    double traced = (double)blocks;
    enum gm_status status;

    if (blocks == 0)
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

void *gm_scratch(const struct gm_exec *exec)
{
    return exec->scratch;
}

const struct gm_gpu *gm_gpu_of(const struct gm_exec *exec)
{
    return exec->machine->gpu;
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
