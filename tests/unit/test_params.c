/* Parameters: every row of the table, and every way to get one wrong. */
#include "server/request/params.h"
#include "tests/unit/check.h"

#include <string.h>

static enum gm_status set(struct gm_params *p, enum gm_op_kind op, const char *name,
                          const char *value, struct gm_error *err)
{
    return gm_params_set(p, op, name, strlen(name), value, strlen(value), err);
}

static void test_values(void)
{
    struct gm_params p = {0};
    struct gm_error e;
    const enum gm_op_kind op = GM_OP_MATMUL;

    CHECK(set(&p, op, "kernel", "blocked", &e) == GM_OK && strcmp(p.kernel, "blocked") == 0);
    CHECK(set(&p, op, "device", "cpu:0", &e) == GM_OK && strcmp(p.device, "cpu:0") == 0);
    CHECK(set(&p, op, "dtype", "bf16", &e) == GM_OK && p.dtype == GM_BF16);
    CHECK(set(&p, op, "shape", "3x4", &e) == GM_OK);
    CHECK(p.shape[0].ndim == 2 && p.shape[0].dim[0] == 3 && p.shape[0].dim[1] == 4);
    CHECK(set(&p, op, "shape_b", "2x4x5", &e) == GM_OK && p.shape[1].ndim == 3);
    CHECK(set(&p, op, "shape_c", "7", &e) == GM_OK && p.shape[2].ndim == 1);
    CHECK(set(&p, op, "transa", "true", &e) == GM_OK && p.op.transa);
    CHECK(set(&p, op, "transb", "0", &e) == GM_OK && !p.op.transb);
    CHECK(set(&p, op, "alpha", "-2.5e-1", &e) == GM_OK && p.op.has_alpha);
    CHECK(p.op.alpha.real == -0.25 && !p.op.alpha.is_integer);
    CHECK(set(&p, op, "beta", "9007199254740993", &e) == GM_OK && p.op.beta.is_integer);
    CHECK(p.op.beta.integer == INT64_C(9007199254740993)); /* beyond what a double holds */
    struct gm_params other = {0};
    CHECK(set(&other, op, "beta", "9007199254740993.0", &e) == GM_OK && other.op.beta.is_integer);
    CHECK(other.op.beta.integer == INT64_C(9007199254740993));
    CHECK(set(&p, op, "precision", "tf32", &e) == GM_OK && p.op.precision == GM_PRECISION_TF32);
    CHECK(set(&p, op, "repeat", "1000", &e) == GM_OK && p.repeat == 1000);
    CHECK(set(&p, op, "repeat", "1000.0", &e) == GM_OK && p.repeat == 1000);
    CHECK(set(&p, op, "timeout_ms", "1", &e) == GM_OK && p.timeout_ms == 1);
    CHECK(set(&p, op, "nonfinite", "null", &e) == GM_OK && p.nonfinite_null);
    CHECK(set(&p, op, "header", "1", &e) == GM_OK && p.header == GM_HEADER_PRESENT);
    CHECK(set(&p, op, "gpu", "rtx-4090", &e) == GM_OK && p.gpu == gm_gpu_find("RTX 4090"));
}

static void test_scalars(void)
{
    static const struct {
        const char *text;
        bool ok, is_integer;
        double real;
    } cases[] = {
        {"1", true, true, 1},          {"-3", true, true, -3},
        {"2.0", true, true, 2},        {"1e3", true, true, 1000},
        {"0.1", true, false, 0.1},     {"", false, false, 0},
        {"nan", false, false, 0},      {"inf", false, false, 0},
        {"0x10", false, false, 0},     {"1e999", false, false, 0},
        {"1 ", false, false, 0},       {"one", false, false, 0},
        {"1e", false, false, 0},       {"--1", false, false, 0},
        {"1e300", true, false, 1e300}, {"99999999999999999999", true, false, 1e20},
        {"+1.50e1", true, true, 15},   {"9223372036854775807.0", true, true, 0x1p63},
        {"1e-400", true, false, 0},    {"0.99999999999999999999", true, false, 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gm_params p = {0};
        struct gm_error e;
        enum gm_status want = cases[i].ok ? GM_OK : GM_BAD_PARAMETER;
        CHECK(set(&p, GM_OP_MATMUL, "alpha", cases[i].text, &e) == want);
        if (cases[i].ok) {
            CHECK(p.op.alpha.real == cases[i].real);
            CHECK(p.op.alpha.is_integer == cases[i].is_integer);
        }
    }
}

static void test_errors(void)
{
    static const struct {
        enum gm_op_kind op;
        const char *name, *value;
        enum gm_status status;
        const char *says;
    } cases[] = {
        {GM_OP_TRANSPOSE, "kernal", "naive", GM_UNKNOWN_PARAMETER, "nearest is 'kernel'"},
        {GM_OP_TRANSPOSE, "timeout", "5", GM_UNKNOWN_PARAMETER, "nearest is 'timeout_ms'"},
        {GM_OP_TRANSPOSE, "", "5", GM_UNKNOWN_PARAMETER, "NAME=VALUE"},
        {GM_OP_TRANSPOSE, "volume", "5", GM_UNKNOWN_PARAMETER,
         "those of transpose are kernel, device,"},
        {GM_OP_FLIP, "axis", "0", GM_UNKNOWN_PARAMETER, "'axis'; those of flip are kernel, device"},
        {GM_OP_MATMUL, "c", "1", GM_BAD_PARAMETER, "ref:NAME, a named matrix; other operands"},
        {GM_OP_FLIP, "b", "ref:w", GM_BAD_PARAMETER, "flip does not take 'b'"},
        {GM_OP_FLIP, "a", "ref:", GM_BAD_PARAMETER, "ref:NAME"},
        {GM_OP_FLIP, "a", "ref:1w", GM_BAD_PARAMETER, "ref:NAME"},
        {GM_OP_FLIP, "a", "ref:a/w", GM_BAD_PARAMETER, "ref:NAME"},
        {GM_OP_FLIP, "keep", "a.w", GM_BAD_PARAMETER, "letters, digits and _"},
        {GM_OP_FLIP, "ttl", "0", GM_BAD_PARAMETER, "seconds from 1"},
        {GM_OP_FLIP, "ttl", "31536001", GM_BAD_PARAMETER, "seconds from 1"},
        {GM_OP_FLIP, "share", "a,,b", GM_BAD_PARAMETER, "names of keys"},
        {GM_OP_FLIP, "share", "a,", GM_BAD_PARAMETER, "names of keys"},
        {GM_OP_FLIP, "return", "all", GM_BAD_PARAMETER, "result or account"},
        {GM_OP_FLIP, "rows", "0:1", GM_BAD_PARAMETER, "flip does not take 'rows'"},
        {GM_OP_COPY, "rows", "0:1:2", GM_BAD_PARAMETER, "a range"},
        {GM_OP_COPY, "rows", "-1", GM_BAD_PARAMETER, "a range"},
        {GM_OP_COPY, "cols", "", GM_BAD_PARAMETER, "a range"},
        {GM_OP_COPY, "cols", "1234567890123456789", GM_BAD_PARAMETER, "a range"},
        {GM_OP_TRANSPOSE, "transa", "1", GM_BAD_PARAMETER, "transpose does not take 'transa'"},
        {GM_OP_TRANSPOSE, "dtype", "f33", GM_BAD_PARAMETER, "f16, bf16, f32"},
        {GM_OP_TRANSPOSE, "shape", "3*4", GM_BAD_PARAMETER, "RxC"},
        {GM_OP_TRANSPOSE, "repeat", "0", GM_BAD_PARAMETER, "1 to 1000"},
        {GM_OP_TRANSPOSE, "repeat", "1001", GM_BAD_PARAMETER, "1 to 1000"},
        {GM_OP_TRANSPOSE, "repeat", "2.5", GM_BAD_PARAMETER, "1 to 1000"},
        {GM_OP_TRANSPOSE, "repeat", "2.", GM_BAD_PARAMETER, "1 to 1000"},
        {GM_OP_TRANSPOSE, "repeat", "0.0", GM_BAD_PARAMETER, "1 to 1000"},
        {GM_OP_TRANSPOSE, "repeat", "-1", GM_BAD_PARAMETER, "1 to 1000"},
        {GM_OP_TRANSPOSE, "timeout_ms", "99999999999999999999", GM_BAD_PARAMETER, "3600000"},
        {GM_OP_TRANSPOSE, "nonfinite", "zero", GM_BAD_PARAMETER, "error or null"},
        {GM_OP_TRANSPOSE, "header", "present", GM_BAD_PARAMETER, "true or false"},
        {GM_OP_TRANSPOSE, "precision", "half", GM_BAD_PARAMETER, "fp32, ieee"},
        {GM_OP_MATMUL, "transa", "yes", GM_BAD_PARAMETER, "true or false"},
        {GM_OP_MATMUL, "kernel", "", GM_BAD_PARAMETER, "/v1/kernels"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gm_params p = {0}, before = {0};
        struct gm_error e = {0};
        CHECK(set(&p, cases[i].op, cases[i].name, cases[i].value, &e) == cases[i].status);
        CHECK(e.status == cases[i].status);
        CHECK(strstr(e.detail, cases[i].says) != NULL);
        CHECK(memcmp(&p, &before, sizeof p) == 0);
    }
}

/* The sentence lists what kernels/gpu.h has. */
static void test_gpus(void)
{
    struct gm_params p = {0};
    struct gm_error e = {0};

    CHECK(set(&p, GM_OP_COPY, "gpu", "Voodoo2", &e) == GM_BAD_PARAMETER && !p.gpu);
    for (size_t i = 0; gm_gpu_at(i); i++)
        CHECK(strstr(e.detail, gm_gpu_at(i)->name) != NULL);
    CHECK(set(&p, GM_OP_COPY, "gpu", "T4", &e) == GM_OK);
    CHECK(set(&p, GM_OP_COPY, "gpu", "t4", &e) == GM_OK);
    CHECK(set(&p, GM_OP_COPY, "gpu", "L4", &e) == GM_BAD_PARAMETER && strstr(e.detail, "twice"));
}

static void test_twice(void)
{
    struct gm_params p = {0};
    struct gm_error e;

    CHECK(set(&p, GM_OP_MATMUL, "alpha", "2", &e) == GM_OK);
    CHECK(set(&p, GM_OP_MATMUL, "alpha", "2.0", &e) == GM_OK);
    CHECK(set(&p, GM_OP_MATMUL, "alpha", "3", &e) == GM_BAD_PARAMETER);
    CHECK(strstr(e.detail, "twice"));
    CHECK(p.op.alpha.real == 2);
    CHECK(set(&p, GM_OP_MATMUL, "transa", "false", &e) == GM_OK);
    CHECK(set(&p, GM_OP_MATMUL, "transa", "0", &e) == GM_OK);
    CHECK(set(&p, GM_OP_MATMUL, "transa", "1", &e) == GM_BAD_PARAMETER);
    /* As long as a value may be, and a byte longer. */
    char value[GM_PARAMETER_BYTES_MAX + 1];
    memset(value, '1', sizeof value);
    CHECK(gm_params_set(&p, GM_OP_MATMUL, "kernel", 6, value, sizeof value - 1, &e) == GM_OK);
    CHECK(gm_params_set(&p, GM_OP_MATMUL, "beta", 4, value, sizeof value, &e) == GM_BAD_PARAMETER);
    CHECK(strstr(e.detail, "133 bytes, and 132 is the limit"));
    CHECK(set(&p, GM_OP_MATMUL, "transB", "1", &e) == GM_UNKNOWN_PARAMETER);
    CHECK(strstr(e.detail, "'transB'; the nearest is 'transb'"));
    /* A NUL inside a value is not the end of it. */
    CHECK(gm_params_set(&p, GM_OP_MATMUL, "kernel", 6, "au\0to", 5, &e) == GM_BAD_PARAMETER);
}

int main(void)
{
    test_values();
    test_scalars();
    test_errors();
    test_gpus();
    test_twice();
    return check_report();
}
