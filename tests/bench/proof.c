/* proof.c - proofs of results, whole or by sample. */
#include "proof.h"

#include "kernels/layout.h"
#include "tests/unit/operands.h"

#define PROOF_FLOPS 2e8 /* what the oracle may take: a second or so */

/* Some rows of op(a), written out, times b. */
static bool take_sample(struct proof *proof, const struct gm_op *op, uint64_t *random)
{
    size_t size = gm_dtype_size(op->result.dtype);
    uint64_t k = gm_op_k(op), n = gm_op_n(op);
    struct gm_view a = gm_op_view(op, 0);
    struct gm_matrix *b = &proof->sample.operand[1];
    double rows = PROOF_FLOPS / (2.0 * (double)k * (double)n);

    proof->rows = rows < 1 ? 1 : rows < PROOF_ROWS_MAX ? (uint64_t)rows : PROOF_ROWS_MAX;
    proof->matrix = random_below(random, op->result.batch);
    proof->a = malloc(proof->rows * k * size);
    proof->result = malloc(proof->rows * n * size);
    if (!proof->a || !proof->result)
        return false;
    for (uint64_t i = 0; i < proof->rows; i++) {
        proof->row[i] = random_below(random, gm_op_m(op));
        uint64_t first = proof->matrix * a.batch + proof->row[i] * a.row;
        for (uint64_t p = 0; p < k; p++)
            memcpy(proof->a + (i * k + p) * size, (const char *)a.data + (first + p * a.col) * size,
                   size);
    }
    if (b->batch > 1)
        b->data = (char *)b->data + proof->matrix * b->rows * b->cols * size;
    b->batch = 1;
    proof->sample.transa = false;
    proof->sample.operand[0] = (struct gm_matrix){
        .dtype = b->dtype, .batch = 1, .rows = proof->rows, .cols = k, .data = proof->a};
    proof->sample.result =
        (struct gm_matrix){.dtype = b->dtype, .batch = 1, .rows = proof->rows, .cols = n};
    return true;
}

bool proof_make(struct proof *proof, const struct gm_op *op, uint64_t *random)
{
    *proof = (struct proof){.sample = *op,
                            .whole = op->kind != GM_OP_MATMUL || gm_op_flops(op) <= PROOF_FLOPS};
    if ((proof->whole || take_sample(proof, op, random)) &&
        gm_reference_make(&proof->sample, &proof->reference, NULL) == GM_OK)
        return true;
    proof_free(proof);
    return false;
}

bool proof_holds(const struct proof *proof, const struct gm_op *op)
{
    size_t row_bytes = gm_op_n(op) * gm_dtype_size(op->result.dtype);
    const void *result = op->result.data;

    if (!proof->whole) {
        for (uint64_t i = 0; i < proof->rows; i++) {
            uint64_t row = proof->matrix * gm_op_m(op) + proof->row[i];
            memcpy(proof->result + i * row_bytes, (const char *)result + row * row_bytes,
                   row_bytes);
        }
        result = proof->result;
    }
    return gm_reference_compare(&proof->reference, &proof->sample, result).wrong == 0;
}

void proof_free(struct proof *proof)
{
    gm_reference_free(&proof->reference);
    free(proof->a);
    free(proof->result);
    *proof = (struct proof){0};
}
