/*
 * profile_gpu.c - launches each run of profiled.c once and prints their names, in order: to be run
 * under Nsight Compute, whose lines for kernels then come in the same order.
 */
#include "device.h"
#include "profiled.h"

#include <stdio.h>

static bool run(void *cls, const struct gm_op *profiled, const struct gm_variant *variant)
{
    struct device *device = cls;
    struct gm_op op = *profiled;
    char name[160];
    bool done = true;

    for (unsigned i = 0; i < op.operands && done; i++)
        done = cudaMalloc(&op.operand[i].data, gm_matrix_bytes(&op.operand[i])) == cudaSuccess;
    done = done && cudaMalloc(&op.result.data, gm_matrix_bytes(&op.result)) == cudaSuccess &&
           device_run(device, &op, variant) == GM_OK && device_wait(device);
    for (unsigned i = 0; i < op.operands; i++)
        cudaFree(op.operand[i].data);
    cudaFree(op.result.data);
    printf("%s%s\n", profiled_name(profiled, variant, name), done ? "" : ": failed");
    return done;
}

int main(void)
{
    static struct device device;

    if (!device_open(&device)) {
        fprintf(stderr, "profile_gpu: %s\n", device.error);
        return 77;
    }
    bool done = profiled_each(&device.facts, run, &device);
    device_close(&device);
    return done ? 0 : 1;
}
