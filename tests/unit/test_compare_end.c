/* Comparisons that end early, wait for others, or are not begun: whatever happens, all that they
 * held comes back. */
#include "server/api/compare/compare.h"
#include "server/clock.h"
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#include <string.h>

#define LIMIT (64 << 20)

/* Runs: naive's first and its timing, two copies, blocked. */
static const struct ask comparison = {
    .path = "/v1/compare/transpose", .type = JSON, .query = "format=json"};
static const struct ask queued = {TRANSPOSE, .type = JSON, .query = "kernel=naive"};
static const char body_2x3[] = "[[1,2,3],[4,5,6]]";
#define BODY body_2x3, sizeof body_2x3 - 1

static void reset(void)
{
    atomic_store(&faulty_plan.runs, 0);
    atomic_store(&faulty_plan.hold, false);
}

/* Begun, and not answered yet. */
static void begin(struct exchange *x, const struct ask *ask)
{
    bench_begin(x, ask, sizeof body_2x3 - 1);
    bench_push(x, BODY, sizeof body_2x3);
    CHECK(!bench_advance(x));
}

static void finish(struct exchange *x, int http, const char *code)
{
    bench_finish(x);
    bench_expect(x, http, code);
    CHECK_EQ(x->suspends, 1);
    bench_end(x);
}

/* Its client goes while the first kernel runs, while the third does, while the job is queued. */
static void test_cancelled(void)
{
    struct exchange x, other;

    reset();
    atomic_store(&faulty_plan.hold, true);
    begin(&x, &comparison);
    bench_wait_running(1);
    atomic_store(&x.half_closed, true); /* it may still read */
    nanosleep(&(struct timespec){.tv_nsec = 3 * GM_WATCH_MS * 1000000L}, NULL);
    CHECK_EQ(atomic_load(&faulty_plan.running), 1);
    atomic_store(&x.closed, true);
    finish(&x, 503, "cancelled");
    CHECK_EQ(atomic_load(&faulty_plan.runs), 1);

    reset();
    faulty_plan.stall_at = 5;
    begin(&x, &comparison);
    while (atomic_load(&faulty_plan.runs) < 5)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&x.closed, true);
    finish(&x, 503, "cancelled");
    CHECK_EQ(atomic_load(&faulty_plan.runs), 5);
    faulty_plan.stall_at = 0;

    reset();
    atomic_store(&faulty_plan.hold, true);
    begin(&other, &queued);
    bench_wait_running(1);
    begin(&x, &comparison);
    while (gm_sched_load(bench_server.devices.device[0].sched).queued < 1)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&x.half_closed, true); /* while it waits that is enough */
    finish(&x, 503, "cancelled");
    atomic_store(&faulty_plan.hold, false);
    finish(&other, 200, NULL);
    CHECK_EQ(atomic_load(&faulty_plan.runs), 1);
    bench_check_all_returned();
}

/* The deadline passes while it waits for the device. While it has it, kernels are stopped before.
 */
static void test_deadline(void)
{
    struct ask brief = comparison;
    struct exchange x, other;

    brief.query = "format=json&timeout_ms=150";
    reset();
    atomic_store(&faulty_plan.hold, true);
    begin(&other, &queued);
    bench_wait_running(1);
    begin(&x, &brief);
    finish(&x, 503, "deadline_passed");
    atomic_store(&faulty_plan.hold, false);
    finish(&other, 200, NULL);

    brief.query = "format=json&timeout_ms=1200";
    reset();
    atomic_store(&faulty_plan.hold, true);
    begin(&x, &brief);
    bench_finish(&x);
    bench_expect(&x, 200, NULL);
    CHECK(strstr(x.request->reply.text, "stopped after") != NULL);
    CHECK(strstr(x.request->reply.text, "kernel_us_median") == NULL);
    CHECK_EQ(atomic_load(&faulty_plan.runs), 4);
    bench_end(&x);
    reset();
    bench_check_all_returned();
}

/* The daemon ends: at once where a kernel runs, and between two of them. */
static void test_drain(void)
{
    struct gm_sched *sched = bench_server.devices.device[0].sched;
    struct exchange x, other;

    reset();
    atomic_store(&faulty_plan.hold, true);
    begin(&x, &comparison);
    bench_wait_running(1);
    begin(&other, &comparison);
    atomic_store(&bench_server.phase, GM_PHASE_DRAINING);
    atomic_store(&bench_server.phase, GM_PHASE_ENDING);
    gm_sched_fail_all(sched, GM_DRAINING);
    finish(&x, 503, "draining");
    finish(&other, 503, "draining");
    CHECK_EQ(atomic_load(&faulty_plan.runs), 1);
    atomic_store(&bench_server.phase, GM_PHASE_SERVING);

    /* It ends while the job runs, and nobody tells the job: the next step sees it. */
    reset();
    atomic_store(&faulty_plan.hold, true);
    begin(&x, &comparison);
    bench_wait_running(1);
    atomic_store(&bench_server.phase, GM_PHASE_ENDING);
    atomic_store(&faulty_plan.hold, false);
    finish(&x, 503, "draining");
    CHECK_EQ(atomic_load(&faulty_plan.runs), 1);
    atomic_store(&bench_server.phase, GM_PHASE_SERVING);
    bench_check_all_returned();
}

static void wait_queued(const struct exchange *x, uint64_t jobs)
{
    for (int i = 0; i < 20000 && gm_sched_load(x->request->plan.device->sched).queued != jobs; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK_EQ(gm_sched_load(x->request->plan.device->sched).queued, jobs);
}

/* Each of its runs waits its turn among others' jobs; and a queue that those fill does not end what
 * was begun. A new one is refused. (In what order is test_fair_queue's.) */
static void test_turns(void)
{
    enum { OTHERS = 7 };
    struct exchange x, first, other[OTHERS], late;

    reset();
    atomic_store(&faulty_plan.hold, true);
    begin(&first, &queued);
    bench_wait_running(1);
    begin(&x, &comparison);
    wait_queued(&x, 1);
    for (unsigned i = 0; i < OTHERS; i++)
        begin(&other[i], &queued);
    bench_serve(&late, &comparison, BODY, sizeof body_2x3);
    bench_expect(&late, 503, "queue_full");
    bench_end(&late);
    atomic_store(&faulty_plan.hold, false);
    finish(&first, 200, NULL);
    finish(&x, 200, NULL);
    for (unsigned i = 0; i < OTHERS; i++)
        finish(&other[i], 200, NULL);
    CHECK_EQ(atomic_load(&faulty_plan.runs), 1 + 8 + OTHERS);
    unsigned timed = 0;
    for (unsigned i = 0; i < 1 + 8 + OTHERS; i++)
        timed += faulty_plan.run[i].repeat == 5;
    CHECK_EQ(timed, 4);
    CHECK_EQ(faulty_plan.run[1].repeat, 1); /* a kernel proves itself before it is timed */
    bench_check_all_returned();
}

/* Memory: operands, a result and the reference are there beforehand, or nothing is begun. */
static void test_memory(void)
{
    struct ask large = {.path = "/v1/compare/transpose", .type = RAW, .query = "shape=2000x2000"};
    const struct ask sum = {
        .path = "/v1/compare/add", .type = RAW, .query = "shape_a=1400x1400&shape_b=1400x1400"};
    const uint64_t operand = 4 * 1400 * 1400;
    struct exchange first, second;

    reset();
    bench_begin(&first, &large, 4 * 2000 * 2000); /* 16 MB, three times */
    CHECK_EQ(first.request->state, GM_REQUEST_BODY);
    CHECK(atomic_load(&bench_server.memory.reserved) >= 3 * 4 * 2000 * 2000);
    bench_begin(&second, &large, 4 * 2000 * 2000);
    bench_expect(&second, 503, "memory_full");
    bench_end(&second);
    bench_end(&first);
    bench_check_all_returned();
    large.query = "shape=2500x2500"; /* 25 MB, three times; but twice would do for a transpose */
    bench_begin(&first, &large, 4 * 2500 * 2500);
    bench_expect(&first, 413, "too_large");
    bench_end(&first);
    /* 8 MB, three times, and doubles: 31 MB */
    bench_begin(&first, &sum, 2 * operand);
    CHECK_EQ(first.request->state, GM_REQUEST_BODY);
    CHECK(atomic_load(&bench_server.memory.reserved) >= 3 * operand + 16 * 1400 * 1400);
    bench_end(&first);
    bench_check_all_returned();
}

/* Every buffer of a request in turn cannot be had. */
static void test_each_buffer_fails(void)
{
    unsigned n = 0;

    reset();
    for (bool served = false; !served && CHECK(n < 50);) {
        struct exchange x;
        atomic_store(&faulty_plan.buffers, 0);
        atomic_store(&faulty_plan.buffer_at, ++n);
        bench_serve(&x, &comparison, BODY, 20);
        served = x.request->reply.http == 200;
        if (!served)
            bench_expect(&x, 503, "memory_full");
        bench_end(&x);
        bench_check_all_returned();
    }
    CHECK(n >= 3); /* the text, the operand, and the result had their turn */
    atomic_store(&faulty_plan.buffer_at, 0);
}

/* More runs than may be asked for, told by the shapes alone. */
static void test_cost(void)
{
    const struct ask ask = {.path = "/v1/compare/matmul",
                            .type = RAW,
                            .query = "shape_a=2000x2000&shape_b=2000x2000&repeat=1000"};
    struct exchange x;

    reset();
    bench_begin(&x, &ask, 2 * 4 * 2000 * 2000);
    CHECK_EQ(x.request->state, GM_REQUEST_DISCARD);
    bench_expect(&x, 422, "cost_limit");
    bench_end(&x);
    bench_check_all_returned();
}

/* A lost device ends it, and all others. */
static void test_lost(void)
{
    struct exchange x;

    reset();
    faulty_plan.lose_at = 4;
    begin(&x, &comparison);
    finish(&x, 503, "device_lost");
    CHECK_EQ(atomic_load(&faulty_plan.runs), 4);
    bench_serve(&x, &comparison, BODY, 100);
    bench_expect(&x, 503, "device_lost");
    bench_end(&x);
    bench_check_all_returned();
}

int main(void)
{
    bench_open(LIMIT, 1);
    test_cancelled();
    test_deadline();
    test_drain();
    test_turns();
    test_memory();
    test_each_buffer_fails();
    test_cost();
    test_lost();
    bench_close();
    return check_report();
}
