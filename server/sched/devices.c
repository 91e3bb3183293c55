#include "server/sched/devices.h"

#include "kernels/buffer_pool.h"
#include "server/limits.h"
#include "server/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static enum gm_status open_backend(struct gm_devices *d, const struct gm_backend *backend,
                                   const struct gm_devices_options *options, struct gm_error *err)
{
    struct gm_backend_options backend_options = options->backend_options;
    void *context;

    backend_options.shared_limit = d->memory;
    backend_options.profile = d->profile;
    enum gm_status status = backend->open(&backend_options, &context, err);
    if (status != GM_OK)
        return status;
    d->opened[d->backends].backend = backend;
    d->opened[d->backends++].context = context;
    for (unsigned i = 0; d->count < GM_DEVICES_MAX; i++) {
        struct gm_device *device = &d->device[d->count];
        const struct gm_device_facts *facts = backend->describe(context, i);
        if (!facts)
            break;
        struct gm_sched_options sched = {.backend = backend,
                                         .context = context,
                                         .device = i,
                                         .queue_limit = options->queue_limit,
                                         .slots = options->slots,
                                         .measure_idle_ns = GM_MEASURE_IDLE_S * SECOND,
                                         .measure_again_ns = GM_MEASURE_AGAIN_S * SECOND,
                                         .awake_ns =
                                             facts->kind == GM_DEVICE_CUDA ? GM_AWAKE_US * 1000 : 0,
                                         .lost = options->lost,
                                         .lost_cls = options->lost_cls};
        status = gm_choice_cache_open(&device->choices, err);
        if (status == GM_OK)
            status = gm_sched_open(&sched, &device->sched, err);
        if (status != GM_OK) {
            gm_choice_cache_close(device->choices);
            return status;
        }
        snprintf(device->name, sizeof device->name, "%s:%u", backend->name, i);
        device->backend = backend;
        device->context = context;
        device->facts = facts;
        d->count++;
        if (!d->host.backend || facts->kind == GM_DEVICE_CPU)
            d->host = (struct gm_allocator){backend, context};
    }
    return GM_OK;
}

/* Whether the backend opened last, whose devices begin at `first`, is a simulator. "auto" never
 * prefers one. */
static bool simulates(const struct gm_devices *d, unsigned first)
{
    return first < d->count && d->device[first].facts->kind == GM_DEVICE_SIM;
}

#define PROFILE_BYTES_MAX 65536u /* a table has a tenth of that */

enum gm_status gm_devices_read_profile(const char *path, struct gm_profile **ret,
                                       struct gm_error *err)
{
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it does not wait for a pipe's writer */
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *text = calloc(1, PROFILE_BYTES_MAX + 1);
    struct gm_error reason = {.detail = "it cannot be read"};
    enum gm_status status = GM_BAD_PARAMETER;

    size_t len = text && file ? fread(text, 1, PROFILE_BYTES_MAX, file) : 0;
    if (len == PROFILE_BYTES_MAX || (len > 0 && strlen(text) != len))
        gm_fail(&reason, status, "it is no table, or larger than %u bytes", PROFILE_BYTES_MAX - 1);
    else if (len > 0 && !ferror(file))
        status = gm_profile_read(text, ret, &reason);
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    free(text);
    return status == GM_OK ? GM_OK : gm_fail(err, status, "--profile %s: %s", path, reason.detail);
}

/* Whether a device is the model that the table was measured on; without a table, true. */
static bool profile_fits(const struct gm_devices *d)
{
    bool fits = !d->profile;

    for (unsigned i = 0; i < d->count; i++)
        fits = fits || d->device[i].facts->profile == d->profile;
    return fits;
}

enum gm_status gm_devices_open(struct gm_devices *ret, const struct gm_devices_options *options,
                               struct gm_error *err)
{
    struct gm_devices d = {0};
    bool automatic = strcmp(options->backend, "auto") == 0;
    uint64_t limit = options->backend_options.memory_limit;
    enum gm_status status =
        gm_buffer_limit_open(limit > 0 ? limit : gm_host_memory(), &d.memory, err);

    if (status != GM_OK)
        return status;
    if (options->profile && *options->profile)
        status = gm_devices_read_profile(options->profile, &d.profile, err);
    if (status != GM_OK)
        goto fail;
    for (size_t i = 0; gm_backend_at(i) && d.backends < GM_DEVICES_MAX; i++) {
        const struct gm_backend *backend = gm_backend_at(i);
        bool wanted = strcmp(options->backend, backend->name) == 0;
        unsigned first = d.count;
        status = open_backend(&d, backend, options, err);
        /* A backend that was not named may be without a device; any other error is fatal. */
        if (status != GM_OK && (wanted || status != GM_DEVICE_UNAVAILABLE))
            goto fail;
        if (status != GM_OK) {
            char why[GM_ERROR_DETAIL_MAX];
            gm_log(GM_LOG_INFO, "no_device", "backend=%s detail=%s", backend->name,
                   gm_log_quote(why, sizeof why, err->detail));
        }
        if (status == GM_OK && (wanted || (automatic && !d.preferred && !simulates(&d, first))))
            d.preferred = backend->name;
    }
    bool streams_fit = options->backend_options.streams == 0;
    for (unsigned i = 0; i < d.count; i++)
        streams_fit =
            streams_fit || (d.device[i].facts->graded_streams
                                ? options->backend_options.streams == 1
                                : d.device[i].facts->streams == options->backend_options.streams);
    d.automatic = automatic;
    d.place_by_load = options->place_by_load;
    if (d.preferred && d.count > 0 && streams_fit && profile_fits(&d)) {
        *ret = d;
        return GM_OK;
    }
    if (d.count > 0 && !streams_fit)
        status = gm_fail(err, GM_BAD_PARAMETER, "--streams: no device here supports %u streams",
                         options->backend_options.streams);
    else if (d.count > 0 && !profile_fits(&d))
        status = gm_fail(err, GM_BAD_PARAMETER, "--profile %s is of %s, and no device here is one",
                         options->profile, gm_profile_gpu(d.profile));
    else if (status == GM_OK)
        status = gm_fail(err, GM_DEVICE_UNAVAILABLE, "backend %s has no device", options->backend);
fail:
    gm_devices_close(&d);
    return status;
}

void gm_devices_close(struct gm_devices *d)
{
    for (unsigned i = 0; i < d->count; i++)
        gm_sched_close(d->device[i].sched);
    for (unsigned i = 0; i < d->count; i++)
        gm_choice_cache_close(d->device[i].choices);
    for (unsigned i = 0; i < d->backends; i++)
        d->opened[i].backend->close(d->opened[i].context);
    gm_buffer_limit_close(d->memory);
    free(d->profile);
    memset(d, 0, sizeof *d);
}

static bool matches(const struct gm_devices *d, const struct gm_device *device, const char *name)
{
    if (*name == '\0')
        name = d->preferred;
    return strcmp(name, device->backend->name) == 0 || strcmp(name, device->name) == 0;
}

static uint64_t jobs_on(const struct gm_device *device)
{
    struct gm_sched_load load = gm_sched_load(device->sched);

    return load.queued + load.running;
}

enum gm_status gm_devices_pick(struct gm_devices *d, const char *name, struct gm_device **ret,
                               struct gm_error *err)
{
    struct gm_device *best = NULL;
    bool lost = false;

    for (unsigned i = 0; i < d->count; i++) {
        if (!matches(d, &d->device[i], name))
            continue;
        if (gm_sched_is_lost(d->device[i].sched))
            lost = true;
        else if (!best || jobs_on(&d->device[i]) < jobs_on(best))
            best = &d->device[i];
    }
    if (best) {
        *ret = best;
        return GM_OK;
    }
    if (lost)
        return gm_fail(err, GM_DEVICE_LOST, "the device has failed and gemmd is about to restart");

    char names[GM_ERROR_DETAIL_MAX / 2];
    size_t at = 0;
    names[0] = '\0';
    for (unsigned i = 0; i < d->count && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
                               d->device[i].name);
    return gm_fail(err, GM_DEVICE_UNAVAILABLE, "there is no device '%.32s' here; there is: %s",
                   name, names);
}

uint64_t gm_device_memory_used(const struct gm_device *device)
{
    const struct gm_backend *backend = device->backend;

    return backend->memory_used ? backend->memory_used(device->context, device->facts->index) : 0;
}

bool gm_devices_alive(const struct gm_devices *d)
{
    for (unsigned i = 0; i < d->count; i++)
        if (gm_sched_is_lost(d->device[i].sched))
            return false;
    return d->count > 0;
}
