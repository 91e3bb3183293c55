/*
 * threads.h - defines what threads do together: barriers, votes, shuffles, reductions, atomics.
 *
 * Each atomic operation is a loop of compare and swap. A part of <simt.h>, which alone includes it.
 */
#ifndef GM_KERNELS_SIM_SIMT_THREADS_H
#define GM_KERNELS_SIM_SIMT_THREADS_H

#include "kernels/sim/include/simt/language.h"

#define __syncthreads() gm_sim_syncthreads()
#define __syncthreads_count(predicate) gm_sim_syncthreads_reduce((predicate) ? 1 : 0, GM_SIM_COUNT)
#define __syncthreads_and(predicate) gm_sim_syncthreads_reduce((predicate) ? 1 : 0, GM_SIM_ALL)
#define __syncthreads_or(predicate) gm_sim_syncthreads_reduce((predicate) ? 1 : 0, GM_SIM_ANY)

#define GM_SIM_FULL 0xFFFFFFFFu

GM_SIM_INLINE void __syncwarp(unsigned mask = GM_SIM_FULL)
{
    gm_sim_warp(GM_SIM_SYNC, mask, 0, 0, 32);
}
GM_SIM_INLINE unsigned __ballot_sync(unsigned mask, int predicate)
{
    return (unsigned)gm_sim_warp(GM_SIM_BALLOT, mask, predicate ? 1 : 0, 0, 32);
}
GM_SIM_INLINE int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}
GM_SIM_INLINE int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}
GM_SIM_INLINE unsigned __activemask()
{
    return (unsigned)gm_sim_warp(GM_SIM_ACTIVE, GM_SIM_FULL, 0, 0, 32);
}

#define GM_SIM_SHUFFLE(name, op, lane_type)                                                        \
    template <typename T>                                                                          \
    GM_SIM_INLINE T name(unsigned mask, T value, lane_type lane, int width = 32)                   \
    {                                                                                              \
        return gm_sim_value<T>(gm_sim_warp(op, mask, gm_sim_bits(value), (int)lane, width));       \
    }
GM_SIM_SHUFFLE(__shfl_sync, GM_SIM_SHUFFLE_IDX, int)
GM_SIM_SHUFFLE(__shfl_up_sync, GM_SIM_SHUFFLE_UP, unsigned)
GM_SIM_SHUFFLE(__shfl_down_sync, GM_SIM_SHUFFLE_DOWN, unsigned)
GM_SIM_SHUFFLE(__shfl_xor_sync, GM_SIM_SHUFFLE_XOR, int)
#undef GM_SIM_SHUFFLE

template <typename T> GM_SIM_INLINE unsigned __match_any_sync(unsigned mask, T value)
{
    return (unsigned)gm_sim_warp(GM_SIM_MATCH_ANY, mask, gm_sim_bits(value), 0, 32);
}
/* The threads of the mask that have not ended if all have the same value, else none. */
template <typename T> GM_SIM_INLINE unsigned __match_all_sync(unsigned mask, T value, int *same)
{
    unsigned present = __ballot_sync(mask, 1);
    unsigned equal = __match_any_sync(mask, value);
    *same = equal == present;
    return *same ? present : 0;
}

#define GM_SIM_REDUCE(name, op, type)                                                              \
    GM_SIM_INLINE type name(unsigned mask, type value)                                             \
    {                                                                                              \
        return (type)gm_sim_warp(op, mask, (uint64_t)(int64_t)value, 0, 32);                       \
    }
GM_SIM_REDUCE(__reduce_add_sync, GM_SIM_ADD, unsigned)
GM_SIM_REDUCE(__reduce_min_sync, GM_SIM_MIN, unsigned)
GM_SIM_REDUCE(__reduce_max_sync, GM_SIM_MAX, unsigned)
GM_SIM_REDUCE(__reduce_and_sync, GM_SIM_AND, unsigned)
GM_SIM_REDUCE(__reduce_or_sync, GM_SIM_OR, unsigned)
GM_SIM_REDUCE(__reduce_xor_sync, GM_SIM_XOR, unsigned)
GM_SIM_REDUCE(__reduce_add_sync, GM_SIM_ADD, int)
GM_SIM_REDUCE(__reduce_min_sync, GM_SIM_MIN, int)
GM_SIM_REDUCE(__reduce_max_sync, GM_SIM_MAX, int)
#undef GM_SIM_REDUCE

/* Blocks of a launch run on several host threads, so fences order what other blocks see. */
GM_SIM_INLINE void __threadfence()
{
    gm_sim_fence();
}
#define __threadfence_block __threadfence
#define __threadfence_system __threadfence

/* Wraps as integers do on the device; a signed addition would overflow here. */
template <typename T> static inline T gm_sim_wrapping_add(T a, T b)
{
    if constexpr ((T)0.5f != (T)0)
        return a + b;
    else
        return (T)((unsigned long long)a + (unsigned long long)b);
}
template <typename T> static inline T gm_sim_wrapping_sub(T a, T b)
{
    if constexpr ((T)0.5f != (T)0)
        return a - b;
    else
        return (T)((unsigned long long)a - (unsigned long long)b);
}

template <typename T, typename F>
GM_SIM_INLINE T gm_sim_atomic(T *at, F change, bool needs_value = true)
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "atomics of 2, 4 or 8 bytes");
    uint64_t before = gm_sim_atomic_begin(at, sizeof(T), needs_value), seen;

    for (;; before = seen) {
        uint64_t after = gm_sim_bits<T>(change(gm_sim_value<T>(before)));
        seen = gm_sim_atomic_swap_if(at, sizeof(T), before, after);
        if (seen == before)
            return gm_sim_value<T>(before);
    }
}

#define GM_SIM_ATOMIC(name, expression)                                                            \
    template <typename T, typename V> GM_SIM_INLINE T name(T *at, V given)                         \
    {                                                                                              \
        T value = (T)given;                                                                        \
        return gm_sim_atomic(at, [value](T old) -> T { return expression; });                      \
    }
GM_SIM_ATOMIC(atomicAdd, gm_sim_wrapping_add(old, value))
GM_SIM_ATOMIC(atomicSub, gm_sim_wrapping_sub(old, value))
GM_SIM_ATOMIC(atomicMin, value < old ? value : old)
GM_SIM_ATOMIC(atomicMax, value > old ? value : old)
GM_SIM_ATOMIC(atomicAnd, (T)(old &value))
GM_SIM_ATOMIC(atomicOr, (T)(old | value))
GM_SIM_ATOMIC(atomicXor, (T)(old ^ value))
GM_SIM_ATOMIC(atomicInc, old >= value ? (T)0 : (T)(old + 1))
GM_SIM_ATOMIC(atomicDec, old == 0 || old > value ? value : (T)(old - 1))
#undef GM_SIM_ATOMIC
template <typename T, typename V> GM_SIM_INLINE T atomicExch(T *at, V given)
{
    return gm_sim_atomic(
        at, [given](T) -> T { return (T)given; }, false);
}
template <typename T> GM_SIM_INLINE T atomicCAS(T *at, T compare, T value)
{
    return gm_sim_atomic(at, [=](T old) -> T { return old == compare ? value : old; });
}

#endif
