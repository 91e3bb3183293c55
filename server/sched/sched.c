#include "server/clock.h"
#include "server/limits.h"
#include "server/sched/sched_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *stop_reason(enum gm_status status)
{
    switch (status) {
    case GM_DEADLINE:
        return "the time for this request (--timeout, timeout_ms) passed before it was done";
    case GM_CANCELLED:
        return "the client went away";
    case GM_DRAINING:
        return "gemmd is shutting down and could not finish this request in time";
    case GM_DEVICE_LOST:
        return "the device failed and gemmd is about to restart";
    default:
        return "stopped";
    }
}

void gm_job_stop(struct gm_job *job, enum gm_status status)
{
    if (job->stop_status == GM_OK)
        job->stop_status = status;
    atomic_store(&job->task.stop, true);
}

void gm_job_reset(struct gm_job *job)
{
    job->queued_ns = job->watched_ns = gm_now_ns();
    job->started_ns = job->finished_ns = 0;
    job->forecast_s = 0;
    job->stop_status = GM_OK;
    job->batch = 0;
    job->concurrent = false;
    job->task.status = GM_OK;
    atomic_store(&job->task.stop, false);
}

void gm_job_fail(struct gm_job *job, enum gm_status status)
{
    job->task.status = gm_fail(&job->task.error, status, "%s", stop_reason(status));
    job->finished_ns = gm_now_ns();
}

/* Counts a slot of this client more (1) or less (-1). The mutex is held. */
static void count_slot(struct gm_sched *s, uint64_t client, int change)
{
    unsigned bucket = gm_fair_bucket(client);

    s->held[bucket] += (uint64_t)change;
    if (!s->options.slots)
        return;
    atomic_fetch_add_explicit(&s->options.slots->taken, (unsigned)change, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->options.slots->held[bucket], (unsigned)change,
                              memory_order_relaxed);
}

void gm_sched_leave_queue(struct gm_sched *s, const struct gm_job *job)
{
    count_slot(s, job->slot.client, -1);
    s->waiting_s = s->queue.waiting > 0 ? s->waiting_s - job->expected_s : 0;
    s->exclusive_waiting -= job->exclusive;
    gm_sched_set_bypass(s);
}

void gm_sched_drop(struct gm_sched *s, struct gm_job *job, struct gm_job_list *list)
{
    gm_fair_remove(&s->queue, &job->slot);
    gm_sched_leave_queue(s, job);
    TAILQ_INSERT_TAIL(list, job, link);
}

void gm_sched_drop_all(struct gm_sched *s, struct gm_job_list *list)
{
    for (struct gm_fair_item *first; (first = gm_fair_after(&s->queue, NULL)) != NULL;)
        gm_sched_drop(s, gm_job_of_slot(first), list);
}

void gm_sched_end(struct gm_job_list *list, enum gm_status status)
{
    for (struct gm_job *job; (job = TAILQ_FIRST(list)) != NULL;) {
        TAILQ_REMOVE(list, job, link);
        gm_job_fail(job, status);
        job->done(job);
    }
}

/* Whether there is a connection for another job of this client to wait with. */
static enum gm_status check_connections(const struct gm_sched_slots *slots, uint64_t client,
                                        struct gm_error *err)
{
    unsigned most = slots ? atomic_load_explicit(&slots->most, memory_order_relaxed) : 0;
    if (most == 0)
        return GM_OK;
    unsigned taken = atomic_load_explicit(&slots->taken, memory_order_relaxed);
    unsigned own = atomic_load_explicit(&slots->held[gm_fair_bucket(client)], memory_order_relaxed);

    if (taken >= most)
        return gm_fail(err, GM_QUEUE_FULL,
                       "jobs wait with all %u connections that may be used for it", most);
    if (own >= (uint64_t)GM_SCHED_SHARE * (most - taken))
        return gm_fail(err, GM_QUEUE_FULL,
                       "jobs of this client wait with %u of the %u connections that may be used "
                       "for it; the rest is kept for other clients",
                       own, most);
    return GM_OK;
}

/* Whether this client may have a slot. The mutex is held. */
static enum gm_status check(const struct gm_sched *s, uint64_t client, struct gm_error *err)
{
    uint64_t limit = s->options.queue_limit, taken = s->reserved + s->queue.waiting;
    uint64_t own = s->held[gm_fair_bucket(client)];

    if (s->lost)
        return gm_fail(err, GM_DEVICE_LOST, "the device has failed and gemmd is about to restart");
    if (s->closing)
        return gm_fail(err, GM_DRAINING, "gemmd is shutting down");
    if (taken >= limit)
        return gm_fail(err, GM_QUEUE_FULL, "all %llu queue slots are taken (--queue-limit)",
                       (unsigned long long)limit);
    if (own >= GM_SCHED_SHARE * (limit - taken))
        return gm_fail(err, GM_QUEUE_FULL,
                       "requests of this client hold %llu of the %llu queue slots (--queue-limit); "
                       "the rest is kept for other clients",
                       (unsigned long long)own, (unsigned long long)limit);
    return check_connections(s->options.slots, client, err);
}

static double expected(const struct gm_sched *s, const struct gm_job *job)
{
    return job->slot.cost_s > 0 ? job->slot.cost_s : s->service_s;
}

/* The expected time of the device: streams share it, but a job that runs alone has all of it. */
static double device_s(const struct gm_sched *s, const struct gm_job *job)
{
    return expected(s, job) / (job->exclusive ? 1 : s->streams);
}

/* Expected seconds from now to the end of the job, if it is queued now. The mutex is held. */
static double ends_in(const struct gm_sched *s, const struct gm_job *job, int64_t now_ns)
{
    double before_s = gm_fair_before_s(&s->queue, &job->slot), all_s = s->queue.waiting_s;

    /* In seconds of the device, which streams share. */
    before_s = all_s > 0 ? before_s / all_s * s->waiting_s : s->waiting_s;
    return gm_forecast_s(&s->forecast, before_s, expected(s, job), now_ns);
}

/* A forecast may be off by this much. */
#define SURELY 100

/* Whether the job ends long before its deadline in whatever order jobs run. Most do, and to
 * forecast each would hold the mutex longer than all else. The mutex is held. */
static bool surely_in_time(const struct gm_sched *s, const struct gm_job *job, int64_t now_ns)
{
    double most_s = gm_forecast_s(&s->forecast, s->waiting_s, expected(s, job), now_ns);

    return job->deadline_ns == GM_NEVER ||
           SURELY * most_s < (double)(job->deadline_ns - now_ns) * 1e-9;
}

void gm_sched_learn(struct gm_sched *s, const struct gm_job *job, int64_t ended_ns)
{
    bool ended = job->stop_status == GM_OK || job->stop_status == GM_DEADLINE;

    if (ended && job->deadline_ns != GM_NEVER)
        gm_forecast_learn(&s->forecast, job->forecast_s, expected(s, job),
                          (double)(ended_ns - job->queued_ns) * 1e-9,
                          (double)(job->deadline_ns - job->queued_ns) * 1e-9);
}

/* Whether the job will end before its deadline, as far as can be told. The mutex is held. */
static enum gm_status check_time(const struct gm_sched *s, const struct gm_job *job,
                                 struct gm_error *err)
{
    int64_t now = gm_now_ns();

    /* What is expected must not keep a device idle that would show it to be wrong. */
    if (s->queue.waiting == 0 || surely_in_time(s, job, now))
        return GM_OK;
    double left = (double)(job->deadline_ns - now) * 1e-9;
    double latest = gm_forecast_latest_s(&s->forecast, ends_in(s, job, now));
    if (latest <= left)
        return GM_OK;
    return gm_fail(err, GM_QUEUE_FULL,
                   "this job and those before it may take %.1f seconds, and the time for this "
                   "request (--timeout, timeout_ms) ends in %.1f",
                   latest, left > 0 ? left : 0);
}

/* job: NULL if its time is not known. */
static enum gm_status reserve(struct gm_sched *s, uint64_t client, const struct gm_job *job,
                              struct gm_error *err)
{
    pthread_mutex_lock(&s->mutex);
    enum gm_status status = check(s, client, err);
    if (status == GM_OK && job)
        status = check_time(s, job, err);
    atomic_store(&s->measure_stop, true); /* a job is coming */
    if (status == GM_OK) {
        s->reserved++;
        count_slot(s, client, 1);
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}

enum gm_status gm_sched_reserve(struct gm_sched *s, uint64_t client, struct gm_error *err)
{
    return reserve(s, client, NULL, err);
}

enum gm_status gm_sched_admit(struct gm_sched *s, const struct gm_job *job, struct gm_error *err)
{
    return reserve(s, job->slot.client, job, err);
}

enum gm_status gm_sched_check(struct gm_sched *s, uint64_t client, struct gm_error *err)
{
    pthread_mutex_lock(&s->mutex);
    enum gm_status status = check(s, client, err);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

void gm_sched_reserve_more(struct gm_sched *s, uint64_t client)
{
    pthread_mutex_lock(&s->mutex);
    s->reserved++;
    count_slot(s, client, 1);
    pthread_mutex_unlock(&s->mutex);
}

void gm_sched_unreserve(struct gm_sched *s, uint64_t client)
{
    pthread_mutex_lock(&s->mutex);
    s->reserved--;
    count_slot(s, client, -1);
    pthread_mutex_unlock(&s->mutex);
}

void gm_sched_wake(struct gm_sched *s)
{
    atomic_fetch_add_explicit(&s->wakes, 1, memory_order_release);
    if (!s->awake)
        pthread_cond_signal(&s->work);
}

void gm_sched_wake_all(struct gm_sched *s)
{
    atomic_fetch_add(&s->wakes, 1);
    pthread_cond_broadcast(&s->work);
}

/* Sets the job's expected time, and adds it to what waits. The mutex is held. */
static void expect(struct gm_sched *s, struct gm_job *job)
{
    if (s->forecast.running > 0 &&
        !surely_in_time(s, job, job->queued_ns)) /* it waits for others */
        job->forecast_s = ends_in(s, job, job->queued_ns);
    job->expected_s = device_s(s, job);
    s->waiting_s += job->expected_s;
}

void gm_sched_enqueue(struct gm_sched *s, struct gm_job *job)
{
    expect(s, job);
    gm_fair_push(&s->queue, &job->slot);
    s->exclusive_waiting += job->exclusive;
    gm_sched_set_bypass(s);
    /* The watch thread sleeps up to WATCH_MS between checks, and without limit if there are no
     * jobs. */
    if (s->timer_asleep || job->deadline_ns - job->queued_ns < (int64_t)GM_WATCH_MS * 1000000) {
        s->timer_asleep = false;
        pthread_cond_signal(&s->timer);
    }
}

void gm_sched_commit(struct gm_sched *s, struct gm_job *job)
{
    enum gm_status refused = GM_OK;

    gm_job_reset(job);
    pthread_mutex_lock(&s->mutex);
    s->reserved--;
    if (s->lost || s->closing) {
        refused = s->lost ? GM_DEVICE_LOST : GM_DRAINING;
        count_slot(s, job->slot.client, -1);
    } else {
        atomic_store(&s->measure_stop, true);
        gm_sched_enqueue(s, job);
        gm_sched_wake(s);
    }
    pthread_mutex_unlock(&s->mutex);
    if (refused != GM_OK) {
        gm_job_fail(job, refused);
        job->done(job);
    }
}

void gm_sched_fail_all(struct gm_sched *s, enum gm_status status)
{
    struct gm_job_list orphans = TAILQ_HEAD_INITIALIZER(orphans);
    struct gm_job *job;

    pthread_mutex_lock(&s->mutex);
    gm_sched_drop_all(s, &orphans);
    TAILQ_FOREACH (job, &s->running, link)
        gm_job_stop(job, status);
    pthread_mutex_unlock(&s->mutex);
    gm_sched_end(&orphans, status);
}

/* Expected time of all jobs. The mutex is held. */
static double backlog(const struct gm_sched *s)
{
    return gm_forecast_s(&s->forecast, s->waiting_s, 0, gm_now_ns()) +
           (double)s->reserved * s->service_s / s->streams;
}

unsigned gm_sched_retry_after(struct gm_sched *s)
{
    pthread_mutex_lock(&s->mutex);
    double wait = ceil(backlog(s));
    pthread_mutex_unlock(&s->mutex);
    if (!(wait >= 1))
        return 1;
    return wait > GM_RETRY_AFTER_S_MAX ? GM_RETRY_AFTER_S_MAX : (unsigned)wait;
}

struct gm_sched_load gm_sched_load(struct gm_sched *s)
{
    pthread_mutex_lock(&s->mutex);
    int64_t now = gm_now_ns(); /* before it is asked what runs */
    uint64_t running = s->running_count + gm_sched_beside(s);
    if (running > 0)
        gm_sched_count_busy(s, now);
    struct gm_sched_load load = {.queued = s->queue.waiting + s->reserved,
                                 .running = running,
                                 .capacity = s->options.queue_limit,
                                 .busy_ns = s->busy_ns,
                                 .wait_s = backlog(s),
                                 .lost = s->lost};
    pthread_mutex_unlock(&s->mutex);
    return load;
}

bool gm_sched_is_lost(const struct gm_sched *s)
{
    return atomic_load(&s->lost);
}

/* Whoever waits for the mutex spins first: it is held for less than a thread takes to sleep. */
static bool init_locks(struct gm_sched *s)
{
    pthread_condattr_t attr;
    pthread_mutexattr_t spins;

    if (pthread_condattr_init(&attr) != 0)
        return false;
    if (pthread_mutexattr_init(&spins) != 0) {
        pthread_condattr_destroy(&attr);
        return false;
    }
    bool ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
              pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP) == 0 &&
              pthread_mutex_init(&s->mutex, &spins) == 0 &&
              pthread_cond_init(&s->work, &attr) == 0 && pthread_cond_init(&s->timer, &attr) == 0;
    pthread_mutexattr_destroy(&spins);
    pthread_condattr_destroy(&attr);
    return ok;
}

/* Starts the threads and waits until each runs. */
static bool start_threads(struct gm_sched *s)
{
    while (s->streams_created < s->streams && pthread_create(&s->stream_thread[s->streams_created],
                                                             NULL, gm_sched_stream_main, s) == 0)
        s->streams_created++;
    pthread_mutex_lock(&s->mutex);
    if (s->streams_created < s->streams)
        s->closing = true;
    while (!s->closing && s->streams_ready < s->streams)
        pthread_cond_wait(&s->timer, &s->mutex);
    bool ok = !s->closing;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->mutex);
    if (ok)
        s->timer_started = pthread_create(&s->timer_thread, NULL, gm_sched_watch_main, s) == 0;
    return ok && s->timer_started;
}

enum gm_status gm_sched_open(const struct gm_sched_options *options, struct gm_sched **ret,
                             struct gm_error *err)
{
    const struct gm_device_facts *facts =
        options->backend->describe(options->context, options->device);
    struct gm_sched *s = aligned_alloc(_Alignof(struct gm_sched), sizeof *s);

    if (!s)
        return gm_fail(err, GM_INTERNAL, "no memory for a scheduler");
    memset(s, 0, sizeof *s);
    gm_fair_init(&s->queue);
    gm_forecast_init(&s->forecast);
    TAILQ_INIT(&s->running);
    s->options = *options;
    s->idle_from_ns = gm_now_ns();
    s->facts = facts;
    s->streams = s->streams_free = facts->streams;
    s->batch_max = facts->batch_max;
    s->stream_busy = calloc(s->streams, sizeof *s->stream_busy);
    s->stream_thread = calloc(s->streams, sizeof *s->stream_thread);
    if (!s->stream_busy || !s->stream_thread || !init_locks(s)) {
        free(s->stream_busy);
        free(s->stream_thread);
        free(s);
        return gm_fail(err, GM_INTERNAL, "no memory for a scheduler");
    }
    if (!start_threads(s)) {
        gm_sched_close(s);
        return gm_fail(err, GM_INTERNAL, "cannot start a scheduler's %u threads",
                       facts->streams + 1);
    }
    *ret = s;
    return GM_OK;
}

void gm_sched_close(struct gm_sched *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->closing = true;
    gm_sched_set_bypass(s);
    atomic_store(&s->measure_stop, true);
    gm_sched_wake(s);
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->timer);
    pthread_mutex_unlock(&s->mutex);
    for (unsigned i = 0; i < s->streams_created; i++)
        pthread_join(s->stream_thread[i], NULL);
    if (s->timer_started)
        pthread_join(s->timer_thread, NULL);
    gm_sched_fail_all(s, GM_DRAINING);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->timer);
    free(s->stream_busy);
    free(s->stream_thread);
    free(s);
}
