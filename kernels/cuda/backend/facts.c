/*
 * facts.c - reads a GPU's facts from CUDA, and computes its arithmetic ceilings.
 *
 * A rate is multiprocessors x units x 2 operations x the highest clock. The units of a
 * multiprocessor depend on the compute capability alone. CUDA does not report them; the Programming
 * Guide does (the table of throughputs of native arithmetic instructions). A capability that is not
 * in the table has no rates. Rates of tensor cores, accumulating in f32, are from the data sheets
 * of A100, H100 and B200. Other capabilities have models of full and of half rate, and CUDA does
 * not say which.
 */
#include "call.h"
#include "device.h"

#include <stdio.h>

static const struct {
    unsigned capability;
    unsigned fp32, fp64, int32; /* multiply-adds per cycle and multiprocessor */
    unsigned tensor_f16, tensor_tf32, tensor_fp64;
} units[] = {
    {70, 64, 32, 64, 0, 0, 0},          {75, 64, 2, 64, 0, 0, 0},
    {80, 64, 32, 64, 1024, 512, 64},    {86, 128, 2, 64, 0, 0, 0},
    {87, 128, 2, 64, 0, 0, 0},          {89, 128, 2, 64, 0, 0, 0},
    {90, 128, 64, 64, 2048, 1024, 128}, {100, 128, 64, 64, 4096, 2048, 64},
    {120, 128, 2, 64, 0, 0, 0},
};

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

static void set_rates(struct gm_gpu *gpu, double clock_khz)
{
    double gigacycles = gpu->sms * 2.0 * clock_khz * 1e-6;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (units[i].capability == gpu->capability) {
            gpu->fp32_gflops = gigacycles * units[i].fp32;
            gpu->fp64_gflops = gigacycles * units[i].fp64;
            gpu->int32_gflops = gigacycles * units[i].int32;
            gpu->tensor_f16_gflops = gigacycles * units[i].tensor_f16;
            gpu->tensor_tf32_gflops = gigacycles * units[i].tensor_tf32;
            gpu->tensor_fp64_gflops = gigacycles * units[i].tensor_fp64;
        }
    }
}

static const char *unit_name(enum gm_dtype dtype)
{
    return dtype == GM_F64 ? "fp64" : dtype == GM_I32 ? "int32" : "fp32";
}

/* The driver's version as it is published: "580.65.06"; "" if the system does not say. */
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
    set_rates(gpu, clock);
    gpu->dram_gbs = 2e-6 * memory_clock * memory_bits / 8; /* double data rate */
    device->facts = (struct gm_device_facts){
        .kind = GM_DEVICE_CUDA,
        .compute_units = gpu->sms,
        .streams = device->streams,
        .batch_max = GM_CUDA_BATCH_MAX,
        .batch_bytes = GM_CUDA_BATCH_BYTES,
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
    return cudaSuccess;
}
