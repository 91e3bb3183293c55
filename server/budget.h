/*
 * budget.h - admission by memory: what the requests now being served have taken of
 * --memory-limit. A reservation is made before the memory is, so that the limit holds.
 */
#ifndef GM_SERVER_BUDGET_H
#define GM_SERVER_BUDGET_H

#include "proto/status.h"

#include <stdatomic.h>
#include <stdint.h>

struct gm_budget {
    uint64_t limit; /* bytes; set once, before use */
    _Atomic uint64_t used;
};

/*
 * One holder's share. It only grows while the holder lives: `grow` raises it to `bytes`, which
 * is the holder's whole need so far. GM_TOO_LARGE if that alone exceeds the limit,
 * GM_MEMORY_FULL if it does not fit now; the share is then as before.
 */
struct gm_share {
    struct gm_budget *budget;
    uint64_t bytes;
};

enum gm_status gm_share_grow(struct gm_share *share, uint64_t bytes, struct gm_error *err);

/* Gives back `bytes` of the share, or all that is left of it if that is less. */
void gm_share_release(struct gm_share *share, uint64_t bytes);

#endif
