/*
 * backend_test.h - what the tests of the cuda backend on a GPU share.
 */
#ifndef GM_TESTS_GPU_BACKEND_TEST_H
#define GM_TESTS_GPU_BACKEND_TEST_H

#include "tests/unit/test_cpu_case.h"

/* A task whose matrices lie in the backend's buffers, with random operands. */
struct buffer_task {
    struct gm_task task;
    struct gm_buffer buffer[GM_OPERANDS_MAX + 1];
};

/* Square matrices; the variant by name, which must be there. False where something failed. */
bool buffer_task_make(void *context, enum gm_op_kind kind, const char *variant, enum gm_dtype dtype,
                      uint64_t rows, uint64_t cols, uint64_t seed, struct buffer_task *ret);
void buffer_task_put(void *context, struct buffer_task *made);
/* Runs it on a poisoned result; its status, with the result proved where that is GM_OK. */
enum gm_status buffer_task_run(void *context, unsigned stream, struct buffer_task *made);

double wall_us(void);

/* test_gpu_backend_faults.c: what the backend makes of calls that fail, and, last of all, of a
 * kernel that does, after which this process has no GPU any more. */
void test_faults(void);

#endif
