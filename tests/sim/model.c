/* model.c - kernels by hand. Names are those of the kernels' files. */
#include "model.h"

#include <string.h>

/* ---- Warps ---------------------------------------------------------------------------------- */

/* A warp of a block: where its lanes are. */
struct warp {
    struct gm_access_totals *totals;
    unsigned bytes;                   /* of an element */
    bool there[GM_WARP];              /* lanes beyond the block's end are not */
    uint64_t x[GM_WARP], y[GM_WARP];  /* threadIdx */
    uint64_t block_x, block_y, width; /* blockIdx, blockDim.x */
};

typedef void warp_fn(struct warp *warp, const struct gm_op *op);

static uint64_t pieces(uint64_t total, uint64_t piece)
{
    return (total + piece - 1) / piece;
}

/* Calls fn for each warp of a grid. */
static void each_warp(struct gm_access_totals *totals, const struct gm_op *op, uint64_t across,
                      uint64_t down, unsigned width, unsigned height, warp_fn *fn)
{
    for (uint64_t block = 0; block < across * down; block++) {
        for (unsigned first = 0; first < width * height; first += GM_WARP) {
            struct warp warp = {.totals = totals,
                                .bytes = (unsigned)gm_dtype_size(op->result.dtype),
                                .block_x = block % across,
                                .block_y = block / across,
                                .width = width};
            for (unsigned lane = 0; lane < GM_WARP; lane++) {
                warp.there[lane] = first + lane < width * height;
                warp.x[lane] = (first + lane) % width;
                warp.y[lane] = (first + lane) / width;
            }
            fn(&warp, op);
        }
    }
}

/* One instruction: for each lane l, whether it takes part and where. */
#define REQUEST(warp, what, size, takes_part, where)                                               \
    do {                                                                                           \
        struct model_request request = {.kind = (what), .bytes = (size)};                          \
        for (unsigned l = 0; l < GM_WARP; l++) {                                                   \
            request.active[l] = (warp)->there[l] && (takes_part);                                  \
            request.address[l] = request.active[l] ? (uint64_t)(where) : 0;                        \
        }                                                                                          \
        model_add((warp)->totals, &request);                                                       \
    } while (0)

/* ---- Moves ---------------------------------------------------------------------------------- */

static void copy_direct(struct warp *w, const struct gm_op *op)
{
    uint64_t n = gm_matrix_elements(&op->result);
#define I (w->block_x * 256 + w->x[l])
    REQUEST(w, GM_GLOBAL_LOAD, w->bytes, I < n, w->bytes * I);
    REQUEST(w, GM_GLOBAL_STORE, w->bytes, I < n, w->bytes * I);
#undef I
}

/* Small enough that no thread moves more than one piece; then the last bytes one by one. */
static void copy_vector(struct warp *w, const struct gm_op *op)
{
    uint64_t bytes = gm_matrix_bytes(&op->result), n = bytes / 16;
#define I (w->block_x * 256 + w->x[l])
    REQUEST(w, GM_GLOBAL_LOAD, 16, I < n, 16 * I);
    REQUEST(w, GM_GLOBAL_STORE, 16, I < n, 16 * I);
    REQUEST(w, GM_GLOBAL_LOAD, 1, I < bytes % 16, 16 * n + I);
    REQUEST(w, GM_GLOBAL_STORE, 1, I < bytes % 16, 16 * n + I);
#undef I
}

static void transpose_naive(struct warp *w, const struct gm_op *op)
{
    uint64_t rows = op->operand[0].rows, cols = op->operand[0].cols;
#define ROW (8 * w->block_y + w->y[l])
#define COL (32 * w->block_x + w->x[l])
    REQUEST(w, GM_GLOBAL_LOAD, w->bytes, ROW < rows && COL < cols, w->bytes * (ROW * cols + COL));
    REQUEST(w, GM_GLOBAL_STORE, w->bytes, ROW < rows && COL < cols, w->bytes * (COL * rows + ROW));
#undef ROW
#undef COL
}

/* Through a tile whose rows are `pitch` elements. */
static void transpose_tile(struct warp *w, const struct gm_op *op, uint64_t pitch)
{
    uint64_t rows = op->operand[0].rows, cols = op->operand[0].cols, s = w->bytes;

    for (uint64_t round = 0; round < 32; round += 8) {
#define Y (w->y[l] + round)
#define ROW (32 * w->block_y + Y)
#define COL (32 * w->block_x + w->x[l])
        REQUEST(w, GM_GLOBAL_LOAD, w->bytes, ROW < rows && COL < cols, s * (ROW * cols + COL));
        REQUEST(w, GM_SHARED_STORE, w->bytes, ROW < rows && COL < cols, s * (Y * pitch + w->x[l]));
#undef ROW
#undef COL
    }
    for (uint64_t round = 0; round < 32; round += 8) {
#define ROW (32 * w->block_y + w->x[l])
#define COL (32 * w->block_x + Y)
        REQUEST(w, GM_SHARED_LOAD, w->bytes, ROW < rows && COL < cols, s * (w->x[l] * pitch + Y));
        REQUEST(w, GM_GLOBAL_STORE, w->bytes, ROW < rows && COL < cols, s * (COL * rows + ROW));
#undef ROW
#undef COL
#undef Y
    }
}

static void transpose_tiled(struct warp *w, const struct gm_op *op)
{
    transpose_tile(w, op, 32);
}

static void transpose_padded(struct warp *w, const struct gm_op *op)
{
    transpose_tile(w, op, 33);
}

/* A block as wide as a row of few elements needs, with as many rows as 256 threads have. */
static void block_of_rows(uint64_t rows, uint64_t cols, unsigned *width, unsigned *height)
{
    *width = *height = 1;
    while (*width < cols && *width < 256)
        *width *= 2;
    while (*height < rows && *width * *height < 256)
        *height *= 2;
}

static void flip_shared(struct warp *w, const struct gm_op *op)
{
    uint64_t rows = op->result.rows, cols = op->result.cols, s = w->bytes;
    unsigned width, height;

    block_of_rows(rows, cols, &width, &height);
    uint64_t first = w->block_x * width, left = cols - first, length = left < width ? left : width;
#define ROW (w->block_y * height + w->y[l])
#define INSIDE (ROW < rows && w->x[l] < length)
    REQUEST(w, GM_GLOBAL_LOAD, w->bytes, INSIDE, s * (ROW * cols + first + w->x[l]));
    REQUEST(w, GM_SHARED_STORE, w->bytes, INSIDE, s * (w->y[l] * width + w->x[l]));
    REQUEST(w, GM_SHARED_LOAD, w->bytes, INSIDE, s * (w->y[l] * width + length - 1 - w->x[l]));
    REQUEST(w, GM_GLOBAL_STORE, w->bytes, INSIDE, s * (ROW * cols + left - length + w->x[l]));
#undef ROW
#undef INSIDE
}

/* ---- Sums ----------------------------------------------------------------------------------- */

/* Whether an operand's elements are in step with the result's, all along: it has as many, or one.
 */
static bool in_step(const struct gm_op *op, unsigned index)
{
    uint64_t elements = gm_matrix_elements(&op->operand[index]);

    return elements == gm_matrix_elements(&op->result) || elements == 1;
}

/* Where both operands are, all rows are done as one. */
static void sum_shape(const struct gm_op *op, uint64_t *rows, uint64_t *cols)
{
    bool one = in_step(op, 0) && in_step(op, 1);

    *rows = one ? 1 : op->result.rows;
    *cols = one ? gm_matrix_elements(&op->result) : op->result.cols;
}

static void add_direct(struct warp *w, const struct gm_op *op)
{
    uint64_t rows, cols, s = w->bytes;
    unsigned width, height;

    sum_shape(op, &rows, &cols);
    block_of_rows(rows, cols, &width, &height);
#define ROW (w->block_y * height + w->y[l])
#define COL (w->block_x * width + w->x[l])
    for (int i = 0; i < 2; i++) {
        const struct gm_matrix *x = &op->operand[i];
        bool one_row = x->rows == 1 && op->result.rows > 1;
        bool one_col = x->cols == 1 && op->result.cols > 1;
        uint64_t down = one_row ? 0 : x->cols;
        uint64_t along = one_col || gm_matrix_elements(x) == 1 ? 0 : 1;
        REQUEST(w, GM_GLOBAL_LOAD, w->bytes, ROW < rows && COL < cols,
                s * (ROW * down + COL * along));
    }
    REQUEST(w, GM_GLOBAL_STORE, w->bytes, ROW < rows && COL < cols, s * (ROW * cols + COL));
#undef ROW
#undef COL
}

static void add_float3(struct warp *w, const struct gm_op *op)
{
    for (uint64_t member = 0; member < 3; member++) {
#define POINT (w->block_x * 256 + w->x[l])
#define AT 12 * POINT + 4 * member
        REQUEST(w, GM_GLOBAL_LOAD, 4, POINT < op->result.rows, AT);
        REQUEST(w, GM_GLOBAL_LOAD, 4, POINT < op->result.rows, AT);
        REQUEST(w, GM_GLOBAL_STORE, 4, POINT < op->result.rows, AT);
#undef AT
    }
}

static void add_float3_aligned(struct warp *w, const struct gm_op *op)
{
    uint64_t points = op->result.rows;

    /* b's begin where a's end: of an odd number of points in the middle of a sector. */
    REQUEST(w, GM_GLOBAL_LOAD, 16, POINT < points, 16 * POINT);
    REQUEST(w, GM_GLOBAL_LOAD, 16, POINT < points, 16 * (points + POINT));
    REQUEST(w, GM_GLOBAL_STORE, 16, POINT < op->result.rows, 16 * POINT);
}

static void add_float3_soa(struct warp *w, const struct gm_op *op)
{
    for (int member = 0; member < 3; member++) {
        REQUEST(w, GM_GLOBAL_LOAD, 4, POINT < op->result.rows, 4 * POINT);
        REQUEST(w, GM_GLOBAL_LOAD, 4, POINT < op->result.rows, 4 * POINT);
        REQUEST(w, GM_GLOBAL_STORE, 4, POINT < op->result.rows, 4 * POINT);
#undef POINT
    }
}

static void add_float3_staged(struct warp *w, const struct gm_op *op)
{
    uint64_t first = 3 * 256 * w->block_x, rest = 3 * op->result.rows - first;
    uint64_t run = rest < 768 ? rest : 768;

#define I (w->x[l] + round)
    for (uint64_t round = 0; round < 768; round += 256) {
        for (int i = 0; i < 2; i++) {
            REQUEST(w, GM_GLOBAL_LOAD, 4, I < run, 4 * (first + I));
            REQUEST(w, GM_SHARED_STORE, 4, I < run, 4 * I);
        }
    }
    for (uint64_t member = 0; member < 3; member++) {
        for (int i = 0; i < 2; i++)
            REQUEST(w, GM_SHARED_LOAD, 4, 3 * w->x[l] < run, 4 * (3 * w->x[l] + member));
        REQUEST(w, GM_SHARED_STORE, 4, 3 * w->x[l] < run, 4 * (3 * w->x[l] + member));
    }
    for (uint64_t round = 0; round < 768; round += 256) {
        REQUEST(w, GM_SHARED_LOAD, 4, I < run, 4 * I);
        REQUEST(w, GM_GLOBAL_STORE, 4, I < run, 4 * (first + I));
    }
#undef I
}

/* ---- Products ---------------------------------------------------------------------------------
 */

/* Element (i, j) of op(x), in bytes. */
static uint64_t element(const struct gm_op *op, unsigned index, uint64_t i, uint64_t j)
{
    bool trans = index == 0 ? op->transa : op->transb;
    uint64_t cols = op->operand[index].cols;

    return gm_dtype_size(op->result.dtype) * (trans ? j * cols + i : i * cols + j);
}

static void matmul_naive(struct warp *w, const struct gm_op *op)
{
    uint64_t m = gm_op_m(op), n = gm_op_n(op), k = gm_op_k(op);

#define ROW (32 * w->block_y + w->y[l])
#define COL (32 * w->block_x + w->x[l])
    for (uint64_t i = 0; i < k; i++) {
        REQUEST(w, GM_GLOBAL_LOAD, w->bytes, ROW < m && COL < n, element(op, 0, ROW, i));
        REQUEST(w, GM_GLOBAL_LOAD, w->bytes, ROW < m && COL < n, element(op, 1, i, COL));
    }
    REQUEST(w, GM_GLOBAL_STORE, w->bytes, ROW < m && COL < n, w->bytes * (ROW * n + COL));
#undef ROW
#undef COL
}

/* With tiles of sums' type, which is f32 for f16 and bf16. */
static void matmul_tile(struct warp *w, const struct gm_op *op, uint64_t width)
{
    uint64_t m = gm_op_m(op), n = gm_op_n(op), k = gm_op_k(op);
    unsigned sum = w->bytes < 4 ? 4 : w->bytes;

#define X w->x[l]
#define Y w->y[l]
#define ROW (width * w->block_y + Y)
#define COL (width * w->block_x + X)
    for (uint64_t first = 0; first < k; first += width) {
        REQUEST(w, GM_GLOBAL_LOAD, w->bytes, ROW < m && first + X < k,
                element(op, 0, ROW, first + X));
        REQUEST(w, GM_SHARED_STORE, sum, true, sum * (Y * width + X));
        REQUEST(w, GM_GLOBAL_LOAD, w->bytes, first + Y < k && COL < n,
                element(op, 1, first + Y, COL));
        REQUEST(w, GM_SHARED_STORE, sum, true, sum * (Y * width + X));
        for (uint64_t i = 0; i < width; i++) {
            REQUEST(w, GM_SHARED_LOAD, sum, true, sum * (Y * width + i));
            REQUEST(w, GM_SHARED_LOAD, sum, true, sum * (i * width + X));
        }
    }
    REQUEST(w, GM_GLOBAL_STORE, w->bytes, ROW < m && COL < n, w->bytes * (ROW * n + COL));
#undef X
#undef Y
#undef ROW
#undef COL
}

static void matmul_tiled(struct warp *w, const struct gm_op *op)
{
    matmul_tile(w, op, 32);
}

static void matmul_dynamic_tile(struct warp *w, const struct gm_op *op)
{
    matmul_tile(w, op, w->width);
}

/* A model, and the grid and the blocks of its kernel. */
struct model {
    const char *name;
    warp_fn *fn;
    uint64_t across, down;
    unsigned width, height;
};

/* False behind the last. */
static bool model_at(size_t i, const struct gm_op *op, unsigned tile, struct model *ret)
{
    uint64_t rows = op->operand[0].rows, cols = op->operand[0].cols, sum_rows, sum_cols;
    uint64_t m = op->result.rows, n = op->result.cols;
    unsigned width, height;
    const struct model models[] = {
        {"copy_direct", copy_direct, pieces(rows * cols, 256), 1, 256, 1},
        {"copy_vector", copy_vector, pieces(gm_matrix_bytes(&op->result), 4096), 1, 256, 1},
        {"transpose_naive", transpose_naive, pieces(cols, 32), pieces(rows, 8), 32, 8},
        {"transpose_tiled", transpose_tiled, pieces(cols, 32), pieces(rows, 32), 32, 8},
        {"transpose_padded", transpose_padded, pieces(cols, 32), pieces(rows, 32), 32, 8},
        {"flip_shared", flip_shared, 0, 0, 0, 0},
        {"add_direct", add_direct, 0, 0, 0, 0},
        {"add_grid_stride", add_direct, 0, 0, 0, 0},
        {"add_float3", add_float3, pieces(rows, 256), 1, 256, 1},
        {"add_float3_staged", add_float3_staged, pieces(rows, 256), 1, 256, 1},
        {"add_float3_soa", add_float3_soa, pieces(rows, 256), 1, 256, 1},
        {"add_float3_aligned", add_float3_aligned, pieces(rows, 256), 1, 256, 1},
        {"matmul_naive", matmul_naive, pieces(n, 32), pieces(m, 32), 32, 32},
        {"matmul_grid_stride", matmul_naive, pieces(n, 32), pieces(m, 32), 32, 32},
        {"matmul_tiled", matmul_tiled, pieces(n, 32), pieces(m, 32), 32, 32},
        {"matmul_dynamic_tile", matmul_dynamic_tile, pieces(n, tile), pieces(m, tile), tile, tile},
    };

    if (i >= sizeof(models) / sizeof(models[0]))
        return false;
    *ret = models[i];
    if (ret->fn == flip_shared || ret->fn == add_direct) {
        sum_shape(op, &sum_rows, &sum_cols);
        sum_rows = ret->fn == flip_shared ? rows : sum_rows;
        sum_cols = ret->fn == flip_shared ? cols : sum_cols;
        block_of_rows(sum_rows, sum_cols, &width, &height);
        ret->width = width;
        ret->height = height;
        ret->across = pieces(sum_cols, width);
        ret->down = pieces(sum_rows, height);
    }
    return true;
}

const char *model_name(size_t i)
{
    const struct gm_op any = {.result = {.dtype = GM_F32, .batch = 1, .rows = 1, .cols = 1},
                              .operand = {{.dtype = GM_F32, .batch = 1, .rows = 1, .cols = 1}}};
    struct model model;

    return model_at(i, &any, 1, &model) ? model.name : NULL;
}

bool model_variant(const char *name, const struct gm_op *op, unsigned tile,
                   struct gm_access_totals *ret)
{
    struct model model;

    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; model_at(i, op, tile, &model); i++) {
        if (strcmp(model.name, name) != 0)
            continue;
        each_warp(ret, op, model.across, model.down, model.width, model.height, model.fn);
        return true;
    }
    return false;
}
