/*
 * estimate.h - what the estimates of a variant's time are made of, for the files of this folder.
 *
 * Every variant on a GPU is described by the same few counts (struct gm_work), and one formula
 * makes microseconds of them (gm_work_us). README.md in this folder is the explanation.
 */
#ifndef GM_KERNELS_CHOOSE_ESTIMATE_H
#define GM_KERNELS_CHOOSE_ESTIMATE_H

#include "kernels/access.h"
#include "kernels/choose/choose.h"
#include "kernels/layout.h"

#include <math.h>

/* ---- The numbers: a table for each GPU model (profiles/) ---------------------------------------
 */

/* The rows of a table: variants, and parts of variants whose kernels differ. */
enum gm_rates_row {
#define GM_RATES_ROW(name) GM_RATES_##name,
#include "kernels/choose/rates.def"
#undef GM_RATES_ROW
    GM_RATES_COUNT,
    GM_RATES_HOST = GM_RATES_host_memcpy /* from here on, of CPUs */
};

/* Shares of the device's rates: of multiply-adds, of shared memory, of the L2 cache, of memory.
 * Then cycles: of a trip to memory, of a round of blocks besides, of a further launch. */
struct gm_rates {
    double math, shared, l2, dram, step, start, pass;
};

/* A tile config of multistage_tuned: its share of the peak with one and two warps a scheduler, and
 * with as many as fit; the fixed time of a tile, in steps of K; loading an element of B, in
 * multiply-adds. */
struct gm_tile_rates {
    double rate_1, rate_2, rate_full, start, scalar_b;
};

/* The same for all configs. last_round: of the extra time of a partial round. Microseconds of a
 * launch, and bytes a microsecond, of the passes that reduce splits and repack operands.
 * unaligned_start: more of `start`. The others: the loads of a tile, in multiply-adds. */
struct gm_multistage_rates {
    double last_round, unaligned_start, reduce_us, split_bytes, repack_us, repack_bytes;
    double b_narrow, staged, both_scalar, a_narrow, a_vec;
};

/* Jobs whose operands are in the host's memory. GB/s of the link, measured; microseconds that a job
 * with copies takes beside link and kernel, and each copy; that a launch on such memory takes, and
 * each trip to it; how much longer the link takes for rows that are not whole vectors. */
struct gm_link_rates {
    double in_gbs, out_gbs, copies_us, copy_us, grouped_us, trip_us, uneven;
};

struct gm_profile {
    char gpu[96], driver[24], date[24], commit[24]; /* what it was measured on */
    /* A launch; the share of memory's rate in further passes. Where the L2 cache does not have the
     * operands: cycles of the first trip to them, and of each that waits for another, more; and of
     * a kernel's instructions, where it has nothing. Cycles of each request in a queue for one
     * sector; on a CPU, of waking other threads. */
    double launch_us, pass_rate, first_miss, miss, cleared, queued;
    struct gm_link_rates link;
    struct gm_rates rates[GM_RATES_COUNT];
    struct gm_tile_rates tiles[GM_F32_CONFIGS + GM_F64_CONFIGS];
    struct gm_multistage_rates multistage;
};

/* ---- The question, and the work ----------------------------------------------------------------
 */

/* A product as kernels see it: a stack that shares one B is one tall matrix. No size is 0. */
struct gm_sizes {
    double m, n, k, batch;
    double size, width; /* bytes of an element; of an accumulator */
    struct gm_view a, b;
    bool a_along_k, b_along_k; /* K runs along the operand's rows in memory */
};

struct gm_sizes gm_sizes_of(const struct gm_op *op);

struct gm_asked {
    const struct gm_op *op;
    struct gm_kernel_time *least; /* of all work that was estimated */
    bool *lacks;                  /* set where the profile has no numbers for a work */
    const struct gm_profile *profile;
    struct gm_sizes s; /* of a product */
    double bytes;      /* of the operation, at least */
    double sms, mhz;
    double cold;   /* share of the operands that the L2 cache does not have */
    bool cleared;  /* it has nothing else, either */
    bool tensor;   /* on tensor cores */
    bool borrowed; /* the profile is the built-in one, of another GPU model */
    /* Of a multiprocessor, in a microsecond: multiply-adds of the type, bytes of shared memory and
     * of the L2 cache. dram: bytes of the device. */
    double madds, shared, l2, dram;
    /* Of a CPU: sums in a vector of a kernel, and of its BLAS; bytes of a core's own cache. */
    double vector, blas_vector, own_cache;
};

/* products: on tensor cores, for each product of the operation; 0 without them. */
struct gm_asked gm_asked_of(const struct gm_op *op, const struct gm_gpu *gpu, unsigned products,
                            const struct gm_profile *profile);

/* For the CPU, where a core is a multiprocessor. */
struct gm_asked gm_asked_of_host(const struct gm_op *op, const struct gm_device_facts *facts,
                                 const struct gm_profile *profile);

/* What a block asks of its multiprocessor, and the operation of the device. */
struct gm_work {
    double blocks;   /* of the grid */
    double resident; /* blocks that share a multiprocessor */
    double madds;    /* of a block: multiply-adds, empty parts of tiles included */
    double shared;   /* of a block: 128 bytes for each wavefront of shared memory and L1 cache */
    double l2;       /* of a block: bytes from and to the L2 cache, in whole sectors */
    double steps;    /* of a block: trips to memory that wait for each other */
    double queued;   /* requests for a sector that many blocks ask for at the same time */
    double dram;     /* of the operation: bytes */
    double passes, pass_bytes; /* of the operation: further launches, and the bytes they move */
};

/* The first of the rows that estimates of a variant are by, for the operation's type;
 * GM_RATES_COUNT: it has no estimate. */
size_t gm_rates_of(const struct gm_op *op, enum gm_op_kind kind, const char *name,
                   const struct gm_device_facts *facts);

typedef double gm_estimate_fn(const struct gm_asked *q, const struct gm_rates *r);

/* Infinite where the profile has no numbers in the row. */
double gm_work_us(const struct gm_asked *q, const struct gm_rates *r, const struct gm_work *w);

/* One for each shape of kernel; estimate.c has the variants that each is for. */
gm_estimate_fn gm_us_copy_direct, gm_us_copy_vector, gm_us_add_direct, gm_us_add_grid_stride,
    gm_us_add_vectorized, gm_us_flip_shared, gm_us_flip_vectorized;
gm_estimate_fn gm_us_transpose_naive, gm_us_transpose_tile, gm_us_transpose_unpadded,
    gm_us_transpose_vectorized, gm_us_transpose_unaligned, gm_us_transpose_packed_u8,
    gm_us_transpose_skinny, gm_us_transpose_batched;
gm_estimate_fn gm_us_naive, gm_us_tiled, gm_us_dynamic_tile, gm_us_register_tiled, gm_us_small_tile,
    gm_us_multistage, gm_us_multistage_tuned, gm_us_batched, gm_us_skinny, gm_us_split_k_dot,
    gm_us_cublas, gm_us_mma, gm_us_wgmma, gm_us_split_bf16;

/* Of the CPU's variants. */
gm_estimate_fn gm_us_host_memcpy, gm_us_host_stream, gm_us_host_by_element,
    gm_us_host_transpose_naive, gm_us_host_transpose_blocked, gm_us_host_add_vector,
    gm_us_host_flip_vector, gm_us_host_naive, gm_us_host_skinny, gm_us_host_blocked,
    gm_us_host_openblas;

/* What a lone job takes: with copies and another kernel, or `grouped`. */
double gm_copied_us(const struct gm_op *op, const struct gm_link_rates *link, double kernel_us);
double gm_grouped_us(const struct gm_op *op, const struct gm_link_rates *link);

/* ---- Arithmetic --------------------------------------------------------------------------------
 */

static inline double gm_parts(double whole, double each)
{
    return ceil(whole / each);
}

static inline double gm_least_of(double a, double b)
{
    return a < b ? a : b;
}

static inline double gm_most_of(double a, double b)
{
    return a > b ? a : b;
}

/* What there is of an extent in a span, where blocks each have one: of the fullest, or on average,
 * if a multiprocessor has several blocks. */
static inline double gm_filled(double extent, double span, bool several)
{
    return several ? extent / gm_parts(extent, span) : gm_least_of(extent, span);
}

/* Bytes of the sectors that `bytes` of a row touch, on average, if rows lie `pitch` bytes apart. */
static inline double gm_sectors(double bytes, double pitch)
{
    const uint64_t sector = GM_SECTOR;
    uint64_t all = (uint64_t)pitch | sector, apart = all & (~all + 1);

    return gm_most_of(gm_parts(bytes, (double)apart) * (double)apart + (double)(sector - apart),
                      (double)sector);
}

#endif
