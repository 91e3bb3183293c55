/*
 * device.c - opening a GPU: its facts, its memory pool, its lanes.
 *
 * Device memory comes from the device's default pool. As it is, a pool gives what is freed back to
 * the driver whenever a stream is waited for, so that each request would map its memory anew, in
 * milliseconds; with the threshold raised it keeps what it has, and an allocation is microseconds.
 */
#include "device.h"

#include "call.h"
#include "error.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

static void close_lane(struct gm_cuda_lane *lane)
{
    if (lane->stream)
        (void)GM_CALL_GIVE(cudaStreamSynchronize, lane->stream);
    if (lane->blas)
        (void)lane->device->blas->destroy(lane->blas);
    gm_timeline_close(&lane->timeline);
    if (lane->stream)
        (void)GM_CALL_GIVE(cudaStreamDestroy, lane->stream);
    lane->blas = NULL;
    lane->stream = NULL;
}

static cudaError_t open_lane(struct gm_cuda_device *device, struct gm_cuda_lane *lane)
{
    /* Non-blocking: nothing that a library does on the default stream holds it up. */
    cudaError_t error = GM_CALL(cudaStreamCreateWithFlags, &lane->stream, cudaStreamNonBlocking);

    lane->device = device;
    if (error != cudaSuccess)
        lane->stream = NULL;
    return error == cudaSuccess ? gm_timeline_open(&lane->timeline, lane->stream) : error;
}

static cudaError_t open_pool(struct gm_cuda_device *device)
{
    uint64_t keep = UINT64_MAX;
    cudaError_t error = GM_CALL(cudaDeviceGetDefaultMemPool, &device->pool, device->ordinal);

    return error == cudaSuccess ? GM_CALL(cudaMemPoolSetAttribute, device->pool,
                                          cudaMemPoolAttrReleaseThreshold, &keep)
                                : error;
}

/* A handle for each lane, or none at all: a variant is there or not, whichever lane a job gets. */
static void open_blas(struct gm_cuda_device *device, const struct gm_cublas *blas)
{
    size_t used = strlen(device->facts.detail);
    unsigned opened = 0;
    int version = 0;

    while (blas && opened < device->lanes &&
           (device->lane[opened].blas = gm_cublas_handle(blas, device->lane[opened].stream)))
        opened++;
    if (blas && opened == device->lanes) {
        device->blas = blas;
        device->facts.tuned_blas = true;
        if (blas->get_version(device->lane[0].blas, &version) == GM_CUBLAS_SUCCESS)
            snprintf(device->facts.detail + used, sizeof(device->facts.detail) - used,
                     ", cuBLAS %d.%d.%d", version / 10000, version % 10000 / 100, version % 100);
        return;
    }
    for (unsigned i = 0; i < opened; i++) {
        (void)blas->destroy(device->lane[i].blas);
        device->lane[i].blas = NULL;
    }
    snprintf(device->facts.detail + used, sizeof(device->facts.detail) - used, ", no cuBLAS");
}

enum gm_status gm_cuda_device_open(struct gm_cuda_device *ret, int ordinal, unsigned lanes,
                                   const struct gm_cublas *blas, struct gm_error *err)
{
    struct gm_error reason = {.detail = ""};

    memset(ret, 0, sizeof(*ret));
    ret->ordinal = ordinal;
    ret->lanes = lanes;
    cudaError_t error = GM_CALL(cudaSetDevice, ordinal);
    if (error == cudaSuccess)
        error = gm_cuda_read_facts(ret);
    if (error == cudaSuccess)
        error = open_pool(ret);
    for (unsigned i = 0; i < lanes && error == cudaSuccess; i++)
        error = open_lane(ret, &ret->lane[i]);
    enum gm_status status = gm_cuda_check(error, "it cannot be opened", &reason);
    /* This is also where a build without code for this GPU is found out. */
    if (status == GM_OK)
        status = gm_cuda_measure_copy(ret, &reason);
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
    if (device->lanes > 0)
        (void)GM_CALL(cudaSetDevice, device->ordinal);
    for (unsigned i = 0; i < device->lanes; i++)
        close_lane(&device->lane[i]);
    if (device->pool)
        (void)GM_CALL(cudaMemPoolTrimTo, device->pool, 0);
    (void)GM_CALL(cudaGetLastError);
    memset(device, 0, sizeof(*device));
}
