/* undefined.cu - what is undefined in C++ and CUDA alike, misaligned accesses, and sizes beyond
 * limits. Each line marked `here` is what the report names. */
#include "tests/sim/launch.h"

static __global__ void misaligned_vector(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int4 four = *reinterpret_cast<const int4 *>(in + 4 * t + 1); /* here: misaligned_vector */
    out[t] = four.x + four.w;
}
LAUNCH(misaligned_vector, 1, 32, 0)

static __global__ void misaligned_word(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    const char *bytes = reinterpret_cast<const char *>(in) + (t == 5 ? 2 : 0);
    out[t] = *reinterpret_cast<const int *>(bytes + 4 * t); /* here: misaligned_word */
}
LAUNCH(misaligned_word, 1, 32, 0)

static __global__ void multiplication(const int *in, int *out, unsigned)
{
    int t = (int)threadIdx.x;
    int i = t * 100000000 / 100000000; /* here: multiplication */
    out[t] = in[i];
}
LAUNCH(multiplication, 1, 32, 0)

static __global__ void addition(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    out[t] = in[t] + 0x7FFFFFFF; /* here: addition */
}
LAUNCH(addition, 1, 32, 0)

static __global__ void subtraction(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    out[t] = -0x7FFFFFFF - in[t]; /* here: subtraction */
}
LAUNCH(subtraction, 1, 32, 0)

static __global__ void shift(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    out[t] = (int)(1u << (t + 5)) + in[0]; /* here: shift */
}
LAUNCH(shift, 1, 32, 0)

static __global__ void division(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    out[t] = 1000 / (in[t] - in[7]); /* here: division */
}
LAUNCH(division, 1, 32, 0)

/* ---- No room ------------------------------------------------------------------------------ */

static __global__ void any(const int *in, int *out, unsigned)
{
    out[threadIdx.x] = in[threadIdx.x];
}
#define LAUNCH_ANY(name, grid, block, shared)                                                      \
    extern "C" enum gm_status GM_ENTRY(name)(const struct gm_op *op, struct gm_exec *exec)         \
    {                                                                                              \
        return gm_launch(exec, any, grid, block, shared, gm_in<int>(op, 0), gm_out<int>(op), 0);   \
    }
LAUNCH_ANY(too_many_threads, 1, dim3(32, 33), 0)
LAUNCH_ANY(too_deep_block, 1, dim3(1, 1, 65), 0)
LAUNCH_ANY(no_threads, 1, dim3(32, 0), 0)
LAUNCH_ANY(too_high_grid, dim3(1, 65536), 1, 0)
LAUNCH_ANY(too_much_dynamic, 1, 32, 300000)

static __global__ void too_much_static(const int *in, int *out, unsigned)
{
    __shared__ int large[12289];
    large[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = large[threadIdx.x];
}
LAUNCH(too_much_static, 1, 32, 0)

/* 96 KiB of a thread's own. */
static __global__ void large_local(const int *in, int *out, unsigned)
{
    volatile int own[24576];
    own[1024 * (threadIdx.x % 24)] = in[threadIdx.x]; /* here: large_local */
    out[threadIdx.x] = own[512];
}
LAUNCH(large_local, 1, 32, 0)

/* Never comes back, level by level. */
static __attribute__((noinline)) int descend(const int *in, int depth)
{
    volatile int own[64];
    own[depth % 64] = in[depth % 32]; /* here: endless_recursion */
    return depth < 0 ? 0 : own[depth % 64] + descend(in, depth + 1);
}
static __global__ void endless_recursion(const int *in, int *out, unsigned)
{
    out[threadIdx.x] = descend(in, 0);
}
LAUNCH(endless_recursion, 1, 32, 0)

/* Waits for a flag that nobody sets. */
static __global__ void endless_loop(const int *in, int *out, unsigned)
{
    while (*(const volatile int *)in != -1)
        ;
    out[threadIdx.x] = 1;
}
LAUNCH(endless_loop, 1, 64, 0)

/* The same without looking at memory. */
static __global__ void endless_steps(const int *, int *out, unsigned n)
{
    volatile unsigned round = 0;
    while (round < n)
        round = round % 7;
    out[threadIdx.x] = 1;
}
LAUNCH(endless_steps, 2, 64, 0)
