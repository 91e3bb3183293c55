/* Requests that cannot be served now: without memory, a place in the queue or a device that
 * works, or because their client or the daemon ends. Whatever happens, all that they held comes
 * back. */
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#include <string.h>

#define LIMIT (64 << 20)

/* A request that waits for its device, whatever its size. */
static const struct ask queued = {TRANSPOSE, .type = JSON, .query = "kernel=naive"};
static const char body_2x2[] = "[[1,2],[3,4]]";

/* The library drops a connection in the middle of a body: its request just ends. */
static void test_dropped_upload(void)
{
    static const struct {
        struct ask ask;
        uint64_t stated;
        const char *body;
    } cases[] = {
        {{TRANSPOSE, .type = JSON}, 100, "[[1,2],"},
        {{TRANSPOSE}, 100, " "},
        {{MATMUL, .type = RAW, .query = "shape_a=2x2&shape_b=2x2"}, 32, "12345678901234567890"},
        {{TRANSPOSE, .type = NPY}, 1000, "\x93NUMPY"},
        {{TRANSPOSE, .type = JSON}, 10 << 20, ""}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exchange x;
        bench_begin(&x, &cases[i].ask, cases[i].stated);
        bench_push(&x, cases[i].body, strlen(cases[i].body), 5);
        CHECK_EQ(x.request->state, GM_REQUEST_BODY);
        CHECK(atomic_load(&bench_server.memory.reserved) >= cases[i].stated);
        bench_end(&x);
        bench_check_all_returned();
    }
}

/* Memory: what can never fit is 413, what does not fit now 503, and both keep nothing. */
static void test_memory(void)
{
    const struct ask large = {TRANSPOSE, .type = RAW, .query = "shape=2500x2500"};
    const struct ask larger = {TRANSPOSE, .type = RAW, .query = "shape=3300x3300"};
    struct exchange first, second;

    bench_begin(&first, &larger, 4 * 3300 * 3300); /* 43 MB, and as much for the result */
    bench_expect(&first, 413, "too_large");
    bench_end(&first);
    bench_begin(&first, &large, 4 * 2500 * 2500); /* 25 MB, twice */
    CHECK_EQ(first.request->state, GM_REQUEST_BODY);
    CHECK(atomic_load(&bench_server.memory.reserved) >= 2 * 4 * 2500 * 2500);
    bench_begin(&second, &large, 4 * 2500 * 2500);
    bench_expect(&second, 503, "memory_full");
    bench_end(&second);
    bench_end(&first);
    bench_begin(&second, &large, 4 * 2500 * 2500); /* it was the first that was in the way */
    CHECK_EQ(second.request->state, GM_REQUEST_BODY);
    bench_end(&second);
    bench_check_all_returned();
}

/* Every buffer of a request in turn cannot be had. */
static void test_each_buffer_fails(void)
{
    static const char product[] = "{\"a\":[[1,2],[3,4]],\"b\":[[1,2],[3,4]],\"c\":[[1,2],[3,4]],"
                                  "\"beta\":1,\"kernel\":\"naive\"}";
    static const struct ask asks[] = {{MATMUL, .type = JSON}, {MATMUL}, {MATMUL, .chunked = true}};

    for (unsigned i = 0; i < 3; i++) {
        unsigned n = 0;
        for (bool served = false; !served && CHECK(n < 50);) {
            struct exchange x;
            atomic_store(&faulty_plan.buffers, 0);
            atomic_store(&faulty_plan.buffer_at, ++n);
            bench_serve(&x, &asks[i], product, sizeof product - 1, 20);
            served = x.request->reply.http == 200;
            if (!served)
                bench_expect(&x, 503, "memory_full");
            bench_end(&x);
            bench_check_all_returned();
        }
        CHECK(n >= 6); /* the text, three operands, the result and its text had their turn */
    }
    atomic_store(&faulty_plan.buffer_at, 0);
}

/* The queue is full, then the daemon drains: 503, with a time to come back. */
static void test_refused(void)
{
    struct exchange x[9], late;

    atomic_store(&faulty_plan.hold, true);
    for (unsigned i = 0; i < 9; i++) {
        bench_begin(&x[i], &queued, 13);
        bench_push(&x[i], body_2x2, 13, 13);
        CHECK(!bench_advance(&x[i]));
        if (i == 0)
            bench_wait_running(1);
    }
    bench_serve(&late, &queued, body_2x2, 13, 13);
    bench_expect(&late, 503, "queue_full");
    bench_end(&late);
    atomic_store(&faulty_plan.hold, false);
    for (unsigned i = 0; i < 9; i++) {
        bench_finish(&x[i]);
        bench_expect(&x[i], 200, NULL);
        bench_end(&x[i]);
    }
    bench_begin(&x[0], &queued, 13);
    bench_begin(&x[1], &queued, 13);
    atomic_store(&bench_server.phase, GM_PHASE_DRAINING);
    bench_serve(&late, &queued, body_2x2, 13, 13); /* new: refused; begun before: served */
    bench_expect(&late, 503, "draining");
    bench_push(&x[0], body_2x2, 13, 13);
    CHECK(!bench_advance(&x[0]));
    bench_finish(&x[0]);
    bench_expect(&x[0], 200, NULL);
    atomic_store(&bench_server.phase, GM_PHASE_ENDING);
    bench_push(&x[1], body_2x2, 13, 13);
    bench_expect(&x[1], 503, "draining");
    atomic_store(&bench_server.phase, GM_PHASE_SERVING);
    bench_end(&late);
    bench_end(&x[0]);
    bench_end(&x[1]);
    bench_check_all_returned();
}

/* Out of memory fails one request; a lost device fails all, and is dead to the probes. */
static void test_device(void)
{
    const struct ask healthz = {.method = "GET", .path = "/healthz"};
    struct exchange x[4];

    bench_close();
    bench_open(LIMIT, 1);
    faulty_plan.memory_at = 1;
    faulty_plan.lose_at = 3;
    bench_serve(&x[0], &queued, body_2x2, 13, 13);
    bench_expect(&x[0], 503, "device_memory");
    bench_end(&x[0]);
    bench_serve(&x[0], &queued, body_2x2, 13, 13);
    bench_expect(&x[0], 200, NULL);
    bench_end(&x[0]);
    bench_serve(&x[0], &healthz, "", 0, 1);
    bench_expect(&x[0], 200, NULL);
    bench_end(&x[0]);
    atomic_store(&faulty_plan.hold, true);
    for (unsigned i = 0; i < 4; i++) {
        bench_begin(&x[i], &queued, 13);
        bench_push(&x[i], body_2x2, 13, 13);
        CHECK(!bench_advance(&x[i]));
    }
    atomic_store(&faulty_plan.hold, false);
    for (unsigned i = 0; i < 4; i++) {
        bench_finish(&x[i]);
        bench_expect(&x[i], 503, "device_lost");
        bench_end(&x[i]);
    }
    bench_serve(&x[0], &queued, body_2x2, 13, 13);
    bench_expect(&x[0], 503, "device_lost");
    bench_end(&x[0]);
    bench_serve(&x[0], &healthz, "", 0, 1);
    bench_expect(&x[0], 503, "device_lost");
    bench_end(&x[0]);
    bench_check_all_returned();
}

int main(void)
{
    bench_open(LIMIT, 1);
    test_dropped_upload();
    test_memory();
    test_each_buffer_fails();
    test_refused();
    test_device();
    bench_close();
    return check_report();
}
