/*
 * facts.c - reads a GPU's facts from CUDA. Its arithmetic ceilings follow from its compute
 * capability and clock (gpu.c).
 */
#include "call.h"
#include "device.h"

#include <stdio.h>
#include <string.h>

static cudaError_t attribute(const struct gm_cuda_device *device, enum cudaDeviceAttr which,
                             double *ret)
{
    int value = 0;
    cudaError_t error = GM_CALL(cudaDeviceGetAttribute, &value, which, device->ordinal);

    *ret = value;
    return error;
}

static void set_limits(struct gm_gpu *gpu, const struct cudaDeviceProp *properties)
{
    snprintf(gpu->name, sizeof(gpu->name), "%.31s", properties->name);
    gpu->capability = (unsigned)(10 * properties->major + properties->minor);
    gpu->sms = (unsigned)properties->multiProcessorCount;
    gpu->threads_per_sm = (unsigned)properties->maxThreadsPerMultiProcessor;
    gpu->blocks_per_sm = (unsigned)properties->maxBlocksPerMultiProcessor;
    gpu->registers_per_sm = (unsigned)properties->regsPerMultiprocessor;
    gpu->shared_per_sm = (uint32_t)properties->sharedMemPerMultiprocessor;
    gpu->shared_per_block = (uint32_t)properties->sharedMemPerBlockOptin;
    gpu->shared_reserved = (uint32_t)properties->reservedSharedMemPerBlock;
}

static const char *unit_name(enum gm_dtype dtype)
{
    return dtype == GM_F64 ? "fp64" : dtype == GM_I32 ? "int32" : "fp32";
}

/* Reads the driver's published version, such as "580.65.06"; "" if the system does not say. */
static void read_driver(char *ret, size_t size)
{
    FILE *file = fopen("/sys/module/nvidia/version", "re");
    unsigned used = 0;
    int c;

    while (file && used + 1 < size && (c = fgetc(file)) > ' ')
        ret[used++] = (char)c;
    ret[used] = '\0';
    if (file)
        fclose(file);
}

static void set_detail(struct gm_cuda_device *device, int cuda)
{
    const struct gm_gpu *gpu = &device->gpu;
    char driver[32];

    read_driver(driver, sizeof(driver));
    snprintf(device->facts.detail, sizeof(device->facts.detail),
             "compute capability %u.%u, driver%s%s for CUDA %d.%d", gpu->capability / 10,
             gpu->capability % 10, driver[0] ? " " : "", driver, cuda / 1000, cuda % 1000 / 10);
}

/* As nvidia-smi -L prints it; it does not depend on CUDA_VISIBLE_DEVICES. A slice (MIG) has a UUID
 * of its own, and is told by its name: "NVIDIA H200 MIG 1g.18gb". */
static void set_uuid(struct gm_cuda_device *device, const unsigned char bytes[16])
{
    char *at = device->facts.uuid;

    at += sprintf(at, strstr(device->facts.name, " MIG ") ? "MIG-" : "GPU-");
    for (unsigned i = 0; i < 16; i++)
        at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}

cudaError_t gm_cuda_read_facts(struct gm_cuda_device *device)
{
    struct cudaDeviceProp properties;
    double clock = 0, memory_clock = 0, memory_bits = 0;
    int cuda = 0;
    cudaError_t error = GM_CALL(cudaGetDeviceProperties, &properties, device->ordinal);

    if (error == cudaSuccess)
        error = attribute(device, cudaDevAttrClockRate, &clock);
    if (error == cudaSuccess)
        error = attribute(device, cudaDevAttrMemoryClockRate, &memory_clock);
    if (error == cudaSuccess)
        error = attribute(device, cudaDevAttrGlobalMemoryBusWidth, &memory_bits);
    if (error == cudaSuccess)
        error = GM_CALL(cudaDriverGetVersion, &cuda);
    if (error != cudaSuccess)
        return error;

    struct gm_gpu *gpu = &device->gpu;
    set_limits(gpu, &properties);
    gm_gpu_set_rates(gpu, clock * 1e-6);
    const struct gm_gpu *model = gm_gpu_model(properties.name);
    gpu->l2_bytes = properties.l2CacheSize;
    gpu->l2_bytes_per_clock = model ? model->l2_bytes_per_clock : 0;
    gpu->dram_gbs = 2e-6 * memory_clock * memory_bits / 8; /* double data rate */
    device->facts = (struct gm_device_facts){
        .kind = GM_DEVICE_CUDA,
        .compute_units = gpu->sms,
        .streams = device->streams,
        .batch_max = GM_GROUP_MAX,
        .batch_bytes = GM_GROUP_BYTES,
        .memory_bytes = properties.totalGlobalMem,
        .cache_bytes = (uint64_t)properties.l2CacheSize,
        .gpu = gpu,
        .has_kernel_times = true,
    };
    for (unsigned i = 1; i < GM_DTYPE_COUNT; i++) {
        enum gm_dtype dtype = (enum gm_dtype)i;
        if (GM_TYPES_ARITHMETIC & GM_DTYPE_BIT(i))
            device->facts.peak_gflops[i] = gm_gpu_gflops(gpu, dtype);
        device->facts.peak_name[i] = unit_name(dtype);
    }
    snprintf(device->facts.name, sizeof(device->facts.name), "%.95s", properties.name);
    set_detail(device, cuda);
    set_uuid(device, (const unsigned char *)&properties.uuid);
    return cudaSuccess;
}
