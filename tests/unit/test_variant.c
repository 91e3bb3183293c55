/* test_variant.c - the list of variants, the check of one, and the layouts they rely on. */
#include "check.h"
#include "kernels/backend.h"
#include "kernels/layout.h"

static const struct gm_device_facts cpu = {.kind = GM_DEVICE_CPU};

static struct gm_matrix matrix(enum gm_dtype dtype, enum gm_layout layout, uint64_t batch,
                               uint64_t rows, uint64_t cols)
{
    return (struct gm_matrix){dtype, layout, batch != 1, batch, rows, cols, NULL};
}

static struct gm_op make(enum gm_op_kind kind, struct gm_matrix a, struct gm_matrix b)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {a, b};
    const bool present[GM_OPERANDS_MAX] = {true, kind == GM_OP_MATMUL};
    struct gm_op_options options = {0};
    struct gm_error err = {.detail = ""};
    struct gm_op op = {0};

    CHECK_STATUS(gm_op_init(&op, kind, &options, operand, present, &err), GM_OK, &err);
    return op;
}

static const struct gm_variant *find(enum gm_op_kind op, const char *name)
{
    const struct gm_variant *row;

    for (size_t i = 0; (row = gm_variant_at(i)); i++) {
        if (row->op == op && row->run[GM_DEVICE_CPU] && strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

static const struct gm_variant *variant(enum gm_op_kind op, const char *name)
{
    const struct gm_variant *row = find(op, name);

    if (!CHECK(row != NULL))
        exit(1);
    return row;
}

/* The kinds of devices that can run it, as a mask. */
static unsigned devices_of(const struct gm_variant *row)
{
    unsigned devices = 0;

    for (unsigned kind = 0; kind < GM_DEVICE_KINDS; kind++)
        devices |= row->run[kind] ? 1u << kind : 0;
    return devices;
}

static void test_list(void)
{
    const struct gm_variant *row, *other;
    size_t count = 0;

    for (; (row = gm_variant_at(count)); count++) {
        CHECK(row->op < GM_OP_COUNT && row->name[0] && row->note[0] && row->needs);
        CHECK(row->run && row->accepts);
        CHECK(strcmp(row->name, "auto") != 0); /* means another thing */
        CHECK(devices_of(row) != 0);
        CHECK(row->dtypes != 0 && (row->dtypes & ~GM_TYPES_ALL) == 0);
        if (gm_op_computes(row->op))
            CHECK((row->dtypes & ~GM_TYPES_ARITHMETIC) == 0);
        for (size_t i = 0; i < count; i++) {
            other = gm_variant_at(i);
            CHECK(other->op != row->op || !(devices_of(other) & devices_of(row)) ||
                  strcmp(other->name, row->name) != 0);
        }
    }
    CHECK(count >= 7);
    CHECK(gm_variant_at(count + 1000) == NULL && gm_variant_at(SIZE_MAX) == NULL);

    /* Each operation on each type it takes has a variant on the cpu, a naive one among them. */
    for (int kind = 0; kind <= GM_OP_FLIP; kind++) {
        uint32_t all = 0;
        for (size_t i = 0; (row = gm_variant_at(i)); i++) {
            if (row->op == (enum gm_op_kind)kind && row->run[GM_DEVICE_CPU])
                all |= row->dtypes;
        }
        CHECK_EQ(all, gm_op_computes((enum gm_op_kind)kind) ? GM_TYPES_ARITHMETIC : GM_TYPES_ALL);
    }
}

/* Each old name leads to rows of today, and is itself no row's. */
static void test_aliases(void)
{
    static const char *const old[] = {"registers", "pipelined", "fitted",  "shifted", "bytes",
                                      "stack",     "dot",       "dynamic", "small"};

    for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
        const char *name = gm_variant_name(old[i]);
        const struct gm_variant *row;
        unsigned rows = 0;
        for (size_t j = 0; (row = gm_variant_at(j)); j++) {
            CHECK(strcmp(row->name, old[i]) != 0);
            rows += strcmp(row->name, name) == 0;
        }
        if (!CHECK(rows > 0))
            fprintf(stderr, "  %s is an alias of %s\n", old[i], name);
    }
    CHECK_STR(gm_variant_name("naive"), "naive");
    CHECK_STR(gm_variant_name("auto"), "auto");
    CHECK_STR(gm_variant_name(""), "");
}

static void test_check(void)
{
    struct gm_matrix f32 = matrix(GM_F32, GM_ROW_MAJOR, 1, 100, 200);
    struct gm_op transpose = make(GM_OP_TRANSPOSE, f32, f32);
    struct gm_op flat = make(GM_OP_TRANSPOSE, matrix(GM_F32, GM_COL_MAJOR, 1, 3, 4), f32);
    struct gm_op product = make(GM_OP_MATMUL, f32, matrix(GM_F32, GM_ROW_MAJOR, 1, 200, 50));
    struct gm_device_facts cuda = {.kind = GM_DEVICE_CUDA};
    struct gm_error err = {.detail = ""};

    CHECK_STATUS(gm_variant_check(variant(GM_OP_TRANSPOSE, "blocked"), &transpose, &cpu, &err),
                 GM_OK, &err);
    CHECK_STR(err.detail, "");
    CHECK_STATUS(gm_variant_check(variant(GM_OP_TRANSPOSE, "blocked"), &transpose, &cuda, &err),
                 GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "\"blocked\"") && strstr(err.detail, "cuda"));
    struct gm_variant elsewhere = *variant(GM_OP_TRANSPOSE, "blocked");
    elsewhere.run[GM_DEVICE_SIM] = elsewhere.run[GM_DEVICE_CUDA] = elsewhere.run[GM_DEVICE_CPU];
    elsewhere.run[GM_DEVICE_CPU] = NULL;
    gm_variant_check(&elsewhere, &transpose, &cpu, &err);
    CHECK(strstr(err.detail, "it runs on: sim, cuda"));
    CHECK_STATUS(gm_variant_check(variant(GM_OP_MATMUL, "naive"), &transpose, &cpu, &err),
                 GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "is a matmul"));

    /* A copy runs the transposes that move nothing, and no other operation. */
    CHECK_STATUS(gm_variant_check(variant(GM_OP_COPY, "memcpy"), &flat, &cpu, &err), GM_OK, &err);
    CHECK_STATUS(gm_variant_check(variant(GM_OP_COPY, "memcpy"), &transpose, &cpu, &err),
                 GM_KERNEL_UNAVAILABLE, &err);
    CHECK_STATUS(gm_variant_check(variant(GM_OP_COPY, "memcpy"), &product, &cpu, &err),
                 GM_KERNEL_UNAVAILABLE, &err);

    CHECK_STATUS(gm_variant_check(variant(GM_OP_MATMUL, "skinny"), &product, &cpu, &err),
                 GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "100x50") && strstr(err.detail, "8"));
    struct gm_op thin =
        make(GM_OP_MATMUL, matrix(GM_F32, GM_ROW_MAJOR, 1, 8, 200), product.operand[1]);
    CHECK_EQ(gm_variant_check(variant(GM_OP_MATMUL, "skinny"), &thin, &cpu, &err), GM_OK);
    CHECK_EQ(gm_variant_check(variant(GM_OP_MATMUL, "skinny"), &product, &cpu, NULL),
             GM_KERNEL_UNAVAILABLE);
}

/* Variants that load whole vectors along the rows of both operands, which the simulator has too. */
static void test_aligned(void)
{
    static const char *const names[] = {"vector_loads", "warp_tiled", "double_buffered"};
    const struct gm_device_facts sim = {.kind = GM_DEVICE_SIM};
    static const struct {
        enum gm_dtype dtype;
        uint64_t m, k, n;
        bool transa, transb;
        const char *refused; /* part of the reason, or NULL */
    } cases[] = {
        {GM_F32, 7, 8, 12, false, false, NULL},
        {GM_F32, 7, 0, 4, false, false, NULL},
        {GM_F32, 8, 6, 12, false, false, "multiple of 4 elements; these have 6 and 12"},
        {GM_F32, 8, 8, 11, false, false, "multiple of 4 elements; these have 8 and 11"},
        {GM_F32, 8, 8, 8, true, false, "no transa and no transb"},
        {GM_F32, 8, 8, 8, false, true, "no transa and no transb"},
        {GM_F64, 8, 8, 8, false, false, "takes f32, and the operands are f64"},
    };
    const struct gm_variant *row;
    unsigned found = 0;

    for (size_t i = 0; (row = gm_variant_at(i)); i++) {
        bool is_one = false;
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++)
            is_one |= row->op == GM_OP_MATMUL && strcmp(row->name, names[j]) == 0;
        if (!is_one)
            continue;
        found++;
        for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++) {
            struct gm_error err = {.detail = ""};
            struct gm_op op =
                make(GM_OP_MATMUL, matrix(cases[j].dtype, GM_ROW_MAJOR, 1, cases[j].m, cases[j].k),
                     matrix(cases[j].dtype, GM_ROW_MAJOR, 1, cases[j].k, cases[j].n));
            op.transa = cases[j].transa;
            op.transb = cases[j].transb;
            CHECK_STATUS(gm_variant_check(row, &op, &sim, &err),
                         cases[j].refused ? GM_KERNEL_UNAVAILABLE : GM_OK, &err);
            if (cases[j].refused && !CHECK(strstr(err.detail, cases[j].refused)))
                fprintf(stderr, "  %s: %s\n", row->name, err.detail);
        }
    }
    CHECK_EQ(found, 3);
}

static void test_openblas(void)
{
    const struct gm_variant *row = find(GM_OP_MATMUL, "openblas");
    struct gm_matrix i32 = matrix(GM_I32, GM_ROW_MAJOR, 1, 3, 3);
    struct gm_matrix f32 = matrix(GM_F32, GM_ROW_MAJOR, 1, 3, 3);
    struct gm_matrix wide = matrix(GM_F32, GM_ROW_MAJOR, 1, 3, (uint64_t)1 << 31);
    struct gm_op integers = make(GM_OP_MATMUL, i32, i32);
    struct gm_op beyond = make(GM_OP_MATMUL, f32, wide);
    struct gm_error err = {.detail = ""};

    if (!row) {
        printf("openblas is not in this build\n");
        return;
    }
    CHECK_STATUS(gm_variant_check(row, &integers, &cpu, &err), GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "takes f32, f64") && strstr(err.detail, "are i32"));
    CHECK_STATUS(gm_variant_check(row, &beyond, &cpu, &err), GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "2147483647"));
    beyond = make(GM_OP_MATMUL, matrix(GM_F32, GM_ROW_MAJOR, 1, (uint64_t)1 << 31, 3), f32);
    CHECK_STATUS(gm_variant_check(row, &beyond, &cpu, &err), GM_KERNEL_UNAVAILABLE, &err);
}

/* The views of an operation's operands lead to the elements that the layouts define. */
static void test_views(void)
{
    struct gm_matrix a = matrix(GM_F32, GM_ROW_MAJOR, 7, 3, 5);
    struct gm_matrix b = matrix(GM_F32, GM_COL_MAJOR, 1, 5, 4);
    struct gm_op op = make(GM_OP_MATMUL, a, b);
    struct gm_view view = gm_op_view(&op, 0);

    CHECK(view.batch == 15 && view.row == 5 && view.col == 1);
    view = gm_op_view(&op, 1);
    CHECK(view.batch == 0 && view.row == 1 && view.col == 5);
    op.transb = true; /* views look no further than the flag */
    view = gm_op_view(&op, 1);
    CHECK(view.row == 5 && view.col == 1);
}

static void test_copies(void)
{
    static const struct {
        enum gm_layout layout;
        uint64_t batch, rows, cols;
        bool row_major, transpose_is_copy;
    } cases[] = {
        {GM_ROW_MAJOR, 1, 3, 4, true, false}, {GM_COL_MAJOR, 1, 3, 4, false, true},
        {GM_ROW_MAJOR, 1, 1, 4, true, true},  {GM_COL_MAJOR, 1, 1, 4, true, true},
        {GM_ROW_MAJOR, 1, 4, 1, true, true},  {GM_COL_MAJOR, 1, 4, 1, true, true},
        {GM_ROW_MAJOR, 5, 1, 4, true, true},  {GM_COL_MAJOR, 5, 1, 4, false, false},
        {GM_ROW_MAJOR, 5, 4, 1, true, true},  {GM_COL_MAJOR, 5, 4, 1, false, false},
        {GM_ROW_MAJOR, 5, 1, 1, true, true},  {GM_COL_MAJOR, 5, 1, 1, true, true},
        {GM_ROW_MAJOR, 5, 3, 4, true, false}, {GM_COL_MAJOR, 5, 3, 4, false, false},
        {GM_ROW_MAJOR, 1, 0, 4, true, true},  {GM_COL_MAJOR, 1, 0, 4, true, true},
        {GM_COL_MAJOR, 0, 3, 4, true, true},  {GM_COL_MAJOR, 5, 3, 0, true, true},
    };
    const struct gm_variant *blocked = variant(GM_OP_TRANSPOSE, "blocked");
    const struct gm_variant *memcpy_row = variant(GM_OP_COPY, "memcpy");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_matrix a =
            matrix(GM_F64, cases[i].layout, cases[i].batch, cases[i].rows, cases[i].cols);
        struct gm_op transpose = make(GM_OP_TRANSPOSE, a, a), copy = make(GM_OP_COPY, a, a);
        if (!CHECK_EQ(gm_lies_row_major(&a), cases[i].row_major) ||
            !CHECK_EQ(gm_op_is_copy(&transpose), cases[i].transpose_is_copy))
            fprintf(stderr, "  in case %zu\n", i);
        CHECK_EQ(gm_op_is_copy(&copy), cases[i].row_major);
        CHECK_EQ(gm_needs_prepare(&transpose, blocked, 0), !cases[i].row_major);
        if (cases[i].transpose_is_copy)
            CHECK(!gm_needs_prepare(&transpose, memcpy_row, 0));
        CHECK_EQ(gm_needs_prepare(&copy, memcpy_row, 0), !cases[i].row_major);
    }
}

/* A matmul folds column-major a and b; not stacks of them, not c, and not what it does not read. */
static void test_prepare(void)
{
    const struct gm_variant *blocked = variant(GM_OP_MATMUL, "blocked");
    struct gm_matrix single = matrix(GM_F32, GM_COL_MAJOR, 1, 3, 3);
    struct gm_matrix stack = matrix(GM_F32, GM_COL_MAJOR, 2, 3, 3);
    struct gm_op op = make(GM_OP_MATMUL, single, stack);

    CHECK(!gm_needs_prepare(&op, blocked, 0));
    CHECK(gm_needs_prepare(&op, blocked, 1));
    CHECK(!gm_needs_prepare(&op, blocked, 2));
    op.operands = 3;
    op.operand[2] = single;
    op.beta = (struct gm_scalar){.real = 1};
    CHECK(gm_needs_prepare(&op, blocked, 2));
    op.beta.real = 0;
    CHECK(!gm_needs_prepare(&op, blocked, 2));
    op.alpha = (struct gm_scalar){.real = 0};
    CHECK(!gm_needs_prepare(&op, blocked, 1));
}

/* What a variant wants beside operands and result it is asked before anyone has seen whether there
 * is anything to do. */
static void test_scratch(void)
{
    static const uint64_t shapes[][3] = {{0, 5, 3},  {3, 5, 0},  {0, 5, 0},    {3, 0, 4},
                                         {0, 5, 20}, {20, 5, 0}, {0, 0, 0},    {1, 0, 1},
                                         {1, 1, 1},  {8, 9, 20}, {20, 9000, 8}};
    static const enum gm_dtype dtypes[] = {GM_F16, GM_F32, GM_F64};
    const struct gm_variant *row;

    for (size_t i = 0; i < 3 * sizeof(shapes) / sizeof(shapes[0]); i++) {
        const uint64_t *shape = shapes[i / 3];
        struct gm_op op =
            make(GM_OP_MATMUL, matrix(dtypes[i % 3], GM_ROW_MAJOR, 1, shape[0], shape[1]),
                 matrix(dtypes[i % 3], GM_ROW_MAJOR, 1, shape[1], shape[2]));
        for (size_t j = 0; (row = gm_variant_at(j)); j++) {
            if (row->op == GM_OP_MATMUL)
                CHECK(row->scratch(&op) < (uint64_t)1 << 32);
        }
    }
}

int main(void)
{
    test_list();
    test_aliases();
    test_scratch();
    test_check();
    test_aligned();
    test_openblas();
    test_views();
    test_copies();
    test_prepare();
    return check_report();
}
