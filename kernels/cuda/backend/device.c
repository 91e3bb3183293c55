/*
 * device.c - opens a GPU: its facts, memory pool and streams.
 *
 * Device memory comes from the device's default pool. By default a pool returns freed memory to the
 * driver whenever a stream is waited for. Each request would then map its memory anew, in
 * milliseconds. With the release threshold raised the pool keeps its memory, and an allocation
 * takes microseconds.
 */
#include "device.h"

#include "call.h"

#include <stdio.h>
#include <string.h>

static void close_stream(struct gm_cuda_stream *stream)
{
    if (stream->handle)
        (void)GM_CALL_GIVE(cudaStreamSynchronize, stream->handle);
    if (stream->blas)
        (void)stream->device->blas->destroy(stream->blas);
    gm_timeline_close(&stream->timeline);
    if (stream->block_times)
        (void)GM_CALL_GIVE(cudaFreeHost, stream->block_times);
    if (stream->handle)
        (void)GM_CALL_GIVE(cudaStreamDestroy, stream->handle);
    stream->block_times = NULL;
    stream->blas = NULL;
    stream->handle = NULL;
}

static cudaError_t open_stream(struct gm_cuda_device *device, struct gm_cuda_stream *stream)
{
    /* Non-blocking: a library's work on the default stream does not delay it. */
    cudaError_t error = GM_CALL(cudaStreamCreateWithFlags, &stream->handle, cudaStreamNonBlocking);
    void *times;

    stream->device = device;
    if (error != cudaSuccess)
        stream->handle = NULL;
    if (error == cudaSuccess)
        error = GM_CALL(cudaHostAlloc, &times, GM_BLOCK_TIMES_MAX * sizeof(struct gm_block_time),
                        cudaHostAllocPortable);
    stream->block_times = error == cudaSuccess ? times : NULL;
    return error == cudaSuccess ? gm_timeline_open(&stream->timeline, stream->handle) : error;
}

/* Opens a stream that has no events. */
static cudaError_t open_plain(cudaStream_t *stream)
{
    cudaError_t error = GM_CALL(cudaStreamCreateWithFlags, stream, cudaStreamNonBlocking);

    if (error != cudaSuccess)
        *stream = NULL;
    return error;
}

static void close_plain(cudaStream_t *stream)
{
    if (!*stream)
        return;
    (void)GM_CALL_GIVE(cudaStreamSynchronize, *stream);
    (void)GM_CALL_GIVE(cudaStreamDestroy, *stream);
    *stream = NULL;
}

static cudaError_t open_pool(struct gm_cuda_device *device)
{
    uint64_t keep = UINT64_MAX;
    cudaError_t error = GM_CALL(cudaDeviceGetDefaultMemPool, &device->pool, device->ordinal);

    return error == cudaSuccess ? GM_CALL(cudaMemPoolSetAttribute, device->pool,
                                          cudaMemPoolAttrReleaseThreshold, &keep)
                                : error;
}

/* Creates a handle for each stream, or none at all: a variant must be available on every stream or
 * on none. */
static void open_blas(struct gm_cuda_device *device, const struct gm_cublas *blas)
{
    size_t used = strlen(device->facts.detail);
    unsigned opened = 0;
    int version = 0;

    while (blas && opened < device->streams &&
           (device->stream[opened].blas = gm_cublas_handle(blas, device->stream[opened].handle)))
        opened++;
    if (blas && opened == device->streams) {
        device->blas = blas;
        device->facts.tuned_blas = true;
        if (blas->get_version(device->stream[0].blas, &version) == GM_CUBLAS_SUCCESS)
            snprintf(device->facts.detail + used, sizeof(device->facts.detail) - used,
                     ", cuBLAS %d.%d.%d", version / 10000, version % 10000 / 100, version % 100);
        return;
    }
    for (unsigned i = 0; i < opened; i++) {
        (void)blas->destroy(device->stream[i].blas);
        device->stream[i].blas = NULL;
    }
    snprintf(device->facts.detail + used, sizeof(device->facts.detail) - used, ", no cuBLAS");
}

enum gm_status gm_cuda_device_open(struct gm_cuda_device *ret, int ordinal, unsigned streams,
                                   const struct gm_cublas *blas, struct gm_error *err)
{
    struct gm_error reason = {.detail = ""};

    memset(ret, 0, sizeof(*ret));
    ret->ordinal = ordinal;
    ret->streams = streams;
    cudaError_t error = GM_CALL(cudaSetDevice, ordinal);
    if (error == cudaSuccess)
        error = gm_cuda_read_facts(ret);
    if (error == cudaSuccess)
        error = open_pool(ret);
    if (error == cudaSuccess)
        error = open_plain(&ret->allocating);
    if (error == cudaSuccess)
        error = open_plain(&ret->copying);
    for (unsigned i = 0; i < streams && error == cudaSuccess; i++)
        error = open_stream(ret, &ret->stream[i]);
    enum gm_status status = gm_cuda_check(error, "it cannot be opened", &reason);
    /* A build without code for this GPU also fails here. */
    const atomic_bool never = false;
    if (status == GM_OK)
        status = gm_cuda_measure_copy(&ret->stream[0], &never, &reason);
    if (status == GM_OK)
        status = gm_cuda_measure_link(&ret->stream[0], &never, &reason);
    if (status == GM_OK) {
        open_blas(ret, blas);
        return GM_OK;
    }
    gm_cuda_device_close(ret);
    return gm_fail(err, GM_DEVICE_UNAVAILABLE, "the GPU number %d cannot be used: %s", ordinal,
                   reason.detail);
}

void gm_cuda_device_close(struct gm_cuda_device *device)
{
    if (device->streams > 0)
        (void)GM_CALL(cudaSetDevice, device->ordinal);
    for (unsigned i = 0; i < device->streams; i++)
        close_stream(&device->stream[i]);
    close_plain(&device->copying);
    close_plain(&device->allocating);
    if (device->pool)
        (void)GM_CALL(cudaMemPoolTrimTo, device->pool, 0);
    (void)GM_CALL(cudaGetLastError);
    memset(device, 0, sizeof(*device));
}
