#include "server/api/stats.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

const double gm_bucket_bounds[GM_BUCKET_COUNT] = {
    1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3,
    1e-2, 2.5e-2, 5e-2, 0.1,  0.25,   0.5,  1,    2.5,    5,    10,   30,     60,
};

void gm_histogram_add(struct gm_histogram *histogram, double seconds)
{
    unsigned i = 0;

    while (i < GM_BUCKET_COUNT && seconds > gm_bucket_bounds[i])
        i++;
    atomic_fetch_add_explicit(&histogram->bucket[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_ns, (uint64_t)(seconds * 1e9), memory_order_relaxed);
}

static struct gm_stats_shard *own_shard(struct gm_stats *stats)
{
    int processor = sched_getcpu();

    return &stats->shard[processor > 0 ? (unsigned)processor % GM_STATS_SHARDS : 0];
}

void gm_stats_add(struct gm_stats *stats, enum gm_counter counter, uint64_t n)
{
    atomic_fetch_add_explicit(&own_shard(stats)->counter[counter], n, memory_order_relaxed);
}

static void add_histogram(struct gm_histogram *to, const struct gm_histogram *from)
{
    for (unsigned i = 0; i <= GM_BUCKET_COUNT; i++)
        to->bucket[i] += from->bucket[i];
    to->sum_ns += from->sum_ns;
}

void gm_stats_sum(const struct gm_stats *stats, struct gm_stats_shard *ret)
{
    memset(ret, 0, sizeof *ret);
    for (const struct gm_stats_shard *s = stats->shard; s < stats->shard + GM_STATS_SHARDS; s++) {
        for (unsigned i = 0; i < GM_COUNTER_COUNT; i++)
            ret->counter[i] += s->counter[i];
        for (unsigned op = 0; op < GM_OP_COUNT; op++) {
            int64_t last_ns = s->last_ns[op];
            if (last_ns > ret->last_ns[op])
                ret->last_ns[op] = last_ns;
            add_histogram(&ret->total[op], &s->total[op]);
            for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
                add_histogram(&ret->stage[op][i], &s->stage[op][i]);
        }
    }
}

void gm_stats_account(struct gm_stats *stats, enum gm_op_kind op, const struct gm_account *account)
{
    struct gm_stats_shard *shard = own_shard(stats);

    for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
        if (account->us[i] >= 0)
            gm_histogram_add(&shard->stage[op][i], account->us[i] * 1e-6);
    gm_histogram_add(&shard->total[op], account->total_us * 1e-6);
    atomic_store_explicit(&shard->last_ns[op],
                          account->started_ns + (int64_t)(account->total_us * 1e3),
                          memory_order_relaxed);
}

enum gm_status gm_recents_open(struct gm_recents *recents, struct gm_error *err)
{
    unsigned made = 0;

    atomic_init(&recents->count, 0);
    while (made < GM_RECENT_ACCOUNTS_MAX &&
           pthread_mutex_init(&recents->ring[made].mutex, NULL) == 0)
        recents->ring[made++].recent.number = 0;
    if (made == GM_RECENT_ACCOUNTS_MAX)
        return GM_OK;
    while (made > 0)
        pthread_mutex_destroy(&recents->ring[--made].mutex);
    return gm_fail(err, GM_INTERNAL, "no locks for the last accounts");
}

void gm_recents_close(struct gm_recents *recents)
{
    for (unsigned i = 0; i < GM_RECENT_ACCOUNTS_MAX; i++)
        pthread_mutex_destroy(&recents->ring[i].mutex);
}

static struct gm_recent_place *place_of(struct gm_recents *recents, uint64_t number)
{
    return &recents->ring[number % GM_RECENT_ACCOUNTS_MAX];
}

/* How often a reader gives up the processor for an account that is still being added. */
#define LATE_TRIES 1000

/* The cache lines of a place were written by another processor last, so as few as possible. */
static void copy_recent(struct gm_recent *to, const struct gm_recent *from)
{
    memcpy(to, from, from->has_accesses ? sizeof *to : offsetof(struct gm_recent, accesses));
}

void gm_recents_add(struct gm_recents *recents, const struct gm_recent *recent)
{
    uint64_t number = atomic_fetch_add(&recents->count, 1) + 1;
    struct gm_recent_place *place = place_of(recents, number);

    pthread_mutex_lock(&place->mutex);
    if (place->recent.number < number) { /* else others went round the ring meanwhile */
        copy_recent(&place->recent, recent);
        place->recent.number = number;
    }
    pthread_mutex_unlock(&place->mutex);
}

/* Copies the one of this number, unless it is another client's. Returns whether it was copied.
 * *ret_late: it is still being added. */
static bool copy_one(struct gm_recents *recents, uint64_t number, const uint64_t *client,
                     struct gm_recent *ret, bool *ret_late)
{
    struct gm_recent_place *place = place_of(recents, number);

    pthread_mutex_lock(&place->mutex);
    bool there = place->recent.number == number && (!client || place->recent.client == *client);
    *ret_late = place->recent.number < number;
    if (there)
        copy_recent(ret, &place->recent);
    pthread_mutex_unlock(&place->mutex);
    return there;
}

size_t gm_recents_copy(struct gm_recents *recents, const uint64_t *client, uint64_t since,
                       struct gm_recent *ret, size_t n)
{
    uint64_t number = atomic_load(&recents->count);
    uint64_t oldest = number > GM_RECENT_ACCOUNTS_MAX ? number - GM_RECENT_ACCOUNTS_MAX : 0;
    size_t copied = 0;
    bool late;

    /* From the newest back, filling `ret` from its end. If one is still being added, waits for it a
     * little. If it stays late, it and all newer ones are left for the next call: whoever asks for
     * what comes after the last one must not miss it. */
    for (; number > since && number > oldest && copied < n; number--) {
        bool there = copy_one(recents, number, client, &ret[n - 1 - copied], &late);
        for (unsigned i = 0; late && i < LATE_TRIES; i++) {
            sched_yield();
            there = copy_one(recents, number, client, &ret[n - 1 - copied], &late);
        }
        copied = late ? 0 : copied + there;
    }
    memmove(ret, &ret[n - copied], copied * sizeof *ret);
    return copied;
}
