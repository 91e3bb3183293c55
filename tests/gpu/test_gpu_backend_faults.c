/*
 * test_gpu_backend_faults.c - the cuda backend on a GPU, when calls fail.
 *
 * An error that is put in a call's place leaves the real device well, so what came after it can be
 * proved. The last test is of a kernel that really writes where nothing is.
 */
#include "backend_test.h"
#include "kernels/variant.h"
#include "tests/fault/inject.h"

#include <cuda_runtime.h>

gm_kernel_fn gm_cuda_transpose_grouped; /* of variants.def */

static void *open_backend(void)
{
    struct gm_backend_options options = {.streams = 2};
    struct gm_error err = {.detail = ""};
    void *context = NULL;

    CHECK_STATUS(gm_backend_cuda.open(&options, &context, &err), GM_OK, &err);
    return context;
}

/* Each call of one run, once with an error that a task survives by trying again or not at all, once
 * with one that it does not: the next task is well in any case. */
static void test_passing(struct buffer_task *made, void *context)
{
    static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorInvalidValue};
    struct inject_count counts[INJECT_FUNCTIONS_MAX];

    CHECK_EQ(buffer_task_run(context, 0, made), GM_OK); /* with what only a first run calls */
    inject_reset();
    CHECK_EQ(buffer_task_run(context, 0, made), GM_OK);
    unsigned functions = inject_counts(counts);
    CHECK(functions > 5);
    for (unsigned i = 0; i < functions; i++) {
        for (unsigned long n = 1; n <= counts[i].calls; n++) {
            for (unsigned e = 0; e < 2; e++) {
                inject_at(counts[i].function, n, errors[e], NULL);
                enum gm_status status = buffer_task_run(context, 0, made);
                bool right = CHECK(inject_has_fired());
                right &=
                    CHECK(status == GM_OK || status == GM_INTERNAL || status == GM_DEVICE_MEMORY);
                if (strcmp(counts[i].function, "cudaMallocAsync") == 0 && e == 0)
                    right &= CHECK_EQ(status, GM_OK);
                inject_reset();
                right &= CHECK_EQ(buffer_task_run(context, 0, made), GM_OK);
                if (!right)
                    fprintf(stderr, "  call %lu of %s, error %d\n", n, counts[i].function,
                            (int)errors[e]);
            }
        }
    }
}

/* All of the device's memory is others': the task is told so, and is well once they have gone. */
static void test_memory(void *context)
{
    struct buffer_task made;
    size_t available, total;
    void *hog = NULL, *rest = NULL;

    if (!buffer_task_make(context, GM_OP_TRANSPOSE, "padded", GM_U8, 20000, 20000, 1, &made))
        return;
    CHECK_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
    for (size_t bytes = available; bytes > ((size_t)64 << 20) && !hog; bytes -= (size_t)64 << 20)
        if (cudaMalloc(&hog, bytes) != cudaSuccess)
            hog = NULL;
    for (size_t bytes = (size_t)256 << 20; bytes >= ((size_t)32 << 20) && !rest; bytes /= 2)
        if (cudaMalloc(&rest, bytes) != cudaSuccess)
            rest = NULL;
    (void)cudaGetLastError();
    CHECK(hog != NULL);
    CHECK_STATUS(buffer_task_run(context, 0, &made), GM_DEVICE_MEMORY, &made.task.error);
    CHECK(strstr(made.task.error.detail, "out of memory"));
    cudaFree(hog);
    cudaFree(rest);
    CHECK_STATUS(buffer_task_run(context, 0, &made), GM_OK, &made.task.error);
    buffer_task_put(context, &made);
}

/* A sticky error in a call's place: the device is given up, in words, and for good. */
static void test_given_up(void)
{
    static const char *const functions[] = {"cudaLaunchKernel", "cudaMallocAsync",
                                            "cudaEventSynchronize"};
    struct buffer_task made;

    for (unsigned i = 0; i < 3; i++) {
        void *context = open_backend();
        if (!context ||
            !buffer_task_make(context, GM_OP_TRANSPOSE, "padded", GM_F32, 100, 100, 1, &made))
            continue;
        inject_at(functions[i], 1, cudaErrorECCUncorrectable, NULL);
        CHECK_EQ(buffer_task_run(context, 1, &made), GM_DEVICE_LOST);
        CHECK(strstr(made.task.error.detail, "cudaErrorECCUncorrectable"));
        CHECK(strstr(made.task.error.detail, "\"padded\" of transpose"));
        CHECK_EQ(buffer_task_run(context, 0, &made), GM_DEVICE_LOST);
        inject_reset();
        buffer_task_put(context, &made);
        gm_backend_cuda.close(context);
    }
}

/* A kernel that writes to where nothing is, and whose blocks then never tell that they end. */
static enum gm_status run_wild(const struct gm_op *op, struct gm_exec *exec)
{
    struct gm_op wild = *op;

    wild.result.data = (void *)0x100;
    return gm_cuda_transpose_grouped(&wild, exec);
}

static void test_wild_kernel(void)
{
    struct gm_variant wild = {.op = GM_OP_TRANSPOSE,
                              .name = "wild",
                              .accepts = gm_accepts_any,
                              .scratch = gm_scratch_none,
                              .groups = true};
    struct buffer_task made, other;
    void *context = open_backend();

    wild.run[GM_DEVICE_CUDA] = run_wild;
    if (!context ||
        !buffer_task_make(context, GM_OP_TRANSPOSE, "grouped", GM_F32, 64, 64, 1, &made) ||
        !buffer_task_make(context, GM_OP_TRANSPOSE, "padded", GM_F32, 64, 64, 1, &other))
        return;
    made.task.variant = &wild;
    CHECK_EQ(buffer_task_run(context, 0, &made), GM_DEVICE_LOST);
    printf("%s\n", made.task.error.detail);
    CHECK(strstr(made.task.error.detail, "\"wild\" of transpose"));
    CHECK(strstr(made.task.error.detail, "transpose_grouped")); /* the function's own name */
    CHECK(strstr(made.task.error.detail, "cudaErrorIllegalAddress"));
    CHECK_EQ(buffer_task_run(context, 1, &other), GM_DEVICE_LOST);
    buffer_task_put(context, &made);
    buffer_task_put(context, &other);
    gm_backend_cuda.close(context);
}

void test_faults(void)
{
    void *context = open_backend();
    struct buffer_task made;

    if (!context)
        return;
    if (buffer_task_make(context, GM_OP_TRANSPOSE, "padded", GM_F32, 100, 101, 1, &made)) {
        test_passing(&made, context);
        buffer_task_put(context, &made);
    }
    if (buffer_task_make(context, GM_OP_ADD, "float3_soa", GM_F32, 1000, 3, 1, &made)) {
        made.task.repeat = 3;
        test_passing(&made, context);
        buffer_task_put(context, &made);
    }
    test_memory(context);
    gm_backend_cuda.close(context);
    test_given_up();
    test_wild_kernel();
}
