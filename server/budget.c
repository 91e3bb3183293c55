#include "server/budget.h"

enum gm_status gm_share_grow(struct gm_share *share, uint64_t bytes, struct gm_error *err)
{
    struct gm_budget *budget = share->budget;

    if (bytes <= share->bytes)
        return GM_OK;
    if (bytes > budget->limit)
        return gm_fail(err, GM_TOO_LARGE,
                       "this request needs %llu bytes for its operands, its result and their text, "
                       "and all requests together may have %llu (--memory-limit)",
                       (unsigned long long)bytes, (unsigned long long)budget->limit);

    uint64_t more = bytes - share->bytes;
    uint64_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
    do {
        if (more > budget->limit - used)
            return gm_fail(
                err, GM_MEMORY_FULL,
                "%llu of %llu bytes for requests are in use, and this one needs %llu more",
                (unsigned long long)used, (unsigned long long)budget->limit,
                (unsigned long long)more);
    } while (!atomic_compare_exchange_weak(&budget->used, &used, used + more));
    share->bytes = bytes;
    return GM_OK;
}

void gm_share_release(struct gm_share *share, uint64_t bytes)
{
    if (bytes > share->bytes)
        bytes = share->bytes;
    share->bytes -= bytes;
    atomic_fetch_sub(&share->budget->used, bytes);
}
