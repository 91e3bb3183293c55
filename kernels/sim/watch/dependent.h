/*
 * dependent.h - checks what dependent launches touch before they have waited for their primaries.
 *
 * Here launches run one after the other. What each has touched is remembered, from the first byte
 * to the last of each buffer, and compared with what the next one touches too early.
 */
#ifndef GM_KERNELS_SIM_WATCH_DEPENDENT_H
#define GM_KERNELS_SIM_WATCH_DEPENDENT_H

#include "kernels/sim/run/memory.h"

#include <stddef.h>

struct gm_exec;
struct gm_sim_launch;
struct gm_sim_worker;

/* Records an access. It is a fault if the thread has not waited, and a launch that may still run
 * writes the bytes, or reads what the thread writes. */
void gm_sim_note_access(struct gm_sim_worker *worker, unsigned buffer, struct gm_sim_extent bytes,
                        bool reads, bool writes, uintptr_t pc);
/* Call when a thread ends: it is a fault if it had to wait and did not. */
void gm_sim_check_waited(struct gm_sim_worker *worker);
/* Call when a launch has ended: records what may still run when the next one begins. */
void gm_sim_note_launch(struct gm_exec *exec, const struct gm_sim_launch *launch);

#endif
