/* Token buckets and quotas, by a clock of our own. */
#include "server/access/quota.h"

#include "server/limits.h"
#include "tests/unit/check.h"

#define SECOND INT64_C(1000000000)

static struct gm_quotas quotas;

static void open_quotas(const char *limits)
{
    struct gm_quota_limits of;
    struct gm_error error;

    memset(&quotas, 0, sizeof quotas);
    CHECK_STATUS(gm_quota_read(limits, strlen(limits), &of, &error), GM_OK, &error);
    CHECK_STATUS(gm_quotas_open(&quotas, &of, &error), GM_OK, &error);
    quotas.by_address = true;
}

/* A bucket of N: N at once, and not one more; then one each window / N, to the nanosecond. */
static void test_edges(void)
{
    static const uint64_t sizes[] = {1, 2, 3, 7, 1000, 999999937, GM_QUOTA_MOST};

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct gm_rate rate = {sizes[i], SECOND};
        struct gm_bucket bucket = {0};
        int64_t now = 77 * SECOND + 1;
        CHECK_EQ(gm_bucket_left(&bucket, &rate, now), sizes[i]);
        CHECK_EQ(gm_bucket_wait(&bucket, &rate, sizes[i], now), 0);
        gm_bucket_take(&bucket, &rate, sizes[i], now);
        CHECK_EQ(gm_bucket_left(&bucket, &rate, now), 0);
        int64_t wait = gm_bucket_wait(&bucket, &rate, 1, now);
        CHECK(wait > 0);
        CHECK(gm_bucket_wait(&bucket, &rate, 1, now + wait - 1) > 0);
        CHECK_EQ(gm_bucket_wait(&bucket, &rate, 1, now + wait), 0);
        CHECK_EQ(gm_bucket_wait(&bucket, &rate, sizes[i], now + SECOND), 0);
        CHECK_EQ(gm_bucket_left(&bucket, &rate, now + SECOND), sizes[i]);
        /* Idle for ever, it holds no more than it holds. */
        CHECK_EQ(gm_bucket_left(&bucket, &rate, INT64_MAX / 2), sizes[i]);
        /* A clock that is read earlier by another thread gives nothing. */
        CHECK_EQ(gm_bucket_left(&bucket, &rate, now - SECOND), 0);
    }
}

/* Over a long time no more than the rate and one bucket pass, however often somebody tries. */
static void test_rate(void)
{
    const struct gm_rate rate = {7, SECOND};
    struct gm_bucket bucket = {0};
    unsigned passed = 0;
    int64_t now = SECOND, end = now + 1000 * SECOND;

    for (; now < end; now += 1234567) {
        if (gm_bucket_wait(&bucket, &rate, 1, now) > 0)
            continue;
        gm_bucket_take(&bucket, &rate, 1, now);
        passed++;
    }
    CHECK(passed <= 7 * 1000 + 7);
    CHECK(passed >= 7 * 1000 * 99 / 100);
}

static void test_debt(void)
{
    const struct gm_rate rate = {10, SECOND};
    struct gm_bucket bucket = {0};
    int64_t now = 5 * SECOND;

    /* More than it holds: it has to be full, and the rest is owed. */
    gm_bucket_take(&bucket, &rate, 1, now);
    CHECK_EQ(gm_bucket_wait(&bucket, &rate, 1000, now), SECOND / 10);
    now += SECOND / 10;
    CHECK_EQ(gm_bucket_wait(&bucket, &rate, 1000, now), 0);
    gm_bucket_take(&bucket, &rate, 1000, now);
    CHECK_EQ(gm_bucket_wait(&bucket, &rate, 1, now), 99 * SECOND + SECOND / 10);
    CHECK_EQ(gm_bucket_left(&bucket, &rate, now), 0);
    gm_bucket_give(&bucket, &rate, 1000, 1);
    CHECK_EQ(gm_bucket_left(&bucket, &rate, now), 9);
    /* What cannot be paid in a day is not, but for what was used of it. And no sum overflows. */
    const struct gm_rate one = {1, 60 * SECOND};
    struct gm_bucket deep = {0};
    gm_bucket_take(&deep, &one, UINT64_MAX, now);
    CHECK_EQ(deep.full_ns - now, (int64_t)GM_QUOTA_DEBT_S * SECOND);
    gm_bucket_give(&deep, &one, UINT64_MAX, 0);
    CHECK_EQ(gm_bucket_wait(&deep, &one, 1, now), 0);
    gm_bucket_take(&deep, &one, UINT64_MAX, now);
    gm_bucket_give(&deep, &one, UINT64_MAX, 3);
    CHECK_EQ(gm_bucket_wait(&deep, &one, 1, now), 3 * 60 * SECOND);
}

static enum gm_status enter(struct gm_quota *quota, uint64_t bytes, bool job, int64_t now,
                            unsigned *wait)
{
    struct gm_error error;

    *wait = 0;
    return gm_quota_enter(quota, bytes, job, now, wait, &error);
}

/* An integer of more than 15 digits would make a structured header field as a whole invalid. */
static void test_largest(void)
{
    static const char beyond[] = "bytes=1000000000000000";
    char policy[GM_RATE_LIMIT_MAX], state[GM_RATE_LIMIT_MAX];
    struct gm_quota_limits limits;

    open_quotas("bytes=999999999999999");
    struct gm_quota *quota = gm_quota_of_address(&quotas, 5);
    gm_quota_headers(quota, SECOND, policy, state);
    CHECK_STR(policy, "\"bytes\";q=999999999999999;qu=\"content-bytes\";w=1");
    CHECK_STR(state, "\"bytes\";r=999999999999999;t=0");
    CHECK_EQ(gm_quota_read(beyond, strlen(beyond), &limits, NULL), GM_BAD_PARAMETER);
    gm_quota_unref(quota);
    gm_quotas_close(&quotas);
}

static void test_account(void)
{
    open_quotas("requests=4,bytes=1000,jobs=1");
    struct gm_quota *quota = gm_quota_of_address(&quotas, 5);
    char policy[GM_RATE_LIMIT_MAX], state[GM_RATE_LIMIT_MAX];
    int64_t now = 9 * SECOND;
    unsigned wait;

    CHECK_STATUS(enter(quota, 600, true, now, &wait), GM_OK, NULL);
    gm_quota_headers(quota, now, policy, state);
    CHECK_STR(policy, "\"requests\";q=4;qu=\"requests\";w=1, "
                      "\"bytes\";q=1000;qu=\"content-bytes\";w=1");
    CHECK_STR(state, "\"requests\";r=3;t=1, \"bytes\";r=400;t=1");
    /* What is refused takes nothing of anything: neither a request, nor bytes, nor a job. */
    for (unsigned i = 0; i < 10; i++)
        CHECK_EQ(enter(quota, 600, false, now, &wait), GM_QUOTA_EXCEEDED);
    CHECK_EQ(wait, 1);
    for (unsigned i = 0; i < 10; i++)
        CHECK_EQ(enter(quota, 1, true, now, &wait), GM_QUOTA_EXCEEDED);
    CHECK_STATUS(enter(quota, 400, false, now, &wait), GM_OK, NULL);
    CHECK_EQ(enter(quota, 0, false, now, &wait), GM_QUOTA_EXCEEDED); /* of no known length */
    gm_quota_leave(quota);
    now += SECOND;
    CHECK_STATUS(enter(quota, 0, true, now, &wait), GM_OK, NULL);
    gm_quota_count(quota, 10, 20);
    gm_quota_count(quota, 1, 0);
    CHECK_EQ(atomic_load(&quota->counts->requests), 2);
    CHECK_EQ(atomic_load(&quota->counts->bytes), 11);
    CHECK_EQ(atomic_load(&quota->counts->device_ns), 20);
    CHECK_EQ(atomic_load(&quota->counts->refused[GM_QUOTA_BYTES]), 11);
    CHECK_EQ(atomic_load(&quota->counts->refused[GM_QUOTA_JOBS]), 10);
    gm_quota_leave(quota);
    gm_quota_unref(quota);
    gm_quotas_close(&quotas);
}

static void test_device(void)
{
    open_quotas("device=30");
    struct gm_quota *quota = gm_quota_of_address(&quotas, 5);
    int64_t now = 100 * SECOND;
    unsigned wait;

    gm_quota_charge_device(quota, 29 * SECOND, now);
    CHECK_STATUS(enter(quota, 0, true, now, &wait), GM_OK, NULL);
    gm_quota_charge_device(quota, 61 * SECOND, now); /* overdrawn by one minute and more */
    CHECK_EQ(enter(quota, 0, true, now, &wait), GM_QUOTA_EXCEEDED);
    CHECK_EQ(wait, 121); /* 60 s too many, of which 0.5 come in a second, and the first token */
    CHECK_STATUS(enter(quota, 0, false, now, &wait), GM_OK, NULL); /* no device is needed */
    CHECK_EQ(enter(quota, 0, true, now + 120 * SECOND, &wait), GM_QUOTA_EXCEEDED);
    CHECK_STATUS(enter(quota, 0, true, now + 121 * SECOND, &wait), GM_OK, NULL);
    gm_quota_charge_device(quota, 0, now);
    gm_quota_charge_device(quota, -5, now);
    gm_quota_unref(quota);
    gm_quotas_close(&quotas);
}

static void test_memory(void)
{
    struct gm_error error;

    open_quotas("memory=1000");
    struct gm_quota *quota = gm_quota_of_address(&quotas, 5);
    CHECK_STATUS(gm_quota_hold(quota, 0, 600, &error), GM_OK, &error);
    CHECK_EQ(gm_quota_hold(quota, 0, 401, &error), GM_QUOTA_EXCEEDED);
    CHECK_EQ(gm_quota_hold(quota, 600, 1001, &error), GM_TOO_LARGE);
    CHECK_STATUS(gm_quota_hold(quota, 600, 1000, &error), GM_OK, &error);
    gm_quota_release(quota, 1000);
    CHECK_EQ(quota->memory, 0);
    CHECK_STATUS(gm_quota_hold(NULL, 0, UINT64_MAX, &error), GM_OK, &error);
    gm_quota_unref(quota);
    gm_quotas_close(&quotas);
}

/* Many addresses: those of requests stay, and of the others the ones seen last. */
static void test_addresses(void)
{
    open_quotas("requests=1");
    struct gm_quota *first = gm_quota_of_address(&quotas, 1);
    struct gm_quota *second = gm_quota_of_address(&quotas, 2);
    unsigned wait;

    CHECK(first && second && first != second);
    CHECK_STATUS(enter(first, 0, false, SECOND, &wait), GM_OK, NULL);
    gm_quota_unref(second);
    for (uint64_t client = 3; client < 3 + 2 * GM_QUOTA_ADDRESSES_MAX; client++)
        gm_quota_unref(gm_quota_of_address(&quotas, client));
    CHECK_EQ(quotas.address_count, GM_QUOTA_ADDRESSES_MAX);
    struct gm_quota *again = gm_quota_of_address(&quotas, 1);
    CHECK(again == first);
    CHECK_EQ(enter(again, 0, false, SECOND, &wait), GM_QUOTA_EXCEEDED);
    gm_quota_unref(again);
    gm_quota_unref(first);
    gm_quotas_close(&quotas);
}

static void test_keys(void)
{
    struct gm_quota *quota[GM_QUOTA_NAMED_MAX + 2];
    const struct gm_quota_limits own = {.most = {[GM_QUOTA_REQUESTS] = GM_QUOTA_NONE}};

    open_quotas("requests=1,jobs=2");
    for (unsigned i = 0; i < GM_QUOTA_NAMED_MAX + 2; i++) {
        quota[i] = gm_quota_of_key(&quotas);
        CHECK(quota[i] && (quota[i]->client >> 56) == 0xff);
        CHECK(i == 0 || quota[i]->client == quota[i - 1]->client + 1);
        CHECK_EQ(quota[i]->named, i < GM_QUOTA_NAMED_MAX);
    }
    CHECK(quota[GM_QUOTA_NAMED_MAX]->counts == quota[GM_QUOTA_NAMED_MAX + 1]->counts);
    gm_quota_set(quota[0], "a", &own);
    CHECK_EQ(quota[0]->limits.most[GM_QUOTA_REQUESTS], GM_QUOTA_NONE);
    CHECK_EQ(quota[0]->limits.most[GM_QUOTA_JOBS], 2);
    for (unsigned i = 0; i < GM_QUOTA_NAMED_MAX + 2; i++)
        gm_quota_unref(quota[i]);
    CHECK(TAILQ_EMPTY(&quotas.keys));
    CHECK_EQ(quotas.named, 0);
    gm_quotas_close(&quotas);
}

int main(void)
{
    test_edges();
    test_rate();
    test_debt();
    test_largest();
    test_account();
    test_device();
    test_memory();
    test_addresses();
    test_keys();
    return check_report();
}
