/*
 * flip_vector.c - reverses rows in vector code, on all threads.
 *
 * Unlike naive, it loads whole vectors and reverses them in registers. A tile of rows is collected
 * in a small buffer; results larger than the cache are stored past it (stream.h).
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/stream.h"
#include "kernels/variant.h"

gm_kernel_fn gm_cpu_flip_vector; /* as variants.def has it */

#define TILE_BYTES 8192u

typedef struct {
    uint64_t half[2];
} element16;

/* Reverses each of `rows` contiguous rows into contiguous rows. */
typedef void flip_fn(void *to, const void *from, uint64_t rows, uint64_t cols);

/* Always inlined, so that rows of a few elements, whose number is known there, are one loop. */
#define ROWS(name, type)                                                                           \
    static inline __attribute__((always_inline)) void name(                                        \
        type *restrict to, const type *restrict from, uint64_t rows, uint64_t cols)                \
    {                                                                                              \
        for (uint64_t i = 0; i < rows; i++, to += cols, from += cols) {                            \
            for (uint64_t j = 0; j < cols; j++)                                                    \
                to[j] = from[cols - 1 - j];                                                        \
        }                                                                                          \
    }

ROWS(rows1, uint8_t)
ROWS(rows2, uint16_t)
ROWS(rows4, uint32_t)
ROWS(rows8, uint64_t)
ROWS(rows16, element16)

#define FLIP(name, target, type, rows_of)                                                          \
    target static void name(void *to, const void *from, uint64_t rows, uint64_t cols)              \
    {                                                                                              \
        if (cols == 2)                                                                             \
            rows_of((type *)to, (const type *)from, rows, 2);                                      \
        else if (cols == 3)                                                                        \
            rows_of((type *)to, (const type *)from, rows, 3);                                      \
        else if (cols == 4)                                                                        \
            rows_of((type *)to, (const type *)from, rows, 4);                                      \
        else                                                                                       \
            rows_of((type *)to, (const type *)from, rows, cols);                                   \
    }

#define FLIP_ALL(suffix, target)                                                                   \
    FLIP(flip1_##suffix, target, uint8_t, rows1)                                                   \
    FLIP(flip2_##suffix, target, uint16_t, rows2)                                                  \
    FLIP(flip4_##suffix, target, uint32_t, rows4)                                                  \
    FLIP(flip8_##suffix, target, uint64_t, rows8)                                                  \
    FLIP(flip16_##suffix, target, element16, rows16)

FLIP_ALL(base, )
#if defined(__x86_64__)
FLIP_ALL(avx2, GM_TARGET_AVX2)
FLIP_ALL(avx512, GM_TARGET_AVX512)
#endif

#define ROW(isa, suffix)                                                                           \
    [isa] = {                                                                                      \
        [1] = flip1_##suffix, [2] = flip2_##suffix,   [4] = flip4_##suffix,                        \
        [8] = flip8_##suffix, [16] = flip16_##suffix,                                              \
    }

/* By the bytes of an element. */
static flip_fn *const flip[GM_ISA_COUNT][17] = {
    ROW(GM_ISA_BASE, base),
#if defined(__x86_64__)
    ROW(GM_ISA_AVX2, avx2),
    ROW(GM_ISA_AVX512, avx512),
#endif
};

struct job {
    char *result;
    const char *a;
    struct gm_exec *exec;
    flip_fn *flip;
    size_t element;
    uint64_t cols;
    struct gm_grid grid;
    bool stream;
};

_Static_assert(TILE_BYTES <= GM_CPU_SCRATCH, "it is what a thread has");

static void flip_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    char *buffer = gm_pool_scratch(job->exec->pool, thread);
    uint64_t end = gm_grid_chunk_end(&job->grid, chunk);

    for (uint64_t index = chunk * job->grid.per_chunk; index < end; index++) {
        /* A tile is several whole rows, or part of one row: it is contiguous. */
        struct gm_tile tile = gm_grid_tile(&job->grid, index);
        uint64_t first = tile.i * job->cols;
        const char *from = job->a + (first + job->cols - tile.j - tile.w) * job->element;
        char *to = job->result + (first + tile.j) * job->element;
        job->flip(job->stream ? buffer : to, from, tile.h, tile.w);
        if (job->stream)
            gm_stream(to, buffer, tile.h * tile.w * job->element);
    }
    if (job->stream)
        gm_stream_end();
}

enum gm_status gm_cpu_flip_vector(const struct gm_op *op, struct gm_exec *exec)
{
    const struct gm_matrix *a = &op->operand[0];
    size_t size = gm_dtype_size(a->dtype);
    uint64_t area = TILE_BYTES / size, all_rows = a->batch * a->rows;
    uint64_t cols = a->cols < area ? a->cols : area;
    uint64_t rows = all_rows < area / cols ? all_rows : area / cols;
    struct job job = {
        .result = op->result.data,
        .a = a->data,
        .exec = exec,
        .flip = flip[exec->isa][size],
        .element = size,
        .cols = a->cols,
        .grid = gm_grid_make(1, all_rows, a->cols, rows, cols, (double)(rows * cols * size),
                             (double)GM_FLIP_CHUNK),
        .stream = gm_matrix_bytes(&op->result) >= GM_STREAM_MIN,
    };

    return gm_pool_run(exec->pool, job.grid.chunks, exec->stop, flip_chunk, &job) ? GM_OK
                                                                                  : GM_CANCELLED;
}
