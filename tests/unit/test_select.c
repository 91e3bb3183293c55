/* test_select.c - which variant runs: a table of operations and choices, and the refusals. */
#include "check.h"
#include "kernels/choose/choose.h"

static const struct gm_device_facts cpu = {
    .kind = GM_DEVICE_CPU, .compute_units = 2, .vector_bytes = 64, .own_cache_bytes = 2 << 20};

static struct gm_op make(enum gm_op_kind kind, enum gm_dtype dtype, enum gm_layout layout,
                         const char *a, const char *b)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    const bool present[GM_OPERANDS_MAX] = {true, b != NULL};
    struct gm_op_options options = {0};
    struct gm_error err = {.detail = ""};
    struct gm_shape shape;
    struct gm_op op = {0};

    CHECK(gm_shape_parse(a, strlen(a), &shape));
    CHECK_EQ(gm_matrix_init(&operand[0], dtype, layout, &shape, &err), GM_OK);
    if (b) {
        CHECK(gm_shape_parse(b, strlen(b), &shape));
        CHECK_EQ(gm_matrix_init(&operand[1], dtype, layout, &shape, &err), GM_OK);
    }
    CHECK_STATUS(gm_op_init(&op, kind, &options, operand, present, &err), GM_OK, &err);
    return op;
}

static void test_auto(void)
{
    static const struct {
        enum gm_op_kind kind;
        enum gm_dtype dtype;
        enum gm_layout layout;
        const char *a, *b;
        enum gm_op_kind variant_op;
        const char *name;
    } rows[] = {
        {GM_OP_COPY, GM_U8, GM_ROW_MAJOR, "1x1000", NULL, GM_OP_COPY, "memcpy"},
        {GM_OP_COPY, GM_U8, GM_ROW_MAJOR, "1x100000000", NULL, GM_OP_COPY, "stream"},

        {GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "1000x1000", NULL, GM_OP_TRANSPOSE, "blocked"},
        {GM_OP_TRANSPOSE, GM_C128, GM_ROW_MAJOR, "3x1000", NULL, GM_OP_TRANSPOSE, "blocked"},
        {GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "2x2", NULL, GM_OP_TRANSPOSE, "naive"},
        {GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "1000x2x2", NULL, GM_OP_TRANSPOSE, "naive"},
        {GM_OP_TRANSPOSE, GM_F32, GM_COL_MAJOR, "5x1000x1000", NULL, GM_OP_TRANSPOSE, "blocked"},
        /* the bytes are the result already */
        {GM_OP_TRANSPOSE, GM_F32, GM_COL_MAJOR, "1000x1000", NULL, GM_OP_COPY, "stream"},
        {GM_OP_TRANSPOSE, GM_F32, GM_COL_MAJOR, "10x10", NULL, GM_OP_COPY, "memcpy"},
        {GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "1x1000", NULL, GM_OP_COPY, "memcpy"},
        {GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "7x1000x1", NULL, GM_OP_COPY, "memcpy"},
        {GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "0x1000", NULL, GM_OP_COPY, "memcpy"},

        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "1000x1000", "1000x1000", GM_OP_MATMUL, "blocked"},
        {GM_OP_MATMUL, GM_F64, GM_COL_MAJOR, "1000x1000", "1000x1000", GM_OP_MATMUL, "blocked"},
        {GM_OP_MATMUL, GM_I64, GM_ROW_MAJOR, "100x100", "100x100", GM_OP_MATMUL, "blocked"},
        {GM_OP_MATMUL, GM_BF16, GM_ROW_MAJOR, "100x100", "100x100", GM_OP_MATMUL, "blocked"},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "2x3", "3x2", GM_OP_MATMUL, "naive"},
        {GM_OP_MATMUL, GM_I32, GM_ROW_MAJOR, "1x1", "1x1", GM_OP_MATMUL, "naive"},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "9000x2x2", "9000x2x2", GM_OP_MATMUL, "naive"},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "5000x2x3", "5000x3x2", GM_OP_MATMUL, "naive"},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "1000x1000", "1000x1", GM_OP_MATMUL, "skinny"},
        {GM_OP_MATMUL, GM_F16, GM_ROW_MAJOR, "1x1000", "1000x1000", GM_OP_MATMUL, "skinny"},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "1x100000", "100000x1", GM_OP_MATMUL, "skinny"},
        /* one row each, but together a tall matrix */
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "1000x1x64", "64x64", GM_OP_MATMUL, "blocked"},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "4x0", "0x4", GM_OP_MATMUL, "naive"},

        {GM_OP_ADD, GM_F32, GM_ROW_MAJOR, "1x1", "1x1", GM_OP_ADD, "direct"},
        {GM_OP_ADD, GM_F16, GM_ROW_MAJOR, "4x1", "1x4", GM_OP_ADD, "vector"},
        {GM_OP_ADD, GM_I64, GM_ROW_MAJOR, "4x1", "1x5", GM_OP_ADD, "direct"},
        {GM_OP_ADD, GM_F32, GM_ROW_MAJOR, "1000x2x2", "2x2", GM_OP_ADD, "vector"},
        {GM_OP_ADD, GM_BF16, GM_COL_MAJOR, "1000x1000", "1000x1000", GM_OP_ADD, "vector"},
        {GM_OP_ADD, GM_F64, GM_ROW_MAJOR, "1x0", "1x1", GM_OP_ADD, "direct"},

        {GM_OP_FLIP, GM_U8, GM_ROW_MAJOR, "8x8", NULL, GM_OP_FLIP, "naive"},
        {GM_OP_FLIP, GM_C128, GM_ROW_MAJOR, "80x90", NULL, GM_OP_FLIP, "vector"},
        {GM_OP_FLIP, GM_F32, GM_COL_MAJOR, "1000x1000", NULL, GM_OP_FLIP, "vector"},
        /* rows of one element */
        {GM_OP_FLIP, GM_F32, GM_ROW_MAJOR, "1000x1", NULL, GM_OP_COPY, "memcpy"},
        {GM_OP_FLIP, GM_F32, GM_ROW_MAJOR, "7x1000000x1", NULL, GM_OP_COPY, "stream"},
        {GM_OP_FLIP, GM_F32, GM_COL_MAJOR, "7x100x1", NULL, GM_OP_FLIP, "naive"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gm_op op = make(rows[i].kind, rows[i].dtype, rows[i].layout, rows[i].a, rows[i].b);
        const char *const names[] = {NULL, "", "auto"};
        for (int j = 0; j < 3; j++) {
            const struct gm_variant *variant = NULL;
            struct gm_error err = {.detail = ""};
            CHECK_STATUS(gm_select(&op, &cpu, names[j], &variant, &err), GM_OK, &err);
            if (!variant)
                continue;
            if (!CHECK_STR(variant->name, rows[i].name) ||
                !CHECK_EQ(variant->op, rows[i].variant_op))
                fprintf(stderr, "  in row %zu: %s %s\n", i, rows[i].a, rows[i].b ? rows[i].b : "");
        }
    }
}

/* A BLAS that knows the processor has most products of f32 and f64. */
static void test_tuned_blas(void)
{
    static const struct {
        enum gm_dtype dtype;
        const char *a, *b, *name;
    } rows[] = {
        {GM_F32, "64x64", "64x64", "openblas"},        {GM_F64, "20x20", "20x20", "openblas"},
        {GM_F16, "1000x1000", "1000x1000", "blocked"}, {GM_I32, "20x20", "20x20", "blocked"},
        {GM_F32, "1x30", "30x30", "openblas"},         {GM_I32, "1000x1000", "1000x8", "skinny"},
        {GM_F32, "5000x2x3", "5000x3x2", "naive"},     {GM_F32, "2x3", "3x2", "naive"},
    };
    struct gm_device_facts tuned = cpu;
    const struct gm_variant *variant = NULL;
    struct gm_error err = {.detail = ""};
    struct gm_op op = make(GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "20x20", "20x20");

    tuned.tuned_blas = true;
    if (gm_select(&op, &tuned, "openblas", &variant, &err) != GM_OK)
        return; /* not in this build */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        op = make(GM_OP_MATMUL, rows[i].dtype, GM_ROW_MAJOR, rows[i].a, rows[i].b);
        CHECK_STATUS(gm_select(&op, &tuned, NULL, &variant, &err), GM_OK, &err);
        if (!CHECK_STR(variant->name, rows[i].name))
            fprintf(stderr, "  in row %zu: %s %s\n", i, rows[i].a, rows[i].b);
    }
}

static void test_named(void)
{
    struct gm_op transpose = make(GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "30x40", NULL);
    struct gm_op flat = make(GM_OP_TRANSPOSE, GM_F32, GM_COL_MAJOR, "30x40", NULL);
    struct gm_op product = make(GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "30x40", "40x50");
    const struct gm_variant *variant = NULL;
    struct gm_error err = {.detail = ""};

    /* One name, two operations: the operation's own. */
    CHECK_STATUS(gm_select(&transpose, &cpu, "naive", &variant, &err), GM_OK, &err);
    CHECK(variant && variant->op == GM_OP_TRANSPOSE);
    CHECK_STATUS(gm_select(&product, &cpu, "naive", &variant, &err), GM_OK, &err);
    CHECK(variant && variant->op == GM_OP_MATMUL);
    /* A copy where it computes the same. */
    CHECK_STATUS(gm_select(&flat, &cpu, "memcpy", &variant, &err), GM_OK, &err);
    CHECK(variant && variant->op == GM_OP_COPY);
    CHECK_STATUS(gm_select(&flat, &cpu, "blocked", &variant, &err), GM_OK, &err);
    CHECK(variant && variant->op == GM_OP_TRANSPOSE);
}

static void test_refused(void)
{
    static const struct {
        enum gm_op_kind kind;
        const char *a, *b, *name;
        const char *says[3];
    } rows[] = {
        {GM_OP_TRANSPOSE,
         "3x4",
         NULL,
         "blokced",
         {"no kernel \"blokced\"", "did you mean \"blocked\"", "naive and blocked"}},
        {GM_OP_TRANSPOSE,
         "3x4",
         NULL,
         "wmma",
         {"no kernel \"wmma\"", "transpose on cpu", "naive and blocked"}},
        /* of the right operation, on another device */
        {GM_OP_TRANSPOSE,
         "3x4",
         NULL,
         "padded",
         {"does not run on device cpu", "naive and blocked", NULL}},
        {GM_OP_TRANSPOSE, "3x4", NULL, "Naive", {"did you mean \"naive\"", NULL, NULL}},
        {GM_OP_TRANSPOSE,
         "3x4",
         NULL,
         "memcpy",
         {"\"memcpy\" is a copy", "naive and blocked", NULL}},
        {GM_OP_TRANSPOSE, "3x4", NULL, "openblas", {"\"openblas\"", "naive and blocked", NULL}},
        {GM_OP_MATMUL, "30x40", "40x50", "skinny", {"30x50", "blocked", NULL}},
        {GM_OP_MATMUL, "30x40", "40x50", "x", {"no kernel \"x\"", "matmul on cpu", NULL}},
        {GM_OP_ADD, "30x40", "30x40", "Vector", {"did you mean \"vector\"", NULL, NULL}},
        {GM_OP_ADD, "3x4", "3x4", "blocked", {"\"blocked\" is a", "direct and vector", NULL}},
        {GM_OP_ADD, "3x4", "3x4", "memcpy", {"\"memcpy\" is a copy", "direct and vector", NULL}},
        {GM_OP_FLIP, "3x4", NULL, "direct", {"\"direct\" is an add", "flip on cpu can run", NULL}},
        {GM_OP_FLIP, "3x4", NULL, "stream", {"\"stream\" is a copy", "naive and vector", NULL}},
        {GM_OP_MATMUL,
         "30x40",
         "40x50",
         "a name that is longer than any kernel's name ever will be",
         {"no kernel", "blocked", NULL}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gm_op op = make(rows[i].kind, GM_F32, GM_ROW_MAJOR, rows[i].a, rows[i].b);
        const struct gm_variant *variant = NULL;
        struct gm_error err = {.detail = ""};
        CHECK_STATUS(gm_select(&op, &cpu, rows[i].name, &variant, &err), GM_KERNEL_UNAVAILABLE,
                     &err);
        CHECK(variant == NULL);
        for (int j = 0; j < 3 && rows[i].says[j]; j++) {
            if (!CHECK(strstr(err.detail, rows[i].says[j]) != NULL))
                fprintf(stderr, "  \"%s\" is not in \"%s\"\n", rows[i].says[j], err.detail);
        }
        CHECK_EQ(gm_select(&op, &cpu, rows[i].name, &variant, NULL), GM_KERNEL_UNAVAILABLE);
    }
    /* A correct name is not the answer to a misspelling of it that has no similarity. */
    struct gm_op op = make(GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "3x4", NULL);
    const struct gm_variant *variant = NULL;
    struct gm_error err;
    gm_select(&op, &cpu, "wmma", &variant, &err);
    CHECK(strstr(err.detail, "did you mean") == NULL);
}

static bool has_gpu_kernels(void)
{
    const struct gm_variant *row;

    for (size_t i = 0; (row = gm_variant_at(i)); i++) {
        if (row->run[GM_DEVICE_CUDA])
            return true;
    }
    return false;
}

/* A device that no row of this build is for. */
static void test_other_device(void)
{
    const struct gm_device_facts cuda = {.kind = GM_DEVICE_CUDA};
    struct gm_op op = make(GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "3x4", NULL);
    const struct gm_variant *variant = NULL;
    struct gm_error err = {.detail = ""};

    if (has_gpu_kernels())
        return; /* nothing to see here */
    CHECK_STATUS(gm_select(&op, &cuda, NULL, &variant, &err), GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "transpose of f32 on cuda"));
    CHECK_STATUS(gm_select(&op, &cuda, "naive", &variant, &err), GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "does not run on device cuda"));
    CHECK(variant == NULL);
}

/* Tiles are counted by 32 bits, eight rows of them at a time. */
static void test_most_tiles(void)
{
    const struct gm_device_facts sim = {.kind = GM_DEVICE_SIM, .gpu = gm_gpu_find("H200")};
    struct gm_op most = make(GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "1x0", "0x4294967296");
    struct gm_op more = make(GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "1x0", "0x4294967297");
    const struct gm_variant *variant = NULL;
    struct gm_error err = {.detail = ""};

    CHECK_STATUS(gm_select(&most, &sim, "multistage_tuned", &variant, &err), GM_OK, &err);
    CHECK_STATUS(gm_select(&more, &sim, "multistage_tuned", &variant, &err), GM_KERNEL_UNAVAILABLE,
                 &err);
    CHECK(strstr(err.detail, "at most 2^28 tiles of 16 x 16"));
}

/* k-tiles are counted by 32 bits. Of k rows of one element, since others are too long before. */
static void test_most_steps(void)
{
    const struct gm_device_facts sim = {.kind = GM_DEVICE_SIM, .gpu = gm_gpu_find("H200")};
    struct gm_op op = make(GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "1x1", "1x1");
    const struct gm_variant *variant = NULL;
    struct gm_error err = {.detail = ""};

    op.transa = true;
    op.operand[0].rows = op.operand[1].rows = (uint64_t)1 << 34;
    CHECK_STATUS(gm_select(&op, &sim, "multistage", &variant, &err), GM_OK, &err);
    op.operand[0].rows = ++op.operand[1].rows;
    CHECK_STATUS(gm_select(&op, &sim, "multistage", &variant, &err), GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "k of at most 17179869184"));
}

/* Rows for GPUs, where this build has them: cuBLAS's are there only with the library. What `auto`
 * takes is test_choose.c's to say. */
static void test_cuda(void)
{
    struct gm_device_facts cuda = {.kind = GM_DEVICE_CUDA};
    struct gm_op op = make(GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "1x60", "60x80");
    struct gm_op empty = make(GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "300x0", "0x500");
    struct gm_op stack = make(GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "2x3x4", NULL);
    const struct gm_variant *variant = NULL;
    struct gm_error err = {.detail = ""};

    if (gm_select(&op, &cuda, NULL, &variant, &err) != GM_OK)
        return; /* it has none */
    CHECK_STATUS(gm_select(&op, &cuda, "cublas", &variant, &err), GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "needs cuBLAS, which this machine does not have"));
    cuda.tuned_blas = true;
    CHECK_STATUS(gm_select(&op, &cuda, "cublas", &variant, &err), GM_OK, &err);
    CHECK_STATUS(gm_select(&empty, &cuda, NULL, &variant, &err), GM_OK, &err);
    CHECK_STATUS(gm_select(&stack, &cuda, NULL, &variant, &err), GM_OK, &err);
    CHECK_STATUS(gm_select(&stack, &cuda, "cublas", &variant, &err), GM_KERNEL_UNAVAILABLE, &err);
    CHECK(strstr(err.detail, "single matrices"));
}

/* Small jobs, on a device that gathers them. */
static void test_cuda_small_jobs(void)
{
    static const struct {
        enum gm_op_kind kind;
        enum gm_dtype dtype;
        enum gm_layout layout;
        const char *a, *b;
        bool grouped;
    } cases[] = {
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "64x64", "64x64", true},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "1x60", "60x80", true},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "160x160", "160x160", true},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "192x192", "192x192", true},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "256x256", "256x256", false},
        {GM_OP_MATMUL, GM_F64, GM_ROW_MAJOR, "128x128", "128x128", true},
        {GM_OP_MATMUL, GM_F64, GM_ROW_MAJOR, "160x160", "160x160", true},
        {GM_OP_MATMUL, GM_F64, GM_ROW_MAJOR, "192x192", "192x192", false},
        {GM_OP_MATMUL, GM_BF16, GM_ROW_MAJOR, "100x200", "200x50", true},
        {GM_OP_MATMUL, GM_I64, GM_ROW_MAJOR, "8x40x40", "8x40x40", true},
        {GM_OP_MATMUL, GM_F32, GM_COL_MAJOR, "8x40x40", "8x40x40", false},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "400x40x40", "400x40x40", false},
        {GM_OP_MATMUL, GM_F32, GM_ROW_MAJOR, "4x2000", "2000x4", false}, /* a long sum */
        {GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "256x256", NULL, true},
        {GM_OP_TRANSPOSE, GM_F32, GM_ROW_MAJOR, "512x512", NULL, true},
        {GM_OP_TRANSPOSE, GM_U8, GM_ROW_MAJOR, "99x99", NULL, true},
        {GM_OP_TRANSPOSE, GM_U8, GM_ROW_MAJOR, "700x700", NULL, false},
        {GM_OP_TRANSPOSE, GM_F32, GM_COL_MAJOR, "64x64", NULL, false}, /* a copy */
        {GM_OP_ADD, GM_F16, GM_ROW_MAJOR, "300x301", "300x301", true},
        {GM_OP_ADD, GM_F16, GM_ROW_MAJOR, "300x301", "1x301", false}, /* a broadcast */
        {GM_OP_FLIP, GM_C128, GM_ROW_MAJOR, "100x100", NULL, true},
    };
    struct gm_device_facts cuda = {.kind = GM_DEVICE_CUDA, .tuned_blas = true, .batch_max = 48};
    const struct gm_variant *variant = NULL;
    struct gm_error err = {.detail = ""};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_op op =
            make(cases[i].kind, cases[i].dtype, cases[i].layout, cases[i].a, cases[i].b);
        cuda.batch_max = 48;
        if (gm_select(&op, &cuda, NULL, &variant, &err) != GM_OK)
            return; /* this build has none */
        if (!CHECK_EQ(strcmp(variant->name, "grouped") == 0, cases[i].grouped))
            fprintf(stderr, "  %s %s\n", gm_op_name(cases[i].kind), cases[i].a);
        cuda.batch_max = 1;
        CHECK_STATUS(gm_select(&op, &cuda, NULL, &variant, &err), GM_OK, &err);
        CHECK(strcmp(variant->name, "grouped") != 0);
    }
}

int main(void)
{
    test_auto();
    test_tuned_blas();
    test_named();
    test_refused();
    test_other_device();
    test_cuda();
    test_cuda_small_jobs();
    test_most_tiles();
    test_most_steps();
    return check_report();
}
