/*
 * test_sim_tile_order.c - the order in which transposes take their tiles (parts/tile_order.cu):
 * results are the same in any, so nothing else would notice. Down the columns; along the rows of
 * tall matrices and of narrow ones (but for elements of 1 byte), or down bands of tall ones of long
 * rows, unless rows are whole stretches of 256 bytes. And that each tile is in one launch of those
 * that a grid cannot hold.
 */
#include "run_kernel.h"

#define TILES 4 /* either way */

/* The place of the tile of a row and a column in each order. */
static int down_columns(int row, int col)
{
    return col * TILES + row;
}

static int along_rows(int row, int col)
{
    return row * TILES + col;
}

static int down_bands_of_2(int row, int col)
{
    return row / 2 * 2 * TILES + col * 2 + row % 2;
}

#define ORDERS(X)                                                                                  \
    X(order_square, down_columns)                                                                  \
    X(order_kept, down_columns)                                                                    \
    X(order_tall, along_rows)                                                                      \
    X(order_bands, down_bands_of_2)                                                                \
    X(order_bands_to_spare, down_bands_of_2)                                                       \
    X(order_bands_of_bytes, down_bands_of_2)                                                       \
    X(order_tall_doubles, along_rows)                                                              \
    X(order_whole_stretches, down_columns)                                                         \
    X(order_narrow, along_rows)                                                                    \
    X(order_less_narrow, down_columns)                                                             \
    X(order_narrow_and_few, down_columns)                                                          \
    X(order_narrow_bytes, down_columns)                                                            \
    X(order_tall_bytes, along_rows)

#define X(name, place) gm_kernel_fn gm_sim_##name;
ORDERS(X)
#undef X

typedef int place_fn(int row, int col);

static void check_order(void *sim, const char *name, gm_kernel_fn *kernel, place_fn *place)
{
    static const int32_t in[TILES * TILES];
    int32_t block[TILES][TILES] = {{0}};
    struct sim_ran ran = sim_run(sim, kernel, TILES * TILES, in, &block[0][0]);
    bool right = true;

    if (!CHECK_STATUS(ran.status, GM_OK, &ran.error))
        return;
    for (int row = 0; row < TILES; row++) {
        for (int col = 0; col < TILES; col++)
            right &= block[row][col] == place(row, col);
    }
    if (!CHECK(right))
        fprintf(stderr, "  %s\n", name);
}

/* How many launches those take that a grid cannot hold. */
#define PARTS(X)                                                                                   \
    X(order_parts_of_columns, 2)                                                                   \
    X(order_parts_of_rows, 2)                                                                      \
    X(order_parts_of_stack, 3)                                                                     \
    X(order_parts_of_bands, 2)

#define X(name, launches) gm_kernel_fn gm_sim_##name;
PARTS(X)
#undef X

static void check_parts(void *sim, const char *name, gm_kernel_fn *kernel, int launches)
{
    static const int32_t in[TILES * TILES];
    int32_t seen[TILES * TILES] = {0};
    struct sim_ran ran = sim_run(sim, kernel, TILES * TILES, in, seen);

    if (!CHECK_STATUS(ran.status, GM_OK, &ran.error) || !CHECK_EQ(seen[0], launches) ||
        !CHECK(seen[1]))
        fprintf(stderr, "  %s\n", name);
}

int main(void)
{
    void *sim = sim_open(1);

#define X(name, place) check_order(sim, #name, gm_sim_##name, place);
    ORDERS(X)
#undef X
#define X(name, launches) check_parts(sim, #name, gm_sim_##name, launches);
    PARTS(X)
#undef X
    sim_close(sim);
    return check_report();
}
