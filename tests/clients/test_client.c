/*
 * libgemmd: what it sends, byte by byte, to a server that answers as it is told; what it makes of
 * answers that are wrong; and one client used by many threads at once against the real daemon.
 */
#include "clients/c/include/gemmd_http.h"
#include "tests/clients/scripted.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static bool quick; /* under valgrind */

#define OK(actual, err)                                                                            \
    check_that((actual) == GEMMD_OK, __FILE__, __LINE__, "%s: %s", #actual, (err).detail)

static struct gemmd_client *client_of(const char *url)
{
    struct gemmd_client *client = NULL;
    struct gemmd_error err;
    struct gemmd_options options = {.url = url, .key = "id.secret", .timeout_ms = 20000};

    OK(gemmd_client_new(&options, &client, &err), err);
    return client;
}

static const float numbers[] = {1, 2, 3, 4, 5, 6};
static const struct gemmd_matrix two_by_three = {GEMMD_F32, 2, {2, 3}, numbers};
static const struct gemmd_matrix three_by_two = {GEMMD_F32, 2, {3, 2}, numbers};

/* ---- libgemmd's realloc, which the linker leads here ---- */

static bool realloc_fails;

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
    return realloc_fails ? NULL : __real_realloc(old, size);
}

/* ---- what needs no server ---- */

static void test_options(void)
{
    static const char *const bad_urls[] = {
        "",      "http://",      "https:///x",  "ftp://a",    "http://a?x",      "http://a b",
        "unix:", "http+unix://", "unix:/a%00b", "http://a#b", "http://a\r\nX: y"};
    static const char *const good_urls[] = {
        "http://a",    "http://a/",     "https://a:1/b//",        "gpu-box:8080",
        "unix:/tmp/s", "unix:///tmp/s", "http+unix://%2Ftmp%2Fs", "http://[::1]:8080"};
    static const char *const bad_keys[] = {"", "a b", "a\nb", "a\r\nX: y", "\x80"};
    struct gemmd_client *client = NULL;
    struct gemmd_error err;

    for (size_t i = 0; i < sizeof bad_urls / sizeof *bad_urls; i++) {
        struct gemmd_options options = {.url = bad_urls[i]};
        CHECK_EQ(gemmd_client_new(&options, &client, &err), GEMMD_BAD_ARGUMENT);
        CHECK(!client && err.status == GEMMD_BAD_ARGUMENT && err.detail[0]);
    }
    for (size_t i = 0; i < sizeof bad_keys / sizeof *bad_keys; i++) {
        struct gemmd_options options = {.key = bad_keys[i]};
        CHECK_EQ(gemmd_client_new(&options, &client, NULL), GEMMD_BAD_ARGUMENT);
    }
    for (size_t i = 0; i < sizeof good_urls / sizeof *good_urls; i++) {
        struct gemmd_options options = {.url = good_urls[i]};
        if (OK(gemmd_client_new(&options, &client, &err), err))
            gemmd_client_free(client);
    }
    struct gemmd_options both = {.url = "unix:/tmp/s", .unix_socket = "/tmp/t"};
    if (OK(gemmd_client_new(&both, &client, &err), err))
        gemmd_client_free(client);
    CHECK_EQ(gemmd_client_new(NULL, &client, &err), GEMMD_OK);
    gemmd_client_free(client);
    gemmd_client_free(NULL);
}

static void test_dtypes(void)
{
    CHECK_STR(gemmd_dtype_name(GEMMD_F16), "f16");
    CHECK_STR(gemmd_dtype_name(GEMMD_V16), "v16");
    CHECK(!gemmd_dtype_name(GEMMD_DTYPE_NONE) && !gemmd_dtype_name((enum gemmd_dtype)99));
    CHECK_EQ(gemmd_dtype_size(GEMMD_C128), 16);
    CHECK_EQ(gemmd_dtype_size((enum gemmd_dtype)99), 0);
    for (int t = GEMMD_F16; t <= GEMMD_V16; t++)
        CHECK_EQ(gemmd_dtype_from_name(gemmd_dtype_name((enum gemmd_dtype)t)), t);
    CHECK_EQ(gemmd_dtype_from_name("f33"), GEMMD_DTYPE_NONE);
    CHECK_EQ(gemmd_dtype_from_name("complex64"), GEMMD_C64);
}

static void test_account(void)
{
    const char *account = "{\"device\": \"cpu:0\", \"us\": {\"kernel\": 2.5, \"total\": 4}}";
    double number = 0;
    char text[4] = "";

    CHECK(gemmd_account_number(account, "us.kernel", &number) && number == 2.5);
    CHECK(gemmd_account_number(account, "us.total", &number) && number == 4);
    CHECK(!gemmd_account_number(account, "us", &number) && number == 4);
    CHECK(!gemmd_account_number(account, "us.kernel.x", &number));
    CHECK(!gemmd_account_number(NULL, "us.kernel", &number));
    CHECK(!gemmd_account_number("{", "us.kernel", &number));
    CHECK(gemmd_account_text(account, "device", text, sizeof text));
    CHECK_STR(text, "cpu");
    CHECK(!gemmd_account_text(account, "us.total", text, sizeof text));
}

/* What cannot be sent is refused before anything is. */
static void test_bad_operands(void)
{
    struct gemmd_client *client = client_of("http://127.0.0.1:1");
    struct gemmd_matrix mixed[2] = {two_by_three, {GEMMD_F64, 2, {3, 2}, numbers}};
    struct gemmd_matrix huge = {GEMMD_F32, 2, {UINT64_C(1) << 40, UINT64_C(1) << 40}, numbers};
    struct gemmd_matrix large = {GEMMD_U8, 2, {UINT64_C(1) << 32, UINT64_C(1) << 31}, numbers};
    struct gemmd_matrix deep = {GEMMD_F32, 4, {1, 1, 1}, numbers};
    struct gemmd_matrix nothing = {GEMMD_F32, 2, {1, 1}, NULL};
    struct gemmd_matrix untyped = {0, 2, {1, 1}, numbers};
    struct gemmd_result result = {.data = (void *)1, .capacity = 7};
    struct gemmd_error err;

    CHECK_EQ(gemmd_operate(client, "add", mixed, 2, NULL, &result, &err), GEMMD_BAD_ARGUMENT);
    CHECK(strstr(err.detail, "f32") && strstr(err.detail, "f64"));
    CHECK_EQ(gemmd_transpose(client, &huge, NULL, &result, &err), GEMMD_BAD_ARGUMENT);
    CHECK_EQ(gemmd_transpose(client, &large, NULL, &result, &err), GEMMD_BAD_ARGUMENT);
    CHECK_EQ(gemmd_transpose(client, &deep, NULL, &result, &err), GEMMD_BAD_ARGUMENT);
    CHECK_EQ(gemmd_transpose(client, &nothing, NULL, &result, &err), GEMMD_BAD_ARGUMENT);
    CHECK_EQ(gemmd_transpose(client, &untyped, NULL, &result, NULL), GEMMD_BAD_ARGUMENT);
    CHECK_EQ(gemmd_operate(client, "a/../b", mixed, 1, NULL, &result, &err), GEMMD_BAD_ARGUMENT);
    CHECK_EQ(gemmd_operate(client, "add", mixed, 4, NULL, &result, &err), GEMMD_BAD_ARGUMENT);
    CHECK(result.data == (void *)1 && result.capacity == 7);
    result = (struct gemmd_result){0};
    CHECK_EQ(gemmd_transpose(client, &two_by_three, NULL, &result, &err), GEMMD_NO_CONNECTION);
    CHECK(err.detail[0] && err.http == 0);
    gemmd_client_free(client);
}

/* ---- what is sent ---- */

#define RAW_HEAD                                                                                   \
    "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nGemmd-Dtype: f32\r\n"            \
    "X-Request-Id: r-7\r\nGemmd-Stats: {\"us\": {\"total\": 3}}\r\n"
#define FOUR "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40" /* 1, 2, 3, 4 */

/* The request's whole text but for its head's order: bytes of both operands follow each other. */
static void test_request(const char *unix_path)
{
    static const struct scripted_reply replies[] = {
        REPLY(RAW_HEAD "Gemmd-Shape: 2x2\r\nContent-Length: 16\r\n\r\n" FOUR, KEEP),
        REPLY(RAW_HEAD "Gemmd-Shape: 2x2\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n" FOUR
                       "\r\n0\r\n\r\n",
              CLOSE),
        REPLY(RAW_HEAD "Gemmd-Stats: {}\r\nGemmd-Shape: 1x2x2\r\nContent-Length: 16\r\n\r\n" FOUR,
              KEEP),
        REPLY(RAW_HEAD "Gemmd-Shape: 2x2\r\nContent-Length: 16\r\n\r\n" FOUR, KEEP)};
    struct scripted *server = scripted_start(unix_path, replies, 4);
    char url[sizeof server->url + 2];
    snprintf(url, sizeof url, "%s%s", server->url, unix_path ? "" : "//");
    struct gemmd_client *client = client_of(url);
    struct gemmd_parameter parameters[] = {{"kernel", "na&ve"}, {"alpha", "2"}};
    struct gemmd_call call = {.parameters = parameters, .parameter_count = 2};
    float buffer[4] = {0};
    struct gemmd_result mine = {.data = buffer, .capacity = sizeof buffer}, theirs = {0};
    struct gemmd_error err;
    double total = 0;

    OK(gemmd_matmul(client, &two_by_three, &three_by_two, NULL, &call, &theirs, &err), err);
    CHECK(theirs.dtype == GEMMD_F32 && theirs.ndim == 2 && theirs.dim[0] == 2 &&
          theirs.dim[1] == 2);
    CHECK(theirs.data && (uintptr_t)theirs.data % 64 == 0 && memcmp(theirs.data, FOUR, 16) == 0);
    CHECK(gemmd_account_number(theirs.account, "us.total", &total) && total == 3);
    gemmd_result_free(&theirs);
    CHECK(!theirs.data && !theirs.account);
    OK(gemmd_matmul(client, &two_by_three, &three_by_two, NULL, NULL, &mine, &err), err);
    CHECK(mine.data == buffer && buffer[3] == 4);
    gemmd_result_free(&mine);
    /* The connection was closed meanwhile: the request goes out anew, on another. */
    OK(gemmd_transpose(client, &two_by_three, NULL, &theirs, &err), err);
    CHECK(theirs.ndim == 3 && theirs.dim[0] == 1);
    CHECK_STR(theirs.account, "{}"); /* the last one */
    gemmd_result_free(&theirs);
    const struct gemmd_matrix c = {GEMMD_F32, 2, {2, 2}, numbers};
    OK(gemmd_matmul(client, &two_by_three, &three_by_two, &c, NULL, &theirs, &err), err);
    gemmd_result_free(&theirs);
    gemmd_client_free(client);
    scripted_stop(server);

    const char *request = server->request[0];
    const char *body = strstr(request, "\r\n\r\n");
    CHECK_EQ(server->requests, 4);
    CHECK_EQ(server->connections, 2);
    static const char line[] = "POST /v1/matmul?shape_a=2x3&shape_b=3x2&dtype=f32&kernel=na%26ve"
                               "&alpha=2 HTTP/1.1\r\n";
    CHECK(strncmp(request, line, sizeof line - 1) == 0);
    CHECK(strstr(request, "\r\nAuthorization: Bearer id.secret\r\n"));
    CHECK(strstr(request, "\r\nAccept: application/octet-stream\r\n"));
    CHECK(strstr(request, "\r\nContent-Type: application/octet-stream\r\n"));
    CHECK(strstr(request, "\r\nContent-Length: 48\r\n"));
    CHECK(body && memcmp(body + 4, numbers, 24) == 0 && memcmp(body + 28, numbers, 24) == 0);
    CHECK(
        strstr(server->request[3], "?shape_a=2x3&shape_b=3x2&shape_c=2x2&dtype=f32 HTTP/1.1\r\n"));
    CHECK(strstr(server->request[3], "\r\nContent-Length: 64\r\n"));
    scripted_free(server);
}

static int64_t count_down(void *cls, void *buffer, size_t len)
{
    int *left = cls;

    if (*left == 0)
        return 0;
    if (*left < 0)
        return -1;
    memset(buffer, 'x', len < 3 ? len : 3);
    (*left)--;
    return len < 3 ? (int64_t)len : 3;
}

/* Parts from memory, a file and a callback; a body of unknown length. */
static void test_sources(void)
{
    static const struct scripted_reply replies[] = {
        REPLY("HTTP/1.1 200 OK\r\nContent-Type: text/csv; x=y\r\nContent-Length: 3\r\n\r\n1,2",
              KEEP),
        REPLY("HTTP/1.1 204 No Content\r\n\r\n", KEEP)};
    struct scripted *server = scripted_start(NULL, replies, 2);
    struct gemmd_client *client = client_of(server->url);
    int left = 2, fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int half = memfd_create("half", MFD_CLOEXEC); /* of which the first half was read */
    CHECK(write(half, "abcd", 4) == 4 && lseek(half, 2, SEEK_SET) == 2);
    struct gemmd_source parts[] = {
        {.name = "a", .type = "text/csv", .data = "1,2\n", .size = 4},
        {.name = "b", .origin = GEMMD_FROM_FD, .fd = fd, .size = 4},
        {.name = "c", .origin = GEMMD_FROM_CALLBACK, .read = count_down, .cls = &left, .size = 6},
        {.name = "d", .origin = GEMMD_FROM_FD, .fd = half, .size = GEMMD_SIZE_UNKNOWN}};
    struct gemmd_request request = {
        .path = "/v1/add", .accept = "text/csv", .sources = parts, .source_count = 4};
    struct gemmd_reply reply;
    struct gemmd_error err;

    parts[0].name = NULL;
    CHECK_EQ(gemmd_exchange(client, &request, &reply, &err), GEMMD_BAD_ARGUMENT);
    parts[0].name = "a";
    OK(gemmd_exchange(client, &request, &reply, &err), err);
    CHECK_STR(reply.body, "1,2");
    CHECK_STR(reply.type, "text/csv");
    CHECK(reply.http == 200 && reply.body_bytes == 3 && !reply.account);
    gemmd_reply_free(&reply);
    left = 2;
    struct gemmd_source whole = {.type = "text/csv",
                                 .origin = GEMMD_FROM_CALLBACK,
                                 .read = count_down,
                                 .cls = &left,
                                 .size = GEMMD_SIZE_UNKNOWN};
    request.sources = &whole;
    request.source_count = 1;
    OK(gemmd_exchange(client, &request, &reply, &err), err);
    CHECK_STR(reply.body, "");
    gemmd_reply_free(&reply);
    close(fd);
    close(half);
    gemmd_client_free(client);
    scripted_stop(server);
    const char *first = server->request[0], *second = server->request[1];
    CHECK(strstr(first, "multipart/form-data; boundary="));
    CHECK(strstr(first, "name=\"a\"\r\nContent-Type: text/csv\r\n\r\n1,2\n\r\n--"));
    CHECK(memmem(first, server->request_len[0],
                 "name=\"b\"\r\n\r\n\x7f"
                 "ELF\r\n--",
                 20));
    CHECK(memmem(first, server->request_len[0], "name=\"c\"\r\n\r\nxxxxxx\r\n--", 22));
    CHECK(memmem(first, server->request_len[0], "name=\"d\"\r\n\r\ncd\r\n--", 18));
    CHECK(strstr(second, "\r\nTransfer-Encoding: chunked\r\n"));
    CHECK(strstr(second, "\r\n\r\n3\r\nxxx\r\n3\r\nxxx\r\n0\r\n\r\n"));
    scripted_free(server);
}

/* ---- what comes back wrong ---- */

struct wrong {
    struct scripted_reply reply;
    enum gemmd_status status;
    int http;
    const char *code, *detail;
};

static void test_wrong_replies(void)
{
    static const struct wrong table[] = {
        {REPLY("HTTP/1.1 422 U\r\nContent-Type: application/problem+json\r\nRetry-After: 7\r\n"
               "Content-Length: 65\r\n\r\n{\"code\": \"bad_shape\", \"detail\": \"no\", "
               "\"request_id\": "
               "\"r-8\", \"x\":1}",
               CLOSE),
         GEMMD_REFUSED, 422, "bad_shape", "no"},
        {REPLY("HTTP/1.1 502 B\r\nX-Request-Id: r-8\r\nRetry-After: 7\r\nContent-Length: "
               "4\r\n\r\n<ht>",
               CLOSE),
         GEMMD_REFUSED, 502, "", "proxy"},
        {REPLY("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<ht>", CLOSE), GEMMD_BAD_REPLY, 0, "",
         "no gemmd"},
        {REPLY(RAW_HEAD "Gemmd-Shape: 2x2\r\nContent-Length: 15\r\n\r\n", CLOSE), GEMMD_BAD_REPLY,
         0, "", "no gemmd"},
        {REPLY(RAW_HEAD "Gemmd-Shape: 2x\r\nContent-Length: 16\r\n\r\n" FOUR, CLOSE),
         GEMMD_BAD_REPLY, 0, "", "no gemmd"},
        {REPLY(RAW_HEAD "Gemmd-Shape: +2x2\r\nContent-Length: 16\r\n\r\n" FOUR, CLOSE),
         GEMMD_BAD_REPLY, 0, "", "no gemmd"},
        {REPLY(RAW_HEAD "Gemmd-Shape: 4294967296x4294967296x4\r\n\r\n" FOUR, CLOSE),
         GEMMD_BAD_REPLY, 0, "", "no gemmd"},
        {REPLY(RAW_HEAD
               "Gemmd-Shape: 2x2\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n0\r\n"
               "\r\n",
               CLOSE),
         GEMMD_BAD_REPLY, 0, "", "ends before"},
        {REPLY(RAW_HEAD "Gemmd-Shape: 1x1\r\nConnection: close\r\n\r\n12345678", CLOSE),
         GEMMD_BAD_REPLY, 0, "", "more elements"},
        {REPLY(RAW_HEAD "Gemmd-Shape: 2x2\r\nContent-Length: 16\r\n\r\n1234", CLOSE), GEMMD_BROKEN,
         0, "", ""},
        {REPLY("", CLOSE), GEMMD_BROKEN, 0, "", ""},
        {REPLY("SSH-2.0-hello\r\n", CLOSE), GEMMD_BAD_REPLY, 0, "", ""},
        {REPLY(RAW_HEAD "Gemmd-Shape: 5x2\r\nContent-Length: 40\r\n\r\n", CLOSE), GEMMD_TOO_SMALL,
         0, "", "40 bytes"},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct scripted *server = scripted_start(NULL, &table[i].reply, 1);
        struct gemmd_client *client = client_of(server->url);
        float buffer[4];
        struct gemmd_result result = {.data = buffer, .capacity = sizeof buffer};
        struct gemmd_error err = {0};
        CHECK_EQ(gemmd_transpose(client, &two_by_three, NULL, &result, &err), table[i].status);
        CHECK_EQ(err.status, table[i].status);
        CHECK_EQ(err.http, table[i].http);
        CHECK_STR(err.code, table[i].code);
        check_that(strstr(err.detail, table[i].detail), __FILE__, __LINE__, "case %zu: %s", i,
                   err.detail);
        if (err.http) {
            CHECK_EQ(err.retry_after_s, 7);
            CHECK_STR(err.request_id, "r-8");
        }
        CHECK(result.data == buffer && !result.account && !result.owned);
        gemmd_client_free(client);
        scripted_stop(server);
        scripted_free(server);
    }
}

/* What a proxy says when it is asked to connect is not the reply: TLS comes next, and here the end
 * of it. A proxy that refuses is heard. */
/* Nothing is left of a reply for which memory ran out: valgrind and the sanitizers look. */
static void test_no_memory(void)
{
    static const struct scripted_reply empty =
        REPLY("HTTP/1.1 200 OK\r\nGemmd-Stats: {\"us\":{\"total\":4}}\r\nContent-Length: 0\r\n\r\n",
              CLOSE);
    struct scripted *server = scripted_start(NULL, &empty, 1);
    struct gemmd_client *client = client_of(server->url);
    struct gemmd_request request = {.method = "GET", .path = "/v1/stats"};
    struct gemmd_reply reply = {0};
    struct gemmd_error err = {0};

    realloc_fails = true;
    CHECK_EQ(gemmd_exchange(client, &request, &reply, &err), GEMMD_NO_MEMORY);
    realloc_fails = false;
    CHECK(!reply.account && !reply.body);
    gemmd_client_free(client);
    scripted_stop(server);
    scripted_free(server);
}

static void test_proxy(void)
{
    static const struct {
        struct scripted_reply reply;
        enum gemmd_status status;
        int http;
    } table[] = {
        {REPLY("HTTP/1.1 200 Connection established\r\n\r\n", CLOSE), GEMMD_BAD_TLS, 0},
        {REPLY("HTTP/1.1 403 F\r\nContent-Length: 2\r\n\r\nno", CLOSE), GEMMD_REFUSED, 403},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct scripted *server = scripted_start(NULL, &table[i].reply, 1);
        struct gemmd_options options = {
            .url = "https://gemmd.invalid", .proxy = server->url, .timeout_ms = 20000};
        struct gemmd_client *client = NULL;
        struct gemmd_result result = {0};
        struct gemmd_error err = {0};
        OK(gemmd_client_new(&options, &client, &err), err);
        CHECK_EQ(gemmd_transpose(client, &two_by_three, NULL, &result, &err), table[i].status);
        CHECK_EQ(err.http, table[i].http);
        CHECK((strstr(err.detail, "the proxy did not connect") != NULL) == (table[i].http != 0));
        gemmd_client_free(client);
        scripted_stop(server);
        CHECK(strncmp(server->request[0], "CONNECT gemmd.invalid:443 ", 26) == 0);
        scripted_free(server);
    }
}

static bool stop_at_once(void *cls, const struct gemmd_progress *progress)
{
    (void)progress;
    ++*(int *)cls;
    return false;
}

static bool take_nothing(void *cls, const void *bytes, size_t len)
{
    (void)cls;
    (void)bytes;
    (void)len;
    return false;
}

/* The caller's own callbacks end a call, as does the time that it has. */
static void test_ends(void)
{
    static const struct scripted_reply stall[] = {REPLY("", STALL)};
    static const struct scripted_reply good[] = {
        REPLY("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n1,2", CLOSE)};
    int calls = 0, left = -1, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct gemmd_source bad[] = {
        {.origin = GEMMD_FROM_CALLBACK, .read = count_down, .cls = &left, .size = 5},
        {.origin = GEMMD_FROM_FD, .fd = fd, .size = 5}, /* /dev/null has fewer */
        {.origin = GEMMD_FROM_FD, .fd = 999, .size = 5}};
    struct gemmd_request request = {.path = "/v1/add", .source_count = 1};
    struct gemmd_reply reply;
    struct gemmd_result result = {0};
    struct gemmd_error err;

    struct scripted *server = scripted_start(NULL, stall, 1);
    struct gemmd_client *client = client_of(server->url);
    for (size_t i = 0; i < 3; i++) {
        request.sources = &bad[i];
        CHECK_EQ(gemmd_exchange(client, &request, &reply, &err), GEMMD_BAD_FILE);
    }
    struct gemmd_call call = {.progress = stop_at_once, .progress_cls = &calls};
    CHECK_EQ(gemmd_flip(client, &two_by_three, &call, &result, &err), GEMMD_STOPPED);
    CHECK(calls > 0 && !result.data);
    call = (struct gemmd_call){.timeout_ms = 100};
    CHECK_EQ(gemmd_flip(client, &two_by_three, &call, &result, &err), GEMMD_TIMED_OUT);
    gemmd_client_free(client);
    scripted_stop(server);
    scripted_free(server);

    server = scripted_start(NULL, good, 1);
    client = client_of(server->url);
    request = (struct gemmd_request){.path = "/v1/stats", .write = take_nothing};
    CHECK_EQ(gemmd_exchange(client, &request, &reply, &err), GEMMD_BAD_FILE);
    gemmd_client_free(client);
    scripted_stop(server);
    CHECK(strncmp(server->request[0], "GET /v1/stats HTTP/1.1\r\n", 24) == 0);
    scripted_free(server);
    close(fd);
}

/* ---- the real daemon ---- */

/* Its address, once it is ready. */
static pid_t start_daemon(char url[128])
{
    const char *binary = getenv("GEMMD_BIN");
    int out[2];
    char line[128] = "";

    if (!CHECK(binary) || !CHECK(pipe(out) == 0))
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        unsetenv("GEMMD_BIN"); /* which would be an option's */
        execl(binary, binary, "--listen", "127.0.0.1:0", "--log-level", "error", (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *stream = fdopen(out[0], "r");
    CHECK(stream && fgets(line, sizeof line, stream));
    if (stream)
        fclose(stream);
    CHECK(sscanf(line, "listening on %127s", url) == 1);
    return pid;
}

struct user {
    struct gemmd_client *client;
    pthread_t thread;
    float factor;
};

/* Products whose results only this thread expects; errors of its own in between. */
static void *use(void *cls)
{
    struct user *user = cls;
    float a[4] = {user->factor, 0, 0, user->factor}, buffer[4];
    struct gemmd_matrix factor = {GEMMD_F32, 2, {2, 2}, a};
    struct gemmd_matrix unfit = {GEMMD_F32, 2, {1, 4}, a};
    struct gemmd_error err;

    for (int i = 0; i < (quick ? 3 : 25); i++) {
        struct gemmd_result result = {0};
        if (i % 2)
            result = (struct gemmd_result){.data = buffer, .capacity = sizeof buffer};
        float b[4] = {(float)i, 1, 2, 3};
        struct gemmd_matrix other = {GEMMD_F32, 2, {2, 2}, b};
        if (OK(gemmd_matmul(user->client, &factor, &other, NULL, NULL, &result, &err), err)) {
            const float *got = result.data;
            CHECK(got[0] == user->factor * (float)i && got[3] == user->factor * 3);
            gemmd_result_free(&result);
        }
        CHECK_EQ(gemmd_matmul(user->client, &factor, &unfit, NULL, NULL, &result, &err),
                 GEMMD_REFUSED);
        CHECK_STR(err.code, "bad_shape");
    }
    return NULL;
}

static void test_threads(void)
{
    struct user users[8];
    char url[128] = "";
    pid_t pid = start_daemon(url);

    if (pid < 0)
        return;
    struct gemmd_client *client = client_of(url);
    for (size_t i = 0; i < 8; i++) {
        users[i] = (struct user){.client = client, .factor = (float)(i + 1)};
        CHECK(pthread_create(&users[i].thread, NULL, use, &users[i]) == 0);
    }
    for (size_t i = 0; i < 8; i++)
        pthread_join(users[i].thread, NULL);

    /* A large body and a large result, of a type that is not computed with. */
    size_t side = quick ? 100 : 2000;
    uint16_t *large = malloc(side * side * 2);
    struct gemmd_result result = {0};
    struct gemmd_error err;
    CHECK(large);
    for (size_t i = 0; large && i < side * side; i++)
        large[i] = (uint16_t)(i * 7);
    struct gemmd_matrix matrix = {GEMMD_U16, 2, {side, side}, large};
    if (large && OK(gemmd_transpose(client, &matrix, NULL, &result, &err), err)) {
        const uint16_t *got = result.data;
        bool same = result.dtype == GEMMD_U16 && result.dim[0] == side && result.dim[1] == side;
        for (size_t i = 0; same && i < side * side; i++)
            same = got[i] == large[i % side * side + i / side];
        CHECK(same);
    }
    gemmd_result_free(&result);
    struct gemmd_matrix empty = {GEMMD_F32, 2, {0, 5}, NULL};
    OK(gemmd_transpose(client, &empty, NULL, &result, &err), err);
    CHECK(result.data && result.dim[0] == 5 && result.dim[1] == 0);
    gemmd_result_free(&result);
    free(large);
    gemmd_client_free(client);
    int status;
    kill(pid, SIGTERM);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
    char path[64];

    (void)argv;
    quick = argc > 1;
    snprintf(path, sizeof path, "/tmp/gemmd-test-%d.sock", (int)getpid());
    test_options();
    test_dtypes();
    test_account();
    test_bad_operands();
    test_request(NULL);
    test_request(path);
    test_sources();
    test_wrong_replies();
    test_no_memory();
    test_proxy();
    test_ends();
    test_threads();
    return check_report();
}
