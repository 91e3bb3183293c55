/*
 * bench_groups.c - measures small jobs at the backend, whose matrices lie in pinned memory already:
 * by the variants `grouped`, many a launch and where they are, against copies and another kernel.
 *
 *   bench_groups [--json FILE]
 *
 * First 64 x 64 products, by jobs a launch and streams: jobs a second, and the share of the rate
 * at which a kernel can read or write over the link. Then each operation by size: microseconds of
 * a lone job, and of a job among many, both ways. The crossovers in kernels/choose come from it.
 */
#include "kernels/backend.h"
#include "kernels/choose/choose.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAMS_MAX 6u
#define STREAMS_BY_SIZE 4u /* of many jobs of each size, as recorded results have it */
#define GROUP_MAX 64u
#define ROUND_US 30000.0
#define ROUNDS 3u

static void *context;
static const struct gm_device_facts *facts;
static FILE *json;
static bool json_has_rows;

/* Jobs of one shape: `size` a launch, on so many streams at once. */
struct load {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    uint64_t side;
    const char *variant;
    unsigned size, streams;
};

struct job {
    struct gm_task task;
    struct gm_buffer buffer[GM_OPERANDS_MAX + 1];
};

struct worker {
    unsigned stream, size;
    double took_us, kernel_us;
    uint64_t launches;
    struct job job[GROUP_MAX];
    pthread_barrier_t *barrier;
};

static void fail(const char *what, const struct gm_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->detail);
    exit(1);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Values of some thousand different bits: -1 to 1 in f32. */
static void fill(float *data, uint64_t bytes, uint64_t seed)
{
    for (uint64_t i = 0; i < bytes / sizeof(*data); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        data[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
}

/* False where the variant does not take it. */
static bool job_make(const struct load *load, struct job *ret)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {true, gm_op_operands_min(load->kind) == 2};
    struct gm_op_options options = {.precision = GM_PRECISION_FP32};
    struct gm_shape shape = {2, {load->side, load->side}};
    struct gm_op *op = &ret->task.op;
    struct gm_error err = {.detail = ""};
    enum gm_status status = GM_OK;

    memset(ret, 0, sizeof(*ret));
    ret->task.repeat = 1;
    for (unsigned i = 0; i < 2 && status == GM_OK; i++)
        status = gm_matrix_init(&operand[i], load->dtype, GM_ROW_MAJOR, &shape, &err);
    if (status == GM_OK)
        status = gm_op_init(op, load->kind, &options, operand, present, &err);
    if (status == GM_OK && gm_select(op, facts, load->variant, &ret->task.variant, &err) != GM_OK)
        return false;
    if (status == GM_OK)
        gm_set_tiles(op, facts); /* the daemon's */
    for (unsigned i = 0; i <= op->operands && status == GM_OK; i++) {
        struct gm_matrix *x = i < op->operands ? &op->operand[i] : &op->result;
        status = gm_backend_cuda.buffer_get(context, gm_matrix_bytes(x), &ret->buffer[i], &err);
        if (status != GM_OK)
            break;
        x->data = ret->buffer[i].data;
        fill(ret->buffer[i].data, ret->buffer[i].bytes, i + 1);
    }
    if (status != GM_OK)
        fail("a job", &err);
    return true;
}

static void job_put(struct job *job)
{
    for (unsigned i = 0; i <= GM_OPERANDS_MAX; i++)
        gm_backend_cuda.buffer_put(context, &job->buffer[i]);
}

static void launch(struct worker *worker)
{
    struct gm_task *task[GROUP_MAX];

    for (unsigned i = 0; i < worker->size; i++)
        task[i] = &worker->job[i].task;
    gm_backend_cuda.run(context, 0, worker->stream, task, worker->size);
    for (unsigned i = 0; i < worker->size; i++)
        if (task[i]->status != GM_OK)
            fail("a run", &task[i]->error);
    worker->kernel_us += task[0]->times.kernel;
}

static void *work(void *cls)
{
    struct worker *worker = cls;

    for (unsigned i = 0; i < 3; i++)
        launch(worker);
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(worker->barrier);
        double begin = now_us();
        worker->launches = 0;
        worker->kernel_us = 0;
        while (now_us() - begin < ROUND_US) {
            launch(worker);
            worker->launches++;
        }
        worker->took_us = now_us() - begin;
        pthread_barrier_wait(worker->barrier);
    }
    return NULL;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

/* Jobs a second, the median of some rounds; 0 where the variant does not take them. *kernel_us, if
 * it is not NULL: the mean time of the kernel. */
static double measure(const struct load *load, double *kernel_us)
{
    static struct worker worker[STREAMS_MAX];
    pthread_t thread[STREAMS_MAX];
    pthread_barrier_t barrier;
    double rate[ROUNDS] = {0};
    bool takes = true;

    pthread_barrier_init(&barrier, NULL, load->streams + 1);
    memset(worker, 0, sizeof(worker));
    for (unsigned i = 0; i < load->streams; i++) {
        worker[i] = (struct worker){.stream = i, .size = load->size, .barrier = &barrier};
        for (unsigned j = 0; j < load->size; j++)
            takes = job_make(load, &worker[i].job[j]) && takes;
    }
    for (unsigned i = 0; takes && i < load->streams; i++)
        if (pthread_create(&thread[i], NULL, work, &worker[i]) != 0)
            fail("a thread", &(struct gm_error){.detail = "cannot be had"});
    for (unsigned i = 0; takes && i < ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        for (unsigned j = 0; j < load->streams; j++)
            rate[i] += (double)(worker[j].launches * load->size) / worker[j].took_us * 1e6;
    }
    for (unsigned i = 0; i < load->streams; i++) {
        if (takes)
            pthread_join(thread[i], NULL);
        if (takes && kernel_us)
            *kernel_us = worker[i].kernel_us / (double)worker[i].launches;
        for (unsigned j = 0; j < load->size; j++)
            job_put(&worker[i].job[j]);
    }
    pthread_barrier_destroy(&barrier);
    qsort(rate, ROUNDS, sizeof(rate[0]), by_size);
    return rate[ROUNDS / 2];
}

static uint64_t bytes_of(const struct load *load, bool in)
{
    return load->side * load->side * gm_dtype_size(load->dtype) *
           (in ? gm_op_operands_min(load->kind) : 1);
}

/* Jobs a second that the link could carry, each way at once. */
static double link_rate(const struct load *load)
{
    double in = 1e9 * facts->link_in_gbs / (double)bytes_of(load, true);
    double out = 1e9 * facts->link_out_gbs / (double)bytes_of(load, false);

    return in < out ? in : out;
}

static void row(const struct load *load, double rate)
{
    if (!json)
        return;
    fprintf(json,
            "%s\n  {\"op\": \"%s\", \"dtype\": \"%s\", \"side\": %llu, \"variant\": \"%s\", "
            "\"jobs\": %u, \"streams\": %u, \"jobs_per_s\": %.0f, \"share_of_link\": %.3f}",
            json_has_rows ? "," : "", gm_op_name(load->kind), gm_dtype_name(load->dtype),
            (unsigned long long)load->side, load->variant, load->size, load->streams, rate,
            rate / link_rate(load));
    json_has_rows = true;
}

/* The best of the variants that copies serve, and its name. */
static double by_copies(struct load load)
{
    static const char *const variants[] = {"small_tile", "multistage_tuned", "cublas", "padded",
                                           "vectorized", "skinny",           "shared"};
    const char *best_variant = "";
    double best = 0;

    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        load.variant = variants[i];
        double rate = measure(&load, NULL);
        if (rate > best) {
            best = rate;
            best_variant = variants[i];
        }
    }
    load.variant = best_variant;
    row(&load, best);
    return best;
}

static void by_launch(void)
{
    static const unsigned sizes[] = {1, 2, 4, 8, 16, 32, GROUP_MAX};
    struct load load = {.kind = GM_OP_MATMUL, .dtype = GM_F32, .side = 64, .variant = "grouped"};

    printf("64 x 64 products, grouped: jobs a second (share of the link)\n%8s", "a launch");
    for (unsigned streams = 1; streams <= STREAMS_MAX; streams++)
        printf("  %6u stream%s ", streams, streams > 1 ? "s" : " ");
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        load.size = sizes[i] < facts->batch_max ? sizes[i] : facts->batch_max;
        printf("\n%8u", load.size);
        for (load.streams = 1; load.streams <= STREAMS_MAX; load.streams++) {
            double rate = measure(&load, NULL);
            row(&load, rate);
            printf("  %9.0f (%.2f)", rate, rate / link_rate(&load));
            fflush(stdout);
        }
    }
    load.size = 1;
    printf("\n  copies");
    for (load.streams = 1; load.streams <= STREAMS_MAX; load.streams++) {
        double rate = by_copies(load);
        printf("  %9.0f (%.2f)", rate, rate / link_rate(&load));
    }
    printf("\n");
}

static void by_size_of(enum gm_op_kind kind, enum gm_dtype dtype)
{
    static const uint64_t sides[] = {8, 32, 64, 96, 128, 160, 192, 256, 384, 512, 700};

    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        struct load load = {kind, dtype, sides[i], "grouped", 1, 1};
        double kernel_us = 0, lone = measure(&load, &kernel_us);
        if (lone == 0)
            break;
        row(&load, lone);
        double lone_copied = by_copies(load);
        load.streams = STREAMS_BY_SIZE;
        double many_copied = by_copies(load);
        uint64_t fit = facts->batch_bytes / (bytes_of(&load, true) + bytes_of(&load, false));
        load.size = fit < facts->batch_max ? (unsigned)fit : facts->batch_max;
        load.size = load.size < GROUP_MAX ? load.size : GROUP_MAX;
        double many = measure(&load, NULL);
        row(&load, many);
        printf("%-9s %-4s %4llu: alone %6.1f us (kernel %5.1f), by copies %6.1f; among many %6.2f "
               "us, by copies %6.2f; link %6.2f\n",
               gm_op_name(kind), gm_dtype_name(dtype), (unsigned long long)sides[i], 1e6 / lone,
               kernel_us, 1e6 / lone_copied, 1e6 / many, 1e6 / many_copied, 1e6 / link_rate(&load));
        fflush(stdout);
    }
}

static void open_json(const char *path)
{
    const char *commit = getenv("GM_COMMIT");
    time_t now = time(NULL);
    char date[32];

    json = fopen(path, "w");
    if (!json) {
        perror(path);
        exit(1);
    }
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    fprintf(json,
            "{\"benchmark\": \"bench_groups\", \"date\": \"%s\", \"commit\": \"%s\", \"device\": "
            "\"%s\", \"link_in_gbs\": %.1f, \"link_out_gbs\": %.1f,\n \"results\": [",
            date, commit ? commit : "unknown", facts->name, facts->link_in_gbs,
            facts->link_out_gbs);
}

int main(int argc, char **argv)
{
    const struct gm_backend_options options = {.streams = STREAMS_MAX};
    struct gm_error err = {.detail = ""};

    if (argc != 1 && !(argc == 3 && strcmp(argv[1], "--json") == 0)) {
        fprintf(stderr, "usage: bench_groups [--json FILE]\n");
        return 2;
    }
    if (gm_backend_cuda.open(&options, &context, &err) != GM_OK)
        fail("no GPU", &err);
    facts = gm_backend_cuda.describe(context, 0);
    if (argc == 3)
        open_json(argv[2]);
    printf("%s, link %.1f GB/s in, %.1f GB/s out\n", facts->name, facts->link_in_gbs,
           facts->link_out_gbs);
    by_launch();
    by_size_of(GM_OP_MATMUL, GM_F32);
    by_size_of(GM_OP_MATMUL, GM_F64);
    by_size_of(GM_OP_TRANSPOSE, GM_F32);
    by_size_of(GM_OP_TRANSPOSE, GM_U8);
    by_size_of(GM_OP_ADD, GM_F32);
    by_size_of(GM_OP_FLIP, GM_F32);
    if (json && (fputs("\n]}\n", json) < 0 || fclose(json) != 0)) {
        perror(argv[2]);
        return 1;
    }
    gm_backend_cuda.close(context);
    return 0;
}
