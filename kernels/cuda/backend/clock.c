/*
 * clock.c - the host's clock, and how a thread waits for the device by it.
 *
 * The driver's own blocking wait is woken by an interrupt, which takes 50 to 100 us, longer than
 * most small jobs. So the thread polls, and lets other threads have the core between two polls. To
 * wake from a sleep takes WAKE_NS. Once it has waited 100 times that, it sleeps between polls, each
 * time for one part in SLEEP_PART of the time it has waited. It is late by less than two percent,
 * and a long kernel costs a few hundred polls.
 */
#include "device.h"

#include <sched.h>
#include <time.h>

#define WAKE_NS 50000
#define SLEEP_PART 128
#define SLEEP_NS_MAX 1000000

int64_t gm_cuda_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void gm_cuda_pause(int64_t waited_ns)
{
    int64_t part = waited_ns / SLEEP_PART, sleep_ns = part < SLEEP_NS_MAX ? part : SLEEP_NS_MAX;

    if (waited_ns >= 100 * WAKE_NS)
        nanosleep(&(struct timespec){.tv_nsec = sleep_ns}, NULL);
    else
        sched_yield();
}
