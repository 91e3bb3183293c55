/*
 * multistage.cu - computes a GEMM with a multistage pipeline: k-tiles are copied ahead of use.
 *
 * Unlike in matmul_register_tiled, loads do not pass through registers, which accumulators need,
 * and threads do not wait at the barrier for the last element. Asynchronous copies (cp.async) move
 * data from global to shared memory, three k-tiles ahead. A thread has 8 x 16 accumulators, a block
 * 128 x 256.
 *
 * Cost, f32: of 100 instructions in the loop 89 are multiply-adds and 4 read shared memory. For 128
 * multiply-adds a warp needs 12 wavefronts of shared memory; for 100, 1.2 elements of global
 * memory. Elements of 8 bytes have smaller tiles, and two k-tiles ahead.
 *
 * When it wins: i32 and i64 products whose tiles fill the device. For f32 and f64 multistage_tuned
 * has the same config among others, and is as good.
 * Source: CUTLASS ("Efficient GEMM in CUDA", NVIDIA); Gray, maxas, "SGEMM" (register banks).
 */
#include "kernels/cuda/matmul/multistage/launch.h"

/*
 * This file has the configs. The kernel is in multistage/, which multistage_tuned shares. In
 * reading order:
 *
 *     tile_config.h   the tiles of a block, a warp and a thread, and a stage in shared memory
 *     mainloop.h      the pipeline, and the kernel
 *     loader.h        which thread copies what, from global to shared memory
 *     epilogue.h      from accumulators to the result
 *     launch.h        the grid, the load modes, what is accepted
 */

struct i32_128x256 : gm_schedules<gm_schedule<8, GM_ODD_FORWARD>> {
    static constexpr unsigned BM = 128, BN = 256, BK = 8, WM = 64, WN = 64, TM = 8, TN = 16;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 1, STAGED_MAX = 1;
};
/* A larger tile does not fit in registers: each multiplication of i64 takes several. */
struct i64_64x128 : gm_schedules<gm_schedule<6, GM_ODD_FORWARD>> {
    static constexpr unsigned BM = 64, BN = 128, BK = 8, WM = 32, WN = 32, TM = 4, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 1, STAGED_MAX = 1;
};

/* SPECIALIZED: common load modes have their own kernels (tile_config.h). */
template <typename T, typename CONFIG, bool SPECIALIZED_> struct config {
    using tile = gm_tile<T, CONFIG>;
    static constexpr bool SPECIALIZED = SPECIALIZED_;
};
template <typename T> struct config_of;
template <> struct config_of<float> : config<float, gm_f32_128x256, true> {
};
template <> struct config_of<double> : config<double, gm_f64_128x128, false> {
};
template <> struct config_of<int32_t> : config<int32_t, i32_128x256, false> {
};
template <> struct config_of<int64_t> : config<int64_t, i64_64x128, false> {
};

/* Calls fn(gm_tag<T>) for the element types that cp.async can copy. */
template <typename F> static enum gm_status by_wide_type(enum gm_dtype dtype, F fn)
{
    switch (dtype) {
    case GM_F64:
        return fn(gm_tag<double>());
    case GM_I32:
        return fn(gm_tag<int32_t>());
    case GM_I64:
        return fn(gm_tag<int64_t>());
    default:
        return fn(gm_tag<float>());
    }
}

GM_KERNEL(matmul_multistage)
{
    return by_wide_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        using config = config_of<T>;
        return gm_launch_multistage<typename config::tile, config::SPECIALIZED>(
            exec, gm_product_of<T>(op), 1, false);
    });
}
