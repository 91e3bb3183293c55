/* The counters and histograms, and what GET /metrics makes of them. */
#include "server/api/stats.h"
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

static uint64_t count_of(const struct gm_histogram *h)
{
    uint64_t n = 0;

    for (unsigned i = 0; i <= GM_BUCKET_COUNT; i++)
        n += atomic_load(&h->bucket[i]);
    return n;
}

/* Bounds rise and are inclusive, as Prometheus' le is; what is beyond the last has a place too. */
static void test_buckets(void)
{
    for (unsigned i = 0; i < GM_BUCKET_COUNT; i++) {
        struct gm_histogram h = {0};
        CHECK(i == 0 || gm_bucket_bounds[i] > gm_bucket_bounds[i - 1]);
        gm_histogram_add(&h, gm_bucket_bounds[i]);
        CHECK_EQ(atomic_load(&h.bucket[i]), 1);
        gm_histogram_add(&h, nextafter(gm_bucket_bounds[i], INFINITY));
        CHECK_EQ(atomic_load(&h.bucket[i + 1]), 1);
        CHECK_EQ(count_of(&h), 2);
    }
    struct gm_histogram h = {0};
    gm_histogram_add(&h, 0);
    gm_histogram_add(&h, 1e-9);
    CHECK_EQ(atomic_load(&h.bucket[0]), 2);
    gm_histogram_add(&h, 3600);
    CHECK_EQ(atomic_load(&h.bucket[GM_BUCKET_COUNT]), 1);
    uint64_t sum = atomic_load(&h.sum_ns);
    CHECK(sum >= UINT64_C(3600000000000) && sum <= UINT64_C(3600000000002));
}

/* Only stages that were measured are counted; the total always is. */
static void test_account(void)
{
    static struct gm_stats stats;
    struct gm_stats_shard sums;
    struct gm_account account = {.total_us = 2000};

    for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
        account.us[i] = -1;
    account.us[GM_STAGE_KERNEL] = 30;
    account.us[GM_STAGE_DECODE] = 0;
    gm_stats_account(&stats, GM_OP_MATMUL, &account);
    gm_stats_account(&stats, GM_OP_MATMUL, &account);
    gm_stats_sum(&stats, &sums);
    for (unsigned op = 0; op < GM_OP_COUNT; op++) {
        CHECK_EQ(count_of(&sums.total[op]), op == GM_OP_MATMUL ? 2 : 0);
        for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
            CHECK_EQ(count_of(&sums.stage[op][i]),
                     op == GM_OP_MATMUL && account.us[i] >= 0 ? 2 : 0);
    }
    const struct gm_histogram *kernel = &sums.stage[GM_OP_MATMUL][GM_STAGE_KERNEL];
    for (unsigned i = 0; i < GM_BUCKET_COUNT; i++)
        CHECK_EQ(atomic_load(&kernel->bucket[i]), gm_bucket_bounds[i] == 5e-5 ? 2 : 0);
    CHECK(llabs((long long)atomic_load(&kernel->sum_ns) - 60000) <= 2);
    gm_stats_add(&stats, GM_COUNT_ABORTED, 3);
    gm_stats_add(&stats, GM_COUNT_ABORTED, 4);
    gm_stats_sum(&stats, &sums);
    CHECK_EQ(atomic_load(&sums.counter[GM_COUNT_ABORTED]), 7);
    CHECK_EQ(atomic_load(&sums.counter[GM_COUNT_RAN_INLINE]), 0);
}

/* The sums are those of all shards, and the time is the latest. */
static void test_shards(void)
{
    static struct gm_stats stats;
    struct gm_stats_shard sums;

    for (unsigned i = 0; i < GM_STATS_SHARDS; i++) {
        stats.shard[i].counter[GM_COUNT_EVICTED] = i + 1;
        stats.shard[i].last_ns[GM_OP_ADD] = i == 5 ? 900 : (int64_t)i;
        stats.shard[i].stage[GM_OP_ADD][GM_STAGE_KERNEL].bucket[GM_BUCKET_COUNT] = 2;
        stats.shard[i].total[GM_OP_ADD].sum_ns = 10;
    }
    gm_stats_sum(&stats, &sums);
    CHECK_EQ(sums.counter[GM_COUNT_EVICTED], GM_STATS_SHARDS * (GM_STATS_SHARDS + 1) / 2);
    CHECK_EQ(sums.last_ns[GM_OP_ADD], 900);
    CHECK_EQ(count_of(&sums.stage[GM_OP_ADD][GM_STAGE_KERNEL]), 2 * GM_STATS_SHARDS);
    CHECK_EQ(sums.total[GM_OP_ADD].sum_ns, 10 * GM_STATS_SHARDS);
}

static void *add_accounts(void *cls)
{
    for (unsigned i = 0; i < 10000; i++)
        gm_histogram_add(cls, i % 2 ? 1e-5 : 1e-3);
    return NULL;
}

static void test_threads(void)
{
    struct gm_histogram h = {0};
    pthread_t thread[4];

    for (unsigned i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, add_accounts, &h);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQ(count_of(&h), 40000);
    CHECK(llabs((long long)atomic_load(&h.sum_ns) - 20200000000) <= 40000);
}

/* GET /metrics, as a text that the caller frees. */
static char *metrics(void)
{
    const struct ask ask = {.method = "GET", .path = "/metrics"};
    struct exchange x;

    bench_serve(&x, &ask, "", 0, 1);
    bench_expect(&x, 200, NULL);
    CHECK(strncmp(x.request->reply.media_type, "text/plain; version=0.0.4", 25) == 0);
    char *text = strndup(x.request->reply.body, x.request->reply.body_len);
    CHECK_EQ(strlen(text), x.request->reply.body_len);
    bench_end(&x);
    return text;
}

/* The value of the sample that is written exactly so. */
static double sample(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) == 0 && line[len] == ' ')
            return strtod(line + len, NULL);
    }
    return NAN;
}

#define NAME "[a-z_:][a-z0-9_:]*"
#define LABEL "[a-z_][a-z0-9_]*=\"([^\"\\]|\\\\[\\n\"])*\""
#define NUMBER "(-?[0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+)?|\\+Inf)"

/* Each line is help, a type, or a sample of the family above it; each family comes once. */
static void check_text(const char *text)
{
    regex_t help, type, line_of;
    char family[128] = "", seen[8192] = "", *copy = strdup(text), *rest = copy;
    unsigned families = 0;

    CHECK(regcomp(&help, "^# HELP (" NAME ") .+$", REG_EXTENDED) == 0);
    CHECK(regcomp(&type, "^# TYPE (" NAME ") (counter|gauge|histogram)$", REG_EXTENDED) == 0);
    CHECK(regcomp(&line_of, "^(" NAME ")(\\{" LABEL "(," LABEL ")*\\})? " NUMBER "$",
                  REG_EXTENDED) == 0);
    CHECK(*text && text[strlen(text) - 1] == '\n');
    for (char *line; (line = strsep(&rest, "\n")) != NULL && rest;) {
        regmatch_t part[2];
        if (regexec(&help, line, 2, part, 0) == 0) {
            char key[132];
            snprintf(family, sizeof family, "%.*s", (int)(part[1].rm_eo - part[1].rm_so),
                     line + part[1].rm_so);
            snprintf(key, sizeof key, " %s ", family);
            check_that(!strstr(seen, key), __FILE__, __LINE__, "%s is there twice", family);
            CHECK(strlen(seen) + strlen(key) < sizeof seen);
            strcat(seen, key);
            families++;
            continue;
        }
        bool is_type = regexec(&type, line, 2, part, 0) == 0;
        bool known = is_type || regexec(&line_of, line, 2, part, 0) == 0;
        check_that(known, __FILE__, __LINE__, "not a line of the format: %s", line);
        size_t len = known ? (size_t)(part[1].rm_eo - part[1].rm_so) : 0, base = strlen(family);
        bool own = len >= base && strncmp(line + (known ? part[1].rm_so : 0), family, base) == 0;
        check_that(own && (len == base || !is_type), __FILE__, __LINE__, "%s is below %s", line,
                   family);
    }
    CHECK(families > 15);
    regfree(&help);
    regfree(&type);
    regfree(&line_of);
    free(copy);
}

/* A histogram's buckets are cumulative, and its count is that of +Inf. */
static void check_histogram(const char *text, const char *name, const char *labels, double count)
{
    char key[256];
    double before = 0;

    for (unsigned i = 0; i < GM_BUCKET_COUNT; i++) {
        snprintf(key, sizeof key, "%s_bucket{%s,le=\"%g\"}", name, labels, gm_bucket_bounds[i]);
        double value = sample(text, key);
        check_that(value >= before, __FILE__, __LINE__, "%s: %g after %g", key, value, before);
        before = value;
    }
    snprintf(key, sizeof key, "%s_bucket{%s,le=\"+Inf\"}", name, labels);
    CHECK(sample(text, key) >= before && sample(text, key) == count);
    snprintf(key, sizeof key, "%s_count{%s}", name, labels);
    CHECK(sample(text, key) == count);
    snprintf(key, sizeof key, "%s_sum{%s}", name, labels);
    CHECK(count > 0 ? sample(text, key) > 0 : sample(text, key) == 0);
}

static void test_metrics(void)
{
    static const struct ask good = {.path = "/v1/transpose", .type = "application/json"};
    static const struct ask slow = {
        .path = "/v1/transpose", .type = "application/json", .query = "kernel=naive"};
    struct exchange x;

    bench_open(64 << 20, 2);
    char *text = metrics();
    check_text(text);
    check_histogram(text, "gemmd_request_duration_seconds", "op=\"matmul\"", 0);
    free(text);
    for (unsigned i = 0; i < 5; i++) {
        bench_serve(&x, i < 3 ? &good : &slow, "[[1,2],[3,4]]", 13, 13);
        bench_expect(&x, 200, NULL);
        bench_end(&x);
    }
    bench_serve(&x, &good, "[[1,2],[3]]", 11, 11);
    bench_expect(&x, 422, "bad_shape");
    bench_end(&x);
    /* One more is on its way. */
    atomic_store(&faulty_plan.hold, true);
    bench_begin(&x, &slow, 13);
    bench_push(&x, "[[1,2],[3,4]]", 13, 13);
    CHECK(!bench_advance(&x));
    bench_wait_running(1);
    text = metrics();
    check_text(text);
    check_histogram(text, "gemmd_request_duration_seconds", "op=\"transpose\"", 5);
    check_histogram(text, "gemmd_stage_duration_seconds", "op=\"transpose\",stage=\"kernel\"", 5);
    check_histogram(text, "gemmd_stage_duration_seconds", "op=\"transpose\",stage=\"h2d\"", 0);
    CHECK(sample(text, "gemmd_inline_jobs_total") == 3);
    CHECK(sample(text, "gemmd_requests_rejected_total{reason=\"bad_shape\"}") == 1);
    CHECK(sample(text, "gemmd_requests_rejected_total{reason=\"internal\"}") == 0);
    CHECK(sample(text, "gemmd_request_body_bytes_total") == 6 * 13 + 11);
    CHECK(sample(text, "gemmd_kernel_bytes_total") == 5 * 32);
    CHECK(sample(text, "gemmd_requests_in_flight") == 2); /* this one, too */
    CHECK(sample(text, "gemmd_jobs_running{device=\"fake:0\"}") == 1);
    CHECK(sample(text, "gemmd_queue_depth{device=\"fake:0\"}") == 0);
    CHECK(sample(text, "gemmd_queue_capacity{device=\"fake:0\"}") == 10);
    CHECK(sample(text, "gemmd_device_up{device=\"fake:0\"}") == 1);
    CHECK(sample(text, "gemmd_device_busy_seconds_total{device=\"fake:0\"}") > 0);
    CHECK(isnan(sample(text, "gemmd_device_memory_used_bytes{device=\"fake:0\"}"))); /* not known */
    CHECK(!strstr(text, "gemmd_device_memory_used_bytes"));
    CHECK(sample(text, "gemmd_http_requests_total{route=\"/v1/flip\",code=\"200\"}") == 0);
    CHECK(sample(text, "gemmd_connections_closed_total{reason=\"idle\"}") == 0);
    CHECK(sample(text, "gemmd_memory_used_bytes") > 0);
    CHECK(sample(text, "gemmd_memory_limit_bytes") == 64 << 20);
    free(text);
    atomic_store(&faulty_plan.hold, false);
    bench_finish(&x);
    bench_end(&x);
    text = metrics();
    CHECK(sample(text, "gemmd_memory_used_bytes") == 0);
    CHECK(sample(text, "gemmd_jobs_running{device=\"fake:0\"}") == 0);
    free(text);
    bench_close();
}

static struct gm_recents recents;

/* As many as there is room for, the newest; a client's own, or all. */
static void test_recents(void)
{
    static struct gm_recent got[GM_RECENT_ACCOUNTS_MAX];
    const uint64_t two = 2, nobody = 9;
    struct gm_error error;

    CHECK_STATUS(gm_recents_open(&recents, &error), GM_OK, &error);
    CHECK_EQ(gm_recents_copy(&recents, NULL, 0, got, GM_RECENT_ACCOUNTS_MAX), 0);
    for (uint64_t i = 1; i <= GM_RECENT_ACCOUNTS_MAX + 5; i++) {
        struct gm_recent one = {.client = i % 3, .batch = (unsigned)i};
        gm_recents_add(&recents, &one);
    }
    CHECK_EQ(gm_recents_copy(&recents, NULL, 0, got, GM_RECENT_ACCOUNTS_MAX),
             GM_RECENT_ACCOUNTS_MAX);
    CHECK_EQ(got[0].number, 6);
    CHECK_EQ(got[GM_RECENT_ACCOUNTS_MAX - 1].batch, GM_RECENT_ACCOUNTS_MAX + 5);
    CHECK_EQ(gm_recents_copy(&recents, NULL, GM_RECENT_ACCOUNTS_MAX + 2, got, 10), 3);
    CHECK_EQ(got[0].number, GM_RECENT_ACCOUNTS_MAX + 3);
    CHECK_EQ(gm_recents_copy(&recents, NULL, UINT64_MAX, got, 10), 0);
    CHECK_EQ(gm_recents_copy(&recents, &two, 0, got, 4), 4);
    for (unsigned i = 0; i < 4; i++)
        CHECK(got[i].client == 2 && (i == 0 || got[i].number == got[i - 1].number + 3));
    CHECK_EQ(gm_recents_copy(&recents, &nobody, 0, got, 4), 0);
    gm_recents_close(&recents);

    CHECK_STATUS(gm_recents_open(&recents, &error), GM_OK, &error); /* an empty one again */
    gm_recents_add(&recents, &got[0]);
    CHECK_EQ(gm_recents_copy(&recents, NULL, 0, got, 4), 1);
    CHECK_EQ(got[0].number, 1);
    gm_recents_close(&recents);
}

#define ADDERS 4
#define ADDED 20000

static void *add_recents(void *cls)
{
    struct gm_recent one = {.client = *(uint64_t *)cls};

    for (unsigned i = 1; i <= ADDED; i++) {
        one.batch = i;
        gm_recents_add(&recents, &one);
    }
    return NULL;
}

/* Whoever asks for what comes after the last one that it saw misses none, unless the ring has gone
 * round meanwhile, and sees none twice; those of one thread are in its order. */
static void test_recents_by_threads(void)
{
    static struct gm_recent got[GM_RECENT_ACCOUNTS_MAX];
    uint64_t client[ADDERS], since = 0, seen = 0, missed = 0;
    unsigned last[ADDERS] = {0};
    pthread_t thread[ADDERS];
    struct gm_error error;

    CHECK_STATUS(gm_recents_open(&recents, &error), GM_OK, &error);
    for (uint64_t i = 0; i < ADDERS; i++) {
        client[i] = i;
        CHECK(pthread_create(&thread[i], NULL, add_recents, &client[i]) == 0);
    }
    while (since < (uint64_t)ADDERS * ADDED) {
        size_t n = gm_recents_copy(&recents, NULL, since, got, GM_RECENT_ACCOUNTS_MAX);
        for (size_t i = 0; i < n; i++) {
            missed += got[i].number - since - 1;
            since = got[i].number;
            CHECK(got[i].client < ADDERS && got[i].batch > last[got[i].client]);
            last[got[i].client] = got[i].batch;
        }
        seen += n;
        CHECK(n == 0 || got[n - 1].number - got[0].number == n - 1 || missed > 0);
    }
    for (unsigned i = 0; i < ADDERS; i++) {
        pthread_join(thread[i], NULL);
        CHECK(last[i] == ADDED || missed > 0);
    }
    CHECK_EQ(seen + missed, (uint64_t)ADDERS * ADDED);
    CHECK(seen >= GM_RECENT_ACCOUNTS_MAX);
    gm_recents_close(&recents);
}

int main(void)
{
    test_recents();
    test_recents_by_threads();
    test_buckets();
    test_account();
    test_shards();
    test_threads();
    test_metrics();
    return check_report();
}
