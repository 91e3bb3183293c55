/* The scheduler: order, limits, lanes, batches, and the rate at which it drains. */
#include "tests/unit/sched_bench.h"

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

int main(void)
{
    test_order();
    test_queue_limit();
    test_lanes();
    test_batches();
    test_exclusive();
    test_failure();
    test_run_here();
    test_retry_after();
    return check_report();
}
