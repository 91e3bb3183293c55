/*
 * test_sim_samples.c - reports of shapes too large to be traced whole: that they say so, and that
 * their figures are those of the whole; and what a site of a report says.
 */
#include "explain_variant.h"

#include <math.h>

static void *sim;

/* Where all tiles are alike a sample is exact; at edges that the grid's ends do not show, within a
 * hundredth. */
static void check_sample(const struct gm_op *op, const char *name, double off)
{
    const struct gm_variant *variant = variant_of(op->kind, name);
    struct gm_access_report report = {0};
    struct gm_access_totals whole;

    if (!explain(sim, op, variant, &report) || !run_whole(sim, op, variant, &whole))
        return;
    bool right = CHECK(report.sampled);
    right &= CHECK(totals_equal(&report.totals, &whole, off));
    right &= CHECK(fabs(report.totals.blocks - whole.blocks) <= 1e-9 * whole.blocks);
    right &= CHECK(fabs(report.totals.barriers - whole.barriers) <= 1e-9 * whole.barriers);
    right &= CHECK(fabs(report.totals.steps - whole.steps) <= (off + 1e-9) * whole.steps);
    right &=
        CHECK(report.launch[0].traced < report.launch[0].blocks || report.launch[0].steps_sampled);
    if (!right)
        fprintf(stderr, "  %s %s\n", gm_op_name(op->kind), name);
    gm_access_report_clear(&report);
}

/* On one thread, which makes what is worth a sample smaller. */
static void test_samples(void)
{
    struct gm_op even = move_of(GM_OP_TRANSPOSE, GM_F32, 2304, 2304);
    struct gm_op odd = move_of(GM_OP_TRANSPOSE, GM_F32, 2301, 2303);
    struct gm_op product = product_of(GM_F32, 160, 320, 160, false, false);
    struct gm_op odd_product = product_of(GM_F32, 150, 345, 155, false, true);
    struct gm_op flip = move_of(GM_OP_FLIP, GM_F32, 2301, 2303);

    check_sample(&even, "naive", 1e-9);
    check_sample(&even, "tiled", 1e-9);
    check_sample(&odd, "padded", 0.01);
    check_sample(&odd, "naive", 0.01);
    check_sample(&flip, "shared", 0.01);
    check_sample(&product, "naive", 1e-9);
    check_sample(&product, "tiled", 1e-9);
    check_sample(&odd_product, "naive", 0.01);
    check_sample(&odd_product, "tiled", 0.01);
}

/* 8192 x 8192: 2^26 elements, 2^21 warps' worth. */
static void test_large(void)
{
    static const struct {
        const char *name;
        double store, shared_load;
    } transposes[] = {{"naive", 32, 0}, {"tiled", 4, 32}, {"padded", 4, 1}};
    struct gm_op transpose = move_of(GM_OP_TRANSPOSE, GM_F32, 8192, 8192);
    struct gm_op product = product_of(GM_F32, 8192, 8192, 8192, false, false);
    struct gm_access_report report = {0};
    const double warps = 0x1p21, close = 1e-9;

    for (int i = 0; i < 3; i++) {
        if (!explain(sim, &transpose, variant_of(GM_OP_TRANSPOSE, transposes[i].name), &report))
            continue;
        const struct gm_access_sums *kind = report.totals.kind;
        CHECK(report.sampled && report.launches == 1);
        CHECK(report.launch[0].traced < report.launch[0].blocks);
        CHECK(report.launch[0].blocks ==
              report.launch[0].grid[0] * (double)report.launch[0].grid[1]);
        CHECK(fabs(kind[GM_GLOBAL_LOAD].units / (4 * warps) - 1) < close);
        CHECK(fabs(kind[GM_GLOBAL_STORE].units / (transposes[i].store * warps) - 1) < close);
        if (transposes[i].shared_load > 0)
            CHECK(fabs(kind[GM_SHARED_LOAD].units / (transposes[i].shared_load * warps) - 1) <
                  close);
        gm_access_report_clear(&report);
    }
    /* each element of a and b comes to a tile 256 times: 2^26 x 256 x 2 / 32 loads of 4 sectors */
    if (explain(sim, &product, variant_of(GM_OP_MATMUL, "tiled"), &report)) {
        CHECK(report.sampled);
        CHECK(fabs(report.totals.kind[GM_GLOBAL_LOAD].requests / (warps * 512) - 1) < close);
        CHECK(fabs(report.totals.kind[GM_GLOBAL_LOAD].units / (warps * 2048) - 1) < close);
        gm_access_report_clear(&report);
    }
}

/* ---- Sites ------------------------------------------------------------------------------------
 */

static const struct gm_access_site *site_of(const struct gm_access_report *report,
                                            enum gm_access_kind kind)
{
    for (size_t i = 0; i < report->sites; i++)
        if (report->site[i].kind == kind)
            return &report->site[i];
    return NULL;
}

/* What a reader sees of the tiled transpose: four accesses, in two lines. */
static void test_sites(void)
{
    struct gm_op op = move_of(GM_OP_TRANSPOSE, GM_F32, 64, 64);
    struct gm_access_report report = {0};

    if (!explain(sim, &op, variant_of(GM_OP_TRANSPOSE, "tiled"), &report))
        return;
    CHECK_EQ(report.sites, 4);
    for (size_t i = 0; i < report.sites; i++) {
        CHECK_STR(report.site[i].file, "kernels/cuda/transpose/tiled.cu");
        CHECK_STR(report.site[i].kernel, "transpose_tiled");
        CHECK(report.site[i].sums.requests == 128);
    }
    const struct gm_access_site *load = site_of(&report, GM_GLOBAL_LOAD);
    const struct gm_access_site *column = site_of(&report, GM_SHARED_LOAD);
    const struct gm_access_site *row = site_of(&report, GM_SHARED_STORE);
    const struct gm_access_site *store = site_of(&report, GM_GLOBAL_STORE);
    if (CHECK(load && column && row && store)) {
        CHECK_STR(load->memory, "a");
        CHECK_STR(row->memory, "tile");
        CHECK_STR(column->memory, "tile");
        CHECK_STR(store->memory, "result");
        CHECK_STR(load->source, "tile[y][x] = in[matrix + row * cols + col];");
        CHECK_STR(column->source, "out[matrix + col * rows + row] = tile[x][y];");
        CHECK(load->line == row->line && column->line == store->line && load->line < store->line);
        CHECK_EQ(column->example.active, UINT32_MAX);
        for (int lane = 1; lane < 32; lane++) {
            CHECK_EQ(load->example.offset[lane] - load->example.offset[0], 4 * lane);
            CHECK_EQ(column->example.offset[lane] - column->example.offset[0], 128 * lane);
        }
        CHECK(column->example.offset[0] >= 0 && column->example.offset[31] < 4096);
    }
    CHECK_EQ(report.launch[0].shared, 4096);
    CHECK(report.launch[0].block[0] == 32 && report.launch[0].block[1] == 8);
    CHECK(report.totals.barriers == 4 && report.totals.blocks == 4 && report.totals.warps == 32);
    CHECK(report.totals.loading == 32);
    gm_access_report_clear(&report);

    /* Two blocks of 32 x 32 threads for one row: of each, one warp has something to load. */
    struct gm_op row_by = product_of(GM_F32, 1, 32, 64, false, false);
    if (!explain(sim, &row_by, variant_of(GM_OP_MATMUL, "naive"), &report))
        return;
    CHECK(report.totals.warps == 64 && report.totals.loading == 2);
    gm_access_report_clear(&report);
}

gm_kernel_fn gm_sim_copy_unguarded; /* parts/unguarded.cu */

/* A fault that this shape does not show: the small ragged shape before it does. */
static void test_edges(void)
{
    static const struct gm_variant unguarded = {.name = "unguarded",
                                                .op = GM_OP_COPY,
                                                .dtypes = GM_DTYPE_BIT(GM_F32),
                                                .accepts = gm_accepts_any,
                                                .scratch = gm_scratch_none,
                                                .run[GM_DEVICE_SIM] = gm_sim_copy_unguarded};
    struct gm_op op = move_of(GM_OP_COPY, GM_F32, 1024, 1024);
    struct gm_access_report report = {0};
    struct gm_task task = {.op = op, .variant = &unguarded, .repeat = 1, .report = &report};
    struct gm_access_totals whole;

    CHECK(run_whole(sim, &op, &unguarded, &whole));
    CHECK_EQ(gm_backend_sim.run(sim, 0, 0, (struct gm_task *[]){&task}, 1), GM_OK);
    CHECK_STATUS(task.status, GM_KERNEL_FAULT, &task.error);
    if (!CHECK(strstr(task.error.detail, "unguarded.cu:11") && strstr(task.error.detail, "37x41")))
        fprintf(stderr, "  %s\n", task.error.detail);
    gm_access_report_clear(&report);
}

static bool open_sim(unsigned threads)
{
    struct gm_backend_options options = {.threads = threads};
    struct gm_error err = {.detail = ""};

    return CHECK_STATUS(gm_backend_sim.open(&options, &sim, &err), GM_OK, &err);
}

int main(void)
{
    if (open_sim(1)) {
        test_samples();
        gm_backend_sim.close(sim);
    }
    if (open_sim(2)) {
        test_large();
        test_sites();
        test_edges();
        gm_backend_sim.close(sim);
    }
    return check_report();
}
