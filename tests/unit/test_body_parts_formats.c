/*
 * Bodies of multipart/form-data: what each part is taken for, in which order they may come, and
 * what is said of those that are wrong.
 */
#include "tests/unit/multipart_message.h"

#include <jansson.h>
#include <string.h>

/* Parts as `name|type|data` lines, each a part; type - is none. */
static void make_parts(struct message *m, const char *lines)
{
    m->len = 0;
    while (*lines) {
        char line[1024], *name = line;
        size_t len = strcspn(lines, "\n");
        memcpy(line, lines, len);
        line[len] = '\0';
        char *type = strchr(name, '|');
        *type++ = '\0';
        char *data = strchr(type, '|');
        *data++ = '\0';
        message_add_part(m, name, strcmp(type, "-") == 0 ? NULL : type, data, strlen(data));
        lines += len + (lines[len] == '\n');
    }
    message_add_end(m);
}

/* The rows of a reply in JSON, or what was wrong. */
static void check_answer(const struct exchange *x, int http, const char *expected)
{
    const struct gm_reply *reply = &x->request->reply;
    json_t *document = json_loadb(reply->body, reply->body_len, 0, NULL);
    char *data = json_dumps(json_object_get(document, "data"), JSON_COMPACT | JSON_ENCODE_ANY);
    const char *detail = json_string_value(json_object_get(document, "detail"));
    const char *found = data ? data : detail ? detail : "";

    check_that(reply->http == http && strstr(found, expected) != NULL, __FILE__, __LINE__,
               "%d \"%s\", not %d \"%s\"", reply->http, found, http, expected);
    free(data);
    json_decref(document);
}

static const struct {
    const char *path, *query, *parts;
    int http;
    const char *expected;
} cases[] = {
#define ADD "/v1/add"
#define FLIP "/v1/flip"
    /* By type, and where the type says little, by first bytes. */
    {FLIP, NULL, "a|-|[[1,2]]", 200, "[[2,1]]"},
    {FLIP, NULL, "a|application/json|[[1,2]]", 200, "[[2,1]]"},
    {FLIP, NULL, "a|application/octet-stream|[[1,2]]", 200, "[[2,1]]"},
    {FLIP, NULL, "a|text/plain; charset=utf-8| [[1,2]]", 200, "[[2,1]]"},
    {FLIP, NULL, "a|TEXT/CSV; header=absent|1,2", 200, "[[2,1]]"},
    {FLIP, NULL, "a|application/octet-stream|1,2", 200, "[[2,1]]"},
    {FLIP, NULL, "a|text/plain|1;2", 200, "[[2,1]]"},
    {FLIP, NULL, "a|-|-1", 200, "[[-1]]"},
    {FLIP, "shape=1x4&dtype=i8", "a|application/octet-stream|abcd", 200, "[[100,99,98,97]]"},
    {FLIP, "shape=1x4&dtype=i8", "a|-|[{1,", 200, "[[44,49,123,91]]"},
    {FLIP, "shape=0x4", "a|-|", 200, "[]"},
    /* A dtype may stand behind the texts that it is for. */
    {ADD, NULL, "a|-|[[9007199254740993]]\nb|-|1\ndtype|-|i64", 200, "[[9007199254740994]]"},
    {ADD, NULL, "dtype|-|i64\nb|text/csv|1\na|-|[[9007199254740993]]", 200, "[[9007199254740994]]"},
    {ADD, "dtype=f64", "a|-|1\nb|-|2\ndtype|-|f64", 200, "[[3]]"},
    {"/v1/matmul", NULL, "b|-|2\na|-|{\"shape\":[1,1],\"data\":[3]}\nalpha|-|0.5", 200, "[[3]]"},
    {"/v1/matmul", NULL, "a|-|[[1,2]]\nb|-|[[3,4]]\ntransb|-|1", 200, "[[11]]"},
    /* Names. */
    {ADD, NULL, "a|-|1\nB|-|2", 400,
     "no part 'B'; the nearest is 'b'. Operands are parts named a and b"},
    {ADD, NULL, "a|-|1\nbb|-|2", 400, "no part 'bb'; the nearest is 'b'"},
    {FLIP, NULL, "a|-|1\ndtyp|-|2", 400,
     "no part 'dtyp'; the nearest is 'dtype'. Operands are parts named a,"},
    {FLIP, NULL, "|-|1", 400, "no part ''. Operands are parts named a, and"},
    {FLIP, NULL, "a|-|1\nb|-|2", 422, "there is a part b; flip takes a alone"},
    {ADD, NULL, "a|-|1\nb|-|2\nc|-|3", 422, "there is a part c; add takes a and b"},
    {ADD, NULL, "a|-|1\na|-|2", 400, "two parts named a"},
    {ADD, NULL, "dtype|-|f32\ndtype|-|f32", 400, "two parts named dtype"},
    {FLIP, NULL, "shape|-|1x1\nshape_a|-|1x1", 400, "two parts named shape_a"},
    {FLIP, NULL, "alpha|-|2\na|-|1", 400, "flip does not take 'alpha'"},
    {FLIP, "dtype=f32", "a|-|1\ndtype|-|f64", 400, "dtype is stated twice"},
    {FLIP, NULL, "a|-|1\ndtype|-|f65", 400, "dtype is 'f65'; it must be one of"},
    {FLIP, NULL, "a|-|1\nformat|-|json", 400, "does not take 'format'"},
    {FLIP, NULL, "a|-|1\ndevice|-|gpu", 422, "gpu"},
    {ADD, NULL, "b|-|1", 422, "there is no part a"},
    {ADD, NULL, "a|-|1", 422, "b is missing"},
    {ADD, NULL, "dtype|-|f64", 422, "a is missing"},
    /* Contents. */
    {FLIP, NULL, "a|-|", 422, "part a is empty"},
    {FLIP, NULL, "a|application/octet-stream| \r ", 422, "part a is empty"},
    {FLIP, NULL, "a|-|b.npy", 415,
     "the text 'b.npy'; to send a file write its name after an @, as in -F a=@a.npy"},
    {FLIP, NULL, "a|image/png|1", 415,
     "part a is 'image/png', which is not known; it may be application/json"},
    {FLIP, NULL, "a|multipart/mixed; boundary=x|1", 415, "parts within a part"},
    {FLIP, NULL, "a|text/plain| \t\x93NUMPYx", 415, "NPY file after white space"},
    {FLIP, NULL, "a|-|  \x93NUMPYx", 415, "NPY file after white space"},
    {FLIP, NULL, "a|-|PK\x03\x04", 415, "part a is a zip archive"},
    {FLIP, NULL, "a|-|\x01\x02", 415,
     "neither NPY nor text; for bare elements say their shape before"},
    {FLIP, NULL, "a|-|\x01\x02\x03\x04\nshape|-|1x1", 415, "neither NPY nor text"},
    {FLIP, NULL, "a|-|[[1]]\nshape|-|1x1", 400,
     "shape_a is for bare elements; part a is application/json"},
    {FLIP, "shape=1x1", "a|text/plain|1", 400, "shape_a is for bare elements; part a is text/csv"},
    {ADD, "shape_b=1x1", "a|-|[[1]]", 400, "there is a shape_b, but no part b"},
    {FLIP, "shape=1x2&dtype=i8", "a|-|1", 400, "part a: the shapes need 2 bytes, the body has 1"},
    {FLIP, "shape=1x2&dtype=i8", "a|-|123", 400,
     "part a: the shapes need 2 bytes, the body goes on"},
    {FLIP, "shape=1x2&dtype=i8", "a|-|12\ndtype|-|i8", 200, "[[50,49]]"},
    {FLIP, "shape=1x1", "a|-|1234\ndtype|-|i32", 400,
     "dtype=i32 comes after part a, whose bare elements were read as f32"},
    {FLIP, NULL, "a|application/x-npy|1", 400, "part a: the body does not begin as an NPY"},
    {FLIP, NULL, "a|application/x-npy|", 400, "part a: the body ends in the header of operand a"},
    {FLIP, NULL, "a|-|\x93NUMPY", 400, "part a: the body ends in the header of operand a"},
    {ADD, NULL, "b|-|\x93NUMPY\na|-|1", 400, "part b: the body ends in the header of operand b"},
    {ADD, NULL, "a|-|1\nb|-|[[1,]]", 400, "part b: "},
    {ADD, NULL, "a|-|1\nb|-|[[1],[2,3]]", 422, "part b: row 1 of b has 2 elements"},
    {ADD, NULL, "a|-|1\nb|-|{\"a\":1}", 422,
     "part b: it holds an operand a; each is a part of its own"},
    {ADD, NULL, "a|-|{\"a\":1,\"b\":2}", 422,
     "part a: it holds an operand b; each is a part of its own"},
    {ADD, NULL, "a|-|1\nb|-|{\"b\":2}", 200, "[[3]]"},
    {FLIP, NULL, "a|-|{\"data\":[1],\"shape\":[1,1],\"repeat\":2}", 400,
     "part a: it holds repeat; a parameter is a part of its own, as with curl -F repeat=2"},
    {FLIP, NULL, "a|-|{}", 422, "part a: it holds no matrix"},
#undef ADD
#undef FLIP
};

static void test_parts(void)
{
    static struct message m;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ask ask = {
            .path = cases[i].path, .query = cases[i].query, .type = MULTIPART, .accept = JSON};
        make_parts(&m, cases[i].parts);
        for (size_t piece = 1; piece <= m.len; piece = piece == 1 ? 17 : piece * 64) {
            struct exchange x;
            bench_serve(&x, &ask, m.text, m.len, piece);
            check_answer(&x, cases[i].http, cases[i].expected);
            bench_end(&x);
            bench_check_all_returned();
        }
    }
}

/* Two-byte void elements are bf16 if the request says so, wherever it does. */
static void test_bf16(void)
{
    static const uint16_t elements[4] = {0x3F80, 0x4000, 0x4040, 0x4080};
    static struct message m;
    const struct ask ask = {.path = "/v1/transpose", .type = MULTIPART, .accept = JSON};
    struct exchange x;

    for (int behind = 0; behind < 2; behind++) {
        m.len = 0;
        if (!behind)
            message_add_text(&m, "dtype", "bf16");
        message_add_npy(&m, "a", "<V2", elements, sizeof elements);
        if (behind)
            message_add_text(&m, "dtype", "bf16");
        message_add_end(&m);
        bench_serve(&x, &ask, m.text, m.len, 10);
        check_answer(&x, 200, "[[1,3],[2,4]]");
        bench_end(&x);
    }
    m.len = 0;
    message_add_npy(&m, "a", "<V2", elements, sizeof elements);
    message_add_text(&m, "dtype", "f16");
    message_add_end(&m);
    bench_serve(&x, &ask, m.text, m.len, 10);
    check_answer(&x, 422, "operand a is v2 in its file, the request says f16");
    bench_end(&x);
    m.len = 0;
    message_add_npy(&m, "a", "<f4", elements, sizeof elements);
    message_add_npy(&m, "b", "<f4", elements, sizeof elements);
    message_add_end(&m);
    bench_serve(&x, &ask, m.text, m.len, 10);
    check_answer(&x, 400, "part a: the body ends after 8 of the 16 bytes of operand a");
    bench_end(&x);
}

/* A header that promises more than the whole body has gets no memory for it. */
static void test_promises(void)
{
    static struct message m;
    const struct ask ask = {
        .path = "/v1/flip", .query = "shape=1000000x1", .type = MULTIPART, .accept = JSON};
    struct exchange x;

    make_parts(&m, "a|-|1234");
    bench_begin(&x, &ask, m.len);
    bench_push(&x, m.text, m.len, m.len);
    CHECK_EQ(x.request->state, GM_REQUEST_DISCARD);
    bench_advance(&x);
    check_answer(&x, 400, "part a: its elements need 4000000 bytes, and all parts together have");
    bench_end(&x);
}

static void test_heads(void)
{
    static const struct {
        const char *type, *accept;
        int http;
        const char *expected;
    } heads[] = {
        {"multipart/form-data", NULL, 400, "leave that header to the client"},
        {"multipart/form-data; boundary=x", "image/png", 406, "image/png"},
        {"multipart/mixed; boundary=x", NULL, 415, "multipart/mixed"},
    };

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const struct ask ask = {
            .path = "/v1/flip", .type = heads[i].type, .accept = heads[i].accept};
        struct exchange x;
        bench_begin(&x, &ask, 1000);
        CHECK_EQ(x.request->state, GM_REQUEST_DISCARD);
        bench_advance(&x);
        check_answer(&x, heads[i].http, heads[i].expected);
        bench_end(&x);
    }
}

int main(void)
{
    bench_open(64 << 20, 1);
    test_parts();
    test_bf16();
    test_promises();
    test_heads();
    bench_close();
    return check_report();
}
