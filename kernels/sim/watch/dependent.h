/*
 * dependent.h - launches that may begin while those before them still run: what they may touch
 * until they have waited for them. Here one launch runs after the other; what each has touched is
 * remembered, from the first byte to the last of each buffer.
 */
#ifndef GM_KERNELS_SIM_WATCH_DEPENDENT_H
#define GM_KERNELS_SIM_WATCH_DEPENDENT_H

#include "kernels/sim/run/memory.h"

#include <stddef.h>

struct gm_exec;
struct gm_sim_launch;
struct gm_sim_worker;

/* Notes an access; a fault if the thread has not waited, and a launch that may still run writes
 * what it touches, or reads what it writes. */
void gm_sim_note_access(struct gm_sim_worker *worker, unsigned buffer, struct gm_sim_extent bytes,
                        bool reads, bool writes, uintptr_t pc);
/* A thread ends: a fault if it had to wait and has not. */
void gm_sim_check_waited(struct gm_sim_worker *worker);
/* All blocks of a launch have run: what may still run when the next begins. */
void gm_sim_note_launch(struct gm_exec *exec, const struct gm_sim_launch *launch);

#endif
