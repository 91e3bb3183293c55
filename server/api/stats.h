/*
 * stats.h - the daemon's counters and histograms: relaxed atomics that any thread may bump.
 * The one list of what is counted; /metrics and /v1/stats are written from it.
 */
#ifndef GM_SERVER_API_STATS_H
#define GM_SERVER_API_STATS_H

#include "kernels/op.h"
#include "server/request/account.h"

#include <stdatomic.h>
#include <stdint.h>

/* X(NAME, metric, unit text for people) - counters; the metric's name ends in its unit. */
#define GM_COUNTER_LIST(X)                                                                         \
    X(REQUEST_BODY_BYTES, "request_body_bytes", "Bytes of request bodies received.")               \
    X(RESPONSE_BODY_BYTES, "response_body_bytes",                                                  \
      "Bytes of replies' bodies handed to the network.")                                           \
    X(KERNEL_BYTES, "kernel_bytes", "Compulsory bytes of the jobs computed.")                      \
    X(KERNEL_FLOPS, "kernel_flops", "Arithmetic operations of the jobs computed.")                 \
    X(ABORTED, "aborted_requests", "Requests whose connection ended before their reply was sent.") \
    X(CONNECTIONS, "connections", "Connections taken.")                                            \
    X(NO_HTTP, "no_http_connections",                                                              \
      "Connections closed without an answer because what came by them is no HTTP.")                \
    X(IDLE_ENDED, "idle_connections_ended", "Connections closed because no request came by them.") \
    X(SLOW_HEADS_ENDED, "slow_heads_ended",                                                        \
      "Connections closed because the head of a request did not become whole.")                    \
    X(SLOW_BODIES_ENDED, "slow_bodies_ended",                                                      \
      "Connections closed because a body came too slowly.")                                        \
    X(SLOW_READERS_ENDED, "slow_readers_ended",                                                    \
      "Connections closed because a reply was taken too slowly.")                                  \
    X(EVICTED, "evicted_connections",                                                              \
      "Connections closed, the one furthest behind each time, to make room for others.")           \
    X(RAN_INLINE, "inline_jobs", "Small jobs run on an event thread, beside those of the device.")

enum gm_counter {
#define X(name, metric, help) GM_COUNT_##name,
    GM_COUNTER_LIST(X)
#undef X
        GM_COUNTER_COUNT
};

/* Upper bounds of the buckets, in seconds; +Inf is one more. From the microseconds of a small
 * kernel to the longest request. */
#define GM_BUCKET_COUNT 20
extern const double gm_bucket_bounds[GM_BUCKET_COUNT];

struct gm_histogram {
    _Atomic uint64_t bucket[GM_BUCKET_COUNT + 1]; /* not cumulative */
    _Atomic uint64_t sum_ns;
};

#define GM_ROUTES_MAX 64
#define GM_HTTP_STATUS_MAX 600

struct gm_stats {
    _Atomic uint64_t counter[GM_COUNTER_COUNT];
    _Atomic uint64_t answered[GM_ROUTES_MAX][GM_HTTP_STATUS_MAX]; /* by route and HTTP status */
    _Atomic uint64_t failed[GM_STATUS_COUNT];                     /* by what went wrong */
    _Atomic int64_t last_ns[GM_OP_COUNT]; /* when the last result was; 0: there was none */
    struct gm_histogram total[GM_OP_COUNT];
    struct gm_histogram stage[GM_OP_COUNT][GM_STAGE_COUNT];
};

static inline void gm_stats_add(struct gm_stats *stats, enum gm_counter counter, uint64_t n)
{
    atomic_fetch_add_explicit(&stats->counter[counter], n, memory_order_relaxed);
}

void gm_histogram_add(struct gm_histogram *histogram, double seconds);
/* Adds what an account measured. */
void gm_stats_account(struct gm_stats *stats, enum gm_op_kind op, const struct gm_account *account);

#endif
