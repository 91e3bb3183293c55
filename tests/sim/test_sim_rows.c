/*
 * test_sim_rows.c - rows that lie apart are gathered into columns, and rows of a result scattered
 * (cuda/copy/rows.cu), as the CUDA backend does it for products of one row by the same matrix.
 */
#include "kernels/layout.h"
#include "run_kernel.h"

#include <string.h>

#define LENGTH_MAX 130u /* two tiles and an edge */
#define COUNT_MAX (LENGTH_MAX * GM_GATHERED_MAX)

/* The case of a kernel that runs: `count` rows of `length` elements, the last first in memory. */
static unsigned count, length;
static enum gm_dtype dtype;

static struct gm_rows rows_of(void *memory)
{
    struct gm_rows rows = {.count = count, .length = length, .dtype = dtype};

    for (unsigned i = 0; i < count; i++)
        rows.row[i] = (char *)memory + (count - 1 - i) * length * gm_dtype_size(dtype);
    return rows;
}

static enum gm_status gather(const struct gm_op *op, struct gm_exec *exec)
{
    const struct gm_rows rows = rows_of((void *)(uintptr_t)op->operand[0].data);

    return gm_sim_gather_rows(&rows, gm_gather_padded(count), op->result.data, exec);
}

static enum gm_status scatter(const struct gm_op *op, struct gm_exec *exec)
{
    const struct gm_rows rows = rows_of(op->result.data);

    return gm_sim_scatter_rows(op->operand[0].data, &rows, exec);
}

/* Elements of 4 and 2 bytes are parts of the integers that kernels of tests have. */
static void try_rows(void *sim)
{
    static int32_t in[COUNT_MAX], out[COUNT_MAX];
    const unsigned padded = gm_gather_padded(count);
    const size_t size = gm_dtype_size(dtype);
    const char *from = (const char *)in, *to = (const char *)out;
    const char zero[4] = {0};
    bool right = true;

    for (unsigned i = 0; i < COUNT_MAX; i++)
        in[i] = (int32_t)(i * 2654435761u);
    memset(out, 0, sizeof(out));
    struct sim_ran ran = sim_run(sim, gather, (padded * length * size + 3) / 4, in, out);
    CHECK_STATUS(ran.status, GM_OK, &ran.error);
    for (unsigned i = 0; i < padded * length; i++) {
        unsigned row = i % padded, step = i / padded;
        const char *expected =
            row < count ? from + ((count - 1 - row) * length + step) * size : zero;
        right = right && memcmp(to + i * size, expected, size) == 0;
    }
    memset(out, 0, sizeof(out));
    ran = sim_run(sim, scatter, (count * length * size + 3) / 4, in, out);
    CHECK_STATUS(ran.status, GM_OK, &ran.error);
    for (unsigned i = 0; i < count; i++)
        right = right && memcmp(to + (count - 1 - i) * length * size, from + i * length * size,
                                length * size) == 0;
    if (!CHECK(right))
        fprintf(stderr, "  %u rows of %u elements of %zu bytes\n", count, length, size);
}

int main(void)
{
    static const unsigned counts[] = {1, 3, 8, 9, GM_GATHERED_MAX}, lengths[] = {1, 64, LENGTH_MAX};
    static const enum gm_dtype dtypes[] = {GM_I32, GM_F16};
    void *sim = sim_open(1);

    for (unsigned c = 0; c < 5; c++)
        for (unsigned l = 0; l < 3; l++)
            for (unsigned d = 0; d < 2; d++) {
                count = counts[c];
                length = lengths[l];
                dtype = dtypes[d];
                try_rows(sim);
            }
    sim_close(sim);
    return check_report();
}
