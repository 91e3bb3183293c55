/*
 * huge.cu - fills and checks huge matrices, one thread an element and all indices of 64 bits. The
 * functions that say what belongs where are compiled for the host too, which looks at a sample
 * by itself: a check that runs on the device alone could be wrong with what it checks.
 */
#include "huge.h"

#include <cuda_runtime.h>

#define THREADS 256

/* What a kernel needs to know of an operation: none of its own types pass through a launch. */
struct geometry {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    uint64_t rows[3], cols[3]; /* of a, b and the result */
};

static struct geometry geometry_of(const struct gm_op *op)
{
    struct geometry ret = {op->kind, op->result.dtype, {}, {}};
    const struct gm_matrix *matrix[3] = {&op->operand[0], &op->operand[1], &op->result};

    for (int i = 0; i < 3; i++) {
        ret.rows[i] = matrix[i]->rows;
        ret.cols[i] = matrix[i]->cols;
    }
    return ret;
}

static __host__ __device__ uint32_t bits_of(float value)
{
    union {
        float value;
        uint32_t bits;
    } ret = {value};

    return ret.bits;
}

static __host__ __device__ uint32_t mix(unsigned which, uint64_t index)
{
    uint64_t x = (index + ((uint64_t)(which + 1) << 56)) * 0x9E3779B97F4A7C15u;

    x ^= x >> 29;
    return (uint32_t)(x * 0xBF58476D1CE4E5B9u >> 32);
}

static __host__ __device__ uint32_t element(enum gm_dtype dtype, unsigned which, uint64_t index)
{
    uint32_t x = mix(which, index);

    return dtype == GM_F32 ? bits_of((float)(x & 0xFFFF)) : x;
}

/* Where an element lies; of what is repeated, the only one. */
static __host__ __device__ uint64_t place(const struct geometry *g, int i, uint64_t row,
                                          uint64_t col)
{
    return (g->rows[i] == 1 ? 0 : row) * g->cols[i] + (g->cols[i] == 1 ? 0 : col);
}

static __host__ __device__ uint32_t sum(const struct geometry *g, uint64_t row, uint64_t col)
{
    uint32_t a = mix(0, place(g, 0, row, col)), b = mix(1, place(g, 1, row, col));

    return g->dtype == GM_F32 ? bits_of((float)(a & 0xFFFF) + (float)(b & 0xFFFF)) : a + b;
}

static __host__ __device__ uint32_t product(const struct geometry *g, uint64_t row, uint64_t col)
{
    uint32_t ret = 0;

    for (uint64_t i = 0; i < g->cols[0]; i++)
        ret += mix(0, row * g->cols[0] + i) * mix(1, i * g->cols[1] + col);
    return ret;
}

static __host__ __device__ uint32_t result(const struct geometry *g, uint64_t index)
{
    uint64_t cols = g->cols[2], row = index / cols, col = index % cols;

    switch (g->kind) {
    case GM_OP_COPY:
        return element(g->dtype, 0, index);
    case GM_OP_TRANSPOSE:
        return element(g->dtype, 0, col * g->cols[0] + row);
    case GM_OP_FLIP:
        return element(g->dtype, 0, row * cols + (cols - 1 - col));
    case GM_OP_ADD:
        return sum(g, row, col);
    default:
        return product(g, row, col);
    }
}

uint32_t huge_element(enum gm_dtype dtype, unsigned which, uint64_t index)
{
    return element(dtype, which, index);
}

uint32_t huge_result(const struct gm_op *op, uint64_t index)
{
    struct geometry g = geometry_of(op);

    return result(&g, index);
}

/* T: as many bytes as an element. */
template <typename T>
static __global__ void fill(T *data, uint64_t count, struct geometry g, unsigned which)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        data[i] = (T)element(g.dtype, which, i);
}

template <typename T>
static __global__ void check(const T *data, uint64_t count, struct geometry g, int which,
                             unsigned long long *wrong)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        uint32_t right = which < 0 ? result(&g, i) : element(g.dtype, (unsigned)which, i);
        if (data[i] != (T)right)
            atomicAdd(wrong, 1ull);
    }
}

static unsigned blocks_for(uint64_t count)
{
    uint64_t blocks = (count + THREADS - 1) / THREADS;

    return (unsigned)(blocks < 65536 ? blocks : 65536);
}

bool huge_fill(const struct gm_op *op, unsigned which)
{
    const struct gm_matrix *matrix = &op->operand[which];
    uint64_t count = gm_matrix_elements(matrix);
    struct geometry g = geometry_of(op);

    if (g.dtype == GM_U8)
        fill<<<blocks_for(count), THREADS>>>((uint8_t *)matrix->data, count, g, which);
    else
        fill<<<blocks_for(count), THREADS>>>((uint32_t *)matrix->data, count, g, which);
    return cudaDeviceSynchronize() == cudaSuccess;
}

uint64_t huge_wrong(const struct gm_op *op, int which)
{
    const struct gm_matrix *matrix = which < 0 ? &op->result : &op->operand[which];
    uint64_t count = gm_matrix_elements(matrix);
    unsigned long long *wrong = NULL, ret = 0;
    struct geometry g = geometry_of(op);

    if (cudaMalloc((void **)&wrong, sizeof(*wrong)) != cudaSuccess)
        return UINT64_MAX;
    cudaMemset(wrong, 0, sizeof(*wrong));
    if (g.dtype == GM_U8)
        check<<<blocks_for(count), THREADS>>>((uint8_t *)matrix->data, count, g, which, wrong);
    else
        check<<<blocks_for(count), THREADS>>>((uint32_t *)matrix->data, count, g, which, wrong);
    cudaError_t error = cudaMemcpy(&ret, wrong, sizeof(ret), cudaMemcpyDeviceToHost);
    cudaFree(wrong);
    return error == cudaSuccess ? ret : UINT64_MAX;
}
