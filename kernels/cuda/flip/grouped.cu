/*
 * grouped.cu - flips matrices of many operations in one launch, where they are.
 *
 * One block flips some whole rows, or a part of a long one: what it reads is one span, and what it
 * writes another. Both are moved by whole vectors of 16 bytes, with shared memory between them.
 *
 * Cost: each element crosses the link to the host's memory once each way.
 * When it wins: small matrices, whose launch and copies would take longer (choose/grouped.c).
 */
#include "kernels/cuda/lib/group.h"
#include "kernels/cuda/lib/region.h"

#define THREADS 256u
#define SPAN_BYTES 8192u

template <typename T> struct problem {
    const T *in;
    T *out;
    unsigned rows, cols;    /* of all matrices of the stack */
    unsigned height, parts; /* rows of a block; blocks of a row */
};

template <typename T> constexpr unsigned SPAN = SPAN_BYTES / sizeof(T);

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    flip_grouped(const __grid_constant__ gm_group<problem<T>> group)
{
    constexpr unsigned V = gm_per_vec<T, 16>::count;
    __shared__ T span[SPAN<T>];
    __shared__ gm_elements<T, 16> room[gm_region_room(1, SPAN<T>, V)];

    gm_group_each(group, [&](const problem<T> &p, unsigned index) {
        unsigned part = index / p.parts;
        unsigned row = part * p.height, col = (index - part * p.parts) * SPAN<T>;
        unsigned rows = min(p.height, p.rows - row), cols = min(SPAN<T>, p.cols - col);
        T *out = p.out + row * p.cols + (p.cols - col - cols);
        unsigned begin = row * p.cols + col;
        gm_region<const T> from(p.in + begin, rows, cols, p.cols, p.rows * p.cols - begin);

        gm_region_fetch(from, threadIdx.x, THREADS, room);
        __pipeline_wait_prior(0);
        gm_region_put(
            from, threadIdx.x, THREADS, room,
            [&](unsigned y, unsigned x, const gm_elements<T, 16> &elements) {
#pragma unroll
                for (unsigned e = 0; e < V; e++)
                    span[y * cols + x + e] = elements.element[e];
            },
            [&](unsigned y, unsigned x, T element) { span[y * cols + x] = element; });
        __syncthreads();
        gm_region_store(
            gm_region<T>(out, rows, cols, p.cols), threadIdx.x, THREADS,
            [&](unsigned y, unsigned x) {
                gm_elements<T, 16> elements;
#pragma unroll
                for (unsigned e = 0; e < V; e++)
                    elements.element[e] = span[y * cols + cols - 1 - x - e];
                return elements;
            },
            [&](unsigned y, unsigned x) { return span[y * cols + cols - 1 - x]; });
    });
}

GM_KERNEL(flip_grouped)
{
    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        return gm_group_launch(
            op, exec, flip_grouped<T>, THREADS, SPAN_BYTES, 0,
            [](const struct gm_op *each, problem<T> *ret) {
                unsigned rows = (unsigned)(each->result.batch * each->result.rows);
                unsigned cols = (unsigned)each->result.cols;
                unsigned height = cols < SPAN<T> ? SPAN<T> / cols : 1;
                unsigned parts = (unsigned)gm_ceil_div(cols, SPAN<T>);
                *ret = {gm_in<T>(each, 0), gm_out<T>(each), rows, cols, height, parts};
                return (unsigned)gm_ceil_div(rows, height) * parts;
            });
    });
}
