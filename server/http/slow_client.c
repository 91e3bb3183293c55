#include "server/http/slow_client.h"

#include "server/limits.h"

/* What one look can add. If this process was stopped for an hour, no client was late for one. */
#define STEP_NS_MAX (INT64_C(10) * 1000000000)

double gm_client_rate_min(uint64_t held, uint64_t memory)
{
    double part = memory > 0 ? (double)held / (double)memory : 0;
    double rate = (double)held * part / GM_CLIENT_MEMORY_S;

    return rate > GM_CLIENT_RATE_MIN ? rate : GM_CLIENT_RATE_MIN;
}

void gm_client_lag_start(struct gm_client_lag *p, int64_t now_ns, uint64_t bytes)
{
    *p = (struct gm_client_lag){.seen_ns = now_ns, .bytes = bytes};
}

void gm_client_lag_look(struct gm_client_lag *p, int64_t now_ns, uint64_t bytes, double rate,
                        bool ours)
{
    int64_t step = now_ns - p->seen_ns;
    double credit = (double)(bytes - p->bytes) * (1e9 / rate);

    if (step > STEP_NS_MAX)
        step = STEP_NS_MAX;
    if (!ours)
        p->late_ns += step;
    p->late_ns = credit < (double)p->late_ns ? p->late_ns - (int64_t)credit : 0;
    p->seen_ns = now_ns;
    p->bytes = bytes;
}
