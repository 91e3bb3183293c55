/*
 * dynamic_tile.cu - multiplies as tiled does, with a tile width chosen by device and shape.
 *
 * Unlike in matmul_tiled, the width is a kernel argument, and the tiles lie in dynamic shared
 * memory. Wide tiles load less. But they need large blocks (width 32: 1024 threads): these leave
 * threads of a multiprocessor unused where its thread count is no multiple of theirs, and a small
 * result has too few of them. The width with the best score wins:
 *
 *     width x occupancy x the fraction of multiprocessors that get a block
 *
 * Cost, elements of 4 bytes, width w: 2 M N K / w elements loaded, 4 sectors a request. A step
 * takes more instructions than in tiled: the compiler cannot unroll a loop of unknown length.
 *
 * When it wins: hardly ever. On an H200 it wins on one of many small shapes: the unknown width
 * costs more than idle multiprocessors do.
 * Source: Kirk, Hwu, "Programming Massively Parallel Processors", on memory and parallelism.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

#define WIDEST 32u
#define NARROWEST 8u

template <typename T>
static __global__ void __launch_bounds__(WIDEST *WIDEST)
    matmul_dynamic_tile(gm_product<T> p, unsigned width, gm_origin origin)
{
    gm_acc<T> *tile_a = gm_dynamic_shared<gm_acc<T>>();
    gm_acc<T> *tile_b = tile_a + width * width;
    unsigned x = threadIdx.x, y = threadIdx.y;
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * width + y;
    uint64_t col = origin.col + (uint64_t)blockIdx.x * width + x;
    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    gm_acc<T> sum = 0;

    for (uint64_t first = 0; first < p.K; first += width) {
        bool in_a = row < p.M && first + x < p.K;
        bool in_b = first + y < p.K && col < p.N;
        tile_a[y * width + x] = in_a ? gm_load(a[(first + x) * p.a.col]) : gm_acc<T>(0);
        tile_b[y * width + x] = in_b ? gm_load(b[(first + y) * p.b.row]) : gm_acc<T>(0);
        __syncthreads();
        for (unsigned i = 0; i < width; i++)
            sum += tile_a[y * width + i] * tile_b[i * width + x];
        __syncthreads();
    }
    if (row < p.M && col < p.N) {
        T value = gm_finished(p, matrix, row, col, sum);
        p.result[(matrix * p.M + row) * p.N + col] = value;
    }
}

static size_t shared_bytes(unsigned width, size_t element)
{
    return 2 * element * width * width;
}

/* The score in the head comment; 0 if the tiles do not fit on the device. */
template <typename T>
static double score_of(const struct gm_gpu *gpu, const gm_product<T> &p, unsigned width)
{
    struct gm_occupancy occupancy =
        gm_gpu_occupancy(gpu, width * width, shared_bytes(width, sizeof(gm_acc<T>)), 0);
    double tiles =
        (double)p.batch * (double)gm_ceil_div(p.M, width) * (double)gm_ceil_div(p.N, width);
    double busy = tiles < gpu->sms ? tiles / gpu->sms : 1;

    return width * occupancy.percent * busy;
}

template <typename T> static unsigned choose_width(const struct gm_gpu *gpu, const gm_product<T> &p)
{
    unsigned best = NARROWEST;

    for (unsigned width = 2 * NARROWEST; width <= WIDEST; width *= 2) {
        if (score_of(gpu, p, width) >= score_of(gpu, p, best))
            best = width;
    }
    return best;
}

GM_KERNEL(matmul_dynamic_tile)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        unsigned width = choose_width(gm_gpu_of(exec), p);
        size_t shared = shared_bytes(width, sizeof(gm_acc<T>));

        return gm_tiles(p.batch, p.M, p.N, width, width, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, matmul_dynamic_tile<T>, grid, dim3(width, width), shared, p,
                             width, origin);
        });
    });
}
