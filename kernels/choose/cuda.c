/*
 * cuda.c - holds the preferences of `auto` on a GPU, except for products (cuda_matmul.c).
 *
 * The thresholds are those of an H200. tests/bench/results/kernels_h200.json has the times, and a
 * test compares both. Some thresholds come from other runs whose times are not kept: those for few
 * elements (transposes_few, adds_few, flips_few) and for thin transposes (is_thin,
 * is_short_of_spans, long_row_bytes of fills_tiles). Sizes in elements are those of the whole stack
 * unless stated otherwise.
 */
#include "choose.h"
#include "kernels/layout.h"

/* ---- Small jobs --------------------------------------------------------------------------------
 */

/* Operands and result together. Up to there `grouped` takes two thirds of the time of copies and a
 * kernel for a lone job, and half of it for many: tests/bench/results/groups_h200.json. Rows that
 * are not whole vectors of 16 bytes cost more, and were not timed beyond the second. */
#define GROUPED_BYTES ((uint64_t)1 << 20)
#define GROUPED_UNEVEN_BYTES ((uint64_t)128 << 10)

/* On a device that gathers jobs, which reads and writes the host's memory over a link. */
static bool is_small_job(const struct gm_op *op, const struct gm_device_facts *facts)
{
    uint64_t size = gm_dtype_size(op->result.dtype);
    bool even = op->kind == GM_OP_ADD ||
                (op->result.cols * size % 16 == 0 && op->result.rows * size % 16 == 0);

    return facts->batch_max > 1 &&
           gm_op_bytes_min(op) <= (even ? GROUPED_BYTES : GROUPED_UNEVEN_BYTES);
}

/* ---- Transposes --------------------------------------------------------------------------------
 */

/* The matrix is thin and fits in one round of blocks, and a tile would stay mostly empty. */
static bool transposes_few(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return gm_lesser(op->result.rows, op->result.cols) <= 17 &&
           gm_matrix_bytes(&op->result) <= 128 << 10;
}

/* There are enough matrices for all multiprocessors, and none is so large that its block finishes
 * late. */
static bool is_small_stack(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return op->result.batch >= 512 && gm_matrix_bytes(&op->result) / op->result.batch <= 96 << 10;
}

/* For a stack that `batched` accepts: whether its matrices fill the tiles of `vectorized`.
 * Elements of 1 and 2 bytes need not fill them entirely, because `batched` moves such elements
 * one by one. */
static bool fills_tiles_of_stack(uint64_t rows, uint64_t cols, uint64_t size)
{
    if (size <= 2)
        return gm_lesser(rows, cols) >= (size == 1 ? 96 : 64);
    if (size == 4)
        return gm_lesser(rows, cols) >= 40 && rows % 8 == 0 && cols % 8 == 0;
    return gm_lesser(rows, cols) >= 32 && rows % 32 == 0 && cols % 32 == 0;
}

static bool is_single_and_large(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return op->result.batch == 1 && gm_matrix_bytes(&op->result) > 256 << 10;
}

/* Whether rows and columns are long enough for tiles to win, even if some stay partly empty.
 * long_row_bytes is for matrices from which `skinny` can load long spans. */
static bool fills_tiles(const struct gm_op *op, const struct gm_device_facts *facts)
{
    static const struct {
        uint64_t size, row_bytes, column_bytes, long_row_bytes;
    } least[] = {{1, 64, 64, 64},
                 {2, 48, 80, 80},
                 {4, 48, 112, 80},
                 {8, 128, 160, 128},
                 {16, 128, 128, 256}};
    uint64_t rows = op->result.cols, cols = op->result.rows; /* the operand's */
    uint64_t size = gm_dtype_size(op->result.dtype);
    size_t i = 0;

    if (is_small_stack(op, facts))
        return fills_tiles_of_stack(rows, cols, size);
    while (least[i].size < size)
        i++;
    return cols * size >=
               (is_single_and_large(op, facts) ? least[i].long_row_bytes : least[i].row_bytes) &&
           rows * size >= least[i].column_bytes;
}

/* Whether the matrix is whole vectors, and too short for the long spans of `skinny` to fill the
 * device. Then tiles win from two vectors on, even if mostly empty. (If it is not thin, tiles win
 * anyway.) */
static bool is_short_of_spans(const struct gm_op *op, const struct gm_device_facts *facts)
{
    static const struct {
        uint64_t size, length; /* of the longer side, in elements */
    } most[] = {{1, 384 << 10}, {2, 64 << 10}, {4, 48 << 10}, {8, 32 << 10}, {16, 0}};
    uint64_t size = gm_dtype_size(op->result.dtype);
    uint64_t shorter = gm_lesser(op->result.rows, op->result.cols);
    size_t i = 0;

    while (most[i].size < size)
        i++;
    return is_single_and_large(op, facts) && op->result.rows * size % 16 == 0 &&
           op->result.cols * size % 16 == 0 && shorter * size >= 32 &&
           gm_greater(op->result.rows, op->result.cols) <= most[i].length;
}

/* 1-byte elements in rows that fill half of a tile of `packed_u8`, and too few for the long spans
 * of `skinny` to fill the device. */
static bool fills_half_of_bytes(const struct gm_op *op)
{
    return gm_dtype_size(op->result.dtype) == 1 && op->result.rows > 64 && op->result.rows < 128 &&
           op->result.cols > op->result.rows && gm_matrix_bytes(&op->result) < 20000000;
}

/* Whether rows or columns are so short that `skinny` beats tiles, whose edge tiles would stay
 * mostly empty. The matrix must be large enough for long spans to fill the device. If `vectorized`
 * accepts it (whole vectors), `skinny` wins only on the shortest rows; on rows of 8- and 16-byte
 * elements that do not divide into tiles, longer ones from 48 MB on; and on columns of 16-byte
 * elements. */
static bool is_thin(const struct gm_op *op, const struct gm_device_facts *facts)
{
    static const struct {
        uint64_t size, row_bytes, short_row_bytes, whole_row_bytes, large_row_bytes, column_bytes;
    } most[] = {{1, 112, 0, 0, 0, 400},
                {2, 300, 0, 0, 0, 800},
                {4, 400, 112, 0, 0, 800},
                {8, 300, 160, 280, 400, 1040},
                {16, 0, 0, 800, 2400, 1040}};
    uint64_t size = gm_dtype_size(op->result.dtype);
    uint64_t row = op->result.rows * size, column = op->result.cols * size; /* the operand's */
    uint64_t bytes = gm_matrix_bytes(&op->result);
    bool whole = row % 16 == 0 && column % 16 == 0;
    size_t i = 0;

    (void)facts;
    while (most[i].size < size)
        i++;
    if (op->result.batch != 1 || bytes < (size >= 8 ? 16000000 : 6000000) ||
        fills_half_of_bytes(op))
        return false;
    if (row > column)
        return (!whole || size == 16) && column <= most[i].column_bytes;
    if (!whole)
        return row <= most[i].row_bytes;
    if (row <= most[i].short_row_bytes)
        return true;
    return row <= (bytes < 48000000 ? most[i].whole_row_bytes : most[i].large_row_bytes) &&
           row > 256 && row % 256 != 0;
}

/* The same for smaller matrices of even fewer rows or columns. */
static bool is_thinnest(const struct gm_op *op, const struct gm_device_facts *facts)
{
    uint64_t few = gm_lesser(op->result.rows, op->result.cols);

    return is_single_and_large(op, facts) && few * gm_dtype_size(op->result.dtype) <= 256;
}

/* Large enough for the many vectors in flight of `unaligned` and `packed_u8` to pay. */
static bool is_many(const struct gm_op *op, const struct gm_device_facts *facts)
{
    uint64_t size = gm_dtype_size(op->result.dtype), bytes = gm_matrix_bytes(&op->result);

    (void)facts;
    return gm_matrix_elements(&op->result) >= 4000000 || (size == 4 && bytes >= 7500000) ||
           (size == 8 && bytes >= 28000000);
}

/* 1-byte elements with at least a tile's height in a column and a quarter of its width in a row;
 * half its width where `skinny` can use long spans. */
static bool is_many_bytes(const struct gm_op *op, const struct gm_device_facts *facts)
{
    return is_many(op, facts) && op->result.cols >= 256 &&
           (op->result.rows >= (is_single_and_large(op, facts) ? 128 : 64) ||
            fills_half_of_bytes(op));
}

/* ---- Flips and sums ----------------------------------------------------------------------------
 */

static bool flips_few(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return gm_matrix_elements(&op->result) <= 1 << 18;
}

static bool adds_few(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return gm_matrix_elements(&op->result) <= 4096;
}

const struct gm_preference gm_preferences_cuda[] = {
    {GM_DEVICE_CUDA, GM_OP_COPY, GM_OP_COPY, "vector", gm_always},

    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "grouped", is_small_job},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_COPY, "vector", gm_is_copy},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "naive", transposes_few},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "vectorized", is_short_of_spans},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "skinny", is_thin},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "vectorized", fills_tiles},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "batched", is_small_stack},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "packed_u8", is_many_bytes},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "skinny", is_thinnest},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "unaligned", is_many},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "padded", gm_always},

    {GM_DEVICE_CUDA, GM_OP_ADD, GM_OP_ADD, "grouped", is_small_job},
    {GM_DEVICE_CUDA, GM_OP_ADD, GM_OP_ADD, "direct", adds_few},
    {GM_DEVICE_CUDA, GM_OP_ADD, GM_OP_ADD, "vectorized", gm_always},

    {GM_DEVICE_CUDA, GM_OP_FLIP, GM_OP_FLIP, "grouped", is_small_job},
    {GM_DEVICE_CUDA, GM_OP_FLIP, GM_OP_COPY, "vector", gm_is_copy},
    {GM_DEVICE_CUDA, GM_OP_FLIP, GM_OP_FLIP, "shared", flips_few},
    {GM_DEVICE_CUDA, GM_OP_FLIP, GM_OP_FLIP, "vectorized", gm_always},
    {.name = NULL},
};
