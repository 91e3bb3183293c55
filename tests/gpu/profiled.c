#include "profiled.h"

#include <stdio.h>

static const struct {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    uint64_t rows, cols;
} runs[] = {
    {GM_OP_COPY, GM_F32, 1024, 1024},      {GM_OP_COPY, GM_U8, 1000, 1001},
    {GM_OP_TRANSPOSE, GM_F32, 1024, 1024}, {GM_OP_TRANSPOSE, GM_F32, 1000, 1001},
    {GM_OP_TRANSPOSE, GM_U8, 1024, 1024},  {GM_OP_TRANSPOSE, GM_F16, 1024, 1024},
    {GM_OP_TRANSPOSE, GM_F64, 1024, 1024}, {GM_OP_TRANSPOSE, GM_C128, 512, 512},
    {GM_OP_MATMUL, GM_F32, 256, 256},      {GM_OP_MATMUL, GM_F32, 200, 200},
    {GM_OP_MATMUL, GM_F64, 128, 128},      {GM_OP_MATMUL, GM_F16, 128, 128},
    {GM_OP_ADD, GM_F32, 1024, 1024},       {GM_OP_ADD, GM_F32, 262144, 3},
    {GM_OP_FLIP, GM_F32, 1024, 1024},      {GM_OP_FLIP, GM_U8, 1000, 1001},
    {GM_OP_FLIP, GM_F64, 512, 700},
};

static bool make_op(size_t run, struct gm_op *op)
{
    const struct gm_op_options options = {.precision = GM_PRECISION_FP32};
    struct gm_shape shape = {.ndim = 2, .dim = {runs[run].rows, runs[run].cols}};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {{.dtype = GM_DTYPE_NONE}};
    bool present[GM_OPERANDS_MAX] = {true, gm_op_operands_min(runs[run].kind) > 1, false};
    struct gm_error error;

    for (unsigned i = 0; i < 2; i++)
        if (gm_matrix_init(&operand[i], runs[run].dtype, GM_ROW_MAJOR, &shape, &error) != GM_OK)
            return false;
    return gm_op_init(op, runs[run].kind, &options, operand, present, &error) == GM_OK;
}

bool profiled_each(const struct gm_device_facts *facts,
                   bool (*fn)(void *cls, const struct gm_op *op, const struct gm_variant *variant),
                   void *cls)
{
    const struct gm_variant *variant;

    for (size_t run = 0; run < sizeof(runs) / sizeof(runs[0]); run++) {
        struct gm_op op;
        if (!make_op(run, &op))
            return false;
        for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
            /* Of both: written for GPUs, and what the simulator runs too. */
            if (variant->op != op.kind || !variant->run[GM_DEVICE_SIM] ||
                gm_variant_check(variant, &op, facts, NULL) != GM_OK)
                continue;
            if (!fn(cls, &op, variant))
                return false;
        }
    }
    return true;
}

const char *profiled_name(const struct gm_op *op, const struct gm_variant *variant, char buf[160])
{
    snprintf(buf, 160, "%s %s %s %llux%llu", gm_op_name(op->kind), variant->name,
             gm_dtype_name(op->result.dtype), (unsigned long long)op->operand[0].rows,
             (unsigned long long)op->operand[0].cols);
    return buf;
}
