/*
 * slab.c - size classes, the lists of idle slabs, and the one limit above them, also of several
 * pools.
 *
 * Sizes are rounded up to one of 16 steps an octave, so a slab wastes 1/16 at most and one
 * that is put back fits the next request of about its size. The padding comes on top: matrices
 * are often of 2^n bytes, and must not fall into the class above for its sake. An idle slab is a
 * member of two lists, whose links lie in its own first bytes: that of its class (the one put back
 * last is given out first: it is the likeliest to be in a cache) and that of all idle slabs by age
 * (the oldest is given up first).
 *
 *   in_use + idle + leaving <= limit, whenever the lock is free.
 *
 * The system is asked for memory and given it back without the lock: unmapping a large slab takes
 * milliseconds. A slab on its way out is counted in `leaving` until it has gone, and who needs
 * that room waits for it.
 */
#include "slab.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define HIDE(p, bytes) ASAN_POISON_MEMORY_REGION(p, bytes)
#define SHOW(p, bytes) ASAN_UNPOISON_MEMORY_REGION(p, bytes)
#else
#define HIDE(p, bytes) ((void)(p), (void)(bytes))
#define SHOW(p, bytes) ((void)(p), (void)(bytes))
#endif

#define ALIGNMENT 64u
#define CLASS_MIN 256u
#define STEPS_LOG2 4 /* steps an octave: what is wasted, against how often a slab fits again */
#define CLASSES (64u << STEPS_LOG2)

#define PAGE ((uint64_t)4096)
#define HUGE_PAGE ((uint64_t)2 << 20)

_Static_assert(GM_TEXT_PADDING % ALIGNMENT == 0, "aligned_alloc takes whole multiples");

struct idle_slab {
    struct idle_slab *class_next, *class_prev;
    struct idle_slab *older, *newer;
    uint64_t capacity;
};

_Static_assert(sizeof(struct idle_slab) <= CLASS_MIN, "the links lie in the idle slab");

struct gm_slab_limit {
    uint64_t bytes;

    pthread_mutex_t lock; /* of all below, and of the pools' lists */
    pthread_cond_t left;  /* `leaving` has shrunk */
    uint64_t in_use, idle, leaving;
    struct gm_slabs *pools;
};

struct gm_slabs {
    struct gm_slab_source source;
    struct gm_slab_limit *limit;
    bool owns_limit;
    struct gm_slabs *next; /* below the same limit */
    uint64_t in_use, idle; /* its part */
    struct idle_slab *class[CLASSES];
    struct idle_slab *oldest, *newest;
};

/* Large slabs begin on a huge page and ask for such: faults by 2 MiB instead of 4 KiB. */
static void *plain_take(void *cls, uint64_t bytes)
{
    (void)cls;
    if (bytes > SIZE_MAX - HUGE_PAGE)
        return NULL;
    if (bytes < HUGE_PAGE)
        return aligned_alloc(ALIGNMENT, bytes);

    char *map =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    uint64_t before = -(uintptr_t)map & (HUGE_PAGE - 1);
    if (before > 0)
        munmap(map, before);
    munmap(map + before + bytes, HUGE_PAGE - before);
    madvise(map + before, bytes, MADV_HUGEPAGE); /* a wish: without it all works, slower */
    return map + before;
}

static void plain_give(void *cls, void *data, uint64_t bytes)
{
    (void)cls;
    if (bytes < HUGE_PAGE)
        free(data);
    else
        munmap(data, bytes);
}

const struct gm_slab_source gm_slab_plain = {plain_take, plain_give, NULL};

/* What lies beyond the size class: the padding, and for mapped memory the page it is on. */
static uint64_t beyond(uint64_t class_bytes)
{
    return class_bytes < HUGE_PAGE ? GM_TEXT_PADDING : PAGE;
}

uint64_t gm_slabs_cost(uint64_t bytes)
{
    uint64_t class_bytes = CLASS_MIN, cost;

    if (bytes > CLASS_MIN) {
        /* 2^octave <= bytes: the step is 2^octave / 16. */
        uint64_t step = (uint64_t)1 << (63 - __builtin_clzll(bytes) - STEPS_LOG2);
        if (step < ALIGNMENT)
            step = ALIGNMENT;
        if (!gm_size_add(bytes, step - 1, &class_bytes))
            return UINT64_MAX;
        class_bytes &= ~(step - 1);
    }
    return gm_size_add(class_bytes, beyond(class_bytes), &cost) ? cost : UINT64_MAX;
}

/* One class for each capacity that gm_slabs_cost can return. */
static unsigned class_of(uint64_t capacity)
{
    uint64_t class_bytes = capacity - (capacity < HUGE_PAGE ? GM_TEXT_PADDING : PAGE);
    unsigned octave = 63 - (unsigned)__builtin_clzll(class_bytes);
    unsigned step = (unsigned)(class_bytes >> (octave - STEPS_LOG2)) & ((1u << STEPS_LOG2) - 1);

    return octave << STEPS_LOG2 | step;
}

static void link_idle(struct gm_slabs *slabs, struct idle_slab *slab)
{
    struct idle_slab **first = &slabs->class[class_of(slab->capacity)];

    slab->class_prev = NULL;
    slab->class_next = *first;
    if (*first)
        (*first)->class_prev = slab;
    *first = slab;

    slab->newer = NULL;
    slab->older = slabs->newest;
    if (slabs->newest)
        slabs->newest->newer = slab;
    else
        slabs->oldest = slab;
    slabs->newest = slab;
    slabs->idle += slab->capacity;
    slabs->limit->idle += slab->capacity;
}

static void unlink_idle(struct gm_slabs *slabs, struct idle_slab *slab)
{
    if (slab->class_prev)
        slab->class_prev->class_next = slab->class_next;
    else
        slabs->class[class_of(slab->capacity)] = slab->class_next;
    if (slab->class_next)
        slab->class_next->class_prev = slab->class_prev;

    if (slab->older)
        slab->older->newer = slab->newer;
    else
        slabs->oldest = slab->newer;
    if (slab->newer)
        slab->newer->older = slab->older;
    else
        slabs->newest = slab->older;
    slabs->idle -= slab->capacity;
    slabs->limit->idle -= slab->capacity;
}

/* Gives up the pool's oldest idle slab. Called with the lock held, which is free meanwhile. */
static void give_up_oldest(struct gm_slabs *slabs)
{
    struct gm_slab_limit *limit = slabs->limit;
    struct idle_slab *slab = slabs->oldest;
    uint64_t capacity = slab->capacity;

    unlink_idle(slabs, slab);
    limit->leaving += capacity;
    pthread_mutex_unlock(&limit->lock);
    SHOW(slab, capacity);
    slabs->source.give(slabs->source.cls, slab, capacity);
    pthread_mutex_lock(&limit->lock);
    limit->leaving -= capacity;
    pthread_cond_broadcast(&limit->left);
}

/* A pool below the limit that has idle slabs; NULL if none has. */
static struct gm_slabs *idle_pool(const struct gm_slab_limit *limit)
{
    struct gm_slabs *slabs = limit->pools;

    while (slabs && !slabs->oldest)
        slabs = slabs->next;
    return slabs;
}

enum gm_status gm_slab_limit_open(uint64_t bytes, struct gm_slab_limit **ret, struct gm_error *err)
{
    struct gm_slab_limit *limit = calloc(1, sizeof(*limit));

    if (!limit)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the limit of slabs");
    limit->bytes = bytes;
    pthread_mutex_init(&limit->lock, NULL);
    pthread_cond_init(&limit->left, NULL);
    *ret = limit;
    return GM_OK;
}

void gm_slab_limit_close(struct gm_slab_limit *limit)
{
    if (!limit)
        return;
    pthread_cond_destroy(&limit->left);
    pthread_mutex_destroy(&limit->lock);
    free(limit);
}

enum gm_status gm_slabs_open_below(const struct gm_slab_source *source, struct gm_slab_limit *limit,
                                   struct gm_slabs **ret, struct gm_error *err)
{
    struct gm_slabs *slabs = calloc(1, sizeof(*slabs));

    if (!slabs)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the pool of slabs");
    slabs->source = *source;
    slabs->limit = limit;
    pthread_mutex_lock(&limit->lock);
    slabs->next = limit->pools;
    limit->pools = slabs;
    pthread_mutex_unlock(&limit->lock);
    *ret = slabs;
    return GM_OK;
}

enum gm_status gm_slabs_open(const struct gm_slab_source *source, uint64_t limit,
                             struct gm_slabs **ret, struct gm_error *err)
{
    struct gm_slab_limit *own = NULL;
    enum gm_status status = gm_slab_limit_open(limit, &own, err);

    if (status != GM_OK)
        return status;
    status = gm_slabs_open_below(source, own, ret, err);
    if (status == GM_OK)
        (*ret)->owns_limit = true;
    else
        gm_slab_limit_close(own);
    return status;
}

enum gm_status gm_slabs_open_for(const struct gm_backend_options *options,
                                 const struct gm_slab_source *source, uint64_t limit,
                                 struct gm_slabs **ret, struct gm_error *err)
{
    return options->shared_limit ? gm_slabs_open_below(source, options->shared_limit, ret, err)
                                 : gm_slabs_open(source, limit, ret, err);
}

void gm_slabs_close(struct gm_slabs *slabs)
{
    struct gm_slabs **link;

    if (!slabs)
        return;
    pthread_mutex_lock(&slabs->limit->lock);
    while (slabs->oldest)
        give_up_oldest(slabs);
    for (link = &slabs->limit->pools; *link != slabs; link = &(*link)->next)
        ;
    *link = slabs->next;
    pthread_mutex_unlock(&slabs->limit->lock);
    if (slabs->owns_limit)
        gm_slab_limit_close(slabs->limit);
    free(slabs);
}

/* An idle slab of this capacity, or room for a new one (then *ret is NULL): either is in use now.
 * Making room leaves the lock free for moments, so each round looks at everything anew. */
static enum gm_status reserve(struct gm_slabs *slabs, uint64_t capacity, void **ret)
{
    struct gm_slab_limit *limit = slabs->limit;
    enum gm_status status = GM_OK;
    struct idle_slab *slab;

    pthread_mutex_lock(&limit->lock);
    for (;;) {
        uint64_t room = limit->bytes - limit->in_use;
        struct gm_slabs *pool = slabs->oldest ? slabs : idle_pool(limit);
        slab = slabs->class[class_of(capacity)];
        if (slab || capacity > room || limit->idle + limit->leaving <= room - capacity)
            break;
        if (pool)
            give_up_oldest(pool);
        else
            pthread_cond_wait(&limit->left, &limit->lock);
    }
    if (slab)
        unlink_idle(slabs, slab);
    else if (capacity > limit->bytes - limit->in_use)
        status = GM_MEMORY_FULL;
    if (status == GM_OK) {
        limit->in_use += capacity;
        slabs->in_use += capacity;
    }
    pthread_mutex_unlock(&limit->lock);
    *ret = slab;
    return status;
}

/* The system refused: all that is idle goes back to it, and it is asked once more. */
static void *take_after_trim(struct gm_slabs *slabs, uint64_t capacity)
{
    struct gm_slab_limit *limit = slabs->limit;
    struct gm_slabs *pool;
    void *data;

    pthread_mutex_lock(&limit->lock);
    while ((pool = idle_pool(limit)))
        give_up_oldest(pool);
    pthread_mutex_unlock(&limit->lock);
    data = slabs->source.take(slabs->source.cls, capacity);
    if (!data) {
        pthread_mutex_lock(&limit->lock);
        limit->in_use -= capacity;
        slabs->in_use -= capacity;
        pthread_mutex_unlock(&limit->lock);
    }
    return data;
}

enum gm_status gm_slabs_get(struct gm_slabs *slabs, uint64_t bytes, struct gm_slab *ret,
                            struct gm_error *err)
{
    uint64_t capacity = gm_slabs_cost(bytes);
    void *data;

    if (capacity > slabs->limit->bytes)
        return gm_fail(err, GM_TOO_LARGE,
                       "%llu bytes are needed, and the limit of memory for requests is %llu",
                       (unsigned long long)bytes, (unsigned long long)slabs->limit->bytes);
    enum gm_status status = reserve(slabs, capacity, &data);
    if (status != GM_OK)
        return gm_fail(err, status, "%llu bytes are needed, and too much of the %llu is in use",
                       (unsigned long long)bytes, (unsigned long long)slabs->limit->bytes);
    if (!data)
        data = slabs->source.take(slabs->source.cls, capacity);
    if (!data)
        data = take_after_trim(slabs, capacity);
    if (!data)
        return gm_fail(err, GM_MEMORY_FULL, "%llu bytes are needed, and the system has no memory",
                       (unsigned long long)bytes);

    SHOW(data, bytes + GM_TEXT_PADDING);
    HIDE((char *)data + bytes + GM_TEXT_PADDING, capacity - bytes - GM_TEXT_PADDING);
    *ret = (struct gm_slab){.data = data, .bytes = bytes, .capacity = capacity};
    return GM_OK;
}

void gm_slabs_put(struct gm_slabs *slabs, struct gm_slab *slab)
{
    struct idle_slab *idle = slab->data;

    if (idle) {
        uint64_t capacity = slab->capacity;
        SHOW(idle, capacity);
        HIDE(idle + 1, capacity - sizeof(*idle)); /* use after put shows in the sanitizer */
        idle->capacity = capacity;
        pthread_mutex_lock(&slabs->limit->lock);
        slabs->limit->in_use -= capacity;
        slabs->in_use -= capacity;
        link_idle(slabs, idle);
        pthread_mutex_unlock(&slabs->limit->lock);
    }
    *slab = (struct gm_slab){0};
}

struct gm_slab_usage gm_slabs_usage(struct gm_slabs *slabs)
{
    struct gm_slab_usage usage;

    pthread_mutex_lock(&slabs->limit->lock);
    usage = (struct gm_slab_usage){slabs->limit->bytes, slabs->in_use, slabs->idle};
    pthread_mutex_unlock(&slabs->limit->lock);
    return usage;
}
