/*
 * explain_case.h - access reports made by hand, as a simulator would make them of textbook
 * kernels: sites whose lanes lie by a rule, counted here by the plainest of loops.
 */
#ifndef GM_TESTS_UNIT_EXPLAIN_CASE_H
#define GM_TESTS_UNIT_EXPLAIN_CASE_H

#include "server/api/explain/explain.h"

#define CASE_SITES_MAX 40

struct explain_case {
    struct gm_op op;
    struct gm_variant variant;
    struct gm_device_facts facts;
    struct gm_access_report report;
    struct gm_access_site site[CASE_SITES_MAX];
    struct gm_launch_report launch[2];
    struct gm_explain explain;
};

/* Where lane i is, in bytes: begin + (i / width) * pitch + (i % width) * stride. */
struct lanes {
    int64_t begin, stride, pitch;
    unsigned width;  /* 0: 32 */
    unsigned bytes;  /* each lane's; 0: 4 */
    uint32_t active; /* 0: all */
};

/* An operation on operands of this shape (b's, of a matmul, too), one launch of 32x8 threads for
 * each 32x32 elements, and no site yet. */
void case_init(struct explain_case *c, enum gm_op_kind kind, uint64_t rows, uint64_t cols);
/* So many requests like this one. */
struct gm_access_site *case_add(struct explain_case *c, enum gm_access_kind kind, unsigned line,
                                const char *memory, double requests, struct lanes lanes);

/* Transposes of a 1024x1024 f32, through a tile whose rows are `pitch` elements; 0: no tile. */
void case_transpose(struct explain_case *c, unsigned pitch);

#endif
