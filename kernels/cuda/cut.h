/*
 * cut.h - how a block's work on a tile of a product is cut among its threads, and along k.
 */
#ifndef GM_KERNELS_CUDA_CUT_H
#define GM_KERNELS_CUDA_CUT_H

#include "kernels/cuda/product.h"

#include <type_traits>

/* 16 bytes of elements. */
template <typename T> struct alignas(16) gm_vector {
    T x[16 / sizeof(T)];
};

/*
 * In what order a thread does what a slab takes, by measurement alone: which registers nvcc finds
 * depends on it. FILL: the next slab is asked for before (2 i) or after (2 i + 1) the multiply-adds
 * of step i. Sums are taken row by row, or with DOWN column by column, and then the places in
 * shared memory stay in registers too (gm_keep). TURN: rows (columns) of that parity are taken
 * forwards, the others backwards.
 */
template <unsigned FILL_, unsigned TURN_, bool DOWN_ = false> struct gm_order {
    static constexpr unsigned FILL = FILL_, TURN = TURN_;
    static constexpr bool DOWN = DOWN_;
};

/* How a block's work is cut. ALIGNED_: the order where a is turned and b comes by vectors. */
template <typename T, unsigned ROWS_, unsigned COLS_, unsigned LANES_DOWN_, unsigned WARPS_DOWN_,
          unsigned WARPS_ACROSS_, unsigned DEPTH_, unsigned STAGES_, unsigned BLOCKS_,
          typename ORDER_, unsigned HELD_ = 1, typename ALIGNED_ = ORDER_>
struct gm_cut {
    using type = T;
    template <bool ALIGNED> using order = std::conditional_t<ALIGNED, ALIGNED_, ORDER_>;
    static constexpr unsigned ROWS = ROWS_, COLS = COLS_; /* of a thread's sums */
    static constexpr unsigned LANES_DOWN = LANES_DOWN_, LANES_ACROSS = GM_WARP / LANES_DOWN;
    static constexpr unsigned WARPS_DOWN = WARPS_DOWN_, WARPS_ACROSS = WARPS_ACROSS_;
    static constexpr unsigned THREADS = GM_WARP * WARPS_DOWN * WARPS_ACROSS;
    static constexpr unsigned WARP_HEIGHT = LANES_DOWN * ROWS, WARP_WIDTH = LANES_ACROSS * COLS;
    static constexpr unsigned HEIGHT = WARPS_DOWN * WARP_HEIGHT, WIDTH = WARPS_ACROSS * WARP_WIDTH;
    static constexpr unsigned DEPTH = DEPTH_, STAGES = STAGES_;
    /* Of how many elements the widest copies are that pass through registers (feed.h). */
    static constexpr unsigned HELD = HELD_;
    static constexpr unsigned BLOCKS = BLOCKS_; /* resident on a multiprocessor, at least */
    static constexpr unsigned VECTOR = 16 / sizeof(T);
    /* Rows of slabs: padded, so that the copies that turn an operand fill all banks. */
    static constexpr unsigned PAD = 16 / sizeof(T);
    static constexpr unsigned PITCH_A = HEIGHT + PAD, PITCH_B = WIDTH + PAD;
    static constexpr unsigned SLAB_A = DEPTH * PITCH_A, SLAB_B = DEPTH * PITCH_B;
    static constexpr unsigned STAGE = SLAB_A + SLAB_B; /* elements */
    static constexpr size_t SHARED = sizeof(T) * STAGES * STAGE;

    static_assert(sizeof(gm_sum<T>) == sizeof(T), "elements are summed as they lie in memory");
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "what an asynchronous copy can move");
    static_assert(GM_WARP % LANES_DOWN == 0 && LANES_DOWN >= 2 && LANES_ACROSS >= 4,
                  "each warp a rectangle");
    static_assert(ROWS % VECTOR == 0 && COLS % VECTOR == 0, "sums in whole vectors");
    static_assert(DEPTH % 8 == 0, "turned in runs of 8");
    static_assert(STAGES >= 3 && ORDER_::FILL < 2 * (DEPTH - 2) && ALIGNED_::FILL < 2 * (DEPTH - 2),
                  "one used, one held, and put before it is used");
    static_assert(THREADS * BLOCKS <= 1024, "a multiprocessor holds 1024 threads or more");
};

#endif
