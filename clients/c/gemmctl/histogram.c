#include "clients/c/gemmctl/histogram.h"

#include <math.h>
#include <stddef.h>

/* Values below 128 have steps of their own. Others: the power of two, then its 7 bits below. */
static size_t step_of(uint64_t value)
{
    if (value < GM_HISTOGRAM_STEPS)
        return (size_t)value;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - GM_HISTOGRAM_STEPS_LOG2;
    return ((size_t)shift << GM_HISTOGRAM_STEPS_LOG2) + (size_t)(value >> shift);
}

static uint64_t end_of(size_t step)
{
    if (step < 2 * GM_HISTOGRAM_STEPS)
        return step;
    unsigned shift = (unsigned)(step >> GM_HISTOGRAM_STEPS_LOG2) - 1;
    uint64_t top = (step & (GM_HISTOGRAM_STEPS - 1)) | GM_HISTOGRAM_STEPS;
    return ((top + 1) << shift) - 1;
}

void gm_histogram_add(struct gm_histogram *histogram, uint64_t value)
{
    if (histogram->count == 0 || value < histogram->min)
        histogram->min = value;
    if (value > histogram->max)
        histogram->max = value;
    histogram->count++;
    histogram->sum += value;
    histogram->step[step_of(value)]++;
}

void gm_histogram_merge(struct gm_histogram *histogram, const struct gm_histogram *other)
{
    if (other->count == 0)
        return;
    if (histogram->count == 0 || other->min < histogram->min)
        histogram->min = other->min;
    if (other->max > histogram->max)
        histogram->max = other->max;
    histogram->count += other->count;
    histogram->sum += other->sum;
    for (size_t i = 0; i < GM_HISTOGRAM_SIZE; i++)
        histogram->step[i] += other->step[i];
}

uint64_t gm_histogram_percentile(const struct gm_histogram *histogram, double percent)
{
    uint64_t wanted = (uint64_t)ceil(percent / 100 * (double)histogram->count), seen = 0;

    if (histogram->count == 0)
        return 0;
    if (wanted < 1)
        wanted = 1;
    for (size_t i = 0; i < GM_HISTOGRAM_SIZE; i++) {
        seen += histogram->step[i];
        if (seen >= wanted)
            return end_of(i) < histogram->max ? end_of(i) : histogram->max;
    }
    return histogram->max;
}
