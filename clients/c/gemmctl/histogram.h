/*
 * histogram.h - how often each latency was seen, in nanoseconds: 128 steps for each power of two,
 * so that a percentile is right to 0.8 %, whatever the range. One thread a histogram; then they are
 * added up.
 */
#ifndef GM_CLIENTS_C_GEMMCTL_HISTOGRAM_H
#define GM_CLIENTS_C_GEMMCTL_HISTOGRAM_H

#include <stdint.h>

#define GM_HISTOGRAM_STEPS 128
#define GM_HISTOGRAM_STEPS_LOG2 7
#define GM_HISTOGRAM_SIZE ((64 - GM_HISTOGRAM_STEPS_LOG2 + 1) * GM_HISTOGRAM_STEPS)

struct gm_histogram {
    uint64_t count, sum, min, max; /* min and max: of nothing while count is 0 */
    uint64_t step[GM_HISTOGRAM_SIZE];
};

void gm_histogram_add(struct gm_histogram *histogram, uint64_t value);
void gm_histogram_merge(struct gm_histogram *histogram, const struct gm_histogram *other);
/* The least value that this percentage of all are at most, rounded up to the end of its step; 0 of
 * nothing. */
uint64_t gm_histogram_percentile(const struct gm_histogram *histogram, double percent);

#endif
