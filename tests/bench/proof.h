/*
 * proof.h - that a result is right, before it is timed.
 *
 * The oracle is slow, so a product too large for it is proved on some rows, drawn at random, of
 * one of its matrices. All else is proved whole.
 */
#ifndef GM_TESTS_BENCH_PROOF_H
#define GM_TESTS_BENCH_PROOF_H

#include "kernels/cpu/reference.h"

#define PROOF_ROWS_MAX 16u

struct proof {
    bool whole;
    struct gm_op sample; /* the operation itself, or the one that makes the rows */
    struct gm_reference reference;
    uint64_t matrix, rows, row[PROOF_ROWS_MAX];
    char *a, *result; /* of the sample */
};

/* false if there is no memory for it. */
bool proof_make(struct proof *proof, const struct gm_op *op, uint64_t *random);
/* Whether the result of op, which is proof_make's or differs in its result alone, is right. */
bool proof_holds(const struct proof *proof, const struct gm_op *op);
void proof_free(struct proof *proof);

#endif
