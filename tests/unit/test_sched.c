/* The scheduler, driven through every path by a fake device. */
#include "server/clock.h"
#include "server/limits.h"
#include "server/sched.h"
#include "tests/unit/check.h"
#include "tests/unit/fake_backend.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUEUE 4

struct bench {
    struct fake fake;
    struct gm_sched *sched;
    atomic_int lost_calls;
};

/* A job that remembers how it ended. */
struct probe {
    struct gm_job job;
    atomic_int done;
    atomic_bool client_gone, gone_while_running;
};

static void on_done(struct gm_job *job)
{
    atomic_fetch_add(&((struct probe *)job)->done, 1);
}

static bool is_abandoned(const struct gm_job *job, bool running)
{
    const struct probe *p = (const struct probe *)job;

    return running ? atomic_load(&p->gone_while_running) : atomic_load(&p->client_gone);
}

static void on_lost(void *cls)
{
    atomic_fetch_add(&((struct bench *)cls)->lost_calls, 1);
}

static void open_bench(struct bench *b, unsigned lanes, unsigned batch_max, uint64_t queue_limit)
{
    struct gm_error error;

    fake_init(&b->fake, lanes, batch_max);
    atomic_init(&b->lost_calls, 0);
    struct gm_sched_options options = {.backend = &fake_backend,
                                       .context = &b->fake,
                                       .queue_limit = queue_limit,
                                       .lost = on_lost,
                                       .lost_cls = b};
    CHECK(gm_sched_open(&options, &b->sched, &error) == GM_OK);
}

static void close_bench(struct bench *b)
{
    gm_sched_close(b->sched);
    CHECK(!b->fake.lane_clash);
    fake_destroy(&b->fake);
}

static void init_probe(struct probe *p)
{
    memset(p, 0, sizeof *p);
    p->job.deadline_ns = GM_NEVER;
    p->job.done = on_done;
    p->job.abandoned = is_abandoned;
}

static enum gm_status submit(struct bench *b, struct probe *p)
{
    struct gm_error error;
    enum gm_status status = gm_sched_reserve(b->sched, &error);

    if (status == GM_OK)
        gm_sched_commit(b->sched, &p->job);
    return status;
}

static bool wait_done(struct probe *p)
{
    for (int i = 0; i < 5000 && atomic_load(&p->done) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    return atomic_load(&p->done) == 1;
}

/* Everything committed runs, in order, one at a time on one lane, and is done once. */
static void test_order(void)
{
    struct bench b;
    struct probe p[QUEUE + 1];

    open_bench(&b, 1, 1, QUEUE);
    fake_hold(&b.fake, true);
    for (int i = 0; i < QUEUE + 1; i++)
        init_probe(&p[i]);
    CHECK(submit(&b, &p[0]) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    for (int i = 1; i < QUEUE + 1; i++)
        CHECK(submit(&b, &p[i]) == GM_OK);
    CHECK(gm_sched_load(b.sched).queued == QUEUE);
    CHECK(gm_sched_load(b.sched).running == 1);
    fake_hold(&b.fake, false);
    for (int i = 0; i < QUEUE + 1; i++) {
        CHECK(wait_done(&p[i]));
        CHECK(p[i].job.task.status == GM_OK);
        CHECK(b.fake.run[i].first == &p[i].job.task);
        CHECK(p[i].job.batch == 1);
        CHECK(!p[i].job.concurrent);
        CHECK(p[i].job.queued_ns <= p[i].job.started_ns);
        CHECK(p[i].job.started_ns <= p[i].job.finished_ns);
    }
    CHECK(b.fake.running_most == 1);
    close_bench(&b);
}

static void test_queue_limit(void)
{
    struct bench b;
    struct probe p[QUEUE + 2];
    struct gm_error error = {0};

    open_bench(&b, 1, 1, QUEUE);
    fake_hold(&b.fake, true);
    for (int i = 0; i < QUEUE + 2; i++)
        init_probe(&p[i]);
    CHECK(submit(&b, &p[0]) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    for (int i = 1; i < QUEUE; i++)
        CHECK(submit(&b, &p[i]) == GM_OK);
    /* A reservation counts, and can be given back. */
    CHECK(gm_sched_reserve(b.sched, &error) == GM_OK);
    CHECK(gm_sched_reserve(b.sched, &error) == GM_QUEUE_FULL);
    CHECK(strstr(error.detail, "4 places"));
    gm_sched_unreserve(b.sched);
    CHECK(submit(&b, &p[QUEUE]) == GM_OK);
    CHECK(submit(&b, &p[QUEUE + 1]) == GM_QUEUE_FULL);
    fake_hold(&b.fake, false);
    for (int i = 0; i <= QUEUE; i++)
        CHECK(wait_done(&p[i]));
    CHECK(atomic_load(&p[QUEUE + 1].done) == 0);
    close_bench(&b);
}

static void test_lanes(void)
{
    struct bench b;
    struct probe p[3];

    open_bench(&b, 3, 1, QUEUE);
    fake_hold(&b.fake, true);
    for (int i = 0; i < 3; i++) {
        init_probe(&p[i]);
        CHECK(submit(&b, &p[i]) == GM_OK);
    }
    CHECK(fake_wait_running(&b.fake, 3));
    fake_hold(&b.fake, false);
    for (int i = 0; i < 3; i++) {
        CHECK(wait_done(&p[i]));
        CHECK(p[i].job.concurrent);
    }
    struct probe alone;
    init_probe(&alone);
    CHECK(submit(&b, &alone) == GM_OK);
    CHECK(wait_done(&alone));
    CHECK(!alone.job.concurrent);
    close_bench(&b);
}

static void test_batches(void)
{
    struct bench b;
    struct probe p[8];
    /* One runs and holds the lane; then keys 7 7 9 7 0 7 9: batches 7777, 99, 0. */
    static const uint64_t keys[8] = {7, 7, 7, 9, 7, 0, 7, 9};

    open_bench(&b, 1, 4, 16);
    fake_hold(&b.fake, true);
    for (int i = 0; i < 8; i++) {
        init_probe(&p[i]);
        p[i].job.batch_key = keys[i];
        CHECK(submit(&b, &p[i]) == GM_OK);
        if (i == 0)
            CHECK(fake_wait_running(&b.fake, 1));
    }
    fake_hold(&b.fake, false);
    for (int i = 0; i < 8; i++)
        CHECK(wait_done(&p[i]));
    CHECK(fake_runs(&b.fake) == 4);
    CHECK(b.fake.run[0].n == 1);
    CHECK(b.fake.run[1].n == 4 && b.fake.run[1].first == &p[1].job.task);
    CHECK(b.fake.run[2].n == 2 && b.fake.run[2].first == &p[3].job.task);
    CHECK(b.fake.run[3].n == 1 && b.fake.run[3].first == &p[5].job.task);
    CHECK(p[6].job.batch == 4 && p[7].job.batch == 2 && p[5].job.batch == 1);
    close_bench(&b);
}

/* A job that wants the device alone waits for the others, and they for it. */
static void test_exclusive(void)
{
    struct bench b;
    struct probe before, alone, after;

    open_bench(&b, 3, 4, QUEUE);
    fake_hold(&b.fake, true);
    init_probe(&before);
    init_probe(&alone);
    init_probe(&after);
    alone.job.exclusive = true;
    alone.job.batch_key = after.job.batch_key = 5;
    CHECK(submit(&b, &before) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(submit(&b, &alone) == GM_OK);
    CHECK(submit(&b, &after) == GM_OK);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    CHECK(gm_sched_load(b.sched).running == 1);
    CHECK(gm_sched_load(b.sched).queued == 2);
    fake_hold(&b.fake, false);
    CHECK(wait_done(&before) && wait_done(&alone) && wait_done(&after));
    CHECK(b.fake.running_most == 1);
    CHECK(!alone.job.concurrent && alone.job.batch == 1 && after.job.batch == 1);
    close_bench(&b);
}

static void test_failure(void)
{
    struct bench b;
    struct probe bad, good;

    open_bench(&b, 1, 1, QUEUE);
    init_probe(&bad);
    init_probe(&good);
    fake_next(&b.fake, GM_DEVICE_MEMORY);
    CHECK(submit(&b, &bad) == GM_OK);
    CHECK(wait_done(&bad));
    CHECK(bad.job.task.status == GM_DEVICE_MEMORY);
    CHECK(strcmp(bad.job.task.error.detail, "the fake was told to") == 0);
    fake_next(&b.fake, GM_OK);
    CHECK(submit(&b, &good) == GM_OK);
    CHECK(wait_done(&good));
    CHECK(good.job.task.status == GM_OK);
    CHECK(atomic_load(&b.lost_calls) == 0);
    close_bench(&b);
}

/* A lost device ends everything that was accepted, once, and refuses the rest. */
static void test_lost(void)
{
    struct bench b;
    struct probe p[QUEUE + 2];
    struct gm_error error;

    open_bench(&b, 2, 1, QUEUE);
    fake_hold(&b.fake, true);
    for (int i = 0; i < QUEUE + 2; i++) {
        init_probe(&p[i]);
        CHECK(submit(&b, &p[i]) == GM_OK);
        if (i < 2)
            CHECK(fake_wait_running(&b.fake, (unsigned)i + 1));
    }
    fake_next(&b.fake, GM_DEVICE_LOST);
    fake_hold(&b.fake, false);
    for (int i = 0; i < QUEUE + 2; i++) {
        CHECK(wait_done(&p[i]));
        CHECK(p[i].job.task.status == GM_DEVICE_LOST);
        CHECK(p[i].job.task.error.detail[0] != '\0');
    }
    CHECK(gm_sched_load(b.sched).lost);
    CHECK(gm_sched_reserve(b.sched, &error) == GM_DEVICE_LOST);
    for (int i = 0; i < 1000 && atomic_load(&b.lost_calls) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    close_bench(&b);
    CHECK(atomic_load(&b.lost_calls) == 1);
    CHECK(b.fake.runs <= 4);
}

/* A slot that was reserved before the loss still ends in one done(). */
static void test_commit_after_loss(void)
{
    struct bench b;
    struct probe losing, late;
    struct gm_error error;

    open_bench(&b, 1, 1, QUEUE);
    init_probe(&losing);
    init_probe(&late);
    CHECK(gm_sched_reserve(b.sched, &error) == GM_OK);
    fake_next(&b.fake, GM_DEVICE_LOST);
    CHECK(submit(&b, &losing) == GM_OK);
    CHECK(wait_done(&losing));
    gm_sched_commit(b.sched, &late.job);
    CHECK(wait_done(&late));
    CHECK(late.job.task.status == GM_DEVICE_LOST);
    close_bench(&b);
}

static void test_deadline(void)
{
    struct bench b;
    struct probe running, queued, lasting;

    open_bench(&b, 1, 1, QUEUE);
    fake_hold(&b.fake, true);
    init_probe(&running);
    init_probe(&queued);
    init_probe(&lasting);
    int64_t begun = gm_now_ns();
    running.job.deadline_ns = begun + 150 * 1000000;
    queued.job.deadline_ns = begun + 60 * 1000000;
    CHECK(submit(&b, &running) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(submit(&b, &queued) == GM_OK);
    CHECK(submit(&b, &lasting) == GM_OK);
    CHECK(wait_done(&queued));
    CHECK(queued.job.task.status == GM_DEADLINE);
    CHECK(queued.job.started_ns == 0);
    CHECK(queued.job.finished_ns >= queued.job.deadline_ns);
    CHECK(wait_done(&running));
    CHECK(running.job.task.status == GM_DEADLINE);
    CHECK(running.job.finished_ns >= running.job.deadline_ns);
    CHECK(atomic_load(&lasting.done) == 0);
    fake_hold(&b.fake, false);
    CHECK(wait_done(&lasting));
    CHECK(lasting.job.task.status == GM_OK);
    close_bench(&b);
}

static void test_abandoned(void)
{
    struct bench b;
    struct probe running, queued, other;

    open_bench(&b, 1, 1, QUEUE);
    fake_hold(&b.fake, true);
    init_probe(&running);
    init_probe(&queued);
    init_probe(&other);
    CHECK(submit(&b, &running) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(submit(&b, &queued) == GM_OK);
    CHECK(submit(&b, &other) == GM_OK);
    /* Half-closed: only what still waits is taken for abandoned. */
    atomic_store(&running.client_gone, true);
    atomic_store(&queued.client_gone, true);
    CHECK(wait_done(&queued));
    CHECK(queued.job.task.status == GM_CANCELLED);
    CHECK(atomic_load(&running.done) == 0);
    atomic_store(&running.gone_while_running, true);
    CHECK(wait_done(&running));
    CHECK(running.job.task.status == GM_CANCELLED);
    CHECK(strstr(running.job.task.error.detail, "went away"));
    fake_hold(&b.fake, false);
    CHECK(wait_done(&other));
    CHECK(other.job.task.status == GM_OK);
    close_bench(&b);
}

static void test_fail_all(void)
{
    struct bench b;
    struct probe running, queued, next;

    open_bench(&b, 1, 1, QUEUE);
    fake_hold(&b.fake, true);
    init_probe(&running);
    init_probe(&queued);
    init_probe(&next);
    CHECK(submit(&b, &running) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(submit(&b, &queued) == GM_OK);
    gm_sched_fail_all(b.sched, GM_DRAINING);
    CHECK(wait_done(&queued) && wait_done(&running));
    CHECK(queued.job.task.status == GM_DRAINING);
    CHECK(running.job.task.status == GM_DRAINING);
    fake_hold(&b.fake, false);
    CHECK(submit(&b, &next) == GM_OK); /* it only ends what was there */
    CHECK(wait_done(&next));
    CHECK(next.job.task.status == GM_OK);
    close_bench(&b);
}

/* Closing waits for what runs and fails the rest. */
static void test_close(void)
{
    struct bench b;
    struct probe running, queued;

    open_bench(&b, 1, 1, QUEUE);
    b.fake.busy_us = 30000;
    init_probe(&running);
    init_probe(&queued);
    CHECK(submit(&b, &running) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(submit(&b, &queued) == GM_OK);
    close_bench(&b);
    CHECK(atomic_load(&running.done) == 1 && running.job.task.status == GM_OK);
    CHECK(atomic_load(&queued.done) == 1 && queued.job.task.status == GM_DRAINING);
}

static void test_run_here(void)
{
    struct bench b;
    struct probe here, busy, refused;
    struct gm_error error;

    open_bench(&b, 1, 1, QUEUE);
    init_probe(&here);
    init_probe(&busy);
    init_probe(&refused);
    CHECK(gm_sched_reserve(b.sched, &error) == GM_OK);
    CHECK(gm_sched_run_here(b.sched, &here.job));
    CHECK(here.job.task.status == GM_OK);
    CHECK(atomic_load(&here.done) == 0);
    CHECK(gm_sched_load(b.sched).queued == 0 && gm_sched_load(b.sched).running == 0);

    fake_hold(&b.fake, true);
    CHECK(submit(&b, &busy) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(gm_sched_reserve(b.sched, &error) == GM_OK);
    CHECK(!gm_sched_run_here(b.sched, &refused.job));
    CHECK(gm_sched_load(b.sched).queued == 1); /* the slot is still there */
    gm_sched_commit(b.sched, &refused.job);
    fake_hold(&b.fake, false);
    CHECK(wait_done(&busy) && wait_done(&refused));
    close_bench(&b);
}

static void test_retry_after(void)
{
    struct bench b;
    struct probe p[QUEUE];
    struct probe first;

    open_bench(&b, 1, 1, QUEUE);
    CHECK(gm_sched_retry_after(b.sched) == 1); /* never 0, and nothing measured yet */
    b.fake.busy_us = 700000;
    init_probe(&first);
    CHECK(submit(&b, &first) == GM_OK);
    CHECK(wait_done(&first));
    b.fake.busy_us = 0;
    fake_hold(&b.fake, true);
    for (int i = 0; i < QUEUE; i++) {
        init_probe(&p[i]);
        CHECK(submit(&b, &p[i]) == GM_OK);
    }
    /* Four jobs of 0.7 s each on one lane. */
    unsigned seconds = gm_sched_retry_after(b.sched);
    CHECK(seconds >= 3 && seconds <= 5); /* a sleep may be long on a busy machine */
    fake_hold(&b.fake, false);
    for (int i = 0; i < QUEUE; i++)
        CHECK(wait_done(&p[i]));
    close_bench(&b);
}

#define STORM_THREADS 4
#define STORM_JOBS 400

struct storm {
    struct bench *bench;
    unsigned seed;
    unsigned refused;
    struct probe probe[STORM_JOBS];
};

static void *storm_main(void *cls)
{
    struct storm *s = cls;

    for (int i = 0; i < STORM_JOBS; i++) {
        struct probe *p = &s->probe[i];
        unsigned dice = (unsigned)rand_r(&s->seed) % 16;
        init_probe(p);
        p->job.batch_key = dice % 3;
        p->job.exclusive = dice == 3;
        if (dice == 4)
            p->job.deadline_ns = gm_now_ns() + 100000;
        if (dice == 5)
            atomic_store(&p->client_gone, true);
        struct gm_error error;
        if (gm_sched_reserve(s->bench->sched, &error) != GM_OK) {
            s->refused++;
            p->job.done = NULL; /* never committed */
            continue;
        }
        if (dice == 6)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        if (dice < 8 || !gm_sched_run_here(s->bench->sched, &p->job))
            gm_sched_commit(s->bench->sched, &p->job);
        else
            atomic_store(&p->done, 1);
    }
    return NULL;
}

/* Many threads, all kinds of jobs: each accepted one is done exactly once. */
static void test_storm(void)
{
    static struct storm storm[STORM_THREADS];
    struct bench b;
    pthread_t thread[STORM_THREADS];

    open_bench(&b, 3, 4, 64);
    b.fake.busy_us = 20;
    for (unsigned i = 0; i < STORM_THREADS; i++) {
        storm[i].bench = &b;
        storm[i].seed = check_seed() + i;
        CHECK(pthread_create(&thread[i], NULL, storm_main, &storm[i]) == 0);
    }
    for (unsigned i = 0; i < STORM_THREADS; i++)
        pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < STORM_THREADS; i++)
        for (unsigned j = 0; j < STORM_JOBS; j++)
            if (storm[i].probe[j].job.done)
                CHECK(wait_done(&storm[i].probe[j]));
    CHECK(gm_sched_load(b.sched).queued == 0 && gm_sched_load(b.sched).running == 0);
    close_bench(&b);
}

int main(void)
{
    test_order();
    test_queue_limit();
    test_lanes();
    test_batches();
    test_exclusive();
    test_failure();
    test_lost();
    test_commit_after_loss();
    test_deadline();
    test_abandoned();
    test_fail_all();
    test_close();
    test_run_here();
    test_retry_after();
    test_storm();
    return check_report();
}
