/*
 * test_gpu_backend.c - the cuda backend on a GPU: every variant through the backend's table against
 * the oracle, streams side by side, times, and what happens when memory or the device gives out.
 * 77 where there is no GPU.
 */
#include "backend_test.h"
#include "kernels/choose/choose.h"
#include "tests/unit/test_cpu_try.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#define SKIPPED 77
#define STREAMS 3

double wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Bytes that are no numbers are not every library's to keep: complex elements are numbers here. */
static void try_moved(const struct request *request)
{
    struct kernel_case made;

    if (!try_make(request, &made))
        return;
    struct gm_matrix *a = &made.op.operand[0];
    if (a->dtype == GM_C64)
        random_fill(&try_random, GM_F32, a->data, 2 * gm_matrix_elements(a));
    if (a->dtype == GM_C128)
        random_fill(&try_random, GM_F64, a->data, 2 * gm_matrix_elements(a));
    try_case(&made);
}

static void test_moves(void)
{
    static const uint64_t shapes[][3] = {
        {SINGLE, 0, 5},   {SINGLE, 1, 1},     {SINGLE, 1, 700},   {SINGLE, 700, 1},
        {SINGLE, 31, 33}, {SINGLE, 32, 32},   {SINGLE, 97, 101},  {SINGLE, 3, 3001},
        {7, 1, 9},        {5, 33, 65},        {67, 16, 16},       {300, 2, 70},
        {1, 3, 5},        {SINGLE, 515, 129}, {SINGLE, 1025, 33}, {70000, 1, 2},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int dtype = GM_DTYPE_NONE + 1; dtype < GM_DTYPE_COUNT; dtype++) {
            struct request request = {.dtype = (enum gm_dtype)dtype, .operands = 1};
            request.shape[0] = shape_of(shapes[i][0], shapes[i][1], shapes[i][2]);
            for (int j = 0; j < 6; j++) {
                request.kind = j < 2 ? GM_OP_TRANSPOSE : j < 4 ? GM_OP_FLIP : GM_OP_COPY;
                request.layout[0] = j % 2 == 0 ? GM_ROW_MAJOR : GM_COL_MAJOR;
                try_moved(&request);
            }
        }
    }
}

static const struct gm_scalar factors[] = {
    {.real = 1, .integer = 1, .is_integer = true},
    {.real = 0, .integer = 0, .is_integer = true},
    {.real = -3, .integer = -3, .is_integer = true},
    {.real = 0.7},
};

static void try_product(enum gm_dtype dtype, const uint64_t batch[3], const uint64_t mkn[3],
                        unsigned trans)
{
    struct request request = {.kind = GM_OP_MATMUL, .dtype = dtype, .operands = 2};
    unsigned count = dtype == GM_I32 || dtype == GM_I64 ? 3 : 4;

    request.options.transa = trans & 1;
    request.options.transb = trans & 2;
    request.options.precision =
        random_below(&try_random, 2) ? GM_PRECISION_IEEE : GM_PRECISION_FP32;
    request.shape[0] = shape_of(batch[0], mkn[trans & 1], mkn[!(trans & 1)]);
    request.shape[1] = shape_of(batch[1], mkn[trans & 2 ? 2 : 1], mkn[trans & 2 ? 1 : 2]);
    request.shape[2] = shape_of(batch[2], mkn[0], mkn[2]);
    for (int i = 0; i < 3; i++)
        request.layout[i] = random_below(&try_random, 3) == 0 ? GM_COL_MAJOR : GM_ROW_MAJOR;
    if (random_below(&try_random, 2) == 0) {
        request.options.has_alpha = true;
        request.options.alpha = factors[random_below(&try_random, count)];
    }
    if (random_below(&try_random, 2) == 0) {
        request.operands = 3;
        request.options.has_beta = true;
        request.options.beta = factors[random_below(&try_random, count)];
    }
    try_request(&request);
}

static void test_products(void)
{
    static const uint64_t shapes[][3] = {{5, 0, 3},    {1, 1, 1},    {1, 13, 17},  {17, 13, 1},
                                         {3, 1, 5},    {31, 32, 33}, {64, 64, 64}, {65, 63, 129},
                                         {2, 300, 97}, {97, 1001, 2}};
    static const uint64_t batches[][3] = {{SINGLE, SINGLE, SINGLE}, {3, 3, 3},
                                          {3, SINGLE, SINGLE},      {SINGLE, 3, SINGLE},
                                          {SINGLE, SINGLE, 3},      {5, 1, 5}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (size_t j = 0; j < sizeof(batches) / sizeof(batches[0]); j++)
            for (size_t type = 0; type < ARITHMETIC; type++)
                for (unsigned trans = 0; trans < 4; trans++)
                    try_product(arithmetic[type], batches[j], shapes[i], trans);
}

static void test_sums(void)
{
    static const uint64_t shapes[][2][3] = {{{SINGLE, 40, 50}, {SINGLE, 40, 50}},
                                            {{SINGLE, 40, 50}, {SINGLE, 1, 50}},
                                            {{SINGLE, 40, 1}, {SINGLE, 1, 50}},
                                            {{3, 40, 50}, {SINGLE, 40, 50}},
                                            {{SINGLE, 1001, 3}, {SINGLE, 1001, 3}}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            for (unsigned layout = 0; layout < 4; layout++) {
                struct request request = {
                    .kind = GM_OP_ADD, .dtype = arithmetic[type], .operands = 2};
                for (unsigned j = 0; j < 2; j++) {
                    const uint64_t *dim = shapes[i][j];
                    request.shape[j] = shape_of(dim[0], dim[1], dim[2]);
                    request.layout[j] = layout >> j & 1 ? GM_COL_MAJOR : GM_ROW_MAJOR;
                }
                try_request(&request);
            }
        }
    }
}

/* NaN and infinity stay what they are and where they are, also in what only multiplies by 1. */
static void test_specials(void)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, -0.0};
    static const enum gm_dtype types[] = {GM_F32, GM_F64, GM_C64, GM_C128};

    for (unsigned i = 0; i < 4; i++) {
        struct request request = {.kind = GM_OP_TRANSPOSE, .dtype = types[i], .operands = 1};
        struct kernel_case made;
        request.shape[0] = shape_of(SINGLE, 34, 35);
        if (!try_make(&request, &made))
            continue;
        uint64_t numbers = 34 * 35 * (i < 2 ? 1 : 2);
        for (uint64_t j = 0; j < numbers; j++) {
            double value = j % 7 == 0 ? values[j / 7 % 4] : random_unit(&try_random);
            put_float(i % 2 == 0 ? GM_F32 : GM_F64, made.op.operand[0].data, j, value);
        }
        try_case(&made);
    }
}

bool buffer_task_make(void *context, enum gm_op_kind kind, const char *variant, enum gm_dtype dtype,
                      uint64_t rows, uint64_t cols, uint64_t seed, struct buffer_task *ret)
{
    struct buffer_task made = {.task = {.repeat = 1}};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {true, gm_op_operands_min(kind) == 2};
    struct gm_op_options options = {.precision = GM_PRECISION_FP32};
    struct gm_shape shape = {2, {rows, cols}};
    struct gm_op *op = &made.task.op;
    struct gm_error err = {.detail = ""};
    enum gm_status status = GM_OK;

    for (unsigned i = 0; i < 2 && status == GM_OK; i++)
        status = gm_matrix_init(&operand[i], dtype, GM_ROW_MAJOR, &shape, &err);
    if (status == GM_OK)
        status = gm_op_init(op, kind, &options, operand, present, &err);
    if (status == GM_OK)
        status =
            gm_select(op, gm_backend_cuda.describe(context, 0), variant, &made.task.variant, &err);
    for (unsigned i = 0; i <= op->operands && status == GM_OK; i++) {
        struct gm_matrix *x = i < op->operands ? &op->operand[i] : &op->result;
        status = gm_backend_cuda.buffer_get(context, gm_matrix_bytes(x), &made.buffer[i], &err);
        if (status != GM_OK)
            break;
        x->data = made.buffer[i].data;
        if (i < op->operands)
            random_fill(&seed, dtype, x->data, gm_matrix_elements(x));
    }
    if (!CHECK_STATUS(status, GM_OK, &err)) {
        buffer_task_put(context, &made);
        return false;
    }
    *ret = made;
    return true;
}

void buffer_task_put(void *context, struct buffer_task *made)
{
    for (unsigned i = 0; i <= GM_OPERANDS_MAX; i++)
        gm_backend_cuda.buffer_put(context, &made->buffer[i]);
}

enum gm_status buffer_task_run(void *context, unsigned stream, struct buffer_task *made)
{
    struct gm_matrix *result = &made->task.op.result;
    struct gm_reference reference = {0};
    struct gm_error err = {.detail = ""};

    memset(result->data, CASE_POISON, gm_matrix_bytes(result));
    enum gm_status status =
        gm_backend_cuda.run(context, 0, stream, (struct gm_task *[]){&made->task}, 1);
    CHECK_EQ(status == GM_DEVICE_LOST, made->task.status == GM_DEVICE_LOST);
    if (made->task.status != GM_OK)
        return made->task.status;
    if (CHECK_STATUS(gm_reference_make(&made->task.op, &reference, &err), GM_OK, &err))
        CHECK_EQ(gm_reference_compare(&reference, &made->task.op, result->data).wrong, 0);
    gm_reference_free(&reference);
    return GM_OK;
}

struct worker {
    void *context;
    unsigned stream;
};

static void *work(void *cls)
{
    const struct worker *worker = cls;
    struct buffer_task made;

    for (unsigned i = 0; i < 24; i++) {
        bool product = i % 3 == 2;
        uint64_t rows = product ? 96 : 500 + 37 * i, cols = product ? 96 : 700 - 11 * i;
        if (!buffer_task_make(worker->context, product ? GM_OP_MATMUL : GM_OP_TRANSPOSE, NULL,
                              GM_F32, rows, cols, worker->stream + i, &made))
            break;
        CHECK_STATUS(buffer_task_run(worker->context, worker->stream, &made), GM_OK,
                     &made.task.error);
        buffer_task_put(worker->context, &made);
    }
    return NULL;
}

/* A kernel that on each stream wants more shared memory than it has without asking, and not as much
 * as in the other. */
static void *launch(void *cls)
{
    const struct worker *worker = cls;
    struct buffer_task made;

    for (unsigned i = 0; i < 4; i++) {
        if (!buffer_task_make(worker->context, GM_OP_TRANSPOSE, "skinny", GM_U8, 3000,
                              worker->stream == 0 ? 100 : 124, i, &made))
            break;
        made.task.repeat = 2000;
        CHECK_STATUS(buffer_task_run(worker->context, worker->stream, &made), GM_OK,
                     &made.task.error);
        buffer_task_put(worker->context, &made);
    }
    return NULL;
}

static void run_on_streams(void *context, unsigned streams, void *(*body)(void *))
{
    pthread_t thread[STREAMS];
    struct worker worker[STREAMS];

    for (unsigned i = 0; i < streams; i++) {
        worker[i] = (struct worker){context, i};
        CHECK_EQ(pthread_create(&thread[i], NULL, body, &worker[i]), 0);
    }
    for (unsigned i = 0; i < streams; i++)
        pthread_join(thread[i], NULL);
}

/* No stage is longer than the whole; and a kernel takes what a long loop of it takes by the host's
 * clock. */
static void test_times(void *context)
{
    static const struct {
        enum gm_op_kind kind;
        const char *variant;
        uint64_t side;
        unsigned repeat;
    } cases[] = {{GM_OP_TRANSPOSE, "padded", 8192, 1},
                 {GM_OP_TRANSPOSE, "padded", 8192, 500},
                 {GM_OP_TRANSPOSE, "naive", 8192, 200},
                 {GM_OP_MATMUL, "tiled", 2048, 100},
                 {GM_OP_COPY, "vector", 64, 2000}};

    printf("%-10s %-8s %6s %6s %10s %10s %10s %12s %12s\n", "", "", "side", "runs", "h2d us",
           "kernel us", "d2h us", "sum us", "wall us");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer_task made;
        if (!buffer_task_make(context, cases[i].kind, cases[i].variant, GM_F32, cases[i].side,
                              cases[i].side, 1, &made))
            continue;
        struct gm_task *task = &made.task;
        gm_backend_cuda.run(context, 0, 0, &task, 1); /* loads code, fills the pool */
        task->repeat = cases[i].repeat;
        double begin = wall_us();
        gm_backend_cuda.run(context, 0, 0, &task, 1);
        double wall = wall_us() - begin;
        double sum = task->times.h2d + cases[i].repeat * task->times.kernel + task->times.d2h;
        printf("%-10s %-8s %6llu %6u %10.1f %10.2f %10.1f %12.0f %12.0f\n",
               gm_op_name(cases[i].kind), cases[i].variant, (unsigned long long)cases[i].side,
               cases[i].repeat, task->times.h2d, task->times.kernel, task->times.d2h, sum, wall);
        CHECK_STATUS(task->status, GM_OK, &task->error);
        CHECK(task->times.h2d > 0 && task->times.kernel > 0 && task->times.d2h > 0);
        CHECK(task->times.kernel_min > 0 && task->times.kernel_min <= task->times.kernel);
        if (cases[i].repeat == 1)
            CHECK(sum <= wall);
        buffer_task_put(context, &made);
    }
}

static void print_facts(const struct gm_device_facts *facts)
{
    printf("%s (%s), %u multiprocessors, copy %.0f GB/s, memory %.0f GB/s by its clock\n",
           facts->name, facts->detail, facts->compute_units, facts->copy_gbs, facts->gpu->dram_gbs);
    printf("fp32 %.0f, fp64 %.0f, int32 %.0f GFLOP/s by its clock\n", facts->gpu->fp32_gflops,
           facts->gpu->fp64_gflops, facts->gpu->int32_gflops);
    CHECK(facts->copy_gbs > 0);
    CHECK(!(facts->copy_gbs > facts->gpu->dram_gbs));
    CHECK_EQ(facts->streams, STREAMS);
}

int main(void)
{
    static const unsigned backends[] = {1, 0};
    const unsigned ops = 1u << GM_OP_COPY | 1u << GM_OP_TRANSPOSE | 1u << GM_OP_MATMUL |
                         1u << GM_OP_ADD | 1u << GM_OP_FLIP;
    struct gm_backend_options options = {0};
    struct gm_error err = {.detail = ""};
    void *context;

    double begin = wall_us();
    if (gm_backend_cuda.open(&options, &context, &err) != GM_OK) {
        printf("%s: the cuda backend is not tested\n", err.detail);
        return SKIPPED;
    }
    printf("opened in %.0f ms\n", (wall_us() - begin) * 1e-3);
    bool blas = gm_backend_cuda.describe(context, 0)->tuned_blas;
    print_facts(gm_backend_cuda.describe(context, 0));
    test_times(context);
    run_on_streams(context, STREAMS, work);
    run_on_streams(context, 2, launch);
    gm_backend_cuda.close(context);
    if (try_begin(&gm_backend_cuda, backends)) {
        test_moves();
        test_products();
        test_sums();
        test_specials();
    }
    /* Without cuBLAS its rows never run, and are not missed. */
    try_end(blas ? ops : 0);
    test_faults();
    return check_report();
}
