/*
 * candidates.h - lists the tile configs that multistage_tuned chooses from, largest tiles first.
 *
 * In addition to tile sizes (tile_config.h), a candidate names:
 *
 *     SPECIALIZED            common load modes have their own kernels (tile_config.h)
 *     RESIDENT               blocks that share a multiprocessor, as measured
 *     RATE_*, START,         parameters of the cost model (cost_model.h), fitted to measured times
 *     SCALAR_B
 *
 * The first candidate is the exception: its RATE_FULL and START are set by hand so that the largest
 * products choose it. Few products of that size were timed with all candidates.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_CANDIDATES_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_CANDIDATES_H

#include "kernels/cuda/matmul/multistage/cost_model.h"
#include "kernels/cuda/matmul/multistage/launch.h"

struct f32_128x256_by_8x16 : gm_f32_128x256 {
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 1;
    static constexpr double RATE_1_WARP = 1.14, RATE_2_WARPS = 1.14, RATE_FULL = 1.14;
    static constexpr double START = 50, SCALAR_B = 28;
};
struct f32_64x128_by_16x8
    : gm_schedules<gm_schedule<7, GM_EVEN_FORWARD>, gm_schedule<1, GM_ODD_FORWARD, GM_BY_COLUMNS>> {
    static constexpr unsigned BM = 64, BN = 128, BK = 8, WM = 64, WN = 64, TM = 16, TN = 8;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 4, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 4;
    static constexpr double RATE_1_WARP = 0.92, RATE_2_WARPS = 1.06, RATE_FULL = 1.06;
    static constexpr double START = 18, SCALAR_B = 3;
};
struct f32_64x128_by_8x8 : gm_schedules<gm_schedule<7, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 64, BN = 128, BK = 8, WM = 32, WN = 64, TM = 8, TN = 8;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 3, STAGED_MAX = 2;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 3;
    static constexpr double RATE_1_WARP = 0.86, RATE_2_WARPS = 0.97, RATE_FULL = 1.02;
    static constexpr double START = 9, SCALAR_B = 22;
};
struct f32_32x128_by_8x8 : gm_schedules<gm_schedule<9, GM_EVEN_FORWARD, GM_BY_COLUMNS>> {
    static constexpr unsigned BM = 32, BN = 128, BK = 16, WM = 32, WN = 64, TM = 8, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 6, STAGED_MAX = 0;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 6;
    static constexpr double RATE_1_WARP = 0.89, RATE_2_WARPS = 0.90, RATE_FULL = 1.02;
    static constexpr double START = 19, SCALAR_B = 25;
};
struct f32_64x64_by_8x8 : gm_schedules<gm_schedule<24, GM_EVEN_FORWARD, GM_BY_COLUMNS>> {
    static constexpr unsigned BM = 64, BN = 64, BK = 16, WM = 32, WN = 64, TM = 8, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 6, STAGED_MAX = 0;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 6;
    static constexpr double RATE_1_WARP = 0.88, RATE_2_WARPS = 1.02, RATE_FULL = 1.06;
    static constexpr double START = 20, SCALAR_B = 30;
};
struct f32_64x64_by_4x8 : gm_schedules<gm_schedule<24, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 64, BN = 64, BK = 16, WM = 16, WN = 64, TM = 4, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 4, STAGED_MAX = 2;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 4;
    static constexpr double RATE_1_WARP = 0.68, RATE_2_WARPS = 0.86, RATE_FULL = 0.93;
    static constexpr double START = 10, SCALAR_B = 3;
};
struct f32_32x64_by_8x8 : gm_schedules<gm_schedule<7, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 32, BN = 64, BK = 8, WM = 32, WN = 64, TM = 8, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 12, STAGED_MAX = 2;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 12;
    static constexpr double RATE_1_WARP = 0.70, RATE_2_WARPS = 0.90, RATE_FULL = 0.92;
    static constexpr double START = 7, SCALAR_B = 0;
};
struct f32_32x32_by_8x4 : gm_schedules<gm_schedule<1, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 32, BN = 32, BK = 8, WM = 32, WN = 32, TM = 8, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 16, STAGED_MAX = 2;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 16;
    static constexpr double RATE_1_WARP = 0.52, RATE_2_WARPS = 0.81, RATE_FULL = 0.82;
    static constexpr double START = 13, SCALAR_B = 4;
};
struct f32_32x32_by_4x4 : gm_schedules<gm_schedule<0, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 32, BN = 32, BK = 16, WM = 16, WN = 32, TM = 4, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 8, STAGED_MAX = 0;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 10;
    static constexpr double RATE_1_WARP = 0.60, RATE_2_WARPS = 0.70, RATE_FULL = 0.65;
    static constexpr double START = 10, SCALAR_B = 16;
};
struct f32_16x32_by_4x4 : gm_schedules<gm_schedule<1, GM_EVEN_FORWARD, GM_BY_COLUMNS>> {
    static constexpr unsigned BM = 16, BN = 32, BK = 16, WM = 16, WN = 32, TM = 4, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 8, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 15;
    static constexpr double RATE_1_WARP = 0.58, RATE_2_WARPS = 0.60, RATE_FULL = 0.53;
    static constexpr double START = 15, SCALAR_B = 11;
};
struct f32_16x64_by_4x8 : gm_schedules<gm_schedule<9, GM_ODD_FORWARD>> {
    static constexpr unsigned BM = 16, BN = 64, BK = 16, WM = 16, WN = 64, TM = 4, TN = 8;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 4, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 8;
    static constexpr double RATE_1_WARP = 0.65, RATE_2_WARPS = 0.71, RATE_FULL = 0.71;
    static constexpr double START = 21, SCALAR_B = 14;
};
struct f32_64x16_by_8x4 : gm_schedules<gm_schedule<9, GM_ODD_FORWARD>> {
    static constexpr unsigned BM = 64, BN = 16, BK = 16, WM = 64, WN = 16, TM = 8, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 4, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 8;
    static constexpr double RATE_1_WARP = 0.46, RATE_2_WARPS = 0.51, RATE_FULL = 0.51;
    static constexpr double START = 12, SCALAR_B = 1;
};
struct f64_128x128_by_8x8 : gm_f64_128x128 {
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 1;
    static constexpr double RATE_1_WARP = 1.12, RATE_2_WARPS = 1.12, RATE_FULL = 1.12;
    static constexpr double START = 51, SCALAR_B = 7;
};
struct f64_32x64_by_4x4 : gm_schedules<gm_schedule<6, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 32, BN = 64, BK = 8, WM = 16, WN = 32, TM = 4, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 4, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 4;
    static constexpr double RATE_1_WARP = 0.31, RATE_2_WARPS = 0.65, RATE_FULL = 0.86;
    static constexpr double START = 28, SCALAR_B = 6;
};
struct f64_16x32_by_4x4 : gm_schedules<gm_schedule<0, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 16, BN = 32, BK = 16, WM = 16, WN = 32, TM = 4, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 8, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 8;
    static constexpr double RATE_1_WARP = 0.38, RATE_2_WARPS = 0.54, RATE_FULL = 0.54;
    static constexpr double START = 34, SCALAR_B = 3;
};

/* An unnamed namespace, because the simulator compiles this file too. */
namespace
{
template <typename T, typename... CONFIG> struct candidates {
    static constexpr unsigned COUNT = sizeof...(CONFIG);
    static constexpr gm_candidate LIST[] = {
        {CONFIG::BM, CONFIG::BN, CONFIG::BK, CONFIG::SPECIALIZED ? CONFIG::STAGED_MAX : 0,
         gm_tile<T, CONFIG>::THREADS / GM_WARP, CONFIG::RESIDENT, CONFIG::RATE_1_WARP,
         CONFIG::RATE_2_WARPS, CONFIG::RATE_FULL, CONFIG::START, CONFIG::SCALAR_B}...};

    /* Runs candidate `index`. */
    static enum gm_status run(unsigned index, struct gm_exec *exec, const gm_product<T> &p,
                              unsigned splits, bool dependent)
    {
        enum gm_status status = GM_OK;
        unsigned i = 0;

        (void)((i++ == index &&
                (status = gm_launch_multistage<gm_tile<T, CONFIG>, CONFIG::SPECIALIZED>(
                     exec, p, splits, dependent),
                 true)) ||
               ...);
        return status;
    }
};

template <typename T> struct candidates_of;
template <>
struct candidates_of<float>
    : candidates<float, f32_128x256_by_8x16, f32_64x128_by_16x8, f32_64x128_by_8x8,
                 f32_32x128_by_8x8, f32_64x64_by_8x8, f32_64x64_by_4x8, f32_32x64_by_8x8,
                 f32_32x32_by_8x4, f32_32x32_by_4x4, f32_16x32_by_4x4, f32_16x64_by_4x8,
                 f32_64x16_by_8x4> {
};
template <>
struct candidates_of<double>
    : candidates<double, f64_128x128_by_8x8, f64_32x64_by_4x4, f64_16x32_by_4x4> {
};
} // namespace

#endif
