/*
 * profile_gpu.c - launches runs once each and prints their names, in order: to be run under Nsight
 * Compute, whose lines for kernels then come in the same order, or under compute-sanitizer.
 *
 *   profile_gpu             the runs of profiled.c
 *   profile_gpu --rows      its large ones, one of each variant
 *   profile_gpu --limits    those of limits[], whose account is set against Nsight's (limits.py)
 */
#include "device.h"
#include "profiled.h"

#include <stdio.h>
#include <string.h>

static bool run(void *cls, const struct gm_op *profiled, const struct gm_variant *variant)
{
    struct device *device = cls;
    struct gm_op op = *profiled;
    char name[PROFILED_NAME_MAX];
    bool done = true;

    for (unsigned i = 0; i < op.operands && done; i++)
        done = cudaMalloc(&op.operand[i].data, gm_matrix_bytes(&op.operand[i])) == cudaSuccess &&
               cudaMemset(op.operand[i].data, 0x3C, gm_matrix_bytes(&op.operand[i])) == cudaSuccess;
    done = done && cudaMalloc(&op.result.data, gm_matrix_bytes(&op.result)) == cudaSuccess &&
           device_run(device, &op, variant) == GM_OK && device_wait(device);
    for (unsigned i = 0; i < op.operands; i++)
        cudaFree(op.operand[i].data);
    cudaFree(op.result.data);
    printf("%s%s\n", profiled_name(profiled, variant, name), done ? "" : ": failed");
    return done;
}

/* The first wakes the device up and the second is what 100 % of a copy is; the others are limited
 * by memory or by arithmetic, and good and bad at it. */
static const struct {
    enum gm_op_kind kind;
    const char *variant;
    enum gm_dtype dtype;
    uint64_t rows, cols;
} limits[] = {
    {GM_OP_COPY, "vector", GM_F32, 8192, 8192},
    {GM_OP_COPY, "vector", GM_F32, 8192, 8192},
    {GM_OP_TRANSPOSE, "vectorized", GM_F32, 8192, 8192},
    {GM_OP_TRANSPOSE, "padded", GM_F32, 8192, 8192},
    {GM_OP_ADD, "vectorized", GM_F16, 8192, 8192},
    {GM_OP_MATMUL, "multistage", GM_F32, 4096, 4096},
    {GM_OP_MATMUL, "tiled", GM_F32, 4096, 4096},
};

static const struct gm_variant *find(enum gm_op_kind kind, const char *name)
{
    const struct gm_variant *variant = NULL;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++)
        if (variant->op == kind && variant->run[GM_DEVICE_CUDA] && strcmp(variant->name, name) == 0)
            break;
    return variant;
}

static bool run_limits(struct device *device)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const struct gm_variant *variant = find(limits[i].kind, limits[i].variant);
        const struct profiled wanted = {limits[i].kind, limits[i].dtype, 1,
                                        limits[i].rows, limits[i].cols,  0};
        struct gm_op op;
        if (!variant || !profiled_op(&wanted, &op) || !run(device, &op, variant))
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct device device;
    bool done;

    bool limited = argc == 2 && strcmp(argv[1], "--limits") == 0;
    bool large = argc == 2 && strcmp(argv[1], "--rows") == 0;
    if (argc > 1 && !limited && !large) {
        fprintf(stderr, "usage: profile_gpu [--rows | --limits]\n");
        return 2;
    }
    if (!device_open(&device)) {
        fprintf(stderr, "profile_gpu: %s\n", device.error);
        return 77;
    }
    if (limited)
        done = run_limits(&device);
    else if (large)
        done = profiled_rows(&device.facts, run, &device);
    else
        done = profiled_each(&device.facts, run, &device);
    device_close(&device);
    return done ? 0 : 1;
}
