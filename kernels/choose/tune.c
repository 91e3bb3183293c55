/*
 * tune.c - times the variants of a GPU, for --tune.
 */
#include "kernels/choose/fit.h"
#include "proto/status.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEED 20260101u
#define SETS_MAX 64u   /* of operands, so that caches do not hold those of the next run */
#define MEMORY_PART 4u /* of the device's memory, for all sets */
#define BATCH 12u      /* sets of a run, whose times are told together */
#define RUNS_MIN 3u
#define RUNS_MAX 15u
#define RUNS_US 4e3    /* more than RUNS_MIN runs only within this time */
#define SLOWER_MOST 30 /* times the least estimate: a variant beyond is not worth its time */
#define ALIGNMENT 256u
#define PATTERN_BYTES ((uint64_t)1 << 24)
#define SHAPES_MIN 20u /* a profile of fewer would be a worse one than the built-in */
#define ROUNDS 300u

struct tune {
    const struct gm_backend *backend;
    void *context;
    unsigned device;
    const struct gm_device_facts *facts;
    const struct gm_tune_options *options;
    struct gm_buffer pattern; /* of the host: random bytes, that operands are made of */
    struct gm_op *ops;
    struct gm_timed *timed; /* their op is one of ops */
    size_t count;
    unsigned shapes; /* measured */
    double until_s;
    char part[4096]; /* the file while it is not whole */
    FILE *out;
};

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

static bool is_stopped(const struct tune *t)
{
    return (t->options->stop && atomic_load(t->options->stop)) || now_s() >= t->until_s;
}

/* ---- Operands. ---- */

static enum gm_status open_pattern(struct tune *t, struct gm_error *err)
{
    enum gm_status status = t->backend->buffer_get(t->context, PATTERN_BYTES, &t->pattern, err);
    uint64_t random = SEED;

    /* Small floating-point numbers in every type: the exponent's high bits are those of 1. */
    for (uint64_t i = 0; status == GM_OK && i < PATTERN_BYTES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)t->pattern.data)[i] = (uint8_t)((random >> 56 & 0x83) | 0x38);
    }
    return status;
}

static enum gm_status fill(struct tune *t, const struct sets *sets, struct gm_error *err)
{
    uint64_t all = sets->bytes * sets->count;
    enum gm_status status = GM_OK;

    for (uint64_t at = 0; at < all && status == GM_OK; at += PATTERN_BYTES) {
        uint64_t piece = all - at < PATTERN_BYTES ? all - at : PATTERN_BYTES;
        status = t->backend->device_copy(t->context, t->device, sets->memory + at, t->pattern.data,
                                         piece, true, err);
    }
    return status;
}

static enum gm_status open_sets(struct tune *t, const struct gm_op *op, struct sets *ret,
                                struct gm_error *err)
{
    struct sets sets = {.count = SETS_MAX};
    void *memory;

    for (unsigned i = 0; i <= op->operands; i++) {
        const struct gm_matrix *x = i < op->operands ? &op->operand[i] : &op->result;
        sets.at[i < op->operands ? i : GM_OPERANDS_MAX] = sets.bytes;
        sets.bytes += (gm_matrix_bytes(x) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    uint64_t cold = 2 * t->facts->cache_bytes / sets.bytes + 1;
    uint64_t fit = t->facts->memory_bytes / MEMORY_PART / sets.bytes;
    sets.count = cold < sets.count ? (unsigned)cold : sets.count;
    sets.count = fit < sets.count ? (unsigned)fit : sets.count;
    if (sets.count == 0)
        return gm_fail(err, GM_DEVICE_MEMORY, "the device has not enough memory");
    enum gm_status status =
        t->backend->device_get(t->context, t->device, sets.bytes * sets.count, &memory, err);
    if (status != GM_OK)
        return status;
    sets.memory = memory;
    status = fill(t, &sets, err);
    if (status != GM_OK)
        t->backend->device_put(t->context, t->device, memory);
    else
        *ret = sets;
    return status;
}

/* ---- Times. ---- */

/* Runs a variant on so many sets, from `set` on. *ret_us: the time of one. */
static enum gm_status run_once(struct tune *t, const struct gm_op *op,
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
    enum gm_status status = t->backend->run(t->context, t->device, 0, tasks, count);
    for (unsigned i = 0; i < count && status == GM_OK; i++)
        status = task[i].status;
    *ret_us = (fmax(task[0].times.kernel, 0) + fmax(task[0].times.prepare, 0)) / count;
    return status;
}

/* The least of some runs, after one that does not count: what disturbs a run makes it longer. */
static enum gm_status time_variant(struct tune *t, const struct gm_op *op,
                                   const struct gm_variant *variant, const struct sets *sets,
                                   double *ret_us)
{
    double us, sum = 0, least = HUGE_VAL;
    unsigned runs = 0, most = t->facts->batch_max < BATCH ? t->facts->batch_max : BATCH;
    unsigned count = sets->count < most ? sets->count : most;
    enum gm_status status = run_once(t, op, variant, sets, 0, 1, &us);

    while (status == GM_OK && runs < RUNS_MAX && (runs < RUNS_MIN || sum < RUNS_US)) {
        status = run_once(t, op, variant, sets, runs++ * count + 1, count, &us);
        sum += count * us;
        least = fmin(least, us);
    }
    if (status == GM_OK)
        *ret_us = least;
    return status;
}

/* Times the variants of an operation. One that fails is left out; GM_DEVICE_LOST ends it. */
static enum gm_status measure(struct tune *t, struct gm_op *op, struct gm_error *err)
{
    struct gm_candidate candidates[GM_CANDIDATES_MAX];
    struct sets sets = {.count = 0};

    gm_set_tiles(op, t->facts);
    unsigned n = gm_candidates(op, t->facts, candidates);
    enum gm_status status = n > 0 ? open_sets(t, op, &sets, err) : GM_OK;
    if (status != GM_OK || n == 0)
        return status;
    double least = candidates[0].estimate.us;
    for (unsigned i = 0; i < n && status != GM_DEVICE_LOST && !is_stopped(t); i++) {
        const struct gm_candidate *one = &candidates[i];
        double us;
        if (!one->variant || one->variant->op != op->kind || !gm_may_be_automatic(one->variant) ||
            !(one->estimate.us > 0) || one->estimate.us > SLOWER_MOST * least)
            continue;
        status = time_variant(t, op, one->variant, &sets, &us);
        if (status == GM_OK && us > 0)
            t->timed[t->count++] = (struct gm_timed){
                .op = op, .variant = one->variant->name, .facts = t->facts, .us = us};
    }
    t->backend->device_put(t->context, t->device, sets.memory);
    return status == GM_DEVICE_LOST
               ? gm_fail(err, GM_DEVICE_LOST, "the device failed while it was measured")
               : GM_OK;
}

/* ---- The profile. ---- */

/* Before anything is measured: what cannot be written is said at once. */
static enum gm_status open_file(struct tune *t, struct gm_error *err)
{
    int len = snprintf(t->part, sizeof t->part, "%s.part", t->options->path);

    t->out = len < (int)sizeof t->part ? fopen(t->part, "we") : NULL;
    return t->out
               ? GM_OK
               : gm_fail(err, GM_BAD_PARAMETER, "%s.part cannot be written: %s", t->options->path,
                         len < (int)sizeof t->part ? strerror(errno) : "its name is too long");
}

/* Writes the profile, or nothing: NULL. */
static enum gm_status close_file(struct tune *t, const struct gm_profile *profile, const char *made,
                                 struct gm_error *err)
{
    if (profile)
        gm_profile_write(profile, made, t->out);
    bool whole = fflush(t->out) == 0 && !ferror(t->out) && fsync(fileno(t->out)) == 0;
    int fault = errno;
    whole = fclose(t->out) == 0 && whole && profile;
    if (whole && rename(t->part, t->options->path) == 0)
        return GM_OK;
    fault = whole ? errno : fault;
    unlink(t->part);
    return profile ? gm_fail(err, GM_BAD_PARAMETER, "%s cannot be written: %s", t->options->path,
                             strerror(fault))
                   : GM_OK;
}

static enum gm_status finish(struct tune *t, struct gm_fit_losses *ret_losses, struct gm_error *err)
{
    struct gm_profile *profile = NULL;
    char date[16], made[64], driver[24] = "unknown";
    time_t now = time(NULL);
    struct tm day;

    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
    snprintf(made, sizeof made, "by gemmd --tune, of %u operations.", t->shapes);
    const char *at = strstr(t->facts->detail, "driver ");
    if (at)
        sscanf(at, "driver %23[0-9.]", driver);
    const struct gm_measured_on on = {t->facts->name, driver, date, GM_VERSION};
    enum gm_status status =
        t->shapes < SHAPES_MIN
            ? gm_fail(err, GM_BAD_PARAMETER,
                      "%u operations were measured, and a profile takes at least %u", t->shapes,
                      SHAPES_MIN)
            : gm_profile_fit(t->timed, t->count, 0, ROUNDS, &on, &profile, err);
    enum gm_status written = close_file(t, profile, made, err);
    if (status == GM_OK)
        status = written;
    if (status == GM_OK)
        *ret_losses = gm_profile_losses(t->timed, t->count, profile);
    free(profile);
    return status;
}

enum gm_status gm_tune(const struct gm_backend *backend, void *context, unsigned device,
                       const struct gm_tune_options *options, struct gm_fit_losses *ret_losses,
                       struct gm_error *err)
{
    struct tune t = {.backend = backend,
                     .context = context,
                     .device = device,
                     .facts = backend->describe(context, device),
                     .options = options,
                     .until_s = now_s() + options->seconds};
    uint64_t random = SEED;
    struct gm_error error;

    t.ops = calloc(options->shapes + 1, sizeof *t.ops);
    t.timed = calloc((size_t)options->shapes * GM_CANDIDATES_MAX + 1, sizeof *t.timed);
    enum gm_status lost = GM_OK, status = gm_fail(err, GM_MEMORY_FULL, "no memory to measure with");
    if (!t.ops || !t.timed || (status = open_pattern(&t, err)) != GM_OK)
        goto end;
    status = open_file(&t, err);
    if (status != GM_OK)
        goto end;
    for (unsigned i = 0; i < options->shapes && lost != GM_DEVICE_LOST && !is_stopped(&t); i++) {
        t.ops[t.shapes] = gm_draw_op(&random, 1);
        size_t before = t.count;
        lost = measure(&t, &t.ops[t.shapes], &error);
        t.shapes += t.count > before;
        if (options->progress)
            options->progress(options->cls, i, options->shapes);
    }
    if (options->progress)
        options->progress(options->cls, options->shapes, options->shapes);
    status = finish(&t, ret_losses, err);
    if (lost == GM_DEVICE_LOST)
        status = gm_fail(err, GM_DEVICE_LOST, "%s", error.detail);
end:
    backend->buffer_put(context, &t.pattern);
    free(t.timed);
    free(t.ops);
    return status;
}
