/*
 * bench_gpu_data.cu - one thread an element, indices of 64 bits, no idea of speed: nothing here is
 * like the kernels that it checks.
 */
#include "bench_gpu_data.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define THREADS 256

static __device__ uint64_t mix(uint64_t x)
{
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 32;
    x *= 0xBF58476D1CE4E5B9u;
    return x ^ x >> 29;
}

static __device__ uint64_t first_index()
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ uint64_t step()
{
    return (uint64_t)gridDim.x * blockDim.x;
}

template <typename T> static __global__ void fill_units(T *data, uint64_t count, uint64_t seed)
{
    for (uint64_t i = first_index(); i < count; i += step())
        data[i] = (T)(float)((double)(int64_t)mix(seed + i) * 0x1p-63);
}

static __global__ void fill_bytes(unsigned char *data, uint64_t count, uint64_t seed)
{
    for (uint64_t i = first_index(); i < count; i += step())
        data[i] = (unsigned char)mix(seed + i);
}

static unsigned blocks_for(uint64_t count)
{
    uint64_t blocks = (count + THREADS - 1) / THREADS;

    return blocks < 1 ? 1 : blocks < 65536 ? (unsigned)blocks : 65536;
}

static bool finished()
{
    return cudaGetLastError() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
}

bool data_fill(const struct gm_matrix *matrix, uint64_t seed)
{
    uint64_t count = gm_matrix_elements(matrix), bytes = gm_matrix_bytes(matrix);
    unsigned blocks = blocks_for(count);

    switch (matrix->dtype) {
    case GM_F16:
        fill_units<<<blocks, THREADS>>>((__half *)matrix->data, count, seed);
        break;
    case GM_BF16:
        fill_units<<<blocks, THREADS>>>((__nv_bfloat16 *)matrix->data, count, seed);
        break;
    case GM_F32:
        fill_units<<<blocks, THREADS>>>((float *)matrix->data, count, seed);
        break;
    case GM_F64:
        fill_units<<<blocks, THREADS>>>((double *)matrix->data, count, seed);
        break;
    default:
        fill_bytes<<<blocks_for(bytes), THREADS>>>((unsigned char *)matrix->data, bytes, seed);
    }
    return finished();
}

struct geometry {
    enum gm_op_kind kind;
    uint64_t rows, cols, count, size; /* of a result's matrix; of all elements; of an element */
};

/* Where the element at `index` of the result came from. */
static __device__ uint64_t source(const struct geometry *g, uint64_t index)
{
    uint64_t col = index % g->cols, row = index / g->cols % g->rows;
    uint64_t matrix = index / g->cols / g->rows * g->rows * g->cols;

    if (g->kind == GM_OP_TRANSPOSE)
        return matrix + col * g->rows + row;
    return g->kind == GM_OP_FLIP ? matrix + row * g->cols + (g->cols - 1 - col) : index;
}

static __global__ void compare_moved(const char *from, const char *to, struct geometry g,
                                     unsigned *differ)
{
    for (uint64_t i = first_index(); i < g.count; i += step()) {
        const char *wanted = from + source(&g, i) * g.size, *found = to + i * g.size;
        for (uint64_t byte = 0; byte < g.size; byte++) {
            if (wanted[byte] != found[byte])
                *differ = 1;
        }
    }
}

static __global__ void compare_bytes(const char *left, const char *right, uint64_t bytes,
                                     unsigned *differ)
{
    for (uint64_t i = first_index(); i < bytes; i += step()) {
        if (left[i] != right[i])
            *differ = 1;
    }
}

/* A flag on the device, which a comparison raises. */
static unsigned *new_flag()
{
    unsigned *flag = NULL;

    if (cudaMalloc((void **)&flag, sizeof(*flag)) != cudaSuccess)
        return NULL;
    cudaMemset(flag, 0, sizeof(*flag));
    return flag;
}

static bool still_down(unsigned *flag)
{
    unsigned raised = 1;
    bool read = cudaMemcpy(&raised, flag, sizeof(raised), cudaMemcpyDeviceToHost) == cudaSuccess;

    cudaFree(flag);
    return read && raised == 0;
}

bool data_moved(const struct gm_op *op)
{
    const struct gm_matrix *result = &op->result;
    struct geometry g = {op->kind, result->rows, result->cols, gm_matrix_elements(result),
                         gm_dtype_size(result->dtype)};
    unsigned *flag = new_flag();

    if (!flag)
        return false;
    compare_moved<<<blocks_for(g.count), THREADS>>>((const char *)op->operand[0].data,
                                                    (const char *)result->data, g, flag);
    return still_down(flag);
}

bool data_same(const void *left, const void *right, uint64_t bytes)
{
    unsigned *flag = new_flag();

    if (!flag)
        return false;
    compare_bytes<<<blocks_for(bytes), THREADS>>>((const char *)left, (const char *)right, bytes,
                                                  flag);
    return still_down(flag);
}
