/* test_slab.c - the pool of slabs: sizes, reuse, the limit, and threads. */
#include "check.h"
#include "kernels/slab.h"

#include <pthread.h>

#define MIB ((uint64_t)1 << 20)

/* A source that counts, and can refuse. */
struct counter {
    pthread_mutex_t lock;
    uint64_t live, peak, taken, given, limit;
    void *last_given;
};

static void *counted_take(void *cls, uint64_t bytes)
{
    struct counter *counter = cls;
    void *data = NULL;

    pthread_mutex_lock(&counter->lock);
    if (counter->live + bytes <= counter->limit && (data = aligned_alloc(64, bytes))) {
        counter->taken++;
        counter->live += bytes;
        if (counter->live > counter->peak)
            counter->peak = counter->live;
    }
    pthread_mutex_unlock(&counter->lock);
    return data;
}

static void counted_give(void *cls, void *data, uint64_t bytes)
{
    struct counter *counter = cls;

    pthread_mutex_lock(&counter->lock);
    counter->given++;
    counter->live -= bytes;
    counter->last_given = data;
    free(data);
    pthread_mutex_unlock(&counter->lock);
}

static struct gm_slabs *open_counted(struct counter *counter, uint64_t limit)
{
    struct gm_slab_source source = {counted_take, counted_give, counter};
    struct gm_slabs *slabs = NULL;
    struct gm_error err = {.detail = ""};

    *counter = (struct counter){.limit = UINT64_MAX};
    pthread_mutex_init(&counter->lock, NULL);
    CHECK_STATUS(gm_slabs_open(&source, limit, &slabs, &err), GM_OK, &err);
    return slabs;
}

static struct gm_slab get(struct gm_slabs *slabs, uint64_t bytes)
{
    struct gm_error err = {.detail = ""};
    struct gm_slab slab = {0};

    CHECK_STATUS(gm_slabs_get(slabs, bytes, &slab, &err), GM_OK, &err);
    CHECK(slab.data != NULL && (uintptr_t)slab.data % 64 == 0);
    CHECK_EQ(slab.bytes, bytes);
    CHECK_EQ(slab.capacity, gm_slabs_cost(bytes));
    return slab;
}

static void test_cost(void)
{
    uint64_t before = 0, random = check_seed();

    for (uint64_t bytes = 0; bytes < 70000; bytes++) {
        uint64_t cost = gm_slabs_cost(bytes), needed = bytes + GM_TEXT_PADDING;
        if (!CHECK(cost >= needed && cost >= before && cost % 64 == 0) ||
            !CHECK(cost <= 256 + GM_TEXT_PADDING || cost < needed + needed / 16 + 64))
            fprintf(stderr, "  %llu bytes: %llu\n", (unsigned long long)bytes,
                    (unsigned long long)cost);
        before = cost;
    }
    for (int i = 0; i < 10000; i++) {
        uint64_t bytes = check_random(&random) >> (2 + check_random(&random) % 50);
        uint64_t cost = gm_slabs_cost(bytes), needed = bytes + GM_TEXT_PADDING;
        CHECK(cost >= needed);
        CHECK(cost - needed <= (bytes < 256 ? 256 : bytes / 16 + 64 + (bytes < MIB ? 0 : 4096)));
    }
    /* The most frequent sizes are not pushed into the class above. */
    for (int i = 8; i < 62; i++)
        CHECK(gm_slabs_cost((uint64_t)1 << i) <= ((uint64_t)1 << i) + 4096);
    CHECK(gm_slabs_cost(UINT64_MAX) == UINT64_MAX);
    CHECK(gm_slabs_cost(UINT64_MAX - GM_TEXT_PADDING) == UINT64_MAX);
    CHECK(gm_slabs_cost((uint64_t)1 << 62) > (uint64_t)1 << 62);
}

static void test_plain_memory(void)
{
    const uint64_t sizes[] = {0, 1, 63, 64, 4096, 100000, 2 * MIB, 5 * MIB + 1, 40 * MIB};
    struct gm_slabs *slabs = NULL;
    struct gm_error err;

    CHECK_EQ(gm_slabs_open(&gm_slab_plain, 256 * MIB, &slabs, &err), GM_OK);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct gm_slab slab = get(slabs, sizes[i]);
            memset(slab.data, 1 + (int)i, sizes[i] + GM_TEXT_PADDING);
            gm_slabs_put(slabs, &slab);
            CHECK(slab.data == NULL && slab.bytes == 0 && slab.capacity == 0);
            gm_slabs_put(slabs, &slab); /* an empty one is fine */
        }
    }
    CHECK_EQ(gm_slabs_usage(slabs).in_use, 0);
    gm_slabs_close(slabs);
    gm_slabs_close(NULL);
}

static void test_reuse(void)
{
    struct counter counter;
    struct gm_slabs *slabs = open_counted(&counter, 64 * MIB);
    struct gm_slab a = get(slabs, MIB), b = get(slabs, MIB);
    void *first = a.data, *second = b.data;

    CHECK(first != second);
    CHECK_EQ(gm_slabs_usage(slabs).in_use, 2 * gm_slabs_cost(MIB));
    gm_slabs_put(slabs, &a);
    gm_slabs_put(slabs, &b);
    CHECK_EQ(gm_slabs_usage(slabs).in_use, 0);
    CHECK_EQ(gm_slabs_usage(slabs).idle, 2 * gm_slabs_cost(MIB));

    a = get(slabs, MIB - 100); /* same class: the one put back last */
    CHECK(a.data == second);
    b = get(slabs, MIB);
    CHECK(b.data == first);
    struct gm_slab c = get(slabs, 3 * MIB); /* another class */
    CHECK_EQ(counter.taken, 3);
    CHECK_EQ(counter.given, 0);
    gm_slabs_put(slabs, &a);
    gm_slabs_put(slabs, &b);
    gm_slabs_put(slabs, &c);
    gm_slabs_close(slabs);
    CHECK_EQ(counter.live, 0);
    CHECK_EQ(counter.given, 3);
}

static void test_limit(void)
{
    uint64_t one = gm_slabs_cost(MIB), two = gm_slabs_cost(2 * MIB);
    struct counter counter;
    struct gm_slabs *slabs = open_counted(&counter, 2 * one + two);
    struct gm_error err = {.detail = ""};
    struct gm_slab slab = {0}, untouched = {0};

    /* More than there will ever be; more than there is now. */
    CHECK_STATUS(gm_slabs_get(slabs, 100 * MIB, &slab, &err), GM_TOO_LARGE, &err);
    CHECK(strstr(err.detail, "104857600") != NULL);
    CHECK_STATUS(gm_slabs_get(slabs, UINT64_MAX, &slab, &err), GM_TOO_LARGE, &err);
    struct gm_slab a = get(slabs, MIB), b = get(slabs, MIB), c = get(slabs, 2 * MIB);
    CHECK_STATUS(gm_slabs_get(slabs, 1, &slab, &err), GM_MEMORY_FULL, &err);
    CHECK(memcmp(&slab, &untouched, sizeof(slab)) == 0);

    /* Idle slabs make room, the oldest first. */
    void *oldest = c.data;
    gm_slabs_put(slabs, &c);
    gm_slabs_put(slabs, &a);
    slab = get(slabs, 3 * MIB / 2);
    CHECK(counter.last_given == oldest);
    CHECK_EQ(counter.given, 1);
    CHECK(counter.peak <= 2 * one + two);
    CHECK(gm_slabs_usage(slabs).in_use + gm_slabs_usage(slabs).idle <= 2 * one + two);
    gm_slabs_put(slabs, &slab);

    /* As many of them as it takes. */
    gm_slabs_put(slabs, &b);
    slab = get(slabs, 3 * MIB);
    CHECK(counter.peak <= 2 * one + two);
    gm_slabs_put(slabs, &slab);
    gm_slabs_close(slabs);
    CHECK_EQ(counter.live, 0);
}

/* The system's refusal: what is idle goes back to it, then it is told. */
static void test_no_memory(void)
{
    struct counter counter;
    struct gm_slabs *slabs = open_counted(&counter, 64 * MIB);
    struct gm_error err = {.detail = ""};
    struct gm_slab a = get(slabs, MIB), b = get(slabs, 2 * MIB), slab = {0};

    gm_slabs_put(slabs, &a);
    counter.limit = gm_slabs_cost(2 * MIB) + gm_slabs_cost(3 * MIB / 2);
    slab = get(slabs, 3 * MIB / 2);
    CHECK_EQ(counter.given, 1);
    gm_slabs_put(slabs, &slab);
    CHECK_STATUS(gm_slabs_get(slabs, 8 * MIB, &slab, &err), GM_MEMORY_FULL, &err);
    CHECK(strstr(err.detail, "system has no memory") != NULL);
    CHECK_EQ(gm_slabs_usage(slabs).in_use, gm_slabs_cost(2 * MIB));
    CHECK_EQ(gm_slabs_usage(slabs).idle, 0);
    gm_slabs_put(slabs, &b);
    gm_slabs_close(slabs);
    CHECK_EQ(counter.live, 0);
}

struct churn {
    struct gm_slabs *slabs;
    uint64_t limit, seed;
    unsigned got, refused;
};

/* Takes and puts back at random, and finds in each slab what it wrote there. */
static void *churn(void *cls)
{
    struct churn *churn = cls;
    struct gm_slab held[4] = {0};
    uint64_t random = churn->seed;

    for (int i = 0; i < 3000; i++) {
        struct gm_slab *slab = &held[check_random(&random) % 4];
        if (slab->data) {
            const uint64_t *words = slab->data;
            CHECK(words[0] == churn->seed && words[slab->bytes / 8 - 1] == churn->seed);
            gm_slabs_put(churn->slabs, slab);
            continue;
        }
        uint64_t bytes = 64 + (check_random(&random) % 8) * 8192 * (1 + check_random(&random) % 8);
        enum gm_status status = gm_slabs_get(churn->slabs, bytes, slab, NULL);
        if (status != GM_OK) {
            CHECK_EQ(status, GM_MEMORY_FULL);
            churn->refused++;
            continue;
        }
        churn->got++;
        uint64_t *words = slab->data;
        words[0] = words[slab->bytes / 8 - 1] = churn->seed;
        struct gm_slab_usage usage = gm_slabs_usage(churn->slabs);
        CHECK(usage.in_use + usage.idle <= churn->limit);
    }
    for (int i = 0; i < 4; i++)
        gm_slabs_put(churn->slabs, &held[i]);
    return NULL;
}

static void test_threads(void)
{
    enum { THREADS = 4 };
    const uint64_t limit = MIB;
    struct counter counter;
    struct gm_slabs *slabs = open_counted(&counter, limit);
    struct churn work[THREADS];
    pthread_t thread[THREADS];
    unsigned got = 0, refused = 0;

    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct churn){slabs, limit, check_seed() + (uint64_t)i + 1, 0, 0};
        CHECK_EQ(pthread_create(&thread[i], NULL, churn, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        got += work[i].got;
        refused += work[i].refused;
    }
    CHECK(got > 0 && refused > 0); /* both paths were walked */
    CHECK(counter.taken < got);    /* and slabs were reused */
    CHECK(counter.peak <= limit);
    CHECK_EQ(gm_slabs_usage(slabs).in_use, 0);
    gm_slabs_close(slabs);
    CHECK_EQ(counter.live, 0);
    CHECK_EQ(counter.taken, counter.given);
}

/* Two pools below one limit: what one keeps makes room for the other, from several threads too. */
static void test_shared_limit(void)
{
    enum { THREADS = 4 };
    const uint64_t limit = MIB;
    struct counter counter = {.limit = UINT64_MAX};
    struct gm_slab_source source = {counted_take, counted_give, &counter};
    struct gm_error err = {.detail = ""};
    struct gm_slab_limit *shared = NULL;
    struct gm_slabs *slabs[2] = {NULL, NULL};
    struct churn work[THREADS];
    pthread_t thread[THREADS];
    unsigned got = 0, refused = 0;

    pthread_mutex_init(&counter.lock, NULL);
    CHECK_STATUS(gm_slab_limit_open(limit, &shared, &err), GM_OK, &err);
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(gm_slabs_open_below(&source, shared, &slabs[i], &err), GM_OK, &err);

    /* One keeps more than half; the other needs more than the rest. */
    struct gm_slab a = get(slabs[0], MIB * 5 / 8), slab = {0};
    CHECK_STATUS(gm_slabs_get(slabs[1], MIB / 2, &slab, &err), GM_MEMORY_FULL, &err);
    gm_slabs_put(slabs[0], &a);
    CHECK(gm_slabs_usage(slabs[0]).idle > 0);
    CHECK_EQ(gm_slabs_usage(slabs[1]).idle, 0);
    slab = get(slabs[1], MIB / 2);
    CHECK_EQ(gm_slabs_usage(slabs[0]).idle, 0);
    CHECK(counter.peak <= limit);
    gm_slabs_put(slabs[1], &slab);

    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct churn){slabs[i % 2], limit, check_seed() + (uint64_t)i + 1, 0, 0};
        CHECK_EQ(pthread_create(&thread[i], NULL, churn, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        got += work[i].got;
        refused += work[i].refused;
    }
    CHECK(got > 0 && refused > 0);
    CHECK(counter.peak <= limit);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gm_slabs_usage(slabs[i]).in_use, 0);
        gm_slabs_close(slabs[i]);
    }
    gm_slab_limit_close(shared);
    CHECK_EQ(counter.live, 0);
}

int main(void)
{
    test_shared_limit();
    test_cost();
    test_plain_memory();
    test_reuse();
    test_limit();
    test_no_memory();
    test_threads();
    return check_report();
}
