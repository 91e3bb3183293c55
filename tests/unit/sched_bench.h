/* sched_bench.h - a scheduler in front of a fake device, and jobs that remember how they ended. */
#ifndef GM_TESTS_UNIT_SCHED_BENCH_H
#define GM_TESTS_UNIT_SCHED_BENCH_H

#include "server/clock.h"
#include "server/sched/sched.h"
#include "tests/unit/check.h"
#include "tests/unit/fake_backend.h"

#include <string.h>
#include <time.h>

#define QUEUE 4

struct bench {
    struct fake fake;
    struct gm_sched *sched;
    struct gm_sched_slots slots;
    atomic_int lost_calls;
};

/* A job that remembers how it ended. */
struct probe {
    struct gm_job job;
    atomic_int done;
    atomic_bool client_gone, gone_while_running;
};

static inline void on_done(struct gm_job *job)
{
    atomic_fetch_add(&((struct probe *)job)->done, 1);
}

static inline bool is_abandoned(const struct gm_job *job, bool running)
{
    const struct probe *p = (const struct probe *)job;

    return running ? atomic_load(&p->gone_while_running) : atomic_load(&p->client_gone);
}

static inline void on_lost(void *cls)
{
    atomic_fetch_add(&((struct bench *)cls)->lost_calls, 1);
}

/* Starts the scheduler's threads, which read b->fake: it is complete. */
static inline void start_bench(struct bench *b, uint64_t queue_limit)
{
    struct gm_error error;

    atomic_init(&b->lost_calls, 0);
    memset(&b->slots, 0, sizeof b->slots);
    struct gm_sched_options options = {.backend = &fake_backend,
                                       .context = &b->fake,
                                       .queue_limit = queue_limit,
                                       .slots = &b->slots,
                                       .lost = on_lost,
                                       .lost_cls = b};
    CHECK(gm_sched_open(&options, &b->sched, &error) == GM_OK);
}

static inline void open_bench(struct bench *b, unsigned streams, unsigned batch_max,
                              uint64_t queue_limit)
{
    fake_init(&b->fake, streams, batch_max);
    start_bench(b, queue_limit);
}

static inline void close_bench(struct bench *b)
{
    gm_sched_close(b->sched);
    CHECK(!b->fake.stream_clash);
    fake_destroy(&b->fake);
}

static inline void init_probe(struct probe *p)
{
    memset(p, 0, sizeof *p);
    p->job.deadline_ns = GM_NEVER;
    p->job.done = on_done;
    p->job.abandoned = is_abandoned;
}

static inline enum gm_status submit(struct bench *b, struct probe *p)
{
    struct gm_error error;
    enum gm_status status = gm_sched_reserve(b->sched, p->job.slot.client, &error);

    if (status == GM_OK)
        gm_sched_commit(b->sched, &p->job);
    return status;
}

static inline bool wait_done(struct probe *p)
{
    for (int i = 0; i < 5000 && atomic_load(&p->done) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    return atomic_load(&p->done) == 1;
}

#endif
