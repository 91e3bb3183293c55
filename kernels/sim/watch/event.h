/*
 * event.h - what a thread did: its accesses, and the steps between them.
 */
#ifndef GM_KERNELS_SIM_WATCH_EVENT_H
#define GM_KERNELS_SIM_WATCH_EVENT_H

#include "kernels/access.h"
#include "symbols.h"

/* Something a lane did: a step (the begin of a run of code without branches) or an access. */
struct gm_sim_event {
    uint32_t key; /* where: gm_sim_key */
    uint8_t kind; /* enum gm_access_kind, or GM_SIM_STEP */
    uint8_t bytes;
    uint16_t memory; /* which: a buffer's index, or GM_SIM_SHARED and beyond */
    uint64_t address;
};
#define GM_SIM_STEP GM_ACCESS_KINDS
#define GM_SIM_NOWHERE UINT32_MAX
#define GM_SIM_DYNAMIC 0x3FFFu /* the dynamic shared memory */
#define GM_SIM_SHARED 0x4000u  /* + index of the shared variable in gm_symbols */

/* Code addresses as distances from the program's beginning; one access of an odd size is several
 * pieces at one place. */
#define GM_SIM_PIECES 8u
static inline uint32_t gm_sim_key(uintptr_t pc, unsigned piece)
{
    return (uint32_t)(pc - gm_symbols_base()) * GM_SIM_PIECES + piece;
}
static inline uintptr_t gm_sim_key_pc(uint32_t key)
{
    return gm_symbols_base() + key / GM_SIM_PIECES;
}

#endif
