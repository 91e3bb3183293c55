/*
 * gemmd_hasty.c - the daemon in a world where time runs HASTE times as fast: a time-out of a minute
 * is two seconds, so that black-box tests can see what it does to clients who are slow. All else is
 * gemmd's own. The linker leads its calls here (--wrap).
 */
#include <pthread.h>
#include <time.h>

#define HASTE 30
#define SECOND 1000000000LL

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);

static long long began_ns;

static long long to_ns(const struct timespec *ts)
{
    return (long long)ts->tv_sec * SECOND + ts->tv_nsec;
}

static struct timespec to_timespec(long long ns)
{
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

/* Before main, and before any other thread. */
static __attribute__((constructor)) void begin(void)
{
    struct timespec now;

    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    began_ns = to_ns(&now);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    int fault = __real_clock_gettime(clock, ret);

    if (fault == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE))
        *ret = to_timespec(began_ns + (to_ns(ret) - began_ns) * HASTE);
    return fault;
}

/* The daemon's conditions are on the monotonic clock. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    const struct timespec real = to_timespec(began_ns + (to_ns(until) - began_ns) / HASTE);

    return __real_pthread_cond_timedwait(cond, mutex, &real);
}
