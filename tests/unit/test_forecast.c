/*
 * When jobs will end, on a clock that is made up: ten times what a device can do arrives at random
 * moments, each job with a deadline. Of those that are admitted hardly any may miss it, and the
 * device must not be idle.
 */
#include "server/sched/cost.h"
#include "server/sched/fair_queue.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KINDS 3
#define STREAMS_MAX 3
#define JOBS_MAX 60000
#define NEVER_S 1e9

/* A device, and what is asked of it. */
struct world {
    unsigned streams; /* jobs at a time */
    bool alone;       /* a job has the whole device */
    bool share_rate;  /* n jobs at a time take n times as long */
    double kind_s[KINDS];
    double slowness; /* what jobs really take, against what is expected of the first */
    double spread;   /* of the logarithm of what one takes */
    double slower;   /* every other second is slower by this factor */
    double times;    /* what arrives, against what the device does */
    double timeout_s;
    unsigned clients;
};

static const struct world usual = {.streams = 1,
                                   .alone = true,
                                   .kind_s = {0.005, 0.01, 0.02},
                                   .slowness = 1,
                                   .spread = 0.1,
                                   .slower = 1,
                                   .times = 10,
                                   .timeout_s = 1,
                                   .clients = 1};
#define SECONDS 10

struct job {
    struct gm_fair_item slot;
    double usual_s, left_s;    /* the whole job at the usual rate, and what is left of it */
    double work_s, forecast_s; /* as the scheduler has them */
    double arrived_s, deadline_s, started_s;
};

static struct {
    struct gm_fair_queue queue;
    struct gm_forecast forecast;
    struct job job[JOBS_MAX], *running[STREAMS_MAX];
    unsigned jobs, active, admitted, missed, refused;
    double now_s, arrival_s, waiting_s, slowness, done_s;
    unsigned seed;
} sim;

static double dice(void)
{
    return (rand_r(&sim.seed) + 0.5) / (RAND_MAX + 1.0);
}

static double normal(void)
{
    return sqrt(-2 * log(dice())) * cos(2 * M_PI * dice());
}

static int64_t now_ns(void)
{
    return (int64_t)(sim.now_s * 1e9);
}

static double mean_s(const struct world *w)
{
    return (w->kind_s[0] + w->kind_s[1] + w->kind_s[2]) / KINDS;
}

/* Jobs that a device does at a time, at the usual rate each. */
static double at_a_time(const struct world *w)
{
    return w->alone || w->share_rate ? 1 : w->streams;
}

static double rate(const struct world *w)
{
    double slower = fmod(sim.now_s, 2) < 1 ? 1 : w->slower;

    return 1 / slower / (w->share_rate && sim.active > 0 ? sim.active : 1);
}

static void learn(const struct job *job)
{
    gm_forecast_learn(&sim.forecast, job->forecast_s, job->slot.cost_s, sim.now_s - job->arrived_s,
                      job->deadline_s - job->arrived_s);
}

/* Admits a job as the scheduler does. */
static void arrive(const struct world *w)
{
    struct job *job = &sim.job[sim.jobs++];
    unsigned kind = (unsigned)(dice() * KINDS);

    CHECK(sim.jobs < JOBS_MAX);
    sim.arrival_s = sim.now_s - log(dice()) * mean_s(w) / (w->times * at_a_time(w));
    memset(job, 0, sizeof *job);
    job->usual_s = w->kind_s[kind];
    job->left_s = job->usual_s * exp(w->spread * normal());
    job->arrived_s = sim.now_s;
    job->deadline_s = sim.now_s + w->timeout_s;
    job->slot.client = (uint64_t)(dice() * w->clients);
    job->slot.cost_s = w->kind_s[kind] / w->slowness * sim.slowness;
    job->work_s = job->slot.cost_s / (w->alone ? 1 : w->streams);
    double before_s = gm_fair_before_s(&sim.queue, &job->slot), all_s = sim.queue.waiting_s;
    before_s = all_s > 0 ? before_s / all_s * sim.waiting_s : 0;
    double ends_s = gm_forecast_s(&sim.forecast, before_s, job->slot.cost_s, now_ns());
    if (sim.queue.waiting > 0 && gm_forecast_latest_s(&sim.forecast, ends_s) > w->timeout_s) {
        sim.refused++;
        return;
    }
    sim.admitted++;
    job->forecast_s = ends_s;
    gm_fair_push(&sim.queue, &job->slot);
    sim.waiting_s += job->work_s;
}

static void start_all(const struct world *w)
{
    struct gm_fair_item *first;

    while (sim.active < (w->alone ? 1 : w->streams) && (first = gm_fair_first(&sim.queue))) {
        struct job *job = (struct job *)first;
        unsigned stream = 0;
        gm_fair_serve(&sim.queue, first);
        sim.waiting_s -= job->work_s;
        job->started_s = sim.now_s;
        while (sim.running[stream])
            stream++;
        sim.running[stream] = job;
        sim.active++;
        gm_forecast_begin(&sim.forecast, job->work_s, now_ns());
    }
}

static void end(const struct world *w, unsigned stream)
{
    struct job *job = sim.running[stream];
    bool done = job->left_s < 1e-9;
    double took_s = sim.now_s - job->started_s, work_s = done ? job->work_s : 0;

    sim.running[stream] = NULL;
    sim.active--;
    gm_fair_served(&sim.queue, &job->slot, took_s);
    gm_forecast_end(&sim.forecast, job->work_s, work_s, sim.waiting_s, now_ns());
    learn(job);
    sim.missed += !done;
    if (!done)
        return;
    sim.done_s += job->usual_s;
    /* As the cost model learns. */
    sim.slowness = sqrt(sim.slowness * fmax(1, took_s / job->usual_s * w->slowness));
}

/* Lets time pass until anything happens. */
static void step(const struct world *w)
{
    double now_rate = rate(w), next_s = fmin(sim.arrival_s, floor(sim.now_s + 1 + 1e-9));
    struct job *late = NULL;
    int stream = -1;

    for (struct gm_fair_item *i = NULL; (i = gm_fair_after(&sim.queue, i)) != NULL;) {
        struct job *job = (struct job *)i;
        if (job->deadline_s < next_s) {
            next_s = job->deadline_s;
            late = job;
        }
    }
    for (unsigned i = 0; i < STREAMS_MAX; i++) {
        const struct job *job = sim.running[i];
        double end_s = job ? fmin(sim.now_s + job->left_s / now_rate, job->deadline_s) : NEVER_S;
        if (end_s < next_s) {
            next_s = end_s;
            stream = (int)i;
        }
    }
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        if (sim.running[i])
            sim.running[i]->left_s -= (next_s - sim.now_s) * now_rate;
    sim.now_s = next_s;
    if (stream >= 0) {
        end(w, (unsigned)stream);
    } else if (late) {
        gm_fair_remove(&sim.queue, &late->slot);
        sim.waiting_s -= late->work_s;
        learn(late);
        sim.missed++;
    } else if (sim.now_s >= sim.arrival_s) {
        arrive(w);
    }
    start_all(w);
}

/* At most one in a hundred of the admitted misses its deadline, and the device is busy. */
static void test(const struct world *w)
{
    double could_s = at_a_time(w) * SECONDS * (1 + 1 / w->slower) / 2;

    memset(&sim, 0, sizeof sim);
    gm_fair_init(&sim.queue);
    gm_forecast_init(&sim.forecast);
    sim.slowness = 1;
    sim.seed = 1; /* the same arrivals each time: a share of few jobs is a matter of chance */
    while (sim.now_s < SECONDS)
        step(w);
    CHECK(sim.refused > sim.admitted / 2);
    CHECK(100 * sim.missed <= sim.admitted);
    CHECK(sim.done_s >= 0.95 * could_s / exp(w->spread * w->spread / 2));
}
#define TEST(...)                                                                                  \
    do {                                                                                           \
        struct world w = usual;                                                                    \
        __VA_ARGS__;                                                                               \
        test(&w);                                                                                  \
    } while (0)

/* Whatever the device is like, and whatever is not known of it at first. */
static void test_devices(void)
{
    TEST();
    TEST(w.kind_s[0] = w.kind_s[2] = 0.01); /* of one size class */
    TEST(w.spread = 0.5);
    TEST(w.slowness = 3);
    TEST(w.slower = 1.3);
    TEST(w.timeout_s = 0.2);
    TEST(w.streams = 3; w.alone = false; w.share_rate = true);
    TEST(w.streams = 3; w.alone = false; w.share_rate = true; w.slowness = 3);
    TEST(w.streams = 3; w.alone = false);
    TEST(w.kind_s[0] = 0.001; w.kind_s[2] = 0.1);
    TEST(w.clients = 2);
}

/* The pace is what was seen, and at least what running jobs show. */
static void test_pace(void)
{
    struct gm_forecast f;

    gm_forecast_init(&f);
    CHECK(gm_forecast_pace(&f, 0, 0) == 1);
    gm_forecast_begin(&f, 1, 0);
    CHECK(gm_forecast_pace(&f, 0, 500000000) == 1);
    CHECK(fabs(gm_forecast_s(&f, 2, 1, 500000000) - 3.5) < 1e-9);
    CHECK(fabs(gm_forecast_pace(&f, 0, 3000000000) - 3) < 1e-9);
    CHECK(fabs(gm_forecast_s(&f, 0, 0, 3000000000)) < 1e-9); /* it is about to end */
    CHECK(gm_forecast_s(&f, 2, 1, 3000000000) > 6);
    gm_forecast_end(&f, 1, 1, 0, 4000000000);
    CHECK(fabs(gm_forecast_pace(&f, 0, 4000000000) - 4) < 1e-9);
    /* What failed has done nothing, and shows nothing. */
    gm_forecast_begin(&f, 1, 5000000000);
    gm_forecast_end(&f, 1, 0, 0, 6000000000);
    CHECK(fabs(gm_forecast_pace(&f, 0, 6000000000) - 4) < 1e-9);
    /* Little that was seen says little of much. */
    CHECK(gm_forecast_pace(&f, 1e4, 6000000000) < 1.01);
    /* Three at once, each of which takes as long as one would. */
    gm_forecast_init(&f);
    for (int i = 0; i < 3; i++)
        gm_forecast_begin(&f, 1, 0);
    for (int i = 0; i < 3; i++)
        gm_forecast_end(&f, 1, 1, 0, 1000000000);
    CHECK(gm_forecast_pace(&f, 0, 1000000000) < 0.5);
}

int main(void)
{
    test_pace();
    test_devices();
    return check_report();
}
