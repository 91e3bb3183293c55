/*
 * gpu.h - holds the limits of a GPU: one multiprocessor (SM), memory, arithmetic ceilings.
 *
 * The facts of known models are a table, so that occupancy and roofline can be computed without a
 * GPU.
 *
 * Sources: the tables of technical specifications by compute capability in NVIDIA's CUDA C++
 * Programming Guide; the models' data sheets (boost clocks, no tensor cores, no sparsity); rates of
 * L2 caches as gpu-benches measures them (github.com/te42kyfo/gpu-benches, gpu-l2-cache).
 */
#ifndef GM_KERNELS_GPU_H
#define GM_KERNELS_GPU_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GM_WARP 32u

/* The multiprocessors of an H200. All choices that decide the order of a sum assume this number on
 * every device, so that the same operands give the same bits everywhere. */
#define GM_H200_SMS 132u

#define GM_I64_PRODUCTS 3.0 /* multiply-adds of 32 bits in one of 64 */

struct gm_gpu {
    char name[32];                   /* "H200" */
    unsigned capability;             /* 90 is compute capability 9.0 */
    unsigned sms;                    /* multiprocessors */
    unsigned threads_per_sm;         /* resident at once; a block has at most 1024 */
    unsigned blocks_per_sm;          /* resident at once */
    unsigned registers_per_sm;       /* of 32 bits */
    uint32_t shared_per_sm;          /* bytes */
    uint32_t shared_per_block;       /* the most bytes, static and dynamic together */
    uint32_t shared_reserved;        /* bytes per block that the system reserves */
    double dram_gbs;                 /* 10^9 bytes a second */
    double fp32_gflops, fp64_gflops; /* multiply-adds outside the tensor cores */
    double int32_gflops;             /* multiply-adds of integers */
    double l2_bytes;                 /* 0 if not known */
    double l2_bytes_per_clock;       /* of a multiprocessor, when all read; 0 if not known */
    /* Tensor cores, dense, accumulating in f32 (or f64); f16 is bf16 too. 0 if not known. */
    double tensor_f16_gflops, tensor_tf32_gflops, tensor_fp64_gflops;
};

/* NULL past the end. The first model is the default. */
const struct gm_gpu *gm_gpu_at(size_t index);
/* Ignores case, spaces, '-' and '_'. NULL if the model is not known. */
const struct gm_gpu *gm_gpu_find(const char *name);
/* The model whose name is a word of a device's: "NVIDIA H100 80GB HBM3" is an H100. */
const struct gm_gpu *gm_gpu_model(const char *device);

/* The arithmetic ceiling of a type without tensor cores: f16 and bf16 accumulate in f32. */
double gm_gpu_gflops(const struct gm_gpu *gpu, enum gm_dtype dtype);

/* Sets the arithmetic ceilings by capability, multiprocessors and highest clock: multiprocessors x
 * units x 2 operations x clock. A capability that is not known has none. */
void gm_gpu_set_rates(struct gm_gpu *gpu, double ghz);

/* Lanes of a multiprocessor that do fp32 arithmetic; its clock in 10^9 per second. */
unsigned gm_gpu_fp32_lanes(const struct gm_gpu *gpu);
double gm_gpu_ghz(const struct gm_gpu *gpu);
/* l2_bytes_per_clock; where that is not known, that of the first model in the list that has as many
 * threads on a multiprocessor, else the least. */
double gm_gpu_l2_bytes_per_clock(const struct gm_gpu *gpu);
/* What the L2 cache delivers when all multiprocessors read; 0 if not known. */
double gm_gpu_l2_gbs(const struct gm_gpu *gpu);

/* What a kernel takes of a multiprocessor, as nvcc compiled it: per thread, and bytes of static
 * shared memory per block. */
struct gm_resources {
    unsigned registers;
    uint32_t shared;
    uint32_t spilled; /* bytes of registers per thread that local memory holds */
};
/* resources.c: those of the generated table kernels/resources.def. symbol: the kernel's mangled
 * name. false if the table has no row of it, or none for the compute capability. */
bool gm_gpu_resources(const struct gm_gpu *gpu, const char *symbol, struct gm_resources *ret);

/* The blocks of a launch that fit on a multiprocessor, and the limit that allows no more. */
struct gm_occupancy {
    unsigned blocks, warps; /* resident on one multiprocessor */
    double percent;         /* resident warps, of those that it can hold */
    const char *limited_by; /* "threads", "blocks", "shared memory" or "registers" */
};

/* registers: per thread; 0 if not known, and then no limit. If a block does not fit, `blocks` is
 * 0. */
struct gm_occupancy gm_gpu_occupancy(const struct gm_gpu *gpu, unsigned threads, uint64_t shared,
                                     unsigned registers);

/* ---- measured.c: times of variants on a real GPU, those of tests/bench/results, so that a report
 * can quote them. Nothing is chosen by them. ---- */

/* The times of one operation, type and shape on one model of GPU. */
struct gm_measured {
    const char *gpu; /* "H200" */
    enum gm_op_kind op;
    enum gm_dtype dtype;
    const char *shape; /* "1024x512 512x256^T": ^T is a transposed operand */
    double copy_us;    /* a copy of as many bytes; 0: not timed */
    const char *times; /* "naive 352.8 tiled 273.2 ...": microseconds */
};

/* The times of the operation itself or, where there are none, of the nearest shape: each dimension
 * within a factor of two, and rows aligned alike. NULL if there is none. *same: of its own shape.
 */
const struct gm_measured *gm_measured_find(const struct gm_gpu *gpu, const struct gm_op *op,
                                           bool *same);

/* Microseconds of a variant; negative if it was not timed. */
double gm_measured_us(const struct gm_measured *measured, const char *variant);

#ifdef __cplusplus
}
#endif
#endif
