/*
 * compare_report.h - what a comparison has found, in order, in figures, and in the forms in which
 * it is told.
 */
#ifndef GM_SERVER_COMPARE_REPORT_H
#define GM_SERVER_COMPARE_REPORT_H

#include "server/compare.h"

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

/* compare_json.c, compare_text.c: the report of a sorted comparison; NULL without memory. */
char *gm_compare_json(const struct gm_request *request);
char *gm_compare_text(const struct gm_request *request);

#endif
