/*
 * fiber.c - starts fibers with makecontext and switches with __builtin_setjmp and
 * __builtin_longjmp.
 *
 * makecontext saves the signal mask by a system call at every switch, so it is used only once per
 * fiber. The compiler's builtins save no more than the stack needs, exist on every architecture,
 * and are not intercepted by sanitizers.
 */
#include "fiber.h"

#include <stdint.h>
#include <ucontext.h>

struct start {
    void (*body)(void *cls);
    void *cls;
    ucontext_t context, from;
};

/* makecontext passes int arguments: the pointer goes in two halves. */
static void enter(unsigned high, unsigned low)
{
    struct start *start = (struct start *)((uintptr_t)high << 16 << 16 | low);

    start->body(start->cls);
    __builtin_unreachable();
}

static __attribute__((noinline, noclone, noreturn)) void go_on(struct gm_fiber *at)
{
    __builtin_longjmp(at->place, 1);
}

_Bool gm_fiber_start(struct gm_fiber *from, void *stack, size_t bytes, void (*body)(void *cls),
                     void *cls)
{
    /* Lives until the new fiber first switches back here; it needs it no longer. */
    struct start start = {.body = body, .cls = cls};

    if (getcontext(&start.context) != 0)
        return 0;
    start.context.uc_stack.ss_sp = stack;
    start.context.uc_stack.ss_size = bytes;
    start.context.uc_link = NULL;
    makecontext(&start.context, (void (*)(void))enter, 2, (unsigned)((uintptr_t)&start >> 16 >> 16),
                (unsigned)(uintptr_t)&start);
    if (__builtin_setjmp(from->place) != 0)
        return 1;
    setcontext(&start.context); /* returns only on failure */
    return 0;
}

__attribute__((noinline, noclone)) void gm_fiber_switch(struct gm_fiber *from, struct gm_fiber *to)
{
    if (__builtin_setjmp(from->place) == 0)
        go_on(to);
}
