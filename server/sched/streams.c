/*
 * streams.c - the threads that run jobs, one for each stream of the device; and jobs that another
 * thread runs on an idle device.
 */
#include "server/clock.h"
#include "server/log.h"
#include "server/sched/sched_state.h"

#include <math.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* Weight of a new service time in the running mean. */
#define SERVICE_WEIGHT 0.1

/* Bounds of searches that hold the mutex: jobs looked at for a batch; clients looked at for the
 * next job to start. */
#define LOOKED_AT_MAX 64
#define CLIENTS_LOOKED_AT_MAX 8

/* A walk over the waiting jobs of a size class: clients in turn, the jobs of each in order,
 * LOOKED_AT_MAX of them at most. */
struct walk {
    struct gm_fair_item *client, *next; /* the client's first job; the next job */
    unsigned left;
};

static struct walk walk_of(const struct gm_sched *s, unsigned size)
{
    struct gm_fair_item *first = gm_fair_first_client(&s->queue, size);

    return (struct walk){first, first, LOOKED_AT_MAX};
}

/* NULL at the end. */
static struct gm_job *walk_on(const struct gm_sched *s, struct walk *walk)
{
    struct gm_fair_item *item = walk->left > 0 ? walk->next : NULL;

    if (!item)
        return NULL;
    walk->left--;
    walk->next = TAILQ_NEXT(item, link);
    if (!walk->next)
        walk->next = walk->client = gm_fair_next_client(&s->queue, walk->client);
    return gm_job_of_slot(item);
}

/* The most jobs of a launch with this one. */
static unsigned batch_most(const struct gm_sched *s, const struct gm_job *job)
{
    return job->batch_most > 0 && job->batch_most < s->batch_max ? job->batch_most : s->batch_max;
}

/* How many jobs like this one a launch takes. */
static uint64_t launch_most(const struct gm_sched *s, const struct gm_job *job)
{
    uint64_t most = batch_most(s, job);
    uint64_t by_bytes = job->bytes > 0 ? s->facts->batch_bytes / job->bytes : most;

    return most < by_bytes ? most : by_bytes;
}

/* Whether the job reads a matrix that a running launch reads for others. Two at once would share
 * the memory's rate, and each would serve fewer. So it waits for the end of that one, unless half a
 * launch waits: those are ready when it ends. */
static bool waits_for_matrix(const struct gm_sched *s, const struct gm_job *job)
{
    const uint64_t half = job->batch_most > 0 ? launch_most(s, job) / 2 : 0; /* 0: it reads none */
    const struct gm_job *other = NULL;
    unsigned alike = 0;

    if (half == 0)
        return false;
    TAILQ_FOREACH (other, &s->running, link)
        if (other->batch_key == job->batch_key)
            break;
    if (!other)
        return false;
    struct walk walk = walk_of(s, job->slot.size);
    while ((other = walk_on(s, &walk)))
        alike += other->batch_key == job->batch_key;
    return alike < half;
}

/* The next job that may have a stream now, or NULL. If the device has graded streams, each busy
 * stream excludes one more of the largest size classes, so that some streams stay free for short
 * jobs. Where a job waits for a matrix, it is the turn of other clients, small jobs first. */
static struct gm_job *first_eligible(const struct gm_sched *s)
{
    unsigned taken = s->facts->graded_streams ? s->streams - s->streams_free : 0, looked_at = 0;
    unsigned sizes = taken < GM_FAIR_SIZES ? GM_FAIR_SIZES - taken : 1;
    struct gm_fair_item *item = gm_fair_first_of(&s->queue, sizes);

    if (!item || !waits_for_matrix(s, gm_job_of_slot(item)))
        return item ? gm_job_of_slot(item) : NULL;
    for (unsigned size = 0; size < sizes; size++) {
        item = gm_fair_first_client(&s->queue, size);
        for (; item && looked_at < CLIENTS_LOOKED_AT_MAX; looked_at++) {
            if (!waits_for_matrix(s, gm_job_of_slot(item)))
                return gm_job_of_slot(item);
            item = gm_fair_next_client(&s->queue, item);
        }
    }
    return NULL;
}

bool gm_sched_startable(const struct gm_sched *s)
{
    const struct gm_job *first;

    if (s->streams_free == 0 || s->exclusive_running)
        return false;
    first = first_eligible(s);
    return first && !(first->exclusive && s->running_count + gm_sched_beside(s) > 0);
}

static unsigned take_stream(struct gm_sched *s)
{
    unsigned stream = 0;

    while (s->stream_busy[stream])
        stream++;
    s->stream_busy[stream] = true;
    s->streams_free--;
    return stream;
}

static void start(struct gm_sched *s, struct gm_job *job)
{
    gm_fair_serve(&s->queue, &job->slot);
    TAILQ_INSERT_TAIL(&s->running, job, link);
    s->running_count++; /* first: leaving the queue opens the bypass or leaves it closed */
    gm_sched_leave_queue(s, job);
}

/* The next job that may share a launch with those of the batch, or NULL. Clients take turns, and
 * the jobs of each start in order. */
static struct gm_job *next_like(const struct gm_sched *s, const struct gm_job *batched,
                                uint64_t bytes_left)
{
    struct walk walk = walk_of(s, batched->slot.size);
    struct gm_job *job;

    if (batched->batch_key == 0 || batched->exclusive)
        return NULL;
    while ((job = walk_on(s, &walk)))
        if (job->batch_key == batched->batch_key && !job->exclusive)
            return job->bytes <= bytes_left ? job : NULL;
    return NULL;
}

static void set_exclusive(struct gm_sched *s, bool running)
{
    s->exclusive_running = running;
    gm_sched_set_bypass(s);
}

/* Moves the next job, and those that may share its launch, to the running list. */
static unsigned take_batch(struct gm_sched *s, struct gm_job **batch)
{
    struct gm_job *job = first_eligible(s);
    uint64_t left = s->facts->batch_bytes;
    unsigned n = 0, most = batch_most(s, job);

    set_exclusive(s, job->exclusive);
    gm_sched_begins(s, gm_now_ns());
    do {
        start(s, job);
        batch[n++] = job;
        left -= job->bytes < left ? job->bytes : left;
        job = n < most ? next_like(s, batch[0], left) : NULL;
    } while (job);
    return n;
}

/* Handles the loss of the device: fails all waiting jobs. Releases the mutex meanwhile. */
static void fail_waiting(struct gm_sched *s, const struct gm_error *error)
{
    struct gm_job_list orphans = TAILQ_HEAD_INITIALIZER(orphans);
    char why[GM_ERROR_DETAIL_MAX];

    gm_sched_drop_all(s, &orphans);
    pthread_mutex_unlock(&s->mutex);
    gm_log(GM_LOG_ERROR, "device_failed", "detail=%s",
           gm_log_quote(why, sizeof why, error->detail));
    gm_sched_end(&orphans, GM_DEVICE_LOST);
    s->options.lost(s->options.lost_cls);
    pthread_mutex_lock(&s->mutex);
}

/* Call after the jobs were put on the running list. */
static struct gm_launch begin(struct gm_sched *s, unsigned stream, struct gm_job **batch,
                              unsigned n)
{
    struct gm_launch launch = gm_sched_launch(s, gm_now_ns(), n);

    /* A job that comes while an exclusive one runs is counted for a moment, until it sees that the
     * bypass is closed. It does not run. */
    launch.others = launch.others && !s->exclusive_running;
    for (unsigned i = 0; i < n; i++) {
        batch[i]->started_ns = launch.begun_ns;
        batch[i]->batch = n;
        batch[i]->stream = (int)stream;
    }
    return launch;
}

/* Removes the jobs from the running list. */
static void end(struct gm_sched *s, const struct gm_launch *launch, struct gm_job **batch,
                unsigned n, int64_t ended_ns)
{
    bool concurrent = gm_sched_was_concurrent(s, launch);

    for (unsigned i = 0; i < n; i++) {
        struct gm_job *job = batch[i];
        TAILQ_REMOVE(&s->running, job, link);
        job->finished_ns = ended_ns;
        gm_sched_learn(s, job, ended_ns);
        job->concurrent = concurrent;
        if (job->task.status == GM_CANCELLED && job->stop_status != GM_OK)
            gm_job_fail(job, job->stop_status);
    }
    batch[0]->last = n == 1 && s->queue.waiting == 0;
    s->running_count -= n;
    s->idle_from_ns = ended_ns;
    gm_sched_count_busy(s, ended_ns);
}

/* Call after a launch: wakes the stream threads, or handles the device's loss. May release the
 * mutex meanwhile. */
static void after_launch(struct gm_sched *s, enum gm_status status, const struct gm_error *error)
{
    bool newly_lost = status == GM_DEVICE_LOST && !s->lost;

    s->lost = s->lost || status == GM_DEVICE_LOST;
    gm_sched_set_bypass(s);
    if (s->queue.waiting > 0 || s->closing)
        gm_sched_wake_all(s);
    if (newly_lost)
        fail_waiting(s, error);
}

/*
 * Runs a batch of the running list on a busy stream. Called with the mutex held, and releases it
 * meanwhile. On return the jobs are on no list and the stream is free.
 */
static void run_batch(struct gm_sched *s, unsigned stream, struct gm_job **batch, unsigned n,
                      struct gm_task **tasks)
{
    struct gm_launch launch = begin(s, stream, batch, n);
    double work_s = 0, done_s = 0;

    for (unsigned i = 0; i < n; i++) {
        tasks[i] = &batch[i]->task;
        work_s += batch[i]->expected_s;
    }
    gm_forecast_begin(&s->forecast, work_s, launch.begun_ns);
    pthread_mutex_unlock(&s->mutex);
    enum gm_status status =
        s->options.backend->run(s->options.context, s->options.device, stream, tasks, n);
    int64_t ended = gm_now_ns();
    pthread_mutex_lock(&s->mutex);

    double each_s = (double)(ended - launch.begun_ns) * 1e-9 / n;
    for (unsigned i = 0; i < n; i++) {
        gm_fair_served(&s->queue, &batch[i]->slot, each_s);
        /* What was stopped or failed is not all done. */
        done_s += batch[i]->task.status == GM_OK ? batch[i]->expected_s
                                                 : fmin(batch[i]->expected_s, each_s);
    }
    gm_forecast_end(&s->forecast, work_s, done_s, s->waiting_s, ended);
    end(s, &launch, batch, n, ended);
    set_exclusive(s, false);
    s->stream_busy[stream] = false;
    s->streams_free++;
    s->service_s =
        s->service_s == 0 ? each_s : s->service_s + SERVICE_WEIGHT * (each_s - s->service_s);
    after_launch(s, status, &batch[0]->task.error);
}

bool gm_sched_run_if_idle(struct gm_sched *s, struct gm_job *job)
{
    struct gm_job *batch[1] = {job};
    struct gm_task *tasks[1];

    gm_job_reset(job);
    pthread_mutex_lock(&s->mutex);
    bool idle = !s->lost && !s->closing && !s->exclusive_running && !job->exclusive &&
                s->queue.waiting == 0 && s->running_count == 0 && s->reserved == 1;
    if (idle) {
        s->reserved = 0;
        gm_sched_enqueue(s, job);
        unsigned n = take_batch(s, batch), stream = take_stream(s);
        run_batch(s, stream, batch, n, tasks);
    }
    pthread_mutex_unlock(&s->mutex);
    return idle;
}

void gm_sched_lose(struct gm_sched *s, const struct gm_error *error)
{
    pthread_mutex_lock(&s->mutex);
    after_launch(s, GM_DEVICE_LOST, error);
    pthread_mutex_unlock(&s->mutex);
}

/* The time to measure the ceilings again, or to ask again; or GM_NEVER. */
static int64_t measure_at(const struct gm_sched *s)
{
    const struct gm_sched_options *o = &s->options;

    if (!o->backend->measure || o->measure_idle_ns == 0 || s->lost)
        return GM_NEVER;
    if (s->exclusive_running || s->running_count + gm_sched_beside(s) > 0 || s->queue.waiting > 0 ||
        s->reserved > 0)
        return gm_now_ns() + o->measure_idle_ns;
    int64_t idle = s->idle_from_ns + o->measure_idle_ns;
    int64_t again = s->measured_ns > 0 ? s->measured_ns + o->measure_again_ns : 0;
    return idle > again ? idle : again;
}

/* Measures the ceilings until a job arrives. Holds the device, and releases the mutex meanwhile. */
static void measure(struct gm_sched *s)
{
    struct gm_error error = {.detail = ""};

    set_exclusive(s, true);
    if (gm_sched_beside(s) > 0) { /* one has begun since measure_at looked */
        set_exclusive(s, false);
        return;
    }
    unsigned stream = take_stream(s);
    atomic_store(&s->measure_stop, false);
    pthread_mutex_unlock(&s->mutex);
    enum gm_status status = s->options.backend->measure(s->options.context, s->options.device,
                                                        stream, &s->measure_stop, &error);
    pthread_mutex_lock(&s->mutex);
    s->measured_ns = gm_now_ns();
    if (atomic_load(&s->measure_stop)) /* stopped early: measure again soon */
        s->measured_ns -= s->options.measure_again_ns;
    set_exclusive(s, false);
    s->stream_busy[stream] = false;
    s->streams_free++;
    after_launch(s, status, &error);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits awake for the next job until `until`: waking a thread takes longer than a small job. The
 * mutex is released meanwhile. */
static void stay_awake(struct gm_sched *s, int64_t until)
{
    unsigned wakes = atomic_load_explicit(&s->wakes, memory_order_relaxed);

    s->awake = true;
    pthread_mutex_unlock(&s->mutex);
    while (atomic_load_explicit(&s->wakes, memory_order_acquire) == wakes && gm_now_ns() < until)
        relax();
    pthread_mutex_lock(&s->mutex);
    s->awake = false;
}

/* Waits until a job may be startable. Measures the ceilings if it is time. */
static void await_work(struct gm_sched *s)
{
    int64_t awake_until = s->idle_from_ns + s->options.awake_ns;
    int64_t at = measure_at(s);

    if (!s->awake && s->options.awake_ns > 0 && gm_now_ns() < awake_until) {
        stay_awake(s, awake_until);
    } else if (at == GM_NEVER) {
        pthread_cond_wait(&s->work, &s->mutex);
    } else if (at <= gm_now_ns()) {
        measure(s);
    } else {
        struct timespec until = gm_timespec(at);
        pthread_cond_timedwait(&s->work, &s->mutex, &until);
    }
}

void *gm_sched_stream_main(void *cls)
{
    struct gm_sched *s = cls;
    struct gm_job **batch = calloc(s->batch_max, sizeof *batch);
    struct gm_task **tasks = calloc(s->batch_max, sizeof *tasks);

    /* A backend polls its device between short sleeps, which would be 50 us longer by default. */
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_mutex_lock(&s->mutex);
    /* gm_sched_open waits for this, so that it returns only when all streams have threads. */
    if (batch && tasks)
        s->streams_ready++;
    else
        s->closing = true;
    pthread_cond_broadcast(&s->timer);
    while (batch && tasks) {
        while (!s->closing && !gm_sched_startable(s))
            await_work(s);
        if (s->closing)
            break;
        unsigned n = take_batch(s, batch);
        unsigned stream = take_stream(s);
        if (gm_sched_startable(s))
            gm_sched_wake(s);
        run_batch(s, stream, batch, n, tasks);
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
