/*
 * batched.cu - transposes stacks of small matrices, whole matrices per block.
 *
 * Unlike the long sides in transpose_skinny, whole matrices of a stack are contiguous, before and
 * after. A block takes as many as fill 16 KB, or one larger matrix: one span of the operand, and
 * one span of the result at the same place (drawn below). No tile size has to fit: 33 x 31 is as
 * good as 32 x 32.
 *
 * Cost: 16 sectors a request, all useful but for the ends of spans. Shared memory: as
 * transpose_skinny.
 * When it wins: where tiles fit badly, up to matrices that fill shared memory. Where matrices are
 * whole vectors, transpose_vectorized is as good from 32 to 96 rows and columns on.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/transpose/spans.h"
#include "kernels/device_facts.h"

/*
 *     operand   | m0: rows x cols | m1 | m2 | m3 |      one span per block, here many = 4
 *                        | gm_load_span, padded
 *     shared    | m0              | m1 | m2 | m3 |
 *                        | read down columns, gm_store_span
 *     result    | m0: cols x rows | m1 | m2 | m3 |      the same span
 */
#define BYTES 16384u              /* a block's matrices, if several fit */
#define MANY_THREADS_BYTES 32768u /* from this size on a block has MANY_THREADS */
#define THREADS 256u
#define MANY_THREADS 512u

static_assert(BYTES <= UINT16_MAX, "a block's elements have 16 bits (gm_reciprocal)");

/* Iterates over matrices of the result: down the columns of the matrices in shared memory. */
template <typename T> struct column_iterator {
    const T *shared;
    gm_bank_padding<T> padding;
    unsigned rows, cols, at, row, col;

    __device__ __forceinline__ T operator()()
    {
        T element = shared[padding.element(at)];
        at += cols;
        if (++row == rows) {
            row = 0;
            at -= rows * cols - 1;
            if (++col == cols) {
                col = 0;
                at += rows * cols - cols;
            }
        }
        return element;
    }
};

/* The same for an iterator that reaches the end of a column at most once. */
template <typename T> struct short_column_iterator {
    const T *shared;
    gm_bank_padding<T> padding;
    unsigned cols, at, left, jump; /* elements left in the column; step to the next */

    __device__ __forceinline__ T operator()()
    {
        T element = shared[padding.element(at)];
        at += cols;
        if (--left == 0)
            at += jump;
        return element;
    }
};

template <typename T>
static __global__ void __launch_bounds__(MANY_THREADS)
    transpose_batched(const T *in, T *out, uint64_t batch, unsigned rows, unsigned cols,
                      unsigned many, unsigned by_each, unsigned by_rows, gm_bank_padding<T> padding,
                      uint64_t first_matrix)
{
    T *shared = gm_dynamic_shared<T>();
    uint64_t matrix = first_matrix + (uint64_t)blockIdx.x * many;
    unsigned each = rows * cols;
    unsigned count = each * (batch - matrix < many ? (unsigned)(batch - matrix) : many);
    unsigned skip = gm_load_span(in, matrix * each, count, batch * each, threadIdx.x, blockDim.x,
                                 padding, shared);
    __syncthreads();

    auto store = [&](auto iterate) {
        gm_store_span(out + matrix * each, count, threadIdx.x, blockDim.x, [&](unsigned e) {
            unsigned m = __umulhi(e, by_each), rest = e - m * each;
            unsigned col = __umulhi(rest, by_rows), row = rest - col * rows;
            return iterate(skip + m * each + row * cols + col, row, col);
        });
    };
    if (rows >= gm_per_vec<T, 16>::count)
        store([&](unsigned at, unsigned row, unsigned col) {
            unsigned jump = col + 1 < cols ? 1 - each : 1 - cols;
            return short_column_iterator<T>{shared, padding, cols, at, rows - row, jump};
        });
    else
        store([&](unsigned at, unsigned row, unsigned col) {
            return column_iterator<T>{shared, padding, rows, cols, at, row, col};
        });
}

template <typename T> static uint64_t shared_bytes(const struct gm_matrix *a, uint64_t many)
{
    return gm_padded_bytes(gm_bank_padding_for<T>(a->cols), many * a->rows * a->cols);
}

/* Bytes of shared memory for one matrix; UINT64_MAX if it is not accepted. Element indices have 16
 * bits (gm_reciprocal). A matrix of one row or column is transposed by a copy. */
static uint64_t least_bytes(const struct gm_matrix *a)
{
    uint64_t bytes = UINT64_MAX;

    if (a->rows > 1 && a->cols > 1 && a->rows < UINT16_MAX && a->cols < UINT16_MAX &&
        a->rows * a->cols <= UINT16_MAX)
        gm_by_size(a->dtype, [&](auto tag) {
            bytes = shared_bytes<typename decltype(tag)::type>(a, 1);
            return GM_OK;
        });
    return bytes;
}

GM_ROW_FUNCTION enum gm_status gm_transpose_batched_accepts(const struct gm_op *op,
                                                            const struct gm_device_facts *facts,
                                                            struct gm_error *err)
{
    const struct gm_matrix *a = &op->operand[0];
    char shape[GM_SHAPE_TEXT_MAX];

    if (facts->gpu && least_bytes(a) <= facts->gpu->shared_per_block)
        return GM_OK;
    return gm_fail(
        err, GM_KERNEL_UNAVAILABLE,
        "batched transposes matrices of at least 2 x 2 that fit in the %u KB of a block's "
        "shared memory, with at most %u elements, and these are %s of %s",
        facts->gpu ? facts->gpu->shared_per_block / 1024 : 0, UINT16_MAX,
        gm_matrix_shape_text(a, shape), gm_dtype_name(a->dtype));
}

GM_KERNEL(transpose_batched)
{
    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const struct gm_matrix *a = &op->operand[0];
        unsigned each = (unsigned)(a->rows * a->cols);
        uint64_t fit = BYTES / (each * sizeof(T)), left = a->batch > 0 ? a->batch : 1;
        unsigned many = (unsigned)(fit < 1 ? 1 : fit < left ? fit : left);
        unsigned threads = many * each * sizeof(T) < MANY_THREADS_BYTES ? THREADS : MANY_THREADS;
        gm_bank_padding<T> padding = gm_bank_padding_for<T>(a->cols);

        return gm_launches(
            gm_ceil_div(a->batch, many), GM_GRID_X_MAX, [&](uint64_t first, uint64_t blocks) {
                return gm_launch(exec, transpose_batched<T>, dim3((unsigned)blocks), dim3(threads),
                                 shared_bytes<T>(a, many), gm_in<T>(op, 0), gm_out<T>(op), a->batch,
                                 (unsigned)a->rows, (unsigned)a->cols, many, gm_reciprocal(each),
                                 gm_reciprocal((unsigned)a->rows), padding, first * many);
            });
    });
}
