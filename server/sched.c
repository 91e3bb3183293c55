#include "server/sched.h"

#include "server/clock.h"
#include "server/limits.h"
#include "server/log.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* How much of the last measured service time enters the running mean. */
#define SERVICE_WEIGHT 0.1

struct gm_sched {
    struct gm_sched_options options;
    unsigned lanes, batch_max;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work;   /* a job may be startable, or closing */
    pthread_cond_t timer;  /* there is something to watch, or closing */
    struct gm_job_list queue, running;
    uint64_t reserved, queued; /* slots: reserved + queued <= queue_limit */
    uint64_t running_count;
    uint64_t starts; /* launches so far: tells whether another began during one */
    bool *lane_busy;
    unsigned lanes_free;
    bool exclusive_running, lost, closing;
    bool timer_asleep; /* there was nothing to watch: wake it */
    double service_s;  /* mean time a job holds a lane */

    unsigned lanes_ready;   /* threads that run, by their own count */
    unsigned lanes_created; /* threads to join; the opener's alone */
    pthread_t timer_thread;
    bool timer_started;
    pthread_t *lane_thread;
};

/* Takes every queued job into *out. The mutex is held. */
static void take_queue(struct gm_sched *s, struct gm_job_list *out)
{
    for (struct gm_job *job; (job = s->queue.head) != NULL;) {
        gm_job_list_remove(&s->queue, job);
        s->queued--;
        gm_job_list_append(out, job);
    }
}

static void finish_list(struct gm_job_list *list, enum gm_status status)
{
    for (struct gm_job *job; (job = list->head) != NULL;) {
        gm_job_list_remove(list, job);
        gm_job_fail(job, status);
        job->done(job);
    }
}

/* Whether the job at the head of the queue may start now. The mutex is held. */
static bool startable(const struct gm_sched *s)
{
    const struct gm_job *head = s->queue.head;

    return head && s->lanes_free > 0 && !s->exclusive_running &&
           !(head->exclusive && s->running_count > 0);
}

static unsigned take_lane(struct gm_sched *s)
{
    unsigned lane = 0;

    while (s->lane_busy[lane])
        lane++;
    s->lane_busy[lane] = true;
    s->lanes_free--;
    return lane;
}

/* Moves the head of the queue, and what may be launched with it, to the running list. */
static unsigned take_batch(struct gm_sched *s, struct gm_job **batch)
{
    unsigned n = 0;
    uint64_t key = s->queue.head->batch_key;
    bool alone = key == 0 || s->queue.head->exclusive;

    for (struct gm_job *job = s->queue.head, *next; job && n < s->batch_max; job = next) {
        next = job->next;
        if (n > 0 && (alone || job->batch_key != key || job->exclusive))
            continue;
        gm_job_list_remove(&s->queue, job);
        s->queued--;
        gm_job_list_append(&s->running, job);
        batch[n++] = job;
    }
    s->exclusive_running = batch[0]->exclusive;
    s->running_count += n;
    return n;
}

/*
 * Runs a batch that is on the running list, on a lane that is taken. Called and returns with the
 * mutex held; released meanwhile. Afterwards the jobs are on no list and the lane is free.
 */
static void run_batch(struct gm_sched *s, unsigned lane, struct gm_job **batch, unsigned n,
                      struct gm_task **tasks)
{
    bool others = s->running_count > n;
    uint64_t start = ++s->starts;
    int64_t begun = gm_now_ns();

    for (unsigned i = 0; i < n; i++) {
        batch[i]->started_ns = begun;
        batch[i]->batch = n;
        tasks[i] = &batch[i]->task;
    }
    pthread_mutex_unlock(&s->mutex);
    enum gm_status status =
        s->options.backend->run(s->options.context, s->options.device, lane, tasks, n);
    int64_t ended = gm_now_ns();
    pthread_mutex_lock(&s->mutex);

    bool newly_lost = status == GM_DEVICE_LOST && !s->lost;
    s->lost = s->lost || status == GM_DEVICE_LOST;
    for (unsigned i = 0; i < n; i++) {
        struct gm_job *job = batch[i];
        gm_job_list_remove(&s->running, job);
        job->finished_ns = ended;
        job->concurrent = others || s->starts != start;
        if (job->task.status == GM_CANCELLED && job->stop_status != GM_OK)
            gm_job_fail(job, job->stop_status);
    }
    s->running_count -= n;
    s->exclusive_running = false;
    s->lane_busy[lane] = false;
    s->lanes_free++;
    double each = (double)(ended - begun) * 1e-9 / n;
    s->service_s = s->service_s == 0 ? each : s->service_s + SERVICE_WEIGHT * (each - s->service_s);
    if (s->queue.head || s->closing)
        pthread_cond_broadcast(&s->work);

    if (newly_lost) {
        struct gm_job_list orphans = {0};
        char why[GM_ERROR_DETAIL_MAX];
        take_queue(s, &orphans);
        pthread_mutex_unlock(&s->mutex);
        gm_log(GM_LOG_ERROR, "device_failed", "detail=%s",
               gm_log_quote(why, sizeof why, batch[0]->task.error.detail));
        finish_list(&orphans, GM_DEVICE_LOST);
        s->options.lost(s->options.lost_cls);
        pthread_mutex_lock(&s->mutex);
    }
}

static void *lane_main(void *cls)
{
    struct gm_sched *s = cls;
    struct gm_job **batch = calloc(s->batch_max, sizeof *batch);
    struct gm_task **tasks = calloc(s->batch_max, sizeof *tasks);

    pthread_mutex_lock(&s->mutex);
    /* gm_sched_open waits for this, so that a scheduler that opened has its lanes. */
    if (batch && tasks)
        s->lanes_ready++;
    else
        s->closing = true;
    pthread_cond_broadcast(&s->timer);
    while (batch && tasks) {
        while (!s->closing && !startable(s))
            pthread_cond_wait(&s->work, &s->mutex);
        if (s->closing)
            break;
        unsigned lane = take_lane(s);
        unsigned n = take_batch(s, batch);
        if (startable(s))
            pthread_cond_signal(&s->work);
        run_batch(s, lane, batch, n, tasks);
        pthread_mutex_unlock(&s->mutex);
        for (unsigned i = 0; i < n; i++)
            batch[i]->done(batch[i]);
        pthread_mutex_lock(&s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
    free(batch);
    free(tasks);
    return NULL;
}

/* Sorts out jobs that are out of time or whose client has gone. The mutex is held. Returns when
 * to look again. */
static int64_t watch(struct gm_sched *s, int64_t now, struct gm_job_list *late,
                     struct gm_job_list *abandoned)
{
    int64_t wake = now + (int64_t)GM_WATCH_MS * 1000000;

    for (struct gm_job *job = s->queue.head, *next; job; job = next) {
        next = job->next;
        bool expired = job->deadline_ns <= now;
        if (expired || (job->abandoned && job->abandoned(job, false))) {
            gm_job_list_remove(&s->queue, job);
            s->queued--;
            gm_job_list_append(expired ? late : abandoned, job);
        } else if (job->deadline_ns < wake) {
            wake = job->deadline_ns;
        }
    }
    for (struct gm_job *job = s->running.head; job; job = job->next) {
        if (job->deadline_ns <= now)
            gm_job_stop(job, GM_DEADLINE);
        else if (job->abandoned && job->abandoned(job, true))
            gm_job_stop(job, GM_CANCELLED);
        else if (job->deadline_ns < wake)
            wake = job->deadline_ns;
    }
    return wake;
}

static void *timer_main(void *cls)
{
    struct gm_sched *s = cls;

    pthread_mutex_lock(&s->mutex);
    while (!s->closing) {
        struct gm_job_list late = {0}, abandoned = {0};
        if (!s->queue.head && !s->running.head) {
            s->timer_asleep = true;
            pthread_cond_wait(&s->timer, &s->mutex);
            continue;
        }
        int64_t wake = watch(s, gm_now_ns(), &late, &abandoned);
        if (late.head || abandoned.head) {
            if (startable(s))
                pthread_cond_signal(&s->work);
            pthread_mutex_unlock(&s->mutex);
            finish_list(&late, GM_DEADLINE);
            finish_list(&abandoned, GM_CANCELLED);
            pthread_mutex_lock(&s->mutex);
        }
        if (!s->closing) {
            struct timespec until = gm_timespec(wake);
            pthread_cond_timedwait(&s->timer, &s->mutex, &until);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

enum gm_status gm_sched_reserve(struct gm_sched *s, struct gm_error *err)
{
    enum gm_status status = GM_OK;

    pthread_mutex_lock(&s->mutex);
    if (s->lost)
        status =
            gm_fail(err, GM_DEVICE_LOST, "the device has failed and gemmd is about to restart");
    else if (s->closing)
        status = gm_fail(err, GM_DRAINING, "gemmd is shutting down");
    else if (s->reserved + s->queued >= s->options.queue_limit)
        status =
            gm_fail(err, GM_QUEUE_FULL, "all %llu places in the queue are taken (--queue-limit)",
                    (unsigned long long)s->options.queue_limit);
    else
        s->reserved++;
    pthread_mutex_unlock(&s->mutex);
    return status;
}

void gm_sched_reserve_more(struct gm_sched *s)
{
    pthread_mutex_lock(&s->mutex);
    s->reserved++;
    pthread_mutex_unlock(&s->mutex);
}

void gm_sched_unreserve(struct gm_sched *s)
{
    pthread_mutex_lock(&s->mutex);
    s->reserved--;
    pthread_mutex_unlock(&s->mutex);
}

void gm_sched_commit(struct gm_sched *s, struct gm_job *job)
{
    enum gm_status refused = GM_OK;

    gm_job_reset(job);
    pthread_mutex_lock(&s->mutex);
    s->reserved--;
    if (s->lost) {
        refused = GM_DEVICE_LOST;
    } else if (s->closing) {
        refused = GM_DRAINING;
    } else {
        gm_job_list_append(&s->queue, job);
        s->queued++;
        pthread_cond_signal(&s->work);
        /* The timer sleeps up to WATCH_MS between looks, and for ever when there is nothing. */
        if (s->timer_asleep || job->deadline_ns - job->queued_ns < (int64_t)GM_WATCH_MS * 1000000) {
            s->timer_asleep = false;
            pthread_cond_signal(&s->timer);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    if (refused != GM_OK) {
        gm_job_fail(job, refused);
        job->done(job);
    }
}

bool gm_sched_run_here(struct gm_sched *s, struct gm_job *job)
{
    struct gm_task *task;

    pthread_mutex_lock(&s->mutex);
    if (s->queue.head || s->lanes_free == 0 || s->exclusive_running || s->lost || s->closing ||
        (job->exclusive && s->running_count > 0)) {
        pthread_mutex_unlock(&s->mutex);
        return false;
    }
    s->reserved--;
    gm_job_reset(job);
    unsigned lane = take_lane(s);
    gm_job_list_append(&s->running, job);
    s->running_count++;
    s->exclusive_running = job->exclusive;
    run_batch(s, lane, &job, 1, &task);
    pthread_mutex_unlock(&s->mutex);
    return true;
}

void gm_sched_fail_all(struct gm_sched *s, enum gm_status status)
{
    struct gm_job_list orphans = {0};

    pthread_mutex_lock(&s->mutex);
    take_queue(s, &orphans);
    for (struct gm_job *job = s->running.head; job; job = job->next)
        gm_job_stop(job, status);
    pthread_mutex_unlock(&s->mutex);
    finish_list(&orphans, status);
}

unsigned gm_sched_retry_after(struct gm_sched *s)
{
    pthread_mutex_lock(&s->mutex);
    double jobs = (double)(s->queued + s->reserved + s->running_count);
    double wait = ceil(jobs * s->service_s / s->lanes);
    pthread_mutex_unlock(&s->mutex);
    if (!(wait >= 1))
        return 1;
    return wait > GM_RETRY_AFTER_S_MAX ? GM_RETRY_AFTER_S_MAX : (unsigned)wait;
}

struct gm_sched_load gm_sched_load(struct gm_sched *s)
{
    pthread_mutex_lock(&s->mutex);
    struct gm_sched_load load = {.queued = s->queued + s->reserved,
                                 .running = s->running_count,
                                 .capacity = s->options.queue_limit,
                                 .lost = s->lost};
    pthread_mutex_unlock(&s->mutex);
    return load;
}

static bool init_locks(struct gm_sched *s)
{
    pthread_condattr_t attr;

    if (pthread_condattr_init(&attr) != 0)
        return false;
    bool ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
              pthread_mutex_init(&s->mutex, NULL) == 0 && pthread_cond_init(&s->work, NULL) == 0 &&
              pthread_cond_init(&s->timer, &attr) == 0;
    pthread_condattr_destroy(&attr);
    return ok;
}

/* Starts the threads and waits until each runs. */
static bool start_threads(struct gm_sched *s)
{
    while (s->lanes_created < s->lanes &&
           pthread_create(&s->lane_thread[s->lanes_created], NULL, lane_main, s) == 0)
        s->lanes_created++;
    pthread_mutex_lock(&s->mutex);
    if (s->lanes_created < s->lanes)
        s->closing = true;
    while (!s->closing && s->lanes_ready < s->lanes)
        pthread_cond_wait(&s->timer, &s->mutex);
    bool ok = !s->closing;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->mutex);
    if (ok)
        s->timer_started = pthread_create(&s->timer_thread, NULL, timer_main, s) == 0;
    return ok && s->timer_started;
}

enum gm_status gm_sched_open(const struct gm_sched_options *options, struct gm_sched **ret,
                             struct gm_error *err)
{
    const struct gm_device_facts *facts =
        options->backend->describe(options->context, options->device);
    struct gm_sched *s = calloc(1, sizeof *s);

    if (!s)
        return gm_fail(err, GM_INTERNAL, "no memory for a scheduler");
    s->options = *options;
    s->lanes = s->lanes_free = facts->lanes;
    s->batch_max = facts->batch_max;
    s->lane_busy = calloc(s->lanes, sizeof *s->lane_busy);
    s->lane_thread = calloc(s->lanes, sizeof *s->lane_thread);
    if (!s->lane_busy || !s->lane_thread || !init_locks(s)) {
        free(s->lane_busy);
        free(s->lane_thread);
        free(s);
        return gm_fail(err, GM_INTERNAL, "no memory for a scheduler");
    }
    if (!start_threads(s)) {
        gm_sched_close(s);
        return gm_fail(err, GM_INTERNAL, "cannot start a scheduler's %u threads", facts->lanes + 1);
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
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->timer);
    pthread_mutex_unlock(&s->mutex);
    for (unsigned i = 0; i < s->lanes_created; i++)
        pthread_join(s->lane_thread[i], NULL);
    if (s->timer_started)
        pthread_join(s->timer_thread, NULL);
    gm_sched_fail_all(s, GM_DRAINING);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->timer);
    free(s->lane_busy);
    free(s->lane_thread);
    free(s);
}
