/*
 * test_cuda_times.c - the cuda backend on the fake runtime, whose clock makes times exact: those of
 * tasks, batches, groups and graphs, and what does not count.
 */
#include "cuda_case.h"
#include "kernels/cuda/backend/exec.h"
#include "kernels/graph.h"

static const struct cuda_request sum = {
    .kind = GM_OP_ADD, .dtype = GM_F32, .operands = 2, .shape = {{0, 40, 50}, {0, 40, 50}}};

/* The fake's clock makes times exact: bytes at a nanosecond each, launches of 7 us. */
static void test_times(void)
{
    struct cuda_case made;

    fake_cuda_reset();
    void *context = open_backend(1);
    if (make(context, &plain_transpose, &fake_transpose, &made)) {
        run_one(context, 0, &made);
        near(made.task.times.h2d, 33 * 65 * 4 * FAKE_US_PER_BYTE);
        near(made.task.times.d2h, 33 * 65 * 4 * FAKE_US_PER_BYTE);
        near(made.task.times.kernel, FAKE_KERNEL_US);
        near(made.task.times.kernel_min, FAKE_KERNEL_US);
        CHECK(made.task.times.prepare < 0);
        CHECK(fake_cuda.head_start_us == 0);
        cuda_case_put(context, &made);
    }
    if (make(context, &plain_transpose, &fake_transpose, &made)) {
        made.task.head_start = true;
        run_one(context, 0, &made);
        near(made.task.times.h2d, 33 * 65 * 4 * FAKE_US_PER_BYTE);
        near(made.task.times.kernel, FAKE_KERNEL_US);
        CHECK(fake_cuda.head_start_us > 0);
        cuda_case_put(context, &made);
    }
    fake_cuda.head_start_us = 0;
    if (make(context, &stacked_transpose, &fake_transpose, &made)) {
        run_one(context, 0, &made);
        near(made.task.times.prepare, FAKE_KERNEL_US);
        near(made.task.times.kernel, FAKE_KERNEL_US);
        cuda_case_put(context, &made);
    }
    if (make(context, &sum, &fake_sum, &made)) {
        made.task.repeat = 100;
        run_one(context, 0, &made);
        near(made.task.times.h2d, 2 * 40 * 50 * 4 * FAKE_US_PER_BYTE);
        near(made.task.times.prepare, 2 * FAKE_KERNEL_US);
        near(made.task.times.kernel, FAKE_KERNEL_US);
        near(made.task.times.kernel_min, FAKE_KERNEL_US);
        CHECK(fake_cuda.head_start_us >= 100 * (2 + 1) * FAKE_KERNEL_US); /* longer than all runs */
        cuda_case_put(context, &made);
    }
    struct cuda_request columns = sum;
    columns.layout[0] = columns.layout[1] = GM_COL_MAJOR;
    if (make(context, &columns, &fake_sum, &made)) {
        run_one(context, 0, &made);
        near(made.task.times.prepare, 4 * FAKE_KERNEL_US);
        cuda_case_put(context, &made);
    }
    close_backend(context);
}

/* What a host function keeps is there at the next repetition of its task, and of no other's. */
static unsigned runs, made_anew;

static enum gm_status run_keeping(const struct gm_op *op, struct gm_exec *exec)
{
    struct gm_kept *kept = gm_kept_of(exec);

    runs++;
    if (kept && kept->made) {
        CHECK_EQ(kept->words[0], (uintptr_t)op->operand[0].data);
    } else if (CHECK(kept)) {
        made_anew++;
        kept->made = true;
        kept->words[0] = (uintptr_t)op->operand[0].data;
    }
    return fake_transpose.run[GM_DEVICE_CUDA](op, exec);
}

static void test_kept(void)
{
    struct gm_variant keeping = fake_transpose;
    struct cuda_case made[3];
    struct gm_task *task[3];
    unsigned n = 0;

    fake_cuda_reset();
    void *context = open_backend(1);
    keeping.run[GM_DEVICE_CUDA] = run_keeping;
    while (n < 3 && make(context, &stacked_transpose, &keeping, &made[n])) {
        task[n] = &made[n].task;
        made[n++].task.repeat = 40;
    }
    run_one(context, 0, &made[0]);
    CHECK_EQ(runs, 40);
    CHECK_EQ(made_anew, 1);
    CHECK_EQ(gm_backend_cuda.run(context, 0, 0, task, n), GM_OK);
    CHECK_EQ(made_anew, 1 + n);
    while (n > 0)
        cuda_case_put(context, &made[--n]);
    close_backend(context);
}

/* Each of a batch is told the times of all. */
static void test_batch(void)
{
    struct cuda_case made[5];
    struct gm_task *task[5];
    unsigned n = 0;

    fake_cuda_reset();
    void *context = open_backend(1);
    while (n < 5 && make(context, &stacked_transpose, &fake_transpose, &made[n])) {
        task[n] = &made[n].task;
        n++;
    }
    atomic_store(&task[2]->stop, true);
    CHECK_EQ(gm_backend_cuda.run(context, 0, 0, task, n), GM_OK);
    for (unsigned i = 0; i < n; i++) {
        CHECK_EQ(task[i]->status, i == 2 ? GM_CANCELLED : GM_OK);
        if (i != 2) {
            CHECK(cuda_case_is_right(&made[i]));
            near(task[i]->times.h2d, 4 * 5 * 7 * 9 * 8 * FAKE_US_PER_BYTE);
            near(task[i]->times.prepare, 4 * FAKE_KERNEL_US);
            near(task[i]->times.kernel, 4 * FAKE_KERNEL_US);
        }
        cuda_case_put(context, &made[i]);
    }
    close_backend(context);
}

/* One launch, whose blocks say when they end. What is compared with others is timed as others are.
 */
static void test_group(void)
{
    struct cuda_case made[4];
    struct gm_task *task[4];
    unsigned n = 0;

    fake_cuda_reset();
    void *context = open_backend(1);
    while (n < 4 && make(context, &plain_transpose, &fake_group, &made[n])) {
        task[n] = &made[n].task;
        n++;
    }
    atomic_store(&task[1]->stop, true);
    unsigned long launches = fake_cuda_launches();
    CHECK_EQ(gm_backend_cuda.run(context, 0, 0, task, n), GM_OK);
    CHECK_EQ(fake_cuda_launches(), launches + 1);
    for (unsigned i = 0; i < n; i++) {
        CHECK_EQ(task[i]->status, i == 1 ? GM_CANCELLED : GM_OK);
        if (i == 1)
            continue;
        CHECK(cuda_case_is_right(&made[i]));
        near(task[i]->times.kernel, 1e-3 * FAKE_GROUP_NS);
        CHECK(task[i]->times.h2d < 0 && task[i]->times.d2h < 0);
    }
    task[0]->repeat = 3;
    run_one(context, 0, &made[0]);
    near(task[0]->times.kernel, FAKE_KERNEL_US);
    task[2]->head_start = true;
    run_one(context, 0, &made[2]);
    near(task[2]->times.kernel, FAKE_KERNEL_US);
    fake_cuda.silent = true;
    CHECK_EQ(gm_backend_cuda.run(context, 0, 0, &task[3], 1), GM_DEVICE_LOST);
    CHECK(strstr(task[3]->error.detail, "kernel \"fake_group\" of transpose (fake_kernel)"));
    while (n > 0)
        cuda_case_put(context, &made[--n]);
    close_backend(context);
    fake_cuda_reset();
    context = open_backend(1);
    /* Blocks that never say anything. */
    if (make(context, &plain_transpose, &fake_group, &made[0])) {
        inject_at("cudaStreamQuery", 1, cudaErrorIllegalAddress, fake_cuda_break);
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, task, 1), GM_DEVICE_LOST);
        CHECK(strstr(task[0]->error.detail, "cudaErrorIllegalAddress"));
        inject_reset();
        cuda_case_put(context, &made[0]);
    }
    close_backend(context);
}

/* What it takes to load code is not the kernel's time, and the kernel runs once more. */
static const struct cuda_request product = {.kind = GM_OP_MATMUL,
                                            .dtype = GM_F32,
                                            .operands = 3,
                                            .shape = {{0, 3, 4}, {0, 4, 5}, {0, 3, 5}},
                                            .options = {.has_beta = true, .beta = {.real = 1}}};
#define PRODUCT_IN_US ((3 * 4 + 4 * 5 + 3 * 5) * 4 * FAKE_US_PER_BYTE)
/* c is copied to the result first. */
#define PRODUCT_US (3 * 5 * 4 * FAKE_US_PER_BYTE + FAKE_KERNEL_US)
#define LOADS_US 20000

static void test_cublas_loads(void)
{
    struct cuda_case made[3];
    struct gm_task *task[3];
    unsigned n = 0;

    fake_cuda_reset();
    void *context = open_backend(1);
    while (n < 3 && make(context, &product, &cublas_matmul, &made[n])) {
        task[n] = &made[n].task;
        n++;
    }
    for (unsigned repeat = 1; repeat <= 3; repeat += 2) {
        unsigned long launches = fake_cuda_launches();
        fake_cuda.blas_loads_us = LOADS_US;
        task[0]->repeat = repeat;
        run_one(context, 0, &made[0]);
        near(task[0]->times.h2d, PRODUCT_IN_US);
        near(task[0]->times.kernel, PRODUCT_US);
        CHECK_EQ(fake_cuda_launches(), launches + repeat + 1);
    }
    task[0]->repeat = 1;
    fake_cuda.blas_loads_us = LOADS_US;
    CHECK_EQ(gm_backend_cuda.run(context, 0, 0, task, n), GM_OK);
    for (unsigned i = 0; i < n; i++) {
        CHECK(cuda_case_is_right(&made[i]));
        near(task[i]->times.h2d, n * PRODUCT_IN_US);
        near(task[i]->times.kernel, n * PRODUCT_US);
    }
    /* One that would take longer than the loading is not made twice, and its time has all. */
    struct gm_device_facts *facts = (void *)(uintptr_t)gm_backend_cuda.describe(context, 0);
    double copy_gbs = facts->copy_gbs;
    unsigned long launches = fake_cuda_launches();
    facts->copy_gbs = 1e-6;
    fake_cuda.blas_loads_us = LOADS_US;
    run_one(context, 0, &made[0]);
    near(task[0]->times.kernel, PRODUCT_US + LOADS_US);
    CHECK_EQ(fake_cuda_launches(), launches + 1);
    facts->copy_gbs = copy_gbs;
    while (n > 0)
        cuda_case_put(context, &made[--n]);
    close_backend(context);
}

/* A launch that lacks memory is made again, and only the second one counts. */
static void test_tried_again(void)
{
    static const struct gm_variant *const variants[] = {&fake_transpose, &fake_group};
    struct cuda_case made;

    fake_cuda_reset();
    void *context = open_backend(1);
    for (int i = 0; i < 2 && make(context, &plain_transpose, variants[i], &made); i++) {
        made.task.head_start = true; /* timed by events */
        inject_at("cudaLaunchKernel", 1, cudaErrorMemoryAllocation, fake_cuda_remember);
        run_one(context, 0, &made);
        CHECK(inject_has_fired());
        near(made.task.times.kernel, FAKE_KERNEL_US);
        inject_reset();
        cuda_case_put(context, &made);
    }
    if (make(context, &product, &cublas_matmul, &made)) {
        fake_cuda.blas_loads_us = LOADS_US;
        inject_at("cudaLaunchKernel", 1, cudaErrorMemoryAllocation, fake_cuda_remember);
        run_one(context, 0, &made);
        near(made.task.times.kernel, PRODUCT_US);
        inject_reset();
        cuda_case_put(context, &made);
    }
    close_backend(context);
}

/* The same for a product that is a step of a graph, after more steps than a stream has events. */
static void test_graph_loads(void)
{
    struct gm_graph_value value[4];
    struct gm_graph_step step[100];
    struct gm_graph graph = {.values = 4, .value = value, .step = step, .result = 3};
    struct cuda_case made;

    fake_cuda_reset();
    void *context = open_backend(1);
    for (unsigned steps = 1; steps <= 100; steps++) {
        if (!make(context, &product, &cublas_matmul, &made))
            break;
        struct gm_op op = made.task.op;
        for (unsigned i = 0; i < 4; i++)
            value[i] = (struct gm_graph_value){.matrix = i < 3 ? op.operand[i] : op.result};
        for (unsigned i = 0; i < steps; i++)
            step[i] = (struct gm_graph_step){
                .variant = &cublas_matmul, .op = op, .operand = {0, 1, 2}, .result = 3, .us = -1};
        graph.steps = steps;
        made.task.variant = &gm_graph_variant;
        made.task.op = (struct gm_op){.kind = GM_OP_EVAL, .result = op.result, .graph = &graph};
        fake_cuda.blas_loads_at = steps;
        fake_cuda.blas_loads_us = LOADS_US;
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, (struct gm_task *[]){&made.task}, 1), GM_OK);
        CHECK_STATUS(made.task.status, GM_OK, &made.task.error);
        CHECK(fake_cuda.blas_loads_us == 0);
        for (unsigned i = 0; i < steps; i++)
            near(step[i].us, PRODUCT_US);
        made.task.op = op;
        CHECK(cuda_case_is_right(&made));
        cuda_case_put(context, &made);
    }
    close_backend(context);
}

int main(void)
{
    test_times();
    test_kept();
    test_batch();
    test_group();
    test_cublas_loads();
    test_tried_again();
    test_graph_loads();
    fake_cuda_reset();
    return check_report();
}
