/* run_kernel.c - kernels without a row of the list, as tasks of the simulator. */
#include "run_kernel.h"

#include <pthread.h>

void *sim_open(unsigned threads)
{
    struct gm_backend_options options = {.threads = threads};
    struct gm_error err = {.detail = ""};
    void *sim = NULL;

    if (!CHECK_STATUS(gm_backend_sim.open(&options, &sim, &err), GM_OK, &err))
        exit(1);
    return sim;
}

void sim_close(void *sim)
{
    gm_backend_sim.close(sim);
}

/* These kernels are written for one shape, the caller's: explain must not try them on another. */
static uint64_t given_count;

static enum gm_status accepts_given(const struct gm_op *op, const struct gm_device_facts *facts,
                                    struct gm_error *err)
{
    (void)facts;
    if (op->operand[0].rows == 1 && op->operand[0].cols == given_count)
        return GM_OK;
    return gm_fail(err, GM_KERNEL_UNAVAILABLE, "another shape than the test's");
}

static struct gm_variant variant_of(gm_kernel_fn *kernel)
{
    return (struct gm_variant){.op = GM_OP_COPY,
                               .name = "test",
                               .dtypes = GM_TYPES_ALL,
                               .accepts = accepts_given,
                               .scratch = gm_scratch_none,
                               .run = {[GM_DEVICE_SIM] = kernel},
                               .needs = "",
                               .note = ""};
}

static bool make_op(uint64_t count, const int32_t *in, int32_t *out, struct gm_op *ret)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    const bool present[GM_OPERANDS_MAX] = {true};
    struct gm_op_options options = {0};
    struct gm_shape shape = {2, {1, count}};
    struct gm_error err = {.detail = ""};

    given_count = count;
    if (!CHECK_STATUS(gm_matrix_init(&operand[0], GM_I32, GM_ROW_MAJOR, &shape, &err), GM_OK,
                      &err) ||
        !CHECK_STATUS(gm_op_init(ret, GM_OP_COPY, &options, operand, present, &err), GM_OK, &err))
        return false;
    ret->operand[0].data = (void *)(uintptr_t)in;
    ret->result.data = out;
    return true;
}

struct stopper {
    struct gm_task *task;
    unsigned after;
};

static void *stop(void *cls)
{
    const struct stopper *stopper = cls;

    usleep(stopper->after);
    atomic_store(&stopper->task->stop, true);
    return NULL;
}

static struct sim_ran run(void *sim, gm_kernel_fn *kernel, uint64_t count, const int32_t *in,
                          int32_t *out, struct gm_access_report *report, unsigned stop_after)
{
    struct gm_variant variant = variant_of(kernel);
    struct gm_task task = {.variant = &variant, .repeat = 1, .report = report};
    struct stopper stopper = {&task, stop_after};
    pthread_t thread;

    if (!make_op(count, in, out, &task.op))
        return (struct sim_ran){.status = GM_INTERNAL};
    if (stop_after > 0 && !CHECK_EQ(pthread_create(&thread, NULL, stop, &stopper), 0))
        return (struct sim_ran){.status = GM_INTERNAL};
    CHECK_EQ(gm_backend_sim.run(sim, 0, 0, (struct gm_task *[]){&task}, 1), GM_OK);
    if (stop_after > 0)
        pthread_join(thread, NULL);
    CHECK_EQ(task.has_accesses, task.status == GM_OK && !report);
    return (struct sim_ran){task.status, task.error, task.accesses};
}

struct sim_ran sim_run(void *sim, gm_kernel_fn *kernel, uint64_t count, const int32_t *in,
                       int32_t *out)
{
    memset(out, 0, count * sizeof(*out));
    return run(sim, kernel, count, in, out, NULL, 0);
}

struct sim_ran sim_explain(void *sim, gm_kernel_fn *kernel, uint64_t count, const int32_t *in,
                           struct gm_access_report *ret)
{
    return run(sim, kernel, count, in, NULL, ret, 0);
}

struct sim_ran sim_stopped(void *sim, gm_kernel_fn *kernel, uint64_t count, const int32_t *in,
                           int32_t *out, struct gm_access_report *report, unsigned after)
{
    return run(sim, kernel, count, in, out, report, after);
}
