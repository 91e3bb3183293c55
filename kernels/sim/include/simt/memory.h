/*
 * memory.h - loads and stores with hints, asynchronous copies. A part of <simt.h>, which alone
 * includes it.
 */
#ifndef GM_KERNELS_SIM_SIMT_MEMORY_H
#define GM_KERNELS_SIM_SIMT_MEMORY_H

#include "kernels/sim/include/simt/compile.h"

template <typename T> GM_SIM_INLINE T __ldg(const T *at)
{
    return *at;
}
#define __ldca __ldg
#define __ldcg __ldg
#define __ldcs __ldg
#define __ldlu __ldg
#define __ldcv __ldg
#define gm_load_l2_256 __ldg
template <typename T> GM_SIM_INLINE void __stcs(T *at, T value)
{
    *at = value;
}
#define __stwb __stcs
#define __stcg __stcs
#define __stwt __stcs

/* A copy that is done at once: what is right when it is early need not be right when it is late,
 * but for what the races tell, and those are looked for. */
GM_SIM_INLINE void __pipeline_memcpy_async(void *to, const void *from, size_t bytes,
                                           size_t zeros = 0)
{
    gm_sim_copy_async(to, from, bytes, zeros);
}
GM_SIM_INLINE void __pipeline_commit()
{
}
GM_SIM_INLINE void __pipeline_wait_prior(unsigned)
{
}

#endif
