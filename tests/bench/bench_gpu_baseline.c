/*
 * bench_gpu_baseline.c - what is timed beside kernels, and the clocks, which NVIDIA's management
 * library tells: opened at run time, since not every machine has it.
 */
#include "bench_gpu_baseline.h"

#include <dlfcn.h>

bool baseline_memcpy(struct device *device, const struct gm_op *op)
{
    if (op->kind != GM_OP_COPY)
        return false;
    device_begin(device);
    cudaError_t error =
        cudaMemcpyAsync(op->result.data, op->operand[0].data, gm_matrix_bytes(&op->result),
                        cudaMemcpyDeviceToDevice, device->exec.stream);
    device_end(device);
    return error == cudaSuccess;
}

bool baseline_nothing(struct device *device, const struct gm_op *op)
{
    (void)op;
    device_begin(device);
    cudaError_t error = baseline_launch_nothing(device->exec.stream);
    device_end(device);
    return error == cudaSuccess;
}

/* ---- Clocks ------------------------------------------------------------------------------ */

#define NVML_CLOCK_SM 1
#define NVML_CLOCK_MEMORY 2

struct baseline_clocks baseline_read_clocks(void)
{
    typedef int init_fn(void);
    typedef int handle_fn(const char *bus, void **device);
    typedef int clock_fn(void *device, int which, unsigned *mhz);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    init_fn *init = library ? (init_fn *)dlsym(library, "nvmlInit_v2") : NULL;
    handle_fn *find =
        library ? (handle_fn *)dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2") : NULL;
    clock_fn *now = library ? (clock_fn *)dlsym(library, "nvmlDeviceGetClockInfo") : NULL;
    clock_fn *most = library ? (clock_fn *)dlsym(library, "nvmlDeviceGetMaxClockInfo") : NULL;
    struct baseline_clocks clocks = {0};
    char bus[32];
    void *handle;

    if (!init || !find || !now || !most || init() != 0 ||
        cudaDeviceGetPCIBusId(bus, sizeof(bus), 0) != cudaSuccess || find(bus, &handle) != 0)
        return clocks;
    now(handle, NVML_CLOCK_SM, &clocks.sm);
    now(handle, NVML_CLOCK_MEMORY, &clocks.memory);
    most(handle, NVML_CLOCK_SM, &clocks.sm_max);
    most(handle, NVML_CLOCK_MEMORY, &clocks.memory_max);
    return clocks;
}
