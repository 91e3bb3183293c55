/*
 * fuzz_sched.c - the scheduler's state machine against a model. Input: streams, largest batch,
 * queue slots; then events: slots reserved and given back, jobs committed with or without
 * deadline, batch key and exclusiveness, clients that leave, runs that end well, badly or with the
 * device, everything told to fail, and at last close().
 *
 * Checked: each committed job is done() exactly once, with a status that something in its life
 * explains, and times in order; it runs at most once, and not after done(); what runs together may
 * (one key, streams, exclusiveness); a client's jobs of a kind start in the order of their commits;
 * whenever nothing changes any more, no job waits that could run, none is left whose client or time
 * is gone, and the counts are the model's, so that a slot is refused exactly where there is none;
 * the loss of the device is told once; no event, in whatever order, ends in a deadlock.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/sched_world.h"

static void reserve(struct world *w, unsigned kind)
{
    struct gm_error err = {0};
    unsigned client = CLIENT_OF(kind);
    world_settle(w);
    bool place = world_has_place(w, client);
    enum gm_status status = gm_sched_reserve(w->sched, client, &err);
    MUST(status == (w->lost ? GM_DEVICE_LOST : place ? GM_OK : GM_QUEUE_FULL));
    if (status != GM_OK)
        fuzz_check_error(status, &err);
    w->reserved[client] += status == GM_OK;
}

static void commit(struct world *w, unsigned kind)
{
    if (w->reserved[CLIENT_OF(kind)] == 0 || w->jobs == JOBS_MAX)
        return;
    w->reserved[CLIENT_OF(kind)]--;
    gm_sched_commit(w->sched, &world_new_job(w, kind)->job);
}

/* A job on this thread, if that is possible just now. */
static void run_here(struct world *w, unsigned kind)
{
    static const enum gm_status verdicts[] = {GM_OK, GM_OK, GM_KERNEL_FAULT, GM_DEVICE_LOST};

    if (w->jobs == JOBS_MAX)
        return;
    world_settle(w);
    enum answer possible = world_can_run_here(w, kind & 4);
    struct probe *p = world_new_job(w, kind & ~24u); /* without a deadline */
    pthread_mutex_lock(&w->gate.mutex);
    p->here = true;
    w->gate.here_verdict = possible == YES ? verdicts[kind >> 3 & 3] : GM_OK;
    w->lost = w->lost || w->gate.here_verdict == GM_DEVICE_LOST; /* before it can be seen */
    pthread_mutex_unlock(&w->gate.mutex);
    bool ran = gm_sched_run_here(w->sched, &p->job);
    MUST(possible == EITHER || ran == (possible == YES));
    if (ran) {
        MUST(p->place == RAN && p->job.task.status == w->gate.here_verdict);
        p->place = DONE;
    } else { /* as if it had never been */
        MUST(p->place == QUEUED);
        w->jobs--;
        memset(p, 0, sizeof *p);
    }
}

/* Lets a run end. */
static void release(struct world *w, unsigned which)
{
    static const enum gm_status verdicts[] = {
        GM_OK, GM_OK, GM_OK, GM_OK, GM_KERNEL_FAULT, GM_DEVICE_MEMORY, GM_OK, GM_DEVICE_LOST};
    enum gm_status verdict = verdicts[which >> 2 & 7];
    pthread_mutex_lock(&w->gate.mutex);
    bool before = w->lost;
    w->lost = w->lost || verdict == GM_DEVICE_LOST; /* before it can be seen */
    pthread_mutex_unlock(&w->gate.mutex);
    if (!gate_release(&w->gate, which & 3, verdict)) {
        pthread_mutex_lock(&w->gate.mutex);
        w->lost = before;
        pthread_mutex_unlock(&w->gate.mutex);
    }
}

static void leave(struct world *w, unsigned which)
{
    if (w->jobs == 0)
        return;
    atomic_store(&w->probe[which % w->jobs].gone, true);
}

static void fail_all(struct world *w, unsigned which)
{
    static const enum gm_status with[] = {GM_DRAINING, GM_CANCELLED, GM_DEADLINE, GM_DEVICE_LOST};
    pthread_mutex_lock(&w->gate.mutex);
    w->failed_with[w->failings++] = with[which & 3];
    pthread_mutex_unlock(&w->gate.mutex);
    gm_sched_fail_all(w->sched, with[which & 3]);
}

static void happen(struct world *w, unsigned event, unsigned detail)
{
    switch (event) {
    case 0:
    case 1:
        reserve(w, detail);
        commit(w, detail);
        break;
    case 2:
        reserve(w, detail);
        break;
    case 3:
        commit(w, detail);
        break;
    case 4:
    case 5:
        release(w, detail);
        break;
    case 6:
        leave(w, detail);
        break;
    case 7:
        run_here(w, detail);
        break;
    case 8:
        if (w->reserved[CLIENT_OF(detail)] > 0) {
            w->reserved[CLIENT_OF(detail)]--;
            gm_sched_unreserve(w->sched, CLIENT_OF(detail));
        }
        break;
    case 9:
        w->reserved[CLIENT_OF(detail)]++;
        gm_sched_reserve_more(w->sched, CLIENT_OF(detail));
        break;
    case 10:
        fail_all(w, detail);
        break;
    default:
        world_settle(w);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    struct world *w = fuzz_alloc(sizeof *w);
    unsigned streams = 1 + fuzz_choice(&in, GATE_STREAMS_MAX);
    unsigned batch_max = 1 + fuzz_choice(&in, GATE_BATCH_MAX);

    world_init(w, streams, batch_max, 1 + fuzz_choice(&in, 10));
    for (int i = 0; i < EVENTS_MAX && in.left > 0; i++) {
        uint8_t event = fuzz_byte(&in);
        happen(w, (event & 0x3F) % 12, fuzz_byte(&in));
        if (event & 0x40) /* letters settle; what is 64 lower rushes on */
            world_settle(w);
    }
    world_end(w);
    free(w);
    return 0;
}
