/*
 * bench_streams.c - measures whether streams overlap: the same jobs by 1 to 4 threads, each with a
 * stream of its own. A job's stages are timed by events on its own stream. If copies in, kernels
 * and copies out of different jobs ran one after the other, no number of streams could do the jobs
 * in less time than those stages take together on one.
 *
 *   bench_streams [--json FILE]
 */
#include "kernels/backend.h"
#include "kernels/choose/choose.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAMS_MAX 4u
#define WARM_RUNS 3u

struct load {
    enum gm_op_kind kind;
    uint64_t side;
    unsigned runs; /* by each stream */
};

static const struct load loads[] = {
    {GM_OP_TRANSPOSE, 8192, 24},  {GM_OP_ADD, 8192, 24},     {GM_OP_MATMUL, 4096, 24},
    {GM_OP_TRANSPOSE, 1024, 400}, {GM_OP_MATMUL, 1024, 400},
};

struct worker {
    void *context;
    unsigned stream, runs;
    struct gm_task task;
    struct gm_buffer buffer[GM_OPERANDS_MAX + 1];
    struct gm_times sum; /* of all runs */
    pthread_barrier_t *barrier;
    bool failed;
};

static void fail(const char *what, const struct gm_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->detail);
    exit(1);
}

static void prepare(struct worker *worker, const struct load *load)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {true, gm_op_operands_min(load->kind) == 2};
    struct gm_op_options options = {.precision = GM_PRECISION_IEEE};
    struct gm_shape shape = {2, {load->side, load->side}};
    struct gm_op *op = &worker->task.op;
    struct gm_error err = {.detail = ""};
    const struct gm_device_facts *facts = gm_backend_cuda.describe(worker->context, 0);
    enum gm_status status = GM_OK;

    worker->task.repeat = 1;
    for (unsigned i = 0; i < 2 && status == GM_OK; i++)
        status = gm_matrix_init(&operand[i], GM_F32, GM_ROW_MAJOR, &shape, &err);
    if (status == GM_OK)
        status = gm_op_init(op, load->kind, &options, operand, present, &err);
    if (status == GM_OK)
        status = gm_select(op, facts, NULL, &worker->task.variant, &err);
    if (status == GM_OK)
        gm_set_tiles(op, facts); /* the daemon's */
    for (unsigned i = 0; i <= op->operands && status == GM_OK; i++) {
        struct gm_matrix *x = i < op->operands ? &op->operand[i] : &op->result;
        struct gm_buffer *buffer = &worker->buffer[i];
        status = gm_backend_cuda.buffer_get(worker->context, gm_matrix_bytes(x), buffer, &err);
        if (status != GM_OK)
            break;
        x->data = buffer->data;
        memset(buffer->data, 0x3C, buffer->bytes); /* 0.0115 */
    }
    if (status != GM_OK)
        fail("a job", &err);
}

static void *work(void *cls)
{
    struct worker *worker = cls;

    for (unsigned i = 0; i < WARM_RUNS + worker->runs; i++) {
        if (i == WARM_RUNS)
            pthread_barrier_wait(worker->barrier);
        gm_backend_cuda.run(worker->context, 0, worker->stream, (struct gm_task *[]){&worker->task},
                            1);
        worker->failed |= worker->task.status != GM_OK;
        if (i < WARM_RUNS)
            continue;
        worker->sum.h2d += worker->task.times.h2d;
        worker->sum.kernel += worker->task.times.kernel;
        worker->sum.d2h += worker->task.times.d2h;
    }
    pthread_barrier_wait(worker->barrier);
    return NULL;
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Microseconds a job, by the clock on the wall; *ret_alone: its stages by their events. */
static double measure(void *context, const struct load *load, unsigned streams,
                      struct gm_times *ret_stages, const char **ret_variant)
{
    static struct worker worker[STREAMS_MAX];
    pthread_t thread[STREAMS_MAX];
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, streams + 1);
    memset(worker, 0, sizeof(worker));
    for (unsigned i = 0; i < streams; i++) {
        worker[i].context = context;
        worker[i].stream = i;
        worker[i].runs = load->runs;
        worker[i].barrier = &barrier;
        prepare(&worker[i], load);
    }
    for (unsigned i = 0; i < streams; i++) {
        if (pthread_create(&thread[i], NULL, work, &worker[i]) != 0)
            fail("a thread", &(struct gm_error){.detail = "cannot be had"});
    }
    pthread_barrier_wait(&barrier);
    double begin = now_us();
    pthread_barrier_wait(&barrier);
    double wall = now_us() - begin;
    *ret_stages = (struct gm_times){0};
    for (unsigned i = 0; i < streams; i++) {
        pthread_join(thread[i], NULL);
        if (worker[i].failed)
            fail("a run", &worker[i].task.error);
        ret_stages->h2d += worker[i].sum.h2d / (streams * load->runs);
        ret_stages->kernel += worker[i].sum.kernel / (streams * load->runs);
        ret_stages->d2h += worker[i].sum.d2h / (streams * load->runs);
        *ret_variant = worker[i].task.variant->name;
        for (unsigned j = 0; j <= GM_OPERANDS_MAX; j++)
            gm_backend_cuda.buffer_put(context, &worker[i].buffer[j]);
    }
    pthread_barrier_destroy(&barrier);
    return wall / (streams * load->runs);
}

static FILE *open_json(const char *path, const struct gm_device_facts *facts)
{
    FILE *file = path ? fopen(path, "w") : NULL;
    const char *commit = getenv("GM_COMMIT");
    time_t now = time(NULL);
    char date[32];

    if (path && !file) {
        perror(path);
        exit(1);
    }
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    if (file)
        fprintf(file,
                "{\"benchmark\": \"bench_streams\", \"date\": \"%s\", \"commit\": \"%s\", "
                "\"device\": \"%s\",\n \"results\": [",
                date, commit ? commit : "unknown", facts->name);
    return file;
}

static void run_load(void *context, const struct load *load, FILE *json, bool first)
{
    double alone = 0, stages_alone = 0;

    for (unsigned streams = 1; streams <= STREAMS_MAX; streams++) {
        struct gm_times stages;
        const char *variant = "";
        double job = measure(context, load, streams, &stages, &variant);
        if (streams == 1) {
            alone = job;
            stages_alone = stages.h2d + stages.kernel + stages.d2h;
        }
        printf("%-9s %5llu^2 %-12s %u streams: %9.1f us a job (%.2f of one stream's, %.2f of its "
               "stages); h2d %.1f, kernel %.1f, d2h %.1f\n",
               gm_op_name(load->kind), (unsigned long long)load->side, variant, streams, job,
               job / alone, job / stages_alone, stages.h2d, stages.kernel, stages.d2h);
        if (json)
            fprintf(
                json,
                "%s\n  {\"op\": \"%s\", \"dtype\": \"f32\", \"side\": %llu, \"variant\": \"%s\", "
                "\"streams\": %u, \"job_us\": %.1f, \"h2d_us\": %.1f, \"kernel_us\": %.1f, "
                "\"d2h_us\": %.1f}",
                first && streams == 1 ? "" : ",", gm_op_name(load->kind),
                (unsigned long long)load->side, variant, streams, job, stages.h2d, stages.kernel,
                stages.d2h);
    }
}

int main(int argc, char **argv)
{
    const struct gm_backend_options options = {.streams = STREAMS_MAX};
    struct gm_error err = {.detail = ""};
    void *context = NULL;

    if (argc != 1 && !(argc == 3 && strcmp(argv[1], "--json") == 0)) {
        fprintf(stderr, "usage: bench_streams [--json FILE]\n");
        return 2;
    }
    if (gm_backend_cuda.open(&options, &context, &err) != GM_OK)
        fail("no GPU", &err);
    const struct gm_device_facts *facts = gm_backend_cuda.describe(context, 0);
    FILE *json = open_json(argc == 3 ? argv[2] : NULL, facts);
    printf("%s, copy %.0f GB/s\n", facts->name, facts->copy_gbs);
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        run_load(context, &loads[i], json, i == 0);
    if (json && (fputs("\n]}\n", json) < 0 || fclose(json) != 0)) {
        perror(argv[2]);
        return 1;
    }
    gm_backend_cuda.close(context);
    return 0;
}
