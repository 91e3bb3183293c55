/*
 * moves.c - estimates copies, transposes, flips and sums: what they move is what they take.
 */
#include "kernels/choose/estimate.h"

#define WARP 32.0
/* Cycles of a trip to shared memory, and to global memory. */
#define SHARED_TRIP 30.0
#define TRIP 600.0

/* A warp's requests for so many elements, or vectors, whatever their size: what limits is their
 * number. */
static double requests(double elements)
{
    return 128 * elements / WARP;
}

static double elements_of(const struct gm_asked *q)
{
    return (double)gm_matrix_elements(&q->op->result);
}

static double size_of(const struct gm_asked *q)
{
    return (double)gm_dtype_size(q->op->result.dtype);
}

/* A kernel that goes through `elements` of the result, `each` of them a thread, in blocks of
 * `threads`: by `accesses` requests a vector. Where some are not whole vectors, their elements are
 * a trip more. */
static double straight(const struct gm_asked *q, const struct gm_rates *r, double elements,
                       double threads, double each, double accesses, bool whole)
{
    double block = threads * each, bytes = q->bytes;
    struct gm_work w = {.blocks = gm_parts(elements, block),
                        .resident = 2048 / threads,
                        .steps = whole ? 1 : 2,
                        .dram = bytes};

    w.shared = accesses * requests(threads);
    w.l2 = bytes / w.blocks;
    return gm_work_us(q, r, &w);
}

double gm_us_copy_direct(const struct gm_asked *q, const struct gm_rates *r)
{
    return straight(q, r, elements_of(q), 256, 1, 2, true);
}

double gm_us_copy_vector(const struct gm_asked *q, const struct gm_rates *r)
{
    double span = 16 / size_of(q);

    return straight(q, r, elements_of(q), 256, span, 2, fmod(elements_of(q), span) == 0);
}

static double power_above(double x)
{
    return exp2(ceil(log2(x)));
}

/* A thread for each element, in blocks of 256 that are no wider and no higher than needed
 * (gm_block_of_rows). strides: as many blocks as fit go through all. */
static double by_rows(const struct gm_asked *q, const struct gm_rates *r, double batch, double rows,
                      double accesses, bool strides)
{
    double cols = gm_most_of(1, (double)q->op->result.cols);
    double width = gm_least_of(256, power_above(cols));
    double height = gm_least_of(256 / width, power_above(rows)), threads = width * height;
    double tiles = batch * gm_parts(rows, height) * gm_parts(cols, width);
    struct gm_work w = {
        .blocks = tiles, .resident = gm_least_of(32, 2048 / threads), .steps = 1, .dram = q->bytes};

    if (strides) {
        w.blocks = gm_least_of(tiles, q->sms * w.resident);
        w.steps = gm_parts(tiles, w.blocks);
    }
    w.shared = w.steps * accesses * requests(gm_most_of(threads, WARP));
    w.l2 = q->bytes / w.blocks;
    return gm_work_us(q, r, &w);
}

double gm_us_add_direct(const struct gm_asked *q, const struct gm_rates *r)
{
    return by_rows(q, r, (double)q->op->result.batch, (double)q->op->result.rows, 3, false);
}

double gm_us_add_grid_stride(const struct gm_asked *q, const struct gm_rates *r)
{
    return by_rows(q, r, (double)q->op->result.batch, (double)q->op->result.rows, 3, true);
}

double gm_us_add_vectorized(const struct gm_asked *q, const struct gm_rates *r)
{
    double span = 16 / size_of(q), all = elements_of(q);
    bool whole = fmod(all, span) == 0;

    for (unsigned i = 0; i < q->op->operands; i++) /* rows that repeat */
        if ((double)gm_matrix_elements(&q->op->operand[i]) < all)
            whole = whole && fmod((double)q->op->result.cols, span) == 0;
    return straight(q, r, all, 128, span, 3, whole);
}

double gm_us_flip_shared(const struct gm_asked *q, const struct gm_rates *r)
{
    return by_rows(q, r, 1, (double)q->op->result.batch * (double)q->op->result.rows, 4, false);
}

double gm_us_flip_vectorized(const struct gm_asked *q, const struct gm_rates *r)
{
    double span = 16 / size_of(q);

    return straight(q, r, elements_of(q), 128, span, 3,
                    fmod((double)q->op->result.cols, span) == 0);
}

/* ---- Transposes --------------------------------------------------------------------------------
 */

/* The operand: rows x cols of `size` bytes. */
struct matrix {
    double batch, rows, cols, size, bytes;
};

static struct matrix operand_of(const struct gm_asked *q)
{
    const struct gm_matrix *a = &q->op->operand[0];
    double batch = gm_most_of(1, (double)a->batch), rows = gm_most_of(1, (double)a->rows);
    double cols = gm_most_of(1, (double)a->cols);
    double size = size_of(q);

    return (struct matrix){batch, rows, cols, size, batch * rows * cols * size};
}

/* Tiles of height x width elements, `step` rows apart, loaded and stored by `vec` bytes. */
struct tile {
    double height, width, step, vec, threads, resident;
    double conflicts; /* wavefronts of an element of a column */
    double ends;      /* requests for each vector that a tile at the edge stores in parts */
};

static double tile_us(const struct gm_asked *q, const struct gm_rates *r, const struct tile *t)
{
    struct matrix a = operand_of(q);
    double down = gm_parts(a.rows, t->step), across = gm_parts(a.cols, t->width);
    bool several = a.batch * down * across > q->sms;
    double rows = gm_least_of(a.rows, gm_filled(a.rows, t->step, several) * t->height / t->step);
    double cols = gm_filled(a.cols, t->width, several);
    double of_row = a.cols / across * a.size, of_column = a.rows / down * a.size;
    struct gm_work w = {.blocks = a.batch * down * across,
                        .resident = t->resident > 0 ? t->resident : 2048 / t->threads,
                        .steps = 2,
                        .dram = 2 * a.bytes};

    /* lanes beyond the matrix have their turn too */
    double vec = t->vec / a.size, idle = gm_least_of(t->width / vec, WARP);
    double loads = rows * gm_parts(cols / vec, idle) * idle;
    double stores = cols * gm_parts(rows / vec, idle) * idle;
    w.shared = 8 * requests(t->threads) + 2 * requests(loads) + requests(stores) +
               requests(stores) * gm_most_of(1, t->conflicts * rows / 4);
    /* a thread stores its vectors one after the other; those that cross a row's end come in parts
     */
    w.steps += t->width / vec * t->height / t->threads * 4 * SHARED_TRIP / TRIP;
    if (t->step < t->height && fmod(a.cols * a.size, t->vec) != 0)
        w.steps += 1;
    if (t->ends > 0)
        w.shared +=
            gm_least_of(1, w.blocks <= q->sms ? 1 : 2 / down) * 2 * t->ends * requests(stores);
    w.l2 =
        rows * gm_sectors(of_row, a.cols * a.size) + cols * gm_sectors(of_column, a.rows * a.size);
    return gm_work_us(q, r, &w);
}

double gm_us_transpose_naive(const struct gm_asked *q, const struct gm_rates *r)
{
    struct matrix a = operand_of(q);
    double down = gm_parts(a.rows, 8), across = gm_parts(a.cols, WARP);
    bool several = a.batch * down * across > q->sms;
    /* lanes store a row of the result apart: so many lines of 128 bytes, which the L1 cache looks
     * up one by one, and so many sectors, which the L2 cache takes */
    double lanes = gm_filled(a.cols, WARP, several), warps = gm_filled(a.rows, 8, several);
    double lines = warps * gm_most_of(1, lanes * gm_least_of(1, a.rows * a.size / 128));
    double sectors = warps * gm_most_of(1, lanes * gm_least_of(1, a.rows * a.size / GM_SECTOR));
    /* parts of a sector that several blocks write cost more than a sector, but not as many */
    double parts = sqrt(gm_most_of(1, GM_SECTOR / (8 * a.size)));
    struct gm_work w = {
        .blocks = a.batch * down * across, .resident = 8, .steps = parts, .dram = 2 * a.bytes};

    w.l2 = a.bytes / w.blocks + GM_SECTOR * sectors;
    w.shared = 6 * requests(256) + requests(lanes * warps) + 128 * lines * parts;
    return gm_work_us(q, r, &w);
}

/* A column of the tile lies in one bank, or a few. */
double gm_us_transpose_unpadded(const struct gm_asked *q, const struct gm_rates *r)
{
    double size = size_of(q);
    const struct tile t = {32, 32, 32, size, 256, 0, gm_least_of(1, size / 4), 0};

    return tile_us(q, r, &t);
}

double gm_us_transpose_tile(const struct gm_asked *q, const struct gm_rates *r)
{
    double size = size_of(q);
    const struct tile t = {32, 32, 32, size, 256, 0, 0, 0};

    return tile_us(q, r, &t);
}

double gm_us_transpose_vectorized(const struct gm_asked *q, const struct gm_rates *r)
{
    struct matrix a = operand_of(q);
    double vec = 16;

    /* smaller vectors where tiles are few, or hold a matrix with room to spare (vectorized.cu) */
    for (double quarters = 48; vec > 4 && vec > a.size; vec /= 2, quarters = 3) {
        double side = 16 * vec / a.size;
        double tiles = a.batch * gm_parts(a.rows, side) * gm_parts(a.cols, side);
        bool half_holds = a.rows <= side / 2 && a.cols <= side / 2;
        if (4 * tiles * a.size >= quarters * q->sms && !half_holds)
            break;
    }
    double side = 16 * vec / a.size;
    const struct tile t = {side, side, side, vec, 256, 0, 0, 0};
    return tile_us(q, r, &t);
}

double gm_us_transpose_unaligned(const struct gm_asked *q, const struct gm_rates *r)
{
    double size = size_of(q), n = (size == 1 ? 8 : 16) / size;
    double height = (size == 2 || size == 4 ? 16 : 32) * n;
    const struct tile t = {height,
                           16 * n,
                           height - (size == 1 ? 8 : 32) / size,
                           (size == 1 ? 8 : 16),
                           256,
                           size == 1   ? 2
                           : size == 2 ? 3
                                       : 4,
                           0,
                           fmod((double)q->op->operand[0].rows, n) != 0 ? n : 0};

    return tile_us(q, r, &t);
}

double gm_us_transpose_packed_u8(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_matrix *a = &q->op->operand[0];
    double width = a->cols % 16 == 0 ? 256 : 240, ends = a->rows % 16 == 0 ? 0 : 16;
    const struct tile t = {256, width, 240, 16, 256, 2, 0, ends};

    return tile_us(q, r, &t);
}

/* Spans of `length` along the longer side, of all of the shorter. */
double gm_us_transpose_skinny(const struct gm_asked *q, const struct gm_rates *r)
{
    struct matrix a = operand_of(q);
    bool tall = a.cols <= a.rows;
    double few = tall ? a.cols : a.rows, size = few * a.size, length = tall ? 512 / a.size : 128;

    while (tall ? 2 * length * size <= (length < 128 ? 32768 : 16384) : 2 * length * size <= 8192)
        length *= 2;
    if (tall)
        for (; length > 16 / a.size && length * size > 110000; length /= 2)
            ;
    else if (length * size > 34816)
        length = gm_most_of(1, floor(34816 / size / (128 / a.size))) * 128 / a.size;
    double longer = tall ? a.rows : a.cols;
    while (tall && length > 128 / a.size && a.batch * gm_parts(longer, length) < q->sms)
        length /= 2;
    double bytes = length * size, threads = tall            ? bytes > 49152   ? 1024
                                                              : bytes > 16384 ? 512
                                                                              : 256
                                            : bytes > 18432 ? 256
                                                            : 128;
    struct gm_work w = {
        .blocks = a.batch * gm_parts(longer, length),
        .resident = gm_most_of(1, gm_least_of(2048 / threads, floor(228e3 / (bytes + 1024)))),
        .steps = 2,
        .dram = 2 * a.bytes};

    double part = gm_least_of(length, longer);
    w.shared = requests(part * few) + requests(part * few * a.size / 16);
    /* loads of four vectors at once; then a thread collects the elements of each vector, and those
     * at the ends of a span, one after the other */
    double n = 16 / a.size, across = gm_least_of(threads, length / n);
    double collected = tall ? gm_parts(few, floor(threads / across)) * gm_parts(part / n, across)
                            : gm_parts(part * few / n, threads);
    bool ends = tall && fmod(longer * a.size, 16) != 0;
    w.steps = gm_parts(part * size / 16 / threads, 4) +
              collected * (n + (ends ? 3 : 1)) * SHARED_TRIP / TRIP;
    if (ends)
        w.shared += 4 * requests(WARP) * few;
    /* lanes that go down one column of a wide matrix are vectors apart, of which the banks are 8 */
    double lanes = gm_least_of(WARP, few / n) / 8;
    if (!tall && lanes > 1)
        w.shared += (lanes - 1) * requests(part * few);
    w.l2 = part * size + few * gm_sectors(part * a.size, longer * a.size);
    return gm_work_us(q, tall ? r : r + 1, &w);
}

double gm_us_transpose_batched(const struct gm_asked *q, const struct gm_rates *r)
{
    struct matrix a = operand_of(q);
    double each = a.rows * a.cols * a.size, fit = floor(16384 / each);
    double many = gm_least_of(gm_most_of(1, fit), a.batch), bytes = many * each;
    double threads = bytes < 32768 ? 256 : 512;
    struct gm_work w = {
        .blocks = gm_parts(a.batch, many),
        .resident = gm_most_of(1, gm_least_of(2048 / threads, floor(228e3 / (bytes + 1024)))),
        .steps = 2,
        .dram = 2 * a.bytes};

    /* as in spans of skinny */
    double vectors = gm_parts(bytes / 16, threads), n = 16 / a.size;
    w.steps = gm_parts(vectors, 4) + vectors * (n + 1) * SHARED_TRIP / TRIP;
    w.shared = requests(bytes / a.size) + 3 * requests(bytes / 16);
    w.l2 = 2 * bytes;
    return gm_work_us(q, r, &w);
}
