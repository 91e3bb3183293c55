/*
 * fake_cuda.h - a runtime of CUDA on the host, for tests of the backend where there is no GPU.
 * Memory is the host's, streams run at once, and time is what the fake says: a copy takes
 * FAKE_US_PER_BYTE, a launch FAKE_KERNEL_US.
 */
#ifndef GM_TESTS_FAULT_FAKE_CUDA_H
#define GM_TESTS_FAULT_FAKE_CUDA_H

#include "kernels/cuda/backend/exec.h"

#include <stdatomic.h>
#include <stdint.h>

#define FAKE_US_PER_BYTE 0.001
#define FAKE_KERNEL_US 7.0
#define FAKE_DEVICES_MAX 4

/* What a test sets, between runs. */
struct fake_cuda {
    int devices;            /* how many there are, each alike */
    unsigned unusable;      /* bit i: device i lets nobody in */
    uint64_t memory_bytes;  /* of each device */
    bool fragmented;        /* freed memory serves no new allocation until the pool is trimmed */
    bool no_blas;           /* cuBLAS is not here */
    int blas_answer;        /* what its products answer; 0, and they are made */
    cudaError_t blas_error; /* and what has broken the device then */
    double blas_loads_us;   /* so long its products load code, at the first one; then 0 */
    unsigned blas_loads_at; /* or at this one of them, from 1 on; then 0 */
    atomic_int blas_batch;  /* set by them: of how many matrices the last was */
    bool no_registering;    /* kernels cannot use memory that is registered */
    bool no_names;          /* kernels have none */
    bool silent;            /* a launch ends, and its last block does not say so */
    double head_start_us;   /* set by the fake: of all head starts */
    uint64_t pretend; /* copies on the device of more bytes take their time, and copy nothing */
};

extern struct fake_cuda fake_cuda;

/* Everything back to one device of 1 GiB; what is live stays so. */
void fake_cuda_reset(void);
/* From now on every call answers this, as after a kernel's fault. */
void fake_cuda_break(cudaError_t error);
bool fake_cuda_is_broken(void);

/* What the next cudaGetLastError answers, as after a call that failed. */
void fake_cuda_remember(cudaError_t error);

/* What has not been given back; and streams with copies that nobody has waited for. */
struct fake_live {
    long streams, events, pinned, device_memory, handles, unwaited, registered, opened;
};
struct fake_live fake_cuda_live(void);
unsigned long fake_cuda_launches(void);
/* Bytes that the pool keeps though nobody uses them. */
uint64_t fake_cuda_pooled(void);

/* A launch that has done its work: it takes its time. Its outcome is the last error, as CUDA's. */
cudaError_t fake_cuda_launch(void);
/* The last block of a launch says that it has ended, when its stream is asked for the first time.
 */
void fake_cuda_end_block(cudaStream_t stream, uint64_t *end_ns, uint64_t now_ns);
/* A library loads code: that takes so long, of both clocks. */
void fake_cuda_load(double us);
/* Handles of the fake cuBLAS: so many more, or fewer. */
cudaError_t fake_cuda_handles(long change);

#endif
