/*
 * cuda_matmul.c - holds the preferences of `auto` for products on a GPU.
 *
 * The thresholds are those of an H200. kernels_h200.json and random_h200.json in
 * tests/bench/results/ have the times, and a test compares both. Some thresholds come from other
 * runs whose times are not kept: those for stacks (nearly_fills_one, is_stack_of_small), for single
 * products of slightly more tiles than `small_tile` runs at once (is_tiny_product), and some for
 * thin products (is_tiny_and_thin, is_thin_for_cublas, is_thin_for_tiles).
 *
 * cuBLAS is one of the variants, if the machine has it. For f32 it wins small single vectors,
 * several vectors with short K whose rows are all whole 32 bytes, and large products of a
 * transposed A whose rows are not whole 16 bytes. What neither cuBLAS nor `multistage_tuned` takes,
 * mostly integers, is estimated (choose/tiles.c).
 */
#include "kernels/choose/choose.h"
#include "kernels/layout.h"

struct product {
    uint64_t m, n, k, batch, elements; /* elements: of the result */
};

/* The product as kernels see it: a stack that shares one B is one tall matrix. */
static struct product product_of(const struct gm_op *op)
{
    uint64_t joined = gm_op_joined(op);

    return (struct product){gm_op_m(op) * joined, gm_op_n(op), gm_op_k(op),
                            op->result.batch / joined, gm_matrix_elements(&op->result)};
}

/* A thin product: a few vectors times a matrix or the reverse, possibly of a stack. The larger
 * operand has `lines` lines of `k` elements. */
struct thin {
    uint64_t vectors, lines, k, elements;
    uint64_t common; /* the largest of 1, 2, 4 and 8 that divides the larger operand's rows and,
                      * with several vectors, the other's and the result's */
    bool across;     /* lines run across k: each step of k adds one to the result */
    bool even;       /* rows of the larger operand are an even number of elements */
};

#define THIN_MAX 8u /* the most vectors that `skinny` takes */

static bool thin_of(const struct gm_op *op, struct thin *ret)
{
    struct product p = product_of(op);
    bool few_columns = p.n <= p.m;
    struct gm_view large = gm_op_view(op, few_columns ? 0 : 1);
    struct gm_view vectors = gm_op_view(op, few_columns ? 1 : 0);
    uint64_t lines = gm_greater(p.m, p.n), row = gm_greater(large.row, large.col);
    uint64_t all = 8 | row;

    if (gm_lesser(p.m, p.n) > THIN_MAX)
        return false;
    if (gm_lesser(p.m, p.n) > 1)
        all |= gm_greater(vectors.row, vectors.col) | op->result.cols;
    *ret = (struct thin){.vectors = gm_lesser(p.m, p.n),
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

/* Tiles of 8 x 8 that `small_tile` runs at once: two per multiprocessor (SPLIT_TILES in
 * small_tile.cu). */
#define SMALL_TILES (2.0 * GM_H200_SMS)

/* So few sums that only K offers work for many threads. */
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

/* The best variant for a stack of thin products. */
enum thin_stack {
    NOT_THIN, /* or not a stack, or lines or sums so short that other rules decide */
    FOR_SMALL_TILE,
    FOR_SKINNY,
    FOR_BATCHED,
    FOR_MULTISTAGE_TUNED,
    FOR_CUBLAS
};

#define THIN_STACK_LEAST 16u /* lines, and steps of k: shorter ones were not timed */

/* Measured on 270 stacks; the same kernel is best in wide ranges. `skinny` wins as soon as there is
 * work for the whole device: for f32 unless there are many vectors of little each, for f64 unless
 * there are 6 or more vectors. The others are for tiles, or for whole matrices per block if B has
 * few columns and k is neither short nor long. */
static enum thin_stack thin_stack_of(const struct gm_op *op)
{
    struct product p = product_of(op);
    struct thin thin;

    if (p.batch < 2 || !thin_of(op, &thin) || thin.vectors == 0 || thin.lines < THIN_STACK_LEAST ||
        thin.k < THIN_STACK_LEAST)
        return NOT_THIN;
    double all = (double)thin.elements * (double)p.batch;
    if (is_half(op))
        return thin.k > 136 && thin.common < 4 && thin.elements > 600000 ? FOR_SKINNY : FOR_CUBLAS;
    if (op->result.dtype == GM_F64)
        return thin.vectors >= 6 || (thin.k <= 74 && thin.elements <= 20000) ? FOR_CUBLAS
                                                                             : FOR_SKINNY;
    if (op->result.dtype == GM_F32 && !is_f32(op))
        return FOR_CUBLAS;
    if (!is_f32(op))
        return all <= 50000 ? FOR_SMALL_TILE : FOR_SKINNY;
    if (thin.vectors == 1)
        return all <= (thin.k <= 64 ? 800000 : 100000) ? FOR_CUBLAS : FOR_SKINNY;
    if (all <= 100000)
        return FOR_SMALL_TILE;
    if (thin.vectors < 5)
        return FOR_SKINNY;
    if (p.n < p.m && !thin.across && thin.lines >= 64 && thin.k >= 24 && thin.k <= 300)
        return FOR_BATCHED;
    return thin.elements <= 113000 ? FOR_MULTISTAGE_TUNED : FOR_SKINNY;
}

/* For results of a few rows or columns: short sums. */
static bool is_tiny_and_thin(const struct gm_op *op, const struct thin *thin)
{
    if (is_half(op)) /* where cuBLAS cannot use tensor cores */
        return thin->common < 4 && thin->k <= 136 && thin->elements <= 155000;
    if (thin->vectors == 1)
        return thin->k <= 48 && thin->lines <= (is_f32(op) ? 1000 : 160);
    if (op->result.dtype == GM_F64)
        return thin->lines <= 770 ? thin->k <= 90 : thin->vectors >= 4 && thin->elements <= 200000;
    return thin->k <= 88 && thin->elements <= 115000;
}

/* Each matrix needs one trip to memory or a few, and all blocks run at once; the smallest may be
 * any number. */
static bool is_tiny_product(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct product p = product_of(op);
    uint64_t side = gm_greater(gm_greater(p.m, p.n), p.k);
    double tiles = (double)((p.m + 7) / 8 * ((p.n + 7) / 8)) * (double)p.batch;
    bool stack = p.batch > 1;
    /* up to where `multistage_tuned` is as good */
    double few = !is_f32(op) ? 1 : p.k <= 20 ? 3 : p.k <= 40 ? 2 : 1.5;
    enum thin_stack stacked = thin_stack_of(op);
    struct thin thin;

    (void)facts;
    if (stacked != NOT_THIN)
        return stacked == FOR_SMALL_TILE;
    if (p.m <= 4 && p.n <= 4 && p.k <= 16)
        return true;
    if (stack && is_f32(op))
        return !is_long_sum(op, facts) && (double)p.elements * (double)p.k <= 1.5e6 &&
               (p.elements <= 50000 || (side <= 16 && p.m * p.n * p.k <= 1024));
    if (!stack && (is_f32(op) || is_half(op) || op->result.dtype == GM_F64) &&
        !is_long_sum(op, facts) && thin_of(op, &thin))
        return is_tiny_and_thin(op, &thin);
    if (p.k <= 64 && tiles <= few * SMALL_TILES)
        return true;
    return ((side <= 64 || (stack && p.k <= 40)) && tiles <= 4 * SMALL_TILES) ||
           (p.m > 8 && p.n > 8 && p.k <= (is_f32(op) ? 200 : 256) &&
            tiles <= (stack && p.k <= 100 ? 2 : 1) * SMALL_TILES);
}

/* Where cuBLAS beats `skinny`. For f16 and bf16: short sums; what its tensor cores can do, if all
 * rows are whole 8 bytes, except a few vectors of few lines; otherwise single vectors. For f32 and
 * f64: small single vectors; along k also few long lines; across, for f64, short sums with even
 * rows; many vectors of f64; and short sums of f32 if all rows are whole 32 bytes. */
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

/* Where tiles beat `skinny`: many vectors, if rows of the larger operand are an even number of
 * elements, and there are few long lines or, across, enough work. */
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
    if (product_of(op).batch > 1)
        return thin_stack_of(op) == FOR_SKINNY;
    return thin_of(op, &thin) && !is_thin_for_cublas(op, &thin) && !is_thin_for_tiles(op, &thin);
}

/* What cuBLAS would take, if it were there. */
static bool is_thin_without_cublas(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct thin thin;

    (void)facts;
    return product_of(op).batch > 1 ? thin_stack_of(op) == FOR_CUBLAS : thin_of(op, &thin);
}

/* The fraction of the device's rate that the best of several tiles achieves on the matrix. The
 * tiles, their rates and their start costs (in steps of k) are those that `multistage_tuned` once
 * had: its present ones predict less well where `batched` wins. NaN for an empty matrix. */
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

/* Beyond this size smaller tiles and split-K no longer matter. */
#define FEW_ELEMENTS 3000000u

/* Whether each matrix nearly fills a tile of 64 x 64, and an untransposed B can be loaded by at
 * least 8 bytes. */
static bool nearly_fills_one(const struct product *p)
{
    return p->n % 2 == 0 && gm_lesser(p->m, p->n) > 48 && gm_greater(p->m, p->n) <= 64 &&
           p->k >= 32 && p->k <= 128;
}

/* Whether `batched` wins: a block takes whole matrices, where tiles fit badly. The more work there
 * is in all, the better tiles must fit to win: little work never fills the device. For f64 only
 * where cuBLAS's tensor cores have too little to do. */
static bool is_stack_of_small(const struct gm_op *op, const struct gm_device_facts *facts)
{
    static const struct {
        double work, used, used_by_8; /* work: multiply-adds; used_by_8: if n is a multiple of 8 */
    } most[] = {{2.5e8, 0.37, 0.44}, {3e7, 0.33, 0.29},   {8e6, 0.27, 0.23},
                {3e6, 0.21, 0.14},   {1.4e6, 0.07, 0.14}, {0, 0, 0}};
    struct product p = product_of(op);
    double work = (double)p.elements * (double)p.k;
    enum thin_stack stacked = thin_stack_of(op);
    size_t i = 0;

    (void)facts;
    if (p.batch < 2)
        return false;
    if (stacked != NOT_THIN)
        return stacked == FOR_BATCHED;
    if (op->result.dtype == GM_F64)
        return work <= 40e3 * (double)p.batch && p.k <= 256;
    /* Exceptions: a transposed B, which is loaded element by element; a transposed A of many rows,
     * which suits tiles; short sums of large results, where storing is most of the work and larger
     * tiles are better; 16 rows, which fill tiles, or 32 long rows, which leave lanes idle. */
    bool a_transposed = gm_op_view(op, 0).row == 1;

    if (!is_f32(op) || op->transb || (a_transposed && p.k > 40 && p.m >= 64) ||
        nearly_fills_one(&p) || (p.k <= 16 && p.m * p.n >= 1800) ||
        (p.m <= 16 && p.n >= 64 && p.n % 4 == 0) || (p.m <= 32 && p.n >= 190 && p.k >= 40))
        return false;
    while (work < most[i].work)
        i++;
    return used(&p) <= (p.n % 8 == 0 ? most[i].used_by_8 : most[i].used);
}

/* Where our tiles are at least as good as cuBLAS: f32, except for few rows or columns. */
static bool suits_multistage_tuned(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct product p = product_of(op);
    struct thin thin;

    (void)facts;
    if (p.batch == 1 && thin_of(op, &thin))
        return is_thin_for_tiles(op, &thin);
    if (!is_f32(op))
        return false;
    if (p.batch > 1)
        return thin_stack_of(op) != FOR_CUBLAS;
    /* A transposed A is loaded element by element, unless both A and B can be loaded by 16 bytes.
     * That matters if A is large. It does not if both are transposed and so large that repacking
     * them is cheap in comparison. */
    bool a_transposed = gm_op_view(op, 0).row == 1, b_transposed = gm_op_view(op, 1).col != 1;
    return p.elements >= 64 && (!a_transposed || p.elements <= FEW_ELEMENTS || p.k <= 64 ||
                                (p.m % 4 == 0 && p.n % 4 == 0) ||
                                (b_transposed && gm_lesser(gm_lesser(p.m, p.n), p.k) >= 4000));
}

/* For integers, and for f16 and bf16 where cuBLAS is missing or refuses (it adds no C to them):
 * they were not timed, so the least estimated time decides. */
static bool is_least(const struct gm_op *op, enum gm_tiles tiles)
{
    struct product p = product_of(op);

    return gm_least_tiles(op->result.dtype, p.batch, p.m, p.n, p.k) == tiles;
}

static bool is_least_by_small_tile(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return is_least(op, GM_TILES_SMALL_TILE);
}

static bool is_least_by_tiled(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return is_least(op, GM_TILES_TILED);
}

static bool is_least_by_register_tiled(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return is_least(op, GM_TILES_REGISTER_TILED);
}

/* `grouped` reads A and B over the link once for each 64 columns and rows of the result, and waits
 * for it once for each 256 bytes of accumulators along K, of which 16 tiles do so at once. Up to
 * these limits it is at least as fast as copies and another kernel for a lone product, and for many
 * takes half of the time or less: tests/bench/results/groups_h200.json. */
#define GROUPED_TILE 64u
#define GROUPED_TILES 16u
#define GROUPED_WAITS 8.0
#define GROUPED_LINK_BYTES 720e3

static bool is_small_job(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct product p = product_of(op);
    double size = (double)gm_dtype_size(op->result.dtype), batch = (double)p.batch;
    double down = (double)((p.m + GROUPED_TILE - 1) / GROUPED_TILE);
    double across = (double)((p.n + GROUPED_TILE - 1) / GROUPED_TILE);
    double waits = (double)p.k * (size < 4 ? 4 : size) / 256;
    double rounds = batch * down * across / GROUPED_TILES;
    double bytes = batch * size *
                   (across * (double)p.m * (double)p.k + down * (double)p.n * (double)p.k +
                    (double)p.m * (double)p.n);

    return facts->batch_max > 1 && bytes <= GROUPED_LINK_BYTES &&
           (rounds > 1 ? rounds : 1) * waits <= GROUPED_WAITS;
}

const struct gm_preference gm_preferences_cuda_matmul[] = {
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "grouped", is_small_job},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "small_tile", is_tiny_product},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "split_k_dot", is_long_sum},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "skinny", is_thin_product},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "batched", is_stack_of_small},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "multistage_tuned", suits_multistage_tuned},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "cublas", gm_always},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "skinny", is_thin_without_cublas},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "multistage_tuned", gm_always},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "small_tile", is_least_by_small_tile},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "tiled", is_least_by_tiled},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "register_tiled", is_least_by_register_tiled},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "multistage", gm_always},
    {GM_DEVICE_CUDA, GM_OP_MATMUL, GM_OP_MATMUL, "register_tiled", gm_always},
    {.name = NULL},
};
