/* test_cpu_try.c - trying operations on all variants. */
#include "test_cpu_try.h"

#include "kernels/layout.h"

#include <math.h>

#define VARIANTS_MAX 256
#define SCRATCH_ALIGNING 512u /* bytes, at most, between up to three parts of scratch memory */

static const struct gm_backend *backend;
static void *context[TRY_BACKENDS_MAX];
static unsigned contexts;
static const struct gm_device_facts *facts;
static enum gm_op_kind only_op;
static const char *only, *of_request;
static uint64_t parts_of_scratch;
static unsigned long ran[VARIANTS_MAX], refused[VARIANTS_MAX], round_number;
uint64_t try_random;

/* On a GPU `grouped` reads the host's pinned memory, which these cases do not have: test_groups
 * does. */
static bool wanted(const struct gm_variant *variant)
{
    return !(variant->groups && facts->kind == GM_DEVICE_CUDA) &&
           (!only || (variant->op == only_op && strcmp(variant->name, only) == 0)) &&
           (!of_request || strcmp(variant->name, of_request) == 0);
}

/* What the account of a run must have: times of what was done, and of nothing else. */
static bool times_fit(const struct gm_task *task, bool empty, bool prepared)
{
    bool timed = facts->has_kernel_times && !empty, copied = facts->kind != GM_DEVICE_CPU && !empty;
    bool right = CHECK_EQ(task->times.kernel >= 0, timed), reads = facts->kind != GM_DEVICE_CUDA;

    for (unsigned i = 0; i < task->op.operands; i++)
        reads = reads || gm_op_reads(&task->op, i);
    right &= CHECK_EQ(task->times.h2d >= 0, copied && reads);
    right &= CHECK_EQ(task->times.d2h >= 0, copied);
    right &= CHECK_EQ(task->times.prepare >= 0, prepared);
    right &= CHECK_EQ(task->has_accesses, facts->kind == GM_DEVICE_SIM && !empty);
    return right;
}

static struct gm_task run(const struct kernel_case *made, const struct gm_variant *variant,
                          unsigned which)
{
    struct gm_task task = {.op = made->op, .variant = variant, .repeat = 1};

    case_poison(made);
    CHECK_EQ(backend->run(context[which], 0, 0, (struct gm_task *[]){&task}, 1), GM_OK);
    return task;
}

/* The same bits on other threads. */
static bool is_repeated(const struct kernel_case *made, const struct gm_variant *variant,
                        unsigned which)
{
    uint64_t bytes = gm_matrix_bytes(&made->op.result);
    void *before = malloc(bytes + 1);

    if (!CHECK(before != NULL))
        return false;
    memcpy(before, made->op.result.data, bytes);
    struct gm_task task = run(made, variant, which);
    bool right = CHECK_STATUS(task.status, GM_OK, &task.error);
    right &= CHECK(memcmp(before, made->op.result.data, bytes) == 0);
    free(before);
    return right;
}

/* A library's transpose is arithmetic: NaN for NaN, whatever their bits. For f32 and f64. */
static uint64_t wrong_numbers(const struct gm_op *op, const struct gm_reference *reference)
{
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < gm_matrix_elements(&op->result); i++) {
        size_t size = gm_dtype_size(op->result.dtype);
        const char *is = (char *)op->result.data + i * size,
                   *be = (char *)reference->exact + i * size;
        float f[2];
        double d[2];
        memcpy(size == 4 ? (void *)&f[0] : &d[0], is, size);
        memcpy(size == 4 ? (void *)&f[1] : &d[1], be, size);
        bool nans = size == 4 ? isnan(f[0]) && isnan(f[1]) : isnan(d[0]) && isnan(d[1]);
        wrong += !nans && memcmp(is, be, size) != 0;
    }
    return wrong;
}

/* The first failure is the last: others are mostly of the same cause. Says what to do next. */
static _Noreturn void end_at(const struct kernel_case *made, const struct gm_variant *variant,
                             const struct gm_deviation *deviation)
{
    const struct gm_op *op = &made->op;
    const char *name = gm_op_name(op->kind);
    char text[256];

    fprintf(stderr, "  the case: %s\n", case_text(op, text));
    if (deviation && deviation->wrong > 0)
        fprintf(stderr,
                "  %llu wrong elements, the first at %llu; the worst is off by %g times"
                " its bound\n",
                (unsigned long long)deviation->wrong, (unsigned long long)deviation->first,
                deviation->worst);
    if (facts->kind == GM_DEVICE_SIM)
        fprintf(stderr,
                "  next: test_sim_variants --only %s/%s; "
                "GET /v1/explain/%s?kernel=%s&dtype=%s shows its accesses\n",
                name, variant->name, name, variant->name, gm_dtype_name(op->result.dtype));
    exit(1);
}

static void prove(const struct kernel_case *made, const struct gm_reference *reference,
                  const struct gm_variant *variant)
{
    bool empty = gm_matrix_elements(&made->op.result) == 0, prepared = false;
    unsigned which = (unsigned)(round_number++ % contexts);

    struct gm_task task = run(made, variant, which);
    struct gm_deviation deviation =
        gm_reference_compare(reference, &made->op, made->op.result.data);
    if (variant->wants_blas && made->op.kind == GM_OP_TRANSPOSE)
        deviation.wrong = wrong_numbers(&made->op, reference);
    for (unsigned i = 0; i < made->op.operands; i++)
        prepared |= gm_needs_prepare(&made->op, variant, i) && !empty;
    /* Sums that have scratch rearrange operands into it, and split_bf16 splits them into it, which
     * a GPU times. What other products do there is part of the kernel. */
    prepared |= facts->kind == GM_DEVICE_CUDA && !empty && variant->scratch(&made->op) > 0 &&
                (made->op.kind == GM_OP_ADD || strcmp(variant->name, "split_bf16") == 0);

    uint64_t scratch = variant->scratch(&made->op);
    bool right = CHECK_STATUS(task.status, GM_OK, &task.error) && CHECK_EQ(deviation.wrong, 0) &&
                 CHECK(case_intact(made)) &&
                 CHECK(parts_of_scratch == 0 || (scratch >= parts_of_scratch &&
                                                 scratch - parts_of_scratch < SCRATCH_ALIGNING)) &&
                 times_fit(&task, empty, prepared) &&
                 (facts->kind != GM_DEVICE_CPU ||
                  CHECK_EQ(backend->scratch_bytes(context[0], &made->op, variant) > 0, prepared)) &&
                 (contexts == 1 || round_number % 8 != 0 ||
                  is_repeated(made, variant, (which + 1) % contexts));
    if (!right)
        end_at(made, variant, task.status == GM_OK ? &deviation : NULL);
}

static void try_all(const struct kernel_case *made)
{
    const struct gm_variant *variant;
    struct gm_reference reference;
    struct gm_error err = {.detail = ""};

    if (!CHECK_STATUS(gm_reference_make(&made->op, &reference, &err), GM_OK, &err))
        return;
    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (!wanted(variant))
            continue;
        err.detail[0] = '\0';
        enum gm_status status = gm_variant_check(variant, &made->op, facts, &err);
        if (status == GM_OK) {
            prove(made, &reference, variant);
            ran[i]++;
        } else {
            CHECK_EQ(status, GM_KERNEL_UNAVAILABLE);
            CHECK(err.detail[0] != '\0');
            refused[i]++;
        }
    }
    gm_reference_free(&reference);
}

/* Whether the variants that are tried take it; counts those that do not, where none does. */
static bool any_takes(const struct gm_op *op)
{
    const struct gm_variant *variant;
    struct gm_error err;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++)
        if (wanted(variant) && gm_variant_check(variant, op, facts, &err) == GM_OK)
            return true;
    for (size_t i = 0; (variant = gm_variant_at(i)); i++)
        refused[i] += variant->op == op->kind && wanted(variant);
    return false;
}

bool try_make(const struct request *request, struct kernel_case *ret)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {false};
    struct gm_error err = {.detail = ""};
    struct gm_op op;

    for (unsigned i = 0; i < request->operands; i++) {
        present[i] = true;
        if (!CHECK_STATUS(gm_matrix_init(&operand[i], request->dtype, request->layout[i],
                                         &request->shape[i], &err),
                          GM_OK, &err))
            return false;
    }
    if (!CHECK_STATUS(gm_op_init(&op, request->kind, &request->options, operand, present, &err),
                      GM_OK, &err) ||
        (only && !any_takes(&op)))
        return false;
    *ret = case_make(&op, &try_random);
    return true;
}

void try_case(struct kernel_case *made)
{
    case_seal(made);
    try_all(made);
    case_free(made);
}

void try_request(const struct request *request)
{
    struct kernel_case made;

    of_request = request->variant;
    parts_of_scratch = request->scratch;
    if (try_make(request, &made))
        try_case(&made);
    of_request = NULL;
    parts_of_scratch = 0;
}

struct gm_shape shape_of(uint64_t batch, uint64_t rows, uint64_t cols)
{
    if (batch == SINGLE)
        return (struct gm_shape){2, {rows, cols}};
    return (struct gm_shape){3, {batch, rows, cols}};
}

bool try_begin(const struct gm_backend *on, const unsigned *threads)
{
    struct gm_error err = {.detail = ""};

    backend = on;
    try_random = check_seed();
    for (; threads[contexts] > 0; contexts++) {
        struct gm_backend_options options = {.threads = threads[contexts]};
        if (!CHECK(contexts < TRY_BACKENDS_MAX) ||
            !CHECK_STATUS(backend->open(&options, &context[contexts], &err), GM_OK, &err))
            return false;
    }
    facts = backend->describe(context[0], 0);
    return true;
}

/* Says what there is instead of an operation's variant. */
static void say_others(enum gm_op_kind op, const char *name)
{
    const struct gm_variant *variant;

    fprintf(stderr, "there is no %s/%s here; there are:", gm_op_name(op), name);
    for (size_t i = 0; (variant = gm_variant_at(i)); i++)
        if (variant->op == op && variant->run[facts->kind])
            fprintf(stderr, " %s/%s", gm_op_name(op), variant->name);
    fprintf(stderr, "\n");
}

bool try_only(enum gm_op_kind op, const char *name)
{
    const struct gm_variant *variant;

    only_op = op;
    only = name;
    for (size_t i = 0; (variant = gm_variant_at(i)); i++)
        if (variant->run[facts->kind] && wanted(variant))
            return true;
    say_others(op, name);
    return CHECK(variant != NULL);
}

int try_end(unsigned ops)
{
    const struct gm_variant *variant;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        CHECK(i < VARIANTS_MAX);
        if (!facts || !variant->run[facts->kind] || !wanted(variant))
            continue;
        printf("%-10s %-15s ran %6lu times, refused %6lu\n", gm_op_name(variant->op), variant->name,
               ran[i], refused[i]);
        if (ops & 1u << variant->op)
            CHECK(ran[i] > 0);
    }
    while (contexts > 0)
        backend->close(context[--contexts]);
    return check_report();
}
