/*
 * test_sim_walk.c - the order in which transposes take their tiles (parts/walk.cu): results are the
 * same in any, so nothing else would notice. Down the columns; along the rows of tall matrices and
 * of narrow ones (but for elements of 1 byte), unless rows are whole stretches of 256 bytes.
 */
#include "run_kernel.h"

#define TILES 4 /* either way */

/* kernel, whether along the rows */
#define WALKS(X)                                                                                   \
    X(walk_square, false)                                                                          \
    X(walk_kept, false)                                                                            \
    X(walk_tall, true)                                                                             \
    X(walk_whole_stretches, false)                                                                 \
    X(walk_wide_of_tall, true)                                                                     \
    X(walk_narrow, true)                                                                           \
    X(walk_less_narrow, false)                                                                     \
    X(walk_narrow_and_few, false)                                                                  \
    X(walk_narrow_bytes, false)                                                                    \
    X(walk_tall_bytes, true)

#define X(name, along_rows) gm_kernel_fn gm_sim_##name;
WALKS(X)
#undef X

static void check_walk(void *sim, const char *name, gm_kernel_fn *kernel, bool along_rows)
{
    static const int32_t in[TILES * TILES];
    int32_t block[TILES][TILES] = {{0}};
    struct sim_ran ran = sim_run(sim, kernel, TILES * TILES, in, &block[0][0]);
    bool right = true;

    if (!CHECK_STATUS(ran.status, GM_OK, &ran.error))
        return;
    for (int row = 0; row < TILES; row++) {
        for (int col = 0; col < TILES; col++)
            right &= block[row][col] == (along_rows ? row * TILES + col : col * TILES + row);
    }
    if (!CHECK(right))
        fprintf(stderr, "  %s\n", name);
}

int main(void)
{
    void *sim = sim_open(1);

#define X(name, along_rows) check_walk(sim, #name, gm_sim_##name, along_rows);
    WALKS(X)
#undef X
    sim_close(sim);
    return check_report();
}
