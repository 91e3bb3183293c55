/*
 * test_groups.c - groups of tasks by the variants `grouped`, and rows that `skinny` multiplies by
 * one matrix: each result has the bits that it has alone, whatever the company.
 *
 *   test_groups [sim | cuda]
 *
 * 77 where there is no such device. Lone results are compared with the oracle's.
 */
#include "kernels/backend.h"
#include "kernels/choose/choose.h"
#include "kernels/cpu/reference.h"
#include "kernels/layout.h"
#include "tests/unit/operands.h"

#include <math.h>

#define SKIPPED 77
#define TASKS 24u
#define POISON 0xFF

static const struct gm_backend *backend;
static const struct gm_device_facts *facts;
static void *context;
static uint64_t random_state;

struct member {
    struct gm_task task;
    struct gm_buffer buffer[GM_OPERANDS_MAX + 1];
    void *alone; /* the bits of the result of the task by itself */
};

struct wanted {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    uint64_t batch, m, k, n; /* of a product; others are m x n */
    unsigned trans;          /* 1: a, 2: b */
    bool has_c, shares_b;
    double alpha;
};

static bool make(const struct wanted *wanted, struct member *ret)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {true, gm_op_operands_min(wanted->kind) == 2, wanted->has_c};
    struct gm_op_options options = {.precision = GM_PRECISION_FP32};
    struct gm_error err = {.detail = ""};
    bool product = wanted->kind == GM_OP_MATMUL;
    uint64_t a[2] = {wanted->m, product ? wanted->k : wanted->n};
    uint64_t b[2] = {product ? wanted->k : wanted->m, wanted->n};
    enum gm_status status = GM_OK;

    memset(ret, 0, sizeof(*ret));
    options.transa = wanted->trans & 1;
    options.transb = wanted->trans & 2;
    if (product && wanted->alpha != 1) {
        options.has_alpha = true;
        options.alpha = (struct gm_scalar){wanted->alpha, (int64_t)wanted->alpha, true};
        options.alpha.is_integer = wanted->alpha == floor(wanted->alpha);
    }
    for (unsigned i = 0; i < GM_OPERANDS_MAX && status == GM_OK; i++) {
        uint64_t rows = i == 1 ? b[0] : a[0], cols = i == 0 ? a[1] : b[1];
        if (i < 2 && wanted->trans >> i & 1) {
            uint64_t other = rows;
            rows = cols;
            cols = other;
        }
        struct gm_shape shape = {3, {i == 1 && wanted->shares_b ? 1 : wanted->batch, rows, cols}};
        if (present[i])
            status = gm_matrix_init(&operand[i], wanted->dtype, GM_ROW_MAJOR, &shape, &err);
    }
    struct gm_op *op = &ret->task.op;
    if (status == GM_OK)
        status = gm_op_init(op, wanted->kind, &options, operand, present, &err);
    if (status == GM_OK)
        status = gm_select(op, facts, "grouped", &ret->task.variant, &err);
    ret->task.repeat = 1;
    for (unsigned i = 0; i <= op->operands && status == GM_OK; i++) {
        struct gm_matrix *x = i < op->operands ? &op->operand[i] : &op->result;
        status = backend->buffer_get(context, gm_matrix_bytes(x), &ret->buffer[i], &err);
        if (status != GM_OK)
            break;
        x->data = ret->buffer[i].data;
        if (i < op->operands)
            random_fill(&random_state, x->dtype, x->data, gm_matrix_elements(x));
    }
    return CHECK_STATUS(status, GM_OK, &err);
}

static void put(struct member *member)
{
    for (unsigned i = 0; i <= GM_OPERANDS_MAX; i++)
        backend->buffer_put(context, &member->buffer[i]);
    free(member->alone);
}

static void poison(struct member *member)
{
    memset(member->task.op.result.data, POISON, gm_matrix_bytes(&member->task.op.result));
}

/* Runs the task by itself, proves the result, and keeps its bits. */
static void run_alone(struct member *member)
{
    struct gm_op *op = &member->task.op;
    uint64_t bytes = gm_matrix_bytes(&op->result);
    struct gm_reference reference = {0};
    struct gm_error err = {.detail = ""};

    poison(member);
    CHECK_EQ(backend->run(context, 0, 0, (struct gm_task *[]){&member->task}, 1), GM_OK);
    CHECK_STATUS(member->task.status, GM_OK, &member->task.error);
    if (CHECK_STATUS(gm_reference_make(op, &reference, &err), GM_OK, &err))
        CHECK_EQ(gm_reference_compare(&reference, op, op->result.data).wrong, 0);
    gm_reference_free(&reference);
    member->alone = malloc(bytes + 1);
    if (!member->alone)
        abort();
    memcpy(member->alone, op->result.data, bytes);
}

static bool is_as_alone(const struct member *member)
{
    const struct gm_matrix *result = &member->task.op.result;

    return memcmp(member->alone, result->data, gm_matrix_bytes(result)) == 0;
}

/* Random groups of them, as large as one launch may be. */
static void run_groups(struct member *member, unsigned count, unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        struct gm_task *task[64];
        unsigned n = 0, first = (unsigned)random_below(&random_state, count);
        uint64_t bytes = 0;
        for (unsigned i = 0; i < count; i++) {
            struct gm_task *next = &member[(first + i) % count].task;
            uint64_t more = gm_op_bytes_min(&next->op);
            if (n == facts->batch_max || n == 64 || bytes + more > facts->batch_bytes)
                continue;
            CHECK(gm_group_key(next) != 0 && gm_group_key(next) == gm_group_key(&member->task));
            poison(&member[(first + i) % count]);
            bytes += more;
            task[n++] = next;
        }
        CHECK(n > 1);
        CHECK_EQ(backend->run(context, 0, 0, task, n), GM_OK);
        for (unsigned i = 0; i < count; i++) {
            bool ran = false;
            for (unsigned j = 0; j < n; j++)
                ran = ran || task[j] == &member[i].task;
            if (!ran)
                continue;
            CHECK_STATUS(member[i].task.status, GM_OK, &member[i].task.error);
            CHECK(is_as_alone(&member[i]));
        }
    }
}

static uint64_t a_side(void)
{
    static const uint64_t sides[] = {1, 3, 8, 17, 31, 33, 40, 64, 65, 100};

    return sides[random_below(&random_state, facts->kind == GM_DEVICE_SIM ? 7 : 10)];
}

static void test_type(enum gm_op_kind kind, enum gm_dtype dtype)
{
    struct member member[TASKS];
    unsigned count = facts->kind == GM_DEVICE_SIM ? TASKS / 2 : TASKS, made = 0;

    for (; made < count; made++) {
        struct wanted wanted = {.kind = kind, .dtype = dtype, .alpha = 1};
        wanted.batch = random_below(&random_state, 4) == 0 ? 3 : 1;
        wanted.m = a_side();
        wanted.k = a_side();
        wanted.n = a_side();
        if (made == 1) /* an empty one */
            wanted.m = 0;
        if (kind == GM_OP_MATMUL) {
            wanted.trans = (unsigned)random_below(&random_state, 4);
            wanted.has_c = random_below(&random_state, 2);
            wanted.shares_b = random_below(&random_state, 2);
            wanted.alpha = made % 5 == 2 ? 0 : made % 3 == 1 ? -3 : 1;
            if (made == 3)
                wanted.k = 0;
        }
        if (!make(&wanted, &member[made]))
            break;
        run_alone(&member[made]);
    }
    if (CHECK_EQ(made, count))
        run_groups(member, count, facts->kind == GM_DEVICE_SIM ? 2 : 10);
    for (unsigned i = 0; i < made; i++)
        put(&member[i]);
}

/* Moves on the simulator, which takes its time: one type of each size. */
static bool is_due(enum gm_op_kind kind, enum gm_dtype dtype)
{
    if (gm_op_computes(kind))
        return GM_TYPES_ARITHMETIC & GM_DTYPE_BIT(dtype);
    return facts->kind != GM_DEVICE_SIM || is_first_of_its_size(dtype);
}

static void test_types(void)
{
    static const enum gm_op_kind kinds[] = {GM_OP_MATMUL, GM_OP_TRANSPOSE, GM_OP_ADD, GM_OP_FLIP};

    for (unsigned i = 0; i < 4; i++)
        for (enum gm_dtype dtype = GM_DTYPE_NONE + 1; dtype < GM_DTYPE_COUNT; dtype++)
            if (is_due(kinds[i], dtype))
                test_type(kinds[i], dtype);
}

/* Tasks that cannot run fail alone: one that was told to stop, one that the variant refuses. */
static void test_bad_tasks(void)
{
    const struct wanted wanted = {GM_OP_MATMUL, GM_F32, 1, 20, 30, 10, 0, true, false, 1};
    struct member member[4];

    for (unsigned i = 0; i < 4; i++) {
        if (!make(&wanted, &member[i]))
            return;
        run_alone(&member[i]);
        poison(&member[i]);
    }
    atomic_store(&member[1].task.stop, true);
    member[2].task.op.operand[2].layout = GM_COL_MAJOR;
    CHECK_EQ(backend->run(context, 0, 0,
                          (struct gm_task *[]){&member[0].task, &member[1].task, &member[2].task,
                                               &member[3].task},
                          4),
             GM_OK);
    CHECK_EQ(member[1].task.status, GM_CANCELLED);
    CHECK_EQ(member[2].task.status, GM_KERNEL_UNAVAILABLE);
    CHECK(strstr(member[2].task.error.detail, "row-major"));
    for (unsigned i = 0; i < 4; i += 3) {
        CHECK_STATUS(member[i].task.status, GM_OK, &member[i].task.error);
        CHECK(is_as_alone(&member[i]));
    }
    for (unsigned i = 0; i < 4; i++)
        put(&member[i]);
}

/* What may not share a launch has no key, or another. */
static void test_keys(void)
{
    const struct wanted f32 = {GM_OP_ADD, GM_F32, 1, 20, 0, 10, 0, false, false, 1};
    struct wanted f64 = f32, flip = f32;
    struct gm_access_report report = {.launches = 0};
    struct member member[3];

    f64.dtype = GM_F64;
    flip.kind = GM_OP_FLIP;
    if (!make(&f32, &member[0]) || !make(&f64, &member[1]) || !make(&flip, &member[2]))
        return;
    uint64_t key = gm_group_key(&member[0].task);
    CHECK(key != 0);
    CHECK(gm_group_key(&member[1].task) != 0 && gm_group_key(&member[1].task) != key);
    CHECK(gm_group_key(&member[2].task) != 0 && gm_group_key(&member[2].task) != key);
    member[0].task.repeat = 2;
    CHECK_EQ(gm_group_key(&member[0].task), 0);
    member[0].task.repeat = 1;
    member[0].task.report = &report;
    CHECK_EQ(gm_group_key(&member[0].task), 0);
    member[0].task.report = NULL;
    CHECK_EQ(gm_select(&member[0].task.op, facts, "direct", &member[0].task.variant, NULL), GM_OK);
    CHECK_EQ(gm_group_key(&member[0].task), 0);
    for (unsigned i = 0; i < 3; i++)
        put(&member[i]);
}

/* A GPU copies nothing, and repeats where matrices are; the simulator copies as for others. */
static void test_times(void)
{
    const struct wanted wanted = {GM_OP_TRANSPOSE, GM_F32, 1, 50, 0, 70, 0, false, false, 1};
    struct member member;

    if (facts->kind == GM_DEVICE_SIM || !make(&wanted, &member))
        return;
    run_alone(&member);
    for (unsigned repeat = 1; repeat <= 5; repeat += 4) {
        poison(&member);
        member.task.repeat = repeat;
        CHECK_EQ(backend->run(context, 0, 0, (struct gm_task *[]){&member.task}, 1), GM_OK);
        CHECK_STATUS(member.task.status, GM_OK, &member.task.error);
        CHECK(is_as_alone(&member));
        CHECK(member.task.times.h2d < 0 && member.task.times.d2h < 0);
        CHECK(member.task.times.prepare < 0 && member.task.times.kernel > 0);
    }
    put(&member);
}

/* ---- Products of one row by the same matrix ---- */

struct rows {
    enum gm_dtype dtype;
    uint64_t k, n;
    bool transposed, columns; /* the matrix; it is a, and multiplies columns */
    double alpha;
};

/* Memory of the rows' vectors, one after the other, of their results, and of the matrix, which on a
 * GPU is the device's. */
struct row_memory {
    struct gm_buffer vectors, results, matrix;
    void *there;
};

static bool get_row_memory(const struct rows *rows, struct row_memory *ret)
{
    uint64_t size = gm_dtype_size(rows->dtype), matrix = rows->k * rows->n * size;
    struct gm_error err = {.detail = ""};
    enum gm_status status =
        backend->buffer_get(context, GM_GATHERED_MAX * rows->k * size, &ret->vectors, &err);

    if (status == GM_OK)
        status =
            backend->buffer_get(context, GM_GATHERED_MAX * rows->n * size, &ret->results, &err);
    if (status == GM_OK)
        status = backend->buffer_get(context, matrix, &ret->matrix, &err);
    if (!CHECK_STATUS(status, GM_OK, &err))
        return false;
    random_fill(&random_state, rows->dtype, ret->vectors.data, GM_GATHERED_MAX * rows->k);
    random_fill(&random_state, rows->dtype, ret->matrix.data, rows->k * rows->n);
    ret->there = ret->matrix.data;
    if (backend->device_get) {
        status = backend->device_get(context, 0, matrix, &ret->there, &err);
        if (status == GM_OK)
            status =
                backend->device_copy(context, 0, ret->there, ret->matrix.data, matrix, true, &err);
    }
    return CHECK_STATUS(status, GM_OK, &err);
}

static void put_row_memory(struct row_memory *memory)
{
    if (backend->device_get && memory->there)
        backend->device_put(context, 0, memory->there);
    backend->buffer_put(context, &memory->vectors);
    backend->buffer_put(context, &memory->results);
    backend->buffer_put(context, &memory->matrix);
}

static bool make_row(const struct rows *rows, const struct row_memory *memory, unsigned row,
                     struct gm_task *ret)
{
    const bool present[GM_OPERANDS_MAX] = {true, true};
    const unsigned matrix = rows->columns ? 0 : 1;
    uint64_t size = gm_dtype_size(rows->dtype);
    bool upright = rows->columns != rows->transposed; /* n x k */
    struct gm_shape of_matrix = {2, {upright ? rows->n : rows->k, upright ? rows->k : rows->n}};
    struct gm_shape of_vector = {2, {rows->columns ? rows->k : 1, rows->columns ? 1 : rows->k}};
    struct gm_op_options options = {.has_alpha = true};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    struct gm_error err = {.detail = ""};

    memset(ret, 0, sizeof(*ret));
    options.alpha = (struct gm_scalar){rows->alpha, (int64_t)rows->alpha, true};
    *(rows->columns ? &options.transa : &options.transb) = rows->transposed;
    enum gm_status status =
        gm_matrix_init(&operand[matrix], rows->dtype, GM_ROW_MAJOR, &of_matrix, &err);
    if (status == GM_OK)
        status = gm_matrix_init(&operand[1 - matrix], rows->dtype, GM_ROW_MAJOR, &of_vector, &err);
    if (status == GM_OK)
        status = gm_op_init(&ret->op, GM_OP_MATMUL, &options, operand, present, &err);
    if (status == GM_OK)
        status = gm_select(&ret->op, facts, "skinny", &ret->variant, &err);
    ret->repeat = 1;
    ret->op.operand[matrix].data = memory->there;
    ret->op.operand[1 - matrix].data = (char *)memory->vectors.data + row * rows->k * size;
    ret->op.result.data = (char *)memory->results.data + row * rows->n * size;
    ret->on_device = backend->device_get ? 1u << matrix : 0;
    return CHECK_STATUS(status, GM_OK, &err);
}

static bool row_is_right(const struct gm_task *task, const struct row_memory *memory)
{
    struct gm_reference reference = {0};
    struct gm_error err = {.detail = ""};
    struct gm_op op = task->op;

    op.operand[gm_gather_matrix(&op)].data = memory->matrix.data;
    if (!CHECK_STATUS(gm_reference_make(&op, &reference, &err), GM_OK, &err))
        return false;
    struct gm_deviation deviation = gm_reference_compare(&reference, &op, op.result.data);
    gm_reference_free(&reference);
    return CHECK_EQ(deviation.wrong, 0);
}

/* A GPU gathers the tasks itself. The simulator has no memory of its own that stays, and so is
 * given the product. */
static void run_rows(struct gm_task task[], unsigned count)
{
    struct gm_task *each[GM_GATHERED_MAX], all = {.variant = task[0].variant, .repeat = 1};

    for (unsigned i = 0; i < count; i++)
        each[i] = &task[i];
    if (backend->device_get) {
        CHECK_EQ(backend->run(context, 0, 0, each, count), GM_OK);
        for (unsigned i = 0; i < count; i++)
            CHECK_STATUS(task[i].status, GM_OK, &task[i].error);
        return;
    }
    const unsigned index = 1 - gm_gather_matrix(&task[0].op), padded = gm_gather_padded(count);
    const uint64_t size = gm_dtype_size(task[0].op.result.dtype);
    const uint64_t k = gm_op_k(&task[0].op), row_bytes = gm_matrix_bytes(&task[0].op.result);
    char *columns = calloc(k * padded, size), *results = malloc(padded * row_bytes);

    if (CHECK(columns && results)) {
        gm_gather_op(&task[0].op, padded, &all.op);
        for (uint64_t i = 0; i < k * count; i++)
            memcpy(columns + (i / count * padded + i % count) * size,
                   (const char *)task[i % count].op.operand[index].data + i / count * size, size);
        all.op.operand[0].data = columns;
        all.op.result.data = results;
        each[0] = &all;
        CHECK_EQ(backend->run(context, 0, 0, each, 1), GM_OK);
        CHECK_STATUS(all.status, GM_OK, &all.error);
        for (unsigned i = 0; i < count; i++)
            memcpy(task[i].op.result.data, results + i * row_bytes, row_bytes);
    }
    free(columns);
    free(results);
}

/* Rows 0, step, 2 step and so on alone, the first against the oracle; then in companies of `least`
 * to `most`. */
static void try_rows(const struct rows *rows, unsigned least, unsigned most, unsigned step)
{
    static const unsigned companies[] = {2, 3, 7, 8, 9, 19, GM_GATHERED_MAX};
    struct gm_task task[GM_GATHERED_MAX];
    struct row_memory memory = {.there = NULL};
    bool made = get_row_memory(rows, &memory);
    uint64_t row_bytes = rows->n * gm_dtype_size(rows->dtype), bytes = GM_GATHERED_MAX * row_bytes;
    char *alone = malloc(bytes), *results = memory.results.data;

    for (unsigned i = 0; i < GM_GATHERED_MAX; i++)
        made = made && make_row(rows, &memory, i, &task[i]);
    if (!made || !CHECK(alone != NULL))
        goto done;
    memset(results, POISON, bytes);
    for (unsigned i = 0; i < most; i += step) {
        CHECK_EQ(gm_gather_alike(&task[i].op, &task[0].op), true);
        CHECK_EQ(gm_group_key(&task[i]) != 0, backend->device_get != NULL);
        CHECK_EQ(backend->run(context, 0, 0, (struct gm_task *[]){&task[i]}, 1), GM_OK);
        CHECK_STATUS(task[i].status, GM_OK, &task[i].error);
    }
    row_is_right(&task[0], &memory);
    memcpy(alone, results, bytes);
    for (unsigned c = 0; c < sizeof(companies) / sizeof(companies[0]); c++) {
        const unsigned count = companies[c];
        if (count < least || count > most)
            continue;
        memset(results, POISON, bytes);
        run_rows(task, count);
        for (unsigned i = 0; i < count; i += step)
            CHECK(memcmp(alone + i * row_bytes, results + i * row_bytes, row_bytes) == 0);
        bool beyond = false;
        for (uint64_t i = count * row_bytes; i < bytes; i++)
            beyond = beyond || (unsigned char)results[i] != POISON;
        CHECK(!beyond);
    }
done:
    free(alone);
    put_row_memory(&memory);
}

/* One chunk of K and several, warps that share K, splits, fewer rows than a kernel's, rows that
 * are not whole vectors of 16 bytes, edges; along K and across it. */
static void test_rows(void)
{
    static const uint64_t sides[][2] = {{1, 9}, {3, 17}, {100, 36}, {257, 64}, {1300, 41}};
    static const enum gm_dtype types[] = {GM_F16, GM_BF16, GM_F32, GM_F64, GM_I32, GM_I64};
    static const double alphas[] = {1, -3, 2};
    static const struct rows large[] = {
        {GM_F32, 9000, 36, false, true, 1},    /* splits, because K is longer than a chunk */
        {GM_F64, 140000, 12, false, false, 1}, /* splits of several chunks, across */
        {GM_F32, 4500, 260, false, false, 1},  /* several groups of lanes, half a tile of lines */
        {GM_BF16, 4100, 264, false, false, 2},
        {GM_F64, 2100, 560, true, false, 1}, /* several chunks, along */
    };
    static const unsigned company[] = {7, 7, 19, 19, 7}; /* of the large ones */
    /* So many lines that K is not split; for a GPU alone. */
    static const struct rows whole[] = {
        {GM_F32, 8192, 8192, false, false, 1},  {GM_F32, 1500, 11008, false, false, 2},
        {GM_BF16, 4100, 8192, false, false, 1}, {GM_F16, 8192, 4104, false, false, 1},
        {GM_I32, 2000, 8200, false, false, -3}, {GM_F32, 4096, 4096, true, true, 1},
    };

    for (unsigned i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
        for (unsigned t = 0; t < 6; t++)
            for (unsigned form = 0; form < 4; form++) {
                const struct rows rows = {types[t],  sides[i][0], sides[i][1],
                                          form & 1u, form & 2u,   alphas[(i + t) % 3]};
                bool on_gpu = facts->kind != GM_DEVICE_SIM;
                bool all = on_gpu || (i % 2 == 1 && types[t] == GM_F32);
                if (all || form == (i + t) % 4)
                    try_rows(&rows, all ? 2 : 19, GM_GATHERED_MAX, on_gpu ? 1 : 6);
            }
    for (unsigned i = 0; i < sizeof(large) / sizeof(large[0]); i++)
        try_rows(&large[i], company[i], company[i], company[i] - 1);
    for (unsigned i = 0; i < sizeof(whole) / sizeof(whole[0]) && facts->kind != GM_DEVICE_SIM; i++)
        try_rows(&whole[i], 8, GM_GATHERED_MAX, 5);
}

int main(int argc, char **argv)
{
    const struct gm_backend_options options = {0};
    const char *name = argc > 1 ? argv[1] : "sim";
    struct gm_error err = {.detail = ""};

    for (size_t i = 0; (backend = gm_backend_at(i)) && strcmp(backend->name, name) != 0; i++)
        continue;
    if (!backend || backend->open(&options, &context, &err) != GM_OK) {
        printf("skipped: no device %s: %s\n", name, backend ? err.detail : "not in this build");
        return SKIPPED;
    }
    facts = backend->describe(context, 0);
    random_state = check_seed();
    test_types();
    test_bad_tasks();
    test_keys();
    test_times();
    test_rows();
    backend->close(context);
    return check_report();
}
