/*
 * buffer_pool.c - keeps idle buffers by size class, below one limit that several pools may share.
 *
 * An idle buffer is in two lists, whose links are in its own first bytes: the list of its class
 * gives out the newest first, which is likely to be in a cache; the list by age releases the oldest
 * first.
 *
 *   in_use + idle + leaving <= limit, whenever the lock is free.
 *
 * Memory is allocated and released without the lock, because unmapping a large buffer takes
 * milliseconds. Until then the buffer counts as `leaving`, and a thread that needs the room waits.
 *
 * Source of the magazines: J. Bonwick and J. Adams, "Magazines and Vmem" (USENIX, 2001).
 */
#include "buffer_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define HIDE(p, bytes) ASAN_POISON_MEMORY_REGION(p, bytes)
#define SHOW(p, bytes) ASAN_UNPOISON_MEMORY_REGION(p, bytes)
#else
#define HIDE(p, bytes) ((void)(p), (void)(bytes))
#define SHOW(p, bytes) ((void)(p), (void)(bytes))
#endif

/* Sizes are rounded up to one of 16 steps an octave. So a buffer wastes at most 1/16, and fits the
 * next request of about its size. The padding is added on top, because matrices often have 2^n
 * bytes. */
#define BUFFER_ALIGNMENT 64u
#define CLASS_MIN 256u
#define STEPS_LOG2 4 /* steps per octave: fewer waste more, more are reused less */
#define CLASSES (64u << STEPS_LOG2)

#define MAGAZINES 16u
/* Of twenty requests: operands, result and text. A thread takes buffers for all that wait for a
 * device, and then gives them back. */
#define MAGAZINE_BUFFERS 64u
#define MAGAZINE_BYTES ((uint64_t)2 << 20)
/* Of a buffer: larger ones take longer to fill. */
#define MAGAZINE_BUFFER_MAX ((uint64_t)128 << 10)

_Static_assert(GM_TEXT_PADDING % BUFFER_ALIGNMENT == 0, "aligned_alloc takes whole multiples");

struct idle_buffer {
    LIST_ENTRY(idle_buffer) of_class;
    TAILQ_ENTRY(idle_buffer) by_age;
    uint64_t capacity;
    int64_t since_ns;
};

_Static_assert(sizeof(struct idle_buffer) <= CLASS_MIN, "the links lie in the idle buffer");

struct gm_buffer_limit {
    uint64_t bytes;

    pthread_mutex_t lock; /* of all below, and of the pools' lists */
    pthread_cond_t left;  /* `leaving` has shrunk */
    uint64_t in_use, idle, leaving;
    int64_t now_ns; /* of the last trim */
    LIST_HEAD(, gm_buffer_pool) pools;
};

/* Small buffers with a lock of their own, in front of the lists, for each of some processors: the
 * threads that serve small requests do not wait for each other. A full one moves half to the lists,
 * and an empty one is filled from them up to half, so that the limit's lock is seldom asked for.
 * Buffers here count as in use above, and as idle in what usage() says. A thread that needs room
 * empties the magazines first. */
struct magazine {
    _Alignas(64) pthread_mutex_t lock; /* may be taken after the limit's lock */
    unsigned count;
    unsigned refill; /* buffers to take from a list at a time; 0 when it was emptied */
    uint64_t bytes;  /* of all */
    struct held {
        struct idle_buffer *buffer; /* its memory is not touched here */
        uint64_t capacity;
    } held[MAGAZINE_BUFFERS]; /* the oldest first */
};

struct gm_buffer_pool {
    struct gm_buffer_allocator allocator;
    struct gm_buffer_limit *limit;
    bool owns_limit;
    LIST_ENTRY(gm_buffer_pool) link; /* below the same limit */
    uint64_t in_use, idle;           /* its part */
    LIST_HEAD(, idle_buffer) class[CLASSES];
    TAILQ_HEAD(, idle_buffer) idle_buffers; /* oldest first */
    struct magazine magazine[MAGAZINES];
};

/* What is unmapped is whole pages: 4 KiB, but 64 on some machines. */
static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Large buffers are aligned to huge pages and request them: faults by 2 MiB instead of 4 KiB. */
static void *plain_take(void *cls, uint64_t bytes)
{
    (void)cls;
    if (bytes > SIZE_MAX - GM_BUFFER_HUGE_PAGE)
        return NULL;
    if (bytes < GM_BUFFER_HUGE_PAGE)
        return aligned_alloc(BUFFER_ALIGNMENT, bytes);

    char *map = mmap(NULL, bytes + GM_BUFFER_HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    uint64_t before = -(uintptr_t)map & (GM_BUFFER_HUGE_PAGE - 1);
    if (before > 0)
        munmap(map, before);
    munmap(map + before + bytes, GM_BUFFER_HUGE_PAGE - before);
    madvise(map + before, bytes, MADV_HUGEPAGE); /* only advice: without huge pages it is slower */
    return map + before;
}

static void plain_give(void *cls, void *data, uint64_t bytes)
{
    (void)cls;
    if (bytes < GM_BUFFER_HUGE_PAGE)
        free(data);
    else
        munmap(data, bytes);
}

const struct gm_buffer_allocator gm_buffer_plain = {plain_take, plain_give, NULL};

/* Bytes beyond the size class: the padding and, for mapped memory, the rest of its page. */
static uint64_t beyond(uint64_t class_bytes)
{
    return class_bytes < GM_BUFFER_HUGE_PAGE ? GM_TEXT_PADDING : page_bytes();
}

uint64_t gm_buffer_pool_cost(uint64_t bytes)
{
    uint64_t class_bytes = CLASS_MIN, cost;

    if (bytes > CLASS_MIN) {
        /* 2^octave <= bytes: the step is 2^octave / 16. */
        uint64_t step = (uint64_t)1 << (63 - __builtin_clzll(bytes) - STEPS_LOG2);
        if (step < BUFFER_ALIGNMENT)
            step = BUFFER_ALIGNMENT;
        if (!gm_size_add(bytes, step - 1, &class_bytes))
            return UINT64_MAX;
        class_bytes &= ~(step - 1);
    }
    return gm_size_add(class_bytes, beyond(class_bytes), &cost) ? cost : UINT64_MAX;
}

/* One class for each capacity that gm_buffer_pool_cost can return. */
static unsigned class_of(uint64_t capacity)
{
    uint64_t class_bytes =
        capacity - (capacity < GM_BUFFER_HUGE_PAGE ? GM_TEXT_PADDING : page_bytes());
    unsigned octave = 63 - (unsigned)__builtin_clzll(class_bytes);
    unsigned step = (unsigned)(class_bytes >> (octave - STEPS_LOG2)) & ((1u << STEPS_LOG2) - 1);

    return octave << STEPS_LOG2 | step;
}

/* Counts a change of what is in use. `more` may be a negated number: unsigned sums wrap around. */
static void count_in_use(struct gm_buffer_pool *pool, uint64_t more)
{
    pool->limit->in_use += more;
    pool->in_use += more;
}

/* Lists a buffer as idle that was in use. */
static void link_idle(struct gm_buffer_pool *pool, struct idle_buffer *buffer, uint64_t capacity)
{
    count_in_use(pool, -capacity);
    buffer->capacity = capacity;
    LIST_INSERT_HEAD(&pool->class[class_of(capacity)], buffer, of_class);
    buffer->since_ns = pool->limit->now_ns;
    TAILQ_INSERT_TAIL(&pool->idle_buffers, buffer, by_age);
    pool->idle += buffer->capacity;
    pool->limit->idle += buffer->capacity;
}

static void unlink_idle(struct gm_buffer_pool *pool, struct idle_buffer *buffer)
{
    LIST_REMOVE(buffer, of_class);
    TAILQ_REMOVE(&pool->idle_buffers, buffer, by_age);
    pool->idle -= buffer->capacity;
    pool->limit->idle -= buffer->capacity;
}

/* The magazine of the processor that the thread runs on; NULL for buffers that are too large. */
static struct magazine *magazine_of(struct gm_buffer_pool *pool, uint64_t capacity)
{
    int processor = sched_getcpu();

    return capacity <= MAGAZINE_BUFFER_MAX
               ? &pool->magazine[processor > 0 ? (unsigned)processor % MAGAZINES : 0]
               : NULL;
}

/* A buffer of exactly this capacity, the last one put back; NULL if there is none. */
static struct idle_buffer *take_from(struct magazine *magazine, uint64_t capacity)
{
    struct idle_buffer *found = NULL;

    pthread_mutex_lock(&magazine->lock);
    for (unsigned i = magazine->count; i-- > 0;) {
        if (magazine->held[i].capacity != capacity)
            continue;
        found = magazine->held[i].buffer;
        magazine->count--;
        magazine->bytes -= capacity;
        memmove(&magazine->held[i], &magazine->held[i + 1],
                (magazine->count - i) * sizeof magazine->held[0]);
        break;
    }
    pthread_mutex_unlock(&magazine->lock);
    return found;
}

static void push(struct magazine *magazine, struct idle_buffer *buffer, uint64_t capacity)
{
    magazine->held[magazine->count++] = (struct held){buffer, capacity};
    magazine->bytes += capacity;
}

static bool is_full(const struct magazine *magazine, uint64_t capacity)
{
    return magazine->count == MAGAZINE_BUFFERS || magazine->bytes + capacity > MAGAZINE_BYTES;
}

/* Moves the older half to the lists: nobody may ask for such sizes any more. Called with both locks
 * held: a thread that needs room must find each buffer in a magazine or in a list. */
static void list_older_half(struct gm_buffer_pool *pool, struct magazine *magazine)
{
    unsigned old = (magazine->count + 1) / 2;

    for (unsigned i = 0; i < old; i++) {
        magazine->bytes -= magazine->held[i].capacity;
        link_idle(pool, magazine->held[i].buffer, magazine->held[i].capacity);
    }
    magazine->count -= old;
    memmove(magazine->held, &magazine->held[old], magazine->count * sizeof magazine->held[0]);
}

static void put_in_magazine(struct gm_buffer_pool *pool, struct magazine *magazine,
                            struct idle_buffer *buffer, uint64_t capacity)
{
    pthread_mutex_lock(&magazine->lock);
    bool full = is_full(magazine, capacity);
    if (!full)
        push(magazine, buffer, capacity);
    pthread_mutex_unlock(&magazine->lock);
    if (!full)
        return;
    pthread_mutex_lock(&pool->limit->lock);
    pthread_mutex_lock(&magazine->lock);
    while (is_full(magazine, capacity))
        list_older_half(pool, magazine);
    push(magazine, buffer, capacity);
    pthread_mutex_unlock(&magazine->lock);
    pthread_mutex_unlock(&pool->limit->lock);
}

/* Moves the buffers of a pool's magazines to its lists; false if there were none. It may miss one
 * that another thread takes from a magazine and puts into one already seen. Called with the limit's
 * lock held. */
static bool empty_magazines(struct gm_buffer_pool *pool)
{
    bool any = false;

    for (unsigned i = 0; i < MAGAZINES; i++) {
        struct magazine *magazine = &pool->magazine[i];
        pthread_mutex_lock(&magazine->lock);
        any = any || magazine->count > 0;
        for (unsigned n = 0; n < magazine->count; n++)
            link_idle(pool, magazine->held[n].buffer, magazine->held[n].capacity);
        magazine->count = magazine->refill = 0;
        magazine->bytes = 0;
        pthread_mutex_unlock(&magazine->lock);
    }
    return any;
}

static bool empty_all_magazines(struct gm_buffer_limit *limit)
{
    struct gm_buffer_pool *pool;
    bool any = false;

    LIST_FOREACH (pool, &limit->pools, link)
        any = empty_magazines(pool) || any;
    return any;
}

/* Bytes in a pool's magazines. One that moves to another meanwhile may be counted twice. */
static uint64_t magazine_bytes(struct gm_buffer_pool *pool)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < MAGAZINES; i++) {
        struct magazine *magazine = &pool->magazine[i];
        pthread_mutex_lock(&magazine->lock);
        bytes += magazine->bytes;
        pthread_mutex_unlock(&magazine->lock);
    }
    return bytes < pool->in_use ? bytes : pool->in_use;
}

/* Releases the pool's oldest idle buffer. Called with the lock held; unlocks it meanwhile. */
static void give_up_oldest(struct gm_buffer_pool *pool)
{
    struct gm_buffer_limit *limit = pool->limit;
    struct idle_buffer *buffer = TAILQ_FIRST(&pool->idle_buffers);
    uint64_t capacity = buffer->capacity;

    unlink_idle(pool, buffer);
    limit->leaving += capacity;
    pthread_mutex_unlock(&limit->lock);
    SHOW(buffer, capacity);
    pool->allocator.give(pool->allocator.cls, buffer, capacity);
    pthread_mutex_lock(&limit->lock);
    limit->leaving -= capacity;
    pthread_cond_broadcast(&limit->left);
}

/* A pool below the limit that has idle buffers; NULL if none has. */
static struct gm_buffer_pool *idle_pool(const struct gm_buffer_limit *limit)
{
    struct gm_buffer_pool *pool;

    LIST_FOREACH (pool, &limit->pools, link)
        if (!TAILQ_EMPTY(&pool->idle_buffers))
            return pool;
    return NULL;
}

/* A pool whose oldest idle buffer is as old as this; NULL if none is. */
static struct gm_buffer_pool *aged_pool(const struct gm_buffer_limit *limit, int64_t since_ns)
{
    struct gm_buffer_pool *pool;

    LIST_FOREACH (pool, &limit->pools, link) {
        const struct idle_buffer *oldest = TAILQ_FIRST(&pool->idle_buffers);
        if (oldest && oldest->since_ns <= since_ns)
            return pool;
    }
    return NULL;
}

uint64_t gm_buffer_limit_trim(struct gm_buffer_limit *limit, int64_t now_ns, int64_t idle_ns)
{
    struct gm_buffer_pool *pool;
    uint64_t given = 0;

    pthread_mutex_lock(&limit->lock);
    (void)empty_all_magazines(limit); /* they count as idle since the last trim */
    limit->now_ns = now_ns;
    while ((pool = aged_pool(limit, now_ns - idle_ns))) {
        given += TAILQ_FIRST(&pool->idle_buffers)->capacity;
        give_up_oldest(pool);
    }
    pthread_mutex_unlock(&limit->lock);
    return given;
}

enum gm_status gm_buffer_limit_open(uint64_t bytes, struct gm_buffer_limit **ret,
                                    struct gm_error *err)
{
    struct gm_buffer_limit *limit = calloc(1, sizeof(*limit));

    if (!limit)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for a limit of buffers");
    if (pthread_mutex_init(&limit->lock, NULL) != 0 || pthread_cond_init(&limit->left, NULL) != 0) {
        free(limit);
        return gm_fail(err, GM_MEMORY_FULL, "no lock for a limit of buffers");
    }
    limit->bytes = bytes;
    *ret = limit;
    return GM_OK;
}

void gm_buffer_limit_close(struct gm_buffer_limit *limit)
{
    if (!limit)
        return;
    pthread_cond_destroy(&limit->left);
    pthread_mutex_destroy(&limit->lock);
    free(limit);
}

enum gm_status gm_buffer_pool_open_below(const struct gm_buffer_allocator *allocator,
                                         struct gm_buffer_limit *limit, struct gm_buffer_pool **ret,
                                         struct gm_error *err)
{
    struct gm_buffer_pool *pool = aligned_alloc(_Alignof(struct gm_buffer_pool), sizeof(*pool));

    if (!pool)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for a buffer pool");
    memset(pool, 0, sizeof(*pool));
    for (unsigned i = 0; i < MAGAZINES; i++) {
        if (pthread_mutex_init(&pool->magazine[i].lock, NULL) == 0)
            continue;
        while (i-- > 0)
            pthread_mutex_destroy(&pool->magazine[i].lock);
        free(pool);
        return gm_fail(err, GM_MEMORY_FULL, "no lock for a buffer pool");
    }
    pool->allocator = *allocator;
    pool->limit = limit;
    TAILQ_INIT(&pool->idle_buffers);
    pthread_mutex_lock(&limit->lock);
    LIST_INSERT_HEAD(&limit->pools, pool, link);
    pthread_mutex_unlock(&limit->lock);
    *ret = pool;
    return GM_OK;
}

enum gm_status gm_buffer_pool_open(const struct gm_buffer_allocator *allocator, uint64_t limit,
                                   struct gm_buffer_pool **ret, struct gm_error *err)
{
    struct gm_buffer_limit *own = NULL;
    enum gm_status status = gm_buffer_limit_open(limit, &own, err);

    if (status != GM_OK)
        return status;
    status = gm_buffer_pool_open_below(allocator, own, ret, err);
    if (status == GM_OK)
        (*ret)->owns_limit = true;
    else
        gm_buffer_limit_close(own);
    return status;
}

enum gm_status gm_buffer_pool_open_for(const struct gm_backend_options *options,
                                       const struct gm_buffer_allocator *allocator, uint64_t limit,
                                       struct gm_buffer_pool **ret, struct gm_error *err)
{
    return options->shared_limit
               ? gm_buffer_pool_open_below(allocator, options->shared_limit, ret, err)
               : gm_buffer_pool_open(allocator, limit, ret, err);
}

void gm_buffer_pool_close(struct gm_buffer_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->limit->lock);
    (void)empty_magazines(pool);
    while (!TAILQ_EMPTY(&pool->idle_buffers))
        give_up_oldest(pool);
    LIST_REMOVE(pool, link);
    pthread_mutex_unlock(&pool->limit->lock);
    for (unsigned i = 0; i < MAGAZINES; i++)
        pthread_mutex_destroy(&pool->magazine[i].lock);
    if (pool->owns_limit)
        gm_buffer_limit_close(pool->limit);
    free(pool);
}

/* Puts idle buffers of this capacity into a magazine: none at first and then more each time, up to
 * half of it, so that buffers that nobody asks for stay in the list and grow old. Called with the
 * limit's lock held. */
static void refill(struct gm_buffer_pool *pool, struct magazine *magazine, uint64_t capacity)
{
    struct idle_buffer *buffer;

    pthread_mutex_lock(&magazine->lock);
    for (unsigned i = 0; i < magazine->refill && magazine->count < MAGAZINE_BUFFERS / 2 &&
                         magazine->bytes + capacity <= MAGAZINE_BYTES / 2 &&
                         (buffer = LIST_FIRST(&pool->class[class_of(capacity)]));
         i++) {
        unlink_idle(pool, buffer);
        count_in_use(pool, capacity);
        push(magazine, buffer, capacity);
    }
    if (magazine->refill < MAGAZINE_BUFFERS / 2)
        magazine->refill = 2 * magazine->refill + 1;
    pthread_mutex_unlock(&magazine->lock);
}

/* Reserves an idle buffer of this capacity, or room for a new one (then *ret is NULL). Making room
 * unlocks the lock for moments, so each round checks everything again. */
static enum gm_status reserve(struct gm_buffer_pool *pool, struct magazine *magazine,
                              uint64_t capacity, void **ret)
{
    struct gm_buffer_limit *limit = pool->limit;
    enum gm_status status = GM_OK;
    struct idle_buffer *buffer;

    pthread_mutex_lock(&limit->lock);
    for (;;) {
        uint64_t room = limit->bytes - limit->in_use;
        struct gm_buffer_pool *from = TAILQ_EMPTY(&pool->idle_buffers) ? idle_pool(limit) : pool;
        buffer = LIST_FIRST(&pool->class[class_of(capacity)]);
        if (buffer || (capacity <= room && limit->idle + limit->leaving <= room - capacity))
            break;
        if (empty_all_magazines(limit))
            continue;
        if (capacity > room)
            break;
        if (from)
            give_up_oldest(from);
        else
            pthread_cond_wait(&limit->left, &limit->lock);
    }
    if (buffer)
        unlink_idle(pool, buffer);
    else if (capacity > limit->bytes - limit->in_use)
        status = GM_MEMORY_FULL;
    if (status == GM_OK)
        count_in_use(pool, capacity);
    if (buffer && magazine)
        refill(pool, magazine, capacity);
    pthread_mutex_unlock(&limit->lock);
    *ret = buffer;
    return status;
}

/* The system refused: releases all idle buffers, and asks once more. */
static void *take_after_trim(struct gm_buffer_pool *pool, uint64_t capacity)
{
    struct gm_buffer_limit *limit = pool->limit;
    struct gm_buffer_pool *idle;
    void *data;

    pthread_mutex_lock(&limit->lock);
    (void)empty_all_magazines(limit);
    while ((idle = idle_pool(limit)))
        give_up_oldest(idle);
    pthread_mutex_unlock(&limit->lock);
    data = pool->allocator.take(pool->allocator.cls, capacity);
    if (!data) {
        pthread_mutex_lock(&limit->lock);
        count_in_use(pool, -capacity);
        pthread_mutex_unlock(&limit->lock);
    }
    return data;
}

enum gm_status gm_buffer_pool_get(struct gm_buffer_pool *pool, uint64_t bytes,
                                  struct gm_buffer *ret, struct gm_error *err)
{
    uint64_t capacity = gm_buffer_pool_cost(bytes);
    struct magazine *magazine = magazine_of(pool, capacity);
    void *data = magazine ? take_from(magazine, capacity) : NULL;

    if (capacity > pool->limit->bytes)
        return gm_fail(err, GM_TOO_LARGE,
                       "%llu bytes are needed, and the limit of memory for requests is %llu",
                       (unsigned long long)bytes, (unsigned long long)pool->limit->bytes);
    enum gm_status status = data ? GM_OK : reserve(pool, magazine, capacity, &data);
    if (status != GM_OK)
        return gm_fail(err, status, "%llu bytes are needed, and too much of the %llu is in use",
                       (unsigned long long)bytes, (unsigned long long)pool->limit->bytes);
    if (!data)
        data = pool->allocator.take(pool->allocator.cls, capacity);
    if (!data)
        data = take_after_trim(pool, capacity);
    if (!data)
        return gm_fail(err, GM_MEMORY_FULL, "%llu bytes are needed, and the system has no memory",
                       (unsigned long long)bytes);

    SHOW(data, bytes + GM_TEXT_PADDING);
    HIDE((char *)data + bytes + GM_TEXT_PADDING, capacity - bytes - GM_TEXT_PADDING);
    *ret = (struct gm_buffer){.data = data, .bytes = bytes, .capacity = capacity};
    return GM_OK;
}

void gm_buffer_pool_put(struct gm_buffer_pool *pool, struct gm_buffer *buffer)
{
    struct idle_buffer *idle = buffer->data;

    if (idle) {
        uint64_t capacity = buffer->capacity;
        struct magazine *magazine = magazine_of(pool, capacity);
        SHOW(idle, capacity);
        HIDE(idle + 1, capacity - sizeof(*idle)); /* the sanitizer reports a use after put */
        if (magazine) {
            put_in_magazine(pool, magazine, idle, capacity);
        } else {
            pthread_mutex_lock(&pool->limit->lock);
            link_idle(pool, idle, capacity);
            pthread_mutex_unlock(&pool->limit->lock);
        }
    }
    *buffer = (struct gm_buffer){0};
}

struct gm_buffer_usage gm_buffer_pool_usage(struct gm_buffer_pool *pool)
{
    struct gm_buffer_usage usage;

    pthread_mutex_lock(&pool->limit->lock);
    uint64_t cached = magazine_bytes(pool);
    usage =
        (struct gm_buffer_usage){pool->limit->bytes, pool->in_use - cached, pool->idle + cached};
    pthread_mutex_unlock(&pool->limit->lock);
    return usage;
}

struct gm_buffer_usage gm_buffer_limit_usage(struct gm_buffer_limit *limit)
{
    struct gm_buffer_usage usage;
    struct gm_buffer_pool *pool;
    uint64_t cached = 0;

    pthread_mutex_lock(&limit->lock);
    LIST_FOREACH (pool, &limit->pools, link)
        cached += magazine_bytes(pool);
    usage = (struct gm_buffer_usage){limit->bytes, limit->in_use - cached, limit->idle + cached};
    pthread_mutex_unlock(&limit->lock);
    return usage;
}
