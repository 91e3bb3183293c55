#include "server/budget.h"

/* What may be reserved in all when a request is to have `total` of it. */
static uint64_t ceiling(uint64_t limit, uint64_t total)
{
    uint64_t kept = limit / GM_SMALL_MEMORY_PART;

    return total <= kept / GM_SMALL_PART || total > limit - kept ? limit : limit - kept;
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

    uint64_t raise = total - share->reserved, most = ceiling(budget->limit, total);
    uint64_t all = atomic_load_explicit(&budget->reserved, memory_order_relaxed);
    do {
        if (all > most || raise > most - all)
            return gm_fail(
                err, GM_MEMORY_FULL,
                "%llu of %llu bytes for requests%s are in use, and this one needs %llu more",
                (unsigned long long)all, (unsigned long long)most,
                most < budget->limit ? " that are not small" : "", (unsigned long long)raise);
    } while (!atomic_compare_exchange_weak(&budget->reserved, &all, all + raise));
    share->reserved = total;
    return GM_OK;
}

void gm_share_trim(struct gm_share *share, uint64_t more)
{
    uint64_t total;

    if (!gm_size_add(share->used, more, &total) || total >= share->reserved)
        return;
    atomic_fetch_sub(&share->budget->reserved, share->reserved - total);
    share->reserved = total;
}

uint64_t gm_block_cost(struct gm_source source, uint64_t bytes)
{
    return source.backend->slab_cost(source.context, bytes);
}

enum gm_status gm_block_get(struct gm_block *block, struct gm_share *share, struct gm_source source,
                            uint64_t bytes, struct gm_error *err)
{
    enum gm_status status = gm_share_reserve(share, gm_block_cost(source, bytes), err);

    if (status == GM_OK)
        status = source.backend->slab_get(source.context, bytes, &block->slab, err);
    if (status != GM_OK)
        return status;
    block->backend = source.backend;
    block->context = source.context;
    share->used += block->slab.capacity;
    return GM_OK;
}

void gm_block_put(struct gm_block *block, struct gm_share *share)
{
    uint64_t capacity = block->slab.capacity;

    if (!block->backend)
        return;
    block->backend->slab_put(block->context, &block->slab);
    *block = (struct gm_block){0};
    share->used -= capacity;
    share->reserved -= capacity;
    atomic_fetch_sub(&share->budget->reserved, capacity);
}
