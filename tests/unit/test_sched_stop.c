/* The scheduler: every way in which a job is refused or ends before its time, and all of them at
 * once. */
#include "tests/unit/sched_bench.h"

#include <stdlib.h>

/* Connections are shared out as queue slots are, whichever device has the jobs. */
static void test_connections(void)
{
    struct bench b;
    struct gm_sched *other;
    struct gm_error error = {0};

    open_bench(&b, 1, 1, 1000);
    const struct gm_sched_options options = {
        .backend = &fake_backend, .context = &b.fake, .queue_limit = 1000, .slots = &b.slots};
    CHECK_STATUS(gm_sched_open(&options, &other, &error), GM_OK, &error);
    for (int i = 0; i < 20; i++) /* no limit was stated */
        CHECK_STATUS(gm_sched_reserve(i % 2 ? other : b.sched, 1, &error), GM_OK, &error);
    CHECK_EQ(b.slots.taken, 20);
    atomic_store(&b.slots.most, 26);
    CHECK_STATUS(gm_sched_check(b.sched, 1, &error), GM_OK, &error);
    atomic_store(&b.slots.most, 25); /* four times what is free */
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(gm_sched_check(i ? other : b.sched, 1, &error), GM_QUEUE_FULL, NULL);
        CHECK(strstr(error.detail, "20 of the 25 connections"));
    }
    for (int i = 0; i < 4; i++)
        CHECK_STATUS(gm_sched_reserve(other, 2, &error), GM_OK, &error);
    CHECK_STATUS(gm_sched_reserve(other, 2, &error), GM_QUEUE_FULL, NULL);
    CHECK_STATUS(gm_sched_reserve(b.sched, 3, &error), GM_OK, &error);
    CHECK_STATUS(gm_sched_reserve(b.sched, 4, &error), GM_QUEUE_FULL, NULL);
    CHECK(strstr(error.detail, "all 25 connections"));
    for (int i = 0; i < 20; i++)
        gm_sched_unreserve(i % 2 ? other : b.sched, 1);
    for (int i = 0; i < 4; i++)
        gm_sched_unreserve(other, 2);
    CHECK_STATUS(gm_sched_check(b.sched, 1, &error), GM_OK, &error);
    gm_sched_unreserve(b.sched, 3);
    CHECK_EQ(b.slots.taken, 0);
    gm_sched_close(other);
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
    CHECK(gm_sched_reserve(b.sched, 0, &error) == GM_DEVICE_LOST);
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
    CHECK(gm_sched_reserve(b.sched, 0, &error) == GM_OK);
    fake_next(&b.fake, GM_DEVICE_LOST);
    CHECK(submit(&b, &losing) == GM_OK);
    CHECK(wait_done(&losing));
    CHECK(!gm_sched_run_if_idle(b.sched, &late.job));
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

#define STORM_THREADS 4
#define STORM_JOBS 400

/* A job on a thread of its own, beside the streams. */
struct beside {
    struct bench *bench;
    struct probe probe;
    pthread_t thread;
    bool ran;
};

static void *beside_main(void *cls)
{
    struct beside *x = cls;

    x->ran = gm_sched_run_here(x->bench->sched, &x->probe.job);
    return NULL;
}

/* It is held on its way. */
static void begin_beside(struct beside *x, struct bench *b)
{
    unsigned before = b->fake.runs_here;

    x->bench = b;
    init_probe(&x->probe);
    x->probe.job.deadline_ns = GM_NEVER;
    fake_hold_here(&b->fake, true);
    CHECK(pthread_create(&x->thread, NULL, beside_main, x) == 0);
    CHECK(fake_wait_here(&b->fake, before + 1));
}

static void end_beside(struct beside *x, enum gm_status status)
{
    pthread_join(x->thread, NULL);
    CHECK(x->ran && atomic_load(&x->probe.done) == 0);
    CHECK_EQ(x->probe.job.task.status, status);
}

/* A job that wants the device for itself waits for those beside the streams too, and is then woken.
 */
static void test_alone_after_beside(void)
{
    struct bench b;
    struct beside beside;
    struct probe alone;

    open_bench(&b, 1, 1, QUEUE);
    begin_beside(&beside, &b);
    init_probe(&alone);
    alone.job.exclusive = true;
    CHECK(submit(&b, &alone) == GM_OK);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    CHECK_EQ(fake_runs(&b.fake), 0);
    CHECK(gm_sched_load(b.sched).queued == 1 && gm_sched_load(b.sched).running == 1);
    fake_hold_here(&b.fake, false);
    end_beside(&beside, GM_OK);
    CHECK(wait_done(&alone));
    CHECK(gm_sched_load(b.sched).running == 0);
    CHECK(alone.job.task.status == GM_OK && !alone.job.concurrent);
    close_bench(&b);
}

/* A device that is lost to a job beside the streams fails what waits, refuses what comes, and is
 * told once. */
static void test_lost_beside(void)
{
    struct bench b;
    struct probe busy, waits, beside, late;
    struct gm_error error;

    open_bench(&b, 1, 1, QUEUE);
    init_probe(&busy);
    init_probe(&waits);
    init_probe(&beside);
    init_probe(&late);
    fake_hold(&b.fake, true);
    CHECK(submit(&b, &busy) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(submit(&b, &waits) == GM_OK);
    fake_next(&b.fake, GM_DEVICE_LOST);
    CHECK(gm_sched_run_here(b.sched, &beside.job));
    CHECK_EQ(beside.job.task.status, GM_DEVICE_LOST);
    CHECK(wait_done(&waits));
    CHECK_EQ(waits.job.task.status, GM_DEVICE_LOST);
    CHECK_EQ(atomic_load(&b.lost_calls), 1);
    CHECK(gm_sched_is_lost(b.sched) && gm_sched_load(b.sched).queued == 0);
    CHECK(!gm_sched_run_here(b.sched, &late.job));
    CHECK_EQ(gm_sched_reserve(b.sched, 0, &error), GM_DEVICE_LOST);
    fake_hold(&b.fake, false);
    CHECK(wait_done(&busy));
    CHECK_EQ(atomic_load(&b.lost_calls), 1);
    close_bench(&b);
}

#define BESIDE_THREADS 4
#define ALONE_JOBS 300

static void *beside_often(void *cls)
{
    struct beside *x = cls;

    x->ran = true;
    for (int i = 0; i < 20000 && x->ran; i++) {
        init_probe(&x->probe);
        x->ran = gm_sched_run_here(x->bench->sched, &x->probe.job);
    }
    return NULL;
}

/* Jobs beside the streams count the device as busy as long as some of them run, and no longer: not
 * once each, and not what was before them. */
static void test_busy_beside(void)
{
    static struct beside x[BESIDE_THREADS];
    struct bench b;

    open_bench(&b, 1, 1, QUEUE);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    int64_t begun = gm_now_ns();
    for (unsigned i = 0; i < BESIDE_THREADS; i++) {
        x[i].bench = &b;
        CHECK(pthread_create(&x[i].thread, NULL, beside_often, &x[i]) == 0);
    }
    for (unsigned i = 0; i < BESIDE_THREADS; i++) {
        pthread_join(x[i].thread, NULL);
        CHECK(x[i].ran);
    }
    uint64_t busy_ns = gm_sched_load(b.sched).busy_ns;
    CHECK(busy_ns > 0 && (int64_t)busy_ns <= gm_now_ns() - begun);
    CHECK_EQ(gm_sched_load(b.sched).running, 0);
    CHECK_EQ(gm_sched_load(b.sched).busy_ns, busy_ns);
    close_bench(&b);
}

static atomic_uint here_now, met;
static atomic_bool enough;

static enum gm_status run_alone(void *context, unsigned device, unsigned stream,
                                struct gm_task *task[], unsigned n)
{
    atomic_fetch_add(&met, atomic_load(&here_now));
    enum gm_status status = fake_backend.run(context, device, stream, task, n);
    atomic_fetch_add(&met, atomic_load(&here_now));
    return status;
}

static enum gm_status run_here(void *context, unsigned device, struct gm_task *task)
{
    atomic_fetch_add(&here_now, 1);
    enum gm_status status = fake_backend.run_here(context, device, task);
    atomic_fetch_sub(&here_now, 1);
    return status;
}

static void *beside_until_enough(void *cls)
{
    struct beside *x = cls;

    while (!atomic_load(&enough)) {
        init_probe(&x->probe);
        x->ran |= gm_sched_run_here(x->bench->sched, &x->probe.job);
    }
    return NULL;
}

/* Jobs that come beside the streams all the time neither meet one that runs alone, nor keep it
 * waiting, nor does it say so. */
static void test_alone_among_beside(void)
{
    static struct beside x[BESIDE_THREADS];
    struct gm_backend backend = fake_backend;
    unsigned concurrent = 0, done = 0;
    struct gm_error error;
    struct bench b;

    fake_init(&b.fake, 1, 1);
    backend.run = run_alone;
    backend.run_here = run_here;
    struct gm_sched_options options = {.backend = &backend,
                                       .context = &b.fake,
                                       .queue_limit = QUEUE,
                                       .awake_ns = 1000000,
                                       .lost = on_lost,
                                       .lost_cls = &b};
    if (!CHECK(gm_sched_open(&options, &b.sched, &error) == GM_OK))
        return;
    for (unsigned i = 0; i < BESIDE_THREADS; i++) {
        x[i] = (struct beside){.bench = &b};
        CHECK(pthread_create(&x[i].thread, NULL, beside_until_enough, &x[i]) == 0);
    }
    for (unsigned i = 0; i < ALONE_JOBS; i++) {
        struct probe alone;
        init_probe(&alone);
        alone.job.exclusive = true;
        CHECK(submit(&b, &alone) == GM_OK);
        done += wait_done(&alone);
        concurrent += alone.job.concurrent;
    }
    atomic_store(&enough, true);
    for (unsigned i = 0; i < BESIDE_THREADS; i++) {
        pthread_join(x[i].thread, NULL);
        CHECK(x[i].ran);
    }
    CHECK_EQ(done, ALONE_JOBS);
    CHECK_EQ(atomic_load(&met), 0);
    CHECK_EQ(concurrent, 0);
    CHECK_EQ(gm_sched_load(b.sched).running, 0);
    close_bench(&b);
}

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
        p->job.slot.client = (unsigned)rand_r(&s->seed) % 5;
        p->job.slot.cost_s = dice > 12 ? 0.1 : 1e-5;
        if (dice == 4)
            p->job.deadline_ns = gm_now_ns() + 100000;
        if (dice == 5)
            atomic_store(&p->client_gone, true);
        struct gm_error error;
        if (gm_sched_reserve(s->bench->sched, p->job.slot.client, &error) != GM_OK) {
            s->refused++;
            p->job.done = NULL; /* never committed */
            continue;
        }
        if (dice == 6)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        if (dice < 8 && dice % 2 == 1 && gm_sched_run_if_idle(s->bench->sched, &p->job)) {
            atomic_store(&p->done, 1);
        } else if (dice < 8 || !gm_sched_run_here(s->bench->sched, &p->job)) {
            gm_sched_commit(s->bench->sched, &p->job);
        } else {
            gm_sched_unreserve(s->bench->sched, p->job.slot.client);
            atomic_store(&p->done, 1);
        }
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

/* ---- Ceilings, measured again when the device is idle ---------------------------------------- */

static atomic_uint measured, measuring, cut_short;
static atomic_bool measure_long;

static enum gm_status fake_measure(void *context, unsigned device, unsigned stream,
                                   const atomic_bool *stop, struct gm_error *err)
{
    (void)context, (void)device, (void)stream, (void)err;
    atomic_fetch_add(&measuring, 1);
    for (int i = 0; i < 5000 && atomic_load(&measure_long) && !atomic_load(stop); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_fetch_add(&cut_short, atomic_load(stop));
    atomic_fetch_sub(&measuring, 1);
    atomic_fetch_add(&measured, 1);
    return GM_OK;
}

static bool reaches(atomic_uint *count, unsigned n)
{
    for (int i = 0; i < 5000 && atomic_load(count) < n; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return CHECK(atomic_load(count) >= n);
}

static void test_measure(unsigned streams)
{
    struct gm_backend measuring_backend = fake_backend;
    struct gm_error error;
    struct bench b;
    struct probe p;

    fake_init(&b.fake, streams, 1);
    measuring_backend.measure = fake_measure;
    struct gm_sched_options options = {.backend = &measuring_backend,
                                       .context = &b.fake,
                                       .queue_limit = QUEUE,
                                       .lost = on_lost,
                                       .measure_idle_ns = 20000000,
                                       .measure_again_ns = INT64_C(3600000000000),
                                       .lost_cls = &b};
    atomic_store(&measured, 0);
    atomic_store(&cut_short, 0);
    atomic_store(&measure_long, true);
    if (!CHECK(gm_sched_open(&options, &b.sched, &error) == GM_OK))
        return;
    /* A job stops it at once, and it is done again when the device is idle once more. */
    reaches(&measuring, 1);
    init_probe(&p);
    CHECK(submit(&b, &p) == GM_OK);
    CHECK(wait_done(&p));
    CHECK_EQ(atomic_load(&cut_short), 1);
    reaches(&measuring, 1);
    CHECK_EQ(atomic_load(&measured), 1);
    CHECK_EQ(fake_runs(&b.fake), 1);
    /* Once it was done whole, not again for long. */
    atomic_store(&measure_long, false);
    reaches(&measured, 2);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    CHECK_EQ(atomic_load(&measured), 2);
    init_probe(&p);
    CHECK(submit(&b, &p) == GM_OK);
    CHECK(wait_done(&p));
    CHECK_EQ(atomic_load(&measured), 2);
    close_bench(&b);
}

int main(void)
{
    test_measure(1);
    test_measure(3);
    test_connections();
    test_lost();
    test_commit_after_loss();
    test_deadline();
    test_abandoned();
    test_fail_all();
    test_close();
    test_alone_after_beside();
    test_lost_beside();
    test_busy_beside();
    test_alone_among_beside();
    test_storm();
    return check_report();
}
