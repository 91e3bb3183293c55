/* Admission by memory: reservations, and the allocations that are counted in them. */
#include "server/sched/memory_quota.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct gm_memory_quota quota;

/* An allocator that rounds up to hundreds and can be told to have nothing. */
static bool allocator_empty;

static uint64_t cost(void *context, uint64_t bytes)
{
    (void)context;
    return (bytes + 99) / 100 * 100;
}

static enum gm_status get(void *context, uint64_t bytes, struct gm_buffer *ret,
                          struct gm_error *err)
{
    if (allocator_empty)
        return gm_fail(err, GM_DEVICE_MEMORY, "the allocator is empty");
    *ret = (struct gm_buffer){malloc(bytes + 1), bytes, cost(context, bytes)};
    return GM_OK;
}

static void put(void *context, struct gm_buffer *buffer)
{
    (void)context;
    free(buffer->data);
    *buffer = (struct gm_buffer){0};
}

static const struct gm_backend backend = {
    .buffer_cost = cost, .buffer_get = get, .buffer_put = put};
static const struct gm_allocator allocator = {.backend = &backend};

static void open_quota(uint64_t limit)
{
    struct gm_error error;

    memset(&quota, 0, sizeof quota);
    CHECK_STATUS(gm_memory_quota_open(&quota, limit, &error), GM_OK, &error);
}

/* All has been given back, of every client. */
static void close_quota(void)
{
    static const struct gm_memory_quota nothing;

    CHECK_EQ(quota.reserved, 0);
    CHECK_EQ(quota.small, 0);
    CHECK(memcmp(quota.held, nothing.held, sizeof quota.held) == 0);
    gm_memory_quota_close(&quota);
}

static void test_reserve(void)
{
    struct gm_reservation a = {.quota = &quota}, b = {.quota = &quota, .client = 1};
    struct gm_error error;

    open_quota(1600);
    CHECK_STATUS(gm_reservation_raise(&a, 600, &error), GM_OK, &error);
    CHECK_STATUS(gm_reservation_raise(&a, 500, &error), GM_OK, &error); /* it only rises */
    CHECK_EQ(a.reserved, 600);
    CHECK_STATUS(gm_reservation_raise(&b, 1601, &error), GM_TOO_LARGE, NULL);
    CHECK(strstr(error.detail, "1601") && strstr(error.detail, "1600"));
    CHECK_STATUS(gm_reservation_raise(&b, UINT64_MAX, &error), GM_TOO_LARGE, NULL);
    CHECK_STATUS(gm_reservation_raise(&b, 901, &error), GM_MEMORY_FULL, NULL);
    CHECK(strstr(error.detail, "600 of 1500 bytes for requests that are not small"));
    CHECK_EQ(b.reserved, 0);
    CHECK_STATUS(gm_reservation_raise(&b, 720, &error), GM_OK, &error);
    CHECK_EQ(quota.reserved, 1320);
    gm_reservation_trim(&a, 700); /* not lower than it is */
    CHECK_EQ(a.reserved, 600);
    gm_reservation_trim(&a, 50);
    CHECK_EQ(a.reserved, 50);
    CHECK_EQ(quota.reserved, 770);
    gm_reservation_trim(&a, 0);
    gm_reservation_trim(&b, 0);
    close_quota();
}

/* Large requests leave a sixteenth to those that take an eighth of that at most. */
static void test_small(void)
{
    struct gm_reservation large = {.quota = &quota}, small[9] = {0}, all = {.quota = &quota};
    struct gm_error error;

    open_quota(1600); /* 100 for small ones, 12 for each */
    CHECK_STATUS(gm_reservation_raise(&large, 1500, &error), GM_OK, &error);
    for (int i = 0; i < 9; i++) {
        small[i].quota = &quota;
        small[i].client = 1 + (uint64_t)i;
        CHECK_STATUS(gm_reservation_raise(&small[i], 13, &error), GM_MEMORY_FULL, NULL);
        CHECK_STATUS(gm_reservation_raise(&small[i], 12, &error), i < 8 ? GM_OK : GM_MEMORY_FULL,
                     NULL);
    }
    CHECK(strstr(error.detail, "1596 of 1600 bytes for requests are in use"));
    /* One that grows is no longer small. */
    CHECK_STATUS(gm_reservation_raise(&small[0], 14, &error), GM_MEMORY_FULL, NULL);
    CHECK_EQ(small[0].reserved, 12);
    gm_reservation_trim(&large, 1000);
    CHECK_STATUS(gm_reservation_raise(&small[0], 14, &error), GM_OK, &error);
    /* What can only be had with the kept part is served where there is nothing else. */
    CHECK_STATUS(gm_reservation_raise(&all, 1501, &error), GM_MEMORY_FULL, NULL);
    for (int i = 0; i < 9; i++)
        gm_reservation_trim(&small[i], 0);
    gm_reservation_trim(&large, 0);
    CHECK_STATUS(gm_reservation_raise(&all, 1600, &error), GM_OK, &error);
    gm_reservation_trim(&all, 0);
    close_quota();
}

/* A small request reserves a whole step, so that the rest of it needs no lock, and gives it back;
 * but exactly what it needs where there is not so much. */
static void test_steps(void)
{
    const uint64_t limit = 2 * GM_SMALL_STEP * GM_SMALL_PART * GM_SMALL_MEMORY_PART;
    struct gm_reservation a = {.quota = &quota, .in_steps = true},
                          b = {.quota = &quota, .client = 1, .in_steps = true},
                          large = {.quota = &quota, .client = 2},
                          lasting = {.quota = &quota, .client = 3};
    struct gm_error error;

    open_quota(limit);
    CHECK_STATUS(gm_reservation_raise(&a, 100, &error), GM_OK, &error);
    CHECK_EQ(a.reserved, GM_SMALL_STEP);
    CHECK_EQ(a.spare, GM_SMALL_STEP - 100);
    CHECK_STATUS(gm_reservation_raise(&a, GM_SMALL_STEP, &error), GM_OK, &error);
    CHECK_EQ(a.reserved, GM_SMALL_STEP);
    CHECK_EQ(a.spare, 0);
    CHECK_STATUS(gm_reservation_raise(&a, GM_SMALL_STEP + 1, &error), GM_OK, &error);
    CHECK_EQ(a.reserved, 2 * GM_SMALL_STEP);
    CHECK_STATUS(
        gm_reservation_raise(&large, limit - limit / GM_SMALL_MEMORY_PART - a.reserved, &error),
        GM_OK, &error);
    CHECK_STATUS(gm_reservation_raise(&b, limit / GM_SMALL_MEMORY_PART / GM_SMALL_PART + 1, &error),
                 GM_MEMORY_FULL, NULL); /* not small, and there is no room */
    CHECK_EQ(b.reserved, 0);
    gm_reservation_trim(&large, limit / 2);
    CHECK_STATUS(gm_reservation_raise(&b, 3 * GM_SMALL_STEP - 7, &error), GM_OK, &error);
    CHECK_EQ(b.reserved, 3 * GM_SMALL_STEP - 7);
    CHECK_STATUS(gm_reservation_raise(&lasting, 100, &error), GM_OK, &error);
    CHECK_EQ(lasting.reserved, 100);
    gm_reservation_trim(&lasting, 0);
    gm_reservation_trim(&a, 0);
    gm_reservation_trim(&b, 0);
    gm_reservation_trim(&large, 0);
    close_quota();
}

/* Where a quota bounds what the client holds, or half of the memory is taken, nothing is reserved
 * that is not needed: else it would be refused to a request that fits. */
static void test_no_steps(void)
{
    struct gm_quota_limits limits;
    struct gm_reservation a = {.quota = &quota, .in_steps = true}, b = a,
                          free = {.quota = &quota, .client = 1, .in_steps = true},
                          large = {.quota = &quota, .client = 2};
    struct gm_quotas quotas = {0};
    struct gm_error error;

    CHECK_STATUS(gm_quota_read("memory=100000", strlen("memory=100000"), &limits, &error), GM_OK,
                 &error);
    CHECK_STATUS(gm_quotas_open(&quotas, &limits, &error), GM_OK, &error);
    quotas.by_address = true;
    open_quota((uint64_t)1 << 30);
    a.client_quota = b.client_quota = gm_quota_of_address(&quotas, 5);
    CHECK_STATUS(gm_reservation_raise(&a, 50000, &error), GM_OK, &error);
    CHECK_STATUS(gm_reservation_raise(&b, 50000, &error), GM_OK, &error);
    CHECK_EQ(a.reserved + b.reserved, 100000);
    CHECK_STATUS(gm_reservation_raise(&large, ((uint64_t)1 << 29) + 1, &error), GM_OK, &error);
    CHECK_STATUS(gm_reservation_raise(&free, 100, &error), GM_OK, &error);
    CHECK_EQ(free.reserved, 100);
    gm_reservation_trim(&a, 0);
    gm_reservation_trim(&b, 0);
    gm_reservation_trim(&free, 0);
    gm_reservation_trim(&large, 0);
    gm_quota_unref(a.client_quota);
    gm_quotas_close(&quotas);
    close_quota();
}

/* A client alone gets four fifths; what it leaves is there for others, who share it likewise. */
static void test_clients(void)
{
    struct gm_reservation loud[10], next = {.quota = &quota, .client = 2},
                                    huge = {.quota = &quota, .client = 3};
    struct gm_error error;

    open_quota(16000); /* 1000 for small ones, 125 for each; 15000 for others: 12000, 2400, ... */
    for (int i = 0; i < 10; i++) {
        loud[i] = (struct gm_reservation){.quota = &quota, .client = 1};
        CHECK_STATUS(gm_reservation_raise(&loud[i], 1500, &error), i < 8 ? GM_OK : GM_MEMORY_FULL,
                     NULL);
    }
    CHECK(strstr(error.detail, "of this client hold 12000 of the 16000 bytes"));
    CHECK(strstr(error.detail, "1500 more"));
    CHECK_STATUS(gm_reservation_raise(&loud[0], 1501, &error), GM_MEMORY_FULL,
                 NULL); /* nor by growing */
    CHECK_EQ(loud[0].reserved, 1500);
    CHECK_STATUS(gm_reservation_raise(&next, 2401, &error), GM_MEMORY_FULL, NULL);
    CHECK_STATUS(gm_reservation_raise(&next, 2400, &error), GM_OK, &error);
    /* Small ones find memory whatever their client's large ones hold, and leave some, too. */
    struct gm_reservation small[10];
    for (int i = 0; i < 10; i++) {
        small[i] = (struct gm_reservation){.quota = &quota, .client = i < 7 ? 1 : 2};
        CHECK_STATUS(gm_reservation_raise(&small[i], 125, &error),
                     i == 6 || i == 8 || i == 9 ? GM_MEMORY_FULL : GM_OK, NULL);
    }
    for (int i = 0; i < 10; i++)
        gm_reservation_trim(&small[i], 0);
    /* One larger than a share can be has it while others have next to nothing. */
    CHECK_STATUS(gm_reservation_raise(&huge, 12100, &error), GM_MEMORY_FULL, NULL);
    for (int i = 0; i < 10; i++)
        gm_reservation_trim(&loud[i], 0);
    CHECK_STATUS(gm_reservation_raise(&huge, 12100, &error), GM_MEMORY_FULL, NULL);
    gm_reservation_trim(&next, 1000);
    CHECK_STATUS(gm_reservation_raise(&huge, 12100, &error), GM_OK, &error);
    CHECK_STATUS(gm_reservation_raise(&huge, 14500, &error), GM_MEMORY_FULL, NULL); /* above 1000 */
    CHECK_STATUS(gm_reservation_raise(&huge, 14000, &error), GM_OK, NULL);
    gm_reservation_trim(&huge, 0);
    gm_reservation_trim(&next, 0);
    close_quota();
}

static void test_blocks(void)
{
    struct gm_reservation reservation = {.quota = &quota};
    struct gm_allocation x = {0}, y = {0}, z = {0};
    struct gm_error error;

    open_quota(1000); /* less 62 for small ones */
    CHECK_EQ(gm_allocation_cost(allocator, 101), 200);
    CHECK_STATUS(gm_reservation_raise(&reservation, 300, &error), GM_OK, &error);
    CHECK_STATUS(gm_allocation_make(&x, &reservation, allocator, 250, &error), GM_OK, &error);
    CHECK_EQ(reservation.used, 300);
    CHECK_EQ(reservation.reserved, 300); /* out of what was reserved */
    CHECK_STATUS(gm_allocation_make(&y, &reservation, allocator, 1, &error), GM_OK, &error);
    CHECK_EQ(quota.reserved, 400);
    CHECK_STATUS(gm_allocation_make(&z, &reservation, allocator, 601, &error), GM_TOO_LARGE, NULL);
    CHECK(z.backend == NULL);
    CHECK_STATUS(gm_reservation_raise(&reservation, 250, &error), GM_OK, &error);
    CHECK_EQ(reservation.reserved, 650);
    /* An allocator that fails leaves the reservation to be trimmed, and no allocation. */
    allocator_empty = true;
    CHECK_STATUS(gm_allocation_make(&z, &reservation, allocator, 10, &error), GM_DEVICE_MEMORY,
                 NULL);
    allocator_empty = false;
    CHECK_EQ(reservation.used, 400);
    gm_allocation_free(&x, &reservation);
    CHECK(x.backend == NULL && x.buffer.data == NULL);
    CHECK_EQ(reservation.used, 100);
    CHECK_EQ(reservation.reserved, 350);
    gm_allocation_free(&x, &reservation); /* an empty one */
    gm_allocation_free(&y, &reservation);
    gm_reservation_trim(&reservation, 0);
    CHECK_EQ(reservation.used, 0);
    close_quota();
}

static void *grab(void *cls)
{
    uint64_t *most = cls;

    for (int i = 0; i < 20000; i++) {
        struct gm_reservation reservation = {.quota = &quota};
        struct gm_error error;
        if (gm_reservation_raise(&reservation, 300, &error) == GM_OK) {
            uint64_t reserved = quota.reserved;
            if (reserved > *most)
                *most = reserved;
        }
        gm_reservation_trim(&reservation, 0);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread[4];
    uint64_t most[4] = {0};

    open_quota(1000);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, grab, &most[i]) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK(most[i] > 0 && most[i] <= 1000);
    }
    close_quota();
}

struct mix {
    uint64_t bytes, client;
    unsigned granted, exceeded;
};

static void *mix(void *cls)
{
    struct mix *m = cls;

    for (int i = 0; i < 20000; i++) {
        struct gm_reservation x = {.quota = &quota, .client = m->client, .in_steps = true};
        struct gm_error error;
        m->granted += gm_reservation_raise(&x, m->bytes, &error) == GM_OK && x.reserved >= m->bytes;
        m->exceeded += quota.reserved > quota.limit;
        gm_reservation_trim(&x, 0);
    }
    return NULL;
}

/* Small requests, which take no mutex while half of the limit is free, beside large ones, which
 * take all that the small ones leave. */
static void test_small_beside_large(void)
{
    const uint64_t limit = 2 * GM_SMALL_STEP * GM_SMALL_PART * GM_SMALL_MEMORY_PART;
    const uint64_t large = limit / 2 - limit / GM_SMALL_MEMORY_PART / 2;
    struct mix m[4] = {{.bytes = 100},
                       {.bytes = GM_SMALL_STEP + 1, .client = 1},
                       {.bytes = large, .client = 2},
                       {.bytes = large, .client = 3}};
    pthread_t thread[4];

    open_quota(limit);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, mix, &m[i]) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK(m[i].granted > 0);
        CHECK_EQ(m[i].exceeded, 0);
    }
    close_quota();
}

struct holder {
    struct gm_quota *quota;
    uint64_t bytes;
    unsigned granted;
};

static void *hold(void *cls)
{
    struct holder *h = cls;

    for (int i = 0; i < 20000; i++) {
        struct gm_reservation x = {.quota = &quota, .client_quota = h->quota, .in_steps = true};
        struct gm_error error;
        h->granted += gm_reservation_raise(&x, h->bytes, &error) == GM_OK;
        gm_reservation_trim(&x, 0);
    }
    return NULL;
}

/* Of one key, whose limit comes and goes meanwhile: nothing is held at the end. */
static void test_client_quota_by_threads(void)
{
    struct gm_quota_limits none, some;
    struct gm_quotas quotas = {0};
    struct holder h[4];
    pthread_t thread[4];
    struct gm_error error;

    CHECK_STATUS(gm_quota_read("", 0, &none, &error), GM_OK, &error);
    CHECK_STATUS(gm_quota_read("memory=1000", strlen("memory=1000"), &some, &error), GM_OK, &error);
    CHECK_STATUS(gm_quotas_open(&quotas, &none, &error), GM_OK, &error);
    struct gm_quota *of_all = gm_quota_of_key(&quotas);
    open_quota((uint64_t)1 << 30);
    for (unsigned i = 0; i < 4; i++) {
        h[i] = (struct holder){.quota = of_all, .bytes = i < 3 ? 600 : GM_SMALL_STEP + 1};
        CHECK(pthread_create(&thread[i], NULL, hold, &h[i]) == 0);
    }
    for (int i = 0; i < 2000; i++)
        gm_quota_set(of_all, "key", i % 2 == 0 ? &some : &none);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK(h[i].granted > 0);
    }
    CHECK_EQ(of_all->memory, 0);
    gm_quota_unref(of_all);
    gm_quotas_close(&quotas);
    close_quota();
}

int main(void)
{
    test_reserve();
    test_small();
    test_steps();
    test_no_steps();
    test_clients();
    test_blocks();
    test_threads();
    test_small_beside_large();
    test_client_quota_by_threads();
    return check_report();
}
