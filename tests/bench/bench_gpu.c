/*
 * bench_gpu.c - times every kernel variant for GPUs, beside cudaMemcpy and cuBLAS.
 *
 *   bench_gpu [--op OP] [--only VARIANT] [--seconds S] [--json FILE]
 *
 * Proves, then times: each variant's result is compared with the oracle before it is timed, and the
 * first that is wrong ends the program with 1. Runs are enqueued many at a time behind something
 * long, so that no launch is waited for, each between two events; sets of operands take turns, so
 * that none is found in the L2 cache. 77 where there is no GPU.
 */
#include "bench_gpu_result.h"
#include "kernels/layout.h"
#include "proof.h"
#include "tests/unit/operands.h"

#include <errno.h>
#include <time.h>

#define SETS_MAX 64
#define BATCH 32u    /* runs under way at once; each leaves at most five marks */
#define RUNS_MAX 640 /* of one variant on one shape */
#define RUNS_MIN 10  /* but 3 where a run takes long */
#define LONG_US 50e3 /* a run that nobody waits for ten times */
#define SKIPPED 77
#define HEAD_START_BYTES ((uint64_t)1 << 30) /* to be set while runs are enqueued */
#define SPIN_UP_SECONDS 1.0                  /* until the clocks have risen */

static struct {
    const char *json, *only, *op;
    double seconds;
} config = {.seconds = 0.2};

struct work {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    uint64_t a[3], b[3]; /* batch, rows, cols */
    bool transa, transb;
};

/* The copies come first: they say what 100 % is. */
static const struct work works[] = {
    {GM_OP_COPY, GM_F32, .a = {1, 8192, 8192}},
    {GM_OP_COPY, GM_U8, .a = {1, 16384, 16384}},
    {GM_OP_COPY, GM_C128, .a = {1, 4096, 4096}},
    {GM_OP_COPY, GM_F32, .a = {1, 1024, 1024}},

    {GM_OP_TRANSPOSE, GM_F32, .a = {1, 8192, 8192}},
    {GM_OP_TRANSPOSE, GM_F32, .a = {1, 8191, 8193}},
    {GM_OP_TRANSPOSE, GM_F32, .a = {1, 4096, 4096}},
    {GM_OP_TRANSPOSE, GM_F32, .a = {1, 1024, 1024}},
    {GM_OP_TRANSPOSE, GM_F32, .a = {1, 32768, 2048}},
    {GM_OP_TRANSPOSE, GM_F32, .a = {1, 16777216, 3}},
    {GM_OP_TRANSPOSE, GM_F32, .a = {1, 3, 16777216}},
    {GM_OP_TRANSPOSE, GM_F32, .a = {16384, 64, 64}},
    {GM_OP_TRANSPOSE, GM_U8, .a = {1, 16384, 16384}},
    {GM_OP_TRANSPOSE, GM_F16, .a = {1, 8192, 8192}},
    {GM_OP_TRANSPOSE, GM_F64, .a = {1, 8192, 4096}},
    {GM_OP_TRANSPOSE, GM_C128, .a = {1, 4096, 4096}},

    {GM_OP_MATMUL, GM_F32, .a = {1, 128, 128}, .b = {1, 128, 128}},
    {GM_OP_MATMUL, GM_F32, .a = {1, 256, 256}, .b = {1, 256, 256}},
    {GM_OP_MATMUL, GM_F32, .a = {1, 1024, 1024}, .b = {1, 1024, 1024}},
    {GM_OP_MATMUL, GM_F32, .a = {1, 4096, 4096}, .b = {1, 4096, 4096}},
    {GM_OP_MATMUL, GM_F32, .a = {1, 8192, 8192}, .b = {1, 8192, 8192}},
    {GM_OP_MATMUL, GM_F32, .a = {1, 4099, 4097}, .b = {1, 4097, 4093}},
    {GM_OP_MATMUL, GM_F32, .a = {1, 4096, 4096}, .b = {1, 4096, 4096}, .transa = true},
    {GM_OP_MATMUL, GM_F32, .a = {1, 4096, 4096}, .b = {1, 4096, 4096}, .transb = true},
    {GM_OP_MATMUL, GM_F32, .a = {4096, 32, 32}, .b = {4096, 32, 32}},
    {GM_OP_MATMUL, GM_F16, .a = {1, 4096, 4096}, .b = {1, 4096, 4096}},
    {GM_OP_MATMUL, GM_BF16, .a = {1, 4096, 4096}, .b = {1, 4096, 4096}},
    {GM_OP_MATMUL, GM_F64, .a = {1, 4096, 4096}, .b = {1, 4096, 4096}},
    {GM_OP_MATMUL, GM_I32, .a = {1, 4096, 4096}, .b = {1, 4096, 4096}},
    {GM_OP_MATMUL, GM_I64, .a = {1, 2048, 2048}, .b = {1, 2048, 2048}},

    {GM_OP_ADD, GM_F32, .a = {1, 8192, 8192}, .b = {1, 8192, 8192}},
    {GM_OP_ADD, GM_F32, .a = {1, 8192, 8192}, .b = {1, 1, 8192}},
    {GM_OP_ADD, GM_F32, .a = {1, 8192, 8192}, .b = {1, 8192, 1}},
    {GM_OP_ADD, GM_F32, .a = {1, 16777216, 3}, .b = {1, 16777216, 3}},
    {GM_OP_ADD, GM_F32, .a = {1, 16777216, 3}, .b = {1, 1, 3}},
    {GM_OP_ADD, GM_F32, .a = {65536, 16, 16}, .b = {65536, 16, 1}},
    {GM_OP_ADD, GM_F16, .a = {1, 8192, 8192}, .b = {1, 8192, 8192}},
    {GM_OP_ADD, GM_F64, .a = {1, 8192, 4096}, .b = {1, 8192, 4096}},
    {GM_OP_ADD, GM_I64, .a = {1, 8192, 4096}, .b = {1, 8192, 4096}},

    {GM_OP_FLIP, GM_F32, .a = {1, 8192, 8192}},
    {GM_OP_FLIP, GM_F32, .a = {1, 8192, 8191}},
    {GM_OP_FLIP, GM_F32, .a = {1, 16777216, 3}},
    {GM_OP_FLIP, GM_U8, .a = {1, 16384, 16384}},
    {GM_OP_FLIP, GM_F16, .a = {1, 8192, 8192}},
    {GM_OP_FLIP, GM_C128, .a = {1, 4096, 4096}},
};

struct bench {
    struct device device;
    uint64_t random;
    FILE *json;
    double copy_gbs, cublas_gflops; /* the best copy so far; cuBLAS on the shape at hand */
    void *head_start;
};

/* An operation's operands in host memory and, `sets` times, on the device. */
struct operands {
    struct gm_op host, set[SETS_MAX];
    unsigned sets;
};

/* One of those that run an operation: a variant, or a yardstick. */
struct contender {
    const char *name;
    const struct gm_variant *variant;
    yardstick_fn *yardstick;
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_gpu: %s: %s\n", what, detail);
    exit(1);
}

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        die(what, cudaGetErrorString(error));
}

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct gm_op op_of(const struct work *work)
{
    const uint64_t *dims[2] = {work->a, work->b};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {true, work->b[0] > 0};
    struct gm_op_options options = {.transa = work->transa, .transb = work->transb};
    struct gm_error err;
    struct gm_op op;

    for (int i = 0; i < 2 && present[i]; i++) {
        struct gm_shape shape = {3, {dims[i][0], dims[i][1], dims[i][2]}};
        if (dims[i][0] == 1)
            shape = (struct gm_shape){2, {dims[i][1], dims[i][2]}};
        if (gm_matrix_init(&operand[i], work->dtype, GM_ROW_MAJOR, &shape, &err) != GM_OK)
            die("shape", err.detail);
    }
    if (gm_op_init(&op, work->kind, &options, operand, present, &err) != GM_OK)
        die("operation", err.detail);
    return op;
}

static void *host_memory(uint64_t bytes)
{
    void *data = aligned_alloc(64, (bytes + 63) / 64 * 64);

    if (!data)
        die("memory", "the host has no more");
    return data;
}

/* The same random operands in every set: what differs is where they lie. */
static void make_operands(struct bench *bench, const struct gm_op *op, struct operands *ret)
{
    uint64_t wanted = 2 * bench->device.l2_bytes / (gm_op_bytes_min(op) + 1) + 1;

    ret->host = *op;
    ret->sets = wanted < SETS_MAX ? (unsigned)wanted : SETS_MAX;
    ret->host.result.data = host_memory(gm_matrix_bytes(&op->result));
    for (unsigned i = 0; i < op->operands; i++) {
        struct gm_matrix *x = &ret->host.operand[i];
        x->data = host_memory(gm_matrix_bytes(x));
        random_fill(&bench->random, x->dtype, x->data, gm_matrix_elements(x));
    }
    for (unsigned i = 0; i < ret->sets; i++) {
        struct gm_op *set = &ret->set[i];
        *set = *op;
        must(cudaMalloc(&set->result.data, gm_matrix_bytes(&op->result)), "memory");
        for (unsigned j = 0; j < op->operands; j++) {
            uint64_t bytes = gm_matrix_bytes(&op->operand[j]);
            must(cudaMalloc(&set->operand[j].data, bytes), "memory");
            must(cudaMemcpy(set->operand[j].data,
                            i == 0 ? ret->host.operand[j].data : ret->set[0].operand[j].data, bytes,
                            cudaMemcpyDefault),
                 "upload");
        }
    }
}

static void free_operands(struct operands *operands)
{
    free(operands->host.result.data);
    for (unsigned i = 0; i < operands->host.operands; i++)
        free(operands->host.operand[i].data);
    for (unsigned i = 0; i < operands->sets; i++) {
        cudaFree(operands->set[i].result.data);
        for (unsigned j = 0; j < operands->host.operands; j++)
            cudaFree(operands->set[i].operand[j].data);
    }
}

static bool enqueue(struct bench *bench, const struct contender *contender, const struct gm_op *op)
{
    if (contender->yardstick)
        return contender->yardstick(&bench->device, op);
    return device_run(&bench->device, op, contender->variant) == GM_OK;
}

/* Runs once, on the first set. false where it is no work of a yardstick; ends the program where the
 * result is wrong. */
static bool prove(struct bench *bench, const struct contender *contender,
                  const struct operands *operands, const struct proof *proof,
                  struct device_times *ret)
{
    const struct gm_matrix *result = &operands->set[0].result;
    uint64_t bytes = gm_matrix_bytes(result);

    must(cudaMemset(result->data, 0xFF, bytes), "poison");
    if (!enqueue(bench, contender, &operands->set[0])) {
        if (contender->variant)
            die(contender->name, bench->device.error);
        return false;
    }
    if (!device_wait(&bench->device))
        die(contender->name, bench->device.error);
    must(cudaMemcpy(operands->host.result.data, result->data, bytes, cudaMemcpyDeviceToHost),
         "download");
    if (!proof_holds(proof, &operands->host))
        die(contender->name, "the result is wrong");
    device_read_times(&bench->device, ret, 1);
    return true;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static struct timing timing_of(double *kernel, double *prepare, unsigned runs)
{
    struct timing timing = {.runs = runs};

    qsort(kernel, runs, sizeof(*kernel), by_size);
    qsort(prepare, runs, sizeof(*prepare), by_size);
    timing.median = kernel[runs / 2];
    timing.least = kernel[0];
    timing.prepare = prepare[runs / 2];
    timing.spread = (kernel[runs * 3 / 4] - kernel[runs / 4]) / timing.median;
    return timing;
}

/* The first batch warms up and does not count. */
static struct timing measure(struct bench *bench, const struct contender *contender,
                             const struct operands *operands, const struct device_times *proved)
{
    double kernel[RUNS_MAX + BATCH], prepare[RUNS_MAX + BATCH];
    bool is_long = proved->kernel + proved->prepare > LONG_US;
    unsigned batch = is_long ? 1 : BATCH, least = is_long ? 3 : RUNS_MIN;
    unsigned set = 0, runs = 0;
    double end = 0;

    for (bool warm = false; runs < least || (runs < RUNS_MAX && seconds_now() < end); warm = true) {
        struct device_times times[BATCH];
        cudaMemsetAsync(bench->head_start, 0, HEAD_START_BYTES, bench->device.exec.stream);
        for (unsigned i = 0; i < batch; i++, set++) {
            if (!enqueue(bench, contender, &operands->set[set % operands->sets]))
                die(contender->name, bench->device.error);
        }
        if (!device_wait(&bench->device))
            die(contender->name, bench->device.error);
        unsigned read = device_read_times(&bench->device, times, BATCH);
        if (read != batch)
            die(contender->name, "a run was not timed");
        for (unsigned i = 0; warm && i < read; i++, runs++) {
            kernel[runs] = times[i].kernel;
            prepare[runs] = times[i].prepare;
        }
        end = warm ? end : seconds_now() + config.seconds;
    }
    return timing_of(kernel, prepare, runs);
}

static void compete(struct bench *bench, const struct contender *contender,
                    const struct operands *operands, const struct proof *proof)
{
    struct result result = {.op = &operands->host, .variant = contender->name};
    struct device_times proved = {0};

    if (!prove(bench, contender, operands, proof, &proved))
        return;
    result.timing = measure(bench, contender, operands, &proved);
    double gbs = 1e-3 * (double)gm_op_bytes_min(result.op) / result.timing.median;
    double gflops = 1e-3 * gm_op_flops(result.op) / result.timing.median;
    /* A copy that fits the cache is none of memory's. */
    if (result.op->kind == GM_OP_COPY && gbs > bench->copy_gbs &&
        gm_op_bytes_min(result.op) > 4 * bench->device.l2_bytes)
        bench->copy_gbs = gbs;
    if (contender->yardstick == yardstick_cublas)
        bench->cublas_gflops = gflops;
    result.copy_gbs = bench->copy_gbs;
    result.cublas_gflops = bench->cublas_gflops;
    result_print(&result);
    if (bench->json)
        result_file_add(bench->json, &result);
}

static void bench_work(struct bench *bench, const struct work *work)
{
    static const struct contender yardsticks[] = {
        {.name = "cudaMemcpy", .yardstick = yardstick_memcpy},
        {.name = "cublas", .yardstick = yardstick_cublas},
    };
    static struct operands operands;
    const struct gm_variant *variant;
    struct gm_op op = op_of(work);
    struct proof proof;

    make_operands(bench, &op, &operands);
    if (!proof_make(&proof, &operands.host, &bench->random))
        die("memory", "no room for a proof");
    bench->cublas_gflops = 0;
    for (size_t i = 0; i < sizeof(yardsticks) / sizeof(yardsticks[0]); i++)
        compete(bench, &yardsticks[i], &operands, &proof);
    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        struct contender contender = {.name = variant->name, .variant = variant};
        if (variant->op == op.kind && (!config.only || strcmp(config.only, variant->name) == 0) &&
            gm_variant_check(variant, &op, &bench->device.facts, NULL) == GM_OK)
            compete(bench, &contender, &operands, &proof);
    }
    proof_free(&proof);
    free_operands(&operands);
}

static void spin_up(struct bench *bench)
{
    double end = seconds_now() + SPIN_UP_SECONDS;

    while (seconds_now() < end) {
        for (int i = 0; i < 32; i++)
            must(cudaMemsetAsync(bench->head_start, 0, HEAD_START_BYTES, bench->device.exec.stream),
                 "memset");
        if (!device_wait(&bench->device))
            die("memset", bench->device.error);
    }
}

static void parse_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value)
            die(argv[i], "usage: bench_gpu [--op OP] [--only VARIANT] [--seconds S] [--json FILE]");
        if (strcmp(argv[i], "--op") == 0)
            config.op = value;
        else if (strcmp(argv[i], "--only") == 0)
            config.only = value;
        else if (strcmp(argv[i], "--json") == 0)
            config.json = value;
        else if (strcmp(argv[i], "--seconds") == 0)
            config.seconds = strtod(value, NULL);
        else
            die(argv[i], "there is no such option");
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;

    parse_arguments(argc, argv);
    if (!device_open(&bench.device)) {
        printf("%s: nothing to measure\n", bench.device.error);
        return SKIPPED;
    }
    bench.device.times = true;
    bench.random = check_seed();
    must(cudaMalloc(&bench.head_start, HEAD_START_BYTES), "memory");
    spin_up(&bench);
    struct yardstick_clocks clocks = yardstick_read_clocks();
    printf("%s, driver %s, SM clock %u MHz (at most %u), memory %u (%u), %s\n",
           bench.device.facts.name, bench.device.driver, clocks.sm, clocks.sm_max, clocks.memory,
           clocks.memory_max,
           yardstick_open_cublas(&bench.device) ? "with cuBLAS" : "cuBLAS not found");
    if (config.json && !(bench.json = result_file_open(config.json, &bench.device, &clocks)))
        die(config.json, strerror(errno));
    for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
        if (!config.op || strcmp(config.op, gm_op_name(works[i].kind)) == 0)
            bench_work(&bench, &works[i]);
    }
    if (bench.json && !result_file_close(bench.json))
        die(config.json, "not all of it was written");
    cudaFree(bench.head_start);
    device_close(&bench.device);
    return 0;
}
