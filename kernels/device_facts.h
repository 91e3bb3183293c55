/*
 * device_facts.h - holds the facts of a device (model, capacity, measured ceilings), and tells the
 * ceiling of an operation there.
 */
#ifndef GM_KERNELS_DEVICE_FACTS_H
#define GM_KERNELS_DEVICE_FACTS_H

#include "gpu.h"
#include "variant.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gm_profile; /* choose/choose.h */

/* Facts of one device. A rate that is unknown or not measured is 0. Rates and their times can rise
 * while the device is open, when it is measured again; read them with gm_rate. */
struct gm_device_facts {
    enum gm_device_kind kind;
    unsigned index;         /* among the backend's devices */
    char name[96];          /* "NVIDIA H200", "Intel(R) Xeon(R) ..." */
    char detail[96];        /* driver, instruction set, BLAS */
    char uuid[48];          /* of a GPU or of its MIG slice, as nvidia-smi -L prints it; else "" */
    unsigned compute_units; /* multiprocessors, or cores */
    unsigned vector_bytes;  /* of a CPU's widest vectors that kernels use */
    unsigned streams;       /* tasks (or batches) that may be in flight at once */
    bool graded_streams;    /* streams share one processor: long tasks must not occupy all */
    unsigned batch_max;     /* the most tasks of one run() */
    uint64_t batch_bytes;   /* the most gm_group_bytes of several tasks of one run(), in all */
    uint64_t memory_bytes;
    uint64_t cache_bytes;     /* the last level: L2 of a GPU, L3 of a CPU */
    uint64_t own_cache_bytes; /* of a CPU: a core's own, the second level; 0: not known */
    double copy_gbs;          /* best measured copy, bytes read + written, 10^9 per second */
    /* Rates at which a kernel reads and writes the host's memory over the link, 10^9 bytes per
     * second each way; 0 where the device's memory is the host's. */
    double link_in_gbs, link_out_gbs;
    double peak_gflops[GM_DTYPE_COUNT];    /* arithmetic ceiling by element type */
    int64_t measured_unix, looked_unix;    /* when copy_gbs was; the last time that any was */
    const char *peak_name[GM_DTYPE_COUNT]; /* its unit: "fp32", "int32", "tensor bf16" */
    const struct gm_gpu *gpu;              /* limits of the GPU, real or simulated; NULL on a cpu */
    const struct gm_profile *profile;      /* of its estimates (choose/); NULL: the built-in one */
    bool tuned_blas;       /* a BLAS library is there and tuned for this processor: auto uses it */
    bool has_kernel_times; /* false if kernel times mean nothing (sim) */
};

/* Reads a rate of the facts, or its time, atomically: measure() of a backend may raise it at the
 * same time. */
static inline double gm_rate(const double *rate)
{
    double now;

    __atomic_load(rate, &now, __ATOMIC_RELAXED);
    return now;
}
static inline int64_t gm_rate_time(const int64_t *time)
{
    return __atomic_load_n(time, __ATOMIC_RELAXED);
}

/* ---- roof.c: rates that are raised, and the ceilings of operations. ---- */

/* Raises each rate to `found`, if that is higher. One thread at a time. */
void gm_facts_raise(struct gm_device_facts *facts, const struct gm_device_facts *found,
                    int64_t unix_time);

struct gm_roof {
    double gflops;    /* 10^9 operations per second; 0 if not known */
    const char *unit; /* "fp32", "tensor bf16" */
};

/* The least time that the link to the host takes for bytes in and out, which it moves at once, in
 * seconds: what bounds a kernel that reads and writes there (roof "link"). 0 if nothing is moved or
 * the rates are not known. */
double gm_link_seconds(double in, double out, const struct gm_device_facts *facts);

/* The ceiling for `op` by a variant on a device; variant NULL: by plain arithmetic. */
struct gm_roof gm_roof_of(const struct gm_variant *variant, const struct gm_op *op,
                          const struct gm_device_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
