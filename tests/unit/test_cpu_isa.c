/*
 * test_cpu_isa.c - the kernels that exist for several instruction sets, on each that this
 * processor has: the backend alone would only ever run the best.
 */
#include "kernels/cpu/exec.h"
#include "kernels/rows.h"
#include "test_cpu_case.h"

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

static void try_all(struct gm_pool *pool, const struct gm_op *op, uint64_t *random)
{
    gm_kernel_fn *const kernels[] = {gm_cpu_matmul_blocked, gm_cpu_matmul_skinny};
    struct kernel_case made = case_make(op, random);
    struct gm_device_facts facts = {.kind = GM_DEVICE_CPU};
    struct gm_reference reference;
    struct gm_error err = {.detail = ""};
    atomic_bool never = false;
    char text[256];

    case_seal(&made);
    CHECK_STATUS(gm_reference_make(&made.op, &reference, &err), GM_OK, &err);
    for (int kernel = 0; kernel < 2; kernel++) {
        if (kernel == 1 && gm_cpu_skinny_accepts(op, &facts, NULL) != GM_OK)
            continue;
        for (int isa = 0; isa <= (int)gm_isa_best(); isa++) {
            struct gm_exec exec = {pool, &never, (enum gm_isa)isa};
            case_poison(&made);
            CHECK_EQ(kernels[kernel](&made.op, &exec), GM_OK);
            struct gm_deviation deviation =
                gm_reference_compare(&reference, &made.op, made.op.result.data);
            if (!CHECK_EQ(deviation.wrong, 0) || !CHECK(case_intact(&made)))
                fprintf(stderr, "  %s by kernel %d with %s: first wrong at %llu\n",
                        case_text(op, text), kernel, gm_isa_name((enum gm_isa)isa),
                        (unsigned long long)deviation.first);
        }
    }
    gm_reference_free(&reference);
    case_free(&made);
}

/* A kernel that is told to stop before it begins says so. */
static void test_stopped(struct gm_pool *pool)
{
    const struct gm_variant *variant;
    struct gm_op op = product(GM_F32, false, false, 8, 5, 6);
    uint64_t random = check_seed();
    struct kernel_case made = case_make(&op, &random);
    atomic_bool stop = true;
    struct gm_exec exec = {pool, &stop, gm_isa_best()};

    case_seal(&made);
    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (variant->op == GM_OP_MATMUL && (variant->devices & GM_ON_CPU))
            CHECK_EQ(variant->run(&made.op, &exec), GM_CANCELLED);
    }
    CHECK(case_intact(&made));
    case_free(&made);
}

int main(void)
{
    static const uint64_t shapes[][3] = {
        {1, 1, 1},    {3, 2, 5},     {4, 4, 8},    {5, 7, 9},      {12, 16, 24}, {13, 17, 25},
        {23, 64, 47}, {48, 255, 33}, {60, 257, 7}, {241, 30, 257}, {1, 300, 70}, {70, 300, 1},
        {2, 97, 600}, {600, 97, 3},  {8, 33, 40},  {7, 2050, 9},
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
    test_stopped(pool);
    gm_pool_close(pool);
    return check_report();
}
