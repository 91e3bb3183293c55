/*
 * compare.h - compares kernels: runs one operation by every kernel that can run it, on the same
 * operands.
 *
 * Declares the plan, the rows with their results, and the report. Each kernel first runs once, and
 * its result is checked. Then it is timed, alone on the device. Rows run in this order: the kernel
 * that `auto` chooses, then the list from its end, where the faster kernels are. So slow kernels
 * come last and get the time that is left.
 */
#ifndef GM_SERVER_API_COMPARE_COMPARE_H
#define GM_SERVER_API_COMPARE_COMPARE_H

#include "kernels/cpu/reference.h"
#include "kernels/task.h"
#include "server/request/request.h"

/* How a result compares with the reference. */
enum gm_verdict {
    GM_VERDICT_NONE,   /* not checked */
    GM_VERDICT_EXACT,  /* the same bytes as the reference, or the exact sum rounded once */
    GM_VERDICT_WITHIN, /* within the error bound of the arithmetic */
    GM_VERDICT_WRONG,
    GM_VERDICT_AGAINST /* no reference: its distance from another kernel's result, if there is one
                        */
};

struct gm_compare_row {
    const struct gm_variant *variant;
    bool baseline;  /* a copy of operand a: not the operation, but it moves as many bytes */
    bool automatic; /* the kernel that `auto` chooses */
    struct gm_error failure; /* status is GM_OK if it can run and has not failed */

    enum gm_verdict verdict;
    struct gm_deviation deviation;
    unsigned runs;                        /* timed runs; 0: the device's times mean nothing */
    double us_min, us_median, us_prepare; /* negative: not measured */
    bool has_accesses;                    /* counted by the simulator */
    struct gm_access_totals accesses;
};

struct gm_compare {
    struct gm_op op;   /* the operation to compare */
    struct gm_op copy; /* the baseline: copies operand a's bytes in their stored order */
    unsigned repeat;   /* runs to time for each kernel */
    double slice_s;    /* time that the current kernel may take, in seconds */
    bool begun, timing;
    bool slot; /* a queue slot is reserved */
    double us_runs, us_check;

    /* The expected result: the reference, or, if that would take too long, the result of the first
     * row that has one. */
    bool has_reference;
    struct gm_reference reference;
    const struct gm_variant *against;
    struct gm_allocation expected;

    unsigned at, count;
    struct gm_compare_row row[];
};

/* The comparison of a request: its endpoint's state. */
static inline struct gm_compare *gm_compare_of(const struct gm_request *request)
{
    return request->run.state;
}

/* Makes the comparison of a planned request; NULL if memory ran out. */
struct gm_compare *gm_compare_new(const struct gm_request *request, struct gm_error *err);

/* The operation that a row runs. */
const struct gm_op *gm_compare_op(const struct gm_compare *compare,
                                  const struct gm_compare_row *row);

/* check.c: computes the reference, if there is to be one. Slow. */
enum gm_status gm_compare_make_reference(struct gm_compare *compare, struct gm_error *err);
/* Memory of the reference, in bytes. */
bool gm_compare_reference_bytes(const struct gm_op *op, uint64_t *ret);
/* Fills a result with values that are wrong, so that elements which a kernel does not write are
 * detected. */
void gm_compare_poison(const struct gm_compare *compare, const struct gm_compare_row *row,
                       void *result);
/* Sets the row's verdict. If there is no reference, the first result becomes the expected one:
 * *result and compare->expected are swapped. */
void gm_compare_check(struct gm_compare *compare, struct gm_compare_row *row,
                      struct gm_allocation *result);

/* figures.c, json.c, text.c: the report. */

/* Sorts the rows for reading: the fastest first, or the one with the least traffic if nothing was
 * timed; then wrong ones, last those without a result. */
void gm_compare_sort(struct gm_compare *compare);

/* Figures derived from measurements. Negative: unknown or not applicable. */
struct gm_compare_figures {
    double bytes_min, flops;
    double gbs, percent_of_copy, gflops, percent_of_roofline;
    double estimated_us; /* by choose/, on a GPU; negative: it has no estimate */
    double speed;        /* relative to the fastest kernel of the operation, which has 1 */
    double sectors, sectors_ratio, wavefronts,
        wavefronts_ideal; /* ratio: to the compulsory sectors */
};
void gm_compare_figures(const struct gm_compare *compare, const struct gm_device_facts *facts,
                        const struct gm_compare_row *row, struct gm_compare_figures *ret);

/* What bounds the operation by a variant, or (NULL) by plain arithmetic: "compute" or "memory";
 * NULL if unknown. */
const char *gm_compare_bound(const struct gm_op *op, const struct gm_variant *variant,
                             const struct gm_device_facts *facts, double *ret_gflops);
/* Describes what results are compared with. */
const char *gm_compare_reference_words(const struct gm_compare *compare);

/* Writes how a result differs: "exact", "0.03 of bound"; "" if it was not checked. */
#define GM_COMPARE_ERROR_MAX 48
void gm_compare_error_words(const struct gm_compare *compare, const struct gm_compare_row *row,
                            char out[GM_COMPARE_ERROR_MAX]);

/* The report of a sorted comparison; NULL if memory ran out. */
char *gm_compare_json(const struct gm_request *request);
char *gm_compare_text(const struct gm_request *request);
char *gm_compare_svg(const struct gm_request *request);

#endif
