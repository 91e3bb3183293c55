/*
 * atomic.h - atomic operations, each a loop of compare and swap. A part of <simt.h>, which alone
 * includes it.
 */
#ifndef GM_KERNELS_SIM_SIMT_ATOMIC_H
#define GM_KERNELS_SIM_SIMT_ATOMIC_H

#include "kernels/sim/include/simt/compile.h"

/* As integers wrap on the device, where a signed addition here must not overflow. */
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
