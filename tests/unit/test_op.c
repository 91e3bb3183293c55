/* test_op.c - the validation of operations: each refusal with its status and what it says. */
#include "check.h"
#include "kernels/op.h"

#include <float.h>
#include <math.h>

/* One operand as a table writes it: "f32 2x3", column-major with "f32 2x3 F"; NULL: not given. */
static struct gm_matrix matrix_of(const char *text)
{
    struct gm_error err = {.detail = ""};
    struct gm_matrix matrix;
    struct gm_shape shape;
    char dtype[8], size[48], layout[2] = "";

    CHECK(sscanf(text, "%7s %47s %1s", dtype, size, layout) >= 2);
    CHECK(gm_shape_parse(size, strlen(size), &shape));
    CHECK_STATUS(gm_matrix_init(&matrix, gm_dtype_from_name(dtype, strlen(dtype)),
                                layout[0] == 'F' ? GM_COL_MAJOR : GM_ROW_MAJOR, &shape, &err),
                 GM_OK, &err);
    return matrix;
}

static enum gm_status init(struct gm_op *op, enum gm_op_kind kind,
                           const struct gm_op_options *options, const char *const text[3],
                           struct gm_error *err)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {false};

    for (int i = 0; i < 3; i++) {
        present[i] = text[i] != NULL;
        if (text[i])
            operand[i] = matrix_of(text[i]);
    }
    return gm_op_init(op, kind, options, operand, present, err);
}

static const struct gm_scalar half = {.real = 0.5};

static const struct {
    enum gm_op_kind kind;
    struct gm_op_options options;
    const char *operand[3];
    enum gm_status status;
    const char *result;  /* where it is GM_OK: the result's shape; else a part of what is said */
    const char *says[2]; /* more of it */
} rows[] = {
    /* operands there, or not */
    {GM_OP_TRANSPOSE, {0}, {NULL}, GM_MISSING_OPERAND, "transpose needs one operand, a", {0}},
    {GM_OP_MATMUL, {0}, {NULL, "f32 2x2"}, GM_MISSING_OPERAND, "a is missing", {0}},
    {GM_OP_MATMUL, {0}, {"f32 2x2"}, GM_MISSING_OPERAND, "b is missing", {0}},
    {GM_OP_TRANSPOSE, {0}, {"f32 2x2", "f32 2x2"}, GM_EXTRA_OPERAND, "b was given", {0}},
    {GM_OP_TRANSPOSE, {0}, {"f32 2x2", NULL, "f32 2x2"}, GM_EXTRA_OPERAND, "c was given", {0}},
    {GM_OP_COPY, {0}, {"f32 2x2", "f32 2x2"}, GM_EXTRA_OPERAND, "copy takes one operand", {0}},
    {GM_OP_FLIP, {0}, {NULL}, GM_MISSING_OPERAND, "flip needs one operand, a", {0}},
    {GM_OP_FLIP, {0}, {"f32 2x2", "f32 2x2"}, GM_EXTRA_OPERAND, "flip takes one operand", {0}},
    {GM_OP_ADD, {0}, {"f32 2x2"}, GM_MISSING_OPERAND, "two operands, a and b", {"b is missing"}},
    {GM_OP_ADD, {0}, {NULL, "f32 2x2"}, GM_MISSING_OPERAND, "a is missing", {0}},
    {GM_OP_ADD, {0}, {"f32 2", "f32 2", "f32 2"}, GM_EXTRA_OPERAND, "two operands, a and b", {0}},

    /* parameters where there is no such thing */
    {GM_OP_TRANSPOSE, {.transa = true}, {"f32 2x2"}, GM_BAD_PARAMETER, "no transa", {"matmul"}},
    {GM_OP_TRANSPOSE, {.transb = true}, {"f32 2x2"}, GM_BAD_PARAMETER, "no transb", {0}},
    {GM_OP_COPY, {.has_alpha = true}, {"f32 2x2"}, GM_BAD_PARAMETER, "no alpha", {0}},
    {GM_OP_TRANSPOSE, {.has_beta = true}, {"f32 2x2"}, GM_BAD_PARAMETER, "no beta", {0}},
    {GM_OP_FLIP, {.transa = true}, {"f32 2x2"}, GM_BAD_PARAMETER, "flip has no transa", {0}},
    {GM_OP_ADD, {.transb = true}, {"f32 2", "f32 2"}, GM_BAD_PARAMETER, "add has no transb", {0}},
    {GM_OP_ADD, {.has_alpha = true}, {"f32 2", "f32 2"}, GM_BAD_PARAMETER, "add has no alpha", {0}},
    {GM_OP_ADD, {.has_beta = true}, {"f32 2", "f32 2"}, GM_BAD_PARAMETER, "add has no beta", {0}},
    {GM_OP_MATMUL,
     {.has_beta = true},
     {"f32 2x2", "f32 2x2"},
     GM_MISSING_OPERAND,
     "c is missing",
     {"beta"}},

    /* types */
    {GM_OP_MATMUL, {0}, {"f32 2x2", "f64 2x2"}, GM_BAD_DTYPE, "a is f32 and b is f64", {0}},
    {GM_OP_MATMUL, {0}, {"f32 2x2", "f32 2x2", "i32 2x2"}, GM_BAD_DTYPE, "c is i32", {0}},
    {GM_OP_MATMUL,
     {0},
     {"c64 2x2", "c64 2x2"},
     GM_BAD_DTYPE,
     "the operands are c64",
     {"bf16", "i64"}},
    {GM_OP_MATMUL, {0}, {"bool 2x2", "bool 2x2"}, GM_BAD_DTYPE, "bool", {0}},
    {GM_OP_TRANSPOSE, {0}, {"c128 2x3"}, GM_OK, "3x2", {0}},
    {GM_OP_TRANSPOSE, {0}, {"v1 5x3"}, GM_OK, "3x5", {0}},
    {GM_OP_FLIP, {0}, {"c128 2x3"}, GM_OK, "2x3", {0}},
    {GM_OP_FLIP, {0}, {"v2 5x3 F"}, GM_OK, "5x3", {0}},
    {GM_OP_ADD, {0}, {"i32 2x2", "i64 2x2"}, GM_BAD_DTYPE, "a is i32 and b is i64", {0}},
    {GM_OP_ADD, {0}, {"u8 2", "u8 2"}, GM_BAD_DTYPE, "add computes in f16", {"are u8"}},
    {GM_OP_ADD, {0}, {"bf16 2x2", "bf16 2x2"}, GM_OK, "2x2", {0}},

    /* shapes */
    {GM_OP_MATMUL, {0}, {"f32 3x4", "f32 5x2"}, GM_BAD_SHAPE, "3x4", {"(4)", "(5)"}},
    {GM_OP_MATMUL,
     {.transa = true},
     {"f32 3x4", "f32 4x2"},
     GM_BAD_SHAPE,
     "the rows of a (3, with transa)",
     {0}},
    {GM_OP_MATMUL,
     {.transb = true},
     {"f32 3x4", "f32 4x2"},
     GM_BAD_SHAPE,
     "the columns of b (2, with transb)",
     {0}},
    {GM_OP_MATMUL, {.transa = true}, {"f32 3x4", "f32 3x2"}, GM_OK, "4x2", {0}},
    {GM_OP_MATMUL, {.transb = true}, {"f32 3x4", "f32 2x4"}, GM_OK, "3x2", {0}},
    {GM_OP_MATMUL, {.transa = true, .transb = true}, {"f32 3x4", "f32 2x3"}, GM_OK, "4x2", {0}},
    {GM_OP_MATMUL, {0}, {"f32 3x4", "f32 4x2", "f32 2x3"}, GM_BAD_SHAPE, "c is 2x3", {"3x2"}},
    {GM_OP_MATMUL, {0}, {"f32 3x4", "f32 4x2", "f32 1x2"}, GM_BAD_SHAPE, "c is 1x2", {0}},
    {GM_OP_MATMUL, {0}, {"f32 3x4 F", "f32 4x2 F", "f32 3x2 F"}, GM_OK, "3x2", {0}},
    {GM_OP_MATMUL, {0}, {"f32 5", "f32 5x2"}, GM_OK, "1x2", {0}},

    /* what add repeats */
    {GM_OP_ADD, {0}, {"f32 3x4", "f32 3x4"}, GM_OK, "3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 3x4", "f32 1x1"}, GM_OK, "3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 4", "f32 3x4"}, GM_OK, "3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 3x4 F", "f32 3x1"}, GM_OK, "3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 3x1", "f32 1x4"}, GM_OK, "3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 1x4", "f32 3x1"}, GM_OK, "3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 7x3x4", "f32 3x4"}, GM_OK, "7x3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 3x4", "f32 7x3x4"}, GM_OK, "7x3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 7x1x1", "f32 1x3x4"}, GM_OK, "7x3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 7x3x1", "f32 1x4"}, GM_OK, "7x3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 1x3x4", "f32 3x4"}, GM_OK, "1x3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 3x4", "f32 2x4"}, GM_BAD_SHAPE, "a is 3x4 and b is 2x4", {"rows"}},
    {GM_OP_ADD, {0}, {"f32 3x4", "f32 4x3"}, GM_BAD_SHAPE, "rows in a (3) as in b (4)", {0}},
    {GM_OP_ADD, {0}, {"f32 3x4", "f32 1x3"}, GM_BAD_SHAPE, "columns in a (4) as in b (3)", {0}},
    {GM_OP_ADD, {0}, {"f32 7x3x4", "f32 6x3x4"}, GM_BAD_SHAPE, "matrices in a (7) as in b", {0}},
    {GM_OP_ADD, {0}, {"f32 0x4", "f32 1x4"}, GM_OK, "0x4", {0}},
    {GM_OP_ADD, {0}, {"f32 1x1", "f32 5x0"}, GM_OK, "5x0", {0}},
    {GM_OP_ADD, {0}, {"f32 0x3x4", "f32 3x4"}, GM_OK, "0x3x4", {0}},
    {GM_OP_ADD, {0}, {"f32 0x4", "f32 2x4"}, GM_BAD_SHAPE, "rows in a (0) as in b (2)", {0}},
    {GM_OP_ADD, {0}, {"f64 3000000000x1", "f64 1x3000000000"}, GM_BAD_SHAPE, "bytes", {0}},

    /* stacks */
    {GM_OP_TRANSPOSE, {0}, {"f32 7x2x3"}, GM_OK, "7x3x2", {0}},
    {GM_OP_COPY, {0}, {"f32 7x2x3"}, GM_OK, "7x2x3", {0}},
    {GM_OP_FLIP, {0}, {"f32 7x2x3"}, GM_OK, "7x2x3", {0}},
    {GM_OP_FLIP, {0}, {"f32 1x2x3"}, GM_OK, "1x2x3", {0}},
    {GM_OP_MATMUL, {0}, {"f32 7x2x3", "f32 7x3x4"}, GM_OK, "7x2x4", {0}},
    {GM_OP_MATMUL, {0}, {"f32 2x3", "f32 7x3x4"}, GM_OK, "7x2x4", {0}},
    {GM_OP_MATMUL, {0}, {"f32 7x2x3", "f32 1x3x4"}, GM_OK, "7x2x4", {0}},
    {GM_OP_MATMUL, {0}, {"f32 1x2x3", "f32 3x4"}, GM_OK, "1x2x4", {0}},
    {GM_OP_MATMUL, {0}, {"f32 2x3", "f32 3x4", "f32 7x2x4"}, GM_OK, "7x2x4", {0}},
    {GM_OP_MATMUL, {0}, {"f32 7x2x3", "f32 3x4", "f32 2x4"}, GM_OK, "7x2x4", {0}},
    {GM_OP_MATMUL,
     {0},
     {"f32 7x2x3", "f32 6x3x4"},
     GM_BAD_SHAPE,
     "a is a stack of 7",
     {"b one of 6"}},
    {GM_OP_MATMUL,
     {0},
     {"f32 2x3", "f32 6x3x4", "f32 7x2x4"},
     GM_BAD_SHAPE,
     "b is a stack of 6",
     {"c one of 7"}},
    {GM_OP_MATMUL, {0}, {"f32 0x2x3", "f32 3x4"}, GM_OK, "0x2x4", {0}},
    {GM_OP_MATMUL, {0}, {"f32 5x2x3", "f32 0x3x4"}, GM_BAD_SHAPE, "b one of 0", {0}},
    {GM_OP_MATMUL, {0}, {"f32 0x2x3", "f32 5x3x4"}, GM_BAD_SHAPE, "stack of 0", {0}},

    /* empty ones are valid, and overflow is not */
    {GM_OP_TRANSPOSE, {0}, {"f64 0x5"}, GM_OK, "5x0", {0}},
    {GM_OP_FLIP, {0}, {"f64 0x5"}, GM_OK, "0x5", {0}},
    {GM_OP_MATMUL, {0}, {"f64 0x5", "f64 5x3"}, GM_OK, "0x3", {0}},
    {GM_OP_MATMUL, {0}, {"f64 4x0", "f64 0x3"}, GM_OK, "4x3", {0}},
    {GM_OP_MATMUL, {0}, {"f64 9000000000x0", "f64 0x9000000000"}, GM_BAD_SHAPE, "bytes", {0}},

    /* factors */
    {GM_OP_MATMUL,
     {.has_alpha = true, .alpha = half},
     {"i32 2x2", "i32 2x2"},
     GM_OUT_OF_RANGE,
     "alpha is 0.5",
     {"i32"}},
    {GM_OP_MATMUL,
     {.has_beta = true, .beta = half},
     {"i64 2x2", "i64 2x2", "i64 2x2"},
     GM_OUT_OF_RANGE,
     "beta is 0.5",
     {"i64"}},
    {GM_OP_MATMUL,
     {.has_alpha = true, .alpha = {.real = 3e9, .integer = 3000000000, .is_integer = true}},
     {"i32 2x2", "i32 2x2"},
     GM_OUT_OF_RANGE,
     "alpha is 3000000000",
     {"2147483647"}},
    {GM_OP_MATMUL,
     {.has_alpha = true, .alpha = {.real = INT32_MIN, .integer = INT32_MIN, .is_integer = true}},
     {"i32 2x2", "i32 2x2"},
     GM_OK,
     "2x2",
     {0}},
    {GM_OP_MATMUL,
     {.has_alpha = true, .alpha = {.real = 0x1p63}},
     {"i64 2x2", "i64 2x2"},
     GM_OUT_OF_RANGE,
     "alpha is 9.22337e+18",
     {0}},
    {GM_OP_MATMUL,
     {.has_alpha = true, .alpha = {.real = 1e19}},
     {"i64 2x2", "i64 2x2"},
     GM_OUT_OF_RANGE,
     "alpha is 1e+19",
     {0}},
    {GM_OP_MATMUL,
     {.has_alpha = true, .alpha = {.real = NAN}},
     {"i64 2x2", "i64 2x2"},
     GM_OUT_OF_RANGE,
     "alpha is",
     {0}},
    {GM_OP_MATMUL,
     {.has_alpha = true, .alpha = {.real = 1e39}},
     {"bf16 2x2", "bf16 2x2"},
     GM_OUT_OF_RANGE,
     "alpha is 1e+39",
     {"f32"}},
    {GM_OP_MATMUL,
     {.has_alpha = true, .alpha = {.real = 1e39}},
     {"f64 2x2", "f64 2x2"},
     GM_OK,
     "2x2",
     {0}},
    {GM_OP_MATMUL,
     {.has_alpha = true, .alpha = {.real = INFINITY}},
     {"f32 2x2", "f32 2x2"},
     GM_OK,
     "2x2",
     {0}},
};

static void test_rows(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gm_error err = {.status = GM_OK, .detail = "untouched"};
        struct gm_op op, before;
        char text[GM_SHAPE_TEXT_MAX];

        memset(&op, 0x5A, sizeof(op));
        memset(&before, 0x5A, sizeof(before));
        enum gm_status status = init(&op, rows[i].kind, &rows[i].options, rows[i].operand, &err);
        if (!CHECK_STATUS(status, rows[i].status, &err)) {
            fprintf(stderr, "  in row %zu: %s\n", i, rows[i].result);
            continue;
        }
        if (status == GM_OK) {
            CHECK_STR(gm_matrix_shape_text(&op.result, text), rows[i].result);
            CHECK_STR(err.detail, "untouched");
            CHECK(op.result.layout == GM_ROW_MAJOR && op.result.data == NULL);
            CHECK_EQ(op.result.dtype, op.operand[0].dtype);
            continue;
        }
        CHECK(memcmp(&op, &before, sizeof(op)) == 0);
        CHECK_EQ(err.status, status);
        const char *parts[] = {rows[i].result, rows[i].says[0], rows[i].says[1]};
        for (int j = 0; j < 3; j++) {
            if (parts[j] && !CHECK(strstr(err.detail, parts[j]) != NULL))
                fprintf(stderr, "  \"%s\" is not in \"%s\"\n", parts[j], err.detail);
        }
    }
}

static void test_unstated_type(void)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {{.batch = 1, .rows = 1, .cols = 1}};
    const bool present[GM_OPERANDS_MAX] = {true};
    struct gm_op_options options = {0};
    struct gm_error err;
    struct gm_op op;

    CHECK_STATUS(gm_op_init(&op, GM_OP_TRANSPOSE, &options, operand, present, &err), GM_BAD_DTYPE,
                 &err);
}

static struct gm_op must(enum gm_op_kind kind, const struct gm_op_options *options, const char *a,
                         const char *b, const char *c)
{
    struct gm_error err = {.detail = ""};
    struct gm_op op = {0};

    CHECK_STATUS(init(&op, kind, options, (const char *const[3]){a, b, c}, &err), GM_OK, &err);
    return op;
}

static void test_factors(void)
{
    struct gm_op_options options = {0};
    struct gm_op op = must(GM_OP_MATMUL, &options, "f32 2x2", "f32 2x2", NULL);
    CHECK(op.alpha.real == 1 && op.beta.real == 0 && op.operands == 2);
    op = must(GM_OP_MATMUL, &options, "i32 2x2", "i32 2x2", NULL);
    CHECK(op.alpha.integer == 1 && op.beta.integer == 0);

    /* A c without beta is added. */
    op = must(GM_OP_MATMUL, &options, "f32 2x2", "f32 2x2", "f32 2x2");
    CHECK(op.beta.real == 1 && op.operands == 3);
    op = must(GM_OP_MATMUL, &options, "i64 2x2", "i64 2x2", "i64 2x2");
    CHECK(op.beta.is_integer && op.beta.integer == 1);

    /* Beyond 2^53 integers stay exact; whole numbers may be written as fractions. */
    options.has_alpha = options.has_beta = true;
    options.alpha = (struct gm_scalar){0x1p62, (int64_t)1 << 62 | 1, true};
    options.beta = (struct gm_scalar){.real = -1e3};
    op = must(GM_OP_MATMUL, &options, "i64 2x2", "i64 2x2", "i64 2x2");
    CHECK_EQ(op.alpha.integer, (int64_t)1 << 62 | 1);
    CHECK_EQ(op.beta.integer, -1000);

    /* What f32 makes of a factor holds for everybody who asks. */
    options.alpha = (struct gm_scalar){.real = 0.1};
    options.beta = (struct gm_scalar){.real = 1e-60};
    op = must(GM_OP_MATMUL, &options, "f16 2x2", "f16 2x2", "f16 2x2");
    CHECK(op.alpha.real == (double)0.1f && op.beta.real == 0);
    CHECK(!gm_op_reads(&op, 2));
    op = must(GM_OP_MATMUL, &options, "f64 2x2", "f64 2x2", "f64 2x2");
    CHECK(op.alpha.real == 0.1 && op.beta.real == 1e-60);
    CHECK(gm_op_reads(&op, 2));
    options.alpha.real = -(double)FLT_MAX;
    op = must(GM_OP_MATMUL, &options, "f32 2x2", "f32 2x2", "f32 2x2");
    CHECK(op.alpha.real == -(double)FLT_MAX);
}

static void test_sizes(void)
{
    struct gm_op_options options = {.transa = true};
    struct gm_op op = must(GM_OP_MATMUL, &options, "f32 7x5x3", "f32 5x2", "f32 3x2");
    CHECK_EQ(gm_op_m(&op), 3);
    CHECK_EQ(gm_op_n(&op), 2);
    CHECK_EQ(gm_op_k(&op), 5);
    CHECK(gm_op_flops(&op) == 2.0 * 7 * 3 * 2 * 5);
    CHECK_EQ(gm_op_bytes_min(&op), 4 * (7 * 15 + 10 + 6 + 7 * 6));
    CHECK(gm_op_reads(&op, 0) && gm_op_reads(&op, 1) && gm_op_reads(&op, 2));
    CHECK(!gm_op_reads(&op, 3));

    /* What a factor of 0 leaves unread is neither traffic nor work. */
    options = (struct gm_op_options){.has_alpha = true, .has_beta = true};
    options.beta = (struct gm_scalar){.real = 2};
    op = must(GM_OP_MATMUL, &options, "f64 3x5", "f64 5x2", "f64 3x2");
    CHECK(!gm_op_reads(&op, 0) && !gm_op_reads(&op, 1) && gm_op_reads(&op, 2));
    CHECK_EQ(gm_op_bytes_min(&op), 8 * (6 + 6));
    CHECK(gm_op_flops(&op) == 0);

    options = (struct gm_op_options){0};
    op = must(GM_OP_TRANSPOSE, &options, "c128 3x5", NULL, NULL);
    CHECK_EQ(gm_op_bytes_min(&op), 2 * 15 * 16);
    CHECK(gm_op_flops(&op) == 0);
    op = must(GM_OP_FLIP, &options, "c128 3x5", NULL, NULL);
    CHECK_EQ(gm_op_bytes_min(&op), 2 * 15 * 16);
    CHECK(gm_op_flops(&op) == 0);

    /* What add repeats it reads once; each element of the result is one addition. */
    op = must(GM_OP_ADD, &options, "f64 7x3x5", "f64 1x5", NULL);
    CHECK(gm_op_reads(&op, 0) && gm_op_reads(&op, 1) && !gm_op_reads(&op, 2));
    CHECK_EQ(gm_op_bytes_min(&op), 8 * (105 + 5 + 105));
    CHECK(gm_op_flops(&op) == 105);
    op = must(GM_OP_ADD, &options, "f16 300x1", "f16 1x200", NULL);
    CHECK_EQ(gm_op_bytes_min(&op), 2 * (300 + 200 + 60000));
    CHECK(gm_op_flops(&op) == 60000);

    /* Each below 2^63 bytes, together beyond 2^64. */
    op = must(GM_OP_MATMUL, &options, "f64 1000000000x1000000000", "f64 1000000000x1000000000",
              "f64 1000000000x1000000000");
    CHECK(gm_op_bytes_min(&op) == UINT64_MAX);
    CHECK(gm_op_flops(&op) == 2e27);
}

static void test_names(void)
{
    enum gm_op_kind kind;
    enum gm_precision precision;

    for (int i = 0; i < GM_OP_COUNT; i++) {
        CHECK(gm_op_from_name(gm_op_name((enum gm_op_kind)i), &kind) && (int)kind == i);
        CHECK(gm_op_operands_min((enum gm_op_kind)i) <= gm_op_operands_max((enum gm_op_kind)i));
    }
    CHECK(!gm_op_from_name("transposed", &kind) && !gm_op_from_name("", &kind));
    static const char *const precisions[] = {"fp32", "ieee", "tf32", "bf16"};
    for (int i = 0; i < GM_PRECISION_COUNT; i++) {
        const char *name = precisions[i];
        CHECK(gm_precision_from_name(name, strlen(name), &precision) && (int)precision == i);
        CHECK(!gm_precision_from_name(name, strlen(name) - 1, &precision));
    }
    CHECK(gm_op_computes(GM_OP_MATMUL) && !gm_op_computes(GM_OP_TRANSPOSE));
    CHECK(gm_op_computes(GM_OP_ADD) && !gm_op_computes(GM_OP_FLIP));
    CHECK_EQ(gm_op_operands_max(GM_OP_MATMUL), 3);
    CHECK_EQ(gm_op_operands_max(GM_OP_ADD), 2);
    CHECK_EQ(gm_op_operands_max(GM_OP_FLIP), 1);
}

int main(void)
{
    test_rows();
    test_unstated_type();
    test_factors();
    test_sizes();
    test_names();
    return check_report();
}
