/* divergence.cu - lanes that part and meet again, in each of the ways that C has. One warp; the
 * requests of each load are counted in test_sim_divergence.c: those that the lanes of a warp make
 * when they meet again at the end of each branch. in[i] is i. */
#include "tests/sim/launch.h"

/* Even lanes load in the first and the third round, odd ones in the second. */
static __global__ void alternate(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int sum = 0;
    for (unsigned i = 0; i < 3; i++) {
        if ((t + i) % 2 == 0)
            sum += in[32 * i + t]; /* here: alternate */
    }
    out[t] = sum;
}
LAUNCH(alternate, 1, 32, 0)

/* The same with a continue, in a loop that counts at its top. */
static __global__ void continued(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x, i = 0;
    int sum = 0;
    while (i < 3) {
        i++;
        if ((t + i) % 2 == 0)
            continue;
        sum += in[32 * i + t]; /* here: continued */
    }
    out[t] = sum;
}
LAUNCH(continued, 1, 32, 0)

/* Lane t goes round 1 + t % 4 times: 4 rounds, of 32, 24, 16 and 8 lanes. */
static __global__ void uneven(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int sum = 0;
    for (unsigned i = 0; i <= t % 4; i++)
        sum += in[32 * i + t]; /* here: uneven */
    out[t] = sum + in[t];      /* here: uneven_after */
}
LAUNCH(uneven, 1, 32, 0)

static __global__ void broken_off(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int sum = 0;
    for (unsigned i = 0; i < 10; i++) {
        if (i == t % 3)
            break;
        sum += in[32 * i + t]; /* here: broken_off */
    }
    out[t] = sum; /* here: broken_off_after */
}
LAUNCH(broken_off, 1, 32, 0)

/* In two rounds lane t has t % 4 inner ones: 3 requests in either. */
static __global__ void inner(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int sum = 0;
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned j = 0; j < t % 4; j++)
            sum += in[32 * j + t]; /* here: inner */
        sum += in[32 * i + t];     /* here: inner_after */
    }
    out[t] = sum;
}
LAUNCH(inner, 1, 32, 0)

static __global__ void switched(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int x = 0;
    switch (in[t] % 5) {
    case 0:
        x = in[32 + t]; /* here: switched */
        break;
    case 1:
        x = in[64 + t];
        break;
    case 2:
    case 3:
        x = in[96 + t]; /* here: switched_two */
        break;
    default:
        break;
    }
    out[t] = x; /* here: switched_after */
}
LAUNCH(switched, 1, 32, 0)

/* What is right of && is loaded by those alone for whom it matters. */
static __global__ void short_circuit(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    if (in[t] >= 16 && in[32 + t] % 2 == 0) /* here: short_circuit */
        out[t] = 1;                         /* here: short_circuit_both */
    else
        out[t] = 2;  /* here: short_circuit_else */
    out[32 + t] = 3; /* here: short_circuit_after */
}
LAUNCH(short_circuit, 1, 32, 0)

static __device__ __forceinline__ int clamped(const int *in, unsigned t)
{
    if (t < 8)
        return 0;
    if (t < 16)
        return in[t];     /* here: returned */
    return in[2 * t] + 1; /* here: returned_last */
}
static __global__ void returned(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int x = clamped(in, t);
    out[t] = x; /* here: returned_after */
}
LAUNCH(returned, 1, 32, 0)

static __global__ void until(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int sum = 0;
    unsigned i = 0;
    do {
        if (t % 2 == 0)
            sum += in[t]; /* here: until_even */
        else
            sum -= in[32 + t]; /* here: until_odd */
        i++;
    } while (i < 2 + t % 2);
    out[t] = sum; /* here: until_after */
}
LAUNCH(until, 1, 32, 0)

/* A row of threads that is less than a warp, and a warp that is cut at the end. */
static __global__ void rows_of_twelve(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.y * blockDim.x + threadIdx.x;
    if (threadIdx.x < 10)
        out[t] = in[t]; /* here: rows_of_twelve */
}
LAUNCH(rows_of_twelve, 1, dim3(12, 3), 0)
