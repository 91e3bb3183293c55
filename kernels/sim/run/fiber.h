/*
 * fiber.h - what lets one host thread run the many threads of a block: separate stacks, and a
 * switch between them that costs a few nanoseconds.
 *
 * A fiber belongs to the host thread that started it. Code that sanitizers instrument must not be
 * alive across a switch: this file's users are compiled without them.
 */
#ifndef GM_KERNELS_SIM_RUN_FIBER_H
#define GM_KERNELS_SIM_RUN_FIBER_H

#include <stddef.h>

/* Where something stopped. */
struct gm_fiber {
    void *place[5];
};

/*
 * Starts body(cls) on a stack and returns when that first switches back to *from; body must never
 * return. false if the system refuses: body did not begin.
 */
_Bool gm_fiber_start(struct gm_fiber *from, void *stack, size_t bytes, void (*body)(void *cls),
                     void *cls);

/* Leaves the caller at *from, goes on at *to; returns when somebody switches to *from. */
void gm_fiber_switch(struct gm_fiber *from, struct gm_fiber *to);

#endif
