/* Requests that end well: every format, in pieces of every size, on every thread that may have it.
 */
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CURL "application/x-www-form-urlencoded"

#define ROWS 3
#define COLS 5

static const float matrix[ROWS][COLS] = {
    {1, 2, 3, 4, 5}, {-6, 7.5f, 8, 9, 10}, {11, 12, 13, -14.25f, 15}};
static const char matrix_json[] = "[[1,2,3,4,5],[-6,7.5,8,9,10],[11,12,13,-14.25,15]]";

/* The reply's elements are those of the matrix, transposed. */
static void check_transposed(const struct exchange *x)
{
    const struct gm_reply *reply = &x->request->reply;
    float result[COLS][ROWS];
    uint64_t head = strcmp(reply->media_type, NPY) == 0 ? 128 : 0;
    bool same = CHECK_EQ(reply->body_len, head + sizeof result);

    if (!same)
        return;
    memcpy(result, (const char *)reply->body + head, sizeof result);
    for (unsigned i = 0; i < COLS; i++)
        for (unsigned j = 0; j < ROWS; j++)
            same = same && result[i][j] == matrix[j][i];
    CHECK(same);
}

/* A JSON reply: its data, and the account that it carries and the header repeats. */
static void check_json(const struct exchange *x, const char *data)
{
    const struct gm_reply *reply = &x->request->reply;
    json_error_t fault;
    json_t *document = json_loadb(reply->body, reply->body_len, JSON_REJECT_DUPLICATES, &fault);
    json_t *stats = json_object_get(document, "stats");
    const char *header = bench_header(x, "Gemmd-Stats");
    json_t *repeated = header ? json_loads(header, 0, &fault) : NULL;
    json_t *expected = json_loads(data, 0, &fault);

    CHECK(document && json_equal(json_object_get(document, "data"), expected));
    CHECK(stats && json_equal(stats, repeated));
    CHECK_STR(json_string_value(json_object_get(stats, "id")), x->request->id);
    CHECK_STR(json_string_value(json_object_get(stats, "device")), "fake:0");
    CHECK_STR(reply->media_type, JSON);
    CHECK(bench_header(x, "Server-Timing") != NULL);
    json_decref(document);
    json_decref(repeated);
    json_decref(expected);
}

static uint64_t ran_inline(void)
{
    struct gm_stats_shard sums;

    gm_stats_sum(&bench_server.stats, &sums);
    return sums.counter[GM_COUNT_RAN_INLINE];
}

/* A small job runs at once, on the event thread; a named kernel's on the device's. */
static void test_json(void)
{
    const char body[] = "[[1, 2], [3, 4]]";
    struct ask ask = {.path = "/v1/transpose", .type = JSON};
    struct exchange x;

    bench_serve(&x, &ask, body, strlen(body), 100);
    bench_expect(&x, 200, NULL);
    check_json(&x, "[[1,3],[2,4]]");
    CHECK_EQ(x.suspends, 0);
    CHECK_EQ(ran_inline(), 1);
    bench_end(&x);

    ask.query = "kernel=naive";
    bench_serve(&x, &ask, body, strlen(body), 100);
    bench_expect(&x, 200, NULL);
    check_json(&x, "[[1,3],[2,4]]");
    CHECK_EQ(x.suspends, 1);
    CHECK_EQ(ran_inline(), 1);
    bench_end(&x);

    const char product[] = "{\"a\":[[1,2],[3,4]],\"b\":[[1,0],[0,2]],\"c\":[[1,1],[1,1]],"
                           "\"alpha\":2,\"beta\":-1,\"transb\":true,\"dtype\":\"f64\"}";
    ask = (struct ask){.path = "/v1/matmul", .type = "application/json; charset=utf-8"};
    bench_serve(&x, &ask, product, strlen(product), 7);
    bench_expect(&x, 200, NULL);
    check_json(&x, "[[1,7],[5,15]]");
    bench_end(&x);
}

/* An NPY 1.0 file of the matrix. */
static size_t make_npy(char *out)
{
    int len = snprintf(out, 256, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0,
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }");

    CHECK_EQ(len, 128);
    memcpy(out + 128, matrix, sizeof matrix);
    return 128 + sizeof matrix;
}

/* Each format comes in pieces of each size, stated or chunked, and with or without its name. */
static void test_pieces(void)
{
    static char npy[256], spaced[512];
    const size_t npy_len = make_npy(npy);
    snprintf(spaced, sizeof spaced, " \t\r\n %40s%s\n", "", matrix_json);
    const struct {
        struct ask ask;
        const void *body;
        size_t len;
    } cases[] = {
        {{.type = RAW, .query = "shape=3x5"}, matrix, sizeof matrix},
        {{.type = NPY, .accept = RAW}, npy, npy_len},
        {{.accept = RAW}, npy, npy_len},
        {{.type = CURL, .accept = RAW}, npy, npy_len},
        {{.type = JSON, .accept = RAW}, matrix_json, sizeof matrix_json - 1},
        {{.type = CURL, .accept = RAW}, matrix_json, sizeof matrix_json - 1},
        {{.accept = RAW}, spaced, strlen(spaced)},
        {{.accept = RAW, .query = "kernel=blocked"}, spaced, strlen(spaced)},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece <= cases[i].len + 1; piece++) {
            struct ask ask = cases[i].ask;
            struct exchange x;
            ask.path = "/v1/transpose";
            ask.chunked = piece % 2;
            bench_serve(&x, &ask, cases[i].body, cases[i].len, piece);
            bench_expect(&x, 200, NULL);
            check_transposed(&x);
            CHECK_STR(bench_header(&x, "Gemmd-Shape"), "5x3");
            CHECK_STR(bench_header(&x, "Gemmd-Dtype"), "f32");
            CHECK_EQ(x.request->body.received, cases[i].len);
            bench_end(&x);
        }
    }
    CHECK_EQ(atomic_load(&bench_server.memory.reserved), 0);
}

/* The default format out is the format in; Accept chooses another. */
static void test_forms_out(void)
{
    static const struct {
        const char *accept, *media_type;
    } cases[] = {{NULL, NPY}, {"*/*", NPY}, {JSON, JSON}, {RAW, RAW}, {"text/html, " RAW, RAW}};
    char npy[256];
    size_t len = make_npy(npy);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ask ask = {.path = "/v1/transpose", .accept = cases[i].accept};
        struct exchange x;
        bench_serve(&x, &ask, npy, len, 50);
        bench_expect(&x, 200, NULL);
        CHECK_STR(x.request->reply.media_type, cases[i].media_type);
        if (i == 0) {
            CHECK(memcmp(x.request->reply.body, "\x93NUMPY", 6) == 0);
            check_transposed(&x);
        }
        bench_end(&x);
    }
}

#define SIDE 420

/* Text above 1 MiB is decoded and encoded by workers: one suspension from end to end. */
static void test_large_text(void)
{
    const size_t capacity = SIDE * SIDE * 12;
    char *text = malloc(capacity);
    size_t len = 0;
    static const char *const accepts[] = {RAW, JSON, NULL};
    float expected;

    for (unsigned i = 0; i < SIDE; i++)
        for (unsigned j = 0; j < SIDE; j++)
            len += (size_t)snprintf(text + len, capacity - len, "%s%u.125%s",
                                    j   ? ","
                                    : i ? "["
                                        : "[[",
                                    i * 1000 + j,
                                    j < SIDE - 1   ? ""
                                    : i < SIDE - 1 ? "],\n"
                                                   : "]]");
    CHECK(len > GM_TEXT_INLINE_BYTES_MAX);
    for (unsigned k = 0; k < 3; k++) {
        const struct ask ask = {.path = "/v1/transpose", .accept = accepts[k], .chunked = k == 2};
        struct exchange x;
        bench_serve(&x, &ask, text, len, 131072);
        bench_expect(&x, 200, NULL);
        CHECK_EQ(x.suspends, 1);
        const struct gm_reply *reply = &x.request->reply;
        if (k == 0) {
            bool same = CHECK_EQ(reply->body_len, 4 * SIDE * SIDE);
            for (unsigned i = 0; same && i < SIDE * SIDE; i++) {
                memcpy(&expected, (const char *)reply->body + 4 * (size_t)i, 4);
                same = expected == (float)(i % SIDE * 1000 + i / SIDE) + 0.125f;
            }
            CHECK(same);
        } else {
            json_t *document = json_loadb(reply->body, reply->body_len, 0, NULL);
            json_t *row = json_array_get(json_object_get(document, "data"), 3);
            CHECK(json_number_value(json_array_get(row, 7)) == 7003.125);
            CHECK(json_object_get(document, "stats") != NULL);
            json_decref(document);
        }
        bench_end(&x);
    }
    free(text);
}

/* A small matrix in a large text goes to a worker too, which does not run its job by itself. */
static void test_spacious_text(void)
{
    const struct ask ask = {.path = "/v1/transpose", .type = JSON, .accept = RAW};
    static char text[GM_TEXT_INLINE_BYTES_MAX + 256];
    uint64_t ran = ran_inline();
    struct exchange x;

    memset(text, ' ', sizeof text);
    memcpy(text + sizeof text - sizeof matrix_json, matrix_json, sizeof matrix_json - 1);
    bench_serve(&x, &ask, text, sizeof text, 65536);
    bench_expect(&x, 200, NULL);
    check_transposed(&x);
    CHECK_EQ(x.suspends, 1);
    CHECK_EQ(ran_inline(), ran);
    bench_end(&x);
}

/* A trace's id, else the client's, if it is harmless, else one of ours: always a new one. */
static void test_ids(void)
{
    static const char trace[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    static const struct {
        const char *traceparent, *request_id, *id; /* NULL: 32 random digits */
    } cases[] = {
        {trace, NULL, "0af7651916cd43dd8448eb211c80319c"},
        {trace, "mine", "0af7651916cd43dd8448eb211c80319c"},
        {NULL, "mine-1_2.3", "mine-1_2.3"},
        {"00-00000000000000000000000000000000-b7ad6b7169203331-01", "mine", "mine"},
        {"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "mine", "mine"},
        {"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "mine", "mine"},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", "mine", "mine"},
        {"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", "mine",
         "0af7651916cd43dd8448eb211c80319c"},
        {"00-", NULL, NULL},
        {"", "", NULL},
        {NULL, "two words", NULL},
        {NULL, "a\"quote", NULL},
        {NULL, "line\nbreak", NULL},
        {NULL, NULL, NULL},
    };
    char last[GM_REQUEST_ID_MAX] = "";

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ask ask = {.method = "GET",
                                .path = "/healthz",
                                .traceparent = cases[i].traceparent,
                                .request_id = cases[i].request_id};
        struct exchange x;
        bench_serve(&x, &ask, NULL, 0, 1);
        bench_expect(&x, 200, NULL);
        if (cases[i].id) {
            CHECK_STR(x.request->id, cases[i].id);
        } else {
            CHECK_EQ(strspn(x.request->id, "0123456789abcdef"), 32);
            CHECK_EQ(strlen(x.request->id), 32);
            CHECK(strncmp(x.request->id, last, 16) != 0); /* both halves are new */
            CHECK(strcmp(x.request->id + 16, last + 16) != 0);
            strcpy(last, x.request->id);
        }
        bench_end(&x);
    }
}

/* Several at once on two lanes: each gets its own result. */
static void test_beside_each_other(void)
{
    struct exchange x[6];
    char body[64], expected[64];

    for (unsigned i = 0; i < 6; i++) {
        const struct ask ask = {.path = "/v1/transpose", .query = "kernel=naive", .type = JSON};
        int len = snprintf(body, sizeof body, "[[%u, %u]]", i, 100 + i);
        bench_begin(&x[i], &ask, (uint64_t)len);
        bench_push(&x[i], body, (uint64_t)len, 3);
        CHECK(!bench_advance(&x[i]));
    }
    for (unsigned i = 6; i-- > 0;) {
        bench_finish(&x[i]);
        bench_expect(&x[i], 200, NULL);
        snprintf(expected, sizeof expected, "[[%u],[%u]]", i, 100 + i);
        check_json(&x[i], expected);
        bench_end(&x[i]);
    }
}

/* What needs no device is answered at once; bench_serve checks that the request says so. */
static void test_choose(void)
{
    const struct ask ask = {.method = "GET", .path = "/v1/choose/transpose", .query = "shape=8x8"};
    struct exchange x;

    bench_serve(&x, &ask, "", 0, 1);
    bench_expect(&x, 200, NULL);
    CHECK_EQ(x.suspends, 0);
    bench_end(&x);
}

int main(void)
{
    bench_open(64 << 20, 2);
    test_json();
    test_pieces();
    test_forms_out();
    test_large_text();
    test_spacious_text();
    test_ids();
    test_beside_each_other();
    test_choose();
    bench_close();
    return check_report();
}
