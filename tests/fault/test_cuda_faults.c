/*
 * test_cuda_faults.c - every call of the CUDA runtime that the backend makes, failing: from open to
 * close, each function at its n-th call for every n, with an error of each sort. What must hold
 * then: the right results or a failure in words, nothing left behind and nothing under way, other
 * tasks unharmed, and a device that is lost only where it is said to be: which it stays, even if
 * that was a false alarm.
 */
#include "cuda_case.h"
#include "kernels/buffer_pool.h"
#include "kernels/graph.h"

#define CASES 7
#define GRAPH (CASES - 1) /* the case that is a graph */

struct outcome {
    enum gm_status open;
    enum gm_status got[CASES]; /* buffers */
    enum gm_status task[CASES];
    enum gm_status run[CASES];
    enum gm_status after; /* a task once the call has failed */
    bool was_after;       /* whether it was still to fail when that task began */
    char detail[GM_ERROR_DETAIL_MAX];
};

static const struct {
    const struct gm_variant *variant;
    struct cuda_request request;
    unsigned repeat;
} cases[GRAPH] = {
    {&fake_transpose, {GM_OP_TRANSPOSE, GM_F32, 1, {{0, 33, 17}}, {GM_ROW_MAJOR}, {0}}, 1},
    {&fake_transpose, {GM_OP_TRANSPOSE, GM_U8, 1, {{4, 5, 6}}, {GM_COL_MAJOR}, {0}}, 1},
    {&fake_group, {GM_OP_TRANSPOSE, GM_F32, 1, {{0, 33, 17}}, {GM_ROW_MAJOR}, {0}}, 1},
    {&fake_sum, {GM_OP_ADD, GM_F32, 2, {{0, 9, 8}, {0, 9, 8}}, {0}, {0}}, 3},
    {&cublas_matmul,
     {GM_OP_MATMUL,
      GM_F32,
      3,
      {{3, 4, 5}, {0, 5, 6}, {0, 4, 6}},
      {0},
      {.has_beta = true, .beta = {.real = 1}}},
     1},
    {&cublas_transpose, {GM_OP_TRANSPOSE, GM_F64, 1, {{0, 8, 9}}, {0}, {0}}, 1},
};

/* What cases[] has for the graph: a sum, whose operands are the graph's inputs. */
static const struct cuda_request sum = {GM_OP_ADD, GM_F32, 2, {{0, 9, 8}, {0, 9, 8}}, {0}, {0}};

static bool in_words(const struct gm_error *err)
{
    return CHECK(err->detail[0] != '\0');
}

static void run_case(void *context, unsigned i, struct outcome *outcome)
{
    struct gm_error err = {.detail = ""};
    struct cuda_case made;

    outcome->got[i] = cuda_case_make(context, &cases[i].request, cases[i].variant, 1, &made, &err);
    if (outcome->got[i] != GM_OK) {
        in_words(&err);
        return;
    }
    made.task.repeat = cases[i].repeat;
    made.task.error.detail[0] = '\0';
    cuda_case_poison(&made);
    outcome->run[i] = gm_backend_cuda.run(context, 0, i % 2, (struct gm_task *[]){&made.task}, 1);
    outcome->task[i] = made.task.status;
    /* Nothing is under way to the caller's memory any more; a broken device does nothing. */
    CHECK(fake_cuda_is_broken() || fake_cuda_live().unwaited == 0);
    if (made.task.status == GM_OK) {
        CHECK(cuda_case_is_right(&made));
        CHECK(made.task.times.kernel > 0);
        CHECK(cases[i].variant->groups || (made.task.times.h2d > 0 && made.task.times.d2h > 0));
    } else if (in_words(&made.task.error)) {
        memcpy(outcome->detail, made.task.error.detail, sizeof(outcome->detail));
        CHECK(made.task.times.kernel < 0);
    }
    CHECK_EQ(made.task.status == GM_DEVICE_LOST, outcome->run[i] == GM_DEVICE_LOST);
    cuda_case_put(context, &made);
}

/* t = a + b by a program; result = t + b by an operation with scratch memory. */
static void make_graph(struct cuda_case *made, struct gm_graph *graph)
{
    struct gm_op op = made->task.op;
    struct gm_graph_step *step = graph->step;

    for (unsigned i = 0; i < 4; i++)
        graph->value[i] = (struct gm_graph_value){.matrix = i < 2 ? op.operand[i] : op.result,
                                                  .temporary = i == 2};
    step[0] = (struct gm_graph_step){.operand = {0, 1}, .result = 2, .us = -1};
    step[0].program =
        (struct gm_program){.dtype = GM_F32, .batch = 1, .rows = 9, .cols = 8, .inputs = 2};
    step[1] = (struct gm_graph_step){.variant = &fake_sum,
                                     .op = op,
                                     .operand = {2, 1},
                                     .result = 3,
                                     .us = -1,
                                     .scratch_at = 512,
                                     .scratch_bytes = gm_matrix_bytes(&op.result)};
    graph->temporary_bytes = 512 + 512;
    graph->result = 3;
    made->task.variant = &gm_graph_variant;
    made->task.op = (struct gm_op){.kind = GM_OP_EVAL, .result = op.result, .graph = graph};
}

static bool graph_is_right(const struct cuda_case *made)
{
    const float *a = made->buffer[0].data, *b = made->buffer[1].data;
    const float *result = made->task.op.result.data;

    for (unsigned i = 0; i < 72; i++)
        if (!(result[i] == a[i] + b[i] + b[i]))
            return false;
    return true;
}

static void run_graph(void *context, struct outcome *outcome)
{
    struct gm_graph_value value[4];
    struct gm_graph_step step[2];
    struct gm_graph graph = {.values = 4, .steps = 2, .value = value, .step = step};
    struct gm_error err = {.detail = ""};
    struct cuda_case made;

    outcome->got[GRAPH] = cuda_case_make(context, &sum, &fake_sum, 1, &made, &err);
    if (outcome->got[GRAPH] != GM_OK) {
        in_words(&err);
        return;
    }
    make_graph(&made, &graph);
    made.task.error.detail[0] = '\0';
    outcome->run[GRAPH] = gm_backend_cuda.run(context, 0, 0, (struct gm_task *[]){&made.task}, 1);
    outcome->task[GRAPH] = made.task.status;
    CHECK(fake_cuda_is_broken() || fake_cuda_live().unwaited == 0);
    if (made.task.status == GM_OK) {
        CHECK(graph_is_right(&made));
        CHECK(step[0].us > 0 && step[1].us > 0 && made.task.times.h2d > 0);
        CHECK(made.task.times.prepare > 0 && made.task.times.d2h > 0);
    } else if (in_words(&made.task.error)) {
        memcpy(outcome->detail, made.task.error.detail, sizeof(outcome->detail));
        CHECK(made.task.times.kernel < 0);
    }
    CHECK_EQ(made.task.status == GM_DEVICE_LOST, outcome->run[GRAPH] == GM_DEVICE_LOST);
    cuda_case_put(context, &made);
}

/* The whole life of a backend. */
static struct outcome live_once(void)
{
    struct gm_backend_options options = {.streams = 2, .memory_limit = (uint64_t)1 << 24};
    struct gm_error err = {.detail = ""};
    struct outcome outcome = {.after = GM_OK};
    struct outcome last = {.after = GM_OK};
    void *context = NULL;

    outcome.open = gm_backend_cuda.open(&options, &context, &err);
    if (outcome.open != GM_OK) {
        CHECK(context == NULL);
        in_words(&err);
    } else {
        struct gm_buffer large = {0}; /* of memory that is registered */
        if (gm_backend_cuda.buffer_get(context, GM_BUFFER_HUGE_PAGE, &large, &err) == GM_OK)
            gm_backend_cuda.buffer_put(context, &large);
        bool blas = gm_backend_cuda.describe(context, 0)->tuned_blas;
        for (unsigned i = 0; i < (blas ? GRAPH : 4); i++)
            run_case(context, i, &outcome);
        run_graph(context, &outcome);
        outcome.was_after = inject_has_fired();
        run_case(context, 0, &last);
        outcome.after = last.got[0] == GM_OK ? last.task[0] : last.got[0];
        gm_backend_cuda.close(context);
    }
    struct fake_live live = fake_cuda_live();
    CHECK(live.streams == 0 && live.events == 0 && live.pinned == 0 && live.registered == 0 &&
          live.device_memory == 0 && live.handles == 0);
    return outcome;
}

static unsigned count_status(const struct outcome *outcome, enum gm_status status)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CASES; i++)
        count += outcome->got[i] == GM_OK && outcome->task[i] == status;
    return count;
}

/* One failing call of one life. */
static void judge(const char *function, unsigned long n, cudaError_t error)
{
    bool sticky = error == cudaErrorIllegalAddress, false_alarm = error == cudaErrorLaunchFailure;
    unsigned long failed = atomic_load(&check_failed);

    fake_cuda_reset();
    inject_at(function, n, error, sticky ? fake_cuda_break : fake_cuda_remember);
    struct outcome outcome = live_once();
    CHECK(inject_has_fired());
    if (outcome.open != GM_OK) {
        CHECK_EQ(outcome.open, GM_DEVICE_UNAVAILABLE);
    } else if (false_alarm) { /* it counts as lost, or does not; it is not broken */
        unsigned bad = 0, lost = count_status(&outcome, GM_DEVICE_LOST);
        bool was_lost = false;
        for (unsigned i = 0; i < CASES; i++) {
            CHECK(!was_lost || outcome.got[i] != GM_OK || outcome.task[i] == GM_DEVICE_LOST);
            was_lost |= outcome.got[i] == GM_OK && outcome.task[i] == GM_DEVICE_LOST;
            bad += outcome.got[i] != GM_OK || outcome.task[i] != GM_OK;
        }
        CHECK(lost > 0 || bad <= 1);
        CHECK(outcome.after == GM_DEVICE_LOST || (lost == 0 && outcome.after == GM_OK));
    } else if (!sticky) {
        /* One task at the most is harmed, or none where the call could be done without or again. */
        unsigned bad = 0;
        for (unsigned i = 0; i < CASES; i++)
            bad += outcome.got[i] != GM_OK || outcome.task[i] != GM_OK;
        CHECK(bad <= 1);
        CHECK_EQ(count_status(&outcome, GM_DEVICE_LOST), 0);
        if (error == cudaErrorMemoryAllocation &&
            (strcmp(function, "cudaMallocAsync") == 0 ||
             strcmp(function, "cudaLaunchKernel") == 0 || strcmp(function, "cudaHostAlloc") == 0))
            CHECK_EQ(bad, 0);
        if (outcome.was_after)
            CHECK_EQ(outcome.after, GM_OK);
    } else if (outcome.was_after && outcome.after != GM_MEMORY_FULL) {
        CHECK_EQ(outcome.after, GM_DEVICE_LOST);
    }
    if (atomic_load(&check_failed) > failed)
        fprintf(stderr, "  when call %lu of %s answers %d: open %s, detail %s\n", n, function,
                (int)error, gm_status_code(outcome.open), outcome.detail);
    inject_reset();
}

static bool is_called(const struct inject_count *counts, unsigned functions, const char *function)
{
    for (unsigned i = 0; i < functions; i++)
        if (strcmp(counts[i].function, function) == 0)
            return true;
    return false;
}

int main(void)
{
    static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorInvalidValue,
                                         cudaErrorIllegalAddress, cudaErrorLaunchFailure};
    struct inject_count counts[INJECT_FUNCTIONS_MAX];

    /* Each life makes the same calls; buffers on other processors would make more. */
    check_stay();
    fake_cuda_reset();
    inject_reset();
    struct outcome well = live_once();
    CHECK_EQ(well.open, GM_OK);
    CHECK_EQ(count_status(&well, GM_OK), CASES);
    CHECK_EQ(well.after, GM_OK);
    unsigned functions = inject_counts(counts);
    CHECK(functions > 20);
    CHECK(is_called(counts, functions, "cudaLaunchKernel"));
    CHECK(is_called(counts, functions, "cudaMallocAsync"));
    CHECK(is_called(counts, functions, "cudaEventSynchronize"));
    CHECK(is_called(counts, functions, "cudaStreamQuery"));
    for (unsigned i = 0; i < functions; i++) {
        printf("%-28s %5lu calls\n", counts[i].function, counts[i].calls);
        for (unsigned long n = 1; n <= counts[i].calls; n++)
            for (unsigned e = 0; e < sizeof(errors) / sizeof(errors[0]); e++)
                if (!CHECK_SANITIZED || (i + n) % 4 == e) /* each call with one of them */
                    judge(counts[i].function, n, errors[e]);
    }
    fake_cuda_reset();
    return check_report();
}
