#include "tests/unit/request_bench.h"

#include "server/clock.h"
#include "tests/unit/check.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define EXCHANGES_MAX 64
#define TIMEOUT_S 60

struct gm_server bench_server;

/* So that gone(), which is only given a socket, finds its connection: socket 100 + i is [i]. */
static struct exchange *_Atomic exchange_at[EXCHANGES_MAX];

const struct gm_backend *bench_first = &faulty_backend, *bench_second;

const struct gm_backend *gm_backend_at(size_t index)
{
    return index == 0 ? bench_first : index == 1 ? bench_second : NULL;
}

uint64_t gm_host_memory(void)
{
    return UINT64_C(1) << 30;
}

static void suspend(void *connection)
{
    struct exchange *x = connection;

    pthread_mutex_lock(&x->mutex);
    CHECK_EQ(x->suspends, x->resumes);
    x->suspends++;
    pthread_mutex_unlock(&x->mutex);
}

static void resume(void *connection)
{
    struct exchange *x = connection;

    pthread_mutex_lock(&x->mutex);
    x->resumes++;
    CHECK_EQ(x->suspends, x->resumes);
    pthread_cond_signal(&x->resumed);
    pthread_mutex_unlock(&x->mutex);
    /* Time for the event thread to go on: the caller must be done with the request. */
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static bool gone(int socket, bool sending_too)
{
    const struct exchange *x = exchange_at[socket - 100];

    return atomic_load(&x->closed) || (!sending_too && atomic_load(&x->half_closed));
}

static const struct gm_transport transport = {.suspend = suspend, .resume = resume, .gone = gone};

static void on_lost(void *cls)
{
    (void)cls;
}

void bench_check_all_returned(void)
{
    CHECK_EQ(atomic_load(&bench_server.memory.reserved), 0);
    CHECK_EQ(gm_requests_count(&bench_server), 0);
}

static void open_server(uint64_t memory_limit)
{
    struct gm_server *s = &bench_server;
    struct gm_error error;

    memset(s, 0, sizeof *s);
    s->config.memory_limit = memory_limit;
    s->config.body_limit = 64 << 20;
    s->config.timeout_ms = TIMEOUT_S * 1000;
    CHECK_STATUS(gm_memory_quota_open(&s->memory, memory_limit, &error), GM_OK, &error);
    CHECK_STATUS(gm_recents_open(&s->recents, &error), GM_OK, &error);
    s->access.keys_file = s->access.cors = s->access.hosts = "";
    CHECK_STATUS(gm_access_open(&s->access, &s->config.quota, &error), GM_OK, &error);
    s->started_ns = gm_now_ns();
    CHECK_STATUS(gm_requests_open(s, &error), GM_OK, &error);
    CHECK_STATUS(gm_workers_open(2, &s->workers, &error), GM_OK, &error);
    s->regions = (struct gm_regions){
        .prefix = BENCH_PREFIX, .cuda_ipc = true, .quota = &s->memory, .devices = &s->devices};
    CHECK_STATUS(gm_regions_open(&s->regions, &error), GM_OK, &error);
    s->matrices = (struct gm_matrices){
        .limit = memory_limit / 2, .dir = "", .quota = &s->memory, .devices = &s->devices};
    CHECK_STATUS(gm_matrices_open(&s->matrices, &error), GM_OK, &error);
    const struct gm_devices_options options = {
        .backend = "auto",
        .backend_options = {.threads = 1, .memory_limit = memory_limit},
        .queue_limit = 10, /* of which one client may have eight */
        .lost = on_lost};
    CHECK_STATUS(gm_devices_open(&s->devices, &options, &error), GM_OK, &error);
}

void bench_open(uint64_t memory_limit, unsigned streams)
{
    memset(&faulty_plan, 0, sizeof faulty_plan);
    faulty_plan.streams = streams;
    open_server(memory_limit);
}

void bench_open_counting(uint64_t memory_limit)
{
    memset(&faulty_plan, 0, sizeof faulty_plan);
    faulty_plan.counts = true;
    open_server(memory_limit);
}

void bench_close(void)
{
    struct gm_server *s = &bench_server;

    gm_workers_close(s->workers);
    gm_regions_close(&s->regions);
    CHECK_EQ(atomic_load(&faulty_plan.imported), 0);
    gm_matrices_close(&s->matrices);
    gm_devices_close(&s->devices); /* whoever resumed a request is done after that */
    CHECK_EQ(atomic_load(&s->suspended), 0);
    CHECK_EQ(atomic_load(&s->memory.reserved), 0);
    CHECK_EQ(gm_requests_count(s), 0);
    gm_access_close(&s->access);
    gm_recents_close(&s->recents);
    gm_memory_quota_close(&s->memory);
    gm_requests_close(s);
}

/* name=value&name=value, as the library hands it over. */
static void split_query(struct exchange *x, struct gm_request_head *head, const char *query)
{
    snprintf(x->query, sizeof x->query, "%s", query);
    for (char *at = x->query, *next; at && *at; at = next) {
        next = strchr(at, '&');
        if (next)
            *next++ = '\0';
        char *value = strchr(at, '=');
        if (value)
            *value++ = '\0';
        unsigned i = head->queries++;
        head->query[i].name = at;
        head->query[i].name_len = strlen(at);
        head->query[i].value = value ? value : "";
        head->query[i].value_len = value ? strlen(value) : 0;
        if (head->queries > GM_QUERY_PARAMETERS_MAX)
            return;
    }
}

void bench_begin(struct exchange *x, const struct ask *ask, uint64_t body_len)
{
    struct gm_request_head head = {.method = ask->method ? ask->method : "POST",
                                   .path = ask->path,
                                   .content_type = ask->type,
                                   .content_encoding = ask->encoding,
                                   .accept = ask->accept,
                                   .traceparent = ask->traceparent,
                                   .request_id = ask->request_id,
                                   .infer_header = ask->infer_header,
                                   .if_match = ask->if_match,
                                   .if_none_match = ask->if_none_match,
                                   .content_length = GM_SIZE_UNKNOWN,
                                   .chunked = ask->chunked};

    memset(x, 0, sizeof *x);
    pthread_mutex_init(&x->mutex, NULL);
    pthread_cond_init(&x->resumed, NULL);
    while (exchange_at[x->index])
        x->index++;
    exchange_at[x->index] = x;
    if (!ask->chunked && body_len != GM_SIZE_UNKNOWN) {
        head.content_lengths = 1;
        head.content_length = ask->stated ? ask->stated : body_len;
    }
    if (ask->query)
        split_query(x, &head, ask->query);
    x->request = gm_request_new(&bench_server, &head, &transport, x, (int)(100 + x->index));
    if (!x->request)
        abort();
    gm_request_begin(x->request);
    CHECK(x->request->state == GM_REQUEST_BODY || x->request->state == GM_REQUEST_DISCARD);
}

void bench_push(struct exchange *x, const void *body, uint64_t len, uint64_t piece)
{
    for (uint64_t at = 0; at < len; at += piece) {
        uint64_t n = len - at < piece ? len - at : piece;
        /* A copy of its own: a sanitizer sees whoever reads past it or keeps it. */
        void *bytes = malloc(n);
        memcpy(bytes, (const char *)body + at, n);
        gm_request_push(x->request, bytes, n);
        free(bytes);
    }
}

bool bench_advance(struct exchange *x)
{
    struct gm_request *r = x->request;

    if (gm_request_advance(r) == GM_PENDING)
        return false;
    CHECK(r->state == GM_REQUEST_REPLY && r->reply.http >= 200 && !r->reply.failed);
    return true;
}

void bench_finish(struct exchange *x)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIMEOUT_S;
    pthread_mutex_lock(&x->mutex);
    while (x->resumes < x->suspends && pthread_cond_timedwait(&x->resumed, &x->mutex, &until) == 0)
        ;
    bool in_time = CHECK(x->resumes > 0 && x->resumes == x->suspends);
    pthread_mutex_unlock(&x->mutex);
    if (!in_time || !CHECK(bench_advance(x)))
        abort(); /* somebody still has the request: it cannot be freed */
}

void bench_end(struct exchange *x)
{
    CHECK_EQ(x->suspends, x->resumes);
    gm_request_unref(x->request);
    exchange_at[x->index] = NULL;
    pthread_mutex_destroy(&x->mutex);
    pthread_cond_destroy(&x->resumed);
}

void bench_serve(struct exchange *x, const struct ask *ask, const void *body, uint64_t len,
                 uint64_t piece)
{
    bench_begin(x, ask, len);
    bench_push(x, body, len, piece);
    if (!bench_advance(x))
        bench_finish(x);
}

bool bench_expect(const struct exchange *x, int http, const char *code)
{
    const struct gm_reply *reply = &x->request->reply;
    json_t *problem = reply->body ? json_loadb(reply->body, reply->body_len, 0, NULL) : NULL;
    const char *actual = json_string_value(json_object_get(problem, "code"));
    bool same = reply->http == http && (!code || (actual && strcmp(actual, code) == 0));

    check_that(same, __FILE__, __LINE__, "%d %s, not %d %s: %.*s", reply->http,
               actual ? actual : "", http, code ? code : "", (int)(actual ? reply->body_len : 0),
               actual ? (const char *)reply->body : "");
    if (code) {
        const char *seconds = bench_header(x, "Retry-After");
        /* A job that itself took all of its time is not worth trying again. */
        bool late = strcmp(code, "deadline_passed") == 0 && x->request->run.job.started_ns > 0;
        CHECK((http == 503) == (seconds != NULL) || (late && !seconds));
        CHECK(!seconds || (atoi(seconds) >= 1 && atoi(seconds) <= GM_RETRY_AFTER_S_MAX));
        CHECK_STR(reply->media_type, "application/problem+json");
        /* Nothing is kept for a client that may be slow to read why. */
        CHECK_EQ(x->request->reservation.reserved, 0);
        CHECK_EQ(x->request->reservation.used, 0);
    }
    json_decref(problem);
    return same;
}

const char *bench_header(const struct exchange *x, const char *name)
{
    const struct gm_reply *reply = &x->request->reply;
    const char *value = NULL;

    for (unsigned i = 0; i < reply->headers; i++) {
        if (strcasecmp(reply->header[i].name, name) == 0) {
            CHECK(value == NULL);
            value = reply->header[i].value;
        }
    }
    return value;
}

bool bench_wait_running(unsigned n)
{
    for (int i = 0; i < TIMEOUT_S * 500 && atomic_load(&faulty_plan.running) != n; i++)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    return CHECK(atomic_load(&faulty_plan.running) == n);
}
