/*
 * pool.c - runs jobs on compute threads.
 *
 * A job is published under the lock. Threads that wake join it (`active`) and take chunks from an
 * atomic counter until none is left. The caller does the same, then withdraws the job and waits for
 * those that joined. A thread that wakes too late finds no job, and nobody waits for it: a short
 * job costs only the caller's own work and one signal.
 *
 * Waking 63 threads one by one would keep the caller from computing. It wakes two, and each thread
 * that joins wakes two more.
 */
#include "pool.h"

#include "exec.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAKE_EACH 2u

struct worker {
    struct gm_pool *pool;
    unsigned index;
    pthread_t thread;
};

struct gm_pool {
    unsigned threads;
    size_t scratch_bytes;
    char *scratch;
    struct worker *worker; /* threads - 1; index 0 is the caller of gm_pool_run */
    unsigned started;

    pthread_mutex_t lock; /* protects all below except `next` */
    pthread_cond_t work;  /* a job was published, or quit */
    pthread_cond_t idle;  /* active is 0 */
    bool quit;
    bool published;
    uint64_t job;    /* counts jobs, so that nobody joins one twice */
    unsigned wanted; /* threads that have yet to be woken for it */
    unsigned active; /* threads that joined and have not finished */

    /* The job: written under the lock while nobody is active. */
    gm_chunk_fn *fn;
    void *cls;
    const atomic_bool *stop;
    uint64_t chunks;
    atomic_uint_fast64_t next;
};

static bool stopped(const atomic_bool *stop)
{
    return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static void take_chunks(struct gm_pool *pool, unsigned thread)
{
    while (!stopped(pool->stop)) {
        uint64_t chunk = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (chunk >= pool->chunks)
            break;
        pool->fn(pool->cls, chunk, thread);
    }
}

/* With the lock held: the number of threads to wake now. */
static unsigned summon(struct gm_pool *pool)
{
    unsigned count = pool->wanted < WAKE_EACH ? pool->wanted : WAKE_EACH;

    pool->wanted -= count;
    return count;
}

static void wake(struct gm_pool *pool, unsigned count)
{
    while (count-- > 0)
        pthread_cond_signal(&pool->work);
}

static void *work(void *cls)
{
    struct worker *self = cls;
    struct gm_pool *pool = self->pool;
    uint64_t joined = 0;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quit && !(pool->published && pool->job != joined))
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->quit)
            break;
        joined = pool->job;
        pool->active++;
        unsigned others = summon(pool);
        pthread_mutex_unlock(&pool->lock);

        wake(pool, others);
        take_chunks(pool, self->index);

        pthread_mutex_lock(&pool->lock);
        if (--pool->active == 0)
            pthread_cond_signal(&pool->idle);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Compute threads block signals, which are for the program's own threads. */
static int start_worker(struct worker *worker)
{
    char name[16];
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&worker->thread, NULL, work, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        snprintf(name, sizeof(name), "compute-%u", worker->index);
        pthread_setname_np(worker->thread, name);
    }
    return error;
}

enum gm_status gm_pool_open(unsigned threads, size_t scratch_bytes, struct gm_pool **ret,
                            struct gm_error *err)
{
    struct gm_pool *pool = calloc(1, sizeof(*pool));
    enum gm_status status = GM_OK;

    if (!pool)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for compute threads");
    if (pthread_mutex_init(&pool->lock, NULL) != 0 || pthread_cond_init(&pool->work, NULL) != 0 ||
        pthread_cond_init(&pool->idle, NULL) != 0) {
        free(pool);
        return gm_fail(err, GM_MEMORY_FULL, "no locks for compute threads");
    }
    pool->threads = threads;
    pool->scratch_bytes = (scratch_bytes + 63) & ~(size_t)63;
    pool->scratch = aligned_alloc(64, threads * pool->scratch_bytes + 64);
    pool->worker = calloc(threads, sizeof(*pool->worker));
    if (!pool->scratch || !pool->worker) {
        status = gm_fail(err, GM_MEMORY_FULL, "no memory for %u compute threads", threads);
        goto out;
    }
    for (; pool->started + 1 < threads; pool->started++) {
        struct worker *worker = &pool->worker[pool->started];
        worker->pool = pool;
        worker->index = pool->started + 1;
        int error = start_worker(worker);
        if (error != 0) {
            status = gm_fail(err, GM_DEVICE_UNAVAILABLE, "cannot start compute thread %u of %u: %s",
                             worker->index, threads, strerror(error));
            goto out;
        }
    }
    *ret = pool;
    pool = NULL;
out:
    gm_pool_close(pool);
    return status;
}

void gm_pool_close(struct gm_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->started; i++)
        pthread_join(pool->worker[i].thread, NULL);
    pthread_cond_destroy(&pool->idle);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool->worker);
    free(pool->scratch);
    free(pool);
}

unsigned gm_pool_threads(const struct gm_pool *pool)
{
    return pool->threads;
}

void *gm_pool_scratch(const struct gm_pool *pool, unsigned thread)
{
    return pool->scratch + thread * pool->scratch_bytes;
}

bool gm_pool_run(struct gm_pool *pool, uint64_t chunks, const atomic_bool *stop, gm_chunk_fn *fn,
                 void *cls)
{
    if (pool->threads == 1 || chunks <= 1) {
        for (uint64_t i = 0; i < chunks && !stopped(stop); i++)
            fn(cls, i, 0);
        return !stopped(stop);
    }

    pthread_mutex_lock(&pool->lock);
    pool->fn = fn;
    pool->cls = cls;
    pool->stop = stop;
    pool->chunks = chunks;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    pool->job++;
    pool->published = true;
    pool->wanted = chunks < pool->threads ? (unsigned)chunks - 1 : pool->threads - 1;
    unsigned first = summon(pool);
    pthread_mutex_unlock(&pool->lock);

    wake(pool, first);
    take_chunks(pool, 0);

    pthread_mutex_lock(&pool->lock);
    pool->published = false;
    while (pool->active > 0)
        pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return !stopped(stop);
}

/* Where the search begins. */
static unsigned own_place(void)
{
    int processor = sched_getcpu();

    return processor > 0 ? (unsigned)processor : 0;
}

void gm_single_thread_pool_close(struct gm_single_thread_pool *single)
{
    for (unsigned i = 0; i < GM_SINGLE_THREAD_POOLS_KEPT; i++) {
        struct gm_pool *pool = atomic_exchange(&single->idle[i], NULL);
        if (pool)
            gm_pool_close(pool);
    }
}

enum gm_status gm_single_thread_pool_take(struct gm_single_thread_pool *single,
                                          struct gm_pool **ret, struct gm_error *err)
{
    for (unsigned i = 0, at = own_place(); i < GM_SINGLE_THREAD_POOLS_KEPT; i++, at++) {
        _Atomic(struct gm_pool *) *place = &single->idle[at % GM_SINGLE_THREAD_POOLS_KEPT];
        struct gm_pool *pool = atomic_load(place) ? atomic_exchange(place, NULL) : NULL;
        if (!pool)
            continue;
        *ret = pool;
        return GM_OK;
    }
    return gm_pool_open(1, GM_CPU_SCRATCH, ret, err);
}

void gm_single_thread_pool_leave(struct gm_single_thread_pool *single, struct gm_pool *pool)
{
    for (unsigned i = 0, at = own_place(); i < GM_SINGLE_THREAD_POOLS_KEPT; i++, at++) {
        struct gm_pool *none = NULL;
        if (atomic_compare_exchange_strong(&single->idle[at % GM_SINGLE_THREAD_POOLS_KEPT], &none,
                                           pool))
            return;
    }
    gm_pool_close(pool);
}
