/*
 * wait.c - how the HTTP library's event threads wait: epoll_wait in place of libc's.
 *
 * After a full answer there is no waiting. The library takes up to 128 events at a time, and where
 * it got so many it asks for more with the same time-out before it looks at them (1.0.1,
 * MHD_epoll). So it slept on the requests of exactly 128 connections.
 *
 * An answer is good for ASKED_NS. The library asks without waiting after each step of a connection
 * that goes on, three times for a small request, and each call of the system takes a hundredth of
 * what such a request does. What has come since can wait for so long.
 *
 * One thread stays awake. To wake one that sleeps takes 30 to 50 us, and a request to a GPU wakes
 * one twice: when it arrives, and when the GPU is done. So a thread that had an event asks again
 * and again, as the thread of an idle GPU does: for AWAKE_US, and while requests wait for their
 * jobs until a wake-up would be a small part of what they have waited. Only one thread at a time
 * does, so this costs one core while there is work, and none without.
 */
#include "internal.h"
#include "server/clock.h"
#include "server/limits.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CORES_MIN 4 /* fewer have better to do */
#define ASKED_NS 50000

static atomic_bool may_stay_awake, is_awake;
static atomic_int suspended;

void gm_wait_awake(bool may)
{
    atomic_store(&may_stay_awake, may && sysconf(_SC_NPROCESSORS_ONLN) >= CORES_MIN);
}

void gm_wait_suspended(int change)
{
    atomic_fetch_add_explicit(&suspended, change, memory_order_relaxed);
}

/* Asks until there is an event, or it is time to sleep: 0. */
static int stay_awake(int set, struct epoll_event *events, int max)
{
    int64_t begun_ns = gm_now_ns(), most_us;
    int count;

    do {
        count = epoll_pwait(set, events, max, 0, NULL);
        bool waited_for = atomic_load_explicit(&suspended, memory_order_relaxed) > 0;
        most_us = waited_for ? GM_AWAKE_BUSY_US : GM_AWAKE_US;
        if (count == 0)
            sched_yield();
    } while (count == 0 && gm_now_ns() - begun_ns < most_us * 1000);
    return count;
}

static _Thread_local unsigned answers; /* that had events */

unsigned gm_wait_events(void)
{
    return answers;
}

int epoll_wait(int set, struct epoll_event *events, int max, int timeout_ms)
{
    static _Thread_local int full = -1; /* the set whose last answer was full */
    static _Thread_local bool had_events;
    static _Thread_local int asked = -1; /* the set that was asked last, at asked_ns */
    static _Thread_local int64_t asked_ns;
    int count = 0;

    if (set == full)
        timeout_ms = 0;
    else if (timeout_ms == 0 && set == asked && gm_now_ns() - asked_ns < ASKED_NS)
        return 0;
    if (had_events && timeout_ms != 0 &&
        atomic_load_explicit(&may_stay_awake, memory_order_relaxed) &&
        !atomic_exchange(&is_awake, true)) {
        count = stay_awake(set, events, max);
        atomic_store(&is_awake, false);
    }
    if (count == 0)
        count = epoll_pwait(set, events, max, timeout_ms, NULL);
    asked = set;
    asked_ns = gm_now_ns();
    full = count == max ? set : -1;
    had_events = count > 0;
    answers += had_events;
    return count;
}
