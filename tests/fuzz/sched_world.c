#include "tests/fuzz/sched_world.h"

#include "server/clock.h"
#include "server/limits.h"
#include "server/log.h"
#include "server/sched/sched_state.h"
#include "tests/fuzz/fuzz.h"

#include <time.h>

/* Longer than any machine takes for what is waited for. */
#define TIMEOUT_NS (INT64_C(20) * 1000000000)

/* The scheduler looks after clients and deadlines now and then: let it be often. */
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    int64_t soon = gm_now_ns() + 200000;
    struct timespec at = gm_timespec(soon);
    bool early =
        until->tv_sec < at.tv_sec || (until->tv_sec == at.tv_sec && until->tv_nsec < at.tv_nsec);
    return __real_pthread_cond_timedwait(cond, mutex, early ? until : &at);
}

/* The loss of the device is logged as an error, of which there would be thousands. */
void __wrap_gm_log(enum gm_log_level level, const char *event, const char *format, ...);
void __wrap_gm_log(enum gm_log_level level, const char *event, const char *format, ...)
{
    (void)format;
    MUST(level == GM_LOG_ERROR && strcmp(event, "device_failed") == 0);
}

static struct probe *probe_of(const struct gm_task *task)
{
    return (struct probe *)((char *)task - offsetof(struct gm_job, task));
}

static bool fails_explain(const struct probe *p, enum gm_status status)
{
    for (uint64_t i = p->failings; i < p->world->failings; i++)
        if (p->world->failed_with[i] == status)
            return true;
    return false;
}

/* Whether something has happened that lets a job end so, apart from its run. */
static bool explained(const struct probe *p, enum gm_status status)
{
    const struct world *w = p->world;
    return (status == GM_DEADLINE && p->late && p->job.deadline_ns <= gm_now_ns()) ||
           (status == GM_CANCELLED && atomic_load(&p->gone)) ||
           (status == GM_DEVICE_LOST && w->lost) || (status == GM_DRAINING && w->closing) ||
           fails_explain(p, status);
}

static void on_done(struct gm_job *job)
{
    struct probe *p = (struct probe *)job;
    struct world *w = p->world;
    enum gm_status status = job->task.status;

    pthread_mutex_lock(&w->gate.mutex);
    MUST_SAY(p->place == QUEUED || p->place == RAN, "done in place %d", (int)p->place);
    if (p->place == QUEUED) {
        MUST_SAY(explained(p, status), "ended with %s and nothing says why",
                 gm_status_code(status));
        MUST(job->started_ns == 0 && job->batch == 0);
    } else {
        bool stopped = p->verdict == GM_CANCELLED;
        MUST_SAY(stopped ? explained(p, status) : status == p->verdict,
                 "%s after a run that ended with %s", gm_status_code(status),
                 gm_status_code(p->verdict));
        MUST(job->started_ns >= job->queued_ns && job->finished_ns >= job->started_ns);
        MUST(job->batch == p->batch);
    }
    if (status != GM_OK)
        fuzz_check_error(status, &job->task.error);
    MUST(job->queued_ns > 0 && job->finished_ns >= job->queued_ns);
    p->place = DONE;
    pthread_mutex_unlock(&w->gate.mutex);
}

static bool is_abandoned(const struct gm_job *job, bool running)
{
    (void)running;
    return atomic_load(&((const struct probe *)job)->gone);
}

static void on_lost(void *cls)
{
    struct world *w = cls;
    pthread_mutex_lock(&w->gate.mutex);
    MUST(w->lost && w->lost_calls == 0);
    w->lost_calls++;
    pthread_mutex_unlock(&w->gate.mutex);
}

/* The jobs in progress, and whether one of them wants the device for itself. */
static unsigned count_running(const struct world *w, bool *ret_exclusive)
{
    unsigned running = 0;
    *ret_exclusive = false;
    for (unsigned i = 0; i < w->jobs; i++)
        if (w->probe[i].place == RUNNING) {
            running++;
            *ret_exclusive = *ret_exclusive || w->probe[i].job.exclusive;
        }
    return running;
}

static void on_began(void *cls, const struct gate_run *run)
{
    struct world *w = cls;
    bool exclusive;
    uint64_t key = probe_of(run->task[0])->job.batch_key;

    MUST(w->gate.active <= w->gate.facts.streams);
    for (unsigned i = 0; i < run->n; i++) {
        struct probe *p = probe_of(run->task[i]);
        MUST(p->place == QUEUED);
        MUST(run->n == 1 || (key != 0 && p->job.batch_key == key && !p->job.exclusive));
        p->place = RUNNING;
        p->batch = run->n;
    }
    unsigned running = count_running(w, &exclusive);
    MUST(!exclusive || running == 1);
}

static void on_ended(void *cls, const struct gate_run *run)
{
    (void)cls;
    for (unsigned i = 0; i < run->n; i++) {
        struct probe *p = probe_of(run->task[i]);
        MUST(p->place == RUNNING);
        p->place = RAN;
        p->verdict = run->task[i]->status;
    }
}

/* Whether nothing can happen any more without another event. The gate's mutex is held. */
static bool settled(struct world *w, uint64_t *ret_queued, uint64_t *ret_running)
{
    bool exclusive_runs, exclusive_waits = false;
    uint64_t queued = 0, running = count_running(w, &exclusive_runs);

    for (unsigned i = 0; i < w->jobs; i++) {
        const struct probe *p = &w->probe[i];
        bool failed = w->failings != p->failings;
        if (p->place == RAN)
            return false;
        bool ends = atomic_load(&p->gone) || p->late || failed;
        if (ends &&
            (p->place == QUEUED || (p->place == RUNNING && !atomic_load(&p->job.task.stop))))
            return false;
        queued += p->place == QUEUED;
        exclusive_waits = exclusive_waits || (p->place == QUEUED && p->job.exclusive);
    }
    *ret_queued = queued;
    *ret_running = running;
    for (unsigned stream = 0; stream < w->gate.facts.streams; stream++)
        if (gate_ends(&w->gate.run[stream]))
            return false;
    if (queued == 0)
        return !w->lost || w->lost_calls > 0;
    bool stream_free = w->gate.active < w->gate.facts.streams;
    bool blocked = exclusive_runs || (exclusive_waits && running > 0);
    return !w->lost && (!stream_free || blocked);
}

static uint64_t all_reserved(const struct world *w)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CLIENTS; i++)
        sum += w->reserved[i];
    return sum;
}

/* The model does not know whose turn it is: where an exclusive job waits, one whose turn comes
 * first may still be about to start. */
static bool about_to_start(struct world *w)
{
    pthread_mutex_lock(&w->sched->mutex);
    bool startable = !w->sched->lost && gm_sched_startable(w->sched);
    pthread_mutex_unlock(&w->sched->mutex);
    return startable;
}

/* Waits until nothing changes any more, then compares the counts. */
void world_settle(struct world *w)
{
    int64_t deadline = gm_now_ns() + TIMEOUT_NS;
    for (;;) {
        uint64_t queued = 0, running = 0;
        gate_poke(&w->gate);
        pthread_mutex_lock(&w->gate.mutex);
        bool calm = settled(w, &queued, &running);
        pthread_mutex_unlock(&w->gate.mutex);
        calm = calm && !about_to_start(w);
        struct gm_sched_load load = gm_sched_load(w->sched);
        unsigned retry = gm_sched_retry_after(w->sched);
        MUST(retry >= 1 && retry <= GM_RETRY_AFTER_S_MAX && load.capacity == w->limit);
        if (calm && load.queued == queued + all_reserved(w) && load.running == running &&
            load.lost == w->lost)
            return;
        MUST_SAY(gm_now_ns() < deadline,
                 "calm %d, queued %llu of %llu and %llu reserved, running %llu of %llu, lost %d",
                 calm, (unsigned long long)load.queued, (unsigned long long)queued,
                 (unsigned long long)all_reserved(w), (unsigned long long)load.running,
                 (unsigned long long)running, load.lost);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

/* Whether there is a place for the client, by the model; after world_settle() alone. */
bool world_has_place(struct world *w, unsigned client)
{
    uint64_t taken = all_reserved(w), held = w->reserved[client];
    pthread_mutex_lock(&w->gate.mutex);
    for (unsigned i = 0; i < w->jobs; i++) {
        taken += w->probe[i].place == QUEUED;
        held += w->probe[i].place == QUEUED && w->probe[i].job.slot.client == client;
    }
    pthread_mutex_unlock(&w->gate.mutex);
    return taken < w->limit && held < GM_SCHED_SHARE * (w->limit - taken);
}

struct probe *world_new_job(struct world *w, unsigned kind)
{
    pthread_mutex_lock(&w->gate.mutex);
    struct probe *p = &w->probe[w->jobs++];
    p->world = w;
    p->place = QUEUED;
    p->failings = w->failings;
    p->job.batch_key = kind & 3;
    p->job.exclusive = kind & 4;
    p->job.slot.client = CLIENT_OF(kind);
    p->job.slot.cost_s = kind & 128 ? 0.1 : 0;
    p->late = (kind & 24) == 24 || (kind & 24) == 8;
    p->job.deadline_ns = (kind & 24) == 24  ? gm_now_ns() + 500000
                         : (kind & 24) == 8 ? gm_now_ns() - 1
                                            : GM_NEVER;
    p->job.done = on_done;
    p->job.abandoned = is_abandoned;
    pthread_mutex_unlock(&w->gate.mutex);
    return p;
}

enum answer world_can_run_here(struct world *w, bool exclusive)
{
    bool exclusive_runs, exclusive_waits = false, other_waits = false;
    pthread_mutex_lock(&w->gate.mutex);
    count_running(w, &exclusive_runs);
    for (unsigned i = 0; i < w->jobs; i++)
        if (w->probe[i].place == QUEUED)
            *(w->probe[i].job.exclusive ? &exclusive_waits : &other_waits) = true;
    bool never = w->lost || exclusive || exclusive_runs || (exclusive_waits && !other_waits);
    pthread_mutex_unlock(&w->gate.mutex);
    return never ? NO : exclusive_waits ? EITHER : YES;
}

/* Jobs of one kind started in the order of their commits. (What order the gate sees runs of two
 * streams in means nothing: the scheduler's clock does.) */
static void check_order(const struct world *w)
{
    for (unsigned i = 0; i < w->jobs; i++)
        for (unsigned j = i + 1; j < w->jobs; j++) {
            const struct gm_job *one = &w->probe[i].job, *next = &w->probe[j].job;
            bool alike = one->exclusive == next->exclusive && one->batch_key == next->batch_key &&
                         one->slot.client == next->slot.client &&
                         one->slot.cost_s == next->slot.cost_s;
            bool turns = alike && !w->probe[j].here;
            MUST(!turns || one->started_ns == 0 || next->started_ns == 0 ||
                 one->started_ns <= next->started_ns);
        }
}

static void *open_later(void *cls)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    gate_open(cls);
    return NULL;
}

void world_end(struct world *w)
{
    pthread_t opener;
    pthread_mutex_lock(&w->gate.mutex);
    w->closing = true;
    pthread_mutex_unlock(&w->gate.mutex);
    MUST(pthread_create(&opener, NULL, open_later, &w->gate) == 0);
    gm_sched_close(w->sched);
    pthread_join(opener, NULL);
    for (unsigned i = 0; i < w->jobs; i++)
        MUST(w->probe[i].place == DONE);
    MUST(w->lost_calls == w->lost);
    check_order(w);
    gate_destroy(&w->gate);
}

void world_init(struct world *w, unsigned streams, unsigned batch_max, uint64_t limit)
{
    struct gm_sched_options options = {.backend = &gate_backend,
                                       .context = &w->gate,
                                       .queue_limit = limit,
                                       .lost = on_lost,
                                       .lost_cls = w};
    struct gm_error err;

    memset(w, 0, sizeof *w);
    gate_init(&w->gate, streams, batch_max);
    w->gate.began = on_began;
    w->gate.ended = on_ended;
    w->gate.cls = w;
    w->limit = limit;
    MUST(gm_sched_open(&options, &w->sched, &err) == GM_OK);
}
