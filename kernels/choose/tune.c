/*
 * tune.c - --tune: times the variants of a GPU on random operations, and writes the profile.
 */
#include "kernels/choose/fit.h"
#include "proto/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEED 20260101u
#define SHAPES_MIN 20u /* a profile of fewer would be a worse one than the built-in */
#define ROUNDS 300u

struct tune {
    struct gm_measure measure;
    const struct gm_tune_options *options;
    struct gm_op *ops;
    struct gm_timed *timed; /* their op is one of ops */
    size_t count;
    unsigned shapes; /* measured */
    char part[4096]; /* the file while it is not whole */
    FILE *out;
};

/* ---- The profile. ---- */

/* Before anything is measured: what cannot be written is said at once. */
static enum gm_status open_file(struct tune *t, struct gm_error *err)
{
    int len = snprintf(t->part, sizeof t->part, "%s.part", t->options->path);

    t->out = len < (int)sizeof t->part ? fopen(t->part, "we") : NULL;
    return t->out
               ? GM_OK
               : gm_fail(err, GM_BAD_PARAMETER, "%s.part cannot be written: %s", t->options->path,
                         len < (int)sizeof t->part ? strerror(errno) : "its name is too long");
}

/* Writes the profile, or nothing: NULL. */
static enum gm_status close_file(struct tune *t, const struct gm_profile *profile, const char *made,
                                 struct gm_error *err)
{
    if (profile)
        gm_profile_write(profile, made, t->out);
    bool whole = fflush(t->out) == 0 && !ferror(t->out) && fsync(fileno(t->out)) == 0;
    int fault = errno;
    whole = fclose(t->out) == 0 && whole && profile;
    if (whole && rename(t->part, t->options->path) == 0)
        return GM_OK;
    fault = whole ? errno : fault;
    unlink(t->part);
    return profile ? gm_fail(err, GM_BAD_PARAMETER, "%s cannot be written: %s", t->options->path,
                             strerror(fault))
                   : GM_OK;
}

static enum gm_status finish(struct tune *t, struct gm_fit_losses *ret_losses, struct gm_error *err)
{
    struct gm_profile *profile = NULL;
    char date[16], made[64], driver[24] = "unknown";
    time_t now = time(NULL);
    struct tm day;

    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
    snprintf(made, sizeof made, "by gemmd --tune, of %u operations.", t->shapes);
    const char *at = strstr(t->measure.facts->detail, "driver ");
    if (at)
        sscanf(at, "driver %23[0-9.]", driver);
    const struct gm_measured_on on = {t->measure.facts->name, driver, date, GM_VERSION};
    enum gm_status status =
        t->shapes < SHAPES_MIN
            ? gm_fail(err, GM_BAD_PARAMETER,
                      "%u operations were measured, and a profile takes at least %u", t->shapes,
                      SHAPES_MIN)
            : gm_profile_fit(t->timed, t->count, 0, ROUNDS, &on, &profile, err);
    enum gm_status written = close_file(t, profile, made, err);
    if (status == GM_OK)
        status = written;
    if (status == GM_OK)
        *ret_losses = gm_profile_losses(t->timed, t->count, profile);
    free(profile);
    return status;
}

enum gm_status gm_tune(const struct gm_backend *backend, void *context, unsigned device,
                       const struct gm_tune_options *options, struct gm_fit_losses *ret_losses,
                       struct gm_error *err)
{
    struct tune t = {.options = options};
    uint64_t random = SEED;
    struct gm_error error;

    t.ops = calloc(options->shapes + 1, sizeof *t.ops);
    t.timed = calloc((size_t)options->shapes * GM_CANDIDATES_MAX + 1, sizeof *t.timed);
    enum gm_status lost = GM_OK, status = gm_fail(err, GM_MEMORY_FULL, "no memory to measure with");
    if (!t.ops || !t.timed ||
        (status = gm_measure_open(backend, context, device, &t.measure, err)) != GM_OK)
        goto end;
    status = open_file(&t, err);
    if (status != GM_OK)
        goto end;
    gm_measure_until(&t.measure, options->seconds, options->stop);
    for (unsigned i = 0;
         i < options->shapes && lost != GM_DEVICE_LOST && !gm_measure_is_stopped(&t.measure); i++) {
        unsigned times;
        t.ops[t.shapes] = gm_draw_op(&random, 1);
        lost = gm_measure_op(&t.measure, &t.ops[t.shapes], &t.timed[t.count], &times, &error);
        t.count += times;
        t.shapes += times > 0;
        if (options->progress)
            options->progress(options->cls, i, options->shapes);
    }
    if (options->progress)
        options->progress(options->cls, options->shapes, options->shapes);
    status = finish(&t, ret_losses, err);
    if (lost == GM_DEVICE_LOST)
        status = gm_fail(err, GM_DEVICE_LOST, "%s", error.detail);
end:
    if (t.measure.backend)
        gm_measure_close(&t.measure);
    free(t.timed);
    free(t.ops);
    return status;
}
