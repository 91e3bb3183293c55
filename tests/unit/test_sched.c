/* The scheduler: order, queue slots, streams, batches, and the rate at which it drains. */
#include "tests/unit/sched_bench.h"

#include <sys/socket.h>
#include <unistd.h>

/* Everything committed runs, in order, one at a time on one stream, and is done once. */
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

/* Where streams are graded long jobs leave some to shorter ones, and these to short ones. */
static void test_graded_streams(void)
{
    static const double cost_s[] = {10, 20, 1, 1, 0.01};
    struct bench b;
    struct probe p[5];

    fake_init(&b.fake, 3, 1);
    b.fake.facts.graded_streams = true;
    start_bench(&b, 8);
    fake_hold(&b.fake, true);
    for (int i = 0; i < 5; i++) {
        init_probe(&p[i]);
        p[i].job.slot.cost_s = cost_s[i];
        CHECK(submit(&b, &p[i]) == GM_OK);
        if (i % 2 == 0)
            CHECK(fake_wait_running(&b.fake, (unsigned)i / 2 + 1));
    }
    CHECK(gm_sched_load(b.sched).running == 3 && gm_sched_load(b.sched).queued == 2);
    CHECK(p[0].job.started_ns > 0 && p[2].job.started_ns > 0 && p[4].job.started_ns > 0);
    CHECK(p[1].job.started_ns == 0 && p[3].job.started_ns == 0);
    fake_hold(&b.fake, false);
    for (int i = 0; i < 5; i++)
        CHECK(wait_done(&p[i]));
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
    CHECK(gm_sched_reserve(b.sched, 0, &error) == GM_OK);
    CHECK(gm_sched_reserve(b.sched, 0, &error) == GM_QUEUE_FULL);
    CHECK(strstr(error.detail, "4 queue slots"));
    gm_sched_unreserve(b.sched, 0);
    CHECK(submit(&b, &p[QUEUE]) == GM_OK);
    CHECK(submit(&b, &p[QUEUE + 1]) == GM_QUEUE_FULL);
    fake_hold(&b.fake, false);
    for (int i = 0; i <= QUEUE; i++)
        CHECK(wait_done(&p[i]));
    CHECK(atomic_load(&p[QUEUE + 1].done) == 0);
    close_bench(&b);
}

/* Of 16 queue slots a client may have 13, which is four times what is then free; others come in at
 * once, and as the first one's jobs leave, it gets new slots when the shares are even. */
static void test_shares(void)
{
    struct bench b;
    struct gm_error error = {0};

    open_bench(&b, 1, 1, 16);
    for (int i = 0; i < 13; i++)
        CHECK_STATUS(gm_sched_reserve(b.sched, 1, &error), GM_OK, &error);
    CHECK_STATUS(gm_sched_reserve(b.sched, 1, &error), GM_QUEUE_FULL, NULL);
    CHECK(strstr(error.detail, "13 of the 16"));
    CHECK_STATUS(gm_sched_check(b.sched, 1, &error), GM_QUEUE_FULL, NULL);
    CHECK_STATUS(gm_sched_check(b.sched, 2, &error), GM_OK, &error); /* takes none */
    CHECK_STATUS(gm_sched_reserve(b.sched, 2, &error), GM_OK, &error);
    CHECK_STATUS(gm_sched_reserve(b.sched, 2, &error), GM_OK, &error);
    CHECK_STATUS(gm_sched_reserve(b.sched, 3, &error), GM_OK, &error);
    CHECK_STATUS(gm_sched_reserve(b.sched, 4, &error), GM_QUEUE_FULL, NULL);
    CHECK(strstr(error.detail, "16 queue slots"));
    gm_sched_unreserve(b.sched, 1);
    CHECK_STATUS(gm_sched_reserve(b.sched, 1, &error), GM_QUEUE_FULL, NULL);
    CHECK_STATUS(gm_sched_reserve(b.sched, 2, &error), GM_OK, &error);
    /* Half done, so not refused; it counts as well. */
    gm_sched_reserve_more(b.sched, 5);
    CHECK_EQ(gm_sched_load(b.sched).queued, 17);
    gm_sched_unreserve(b.sched, 5);
    for (int i = 0; i < 12; i++)
        gm_sched_unreserve(b.sched, 1);
    for (int i = 0; i < 3; i++)
        gm_sched_unreserve(b.sched, 2);
    gm_sched_unreserve(b.sched, 3);
    CHECK_EQ(gm_sched_load(b.sched).queued, 0);
    for (int i = 0; i < 13; i++)
        CHECK_STATUS(gm_sched_reserve(b.sched, 3, &error), GM_OK, &error);
    for (int i = 0; i < 13; i++)
        gm_sched_unreserve(b.sched, 3);
    close_bench(&b);
}

/* Small before large, and clients in turn: in the order of `expected`. */
static void test_turns(void)
{
    static const struct {
        uint64_t client;
        double cost_s;
    } jobs[] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {2, 1}, {1, 1e-5}, {3, 1e-5}, {1, 1e-5}};
    static const unsigned expected[] = {0, 5, 6, 7, 1, 4, 2, 3};
    struct bench b;
    struct probe p[8];

    open_bench(&b, 1, 1, 16);
    fake_hold(&b.fake, true);
    for (int i = 0; i < 8; i++) {
        init_probe(&p[i]);
        p[i].job.slot.client = jobs[i].client;
        p[i].job.slot.cost_s = jobs[i].cost_s;
        CHECK(submit(&b, &p[i]) == GM_OK);
        if (i == 0)
            CHECK(fake_wait_running(&b.fake, 1));
    }
    fake_hold(&b.fake, false);
    for (int i = 0; i < 8; i++)
        CHECK(wait_done(&p[i]));
    for (int i = 0; i < 8; i++)
        CHECK(b.fake.run[i].first == &p[expected[i]].job.task);
    close_bench(&b);
}

/* Clients that close while their jobs wait: more of them than the kernel is asked about at once. */
static void test_sockets(void)
{
    enum { N = 300 };
    static struct probe p[N];
    static int fd[N][2];
    struct bench b;

    open_bench(&b, 1, 1, 2 * N);
    fake_hold(&b.fake, true);
    for (int i = 0; i < N; i++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd[i]) == 0);
        init_probe(&p[i]);
        p[i].job.socket = fd[i][0];
        CHECK(submit(&b, &p[i]) == GM_OK);
        if (i == 0)
            CHECK(fake_wait_running(&b.fake, 1));
    }
    for (int i = 0; i < N; i += 3)
        shutdown(fd[i][1], i % 2 ? SHUT_WR : SHUT_RDWR);
    for (int i = 3; i < N; i += 3) {
        CHECK(wait_done(&p[i]));
        CHECK_EQ(p[i].job.task.status, GM_CANCELLED);
    }
    fake_hold(&b.fake, false);
    for (int i = 0; i < N; i++) {
        CHECK(wait_done(&p[i]));
        /* The first one runs: what its client does is for abandoned() to say. */
        CHECK_EQ(p[i].job.task.status, i % 3 || i == 0 ? GM_OK : GM_CANCELLED);
        close(fd[i][0]);
        close(fd[i][1]);
    }
    close_bench(&b);
}

static void test_streams(void)
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
    /* One runs and holds the stream; then keys 7 7 9 7 0 7 9: batches 7777, 99, 0. */
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

/* A launch takes no more bytes than the device says, and clients take turns in it. */
static void test_batch_bytes(void)
{
    struct bench b;
    struct probe p[7];

    open_bench(&b, 1, 4, 16);
    b.fake.facts.batch_bytes = 100;
    fake_hold(&b.fake, true);
    for (int i = 0; i < 7; i++) {
        init_probe(&p[i]);
        p[i].job.batch_key = 7;
        p[i].job.bytes = i == 3 ? 90 : 40;
        p[i].job.slot.client = i < 4 ? 1 : 2;
        CHECK(submit(&b, &p[i]) == GM_OK);
        if (i == 0)
            CHECK(fake_wait_running(&b.fake, 1));
    }
    fake_hold(&b.fake, false);
    for (int i = 0; i < 7; i++)
        CHECK(wait_done(&p[i]));
    CHECK(p[0].job.batch == 1);
    CHECK(p[1].job.batch == 2 && p[4].job.batch == 2 && p[1].job.started_ns == p[4].job.started_ns);
    CHECK(p[3].job.batch == 1);
    close_bench(&b);
}

/* Jobs may say of how many a launch is at most, if that is fewer than the device says. */
static void test_batch_most(void)
{
    struct bench b;
    struct probe p[9];

    open_bench(&b, 1, 4, 16);
    fake_hold(&b.fake, true);
    for (int i = 0; i < 9; i++) {
        init_probe(&p[i]);
        p[i].job.batch_key = i < 6 ? 7 : 9;
        p[i].job.batch_most = i < 6 ? 2 : 5;
        CHECK(submit(&b, &p[i]) == GM_OK);
        if (i == 0)
            CHECK(fake_wait_running(&b.fake, 1));
    }
    fake_hold(&b.fake, false);
    for (int i = 0; i < 9; i++)
        CHECK(wait_done(&p[i]));
    CHECK(p[0].job.batch == 1 && p[5].job.batch == 1);
    for (int i = 1; i < 5; i++)
        CHECK(p[i].job.batch == 2);
    for (int i = 6; i < 9; i++)
        CHECK(p[i].job.batch == 3);
    close_bench(&b);
}

/* Those that read what a running launch reads wait for its end, or for half a launch of them,
 * though streams are free. Others do not, also where one of those has the first turn. */
static void test_same_matrix(void)
{
    struct bench b;
    struct probe p[6];

    open_bench(&b, 4, 8, 16);
    fake_hold(&b.fake, true);
    for (int i = 0; i < 6; i++) {
        init_probe(&p[i]);
        p[i].job.batch_key = i < 4 ? 7 : i < 5 ? 9 : 0;
        p[i].job.batch_most = i < 5 ? 4 : 0;
        p[i].job.slot.client = i < 5 ? 1 : 2;
        p[i].job.slot.cost_s = i < 5 ? 0 : 0.1; /* of another size class */
    }
    CHECK(submit(&b, &p[0]) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(submit(&b, &p[1]) == GM_OK);
    CHECK(submit(&b, &p[2]) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 2));
    CHECK(submit(&b, &p[4]) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 3));
    CHECK(submit(&b, &p[3]) == GM_OK);
    CHECK(submit(&b, &p[5]) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 4));
    fake_hold(&b.fake, false);
    for (int i = 0; i < 6; i++)
        CHECK(wait_done(&p[i]));
    CHECK(p[0].job.batch == 1 && p[1].job.batch == 2 && p[2].job.batch == 2);
    CHECK(p[4].job.batch == 1 && p[3].job.batch == 1);
    CHECK(p[3].job.started_ns >= p[0].job.finished_ns ||
          p[3].job.started_ns >= p[1].job.finished_ns);
    close_bench(&b);
}

/* Where bytes leave room for one job in a launch, nothing is shared, and none waits for another. */
static void test_same_matrix_alone(void)
{
    struct bench b;
    struct probe p[2];

    open_bench(&b, 2, 8, 16);
    b.fake.facts.batch_bytes = 100;
    fake_hold(&b.fake, true);
    for (int i = 0; i < 2; i++) {
        init_probe(&p[i]);
        p[i].job.batch_key = 7;
        p[i].job.batch_most = 8;
        p[i].job.bytes = 60;
        CHECK(submit(&b, &p[i]) == GM_OK);
    }
    CHECK(fake_wait_running(&b.fake, 2));
    fake_hold(&b.fake, false);
    for (int i = 0; i < 2; i++)
        CHECK(wait_done(&p[i]) && p[i].job.batch == 1);
    close_bench(&b);
}

/* A job that would not end before its deadline is refused at once, where no forecast has been
 * confirmed yet half as much again is allowed for. Streams do not make jobs faster that each run
 * alone. */
static void test_in_time(unsigned streams, bool exclusive)
{
    struct bench b;
    struct probe p[3], late;
    struct gm_error error = {0};

    open_bench(&b, streams, 1, 16);
    fake_hold(&b.fake, true);
    for (int i = 0; i < 3; i++) {
        init_probe(&p[i]);
        p[i].job.exclusive = exclusive;
        p[i].job.slot.client = 1;
        p[i].job.slot.cost_s = 2;
        CHECK(submit(&b, &p[i]) == GM_OK);
        if (i == 0)
            CHECK(fake_wait_running(&b.fake, 1));
    }
    init_probe(&late);
    late.job.exclusive = exclusive;
    late.job.slot.client = 1;
    late.job.slot.cost_s = 2;
    late.job.deadline_ns = gm_now_ns() + INT64_C(11000000000); /* after 8 s or 12 */
    CHECK_STATUS(gm_sched_admit(b.sched, &late.job, &error), GM_QUEUE_FULL, NULL);
    CHECK(strstr(error.detail, "--timeout"));
    CHECK_EQ(gm_sched_load(b.sched).queued, 2); /* nothing was reserved */
    late.job.deadline_ns = gm_now_ns() + INT64_C(13000000000);
    CHECK_STATUS(gm_sched_admit(b.sched, &late.job, &error), GM_OK, &error);
    gm_sched_unreserve(b.sched, 1);
    /* Another client takes turns with the first, and waits for as much of its work as it has
     * itself. */
    late.job.slot.client = 2;
    late.job.deadline_ns = gm_now_ns() + INT64_C(10000000000);
    CHECK_STATUS(gm_sched_admit(b.sched, &late.job, &error), GM_OK, &error);
    gm_sched_unreserve(b.sched, 2);
    /* So does a smaller job with larger ones: it waits for what runs alone. */
    late.job.slot.client = 1;
    late.job.slot.cost_s = 0.1;
    late.job.deadline_ns = gm_now_ns() + INT64_C(4000000000);
    CHECK_STATUS(gm_sched_admit(b.sched, &late.job, &error), GM_OK, &error);
    gm_sched_unreserve(b.sched, 1);
    fake_hold(&b.fake, false);
    for (int i = 0; i < 3; i++)
        CHECK(wait_done(&p[i]));
    close_bench(&b);
}

/* Where a job ended later than expected, the next ones are given so much more time. */
static void test_late(void)
{
    struct bench b;
    struct probe p[4], late;
    struct gm_error error = {0};
    const struct timespec pause = {.tv_nsec = 400000000};

    open_bench(&b, 1, 1, 16);
    for (int i = 0; i < 4; i++) {
        init_probe(&p[i]);
        p[i].job.slot.client = 1;
        p[i].job.slot.cost_s = 0.01;
    }
    init_probe(&late);
    late.job.slot = p[0].job.slot;
    for (int round = 0; round < 2; round++) {
        fake_hold(&b.fake, true);
        CHECK(submit(&b, &p[2 * round]) == GM_OK);
        CHECK(fake_wait_running(&b.fake, 1));
        CHECK(submit(&b, &p[2 * round + 1]) == GM_OK);
        late.job.deadline_ns = gm_now_ns() + INT64_C(250000000);
        enum gm_status status = gm_sched_admit(b.sched, &late.job, &error);
        CHECK_STATUS(status, round == 0 ? GM_OK : GM_QUEUE_FULL, NULL);
        if (status == GM_OK)
            gm_sched_unreserve(b.sched, 1);
        if (round == 0)
            nanosleep(&pause, NULL);
        fake_hold(&b.fake, false);
        CHECK(wait_done(&p[2 * round]) && wait_done(&p[2 * round + 1]));
    }
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

static uint64_t busy_ns(const struct bench *b)
{
    return gm_sched_load(b->sched).busy_ns;
}

/* The time in which anything runs counts, once, and while it passes. */
static void test_busy(void)
{
    struct bench b;
    struct probe one, two;
    const struct timespec pause = {.tv_nsec = 20000000};

    open_bench(&b, 2, 1, QUEUE);
    init_probe(&one);
    init_probe(&two);
    CHECK_EQ(busy_ns(&b), 0);
    fake_hold(&b.fake, true);
    int64_t begun = gm_now_ns();
    CHECK(submit(&b, &one) == GM_OK && submit(&b, &two) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 2));
    uint64_t first = busy_ns(&b);
    nanosleep(&pause, NULL);
    uint64_t second = busy_ns(&b);
    CHECK(first > 0 && second >= first + 20000000);
    CHECK((int64_t)second <= gm_now_ns() - begun);
    fake_hold(&b.fake, false);
    CHECK(wait_done(&one) && wait_done(&two));
    uint64_t all = busy_ns(&b);
    CHECK(all >= second && (int64_t)all <= gm_now_ns() - begun);
    nanosleep(&pause, NULL);
    CHECK_EQ(busy_ns(&b), all); /* nothing ran */

    init_probe(&one);
    CHECK(gm_sched_run_here(b.sched, &one.job));
    uint64_t more = (uint64_t)(one.job.finished_ns - one.job.started_ns);
    CHECK_EQ(busy_ns(&b), all + more);
    close_bench(&b);
}

static void test_run_here(void)
{
    struct bench b;
    struct probe here, beside, busy, waits;

    open_bench(&b, 1, 1, QUEUE);
    init_probe(&here);
    init_probe(&beside);
    init_probe(&busy);
    init_probe(&waits);
    CHECK(gm_sched_run_here(b.sched, &here.job));
    CHECK(here.job.task.status == GM_OK && here.job.batch == 1 && !here.job.concurrent);
    CHECK(here.job.started_ns > 0 && here.job.finished_ns >= here.job.started_ns);
    CHECK(atomic_load(&here.done) == 0);
    CHECK(gm_sched_load(b.sched).queued == 0 && gm_sched_load(b.sched).running == 0);

    /* Beside what runs and waits, for all streams are taken. */
    fake_hold(&b.fake, true);
    CHECK(submit(&b, &busy) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(submit(&b, &waits) == GM_OK);
    CHECK(gm_sched_run_here(b.sched, &beside.job));
    CHECK(beside.job.task.status == GM_OK && beside.job.concurrent);
    CHECK(gm_sched_load(b.sched).queued == 1 && gm_sched_load(b.sched).running == 1);
    CHECK_EQ(b.fake.runs_here, 2);
    fake_hold(&b.fake, false);
    CHECK(wait_done(&busy) && wait_done(&waits));
    CHECK(busy.job.concurrent && !waits.job.concurrent);
    close_bench(&b);
}

/* A job that has the device for itself is not disturbed. While it waits for a stream, nobody waits
 * for it. */
static void test_run_here_not(void)
{
    struct bench b;
    struct probe busy, alone, beside, refused;

    open_bench(&b, 2, 1, QUEUE);
    init_probe(&busy);
    init_probe(&alone);
    init_probe(&beside);
    init_probe(&refused);
    alone.job.exclusive = true;
    fake_hold(&b.fake, true);
    CHECK(submit(&b, &busy) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(submit(&b, &alone) == GM_OK);
    CHECK(gm_sched_run_here(b.sched, &beside.job));
    atomic_store(&busy.job.task.stop, true);
    CHECK(wait_done(&busy));
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK(!gm_sched_run_here(b.sched, &refused.job)); /* it runs */
    CHECK(submit(&b, &refused) == GM_OK);
    fake_hold(&b.fake, false);
    CHECK(wait_done(&alone) && wait_done(&refused));
    CHECK(!alone.job.concurrent);

    init_probe(&refused);
    refused.job.exclusive = true;
    CHECK(!gm_sched_run_here(b.sched, &refused.job)); /* it would be one itself */
    CHECK_EQ(b.fake.runs_here, 1);
    close_bench(&b);
}

/* On a stream of an idle device, but on the thread that brings it; and nothing is left of it. */
static void test_run_if_idle(void)
{
    struct bench b;
    struct probe p;
    struct gm_error error;

    open_bench(&b, 2, 1, QUEUE);
    for (int i = 0; i < 3; i++) {
        init_probe(&p);
        CHECK_STATUS(gm_sched_admit(b.sched, &p.job, &error), GM_OK, &error);
        CHECK(gm_sched_run_if_idle(b.sched, &p.job));
        CHECK(p.job.task.status == GM_OK && p.job.batch == 1 && p.job.stream == 0);
        CHECK(p.job.last && !p.job.concurrent && atomic_load(&p.done) == 0);
        CHECK(p.job.queued_ns <= p.job.started_ns && p.job.started_ns > 0);
        CHECK(p.job.started_ns <= p.job.finished_ns);
        CHECK_EQ(fake_runs(&b.fake), (unsigned)i + 1);
        CHECK(gm_sched_load(b.sched).queued == 0 && gm_sched_load(b.sched).running == 0);
    }
    close_bench(&b);
}

/* Nothing changes where another job runs or is coming, or where the job wants the device for
 * itself: it can be committed after that. */
static void test_run_if_idle_not(void)
{
    struct bench b;
    struct probe busy, next, alone;
    struct gm_error error;

    open_bench(&b, 2, 1, QUEUE);
    init_probe(&busy);
    init_probe(&next);
    init_probe(&alone);
    fake_hold(&b.fake, true);
    CHECK(submit(&b, &busy) == GM_OK);
    CHECK(fake_wait_running(&b.fake, 1));
    CHECK_STATUS(gm_sched_admit(b.sched, &next.job, &error), GM_OK, &error);
    CHECK(!gm_sched_run_if_idle(b.sched, &next.job)); /* one runs, and a stream is free */
    CHECK_EQ(gm_sched_load(b.sched).queued, 1);
    fake_hold(&b.fake, false);
    CHECK(wait_done(&busy));
    CHECK_STATUS(gm_sched_reserve(b.sched, 7, &error), GM_OK, &error);
    CHECK(!gm_sched_run_if_idle(b.sched, &next.job)); /* one is coming */
    gm_sched_unreserve(b.sched, 7);
    gm_sched_commit(b.sched, &next.job);
    CHECK(wait_done(&next));
    CHECK(next.job.task.status == GM_OK);

    alone.job.exclusive = true;
    CHECK_STATUS(gm_sched_admit(b.sched, &alone.job, &error), GM_OK, &error);
    CHECK(!gm_sched_run_if_idle(b.sched, &alone.job));
    gm_sched_commit(b.sched, &alone.job);
    CHECK(wait_done(&alone));
    CHECK_EQ(fake_runs(&b.fake), 3);

    init_probe(&next);
    CHECK_STATUS(gm_sched_admit(b.sched, &next.job, &error), GM_OK, &error);
    fake_next(&b.fake, GM_DEVICE_LOST);
    CHECK(gm_sched_run_if_idle(b.sched, &next.job));
    CHECK_EQ(next.job.task.status, GM_DEVICE_LOST);
    CHECK_EQ(atomic_load(&b.lost_calls), 1);
    CHECK(gm_sched_is_lost(b.sched) && gm_sched_load(b.sched).queued == 0);
    close_bench(&b);
}

/* What jobs are expected to take counts, not what those before them took. */
static void test_retry_after_costs(void)
{
    struct bench b;
    struct probe p[3];

    open_bench(&b, 1, 1, QUEUE);
    fake_hold(&b.fake, true);
    for (int i = 0; i < 3; i++) {
        init_probe(&p[i]);
        p[i].job.slot.cost_s = 10;
        CHECK(submit(&b, &p[i]) == GM_OK);
    }
    CHECK_EQ(gm_sched_retry_after(b.sched), 30);
    gm_sched_fail_all(b.sched, GM_DRAINING);
    for (int i = 0; i < 3; i++)
        CHECK(wait_done(&p[i]));
    CHECK_EQ(gm_sched_retry_after(b.sched), 1);
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
    /* Four jobs of 0.7 s each on one stream. */
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
    test_graded_streams();
    test_queue_limit();
    test_shares();
    test_turns();
    test_sockets();
    test_streams();
    test_batches();
    test_batch_bytes();
    test_batch_most();
    test_same_matrix();
    test_same_matrix_alone();
    test_in_time(1, false);
    test_in_time(3, true);
    test_late();
    test_exclusive();
    test_failure();
    test_busy();
    test_run_here();
    test_run_here_not();
    test_run_if_idle();
    test_run_if_idle_not();
    test_retry_after();
    test_retry_after_costs();
    return check_report();
}
