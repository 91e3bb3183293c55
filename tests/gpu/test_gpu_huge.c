/*
 * test_gpu_huge.c - every variant for GPUs on matrices of more than 2^31 and 2^32 elements, where
 * indices of 32 bits end. 77 where there is no GPU, or none with the memory for it.
 *
 *   test_gpu_huge [--only VARIANT]
 *
 * huge.h says what belongs where, and the device itself looks at every element: on the host that
 * would take hours.
 */
#include "device.h"
#include "huge.h"

#include "kernels/layout.h"
#include "tests/unit/check.h"
#include "tests/unit/operands.h"

#include <string.h>

#define SKIPPED 77
#define GUARD_BYTES 4096u
#define POISON 0xA5
#define SAMPLE 1000u /* places at which the host looks for itself */

static struct device device;
static const char *only;
static uint64_t seed; /* of the sample */

static bool works(cudaError_t error)
{
    return CHECK_EQ(error, cudaSuccess);
}

/* Places all over the result, and its ends, as the host sees them. */
static void look_at_sample(const struct gm_op *op)
{
    uint64_t elements = gm_matrix_elements(&op->result), random = seed;
    size_t bytes = gm_dtype_size(op->result.dtype);
    uint64_t depth = op->kind == GM_OP_MATMUL ? gm_op_k(op) : 1;
    unsigned wrong = 0, places = depth > 1000 ? 20 : SAMPLE;

    for (unsigned i = 0; i < places; i++) {
        uint64_t index = i == 0 ? 0 : i == 1 ? elements - 1 : random_below(&random, elements);
        uint32_t right = huge_result(op, index), found = 0;
        if (!works(cudaMemcpy(&found, (char *)op->result.data + index * bytes, bytes,
                              cudaMemcpyDeviceToHost)))
            return;
        wrong += memcmp(&found, &right, bytes) != 0;
    }
    CHECK_EQ(wrong, 0);
}

static bool guards_hold(const struct gm_matrix *result)
{
    unsigned char guard[2][GUARD_BYTES];
    unsigned spoilt = 0;

    works(cudaMemcpy(guard[0], (char *)result->data - GUARD_BYTES, GUARD_BYTES,
                     cudaMemcpyDeviceToHost));
    works(cudaMemcpy(guard[1], (char *)result->data + gm_matrix_bytes(result), GUARD_BYTES,
                     cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < 2 * GUARD_BYTES; i++)
        spoilt += guard[i / GUARD_BYTES][i % GUARD_BYTES] != POISON;
    return CHECK_EQ(spoilt, 0);
}

static void prove(struct gm_op *op, const struct gm_variant *variant)
{
    struct device_times times = {0};

    if (!works(cudaMemset((char *)op->result.data - GUARD_BYTES, POISON,
                          gm_matrix_bytes(&op->result) + 2 * GUARD_BYTES)))
        return;
    bool ran = CHECK_EQ(device_run(&device, op, variant), GM_OK);
    if (!ran || !CHECK(device_wait(&device))) {
        fprintf(stderr, "  %s: %s\n", variant->name, device.error);
        return;
    }
    device_read_times(&device, &times, 1);
    uint64_t wrong = huge_wrong(op, -1);
    look_at_sample(op);
    bool held = guards_hold(&op->result);
    printf("  %-15s %8.0f us, %llu wrong\n", variant->name, times.kernel,
           (unsigned long long)wrong);
    if (!CHECK_EQ(wrong, 0) || !held)
        fprintf(stderr, "  that was %s\n", variant->name);
}

static void prove_all(struct gm_op *op)
{
    const struct gm_variant *variant;
    struct gm_error err;
    unsigned ran = 0;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (variant->op != op->kind || !gm_variant_is_there(variant, &device.facts) ||
            (only && strcmp(only, variant->name) != 0) ||
            gm_variant_check(variant, op, &device.facts, &err) != GM_OK)
            continue;
        prove(op, variant);
        ran++;
    }
    CHECK(ran > 0 || only);
    for (unsigned i = 0; i < op->operands; i++)
        CHECK_EQ(huge_wrong(op, (int)i), 0); /* nobody wrote there */
}

struct request {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    unsigned operands;
    uint64_t shape[2][2];
};

static void try_request(const struct request *request)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {false};
    const struct gm_op_options options = {0};
    struct gm_error err = {.detail = ""};
    char *room[GM_OPERANDS_MAX + 1] = {0};
    struct gm_op op;

    for (unsigned i = 0; i < request->operands; i++) {
        const struct gm_shape shape = {2, {request->shape[i][0], request->shape[i][1]}};
        present[i] = true;
        if (!CHECK_STATUS(gm_matrix_init(&operand[i], request->dtype, GM_ROW_MAJOR, &shape, &err),
                          GM_OK, &err))
            return;
    }
    if (!CHECK_STATUS(gm_op_init(&op, request->kind, &options, operand, present, &err), GM_OK,
                      &err))
        return;
    printf("%s %s, %llu x %llu and %llu x %llu: a result of %llu elements\n",
           gm_op_name(request->kind), gm_dtype_name(request->dtype),
           (unsigned long long)request->shape[0][0], (unsigned long long)request->shape[0][1],
           (unsigned long long)request->shape[1][0], (unsigned long long)request->shape[1][1],
           (unsigned long long)gm_matrix_elements(&op.result));
    bool ready = true;
    for (unsigned i = 0; i <= GM_OPERANDS_MAX; i++) {
        struct gm_matrix *matrix = i < GM_OPERANDS_MAX ? &op.operand[i] : &op.result;
        if (i >= op.operands && i < GM_OPERANDS_MAX)
            continue;
        ready = ready &&
                works(cudaMalloc((void **)&room[i], gm_matrix_bytes(matrix) + 2 * GUARD_BYTES));
        matrix->data = ready ? room[i] + GUARD_BYTES : NULL;
        if (i < GM_OPERANDS_MAX)
            ready = ready && CHECK(huge_fill(&op, i));
    }
    if (ready)
        prove_all(&op);
    for (unsigned i = 0; i <= GM_OPERANDS_MAX; i++)
        cudaFree(room[i]);
}

static const struct request requests[] = {
    /* More than 2^32 elements, in both directions and in one. */
    {GM_OP_COPY, GM_U8, 1, {{65537, 65539}}},
    {GM_OP_TRANSPOSE, GM_U8, 1, {{65537, 65539}}},
    {GM_OP_TRANSPOSE, GM_U8, 1, {{3, 1500000007}}},
    {GM_OP_TRANSPOSE, GM_U8, 1, {{1500000007, 3}}},
    {GM_OP_FLIP, GM_U8, 1, {{65537, 65539}}},
    {GM_OP_FLIP, GM_U8, 1, {{3, 1500000007}}},
    {GM_OP_TRANSPOSE, GM_F32, 1, {{65537, 65539}}},
    {GM_OP_ADD, GM_I32, 2, {{65537, 1}, {1, 65539}}},
    {GM_OP_MATMUL, GM_I32, 2, {{65537, 1}, {1, 65539}}},
    /* More than 2^31. */
    {GM_OP_TRANSPOSE, GM_F32, 1, {{1000000007, 3}}},
    {GM_OP_ADD, GM_F32, 2, {{720000001, 3}, {720000001, 3}}},
    {GM_OP_MATMUL, GM_I32, 2, {{46349, 46351}, {46351, 2}}},
    {GM_OP_MATMUL, GM_I32, 2, {{2, 46349}, {46349, 46351}}},
};

int main(int argc, char **argv)
{
    const uint64_t needed = (uint64_t)40 << 30;

    if (argc == 3 && strcmp(argv[1], "--only") == 0) {
        only = argv[2];
    } else if (argc > 1) {
        fprintf(stderr, "usage: test_gpu_huge [--only VARIANT]\n");
        return 2;
    }
    if (!device_open(&device)) {
        printf("%s: kernels on huge matrices are not tested\n", device.error);
        return SKIPPED;
    }
    if (device.facts.memory_bytes < needed) {
        printf("%s has less than 40 GiB: kernels on huge matrices are not tested\n",
               device.facts.name);
        device_close(&device);
        return SKIPPED;
    }
    device.times = true;
    seed = check_seed();
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        try_request(&requests[i]);
    device_close(&device);
    return check_report();
}
