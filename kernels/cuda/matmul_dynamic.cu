/*
 * matmul_dynamic.cu - the tile's width chosen at run time, for the device and for the shape.
 *
 * The difference to matmul_tiled: the width is an argument, and the tiles lie in dynamic shared
 * memory, whose size the launch states. A wide tile loads less: global loads fall by its width. But
 * it makes large blocks: of width 32, 1024 threads and two tiles. Large blocks fill a
 * multiprocessor badly where its threads or its shared memory are not a multiple of theirs (of 1536
 * threads a third stays idle), and a small result has fewer of them than the device has
 * multiprocessors. So each width is given a mark, and the best is taken:
 *
 *     width x occupancy (the part of a multiprocessor's warps that such blocks can fill)
 *           x the part of the multiprocessors that get a block at all
 *
 * Cost, elements of 4 bytes, width w: 2 m n k / w elements loaded, 4 sectors a request at each
 * width (a warp loads 32 / w rows of w neighbours). Shared memory: 1 wavefront a read. A step costs
 * more instructions than tiled's: the compiler does not know the width, so it cannot unroll the
 * loop, and it must compute addresses that it knew before.
 *
 * When it wins: it was predicted to for results of fewer tiles of 32 x 32 than there are
 * multiprocessors. Measured on an H200 it does on one such shape of many: what the unknown width
 * costs is more than what idle multiprocessors do.
 *
 * Source: D. Kirk, W. Hwu, "Programming Massively Parallel Processors", on memory as a limit to
 * parallelism; the mark is this file's own.
 */
#include "kernels/cuda/product.h"
#include "kernels/cuda/tiles.h"

#define WIDEST 32u
#define NARROWEST 8u

template <typename T>
static __global__ void __launch_bounds__(WIDEST *WIDEST)
    matmul_dynamic(gm_product<T> p, unsigned width, gm_origin origin)
{
    gm_sum<T> *tile_a = gm_dynamic_shared<gm_sum<T>>();
    gm_sum<T> *tile_b = tile_a + width * width;
    unsigned x = threadIdx.x, y = threadIdx.y;
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * width + y;
    uint64_t col = origin.col + (uint64_t)blockIdx.x * width + x;
    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    gm_sum<T> sum = 0;

    for (uint64_t first = 0; first < p.k; first += width) {
        bool in_a = row < p.m && first + x < p.k;
        bool in_b = first + y < p.k && col < p.n;
        tile_a[y * width + x] = in_a ? gm_load(a[(first + x) * p.a.col]) : gm_sum<T>(0);
        tile_b[y * width + x] = in_b ? gm_load(b[(first + y) * p.b.row]) : gm_sum<T>(0);
        __syncthreads();
        for (unsigned i = 0; i < width; i++)
            sum += tile_a[y * width + i] * tile_b[i * width + x];
        __syncthreads();
    }
    if (row < p.m && col < p.n) {
        T value = gm_finished(p, matrix, row, col, sum);
        p.result[(matrix * p.m + row) * p.n + col] = value;
    }
}

static size_t shared_bytes(unsigned width, size_t element)
{
    return 2 * element * width * width;
}

/* The mark of the head comment; 0 for tiles that the device has no room for. */
template <typename T>
static double mark_of(const struct gm_gpu *gpu, const gm_product<T> &p, unsigned width)
{
    struct gm_occupancy occupancy =
        gm_gpu_occupancy(gpu, width * width, shared_bytes(width, sizeof(gm_sum<T>)), 0);
    double tiles =
        (double)p.batch * (double)gm_ceil_div(p.m, width) * (double)gm_ceil_div(p.n, width);
    double busy = tiles < gpu->sms ? tiles / gpu->sms : 1;

    return width * occupancy.percent * busy;
}

template <typename T> static unsigned choose_width(const struct gm_gpu *gpu, const gm_product<T> &p)
{
    unsigned best = NARROWEST;

    for (unsigned width = 2 * NARROWEST; width <= WIDEST; width *= 2) {
        if (mark_of(gpu, p, width) >= mark_of(gpu, p, best))
            best = width;
    }
    return best;
}

extern "C" enum gm_status GM_ENTRY(matmul_dynamic)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        unsigned width = choose_width(gm_gpu_of(exec), p);
        size_t shared = shared_bytes(width, sizeof(gm_sum<T>));

        return gm_tiles(p.batch, p.m, p.n, width, width, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, matmul_dynamic<T>, grid, dim3(width, width), shared, p, width,
                             origin);
        });
    });
}
