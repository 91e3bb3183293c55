#include "server/http/connection_limiter.h"

#include "server/clock.h"
#include "server/http/internal.h"
#include "server/limits.h"
#include "server/log.h"

#include <fcntl.h>
#include <sys/resource.h>

void gm_descriptors_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Tests descriptors one by one: this needs neither /proc nor a descriptor. */
static unsigned count_free(rlim_t limit, unsigned most)
{
    unsigned n = 0;

    for (int fd = 0; (rlim_t)fd < limit && n < most; fd++)
        n += fcntl(fd, F_GETFD) < 0;
    return n;
}

enum gm_status gm_descriptors_connections(unsigned others, unsigned *ret, struct gm_error *err)
{
    struct rlimit limit;
    unsigned kept = others + GM_OTHER_DESCRIPTORS;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return gm_fail(err, GM_INTERNAL,
                       "cannot read the limit of file descriptors (RLIMIT_NOFILE)");
    unsigned left = count_free(limit.rlim_cur, GM_CONNECTIONS_MAX + kept);
    if (left < GM_CONNECTIONS_MIN + kept)
        return gm_fail(err, GM_INTERNAL,
                       "gemmd may have %llu file descriptors (ulimit -n) and needs %llu: %d for "
                       "connections, %u for everything else",
                       (unsigned long long)limit.rlim_cur,
                       (unsigned long long)limit.rlim_cur - left + GM_CONNECTIONS_MIN + kept,
                       GM_CONNECTIONS_MIN, (unsigned)(limit.rlim_cur - left) + kept);
    *ret = left - kept;
    if (*ret < GM_CONNECTIONS_MAX)
        gm_log(GM_LOG_WARN, "descriptors", "limit=%llu connections_max=%u wanted=%d",
               (unsigned long long)limit.rlim_cur, *ret, GM_CONNECTIONS_MAX);
    return GM_OK;
}

/* Answers and counts a connection that was closed before its head was complete. It has no request
 * yet. */
static void refuse_head(struct gm_limiter *limiter, int socket)
{
    struct gm_error error;

    gm_fail(&error, GM_UPLOAD_TIMEOUT,
            "the request line and headers were not complete within %d seconds",
            GM_CONNECTION_IDLE_S);
    gm_raw_refuse_head(socket, &error);
    atomic_fetch_add(&limiter->stats->failed[error.status], 1);
    atomic_fetch_add(&limiter->stats->answered[gm_route_count()][gm_status_http(error.status)], 1);
}

static void on_end(void *cls, const struct gm_connection *c, enum gm_connection_phase phase,
                   enum gm_connection_end why)
{
    static const enum gm_counter slow[] = {[GM_CONNECTION_HEAD] = GM_COUNT_SLOW_HEADS_ENDED,
                                           [GM_CONNECTION_BODY] = GM_COUNT_SLOW_BODIES_ENDED,
                                           [GM_CONNECTION_REPLY] = GM_COUNT_SLOW_READERS_ENDED};
    struct gm_limiter *limiter = cls;

    if (why == GM_END_IDLE)
        gm_stats_add(limiter->stats, GM_COUNT_IDLE_ENDED, 1);
    else if (why == GM_END_CROWDED || why == GM_END_WANTED)
        gm_stats_add(limiter->stats, GM_COUNT_EVICTED, 1);
    else if (why == GM_END_SLOW)
        gm_stats_add(limiter->stats, slow[phase], 1);
    /* Over TLS there is no answer: this thread may not use the session. */
    if (why == GM_END_SLOW && phase == GM_CONNECTION_HEAD && !c->tls)
        refuse_head(limiter, c->socket);
}

enum gm_status gm_limiter_open(struct gm_limiter *limiter, unsigned max,
                               struct gm_connections *connections, struct gm_stats *stats,
                               struct gm_error *err)
{
    enum gm_status status = gm_connections_open(connections, err);

    if (status != GM_OK)
        return status;
    *limiter = (struct gm_limiter){.connections = connections, .stats = stats, .max = max};
    connections->ended = on_end;
    connections->cls = limiter;
    return GM_OK;
}

void gm_limiter_close(struct gm_limiter *limiter)
{
    gm_connections_close(limiter->connections);
}

static unsigned underway(const struct gm_limiter *limiter)
{
    unsigned passed = atomic_load(&limiter->passed); /* read first: it never exceeds `entered` */

    return atomic_load(&limiter->entered) - passed;
}

/* Connections above the target, which leaves one in SPARE_PART free. Negative: below it. */
static int excess(struct gm_limiter *limiter)
{
    unsigned staying = gm_connections_staying(limiter->connections) + underway(limiter);

    return (int)staying - (int)(limiter->max - limiter->max / GM_SPARE_PART);
}

bool gm_limiter_has_room(const struct gm_limiter *limiter, unsigned lingering)
{
    return gm_connections_count(limiter->connections) + underway(limiter) + lingering <
           limiter->max;
}

bool gm_limiter_crowded(struct gm_limiter *limiter)
{
    return excess(limiter) > 0;
}

void gm_limiter_enter(struct gm_limiter *limiter)
{
    atomic_fetch_add(&limiter->entered, 1);
    if (excess(limiter) > 0)
        gm_connections_evict(limiter->connections, GM_END_CROWDED, NULL, NULL);
}

void gm_limiter_missed(struct gm_limiter *limiter)
{
    unsigned passed = atomic_load(&limiter->passed);

    /* If give_up_lost was faster, the connection is counted already. */
    while (passed != atomic_load(&limiter->entered) &&
           !atomic_compare_exchange_weak(&limiter->passed, &passed, passed + 1))
        ;
}

bool gm_limiter_underway(struct gm_limiter *limiter)
{
    return underway(limiter) > 0;
}

struct gm_connection *gm_limiter_passed(struct gm_limiter *limiter, int socket, uint64_t client,
                                        struct gm_tls *tls)
{
    struct gm_connection *c = gm_connections_add(limiter->connections, socket, client, tls);

    gm_stats_add(limiter->stats, GM_COUNT_CONNECTIONS, 1);
    gm_limiter_missed(limiter); /* it is counted above, and so always at least once */
    return c;
}

static void give_up_lost(struct gm_limiter *limiter)
{
    unsigned passed = atomic_load(&limiter->passed), all = limiter->entered_before;

    while ((int)(all - passed) > 0 && !atomic_compare_exchange_weak(&limiter->passed, &passed, all))
        ;
    limiter->entered_before = atomic_load(&limiter->entered);
}

/* A client that was refused memory, and what it holds. */
struct wish {
    struct gm_memory_quota *quota;
    uint64_t client, held;
};

static bool holds_more(void *cls, const struct gm_connection *c)
{
    const struct wish *wish = cls;

    return !gm_memory_quota_is_small(wish->quota, atomic_load(&c->held)) &&
           c->client != wish->client && gm_memory_quota_held(wish->quota, c->client) > wish->held;
}

void gm_limiter_evict_for_memory(struct gm_connections *connections, struct gm_memory_quota *quota,
                                 uint64_t client)
{
    struct wish wish = {quota, client, gm_memory_quota_held(quota, client)};

    gm_connections_evict(connections, GM_END_WANTED, holds_more, &wish);
}

void gm_limiter_tick(struct gm_limiter *limiter)
{
    gm_connections_sweep(limiter->connections, gm_now_ns());
    give_up_lost(limiter);
    /* When a burst of connections arrived, none was late enough yet to be closed. */
    while (excess(limiter) > 0 &&
           gm_connections_evict(limiter->connections, GM_END_CROWDED, NULL, NULL))
        ;
}
