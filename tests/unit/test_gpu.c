/* GPU models: their ceilings against the data sheets' figures, and occupancies done by hand. */
#include "kernels/access.h"
#include "kernels/gpu.h"
#include "tests/unit/check.h"

#include <math.h>
#include <string.h>

/* As the data sheets print it, to the digits they print. */
static void test_data_sheets(void)
{
    static const struct {
        const char *name;
        unsigned capability, sms;
        double fp32_tflops, fp64_tflops, gbs;
    } sheets[] = {
        {"H200", 90, 132, 67, 34, 4800},
        {"H100", 90, 132, 67, 34, 3350},
        {"A100", 80, 108, 19.5, 9.7, 2039},
        {"B200", 100, 148, 75, 37, 7700},
        {"RTX 5090", 120, 170, 104.8, 0, 1792},
        {"RTX 4090", 89, 128, 82.6, 0, 1008},
        {"RTX 3090", 86, 82, 35.6, 0, 936},
        {"L4", 89, 58, 30.3, 0, 300},
        {"T4", 75, 40, 8.1, 0, 320},
    };
    size_t count = 0;

    for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++) {
        const struct gm_gpu *gpu = gm_gpu_find(sheets[i].name);
        if (!CHECK(gpu != NULL && gpu == gm_gpu_at(i)))
            continue;
        CHECK_EQ(gpu->capability, sheets[i].capability);
        CHECK_EQ(gpu->sms, sheets[i].sms);
        CHECK(fabs(gpu->fp32_gflops - 1000 * sheets[i].fp32_tflops) <=
              0.015 * 1000 * sheets[i].fp32_tflops);
        if (sheets[i].fp64_tflops > 0)
            CHECK(fabs(gpu->fp64_gflops - 1000 * sheets[i].fp64_tflops) <=
                  0.02 * 1000 * sheets[i].fp64_tflops);
        CHECK(gpu->dram_gbs == sheets[i].gbs);
        CHECK(gpu->shared_per_block + gpu->shared_reserved == gpu->shared_per_sm);
        CHECK_EQ(gpu->threads_per_sm % GM_WARP, 0);
        CHECK(gm_gpu_gflops(gpu, GM_F32) == gpu->fp32_gflops);
        CHECK(gm_gpu_gflops(gpu, GM_BF16) == gpu->fp32_gflops);
        CHECK(gm_gpu_gflops(gpu, GM_F64) == gpu->fp64_gflops);
        CHECK(gm_gpu_gflops(gpu, GM_I32) == gpu->int32_gflops && gpu->int32_gflops > 0);
        CHECK(gm_gpu_gflops(gpu, GM_V4) == 0);
    }
    while (gm_gpu_at(count))
        count++;
    CHECK_EQ(count, sizeof sheets / sizeof *sheets);
    CHECK_STR(gm_gpu_at(0)->name, "H200");
}

static void test_names(void)
{
    CHECK(gm_gpu_find("h200") == gm_gpu_at(0));
    CHECK(gm_gpu_find("rtx4090") == gm_gpu_find("RTX 4090"));
    CHECK(gm_gpu_find("rtx-3090") == gm_gpu_find("RTX_3090") && gm_gpu_find("RTX3090"));
    CHECK(gm_gpu_find("") == NULL && gm_gpu_find("H20") == NULL && gm_gpu_find("H2000") == NULL);
    CHECK(gm_gpu_find("GTX 4090") == NULL && gm_gpu_find("4") == NULL);
}

/* Each by hand, from the limits of the compute capability. */
static void test_occupancy(void)
{
    static const struct {
        const char *gpu;
        unsigned threads;
        uint64_t shared;
        unsigned registers, blocks, warps;
        const char *limited_by;
    } cases[] = {
        /* 64 warps of 2048 threads: 8 blocks of 8 warps. */
        {"H200", 256, 0, 0, 8, 64, "threads"},
        {"H200", 1024, 0, 0, 2, 64, "threads"},
        /* 32 blocks at most: half the warps stay empty. */
        {"H200", 32, 0, 0, 32, 32, "blocks"},
        {"RTX 4090", 32, 0, 0, 24, 24, "blocks"},
        {"RTX 3090", 32, 0, 0, 16, 16, "blocks"},
        {"T4", 32, 0, 0, 16, 16, "blocks"},
        /* A warp of one thread is a warp: 33 threads are 2 warps, so 32 blocks of them. */
        {"H200", 33, 0, 0, 32, 64, "threads"},
        /* 48 warps: one block of 32 does not leave room for another. */
        {"RTX 4090", 1024, 0, 0, 1, 32, "threads"},
        {"RTX 5090", 512, 0, 0, 3, 48, "threads"},
        /* 4096 + 1024 bytes: 228 KiB hold 45 blocks, which is no limit before threads. */
        {"H200", 256, 4096, 0, 8, 64, "threads"},
        /* 33 * 33 * 4 + 1024 = 5380, in units of 128: 5504; 102400 / 5504 = 18 blocks. */
        {"RTX 4090", 64, 4356, 0, 18, 36, "shared memory"},
        /* 48 KiB + 1 KiB: 233472 / 50176 = 4. */
        {"H200", 256, 49152, 0, 4, 32, "shared memory"},
        {"H200", 256, 227 * 1024, 0, 1, 8, "shared memory"},
        {"H200", 256, 227 * 1024 + 1, 0, 0, 0, "shared memory"},
        /* Nothing is reserved before 8.0, units are of 256: 20000 -> 20224; 65536 / 20224 = 3. */
        {"T4", 128, 20000, 0, 3, 12, "shared memory"},
        /* 9300 -> 9472, 6 blocks; units of 128 would leave room for 7. */
        {"T4", 64, 9300, 0, 6, 12, "shared memory"},
        {"T4", 256, 0, 0, 4, 32, "threads"},
        /* 40 registers: 1280 a warp; 16384 / 1280 = 12 a quarter, 48 warps: 6 blocks. */
        {"H200", 256, 0, 40, 6, 48, "registers"},
        {"H200", 256, 0, 32, 8, 64, "threads"},
        /* 33 registers: 1056, in units of 256: 1280. */
        {"H200", 256, 0, 33, 6, 48, "registers"},
        /* 255 registers: 8192 a warp, 8 warps a multiprocessor. */
        {"H200", 256, 0, 255, 1, 8, "registers"},
        {"H200", 512, 0, 255, 0, 0, "registers"},
        {"H200", 32, 0, 256, 0, 0, "registers"},
        {"H200", 0, 0, 0, 0, 0, "threads"},
        {"H200", 1025, 0, 0, 0, 0, "threads"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gm_gpu *gpu = gm_gpu_find(cases[i].gpu);
        struct gm_occupancy o =
            gm_gpu_occupancy(gpu, cases[i].threads, cases[i].shared, cases[i].registers);
        bool same = o.blocks == cases[i].blocks && o.warps == cases[i].warps &&
                    strcmp(o.limited_by, cases[i].limited_by) == 0;
        check_that(same, __FILE__, __LINE__, "case %zu: %u blocks, %u warps, %s", i, o.blocks,
                   o.warps, o.limited_by);
        CHECK(o.percent == 100.0 * o.warps / (gpu->threads_per_sm / GM_WARP));
    }
}

static void test_sectors(void)
{
    const struct gm_op_options options = {0};
    const bool present[GM_OPERANDS_MAX] = {true, true, true};
    const struct gm_matrix operand[GM_OPERANDS_MAX] = {
        {.dtype = GM_F32, .batch = 1, .rows = 3, .cols = 5},  /* 60 bytes: 2 sectors */
        {.dtype = GM_F32, .batch = 1, .rows = 5, .cols = 8},  /* 160: 5 */
        {.dtype = GM_F32, .batch = 1, .rows = 3, .cols = 8}}; /* 96: 3, as the result's */
    struct gm_op_options no_c = {.has_beta = true};
    struct gm_error error;
    struct gm_op op;

    CHECK_STATUS(gm_op_init(&op, GM_OP_MATMUL, &options, operand, present, &error), GM_OK, &error);
    CHECK(gm_access_sectors_min(&op) == 2 + 5 + 3 + 3);
    CHECK_STATUS(gm_op_init(&op, GM_OP_MATMUL, &no_c, operand, present, &error), GM_OK, &error);
    CHECK(gm_access_sectors_min(&op) == 2 + 5 + 3); /* beta = 0 leaves c unread */
}

static void test_report(void)
{
    struct gm_access_report report = {.launches = 1, .sites = 2, .sampled = true};
    static const struct gm_access_report empty;

    report.launch = calloc(1, sizeof *report.launch);
    report.site = calloc(2, sizeof *report.site);
    gm_access_report_clear(&report);
    CHECK(memcmp(&report, &empty, sizeof report) == 0);
    gm_access_report_clear(&report);
    CHECK_STR(gm_access_name(GM_GLOBAL_LOAD), "global_load");
    CHECK_STR(gm_access_name(GM_SHARED_ATOMIC), "shared_atomic");
    CHECK(!gm_access_is_shared(GM_GLOBAL_ATOMIC) && gm_access_is_shared(GM_SHARED_LOAD));
}

/* Ceilings by capability and clock are those that the models have. */
static void test_rates(void)
{
    for (size_t i = 0; gm_gpu_at(i); i++) {
        const struct gm_gpu *model = gm_gpu_at(i);
        struct gm_gpu gpu = {.capability = model->capability, .sms = model->sms};
        gm_gpu_set_rates(&gpu, gm_gpu_ghz(model));
        const double rates[][2] = {{gpu.fp32_gflops, model->fp32_gflops},
                                   {gpu.fp64_gflops, model->fp64_gflops},
                                   {gpu.int32_gflops, model->int32_gflops},
                                   {gpu.tensor_f16_gflops, model->tensor_f16_gflops},
                                   {gpu.tensor_tf32_gflops, model->tensor_tf32_gflops},
                                   {gpu.tensor_fp64_gflops, model->tensor_fp64_gflops}};
        for (size_t j = 0; j < sizeof rates / sizeof *rates; j++)
            CHECK(fabs(rates[j][0] - rates[j][1]) <= 0.001 * rates[j][1]);
    }
    struct gm_gpu unknown = {.capability = 999, .sms = 10};
    gm_gpu_set_rates(&unknown, 1);
    CHECK(unknown.fp32_gflops == 0);
}

static void test_models(void)
{
    CHECK(gm_gpu_model("NVIDIA H200") == gm_gpu_find("H200"));
    CHECK(gm_gpu_model("NVIDIA H100 80GB HBM3") == gm_gpu_find("H100"));
    CHECK(gm_gpu_model("NVIDIA A100-SXM4-80GB") == gm_gpu_find("A100"));
    CHECK(gm_gpu_model("NVIDIA L4") == gm_gpu_find("L4"));
    CHECK(!gm_gpu_model("NVIDIA L40S") && !gm_gpu_model("GH200") && !gm_gpu_model(""));
    CHECK(gm_gpu_l2_gbs(gm_gpu_find("B200")) == 0);
    CHECK(gm_gpu_l2_bytes_per_clock(gm_gpu_find("B200")) ==
          gm_gpu_find("H200")->l2_bytes_per_clock);
    CHECK(gm_gpu_l2_bytes_per_clock(gm_gpu_find("RTX 3090")) ==
          gm_gpu_find("RTX 4090")->l2_bytes_per_clock);
    CHECK(gm_gpu_l2_bytes_per_clock(gm_gpu_find("T4")) == 15); /* the least */
    CHECK(fabs(gm_gpu_l2_gbs(gm_gpu_find("H200")) - 37 * 132 * 1.98) < 1);
}

/* What nvcc says of transpose_tiled<uint32_t>: the table has a row, and the GPU's column of it. */
static void test_resources(void)
{
    const char *symbol = "_Z15transpose_tiledIjEvPKT_PS0_mm9gm_origin";
    struct gm_resources found = {0};
    struct gm_gpu other = *gm_gpu_find("H200");

    for (size_t i = 0; gm_gpu_at(i); i++) {
        CHECK(gm_gpu_resources(gm_gpu_at(i), symbol, &found));
        CHECK(found.registers >= 16 && found.registers <= 64 && found.shared == 32 * 32 * 4 &&
              found.spilled == 0);
    }
    CHECK(!gm_gpu_resources(gm_gpu_at(0), "_Z4nonev", &found));
    CHECK(!gm_gpu_resources(gm_gpu_at(0), NULL, &found));
    other.capability = 70;
    CHECK(!gm_gpu_resources(&other, symbol, &found));
}

int main(void)
{
    test_data_sheets();
    test_names();
    test_models();
    test_resources();
    test_occupancy();
    test_sectors();
    test_report();
    test_rates();
    return check_report();
}
