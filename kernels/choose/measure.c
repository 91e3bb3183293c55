/*
 * measure.c - times the variants of an operation on a device, on operands that caches do not hold.
 */
#include "kernels/choose/fit.h"
#include "proto/status.h"

#include <math.h>
#include <time.h>

#define SEED 20260101u
#define SETS_MAX 64u   /* of operands, so that caches do not hold those of the next run */
#define MEMORY_PART 4u /* of the device's memory, for all sets */
#define BATCH 12u      /* sets of a run, whose times are told together */
#define RUNS_MIN 3u
#define RUNS_MAX 15u
#define RUNS_US 4e3    /* more than RUNS_MIN runs only within this time */
#define SLOWER_MOST 30 /* times the least estimate: a variant beyond is not worth its time */
#define PATTERN_BYTES ((uint64_t)1 << 24)

/* An operation's matrices, several times, in one piece of the device's memory. */
struct sets {
    char *memory;
    uint64_t at[GM_OPERANDS_MAX + 1], bytes; /* offsets in a set; the result's is the last */
    unsigned count;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Operands. ---- */

enum gm_status gm_measure_open(const struct gm_backend *backend, void *context, unsigned device,
                               struct gm_measure *ret, struct gm_error *err)
{
    struct gm_measure m = {.backend = backend,
                           .context = context,
                           .device = device,
                           .facts = backend->describe(context, device),
                           .until_s = HUGE_VAL};
    enum gm_status status = backend->buffer_get(context, PATTERN_BYTES, &m.pattern, err);
    uint64_t random = SEED;

    if (status != GM_OK)
        return status;
    /* Small floating-point numbers in every type: the exponent's high bits are those of 1. */
    for (uint64_t i = 0; i < PATTERN_BYTES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)m.pattern.data)[i] = (uint8_t)((random >> 56 & 0x83) | 0x38);
    }
    *ret = m;
    return GM_OK;
}

void gm_measure_close(struct gm_measure *m)
{
    m->backend->buffer_put(m->context, &m->pattern);
}

void gm_measure_until(struct gm_measure *m, double seconds, const atomic_bool *stop)
{
    m->until_s = now_s() + seconds;
    m->stop = stop;
}

bool gm_measure_is_stopped(const struct gm_measure *m)
{
    return (m->stop && atomic_load(m->stop)) || now_s() >= m->until_s;
}

static enum gm_status fill(struct gm_measure *m, const struct sets *sets, struct gm_error *err)
{
    uint64_t all = sets->bytes * sets->count;
    enum gm_status status = GM_OK;

    for (uint64_t at = 0; at < all && status == GM_OK; at += PATTERN_BYTES) {
        uint64_t piece = all - at < PATTERN_BYTES ? all - at : PATTERN_BYTES;
        status = m->backend->device_copy(m->context, m->device, sets->memory + at, m->pattern.data,
                                         piece, true, err);
    }
    return status;
}

static enum gm_status open_sets(struct gm_measure *m, const struct gm_op *op, struct sets *ret,
                                struct gm_error *err)
{
    struct sets sets = {.count = SETS_MAX};
    void *memory;

    for (unsigned i = 0; i <= op->operands; i++) {
        const struct gm_matrix *x = i < op->operands ? &op->operand[i] : &op->result;
        sets.at[i < op->operands ? i : GM_OPERANDS_MAX] = sets.bytes;
        sets.bytes += (gm_matrix_bytes(x) + GM_DEVICE_ALIGNMENT - 1) & ~(GM_DEVICE_ALIGNMENT - 1);
    }
    if (sets.bytes == 0)
        return gm_fail(err, GM_BAD_SHAPE, "there are no elements");
    uint64_t cold = 2 * m->facts->cache_bytes / sets.bytes + 1;
    uint64_t fit = m->facts->memory_bytes / MEMORY_PART / sets.bytes;
    sets.count = cold < sets.count ? (unsigned)cold : sets.count;
    sets.count = fit < sets.count ? (unsigned)fit : sets.count;
    if (sets.count == 0)
        return gm_fail(err, GM_DEVICE_MEMORY, "the device has not enough memory");
    enum gm_status status =
        m->backend->device_get(m->context, m->device, sets.bytes * sets.count, &memory, err);
    if (status != GM_OK)
        return status;
    sets.memory = memory;
    status = fill(m, &sets, err);
    if (status != GM_OK)
        m->backend->device_put(m->context, m->device, memory);
    else
        *ret = sets;
    return status;
}

/* ---- Times. ---- */

/* Runs a variant on so many sets, from `set` on. *ret_us: the time of one. */
static enum gm_status run_once(struct gm_measure *m, const struct gm_op *op,
                               const struct gm_variant *variant, const struct sets *sets,
                               unsigned set, unsigned count, double *ret_us)
{
    struct gm_task task[BATCH], *tasks[BATCH];

    for (unsigned i = 0; i < count; i++) {
        char *memory = sets->memory + sets->bytes * ((set + i) % sets->count);
        tasks[i] = &task[i];
        task[i] = (struct gm_task){.op = *op,
                                   .variant = variant,
                                   .repeat = 1,
                                   .head_start = true,
                                   .on_device = GM_RESULT_ON_DEVICE | ((1u << op->operands) - 1)};
        for (unsigned j = 0; j < op->operands; j++)
            task[i].op.operand[j].data = memory + sets->at[j];
        task[i].op.result.data = memory + sets->at[GM_OPERANDS_MAX];
    }
    enum gm_status status = m->backend->run(m->context, m->device, 0, tasks, count);
    for (unsigned i = 0; i < count && status == GM_OK; i++)
        status = task[i].status;
    *ret_us = (fmax(task[0].times.kernel, 0) + fmax(task[0].times.prepare, 0)) / count;
    return status;
}

/* The least of some runs, after one that does not count: what disturbs a run makes it longer. */
static enum gm_status time_variant(struct gm_measure *m, const struct gm_op *op,
                                   const struct gm_variant *variant, const struct sets *sets,
                                   double *ret_us)
{
    double us, sum = 0, least = HUGE_VAL;
    unsigned runs = 0, most = m->facts->batch_max < BATCH ? m->facts->batch_max : BATCH;
    unsigned count = sets->count < most ? sets->count : most;
    enum gm_status status = run_once(m, op, variant, sets, 0, 1, &us);

    while (status == GM_OK && runs < RUNS_MAX && (runs < RUNS_MIN || sum < RUNS_US)) {
        status = run_once(m, op, variant, sets, runs++ * count + 1, count, &us);
        sum += count * us;
        least = fmin(least, us);
    }
    if (status == GM_OK)
        *ret_us = least;
    return status;
}

/* Not what takes much longer than others, nor what has no estimate; but what lacks only numbers,
 * which its times are to give. */
static bool is_worth_timing(const struct gm_op *op, const struct gm_device_facts *facts,
                            const struct gm_candidate *one, double least)
{
    if (!one->variant || one->variant->op != op->kind || !gm_may_be_automatic(one->variant))
        return false;
    return one->estimate.us > 0 ? one->estimate.us <= SLOWER_MOST * least
                                : gm_lacks_numbers(op, op->kind, one->name, facts);
}

enum gm_status gm_measure_op(struct gm_measure *m, struct gm_op *op,
                             struct gm_timed ret[GM_CANDIDATES_MAX], unsigned *ret_count,
                             struct gm_error *err)
{
    struct gm_candidate candidates[GM_CANDIDATES_MAX];
    struct sets sets = {.count = 0};

    *ret_count = 0;
    gm_set_tiles(op, m->facts);
    unsigned n = gm_candidates(op, m->facts, candidates);
    enum gm_status status = n > 0 ? open_sets(m, op, &sets, err) : GM_OK;
    if (status != GM_OK || n == 0)
        return status;
    double least = candidates[0].estimate.us;
    for (unsigned i = 0; i < n && status != GM_DEVICE_LOST && !gm_measure_is_stopped(m); i++) {
        const struct gm_candidate *one = &candidates[i];
        double us;
        if (!is_worth_timing(op, m->facts, one, least))
            continue;
        status = time_variant(m, op, one->variant, &sets, &us);
        if (status == GM_OK && us > 0)
            ret[(*ret_count)++] = (struct gm_timed){
                .op = op, .variant = one->variant->name, .facts = m->facts, .us = us};
    }
    m->backend->device_put(m->context, m->device, sets.memory);
    return status == GM_DEVICE_LOST
               ? gm_fail(err, GM_DEVICE_LOST, "the device failed while it was measured")
               : GM_OK;
}
