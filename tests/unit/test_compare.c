/* Comparisons: what runs, in what order, what the report says of it, and how one ends early. */
#include "server/clock.h"
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define LIMIT (64 << 20)
#define COMPARE_MATMUL .path = "/v1/compare/matmul"
#define COMPARE_TRANSPOSE .path = "/v1/compare/transpose"

static const char product[] = "{\"a\":[[1,2],[3,4]],\"b\":[[5,6],[7,8]]}";
#define PRODUCT product, sizeof product - 1
static const char body_3x2[] = "[[1,2],[3,4],[5,6]]";
#define BODY_3X2 body_3x2, sizeof body_3x2 - 1

/* Nothing has run, and no fault is planned. */
static void reset(void)
{
    atomic_store(&faulty_plan.runs, 0);
    atomic_store(&faulty_plan.hold, false);
    faulty_plan.memory_at = faulty_plan.stall_at = faulty_plan.wrong_at = 0;
}

static json_t *report_of(const struct exchange *x)
{
    const struct gm_reply *reply = &x->request->reply;
    json_error_t fault;
    json_t *report = json_loadb(reply->body, reply->body_len, JSON_REJECT_DUPLICATES, &fault);

    CHECK_STR(reply->media_type, JSON);
    if (!check_that(report != NULL, __FILE__, __LINE__, "%s: %.*s", fault.text,
                    (int)reply->body_len, (const char *)reply->body))
        abort();
    return report;
}

static json_t *row_of(const json_t *report, const char *kernel)
{
    json_t *row;
    size_t i;

    json_array_foreach (json_object_get(report, "rows"), i, row) {
        if (strcmp(json_string_value(json_object_get(row, "kernel")), kernel) == 0)
            return row;
    }
    check_that(false, __FILE__, __LINE__, "no row of kernel %s", kernel);
    abort();
}

static const char *text_of(const json_t *object, const char *outer, const char *inner)
{
    return json_string_value(json_object_get(json_object_get(object, outer), inner));
}

static const char *verdict_of(const json_t *row)
{
    return text_of(row, "error", "verdict");
}

static double number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : -1;
}

static json_t *compare(struct exchange *x, const struct ask *ask, const void *body, size_t len)
{
    bench_serve(x, ask, body, len, 1 << 20);
    if (!bench_expect(x, 200, NULL))
        abort();
    CHECK_EQ(x->suspends, 1);
    return report_of(x);
}

/* Of what is timed, the fastest first; then what is not; then what failed. */
static void check_order(const json_t *report)
{
    double before = 0;
    int group_before = 0;
    json_t *row;
    size_t i;

    json_array_foreach (json_object_get(report, "rows"), i, row) {
        double us = number_of(row, "kernel_us_median");
        int group = json_object_get(row, "failure") ? 2 : us < 0 ? 1 : 0;
        CHECK(group >= group_before && (group > 0 || us >= before));
        before = us;
        group_before = group;
    }
}

/* Each kernel proves itself by one run, and is then timed; auto's first, then from the list's end.
 */
static void test_order(void)
{
    const struct ask ask = {COMPARE_MATMUL, .type = JSON, .accept = JSON};
    struct exchange x;
    unsigned kernels = 0, timed = 0;

    reset();
    json_t *report = compare(&x, &ask, PRODUCT), *row;
    size_t i;

    json_array_foreach (json_object_get(report, "rows"), i, row) {
        const char *name = json_string_value(json_object_get(row, "kernel"));
        CHECK_STR(json_string_value(json_object_get(row, "op")), "matmul");
        CHECK_STR(verdict_of(row), "within");
        CHECK(json_is_true(json_object_get(row, "auto")) == (strcmp(name, "naive") == 0));
        CHECK(json_is_false(json_object_get(row, "baseline")));
        CHECK(json_object_get(row, "failure") == NULL);
        CHECK_EQ(number_of(row, "runs"), 5);
        CHECK(number_of(row, "kernel_us_min") <= number_of(row, "kernel_us_median"));
        CHECK(number_of(row, "gflops") > 0 && number_of(row, "effective_gbs") > 0);
        CHECK(strlen(json_string_value(json_object_get(row, "note"))) > 10);
        CHECK(number_of(row, "speed") > 0 && number_of(row, "speed") <= 1);
        CHECK(i > 0 || number_of(row, "speed") == 1);
        kernels++;
    }
    check_order(report);
    CHECK(kernels >= 3);
    CHECK_STR(text_of(report, "reference", "against"), "reference");
    const unsigned runs = atomic_load(&faulty_plan.runs);
    CHECK_EQ(runs, 2 * kernels);
    for (unsigned n = 0; n < runs; n++)
        CHECK_EQ(faulty_plan.run[n].repeat, n % 2 == 0 ? 1 : 5);
    for (unsigned n = 0; n < runs; n += 2)
        CHECK(faulty_plan.run[n].variant == faulty_plan.run[n + 1].variant);
    CHECK_STR(faulty_plan.run[0].variant->name, "naive");
    for (unsigned n = 4; n < runs; n += 2, timed++)
        CHECK(faulty_plan.run[n].variant < faulty_plan.run[n - 2].variant);
    CHECK_EQ(timed, kernels - 2);
    CHECK(strstr(bench_header(&x, "Server-Timing"), "runs;dur=") != NULL);
    json_decref(report);
    bench_end(&x);
    bench_check_all_returned();
}

/* What only moves bytes is compared with copies of them; what moves none is a copy. */
static void test_baselines(void)
{
    const struct ask ask = {COMPARE_TRANSPOSE, .type = JSON, .query = "format=json&repeat=2"};
    struct exchange x;

    reset();
    json_t *report = compare(&x, &ask, BODY_3X2);
    CHECK_EQ(json_array_size(json_object_get(report, "rows")), 4);
    for (unsigned i = 0; i < 2; i++) {
        json_t *row = row_of(report, i ? "memcpy" : "stream");
        CHECK(json_is_true(json_object_get(row, "baseline")));
        CHECK_STR(json_string_value(json_object_get(row, "op")), "copy");
        CHECK_STR(verdict_of(row), "exact");
        CHECK_EQ(number_of(row, "runs"), 2);
        CHECK(json_object_get(row, "gflops") == NULL);
    }
    CHECK_STR(verdict_of(row_of(report, "blocked")), "exact");
    json_decref(report);
    bench_end(&x);

    report = compare(&x, &ask, "[[1,2,3]]", 9);
    CHECK(json_is_false(json_object_get(row_of(report, "memcpy"), "baseline")));
    CHECK(json_is_true(json_object_get(row_of(report, "memcpy"), "auto")));
    json_decref(report);
    bench_end(&x);
    bench_check_all_returned();
}

/* One kernel fails, is wrong or is too slow: its row says so, and the others go on. Without a fault
 * runs 1 and 2 are naive's (which auto takes), 3 to 6 the copies', 7 and 8 blocked's. */
static void test_one_fails(void)
{
    const struct ask ask = {COMPARE_TRANSPOSE, .type = JSON,
                            .query = "format=json&timeout_ms=1500"};
    static const struct {
        unsigned memory_at, stall_at, wrong_at, runs;
        const char *kernel, *code; /* no code: wrong */
    } cases[] = {
        {.memory_at = 7, .runs = 7, .kernel = "blocked", .code = "device_memory"},
        {.memory_at = 8, .runs = 8, .kernel = "blocked", .code = "device_memory"},
        {.memory_at = 1, .runs = 7, .kernel = "naive", .code = "device_memory"},
        {.stall_at = 7, .runs = 7, .kernel = "blocked", .code = "cost_limit"},
        {.stall_at = 1, .runs = 7, .kernel = "naive", .code = "cost_limit"},
        {.wrong_at = 7, .runs = 7, .kernel = "blocked"},
        {.wrong_at = 1, .runs = 7, .kernel = "naive"},
        {.wrong_at = 3, .runs = 7, .kernel = "stream"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exchange x;
        json_t *row;
        size_t k;
        reset();
        faulty_plan.memory_at = cases[i].memory_at;
        faulty_plan.stall_at = cases[i].stall_at;
        faulty_plan.wrong_at = cases[i].wrong_at;
        json_t *report = compare(&x, &ask, BODY_3X2);
        check_order(report);
        CHECK_EQ(atomic_load(&faulty_plan.runs), cases[i].runs);
        CHECK_EQ(json_array_size(json_object_get(report, "rows")), 4);
        json_array_foreach (json_object_get(report, "rows"), k, row) {
            const char *name = json_string_value(json_object_get(row, "kernel"));
            bool bad = strcmp(name, cases[i].kernel) == 0;
            const char *code = text_of(row, "failure", "code"), *verdict = verdict_of(row);
            CHECK_STR(code, bad ? cases[i].code : NULL);
            if (!bad || cases[i].memory_at == 8)
                CHECK_STR(verdict, "exact");
            else
                CHECK_STR(verdict, cases[i].code ? NULL : "wrong");
            CHECK_EQ(number_of(row, "runs"), !bad ? 5 : cases[i].memory_at == 8 ? 1 : -1);
        }
        row = row_of(report, cases[i].kernel);
        if (!cases[i].code) {
            CHECK_EQ(number_of(json_object_get(row, "error"), "wrong"), 1);
            CHECK_EQ(number_of(json_object_get(row, "error"), "first"), 0);
        } else if (cases[i].stall_at > 0) {
            CHECK(strstr(text_of(row, "failure", "detail"), "stopped after") != NULL);
        }
        json_decref(report);
        bench_end(&x);
        bench_check_all_returned();
    }
}

/* Too slow to be timed: the time of its first run stands. */
static void test_slow_timing(void)
{
    const struct ask ask = {COMPARE_TRANSPOSE, .type = JSON,
                            .query = "format=json&kernel=naive&timeout_ms=500"};
    struct exchange x;

    reset();
    faulty_plan.stall_at = 2;
    json_t *report = compare(&x, &ask, BODY_3X2);
    CHECK_EQ(json_array_size(json_object_get(report, "rows")), 1);
    CHECK_EQ(number_of(row_of(report, "naive"), "runs"), 1);
    CHECK_STR(verdict_of(row_of(report, "naive")), "exact");
    CHECK(json_object_get(row_of(report, "naive"), "failure") == NULL);
    json_decref(report);
    bench_end(&x);
    bench_check_all_returned();
}

/* Where a reference would cost too much, results are compared with that of auto's kernel. */
static void test_without_reference(void)
{
    enum { SIZE = 516 };
    static float operands[2][SIZE][SIZE];
    const struct ask ask = {COMPARE_MATMUL, .type = RAW, .accept = JSON,
                            .query = "shape_a=516x516&shape_b=516x516&kernel=naive&repeat=1"};
    struct exchange x;
    uint64_t state = check_seed();

    for (unsigned i = 0; i < SIZE; i++)
        for (unsigned j = 0; j < SIZE; j++)
            operands[0][i][j] = operands[1][j][i] = (float)(check_random(&state) % 100 + 1);
    operands[0][0][0] = INFINITY; /* so is the first row of the result; a bit more is NaN */
    CHECK(2.0 * SIZE * SIZE * SIZE > GM_REFERENCE_FLOPS_MAX);
    for (unsigned wrong = 0; wrong < 2; wrong++) {
        reset();
        faulty_plan.wrong_at = 2 * wrong;
        json_t *report = compare(&x, &ask, operands, sizeof operands);
        const char *against = text_of(report, "reference", "against");
        CHECK_EQ(json_array_size(json_object_get(report, "rows")), 2);
        CHECK_STR(faulty_plan.run[0].variant->name, against);
        CHECK_STR(faulty_plan.run[1].variant->name, "naive");
        CHECK(json_object_get(row_of(report, against), "error") == NULL);
        CHECK(json_is_true(json_object_get(row_of(report, against), "auto")));
        json_t *error = json_object_get(row_of(report, "naive"), "error");
        CHECK_STR(json_string_value(json_object_get(error, "verdict")), "compared");
        CHECK(number_of(error, "max_relative") >= 0 && number_of(error, "max_relative") < 1e-4);
        CHECK_EQ(number_of(error, "different"), wrong); /* whole numbers are exact */
        json_decref(report);
        bench_end(&x);
        bench_check_all_returned();
    }
}

/* The formats, by Accept, by the query, by the body; and those that there are not. */
static void test_formats(void)
{
    static const struct {
        struct ask ask;
        const char *body;
        int http;
        const char *says; /* media type, or the problem's code */
    } cases[] = {
        {{COMPARE_TRANSPOSE}, "[[1]]", 200, "text/plain; charset=utf-8"},
        {{COMPARE_TRANSPOSE, .accept = "*/*"}, "[[1]]", 200, "text/plain; charset=utf-8"},
        {{COMPARE_TRANSPOSE, .accept = "text/html, text/*;q=0.1"},
         "[[1]]",
         200,
         "text/plain; charset=utf-8"},
        {{COMPARE_TRANSPOSE, .accept = JSON}, "[[1]]", 200, JSON},
        {{COMPARE_TRANSPOSE, .accept = "text/plain;q=0.5, application/*"}, "[[1]]", 200, JSON},
        {{COMPARE_TRANSPOSE, .accept = "text/plain", .query = "format=json"}, "[[1]]", 200, JSON},
        {{COMPARE_TRANSPOSE, .accept = JSON, .query = "format=text"},
         "[[1]]",
         200,
         "text/plain; charset=utf-8"},
        {{COMPARE_TRANSPOSE}, "{\"a\":[[1]],\"format\":\"json\"}", 200, JSON},
        {{COMPARE_TRANSPOSE}, "{\"a\":[[1]],\"format\":\"xml\"}", 400, "bad_parameter"},
        {{COMPARE_TRANSPOSE, .query = "format=png"}, "[[1]]", 400, "bad_parameter"},
        {{COMPARE_TRANSPOSE, .query = "format=a-long-name"}, "[[1]]", 400, "bad_parameter"},
        {{COMPARE_TRANSPOSE, .accept = "text/html"}, "[[1]]", 406, "not_acceptable"},
        {{COMPARE_TRANSPOSE, .accept = "image/png"}, "[[1]]", 406, "not_acceptable"},
        {{COMPARE_TRANSPOSE, .accept = NPY}, "[[1]]", 406, "not_acceptable"},
        {{TRANSPOSE, .query = "format=json"}, "[[1]]", 400, "bad_parameter"},
        {{COMPARE_TRANSPOSE, .query = "kernel=blokced"},
         "[[1,2],[3,4]]",
         422,
         "kernel_unavailable"},
        {{COMPARE_MATMUL, .query = "kernel=memcpy"},
         "{\"a\":[[1]],\"b\":[[1]]}",
         422,
         "kernel_unavailable"},
        {{COMPARE_MATMUL}, "{\"a\":[[1,2]],\"b\":[[1,2]]}", 422, "bad_shape"},
        {{COMPARE_MATMUL}, "[[1]]", 422, "missing_operand"},
        {{COMPARE_TRANSPOSE}, "", 422, "missing_operand"},
        {{COMPARE_TRANSPOSE}, "{}", 422, "missing_operand"},
        {{COMPARE_MATMUL}, "{\"kernel\":\"blocked\"}", 422, "missing_operand"},
        {{.method = "GET", COMPARE_MATMUL}, "", 405, "method_not_allowed"},
        {{.path = "/v1/compare/copy"}, "[[1]]", 404, "not_found"},
    };

    reset();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exchange x;
        bench_serve(&x, &cases[i].ask, cases[i].body, strlen(cases[i].body), 7);
        bool same = bench_expect(&x, cases[i].http, cases[i].http == 200 ? NULL : cases[i].says);
        if (cases[i].http == 200)
            same = same && CHECK_STR(x.request->reply.media_type, cases[i].says);
        check_that(same, __FILE__, __LINE__, "case %zu", i);
        bench_end(&x);
        bench_check_all_returned();
    }
}

/* The table for people names every kernel, and why one is missing. */
static void test_text(void)
{
    const struct ask ask = {COMPARE_MATMUL, .type = RAW, .query = "shape_a=9x1&shape_b=1x9"};
    static const float elements[18];
    static const char *const parts[] = {
        "matmul of 9x1, 1x9 f32 on fake:0",
        "% of roof",
        "naive",
        "blocked",
        "of bound",
        "* marks the kernel that auto takes",
        "speed is relative to the operation's fastest kernel",
        "skinny: no result: kernel \"skinny\" makes results of at most 8"};
    struct exchange x;

    reset();
    bench_serve(&x, &ask, elements, sizeof elements, 1 << 20);
    bench_expect(&x, 200, NULL);
    const char *text = x.request->reply.text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        check_that(strstr(text, parts[i]) != NULL, __FILE__, __LINE__, "no '%s' in %s", parts[i],
                   text);
    CHECK(strstr(text, "wavefronts") == NULL && strstr(text, "nan") == NULL);
    bench_end(&x);
    bench_check_all_returned();
}

/* A device that counts accesses: one run each, the least traffic first. */
static void test_counts(void)
{
    struct ask ask = {COMPARE_TRANSPOSE, .type = JSON, .accept = JSON};
    struct exchange x;

    bench_close();
    bench_open_counting(LIMIT);
    json_t *report = compare(&x, &ask, BODY_3X2), *row;
    size_t i;
    json_array_foreach (json_object_get(report, "rows"), i, row) {
        const json_t *accesses = json_object_get(row, "accesses");
        CHECK_EQ(number_of(accesses, "global_sectors"), 100 * (i + 1) + 10);
        CHECK_EQ(number_of(accesses, "shared_wavefronts"), 4);
        CHECK_EQ(number_of(accesses, "shared_wavefronts_ideal"), 2);
        CHECK_EQ(number_of(accesses, "barriers"), 7);
        CHECK(number_of(accesses, "global_sectors_ratio") > 1);
        CHECK(json_object_get(row, "kernel_us_median") == NULL);
        CHECK(json_object_get(row, "runs") == NULL && json_object_get(row, "speed") == NULL);
        CHECK_STR(verdict_of(row), "exact");
    }
    CHECK_EQ(i, 4);
    CHECK_EQ(atomic_load(&faulty_plan.runs), 4);
    json_decref(report);
    bench_end(&x);
    ask.accept = "text/plain";
    bench_serve(&x, &ask, BODY_3X2, 100);
    bench_expect(&x, 200, NULL);
    CHECK(strstr(x.request->reply.text, "wavefronts") != NULL);
    CHECK(strstr(x.request->reply.text, "time us") == NULL);
    bench_end(&x);
    bench_check_all_returned();
    bench_close();
    bench_open(LIMIT, 1);
}

int main(void)
{
    bench_open(LIMIT, 1);
    test_order();
    test_baselines();
    test_one_fails();
    test_slow_timing();
    test_without_reference();
    test_formats();
    test_text();
    test_counts();
    bench_close();
    return check_report();
}
