#include "server/access/quota.h"

#include "server/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

__extension__ typedef unsigned __int128 wide;

/* Time in which so many tokens come, rounded up; at most QUOTA_DEBT_S. */
static int64_t time_of(const struct gm_rate *rate, uint64_t tokens)
{
    const wide most = (wide)GM_QUOTA_DEBT_S * SECOND;
    wide time = ((wide)tokens * (wide)rate->window_ns + rate->tokens - 1) / rate->tokens;

    return (int64_t)(time < most ? time : most);
}

int64_t gm_bucket_wait(const struct gm_bucket *bucket, const struct gm_rate *rate, uint64_t cost,
                       int64_t now_ns)
{
    int64_t empty_ns = bucket->full_ns > now_ns ? bucket->full_ns - now_ns : 0;
    int64_t wait_ns =
        empty_ns + time_of(rate, cost < rate->tokens ? cost : rate->tokens) - rate->window_ns;

    return wait_ns > 0 ? wait_ns : 0;
}

void gm_bucket_take(struct gm_bucket *bucket, const struct gm_rate *rate, uint64_t cost,
                    int64_t now_ns)
{
    int64_t from_ns = bucket->full_ns > now_ns ? bucket->full_ns : now_ns;

    /* Each step is bounded, and a client in debt gets no further: no sum comes near an overflow. */
    bucket->full_ns = from_ns + time_of(rate, cost);
}

/* Of both the time that is charged, which is bounded: so what was used is paid for. */
void gm_bucket_give(struct gm_bucket *bucket, const struct gm_rate *rate, uint64_t taken,
                    uint64_t used)
{
    bucket->full_ns -= time_of(rate, taken) - time_of(rate, used);
}

uint64_t gm_bucket_left(const struct gm_bucket *bucket, const struct gm_rate *rate, int64_t now_ns)
{
    int64_t filled_ns = rate->window_ns - (bucket->full_ns > now_ns ? bucket->full_ns - now_ns : 0);

    return filled_ns <= 0 ? 0 : (uint64_t)((wide)filled_ns * rate->tokens / (wide)rate->window_ns);
}

/* The tokens of a device's time are nanoseconds. */
static struct gm_rate rate_of(const struct gm_quota *quota, unsigned kind)
{
    uint64_t most = quota->limits.most[kind];

    return kind == GM_QUOTA_DEVICE ? (struct gm_rate){most * (uint64_t)SECOND, 60 * SECOND}
                                   : (struct gm_rate){most, SECOND};
}

static bool is_limit(uint64_t most)
{
    return most != GM_QUOTA_UNSAID && most != GM_QUOTA_NONE;
}

static bool is_limited(const struct gm_quota *quota, unsigned kind)
{
    return atomic_load_explicit(&quota->limited, memory_order_relaxed) & 1u << kind;
}

bool gm_quota_has_rates(const struct gm_quota *quota)
{
    const unsigned rates = (1u << GM_QUOTA_RATES) - 1;

    return quota && (atomic_load_explicit(&quota->limited, memory_order_relaxed) & rates);
}

/* Sets the limits, those unsaid to the defaults. */
static void set_limits(struct gm_quota *quota, const struct gm_quota_limits *limits)
{
    unsigned limited = 0;

    for (unsigned i = 0; i < GM_QUOTA_COUNT; i++) {
        uint64_t most =
            limits->most[i] != GM_QUOTA_UNSAID ? limits->most[i] : quota->quotas->limits.most[i];
        quota->limits.most[i] = most;
        limited |= is_limit(most) ? 1u << i : 0;
    }
    atomic_store(&quota->limited, limited);
}

static void add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

enum gm_status gm_quotas_open(struct gm_quotas *quotas, const struct gm_quota_limits *limits,
                              struct gm_error *err)
{
    if (pthread_mutex_init(&quotas->mutex, NULL) != 0)
        return gm_fail(err, GM_INTERNAL, "no lock for the quotas");
    quotas->limits = *limits;
    TAILQ_INIT(&quotas->keys);
    TAILQ_INIT(&quotas->addresses);
    return GM_OK;
}

void gm_quotas_close(struct gm_quotas *quotas)
{
    struct gm_quota *quota;

    while ((quota = TAILQ_FIRST(&quotas->addresses))) {
        TAILQ_REMOVE(&quotas->addresses, quota, link);
        pthread_mutex_destroy(&quota->mutex);
        free(quota);
    }
    pthread_mutex_destroy(&quotas->mutex);
}

/* Initializes what quotas have in common; NULL without memory. */
static struct gm_quota *make_quota(struct gm_quotas *quotas)
{
    struct gm_quota *quota = calloc(1, sizeof *quota);

    if (quota && pthread_mutex_init(&quota->mutex, NULL) != 0) {
        free(quota);
        return NULL;
    }
    if (!quota)
        return NULL;
    quota->quotas = quotas;
    set_limits(quota, &quotas->limits);
    atomic_init(&quota->references, 1);
    return quota;
}

struct gm_quota *gm_quota_of_key(struct gm_quotas *quotas)
{
    struct gm_quota *quota = make_quota(quotas);

    if (!quota)
        return NULL;
    pthread_mutex_lock(&quotas->mutex);
    quota->client = GM_CLIENT_UNIX + ++quotas->sequence;
    quota->named = quotas->named < GM_QUOTA_NAMED_MAX;
    quotas->named += quota->named;
    quota->counts = quota->named ? &quota->own : &quotas->others;
    TAILQ_INSERT_TAIL(&quotas->keys, quota, link);
    pthread_mutex_unlock(&quotas->mutex);
    return quota;
}

void gm_quota_set(struct gm_quota *quota, const char *name, const struct gm_quota_limits *limits)
{
    struct gm_quotas *quotas = quota->quotas;

    pthread_mutex_lock(&quotas->mutex);
    snprintf(quota->name, sizeof quota->name, "%s", name);
    pthread_mutex_lock(&quota->mutex);
    set_limits(quota, limits);
    pthread_mutex_unlock(&quota->mutex);
    pthread_mutex_unlock(&quotas->mutex);
}

static struct gm_quota_chain *chain_of(struct gm_quotas *quotas, uint64_t client)
{
    return &quotas->table[(client * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

/* Forgets the address that was looked up longest ago and has no request. The mutex is held. */
static void forget_address(struct gm_quotas *quotas)
{
    struct gm_quota *quota;

    TAILQ_FOREACH (quota, &quotas->addresses, link) {
        if (atomic_load(&quota->references) > 1)
            continue;
        LIST_REMOVE(quota, chain);
        TAILQ_REMOVE(&quotas->addresses, quota, link);
        quotas->address_count--;
        pthread_mutex_destroy(&quota->mutex);
        free(quota);
        return;
    }
}

struct gm_quota *gm_quota_of_address(struct gm_quotas *quotas, uint64_t client)
{
    struct gm_quota_chain *chain = chain_of(quotas, client);
    struct gm_quota *quota;

    if (!quotas->by_address)
        return NULL;
    pthread_mutex_lock(&quotas->mutex);
    LIST_FOREACH (quota, chain, chain)
        if (quota->client == client)
            break;
    if (quota) {
        TAILQ_REMOVE(&quotas->addresses, quota, link);
    } else {
        if (quotas->address_count >= GM_QUOTA_ADDRESSES_MAX)
            forget_address(quotas);
        quota = make_quota(quotas);
        if (quota) {
            quota->client = client;
            quota->counts = &quotas->nobody;
            LIST_INSERT_HEAD(chain, quota, chain);
            quotas->address_count++;
        }
    }
    if (quota) {
        TAILQ_INSERT_TAIL(&quotas->addresses, quota, link);
        atomic_fetch_add(&quota->references, 1);
    }
    pthread_mutex_unlock(&quotas->mutex);
    return quota;
}

struct gm_quota *gm_quota_ref(struct gm_quota *quota)
{
    if (quota)
        atomic_fetch_add(&quota->references, 1);
    return quota;
}

/* The table keeps a reference of each address, so only those of keys fall to none. */
void gm_quota_unref(struct gm_quota *quota)
{
    if (!quota || atomic_fetch_sub(&quota->references, 1) > 1)
        return;
    pthread_mutex_lock(&quota->quotas->mutex);
    TAILQ_REMOVE(&quota->quotas->keys, quota, link);
    quota->quotas->named -= quota->named;
    pthread_mutex_unlock(&quota->quotas->mutex);
    pthread_mutex_destroy(&quota->mutex);
    free(quota);
}

static enum gm_status refuse(struct gm_quota *quota, unsigned kind, int64_t wait_ns,
                             unsigned *ret_wait_s, struct gm_error *err)
{
    static const char *const counts[] = {
#define X(name, text, counts) counts,
        GM_QUOTA_LIST(X)
#undef X
    };

    add(&quota->counts->refused[kind], 1);
    *ret_wait_s = wait_ns > SECOND ? (unsigned)((wait_ns + SECOND - 1) / SECOND) : 1;
    return gm_fail(err, GM_QUOTA_EXCEEDED, "the quota of this client is used up: %llu %s",
                   (unsigned long long)quota->limits.most[kind], counts[kind]);
}

/* The first kind that a request does not fit into, or GM_QUOTA_COUNT. The mutex is held. */
static unsigned find_full(const struct gm_quota *quota, const uint64_t cost[GM_QUOTA_RATES],
                          bool job, int64_t now_ns, int64_t *ret_wait_ns)
{
    for (unsigned kind = 0; kind < GM_QUOTA_RATES; kind++) {
        const struct gm_rate rate = rate_of(quota, kind);
        if (!is_limited(quota, kind) || (kind == GM_QUOTA_DEVICE && !job))
            continue;
        *ret_wait_ns = gm_bucket_wait(&quota->bucket[kind], &rate, cost[kind], now_ns);
        if (*ret_wait_ns > 0)
            return kind;
    }
    *ret_wait_ns = 0;
    if (job && is_limited(quota, GM_QUOTA_JOBS) && quota->jobs >= quota->limits.most[GM_QUOTA_JOBS])
        return GM_QUOTA_JOBS;
    return GM_QUOTA_COUNT;
}

enum gm_status gm_quota_enter(struct gm_quota *quota, uint64_t body_bytes, bool job, int64_t now_ns,
                              unsigned *ret_wait_s, struct gm_error *err)
{
    /* A request for a body of no known length, or for a device, needs a token that is there. */
    const uint64_t cost[GM_QUOTA_RATES] = {1, body_bytes > 0 ? body_bytes : 1, 1};
    int64_t wait_ns;

    if (!quota)
        return GM_OK;
    if (!gm_quota_has_rates(quota) && !is_limited(quota, GM_QUOTA_JOBS)) {
        atomic_fetch_add(&quota->jobs, job);
        return GM_OK;
    }
    pthread_mutex_lock(&quota->mutex);
    unsigned full = find_full(quota, cost, job, now_ns, &wait_ns);
    enum gm_status status = GM_OK;
    if (full < GM_QUOTA_COUNT) {
        status = refuse(quota, full, wait_ns, ret_wait_s, err);
    } else {
        const struct gm_rate requests = rate_of(quota, GM_QUOTA_REQUESTS);
        const struct gm_rate bytes = rate_of(quota, GM_QUOTA_BYTES);
        if (is_limited(quota, GM_QUOTA_REQUESTS))
            gm_bucket_take(&quota->bucket[GM_QUOTA_REQUESTS], &requests, 1, now_ns);
        if (is_limited(quota, GM_QUOTA_BYTES))
            gm_bucket_take(&quota->bucket[GM_QUOTA_BYTES], &bytes, body_bytes, now_ns);
        atomic_fetch_add(&quota->jobs, job);
    }
    pthread_mutex_unlock(&quota->mutex);
    return status;
}

void gm_quota_leave(struct gm_quota *quota)
{
    if (quota)
        atomic_fetch_sub(&quota->jobs, 1);
}

static void charge(struct gm_quota *quota, unsigned kind, uint64_t tokens, int64_t now_ns)
{
    if (!is_limited(quota, kind))
        return;
    pthread_mutex_lock(&quota->mutex);
    if (is_limited(quota, kind)) {
        const struct gm_rate rate = rate_of(quota, kind);
        gm_bucket_take(&quota->bucket[kind], &rate, tokens, now_ns);
    }
    pthread_mutex_unlock(&quota->mutex);
}

void gm_quota_charge_bytes(struct gm_quota *quota, uint64_t bytes, int64_t now_ns)
{
    if (quota)
        charge(quota, GM_QUOTA_BYTES, bytes, now_ns);
}

void gm_quota_count(struct gm_quota *quota, uint64_t bytes, int64_t device_ns)
{
    if (!quota)
        return;
    add(&quota->counts->requests, 1);
    add(&quota->counts->bytes, bytes);
    if (device_ns > 0)
        add(&quota->counts->device_ns, (uint64_t)device_ns);
}

void gm_quota_charge_device(struct gm_quota *quota, int64_t device_ns, int64_t now_ns)
{
    if (quota && device_ns > 0)
        charge(quota, GM_QUOTA_DEVICE, (uint64_t)device_ns, now_ns);
}

void gm_quota_return_bytes(struct gm_quota *quota, uint64_t charged, uint64_t came)
{
    if (!quota)
        return;
    pthread_mutex_lock(&quota->mutex);
    if (is_limited(quota, GM_QUOTA_BYTES)) {
        const struct gm_rate rate = rate_of(quota, GM_QUOTA_BYTES);
        gm_bucket_give(&quota->bucket[GM_QUOTA_BYTES], &rate, charged, came);
    }
    pthread_mutex_unlock(&quota->mutex);
}

bool gm_quota_limits_memory(const struct gm_quota *quota)
{
    return quota && is_limited(quota, GM_QUOTA_MEMORY);
}

enum gm_status gm_quota_hold(struct gm_quota *quota, uint64_t had, uint64_t total,
                             struct gm_error *err)
{
    enum gm_status status = GM_OK;
    unsigned wait_s;

    if (!quota)
        return GM_OK;
    uint64_t others = quota->memory - had;
    if (is_limited(quota, GM_QUOTA_MEMORY)) {
        pthread_mutex_lock(&quota->mutex);
        uint64_t most = quota->limits.most[GM_QUOTA_MEMORY];
        if (total > most)
            status = gm_fail(err, GM_TOO_LARGE,
                             "this request needs %llu bytes of memory, and the quota of this "
                             "client is %llu",
                             (unsigned long long)total, (unsigned long long)most);
        else if (others > most - total)
            status = refuse(quota, GM_QUOTA_MEMORY, 0, &wait_s, err);
        pthread_mutex_unlock(&quota->mutex);
    }
    if (status == GM_OK)
        gm_quota_hold_surely(quota, total - had);
    return status;
}

void gm_quota_hold_surely(struct gm_quota *quota, uint64_t bytes)
{
    if (quota)
        atomic_fetch_add(&quota->memory, bytes);
}

void gm_quota_release(struct gm_quota *quota, uint64_t bytes)
{
    if (quota)
        atomic_fetch_sub(&quota->memory, bytes);
}

void gm_quota_headers(struct gm_quota *quota, int64_t now_ns, char policy[GM_RATE_LIMIT_MAX],
                      char state[GM_RATE_LIMIT_MAX])
{
    static const char *const units[] = {"requests", "content-bytes", "seconds"};
    size_t policy_at = 0, state_at = 0;

    *policy = *state = '\0';
    if (!gm_quota_has_rates(quota))
        return;
    pthread_mutex_lock(&quota->mutex);
    for (unsigned kind = 0; kind < GM_QUOTA_RATES; kind++) {
        if (!is_limited(quota, kind))
            continue;
        const struct gm_rate rate = rate_of(quota, kind);
        uint64_t left = gm_bucket_left(&quota->bucket[kind], &rate, now_ns);
        int64_t wait_ns = gm_bucket_wait(&quota->bucket[kind], &rate, rate.tokens, now_ns);
        policy_at +=
            (size_t)snprintf(policy + policy_at, GM_RATE_LIMIT_MAX - policy_at,
                             "%s\"%s\";q=%llu;qu=\"%s\";w=%lld", policy_at ? ", " : "",
                             gm_quota_name(kind), (unsigned long long)quota->limits.most[kind],
                             units[kind], (long long)(rate.window_ns / SECOND));
        state_at += (size_t)snprintf(
            state + state_at, GM_RATE_LIMIT_MAX - state_at, "%s\"%s\";r=%llu;t=%lld",
            state_at ? ", " : "", gm_quota_name(kind),
            (unsigned long long)(kind == GM_QUOTA_DEVICE ? left / (uint64_t)SECOND : left),
            (long long)((wait_ns + SECOND - 1) / SECOND));
    }
    pthread_mutex_unlock(&quota->mutex);
}
