/*
 * device.h - one GPU as the backend knows it, and its lanes: streams with what a task on them
 * needs. Who owns what: the backend its devices, a device its lanes; a lane is used by one thread
 * at a time.
 */
#ifndef GM_KERNELS_CUDA_DEVICE_H
#define GM_KERNELS_CUDA_DEVICE_H

#include "cublas.h"
#include "kernels/backend.h"
#include "timeline.h"

#define GM_CUDA_LANES 3u /* one copies in, one computes, one copies out */
#define GM_CUDA_LANES_MAX 16u
#define GM_CUDA_BATCH_MAX 16u
#define GM_CUDA_NAME_MAX 128u

struct gm_cuda_device;

struct gm_cuda_lane {
    struct gm_cuda_device *device;
    cudaStream_t stream;
    struct gm_timeline timeline;
    void *blas; /* a cuBLAS handle on the stream; NULL where there is none */
    /* The kernel launched last, and its name, asked for while the device still answers. */
    const void *kernel;
    char kernel_name[GM_CUDA_NAME_MAX];
};

struct gm_cuda_device {
    int ordinal; /* CUDA's number of it */
    struct gm_gpu gpu;
    struct gm_device_facts facts;
    const struct gm_cublas *blas; /* NULL where the library is not here */
    cudaMemPool_t pool;
    atomic_bool lost;
    unsigned lanes;
    struct gm_cuda_lane lane[GM_CUDA_LANES_MAX];
};

/* Opens a GPU with so many lanes, and measures it. GM_DEVICE_UNAVAILABLE and why, with nothing to
 * close, where it cannot be used. blas may be NULL, else outlives the device. */
enum gm_status gm_cuda_device_open(struct gm_cuda_device *ret, int ordinal, unsigned lanes,
                                   const struct gm_cublas *blas, struct gm_error *err);
void gm_cuda_device_close(struct gm_cuda_device *device);

/* facts.c: what CUDA says of a GPU. */
cudaError_t gm_cuda_read_facts(struct gm_cuda_device *device);

/* ceiling.c: the best copy that the device can do, on the device, in 10^9 bytes read and written a
 * second, into its facts; 0 where there is no memory to measure with. */
enum gm_status gm_cuda_measure_copy(struct gm_cuda_device *device, struct gm_error *err);

/* run.c: what gm_backend's run does, on one lane. */
enum gm_status gm_cuda_run(struct gm_cuda_lane *lane, struct gm_task *task[], unsigned n);

#endif
