/*
 * tune.c - gemmd --tune: measures the kernels of the first GPU, and tells on standard error how far
 * it is.
 *
 * SIGINT and SIGTERM end the measuring early: the table is then fitted to what there is.
 */
#include "kernels/choose/fit.h"
#include "server/clock.h"
#include "server/config.h"
#include "server/limits.h"
#include "server/process.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_bool enough;

static void on_signal(int number)
{
    (void)number;
    atomic_store(&enough, true);
}

/* The first GPU of a backend that measures its kernels; UINT_MAX: it has none. */
static unsigned first_gpu(const struct gm_backend *backend, void *context)
{
    const struct gm_device_facts *facts;

    for (unsigned i = 0; (facts = backend->describe(context, i)); i++)
        if (facts->kind == GM_DEVICE_CUDA && facts->has_kernel_times)
            return i;
    return UINT_MAX;
}

struct progress {
    int64_t began_ns, said_ns;
};

/* A line that is written over, or on no terminal one a second. */
static void say_progress(void *cls, unsigned done, unsigned all)
{
    struct progress *p = cls;
    int64_t now_ns = gm_now_ns();
    bool terminal = isatty(STDERR_FILENO);

    if (done == all) {
        /* Signals still end nothing: minutes of measuring would be lost to save seconds. */
        fprintf(stderr, "%sthe table is fitted to what was measured\n", terminal ? "\r\033[K" : "");
        return;
    }
    if (done == 0 || now_ns - p->said_ns < 1000000000)
        return;
    p->said_ns = now_ns;
    fprintf(stderr, "%s%u of %u operations measured, about %.0f s left%s", terminal ? "\r" : "",
            done, all, fmin((double)(now_ns - p->began_ns) / 1e9 / done * (all - done), GM_TUNE_S),
            terminal ? "\033[K" : "\n");
}

enum gm_status gm_tune_first_gpu(const struct gm_config *config, struct gm_error *err)
{
    const struct gm_backend_options options = {.memory_limit = config->memory_limit};
    struct progress progress = {.began_ns = gm_now_ns()};
    const struct gm_tune_options what = {.path = config->tune,
                                         .shapes = GM_TUNE_OPERATIONS,
                                         .seconds = GM_TUNE_S,
                                         .stop = &enough,
                                         .progress = say_progress,
                                         .cls = &progress};
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    enum gm_status status = gm_fail(err, GM_DEVICE_UNAVAILABLE,
                                    "there is no GPU here, or none that this build can use");
    struct gm_fit_losses losses;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    for (size_t i = 0; gm_backend_at(i) && status == GM_DEVICE_UNAVAILABLE; i++) {
        const struct gm_backend *backend = gm_backend_at(i);
        void *context;
        if (!backend->device_get || backend->open(&options, &context, err) != GM_OK)
            continue;
        unsigned device = first_gpu(backend, context);
        if (device != UINT_MAX)
            status = gm_tune(backend, context, device, &what, &losses, err);
        backend->close(context);
    }
    if (status == GM_OK)
        printf("%s: by it auto takes what is within %.0f %% of the best on %.0f %% of the %u "
               "operations that were measured; the worst is %.2f times it\n",
               config->tune, 100 * GM_FIT_NEAR, 100.0 * losses.near / losses.shapes, losses.shapes,
               losses.worst);
    return status;
}
