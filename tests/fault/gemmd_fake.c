/*
 * gemmd_fake.c - the daemon with one device that fails as its environment says, for black-box
 * tests of what no healthy machine shows. All but the list of backends is gemmd's own.
 */
#include "tests/unit/faulty_backend.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

const struct gm_backend *gm_backend_at(size_t index)
{
    return index == 0 ? &faulty_backend : NULL;
}

uint64_t gm_host_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static unsigned number(const char *name)
{
    const char *text = getenv(name);

    return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static double rate(const char *name)
{
    const char *text = getenv(name);

    return text ? strtod(text, NULL) : 0;
}

/* SIGUSR1: what was held goes on. */
static void release(int signal_number)
{
    (void)signal_number;
    atomic_store(&faulty_plan.hold, false);
}

/* Before main, which reads the options and opens the devices. */
static __attribute__((constructor)) void read_plan(void)
{
    const struct sigaction action = {.sa_handler = release, .sa_flags = SA_RESTART};

    faulty_plan.streams = number("FAKE_STREAMS");
    faulty_plan.gflops = rate("FAKE_GFLOPS");
    faulty_plan.memory_at = number("FAKE_MEMORY_AT");
    faulty_plan.lose_at = number("FAKE_LOSE_AT");
    faulty_plan.hang_at = number("FAKE_HANG_AT");
    atomic_store(&faulty_plan.hold, number("FAKE_HOLD") != 0);
    sigaction(SIGUSR1, &action, NULL);
}
