/*
 * bench.c - sends one request again and again, and says how many a second were answered and how
 * long they took.
 *
 *   closed loop   so many requests at a time: each next one is sent when one is answered
 *   open loop     so many a second (--rate), whatever the answers do
 *
 * In an open loop a request's time counts from when it was due, also where no connection was free
 * then, or where it was never sent: a daemon that stalls does not thereby avoid being measured
 * (Tene's "coordinated omission"). The time from when it was sent is shown beside it.
 */
#include "clients/c/gemmctl/commands.h"
#include "clients/c/gemmctl/histogram.h"
#include "clients/c/gemmctl/load.h"
#include "clients/c/gemmctl/say.h"
#include "clients/c/gemmctl/table.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_DURATION_S 10
#define DEFAULT_CONCURRENCY 8
#define OPEN_CONCURRENCY 256 /* in an open loop: enough that connections are no limit */
#define CONCURRENCY_MAX 1024 /* threads, one per request in flight */
#define KINDS_MAX 8          /* kinds of failures that are told apart */
#define RATE_MAX 1e6
#define SLEEP_NS 100000000 /* the longest that an interrupt waits for a thread */

struct failure {
    struct gemmd_error err; /* the first of its kind */
    uint64_t count;
};

struct bench {
    struct gemmd_client *client;
    const struct gemmd_request *request;
    uint64_t start_ns, end_ns; /* no request is sent after the end; 0: there is none */
    double period_ns;          /* between requests that are due; 0: closed loop */
    uint64_t requests;         /* to send; 0: until the end */
    atomic_uint_fast64_t next; /* number of the next request */
};

/* One thread, with what it has seen. */
struct worker {
    struct bench *bench;
    pthread_t thread;
    uint64_t good, received;
    struct failure failure[KINDS_MAX];
    struct gm_histogram response, service; /* from when it was due; from when it was sent */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Until then, or an interrupt, which another thread may get: false. */
static bool sleep_until(uint64_t ns)
{
    for (uint64_t now = now_ns(); now < ns && !gm_say_interrupted(); now = now_ns()) {
        uint64_t next = ns - now > SLEEP_NS ? now + SLEEP_NS : ns;
        struct timespec when = {.tv_sec = (time_t)(next / 1000000000),
                                .tv_nsec = (long)(next % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
    }
    return !gm_say_interrupted();
}

static bool count_bytes(void *cls, const void *bytes, size_t len)
{
    uint64_t *received = cls;

    (void)bytes;
    *received += len;
    return true;
}

static void add_failure(struct failure *kinds, const struct gemmd_error *err, uint64_t count)
{
    for (size_t i = 0; i < KINDS_MAX; i++) {
        bool same = kinds[i].err.status == err->status && kinds[i].err.http == err->http &&
                    strcmp(kinds[i].err.code, err->code) == 0;
        if (kinds[i].count == 0)
            kinds[i].err = *err;
        if (kinds[i].count == 0 || same || i + 1 == KINDS_MAX) {
            kinds[i].count += count;
            return;
        }
    }
}

static void *work(void *cls)
{
    struct worker *w = cls;
    struct bench *b = w->bench;
    struct gemmd_request request = *b->request;
    struct gemmd_error err;

    request.write = count_bytes;
    request.write_cls = &w->received;
    while (!gm_say_interrupted()) {
        uint64_t sent = now_ns(), number = atomic_fetch_add(&b->next, 1);
        uint64_t due = b->start_ns + (uint64_t)((double)number * b->period_ns);
        if (b->period_ns == 0)
            due = sent;
        if ((b->requests && number >= b->requests) ||
            (b->end_ns && (due >= b->end_ns || sent >= b->end_ns))) {
            atomic_fetch_sub(&b->next, 1); /* it stays unsent */
            break;
        }
        if (due > sent && !sleep_until(due))
            break;
        sent = due > sent ? now_ns() : sent;
        struct gemmd_reply reply;
        enum gemmd_status status = gemmd_exchange(b->client, &request, &reply, &err);
        uint64_t done = now_ns();
        if (status == GEMMD_STOPPED)
            break;
        gm_histogram_add(&w->response, done - due);
        gm_histogram_add(&w->service, done - sent);
        if (status == GEMMD_OK) {
            w->good++;
            gemmd_reply_free(&reply);
        } else {
            add_failure(w->failure, &err, 1);
        }
    }
    return NULL;
}

/* ---- what is said ---- */

struct outcome {
    const char *op, *what;
    double seconds, rate; /* rate: asked for; 0: closed loop */
    uint64_t sent, unsent, good, bytes_sent, received, concurrency;
    struct failure failure[KINDS_MAX];
    struct gm_histogram response, service;
};

static const double percents[] = {50, 90, 95, 99, 99.9};
#define PERCENT_COUNT (sizeof percents / sizeof *percents)

static uint64_t mean(const struct gm_histogram *h)
{
    return h->count ? h->sum / h->count : 0;
}

static json_t *latency_json(const struct gm_histogram *h)
{
    json_t *o = json_pack("{s:f, s:f}", "min", (double)h->min / 1e3, "mean", (double)mean(h) / 1e3);
    char name[16];

    for (size_t i = 0; i < PERCENT_COUNT; i++) {
        snprintf(name, sizeof name, "p%g", percents[i]);
        json_object_set_new(o, name,
                            json_real((double)gm_histogram_percentile(h, percents[i]) / 1e3));
    }
    json_object_set_new(o, "max", json_real((double)h->max / 1e3));
    return o;
}

static void print_json(const struct outcome *o)
{
    json_t *document =
        json_pack("{s:s, s:s, s:s, s:f, s:I, s:I, s:I, s:f, s:f, s:f, s:o}", "op", o->op, "loop",
                  o->rate > 0 ? "open" : "closed", "operands", o->what, "seconds", o->seconds,
                  "sent", (json_int_t)o->sent, "good", (json_int_t)o->good, "concurrency",
                  (json_int_t)o->concurrency, "good_per_s", (double)o->good / o->seconds,
                  "sent_bytes_per_s", (double)o->bytes_sent / o->seconds, "received_bytes_per_s",
                  (double)o->received / o->seconds, "latency_us", latency_json(&o->response));
    json_t *failures = json_object();

    for (size_t i = 0; i < KINDS_MAX && o->failure[i].count; i++) {
        const struct gemmd_error *err = &o->failure[i].err;
        const char *name = err->code[0] ? err->code : err->http ? "http" : "connection";
        /* Several kinds may have one name: those of a connection have no code. */
        json_int_t before = json_integer_value(json_object_get(failures, name));
        json_object_set_new(failures, name, json_integer(before + (json_int_t)o->failure[i].count));
    }
    json_object_set_new(document, "failures", failures);
    if (o->rate > 0) {
        json_object_set_new(document, "rate", json_real(o->rate));
        json_object_set_new(document, "unsent", json_integer((json_int_t)o->unsent));
        json_object_set_new(document, "service_us", latency_json(&o->service));
    }
    json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(document);
}

static void add_latency(struct gm_table *table, const char *name, const struct gm_histogram *h)
{
    char text[PERCENT_COUNT + 3][GM_QUANTITY_MAX];
    const char *cells[PERCENT_COUNT + 4] = {name};

    gm_say_seconds((double)h->min / 1e9, text[0]);
    gm_say_seconds((double)mean(h) / 1e9, text[1]);
    for (size_t i = 0; i < PERCENT_COUNT; i++)
        gm_say_seconds((double)gm_histogram_percentile(h, percents[i]) / 1e9, text[2 + i]);
    gm_say_seconds((double)h->max / 1e9, text[2 + PERCENT_COUNT]);
    for (size_t i = 0; i < PERCENT_COUNT + 3; i++)
        cells[1 + i] = text[i];
    gm_table_add(table, cells);
}

static void print_text(const struct outcome *o)
{
    struct gm_table table = {.columns = PERCENT_COUNT + 4,
                             .right = {false, true, true, true, true, true, true, true, true}};
    char up[GM_QUANTITY_MAX], down[GM_QUANTITY_MAX];

    if (o->rate > 0)
        printf("%s of %s: open loop, %g requests a second for %.3g s\n", o->op, o->what, o->rate,
               o->seconds);
    else
        printf("%s of %s: closed loop, %" PRIu64 " at a time for %.3g s\n", o->op, o->what,
               o->concurrency, o->seconds);
    printf("%s%" PRIu64 " answered well%s, %.4g a second; %s/s sent, %s/s received\n",
           gm_say_style(stdout, GM_BOLD), o->good, gm_say_style(stdout, GM_PLAIN),
           (double)o->good / o->seconds, gm_say_bytes((double)o->bytes_sent / o->seconds, up),
           gm_say_bytes((double)o->received / o->seconds, down));
    for (size_t i = 0; i < KINDS_MAX && o->failure[i].count; i++) {
        const struct gemmd_error *err = &o->failure[i].err;
        printf("%s%" PRIu64 " failed%s: ", gm_say_style(stdout, GM_RED), o->failure[i].count,
               gm_say_style(stdout, GM_PLAIN));
        if (err->http)
            printf("%d %s: ", err->http, err->code);
        gm_say_text(stdout, err->detail, strlen(err->detail));
        putchar('\n');
    }
    if (o->unsent)
        printf("%s%" PRIu64 " were due but never sent%s: %" PRIu64
               " were already under way; they count as taking until the end at least\n",
               gm_say_style(stdout, GM_YELLOW), o->unsent, gm_say_style(stdout, GM_PLAIN),
               o->concurrency);
    putchar('\n');
    gm_table_add(&table, (const char *const[]){"latency", "min", "mean", "p50", "p90", "p95", "p99",
                                               "p99.9", "max"});
    add_latency(&table, o->rate > 0 ? "from when it was due" : "of a request", &o->response);
    if (o->rate > 0)
        add_latency(&table, "from when it was sent", &o->service);
    gm_table_print(&table, stdout);
}

/* ---- a run ---- */

/* Counts what was due and not sent, with the time until now, the least that it would have taken. */
static void add_unsent(const struct bench *b, struct outcome *o, uint64_t now)
{
    uint64_t number = b->next;

    if (b->period_ns == 0)
        return;
    for (;; number++) {
        uint64_t due = b->start_ns + (uint64_t)((double)number * b->period_ns);
        if (due >= now || (b->end_ns && due >= b->end_ns) || (b->requests && number >= b->requests))
            break;
        gm_histogram_add(&o->response, now - due);
        o->unsent++;
    }
}

/* false: there are no threads. */
static bool run_workers(struct bench *b, struct worker *workers, uint64_t count, struct outcome *o)
{
    uint64_t started = 0;

    b->start_ns = now_ns();
    if (b->end_ns)
        b->end_ns += b->start_ns;
    for (; started < count; started++) {
        workers[started].bench = b;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    for (uint64_t i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    uint64_t now = now_ns();
    o->seconds = (double)(now - b->start_ns) / 1e9;
    o->concurrency = started;
    for (uint64_t i = 0; i < started; i++) {
        gm_histogram_merge(&o->response, &workers[i].response);
        gm_histogram_merge(&o->service, &workers[i].service);
        o->good += workers[i].good;
        o->received += workers[i].received;
        for (size_t k = 0; k < KINDS_MAX && workers[i].failure[k].count; k++)
            add_failure(o->failure, &workers[i].failure[k].err, workers[i].failure[k].count);
    }
    o->sent = o->service.count;
    add_unsent(b, o, now);
    return started > 0;
}

/* One request before, unmeasured: what is wrong with all of them is said at once. */
static enum gm_exit try_once(struct gemmd_client *client, const struct gm_options *options,
                             const struct gemmd_request *request)
{
    struct gemmd_request one = *request;
    struct gemmd_reply reply;
    struct gemmd_error err;
    uint64_t received = 0;

    one.write = count_bytes;
    one.write_cls = &received;
    enum gemmd_status status = gemmd_exchange(client, &one, &reply, &err);
    if (status == GEMMD_OK)
        gemmd_reply_free(&reply);
    else if (gm_say_exit(&err) != GM_EXIT_BUSY) /* a busy daemon can be measured */
        return gm_say_error(options, &err);
    return GM_EXIT_OK;
}

static enum gm_exit measure(struct gemmd_client *client, const struct gm_options *options,
                            const struct gemmd_request *request, struct outcome *o)
{
    bool open = options->rate > 0;
    uint64_t concurrency = options->concurrency ? options->concurrency
                           : open               ? OPEN_CONCURRENCY
                                                : DEFAULT_CONCURRENCY;
    double duration_s = options->duration_s > 0 ? options->duration_s
                        : options->requests     ? 0
                                                : DEFAULT_DURATION_S;
    struct bench bench = {.client = client,
                          .request = request,
                          .end_ns = (uint64_t)(duration_s * 1e9),
                          .period_ns = open ? 1e9 / options->rate : 0,
                          .requests = options->requests};

    if (concurrency > CONCURRENCY_MAX || options->rate > RATE_MAX)
        return gm_say_wrong(GM_EXIT_USAGE,
                            "bench has at most %d requests at a time and %g a second",
                            CONCURRENCY_MAX, RATE_MAX);
    struct worker *workers = calloc(concurrency, sizeof *workers);
    if (!workers)
        return gm_say_wrong(GM_EXIT_FILE, "out of memory");
    bool ran = run_workers(&bench, workers, concurrency, o);
    free(workers);
    return ran ? GM_EXIT_OK : gm_say_wrong(GM_EXIT_FILE, "no thread can be started");
}

enum gm_exit gm_command_bench(struct gemmd_client *client, struct gm_options *options,
                              const char *name, char **args, int count)
{
    struct gm_load load;
    struct outcome *o;
    size_t least, most;
    char path[64];

    if (count < 1 || !gm_operation_takes(args[0], &least, &most))
        return gm_say_wrong(GM_EXIT_USAGE, "%s wants an operation: transpose, matmul, add or flip",
                            name);
    if ((size_t)count - 1 > most)
        return gm_say_wrong(GM_EXIT_USAGE, "%s has %zu operands at most", args[0], most);
    enum gm_exit status = gm_load_make(&load, options, args[0], args + 1, (size_t)count - 1);
    if (status != GM_EXIT_OK)
        return status;
    snprintf(path, sizeof path, "/v1/%s", args[0]);
    struct gemmd_call call = {.parameters = options->parameters,
                              .parameter_count = options->parameter_count,
                              .progress = gm_say_go_on};
    /* Nothing is left to send where the daemon has all operands. */
    struct gemmd_request request = {.method = "POST",
                                    .path = path,
                                    .accept = load.count > 0 ? load.source[0].type
                                                             : gm_format_by_name("npy")->type,
                                    .sources = load.source,
                                    .source_count = load.count,
                                    .call = &call};
    o = calloc(1, sizeof *o);
    status = !o ? gm_say_wrong(GM_EXIT_FILE, "out of memory") : try_once(client, options, &request);
    if (status == GM_EXIT_OK)
        status = measure(client, options, &request, o);
    if (status == GM_EXIT_OK) {
        o->op = args[0];
        o->what = load.what;
        o->rate = options->rate;
        o->bytes_sent = o->sent * load.bytes;
        (options->json ? print_json : print_text)(o);
        status = gm_say_interrupted()  ? GM_EXIT_INTERRUPTED
                 : o->failure[0].count ? gm_say_exit(&o->failure[0].err)
                                       : GM_EXIT_OK;
    }
    free(o);
    gm_load_free(&load);
    return status;
}
