/* Requests for an access report: their way through the queue of a simulated device. */
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"
#include "tests/unit/tracing_backend.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

#define EXPLAIN .path = "/v1/explain/transpose"
#define GET .method = "GET"
#define MEMORY (256 << 20)

static void set_up(void)
{
    memset(&tracing_plan, 0, sizeof tracing_plan);
    bench_second = &tracing_backend;
    bench_open(MEMORY, 1);
}

static void tear_down(void)
{
    bench_close();
    CHECK_EQ(atomic_load(&tracing_plan.buffers), 0);
}

static bool says(const struct exchange *x, const char *part)
{
    const struct gm_reply *reply = &x->request->reply;

    return reply->body && memmem(reply->body, reply->body_len, part, strlen(part)) != NULL;
}

/* Headers without a body, up to the reply. */
static void serve_bare(struct exchange *x, const struct ask *ask)
{
    bench_begin(x, ask, GM_SIZE_UNKNOWN);
    if (!bench_advance(x))
        bench_finish(x);
}

/* No body at all: shapes are parameters, or go without saying. */
static void test_get(void)
{
    struct exchange x;
    struct ask ask = {GET, EXPLAIN, .query = "kernel=naive"};

    set_up();
    tracing_plan.scratch = UINT64_MAX; /* what is large is not all touched */
    serve_bare(&x, &ask);
    bench_expect(&x, 200, NULL);
    CHECK_STR(x.request->reply.media_type, "text/plain; charset=utf-8");
    CHECK(says(&x, "transpose, kernel naive, f32: a 1024x1024 -> 1024x1024\n"));
    CHECK(says(&x, ":7                      global_load"));
    CHECK(bench_header(&x, "Server-Timing") && strstr(bench_header(&x, "Server-Timing"), "queue"));
    CHECK(!bench_header(&x, "Gemmd-Stats"));
    CHECK_EQ(x.suspends, 1);
    CHECK_EQ(x.request->reservation.reserved, 0); /* the reply is text of its own */
    CHECK(tracing_plan.wants_report && tracing_plan.op.result.data == NULL);
    CHECK(tracing_plan.op.operand[0].data == NULL && tracing_plan.op.operand[0].rows == 1024);
    CHECK_STR(tracing_plan.variant->name, "naive");
    CHECK(tracing_plan.variant->run[GM_DEVICE_SIM] != NULL);
    bench_end(&x);

    ask.query = "shape=2x30x50&dtype=f64&format=json&gpu=t4";
    serve_bare(&x, &ask);
    bench_expect(&x, 200, NULL);
    CHECK_STR(x.request->reply.media_type, JSON);
    json_t *o = json_loadb(x.request->reply.body, x.request->reply.body_len, 0, NULL);
    CHECK_STR(json_string_value(json_object_get(o, "id")), x.request->id);
    CHECK_STR(json_string_value(json_object_get(o, "device")), "sim:0");
    json_decref(o);
    CHECK(says(&x, "\"T4\"") && tracing_plan.op.result.rows == 50);
    CHECK(tracing_plan.op.result.batch == 2 && tracing_plan.op.result.dtype == GM_F64);
    bench_end(&x);
    tear_down();
}

static void test_matmul_shapes(void)
{
    struct exchange x;
    struct ask ask = {GET, .path = "/v1/explain/matmul", .query = "shape=30x40&shape_b=40x50"};

    set_up();
    serve_bare(&x, &ask);
    bench_expect(&x, 200, NULL);
    CHECK(tracing_plan.op.operands == 2 && tracing_plan.op.result.cols == 50);
    bench_end(&x);
    ask.query = "beta=2&alpha=0&transa=1";
    serve_bare(&x, &ask);
    bench_expect(&x, 200, NULL);
    CHECK(tracing_plan.op.operands == 3 && tracing_plan.op.transa);
    CHECK(gm_op_reads(&tracing_plan.op, 2) && !gm_op_reads(&tracing_plan.op, 0));
    bench_end(&x);
    tear_down();
}

static void test_post(void)
{
    static const char body[] =
        "{\"a\": [[1,2,3],[4,5,6]], \"kernel\": \"tiled\", \"format\": \"svg\"}";
    static const float bare[6] = {1, 2, 3, 4, 5, 6};
    struct exchange x;

    set_up();
    /* No body, an empty one, and an empty one in chunks. */
    for (unsigned i = 0; i < 3; i++) {
        struct ask ask = {EXPLAIN, .type = i == 1 ? NPY : NULL, .chunked = i == 2};
        bench_begin(&x, &ask, i == 0 ? GM_SIZE_UNKNOWN : 0);
        if (!bench_advance(&x))
            bench_finish(&x);
        bench_expect(&x, 200, NULL);
        CHECK_EQ(tracing_plan.op.result.rows, 1024);
        bench_end(&x);
    }
    for (unsigned piece = 1; piece < sizeof body; piece += 13) {
        const struct ask ask = {EXPLAIN, .type = JSON};
        bench_serve(&x, &ask, body, sizeof body - 1, piece);
        bench_expect(&x, 200, NULL);
        CHECK_STR(x.request->reply.media_type, "image/svg+xml");
        CHECK(says(&x, "</svg>"));
        CHECK(tracing_plan.op.operand[0].cols == 3 && tracing_plan.op.operand[0].data == NULL);
        CHECK_STR(tracing_plan.variant->name, "tiled");
        CHECK_EQ(atomic_load(&tracing_plan.buffers), 0);
        bench_end(&x);
    }
    const struct ask ask = {EXPLAIN, .type = RAW, .query = "shape=2x3"};
    bench_serve(&x, &ask, bare, sizeof bare, 5);
    bench_expect(&x, 200, NULL);
    CHECK_EQ(tracing_plan.op.result.rows, 3);
    bench_end(&x);
    tear_down();
}

static void test_errors(void)
{
    static const struct {
        struct ask ask;
        int http;
        const char *code;
    } cases[] = {
        {{GET, EXPLAIN, .query = "kernel=blocked"}, 422, "kernel_unavailable"},
        {{GET, EXPLAIN, .query = "device=fake"}, 422, "device_unavailable"},
        {{GET, EXPLAIN, .query = "gpu=none"}, 400, "bad_parameter"},
        {{GET, EXPLAIN, .query = "format=pdf"}, 400, "bad_parameter"},
        {{GET, EXPLAIN, .query = "shape_b=3x3"}, 400, "bad_parameter"},
        {{GET, EXPLAIN, .query = "foo=1"}, 400, "unknown_parameter"},
        {{GET, EXPLAIN, .query = "shape=1048576x1048576"}, 422, "cost_limit"},
        {{GET, EXPLAIN, .query = "shape=1099511627776x1099511627776"}, 422, "bad_shape"},
        {{GET, EXPLAIN, .accept = "text/html"}, 406, "not_acceptable"},
        {{EXPLAIN, .accept = NPY}, 406, "not_acceptable"},
        {{EXPLAIN, .encoding = "gzip"}, 415, "unsupported_media_type"},
        {{EXPLAIN, .query = "shape=4x4&transa=1"}, 400, "bad_parameter"},
        {{GET, .path = "/v1/explain/add", .query = "shape=3x4&shape_b=4x3"}, 422, "bad_shape"},
    };

    set_up();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exchange x;
        serve_bare(&x, &cases[i].ask);
        bench_expect(&x, cases[i].http, cases[i].code);
        bench_end(&x);
    }
    CHECK_EQ(atomic_load(&tracing_plan.runs), 0);
    struct exchange x;
    const struct ask run = {TRANSPOSE, .type = JSON, .query = "gpu=T4"};
    bench_serve(&x, &run, "[[1]]", 5, 5);
    bench_expect(&x, 400, "bad_parameter");
    bench_end(&x);
    tear_down();
}

/* What the simulator finds wrong is said, and what it had put down is given back. */
static void test_fault(void)
{
    const struct ask ask = {GET, EXPLAIN};
    struct exchange x;

    set_up();
    tracing_plan.status = GM_KERNEL_FAULT;
    serve_bare(&x, &ask);
    bench_expect(&x, 500, "kernel_fault");
    CHECK(says(&x, "line 7, block (1, 0, 0)"));
    CHECK(atomic_load(&tracing_plan.reports) == 1 && x.request->run.accesses.site == NULL);
    bench_end(&x);
    tear_down();
}

static void wait_running(unsigned n)
{
    for (int i = 0; i < 20000 && atomic_load(&tracing_plan.running) != n; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK_EQ(atomic_load(&tracing_plan.running), n);
}

/* One runs and the queue is full: the next is refused; who leaves is dropped; drain ends all. */
static void test_queue(void)
{
    const struct ask ask = {GET, EXPLAIN};
    struct exchange x[10];

    set_up();
    atomic_store(&tracing_plan.hold, true);
    for (unsigned i = 0; i < 10; i++) {
        bench_begin(&x[i], &ask, GM_SIZE_UNKNOWN);
        bool ready = bench_advance(&x[i]);
        CHECK_EQ(ready, i == 9); /* one on the device, eight in the queue */
        if (i == 0)
            wait_running(1);
    }
    bench_expect(&x[9], 503, "queue_full");
    bench_end(&x[9]);
    CHECK(atomic_load(&bench_server.memory.reserved) == 0); /* this device says it needs nothing */
    atomic_store(&x[4].closed, true);
    bench_finish(&x[4]);
    bench_expect(&x[4], 503, "cancelled");
    atomic_store(&x[0].closed, true); /* this one runs: it is told to stop */
    bench_finish(&x[0]);
    bench_expect(&x[0], 503, "cancelled");
    for (unsigned i = 0; i < bench_server.devices.count; i++)
        gm_sched_fail_all(bench_server.devices.device[i].sched, GM_DRAINING);
    for (unsigned i = 0; i < 9; i++) {
        if (i == 0 || i == 4)
            continue;
        bench_finish(&x[i]);
        bench_expect(&x[i], 503, "draining");
    }
    for (unsigned i = 0; i < 9; i++)
        bench_end(&x[i]);
    tear_down();
}

static void test_deadline(void)
{
    const struct ask ask = {GET, EXPLAIN, .query = "timeout_ms=30"};
    struct exchange x;

    set_up();
    atomic_store(&tracing_plan.hold, true);
    serve_bare(&x, &ask);
    bench_expect(&x, 503, "deadline_passed");
    bench_end(&x);
    atomic_store(&bench_server.phase, GM_PHASE_DRAINING);
    const struct ask late = {GET, EXPLAIN};
    serve_bare(&x, &late);
    bench_expect(&x, 503, "draining");
    bench_end(&x);
    atomic_store(&bench_server.phase, GM_PHASE_SERVING);
    tear_down();
}

/* The sample's memory is counted while it is traced, as much as it can be at the most. */
static void test_memory(void)
{
    const struct ask ask = {GET, EXPLAIN};
    struct exchange x;

    set_up();
    atomic_store(&tracing_plan.hold, true);
    tracing_plan.scratch = 12345;
    bench_begin(&x, &ask, GM_SIZE_UNKNOWN);
    CHECK(!bench_advance(&x));
    CHECK_EQ(x.request->reservation.reserved - x.request->reservation.spare, 12345);
    atomic_store(&tracing_plan.hold, false);
    bench_finish(&x);
    bench_expect(&x, 200, NULL);
    bench_end(&x);
    atomic_store(&tracing_plan.hold, true);
    tracing_plan.scratch = UINT64_MAX;
    bench_begin(&x, &ask, GM_SIZE_UNKNOWN);
    CHECK(!bench_advance(&x));
    CHECK_EQ(atomic_load(&bench_server.memory.reserved), GM_EXPLAIN_MEMORY_BYTES);
    atomic_store(&tracing_plan.hold, false);
    bench_finish(&x);
    bench_end(&x);
    bench_server.memory.limit = GM_EXPLAIN_MEMORY_BYTES - 1;
    serve_bare(&x, &ask);
    bench_expect(&x, 413, "too_large");
    bench_end(&x);
    tear_down();
}

/* An ordinary run there: bounded by its work, and counted instead of timed. */
static void test_run(void)
{
    struct ask ask = {TRANSPOSE, .type = JSON, .query = "device=sim&kernel=naive"};
    struct exchange x;

    set_up();
    bench_serve(&x, &ask, "[[1,2],[3,4]]", 13, 100);
    bench_expect(&x, 200, NULL);
    CHECK(bench_header(&x, "Gemmd-Stats") && strstr(bench_header(&x, "Gemmd-Stats"), "accesses"));
    CHECK(!tracing_plan.wants_report && tracing_plan.op.result.data != NULL);
    bench_end(&x);
    bench_server.config.body_limit = MEMORY;
    ask = (struct ask){TRANSPOSE, .type = RAW, .query = "shape=2048x9000&device=sim"};
    bench_begin(&x, &ask, 2048 * 9000 * 4);
    bench_push(&x, "abcd", 4, 4);
    CHECK(x.request->state == GM_REQUEST_DISCARD); /* 147 MB to move */
    bench_expect(&x, 422, "cost_limit");
    bench_end(&x);
    tear_down();
}

static uint64_t ran_inline(void)
{
    struct gm_stats_shard sums;

    gm_stats_sum(&bench_server.stats, &sums);
    return sums.counter[GM_COUNT_RAN_INLINE];
}

static const struct ask lone = {TRANSPOSE, .type = JSON, .query = "device=sim&kernel=grouped"};
static const char body_2x2[] = "[[1,2],[3,4]]";

/* Serves it when nobody who has resumed another one counts it any more. */
static void *serve_lone(void *cls)
{
    while (atomic_load(&bench_server.suspended) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    bench_serve(cls, &lone, body_2x2, strlen(body_2x2), 100);
    return NULL;
}

/* A small job of an idle device runs on the thread that brings it, after the first one by its
 * kernel. While it runs it counts as suspended, so that a shutdown does not wait for a device that
 * hangs; and the next job takes the queue. */
static void test_lone_jobs(void)
{
    struct exchange x, second;
    pthread_t thread;

    set_up();
    for (unsigned jobs = 0; ran_inline() == 0 && jobs < 100; jobs++) { /* some may be slow */
        serve_lone(&x);
        bench_expect(&x, 200, NULL);
        CHECK_EQ(x.suspends, ran_inline() == 0);
        CHECK(jobs > 0 || x.suspends == 1);
        bench_end(&x);
    }
    CHECK_EQ(ran_inline(), 1);
    tracing_plan.status = GM_INTERNAL;
    serve_lone(&x);
    bench_expect(&x, 500, "internal");
    CHECK(x.suspends == 0 && ran_inline() == 2);
    const struct gm_job *job = &x.request->run.job;
    CHECK_EQ(x.request->charged.device_ns, job->finished_ns - job->started_ns); /* once */
    bench_end(&x);
    tracing_plan.status = GM_OK;

    atomic_store(&tracing_plan.hold, true);
    CHECK(pthread_create(&thread, NULL, serve_lone, &x) == 0);
    while (atomic_load(&tracing_plan.running) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK_EQ(atomic_load(&bench_server.suspended), 1);
    bench_begin(&second, &lone, strlen(body_2x2));
    bench_push(&second, body_2x2, strlen(body_2x2), 100);
    CHECK(!bench_advance(&second));
    CHECK_EQ(second.suspends, 1);
    atomic_store(&tracing_plan.hold, false);
    bench_finish(&second);
    pthread_join(thread, NULL);
    CHECK(x.suspends == 0 && ran_inline() == 3);
    CHECK(bench_expect(&x, 200, NULL) && bench_expect(&second, 200, NULL));
    bench_end(&x);
    bench_end(&second);
    tear_down();
}

int main(void)
{
    test_get();
    test_matmul_shapes();
    test_post();
    test_errors();
    test_fault();
    test_queue();
    test_deadline();
    test_memory();
    test_run();
    test_lone_jobs();
    return check_report();
}
