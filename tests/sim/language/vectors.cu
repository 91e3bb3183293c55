/* vectors.cu - accesses of several elements: how many instructions they are, and how wide. One
 * warp each, for whose requests test_sim_language.c looks in the report. */
#include "tests/sim/launch.h"

#define MOVE(name, type)                                                                           \
    static __global__ void name(const int *in, int *out, unsigned)                                 \
    {                                                                                              \
        const type *from = reinterpret_cast<const type *>(in);                                     \
        type *to = reinterpret_cast<type *>(out);                                                  \
        type x = from[threadIdx.x];                                                                \
        to[threadIdx.x] = x;                                                                       \
    }                                                                                              \
    LAUNCH(name, 1, 32, 0)

MOVE(move_char, signed char)
MOVE(move_short, short)
MOVE(move_int, int)
MOVE(move_double, double)
MOVE(move_char4, char4)
MOVE(move_short2, short2)
MOVE(move_short4, short4)
MOVE(move_int2, int2)
MOVE(move_int4, int4)
MOVE(move_float2, float2)
MOVE(move_float3, float3)
MOVE(move_float4, float4)
MOVE(move_double2, double2)
MOVE(move_uint4, uint4)
MOVE(move_longlong2, longlong2)
MOVE(move_uchar3, uchar3)
MOVE(move_f16, gm_f16)

/* Members one by one are accesses of their own. */
static __global__ void members(const int *in, int *out, unsigned)
{
    const float4 *from = reinterpret_cast<const float4 *>(in);
    float *to = reinterpret_cast<float *>(out);
    unsigned t = threadIdx.x;
    to[t] = from[t].y + from[t].w;
}
LAUNCH(members, 1, 32, 0)

/* A whole one, computed with, and stored whole. */
static __global__ void computed(const int *in, int *out, unsigned)
{
    float4 x = reinterpret_cast<const float4 *>(in)[threadIdx.x];
    x.x += 1;
    x.w *= 2;
    reinterpret_cast<float4 *>(out)[threadIdx.x] = make_float4(x.x, x.y, x.z, x.w);
}
LAUNCH(computed, 1, 32, 0)

/* With hints; through shared memory. */
static __global__ void hinted(const int *in, int *out, unsigned)
{
    __shared__ float4 piece[32];
    unsigned t = threadIdx.x;
    piece[t] = __ldg(reinterpret_cast<const float4 *>(in) + t);
    __syncwarp();
    __stcs(reinterpret_cast<float4 *>(out) + t, piece[31 - t]);
}
LAUNCH(hinted, 1, 32, 0)

static __global__ void async_moved(const int *in, int *out, unsigned)
{
    __shared__ int4 piece[32];
    unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&piece[t], reinterpret_cast<const int4 *>(in) + t, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    reinterpret_cast<int4 *>(out)[t] = piece[t];
}
LAUNCH(async_moved, 1, 32, 0)
