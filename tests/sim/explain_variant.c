/* explain_variant.c - operations without data, and what the simulator says of them. */
#include "explain_variant.h"

#include <math.h>

static struct gm_matrix matrix_of(enum gm_dtype dtype, uint64_t rows, uint64_t cols)
{
    return (struct gm_matrix){dtype, GM_ROW_MAJOR, false, 1, rows, cols, NULL};
}

static struct gm_op make(enum gm_op_kind kind, const struct gm_op_options *options,
                         struct gm_matrix a, const struct gm_matrix *b)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {a};
    const bool present[GM_OPERANDS_MAX] = {true, b != NULL};
    struct gm_error err = {.detail = ""};
    struct gm_op op = {0};

    if (b)
        operand[1] = *b;
    CHECK_STATUS(gm_op_init(&op, kind, options, operand, present, &err), GM_OK, &err);
    return op;
}

struct gm_op move_of(enum gm_op_kind kind, enum gm_dtype dtype, uint64_t rows, uint64_t cols)
{
    struct gm_op_options options = {0};

    return make(kind, &options, matrix_of(dtype, rows, cols), NULL);
}

struct gm_op sum_of(enum gm_dtype dtype, uint64_t rows, uint64_t cols, uint64_t rows_b,
                    uint64_t cols_b)
{
    struct gm_op_options options = {0};
    struct gm_matrix b = matrix_of(dtype, rows_b, cols_b);

    return make(GM_OP_ADD, &options, matrix_of(dtype, rows, cols), &b);
}

struct gm_op product_of(enum gm_dtype dtype, uint64_t m, uint64_t k, uint64_t n, bool transa,
                        bool transb)
{
    struct gm_op_options options = {.transa = transa, .transb = transb};
    struct gm_matrix a = transa ? matrix_of(dtype, k, m) : matrix_of(dtype, m, k);
    struct gm_matrix b = transb ? matrix_of(dtype, n, k) : matrix_of(dtype, k, n);

    return make(GM_OP_MATMUL, &options, a, &b);
}

struct gm_op products_of(enum gm_dtype dtype, uint64_t batch, uint64_t m, uint64_t k, uint64_t n)
{
    struct gm_op_options options = {0};
    struct gm_matrix a = {dtype, GM_ROW_MAJOR, true, batch, m, k, NULL};
    struct gm_matrix b = {dtype, GM_ROW_MAJOR, true, batch, k, n, NULL};

    return make(GM_OP_MATMUL, &options, a, &b);
}

const struct gm_variant *variant_of(enum gm_op_kind kind, const char *name)
{
    const struct gm_variant *row;

    for (size_t i = 0; (row = gm_variant_at(i)); i++)
        if (row->op == kind && row->run[GM_DEVICE_SIM] && strcmp(row->name, name) == 0)
            return row;
    CHECK_STR("no such variant", name);
    exit(1);
}

bool explain(void *sim, const struct gm_op *op, const struct gm_variant *variant,
             struct gm_access_report *ret)
{
    struct gm_task task = {.op = *op, .variant = variant, .repeat = 1, .report = ret};

    CHECK_EQ(gm_backend_sim.run(sim, 0, 0, (struct gm_task *[]){&task}, 1), GM_OK);
    return CHECK_STATUS(task.status, GM_OK, &task.error);
}

bool run_whole(void *sim, const struct gm_op *op, const struct gm_variant *variant,
               struct gm_access_totals *ret)
{
    struct gm_task task = {.op = *op, .variant = variant, .repeat = 1};
    struct gm_matrix *matrix[GM_OPERANDS_MAX + 1] = {&task.op.result};
    unsigned count = 1;

    for (unsigned i = 0; i < op->operands; i++)
        matrix[count++] = &task.op.operand[i];
    for (unsigned i = 0; i < count; i++)
        matrix[i]->data = calloc(1, gm_matrix_bytes(matrix[i]) + 64);
    CHECK_EQ(gm_backend_sim.run(sim, 0, 0, (struct gm_task *[]){&task}, 1), GM_OK);
    for (unsigned i = 0; i < count; i++)
        free(matrix[i]->data);
    *ret = task.accesses;
    return CHECK_STATUS(task.status, GM_OK, &task.error) & CHECK(task.has_accesses);
}

bool totals_equal(const struct gm_access_totals *actual, const struct gm_access_totals *expected,
                  double off)
{
    bool equal = true;

    for (int kind = 0; kind < GM_ACCESS_KINDS; kind++) {
        const struct gm_access_sums *a = &actual->kind[kind], *e = &expected->kind[kind];
        const double have[] = {a->requests,    a->lanes, a->bytes_useful,
                               a->bytes_moved, a->units, a->units_ideal};
        const double want[] = {e->requests,    e->lanes, e->bytes_useful,
                               e->bytes_moved, e->units, e->units_ideal};
        bool here = true;
        for (int i = 0; i < 6; i++)
            here &= fabs(have[i] - want[i]) <= off * fmax(have[i], want[i]);
        if (!here)
            fprintf(stderr,
                    "  %s: %.10g requests, %.10g lanes, %.10g units, %.10g ideal,"
                    " not %.10g, %.10g, %.10g, %.10g\n",
                    gm_access_name((enum gm_access_kind)kind), a->requests, a->lanes, a->units,
                    a->units_ideal, e->requests, e->lanes, e->units, e->units_ideal);
        equal &= here;
    }
    return equal;
}
