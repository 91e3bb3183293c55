#include "profiled.h"

#include <stdio.h>
#include <string.h>

static const struct profiled runs[] = {
    {GM_OP_COPY, GM_F32, 1, 1024, 1024, 0},      {GM_OP_COPY, GM_U8, 1, 1000, 1001, 0},
    {GM_OP_TRANSPOSE, GM_F32, 1, 1024, 1024, 0}, {GM_OP_TRANSPOSE, GM_F32, 1, 1000, 1001, 0},
    {GM_OP_TRANSPOSE, GM_U8, 1, 1024, 1024, 0},  {GM_OP_TRANSPOSE, GM_F16, 1, 1024, 1024, 0},
    {GM_OP_TRANSPOSE, GM_F64, 1, 1024, 1024, 0}, {GM_OP_TRANSPOSE, GM_C128, 1, 512, 512, 0},
    {GM_OP_MATMUL, GM_F32, 1, 256, 256, 0},      {GM_OP_MATMUL, GM_F32, 1, 200, 200, 0},
    {GM_OP_MATMUL, GM_F64, 1, 128, 128, 0},      {GM_OP_MATMUL, GM_F16, 1, 128, 128, 0},
    {GM_OP_ADD, GM_F32, 1, 1024, 1024, 0},       {GM_OP_ADD, GM_F32, 1, 262144, 3, 0},
    {GM_OP_FLIP, GM_F32, 1, 1024, 1024, 0},      {GM_OP_FLIP, GM_U8, 1, 1000, 1001, 0},
    {GM_OP_FLIP, GM_F64, 1, 512, 700, 0},        {GM_OP_TRANSPOSE, GM_F32, 1, 20000, 3, 0},
    {GM_OP_TRANSPOSE, GM_F32, 1, 3000, 6008, 0}, {GM_OP_TRANSPOSE, GM_U8, 1, 7, 40001, 0},
    {GM_OP_TRANSPOSE, GM_F16, 300, 33, 31, 0},   {GM_OP_MATMUL, GM_F32, 1, 129, 1500, 130},
    {GM_OP_MATMUL, GM_F32, 1, 1000, 1001, 3},    {GM_OP_MATMUL, GM_F32, 65, 16, 16, 16},
    {GM_OP_MATMUL, GM_F32, 9, 50, 70, 33},       {GM_OP_MATMUL, GM_I64, 1, 65, 130, 67},
    {GM_OP_TRANSPOSE, GM_F32, 1, 2052, 4100, 0}, {GM_OP_MATMUL, GM_F32, 1, 333, 777, 555},
    {GM_OP_MATMUL, GM_F32, 20, 64, 201, 100},    {GM_OP_MATMUL, GM_F64, 33, 17, 20, 24},
    {GM_OP_MATMUL, GM_F32, 1, 2, 5000, 3},       {GM_OP_TRANSPOSE, GM_U8, 1, 1000, 1001, 0},
};

/* A stack, or where there is but one matrix, that. */
static struct gm_shape shape_of(uint64_t batch, uint64_t rows, uint64_t cols)
{
    if (batch > 1)
        return (struct gm_shape){.ndim = 3, .dim = {batch, rows, cols}};
    return (struct gm_shape){.ndim = 2, .dim = {rows, cols}};
}

bool profiled_op(const struct profiled *profiled, struct gm_op *ret)
{
    const struct gm_op_options options = {.precision = GM_PRECISION_FP32};
    uint64_t batch = profiled->batch, rows = profiled->rows, cols = profiled->cols, n = profiled->n;
    const struct gm_shape shape[2] = {
        shape_of(batch, rows, cols),
        n > 0 ? shape_of(batch, cols, n) : shape_of(batch, rows, cols),
    };
    struct gm_matrix operand[GM_OPERANDS_MAX] = {{.dtype = GM_DTYPE_NONE}};
    bool present[GM_OPERANDS_MAX] = {true, gm_op_operands_min(profiled->kind) > 1, false};
    struct gm_error error;

    for (unsigned i = 0; i < 2; i++)
        if (gm_matrix_init(&operand[i], profiled->dtype, GM_ROW_MAJOR, &shape[i], &error) != GM_OK)
            return false;
    return gm_op_init(ret, profiled->kind, &options, operand, present, &error) == GM_OK;
}

/* The first rows are of the table of verdicts in COUNTERS.md, at the sizes of its times; the others
 * are products that the L2 cache serves more or less of. */
static const struct {
    const char *variant;
    struct profiled run;
} rows[] = {
    {"direct", {GM_OP_COPY, GM_F32, 1, 8192, 8192, 0}},
    {"vector", {GM_OP_COPY, GM_F32, 1, 8192, 8192, 0}},
    {"naive", {GM_OP_TRANSPOSE, GM_F32, 1, 8192, 8192, 0}},
    {"tiled", {GM_OP_TRANSPOSE, GM_F32, 1, 8192, 8192, 0}},
    {"padded", {GM_OP_TRANSPOSE, GM_F32, 1, 8192, 8192, 0}},
    {"vectorized", {GM_OP_TRANSPOSE, GM_F32, 1, 8192, 8192, 0}},
    {"unaligned", {GM_OP_TRANSPOSE, GM_F32, 1, 8191, 8209, 0}},
    {"packed_u8", {GM_OP_TRANSPOSE, GM_U8, 1, 16381, 16411, 0}},
    {"skinny", {GM_OP_TRANSPOSE, GM_F32, 1, 10000000, 3, 0}},
    {"batched", {GM_OP_TRANSPOSE, GM_F16, 300, 33, 31, 0}},
    {"naive", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"grid_stride", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"tiled", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"dynamic_tile", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"register_tiled", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"vector_loads", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"warp_tiled", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"double_buffered", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"multistage", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"multistage_tuned", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"small_tile", {GM_OP_MATMUL, GM_F32, 1, 1024, 1024, 0}},
    {"multistage", {GM_OP_MATMUL, GM_F32, 1, 2048, 2048, 0}},
    {"batched", {GM_OP_MATMUL, GM_F32, 4096, 33, 33, 33}},
    {"skinny", {GM_OP_MATMUL, GM_F32, 1, 8192, 8192, 1}},
    {"split_k_dot", {GM_OP_MATMUL, GM_F32, 1, 1, 10000000, 1}},
    {"direct", {GM_OP_ADD, GM_F32, 1, 8192, 8192, 0}},
    {"grid_stride", {GM_OP_ADD, GM_F32, 1, 8192, 8192, 0}},
    {"vectorized", {GM_OP_ADD, GM_F32, 1, 8192, 8192, 0}},
    {"float3", {GM_OP_ADD, GM_F32, 1, 16777216, 3, 0}},
    {"float3_staged", {GM_OP_ADD, GM_F32, 1, 16777216, 3, 0}},
    {"float3_soa", {GM_OP_ADD, GM_F32, 1, 16777216, 3, 0}},
    {"float3_aligned", {GM_OP_ADD, GM_F32, 1, 16777216, 3, 0}},
    {"shared", {GM_OP_FLIP, GM_F32, 1, 8192, 8192, 0}},
    {"vectorized", {GM_OP_FLIP, GM_F32, 1, 8192, 8192, 0}},
    {"naive", {GM_OP_MATMUL, GM_F32, 1, 4096, 4096, 0}},
    {"tiled", {GM_OP_MATMUL, GM_F32, 1, 4096, 4096, 0}},
    {"register_tiled", {GM_OP_MATMUL, GM_F32, 1, 4096, 4096, 0}},
    {"multistage", {GM_OP_MATMUL, GM_F32, 1, 4096, 4096, 0}},
    {"tiled", {GM_OP_MATMUL, GM_F32, 1, 8192, 8192, 0}},
    {"register_tiled", {GM_OP_MATMUL, GM_F32, 1, 8192, 8192, 0}},
    {"multistage_tuned", {GM_OP_MATMUL, GM_F32, 1, 8192, 8192, 0}},
    {"tiled", {GM_OP_MATMUL, GM_F32, 1, 16384, 64, 16384}},
    {"naive", {GM_OP_MATMUL, GM_F32, 1, 64, 65536, 64}},
};

bool profiled_rows(const struct gm_device_facts *facts,
                   bool (*fn)(void *cls, const struct gm_op *op, const struct gm_variant *variant),
                   void *cls)
{
    const struct gm_variant *variant;

    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct gm_op op;
        if (!profiled_op(&rows[row].run, &op))
            return false;
        for (size_t i = 0; (variant = gm_variant_at(i)); i++)
            if (variant->op == op.kind && variant->run[GM_DEVICE_SIM] &&
                strcmp(variant->name, rows[row].variant) == 0)
                break;
        if (!variant || gm_variant_check(variant, &op, facts, NULL) != GM_OK ||
            !fn(cls, &op, variant))
            return false;
    }
    return true;
}

bool profiled_each(const struct gm_device_facts *facts,
                   bool (*fn)(void *cls, const struct gm_op *op, const struct gm_variant *variant),
                   void *cls)
{
    const struct gm_variant *variant;

    for (size_t run = 0; run < sizeof(runs) / sizeof(runs[0]); run++) {
        struct gm_op op;
        if (!profiled_op(&runs[run], &op))
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

const char *profiled_name(const struct gm_op *op, const struct gm_variant *variant,
                          char buf[PROFILED_NAME_MAX])
{
    char a[GM_SHAPE_TEXT_MAX], b[GM_SHAPE_TEXT_MAX];
    const struct gm_matrix *second = op->operands > 1 ? &op->operand[1] : NULL;

    snprintf(buf, PROFILED_NAME_MAX, "%s %s %s %s%s%s", gm_op_name(op->kind), variant->name,
             gm_dtype_name(op->result.dtype), gm_matrix_shape_text(&op->operand[0], a),
             second ? " " : "", second ? gm_matrix_shape_text(second, b) : "");
    return buf;
}
