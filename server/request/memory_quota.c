#include "server/request/memory_quota.h"

enum gm_status gm_budget_open(struct gm_budget *budget, uint64_t limit, struct gm_error *err)
{
    if (pthread_mutex_init(&budget->mutex, NULL) != 0)
        return gm_fail(err, GM_INTERNAL, "no lock for the memory of requests");
    budget->limit = limit;
    return GM_OK;
}

void gm_budget_close(struct gm_budget *budget)
{
    pthread_mutex_destroy(&budget->mutex);
}

uint64_t gm_budget_held(struct gm_budget *budget, uint64_t client)
{
    pthread_mutex_lock(&budget->mutex);
    uint64_t held = budget->held[gm_fair_bucket(client)].all;
    pthread_mutex_unlock(&budget->mutex);
    return held;
}

static uint64_t small_part(const struct gm_budget *budget)
{
    return budget->limit / GM_SMALL_MEMORY_PART;
}

bool gm_budget_is_small(const struct gm_budget *budget, uint64_t bytes)
{
    return bytes <= small_part(budget) / GM_SMALL_PART;
}

/* What counts as a small request's if one has `total`. */
static uint64_t small_bytes(const struct gm_budget *budget, uint64_t total)
{
    return gm_budget_is_small(budget, total) ? total : 0;
}

/* What may be reserved in all when a request is to have `total` of it. */
static uint64_t ceiling(const struct gm_budget *budget, uint64_t total)
{
    uint64_t large = budget->limit - small_part(budget);

    return small_bytes(budget, total) > 0 || total > large ? budget->limit : large;
}

/* Whether a client may hold so much of a whole of which so much is taken then. */
static bool is_fair(uint64_t held, uint64_t taken, uint64_t whole)
{
    return taken <= whole && held / GM_MEMORY_SHARE <= whole - taken;
}

/* Whether the share may have `total`, which fits below the ceiling. The mutex is held. */
static bool may_have(const struct gm_share *share, uint64_t total)
{
    const struct gm_budget *budget = share->budget;
    unsigned bucket = gm_fair_bucket(share->client);
    uint64_t others = budget->reserved - share->reserved, most = ceiling(budget, total);
    uint64_t had = small_bytes(budget, share->reserved), small = small_bytes(budget, total);

    if (is_fair(budget->held[bucket].all - share->reserved + total, others + total, most))
        return true;
    if (small > 0)
        return is_fair(budget->held[bucket].small - had + small, budget->small - had + small,
                       small_part(budget));
    return !is_fair(total, total, most) && others <= small_part(budget);
}

/* Changes what a share has reserved. The mutex is held. */
static void set_reserved(struct gm_share *share, uint64_t total)
{
    struct gm_budget *budget = share->budget;
    unsigned bucket = gm_fair_bucket(share->client);
    uint64_t more = total - share->reserved; /* sums wrap around where it is less */
    uint64_t more_small = small_bytes(budget, total) - small_bytes(budget, share->reserved);

    budget->reserved += more;
    budget->held[bucket].all += more;
    budget->small += more_small;
    budget->held[bucket].small += more_small;
    share->reserved = total;
}

static void lower(struct gm_share *share, uint64_t total)
{
    pthread_mutex_lock(&share->budget->mutex);
    set_reserved(share, total);
    pthread_mutex_unlock(&share->budget->mutex);
}

/* Raises the reservation to `total`. The mutex is held. */
static enum gm_status raise_to(struct gm_share *share, uint64_t total, struct gm_error *err)
{
    const struct gm_budget *budget = share->budget;
    uint64_t all = budget->reserved, most = ceiling(budget, total);
    uint64_t held = budget->held[gm_fair_bucket(share->client)].all;

    if (all - share->reserved > most || total > most - (all - share->reserved))
        return gm_fail(err, GM_MEMORY_FULL,
                       "%llu of %llu bytes for requests%s are in use, and this one needs %llu more",
                       (unsigned long long)all, (unsigned long long)most,
                       most < budget->limit ? " that are not small" : "",
                       (unsigned long long)(total - share->reserved));
    if (!may_have(share, total))
        return gm_fail(err, GM_MEMORY_FULL,
                       "requests from this address hold %llu of the %llu bytes for requests "
                       "(--memory-limit), this one needs %llu more, and the last ones are kept for "
                       "others",
                       (unsigned long long)held, (unsigned long long)budget->limit,
                       (unsigned long long)(total - share->reserved));
    set_reserved(share, total);
    return GM_OK;
}

enum gm_status gm_share_reserve(struct gm_share *share, uint64_t more, struct gm_error *err)
{
    struct gm_budget *budget = share->budget;
    uint64_t total;

    if (!gm_size_add(share->used, more, &total) || total > budget->limit)
        return gm_fail(
            err, GM_TOO_LARGE,
            "this request needs %llu bytes beside the %llu it has, for its operands, its "
            "result and their text, and all requests together may have %llu "
            "(--memory-limit)",
            (unsigned long long)more, (unsigned long long)share->used,
            (unsigned long long)budget->limit);
    if (total <= share->reserved)
        return GM_OK;
    pthread_mutex_lock(&budget->mutex);
    enum gm_status status = raise_to(share, total, err);
    pthread_mutex_unlock(&budget->mutex);
    return status;
}

void gm_share_trim(struct gm_share *share, uint64_t more)
{
    uint64_t total;

    if (gm_size_add(share->used, more, &total) && total < share->reserved)
        lower(share, total);
}

uint64_t gm_block_cost(struct gm_source source, uint64_t bytes)
{
    return source.backend->buffer_cost(source.context, bytes);
}

enum gm_status gm_block_get(struct gm_block *block, struct gm_share *share, struct gm_source source,
                            uint64_t bytes, struct gm_error *err)
{
    enum gm_status status = gm_share_reserve(share, gm_block_cost(source, bytes), err);

    if (status == GM_OK)
        status = source.backend->buffer_get(source.context, bytes, &block->buffer, err);
    if (status != GM_OK)
        return status;
    block->backend = source.backend;
    block->context = source.context;
    share->used += block->buffer.capacity;
    return GM_OK;
}

void gm_block_put(struct gm_block *block, struct gm_share *share)
{
    uint64_t capacity = block->buffer.capacity;

    if (!block->backend)
        return;
    block->backend->buffer_put(block->context, &block->buffer);
    *block = (struct gm_block){0};
    share->used -= capacity;
    lower(share, share->reserved - capacity);
}
