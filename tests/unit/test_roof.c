/* Which arithmetic ceiling a variant is held against. */
#include "kernels/device_facts.h"
#include "tests/unit/check.h"

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
    struct gm_device_facts less = {.copy_gbs = 9, .peak_gflops = {[GM_F32] = 3}};
    struct gm_device_facts more = {.copy_gbs = 11, .peak_gflops = {[GM_F32] = 2}};
    const struct gm_device_facts stopped = {0};

    gm_facts_raise(&facts, &less, 7);
    CHECK(gm_rate(&facts.copy_gbs) == 10 && gm_rate(&facts.peak_gflops[GM_F32]) == 3);
    CHECK(gm_rate_time(&facts.measured_unix) == 5 && gm_rate_time(&facts.looked_unix) == 7);
    gm_facts_raise(&facts, &more, 8);
    CHECK(gm_rate(&facts.copy_gbs) == 11 && gm_rate(&facts.peak_gflops[GM_F32]) == 3);
    CHECK(facts.measured_unix == 8 && facts.looked_unix == 8);
    gm_facts_raise(&facts, &stopped, 9);
    CHECK(facts.copy_gbs == 11 && facts.looked_unix == 8);
}

static void expect(struct gm_roof found, double gflops, const char *unit)
{
    CHECK(found.gflops == gflops);
    CHECK_STR(found.unit, unit);
}

int main(void)
{
    test_raise();
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
