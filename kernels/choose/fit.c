/*
 * fit.c - fits the numbers of a profile to times.
 *
 * Which numbers a time depends on is found by moving them, so that nothing here knows a variant.
 */
#include "kernels/choose/fit.h"

#include "kernels/choose/estimate.h"
#include "proto/status.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS (sizeof(struct gm_rates) / sizeof(double))
#define SHARED_NUMBERS 6u /* from launch_us on, of all variants */
#define NUMBERS (SHARED_NUMBERS + FIELDS * GM_RATES_COUNT)
#define GROUPS_MAX GM_RATES_COUNT

/* Where every variant starts, in turn, and how far a number may go. A share is of what the device
 * can do at most, and no kernel does less than a hundredth; cycles are up to some microseconds. */
static const struct gm_rates starts[] = {{0.7, 0.7, 0.7, 0.85, 400, 500, 3000},
                                         {0.7, 0.7, 0.7, 0.85, 40, 2000, 3000},
                                         {1, 0.3, 0.3, 0.7, 100, 3000, 1000},
                                         {1, 1, 1, 1, 200, 1000, 5000}},
                             low = {0.01, 0.01, 0.01, 0.01, 0.1, 50, 50},
                             high = {1.15, 1.15, 1.15, 1.15, 2e4, 3e4, 2e4};
static const double shared_start[SHARED_NUMBERS] = {0, 0.8, 600, 300, 300, 2},
                    shared_low[SHARED_NUMBERS] = {0.01, 0.01, 1, 1, 1, 0.1},
                    shared_high[SHARED_NUMBERS] = {50, 1.15, 5000, 5000, 5000, 2e5};

#define WAKING_START 2e4 /* of a CPU the same number is of a thread that is woken */

/* Errors beyond this count by their size, and not by its square: some times are outliers. */
#define KNEE 0.2
#define LM_ROUNDS 25u
#define SWEEPS 6u
#define STARTED 2u /* of them, the first, from all starts */
#define LM_TRIES 7u
#define LM_GAIN 1e-4       /* part of the cost; a smaller gain ends it */
#define ESTIMATE_PART 1.0  /* of the second stage's cost: estimates are to stay estimates */
#define LOSS_MOST 0.7      /* logarithm; beyond it a choice is just as wrong */
#define LOSS_NOT_NEAR 0.15 /* beside the loss, of a choice that is not near the best */
#define BLUR_FIRST 0.06    /* two estimates that differ by so much are half a choice each */
#define BLUR_LAST 0.01
#define STEP 0.03 /* of a number's logarithm, in a round */
/* So many times less or more than by its own times is a number at most: rates that only help to
 * choose among what was timed mislead elsewhere, as on a GPU of another balance. */
#define MOVED_MOST 1.5

/* The times of one variant, for types of the same rows; or of all, where what is fitted are the
 * numbers that all share. */
struct group {
    size_t rates;                 /* the first row */
    bool has_row[GM_RATES_COUNT]; /* that its estimates depend on */
    bool shared;
    size_t *times, count;
};

struct fit {
    const struct gm_timed *timed;
    size_t count;
    struct gm_profile *profile;
    const struct gm_profile *first_profile; /* the built-in one */
    bool on_host;                           /* whose estimates share launch_us and queued alone */
    unsigned shapes;
    size_t *first;    /* time of each shape, and the end */
    unsigned *shape;  /* of each time */
    double *estimate; /* logarithms, by the profile; infinite: it has none */
    double *loss;     /* logarithm of what it took, by the best of its shape */
    double *weight;   /* how much its error counts */
    double *moved;    /* estimates, by a profile with a number moved */
    struct group group[GROUPS_MAX];
    unsigned groups;
    size_t *places; /* of all groups */
    double *square; /* room for two matrices of all numbers, and vectors */
};

static double *number_of(struct gm_profile *p, size_t i)
{
    if (i < SHARED_NUMBERS)
        return &p->launch_us + i;
    i -= SHARED_NUMBERS;
    return (double *)&p->rates[i / FIELDS] + i % FIELDS;
}

static double of_field(const struct gm_rates *fields, const double *of_shared, size_t i)
{
    return i < SHARED_NUMBERS ? of_shared[i]
                              : ((const double *)fields)[(i - SHARED_NUMBERS) % FIELDS];
}

static double bounded(size_t number, double value)
{
    return fmin(fmax(value, of_field(&low, shared_low, number)),
                of_field(&high, shared_high, number));
}

double gm_timed_estimate(const struct gm_timed *t, const struct gm_profile *profile)
{
    struct gm_device_facts facts = *t->facts;

    facts.profile = profile;
    double us = gm_estimate(t->op, t->op->kind, t->variant, &facts).us;
    if (us < 0 && gm_op_is_copy(t->op))
        us = gm_estimate(t->op, GM_OP_COPY, t->variant, &facts).us;
    return us > 0 ? us : INFINITY;
}

static double log_estimate(const struct gm_timed *t, const struct gm_profile *profile)
{
    return log(gm_timed_estimate(t, profile));
}

static double robust(double error)
{
    double size = fabs(error);

    return size < KNEE ? 0.5 * size * size : KNEE * (size - 0.5 * KNEE);
}

static double error_of(const struct fit *f, size_t time, double estimate)
{
    return (estimate - log(f->timed[time].us)) * f->weight[time];
}

/* ---- What there is to be fitted. ---- */

static void free_fit(struct fit *f)
{
    free(f->first);
    free(f->shape);
    free(f->estimate);
    free(f->loss);
    free(f->weight);
    free(f->moved);
    free(f->places);
    free(f->square);
}

static struct group *group_of(struct fit *f, const struct gm_timed *t)
{
    size_t rates = gm_rates_of(t->op, t->op->kind, t->variant, t->facts);

    for (unsigned i = 0; i < f->groups; i++)
        if (f->group[i].rates == rates)
            return &f->group[i];
    if (f->groups == GROUPS_MAX)
        return NULL;
    f->group[f->groups] = (struct group){.rates = rates};
    return &f->group[f->groups++];
}

static void make_groups(struct fit *f)
{
    size_t at = 0;

    for (size_t i = 0; i < f->count; i++) {
        struct group *group = isfinite(f->estimate[i]) ? group_of(f, &f->timed[i]) : NULL;
        if (group)
            group->count++;
    }
    for (unsigned i = 0; i < f->groups; i++) {
        f->group[i].times = f->places + at;
        at += f->group[i].count;
        f->group[i].count = 0;
    }
    for (size_t i = 0; i < f->count; i++) {
        struct group *group = isfinite(f->estimate[i]) ? group_of(f, &f->timed[i]) : NULL;
        if (group)
            group->times[group->count++] = i;
    }
}

/* A row is moved up and down by much, because the least of several rows may be what counts. */
static void find_rows(struct fit *f)
{
    for (size_t row = 0; row < GM_RATES_COUNT; row++) {
        const struct gm_rates kept = f->profile->rates[row];
        for (unsigned up = 0; up < 2; up++) {
            for (size_t i = 0; i < FIELDS; i++) /* shares are rates, and cycles are times */
                *number_of(f->profile, SHARED_NUMBERS + row * FIELDS + i) *=
                    up == (i < 4) ? 4 : 0.25;
            for (unsigned g = 0; g < f->groups; g++)
                for (size_t i = 0; i < f->group[g].count && !f->group[g].has_row[row]; i++) {
                    size_t time = f->group[g].times[i];
                    f->group[g].has_row[row] =
                        fabs(log_estimate(&f->timed[time], f->profile) - f->estimate[time]) > 1e-9;
                }
            f->profile->rates[row] = kept;
        }
    }
}

static bool is_shared(const struct fit *f, size_t number)
{
    return !f->on_host || number == 0 || number == SHARED_NUMBERS - 1;
}

static bool is_of_group(const struct fit *f, const struct group *group, size_t number)
{
    return number < SHARED_NUMBERS ? group->shared && is_shared(f, number)
                                   : group->has_row[(number - SHARED_NUMBERS) / FIELDS];
}

static bool open_fit(struct fit *f)
{
    f->first = calloc(f->count + 1, sizeof *f->first);
    f->shape = calloc(f->count + 1, sizeof *f->shape);
    f->estimate = calloc(f->count + 1, sizeof *f->estimate);
    f->loss = calloc(f->count + 1, sizeof *f->loss);
    f->weight = calloc(f->count + 1, sizeof *f->weight);
    f->moved = calloc(f->count + 1, sizeof *f->moved);
    f->places = calloc(f->count + 1, sizeof *f->places);
    f->square = calloc(NUMBERS * (2 * NUMBERS + 4), sizeof *f->square);
    if (!f->first || !f->shape || !f->estimate || !f->loss || !f->weight || !f->moved ||
        !f->places || !f->square)
        return false;
    for (size_t i = 0; i < f->count; i++) {
        f->estimate[i] = log_estimate(&f->timed[i], f->profile);
        if (i == 0 || f->timed[i].op != f->timed[i - 1].op)
            f->first[f->shapes++] = i;
        f->shape[i] = f->shapes - 1;
    }
    f->first[f->shapes] = f->count;
    for (unsigned s = 0; s < f->shapes; s++) {
        double best = INFINITY;
        for (size_t i = f->first[s]; i < f->first[s + 1]; i++)
            if (isfinite(f->estimate[i]))
                best = fmin(best, f->timed[i].us);
        for (size_t i = f->first[s]; i < f->first[s + 1]; i++) {
            f->loss[i] = log(f->timed[i].us / best);
            f->weight[i] = fmin(1, best / f->timed[i].us);
        }
    }
    make_groups(f);
    return true;
}

/* ---- Each variant by its own times. ---- */

struct square { /* of the unknowns of a group */
    size_t number[NUMBERS], count;
    double *matrix, *gradient, *step, *slopes; /* slopes: of one time */
};

/* Solves (matrix + damping of its diagonal) step = -gradient for those that are not held, by
 * elimination with pivots: the matrix may be nearly singular, where a number hardly counts. */
static void solve(const struct square *s, const bool *held, double damping, double *work)
{
    const size_t n = s->count, width = n + 1;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            work[i * width + j] = held[i] || held[j] ? (double)(i == j) : s->matrix[i * n + j];
        if (!held[i])
            work[i * width + i] += damping * s->matrix[i * n + i] + 1e-6;
        work[i * width + n] = held[i] ? 0 : -s->gradient[i];
    }
    for (size_t i = 0; i < n; i++) {
        size_t pivot = i;
        for (size_t j = i + 1; j < n; j++)
            if (fabs(work[j * width + i]) > fabs(work[pivot * width + i]))
                pivot = j;
        for (size_t j = i; j < width && pivot != i; j++) {
            double kept = work[i * width + j];
            work[i * width + j] = work[pivot * width + j];
            work[pivot * width + j] = kept;
        }
        for (size_t j = i + 1; j < n; j++) {
            double part = work[j * width + i] / work[i * width + i];
            for (size_t k = i; k < width; k++)
                work[j * width + k] -= part * work[i * width + k];
        }
    }
    for (size_t i = n; i-- > 0;) {
        double sum = work[i * width + n];
        for (size_t j = i + 1; j < n; j++)
            sum -= work[i * width + j] * s->step[j];
        s->step[i] = sum / work[i * width + i];
    }
}

static double group_cost(const struct fit *f, const struct group *group)
{
    double cost = 0;

    for (size_t i = 0; i < group->count; i++)
        cost += robust(
            error_of(f, group->times[i], log_estimate(&f->timed[group->times[i]], f->profile)));
    return cost;
}

/* The normal equations, where errors beyond the knee count less. */
static void make_square(struct fit *f, const struct group *group, struct square *s)
{
    const double nudge = 1.003;
    const size_t n = s->count;

    memset(s->matrix, 0, n * n * sizeof(double));
    memset(s->gradient, 0, n * sizeof(double));
    for (size_t i = 0; i < group->count; i++) {
        size_t time = group->times[i];
        double error = error_of(f, time, log_estimate(&f->timed[time], f->profile));
        double part = fmin(1, KNEE / fmax(fabs(error), 1e-9));
        for (size_t j = 0; j < n; j++) {
            double *number = number_of(f->profile, s->number[j]), kept = *number;
            *number *= nudge;
            s->slopes[j] =
                (error_of(f, time, log_estimate(&f->timed[time], f->profile)) - error) / log(nudge);
            *number = kept;
        }
        for (size_t j = 0; j < n; j++) {
            s->gradient[j] += part * s->slopes[j] * error;
            for (size_t k = 0; k < n; k++)
                s->matrix[j * n + k] += part * s->slopes[j] * s->slopes[k];
        }
    }
}

/* One step of Levenberg-Marquardt. The new cost; the old one where none is less. */
static double step_group(struct fit *f, const struct group *group, struct square *s,
                         double *damping, double cost, double *work)
{
    bool held[NUMBERS];
    double kept[NUMBERS];

    make_square(f, group, s);
    for (size_t j = 0; j < s->count; j++) {
        double x = kept[j] = *number_of(f->profile, s->number[j]);
        held[j] = (bounded(s->number[j], x * 0.999) > x * 0.9995 && s->gradient[j] > 0) ||
                  (bounded(s->number[j], x * 1.001) < x * 1.0005 && s->gradient[j] < 0);
    }
    for (unsigned tries = 0; tries < LM_TRIES; tries++, *damping *= 5) {
        solve(s, held, *damping, work);
        for (size_t j = 0; j < s->count; j++)
            *number_of(f->profile, s->number[j]) =
                bounded(s->number[j], kept[j] * exp(fmin(fmax(s->step[j], -1), 1)));
        double now = group_cost(f, group);
        if (now < cost) {
            *damping = fmax(*damping / 5, 1e-7);
            return now;
        }
    }
    for (size_t j = 0; j < s->count; j++)
        *number_of(f->profile, s->number[j]) = kept[j];
    return cost;
}

static void fit_group(struct fit *f, const struct group *group)
{
    struct square s = {.count = 0};
    double damping = 1e-2, cost = group_cost(f, group);

    for (size_t i = 0; i < NUMBERS; i++)
        if (is_of_group(f, group, i))
            s.number[s.count++] = i;
    const size_t n = s.count;
    s.matrix = f->square;
    s.gradient = s.matrix + n * n;
    s.step = s.gradient + n;
    s.slopes = s.step + n;
    for (unsigned round = 0; round < LM_ROUNDS && n > 0; round++) {
        double before = cost;
        cost = step_group(f, group, &s, &damping, cost, s.slopes + n);
        if (before - cost < LM_GAIN * cost || cost == 0)
            break;
    }
}

/* ---- All variants together. ---- */

/* Of a shape: what the choice costs, if estimates that are near the least are chosen in part, and
 * how far estimates are from the times. */
static double shape_cost(const struct fit *f, unsigned shape, const double *estimate, double blur)
{
    double least = INFINITY, parts = 0, costs = 0, errors = 0;

    for (size_t i = f->first[shape]; i < f->first[shape + 1]; i++)
        least = fmin(least, estimate[i]);
    for (size_t i = f->first[shape]; i < f->first[shape + 1]; i++) {
        if (!isfinite(estimate[i]))
            continue;
        double part = exp(-(estimate[i] - least) / blur), loss = f->loss[i];
        parts += part;
        costs += part * (fmin(loss, LOSS_MOST) + (loss > log1p(GM_FIT_NEAR) ? LOSS_NOT_NEAR : 0));
        errors += robust(error_of(f, i, estimate[i]));
    }
    return parts > 0 ? costs / parts + ESTIMATE_PART * errors : 0;
}

/* The change of the cost if a number is moved. */
static double change_of(struct fit *f, size_t number, double nudge, double blur,
                        const double *costs)
{
    double *at = number_of(f->profile, number), kept = *at, change = 0;

    *at *= nudge;
    for (unsigned g = 0; g < f->groups; g++) {
        const struct group *group = &f->group[g];
        for (size_t i = 0;
             i < group->count && (number < SHARED_NUMBERS || is_of_group(f, group, number)); i++) {
            size_t time = group->times[i];
            f->moved[time] = log_estimate(&f->timed[time], f->profile);
            if (number >= SHARED_NUMBERS && fabs(f->moved[time] - f->estimate[time]) > 1e-12) {
                change += shape_cost(f, f->shape[time], f->moved, blur) - costs[f->shape[time]];
                f->moved[time] = f->estimate[time]; /* a shape has one time of a variant */
            }
        }
    }
    for (unsigned s = 0; s < f->shapes && number < SHARED_NUMBERS; s++)
        change += shape_cost(f, s, f->moved, blur) - costs[s];
    memcpy(f->moved, f->estimate, f->count * sizeof(double));
    *at = kept;
    return change / f->shapes;
}

static bool fit_choice(struct fit *f, unsigned rounds)
{
    double first[NUMBERS] = {0}, second[NUMBERS] = {0}, slope[NUMBERS], begun[NUMBERS];
    double *costs = calloc(f->shapes + 1, sizeof *costs);

    if (!costs)
        return false;
    for (size_t i = 0; i < NUMBERS; i++)
        begun[i] = *number_of(f->profile, i);
    for (unsigned round = 0; round < rounds; round++) {
        double blur =
            BLUR_FIRST * pow(BLUR_LAST / BLUR_FIRST, rounds > 1 ? (double)round / (rounds - 1) : 1);
        double size = STEP * fmin(1, 0.1 + 3 * (1 - (double)round / rounds));
        for (size_t i = 0; i < f->count; i++)
            if (isfinite(f->estimate[i]))
                f->estimate[i] = log_estimate(&f->timed[i], f->profile);
        memcpy(f->moved, f->estimate, f->count * sizeof(double));
        for (unsigned s = 0; s < f->shapes; s++)
            costs[s] = shape_cost(f, s, f->estimate, blur);
        for (size_t i = 0; i < NUMBERS; i++)
            slope[i] = i < SHARED_NUMBERS && !is_shared(f, i)
                           ? 0
                           : change_of(f, i, 1.005, blur, costs) / log(1.005);
        for (size_t i = 0; i < NUMBERS; i++) {
            if (slope[i] == 0 && second[i] == 0)
                continue; /* no time depends on it */
            first[i] = 0.9 * first[i] + 0.1 * slope[i];
            second[i] = 0.95 * second[i] + 0.05 * slope[i] * slope[i];
            double step = size * (first[i] / (1 - pow(0.9, round + 1))) /
                          (sqrt(second[i] / (1 - pow(0.95, round + 1))) + 1e-8);
            double *number = number_of(f->profile, i);
            double moved = fmax(*number * exp(-step), begun[i] / MOVED_MOST);
            *number = bounded(i, fmin(moved, begun[i] * MOVED_MOST));
        }
    }
    free(costs);
    return true;
}

/* ---- The whole. ---- */

static void set_rows(struct fit *f, const struct group *group, const struct gm_rates *rates)
{
    for (size_t row = 0; row < GM_RATES_COUNT; row++)
        if (group->has_row[row])
            f->profile->rates[row] = *rates;
}

/* From where it is, and from each of the starts: where the cost is least. A row that is never the
 * least of several would not come back by itself. */
static void fit_from_starts(struct fit *f, const struct group *group)
{
    struct gm_rates best[GM_RATES_COUNT];
    double least = INFINITY;

    memcpy(best, f->profile->rates, sizeof(best));
    for (size_t i = 0; i <= sizeof(starts) / sizeof(starts[0]); i++) {
        if (i > 0)
            set_rows(f, group, &starts[i - 1]);
        fit_group(f, group);
        double cost = group_cost(f, group);
        if (cost < least) {
            least = cost;
            memcpy(best, f->profile->rates, sizeof(best));
        }
    }
    memcpy(f->profile->rates, best, sizeof(best));
}

enum gm_status gm_profile_fit(const struct gm_timed *timed, size_t count, double launch_us,
                              unsigned rounds, const struct gm_measured_on *on,
                              struct gm_profile **ret, struct gm_error *err)
{
    bool on_host = count > 0 && timed->facts->kind == GM_DEVICE_CPU;
    struct fit f = {.timed = timed, .count = count, .on_host = on_host};
    bool given = launch_us > 0;
    struct group all = {.shared = true};
    enum gm_status status = gm_fail(err, GM_MEMORY_FULL, "no memory for a fit");

    f.profile = malloc(sizeof *f.profile);
    if (!f.profile)
        return status;
    f.first_profile = gm_profile_at(on_host);
    *f.profile = *f.first_profile;
    for (size_t i = 0; i < GM_RATES_COUNT; i++)
        f.profile->rates[i] = starts[0];
    for (size_t i = 0; i < count && !given; i++)
        launch_us = i == 0 ? timed[i].us : fmin(launch_us, timed[i].us);
    if (on_host)
        f.profile->queued = WAKING_START;
    else
        memcpy(&f.profile->launch_us, shared_start, sizeof shared_start);
    f.profile->launch_us = bounded(0, launch_us);
    snprintf(f.profile->gpu, sizeof f.profile->gpu, "%s", on->gpu);
    snprintf(f.profile->driver, sizeof f.profile->driver, "%s", on->driver);
    snprintf(f.profile->date, sizeof f.profile->date, "%s", on->date);
    snprintf(f.profile->commit, sizeof f.profile->commit, "%s", on->commit);
    if (!open_fit(&f))
        goto end;
    find_rows(&f);
    memcpy(f.profile->rates, f.first_profile->rates, sizeof f.profile->rates);
    for (unsigned g = 0; g < f.groups; g++)
        set_rows(&f, &f.group[g], &starts[0]);
    all.times = f.places;
    for (unsigned g = 0; g < f.groups; g++)
        all.count += f.group[g].count;
    if (f.groups == 0) {
        status = gm_fail(err, GM_BAD_PARAMETER, "no variant that was timed has an estimate");
        goto end;
    }
    for (unsigned sweep = 0; sweep < SWEEPS; sweep++) {
        for (unsigned g = 0; g < f.groups; g++)
            (sweep < STARTED ? fit_from_starts : fit_group)(&f, &f.group[g]);
        if (sweep + 1 < SWEEPS)
            fit_group(&f, &all);
    }
    if (!fit_choice(&f, rounds))
        goto end;
    *ret = f.profile;
    f.profile = NULL;
    status = GM_OK;
end:
    free_fit(&f);
    free(f.profile);
    return status;
}

static double link_cost(const struct gm_timed *timed, size_t count,
                        const struct gm_profile *profile)
{
    double cost = 0;

    for (size_t i = 0; i < count; i++) {
        const struct gm_timed *t = &timed[i];
        double us = strcmp(t->variant, "grouped") == 0
                        ? gm_grouped_us(t->op, &profile->link)
                        : gm_copied_us(t->op, &profile->link, exp(log_estimate(t, profile)));
        cost += isfinite(us) ? robust(log(us / t->us)) : 0;
    }
    return cost;
}

/* Each number up and down, by less and less. */
void gm_profile_fit_link(const struct gm_timed *timed, size_t count, double in_gbs, double out_gbs,
                         struct gm_profile *profile)
{
    double *number = &profile->link.copies_us;
    const size_t numbers = 5;

    profile->link = (struct gm_link_rates){in_gbs, out_gbs, 10, 5, 10, 1, 2};
    double least = link_cost(timed, count, profile);
    for (double factor = 2; factor > 1.001;) {
        double before = least;
        for (size_t i = 0; i < 2 * numbers; i++) {
            double *one = &number[i / 2], kept = *one;
            *one *= i % 2 ? factor : 1 / factor;
            double cost = link_cost(timed, count, profile);
            *one = cost < least ? *one : kept;
            least = fmin(least, cost);
        }
        factor = before - least > LM_GAIN * least ? factor : sqrt(factor);
    }
}

struct gm_fit_losses gm_profile_losses(const struct gm_timed *timed, size_t count,
                                       const struct gm_profile *profile)
{
    struct gm_fit_losses losses = {.worst = 1};

    for (size_t i = 0, end; i < count; i = end) {
        double best = INFINITY, least = INFINITY, chosen = 0;
        for (end = i; end < count && timed[end].op == timed[i].op; end++) {
            double estimate = log_estimate(&timed[end], profile);
            best = fmin(best, timed[end].us);
            chosen = estimate < least ? timed[end].us : chosen;
            least = fmin(least, estimate);
        }
        if (!isfinite(least))
            continue;
        losses.shapes++;
        losses.near += chosen <= (1 + GM_FIT_NEAR) * best;
        losses.far += chosen > (1 + GM_FIT_FAR) * best;
        losses.worst = fmax(losses.worst, chosen / best);
    }
    return losses;
}
