/*
 * beside.c - small jobs that run beside the streams, on the thread that brought them.
 *
 * They take no mutex: sixteen threads with jobs of ten microseconds each would wait for it longer
 * than they compute. They count themselves, and then look whether this bypass is closed. It is
 * closed for a job that wants the device for itself, as soon as all streams are free, and that job
 * then waits until nobody is counted. So at least one of the two sees the other.
 */
#include "server/clock.h"
#include "server/sched/sched_state.h"

/* What `begun` counts: launches of any kind, and below them the jobs that run beside the streams.
 */
#define LAUNCH ((uint64_t)1 << 32)
#define BESIDE ((uint64_t)1)

static uint64_t beside_of(uint64_t begun)
{
    return begun % LAUNCH;
}

uint64_t gm_sched_beside(const struct gm_sched *s)
{
    return beside_of(s->begun);
}

/* Nothing was busy before now_ns. */
static void busy_from(struct gm_sched *s, int64_t now_ns)
{
    int64_t from = s->busy_from_ns;

    while (from < now_ns && !atomic_compare_exchange_weak(&s->busy_from_ns, &from, now_ns))
        ;
}

void gm_sched_begins(struct gm_sched *s, int64_t now_ns)
{
    if (s->running_count + gm_sched_beside(s) == 0)
        busy_from(s, now_ns);
}

/* A reader may have been told of time beyond the end of this job, because its thread came late.
 * What was told must not be taken back. */
void gm_sched_count_busy(struct gm_sched *s, int64_t until_ns)
{
    int64_t from = s->busy_from_ns;

    while (from < until_ns)
        if (atomic_compare_exchange_weak(&s->busy_from_ns, &from, until_ns)) {
            s->busy_ns += (uint64_t)(until_ns - from);
            return;
        }
}

struct gm_launch gm_sched_launch(struct gm_sched *s, int64_t begun_ns, uint64_t own)
{
    uint64_t before = atomic_fetch_add(&s->begun, LAUNCH);
    bool others = s->running_count + beside_of(before) > own;

    if (!others)
        busy_from(s, begun_ns); /* what ran when it was to begin has ended */
    return (struct gm_launch){
        .begun_ns = begun_ns, .begun = (uint32_t)(before / LAUNCH) + 1, .others = others};
}

bool gm_sched_was_concurrent(const struct gm_sched *s, const struct gm_launch *launch)
{
    return launch->others || (uint32_t)(s->begun / LAUNCH) != launch->begun;
}

void gm_sched_set_bypass(struct gm_sched *s)
{
    /* While streams are busy an exclusive job cannot start, and others need not wait for it. */
    bool next = s->exclusive_waiting > 0 && s->running_count == 0;
    bool closed = next || s->exclusive_running || s->lost || s->closing;

    if (closed != s->bypass_closed) /* else the cache line stays where it is */
        s->bypass_closed = closed;
}

/* Whoever waits for the device is told when the last one has left. */
static void leave(struct gm_sched *s)
{
    bool last = beside_of(atomic_fetch_sub(&s->begun, BESIDE)) == 1;

    if (!last || !s->bypass_closed)
        return;
    pthread_mutex_lock(&s->mutex);
    gm_sched_wake_all(s);
    pthread_mutex_unlock(&s->mutex);
}

bool gm_sched_run_here(struct gm_sched *s, struct gm_job *job)
{
    const struct gm_sched_options *o = &s->options;

    if (!o->backend->run_here || job->exclusive || s->bypass_closed)
        return false;
    __builtin_prefetch(&s->begun, 1);
    gm_job_reset(job);
    gm_sched_begins(s, job->queued_ns);
    atomic_fetch_add(&s->begun, BESIDE);
    if (s->bypass_closed) {
        leave(s);
        return false;
    }
    job->started_ns = job->queued_ns; /* not before: 0 says that it never ran */
    struct gm_launch launch = gm_sched_launch(s, job->started_ns, 1);
    enum gm_status status = o->backend->run_here(o->context, o->device, &job->task);
    job->finished_ns = gm_now_ns();
    job->batch = 1;
    job->stream = -1;
    job->last = false;
    job->concurrent = gm_sched_was_concurrent(s, &launch);
    gm_sched_count_busy(s, job->finished_ns);
    s->idle_from_ns = job->finished_ns;
    leave(s);
    if (status == GM_DEVICE_LOST)
        gm_sched_lose(s, &job->task.error);
    return true;
}
