/*
 * fit.h - makes a profile of times that were measured (README.md in this folder), and measures
 * them.
 */
#ifndef GM_KERNELS_CHOOSE_FIT_H
#define GM_KERNELS_CHOOSE_FIT_H

#include "kernels/backend.h"
#include "kernels/choose/choose.h"

#include <stdio.h>

/* What a variant took on a device, in microseconds, with its passes and without copies. Times of
 * one operation lie next to each other and have the same op. The profile of facts is not read. */
struct gm_timed {
    const struct gm_op *op;
    const char *variant;
    const struct gm_device_facts *facts;
    double us;
};

/* How far the choice by a profile is from the best of the times. */
struct gm_fit_losses {
    unsigned shapes, near, far; /* within GM_FIT_NEAR of the best; not within GM_FIT_FAR */
    double worst;               /* times the best */
};

#define GM_FIT_NEAR 0.03
#define GM_FIT_FAR 0.15

/* What a profile is of: the name of the GPU, its driver, the day, the commit (or version). */
struct gm_measured_on {
    const char *gpu, *driver, *date, *commit;
};

/* The next of a sequence of operations, without data, that the state of a random number draws
 * (draw.c): each moves at most 400 MB, and takes a large GPU some milliseconds at most. part: of
 * that work, at most 1. */
struct gm_op gm_draw_op(uint64_t *random, double part);

/*
 * Fits the numbers of all variants that have times. First each variant's to its own times, by least
 * squares of the logarithms (Levenberg-Marquardt, bounded, from several starts); the nearer a time
 * is to the best of its shape, the more it counts. Then all together are moved, in `rounds` steps
 * (Adam), to where the choice loses least. Numbers of other variants and of tile configs are those
 * of the first built-in profile.
 *
 * launch_us: what an empty kernel takes; 0: not known, and so the least of the times. free() the
 * result. Takes seconds. GM_BAD_PARAMETER where no time has an estimate.
 */
enum gm_status gm_profile_fit(const struct gm_timed *timed, size_t count, double launch_us,
                              unsigned rounds, const struct gm_measured_on *on,
                              struct gm_profile **ret, struct gm_error *err);

/* Fits the link's numbers in *profile, but for its rates, to times of lone jobs whose operands are
 * in the host's memory, by `grouped` and with copies and another variant. */
void gm_profile_fit_link(const struct gm_timed *timed, size_t count, double in_gbs, double out_gbs,
                         struct gm_profile *profile);

/* What a profile has for it; infinite where there is no estimate. A variant that is none of the
 * operation's is a copy. */
double gm_timed_estimate(const struct gm_timed *timed, const struct gm_profile *profile);

/* Of the times, by a profile: what it has no estimate for may be the best, and is never chosen. */
struct gm_fit_losses gm_profile_losses(const struct gm_timed *timed, size_t count,
                                       const struct gm_profile *profile);

/* Writes a table as gm_profile_read reads it, under a comment: made ("by x from y."), and which
 * rows are those of the first built-in profile, for want of times. */
void gm_profile_write(const struct gm_profile *profile, const char *made, FILE *out);

/* Measures a device whose backend is open, and which nobody else uses: one with kernel times and
 * memory of its own (device_get). The members are gm_measure_open's. */
struct gm_measure {
    const struct gm_backend *backend;
    void *context;
    unsigned device;
    const struct gm_device_facts *facts;
    struct gm_buffer pattern; /* of the host: random bytes, that operands are made of */
    double until_s;
    const atomic_bool *stop;
};

enum gm_status gm_measure_open(const struct gm_backend *backend, void *context, unsigned device,
                               struct gm_measure *ret, struct gm_error *err);
void gm_measure_close(struct gm_measure *measure);
/* No variant is begun after so many seconds, or once somebody has set *stop (NULL: nobody does). */
void gm_measure_until(struct gm_measure *measure, double seconds, const atomic_bool *stop);
bool gm_measure_is_stopped(const struct gm_measure *measure);
/*
 * Times every variant of an operation that `auto` may take, and chooses its tiles in *op, to which
 * the times point. Each runs on as many sets of operands as caches do not hold (64 at most). One
 * that fails is left out. *ret_count: of the times. GM_DEVICE_LOST; GM_DEVICE_MEMORY.
 */
enum gm_status gm_measure_op(struct gm_measure *measure, struct gm_op *op,
                             struct gm_timed ret[GM_CANDIDATES_MAX], unsigned *ret_count,
                             struct gm_error *err);

struct gm_tune_options {
    const char *path;        /* of the profile, which is replaced once it is whole */
    unsigned shapes;         /* operations to measure */
    unsigned seconds;        /* no further one is begun after them */
    const atomic_bool *stop; /* set by anybody: what has been measured is enough */
    /* NULL, or called on the thread of gm_tune: after each operation, with how many were done
     * before it; and with all, when none is left or wanted, and the fit begins. */
    void (*progress)(void *cls, unsigned done, unsigned all);
    void *cls;
};

/*
 * Times every variant on operations that are drawn at random, and fits a profile to the times.
 * Blocks for minutes. What was measured is written also where it was stopped, the time was up, or
 * the device was lost (GM_DEVICE_LOST). GM_BAD_PARAMETER: the file cannot be written, or too little
 * was measured. *ret_losses: of the operations that were measured.
 */
enum gm_status gm_tune(const struct gm_backend *backend, void *context, unsigned device,
                       const struct gm_tune_options *options, struct gm_fit_losses *ret_losses,
                       struct gm_error *err);

#endif
