#include "server/sched/memory_quota.h"

enum gm_status gm_memory_quota_open(struct gm_memory_quota *quota, uint64_t limit,
                                    struct gm_error *err)
{
    if (pthread_mutex_init(&quota->mutex, NULL) != 0)
        return gm_fail(err, GM_INTERNAL, "no lock for the memory of requests");
    quota->limit = limit;
    return GM_OK;
}

void gm_memory_quota_close(struct gm_memory_quota *quota)
{
    pthread_mutex_destroy(&quota->mutex);
}

uint64_t gm_memory_quota_held(struct gm_memory_quota *quota, uint64_t client)
{
    return quota->held[gm_fair_bucket(client)].all;
}

static uint64_t small_part(const struct gm_memory_quota *quota)
{
    return quota->limit / GM_SMALL_MEMORY_PART;
}

bool gm_memory_quota_is_small(const struct gm_memory_quota *quota, uint64_t bytes)
{
    return bytes <= small_part(quota) / GM_SMALL_PART;
}

/* Part of a reservation of `total` bytes that counts as small. */
static uint64_t small_bytes(const struct gm_memory_quota *quota, uint64_t total)
{
    return gm_memory_quota_is_small(quota, total) ? total : 0;
}

/* Limit of all reservations together, for a request that will hold `total`. */
static uint64_t ceiling(const struct gm_memory_quota *quota, uint64_t total)
{
    uint64_t large = quota->limit - small_part(quota);

    return small_bytes(quota, total) > 0 || total > large ? quota->limit : large;
}

/* Whether a client may hold `held` of `whole` if `taken` is taken then. */
static bool is_fair(uint64_t held, uint64_t taken, uint64_t whole)
{
    return taken <= whole && held / GM_MEMORY_SHARE <= whole - taken;
}

/* Whether the reservation may rise to `total`, which fits below the ceiling beside `others`. The
 * mutex is held. */
static bool may_have(const struct gm_reservation *reservation, uint64_t total, uint64_t others)
{
    const struct gm_memory_quota *quota = reservation->quota;
    unsigned bucket = gm_fair_bucket(reservation->client);
    uint64_t most = ceiling(quota, total);
    uint64_t had = small_bytes(quota, reservation->reserved), small = small_bytes(quota, total);

    if (is_fair(quota->held[bucket].all - reservation->reserved + total, others + total, most))
        return true;
    if (small > 0)
        return is_fair(quota->held[bucket].small - had + small, quota->small - had + small,
                       small_part(quota));
    return !is_fair(total, total, most) && others <= small_part(quota);
}

/* Counts a change of the reservation to `total` by client and size, and not in `reserved`. */
static void count(struct gm_reservation *reservation, uint64_t total)
{
    struct gm_memory_quota *quota = reservation->quota;
    unsigned bucket = gm_fair_bucket(reservation->client);
    /* They wrap around if `total` is less; so do the sums. */
    uint64_t more = total - reservation->reserved;
    uint64_t more_small = small_bytes(quota, total) - small_bytes(quota, reservation->reserved);

    atomic_fetch_add(&quota->held[bucket].all, more);
    if (more_small != 0) {
        atomic_fetch_add(&quota->small, more_small);
        atomic_fetch_add(&quota->held[bucket].small, more_small);
    }
    reservation->reserved = total;
    reservation->spare = 0;
}

static void set_reserved(struct gm_reservation *reservation, uint64_t total)
{
    atomic_fetch_add(&reservation->quota->reserved, total - reservation->reserved);
    count(reservation, total);
}

/* Gives back all but `total` bytes: a small reservation only when it ends, so that small requests
 * seldom change the counters that all share. */
static void lower(struct gm_reservation *reservation, uint64_t total)
{
    reservation->spare = reservation->reserved - total;
    if (total > 0 && gm_memory_quota_is_small(reservation->quota, reservation->reserved))
        return;
    gm_quota_release(reservation->client_quota, reservation->reserved - total);
    set_reserved(reservation, total);
}

/* Whether the reservation may rise to `total` beside `others`. The mutex is held. */
static enum gm_status check(const struct gm_reservation *reservation, uint64_t total,
                            uint64_t others, struct gm_error *err)
{
    const struct gm_memory_quota *quota = reservation->quota;
    uint64_t most = ceiling(quota, total), more = total - reservation->reserved;

    if (others > most || total > most - others)
        return gm_fail(err, GM_MEMORY_FULL,
                       "%llu of %llu bytes for requests%s are in use, and this one needs %llu more",
                       (unsigned long long)(others + reservation->reserved),
                       (unsigned long long)most, most < quota->limit ? " that are not small" : "",
                       (unsigned long long)more);
    if (!may_have(reservation, total, others))
        return gm_fail(err, GM_MEMORY_FULL,
                       "requests of this client hold %llu of the %llu bytes for requests "
                       "(--memory-limit), this one needs %llu more, and the rest is kept for "
                       "other clients",
                       (unsigned long long)quota->held[gm_fair_bucket(reservation->client)].all,
                       (unsigned long long)quota->limit, (unsigned long long)more);
    return GM_OK;
}

/* Raises the reservation to `total`. Looks again where rise_by_steps added something meanwhile, so
 * that the limit holds. The mutex is held. */
static enum gm_status raise_to(struct gm_reservation *reservation, uint64_t total,
                               struct gm_error *err)
{
    struct gm_memory_quota *quota = reservation->quota;
    uint64_t had = reservation->reserved, all = quota->reserved;
    enum gm_status status;

    do {
        status = check(reservation, total, all - had, err);
        if (status != GM_OK)
            return status;
    } while (!atomic_compare_exchange_weak(&quota->reserved, &all, all + (total - had)));
    status = gm_quota_hold(reservation->client_quota, had, total, err);
    if (status == GM_OK)
        count(reservation, total);
    else
        atomic_fetch_sub(&quota->reserved, total - had);
    return status;
}

/* Raises a small reservation to whole steps, without the mutex, if half of the limit is free then:
 * even a client that holds the other half alone has no more than its share. */
static bool rise_by_steps(struct gm_reservation *reservation, uint64_t total)
{
    struct gm_memory_quota *quota = reservation->quota;
    uint64_t whole = (total + GM_SMALL_STEP - 1) / GM_SMALL_STEP * GM_SMALL_STEP;
    uint64_t more = whole - reservation->reserved, all = quota->reserved;

    if (!reservation->in_steps || !gm_memory_quota_is_small(quota, whole) ||
        gm_quota_limits_memory(reservation->client_quota))
        return false;
    do {
        if (all > quota->limit / 2 || more > quota->limit / 2 - all)
            return false;
    } while (!atomic_compare_exchange_weak(&quota->reserved, &all, all + more));
    gm_quota_hold_surely(reservation->client_quota, more);
    count(reservation, whole);
    reservation->spare = whole - total;
    return true;
}

enum gm_status gm_reservation_raise(struct gm_reservation *reservation, uint64_t more,
                                    struct gm_error *err)
{
    struct gm_memory_quota *quota = reservation->quota;
    uint64_t total;

    if (!gm_size_add(reservation->used, more, &total) || total > quota->limit)
        return gm_fail(
            err, GM_TOO_LARGE,
            "this request has %llu bytes and needs %llu more, for its operands, its result and "
            "their text, and all requests together may have %llu (--memory-limit)",
            (unsigned long long)reservation->used, (unsigned long long)more,
            (unsigned long long)quota->limit);
    if (total <= reservation->reserved) {
        if (reservation->spare > reservation->reserved - total)
            reservation->spare = reservation->reserved - total;
        return GM_OK;
    }
    if (rise_by_steps(reservation, total))
        return GM_OK;
    pthread_mutex_lock(&quota->mutex);
    enum gm_status status = raise_to(reservation, total, err);
    pthread_mutex_unlock(&quota->mutex);
    return status;
}

void gm_reservation_trim(struct gm_reservation *reservation, uint64_t more)
{
    uint64_t total;

    if (gm_size_add(reservation->used, more, &total) && total < reservation->reserved)
        lower(reservation, total);
}

uint64_t gm_allocation_cost(struct gm_allocator allocator, uint64_t bytes)
{
    return allocator.backend->buffer_cost(allocator.context, bytes);
}

enum gm_status gm_allocation_make(struct gm_allocation *allocation,
                                  struct gm_reservation *reservation, struct gm_allocator allocator,
                                  uint64_t bytes, struct gm_error *err)
{
    enum gm_status status =
        gm_reservation_raise(reservation, gm_allocation_cost(allocator, bytes), err);

    if (status == GM_OK)
        status = allocator.backend->buffer_get(allocator.context, bytes, &allocation->buffer, err);
    if (status != GM_OK)
        return status;
    allocation->backend = allocator.backend;
    allocation->context = allocator.context;
    reservation->used += allocation->buffer.capacity;
    return GM_OK;
}

void gm_allocation_free(struct gm_allocation *allocation, struct gm_reservation *reservation)
{
    uint64_t capacity = allocation->buffer.capacity;

    if (!allocation->backend)
        return;
    allocation->backend->buffer_put(allocation->context, &allocation->buffer);
    *allocation = (struct gm_allocation){0};
    reservation->used -= capacity;
    lower(reservation, reservation->reserved - reservation->spare - capacity);
}

void gm_allocation_drop(struct gm_allocation *allocation, struct gm_reservation *reservation)
{
    if (!allocation->backend)
        return;
    reservation->used -= allocation->buffer.capacity;
    allocation->backend->buffer_put(allocation->context, &allocation->buffer);
    *allocation = (struct gm_allocation){0};
}

enum gm_status gm_allocation_move(struct gm_allocation *to, struct gm_reservation *to_reservation,
                                  struct gm_allocation *from,
                                  struct gm_reservation *from_reservation, struct gm_error *err)
{
    struct gm_memory_quota *quota = to_reservation->quota;
    uint64_t capacity = from->buffer.capacity, had = to_reservation->reserved;
    uint64_t left = from_reservation->reserved - capacity;

    pthread_mutex_lock(&quota->mutex);
    gm_quota_release(from_reservation->client_quota, capacity);
    enum gm_status status = gm_quota_hold(to_reservation->client_quota, had, had + capacity, err);
    if (status == GM_OK) {
        uint64_t spare = from_reservation->spare < left ? from_reservation->spare : left;
        set_reserved(to_reservation, had + capacity); /* first: else others might take it */
        set_reserved(from_reservation, left);
        from_reservation->spare = spare;
    } else {
        gm_quota_hold_surely(from_reservation->client_quota,
                             capacity); /* it was this one's until now */
    }
    pthread_mutex_unlock(&quota->mutex);
    if (status != GM_OK)
        return status;
    from_reservation->used -= capacity;
    to_reservation->used += capacity;
    *to = *from;
    *from = (struct gm_allocation){0};
    return GM_OK;
}
