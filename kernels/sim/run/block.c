/*
 * block.c - runs one block of threads, each as a fiber.
 *
 * A fiber runs until it must wait: at a barrier for the block, at a warp operation for its lanes,
 * or because it is too far ahead of its warp. Warps run one after the other; within a warp, lane
 * after lane. Results do not depend on that order unless the kernel has a race, which is reported.
 */
#include "job.h"
#include "kernels/access.h"
#include "kernels/sim/watch/dependent.h"
#include "worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Events between two checks for a stop: some milliseconds. */
#define LOOK_EVENTS 65536u

#define STACKS_BYTES (GM_SIM_THREADS_MAX * GM_SIM_STACK_BYTES)
/* Room below all stacks. A thread whose local arrays are too large (CUDA allows 512 KiB) then
 * reaches its first step, where that is noticed. */
#define STACKS_SLACK ((size_t)768 << 10)
/* The part of a stack that is left to functions which the kernel calls in the simulator. */
#define STACK_SPARE ((size_t)12 << 10)

enum gm_status gm_sim_worker_open(struct gm_sim_worker **ret, struct gm_error *err)
{
    /* Stacks and tables take memory only as far as they are touched. */
    struct gm_sim_worker *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (w == MAP_FAILED)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the simulator's threads");
    char *stacks = mmap(NULL, STACKS_SLACK + STACKS_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        munmap(w, sizeof(*w));
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the simulator's stacks");
    }
    w->stacks = stacks + STACKS_SLACK;
    *ret = w;
    return GM_OK;
}

void gm_sim_worker_close(struct gm_sim_worker *w)
{
    if (!w)
        return;
    if (w->dynamic)
        munmap(w->dynamic, w->shadow.dynamic_bytes);
    gm_shadow_close(&w->shadow);
    gm_tally_free(&w->tally);
    munmap(w->stacks - STACKS_SLACK, STACKS_SLACK + STACKS_BYTES);
    munmap(w, sizeof(*w));
}

struct gm_sim_dim gm_sim_thread_idx(void)
{
    return gm_sim_worker->current->idx;
}

struct gm_sim_dim gm_sim_block_idx(void)
{
    return gm_sim_worker->block;
}

struct gm_sim_dim gm_sim_block_dim(void)
{
    return gm_sim_worker->job->launch->block;
}

struct gm_sim_dim gm_sim_grid_dim(void)
{
    return gm_sim_worker->job->launch->grid;
}

void *gm_sim_dynamic_shared(void)
{
    return gm_sim_worker->dynamic;
}

void gm_sim_fence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- Threads --------------------------------------------------------------------------- */

static void stop_here(struct gm_sim_worker *w)
{
    struct gm_sim_thread *t = w->current;

    gm_fiber_switch(&t->fiber, &w->scheduler);
}

void gm_sim_yield(struct gm_sim_worker *w)
{
    stop_here(w);
}

static void set_fault(struct gm_sim_worker *w, uintptr_t pc, const char *format, va_list args)
{
    struct gm_sim_fault *fault = &w->fault;
    struct gm_sim_thread *t = w->current;

    w->broken = true;
    if (fault->found)
        return;
    fault->found = true;
    fault->block = w->block;
    if (w->unwritten.reader && !w->left_out) { /* every other fault follows from this one */
        fault->thread = w->unwritten.reader->idx;
        fault->pc = w->unwritten.pc;
        snprintf(fault->text, sizeof(fault->text), "%s", w->unwritten.text);
        return;
    }
    fault->thread = t->idx;
    fault->pc = pc;
    vsnprintf(fault->text, sizeof(fault->text), format, args);
}

/* Ends the fiber for good; it is started anew for its next block. */
static _Noreturn void leave(struct gm_sim_worker *w)
{
    w->current->started = false;
    stop_here(w);
    abort();
}

void gm_sim_fail(struct gm_sim_worker *w, uintptr_t pc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set_fault(w, pc, format, args);
    va_end(args);
    leave(w);
}

/* Whether to abandon the block: a stop, or the probe knows that the block takes too long, or the
 * time is up. */
static bool given_up(struct gm_sim_worker *w)
{
    const struct gm_sim_job *job = w->job;

    return (job->stop && atomic_load_explicit(job->stop, memory_order_relaxed)) ||
           (job->probe_max > 0 && w->events > job->probe_max) || w->late;
}

void gm_sim_count_time(struct gm_sim_worker *w, bool begins)
{
    struct timespec now;

    if (!w->job->cpu_ns)
        return;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    int64_t now_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    int64_t more_ns = begins ? 0 : now_ns - w->cpu_mark_ns;
    w->cpu_mark_ns = now_ns;
    w->late |= atomic_fetch_add_explicit(w->job->cpu_ns, more_ns, memory_order_relaxed) + more_ns >
               GM_REPORT_CPU_MS * INT64_C(1000000);
}

/* Sets when the running thread checks for a stop next. */
static void set_look(struct gm_sim_worker *w)
{
    w->look_at = w->thread_end < w->next_look ? w->thread_end : w->next_look;
}

void gm_sim_leave(struct gm_sim_worker *w, struct gm_sim_thread *t)
{
    t->state = GM_SIM_ABSENT;
    t->started = false;
    w->alive--;
    w->absent++;
    w->cut = true;
    w->left_out = true; /* its further writes */
}

void gm_sim_look(struct gm_sim_worker *w)
{
    if (w->events >= w->next_look) {
        w->next_look = w->events + LOOK_EVENTS;
        gm_sim_count_time(w, false);
        w->broken = given_up(w);
    }
    if (!w->broken && w->unwritten.reader && w->events >= w->unwritten.end)
        gm_sim_fail(w, w->unwritten.pc, "%s", w->unwritten.text);
    if (!w->broken && w->events >= w->thread_end)
        gm_sim_leave(w, w->current);
    if (w->broken || w->current->state == GM_SIM_ABSENT)
        leave(w);
    set_look(w);
}

void gm_sim_fail_of(struct gm_sim_worker *w, struct gm_sim_thread *t, uintptr_t pc,
                    const char *format, ...)
{
    struct gm_sim_thread *current = w->current;
    va_list args;

    w->current = t;
    va_start(args, format);
    set_fault(w, pc, format, args);
    va_end(args);
    w->current = current;
}

void gm_sim_check_index(struct gm_sim_worker *w)
{
    if (w->current->bad_pc != 0)
        gm_sim_fail(w, w->current->bad_pc, "out of bounds: index %lld", w->current->bad_index);
}

/* A fiber is reused from block to block. */
static void thread_body(void *cls)
{
    struct gm_sim_thread *t = cls;

    for (;;) {
        struct gm_sim_worker *w = gm_sim_worker;
        w->job->launch->run(w->job->launch->call);
        gm_sim_check_index(w);
        gm_sim_check_waited(w);
        t->state = GM_SIM_DONE;
        w->alive--;
        stop_here(w);
    }
}

/* Grants each thread an equal part of the events left to its block, in whatever order they run. */
static void grant(struct gm_sim_worker *w)
{
    uint64_t max = w->job->block_max, left = w->events < max ? max - w->events : 0;

    w->thread_end = max > 0 ? w->events + left / w->alive : UINT64_MAX;
    set_look(w);
}

/* Runs a thread until it waits, ends or is too far ahead. */
static void run_thread(struct gm_sim_worker *w, struct gm_sim_thread *t)
{
    w->current = t;
    grant(w);
    if (t->started) {
        gm_fiber_switch(&w->scheduler, &t->fiber);
    } else {
        t->started = true;
        if (!gm_fiber_start(&w->scheduler, w->stacks + t->tid * GM_SIM_STACK_BYTES,
                            GM_SIM_STACK_BYTES, thread_body, t)) {
            t->started = false;
            w->broken = w->refused = true;
        }
    }
    w->current = NULL;
}

/* ---- Warps ------------------------------------------------------------------------------- */

/* Runs a warp until all of its lanes are at a barrier of the block, or have ended. */
static void run_warp(struct gm_sim_worker *w, unsigned index)
{
    unsigned first = index * GM_WARP;
    unsigned lanes = w->threads - first < GM_WARP ? w->threads - first : GM_WARP;
    struct gm_sim_thread *warp = &w->thread[first];

    w->warp_weight = w->weight * w->warps_like[index];
    do {
        bool ran = true;
        while (ran) {
            ran = false;
            for (unsigned lane = 0; lane < lanes && !w->broken; lane++) {
                if (warp[lane].state != GM_SIM_READY || w->log_end[lane] == GM_SIM_LOG_EVENTS)
                    continue;
                run_thread(w, &warp[lane]);
                ran = true;
            }
            if (w->broken)
                return;
            gm_sim_trace(w, first, lanes);
        }
        if (given_up(w)) {
            w->broken = true;
            return;
        }
    } while (gm_sim_release_warp(w, warp, lanes));
}

/* ---- The block ----------------------------------------------------------------------------- */

void gm_sim_syncthreads(void)
{
    struct gm_sim_worker *w = gm_sim_worker;

    gm_sim_check_index(w);
    w->current->wait_pc = (uintptr_t)__builtin_return_address(0) - 1;
    w->current->value = 0;
    w->current->state = GM_SIM_BARRIER;
    stop_here(w);
}

int gm_sim_syncthreads_reduce(int value, enum gm_sim_block_op op)
{
    struct gm_sim_worker *w = gm_sim_worker;
    struct gm_sim_thread *t = w->current;

    gm_sim_check_index(w);
    t->wait_pc = (uintptr_t)__builtin_return_address(0) - 1;
    t->value = value != 0;
    t->state = GM_SIM_BARRIER;
    stop_here(w);
    uint64_t count = t->value;
    return op == GM_SIM_COUNT ? (int)count
           : op == GM_SIM_ANY ? count > 0
                              : count == w->threads - w->absent;
}

/* The compiler may have duplicated a barrier. */
static bool same_barrier(const struct gm_sim_thread *a, const struct gm_sim_thread *b)
{
    struct gm_symbol_line line[2];

    if (a->wait_pc == b->wait_pc)
        return true;
    gm_symbols_line(a->wait_pc, &line[0]);
    gm_symbols_line(b->wait_pc, &line[1]);
    return line[0].line > 0 && line[0].line == line[1].line &&
           strcmp(line[0].file, line[1].file) == 0;
}

/* All threads wait at barriers or have ended: releases them. Returns false if the block has ended
 * or is broken. */
static bool pass_barrier(struct gm_sim_worker *w)
{
    struct gm_sim_thread *waits = NULL;
    uint64_t count = 0;

    if (w->unwritten.reader && !w->left_out) {
        gm_sim_fail_of(w, w->unwritten.reader, w->unwritten.pc, "%s", w->unwritten.text);
        return false;
    }
    w->unwritten.reader = NULL;
    for (unsigned i = 0; i < w->threads && !waits; i++)
        if (w->thread[i].state == GM_SIM_BARRIER)
            waits = &w->thread[i];
    if (!waits)
        return false;
    for (unsigned i = 0; i < w->threads; i++) {
        struct gm_sim_thread *other = &w->thread[i];
        if (other->state == GM_SIM_ABSENT)
            continue;
        if (other->state == GM_SIM_DONE) {
            gm_sim_fail_of(
                w, waits, waits->wait_pc,
                "divergent: a barrier is not reached by thread (%u,%u,%u), which has ended",
                other->idx.x, other->idx.y, other->idx.z);
            return false;
        }
        if (!same_barrier(other, waits)) {
            gm_sim_fail_of(
                w, waits, waits->wait_pc,
                "divergent: a barrier is not reached by thread (%u,%u,%u), which waits at "
                "another one",
                other->idx.x, other->idx.y, other->idx.z);
            return false;
        }
        count += other->value;
    }
    gm_shadow_barrier(&w->shadow);
    for (unsigned i = 0; i < w->threads; i++) {
        if (w->thread[i].state == GM_SIM_ABSENT)
            continue;
        w->thread[i].synced = w->shadow.barrier;
        w->thread[i].value = count;
        w->thread[i].state = GM_SIM_READY;
    }
    w->tally.barriers += w->weight;
    return true;
}

static void set_threads(struct gm_sim_worker *w)
{
    struct gm_sim_dim dim = w->job->launch->block;

    w->alive = 0;
    gm_sim_pick_warps(w->warps, w->job->few_warps, w->warps_like);
    for (unsigned i = 0; i < w->threads; i++) {
        struct gm_sim_thread *t = &w->thread[i];
        t->idx = (struct gm_sim_dim){i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
        t->tid = i;
        t->warp = i / GM_WARP;
        t->state = w->warps_like[t->warp] > 0 ? GM_SIM_READY : GM_SIM_ABSENT;
        w->alive += t->state == GM_SIM_READY;
        t->synced = w->shadow.barrier;
        t->waited = !w->job->launch->dependent;
        t->stack_floor = (uintptr_t)w->stacks + i * GM_SIM_STACK_BYTES + STACK_SPARE;
        t->bad_pc = 0;
        t->wait_pc = 0;
    }
    w->absent = w->threads - w->alive;
    w->left_out = w->absent > 0;
    w->unwritten.reader = NULL;
    memset(w->log_begin, 0, sizeof(w->log_begin));
    memset(w->log_end, 0, sizeof(w->log_end));
}

/* After a fault, gives up fibers that are in the middle of the block. */
static void abandon(struct gm_sim_worker *w)
{
    for (unsigned i = 0; i < w->threads; i++)
        w->thread[i].started = false;
}

bool gm_sim_block_run(struct gm_sim_worker *w, struct gm_sim_dim block, double weight)
{
    struct gm_sim_dim dim = w->job->launch->block;
    bool beside = w->job->cpu_ns && !w->alone && block.y == w->block.y && block.z == w->block.z;

    w->alone = false;
    w->block = block;
    w->weight = weight;
    w->threads = dim.x * dim.y * dim.z;
    w->warps = (w->threads + GM_WARP - 1) / GM_WARP;
    w->broken = false;
    w->events = w->page_events = 0;
    w->next_look = LOOK_EVENTS;
    if (given_up(w))
        return false;
    w->round++;
    w->loading = 0;
    gm_tally_forget(&w->seen, beside);
    gm_shadow_begin_block(&w->shadow);
    if (w->repeats)
        memset(w->repeats, 0, w->threads * sizeof(*w->repeats));
    set_threads(w);
    do {
        for (unsigned warp = 0; warp < w->warps && !w->broken; warp++)
            run_warp(w, warp);
    } while (!w->broken && pass_barrier(w));
    w->tally.blocks += weight;
    w->tally.warps += weight * w->warps;
    w->launch_events += w->events;
    if (w->broken)
        abandon(w);
    return !w->broken;
}
