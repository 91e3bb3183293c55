#include "tests/unit/fake_backend.h"

#include <string.h>
#include <time.h>

void fake_init(struct fake *fake, unsigned streams, unsigned batch_max)
{
    memset(fake, 0, sizeof *fake);
    fake->devices = 1;
    fake->facts.kind = GM_DEVICE_CPU;
    fake->facts.streams = streams;
    fake->facts.batch_max = batch_max;
    fake->facts.has_kernel_times = true;
    pthread_mutex_init(&fake->mutex, NULL);
    pthread_cond_init(&fake->changed, NULL);
}

void fake_destroy(struct fake *fake)
{
    pthread_mutex_destroy(&fake->mutex);
    pthread_cond_destroy(&fake->changed);
}

void fake_hold(struct fake *fake, bool hold)
{
    pthread_mutex_lock(&fake->mutex);
    fake->hold = hold;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_hold_here(struct fake *fake, bool hold)
{
    pthread_mutex_lock(&fake->mutex);
    fake->hold_here = hold;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_next(struct fake *fake, enum gm_status status)
{
    pthread_mutex_lock(&fake->mutex);
    fake->next = status;
    pthread_mutex_unlock(&fake->mutex);
}

/* Waits for a change, a few milliseconds at most: stop flags are set without a signal. */
static void wait_a_little(struct fake *fake)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&fake->changed, &fake->mutex, &until);
}

bool fake_wait_running(struct fake *fake, unsigned n)
{
    pthread_mutex_lock(&fake->mutex);
    for (int i = 0; i < 5000 && fake->running != n; i++)
        wait_a_little(fake);
    bool ok = fake->running == n;
    pthread_mutex_unlock(&fake->mutex);
    return ok;
}

bool fake_wait_here(struct fake *fake, unsigned n)
{
    pthread_mutex_lock(&fake->mutex);
    for (int i = 0; i < 5000 && fake->runs_here != n; i++)
        wait_a_little(fake);
    bool ok = fake->runs_here == n;
    pthread_mutex_unlock(&fake->mutex);
    return ok;
}

unsigned fake_runs(struct fake *fake)
{
    pthread_mutex_lock(&fake->mutex);
    unsigned runs = fake->runs;
    pthread_mutex_unlock(&fake->mutex);
    return runs;
}

static bool any_stopped(struct gm_task *task[], unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (atomic_load(&task[i]->stop))
            return true;
    return false;
}

static enum gm_status fake_run(void *context, unsigned device, unsigned stream,
                               struct gm_task *task[], unsigned n)
{
    struct fake *fake = context;

    pthread_mutex_lock(&fake->mutex);
    if (fake->runs < FAKE_RUNS_MAX) {
        fake->run[fake->runs].n = n;
        fake->run[fake->runs].first = task[0];
    }
    fake->runs++;
    fake->stream_clash = fake->stream_clash || fake->stream_taken[device][stream];
    fake->stream_taken[device][stream] = true;
    if (++fake->running > fake->running_most)
        fake->running_most = fake->running;
    pthread_cond_broadcast(&fake->changed);
    bool stopped = false;
    while (fake->hold && !stopped) {
        wait_a_little(fake);
        stopped = !fake->deaf && any_stopped(task, n);
    }
    enum gm_status status = stopped ? GM_CANCELLED : fake->next;
    unsigned busy_us = fake->busy_us;
    pthread_mutex_unlock(&fake->mutex);

    if (busy_us > 0)
        nanosleep(&(struct timespec){.tv_nsec = busy_us * 1000L}, NULL);
    for (unsigned i = 0; i < n; i++) {
        task[i]->times = (struct gm_times){.h2d = -1, .prepare = -1, .kernel = 1, .d2h = -1};
        task[i]->status = status;
        if (status != GM_OK)
            gm_fail(&task[i]->error, status, "the fake was told to");
    }
    pthread_mutex_lock(&fake->mutex);
    fake->running--;
    fake->stream_taken[device][stream] = false;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
    return status == GM_DEVICE_LOST ? GM_DEVICE_LOST : GM_OK;
}

static enum gm_status fake_run_here(void *context, unsigned device, struct gm_task *task)
{
    struct fake *fake = context;
    bool stopped = false;

    (void)device;
    pthread_mutex_lock(&fake->mutex);
    fake->runs_here++;
    pthread_cond_broadcast(&fake->changed);
    while (fake->hold_here && !stopped) {
        wait_a_little(fake);
        stopped = atomic_load(&task->stop);
    }
    enum gm_status status = stopped ? GM_CANCELLED : fake->next;
    pthread_mutex_unlock(&fake->mutex);
    task->times = (struct gm_times){.h2d = -1, .prepare = -1, .kernel = 1, .d2h = -1};
    task->status = status;
    if (status != GM_OK)
        gm_fail(&task->error, status, "the fake was told to");
    return status == GM_DEVICE_LOST ? GM_DEVICE_LOST : GM_OK;
}

static const struct gm_device_facts *fake_describe(void *context, unsigned index)
{
    struct fake *fake = context;

    return index < fake->devices ? &fake->facts : NULL;
}

static void fake_close(void *context)
{
    struct fake *fake = context;

    if (fake)
        fake->closed++;
}

const struct gm_backend fake_backend = {.name = "fake",
                                        .close = fake_close,
                                        .describe = fake_describe,
                                        .run = fake_run,
                                        .run_here = fake_run_here};
