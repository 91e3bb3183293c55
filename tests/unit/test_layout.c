/*
 * test_layout.c - the views of operands that add repeats, against the definition of broadcasting,
 * what flip moves, which stacks are one tall matrix, and which products are rows of one. What
 * transposes and products have of views is in test_variant.c.
 */
#include "check.h"
#include "kernels/backend.h"
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

/* ---- Rows of several products ---- */

static char memory[2][8]; /* where matrices are: addresses alone */

static struct gm_task task_of(const char *a, const char *b, const struct gm_op_options *options,
                              bool has_c)
{
    static const struct gm_variant gathers = {.op = GM_OP_MATMUL, .folds = GM_FOLDS_ROWS};
    const bool present[GM_OPERANDS_MAX] = {true, true, has_c};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    struct gm_task task = {.variant = &gathers, .repeat = 1, .on_device = 3};
    struct gm_error err = {.detail = ""};
    struct gm_shape shape;

    for (unsigned i = 0; i < 2; i++) {
        const char *text = i == 0 ? a : b;
        CHECK(gm_shape_parse(text, strlen(text), &shape));
        CHECK_STATUS(gm_matrix_init(&operand[i], GM_F32, GM_ROW_MAJOR, &shape, &err), GM_OK, &err);
        operand[i].data = memory[i];
    }
    CHECK_STATUS(gm_matrix_init(&operand[2], GM_F32, GM_ROW_MAJOR,
                                &(struct gm_shape){.ndim = 2, .dim = {1, 1}}, &err),
                 GM_OK, &err);
    if (has_c) {
        operand[2].cols = operand[1].cols;
        operand[2].rows = operand[0].rows;
    }
    CHECK_STATUS(gm_op_init(&task.op, GM_OP_MATMUL, options, operand, present, &err), GM_OK, &err);
    return task;
}

/* Products of one row or one column alone, by a matrix of more than 8 columns or rows. */
static void test_gatherable(void)
{
    const unsigned none = GM_OPERANDS_MAX;
    const struct {
        const char *a, *b;
        bool transa, transb, has_c;
        unsigned matrix;
    } cases[] = {
        {"1x20", "20x9", false, false, false, 1},
        {"1x20", "9x20", false, true, false, 1},
        {"20x1", "20x9", true, false, false, 1},
        {"9x20", "20x1", false, false, false, 0},
        {"20x9", "20x1", true, false, false, 0},
        {"9x20", "1x20", false, true, false, 0},
        {"1x20", "20x8", false, false, false, none},
        {"8x20", "20x1", false, false, false, none},
        {"2x20", "20x9", false, false, false, none},
        {"1x20", "20x9", false, false, true, none},
        {"2x1x20", "20x9", false, false, false, none},
        {"1x20", "2x20x9", false, false, false, none},
        {"1x1x20", "20x9", false, false, false, 1},
        {"1x0", "0x9", false, false, false, none},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct gm_op_options options = {.transa = cases[i].transa, .transb = cases[i].transb};
        const struct gm_task task = task_of(cases[i].a, cases[i].b, &options, cases[i].has_c);
        if (!CHECK_EQ(gm_gather_matrix(&task.op), cases[i].matrix))
            fprintf(stderr, "  in case %zu\n", i);
    }
    const struct gm_op_options nothing = {.has_alpha = true, .alpha = {0, 0, true}};
    const struct gm_task task = task_of("1x20", "20x9", &nothing, false);
    CHECK_EQ(gm_gather_matrix(&task.op), none);
}

/* Tasks have one key if the matrix, what is made of it and the factors are the same. */
static void test_keys(void)
{
    const struct gm_op_options plain = {0}, alpha = {.has_alpha = true, .alpha = {2, 2, true}},
                               trans = {.transb = true}, tf32 = {.precision = GM_PRECISION_TF32};
    static const struct gm_variant other = {.op = GM_OP_MATMUL, .folds = GM_FOLDS_ROWS},
                                   alone = {.op = GM_OP_MATMUL, .folds = GM_FOLDS_TRANS},
                                   groups = {.op = GM_OP_MATMUL, .groups = true};
    struct gm_access_report report = {.launches = 0};
    const struct gm_task one = task_of("1x20", "20x20", &plain, false);
    struct gm_task task = one;
    uint64_t key = gm_group_key(&one);

    CHECK(key != 0);
    CHECK_EQ(gm_group_matrix(&one), 1);
    CHECK_EQ(gm_group_most(&one), GM_GATHERED_MAX);
    CHECK_EQ(gm_group_bytes(&one), 2 * 20 * 4);
    task.op.operand[0].data = memory[1]; /* another row, which may be anywhere */
    task.on_device = 2;
    CHECK_EQ(gm_group_key(&task), key);
    task.op.operand[1].data = memory[0];
    CHECK(gm_group_key(&task) != key && !gm_gather_alike(&task.op, &one.op));

    const struct gm_task unlike[] = {
        task_of("1x20", "20x20", &alpha, false), task_of("1x20", "20x20", &trans, false),
        task_of("1x20", "20x20", &tf32, false), task_of("1x20", "20x21", &plain, false),
        task_of("1x21", "21x20", &plain, false)};
    for (size_t i = 0; i < sizeof(unlike) / sizeof(unlike[0]); i++) {
        CHECK(gm_group_key(&unlike[i]) != 0 && gm_group_key(&unlike[i]) != key);
        CHECK(!gm_gather_alike(&unlike[i].op, &one.op));
    }
    task = one;
    task.op.operand[1].layout = GM_COL_MAJOR;
    CHECK(gm_group_key(&task) != 0 && gm_group_key(&task) != key);
    task = one;
    task.variant = &other;
    CHECK(gm_group_key(&task) != 0 && gm_group_key(&task) != key);

    /* Never together: by a variant that cannot, repeated, traced, with a matrix on the host. */
    struct gm_task never[] = {one, one, one, one};
    never[0].variant = &alone;
    never[1].repeat = 2;
    never[2].report = &report;
    never[3].on_device = 1;
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        CHECK_EQ(gm_group_key(&never[i]), 0);
        CHECK_EQ(gm_group_most(&never[i]), 0);
        CHECK_EQ(gm_group_bytes(&never[i]), gm_op_bytes_min(&one.op));
    }
    task = one;
    task.variant = &groups; /* by variant and type alone */
    key = gm_group_key(&task);
    CHECK(key != 0);
    CHECK_EQ(gm_group_bytes(&task), gm_op_bytes_min(&one.op));
    task.op = unlike[0].op;
    CHECK_EQ(gm_group_key(&task), key);
}

/* Beyond a few rows, zeros make the columns whole vectors. */
static void test_padded(void)
{
    static const unsigned padded[] = {0, 1, 2, 4, 4, 8, 8, 8, 8, 16};

    for (unsigned rows = 1; rows < sizeof(padded) / sizeof(padded[0]); rows++)
        CHECK_EQ(gm_gather_padded(rows), padded[rows]);
    CHECK_EQ(gm_gather_padded(GM_GATHERED_MAX), GM_GATHERED_MAX);
}

/* One product of the rows, by the matrix as b: what multiplies columns is transposed. */
static void test_gathered(void)
{
    for (unsigned form = 0; form < 4; form++) {
        bool columns = form & 1u, transposed = form & 2u;
        const char *matrix = columns != transposed ? "30x20" : "20x30";
        const struct gm_op_options options = {.transa = columns && transposed,
                                              .transb = !columns && transposed};
        const struct gm_task task = columns ? task_of(matrix, "20x1", &options, false)
                                            : task_of("1x20", matrix, &options, false);
        struct gm_op op;
        gm_gather_op(&task.op, 5, &op);
        CHECK(op.gathered && !task.op.gathered && op.operands == 2);
        CHECK(gm_op_m(&op) == 5 && gm_op_n(&op) == 30 && gm_op_k(&op) == 20);
        CHECK(op.operand[0].data == NULL && op.result.data == NULL);
        CHECK(op.operand[1].data == memory[columns ? 0 : 1]);
        CHECK(op.result.rows == 5 && op.result.cols == 30 && op.result.layout == GM_ROW_MAJOR);
        struct gm_view was = gm_op_view(&task.op, columns ? 0 : 1), is = gm_op_view(&op, 1);
        CHECK_EQ(is.row, columns ? was.col : was.row);
        CHECK_EQ(is.col, columns ? was.row : was.col);
    }
}

int main(void)
{
    test_joined();
    test_views();
    test_prepare();
    test_flips_that_are_copies();
    test_gatherable();
    test_keys();
    test_padded();
    test_gathered();
    return check_report();
}
