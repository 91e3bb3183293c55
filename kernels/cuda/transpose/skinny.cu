/*
 * skinny.cu - transposes matrices of few columns or few rows, in long contiguous spans.
 *
 * Square tiles would be mostly empty. Instead a block takes as many rows of few columns as fill 16
 * KB. They are one span, loaded 16 bytes an access without regard to rows. Each of its columns is a
 * span of the result. In shared memory a thread collects its column's elements, a row apart each.
 * With few rows it is the reverse (both drawn below). Spans begin anywhere; whole aligned vectors
 * are loaded and stored (spans.h). Lanes go down a column, as many rows apart as a vector has
 * elements, N: padding as in padded.cu, but not at each row, leads them to different banks.
 *
 * Cost: 16 sectors a request, all useful but for the ends of spans. For 1-byte elements
 * instructions are the limit, five for each, or seven with gaps.
 * When it wins: large matrices with a side of up to some 1000 bytes.
 * Source: the Futhark compiler's transposes for low width and height follow the long side too.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/transpose/spans.h"
#include "kernels/device_facts.h"

#define FEW 512u /* the most rows, or columns: with more, spans are too short */
/* The two layouts. tall (few columns): one span in, one span per column out. wide (few rows): the
 * reverse.
 *
 *     tall:  rows   a0 a1 a2       in   a0 a1 a2 b0 b1 b2 c0 ..      out  a0 b0 c0 ..  one span
 *                   b0 b1 b2                                              a1 b1 c1 ..  per column
 *                   c0 c1 c2
 *     wide:  row 0  a0 b0 c0 ..    in   a0 b0 c0 ..  one span        out  a0 a1 a2 b0 b1 b2 c0 ..
 *            row 1  a1 b1 c1 ..         a1 b1 c1 ..  per row
 *
 * wide: the bytes that a block takes; more if 128 columns need more, up to WIDE_BYTES_MAX, and then
 * with more threads; at least WIDE_SPAN_BYTES of each row. */
#define WIDE_BYTES 8192u
#define WIDE_COLUMNS 128u
#define WIDE_BYTES_MAX 34816u
#define WIDE_SPAN_BYTES 128u
#define WIDE_THREADS 128u /* doubled beyond WIDE_BYTES_MORE */
#define WIDE_BYTES_MORE 18432u
/* tall: the bytes that a block takes; twice that for up to TALL_ROWS rows; up to TALL_BYTES_MAX,
 * with which two blocks are resident, for spans of TALL_SPAN_BYTES in the result. */
#define TALL_BYTES 16384u
#define TALL_ROWS 128u
#define TALL_SPAN_BYTES 512u
#define TALL_BYTES_MAX 114688u
#define TALL_THREADS 256u /* doubled, and quadrupled, beyond these sizes */
#define TALL_BYTES_MORE 16384u
#define TALL_BYTES_MOST 49152u

/* wide: columns per block. 128, doubled while they fit in WIDE_BYTES. If 128 exceed WIDE_BYTES_MAX,
 * the most whole spans of 128 bytes that do not, but at least one. */
template <typename T> static unsigned wide_length(uint64_t rows)
{
    constexpr unsigned UNIT = WIDE_SPAN_BYTES / sizeof(T), N = gm_per_vec<T, 16>::count;
    static_assert(UNIT % N == 0 && WIDE_COLUMNS % N == 0, "rows' spans begin alike in a vector");
    static_assert(FEW * WIDE_SPAN_BYTES <= 1 << 16, "a block's elements have 16 bits");
    uint64_t size = rows * sizeof(T), length = WIDE_COLUMNS;

    while (2 * length * size <= WIDE_BYTES)
        length *= 2;
    if (length * size > WIDE_BYTES_MAX)
        length = WIDE_BYTES_MAX / size / UNIT * UNIT;
    return (unsigned)(length > UNIT ? length : UNIT);
}

/* tall: one unit is left out after so many that two lanes are an odd number of them apart. */
template <typename T> static gm_bank_padding<T> tall_padding(uint64_t cols)
{
    gm_bank_padding<T> padding = gm_bank_padding_for<T>(cols);

    while (16 * cols / padding.unit % (2u << padding.shift) == 0)
        padding.shift++;
    return padding;
}

/* tall: rows per block; a power of two. Fewer where multiprocessors would have no block, but each
 * column still stores a line of 128 bytes. */
template <typename T> static unsigned tall_length(const struct gm_matrix *a, const gm_gpu *gpu)
{
    uint64_t room = gpu->shared_per_block < TALL_BYTES_MAX ? gpu->shared_per_block : TALL_BYTES_MAX;
    uint64_t bytes = a->cols * sizeof(T), length = TALL_SPAN_BYTES / sizeof(T);

    while (2 * length * bytes <= (length < TALL_ROWS ? 2 * TALL_BYTES : TALL_BYTES))
        length *= 2;
    while (length > gm_per_vec<T, 16>::count &&
           gm_padded_bytes(tall_padding<T>(a->cols), length * a->cols) > room)
        length /= 2;
    while (length > 128 / sizeof(T) && a->batch * ((a->rows - 1) / length + 1) < gpu->sms)
        length /= 2;
    return (unsigned)length;
}

/* Iterates down a column of the rows in shared memory. */
template <typename T> struct down {
    const T *shared;
    gm_bank_padding<T> padding;
    unsigned at, cols;

    __device__ __forceinline__ T operator()()
    {
        T element = shared[padding.element(at)];
        at += cols;
        return element;
    }
};

template <typename T, unsigned THREADS>
static __global__ void __launch_bounds__(THREADS)
    tall(const T *in, T *out, uint64_t rows, unsigned cols, unsigned length,
         gm_bank_padding<T> padding, uint64_t total, gm_origin origin)
{
    T *shared = gm_dynamic_shared<T>();
    uint64_t matrix = (origin.matrix + blockIdx.z) * rows * cols;
    uint64_t row = origin.col + (uint64_t)blockIdx.x * length;
    unsigned count = rows - row < length ? (unsigned)(rows - row) : length;
    unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    unsigned skip = gm_load_span(in, matrix + row * cols, count * cols, total, thread, THREADS,
                                 padding, shared);
    __syncthreads();

    for (unsigned col = threadIdx.y; col < cols; col += blockDim.y) {
        gm_store_span(out + matrix + col * rows + row, count, threadIdx.x, blockDim.x,
                      [&](unsigned i) {
                          return down<T>{shared, padding, skip + i * cols + col, cols};
                      });
    }
}

/* wide: rows in shared memory are `apart` elements apart, and `gap` more after each N rows. `back`
 * leads from below a column's last row to the next column's first. */
template <typename T> struct row_layout {
    unsigned apart, gap, back;

    __host__ __device__ __forceinline__ unsigned at(unsigned row) const
    {
        return row * apart + row / gm_per_vec<T, 16>::count * gap;
    }
};

/* Iterates down a column, with a gap behind `left` rows, then down the next. From any earlier row
 * `back` leads below zero, which is large as an unsigned number, so that min() takes the other. */
template <typename T> struct across {
    const T *shared;
    row_layout<T> layout;
    unsigned at, left;

    __device__ __forceinline__ T operator()()
    {
        T element = shared[at];
        at += layout.apart + (--left == 0 ? layout.gap : 0);
        at = min(at, at + layout.back);
        return element;
    }
};

template <typename T, unsigned THREADS>
static __global__ void __launch_bounds__(THREADS)
    wide(const T *in, T *out, unsigned rows, uint64_t cols, unsigned length, row_layout<T> layout,
         unsigned by_rows, unsigned by_vecs, uint64_t total, gm_origin origin)
{
    constexpr unsigned N = gm_per_vec<T, 16>::count;
    T *shared = gm_dynamic_shared<T>();
    uint64_t matrix = (origin.matrix + blockIdx.z) * rows * cols;
    uint64_t col = origin.col + (uint64_t)blockIdx.x * length;
    unsigned count = cols - col < length ? (unsigned)(cols - col) : length;
    unsigned first = (unsigned)((matrix + col) % N);
    unsigned most = length / N + 1; /* vectors that a row's span can touch */

    for (unsigned base = threadIdx.x; base < rows * most; base += GM_SPAN_BATCH * THREADS) {
        gm_vec<16> vec[GM_SPAN_BATCH];
        unsigned to[GM_SPAN_BATCH], whole = 0;
#pragma unroll
        for (unsigned b = 0; b < GM_SPAN_BATCH; b++) {
            unsigned id = base + b * THREADS;
            unsigned i = __umulhi(id, by_vecs), p = id - i * most;
            unsigned place = first + layout.at(i), skip = place % N;
            uint64_t from = matrix + i * cols + col - skip + p * N;
            if (i >= rows || p * N >= skip + count)
                continue;
            to[b] = place - skip + p * N;
            if (from + N <= total) {
                vec[b] = *(const gm_vec<16> *)(in + from);
                whole |= 1u << b;
            } else {
                for (unsigned e = 0; from + e < total; e++)
                    shared[to[b] + e] = in[from + e];
            }
        }
#pragma unroll
        for (unsigned b = 0; b < GM_SPAN_BATCH; b++)
            if (whole >> b & 1)
                *(gm_vec<16> *)(shared + to[b]) = vec[b];
    }
    __syncthreads();
    out += matrix + col * rows;
    auto store = [&](row_layout<T> with) {
        gm_store_span(out, count * rows, threadIdx.x, THREADS, [&](unsigned e) {
            unsigned j = __umulhi(e, by_rows), i = e - j * rows, left = N - i % N;
            return across<T>{shared, with, first + with.at(i) + j, left <= rows - i ? left : 0};
        });
    };
    if (layout.gap > 0)
        store(layout);
    else
        store({layout.apart, 0, layout.back}); /* two instructions less an element */
}

/* wide: each row begins at the same position in a vector as in global memory, so that nothing is
 * shifted. Lanes that go down columns of few rows use different banks. Where more than two go down
 * a column, they are an odd number of vectors apart, so that eight of them use all banks. */
template <typename T> static row_layout<T> row_layout_for(const struct gm_matrix *a)
{
    constexpr unsigned N = gm_per_vec<T, 16>::count;
    unsigned rows = (unsigned)a->rows, apart = wide_length<T>(rows) + N + a->cols % N;

    while (apart / N % 8 != (rows < 8 ? 8 / rows : 1))
        apart += N;
    row_layout<T> layout = {apart, rows > 8 && rows > 2 * N && apart % 2 == 0 ? N : 0, 1};
    layout.back -= layout.at(rows);
    return layout;
}

/* Bytes of shared memory of a block. */
template <typename T> static uint64_t shared_bytes(const struct gm_matrix *a, const gm_gpu *gpu)
{
    if (a->cols <= a->rows)
        return gm_padded_bytes(tall_padding<T>(a->cols), tall_length<T>(a, gpu) * a->cols);
    return row_layout_for<T>(a).at((unsigned)a->rows) * sizeof(T) + 16;
}

template <typename T>
static enum gm_status transpose_tall(const struct gm_op *op, struct gm_exec *exec)
{
    const struct gm_matrix *a = &op->operand[0];
    const gm_gpu *gpu = gm_gpu_of(exec);
    unsigned cols = (unsigned)a->cols, length = tall_length<T>(a, gpu);
    unsigned bytes = length * cols * sizeof(T), vecs = length / gm_per_vec<T, 16>::count;
    unsigned threads = TALL_THREADS * (bytes > TALL_BYTES_MOST   ? 4
                                       : bytes > TALL_BYTES_MORE ? 2
                                                                 : 1);
    auto kernel = threads == TALL_THREADS       ? tall<T, TALL_THREADS>
                  : threads == 2 * TALL_THREADS ? tall<T, 2 * TALL_THREADS>
                                                : tall<T, 4 * TALL_THREADS>;
    dim3 block(vecs < threads ? vecs : threads);

    block.y = threads / block.x;
    return gm_tiles(a->batch, 1, a->rows, 1, length, [&](dim3 grid, gm_origin origin) {
        return gm_launch(exec, kernel, grid, block, shared_bytes<T>(a, gpu), gm_in<T>(op, 0),
                         gm_out<T>(op), a->rows, cols, length, tall_padding<T>(cols),
                         gm_matrix_elements(a), origin);
    });
}

template <typename T>
static enum gm_status transpose_wide(const struct gm_op *op, struct gm_exec *exec)
{
    constexpr unsigned N = gm_per_vec<T, 16>::count;
    const struct gm_matrix *a = &op->operand[0];
    unsigned rows = (unsigned)a->rows, length = wide_length<T>(rows);
    bool more = length * rows * sizeof(T) > WIDE_BYTES_MORE;
    auto kernel = more ? wide<T, 2 * WIDE_THREADS> : wide<T, WIDE_THREADS>;

    return gm_tiles(a->batch, 1, a->cols, 1, length, [&](dim3 grid, gm_origin origin) {
        return gm_launch(exec, kernel, grid, dim3(more ? 2 * WIDE_THREADS : WIDE_THREADS),
                         shared_bytes<T>(a, nullptr), gm_in<T>(op, 0), gm_out<T>(op), rows, a->cols,
                         length, row_layout_for<T>(a), gm_reciprocal(rows),
                         gm_reciprocal(length / N + 1), gm_matrix_elements(a), origin);
    });
}

GM_ROW_FUNCTION enum gm_status gm_transpose_skinny_accepts(const struct gm_op *op,
                                                           const struct gm_device_facts *facts,
                                                           struct gm_error *err)
{
    const struct gm_matrix *a = &op->operand[0];
    uint64_t few = a->rows < a->cols ? a->rows : a->cols;
    uint32_t room = facts->gpu ? facts->gpu->shared_per_block : 0;
    uint64_t bytes = UINT64_MAX;
    char shape[GM_SHAPE_TEXT_MAX];

    if (few > 1 && few <= FEW && facts->gpu)
        (void)gm_by_size(a->dtype, [&](auto tag) {
            bytes = shared_bytes<typename decltype(tag)::type>(a, facts->gpu);
            return GM_OK;
        });
    if (bytes <= room)
        return GM_OK;
    return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                   "skinny transposes matrices of 2 to %u rows, or columns, of which the %u KB of "
                   "a block's shared memory can hold spans, and these are %s of %s",
                   FEW, room / 1024, gm_matrix_shape_text(a, shape), gm_dtype_name(a->dtype));
}

GM_KERNEL(transpose_skinny)
{
    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        return op->operand[0].cols <= op->operand[0].rows ? transpose_tall<T>(op, exec)
                                                          : transpose_wide<T>(op, exec);
    });
}
