/*
 * select_cuda.c - what `auto` takes on a GPU.
 *
 * The thresholds are those of an H200: tests/bench/results/kernels_h200.json has the times, and
 * random_h200.json beside it those of products that nobody chose; a test holds them together. Of
 * other runs, which no file has, are only those for a handful of elements (turns_few, adds_few,
 * flips_few), for thin transposes (is_thin, is_short_of_runs, long_row_bytes of fills_tiles), for
 * stacks of products (nearly_fills_one, is_stack_of_small), for lone ones of a few more tiles than
 * `small` runs at once (is_tiny_product), and in part for thin ones, of f16 and bf16 all
 * (is_tiny_and_thin, is_thin_for_cublas, is_thin_for_tiles). Where cuBLAS is there it is one of the
 * kernels: of f32 it wins small single vectors, several of short k where all rows are whole 32
 * bytes, and large products of a transposed a whose rows are no whole 16 bytes. Sizes in elements
 * are of all matrices together unless they say otherwise.
 */
#include "layout.h"
#include "preference.h"

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- Transposes --------------------------------------------------------------------------------
 */

/* What all fits one round of the device, in thin pieces: a tile would stay mostly empty. */
static bool turns_few(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return lesser(op->result.rows, op->result.cols) <= 17 &&
           gm_matrix_bytes(&op->result) <= 128 << 10;
}

/* Enough matrices for all multiprocessors, none so large that a block has it alone for long. */
static bool is_small_stack(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return op->result.batch >= 512 && gm_matrix_bytes(&op->result) / op->result.batch <= 96 << 10;
}

/* Of a stack whose matrices `stack` could take whole: those that fill the tiles of `vectorized`. Of
 * elements of 1 and 2 bytes they need not quite, since `stack` moves such one by one. */
static bool fills_tiles_of_stack(uint64_t rows, uint64_t cols, uint64_t size)
{
    if (size <= 2)
        return lesser(rows, cols) >= (size == 1 ? 96 : 64);
    if (size == 4)
        return lesser(rows, cols) >= 40 && rows % 8 == 0 && cols % 8 == 0;
    return lesser(rows, cols) >= 32 && rows % 32 == 0 && cols % 32 == 0;
}

static bool is_single_and_large(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return op->result.batch == 1 && gm_matrix_bytes(&op->result) > 256 << 10;
}

/* Rows and columns of so many bytes that tiles do better than what there is else, however empty
 * they stay. The last number is for matrices of which `skinny` can take long runs. */
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

/* Whole pieces, and too few rows, or columns, for the long runs of `skinny` to fill the device:
 * then tiles do better, from two pieces on, however empty they stay. (What is not thin has them
 * anyway.) */
static bool is_short_of_runs(const struct gm_op *op, const struct gm_device_facts *facts)
{
    static const struct {
        uint64_t size, length; /* of the longer side, in elements */
    } most[] = {{1, 384 << 10}, {2, 64 << 10}, {4, 48 << 10}, {8, 32 << 10}, {16, 0}};
    uint64_t size = gm_dtype_size(op->result.dtype);
    uint64_t shorter = lesser(op->result.rows, op->result.cols);
    size_t i = 0;

    while (most[i].size < size)
        i++;
    return is_single_and_large(op, facts) && op->result.rows * size % 16 == 0 &&
           op->result.cols * size % 16 == 0 && shorter * size >= 32 &&
           greater(op->result.rows, op->result.cols) <= most[i].length;
}

/* Elements of 1 byte in rows that fill half of a tile of `bytes`, and not enough of them for the
 * long runs of `skinny` to fill the device. */
static bool fills_half_of_bytes(const struct gm_op *op)
{
    return gm_dtype_size(op->result.dtype) == 1 && op->result.rows > 64 && op->result.rows < 128 &&
           op->result.cols > op->result.rows && gm_matrix_bytes(&op->result) < 20000000;
}

/* Rows, or columns, of at most so many bytes: `skinny` moves them better than tiles do, of which
 * those at the edge stay mostly empty. Only matrices that are large enough for its long runs to
 * fill the device. Of those that `vectorized` takes (whole pieces) only the shortest rows, and, of
 * elements of 8 and 16 bytes, rows that do not divide into its tiles, more of them from 48 MB on;
 * and the columns of elements of 16 bytes. */
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

/* The same of smaller ones, and of fewer rows or columns. */
static bool is_thinnest(const struct gm_op *op, const struct gm_device_facts *facts)
{
    uint64_t few = lesser(op->result.rows, op->result.cols);

    return is_single_and_large(op, facts) && few * gm_dtype_size(op->result.dtype) <= 256;
}

/* Below that the pieces that `shifted` and `bytes` keep under way do not pay. */
static bool is_many(const struct gm_op *op, const struct gm_device_facts *facts)
{
    uint64_t size = gm_dtype_size(op->result.dtype), bytes = gm_matrix_bytes(&op->result);

    (void)facts;
    return gm_matrix_elements(&op->result) >= 4000000 || (size == 4 && bytes >= 7500000) ||
           (size == 8 && bytes >= 28000000);
}

/* Elements of 1 byte, a tile's height of them in a column, and a fourth of its width in a row; or
 * a half where `skinny` can take long runs. */
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

/* ---- Products ----------------------------------------------------------------------------------
 */

struct product {
    uint64_t m, n, k, batch, elements; /* elements: of the result */
};

static struct product product_of(const struct gm_op *op)
{
    return (struct product){gm_op_m(op), gm_op_n(op), gm_op_k(op), op->result.batch,
                            gm_matrix_elements(&op->result)};
}

/* A few vectors times a matrix, or a matrix times a few vectors: the larger operand has so many
 * lines, of k elements. */
struct thin {
    uint64_t vectors, lines, k, elements;
    uint64_t common; /* of 1, 2, 4 and 8 the largest that divides the larger operand's rows and,
                        with several vectors, the other's and the result's */
    bool across;     /* a step of k adds a line of it to the vectors of the result */
    bool even;       /* the larger operand's rows */
};

#define THIN_MAX 8u /* vectors: what `skinny` takes */

static bool thin_of(const struct gm_op *op, struct thin *ret)
{
    struct product p = product_of(op);
    bool few_columns = p.n <= p.m;
    struct gm_view large = gm_op_view(op, few_columns ? 0 : 1);
    struct gm_view vectors = gm_op_view(op, few_columns ? 1 : 0);
    uint64_t lines = greater(p.m, p.n), row = greater(large.row, large.col);
    uint64_t all = 8 | row;

    if (p.batch > 1 || lesser(p.m, p.n) > THIN_MAX)
        return false;
    if (lesser(p.m, p.n) > 1)
        all |= greater(vectors.row, vectors.col) | op->result.cols;
    *ret = (struct thin){.vectors = lesser(p.m, p.n),
                         .lines = lines,
                         .k = p.k,
                         .elements = lines * p.k,
                         .common = all & (~all + 1),
                         .across = (few_columns ? large.row : large.col) == 1,
                         .even = row % 2 == 0};
    return true;
}

static bool is_f32(const struct gm_op *op)
{
    return op->result.dtype == GM_F32 &&
           (op->precision == GM_PRECISION_FP32 || op->precision == GM_PRECISION_IEEE);
}

/* Tiles of 8 x 8, of which `small` gives each multiprocessor two at once (PARTED_TILES there). */
#define SMALL_TILES 264.0

/* So few sums that there is work for many threads along k alone. */
static bool is_long_sum(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct product p = product_of(op);

    (void)facts;
    return p.m <= 4 && p.n <= 4 && p.k > (p.elements <= 64 ? 64 : 255);
}

static bool is_half(const struct gm_op *op)
{
    return op->result.dtype == GM_F16 || op->result.dtype == GM_BF16;
}

/* Of results of a few rows or columns: short sums. */
static bool is_tiny_and_thin(const struct gm_op *op, const struct thin *thin)
{
    if (is_half(op)) /* where cuBLAS's tensor cores can do nothing */
        return thin->common < 4 && thin->k <= 136 && thin->elements <= 155000;
    if (thin->vectors == 1)
        return thin->k <= 48 && thin->lines <= (is_f32(op) ? 1000 : 160);
    if (op->result.dtype == GM_F64)
        return thin->lines <= 770 ? thin->k <= 90 : thin->vectors >= 4 && thin->elements <= 200000;
    return thin->k <= 88 && thin->elements <= 115000;
}

/* One trip to memory, or a few, for each matrix, and no more blocks than run at once; of the
 * smallest, any number. */
static bool is_tiny_product(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct product p = product_of(op);
    uint64_t side = greater(greater(p.m, p.n), p.k);
    double tiles = (double)((p.m + 7) / 8 * ((p.n + 7) / 8)) * (double)p.batch;
    bool stack = p.batch > 1;
    /* to where `fitted` is as good */
    double few = !is_f32(op) ? 1 : p.k <= 20 ? 3 : p.k <= 40 ? 2 : 1.5;
    struct thin thin;

    (void)facts;
    if (p.m <= 4 && p.n <= 4 && p.k <= 16)
        return true;
    if (stack && is_f32(op))
        return !is_long_sum(op, facts) && (double)p.elements * (double)p.k <= 1.5e6 &&
               (p.elements <= 50000 || (side <= 16 && p.m * p.n * p.k <= 1024));
    if ((is_f32(op) || is_half(op) || op->result.dtype == GM_F64) && !is_long_sum(op, facts) &&
        thin_of(op, &thin))
        return is_tiny_and_thin(op, &thin);
    if (p.k <= 64 && tiles <= few * SMALL_TILES)
        return true;
    return ((side <= 64 || (stack && p.k <= 40)) && tiles <= 4 * SMALL_TILES) ||
           (p.m > 8 && p.n > 8 && p.k <= (is_f32(op) ? 200 : 256) &&
            tiles <= (stack && p.k <= 100 ? 2 : 1) * SMALL_TILES);
}

/* Where cuBLAS is the better one. Of f16 and bf16 that is short sums; what its tensor cores can do,
 * if all rows are whole 8 bytes, but for a few vectors of few lines; else single vectors. Of
 * f32 and f64 it takes single vectors of little, and of few lines that are long; many vectors of
 * f64; and short sums of f32, if all rows are whole 32 bytes. */
static bool is_thin_for_cublas(const struct gm_op *op, const struct thin *thin)
{
    bool f64 = op->result.dtype == GM_F64;

    if (thin->vectors == 0 || thin->elements == 0)
        return false;
    if (is_half(op))
        return thin->k <= 136 ||
               (thin->common >= 4 ? thin->lines > 111 || thin->vectors >= 7 : thin->vectors == 1);
    if (!is_f32(op) && !f64)
        return false;
    if (thin->vectors == 1 && thin->across)
        return f64 ? thin->even && thin->k <= 170 : thin->elements <= 5000;
    if (thin->vectors == 1)
        return thin->elements <= 60000 ||
               (thin->lines >= 200 && thin->lines <= 2000 && thin->k >= 1500);
    if (f64)
        return thin->lines > 770 &&
               (thin->vectors >= 5 || (thin->vectors == 4 && thin->lines <= 4500));
    return thin->k <= 88 && thin->common == 8;
}

/* Where tiles are: of many vectors, if rows of the larger operand are an even number of elements,
 * few lines that are long, or, across, not too little. */
static bool is_thin_for_tiles(const struct gm_op *op, const struct thin *thin)
{
    if (!is_f32(op) || thin->vectors < 5 || !thin->even)
        return false;
    return thin->across ? thin->k >= (thin->elements >= 220000 ? 200 : 650)
                        : thin->lines <= 300 && thin->k >= 1000;
}

static bool is_thin_product(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct thin thin;

    (void)facts;
    return thin_of(op, &thin) && !is_thin_for_cublas(op, &thin) && !is_thin_for_tiles(op, &thin);
}

/* What cuBLAS would have taken. */
static bool is_thin_without_cublas(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct thin thin;

    (void)facts;
    return thin_of(op, &thin);
}

/* What part of a device full of blocks tiles like those of `fitted` make use of: of the best of
 * them what part the matrix fills. They are those that `fitted` once had, with their rates and what
 * beginning and ending one takes in steps of k: its new ones told worse where `stack` wins. NaN
 * where it is empty. */
static double used(const struct product *p)
{
    static const struct {
        uint64_t height, width, depth;
        double rate, start;
    } tiles[] = {{128, 256, 8, 1.05, 20}, {128, 128, 8, 1.01, 13}, {64, 128, 8, 0.99, 17},
                 {64, 64, 16, 0.86, 8},   {32, 64, 16, 0.71, 13},  {32, 32, 16, 0.67, 14},
                 {16, 32, 16, 0.58, 14}};
    double best = 0;

    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++) {
        double down = (double)((p->m + tiles[i].height - 1) / tiles[i].height * tiles[i].height);
        double across = (double)((p->n + tiles[i].width - 1) / tiles[i].width * tiles[i].width);
        double steps = (double)((p->k + tiles[i].depth - 1) / tiles[i].depth * tiles[i].depth);
        double part = tiles[i].rate * (double)p->m / down * (double)p->n / across * (double)p->k /
                      (steps + tiles[i].start);
        if (!(part <= best))
            best = part;
    }
    return best;
}

/* Results that are enough for smaller tiles, or slices of k, not to be the point. */
#define FEW_ELEMENTS 3000000u

/* Matrices of which each nearly fills a tile of 64 x 64, to which b comes by 8 bytes at least if it
 * is not transposed. */
static bool nearly_fills_one(const struct product *p)
{
    return p->n % 2 == 0 && lesser(p->m, p->n) > 48 && greater(p->m, p->n) <= 64 && p->k >= 32 &&
           p->k <= 128;
}

/* Whole matrices a block, where tiles do not fit them. The more work there is in all, the better
 * they must: of little, the device is never full. Of f64 only where cuBLAS's tensor cores have too
 * little to do. */
static bool is_stack_of_small(const struct gm_op *op, const struct gm_device_facts *facts)
{
    static const struct {
        double work, used, used_by_8; /* multiply-adds; the latter with n a multiple of 8 */
    } most[] = {{2.5e8, 0.37, 0.44}, {3e7, 0.33, 0.29},   {8e6, 0.27, 0.23},
                {3e6, 0.21, 0.14},   {1.4e6, 0.07, 0.14}, {0, 0, 0}};
    struct product p = product_of(op);
    double work = (double)p.elements * (double)p.k;
    size_t i = 0;

    (void)facts;
    if (p.batch < 2)
        return false;
    if (op->result.dtype == GM_F64)
        return work <= 40e3 * (double)p.batch && p.k <= 256;
    /* Of 16 rows tiles are full; few rows that are long leave a block's lanes idle. Of short sums
     * storing is most of the work, which larger tiles do better; b transposed comes in single
     * elements, and a transposed as tiles want it. */
    bool lies_turned = gm_op_view(op, 0).row == 1;

    if (!is_f32(op) || op->transb || (lies_turned && p.k > 40 && p.m >= 64) ||
        nearly_fills_one(&p) || (p.k <= 16 && p.m * p.n >= 1800) ||
        (p.m <= 16 && p.n >= 64 && p.n % 4 == 0) || (p.m <= 32 && p.n >= 190 && p.k >= 40))
        return false;
    while (work < most[i].work)
        i++;
    return used(&p) <= (p.n % 8 == 0 ? most[i].used_by_8 : most[i].used);
}

/* By our tiles, where they are as good as cuBLAS's or better: f32, but for few rows or columns. */
static bool fits_product(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct product p = product_of(op);
    struct thin thin;

    (void)facts;
    if (thin_of(op, &thin))
        return is_thin_for_tiles(op, &thin);
    if (!is_f32(op))
        return false;
    if (p.batch > 1)
        return true;
    /* An a that lies transposed comes by elements, unless it and b come by 16 bytes. That counts
     * where there is much of it, but where both are turned, and so large that copying them first
     * does not. */
    bool lies_turned = gm_op_view(op, 0).row == 1, b_turned = gm_op_view(op, 1).col != 1;
    return p.elements >= 64 &&
           (!lies_turned || p.elements <= FEW_ELEMENTS || p.k <= 64 ||
            (p.m % 4 == 0 && p.n % 4 == 0) || (b_turned && lesser(lesser(p.m, p.n), p.k) >= 4000));
}

const struct gm_preference gm_preferences_cuda[] = {
    {GM_DEVICE_CUDA, GM_OP_COPY, GM_OP_COPY, "vector", gm_always},

    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_COPY, "vector", gm_is_copy},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "naive", turns_few},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "vectorized", is_short_of_runs},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "skinny", is_thin},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "vectorized", fills_tiles},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "stack", is_small_stack},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "bytes", is_many_bytes},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "skinny", is_thinnest},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "shifted", is_many},
    {GM_DEVICE_CUDA, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "padded", gm_always},

    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "small", is_tiny_product},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "dot", is_long_sum},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "skinny", is_thin_product},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "stack", is_stack_of_small},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "fitted", fits_product},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "cublas", gm_always},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "skinny", is_thin_without_cublas},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "fitted", gm_always},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "pipelined", gm_always},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "registers", gm_always},

    {GM_DEVICE_CUDA, GM_OP_ADD, GM_OP_ADD, "direct", adds_few},
    {GM_DEVICE_CUDA, GM_OP_ADD, GM_OP_ADD, "vectorized", gm_always},

    {GM_DEVICE_CUDA, GM_OP_FLIP, GM_OP_COPY, "vector", gm_is_copy},
    {GM_DEVICE_CUDA, GM_OP_FLIP, GM_OP_FLIP, "shared", flips_few},
    {GM_DEVICE_CUDA, GM_OP_FLIP, GM_OP_FLIP, "vectorized", gm_always},
    {.name = NULL},
};
