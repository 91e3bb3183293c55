/* test_cpu_pool.c - the compute threads: each chunk once, by threads of different numbers; stops.
 */
#include "check.h"
#include "kernels/cpu/backend/pool.h"

#include <time.h>

#define CHUNKS_MAX 5000

struct job {
    struct gm_pool *pool;
    atomic_uint ran[CHUNKS_MAX];
    atomic_uint busy[64]; /* by thread: how many chunks it is in */
    atomic_uint used[64];
    atomic_bool stop;
    uint64_t stop_at;
    long sleep_ns;
};

static void chunk(void *cls, uint64_t index, unsigned thread)
{
    struct job *job = cls;

    CHECK(thread < gm_pool_threads(job->pool));
    CHECK_EQ(atomic_fetch_add(&job->busy[thread], 1), 0);
    atomic_fetch_add(&job->used[thread], 1);
    atomic_fetch_add(&job->ran[index], 1);
    /* A thread's scratch is its own. */
    uint64_t *scratch = gm_pool_scratch(job->pool, thread);
    CHECK((uintptr_t)scratch % 64 == 0);
    scratch[0] = scratch[12] = index;
    if (job->sleep_ns > 0)
        nanosleep(&(struct timespec){.tv_nsec = job->sleep_ns}, NULL);
    CHECK(scratch[0] == index && scratch[12] == index);
    if (index == job->stop_at)
        atomic_store(&job->stop, true);
    /* Those after it are in flight until then, however long its thread is kept from running. */
    while (index > job->stop_at && !atomic_load(&job->stop))
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    atomic_fetch_sub(&job->busy[thread], 1);
}

static void reset(struct job *job, struct gm_pool *pool)
{
    memset(job, 0, sizeof(*job));
    job->pool = pool;
    job->stop_at = UINT64_MAX;
}

static void test_all_chunks(struct gm_pool *pool, struct job *job)
{
    const uint64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, CHUNKS_MAX};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        reset(job, pool);
        CHECK(gm_pool_run(pool, counts[i], i % 2 ? &job->stop : NULL, chunk, job));
        for (uint64_t j = 0; j < CHUNKS_MAX; j++)
            CHECK_EQ(atomic_load(&job->ran[j]), j < counts[i]);
    }
    /* Many short jobs, one after the other: none is joined twice or left early. */
    reset(job, pool);
    for (int i = 0; i < 2000; i++)
        CHECK(gm_pool_run(pool, 3, &job->stop, chunk, job));
    for (int j = 0; j < 3; j++)
        CHECK_EQ(atomic_load(&job->ran[j]), 2000);
}

/* Chunks that wait leave room for every thread to take part. */
static void test_threads_take_part(struct gm_pool *pool, struct job *job)
{
    unsigned used = 0;

    reset(job, pool);
    job->sleep_ns = 1000000;
    CHECK(gm_pool_run(pool, 50 * gm_pool_threads(pool), NULL, chunk, job));
    for (unsigned i = 0; i < gm_pool_threads(pool); i++)
        used += atomic_load(&job->used[i]) > 0;
    CHECK_EQ(used, gm_pool_threads(pool));
}

static void test_stop(struct gm_pool *pool, struct job *job)
{
    unsigned long ran = 0;

    reset(job, pool);
    job->stop_at = 100;
    CHECK(!gm_pool_run(pool, CHUNKS_MAX, &job->stop, chunk, job));
    for (int i = 0; i < CHUNKS_MAX; i++)
        ran += atomic_load(&job->ran[i]);
    /* Those in flight may finish; no others begin. */
    CHECK(ran >= 101 && ran <= 101 + gm_pool_threads(pool));

    reset(job, pool);
    atomic_store(&job->stop, true);
    CHECK(!gm_pool_run(pool, 10, &job->stop, chunk, job));
    CHECK(!gm_pool_run(pool, 1, &job->stop, chunk, job));
    CHECK(!gm_pool_run(pool, 0, &job->stop, chunk, job));
    CHECK_EQ(atomic_load(&job->ran[0]), 0);
}

int main(void)
{
    static struct job job;
    const unsigned sizes[] = {1, 2, 3, 8};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct gm_error err = {.detail = ""};
        struct gm_pool *pool = NULL;
        if (!CHECK_STATUS(gm_pool_open(sizes[i], 104, &pool, &err), GM_OK, &err))
            continue;
        CHECK_EQ(gm_pool_threads(pool), sizes[i]);
        test_all_chunks(pool, &job);
        test_threads_take_part(pool, &job);
        test_stop(pool, &job);
        gm_pool_close(pool);
    }
    gm_pool_close(NULL);
    return check_report();
}
