/* Requests that end otherwise: refused before, within or after the body, out of time, abandoned.
 * Whatever happens, all that they held comes back. */
#include "server/clock.h"
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#include <string.h>

#define LIMIT (64 << 20)

/* A request that waits for its device, whatever its size. */
static const struct ask queued = {TRANSPOSE, .type = JSON, .query = "kernel=naive"};
static const char body_2x2[] = "[[1,2],[3,4]]";

/* Decided on the headers: state DISCARD, and the reply is there. */
static void test_before_the_body(void)
{
    static const struct {
        struct ask ask;
        uint64_t len; /* of the body; GM_SIZE_UNKNOWN: no Content-Length */
        int http;
        const char *code;
    } cases[] = {
        {{.path = "/v1/transport"}, 4, 404, "not_found"},
        {{.method = "GET", TRANSPOSE}, GM_SIZE_UNKNOWN, 405, "method_not_allowed"},
        {{.method = "DELETE", .path = "/metrics"}, GM_SIZE_UNKNOWN, 405, "method_not_allowed"},
        {{TRANSPOSE, .query = "kernal=naive"}, 4, 400, "unknown_parameter"},
        {{TRANSPOSE, .query = "dtype=f31"}, 4, 400, "bad_parameter"},
        {{TRANSPOSE, .query = "device=cuda"}, 4, 422, "device_unavailable"},
        {{TRANSPOSE}, GM_SIZE_UNKNOWN, 411, "length_required"},
        {{TRANSPOSE}, (64 << 20) + 1, 413, "body_too_large"},
        {{TRANSPOSE, .type = "text/html"}, 4, 415, "unsupported_media_type"},
        {{TRANSPOSE, .encoding = "gzip"}, 4, 415, "unsupported_media_type"},
        {{TRANSPOSE, .type = JSON, .accept = "text/html"}, 4, 406, "not_acceptable"},
        {{TRANSPOSE, .accept = "image/png"}, 4, 406, "not_acceptable"},
        {{TRANSPOSE, .type = JSON, .query = "shape=2x2"}, 4, 400, "bad_parameter"},
        {{TRANSPOSE, .type = RAW}, 4, 400, NULL},
        {{TRANSPOSE, .type = RAW, .query = "shape=2x2"}, 15, 400, "body_truncated"},
        {{TRANSPOSE, .type = RAW, .query = "shape=2x2"}, 17, 400, "body_trailing"},
        {{.method = "GET", .path = "/healthz"}, (1 << 20) + 1, 413, "body_too_large"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exchange x;
        bench_begin(&x, &cases[i].ask, cases[i].len);
        CHECK_EQ(x.request->state, GM_REQUEST_DISCARD);
        bool same = cases[i].code ? bench_expect(&x, cases[i].http, cases[i].code)
                                  : x.request->reply.http >= 400;
        check_that(same, __FILE__, __LINE__, "case %zu", i);
        CHECK((cases[i].http == 405) == (bench_header(&x, "Allow") != NULL));
        bool encoded = cases[i].ask.encoding != NULL;
        CHECK((cases[i].http == 415 && !encoded) == (bench_header(&x, "Accept") != NULL));
        CHECK(encoded == (bench_header(&x, "Accept-Encoding") != NULL));
        /* The rest of the body changes nothing, and is counted. */
        bench_push(&x, "abcd", 4, 1);
        CHECK_EQ(x.request->discarded, 4);
        CHECK(bench_advance(&x));
        bench_end(&x);
    }
    bench_check_all_returned();
}

/* Two lengths, or none that is a number: what follows on the connection cannot be told. */
static void test_lengths(void)
{
    for (unsigned i = 0; i < 3; i++) {
        struct gm_request_head head = {.method = "POST",
                                       .path = "/v1/transpose",
                                       .content_length = 4,
                                       .content_lengths = i == 0 ? 2 : 1,
                                       .chunked = i == 1,
                                       .content_length_bad = i == 2};
        struct gm_request *r = gm_request_new(&bench_server, &head, NULL, NULL, -1);
        gm_request_begin(r);
        CHECK_EQ(r->state, GM_REQUEST_DISCARD);
        CHECK(r->reply.http == 400 && r->reply.close && r->error.status == GM_BAD_LENGTH);
        CHECK(gm_body_remaining(&r->body) == GM_SIZE_UNKNOWN);
        gm_request_unref(r);
    }
    bench_check_all_returned();
}

/* Told by the body, at the latest by its end: stated or chunked, in small pieces or whole. */
static void test_within_the_body(void)
{
    static const char not_numpy[] = "\x93NUMBY\x01\x00v\x00{'descr': '<f4'}";
    static const char beyond[] = "\x93NUMPY\x09\x00v\x00{'descr': '<f4', 'shape': (1, 1)}";
    static const struct {
        struct ask ask;
        const char *body;
        size_t len; /* 0: its strlen */
        int http;
        const char *code;
    } cases[] = {
        {{TRANSPOSE, .type = JSON}, "[[1,2],[3]]", 0, 422, "bad_shape"},
        {{TRANSPOSE, .type = JSON}, "[[1,2],[3,", 0, 400, "bad_json"},
        {{TRANSPOSE, .type = JSON}, "[[1,2]] x", 0, 400, "bad_json"},
        {{TRANSPOSE, .type = JSON}, "nonsense", 0, 400, "bad_json"},
        {{TRANSPOSE, .type = JSON}, "{\"a\":[[1]],\"kernal\":\"x\"}", 0, 400, "unknown_parameter"},
        {{TRANSPOSE, .type = JSON}, "{\"a\":[[1]],\"b\":[[1]]}", 0, 422, "extra_operand"},
        {{TRANSPOSE, .type = JSON}, "{\"a\":[[300]],\"dtype\":\"i64x\"}", 0, 400, "bad_parameter"},
        {{TRANSPOSE, .type = JSON},
         "{\"shape\":[1,1],\"data\":[1],\"device\":\"sim\"}",
         0,
         422,
         "device_unavailable"},
        {{MATMUL, .type = JSON}, "{\"a\":[[1,2]],\"b\":[[1,2]]}", 0, 422, "bad_shape"},
        {{MATMUL, .type = JSON}, "{\"a\":[[1,2]]}", 0, 422, "missing_operand"},
        {{MATMUL, .type = JSON}, "[[1]]", 0, 422, "missing_operand"},
        {{MATMUL, .type = JSON},
         "{\"a\":[[1]],\"b\":[[1]],\"kernel\":\"tiled\"}",
         0,
         422,
         "kernel_unavailable"},
        {{MATMUL, .type = JSON}, "{\"a\":[[3e38]],\"b\":[[10]]}", 0, 422, "nonfinite_in_json"},
        {{TRANSPOSE}, "", 0, 422, "missing_operand"},
        {{TRANSPOSE}, "    \n    ", 0, 415, "unsupported_media_type"},
        {{TRANSPOSE}, "1,2\n3,4\n", 0, 415, "unsupported_media_type"},
        {{TRANSPOSE},
         "a text that is longer than what is looked at",
         0,
         415,
         "unsupported_media_type"},
        {{TRANSPOSE, .type = NPY}, not_numpy, sizeof not_numpy - 1, 400, "bad_npy"},
        {{TRANSPOSE}, beyond, sizeof beyond - 1, 400, "bad_npy"},
        {{TRANSPOSE, .type = NPY}, "\x93NUM", 0, 400, NULL},
        {{TRANSPOSE, .type = RAW, .query = "shape=1x1", .chunked = true},
         "abc",
         0,
         400,
         "body_truncated"},
        {{TRANSPOSE, .type = RAW, .query = "shape=1x1", .chunked = true},
         "abcde",
         0,
         400,
         "body_trailing"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (unsigned way = 0; way < 4; way++) {
            struct ask ask = cases[i].ask;
            size_t len = cases[i].len ? cases[i].len : strlen(cases[i].body);
            struct exchange x;
            ask.chunked = ask.chunked || (way & 1);
            bench_serve(&x, &ask, cases[i].body, len, way & 2 ? 1 : len + 1);
            bool same = cases[i].code ? bench_expect(&x, cases[i].http, cases[i].code)
                                      : x.request->reply.http == cases[i].http;
            check_that(same, __FILE__, __LINE__, "case %zu, way %u", i, way);
            CHECK_EQ(x.request->body.received, len);
            bench_end(&x);
        }
    }
    bench_check_all_returned();
}

/* A chunked body is told when it has grown beyond the limit. */
static void test_growing_body(void)
{
    const struct ask ask = {TRANSPOSE, .type = JSON, .chunked = true};
    struct exchange x;
    static char spaces[1 << 20];

    memset(spaces, ' ', sizeof spaces);
    bench_server.config.body_limit = 3 << 20;
    bench_begin(&x, &ask, 0);
    for (unsigned i = 0; i < 3; i++)
        bench_push(&x, spaces, sizeof spaces, 1 << 16);
    CHECK_EQ(x.request->state, GM_REQUEST_BODY);
    bench_push(&x, spaces, 1, 1);
    CHECK_EQ(x.request->state, GM_REQUEST_DISCARD);
    bench_expect(&x, 413, "body_too_large");
    bench_end(&x);
    bench_server.config.body_limit = 64 << 20;
    bench_check_all_returned();
}

/* The deadline passes while the job waits, and while it runs. */
static void test_deadline(void)
{
    struct ask brief = queued;
    struct exchange running, waiting;

    brief.query = "kernel=naive&timeout_ms=120";
    atomic_store(&faulty_plan.hold, true);
    int64_t begun = gm_now_ns();
    bench_begin(&running, &brief, 13);
    bench_push(&running, body_2x2, 13, 13);
    CHECK(!bench_advance(&running));
    bench_wait_running(1);
    brief.query = "kernel=naive&timeout_ms=60";
    bench_begin(&waiting, &brief, 13);
    bench_push(&waiting, body_2x2, 13, 13);
    CHECK(!bench_advance(&waiting));
    bench_finish(&waiting);
    bench_expect(&waiting, 503, "deadline_passed");
    CHECK(gm_now_ns() - begun >= 60 * 1000000);
    CHECK_EQ(atomic_load(&faulty_plan.running), 1);
    bench_finish(&running);
    bench_expect(&running, 503, "deadline_passed");
    CHECK(gm_now_ns() - begun >= 120 * 1000000);
    atomic_store(&faulty_plan.hold, false);
    bench_end(&running);
    bench_end(&waiting);
    bench_check_all_returned();
}

/* Who waits is dropped when the client has gone, or may have; who runs, only when it has. */
static void test_cancelled(void)
{
    struct exchange x[3];

    atomic_store(&faulty_plan.hold, true);
    for (unsigned i = 0; i < 3; i++) {
        bench_begin(&x[i], &queued, 13);
        bench_push(&x[i], body_2x2, 13, 13);
        CHECK(!bench_advance(&x[i]));
        if (i == 0)
            bench_wait_running(1);
    }
    atomic_store(&x[0].half_closed, true);
    atomic_store(&x[1].half_closed, true);
    atomic_store(&x[2].closed, true);
    for (unsigned i = 1; i < 3; i++) {
        bench_finish(&x[i]);
        bench_expect(&x[i], 503, "cancelled");
    }
    CHECK_EQ(x[0].resumes, 0);
    atomic_store(&x[0].closed, true);
    bench_finish(&x[0]);
    bench_expect(&x[0], 503, "cancelled");
    atomic_store(&faulty_plan.hold, false);
    for (unsigned i = 0; i < 3; i++)
        bench_end(&x[i]);
    bench_check_all_returned();
}

int main(void)
{
    bench_open(LIMIT, 1);
    test_before_the_body();
    test_lengths();
    test_within_the_body();
    test_growing_body();
    test_deadline();
    test_cancelled();
    bench_close();
    return check_report();
}
