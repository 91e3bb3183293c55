/*
 * test_cpu_isa.c - the kernels that exist for several instruction sets, on each that this
 * processor has: the backend alone would only ever run the best.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/variant.h"
#include "test_cpu_case.h"

gm_kernel_fn gm_cpu_matmul_blocked, gm_cpu_matmul_skinny, gm_cpu_add_vector, gm_cpu_flip_vector;
gm_accepts_fn gm_cpu_skinny_accepts;

static struct gm_op product(enum gm_dtype dtype, bool transa, bool transb, uint64_t m, uint64_t k,
                            uint64_t n)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {
        {dtype, GM_ROW_MAJOR, false, 1, transa ? k : m, transa ? m : k, NULL},
        {dtype, GM_ROW_MAJOR, false, 1, transb ? n : k, transb ? k : n, NULL},
    };
    const bool present[GM_OPERANDS_MAX] = {true, true};
    struct gm_op_options options = {.transa = transa, .transb = transb};
    struct gm_error err = {.detail = ""};
    struct gm_op op = {0};

    CHECK_STATUS(gm_op_init(&op, GM_OP_MATMUL, &options, operand, present, &err), GM_OK, &err);
    return op;
}

/* A sum of a stack and what is repeated for it, or a flip. */
static struct gm_op plain(enum gm_op_kind kind, enum gm_dtype dtype, const uint64_t shape[3],
                          unsigned ones)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {
        {dtype, GM_ROW_MAJOR, true, shape[0], shape[1], shape[2], NULL},
        {dtype, GM_ROW_MAJOR, true, ones & 1 ? 1 : shape[0], ones & 2 ? 1 : shape[1],
         ones & 4 ? 1 : shape[2], NULL},
    };
    const bool present[GM_OPERANDS_MAX] = {true, kind == GM_OP_ADD};
    struct gm_op_options options = {0};
    struct gm_error err = {.detail = ""};
    struct gm_op op = {0};

    CHECK_STATUS(gm_op_init(&op, kind, &options, operand, present, &err), GM_OK, &err);
    return op;
}

static const struct {
    enum gm_op_kind op;
    gm_kernel_fn *run;
    gm_accepts_fn *accepts;
} kernels[] = {
    {GM_OP_MATMUL, gm_cpu_matmul_blocked, gm_accepts_any},
    {GM_OP_MATMUL, gm_cpu_matmul_skinny, gm_cpu_skinny_accepts},
    {GM_OP_ADD, gm_cpu_add_vector, gm_accepts_any},
    {GM_OP_FLIP, gm_cpu_flip_vector, gm_accepts_any},
};
#define KERNELS (sizeof(kernels) / sizeof(kernels[0]))

static void try_all(struct gm_pool *pool, const struct gm_op *op, uint64_t *random)
{
    struct kernel_case made = case_make(op, random);
    struct gm_device_facts facts = {.kind = GM_DEVICE_CPU};
    struct gm_reference reference;
    struct gm_error err = {.detail = ""};
    atomic_bool never = false;
    char text[256];

    case_seal(&made);
    CHECK_STATUS(gm_reference_make(&made.op, &reference, &err), GM_OK, &err);
    for (size_t kernel = 0; kernel < KERNELS; kernel++) {
        if (kernels[kernel].op != op->kind || kernels[kernel].accepts(op, &facts, NULL) != GM_OK)
            continue;
        for (int isa = 0; isa <= (int)gm_isa_best(); isa++) {
            struct gm_exec exec = {pool, &never, (enum gm_isa)isa};
            case_poison(&made);
            CHECK_EQ(kernels[kernel].run(&made.op, &exec), GM_OK);
            struct gm_deviation deviation =
                gm_reference_compare(&reference, &made.op, made.op.result.data);
            if (!CHECK_EQ(deviation.wrong, 0) || !CHECK(case_intact(&made)))
                fprintf(stderr, "  %s by kernel %zu with %s: first wrong at %llu\n",
                        case_text(op, text), kernel, gm_isa_name((enum gm_isa)isa),
                        (unsigned long long)deviation.first);
        }
    }
    gm_reference_free(&reference);
    case_free(&made);
}

/* A kernel that is told to stop before it begins says so. */
static void test_stopped(struct gm_pool *pool, struct gm_op op)
{
    const struct gm_variant *variant;
    uint64_t random = check_seed();
    struct kernel_case made = case_make(&op, &random);
    atomic_bool stop = true;
    struct gm_exec exec = {pool, &stop, gm_isa_best()};

    case_seal(&made);
    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (variant->op == op.kind && variant->run[GM_DEVICE_CPU])
            CHECK_EQ(variant->run[GM_DEVICE_CPU](&made.op, &exec), GM_CANCELLED);
    }
    CHECK(case_intact(&made));
    case_free(&made);
}

/* Runs that end within a vector, and beyond one; rows of each number of elements that has a loop
 * of its own. */
static void test_plain(struct gm_pool *pool, uint64_t *random)
{
    static const uint64_t shapes[][3] = {
        {1, 1, 1},   {1, 1, 7},   {1, 1, 8},   {1, 1, 15},  {1, 1, 16},   {1, 1, 17},
        {1, 3, 31},  {1, 3, 32},  {1, 3, 33},  {1, 2, 63},  {1, 2, 64},   {1, 2, 65},
        {2, 50, 1},  {2, 50, 2},  {2, 50, 3},  {2, 50, 4},  {2, 50, 5},   {3, 9, 127},
        {2, 3, 129}, {1, 1, 255}, {1, 1, 257}, {1, 2, 700}, {1, 1, 9001}, {1, 300, 900},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int dtype = GM_DTYPE_NONE + 1; dtype < GM_DTYPE_COUNT; dtype++) {
            struct gm_op op = plain(GM_OP_FLIP, (enum gm_dtype)dtype, shapes[i], 0);
            try_all(pool, &op, random);
            for (unsigned ones = 0; ones < 8 && gm_dtype_arithmetic(op.result.dtype); ones++) {
                op = plain(GM_OP_ADD, (enum gm_dtype)dtype, shapes[i], ones);
                try_all(pool, &op, random);
            }
        }
    }
}

int main(void)
{
    static const uint64_t shapes[][3] = {
        {1, 1, 1},    {3, 2, 5},     {4, 4, 8},    {5, 7, 9},      {12, 16, 24}, {13, 17, 25},
        {23, 64, 47}, {48, 255, 33}, {60, 257, 7}, {241, 30, 257}, {1, 300, 70}, {70, 300, 1},
        {2, 97, 600}, {600, 97, 3},  {8, 33, 40},  {7, 2050, 9},   {32, 64, 64}, {44, 256, 64},
    };
    static const enum gm_dtype types[] = {GM_F16, GM_BF16, GM_F32, GM_F64, GM_I32, GM_I64};
    uint64_t random = check_seed();
    struct gm_pool *pool = NULL;
    struct gm_error err = {.detail = ""};

    if (!CHECK_STATUS(gm_pool_open(2, GM_CPU_SCRATCH, &pool, &err), GM_OK, &err))
        return check_report();
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < 6; type++) {
            for (int trans = 0; trans < 4; trans++) {
                struct gm_op op = product(types[type], trans & 1, trans & 2, shapes[i][0],
                                          shapes[i][1], shapes[i][2]);
                try_all(pool, &op, &random);
            }
        }
    }
    test_plain(pool, &random);
    const uint64_t shape[3] = {2, 3, 4};
    test_stopped(pool, product(GM_F32, false, false, 8, 5, 6));
    test_stopped(pool, plain(GM_OP_ADD, GM_F32, shape, 0));
    test_stopped(pool, plain(GM_OP_FLIP, GM_U8, shape, 0));
    gm_pool_close(pool);
    return check_report();
}
