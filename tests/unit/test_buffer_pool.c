/* test_buffer_pool.c - the buffer pool: sizes, reuse, the limit, and threads. */
#include "check.h"
#include "kernels/buffer_pool.h"

#include <pthread.h>
#include <sched.h>

#define MIB ((uint64_t)1 << 20)

/* An allocator that counts, and can refuse. */
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

static struct gm_buffer_pool *open_counted(struct counter *counter, uint64_t limit)
{
    struct gm_buffer_allocator allocator = {counted_take, counted_give, counter};
    struct gm_buffer_pool *buffers = NULL;
    struct gm_error err = {.detail = ""};

    *counter = (struct counter){.limit = UINT64_MAX};
    pthread_mutex_init(&counter->lock, NULL);
    CHECK_STATUS(gm_buffer_pool_open(&allocator, limit, &buffers, &err), GM_OK, &err);
    return buffers;
}

static struct gm_buffer get(struct gm_buffer_pool *buffers, uint64_t bytes)
{
    struct gm_error err = {.detail = ""};
    struct gm_buffer buffer = {0};

    CHECK_STATUS(gm_buffer_pool_get(buffers, bytes, &buffer, &err), GM_OK, &err);
    CHECK(buffer.data != NULL && (uintptr_t)buffer.data % 64 == 0);
    CHECK_EQ(buffer.bytes, bytes);
    CHECK_EQ(buffer.capacity, gm_buffer_pool_cost(bytes));
    return buffer;
}

static void test_cost(void)
{
    uint64_t before = 0, random = check_seed();

    for (uint64_t bytes = 0; bytes < 70000; bytes++) {
        uint64_t cost = gm_buffer_pool_cost(bytes), needed = bytes + GM_TEXT_PADDING;
        if (!CHECK(cost >= needed && cost >= before && cost % 64 == 0) ||
            !CHECK(cost <= 256 + GM_TEXT_PADDING || cost < needed + needed / 16 + 64))
            fprintf(stderr, "  %llu bytes: %llu\n", (unsigned long long)bytes,
                    (unsigned long long)cost);
        before = cost;
    }
    for (int i = 0; i < 10000; i++) {
        uint64_t bytes = check_random(&random) >> (2 + check_random(&random) % 50);
        uint64_t cost = gm_buffer_pool_cost(bytes), needed = bytes + GM_TEXT_PADDING;
        CHECK(cost >= needed);
        CHECK(cost - needed <= (bytes < 256 ? 256 : bytes / 16 + 64 + (bytes < MIB ? 0 : 4096)));
    }
    /* The most frequent sizes are not pushed into the class above. */
    for (int i = 8; i < 62; i++)
        CHECK(gm_buffer_pool_cost((uint64_t)1 << i) <= ((uint64_t)1 << i) + 4096);
    CHECK(gm_buffer_pool_cost(UINT64_MAX) == UINT64_MAX);
    CHECK(gm_buffer_pool_cost(UINT64_MAX - GM_TEXT_PADDING) == UINT64_MAX);
    CHECK(gm_buffer_pool_cost((uint64_t)1 << 62) > (uint64_t)1 << 62);
}

static void test_plain_memory(void)
{
    const uint64_t sizes[] = {0, 1, 63, 64, 4096, 100000, 2 * MIB, 5 * MIB + 1, 40 * MIB};
    struct gm_buffer_pool *buffers = NULL;
    struct gm_error err;

    CHECK_EQ(gm_buffer_pool_open(&gm_buffer_plain, 256 * MIB, &buffers, &err), GM_OK);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct gm_buffer buffer = get(buffers, sizes[i]);
            memset(buffer.data, 1 + (int)i, sizes[i] + GM_TEXT_PADDING);
            if (sizes[i] >= GM_BUFFER_HUGE_PAGE)
                CHECK((uintptr_t)buffer.data % GM_BUFFER_HUGE_PAGE == 0);
            gm_buffer_pool_put(buffers, &buffer);
            CHECK(buffer.data == NULL && buffer.bytes == 0 && buffer.capacity == 0);
            gm_buffer_pool_put(buffers, &buffer); /* an empty one is fine */
        }
    }
    CHECK_EQ(gm_buffer_pool_usage(buffers).in_use, 0);
    gm_buffer_pool_close(buffers);
    gm_buffer_pool_close(NULL);
    CHECK(gm_buffer_plain.take(gm_buffer_plain.cls, SIZE_MAX - 1) == NULL); /* with its rounding */
}

static void test_reuse(void)
{
    struct counter counter;
    struct gm_buffer_pool *buffers = open_counted(&counter, 64 * MIB);
    struct gm_buffer a = get(buffers, MIB), b = get(buffers, MIB);
    void *first = a.data, *second = b.data;

    CHECK(first != second);
    CHECK_EQ(gm_buffer_pool_usage(buffers).in_use, 2 * gm_buffer_pool_cost(MIB));
    gm_buffer_pool_put(buffers, &a);
    gm_buffer_pool_put(buffers, &b);
    CHECK_EQ(gm_buffer_pool_usage(buffers).in_use, 0);
    CHECK_EQ(gm_buffer_pool_usage(buffers).idle, 2 * gm_buffer_pool_cost(MIB));

    a = get(buffers, MIB - 100); /* same class: the one put back last */
    CHECK(a.data == second);
    b = get(buffers, MIB);
    CHECK(b.data == first);
    struct gm_buffer c = get(buffers, 3 * MIB); /* another class */
    CHECK_EQ(counter.taken, 3);
    CHECK_EQ(counter.given, 0);
    gm_buffer_pool_put(buffers, &a);
    gm_buffer_pool_put(buffers, &b);
    gm_buffer_pool_put(buffers, &c);
    gm_buffer_pool_close(buffers);
    CHECK_EQ(counter.live, 0);
    CHECK_EQ(counter.given, 3);
}

/* Small buffers of a size that nobody asks for any more make room for those that are in use: after
 * a burst of one size, another's are found again without the lock's list. */
static void test_changing_sizes(void)
{
    struct counter counter;
    struct gm_buffer_pool *buffers = open_counted(&counter, 64 * MIB);
    struct gm_buffer burst[40];

    for (int i = 0; i < 40; i++)
        burst[i] = get(buffers, 4096);
    for (int i = 0; i < 40; i++)
        gm_buffer_pool_put(buffers, &burst[i]);
    for (int i = 0; i < 100; i++) {
        struct gm_buffer other = get(buffers, 16384);
        gm_buffer_pool_put(buffers, &other);
    }
    CHECK_EQ(counter.taken, 41);
    CHECK_EQ(counter.given, 0);
    CHECK_EQ(gm_buffer_pool_usage(buffers).in_use, 0);
    CHECK_EQ(gm_buffer_pool_usage(buffers).idle,
             40 * gm_buffer_pool_cost(4096) + gm_buffer_pool_cost(16384));
    gm_buffer_pool_close(buffers);
    CHECK_EQ(counter.live, 0);
}

/* More small buffers at once than a magazine holds, of two sizes, again and again: each is found
 * again, and counted once. */
static void test_many(void)
{
    const uint64_t sizes[] = {16384, 100000};
    struct counter counter;
    struct gm_buffer_pool *buffers = open_counted(&counter, 64 * MIB);
    struct gm_buffer many[300];
    uint64_t all = 0;

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 300; i++)
            many[i] = get(buffers, sizes[i % 2]);
        all = 150 * (gm_buffer_pool_cost(sizes[0]) + gm_buffer_pool_cost(sizes[1]));
        CHECK_EQ(gm_buffer_pool_usage(buffers).in_use, all);
        CHECK_EQ(gm_buffer_pool_usage(buffers).idle, 0);
        for (int i = 0; i < 300; i++)
            gm_buffer_pool_put(buffers, &many[round % 2 ? i : 299 - i]);
        CHECK_EQ(gm_buffer_pool_usage(buffers).in_use, 0);
        CHECK_EQ(gm_buffer_pool_usage(buffers).idle, all);
    }
    CHECK_EQ(counter.taken, 300);
    CHECK_EQ(counter.given, 0);
    gm_buffer_pool_close(buffers);
    CHECK_EQ(counter.live, 0);
}

/* Of many small buffers only one is asked for, now and then: the others grow old beside it. */
static void test_others_grow_old(void)
{
    struct counter counter = {.limit = UINT64_MAX};
    struct gm_buffer_allocator allocator = {counted_take, counted_give, &counter};
    struct gm_buffer_limit *limit = NULL;
    struct gm_buffer_pool *buffers = NULL;
    struct gm_buffer many[32];
    struct gm_error err;

    pthread_mutex_init(&counter.lock, NULL);
    CHECK_EQ(gm_buffer_limit_open(64 * MIB, &limit, &err), GM_OK);
    CHECK_EQ(gm_buffer_pool_open_below(&allocator, limit, &buffers, &err), GM_OK);
    gm_buffer_limit_trim(limit, 0, 60);
    for (int i = 0; i < 32; i++)
        many[i] = get(buffers, 16384);
    for (int i = 0; i < 32; i++)
        gm_buffer_pool_put(buffers, &many[i]);
    for (int64_t now = 1; now <= 70; now++) {
        many[0] = get(buffers, 16384);
        gm_buffer_pool_put(buffers, &many[0]);
        gm_buffer_limit_trim(limit, now, 60);
    }
    CHECK_EQ(counter.taken, 32);
    CHECK_EQ(counter.given, 31);
    gm_buffer_pool_close(buffers);
    gm_buffer_limit_close(limit);
    CHECK_EQ(counter.live, 0);
}

static void test_limit(void)
{
    uint64_t one = gm_buffer_pool_cost(MIB), two = gm_buffer_pool_cost(2 * MIB);
    struct counter counter;
    struct gm_buffer_pool *buffers = open_counted(&counter, 2 * one + two);
    struct gm_error err = {.detail = ""};
    struct gm_buffer buffer = {0}, untouched = {0};

    /* More than there will ever be; more than there is now. */
    CHECK_STATUS(gm_buffer_pool_get(buffers, 100 * MIB, &buffer, &err), GM_TOO_LARGE, &err);
    CHECK(strstr(err.detail, "104857600") != NULL);
    CHECK_STATUS(gm_buffer_pool_get(buffers, UINT64_MAX, &buffer, &err), GM_TOO_LARGE, &err);
    struct gm_buffer a = get(buffers, MIB), b = get(buffers, MIB), c = get(buffers, 2 * MIB);
    CHECK_STATUS(gm_buffer_pool_get(buffers, 1, &buffer, &err), GM_MEMORY_FULL, &err);
    CHECK(memcmp(&buffer, &untouched, sizeof(buffer)) == 0);

    /* Idle buffers make room, the oldest first. */
    void *oldest = c.data;
    gm_buffer_pool_put(buffers, &c);
    gm_buffer_pool_put(buffers, &a);
    buffer = get(buffers, 3 * MIB / 2);
    CHECK(counter.last_given == oldest);
    CHECK_EQ(counter.given, 1);
    CHECK(counter.peak <= 2 * one + two);
    CHECK(gm_buffer_pool_usage(buffers).in_use + gm_buffer_pool_usage(buffers).idle <=
          2 * one + two);
    gm_buffer_pool_put(buffers, &buffer);

    /* As many of them as it takes. */
    gm_buffer_pool_put(buffers, &b);
    buffer = get(buffers, 3 * MIB);
    CHECK(counter.peak <= 2 * one + two);
    gm_buffer_pool_put(buffers, &buffer);
    gm_buffer_pool_close(buffers);
    CHECK_EQ(counter.live, 0);
}

/* The system's refusal: what is idle goes back to it, then it is told. */
static void test_no_memory(void)
{
    struct counter counter;
    struct gm_buffer_pool *buffers = open_counted(&counter, 64 * MIB);
    struct gm_error err = {.detail = ""};
    struct gm_buffer a = get(buffers, MIB), b = get(buffers, 2 * MIB), buffer = {0};

    gm_buffer_pool_put(buffers, &a);
    counter.limit = gm_buffer_pool_cost(2 * MIB) + gm_buffer_pool_cost(3 * MIB / 2);
    buffer = get(buffers, 3 * MIB / 2);
    CHECK_EQ(counter.given, 1);
    gm_buffer_pool_put(buffers, &buffer);
    CHECK_STATUS(gm_buffer_pool_get(buffers, 8 * MIB, &buffer, &err), GM_MEMORY_FULL, &err);
    CHECK(strstr(err.detail, "system has no memory") != NULL);
    CHECK_EQ(gm_buffer_pool_usage(buffers).in_use, gm_buffer_pool_cost(2 * MIB));
    CHECK_EQ(gm_buffer_pool_usage(buffers).idle, 0);
    gm_buffer_pool_put(buffers, &b);
    gm_buffer_pool_close(buffers);
    CHECK_EQ(counter.live, 0);
}

struct churn {
    struct gm_buffer_pool *buffers;
    uint64_t limit, seed;
    unsigned got, refused;
};

/* Takes and puts back at random, and finds in each buffer what it wrote there. */
static void *churn(void *cls)
{
    struct churn *churn = cls;
    struct gm_buffer held[4] = {0};
    uint64_t random = churn->seed;

    for (int i = 0; i < 3000; i++) {
        struct gm_buffer *buffer = &held[check_random(&random) % 4];
        if (buffer->data) {
            const uint64_t *words = buffer->data;
            CHECK(words[0] == churn->seed && words[buffer->bytes / 8 - 1] == churn->seed);
            gm_buffer_pool_put(churn->buffers, buffer);
            continue;
        }
        uint64_t bytes = 64 + (check_random(&random) % 8) * 8192 * (1 + check_random(&random) % 8);
        enum gm_status status = gm_buffer_pool_get(churn->buffers, bytes, buffer, NULL);
        if (status != GM_OK) {
            CHECK_EQ(status, GM_MEMORY_FULL);
            churn->refused++;
            continue;
        }
        churn->got++;
        uint64_t *words = buffer->data;
        words[0] = words[buffer->bytes / 8 - 1] = churn->seed;
        struct gm_buffer_usage usage = gm_buffer_pool_usage(churn->buffers);
        CHECK(usage.in_use <= churn->limit && usage.idle <= churn->limit);
        CHECK(usage.in_use + usage.idle <= churn->limit);
    }
    for (int i = 0; i < 4; i++)
        gm_buffer_pool_put(churn->buffers, &held[i]);
    return NULL;
}

/* Small buffers of two sizes in turns, on one processor: they go through its magazine. */
static void *small_ones(void *cls)
{
    const uint64_t sizes[] = {16384, 20480};
    struct gm_buffer held[70];

    check_stay();
    for (int i = 0; i < (CHECK_SANITIZED ? 500 : 5000); i++) {
        for (int j = 0; j < 70; j++)
            held[j] = get(cls, sizes[i % 2]);
        for (int j = 0; j < 70; j++)
            gm_buffer_pool_put(cls, &held[j]);
    }
    return NULL;
}

/* Two threads that need no more than the limit together: what one has put back is never in the way
 * of the other, wherever it is just then. */
static void test_room_for_both(void)
{
    struct counter counter;
    struct gm_buffer_pool *buffers = open_counted(&counter, 70 * gm_buffer_pool_cost(20480) +
                                                                gm_buffer_pool_cost(20 * MIB / 16));
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, small_ones, buffers), 0);
    for (int i = 0; i < (CHECK_SANITIZED ? 5000 : 50000);
         i++) { /* of two sizes: it needs room for each anew */
        struct gm_buffer large = get(buffers, (19 + i % 2) * MIB / 16);
        gm_buffer_pool_put(buffers, &large);
    }
    pthread_join(thread, NULL);
    gm_buffer_pool_close(buffers);
    CHECK_EQ(counter.live, 0);
}

static void test_threads(void)
{
    enum { THREADS = 4 };
    const uint64_t limit = MIB;
    struct counter counter;
    struct gm_buffer_pool *buffers = open_counted(&counter, limit);
    struct churn work[THREADS];
    pthread_t thread[THREADS];
    unsigned got = 0, refused = 0;

    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct churn){buffers, limit, check_seed() + (uint64_t)i + 1, 0, 0};
        CHECK_EQ(pthread_create(&thread[i], NULL, churn, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        got += work[i].got;
        refused += work[i].refused;
    }
    CHECK(got > 0 && refused > 0); /* both paths were walked */
    CHECK(counter.taken < got);    /* and buffers were reused */
    CHECK(counter.peak <= limit);
    CHECK_EQ(gm_buffer_pool_usage(buffers).in_use, 0);
    gm_buffer_pool_close(buffers);
    CHECK_EQ(counter.live, 0);
    CHECK_EQ(counter.taken, counter.given);
}

/* Two pools below one limit: what one keeps makes room for the other, from several threads too. */
static void test_shared_limit(void)
{
    enum { THREADS = 4 };
    const uint64_t limit = MIB;
    struct counter counter = {.limit = UINT64_MAX};
    struct gm_buffer_allocator allocator = {counted_take, counted_give, &counter};
    struct gm_error err = {.detail = ""};
    struct gm_buffer_limit *shared = NULL;
    struct gm_buffer_pool *buffers[2] = {NULL, NULL};
    struct churn work[THREADS];
    pthread_t thread[THREADS];
    unsigned got = 0, refused = 0;

    pthread_mutex_init(&counter.lock, NULL);
    CHECK_STATUS(gm_buffer_limit_open(limit, &shared, &err), GM_OK, &err);
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(gm_buffer_pool_open_below(&allocator, shared, &buffers[i], &err), GM_OK, &err);

    /* One keeps more than half; the other needs more than the rest. */
    struct gm_buffer a = get(buffers[0], MIB * 5 / 8), buffer = {0};
    CHECK_STATUS(gm_buffer_pool_get(buffers[1], MIB / 2, &buffer, &err), GM_MEMORY_FULL, &err);
    gm_buffer_pool_put(buffers[0], &a);
    CHECK(gm_buffer_pool_usage(buffers[0]).idle > 0);
    CHECK_EQ(gm_buffer_pool_usage(buffers[1]).idle, 0);
    buffer = get(buffers[1], MIB / 2);
    CHECK_EQ(gm_buffer_pool_usage(buffers[0]).idle, 0);
    CHECK(counter.peak <= limit);
    gm_buffer_pool_put(buffers[1], &buffer);

    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct churn){buffers[i % 2], limit, check_seed() + (uint64_t)i + 1, 0, 0};
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
        CHECK_EQ(gm_buffer_pool_usage(buffers[i]).in_use, 0);
        gm_buffer_pool_close(buffers[i]);
    }
    gm_buffer_limit_close(shared);
    CHECK_EQ(counter.live, 0);
}

/* What nobody asks for again is given back, by the caller's clock; what is used meanwhile stays. */
static void test_trim(void)
{
    enum { MINUTE = 60 };
    struct gm_buffer_allocator allocator = {counted_take, counted_give, NULL};
    struct gm_buffer_limit *limit = NULL;
    struct gm_buffer_pool *buffers[2];
    struct counter counter = {.limit = UINT64_MAX};
    struct gm_error err;

    pthread_mutex_init(&counter.lock, NULL);
    allocator.cls = &counter;
    CHECK_EQ(gm_buffer_limit_open(64 * MIB, &limit, &err), GM_OK);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(gm_buffer_pool_open_below(&allocator, limit, &buffers[i], &err), GM_OK);
    CHECK_EQ(gm_buffer_limit_trim(limit, 1000, MINUTE), 0); /* sets the clock */
    struct gm_buffer a = get(buffers[0], MIB), b = get(buffers[1], 2 * MIB),
                     c = get(buffers[0], 3 * MIB);
    gm_buffer_pool_put(buffers[0], &a);
    gm_buffer_pool_put(buffers[1], &b);
    CHECK_EQ(gm_buffer_limit_usage(limit).idle,
             gm_buffer_pool_cost(MIB) + gm_buffer_pool_cost(2 * MIB));
    CHECK_EQ(gm_buffer_limit_usage(limit).in_use, gm_buffer_pool_cost(3 * MIB));
    CHECK_EQ(gm_buffer_limit_usage(limit).limit, 64 * MIB);
    CHECK_EQ(gm_buffer_limit_trim(limit, 1030, MINUTE), 0);
    b = get(buffers[1], 2 * MIB); /* it is wanted: its minute begins anew */
    gm_buffer_pool_put(buffers[1], &b);
    gm_buffer_pool_put(buffers[0], &c);
    CHECK_EQ(gm_buffer_limit_trim(limit, 1059, MINUTE), 0);
    CHECK_EQ(counter.given, 0);
    CHECK_EQ(gm_buffer_limit_trim(limit, 1060, MINUTE), gm_buffer_pool_cost(MIB));
    CHECK_EQ(counter.given, 1);
    CHECK_EQ(gm_buffer_limit_trim(limit, 1090, MINUTE),
             gm_buffer_pool_cost(2 * MIB) + gm_buffer_pool_cost(3 * MIB));
    CHECK_EQ(gm_buffer_limit_usage(limit).idle, 0);
    CHECK_EQ(counter.live, 0);
    for (int i = 0; i < 2; i++)
        gm_buffer_pool_close(buffers[i]);
    gm_buffer_limit_close(limit);
}

int main(void)
{
    cpu_set_t before;

    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    test_trim();
    test_shared_limit();
    test_cost();
    test_plain_memory();
    test_reuse();
    check_stay();
    test_changing_sizes();
    test_many();
    test_others_grow_old();
    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    test_limit();
    test_no_memory();
    test_room_for_both();
    test_threads();
    return check_report();
}
