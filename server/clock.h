/* clock.h - the daemon's clock: monotonic time in nanoseconds. */
#ifndef GM_SERVER_CLOCK_H
#define GM_SERVER_CLOCK_H

#include <stdint.h>
#include <time.h>

#define GM_NEVER INT64_MAX

static inline int64_t gm_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline struct timespec gm_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

#endif
