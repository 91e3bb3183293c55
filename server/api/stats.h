/*
 * stats.h - the daemon's counters and histograms: relaxed atomics that any thread may increment.
 *
 * /v1/stats is made from the lists here, /metrics from these and the list in metrics.c.
 */
#ifndef GM_SERVER_API_STATS_H
#define GM_SERVER_API_STATS_H

#include "kernels/op.h"
#include "server/request/account.h"

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
    X(RAN_INLINE, "inline_jobs", "gemmd_inline_jobs_total",                                        \
      "Small jobs run on an event thread, beside those of the device.")                            \
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

#define GM_ROUTES_MAX 64
#define GM_HTTP_STATUS_MAX 600

struct gm_stats {
    _Atomic uint64_t counter[GM_COUNTER_COUNT];
    _Atomic uint64_t answered[GM_ROUTES_MAX][GM_HTTP_STATUS_MAX]; /* by route and HTTP status */
    _Atomic uint64_t failed[GM_STATUS_COUNT];                     /* by error */
    _Atomic int64_t last_ns[GM_OP_COUNT]; /* time of the last result; 0: none */
    struct gm_histogram total[GM_OP_COUNT];
    struct gm_histogram stage[GM_OP_COUNT][GM_STAGE_COUNT];
};

static inline void gm_stats_add(struct gm_stats *stats, enum gm_counter counter, uint64_t n)
{
    atomic_fetch_add_explicit(&stats->counter[counter], n, memory_order_relaxed);
}

void gm_histogram_add(struct gm_histogram *histogram, double seconds);
/* Adds the stages that an account measured. */
void gm_stats_account(struct gm_stats *stats, enum gm_op_kind op, const struct gm_account *account);

#endif
