/*
 * test_cpu_case.h - one operation with random operands between guards, for the tests of the cpu
 * kernels: what is written beyond a result, or into an operand, is found, and so is what of a
 * result was not written.
 */
#ifndef GM_TESTS_UNIT_CPU_CASE_H
#define GM_TESTS_UNIT_CPU_CASE_H

#include "kernels/backend.h"
#include "kernels/cpu/reference.h"
#include "operands.h"

#define CASE_POISON 0xFF /* NaN in all float types, and no likely integer */

struct kernel_case {
    struct gm_op op;
    char *buffer[GM_OPERANDS_MAX + 1]; /* operands, result; with their guards */
    char *copy[GM_OPERANDS_MAX];       /* the operands as they were */
};

/* Memory and random operands for an operation that gm_op_init made. */
struct kernel_case case_make(const struct gm_op *op, uint64_t *random);
/* To be called when the operands are as they shall be, and stay. */
void case_seal(struct kernel_case *made);
/* Fills the result with what no kernel may leave there. */
void case_poison(const struct kernel_case *made);
/* Whether nothing was written beyond the result, nor into or beyond an operand. */
bool case_intact(const struct kernel_case *made);
void case_free(struct kernel_case *made);

/* For a failure's message. */
const char *case_text(const struct gm_op *op, char buf[256]);

/* Runs one variant by the backend's table; *ret_times may be NULL. */
enum gm_status case_run(void *context, const struct kernel_case *made,
                        const struct gm_variant *variant, struct gm_times *ret_times);

#endif
