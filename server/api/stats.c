#include "server/api/stats.h"

const double gm_bucket_bounds[GM_BUCKET_COUNT] = {
    1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3,
    1e-2, 2.5e-2, 5e-2, 0.1,  0.25,   0.5,  1,    2.5,    5,    10,   30,     60,
};

void gm_histogram_add(struct gm_histogram *histogram, double seconds)
{
    unsigned i = 0;

    while (i < GM_BUCKET_COUNT && seconds > gm_bucket_bounds[i])
        i++;
    atomic_fetch_add_explicit(&histogram->bucket[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_ns, (uint64_t)(seconds * 1e9), memory_order_relaxed);
}

void gm_stats_account(struct gm_stats *stats, enum gm_op_kind op, const struct gm_account *account)
{
    for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
        if (account->us[i] >= 0)
            gm_histogram_add(&stats->stage[op][i], account->us[i] * 1e-6);
    gm_histogram_add(&stats->total[op], account->total_us * 1e-6);
    atomic_store_explicit(&stats->last_ns[op],
                          account->started_ns + (int64_t)(account->total_us * 1e3),
                          memory_order_relaxed);
}
