/*
 * add_vectorized.cu - 16 bytes of the result a thread, whatever the operands are.
 *
 * The difference to add_direct: the result is one long row of pieces of 16 bytes, one a thread. An
 * operand that lies as the result does is loaded in the same pieces. One whose rows repeat, or lie
 * elsewhere, but are whole pieces, is loaded in pieces too, from where its row is; a column that
 * repeats gives one element to all of a piece. What is left, odd rows that repeat and column-major
 * operands, is fetched element by element, mostly from the L1 cache. Which of these an operand is,
 * is known before the launch, and the same for all threads.
 *
 * Cost, where nothing repeats: two loads of 16 sectors a request and a store of 16: for elements of
 * 4 bytes a fourth of the requests, and 4 additions a thread.
 *
 * When it wins: always but for a handful of elements, where it is as good. As in copy_vector, one
 * piece a thread does better than several, and as many blocks as there is work better than a grid
 * that goes round.
 *
 * Source: as copy_vector.
 */
#include "kernels/cuda/pieces.h"
#include "kernels/cuda/sum.h"

#define THREADS 128u

/* How an operand is read. */
enum reading { AS_RESULT, BY_PIECES, ONE_ELEMENT, BY_ELEMENTS };

struct operand {
    struct gm_view view;
    enum reading reading;
};

struct place {
    uint64_t at; /* in the result, seen as one row */
    uint64_t matrix, row, col;
    unsigned length; /* elements left there, at most a piece */
};

template <typename T> using values = gm_elements<T, 16>;

template <typename T>
__device__ __forceinline__ values<T> read_elements(const struct gm_view &view, const T *from,
                                                   struct place place, uint64_t rows, uint64_t cols)
{
    constexpr unsigned N = gm_in_piece<T, 16>::count;
    values<T> read = {};

    if (place.col + N <= cols) {
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            read.element[e] = from[e * view.col];
        return read;
    }
#pragma unroll
    for (unsigned e = 0; e < N; e++) {
        if (e < place.length)
            read.element[e] = ((const T *)view.data)[place.matrix * view.batch +
                                                     place.row * view.row + place.col * view.col];
        if (++place.col == cols) {
            place.col = 0;
            if (++place.row == rows) {
                place.row = 0;
                place.matrix++;
            }
        }
    }
    return read;
}

/* Of an operand that lies as the result does: nothing else need be known of the place. */
template <typename T>
__device__ __forceinline__ values<T> read_as_result(const struct operand &operand,
                                                    const struct place &place)
{
    constexpr unsigned N = gm_in_piece<T, 16>::count;
    const T *from = (const T *)operand.view.data + place.at;
    values<T> read = {};

    if (place.length == N) {
        read.piece = *(const gm_piece<16> *)from;
    } else {
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            if (e < place.length)
                read.element[e] = from[e];
    }
    return read;
}

template <typename T>
__device__ __forceinline__ values<T> read_elsewhere(const struct operand &operand,
                                                    const struct place &place, uint64_t rows,
                                                    uint64_t cols)
{
    constexpr unsigned N = gm_in_piece<T, 16>::count;
    const struct gm_view &view = operand.view;
    const T *from = (const T *)view.data + place.matrix * view.batch + place.row * view.row +
                    place.col * view.col;
    values<T> read = {};

    if (operand.reading == BY_PIECES) {
        read.piece = *(const gm_piece<16> *)from;
    } else if (operand.reading == ONE_ELEMENT) {
        T element = *from;
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            read.element[e] = element;
    } else {
        read = read_elements(view, from, place, rows, cols);
    }
    return read;
}

/* x / d, which for numbers of 32 bits is much faster when they say so. */
__device__ __forceinline__ uint64_t quotient(uint64_t x, uint64_t d, bool small)
{
    return small ? (uint32_t)x / (uint32_t)d : x / d;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    add_vectorized(struct operand a, struct operand b, T *result, uint64_t batch, uint64_t rows,
                   uint64_t cols, uint64_t first_block)
{
    constexpr unsigned N = gm_in_piece<T, 16>::count;
    uint64_t count = batch * rows * cols;
    bool small = count <= UINT32_MAX;
    struct place place = {};

    place.at = ((first_block + blockIdx.x) * THREADS + threadIdx.x) * N;
    if (place.at >= count)
        return;
    place.length = count - place.at < N ? (unsigned)(count - place.at) : N;
    values<T> left = {}, right = {};
    if (a.reading == AS_RESULT)
        left = read_as_result<T>(a, place);
    if (b.reading == AS_RESULT)
        right = read_as_result<T>(b, place);
    if (a.reading != AS_RESULT || b.reading != AS_RESULT) { /* divided while those are under way */
        uint64_t row = quotient(place.at, cols, small);     /* of all matrices */
        place.col = place.at - row * cols;
        place.matrix = batch == 1 ? 0 : quotient(row, rows, small);
        place.row = row - place.matrix * rows;
        if (a.reading != AS_RESULT)
            left = read_elsewhere<T>(a, place, rows, cols);
        if (b.reading != AS_RESULT)
            right = read_elsewhere<T>(b, place, rows, cols);
    }
    values<T> sum;
#pragma unroll
    for (unsigned e = 0; e < N; e++)
        sum.element[e] = gm_store<T>(gm_load(left.element[e]) + gm_load(right.element[e]));
    if (place.length == N) {
        gm_put(result + place.at, sum.piece);
    } else {
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            if (e < place.length)
                result[place.at + e] = sum.element[e];
    }
}

template <typename T>
static struct operand operand_of(const struct gm_view &view, const gm_addition<T> &sum)
{
    constexpr uint64_t N = gm_in_piece<T, 16>::count;
    bool in_row = sum.cols == 1 || view.col == 1, whole = sum.cols % N == 0;
    bool rows_join = sum.rows == 1 || view.row == sum.cols;
    bool matrices_join = sum.batch == 1 || view.batch == sum.rows * sum.cols;

    if (in_row && rows_join && matrices_join)
        return {view, AS_RESULT};
    if (whole && view.col == 1 && view.row % N == 0 && view.batch % N == 0)
        return {view, BY_PIECES};
    return {view, whole && view.col == 0 ? ONE_ELEMENT : BY_ELEMENTS};
}

extern "C" enum gm_status GM_ENTRY(add_vectorized)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_addition<T> sum = gm_addition_of<T>(op);
        uint64_t count = sum.batch * sum.rows * sum.cols;
        struct operand a = operand_of(sum.a, sum), b = operand_of(sum.b, sum);

        return gm_slices(gm_pieces(count, THREADS * gm_in_piece<T, 16>::count), GM_GRID_X_MAX,
                         [&](uint64_t first, uint64_t blocks) {
                             return gm_launch(exec, add_vectorized<T>, dim3((unsigned)blocks),
                                              dim3(THREADS), 0, a, b, sum.result, sum.batch,
                                              sum.rows, sum.cols, first);
                         });
    });
}
