/*
 * slow_client.h - measures how far a client is behind the minimum rate.
 *
 * While we wait for a client its lag grows with time. Each byte that moves reduces the lag by the
 * time that the byte takes at the minimum rate. The lag is never below zero: a fast start earns
 * no credit. Time in which the client waits for us does not count.
 */
#ifndef GM_SERVER_HTTP_SLOW_CLIENT_H
#define GM_SERVER_HTTP_SLOW_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

struct gm_client_lag {
    int64_t seen_ns; /* of the last look */
    int64_t late_ns; /* the lag then */
    uint64_t bytes;  /* moved until then */
};

/*
 * The minimum rate, in bytes a second, of a client whose request holds `held` bytes of `memory`:
 * CLIENT_RATE_MIN, or more if the request holds much. Then the rate moves all that it holds within
 * CLIENT_MEMORY_S if that is all memory, within twice that time if it is half, and so on.
 */
double gm_client_rate_min(uint64_t held, uint64_t memory);

/* Begins a wait for the client. bytes: moved so far. */
void gm_client_lag_start(struct gm_client_lag *lag, int64_t now_ns, uint64_t bytes);
/* Updates the lag. ours: since the last look the client waited for us. */
void gm_client_lag_look(struct gm_client_lag *lag, int64_t now_ns, uint64_t bytes, double rate,
                        bool ours);

#endif
