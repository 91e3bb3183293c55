/*
 * matmul_openblas.c - multiplies with OpenBLAS, for f32 and f64: the baseline for blocked.
 *
 * OpenBLAS runs on one thread; our threads call it for one tile of the result each. Its own threads
 * would compete with ours for the cores, would not stop when told to, and would divide the work,
 * and so round the sums, by their number. A long k is computed in k-tiles, because a call cannot be
 * interrupted. The tiles accumulate in the result itself, so beta * c is written there first.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/backend/facts.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/product.h"
#include "kernels/device_facts.h"
#include "kernels/variant.h"

#include <cblas.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* As variants.def has them. */
gm_accepts_fn gm_cpu_openblas_accepts;
gm_kernel_fn gm_cpu_matmul_openblas;

#define K_TILE_FLOPS 0x1p30 /* per call: some 50 ms if OpenBLAS is slow */
#define K_TILE_MIN ((uint64_t)1024)

struct job {
    struct gm_product x;
    struct gm_exec *exec;
    uint64_t k_tile; /* steps of k in a call */
    struct gm_grid grid;
};

/* The instruction set of the kernels that OpenBLAS has for a core's name. */
static enum gm_isa core_isa(const char *core)
{
    static const struct {
        const char *core;
        enum gm_isa isa;
    } cores[] = {
        {"SkylakeX", GM_ISA_AVX512},
        {"Cooperlake", GM_ISA_AVX512},
        {"SapphireRapids", GM_ISA_AVX512},
        {"Haswell", GM_ISA_AVX2},
        {"Zen", GM_ISA_AVX2},
        {"Excavator", GM_ISA_AVX2},
    };
    for (size_t i = 0; i < sizeof(cores) / sizeof(cores[0]); i++) {
        if (strcasecmp(core, cores[i].core) == 0)
            return cores[i].isa;
    }
    return GM_ISA_BASE;
}

/* OpenBLAS starts threads when it is loaded, before the program can give up any right. They would
 * keep all rights, and nobody uses them. A build on OpenMP has none of its own. */
int blas_thread_shutdown_(void) __attribute__((weak));

static void end_own_threads(void)
{
    if (blas_thread_shutdown_ && openblas_get_parallel() == OPENBLAS_THREAD)
        blas_thread_shutdown_();
}

bool gm_openblas_open(enum gm_isa isa, char *text, size_t size)
{
    const char *config = openblas_get_config(), *core = openblas_get_corename();
    const char *version = strchr(config, ' ');
    size_t length = strlen(config);

    openblas_set_num_threads(1);
    end_own_threads();
    if (version) /* it begins "OpenBLAS 0.3.21 ..." */
        length = (size_t)(version - config) + 1 + strcspn(version + 1, " ");
    snprintf(text, size, "%.*s (%s)", (int)length, config, core);
    return core_isa(core) >= isa;
}

enum gm_status gm_cpu_openblas_accepts(const struct gm_op *op, const struct gm_device_facts *facts,
                                       struct gm_error *err)
{
    (void)facts;
    for (unsigned i = 0; i < 2; i++) {
        const struct gm_matrix *x = &op->operand[i];
        if (x->rows > INT_MAX || x->cols > INT_MAX)
            return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                           "kernel \"openblas\" takes rows and columns of at most %d elements",
                           INT_MAX);
    }
    return GM_OK;
}

/* The transpose flag and leading dimension of a view of rows x cols. BLAS checks the leading
 * dimension even if there is one row. */
static CBLAS_TRANSPOSE describe(const struct gm_view *view, uint64_t rows, uint64_t cols, int *ld)
{
    bool plain = view->col == 1;
    uint64_t width = plain ? cols : rows, stride = plain ? view->row : view->col;

    *ld = (int)(stride > width ? stride : width);
    return plain ? CblasNoTrans : CblasTrans;
}

static char *result_at(const struct gm_product *x, const struct gm_tile *tile, uint64_t i)
{
    return (char *)x->op.result.data + ((tile->matrix * x->m + tile->i + i) * x->n + tile->j) *
                                           gm_dtype_size(x->op.result.dtype);
}

/* One k-tile of one tile: result = alpha * a b + beta * result. */
static void call(const struct gm_product *x, const struct gm_tile *tile, uint64_t p, uint64_t k,
                 double beta)
{
    size_t size = gm_dtype_size(x->op.result.dtype);
    int lda, ldb, ldc = (int)x->n, h = (int)tile->h, w = (int)tile->w, depth = (int)k;
    CBLAS_TRANSPOSE transa = describe(&x->a, tile->h, k, &lda);
    CBLAS_TRANSPOSE transb = describe(&x->b, k, tile->w, &ldb);
    const void *a = gm_product_at(&x->a, size, tile->matrix, tile->i, p);
    const void *b = gm_product_at(&x->b, size, tile->matrix, p, tile->j);
    void *result = result_at(x, tile, 0);

    if (x->op.result.dtype == GM_F32)
        cblas_sgemm(CblasRowMajor, transa, transb, h, w, depth, (float)x->op.alpha.real, a, lda, b,
                    ldb, (float)beta, result, ldc);
    else
        cblas_dgemm(CblasRowMajor, transa, transb, h, w, depth, x->op.alpha.real, a, lda, b, ldb,
                    beta, result, ldc);
}

/* Writes beta * c, or zeros, to a tile of the result if there are no sums. Otherwise writes c
 * alone, and the first k-tile applies beta. */
static void fill(const struct gm_product *x, const struct gm_tile *tile)
{
    size_t size = gm_dtype_size(x->op.result.dtype);

    for (uint64_t i = 0; i < tile->h; i++) {
        char *to = result_at(x, tile, i);
        if (!x->adds) {
            memset(to, 0, tile->w * size);
            continue;
        }
        memcpy(to, gm_product_at(&x->c, size, tile->matrix, tile->i + i, tile->j), tile->w * size);
        for (uint64_t j = 0; j < tile->w && x->k == 0; j++) {
            if (x->op.result.dtype == GM_F32)
                ((float *)(void *)to)[j] *= (float)x->op.beta.real;
            else
                ((double *)(void *)to)[j] *= x->op.beta.real;
        }
    }
}

static void multiply_tile(const struct job *job, const struct gm_tile *tile)
{
    const struct gm_product *x = &job->x;

    if (x->adds || x->k == 0)
        fill(x, tile);
    for (uint64_t p = 0; p < x->k && !gm_exec_stopped(job->exec); p += job->k_tile) {
        double beta = p > 0 ? 1 : x->adds ? x->op.beta.real : 0;
        call(x, tile, p, x->k - p < job->k_tile ? x->k - p : job->k_tile, beta);
    }
}

static void multiply_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    uint64_t end = gm_grid_chunk_end(&job->grid, chunk);

    (void)thread;
    /* A build of OpenBLAS on OpenMP keeps that number per thread. */
    if (openblas_get_parallel() == OPENBLAS_OPENMP)
        openblas_set_num_threads(1);
    for (uint64_t index = chunk * job->grid.per_chunk; index < end; index++) {
        struct gm_tile tile = gm_grid_tile(&job->grid, index);
        multiply_tile(job, &tile);
    }
}

/* Steps of k in a call. */
static uint64_t k_tile_of(const struct gm_grid *grid)
{
    double k_tile = K_TILE_FLOPS / (2.0 * (double)grid->tile_rows * (double)grid->tile_cols);

    return k_tile >= (double)INT_MAX     ? INT_MAX
           : k_tile < (double)K_TILE_MIN ? K_TILE_MIN
                                         : (uint64_t)k_tile;
}

enum gm_status gm_cpu_matmul_openblas(const struct gm_op *op, struct gm_exec *exec)
{
    struct job job = {.x = gm_product_make(op, true), .exec = exec};

    job.grid = gm_grid_openblas(job.x.batch, job.x.m, job.x.n, job.x.k);
    job.k_tile = k_tile_of(&job.grid);
    return gm_pool_run(exec->pool, job.grid.chunks, exec->stop, multiply_chunk, &job)
               ? GM_OK
               : GM_CANCELLED;
}
