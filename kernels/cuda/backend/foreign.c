/*
 * foreign.c - imports memory of other processes, for copies and kernels.
 *
 * Host memory is pinned, so that copy engines can work on it. Pinned pages stay in place until they
 * are unpinned. If the owner shrinks the object, copies use the pages that were there; only host
 * code that touched the mapping would be killed, and none does.
 *
 * Device memory is opened by its IPC handle. Nothing protects it: if the owner frees it while a
 * kernel works on it, the kernel faults, and with it the CUDA context of this process.
 */
#include "call.h"
#include "device.h"

#include <string.h>

/* An outcome of foreign memory is its owner's fault; a device that is beyond use shows itself to
 * the next task. */
static enum gm_status fail(cudaError_t error, const char *what, struct gm_error *err)
{
    (void)GM_CALL(cudaGetLastError);
    return gm_fail(err, error == cudaErrorMemoryAllocation ? GM_MEMORY_FULL : GM_BAD_PARAMETER,
                   "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

static enum gm_status pin(const struct gm_foreign *foreign, struct gm_error *err)
{
    cudaError_t error =
        GM_CALL(cudaHostRegister, foreign->data, foreign->bytes, cudaHostRegisterPortable);

    return error == cudaSuccess ? GM_OK : fail(error, "the region cannot be pinned", err);
}

static enum gm_status open_handle(struct gm_foreign *foreign, struct gm_error *err)
{
    cudaIpcMemHandle_t handle;
    void *data;
    uint64_t bytes = 0;

    memcpy(&handle, foreign->handle, sizeof(handle));
    cudaError_t error =
        GM_CALL(cudaIpcOpenMemHandle, &data, handle, cudaIpcMemLazyEnablePeerAccess);
    if (error != cudaSuccess)
        return fail(error, "raw_handle cannot be opened", err);
    if (gm_cuda_allocation_bytes(data, &bytes) && foreign->bytes <= bytes) {
        foreign->data = data;
        return GM_OK;
    }
    (void)GM_CALL_GIVE(cudaIpcCloseMemHandle, data);
    return gm_fail(err, GM_BAD_PARAMETER,
                   "byte_size is %llu, and the allocation of raw_handle has %llu",
                   (unsigned long long)foreign->bytes, (unsigned long long)bytes);
}

enum gm_status gm_cuda_import(const struct gm_cuda_device *device, struct gm_foreign *foreign,
                              struct gm_error *err)
{
    cudaError_t error = GM_CALL(cudaSetDevice, device->ordinal);

    if (error != cudaSuccess)
        return fail(error, "the device", err);
    return foreign->handle ? open_handle(foreign, err) : pin(foreign, err);
}

void gm_cuda_release(const struct gm_cuda_device *device, struct gm_foreign *foreign)
{
    cudaError_t error = GM_CALL_GIVE(cudaSetDevice, device->ordinal);

    if (foreign->handle)
        error = GM_CALL_GIVE(cudaIpcCloseMemHandle, foreign->data);
    else
        error = GM_CALL_GIVE(cudaHostUnregister, foreign->data);
    if (error != cudaSuccess)
        (void)GM_CALL(cudaGetLastError);
    foreign->data = NULL;
}
