/*
 * patience.h - how far a client is behind. While we wait for it, it falls behind as time passes,
 * and catches up with each byte that moves, at the least rate (CLIENT_RATE_MIN). It cannot get
 * ahead: whoever sent a gigabyte in a second and then nothing is as late as who sent nothing.
 * Time in which it waits for us is not held against it.
 */
#ifndef GM_SERVER_PATIENCE_H
#define GM_SERVER_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct gm_patience {
    int64_t seen_ns; /* when it was last looked at */
    int64_t late_ns; /* how far behind it was */
    uint64_t bytes;  /* what had moved */
};

/* A new wait, in which `bytes` have moved so far. */
void gm_patience_start(struct gm_patience *patience, int64_t now_ns, uint64_t bytes);
/* Another look at it. ours: since the last one it is we who kept the client waiting. */
void gm_patience_look(struct gm_patience *patience, int64_t now_ns, uint64_t bytes, bool ours);

#endif
