/* Inference requests, driven through their states: any cut of the body gives the same, lengths that
 * lie are refused, and nothing is held afterwards. */
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#include <stdio.h>

#define INFER .path = "/v2/models/transpose/infer"
#define INPUT(parameters)                                                                          \
    "{\"id\":\"7\",\"inputs\":[{\"name\":\"A\",\"shape\":[3,2],\"datatype\":\"FP32\"," parameters  \
    "}]"
#define BINARY INPUT("\"parameters\":{\"binary_data_size\":24}")

static const float elements[6] = {0, 1, 2, 3, 4, 5};

/* JSON, and the elements behind it; *ret_header is the JSON's length. */
static size_t make_body(const char *json, char *out, char ret_header[24])
{
    size_t len = strlen(json);

    memcpy(out, json, len);
    memcpy(out + len, elements, sizeof elements);
    snprintf(ret_header, 24, "%zu", len);
    return len + sizeof elements;
}

/* The reply is binary: its JSON, then the transpose. */
static void check_binary(const struct exchange *x)
{
    static const float expected[6] = {0, 2, 4, 1, 3, 5};
    const struct gm_reply *reply = &x->request->reply;
    const char *said = bench_header(x, "Inference-Header-Content-Length"), *json = reply->body;

    CHECK_STR(reply->media_type, RAW);
    if (!CHECK(said && json))
        return;
    size_t len = strtoul(said, NULL, 10);
    CHECK_EQ(reply->body_len, len + sizeof expected);
    CHECK(memcmp(json + len, expected, sizeof expected) == 0);
    CHECK(memmem(json, len, "\"id\":\"7\"", 8));
    CHECK(memmem(json, len, "\"binary_data_size\":24", 21));
    CHECK(memmem(json, len, "\"total_us\":", 11));
    CHECK(len > 0 && json[len - 1] == '}');
}

static void test_binary(void)
{
    char body[512], header[24];
    size_t len = make_body(BINARY ",\"parameters\":{\"binary_data_output\":true}}", body, header);

    for (size_t piece = 1; piece <= len + 1; piece++) {
        struct ask ask = {INFER, .infer_header = header, .chunked = piece % 2};
        struct exchange x;
        bench_serve(&x, &ask, body, len, piece);
        if (bench_expect(&x, 200, NULL))
            check_binary(&x);
        bench_end(&x);
    }
    CHECK_EQ(atomic_load(&bench_server.memory.reserved), 0);
}

static void test_json(void)
{
    static const char body[] = INPUT("\"data\":[0,1,2,3,4,5]") "}";
    static const char *const headers[] = {NULL, "101"};
    char whole[24];

    snprintf(whole, sizeof whole, "%zu", strlen(body));
    for (size_t piece = 1; piece <= sizeof body; piece++) {
        /* The header may be there, and then says the whole length. */
        struct ask ask = {INFER, .infer_header = piece % 3 ? headers[0] : whole,
                          .chunked = piece % 2};
        struct exchange x;
        bench_serve(&x, &ask, body, strlen(body), piece);
        if (bench_expect(&x, 200, NULL)) {
            const struct gm_reply *reply = &x.request->reply;
            CHECK_STR(reply->media_type, JSON);
            CHECK(memmem(reply->body, reply->body_len, "\"data\":[0,2,4,1,3,5]", 20));
            CHECK(bench_header(&x, "Inference-Header-Content-Length") == NULL);
        }
        bench_end(&x);
    }
}

static void expect_error(const struct ask *ask, const void *body, size_t len, int http,
                         const char *part)
{
    struct exchange x;

    bench_serve(&x, ask, body, len, 16);
    CHECK_EQ(x.request->reply.http, http);
    CHECK_STR(x.request->reply.media_type, JSON);
    const char *text = x.request->reply.body;
    if (!CHECK(text && strncmp(text, "{\"error\":\"", 10) == 0 && strstr(text, part)))
        fprintf(stderr, "  %s\n", text ? text : "no body");
    bench_end(&x);
}

static void test_lies(void)
{
    char body[512], header[24], less[24], more[24];
    size_t len = make_body(BINARY "}", body, header);
    static const char *const models[] = {"/v2/models/transpos/infer",
                                         "/v2/models/transpose.tilde/infer",
                                         "/v2/models/transpose@c64/infer"};

    snprintf(less, sizeof less, "%d", atoi(header) - 1);
    snprintf(more, sizeof more, "%d", atoi(header) + 1);
#define ASK(...) &(struct ask){INFER, __VA_ARGS__}
    expect_error(ASK(.infer_header = "0"), body, len, 400, "is 0");
    expect_error(ASK(.infer_header = "-1"), body, len, 400, "number of bytes");
    expect_error(ASK(.infer_header = "99999"), body, len, 400, "number of bytes");
    expect_error(ASK(.infer_header = "99999999999999999999"), body, len, 400, "number of bytes");
    expect_error(ASK(.infer_header = "18446744073709551615", .chunked = true), body, len, 400,
                 "number of bytes");
    expect_error(ASK(.infer_header = "9223372036854775807", .chunked = true), body, len, 413,
                 "body-limit");
    expect_error(ASK(.infer_header = less), body, len, 400, "byte");
    expect_error(ASK(.infer_header = more), body, len, 400, "");
    expect_error(ASK(.infer_header = NULL), body, len, 400, "");
    expect_error(ASK(.infer_header = header), body, len - 1, 400, "23 follow the JSON");
    expect_error(ASK(.infer_header = header), body, len + 1, 400, "25 follow the JSON");
    expect_error(ASK(.infer_header = header, .chunked = true), body, len - 1, 400, "ends before");
    expect_error(ASK(.infer_header = header, .chunked = true), body, len + 1, 400, "goes on");
    expect_error(ASK(.infer_header = header, .chunked = true), body, 20, 400, "the body has 20");
    expect_error(ASK(.infer_header = header, .encoding = "gzip"), body, len, 415, "gzip");
    expect_error(ASK(.infer_header = header, .query = "shape=3x2"), body, len, 400, "");
    expect_error(ASK(.infer_header = header, .query = "kernal=tiled"), body, len, 400, "kernel");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        expect_error(&(struct ask){.path = models[i], .infer_header = header}, body, len, 404,
                     "there");
    expect_error(&(struct ask){.path = "/v2/models/transpose@f16/infer", .infer_header = header},
                 body, len, 422, "takes FP16");
    expect_error(ASK(.method = "GET"), "", 0, 405, "POST");
    /* The JSON before binary data is looked through at once, so that it has a bound. */
    const size_t large = GM_INFER_HEAD_BYTES_MAX + 1;
    char *text = malloc(large + 8);
    memset(text, ' ', large + 8);
    memcpy(text, BINARY "}", strlen(BINARY "}"));
    snprintf(header, sizeof header, "%zu", large);
    struct exchange x;
    bench_serve(&x, ASK(.infer_header = header, .chunked = true), text, large + 8, 65536);
    CHECK_EQ(x.request->reply.http, 413);
    bench_end(&x);
    free(text);
}

int main(void)
{
    bench_open(UINT64_C(1) << 28, 2);
    test_binary();
    test_json();
    test_lies();
    bench_check_all_returned();
    bench_close();
    return check_report();
}
