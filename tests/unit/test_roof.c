/*
 * test_roof.c - which arithmetic ceiling a variant is held against, what moves over the link, and
 * which recorded times are quoted.
 */
#include "kernels/device_facts.h"
#include "kernels/gpu.h"
#include "kernels/task.h"
#include "tests/unit/check.h"

#include <math.h>
#include <string.h>

static const struct gm_gpu gpu = {
    .tensor_f16_gflops = 1000, .tensor_tf32_gflops = 500, .tensor_fp64_gflops = 67};
static const struct gm_variant plain = {.op = GM_OP_MATMUL}, blas = {.wants_blas = true},
                               split = {.op = GM_OP_MATMUL, .tensor_products = 4},
                               half = {.op = GM_OP_MATMUL, .tensor_products = 1};

static struct gm_roof roof(const struct gm_variant *variant, enum gm_dtype dtype,
                           enum gm_precision precision, enum gm_device_kind kind)
{
    struct gm_op op = {.kind = GM_OP_MATMUL, .precision = precision, .result.dtype = dtype};
    struct gm_device_facts facts = {.kind = kind, .gpu = kind == GM_DEVICE_CPU ? NULL : &gpu};

    for (int i = 1; i < GM_DTYPE_COUNT; i++) {
        facts.peak_gflops[i] = i;
        facts.peak_name[i] = "plain";
    }
    return gm_roof_of(variant, &op, &facts);
}

/* What was measured again is kept where it is more, with its time. */
static void test_raise(void)
{
    struct gm_device_facts facts = {.copy_gbs = 10, .measured_unix = 5, .looked_unix = 5};
    struct gm_device_facts less = {
        .copy_gbs = 9, .link_in_gbs = 1, .link_out_gbs = 2, .peak_gflops = {[GM_F32] = 3}};
    struct gm_device_facts more = {.copy_gbs = 11, .peak_gflops = {[GM_F32] = 2}};
    const struct gm_device_facts stopped = {0};

    gm_facts_raise(&facts, &less, 7);
    CHECK(gm_rate(&facts.copy_gbs) == 10 && gm_rate(&facts.peak_gflops[GM_F32]) == 3);
    CHECK(gm_rate(&facts.link_in_gbs) == 1 && gm_rate(&facts.link_out_gbs) == 2);
    CHECK(gm_rate_time(&facts.measured_unix) == 5 && gm_rate_time(&facts.looked_unix) == 7);
    gm_facts_raise(&facts, &more, 8);
    CHECK(gm_rate(&facts.copy_gbs) == 11 && gm_rate(&facts.peak_gflops[GM_F32]) == 3);
    CHECK(facts.measured_unix == 8 && facts.looked_unix == 8);
    gm_facts_raise(&facts, &stopped, 9);
    CHECK(facts.copy_gbs == 11 && facts.looked_unix == 8);
}

/* The shape whose times on an H200 are quoted for a product of f32 of m x n and n x n. */
static const char *quoted(uint64_t m, uint64_t n, bool transb)
{
    const struct gm_op op = {.kind = GM_OP_MATMUL,
                             .operands = 2,
                             .operand = {{.dtype = GM_F32, .batch = 1, .rows = m, .cols = n},
                                         {.dtype = GM_F32, .batch = 1, .rows = n, .cols = n}},
                             .result = {.dtype = GM_F32, .batch = 1, .rows = m, .cols = n},
                             .transb = transb,
                             .alpha.real = 1};
    bool same;
    const struct gm_measured *found = gm_measured_find(gm_gpu_find("H200"), &op, &same);

    CHECK(found || !same);
    return found ? found->shape : "none";
}

/* Times are those of the shape, or of one that kernels treat alike. */
static void test_measured(void)
{
    CHECK_STR(quoted(4096, 4096, false), "4096x4096 4096x4096");
    CHECK_STR(quoted(4096, 4096, true), "4096x4096 4096x4096^T");
    CHECK_STR(quoted(4000, 4000, false), "4096x4096 4096x4096");
    CHECK(strcmp(quoted(4001, 4001, false), "4096x4096 4096x4096") != 0); /* by other loads */
    CHECK_STR(quoted(1, 8192, false), "1x8192 8192x8192");
    CHECK(strcmp(quoted(2, 8192, false), "1x8192 8192x8192") != 0); /* a vector is a case apart */

    const struct gm_measured row = {.times = "tiled_2 5 tiled 7 naive 9"};
    CHECK(gm_measured_us(&row, "tiled") == 7 && gm_measured_us(&row, "naive") == 9);
    CHECK(gm_measured_us(&row, "tile") < 0 && gm_measured_us(&row, "7") < 0);
}

/* A job that a kernel gathers itself moves over the link what is on the host, both ways at once. */
static void test_link(void)
{
    static const struct gm_variant grouped = {.op = GM_OP_ADD, .groups = true};
    const struct gm_matrix a = {.dtype = GM_F32, .batch = 1, .rows = 10, .cols = 10},
                           b = {.dtype = GM_F32, .batch = 1, .rows = 1, .cols = 10};
    struct gm_task task = {
        .variant = &grouped,
        .op = {.kind = GM_OP_ADD, .operands = 2, .operand = {a, b}, .result = a}};
    struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA, .link_in_gbs = 2};

    struct gm_volume volume = gm_volume_of(&task, &facts);
    CHECK(volume.link_in == 440 && volume.link_out == 400 && volume.bytes == 840);
    task.on_device = 1;
    CHECK(gm_volume_of(&task, &facts).link_in == 40);
    task.on_device = 2 | GM_RESULT_ON_DEVICE;
    volume = gm_volume_of(&task, &facts);
    CHECK(volume.link_in == 400 && volume.link_out == 0 && volume.bytes == 840);

    CHECK(gm_link_seconds(1e9, 1e9, &facts) == 0); /* of one way nothing is known */
    facts.link_out_gbs = 1;
    CHECK(fabs(gm_link_seconds(1e9, 3e9, &facts) - 3) < 1e-9);
    CHECK(fabs(gm_link_seconds(8e9, 3e9, &facts) - 4) < 1e-9);
}

static void expect(struct gm_roof found, double gflops, const char *unit)
{
    CHECK(found.gflops == gflops);
    CHECK_STR(found.unit, unit);
}

int main(void)
{
    test_raise();
    test_measured();
    test_link();
    const enum gm_device_kind cuda = GM_DEVICE_CUDA;

    /* Plain arithmetic: our own kernels, a BLAS for processors, and no kernel at all. */
    expect(roof(&plain, GM_F16, GM_PRECISION_FP32, cuda), GM_F16, "plain");
    expect(roof(NULL, GM_BF16, GM_PRECISION_FP32, cuda), GM_BF16, "plain");
    expect(roof(&blas, GM_F64, GM_PRECISION_FP32, GM_DEVICE_CPU), GM_F64, "plain");
    /* cuBLAS: tensor cores where the type or the precision lets it, and integers never. */
    expect(roof(&blas, GM_F16, GM_PRECISION_FP32, cuda), 1000, "tensor f16");
    expect(roof(&blas, GM_BF16, GM_PRECISION_IEEE, cuda), 1000, "tensor bf16");
    expect(roof(&blas, GM_F64, GM_PRECISION_FP32, cuda), 67, "tensor fp64");
    expect(roof(&blas, GM_F32, GM_PRECISION_FP32, cuda), GM_F32, "plain");
    expect(roof(&blas, GM_F32, GM_PRECISION_IEEE, cuda), GM_F32, "plain");
    expect(roof(&blas, GM_F32, GM_PRECISION_TF32, cuda), 500, "tensor tf32");
    expect(roof(&blas, GM_F32, GM_PRECISION_BF16_PRODUCTS, cuda), 1000, "tensor bf16");
    /* Ours for f16 and bf16 always. */
    expect(roof(&half, GM_F16, GM_PRECISION_IEEE, cuda), 1000, "tensor f16");
    expect(roof(&half, GM_BF16, GM_PRECISION_FP32, cuda), 1000, "tensor bf16");
    /* f32 made of four bf16 products has a fourth of their rate. */
    expect(roof(&split, GM_F32, GM_PRECISION_FP32, cuda), 250, "tensor bf16, several products");
    expect(roof(&blas, GM_I32, GM_PRECISION_FP32, cuda), GM_I32, "plain");
    return check_report();
}
