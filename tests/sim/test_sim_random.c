/*
 * test_sim_random.c - every variant that the simulator runs, on shapes that nobody chose.
 *
 *   test_sim_random [ROUNDS]
 *
 * GM_SEED has the seed, 1 where it is not set: for a search give many rounds and another one. What
 * counts in a kernel is how many elements are left where tiles, pieces of 16 bytes and runs end:
 * sizes are of all magnitudes, many of them just at, below or above a multiple of such.
 */
#include "tests/unit/test_cpu_try.h"

#include <stdlib.h>

#define ROUNDS 8u             /* half a minute's work of two cores */
#define MOVES 6               /* of a round; and a sum, and a product */
#define ELEMENTS_MAX 100000u  /* several blocks of every kernel that moves elements */
#define PRODUCTS_MAX 4000000u /* multiply-adds */
#define SIZE_BITS 12u         /* a dimension is at most 2^SIZE_BITS, but for neighbours */
#define SIZE_BITS_PRODUCT 10u

/* Of all magnitudes alike; one of three next to a multiple of 8, 16 or 32. */
static uint64_t any_size(unsigned bits)
{
    uint64_t size =
        1 + random_below(&try_random, (uint64_t)1 << random_below(&try_random, bits + 1));

    if (random_below(&try_random, 3) > 0)
        return size;
    uint64_t unit = (uint64_t)8 << random_below(&try_random, 3);
    return (size + unit - 1) / unit * unit - 1 + random_below(&try_random, 3);
}

/* Half of them single. */
static uint64_t any_batch(void)
{
    return random_below(&try_random, 2) == 0 ? SINGLE : any_size(10);
}

static uint64_t matrices(uint64_t batch)
{
    return batch == SINGLE ? 1 : batch;
}

static enum gm_layout any_layout(void)
{
    return random_below(&try_random, 4) == 0 ? GM_COL_MAJOR : GM_ROW_MAJOR;
}

/* Stacks are of as many matrices as there is room for, so that they are several blocks' work, or of
 * any number. */
static void draw_shape(uint64_t ret[3])
{
    do {
        ret[1] = any_size(SIZE_BITS);
        ret[2] = any_size(SIZE_BITS);
    } while (ret[1] * ret[2] > ELEMENTS_MAX);
    uint64_t room = ELEMENTS_MAX / (ret[1] * ret[2]), some = any_size(SIZE_BITS);
    bool all = random_below(&try_random, 2) == 0;

    ret[0] = random_below(&try_random, 2) == 0 ? SINGLE : all || some > room ? room : some;
}

static void try_any_move(void)
{
    static const enum gm_op_kind kinds[] = {GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, GM_OP_FLIP,
                                            GM_OP_COPY};
    struct request request = {.kind = kinds[random_below(&try_random, 4)], .operands = 1};
    uint64_t shape[3];

    draw_shape(shape);
    request.dtype =
        (enum gm_dtype)(GM_DTYPE_NONE + 1 + random_below(&try_random, GM_DTYPE_COUNT - 1));
    request.layout[0] = any_layout();
    request.shape[0] = shape_of(shape[0], shape[1], shape[2]);
    try_request(&request);
}

/* Of operands of the result's shape, or one element, row, column or matrix for all. */
static void try_any_sum(void)
{
    struct request request = {.kind = GM_OP_ADD, .operands = 2};
    uint64_t shape[3];

    draw_shape(shape);
    request.dtype = arithmetic[random_below(&try_random, ARITHMETIC)];
    for (unsigned i = 0; i < 2; i++) {
        bool whole = random_below(&try_random, 2) == 0;
        uint64_t of[3];
        for (unsigned j = 0; j < 3; j++)
            of[j] = whole || random_below(&try_random, 2) == 0 ? shape[j] : 1;
        request.layout[i] = any_layout();
        request.shape[i] = shape_of(shape[0] == SINGLE ? SINGLE : of[0], of[1], of[2]);
    }
    try_request(&request);
}

static void try_any_product(void)
{
    struct request request = {.kind = GM_OP_MATMUL, .operands = 2};
    uint64_t batch, m, k, n;

    do {
        batch = any_batch();
        m = any_size(SIZE_BITS_PRODUCT);
        k = any_size(SIZE_BITS_PRODUCT);
        n = any_size(SIZE_BITS_PRODUCT);
    } while (matrices(batch) * (m * n + 1) * (k + 1) > PRODUCTS_MAX ||
             matrices(batch) * (m + n) * k > ELEMENTS_MAX);
    bool one_a = random_below(&try_random, 4) == 0, one_b = random_below(&try_random, 4) == 0;
    bool transa = random_below(&try_random, 2), transb = random_below(&try_random, 2);
    uint64_t batch_a = one_a ? SINGLE : batch, batch_b = one_b ? SINGLE : batch;

    request.dtype = arithmetic[random_below(&try_random, ARITHMETIC)];
    request.options.transa = transa;
    request.options.transb = transb;
    request.shape[0] = transa ? shape_of(batch_a, k, m) : shape_of(batch_a, m, k);
    request.shape[1] = transb ? shape_of(batch_b, n, k) : shape_of(batch_b, k, n);
    for (unsigned i = 0; i < 2; i++)
        request.layout[i] = any_layout();
    try_request(&request);
}

int main(int argc, char **argv)
{
    static const unsigned threads[] = {2, 0};
    unsigned long rounds = argc == 2 ? strtoul(argv[1], NULL, 10) : ROUNDS;

    if (argc > 2 || rounds == 0) {
        fprintf(stderr, "usage: test_sim_random [ROUNDS]\n");
        return 2;
    }
    if (!try_begin(&gm_backend_sim, threads))
        return try_end(0);
    for (unsigned long i = 0; i < rounds; i++) {
        for (int j = 0; j < MOVES; j++)
            try_any_move();
        try_any_sum();
        try_any_product();
    }
    return try_end(0);
}
