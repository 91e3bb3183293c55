/*
 * cost.h - the cost model: estimates the time of an operation before it runs.
 *
 * The least time is the one at the device's measured ceilings. Limits use it: they bound the work
 * asked for, not the slowness of a kernel. The expected time is the least time multiplied by the
 * slowness that recent runs of the variant have shown. The queue's order uses it.
 *
 * The forecast says when a job that is queued will end. Admission uses it.
 */
#ifndef GM_SERVER_SCHED_COST_H
#define GM_SERVER_SCHED_COST_H

#include "kernels/task.h"

#include <stdatomic.h>

#define GM_COST_VARIANTS_MAX 128

/* The slowness of each variant on a device: measured over least time. All zero: no runs yet. Any
 * thread may read and update it; one of two simultaneous updates may be lost. */
struct gm_cost_model {
    _Atomic float log_slowness[GM_COST_VARIANTS_MAX];
    /* For traces, which have no least time: their time over the usual one, TRACE_S. */
    _Atomic float log_trace[GM_COST_VARIANTS_MAX];
    atomic_bool has_run[GM_COST_VARIANTS_MAX];
};

/* Least time of one run, in seconds; 0 if the device's ceilings are unknown. */
double gm_cost_seconds(const struct gm_op *op, const struct gm_device_facts *facts);

/* The same of any work on elements of a type. Where a ceiling is unknown, that of another type or
 * of the GPU's memory is taken, or a rate of the right order of magnitude: more than 0 unless there
 * is nothing to do. */
double gm_cost_work(double flops, double bytes, enum gm_dtype dtype,
                    const struct gm_device_facts *facts);

/* Whether a CPU computes this in less time than it takes to hand it to another thread. */
bool gm_cost_is_tiny(const struct gm_op *op);

/* Expected time of all runs of the task, in seconds; more than 0. */
double gm_cost_expected(const struct gm_cost_model *model, const struct gm_task *task,
                        const struct gm_device_facts *facts);
/* Updates the model with the seconds that a task took. If `stopped`, it would have taken more. */
void gm_cost_learn(struct gm_cost_model *model, const struct gm_task *task,
                   const struct gm_device_facts *facts, double seconds, bool stopped);
/* Whether a task by this variant has ended, and was not stopped. */
bool gm_cost_is_learnt(const struct gm_cost_model *model, const struct gm_variant *variant);
/* Expected time to decode or encode a text on a worker, in seconds. */
double gm_cost_text(uint64_t bytes);
/* Expected time to copy this many bytes, in seconds. */
double gm_cost_copy(uint64_t bytes);

/*
 * The forecast of one device. Its work is counted in seconds of the device, as expected. How many
 * real seconds one of them takes is the pace: streams overlap, jobs share launches, other programs
 * take processors, and estimates are wrong. It is observed. How wrong forecasts were is observed
 * too, relative to them. Pure: no clock, no threads; the owner's mutex guards it.
 */
struct gm_forecast {
    unsigned running;       /* launches */
    double running_s;       /* their work */
    int64_t marked_ns;      /* when the device became busy, or the last launch ended */
    double took_s, done_s;  /* of late: real time in which it was busy, and the work done in it */
    double late, deviation; /* of real times against forecasts: running means */
};

void gm_forecast_init(struct gm_forecast *forecast);
/* A launch of this work begins. */
void gm_forecast_begin(struct gm_forecast *forecast, double device_s, int64_t now_ns);
/* The launch ends, and done_s of its work was done. waiting_s: the work that waits; the pace is
 * that of as much past work. */
void gm_forecast_end(struct gm_forecast *forecast, double device_s, double done_s, double waiting_s,
                     int64_t now_ns);
/* Real seconds for a second of work, if so much lies ahead. */
double gm_forecast_pace(const struct gm_forecast *forecast, double ahead_s, int64_t now_ns);
/* Expected seconds from now to the end of a job: before_s is the work that is done before it
 * begins, beside what runs, and own_s its own time. */
double gm_forecast_s(const struct gm_forecast *forecast, double before_s, double own_s,
                     int64_t now_ns);
/* The latest end of nearly all jobs that are expected to end in so many seconds. */
double gm_forecast_latest_s(const struct gm_forecast *forecast, double expected_s);
/* Learns how long a job took for which expected_s was forecast, own_s of it its own work. It counts
 * as far as it was forecast to need the time that it was allowed. */
void gm_forecast_learn(struct gm_forecast *forecast, double expected_s, double own_s, double took_s,
                       double allowed_s);

/* Returns GM_COST_LIMIT if `runs` runs are too much for a simulated device. Such a device is
 * thousands of times slower than a real one and has no measured ceilings. */
enum gm_status gm_cost_simulated(const struct gm_op *op, uint64_t runs, struct gm_error *err);

#endif
