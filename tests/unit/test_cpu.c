/*
 * test_cpu.c - the cpu backend by its table: facts, memory, repetition, stops, and the same bits
 * whatever else goes on.
 */
#include "kernels/choose/choose.h"
#include "test_cpu_case.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

static struct gm_op product(enum gm_dtype dtype, enum gm_layout layout, uint64_t m, uint64_t k,
                            uint64_t n, uint64_t batch)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {
        {dtype, layout, batch > 1, batch, m, k, NULL},
        {dtype, layout, batch > 1, batch, k, n, NULL},
    };
    const bool present[GM_OPERANDS_MAX] = {true, true};
    struct gm_op_options options = {0};
    struct gm_error err = {.detail = ""};
    struct gm_op op = {0};

    CHECK_STATUS(gm_op_init(&op, GM_OP_MATMUL, &options, operand, present, &err), GM_OK, &err);
    return op;
}

static void *open_cpu(unsigned threads, uint64_t memory_limit)
{
    struct gm_backend_options options = {.threads = threads, .memory_limit = memory_limit};
    struct gm_error err = {.detail = ""};
    void *cpu = NULL;

    if (!CHECK_STATUS(gm_backend_cpu.open(&options, &cpu, &err), GM_OK, &err))
        exit(1);
    return cpu;
}

static void test_facts(void *cpu)
{
    const struct gm_device_facts *facts = gm_backend_cpu.describe(cpu, 0);

    CHECK_STR(gm_backend_cpu.name, "cpu");
    size_t listed = 0;
    while (gm_backend_at(listed) && gm_backend_at(listed) != &gm_backend_cpu)
        listed++;
    CHECK(gm_backend_at(listed) == &gm_backend_cpu && gm_backend_at(1000) == NULL);
    CHECK(gm_backend_cpu.describe(cpu, 1) == NULL);
    CHECK(facts->kind == GM_DEVICE_CPU && facts->index == 0);
    CHECK(facts->name[0] && facts->detail[0]);
    CHECK(facts->compute_units >= 1 && facts->streams == 1 && facts->batch_max == 1 &&
          facts->has_kernel_times);
    CHECK(facts->memory_bytes > 0);
    CHECK(facts->copy_gbs > 0);
    for (int dtype = 0; dtype < GM_DTYPE_COUNT; dtype++) {
        bool computes = gm_dtype_arithmetic((enum gm_dtype)dtype);
        CHECK_EQ(facts->peak_gflops[dtype] > 0, computes);
        CHECK_EQ(facts->peak_name[dtype] != NULL, computes);
    }
    CHECK_STR(facts->peak_name[GM_BF16], "fp32");
    CHECK_STR(facts->peak_name[GM_I64], "int64");
    gm_backend_cpu.close(NULL);
}

/* Rearranged operands take buffers from the same memory, are counted beforehand, and given back. */
static void test_scratch(void)
{
    struct gm_op op = product(GM_F32, GM_COL_MAJOR, 50, 60, 70, 3);
    uint64_t random = check_seed();
    struct kernel_case made = case_make(&op, &random);
    struct gm_reference reference = {0};
    const struct gm_variant *variant = NULL;
    struct gm_error err = {.detail = ""};
    void *cpu = open_cpu(2, 0);
    const struct gm_device_facts *facts = gm_backend_cpu.describe(cpu, 0);

    case_seal(&made);
    CHECK_EQ(gm_select(&made.op, facts, "blocked", &variant, &err), GM_OK);
    uint64_t scratch = gm_backend_cpu.scratch_bytes(cpu, &made.op, variant);
    CHECK_EQ(scratch, gm_backend_cpu.buffer_cost(cpu, 3 * 50 * 60 * 4) +
                          gm_backend_cpu.buffer_cost(cpu, 3 * 60 * 70 * 4));
    gm_backend_cpu.close(cpu);

    /* That much and no more is enough; again and again. */
    cpu = open_cpu(2, scratch);
    CHECK_EQ(gm_reference_make(&made.op, &reference, &err), GM_OK);
    for (int i = 0; i < 3; i++) {
        struct gm_times times;
        case_poison(&made);
        CHECK_EQ(case_run(cpu, &made, variant, &times), GM_OK);
        CHECK(times.prepare >= 0);
        CHECK_EQ(gm_reference_compare(&reference, &made.op, made.op.result.data).wrong, 0);
    }
    gm_backend_cpu.close(cpu);

    /* Less is told, and harms nothing. */
    cpu = open_cpu(2, scratch / 2);
    for (int i = 0; i < 2; i++) {
        enum gm_status status = case_run(cpu, &made, variant, NULL);
        CHECK(status == GM_MEMORY_FULL || status == GM_TOO_LARGE);
    }
    CHECK(case_intact(&made));
    gm_backend_cpu.close(cpu);
    gm_reference_free(&reference);
    case_free(&made);
}

static void test_buffers(void *cpu)
{
    struct gm_buffer buffer = {0}, other = {0};
    struct gm_error err = {.detail = ""};

    CHECK_STATUS(gm_backend_cpu.buffer_get(cpu, 1000, &buffer, &err), GM_OK, &err);
    CHECK(buffer.data && buffer.bytes == 1000 &&
          buffer.capacity == gm_backend_cpu.buffer_cost(cpu, 1000));
    memset(buffer.data, 1, 1000 + GM_TEXT_PADDING);
    CHECK_STATUS(gm_backend_cpu.buffer_get(cpu, 0, &other, &err), GM_OK, &err);
    CHECK(other.data && other.data != buffer.data);
    gm_backend_cpu.buffer_put(cpu, &buffer);
    gm_backend_cpu.buffer_put(cpu, &buffer);
    gm_backend_cpu.buffer_put(cpu, &other);
    CHECK(gm_backend_cpu.buffer_cost(cpu, UINT64_MAX) == UINT64_MAX);
}

static void test_repeat(void *cpu)
{
    struct gm_op op = product(GM_F64, GM_ROW_MAJOR, 40, 50, 60, 1);
    uint64_t random = check_seed();
    struct kernel_case made = case_make(&op, &random);
    const struct gm_variant *variant;

    case_seal(&made);
    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (gm_variant_check(variant, &made.op, gm_backend_cpu.describe(cpu, 0), NULL) != GM_OK)
            continue;
        for (unsigned repeat = 0; repeat < 5; repeat++) {
            struct gm_task task = {.op = made.op, .variant = variant, .repeat = repeat};
            CHECK_EQ(gm_backend_cpu.run(cpu, 0, 0, (struct gm_task *[]){&task}, 1), GM_OK);
            CHECK_EQ(task.status, GM_OK);
            CHECK(task.times.kernel_min >= 0 && task.times.kernel_min <= task.times.kernel);
            CHECK(task.times.prepare < 0 && task.times.h2d < 0 && task.times.d2h < 0);
        }
    }
    CHECK(case_intact(&made));
    case_free(&made);
}

struct stopper {
    struct gm_task *task;
    double at; /* milliseconds, by the monotonic clock */
};

static double milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void *stop_later(void *cls)
{
    struct stopper *stopper = cls;

    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    stopper->at = milliseconds();
    atomic_store(&stopper->task->stop, true);
    return NULL;
}

/* How soon is printed; that it does not run to its end, which is minutes away, is checked. */
static void test_stop(void *cpu, const struct gm_op *op, const char *name)
{
    uint64_t random = check_seed();
    struct kernel_case made = case_make(op, &random);
    const struct gm_device_facts *facts = gm_backend_cpu.describe(cpu, 0);
    const struct gm_variant *variant;
    struct gm_error err;
    pthread_t thread;

    case_seal(&made);
    if (gm_select(&made.op, facts, name, &variant, &err) == GM_OK) {
        struct gm_task task = {.op = made.op, .variant = variant, .repeat = 1000000};
        struct stopper stopper = {.task = &task};
        CHECK_EQ(pthread_create(&thread, NULL, stop_later, &stopper), 0);
        CHECK_EQ(gm_backend_cpu.run(cpu, 0, 0, (struct gm_task *[]){&task}, 1), GM_OK);
        double end = milliseconds();
        pthread_join(thread, NULL);
        CHECK_EQ(task.status, GM_CANCELLED);
        CHECK_EQ(task.error.status, GM_CANCELLED);
        CHECK(task.error.detail[0] != '\0');
        CHECK(case_intact(&made));
        printf("%s %s stopped after %.1f ms\n", gm_op_name(op->kind), name, end - stopper.at);

        /* A task that is stopped before it begins touches nothing. */
        case_poison(&made);
        atomic_store(&task.stop, true);
        CHECK_EQ(gm_backend_cpu.run(cpu, 0, 0, (struct gm_task *[]){&task}, 1), GM_OK);
        CHECK_EQ(task.status, GM_CANCELLED);
        const unsigned char *bytes = made.op.result.data;
        CHECK(bytes[0] == CASE_POISON && bytes[gm_matrix_bytes(&op->result) - 1] == CASE_POISON);
    }
    case_free(&made);
}

/* A column and a row: both repeated. */
static struct gm_op outer_sum(enum gm_dtype dtype, uint64_t rows, uint64_t cols)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {{dtype, GM_ROW_MAJOR, false, 1, rows, 1, NULL},
                                                 {dtype, GM_ROW_MAJOR, false, 1, 1, cols, NULL}};
    const bool present[GM_OPERANDS_MAX] = {true, true};
    struct gm_op_options options = {0};
    struct gm_error err = {.detail = ""};
    struct gm_op op = {0};

    CHECK_STATUS(gm_op_init(&op, GM_OP_ADD, &options, operand, present, &err), GM_OK, &err);
    return op;
}

static void test_stops(void *cpu)
{
    struct gm_op square = product(GM_F32, GM_ROW_MAJOR, 1200, 1200, 1200, 1);
    struct gm_op vector = product(GM_F32, GM_ROW_MAJOR, 1, 2000000, 1, 1);
    struct gm_op stack = product(GM_I64, GM_COL_MAJOR, 60, 60, 60, 100);
    struct gm_matrix operand[GM_OPERANDS_MAX] = {
        {GM_F32, GM_ROW_MAJOR, false, 1, 2048, 2048, NULL}};
    const bool present[GM_OPERANDS_MAX] = {true};
    struct gm_op_options options = {0};
    struct gm_error err;
    struct gm_op transpose;

    test_stop(cpu, &square, "naive");
    test_stop(cpu, &square, "blocked");
    test_stop(cpu, &square, "openblas");
    test_stop(cpu, &vector, "naive");
    test_stop(cpu, &vector, "blocked");
    test_stop(cpu, &vector, "skinny");
    test_stop(cpu, &vector, "openblas");
    test_stop(cpu, &stack, "blocked");
    CHECK_EQ(gm_op_init(&transpose, GM_OP_TRANSPOSE, &options, operand, present, &err), GM_OK);
    test_stop(cpu, &transpose, "naive");
    test_stop(cpu, &transpose, "blocked");
    CHECK_EQ(gm_op_init(&transpose, GM_OP_COPY, &options, operand, present, &err), GM_OK);
    test_stop(cpu, &transpose, "memcpy");
    test_stop(cpu, &transpose, "stream");
    CHECK_EQ(gm_op_init(&transpose, GM_OP_FLIP, &options, operand, present, &err), GM_OK);
    test_stop(cpu, &transpose, "naive");
    test_stop(cpu, &transpose, "vector");
    struct gm_op sum = outer_sum(GM_F16, 2048, 2048);
    test_stop(cpu, &sum, "direct");
    test_stop(cpu, &sum, "vector");
}

/* The other half of the load: runs of another context, until told to end. */
struct load {
    const struct gm_op *op;
    const struct gm_variant *variant;
    atomic_bool end;
};

static void *make_load(void *cls)
{
    struct load *load = cls;
    uint64_t random = 7;
    struct kernel_case made = case_make(load->op, &random);
    void *cpu = open_cpu(2, 0);

    case_seal(&made);
    while (!atomic_load(&load->end))
        CHECK_EQ(case_run(cpu, &made, load->variant, NULL), GM_OK);
    gm_backend_cpu.close(cpu);
    case_free(&made);
    return NULL;
}

/* The same bits twice, with any number of threads, and beside other work. */
static void test_same_bits(const struct gm_op *op)
{
    uint64_t random = check_seed(), bytes = gm_matrix_bytes(&op->result);
    struct kernel_case made = case_make(op, &random);
    const unsigned threads[] = {1, 2, 5};
    const struct gm_variant *variant;
    struct gm_device_facts facts = {.kind = GM_DEVICE_CPU};
    char *first = malloc(bytes), text[256];
    void *cpu[3];

    case_seal(&made);
    for (int i = 0; i < 3; i++)
        cpu[i] = open_cpu(threads[i], 0);
    for (size_t v = 0; (variant = gm_variant_at(v)); v++) {
        struct load load = {.op = op, .variant = variant};
        pthread_t thread;
        if (gm_variant_check(variant, &made.op, &facts, NULL) != GM_OK)
            continue;
        CHECK_EQ(case_run(cpu[0], &made, variant, NULL), GM_OK);
        memcpy(first, made.op.result.data, bytes);
        CHECK_EQ(pthread_create(&thread, NULL, make_load, &load), 0);
        for (int i = 0; i < (CHECK_SANITIZED ? 3 : 9); i++) {
            case_poison(&made);
            CHECK_EQ(case_run(cpu[i % 3], &made, variant, NULL), GM_OK);
            if (!CHECK(memcmp(first, made.op.result.data, bytes) == 0))
                fprintf(stderr, "  %s by %s with %u threads\n", case_text(op, text), variant->name,
                        threads[i % 3]);
        }
        atomic_store(&load.end, true);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < 3; i++)
        gm_backend_cpu.close(cpu[i]);
    free(first);
    case_free(&made);
}

#define ROUNDS (CHECK_SANITIZED ? 3 : 8) /* runs of each of five threads at once */

/* Runs on this thread, beside others and the stream of the same context. */
struct here {
    void *cpu;
    const struct gm_op *op;
    const struct gm_variant *variant;
    const char *expected;
};

static void *run_here(void *cls)
{
    const struct here *x = cls;
    uint64_t random = check_seed(), bytes = gm_matrix_bytes(&x->op->result);
    struct kernel_case made = case_make(x->op, &random);

    case_seal(&made);
    for (int i = 0; i < ROUNDS; i++) {
        struct gm_task task = {.op = made.op, .variant = x->variant, .repeat = 1};
        case_poison(&made);
        CHECK_EQ(gm_backend_cpu.run_here(x->cpu, 0, &task), GM_OK);
        CHECK_EQ(task.status, GM_OK);
        CHECK(task.times.kernel > 0 && task.times.h2d == -1);
        CHECK(memcmp(x->expected, made.op.result.data, bytes) == 0);
    }
    CHECK(case_intact(&made));
    case_free(&made);
    return NULL;
}

/* On a caller's thread the bits are those of the stream, whatever else goes on. */
static void test_here(const struct gm_op *op)
{
    uint64_t random = check_seed(), bytes = gm_matrix_bytes(&op->result);
    struct kernel_case made = case_make(op, &random);
    struct gm_device_facts facts = {.kind = GM_DEVICE_CPU};
    char *first = malloc(bytes);
    struct here here = {.cpu = open_cpu(2, 0), .op = op, .expected = first};

    case_seal(&made);
    for (size_t v = 0; (here.variant = gm_variant_at(v)); v++) {
        pthread_t thread[4];
        if (gm_variant_check(here.variant, &made.op, &facts, NULL) != GM_OK)
            continue;
        CHECK_EQ(case_run(here.cpu, &made, here.variant, NULL), GM_OK);
        memcpy(first, made.op.result.data, bytes);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(pthread_create(&thread[i], NULL, run_here, &here), 0);
        for (int i = 0; i < ROUNDS; i++)
            CHECK_EQ(case_run(here.cpu, &made, here.variant, NULL), GM_OK);
        for (int i = 0; i < 4; i++)
            pthread_join(thread[i], NULL);
        CHECK(memcmp(first, made.op.result.data, bytes) == 0);
    }
    gm_backend_cpu.close(here.cpu);
    free(first);
    case_free(&made);
}

/* A product is none of what the one before left in a thread's scratch: NaN. */
static void test_nothing_is_left(void *cpu)
{
    const struct gm_op ops[] = {product(GM_F32, GM_ROW_MAJOR, 1, 8, 40, 1),
                                product(GM_F32, GM_ROW_MAJOR, 1, 5, 40, 1)};
    uint64_t random = check_seed();

    for (unsigned i = 0; i < 2; i++) {
        struct kernel_case made = case_make(&ops[i], &random);
        const struct gm_variant *skinny = NULL;
        struct gm_error err = {.detail = ""};
        for (unsigned j = 0; j < 8 && i == 0; j++)
            ((float *)made.op.operand[0].data)[j] = NAN;
        case_seal(&made);
        CHECK_EQ(gm_select(&made.op, gm_backend_cpu.describe(cpu, 0), "skinny", &skinny, &err),
                 GM_OK);
        CHECK_EQ(case_run(cpu, &made, skinny, NULL), GM_OK);
        for (unsigned j = 0; j < 40; j++)
            CHECK(isnan(((const float *)made.op.result.data)[j]) == (i == 0));
        case_free(&made);
    }
}

int main(void)
{
    void *cpu = open_cpu(0, 0);
    struct gm_op square = product(GM_F32, GM_ROW_MAJOR, 200, 210, 220, 1);
    struct gm_op tall = product(GM_F64, GM_COL_MAJOR, 3, 40000, 2, 1);
    struct gm_op half = product(GM_F16, GM_ROW_MAJOR, 130, 300, 140, 2);

    test_facts(cpu);
    test_buffers(cpu);
    test_repeat(cpu);
    test_nothing_is_left(cpu);
    test_stops(cpu);
    gm_backend_cpu.close(cpu);
    test_scratch();
    test_same_bits(&square);
    test_same_bits(&tall);
    test_same_bits(&half);
    struct gm_op sum = outer_sum(GM_BF16, 900, 700);
    test_same_bits(&sum);
    struct gm_op small = product(GM_F32, GM_COL_MAJOR, 60, 70, 50, 2);
    test_here(&small);
    test_here(&square);
    return check_report();
}
