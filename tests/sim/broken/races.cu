/* races.cu - threads of one block that touch the same memory with nothing that orders them. */
#include "tests/sim/launch.h"

/* The barrier is missing. */
static __global__ void missing_barrier(const int *in, int *out, unsigned)
{
    __shared__ int piece[64];
    unsigned t = threadIdx.x;
    piece[t] = in[t];       /* before: missing_barrier */
    out[t] = piece[63 - t]; /* here: missing_barrier */
}
LAUNCH(missing_barrier, 1, 64, 0)

/* Thread 0 reads what thread 63 writes, which runs later. */
static __global__ void early_read(const int *in, int *out, unsigned)
{
    __shared__ int pair[2][32];
    unsigned t = threadIdx.x;
    if (t < 32)
        out[t] = pair[1][31 - t]; /* here: early_read */
    else
        pair[1][t - 32] = in[t]; /* before: early_read */
}
LAUNCH(early_read, 1, 64, 0)

/* A sum in a tree whose last write nobody made: element 64 of 64. */
static __global__ void never_written(const int *in, int *out, unsigned)
{
    __shared__ int sums[128];
    unsigned t = threadIdx.x;
    sums[t] = in[t];
    __syncthreads();
    out[t] = sums[t + 1]; /* here: never_written */
}
LAUNCH(never_written, 1, 64, 0)

static __global__ void dynamic_unwritten(const int *, int *out, unsigned)
{
    out[threadIdx.x] = gm_dynamic_shared<int>()[threadIdx.x]; /* here: dynamic_unwritten */
}
LAUNCH(dynamic_unwritten, 1, 32, 4096)

static __global__ void write_then_read(const int *in, int *out, unsigned)
{
    __shared__ int piece[64];
    unsigned t = threadIdx.x;
    piece[t] = in[t];
    __syncthreads();
    if (t < 32)
        piece[t + 32] = 1; /* before: write_then_read */
    else
        out[t] = piece[t]; /* here: write_then_read */
}
LAUNCH(write_then_read, 1, 64, 0)

static __global__ void write_then_write(const int *in, int *out, unsigned)
{
    __shared__ int piece[64];
    unsigned t = threadIdx.x;
    piece[t % 32] = in[t]; /* here: write_then_write */
    __syncthreads();
    out[t] = piece[t % 32];
}
LAUNCH(write_then_write, 1, 64, 0)

static __global__ void read_then_write(const int *in, int *out, unsigned)
{
    __shared__ int piece[64];
    unsigned t = threadIdx.x;
    piece[t] = in[t];
    __syncthreads();
    if (t < 32)
        out[t] = piece[t + 32]; /* before: read_then_write */
    else
        piece[t] = 0; /* here: read_then_write */
}
LAUNCH(read_then_write, 1, 64, 0)

/* All of the first two warps read what the third writes. */
static __global__ void many_read_then_write(const int *in, int *out, unsigned)
{
    __shared__ int first;
    unsigned t = threadIdx.x;
    if (t == 0)
        first = in[0];
    __syncthreads();
    if (t < 64)
        out[t] = first; /* before: many_read_then_write */
    else if (t == 64)
        first = 0; /* here: many_read_then_write */
}
LAUNCH(many_read_then_write, 1, 96, 0)

/* A loop over tiles without its second barrier: the next tile overwrites the one in use. */
static __global__ void loop_barrier(const int *in, int *out, unsigned)
{
    __shared__ int tile[64];
    unsigned t = threadIdx.x;
    int sum = 0;
    for (unsigned first = 0; first < 256; first += 64) {
        tile[t] = in[first + t]; /* here: loop_barrier */
        __syncthreads();
        for (unsigned i = 0; i < 64; i++)
            sum += tile[i]; /* before: loop_barrier */
    }
    out[t] = sum;
}
LAUNCH(loop_barrier, 1, 64, 0)

/* Lanes of a warp are not in step unless they say so. */
static __global__ void warp_unsynced(const int *in, int *out, unsigned)
{
    __shared__ int piece[32];
    unsigned t = threadIdx.x;
    piece[t] = 0;
    __syncwarp();
    piece[t] = in[t];      /* here: warp_unsynced */
    out[t] = piece[t ^ 1]; /* before: warp_unsynced */
}
LAUNCH(warp_unsynced, 1, 32, 0)

/* What orders the lanes of one warp orders nothing between two. */
static __global__ void warp_sync_for_block(const int *in, int *out, unsigned)
{
    __shared__ int piece[64];
    unsigned t = threadIdx.x;
    piece[t] = 0;
    __syncthreads();
    piece[t] = in[t]; /* here: warp_sync_for_block */
    __syncwarp();
    out[t] = piece[(t + 32) % 64]; /* before: warp_sync_for_block */
}
LAUNCH(warp_sync_for_block, 1, 64, 0)

static __global__ void global_write_write(const int *in, int *out, unsigned)
{
    out[threadIdx.x % 32] = in[threadIdx.x]; /* here: global_write_write */
}
LAUNCH(global_write_write, 1, 64, 0)

static __global__ void global_write_read(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    out[t] = in[t];          /* here: global_write_read */
    int other = out[t ^ 32]; /* before: global_write_read */
    __syncthreads();
    out[t] = other;
}
LAUNCH(global_write_read, 1, 64, 0)

static __global__ void atomic_and_plain(const int *, int *out, unsigned)
{
    __shared__ int count;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    atomicAdd(&count, 1);     /* here: atomic_and_plain */
    out[threadIdx.x] = count; /* before: atomic_and_plain */
}
LAUNCH(atomic_and_plain, 1, 64, 0)

/* Lanes 0 to 3 have a byte each, but lane 3's is lane 2's too. */
static __global__ void byte_twice(const int *in, int *out, unsigned)
{
    __shared__ signed char bytes[32];
    unsigned t = threadIdx.x;
    bytes[t == 3 ? 2 : t] = (signed char)in[t]; /* here: byte_twice */
    __syncthreads();
    out[t] = bytes[t == 3 ? 2 : t];
}
LAUNCH(byte_twice, 1, 32, 0)

/* A word over the bytes that other lanes wrote. */
static __global__ void word_over_bytes(const int *in, int *out, unsigned)
{
    __shared__ int words[8];
    unsigned t = threadIdx.x;
    signed char *bytes = reinterpret_cast<signed char *>(words);
    if (t < 16)
        bytes[t] = (signed char)in[t]; /* before: word_over_bytes */
    else if (t < 18)
        words[t - 14] = in[t]; /* here: word_over_bytes */
    __syncthreads();
    out[t] = words[0];
}
LAUNCH(word_over_bytes, 1, 32, 0)

/* 16 bytes of which the last four are another lane's. */
static __global__ void vector_overlap(const int *in, int *out, unsigned)
{
    __shared__ __align__(16) int words[128];
    unsigned t = threadIdx.x;
    int4 *fours = reinterpret_cast<int4 *>(words);
    if (t == 31)
        words[3] = in[t]; /* here: vector_overlap */
    else
        fours[t] = reinterpret_cast<const int4 *>(in)[t]; /* before: vector_overlap */
    __syncthreads();
    out[t] = words[0];
}
LAUNCH(vector_overlap, 1, 32, 0)

static __global__ void async_copy_unwaited(const int *in, int *out, unsigned)
{
    __shared__ int piece[64];
    unsigned t = threadIdx.x;
    piece[t] = 0;
    __syncthreads();
    __pipeline_memcpy_async(&piece[t], &in[t], 4); /* here: async_copy_unwaited */
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[t] = piece[63 - t]; /* before: async_copy_unwaited */
}
LAUNCH(async_copy_unwaited, 1, 64, 0)
