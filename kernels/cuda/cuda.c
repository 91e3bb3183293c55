/*
 * cuda.c - the cuda backend: every NVIDIA GPU that works is a device, with lanes that copy and
 * compute at once.
 *
 * Requests live in pinned host memory, which a GPU's copy engines read and write by themselves. To
 * pin a page costs more than to copy it, so slabs are pinned once and pooled; all devices
 * share them.
 */
#include "call.h"
#include "device.h"
#include "error.h"
#include "kernels/slab.h"

#include <stdlib.h>
#include <string.h>

struct gm_cuda {
    struct gm_slabs *slabs;
    struct gm_cublas blas;
    unsigned devices;
    struct gm_cuda_device device[];
};

static void *take_pinned(void *cls, uint64_t bytes)
{
    void *data;

    (void)cls;
    if (GM_CALL(cudaHostAlloc, &data, bytes, cudaHostAllocPortable) == cudaSuccess)
        return data;
    (void)GM_CALL(cudaGetLastError); /* the caller tries again, or says that memory is full */
    return NULL;
}

static void give_pinned(void *cls, void *data, uint64_t bytes)
{
    (void)cls;
    (void)bytes;
    if (GM_CALL_GIVE(cudaFreeHost, data) != cudaSuccess)
        (void)GM_CALL(cudaGetLastError);
}

static const struct gm_slab_source pinned = {take_pinned, give_pinned, NULL};

static void cuda_close(void *context)
{
    struct gm_cuda *cuda = context;

    if (!cuda)
        return;
    gm_slabs_close(cuda->slabs);
    for (unsigned i = 0; i < cuda->devices; i++)
        gm_cuda_device_close(&cuda->device[i]);
    free(cuda);
}

/* Those that work. *err is what keeps the last of the others from it. */
static void open_devices(struct gm_cuda *cuda, unsigned count, unsigned lanes, struct gm_error *err)
{
    const struct gm_cublas *blas = gm_cublas_load(&cuda->blas) ? &cuda->blas : NULL;

    for (unsigned i = 0; i < count; i++) {
        struct gm_cuda_device *device = &cuda->device[cuda->devices];
        if (gm_cuda_device_open(device, (int)i, lanes, blas, err) == GM_OK)
            device->facts.index = cuda->devices++;
    }
}

static enum gm_status cuda_open(const struct gm_backend_options *options, void **ret_context,
                                struct gm_error *err)
{
    unsigned lanes = options->lanes > 0 ? options->lanes : GM_CUDA_LANES;
    uint64_t limit = options->memory_limit > 0 ? options->memory_limit : gm_host_memory();
    struct gm_error reason = {.detail = "there is none"};
    int count = 0;

    /* Without a driver this is where it ends, at once. */
    gm_cuda_check(GM_CALL(cudaGetDeviceCount, &count), "CUDA", &reason);
    unsigned devices = count > 0 ? (unsigned)count : 0;
    struct gm_cuda *cuda = calloc(1, sizeof(*cuda) + devices * sizeof(cuda->device[0]));
    if (!cuda)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the cuda backend");
    if (devices > 0)
        open_devices(cuda, devices, lanes < GM_CUDA_LANES_MAX ? lanes : GM_CUDA_LANES_MAX, &reason);
    enum gm_status status = GM_OK;
    if (cuda->devices == 0)
        status = gm_fail(err, GM_DEVICE_UNAVAILABLE, "no NVIDIA GPU can be used here: %s",
                         reason.detail);
    if (status == GM_OK)
        status = gm_slabs_open_for(options, &pinned, limit, &cuda->slabs, err);
    if (status != GM_OK) {
        cuda_close(cuda);
        return status;
    }
    *ret_context = cuda;
    return GM_OK;
}

static const struct gm_device_facts *cuda_describe(void *context, unsigned index)
{
    const struct gm_cuda *cuda = context;

    return index < cuda->devices ? &cuda->device[index].facts : NULL;
}

static uint64_t cuda_slab_cost(void *context, uint64_t bytes)
{
    (void)context;
    return gm_slabs_cost(bytes);
}

static enum gm_status cuda_slab_get(void *context, uint64_t bytes, struct gm_slab *ret,
                                    struct gm_error *err)
{
    const struct gm_cuda *cuda = context;

    return gm_slabs_get(cuda->slabs, bytes, ret, err);
}

static void cuda_slab_put(void *context, struct gm_slab *slab)
{
    const struct gm_cuda *cuda = context;

    gm_slabs_put(cuda->slabs, slab);
}

/* What a task needs beside its slabs is the device's memory, not the host's. */
static uint64_t cuda_scratch_bytes(void *context, const struct gm_op *op,
                                   const struct gm_variant *variant)
{
    (void)context;
    (void)op;
    (void)variant;
    return 0;
}

static enum gm_status cuda_run(void *context, unsigned device, unsigned lane,
                               struct gm_task *task[], unsigned n)
{
    struct gm_cuda *cuda = context;

    return gm_cuda_run(&cuda->device[device].lane[lane], task, n);
}

const struct gm_backend gm_backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .slab_cost = cuda_slab_cost,
    .slab_get = cuda_slab_get,
    .slab_put = cuda_slab_put,
    .scratch_bytes = cuda_scratch_bytes,
    .run = cuda_run,
};
