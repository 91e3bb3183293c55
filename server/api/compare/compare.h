/*
 * compare.h - one operation by every kernel that can run it, on the same operands: what is to
 * run, what has come of it, and whether the results are right.
 *
 * Each kernel first proves itself: one run, whose result is checked. Then it is timed, alone on
 * the device. Rows are in the order in which they run: the kernel that `auto` takes, then those
 * of the list from its end, where the faster ones are, so that slow ones come last and take the
 * time that is left.
 */
#ifndef GM_SERVER_API_COMPARE_COMPARE_H
#define GM_SERVER_API_COMPARE_COMPARE_H

#include "kernels/backend.h"
#include "kernels/cpu/reference.h"
#include "server/request/request.h"

/* What a result was found to be. */
enum gm_verdict {
    GM_VERDICT_NONE,   /* nothing was checked */
    GM_VERDICT_EXACT,  /* the same bytes as the reference, or the one rounding of the exact sum */
    GM_VERDICT_WITHIN, /* within the error bound of the arithmetic */
    GM_VERDICT_WRONG,
    GM_VERDICT_AGAINST /* no reference: how far from another kernel's result, if at all */
};

struct gm_compare_row {
    const struct gm_variant *variant;
    bool baseline;  /* a copy of operand a, which is not the operation but moves as many bytes */
    bool automatic; /* what `auto` takes */
    struct gm_error failure; /* status is GM_OK where it can run and nothing went wrong */

    enum gm_verdict verdict;
    struct gm_deviation deviation;
    unsigned runs;                        /* that were timed; 0: the device times none */
    double us_min, us_median, us_prepare; /* negative: not measured */
    bool has_accesses;                    /* as the simulator counts them */
    struct gm_access_totals accesses;
};

struct gm_compare {
    struct gm_op op;   /* what is compared */
    struct gm_op copy; /* the baseline: of operand a's bytes in their stored order */
    unsigned repeat;   /* runs to time of each */
    double slice_s;    /* what the kernel that runs now may take */
    bool begun, timing;
    bool slot; /* a slot of the queue is reserved */
    double us_runs, us_check;

    /* What results are compared with: the reference, or, where that would take too long, the
     * result of the first row that has one. */
    bool has_reference;
    struct gm_reference reference;
    const struct gm_variant *against;
    struct gm_allocation expected;

    unsigned at, count;
    struct gm_compare_row row[];
};

/* What the request has of a comparison, as its endpoint's state. */
static inline struct gm_compare *gm_compare_of(const struct gm_request *request)
{
    return request->run.state;
}

/* Its rows, for a request that is planned; NULL without memory. */
struct gm_compare *gm_compare_new(const struct gm_request *request, struct gm_error *err);

/* The operation that a row runs. */
const struct gm_op *gm_compare_op(const struct gm_compare *compare,
                                  const struct gm_compare_row *row);

/* Of check.c: the reference, where there is to be one. Slow. */
enum gm_status gm_compare_make_reference(struct gm_compare *compare, struct gm_error *err);
/* Bytes that it takes. */
bool gm_compare_reference_bytes(const struct gm_op *op, uint64_t *ret);
/* Fills a result so that whatever a kernel leaves as it was is seen to be wrong. */
void gm_compare_poison(const struct gm_compare *compare, const struct gm_compare_row *row,
                       void *result);
/* Sets the row's verdict. The first result without a reference becomes what others are compared
 * with: *result and compare->expected change places. */
void gm_compare_check(struct gm_compare *compare, struct gm_compare_row *row,
                      struct gm_allocation *result);

/* figures.c, json.c, text.c: the report. */

/* Rows as they are read: the fastest first, or that with the least traffic where nothing is timed;
 * then those that are wrong, last those without a result. */
void gm_compare_sort(struct gm_compare *compare);

/* What follows from what was measured. Negative: not known, or it makes no sense. */
struct gm_compare_figures {
    double bytes_min, flops;
    double gbs, percent_of_copy, gflops, percent_of_roofline;
    double speed; /* the fastest kernel of the operation has 1 */
    double sectors, sectors_ratio, wavefronts, wavefronts_ideal; /* ratio: to the compulsory ones */
};
void gm_compare_figures(const struct gm_compare *compare, const struct gm_device_facts *facts,
                        const struct gm_compare_row *row, struct gm_compare_figures *ret);

/* The ceiling of the operation by a variant, or (NULL) by plain arithmetic: "compute" or "memory";
 * NULL where it is not known. */
const char *gm_compare_bound(const struct gm_op *op, const struct gm_variant *variant,
                             const struct gm_device_facts *facts, double *ret_gflops);
/* What results are compared with, in words. */
const char *gm_compare_reference_words(const struct gm_compare *compare);

/* The report of a sorted comparison; NULL without memory. */
char *gm_compare_json(const struct gm_request *request);
char *gm_compare_text(const struct gm_request *request);

#endif
