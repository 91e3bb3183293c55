/*
 * cuda_case.h - tasks for the cuda backend on the fake runtime: random operands in its buffers,
 * host functions that stand for kernels, and the oracle.
 */
#ifndef GM_TESTS_FAULT_CUDA_CASE_H
#define GM_TESTS_FAULT_CUDA_CASE_H

#include "fake_cuda.h"
#include "inject.h"
#include "kernels/backend.h"
#include "kernels/cpu/reference.h"
#include "tests/unit/operands.h"

#define FAKE_GROUP_NS 3000 /* what the blocks of fake_group tell of a launch */

struct cuda_case {
    struct gm_task task;
    struct gm_buffer buffer[GM_OPERANDS_MAX + 1];
};

/* Of two dimensions or three; batch 0 is a single matrix. */
struct cuda_request {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    unsigned operands;
    uint64_t shape[GM_OPERANDS_MAX][3];
    enum gm_layout layout[GM_OPERANDS_MAX];
    struct gm_op_options options;
};

extern const struct gm_variant fake_transpose; /* row-major operands only */
extern const struct gm_variant fake_group;     /* the same, of several; its blocks say 3 us */
extern const struct gm_variant fake_sum;       /* an add in three passes, with scratch */
extern const struct gm_variant cublas_matmul, cublas_transpose; /* the real ones */

/* With its buffers; nothing to put back where it fails. The operands are the same for one seed. */
enum gm_status cuda_case_make(void *context, const struct cuda_request *request,
                              const struct gm_variant *variant, uint64_t seed,
                              struct cuda_case *ret, struct gm_error *err);
void cuda_case_put(void *context, struct cuda_case *made);
/* Fills the result with what no kernel may leave there. */
void cuda_case_poison(struct cuda_case *made);
bool cuda_case_is_right(const struct cuda_case *made);

/* A matrix, and a stack in column-major order, which the backend rearranges first. */
extern const struct cuda_request plain_transpose, stacked_transpose;

/* The same with random operands, and poisoned. false: not made, which is checked. */
bool make(void *context, const struct cuda_request *request, const struct gm_variant *variant,
          struct cuda_case *ret);
/* Runs it alone on the device 0, and checks that it is right. */
void run_one(void *context, unsigned stream, struct cuda_case *made);

/* The backend on the fake runtime, and its end, at which nothing is left. */
void *open_backend(unsigned streams);
void close_backend(void *context);
/* Whether a time is as it must be, which is checked. */
bool near(double actual, double expected);

#endif
