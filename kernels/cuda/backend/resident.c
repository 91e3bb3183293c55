/*
 * resident.c - memory of a device for matrices that stay there, and copies to and from it.
 *
 * It comes from the same pool as the memory of tasks. Allocations are in the order of a stream, and
 * other streams use the memory, so it is waited for: on a stream that does nothing else, that takes
 * microseconds.
 */
#include "call.h"
#include "device.h"

static enum gm_status usable(const struct gm_cuda_device *device, struct gm_error *err)
{
    if (atomic_load(&device->lost))
        return gm_fail(err, GM_DEVICE_LOST, "cuda:%u has failed before", device->facts.index);
    return gm_cuda_check(GM_CALL(cudaSetDevice, device->ordinal), "the device", err);
}

static enum gm_status outcome(struct gm_cuda_device *device, cudaError_t error, const char *what,
                              struct gm_error *err)
{
    enum gm_status status = gm_cuda_check(error, what, err);

    if (status == GM_DEVICE_LOST)
        atomic_store(&device->lost, true);
    return status;
}

enum gm_status gm_cuda_resident_get(struct gm_cuda_device *device, uint64_t bytes, void **ret,
                                    struct gm_error *err)
{
    void *data = NULL;
    enum gm_status status = usable(device, err);

    if (status != GM_OK)
        return status;
    cudaError_t error = GM_CALL(cudaMallocAsync, &data, bytes, device->allocating);
    if (error == cudaErrorMemoryAllocation) { /* what the pool keeps may be of the wrong sizes */
        (void)GM_CALL(cudaGetLastError);
        error = GM_CALL(cudaMemPoolTrimTo, device->pool, 0);
        if (error == cudaSuccess)
            error = GM_CALL(cudaMallocAsync, &data, bytes, device->allocating);
    }
    if (error != cudaSuccess)
        return outcome(device, error, "device memory for a named matrix", err);
    error = GM_CALL(cudaStreamSynchronize, device->allocating);
    if (error != cudaSuccess) {
        (void)GM_CALL_GIVE(cudaFreeAsync, data, device->allocating);
        return outcome(device, error, "device memory for a named matrix", err);
    }
    *ret = data;
    return GM_OK;
}

void gm_cuda_resident_put(struct gm_cuda_device *device, void *data)
{
    cudaError_t error = GM_CALL_GIVE(cudaSetDevice, device->ordinal);

    error = GM_CALL_GIVE(cudaFreeAsync, data, device->allocating);
    if (error != cudaSuccess)
        (void)GM_CALL(cudaGetLastError); /* a lost device shows itself to the next task */
}

enum gm_status gm_cuda_resident_copy(struct gm_cuda_device *device, void *to, const void *from,
                                     uint64_t bytes, bool to_device, struct gm_error *err)
{
    enum gm_status status = usable(device, err);

    if (status != GM_OK)
        return status;
    cudaError_t error =
        GM_CALL(cudaMemcpyAsync, to, from, bytes,
                to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, device->copying);
    /* Waited for even after a failure: the memory is the caller's again after this. */
    cudaError_t waited = GM_CALL_GIVE(cudaStreamSynchronize, device->copying);
    return outcome(device, error != cudaSuccess ? error : waited, "the copy of a named matrix",
                   err);
}
