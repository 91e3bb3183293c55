/*
 * slow_client.h - how far a client is behind. While we wait for it, it falls behind as time passes,
 * and catches up with each byte that moves, at the least rate. It cannot get ahead: whoever sent a
 * gigabyte in a second and then nothing is as late as who sent nothing. Time in which it waits for
 * us is not held against it.
 */
#ifndef GM_SERVER_HTTP_SLOW_CLIENT_H
#define GM_SERVER_HTTP_SLOW_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

struct gm_patience {
    int64_t seen_ns; /* when it was last looked at */
    int64_t late_ns; /* how far behind it was */
    uint64_t bytes;  /* what had moved */
};

/*
 * The least rate, in bytes a second, of a client whose request holds so much memory of so much:
 * CLIENT_RATE_MIN; or what moves all that it holds in as long as it may hold it, which is
 * CLIENT_MEMORY_S for all the memory there is, twice that for half of it, and so on.
 */
double gm_patience_rate(uint64_t held, uint64_t memory);

/* A new wait, in which `bytes` have moved so far. */
void gm_patience_start(struct gm_patience *patience, int64_t now_ns, uint64_t bytes);
/* Another look at it. ours: since the last one it is we who kept the client waiting. */
void gm_patience_look(struct gm_patience *patience, int64_t now_ns, uint64_t bytes, double rate,
                      bool ours);

#endif
