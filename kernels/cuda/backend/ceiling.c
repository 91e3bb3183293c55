/*
 * ceiling.c - measures the device's copy ceiling, and the rates of the link to the host.
 *
 * The copy ceiling is the better of CUDA's copy and our copy kernel. The operands are each at least
 * twice the L2 cache, so that together they are four times as large. They hold random bytes,
 * because real data toggles bits too. The two copies alternate, and the median of each counts.
 *
 * The link's rates are those of our copy kernel between pinned memory of the host and the device's
 * memory: it is also a kernel that reads and writes there for the variants `grouped`.
 */
#include "call.h"
#include "device.h"
#include "kernels/device_facts.h"
#include "kernels/variant.h"

#include <stdlib.h>
#include <time.h>

gm_kernel_fn gm_cuda_copy_vector; /* kernels of variants.def */

/* Large enough to make the launch time negligible. */
#define GPU_COPY_BYTES_MIN ((uint64_t)256 << 20)
#define RANDOM_BYTES ((uint64_t)1 << 20) /* made on the host, then repeated */
/* For the link: some 600 us each way of PCIe 5.0 with 16 lanes. */
#define LINK_BYTES ((uint64_t)32 << 20)
#define ROUNDS 9
#define WARM_UP 2

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static cudaError_t fill(char *data, uint64_t bytes, cudaStream_t stream)
{
    uint64_t *random = malloc(RANDOM_BYTES), state = 1, done = RANDOM_BYTES;
    cudaError_t error = random ? cudaSuccess : cudaErrorMemoryAllocation;

    if (!random)
        return error;
    for (uint64_t i = 0; i < RANDOM_BYTES / sizeof(*random); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        random[i] = state ^ state >> 29;
    }
    error = GM_CALL(cudaMemcpyAsync, data, random, done, cudaMemcpyHostToDevice, stream);
    for (; done < bytes && error == cudaSuccess; done *= 2)
        error =
            GM_CALL(cudaMemcpyAsync, data + done, data, done < bytes - done ? done : bytes - done,
                    cudaMemcpyDeviceToDevice, stream);
    /* After this the host's bytes are no longer read, whether or not the copies succeeded. */
    cudaError_t ended = GM_CALL(cudaStreamSynchronize, stream);
    free(random);
    return error == cudaSuccess ? ended : error;
}

/* Runs both copies once, and stores their times in microseconds. */
static enum gm_status copy_twice(struct gm_cuda_launch *launch, const struct gm_op *op,
                                 double *by_cuda, double *by_kernel)
{
    struct gm_timeline *timeline = &launch->stream->timeline;
    cudaError_t error = gm_timeline_record(timeline, by_cuda);

    if (error == cudaSuccess)
        error =
            GM_CALL(cudaMemcpyAsync, op->result.data, op->operand[0].data,
                    gm_matrix_bytes(&op->result), cudaMemcpyDeviceToDevice, launch->stream->handle);
    if (error == cudaSuccess)
        error = gm_timeline_record(timeline, NULL);
    if (error != cudaSuccess)
        return gm_cuda_check(error, "measuring a copy", launch->error);
    gm_timeline_await(timeline, by_kernel);
    enum gm_status status = gm_cuda_copy_vector(op, &launch->exec);
    return status == GM_OK
               ? gm_cuda_check(gm_timeline_wait(timeline), "measuring a copy", launch->error)
               : status;
}

static enum gm_status measure(struct gm_cuda_stream *stream, const struct gm_op *op,
                              const atomic_bool *stop, struct gm_error *err)
{
    struct gm_cuda_launch launch = gm_cuda_launch_on(stream, NULL, err);
    double by_cuda[ROUNDS + WARM_UP], by_kernel[ROUNDS + WARM_UP];
    enum gm_status status = gm_cuda_check(
        fill(op->operand[0].data, gm_matrix_bytes(&op->result), stream->handle), "a copy", err);

    unsigned i = 0;
    for (; i < ROUNDS + WARM_UP && status == GM_OK && !atomic_load(stop); i++) {
        by_cuda[i] = by_kernel[i] = -1;
        status = copy_twice(&launch, op, &by_cuda[i], &by_kernel[i]);
    }
    gm_timeline_reset(&stream->timeline);
    if (status != GM_OK || i < ROUNDS + WARM_UP)
        return status;
    qsort(by_cuda + WARM_UP, ROUNDS, sizeof(double), by_size);
    qsort(by_kernel + WARM_UP, ROUNDS, sizeof(double), by_size);
    double us = by_cuda[WARM_UP + ROUNDS / 2], kernel_us = by_kernel[WARM_UP + ROUNDS / 2];
    us = kernel_us < us ? kernel_us : us;
    struct gm_device_facts found = {
        .copy_gbs = us > 0 ? 2e-3 * (double)gm_matrix_bytes(&op->result) / us : 0};
    gm_facts_raise(&stream->device->facts, &found, time(NULL));
    return GM_OK;
}

enum gm_status gm_cuda_measure_copy(struct gm_cuda_stream *stream, const atomic_bool *stop,
                                    struct gm_error *err)
{
    uint64_t bytes = 2 * stream->device->facts.cache_bytes;
    struct gm_op op = {.kind = GM_OP_COPY, .operands = 1};
    char *data = NULL;

    bytes = bytes < GPU_COPY_BYTES_MIN ? GPU_COPY_BYTES_MIN : bytes;
    cudaError_t error = GM_CALL(cudaMallocAsync, (void **)&data, 2 * bytes, stream->handle);
    if (error == cudaErrorMemoryAllocation) {
        (void)GM_CALL(cudaGetLastError); /* memory is in use: no ceiling */
        return GM_OK;
    }
    if (error != cudaSuccess)
        return gm_cuda_check(error, "memory to measure a copy with", err);
    op.operand[0] = (struct gm_matrix){.dtype = GM_U8, .batch = 1, .rows = 1, .cols = bytes};
    op.result = op.operand[0];
    op.operand[0].data = data;
    op.result.data = data + bytes;
    enum gm_status status = measure(stream, &op, stop, err);
    enum gm_status given = gm_cuda_check(GM_CALL_GIVE(cudaFreeAsync, data, stream->handle),
                                         "giving memory back", NULL);
    return status == GM_OK ? given : status;
}

/* The median rate of our copy kernel from one place to another; *ret stays 0 if it was stopped. */
static enum gm_status measure_way(struct gm_cuda_launch *launch, const void *from, void *to,
                                  const atomic_bool *stop, double *ret)
{
    struct gm_timeline *timeline = &launch->stream->timeline;
    struct gm_matrix bytes = {.dtype = GM_U8, .batch = 1, .rows = 1, .cols = LINK_BYTES};
    struct gm_op op = {.kind = GM_OP_COPY, .operands = 1, .operand = {bytes}, .result = bytes};
    double us[ROUNDS + WARM_UP];
    enum gm_status status = GM_OK;
    unsigned i = 0;

    op.operand[0].data = (void *)(uintptr_t)from;
    op.result.data = to;
    for (; i < ROUNDS + WARM_UP && status == GM_OK && !atomic_load(stop); i++) {
        us[i] = -1;
        gm_timeline_await(timeline, &us[i]);
        status = gm_cuda_copy_vector(&op, &launch->exec);
        if (status == GM_OK)
            status = gm_cuda_check(gm_timeline_wait(timeline), "measuring the link", launch->error);
    }
    gm_timeline_reset(timeline);
    if (status != GM_OK || i < ROUNDS + WARM_UP)
        return status;
    qsort(us + WARM_UP, ROUNDS, sizeof(double), by_size);
    *ret = us[WARM_UP + ROUNDS / 2] > 0 ? 1e-3 * (double)LINK_BYTES / us[WARM_UP + ROUNDS / 2] : 0;
    return GM_OK;
}

static enum gm_status measure_both_ways(struct gm_cuda_stream *stream, char *host, char *device,
                                        const atomic_bool *stop, struct gm_error *err)
{
    struct gm_cuda_launch launch = gm_cuda_launch_on(stream, NULL, err);
    struct gm_device_facts found = {.copy_gbs = 0};
    enum gm_status status = gm_cuda_check(fill(device, LINK_BYTES, stream->handle), "a copy", err);

    if (status == GM_OK)
        status = measure_way(&launch, device, host, stop, &found.link_out_gbs);
    if (status == GM_OK)
        status = measure_way(&launch, host, device, stop, &found.link_in_gbs);
    if (status == GM_OK)
        gm_facts_raise(&stream->device->facts, &found, time(NULL));
    return status;
}

enum gm_status gm_cuda_measure_link(struct gm_cuda_stream *stream, const atomic_bool *stop,
                                    struct gm_error *err)
{
    void *host = NULL, *device = NULL;
    enum gm_status status = GM_OK;
    cudaError_t error = GM_CALL(cudaHostAlloc, &host, LINK_BYTES, cudaHostAllocPortable);

    if (error == cudaSuccess) {
        error = GM_CALL(cudaMallocAsync, &device, LINK_BYTES, stream->handle);
        if (error == cudaSuccess) {
            status = measure_both_ways(stream, host, device, stop, err);
            error = GM_CALL_GIVE(cudaFreeAsync, device, stream->handle);
        }
        cudaError_t ended = GM_CALL(cudaStreamSynchronize, stream->handle);
        cudaError_t given = GM_CALL_GIVE(cudaFreeHost, host);
        error = error != cudaSuccess ? error : ended != cudaSuccess ? ended : given;
    }
    if (error == cudaErrorMemoryAllocation) {
        (void)GM_CALL(cudaGetLastError); /* memory is in use: no rates */
        return status;
    }
    enum gm_status given = gm_cuda_check(error, "measuring the link", err);
    return status == GM_OK ? given : status;
}
