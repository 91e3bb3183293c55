/*
 * bench_gpu_yardstick.c - NVIDIA's libraries, opened at run time: a machine that has only the
 * compiler and the driver can build and run the benchmark too.
 */
#include "bench_gpu_yardstick.h"

#include <dlfcn.h>

bool yardstick_memcpy(struct device *device, const struct gm_op *op)
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

/* ---- cuBLAS ------------------------------------------------------------------------------ */

typedef int cublas_create_fn(void **handle);
typedef int cublas_set_stream_fn(void *handle, cudaStream_t stream);
typedef int cublas_sgemm_fn(void *handle, int transa, int transb, int m, int n, int k,
                            const float *alpha, const float *a, int lda, const float *b, int ldb,
                            const float *beta, float *c, int ldc);

static struct {
    void *handle;
    cublas_sgemm_fn *sgemm;
} cublas;

bool yardstick_open_cublas(struct device *device)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                        "/usr/local/cuda/lib64/libcublas.so"};
    void *library = NULL;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    cublas_create_fn *create = (cublas_create_fn *)dlsym(library, "cublasCreate_v2");
    cublas_set_stream_fn *set_stream = (cublas_set_stream_fn *)dlsym(library, "cublasSetStream_v2");
    cublas.sgemm = (cublas_sgemm_fn *)dlsym(library, "cublasSgemm_v2");
    return create && set_stream && cublas.sgemm && create(&cublas.handle) == 0 &&
           set_stream(cublas.handle, device->exec.stream) == 0;
}

bool yardstick_cublas(struct device *device, const struct gm_op *op)
{
    const struct gm_matrix *a = &op->operand[0], *b = &op->operand[1];
    const float one = 1, zero = 0;

    if (!cublas.handle || op->kind != GM_OP_MATMUL || op->result.dtype != GM_F32 ||
        op->result.batch != 1 || op->operands != 2)
        return false;
    /* cuBLAS is column-major: what we call a b is its b^T a^T. */
    device_begin(device);
    int failed = cublas.sgemm(cublas.handle, op->transb, op->transa, (int)gm_op_n(op),
                              (int)gm_op_m(op), (int)gm_op_k(op), &one, b->data, (int)b->cols,
                              a->data, (int)a->cols, &zero, op->result.data, (int)gm_op_n(op));
    device_end(device);
    return !failed;
}

/* ---- Clocks ------------------------------------------------------------------------------ */

#define NVML_CLOCK_SM 1
#define NVML_CLOCK_MEMORY 2

struct yardstick_clocks yardstick_read_clocks(void)
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
    struct yardstick_clocks clocks = {0};
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
