/*
 * test_cuda_rows.c - products of one row by the same matrix of the device, on the fake runtime:
 * they are run as one, and fail as others do.
 */
#include "cuda_case.h"
#include "kernels/cuda/backend/exec.h"
#include "kernels/layout.h"

#define ROWS 10u
#define K 40u
#define N 30u

static unsigned launched_rows[2 * ROWS], launches_of_rows;

/* f32 without alpha, of single matrices; b may be transposed. */
static enum gm_status run_product(const struct gm_op *op, struct gm_exec *exec)
{
    static const char kernel;
    const struct gm_view a = gm_op_view(op, 0), b = gm_op_view(op, 1);
    uint64_t m = gm_op_m(op), n = gm_op_n(op), k = gm_op_k(op);
    float *result = op->result.data;
    enum gm_status status = gm_cuda_launching(exec, &kernel);

    CHECK(!op->transa && op->gathered == (m > 1));
    CHECK_EQ(op->operand[0].layout, m > 1 ? GM_COL_MAJOR : GM_ROW_MAJOR);
    launched_rows[launches_of_rows++ % (2 * ROWS)] = (unsigned)m;
    for (uint64_t i = 0; i < m * n && status == GM_OK; i++) {
        float value = 0;
        for (uint64_t d = 0; d < k; d++)
            value += ((const float *)a.data)[i / n * a.row + d * a.col] *
                     ((const float *)b.data)[d * b.row + i % n * b.col];
        result[i] = value;
    }
    return status == GM_OK ? gm_cuda_launched(exec, fake_cuda_launch(), &kernel) : status;
}

static uint64_t product_scratch(const struct gm_op *op)
{
    return gm_matrix_bytes(&op->result);
}

static const struct gm_variant product = {.op = GM_OP_MATMUL,
                                          .name = "fake",
                                          .folds = GM_FOLDS_TRANS | GM_FOLDS_ROWS,
                                          .accepts = gm_accepts_any,
                                          .scratch = product_scratch,
                                          .run = {[GM_DEVICE_CUDA] = run_product}};

/* Tasks of a row each, whose b is that of the first, in memory of the device. */
struct rows {
    struct cuda_case made[ROWS];
    struct gm_task *task[ROWS];
    unsigned n;
};

static bool make_rows(void *context, struct rows *ret)
{
    const struct cuda_request request = {
        .kind = GM_OP_MATMUL, .dtype = GM_F32, .operands = 2, .shape = {{0, 1, K}, {0, K, N}}};
    struct gm_error err = {.detail = ""};

    launches_of_rows = 0;
    for (ret->n = 0; ret->n < ROWS; ret->n++) {
        struct cuda_case *made = &ret->made[ret->n];
        if (!CHECK_STATUS(
                cuda_case_make(context, &request, &product, check_seed() + ret->n, made, &err),
                GM_OK, &err))
            return false;
        cuda_case_poison(made);
        made->task.op.operand[1].data = ret->made[0].task.op.operand[1].data;
        made->task.on_device = 2;
        ret->task[ret->n] = &made->task;
    }
    return true;
}

static void put_rows(void *context, struct rows *rows)
{
    while (rows->n > 0)
        cuda_case_put(context, &rows->made[--rows->n]);
}

static void rows_are_right(const struct rows *rows)
{
    for (unsigned i = 0; i < ROWS; i++) {
        CHECK_STATUS(rows->task[i]->status, GM_OK, &rows->task[i]->error);
        CHECK(cuda_case_is_right(&rows->made[i]));
    }
}

/* They go as one product, whose times and volume each is told; the matrix is counted once. One that
 * was stopped before is left out, and one whose result stays is written there. */
static void test_rows(void)
{
    struct rows rows;

    fake_cuda_reset();
    void *context = open_backend(1);
    if (make_rows(context, &rows)) {
        for (unsigned i = 0; i < ROWS; i++) {
            CHECK_EQ(gm_group_key(rows.task[i]), gm_group_key(rows.task[0]));
            CHECK_EQ(gm_group_most(rows.task[i]), GM_GATHERED_MAX);
            CHECK_EQ(gm_group_bytes(rows.task[i]), (K + N) * sizeof(float));
        }
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, ROWS), GM_OK);
        rows_are_right(&rows);
        CHECK(launches_of_rows == 1 && launched_rows[0] == gm_gather_padded(ROWS));
        for (unsigned i = 0; i < ROWS; i++) {
            near(rows.task[i]->times.h2d, FAKE_KERNEL_US); /* one launch gathers all */
            near(rows.task[i]->times.d2h, FAKE_KERNEL_US);
            near(rows.task[i]->times.kernel, FAKE_KERNEL_US);
            near(rows.task[i]->volume.bytes, 4 * (K * N + ROWS * (K + N)));
            near(rows.task[i]->volume.flops, ROWS * 2 * K * N);
            cuda_case_poison(&rows.made[i]);
        }
        /* One alone is run as before. */
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, 1), GM_OK);
        CHECK(launches_of_rows == 2 && launched_rows[1] == 1);
        /* So are those that are timed, each of which is told the times of all. */
        launches_of_rows = 1;
        rows.task[0]->head_start = true;
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, 2), GM_OK);
        CHECK(launches_of_rows == 3 && launched_rows[1] == 1 && launched_rows[2] == 1);
        near(rows.task[0]->times.kernel, 2 * FAKE_KERNEL_US);
        rows.task[0]->head_start = false;
        launches_of_rows = 2;
        atomic_store(&rows.task[2]->stop, true);
        rows.task[4]->on_device |= GM_RESULT_ON_DEVICE;
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, ROWS), GM_OK);
        CHECK(launches_of_rows == 3 && launched_rows[2] == gm_gather_padded(ROWS - 1));
        CHECK_EQ(rows.task[2]->status, GM_CANCELLED);
        atomic_store(&rows.task[2]->stop, false);
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, &rows.task[2], 1), GM_OK);
        rows_are_right(&rows);
    }
    put_rows(context, &rows);
    close_backend(context);
}

/* Those that the key alone took for alike run by themselves. */
static void test_unlike_rows(void)
{
    struct rows rows;

    fake_cuda_reset();
    void *context = open_backend(1);
    if (make_rows(context, &rows)) {
        rows.task[3]->op.operand[1].data = rows.made[3].buffer[1].data;
        CHECK(gm_group_key(rows.task[3]) != gm_group_key(rows.task[0]));
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, ROWS), GM_OK);
        rows_are_right(&rows);
        CHECK(launches_of_rows == 2 && launched_rows[0] == gm_gather_padded(ROWS - 1));
        CHECK_EQ(launched_rows[1], 1);
        /* The one by itself loses the device, after the others were right. */
        for (unsigned i = 0; i < ROWS; i++)
            rows.task[i]->error.detail[0] = '\0';
        inject_reset();
        inject_at("cudaMemcpyAsync", 1, cudaErrorIllegalAddress, fake_cuda_break);
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, ROWS), GM_DEVICE_LOST);
        inject_reset();
        for (unsigned i = 0; i < ROWS; i++) {
            CHECK_EQ(rows.task[i]->status, GM_DEVICE_LOST);
            CHECK(strstr(rows.task[i]->error.detail, "cuda:0 has failed"));
        }
    }
    put_rows(context, &rows);
    close_backend(context);
}

/* Each call fails in turn: all rows fail with it, or none, and where memory is what is wanting,
 * they run one after the other. */
static void test_rows_fail(void)
{
    static const char *const calls[] = {"cudaMallocAsync", "cudaLaunchKernel", "cudaEventRecord",
                                        "cudaFreeAsync"};

    for (unsigned i = 0; i < 4; i++) {
        for (unsigned long n = 1; n <= 2 * ROWS; n++) {
            struct rows rows;
            fake_cuda_reset();
            void *context = open_backend(1);
            if (make_rows(context, &rows)) {
                inject_reset();
                inject_at(calls[i], n, i == 0 ? cudaErrorMemoryAllocation : cudaErrorInvalidValue,
                          fake_cuda_remember);
                CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, ROWS), GM_OK);
                inject_reset();
                for (unsigned k = 1; k < ROWS; k++)
                    CHECK_EQ(rows.task[k]->status, rows.task[0]->status);
                CHECK(rows.task[0]->status == GM_OK || rows.task[0]->error.detail[0]);
                if (i == 0 || rows.task[0]->status == GM_OK)
                    rows_are_right(&rows);
            }
            put_rows(context, &rows);
            close_backend(context);
        }
    }
    struct rows rows;
    fake_cuda_reset();
    void *context = open_backend(1);
    if (make_rows(context, &rows)) { /* room for one, not for all */
        fake_cuda.memory_bytes = 2048;
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, ROWS), GM_OK);
        rows_are_right(&rows);
        CHECK_EQ(launches_of_rows, ROWS);
        near(rows.task[1]->volume.bytes, 4 * (K * N + K + N));
        fake_cuda.memory_bytes = 1;
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, ROWS), GM_OK);
        for (unsigned k = 0; k < ROWS; k++)
            CHECK_EQ(rows.task[k]->status, GM_DEVICE_MEMORY);
    }
    put_rows(context, &rows);
    close_backend(context);
    fake_cuda_reset();
    context = open_backend(1);
    if (make_rows(context, &rows)) {
        inject_at("cudaLaunchKernel", 2, cudaErrorIllegalAddress, fake_cuda_break);
        atomic_store(&rows.task[ROWS - 1]->stop, true);
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, rows.task, ROWS), GM_DEVICE_LOST);
        for (unsigned k = 0; k < ROWS; k++) {
            CHECK_EQ(rows.task[k]->status, GM_DEVICE_LOST);
            CHECK(rows.task[k]->error.detail[0]);
        }
        inject_reset();
    }
    put_rows(context, &rows);
    close_backend(context);
    fake_cuda_reset();
}

int main(void)
{
    test_rows();
    test_unlike_rows();
    test_rows_fail();
    return check_report();
}
