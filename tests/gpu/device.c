/*
 * device.c - one GPU and one stream. Events around each pass of each run are recorded on the
 * stream and read when all is done, so that any number of runs may be under way.
 */
#include "device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct device *device_of(struct gm_exec *exec)
{
    return (struct device *)exec;
}

static void record_event(struct device *device, enum gm_pass pass, bool ends)
{
    struct device_event *last = device->events > 0 ? &device->event[device->events - 1] : NULL;

    if (!device->times)
        return;
    /* Where nothing ran since the last event, that one only changes its meaning. */
    if (last && !last->ends && !ends && !device->launched) {
        last->pass = pass;
        return;
    }
    if (device->events < DEVICE_EVENTS_MAX) {
        struct device_event *event = &device->event[device->events++];
        event->pass = pass;
        event->ends = ends;
        cudaEventRecord(event->event, device->exec.stream);
    }
    device->launched = false;
}

static enum gm_status pass_changes(struct gm_exec *exec, enum gm_pass pass)
{
    record_event(device_of(exec), pass, false);
    return GM_OK;
}

static enum gm_status was_launched(struct gm_exec *exec, cudaError_t error, const void *kernel)
{
    struct device *device = device_of(exec);

    (void)kernel;
    device->launched = true;
    if (error == cudaSuccess)
        return GM_OK;
    snprintf(device->error, sizeof(device->error), "launch: %s", cudaGetErrorString(error));
    return error == cudaErrorMemoryAllocation ? GM_DEVICE_MEMORY : GM_DEVICE_LOST;
}

static unsigned attribute(enum cudaDeviceAttr which)
{
    int value = 0;

    if (cudaDeviceGetAttribute(&value, which, 0) != cudaSuccess || value < 0)
        return 0;
    return (unsigned)value;
}

/* The version of the driver as people know it, which only NVIDIA's management library tells. */
static void read_driver(char *ret, size_t size)
{
    typedef int init_fn(void);
    typedef int version_fn(char *, unsigned);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    init_fn *init = library ? (init_fn *)dlsym(library, "nvmlInit_v2") : NULL;
    version_fn *version =
        library ? (version_fn *)dlsym(library, "nvmlSystemGetDriverVersion") : NULL;
    int cuda = 0;

    if (init && version && init() == 0 && version(ret, (unsigned)size) == 0)
        return;
    cudaDriverGetVersion(&cuda);
    snprintf(ret, size, "for CUDA %d.%d", cuda / 1000, cuda % 1000 / 10);
}

static void read_facts(struct device *device, const struct cudaDeviceProp *properties)
{
    struct gm_gpu *gpu = &device->gpu;

    snprintf(gpu->name, sizeof(gpu->name), "%.31s", properties->name);
    gpu->capability = (unsigned)(10 * properties->major + properties->minor);
    gpu->sms = (unsigned)properties->multiProcessorCount;
    gpu->threads_per_sm = (unsigned)properties->maxThreadsPerMultiProcessor;
    gpu->blocks_per_sm = (unsigned)properties->maxBlocksPerMultiProcessor;
    gpu->registers_per_sm = (unsigned)properties->regsPerMultiprocessor;
    gpu->shared_per_sm = (uint32_t)properties->sharedMemPerMultiprocessor;
    gpu->shared_per_block = (uint32_t)properties->sharedMemPerBlockOptin;
    gpu->shared_reserved = (uint32_t)properties->reservedSharedMemPerBlock;
    /* Both edges of the clock carry data. */
    gpu->dram_gbs = 2e-6 * attribute(cudaDevAttrMemoryClockRate) *
                    (attribute(cudaDevAttrGlobalMemoryBusWidth) / 8.0);
    gm_gpu_set_rates(gpu, 1e-6 * attribute(cudaDevAttrClockRate));

    device->l2_bytes = (uint64_t)properties->l2CacheSize;
    device->facts.kind = GM_DEVICE_CUDA;
    device->facts.compute_units = gpu->sms;
    device->facts.memory_bytes = properties->totalGlobalMem;
    device->facts.cache_bytes = device->l2_bytes;
    device->facts.gpu = gpu;
    device->facts.has_kernel_times = true;
    snprintf(device->facts.name, sizeof(device->facts.name), "%.95s", properties->name);
}

static bool worked(struct device *device, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return true;
    snprintf(device->error, sizeof(device->error), "%s: %s", what, cudaGetErrorString(error));
    return false;
}

bool device_open(struct device *ret)
{
    struct cudaDeviceProp properties;
    int count = 0;

    memset(ret, 0, sizeof(*ret));
    if (!worked(ret, cudaGetDeviceCount(&count), "no GPU"))
        return false;
    if (count == 0) {
        snprintf(ret->error, sizeof(ret->error), "no GPU");
        return false;
    }
    if (!worked(ret, cudaSetDevice(0), "the GPU") ||
        !worked(ret, cudaGetDeviceProperties(&properties, 0), "the GPU") ||
        !worked(ret, cudaStreamCreate(&ret->exec.stream), "a stream"))
        return false;
    for (unsigned i = 0; i < DEVICE_EVENTS_MAX; i++) {
        if (!worked(ret, cudaEventCreate(&ret->event[i].event), "an event"))
            return false;
    }
    read_facts(ret, &properties);
    read_driver(ret->driver, sizeof(ret->driver));
    ret->exec.gpu = &ret->gpu;
    ret->exec.pass = pass_changes;
    ret->exec.launched = was_launched;
    if (gm_cublas_load(&ret->blas))
        ret->exec.blas = gm_cublas_handle(&ret->blas, ret->exec.stream);
    ret->exec.blas_api = &ret->blas;
    ret->facts.tuned_blas = ret->exec.blas != NULL;
    return true;
}

void device_close(struct device *device)
{
    for (unsigned i = 0; i < DEVICE_EVENTS_MAX; i++)
        cudaEventDestroy(device->event[i].event);
    if (device->exec.blas)
        device->blas.destroy(device->exec.blas);
    cudaFree(device->exec.scratch);
    cudaStreamDestroy(device->exec.stream);
}

static bool grow_scratch(struct device *device, uint64_t bytes)
{
    void *scratch = NULL;

    if (bytes <= device->scratch_bytes)
        return true;
    cudaStreamSynchronize(device->exec.stream);
    cudaFree(device->exec.scratch);
    device->exec.scratch = NULL;
    device->scratch_bytes = 0;
    if (!worked(device, cudaMalloc(&scratch, bytes), "scratch memory"))
        return false;
    /* What a kernel finds there is no more than NaN. */
    cudaMemset(scratch, 0xFF, bytes);
    device->exec.scratch = scratch;
    device->scratch_bytes = bytes;
    return true;
}

enum gm_status device_run(struct device *device, const struct gm_op *op,
                          const struct gm_variant *variant)
{
    if (!grow_scratch(device, variant->scratch(op)))
        return GM_DEVICE_MEMORY;
    device_begin(device);
    enum gm_status status = variant->run[GM_DEVICE_CUDA](op, &device->exec);
    device_end(device);
    return status;
}

bool device_wait(struct device *device)
{
    return worked(device, cudaStreamSynchronize(device->exec.stream), "kernel");
}

void device_begin(struct device *device)
{
    device->launched = true; /* whatever ran before is not this run's */
    record_event(device, GM_PASS_COMPUTES, false);
}

void device_end(struct device *device)
{
    device->launched = true;
    record_event(device, GM_PASS_COMPUTES, true);
}

unsigned device_read_times(struct device *device, struct device_times *ret, unsigned max)
{
    unsigned runs = 0;

    for (unsigned i = 0; i < device->events && runs < max; i++) {
        const struct device_event *event = &device->event[i];
        float milliseconds = 0;
        if (i == 0 || event[-1].ends)
            ret[runs] = (struct device_times){0};
        if (event->ends) {
            runs++;
        } else if (i + 1 < device->events) {
            cudaEventElapsedTime(&milliseconds, event->event, event[1].event);
            *(event->pass == GM_PASS_PREPARES ? &ret[runs].prepare : &ret[runs].kernel) +=
                1e3 * (double)milliseconds;
        }
    }
    device->events = 0;
    return runs;
}
