/*
 * cuda.c - the cuda backend: each NVIDIA GPU that works is a device, whose streams copy and compute
 * at the same time.
 *
 * The buffers of requests are pinned host memory: a GPU's copy engines read and write it without
 * the CPU. To pin a page costs more than to copy it, so buffers are pinned once and stay in a pool
 * that all devices share.
 *
 * Most of that is the system's work: to find pages, and to zero them. CUDA does it under the lock
 * that all its calls take. So the pages of large buffers are touched before CUDA pins them.
 */
#include "call.h"
#include "device.h"
#include "kernels/buffer_pool.h"
#include "kernels/choose/choose.h"

#include <stdlib.h>
#include <string.h>

#define STREAMS 3u /* one copies in, one computes, one copies out */

struct gm_cuda {
    struct gm_buffer_pool *buffers;
    struct gm_buffer_allocator pinned; /* of these buffers */
    struct gm_cublas blas;
    unsigned devices;
    struct gm_cuda_device device[];
};

/* CUDA pins memory by way of the calling thread's device, which is 0 unless it has set another.
 * That one may not work. */
static bool enter(const struct gm_cuda *cuda)
{
    int ordinal = cuda->device[0].ordinal;

    return ordinal == 0 || GM_CALL(cudaSetDevice, ordinal) == cudaSuccess;
}

static void *take_pinned(void *cls, uint64_t bytes)
{
    void *data;

    if (enter(cls) && GM_CALL(cudaHostAlloc, &data, bytes, cudaHostAllocPortable) == cudaSuccess)
        return data;
    (void)GM_CALL(cudaGetLastError); /* the caller tries again, or reports full memory */
    return NULL;
}

static void give_pinned(void *cls, void *data, uint64_t bytes)
{
    (void)bytes;
    (void)enter(cls);
    if (GM_CALL_GIVE(cudaFreeHost, data) != cudaSuccess)
        (void)GM_CALL(cudaGetLastError);
}

/* Touches large buffers first. Smaller ones have no huge pages, and gain nothing. */
#define PAGE 4096u

static void *take_touched(void *cls, uint64_t bytes)
{
    if (bytes < GM_BUFFER_HUGE_PAGE)
        return take_pinned(cls, bytes);
    char *data = gm_buffer_plain.take(NULL, bytes);
    for (uint64_t at = 0; data && at < bytes; at += PAGE)
        *(volatile char *)(data + at) = 0;
    if (!data)
        return NULL;
    if (enter(cls) &&
        GM_CALL(cudaHostRegister, data, bytes, cudaHostRegisterPortable) == cudaSuccess)
        return data;
    (void)GM_CALL(cudaGetLastError);
    gm_buffer_plain.give(NULL, data, bytes);
    return NULL;
}

static void give_touched(void *cls, void *data, uint64_t bytes)
{
    if (bytes < GM_BUFFER_HUGE_PAGE) {
        give_pinned(cls, data, bytes);
        return;
    }
    (void)enter(cls);
    if (GM_CALL_GIVE(cudaHostUnregister, data) != cudaSuccess)
        (void)GM_CALL(cudaGetLastError);
    gm_buffer_plain.give(NULL, data, bytes);
}

/* Whether kernels of all devices may use the host's addresses of registered memory: `grouped` reads
 * and writes buffers where they are. */
static bool may_register(const struct gm_cuda *cuda)
{
    bool may = true;
    int value;

    for (unsigned i = 0; i < cuda->devices && may; i++)
        may = GM_CALL(cudaDeviceGetAttribute, &value, cudaDevAttrCanUseHostPointerForRegisteredMem,
                      cuda->device[i].ordinal) == cudaSuccess &&
              value != 0;
    return may;
}

static void cuda_close(void *context)
{
    struct gm_cuda *cuda = context;

    if (!cuda)
        return;
    gm_buffer_pool_close(cuda->buffers);
    for (unsigned i = 0; i < cuda->devices; i++)
        gm_cuda_device_close(&cuda->device[i]);
    free(cuda);
}

/* Opens the devices that work. *err has the reason of the last one that does not. */
static void open_devices(struct gm_cuda *cuda, unsigned count, unsigned streams,
                         struct gm_error *err)
{
    const struct gm_cublas *blas = gm_cublas_load(&cuda->blas) ? &cuda->blas : NULL;

    for (unsigned i = 0; i < count; i++) {
        struct gm_cuda_device *device = &cuda->device[cuda->devices];
        if (gm_cuda_device_open(device, (int)i, streams, blas, err) == GM_OK)
            device->facts.index = cuda->devices++;
    }
}

static enum gm_status cuda_open(const struct gm_backend_options *options, void **ret_context,
                                struct gm_error *err)
{
    unsigned streams = options->streams > 0 ? options->streams : STREAMS;
    uint64_t limit = options->memory_limit > 0 ? options->memory_limit : gm_host_memory();
    struct gm_error reason = {.detail = "there is none"};
    int count = 0;

    /* Fails at once if there is no driver. */
    gm_cuda_check(GM_CALL(cudaGetDeviceCount, &count), "CUDA", &reason);
    unsigned devices = count > 0 ? (unsigned)count : 0;
    struct gm_cuda *cuda = calloc(1, sizeof(*cuda) + devices * sizeof(cuda->device[0]));
    if (!cuda)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the cuda backend");
    if (devices > 0)
        open_devices(cuda, devices, streams < GM_CUDA_STREAMS_MAX ? streams : GM_CUDA_STREAMS_MAX,
                     &reason);
    enum gm_status status = GM_OK;
    if (cuda->devices == 0)
        status = gm_fail(err, GM_DEVICE_UNAVAILABLE, "no NVIDIA GPU can be used here: %s",
                         reason.detail);
    for (unsigned i = 0; i < cuda->devices && options->profile; i++) {
        struct gm_device_facts *facts = &cuda->device[i].facts;
        if (strcmp(gm_profile_gpu(options->profile), facts->name) == 0)
            facts->profile = options->profile;
    }
    cuda->pinned = may_register(cuda)
                       ? (struct gm_buffer_allocator){take_touched, give_touched, cuda}
                       : (struct gm_buffer_allocator){take_pinned, give_pinned, cuda};
    if (status == GM_OK)
        status = gm_buffer_pool_open_for(options, &cuda->pinned, limit, &cuda->buffers, err);
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

static uint64_t cuda_memory_used(void *context, unsigned device)
{
    struct gm_cuda *cuda = context;
    size_t available = 0, total = 0;

    if (atomic_load(&cuda->device[device].lost))
        return 0;
    cudaError_t error = GM_CALL(cudaSetDevice, cuda->device[device].ordinal);
    if (error == cudaSuccess)
        error = GM_CALL(cudaMemGetInfo, &available, &total);
    return gm_cuda_check(error, "memory in use", NULL) == GM_OK ? total - available : 0;
}

static uint64_t cuda_buffer_cost(void *context, uint64_t bytes)
{
    (void)context;
    return gm_buffer_pool_cost(bytes);
}

static enum gm_status cuda_buffer_get(void *context, uint64_t bytes, struct gm_buffer *ret,
                                      struct gm_error *err)
{
    const struct gm_cuda *cuda = context;

    return gm_buffer_pool_get(cuda->buffers, bytes, ret, err);
}

static void cuda_buffer_put(void *context, struct gm_buffer *buffer)
{
    const struct gm_cuda *cuda = context;

    gm_buffer_pool_put(cuda->buffers, buffer);
}

/* The client states the device of its memory as N of cuda:N. */
static enum gm_status cuda_import(void *context, struct gm_foreign *foreign, struct gm_error *err)
{
    const struct gm_cuda *cuda = context;

    if (foreign->device >= cuda->devices)
        return gm_fail(err, GM_BAD_PARAMETER, "device_id is %u, and there is no cuda:%u here",
                       foreign->device, foreign->device);
    return gm_cuda_import(&cuda->device[foreign->device], foreign, err);
}

static void cuda_release(void *context, struct gm_foreign *foreign)
{
    const struct gm_cuda *cuda = context;

    gm_cuda_release(&cuda->device[foreign->device], foreign);
}

static enum gm_status cuda_device_get(void *context, unsigned device, uint64_t bytes, void **ret,
                                      struct gm_error *err)
{
    struct gm_cuda *cuda = context;

    return gm_cuda_resident_get(&cuda->device[device], bytes, ret, err);
}

static void cuda_device_put(void *context, unsigned device, void *data)
{
    struct gm_cuda *cuda = context;

    gm_cuda_resident_put(&cuda->device[device], data);
}

static enum gm_status cuda_device_copy(void *context, unsigned device, void *to, const void *from,
                                       uint64_t bytes, bool to_device, struct gm_error *err)
{
    struct gm_cuda *cuda = context;

    return gm_cuda_resident_copy(&cuda->device[device], to, from, bytes, to_device, err);
}

/* A task's scratch memory is on the device, so it needs no host memory beside its buffers. */
static uint64_t cuda_scratch_bytes(void *context, const struct gm_op *op,
                                   const struct gm_variant *variant)
{
    (void)context;
    (void)op;
    (void)variant;
    return 0;
}

static enum gm_status cuda_run(void *context, unsigned device, unsigned stream,
                               struct gm_task *task[], unsigned n)
{
    struct gm_cuda *cuda = context;

    return gm_cuda_run(&cuda->device[device].stream[stream], task, n);
}

static enum gm_status cuda_measure(void *context, unsigned device, unsigned stream,
                                   const atomic_bool *stop, struct gm_error *err)
{
    struct gm_cuda *cuda = context;
    struct gm_cuda_device *of = &cuda->device[device];

    if (atomic_load(&of->lost))
        return GM_OK;
    enum gm_status status = gm_cuda_check(GM_CALL(cudaSetDevice, of->ordinal), "the device", err);
    if (status == GM_OK)
        status = gm_cuda_measure_copy(&of->stream[stream], stop, err);
    if (status == GM_OK)
        status = gm_cuda_measure_link(&of->stream[stream], stop, err);
    if (status == GM_DEVICE_LOST)
        atomic_store(&of->lost, true);
    return status == GM_DEVICE_LOST ? status : GM_OK;
}

const struct gm_backend gm_backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .memory_used = cuda_memory_used,
    .buffer_cost = cuda_buffer_cost,
    .buffer_get = cuda_buffer_get,
    .buffer_put = cuda_buffer_put,
    .import = cuda_import,
    .release = cuda_release,
    .device_get = cuda_device_get,
    .device_put = cuda_device_put,
    .device_copy = cuda_device_copy,
    .scratch_bytes = cuda_scratch_bytes,
    .run = cuda_run,
    .measure = cuda_measure,
};
