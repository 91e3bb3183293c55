/*
 * fiber.h - switches between stacks, so that one host thread can run the threads of a block.
 *
 * A switch costs a few nanoseconds. A fiber belongs to the host thread that started it. Code that
 * sanitizers instrument must not be active across a switch: the files that use this one are
 * compiled without sanitizers.
 */
#ifndef GM_KERNELS_SIM_RUN_FIBER_H
#define GM_KERNELS_SIM_RUN_FIBER_H

#include <stddef.h>

/* Where a fiber, or the scheduler, stopped. */
struct gm_fiber {
    void *place[5];
};

/*
 * Starts body(cls) on a stack. Returns true when it first switches back to *from; body must never
 * return. Returns false if the system refuses: body did not begin.
 */
_Bool gm_fiber_start(struct gm_fiber *from, void *stack, size_t bytes, void (*body)(void *cls),
                     void *cls);

/* Saves the caller in *from and continues *to. Returns when somebody switches to *from. */
void gm_fiber_switch(struct gm_fiber *from, struct gm_fiber *to);

#endif
