/*
 * fake_cuda.c - CUDA's runtime on the host.
 *
 * What it is strict about, as CUDA is or as a test needs it: memory is given back by its own
 * function and once; events are read only when both were recorded; an error that breaks the device
 * is the answer to everything after it. Overruns are the sanitizers' to find.
 */
#include "fake_cuda.h"
#include "kernels/cuda/backend/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct fake_stream {
    int device;
    unsigned long copies, waited_for; /* put on it; of those, how many somebody has waited for */
    uint64_t *end_ns, end_now_ns;     /* what fake_cuda_end_block set; or NULL */
};

struct fake_event {
    bool recorded, asked;
    double us;
    struct fake_stream *stream;
    unsigned long copies; /* before it */
};

struct fake_pool {
    uint64_t in_use, pooled;
};

/* Before each piece of device memory. */
struct header {
    uint64_t bytes;
    struct fake_pool *pool;
};
#define HEADER 256u

struct fake_cuda fake_cuda;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static double clock_us;
static cudaError_t broken;
static struct fake_live live;
static uint64_t opened_bytes;
static unsigned long launches;
static struct fake_pool pool[FAKE_DEVICES_MAX];
static _Thread_local int current_device;
static _Thread_local cudaError_t last_error;

static cudaError_t answer(cudaError_t error)
{
    if (broken != cudaSuccess)
        error = broken;
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

/* The end of a call, which began by taking the lock. */
static cudaError_t leave(cudaError_t error)
{
    error = answer(error);
    pthread_mutex_unlock(&lock);
    return error;
}

/* Called with the lock. */
static void wait_for(struct fake_stream *stream, unsigned long copies)
{
    if (stream->waited_for < copies && copies == stream->copies)
        live.unwaited--;
    if (stream->waited_for < copies)
        stream->waited_for = copies;
}

void fake_cuda_reset(void)
{
    pthread_mutex_lock(&lock);
    fake_cuda = (struct fake_cuda){
        .devices = 1, .memory_bytes = (uint64_t)1 << 30, .pretend = (uint64_t)1 << 19};
    broken = cudaSuccess;
    last_error = cudaSuccess;
    launches = 0;
    memset(pool, 0, sizeof(pool));
    pthread_mutex_unlock(&lock);
}

void fake_cuda_break(cudaError_t error)
{
    pthread_mutex_lock(&lock);
    broken = error;
    pthread_mutex_unlock(&lock);
}

bool fake_cuda_is_broken(void)
{
    pthread_mutex_lock(&lock);
    bool is_broken = broken != cudaSuccess;
    pthread_mutex_unlock(&lock);
    return is_broken;
}

void fake_cuda_remember(cudaError_t error)
{
    last_error = error;
}

struct fake_live fake_cuda_live(void)
{
    pthread_mutex_lock(&lock);
    struct fake_live now = live;
    pthread_mutex_unlock(&lock);
    return now;
}

unsigned long fake_cuda_launches(void)
{
    pthread_mutex_lock(&lock);
    unsigned long now = launches;
    pthread_mutex_unlock(&lock);
    return now;
}

uint64_t fake_cuda_pooled(void)
{
    pthread_mutex_lock(&lock);
    uint64_t now = pool[0].pooled;
    pthread_mutex_unlock(&lock);
    return now;
}

cudaError_t fake_cuda_launch(void)
{
    pthread_mutex_lock(&lock);
    clock_us += FAKE_KERNEL_US;
    launches++;
    leave(cudaSuccess);
    return cudaGetLastError();
}

/* In place of clock.c. Each thread's clock moves on when it is read. */
static _Thread_local int64_t host_ns;

int64_t gm_cuda_now_ns(void)
{
    return host_ns += 1000;
}

void gm_cuda_pause(int64_t waited_ns)
{
    host_ns += waited_ns / 100;
}

void fake_cuda_load(double us)
{
    host_ns += (int64_t)(1e3 * us);
    pthread_mutex_lock(&lock);
    clock_us += us;
    pthread_mutex_unlock(&lock);
}

/* In place of head_start.cu. */
cudaError_t gm_cuda_head_start(cudaStream_t stream, double us, double ghz)
{
    pthread_mutex_lock(&lock);
    clock_us += us;
    fake_cuda.head_start_us += us;
    return leave(stream && us > 0 && ghz > 0 ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    pthread_mutex_lock(&lock);
    *count = fake_cuda.devices;
    return leave(fake_cuda.devices > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
    pthread_mutex_lock(&lock);
    bool there = device >= 0 && device < fake_cuda.devices;
    if (there)
        current_device = device;
    return leave(there ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    pthread_mutex_lock(&lock);
    *properties = (struct cudaDeviceProp){.totalGlobalMem = fake_cuda.memory_bytes,
                                          .sharedMemPerMultiprocessor = 233472,
                                          .sharedMemPerBlockOptin = 232448,
                                          .reservedSharedMemPerBlock = 1024,
                                          .major = 9,
                                          .multiProcessorCount = 132,
                                          .l2CacheSize = 50 << 20,
                                          .maxThreadsPerMultiProcessor = 2048,
                                          .maxBlocksPerMultiProcessor = 32,
                                          .regsPerMultiprocessor = 65536};
    snprintf(properties->name, sizeof(properties->name), "Fake GPU %d", device);
    for (int i = 0; i < 16; i++)
        properties->uuid.bytes[i] = (char)(0xF0 + i + device);
    return leave(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    pthread_mutex_lock(&lock);
    const struct fake_pool *of = &pool[current_device];
    *total = fake_cuda.memory_bytes;
    uint64_t used = of->in_use + of->pooled;
    *available = used < fake_cuda.memory_bytes ? fake_cuda.memory_bytes - used : 0;
    return leave(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device)
{
    pthread_mutex_lock(&lock);
    *value = which == cudaDevAttrClockRate                           ? 1980000
             : which == cudaDevAttrMemoryClockRate                   ? 3201000
             : which == cudaDevAttrCanUseHostPointerForRegisteredMem ? !fake_cuda.no_registering
                                                                     : 6016;
    return leave(device < fake_cuda.devices ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    pthread_mutex_lock(&lock);
    *version = 13010;
    return leave(cudaSuccess);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
           : error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress"
                                              : "cudaErrorFake";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory"
           : error == cudaErrorIllegalAddress ? "an illegal memory access was encountered"
                                              : "an error";
}

cudaError_t cudaHostAlloc(void **data, size_t bytes, unsigned flags)
{
    pthread_mutex_lock(&lock);
    (void)flags;
    if (broken != cudaSuccess)
        return leave(broken);
    if (fake_cuda.unusable >> current_device & 1)
        return leave(cudaErrorDevicesUnavailable);
    *data = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    live.pinned += *data != NULL;
    return leave(*data ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *data)
{
    pthread_mutex_lock(&lock);
    if (fake_cuda.unusable >> current_device & 1)
        return leave(cudaErrorDevicesUnavailable);
    free(data);
    live.pinned--;
    return leave(cudaSuccess);
}

cudaError_t cudaHostRegister(void *data, size_t bytes, unsigned flags)
{
    pthread_mutex_lock(&lock);
    bool good = data && bytes > 0 && flags == cudaHostRegisterPortable;
    if (fake_cuda.unusable >> current_device & 1)
        return leave(cudaErrorDevicesUnavailable);
    live.registered += good && broken == cudaSuccess;
    return leave(good ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostUnregister(void *data)
{
    pthread_mutex_lock(&lock);
    if (fake_cuda.unusable >> current_device & 1)
        return leave(cudaErrorDevicesUnavailable);
    (void)data;
    live.registered--;
    return leave(cudaSuccess);
}

/* A handle of the fake is an address and a size, in that order. */
cudaError_t cudaIpcOpenMemHandle(void **data, cudaIpcMemHandle_t handle, unsigned flags)
{
    pthread_mutex_lock(&lock);
    memcpy(data, handle.reserved, sizeof(*data));
    memcpy(&opened_bytes, handle.reserved + sizeof(*data), sizeof(opened_bytes));
    bool good = *data && flags == cudaIpcMemLazyEnablePeerAccess;
    live.opened += good && broken == cudaSuccess;
    return leave(good ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaIpcCloseMemHandle(void *data)
{
    pthread_mutex_lock(&lock);
    (void)data;
    live.opened--;
    return leave(cudaSuccess);
}

/* In place of address_range.c, of what was opened last. */
bool gm_cuda_allocation_bytes(const void *data, uint64_t *ret)
{
    (void)data;
    *ret = opened_bytes;
    return opened_bytes > 0;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *ret, int device)
{
    pthread_mutex_lock(&lock);
    *ret = &pool[device];
    return leave(cudaSuccess);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t at, enum cudaMemPoolAttr which, void *value)
{
    pthread_mutex_lock(&lock);
    bool right =
        at && which == cudaMemPoolAttrReleaseThreshold && *(const uint64_t *)value == UINT64_MAX;
    return leave(right ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t at, size_t keep)
{
    pthread_mutex_lock(&lock);
    at->pooled = at->pooled < keep ? at->pooled : keep;
    return leave(cudaSuccess);
}

/* Each piece is an allocation of its own, so that the sanitizers know its end; but not the large
 * ones in which copies are measured, whose shadow would take most of a test's time. */
#define LARGE ((size_t)32 << 20)

static char *take(size_t bytes)
{
    size_t whole = HEADER + ((bytes + HEADER - 1) & ~(size_t)(HEADER - 1));
    void *memory;

    if (bytes < LARGE)
        return aligned_alloc(HEADER, whole);
    memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void give(struct header *header)
{
    if (header->bytes < LARGE)
        free(header);
    else
        munmap(header, HEADER + ((header->bytes + HEADER - 1) & ~(size_t)(HEADER - 1)));
}

cudaError_t cudaMallocAsync(void **data, size_t bytes, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    struct fake_pool *from = &pool[stream->device];
    uint64_t again = !fake_cuda.fragmented && from->pooled > 0
                         ? (bytes < from->pooled ? bytes : from->pooled)
                         : 0;
    if (broken != cudaSuccess || bytes == 0)
        return leave(cudaErrorInvalidValue);
    if (from->in_use + from->pooled - again + bytes > fake_cuda.memory_bytes)
        return leave(cudaErrorMemoryAllocation);
    char *memory = take(bytes);
    if (!memory)
        return leave(cudaErrorMemoryAllocation);
    *(struct header *)(void *)memory = (struct header){bytes, from};
    from->pooled -= again;
    from->in_use += bytes;
    live.device_memory++;
    *data = memory + HEADER;
    return leave(cudaSuccess);
}

cudaError_t cudaFreeAsync(void *data, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    (void)stream;
    struct header *header = (void *)((char *)data - HEADER);
    header->pool->in_use -= header->bytes;
    header->pool->pooled += header->bytes;
    give(header);
    live.device_memory--;
    return leave(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    if (stream->copies++ == stream->waited_for)
        live.unwaited++;
    bool pretends = kind == cudaMemcpyDeviceToDevice && bytes > fake_cuda.pretend;
    bool works = broken == cudaSuccess;
    clock_us += (double)bytes * FAKE_US_PER_BYTE;
    pthread_mutex_unlock(&lock);
    if (works && !pretends)
        memcpy(to, from, bytes);
    pthread_mutex_lock(&lock);
    return leave(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    pthread_mutex_lock(&lock);
    if (broken != cudaSuccess || flags != cudaStreamNonBlocking)
        return leave(cudaErrorInvalidValue);
    *stream = calloc(1, sizeof(**stream));
    if (!*stream)
        return leave(cudaErrorMemoryAllocation);
    (*stream)->device = current_device;
    live.streams++;
    return leave(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    wait_for(stream, stream->copies);
    free(stream);
    live.streams--;
    return leave(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    if (stream)
        wait_for(stream, stream->copies);
    return leave(stream ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

void fake_cuda_end_block(cudaStream_t stream, uint64_t *end_ns, uint64_t now_ns)
{
    pthread_mutex_lock(&lock);
    if (!fake_cuda.silent) {
        stream->end_ns = end_ns;
        stream->end_now_ns = now_ns;
    }
    pthread_mutex_unlock(&lock);
}

/* As a device that is still at work when it is asked first, and then ends. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    bool ready = !stream->end_ns;
    if (!ready && broken == cudaSuccess)
        *stream->end_ns = stream->end_now_ns;
    stream->end_ns = NULL;
    return leave(ready ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    pthread_mutex_lock(&lock);
    if (broken != cudaSuccess || flags != cudaEventDefault)
        return leave(cudaErrorInvalidValue);
    *event = calloc(1, sizeof(**event));
    live.events += *event != NULL;
    return leave(*event ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    free(event);
    live.events--;
    return leave(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    event->recorded = true;
    event->asked = false;
    event->us = clock_us;
    event->stream = stream;
    event->copies = stream->copies;
    return leave(cudaSuccess);
}

/* As a device that is still at work when it is asked first. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    bool ready = event->asked || !event->recorded;
    event->asked = true;
    return leave(ready ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    if (event->recorded)
        wait_for(event->stream, event->copies);
    return leave(event->recorded ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    pthread_mutex_lock(&lock);
    *ms = (float)((to->us - from->us) * 1e-3);
    return leave(from->recorded && to->recorded && to->us >= from->us
                     ? cudaSuccess
                     : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
    pthread_mutex_lock(&lock);
    attributes->numRegs = 32;
    return leave(kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncGetName(const char **name, const void *kernel)
{
    pthread_mutex_lock(&lock);
    *name = "fake_kernel";
    return leave(kernel && !fake_cuda.no_names ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t fake_cuda_handles(long change)
{
    pthread_mutex_lock(&lock);
    live.handles += change;
    return leave(cudaSuccess);
}
