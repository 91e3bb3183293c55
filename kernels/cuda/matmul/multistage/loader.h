/*
 * loader.h - copies one operand from global to shared memory, one k-tile at a time.
 *
 * Copies are asynchronous (cp.async): they bypass the registers, and no thread waits for them. But
 * many narrow copies cost more than loads and stores. So kernels for a narrow load mode stage a
 * k-tile in registers, and store it in shared memory when they load the next one.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_LOADER_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_LOADER_H

#include "kernels/cuda/lib/vec.h"
#include "kernels/cuda/matmul/multistage/tile_config.h"

/* Keeps a value in its register. nvcc would rather recompute it in each iteration, where every
 * instruction costs. */
__device__ __forceinline__ void gm_keep(uint32_t &value)
{
    asm("" : "+r"(value));
}

/*
 * The thread map: which elements of a k-tile each thread copies. A k-tile is SPAN rows of A
 * (columns of B) by BK steps of K. Each thread copies the same number, and knows its first copy and
 * the distances to the others.
 *
 *     straight (SPAN / width copies a row):      transposed (a warp: 8 of K by 4 of the span):
 *         span ->                                    span ->
 *      k  t0 t1 t2 ... t31                        k  t0 t8  t16 t24 | next warp
 *         t32 ...                                    t1 t9  t17 t25 |
 *         ...                                        ...            |
 *                                                    t7 t15 t23 t31 |
 *     neighbouring lanes load neighbours         8 neighbouring lanes load 8 steps of K, which
 *                                                are neighbours in memory
 */
template <typename T, unsigned SPAN, unsigned BK, unsigned THREADS> struct gm_thread_map {
    static constexpr unsigned VEC = 16 / sizeof(T), WARPS = THREADS / GM_WARP;
    static constexpr unsigned COPIES = SPAN * BK / THREADS; /* elements per thread */
    static constexpr unsigned LAYERS = BK / 8;              /* layers of 8 steps of K */
    static_assert(COPIES * THREADS == SPAN * BK && COPIES % VEC == 0,
                  "each thread copies as many whole vectors");
    static_assert(SPAN / VEC % THREADS == 0 || THREADS % (SPAN / VEC) == 0,
                  "the threads fill whole rows by 16 bytes");
    static_assert(SPAN % THREADS == 0 || THREADS % SPAN == 0,
                  "the threads fill whole rows by elements");
    static_assert(WARPS % LAYERS == 0 || LAYERS % WARPS == 0, "the warps fill whole layers");

    /* The thread's first copy: its step of K, and its position along the span. */
    template <gm_load_mode MODE> static __device__ __forceinline__ unsigned first_k()
    {
        constexpr unsigned width = gm_load_width<T>(MODE);
        return MODE == GM_LOAD_TRANSPOSED ? threadIdx.x % 8 + 8 * (threadIdx.x / GM_WARP % LAYERS)
                                          : threadIdx.x / (SPAN / width);
    }
    template <gm_load_mode MODE> static __device__ __forceinline__ unsigned first_span()
    {
        constexpr unsigned width = gm_load_width<T>(MODE);
        return MODE == GM_LOAD_TRANSPOSED
                   ? threadIdx.x % GM_WARP / 8 + 4 * (threadIdx.x / GM_WARP / LAYERS)
                   : threadIdx.x % (SPAN / width) * width;
    }
    /* Copy i's distance from the thread's first. */
    template <gm_load_mode MODE> static constexpr __device__ unsigned step_k(unsigned i)
    {
        constexpr unsigned width = gm_load_width<T>(MODE);
        return MODE != GM_LOAD_TRANSPOSED ? i * THREADS / (SPAN / width)
               : WARPS % LAYERS == 0      ? 0
                                          : 8 * (i * WARPS % LAYERS);
    }
    template <gm_load_mode MODE> static constexpr __device__ unsigned step_span(unsigned i)
    {
        constexpr unsigned width = gm_load_width<T>(MODE);
        return MODE == GM_LOAD_TRANSPOSED ? 4 * (i * WARPS / LAYERS)
                                          : i * THREADS % (SPAN / width) * width;
    }
};

/* LD: the leading dimension of the k-tile in shared memory. STAGED_MAX: see tile_config.h. ONLY:
 * the load mode that the kernel is compiled for, or GM_LOAD_ANY. */
template <typename T, unsigned SPAN, unsigned LD, unsigned BK, unsigned THREADS,
          unsigned STAGED_MAX, gm_load_mode ONLY>
struct gm_loader {
    using map = gm_thread_map<T, SPAN, BK, THREADS>;
    static constexpr bool HAS_VEC2 = map::VEC > 2; /* false if 2 elements already are 16 bytes */
    static constexpr gm_load_mode VEC2 = HAS_VEC2 ? GM_LOAD_VEC2 : GM_LOAD_VEC;
    static constexpr bool STAGED =
        (ONLY == GM_LOAD_SCALAR || ONLY == GM_LOAD_VEC2) && gm_load_width<T>(ONLY) <= STAGED_MAX;
    using vec = gm_vec<STAGED ? gm_load_width<T>(ONLY) * sizeof(T) : 4>; /* one staged load */
    static constexpr unsigned LOADS = STAGED ? map::COPIES / gm_load_width<T>(ONLY) : 1;

    const T *from;            /* the next k-tile */
    uint64_t stride_tile;     /* elements from one k-tile to the next */
    uint32_t at[map::COPIES]; /* offsets of this thread's copies in it */
    uint32_t to, first_k;     /* the first copy: its offset in shared memory, and its step of K */
    gm_load_mode mode;
    vec staged[LOADS];
    gm_acc<T> *staged_to; /* where the first staged load is to be stored */

    /* operand: the first k-tile. left: the rows (columns) that exist from there on. Copies beyond
     * them read the last one again. */
    template <gm_load_mode MODE>
    __device__ __forceinline__ void init_as(const T *operand, uint64_t left, uint64_t stride,
                                            uint64_t stride_k)
    {
        constexpr unsigned width = gm_load_width<T>(MODE);
        unsigned last = (left < SPAN ? (unsigned)left : SPAN) - width;
        unsigned first = map::template first_span<MODE>();

        from = operand;
        stride_tile = BK * stride_k;
        first_k = map::template first_k<MODE>();
        to = first_k * LD + first;
        gm_keep(to);
#pragma unroll
        for (unsigned i = 0; i < map::COPIES / width; i++) {
            unsigned x = first + map::template step_span<MODE>(i);
            unsigned k = first_k + map::template step_k<MODE>(i);
            at[i] = (x < last ? x : last) * (uint32_t)stride + k * (uint32_t)stride_k;
            gm_keep(at[i]);
        }
    }
    /* Starts the copies of a k-tile. Only the first `steps` steps of K exist; the others become
     * zero. WHOLE: all exist. */
    template <gm_load_mode MODE, bool WHOLE>
    __device__ __forceinline__ void copy(gm_acc<T> *tile, unsigned steps)
    {
        constexpr unsigned bytes = gm_load_width<T>(MODE) * sizeof(T);
        gm_acc<T> *first = tile + to;

#pragma unroll
        for (unsigned i = 0; i < map::COPIES / gm_load_width<T>(MODE); i++) {
            unsigned k = map::template step_k<MODE>(i);
            bool exists = WHOLE || first_k + k < steps;
            if constexpr (STAGED)
                staged[i] = exists ? *(const vec *)(from + at[i]) : vec{};
            else
                __pipeline_memcpy_async(first + k * LD + map::template step_span<MODE>(i),
                                        from + at[i], bytes, exists ? 0 : bytes);
        }
        staged_to = first;
    }
    /* Calls fn(mode as a type). */
    template <typename F> __device__ __forceinline__ void by_mode(F fn)
    {
        if constexpr (ONLY != GM_LOAD_ANY)
            fn(gm_load_mode_tag<ONLY>());
        else if (mode == GM_LOAD_VEC)
            fn(gm_load_mode_tag<GM_LOAD_VEC>());
        else if (HAS_VEC2 && mode == GM_LOAD_VEC2)
            fn(gm_load_mode_tag<VEC2>());
        else if (mode == GM_LOAD_SCALAR)
            fn(gm_load_mode_tag<GM_LOAD_SCALAR>());
        else
            fn(gm_load_mode_tag<GM_LOAD_TRANSPOSED>());
    }
    __device__ __forceinline__ void init(gm_load_mode as, const T *operand, uint64_t left,
                                         uint64_t stride, uint64_t stride_k)
    {
        mode = as;
        by_mode([&](auto tag) { init_as<decltype(tag)::mode>(operand, left, stride, stride_k); });
    }
    template <bool WHOLE> __device__ __forceinline__ void load_next(gm_acc<T> *tile, unsigned steps)
    {
        by_mode([&](auto tag) { copy<decltype(tag)::mode, WHOLE>(tile, steps); });
        from += stride_tile;
    }
    /* Stores in shared memory what load_next() has staged. */
    __device__ __forceinline__ void store_staged()
    {
        if constexpr (STAGED) {
#pragma unroll
            for (unsigned i = 0; i < LOADS; i++)
                *(vec *)(staged_to + map::template step_k<ONLY>(i) * LD +
                         map::template step_span<ONLY>(i)) = staged[i];
        }
    }
};

#endif
