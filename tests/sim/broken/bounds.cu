/* bounds.cu - kernels that leave their memory: each line marked `here` is what the report names.
 * They run on 1000 elements, in 4 blocks of 256 threads unless it is said otherwise. */
#include "tests/sim/launch.h"

static __global__ void load_past_end(const int *in, int *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i + 1]; /* here: load_past_end */
}
LAUNCH(load_past_end, 4, 256, 0)

static __global__ void store_past_end(const int *in, int *out, unsigned)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = in[0];
    out[i] = x; /* here: store_past_end */
}
LAUNCH(store_past_end, 4, 256, 0)

static __global__ void negative_index(const int *in, int *out, unsigned n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < (int)n)
        out[i] = in[i - 1]; /* here: negative_index */
}
LAUNCH(negative_index, 4, 256, 0)

static __global__ void guard_off_by_one(const int *in, int *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        out[i] = in[i]; /* here: guard_off_by_one */
}
LAUNCH(guard_off_by_one, 4, 256, 0)

/* A whole matrix too far: what is there belongs to no buffer either. */
static __global__ void far_past_end(const int *in, int *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i + 1000000]; /* here: far_past_end */
}
LAUNCH(far_past_end, 4, 256, 0)

static __global__ void write_operand(const int *in, int *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        const_cast<int *>(in)[i] = out[i]; /* here: write_operand */
}
LAUNCH(write_operand, 4, 256, 0)

static __global__ void update_operand(const int *in, int *, unsigned)
{
    atomicAdd(const_cast<int *>(in) + 3, 1); /* here: update_operand */
}
LAUNCH(update_operand, 1, 32, 0)

static __global__ void null_pointer(const int *, int *out, unsigned n)
{
    const int *none = n == 0 ? out : nullptr;
    out[threadIdx.x] = none[threadIdx.x]; /* here: null_pointer */
}
LAUNCH(null_pointer, 1, 32, 0)

/* 16 bytes beyond the end: 1000 elements are 250 of them; 251 are asked for. */
static __global__ void vector_past_end(const int *in, int *out, unsigned n)
{
    unsigned i = threadIdx.x;
    const int4 *from = reinterpret_cast<const int4 *>(in);
    int4 *to = reinterpret_cast<int4 *>(out);
    if (i <= n / 4)
        to[i] = from[i]; /* here: vector_past_end */
}
LAUNCH(vector_past_end, 1, 256, 0)

/* The last index is in the next row: within the array, but not within what the source says. */
static __global__ void row_overflow(const int *in, int *out, unsigned)
{
    __shared__ int tile[32][33];
    unsigned t = threadIdx.x;
    tile[0][t + 2] = in[t]; /* here: row_overflow */
    __syncthreads();
    out[t] = tile[0][t + 2];
}
LAUNCH(row_overflow, 1, 32, 0)

static __global__ void last_row_overflow(const int *in, int *out, unsigned)
{
    __shared__ int tile[32][33];
    unsigned t = threadIdx.x;
    tile[31][t + 2] = in[t]; /* here: last_row_overflow */
    __syncthreads();
    out[t] = tile[31][t + 2];
}
LAUNCH(last_row_overflow, 1, 32, 0)

/* Two arrays of 128 bytes, side by side: what is beyond the one is in the other. */
static __global__ void neighbour_array(const int *in, int *out, unsigned)
{
    __shared__ int left[32], right[32];
    unsigned t = threadIdx.x;
    right[t] = left[t] = in[t];
    __syncthreads();
    out[t] = left[t + 32] + right[t + 32]; /* here: neighbour_array */
}
LAUNCH(neighbour_array, 1, 32, 0)

static __global__ void dynamic_overflow(const int *in, int *out, unsigned)
{
    int *shared = gm_dynamic_shared<int>();
    unsigned t = threadIdx.x;
    shared[t + 1] = in[t]; /* here: dynamic_overflow */
    __syncthreads();
    out[t] = shared[t + 1];
}
LAUNCH(dynamic_overflow, 1, 32, 128)

/* Shared memory of three kernels, of which the middle one leaves its own at both ends. */
static __global__ void theirs_before(const int *in, int *out, unsigned)
{
    __shared__ int before[1024];
    before[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = before[threadIdx.x];
}
LAUNCH(theirs_before, 1, 32, 0)

static __global__ void anothers_shared(const int *in, int *out, unsigned)
{
    __shared__ int mine[1024];
    int *beyond = mine + 1024;
    beyond[threadIdx.x] = in[threadIdx.x]; /* here: anothers_shared */
    out[threadIdx.x] = beyond[threadIdx.x];
}
LAUNCH(anothers_shared, 1, 32, 0)

static __global__ void anothers_shared_before(const int *in, int *out, unsigned)
{
    __shared__ int mine[1024];
    int *beyond = mine - 32;
    beyond[threadIdx.x] = in[threadIdx.x]; /* here: anothers_shared_before */
    out[threadIdx.x] = beyond[threadIdx.x];
}
LAUNCH(anothers_shared_before, 1, 32, 0)

static __global__ void local_overflow(const int *in, int *out, unsigned)
{
    int own[4] = {1, 2, 3, 4};
    unsigned t = threadIdx.x;
    own[t & 3] = in[t];
    out[t] = own[t]; /* here: local_overflow */
}
LAUNCH(local_overflow, 1, 32, 0)

static __global__ void constant_overflow(const int *, int *out, unsigned)
{
    __constant__ int table[4] = {1, 2, 3, 4};
    unsigned t = threadIdx.x;
    out[t] = table[t]; /* here: constant_overflow */
}
LAUNCH(constant_overflow, 1, 32, 0)
