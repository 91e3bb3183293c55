/*
 * test_layout.c - the views of operands that add repeats, against the definition of broadcasting,
 * what flip moves, and which stacks are one tall matrix. What transposes and products have of views
 * is in test_variant.c.
 */
#include "check.h"
#include "kernels/layout.h"

/* Element (t, i, j), by the definition of the layouts and of broadcasting. */
static uint64_t place(const struct gm_matrix *x, uint64_t t, uint64_t i, uint64_t j)
{
    t = x->batch == 1 ? 0 : t;
    i = x->rows == 1 ? 0 : i;
    j = x->cols == 1 ? 0 : j;
    return x->layout == GM_ROW_MAJOR ? (t * x->rows + i) * x->cols + j
                                     : t + x->batch * (i + x->rows * j);
}

static void check_view(const struct gm_op *op, unsigned index)
{
    const struct gm_view view = gm_op_view(op, index);
    const struct gm_matrix *x = &op->operand[index];
    uint64_t wrong = 0;

    for (uint64_t t = 0; t < op->result.batch; t++) {
        for (uint64_t i = 0; i < op->result.rows; i++) {
            for (uint64_t j = 0; j < op->result.cols; j++)
                wrong += t * view.batch + i * view.row + j * view.col != place(x, t, i, j);
        }
    }
    if (!CHECK_EQ(wrong, 0))
        fprintf(stderr, "  operand %u: %llux%llux%llu, %s-major\n", index,
                (unsigned long long)x->batch, (unsigned long long)x->rows,
                (unsigned long long)x->cols, x->layout == GM_ROW_MAJOR ? "row" : "column");
}

/* A dimension of an operand is the result's, or 1. */
static struct gm_matrix operand_of(unsigned ones, enum gm_layout layout)
{
    uint64_t batch = ones & 1 ? 1 : 3, rows = ones & 2 ? 1 : 4, cols = ones & 4 ? 1 : 5;

    return (struct gm_matrix){GM_F32, layout, batch > 1, batch, rows, cols, NULL};
}

static void test_views(void)
{
    const bool present[GM_OPERANDS_MAX] = {true, true};
    struct gm_op_options options = {0};
    unsigned seen = 0;

    for (unsigned ones = 0; ones < 64; ones++) {
        for (unsigned layouts = 0; layouts < 4; layouts++) {
            struct gm_matrix operand[GM_OPERANDS_MAX] = {
                operand_of(ones % 8, layouts & 1 ? GM_COL_MAJOR : GM_ROW_MAJOR),
                operand_of(ones / 8, layouts & 2 ? GM_COL_MAJOR : GM_ROW_MAJOR)};
            struct gm_error err = {.detail = ""};
            struct gm_op op = {0};
            CHECK_STATUS(gm_op_init(&op, GM_OP_ADD, &options, operand, present, &err), GM_OK, &err);
            for (unsigned i = 0; i < 2; i++) {
                /* Column-major stacks are rearranged before anybody looks at them. */
                if (operand[i].batch > 1 && !gm_lies_row_major(&operand[i]))
                    continue;
                check_view(&op, i);
                seen++;
            }
        }
    }
    CHECK(seen > 300);
}

/* add folds column-major matrices where the variant says so, and no stacks of them. */
static void test_prepare(void)
{
    const struct gm_variant folds = {.op = GM_OP_ADD, .folds = GM_FOLDS_TRANS};
    const struct gm_variant plain = {.op = GM_OP_ADD, .folds = GM_FOLDS_NOTHING};
    struct gm_op op = {.kind = GM_OP_ADD,
                       .operands = 2,
                       .operand = {{GM_F32, GM_COL_MAJOR, false, 1, 3, 4, NULL},
                                   {GM_F32, GM_COL_MAJOR, true, 2, 3, 4, NULL}},
                       .result = {GM_F32, GM_ROW_MAJOR, true, 2, 3, 4, NULL}};

    CHECK(!gm_needs_prepare(&op, &folds, 0));
    CHECK(gm_needs_prepare(&op, &folds, 1));
    CHECK(gm_needs_prepare(&op, &plain, 0));
    op.operand[1].batch = 1;
    CHECK(!gm_needs_prepare(&op, &folds, 1));
    op.operand[0].rows = 1; /* a row lies as it would in either order */
    CHECK(!gm_needs_prepare(&op, &plain, 0));
    CHECK(!gm_needs_prepare(&op, &folds, 2));
}

/* A flip moves nothing where a row has one element and the rows follow each other. */
static void test_flips_that_are_copies(void)
{
    static const struct {
        enum gm_layout layout;
        uint64_t batch, rows, cols;
        bool is_copy;
    } cases[] = {
        {GM_ROW_MAJOR, 1, 3, 4, false}, {GM_ROW_MAJOR, 1, 1, 4, false},
        {GM_ROW_MAJOR, 1, 4, 1, true},  {GM_COL_MAJOR, 1, 4, 1, true},
        {GM_COL_MAJOR, 1, 3, 4, false}, {GM_ROW_MAJOR, 5, 4, 1, true},
        {GM_COL_MAJOR, 5, 4, 1, false}, {GM_COL_MAJOR, 5, 1, 1, true},
        {GM_ROW_MAJOR, 1, 0, 4, true},  {GM_COL_MAJOR, 0, 3, 4, true},
        {GM_ROW_MAJOR, 1, 1, 1, true},  {GM_COL_MAJOR, 5, 3, 0, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_op op = {.kind = GM_OP_FLIP,
                           .operands = 1,
                           .operand = {{GM_F32, cases[i].layout, cases[i].batch > 1, cases[i].batch,
                                        cases[i].rows, cases[i].cols, NULL}}};
        if (!CHECK_EQ(gm_op_is_copy(&op), cases[i].is_copy))
            fprintf(stderr, "  in case %zu\n", i);
    }
}

/* Which stacks are one tall matrix. */
static void test_joined(void)
{
    static const struct {
        uint64_t batch[3], m, k, n; /* batch: of a, b and c, which is not there where it is 0 */
        bool transa, transb;
        uint64_t joined;
    } cases[] = {
        {{7, 1, 0}, 3, 4, 5, false, false, 7},
        {{7, 1, 0}, 3, 4, 5, false, true, 7},
        {{7, 1, 7}, 3, 4, 5, false, false, 7},
        {{7, 1, 0}, 1, 4, 5, false, false, 7},
        {{1, 1, 0}, 3, 4, 5, false, false, 1},
        {{7, 7, 0}, 3, 4, 5, false, false, 1},
        {{1, 7, 0}, 3, 4, 5, false, false, 1},
        {{0, 1, 0}, 3, 4, 5, false, false, 1},
        {{7, 1, 1}, 3, 4, 5, false, false, 1}, /* one c for each of them */
        {{1, 1, 7}, 3, 4, 5, false, false, 1}, /* a is for all */
        {{7, 1, 0}, 3, 4, 5, true, false, 1},  /* rows of different matrices lie side by side */
        {{7, 1, 0}, 3, 1, 5, true, false, 7},  /* but not if they have one element */
        {{2, 1, 0}, GM_TALL_ROWS_MAX / 2, 1, 1, false, false, 2},
        {{2, 1, 0}, GM_TALL_ROWS_MAX / 2 + 1, 1, 1, false, false, 1},
        {{2, 1, 0}, 1, GM_TALL_K_MAX, 1, false, false, 2},
        {{2, 1, 0}, 1, GM_TALL_K_MAX + 1, 1, false, false, 1},
        {{2, 1, 0}, 1 << 20, 1, GM_TALL_ELEMENTS_MAX >> 21, false, false, 2},
        {{2, 1, 0}, 1 << 20, 1, (GM_TALL_ELEMENTS_MAX >> 21) + 1, false, false, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t m = cases[i].m, k = cases[i].k, n = cases[i].n;
        const struct gm_shape shape[3] = {
            {3, {cases[i].batch[0], cases[i].transa ? k : m, cases[i].transa ? m : k}},
            {3, {cases[i].batch[1], cases[i].transb ? n : k, cases[i].transb ? k : n}},
            {3, {cases[i].batch[2], m, n}}};
        bool adds = cases[i].batch[2] > 0, present[GM_OPERANDS_MAX] = {true, true, adds};
        struct gm_op_options options = {.transa = cases[i].transa,
                                        .transb = cases[i].transb,
                                        .has_beta = adds,
                                        .beta = {.real = 1, .integer = 1, .is_integer = true}};
        struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
        struct gm_error err = {.detail = ""};
        struct gm_op op = {0};
        for (unsigned j = 0; j < (adds ? 3 : 2); j++)
            CHECK_STATUS(gm_matrix_init(&operand[j], GM_F32, GM_ROW_MAJOR, &shape[j], &err), GM_OK,
                         &err);
        if (!CHECK_STATUS(gm_op_init(&op, GM_OP_MATMUL, &options, operand, present, &err), GM_OK,
                          &err) ||
            !CHECK_EQ(gm_op_joined(&op), cases[i].joined))
            fprintf(stderr, "  in case %zu\n", i);
    }
}

int main(void)
{
    test_joined();
    test_views();
    test_prepare();
    test_flips_that_are_copies();
    return check_report();
}
