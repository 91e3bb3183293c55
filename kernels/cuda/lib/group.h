/*
 * group.h - a table of problems of any shapes that one launch computes: for the variants `grouped`.
 *
 * A small operation costs its launch and its copies, not its arithmetic. So one launch takes many,
 * and its kernel reads operands and writes results in the host's memory, over the link. Each byte
 * crosses the link once where a block holds all that it needs of an operand (region.h). A lone
 * operation is a table of one: a tile is computed alike in any company.
 *
 * Blocks tell the host when they begin and end, in its memory: it needs no events around the
 * launch, which take as long as a small operation.
 *
 * The table is a kernel parameter, so it needs no copy of its own:
 *
 *     tiles    0 1 2 3 | 4 | 5 6 | ...      begin[]   0, 4, 5, ...
 *     problem     0    | 1 |  2  |
 */
#ifndef GM_KERNELS_CUDA_LIB_GROUP_H
#define GM_KERNELS_CUDA_LIB_GROUP_H

#include "kernels/cuda/lib/kernel.h"

/* What the blocks of a launch have under way to load, all together: some 8 us of a PCIe 5.0 link
 * with 16 lanes. More of it keeps results waiting behind loads, and the link does both at once only
 * where they alternate. */
constexpr unsigned GM_GROUP_IN_FLIGHT = 384 << 10;

template <typename P> struct gm_group {
    unsigned tiles;               /* of all problems */
    unsigned begin[GM_GROUP_MAX]; /* the first tile of each problem; past them `tiles` */
    P problem[GM_GROUP_MAX];
    struct gm_block_time *times; /* of the blocks; NULL: nobody asks */
};

/* The host may look at any time. */
__device__ __forceinline__ void gm_tell(uint64_t *ret_ns)
{
    *(volatile uint64_t *)ret_ns = gm_device_ns();
}

/* Calls compute(problem, tile) for each tile of this block; `tile` counts within the problem. */
template <typename P, typename F>
__device__ __forceinline__ void gm_group_each(const gm_group<P> &group, F compute)
{
    struct gm_block_time *time = group.times ? &group.times[blockIdx.x] : nullptr;

    if (time && threadIdx.x == 0)
        gm_tell(&time->begin_ns);
    for (unsigned tile = blockIdx.x; tile < group.tiles; tile += gridDim.x) {
        unsigned at = 0;
#pragma unroll
        for (unsigned step = 32; step > 0; step /= 2)
            at += at + step < GM_GROUP_MAX && tile >= group.begin[at + step] ? step : 0;
        compute(group.problem[at], tile - group.begin[at]);
        __syncthreads(); /* the next tile overwrites shared memory */
    }
    if (time && threadIdx.x == 0) {
        __threadfence_system(); /* all that the block has written, before the end */
        gm_tell(&time->end_ns);
    }
}

/* Launches `kernel` on op[0] and those after it. describe(op, &problem) returns its tiles, for each
 * of which a block has at most `tile_bytes` under way. `shared` is dynamic shared memory. */
template <typename P, typename F>
static inline enum gm_status gm_group_launch(const struct gm_op *op, struct gm_exec *exec,
                                             void (*kernel)(gm_group<P>), unsigned threads,
                                             unsigned tile_bytes, size_t shared, F describe)
{
    static_assert(GM_GROUP_MAX <= 64, "the search above takes six steps");
    static_assert(sizeof(gm_group<P>) <= 4096, "CUDA's limit for the parameters of a kernel");

    return gm_launches(gm_op_count(exec), GM_GROUP_MAX, [&](uint64_t first, uint64_t count) {
        gm_group<P> group = {};
        for (unsigned i = 0; i < GM_GROUP_MAX; i++) {
            group.begin[i] = group.tiles;
            if (i < count)
                group.tiles += describe(&op[first + i], &group.problem[i]);
        }
        unsigned blocks = GM_GROUP_IN_FLIGHT / tile_bytes;
        blocks = group.tiles < blocks ? group.tiles : blocks;
        blocks = blocks < GM_BLOCK_TIMES_MAX ? blocks : GM_BLOCK_TIMES_MAX;
        if (gm_op_count(exec) <= GM_GROUP_MAX) /* the one launch */
            group.times = gm_begin_block_times(exec, blocks);
        return gm_launch(exec, kernel, dim3(blocks), dim3(threads), shared, group);
    });
}

/* Operands are read where they are, so nothing can rearrange them before. */
static inline enum gm_status gm_group_refuses(const struct gm_op *op, unsigned operand,
                                              struct gm_error *err)
{
    if (gm_op_bytes_min(op) > GM_GROUP_BYTES)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"grouped\" is for operands and results of at most %llu bytes in "
                       "all, and these have %llu",
                       (unsigned long long)GM_GROUP_BYTES, (unsigned long long)gm_op_bytes_min(op));
    for (unsigned i = operand; i < op->operands; i++)
        if (gm_op_reads(op, i) && !gm_lies_row_major(&op->operand[i]))
            return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                           "kernel \"grouped\" reads operands where they are: in row-major order, "
                           "or single matrices of a product in column-major order");
    return GM_OK;
}

/* For operations that move elements. */
GM_ROW_FUNCTION enum gm_status gm_moves_grouped_accepts(const struct gm_op *op,
                                                        const struct gm_device_facts *,
                                                        struct gm_error *err)
{
    return gm_group_refuses(op, 0, err);
}

#endif
