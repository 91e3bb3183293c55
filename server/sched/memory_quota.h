/*
 * memory_quota.h - the memory quota: admits requests by the part of --memory-limit that they hold.
 *
 * A request reserves memory before it allocates, so the limit holds. Allocations are a backend's
 * buffers, so buffers kept for reuse count too.
 *
 * Clients share memory as they share queue slots (sched.h): a client may hold GM_MEMORY_SHARE times
 * what is free, so one client leaves a fifth to others. A request too large for that rule is
 * admitted while the others hold next to nothing.
 *
 * One part in GM_SMALL_MEMORY_PART of the limit is for small requests only, which take at most one
 * part in GM_SMALL_PART of it each. Clients share it by the same rule.
 */
#ifndef GM_SERVER_SCHED_MEMORY_QUOTA_H
#define GM_SERVER_SCHED_MEMORY_QUOTA_H

#include "kernels/backend.h"

#include "server/access/quota.h"
#include "server/sched/fair_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct gm_memory_quota {
    uint64_t limit; /* bytes */

    /* Whoever may be refused takes it, so that two who ask at once get one answer after the other.
     * What is added or given back without a question needs no mutex: event threads do that twice a
     * request, and would wait for each other. */
    pthread_mutex_t mutex;
    _Alignas(64) _Atomic uint64_t reserved;
    _Atomic uint64_t small; /* part of `reserved` that small requests hold */
    struct {
        _Atomic uint64_t all, small;
    } held[GM_FAIR_BUCKETS]; /* bytes by client */
};

/* The reservation of one request: used <= reserved - spare, and `reserved` is counted in the quota.
 * `spare` is no longer needed, but not given back yet. Used by one thread at a time. */
struct gm_reservation {
    struct gm_memory_quota *quota;
    uint64_t client;               /* client id: head.h */
    struct gm_quota *client_quota; /* may limit what its client holds; NULL: it does not */
    uint64_t reserved, used, spare;
    bool in_steps; /* for what ends soon: it may reserve more than it needs, see GM_SMALL_STEP */
};

/* A buffer that a reservation counts, with its backend. All zero: none. */
struct gm_allocation {
    struct gm_buffer buffer;
    const struct gm_backend *backend;
    void *context;
};

/* Where an allocation's buffer comes from. */
struct gm_allocator {
    const struct gm_backend *backend;
    void *context;
};

#define GM_SMALL_MEMORY_PART 16
#define GM_SMALL_PART 8
/* Small requests reserve whole steps while half of the limit is free and no quota bounds what their
 * client holds: operands, result and text of a typical one are counted once, without the mutex. */
#define GM_SMALL_STEP ((uint64_t)64 << 10)
#define GM_MEMORY_SHARE 4

/* Fails with GM_INTERNAL if the mutex cannot be created. */
enum gm_status gm_memory_quota_open(struct gm_memory_quota *quota, uint64_t limit,
                                    struct gm_error *err);
void gm_memory_quota_close(struct gm_memory_quota *quota);
/* Whether a request of this many bytes is small. */
bool gm_memory_quota_is_small(const struct gm_memory_quota *quota, uint64_t bytes);
/* Bytes that a client has reserved. */
uint64_t gm_memory_quota_held(struct gm_memory_quota *quota, uint64_t client);

/*
 * Raises the reservation to `used + more`, if it is lower. GM_TOO_LARGE if that exceeds the limit,
 * GM_MEMORY_FULL or GM_QUOTA_EXCEEDED if it does not fit now; on failure nothing changes.
 */
enum gm_status gm_reservation_raise(struct gm_reservation *reservation, uint64_t more,
                                    struct gm_error *err);
/* Lowers the reservation to `used + more`, if it is higher. */
void gm_reservation_trim(struct gm_reservation *reservation, uint64_t more);

/* Bytes of a reservation that an allocation of `bytes` takes. */
uint64_t gm_allocation_cost(struct gm_allocator allocator, uint64_t bytes);
/* Reserves what is missing, then allocates. `allocation` must be empty. */
enum gm_status gm_allocation_make(struct gm_allocation *allocation,
                                  struct gm_reservation *reservation, struct gm_allocator allocator,
                                  uint64_t bytes, struct gm_error *err);
/* Frees the allocation and its part of the reservation. An empty one is fine. */
void gm_allocation_free(struct gm_allocation *allocation, struct gm_reservation *reservation);
/* Frees the allocation, and keeps its part of the reservation for another one. */
void gm_allocation_drop(struct gm_allocation *allocation, struct gm_reservation *reservation);
/* Moves an allocation, and its part of a reservation, to another one: *to is empty. Only the
 * client's quota of the other reservation can refuse it, with GM_QUOTA_EXCEEDED or GM_TOO_LARGE. */
enum gm_status gm_allocation_move(struct gm_allocation *to, struct gm_reservation *to_reservation,
                                  struct gm_allocation *from,
                                  struct gm_reservation *from_reservation, struct gm_error *err);

#endif
