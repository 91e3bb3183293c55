/*
 * stats.h - the daemon's counters and histograms: relaxed atomics that any thread may increment.
 *
 * /v1/stats is made from the lists here, /metrics from these and the list in metrics.c. The last
 * accounts, which /v1/requests shows, are kept here too.
 */
#ifndef GM_SERVER_API_STATS_H
#define GM_SERVER_API_STATS_H

#include "kernels/op.h"
#include "server/access/quota.h"
#include "server/limits.h"
#include "server/request/account.h"
#include "server/request/head.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* X(NAME, member, metric, help): the counters. `member` is in "counters" of /v1/stats. A metric's
 * name ends in its base unit and _total. */
#define GM_COUNTER_LIST(X)                                                                         \
    X(REQUEST_BODY_BYTES, "request_body_bytes", "gemmd_request_body_bytes_total",                  \
      "Bytes of request bodies received.")                                                         \
    X(RESPONSE_BODY_BYTES, "response_body_bytes", "gemmd_response_body_bytes_total",               \
      "Bytes of replies' bodies handed to the network.")                                           \
    X(KERNEL_BYTES, "kernel_bytes", "gemmd_kernel_bytes_total",                                    \
      "Compulsory bytes of the jobs computed.")                                                    \
    X(KERNEL_FLOPS, "kernel_flops", "gemmd_kernel_flops_total",                                    \
      "Arithmetic operations of the jobs computed.")                                               \
    X(ABORTED, "aborted_requests", "gemmd_aborted_requests_total",                                 \
      "Requests whose connection ended before their reply was sent.")                              \
    X(RAN_INLINE, "inline_jobs", "gemmd_inline_jobs_total", "Small jobs run on an event thread.")  \
    X(CONNECTIONS, "connections", "gemmd_connections_accepted_total", "Connections accepted.")

/* X(NAME, member, reason, help): reasons why gemmd closed a connection; one metric, by reason. */
#define GM_CLOSING_LIST(X)                                                                         \
    X(NO_HTTP, "no_http_connections", "no_http",                                                   \
      "The client did not send HTTP, and got no answer.")                                          \
    X(NO_TLS, "failed_handshakes", "tls", "A handshake of TLS failed, or was none.")               \
    X(IDLE_ENDED, "idle_connections_ended", "idle", "No request came.")                            \
    X(SLOW_HEADS_ENDED, "slow_heads_ended", "slow_head",                                           \
      "The head of a request was not complete in time.")                                           \
    X(SLOW_BODIES_ENDED, "slow_bodies_ended", "slow_body", "A client sent a body too slowly.")     \
    X(SLOW_READERS_ENDED, "slow_readers_ended", "slow_reader",                                     \
      "A client read a reply too slowly.")                                                         \
    X(EVICTED, "evicted_connections", "evicted",                                                   \
      "The client was furthest behind when others needed room.")

enum gm_counter {
#define X(name, ...) GM_COUNT_##name,
    GM_COUNTER_LIST(X) GM_CLOSING_LIST(X)
#undef X
        GM_COUNTER_COUNT
};

/* Upper bounds of the buckets, in seconds; +Inf is one more. They range from a small kernel's
 * microseconds to the longest request. */
#define GM_BUCKET_COUNT 24
extern const double gm_bucket_bounds[GM_BUCKET_COUNT];

struct gm_histogram {
    _Atomic uint64_t bucket[GM_BUCKET_COUNT + 1]; /* not cumulative */
    _Atomic uint64_t sum_ns;
};

#define GM_ROUTES_MAX 96
#define GM_HTTP_STATUS_MAX 600

/* What each request counts two dozen times. */
struct gm_stats_shard {
    _Alignas(64) _Atomic uint64_t counter[GM_COUNTER_COUNT];
    _Atomic int64_t last_ns[GM_OP_COUNT]; /* time of the last result; 0: none */
    struct gm_histogram total[GM_OP_COUNT];
    struct gm_histogram stage[GM_OP_COUNT][GM_STAGE_COUNT];
};

/* Each processor adds to a shard of its own: sixteen that add to one cache line wait for each other
 * as long as a small product takes. */
#define GM_STATS_SHARDS 16

struct gm_stats {
    struct gm_stats_shard shard[GM_STATS_SHARDS];
    _Atomic uint64_t answered[GM_ROUTES_MAX][GM_HTTP_STATUS_MAX]; /* by route and HTTP status */
    _Atomic uint64_t failed[GM_STATUS_COUNT];                     /* by error */
};

void gm_stats_add(struct gm_stats *stats, enum gm_counter counter, uint64_t n);
/* The sums over all shards, and the last of the times. What is added meanwhile may be missing. */
void gm_stats_sum(const struct gm_stats *stats, struct gm_stats_shard *ret);

void gm_histogram_add(struct gm_histogram *histogram, double seconds);
/* Adds the stages that an account measured. */
void gm_stats_account(struct gm_stats *stats, enum gm_op_kind op, const struct gm_account *account);

/* ---- The last accounts. ---- */

/* What an account is made of, by value: it outlives its request. */
struct gm_recent {
    uint64_t number;                   /* from 1, in the order in which requests were answered */
    uint64_t client;                   /* client id */
    char client_name[GM_KEY_NAME_MAX]; /* of its key, or its address */
    char id[GM_REQUEST_ID_MAX];
    int64_t arrived_unix_us;
    struct gm_account account;
    const char *device, *placed;
    const struct gm_device_facts *facts;
    /* Of its task. */
    struct gm_op op; /* without data */
    const struct gm_variant *variant;
    struct gm_times times;
    struct gm_volume volume;
    unsigned repeat, batch;
    bool concurrent, has_accesses;
    int stream;                       /* of the device; -1: a tiny job of the CPU, on none */
    int64_t started_ns, finished_ns;  /* when its job had the device */
    struct gm_access_totals accesses; /* last, for it is seldom there */
};
_Static_assert(GM_KEY_NAME_MAX >= GM_CLIENT_TEXT_MAX, "a name or an address fits");

/* A ring of them. Each has a mutex of its own: with one for all, processors waited for each other's
 * copies. Any thread may call. */
struct gm_recents {
    _Atomic uint64_t count; /* of all that were added, which is the number of the newest */
    struct gm_recent_place {
        _Alignas(64) pthread_mutex_t mutex;
        struct gm_recent recent;
    } ring[GM_RECENT_ACCOUNTS_MAX];
};

/* Fails with GM_INTERNAL if the mutexes cannot be created. */
enum gm_status gm_recents_open(struct gm_recents *recents, struct gm_error *err);
void gm_recents_close(struct gm_recents *recents);
/* Keeps a copy in place of the oldest, under the next number. */
void gm_recents_add(struct gm_recents *recents, const struct gm_recent *recent);
/* Copies the newest that have a number above `since`, at most n, in the order of their numbers.
 * client: its own alone; NULL: all. One that is being added, and those after it, may be missing.
 * Returns how many there were. */
size_t gm_recents_copy(struct gm_recents *recents, const uint64_t *client, uint64_t since,
                       struct gm_recent *ret, size_t n);

#endif
