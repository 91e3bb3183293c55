/*
 * forecast.c - when the jobs of a device will end, by how others have ended.
 */
#include "server/sched/cost.h"

#include <math.h>

/* The running means are those of TCP's time-out (RFC 6298, section 2, with its weights). */
#define DEVIATIONS 4
#define MEAN_WEIGHT 0.125
#define DEVIATION_WEIGHT 0.25
#define FIRST_DEVIATION 0.125 /* until a forecast was confirmed it may be off by half */
/* The pace is that of as much work as waits, and of so many jobs at least. */
#define PACE_JOBS 8
/* This part of what lies ahead is taken to go as expected, so that a delay that was seen among
 * small jobs is not taken for the pace of large ones. */
#define UNSEEN_PART 0.125

static double since_s(int64_t now_ns, int64_t then_ns)
{
    return now_ns > then_ns ? (double)(now_ns - then_ns) * 1e-9 : 0;
}

void gm_forecast_init(struct gm_forecast *f)
{
    *f = (struct gm_forecast){.deviation = FIRST_DEVIATION};
}

void gm_forecast_begin(struct gm_forecast *f, double device_s, int64_t now_ns)
{
    if (f->running++ == 0) {
        f->running_s = 0; /* no rounding errors stay */
        f->marked_ns = now_ns;
    }
    f->running_s += device_s;
}

void gm_forecast_end(struct gm_forecast *f, double device_s, double done_s, double waiting_s,
                     int64_t now_ns)
{
    double took_s = since_s(now_ns, f->marked_ns);

    f->running--;
    f->running_s -= device_s;
    f->marked_ns = now_ns;
    if (!(done_s > 0))
        return;
    double kept = 1 - done_s / (fmax(0, waiting_s) + PACE_JOBS * done_s);
    f->took_s = kept * f->took_s + took_s;
    f->done_s = kept * f->done_s + done_s;
}

double gm_forecast_pace(const struct gm_forecast *f, double ahead_s, int64_t now_ns)
{
    double unseen_s = UNSEEN_PART * ahead_s, took_s = f->took_s + unseen_s;
    double done_s = f->done_s + unseen_s, pace = done_s > 0 ? took_s / done_s : 1;

    /* If all that runs ended now, it would have been this. */
    if (f->running > 0 && done_s + f->running_s > 0)
        pace = fmax(pace, (took_s + since_s(now_ns, f->marked_ns)) / (done_s + f->running_s));
    return pace;
}

double gm_forecast_s(const struct gm_forecast *f, double before_s, double own_s, int64_t now_ns)
{
    double pace = gm_forecast_pace(f, f->running_s + before_s + own_s, now_ns);
    double running_s =
        f->running > 0 ? fmax(0, f->running_s * pace - since_s(now_ns, f->marked_ns)) : 0;

    return running_s + before_s * pace + own_s * fmax(1, pace);
}

double gm_forecast_latest_s(const struct gm_forecast *f, double expected_s)
{
    return expected_s * (1 + fmax(0, f->late) + DEVIATIONS * f->deviation);
}

void gm_forecast_learn(struct gm_forecast *f, double expected_s, double own_s, double took_s,
                       double allowed_s)
{
    if (!(expected_s > 0) || !(allowed_s > 0))
        return;
    double late = took_s / expected_s - 1;
    double weight = fmin(1, own_s / expected_s) * fmin(1, expected_s / allowed_s);
    f->deviation += weight * DEVIATION_WEIGHT * (fabs(late - f->late) - f->deviation);
    f->late += weight * MEAN_WEIGHT * (late - f->late);
}
