/*
 * bench_gpu_contest.c - proves, then times. Runs are enqueued many at a time behind something long,
 * so that no launch is waited for, each between two events.
 */
#include "bench_gpu_contest.h"

#include "bench_gpu_data.h"
#include "proof.h"
#include "tests/unit/operands.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SETS_MAX 64
#define ROUNDS 3u
#define BATCH 32u    /* runs under way at once; each leaves at most five marks */
#define RUNS_MAX 320 /* of one contender in a round */
#define LONG_US 50e3 /* a run that is not repeated */
#define HEAD_START_BYTES ((uint64_t)1 << 29) /* to be set while runs are enqueued */
#define HEAD_STARTS_MAX 32u                  /* times that: some 5 ms of an H200 */
#define SPIN_UP_SECONDS 1.0

/* An operation's operands, `sets` times, on the device; and in host memory, if the host proves. */
struct operands {
    struct gm_op host, set[SETS_MAX];
    unsigned sets;
    void *exact; /* a sum that was proved, on the device: of sums there is one right result */
};

struct samples {
    unsigned runs;
    double kernel[ROUNDS * (RUNS_MAX + BATCH)], prepare[ROUNDS * (RUNS_MAX + BATCH)];
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

static cudaEvent_t head_start_over;

/* Keeps the device busy while runs are enqueued. */
static void head_start(struct device *device, unsigned times)
{
    static void *memory;

    if (!memory) {
        must(cudaMalloc(&memory, HEAD_START_BYTES), "memory");
        must(cudaEventCreateWithFlags(&head_start_over, cudaEventDisableTiming), "event");
    }
    for (unsigned i = 0; i < times; i++)
        must(cudaMemsetAsync(memory, 0, HEAD_START_BYTES, device->exec.stream), "memset");
    must(cudaEventRecord(head_start_over, device->exec.stream), "event");
}

/* Whether it was long enough, all runs being enqueued now: once it is over, the device waits for
 * launches, and that goes into the times of small matrices. */
static bool head_start_lasts(void)
{
    bool lasts = cudaEventQuery(head_start_over) == cudaErrorNotReady;

    (void)cudaGetLastError(); /* "not ready" is no error to whoever asks for the last one */
    return lasts;
}

void contest_spin_up(struct device *device)
{
    double end = seconds_now() + SPIN_UP_SECONDS;

    while (seconds_now() < end) {
        head_start(device, HEAD_STARTS_MAX);
        if (!device_wait(device))
            die("memset", device->error);
    }
}

/* ---- Operands ----------------------------------------------------------------------------------
 */

static void *host_memory(uint64_t bytes)
{
    void *data = aligned_alloc(64, (bytes + 63) / 64 * 64);

    if (!data)
        die("memory", "the host has no more");
    return data;
}

/* The same random operands in every set: what differs is where they lie. The host has them where
 * its oracle is to prove a result. */
static void make_operands(struct device *device, const struct gm_op *op, bool on_host,
                          uint64_t *random, struct operands *ret)
{
    uint64_t wanted = 2 * device->l2_bytes / (gm_op_bytes_min(op) + 1) + 1;

    *ret = (struct operands){.host = *op};
    ret->sets = wanted < SETS_MAX ? (unsigned)wanted : SETS_MAX;
    for (unsigned i = 0; i < ret->sets; i++) {
        struct gm_op *set = &ret->set[i];
        *set = *op;
        must(cudaMalloc(&set->result.data, gm_matrix_bytes(&op->result)), "memory");
        for (unsigned j = 0; j < op->operands; j++) {
            uint64_t bytes = gm_matrix_bytes(&op->operand[j]);
            must(cudaMalloc(&set->operand[j].data, bytes), "memory");
            if (i > 0)
                must(cudaMemcpy(set->operand[j].data, ret->set[0].operand[j].data, bytes,
                                cudaMemcpyDefault),
                     "copy");
            else if (!data_fill(&set->operand[j], check_random(random)))
                die("operands", "cannot be made");
        }
    }
    if (!on_host)
        return;
    ret->host.result.data = host_memory(gm_matrix_bytes(&op->result));
    for (unsigned i = 0; i < op->operands; i++) {
        uint64_t bytes = gm_matrix_bytes(&op->operand[i]);
        ret->host.operand[i].data = host_memory(bytes);
        must(cudaMemcpy(ret->host.operand[i].data, ret->set[0].operand[i].data, bytes,
                        cudaMemcpyDefault),
             "download");
    }
}

static void free_operands(struct operands *operands)
{
    free(operands->host.result.data);
    for (unsigned i = 0; i < operands->host.operands; i++)
        free(operands->host.operand[i].data);
    cudaFree(operands->exact);
    for (unsigned i = 0; i < operands->sets; i++) {
        cudaFree(operands->set[i].result.data);
        for (unsigned j = 0; j < operands->host.operands; j++)
            cudaFree(operands->set[i].operand[j].data);
    }
}

/* ---- Runs --------------------------------------------------------------------------------------
 */

static void enqueue(struct device *device, const struct contender *contender,
                    const struct gm_op *op)
{
    bool enqueued = contender->baseline ? contender->baseline(device, op)
                                        : device_run(device, op, contender->variant) == GM_OK;

    if (!enqueued)
        die(contender->name, device->error);
}

/* Whether the first set's result is right. What moves elements is looked at on the device; the
 * first sum by the oracle, and others must have its bytes. */
static bool is_right(struct operands *operands, const struct proof *proof)
{
    const struct gm_op *op = &operands->set[0];
    uint64_t bytes = gm_matrix_bytes(&op->result);

    if (!proof)
        return data_moved(op);
    if (operands->exact)
        return data_same(operands->exact, op->result.data, bytes);
    must(cudaMemcpy(operands->host.result.data, op->result.data, bytes, cudaMemcpyDefault),
         "download");
    if (!proof_holds(proof, &operands->host))
        return false;
    if (op->kind == GM_OP_ADD) {
        must(cudaMalloc(&operands->exact, bytes), "memory");
        must(cudaMemcpy(operands->exact, op->result.data, bytes, cudaMemcpyDefault), "copy");
    }
    return true;
}

/* Runs once, on the first set; how long that took. */
static double prove(struct device *device, const struct contender *contender,
                    struct operands *operands, const struct proof *proof)
{
    const struct gm_matrix *result = &operands->set[0].result;
    struct device_times times;

    must(cudaMemset(result->data, 0xFF, gm_matrix_bytes(result)), "poison");
    enqueue(device, contender, &operands->set[0]);
    if (!device_wait(device))
        die(contender->name, device->error);
    if (contender->baseline != baseline_nothing && !is_right(operands, proof))
        die(contender->name, "the result is wrong");
    device_read_times(device, &times, 1);
    return times.kernel + times.prepare;
}

/* As many runs at once as take half of the time there is: behind those no launch is waited for. */
static unsigned batch_for(double run_us, double seconds)
{
    double fit = 1e6 * seconds / 2 / run_us;

    return fit < 1 ? 1 : fit < BATCH ? (unsigned)fit : BATCH;
}

/* A round of a contender. Its first batch warms up and does not count, unless a run is long; nor
 * does one whose head start was too short. */
static void sample(struct device *device, const struct contender *contender,
                   const struct operands *operands, double run_us, double seconds,
                   struct samples *samples)
{
    unsigned batch = batch_for(run_us, seconds), before = samples->runs, set = 0, starts = 1;
    bool warm = run_us > LONG_US;
    double end = seconds_now() + seconds;

    while (samples->runs == before || (samples->runs - before < RUNS_MAX && seconds_now() < end)) {
        struct device_times times[BATCH];
        head_start(device, starts);
        for (unsigned i = 0; i < batch; i++, set++)
            enqueue(device, contender, &operands->set[set % operands->sets]);
        bool ahead = head_start_lasts();
        if (!device_wait(device))
            die(contender->name, device->error);
        if (device_read_times(device, times, BATCH) != batch)
            die(contender->name, "a run was not timed");
        if (!ahead && starts < HEAD_STARTS_MAX) {
            starts *= 2;
            continue;
        }
        for (unsigned i = 0; warm && i < batch; i++) {
            samples->kernel[samples->runs] = times[i].kernel;
            samples->prepare[samples->runs++] = times[i].prepare;
        }
        end = warm ? end : seconds_now() + seconds;
        warm = true;
    }
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static struct timing timing_of(struct samples *samples)
{
    struct timing timing = {.runs = samples->runs};
    double *kernel = samples->kernel;

    qsort(kernel, timing.runs, sizeof(*kernel), by_size);
    qsort(samples->prepare, timing.runs, sizeof(*samples->prepare), by_size);
    timing.median = kernel[timing.runs / 2];
    timing.least = kernel[0];
    timing.prepare = samples->prepare[timing.runs / 2];
    timing.spread = (kernel[timing.runs * 3 / 4] - kernel[timing.runs / 4]) / timing.median;
    return timing;
}

void contest(struct device *device, const struct gm_op *op, struct contender *contenders,
             unsigned count, double seconds, uint64_t *random)
{
    static struct operands operands;
    static struct samples samples[CONTENDERS_MAX];
    double proved[CONTENDERS_MAX];
    bool on_host = gm_op_computes(op->kind);
    struct proof proof = {.rows = 0};

    make_operands(device, op, on_host, random, &operands);
    if (on_host && !proof_make(&proof, &operands.host, random))
        die("memory", "no room for a proof");
    for (unsigned i = 0; i < count; i++) {
        samples[i].runs = 0;
        proved[i] = prove(device, &contenders[i], &operands, on_host ? &proof : NULL);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < count; i++) {
            if (round == 0 || proved[i] <= LONG_US)
                sample(device, &contenders[i], &operands, proved[i], seconds / ROUNDS, &samples[i]);
        }
    }
    for (unsigned i = 0; i < count; i++)
        contenders[i].timing = timing_of(&samples[i]);
    proof_free(&proof);
    free_operands(&operands);
}
