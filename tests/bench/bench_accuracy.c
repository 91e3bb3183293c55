/*
 * bench_accuracy.c - the errors of f32 products by variants that are not plain arithmetic, beside
 * those of cuBLAS's SGEMM.
 *
 *   bench_accuracy [--variant NAME] [--side N] [--most K] [--json FILE]
 *
 * Results are N x N (512), K is 16 to K (65536); five seeds of each kind of operands. Errors are
 * those against f64: Frobenius norm over that of the result, and the largest of |error| over |A|
 * |B|. 77 where there is no GPU with cuBLAS.
 */
#include "tests/gpu/device.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SKIPPED 77
#define SEEDS 5
#define K_LEAST 16u

struct errors {
    double frobenius, largest;
};

/* Operands in both types, results, and their places on the device. */
struct product {
    uint64_t side, k;
    float *a, *b, *result;
    double *wide_a, *wide_b, *exact, *bound; /* bound: |A| |B| */
};

static struct {
    const char *variant, *json;
    uint64_t side, most;
} config = {.variant = "split_bf16", .side = 512, .most = 65536};

static struct device device;

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_accuracy: %s: %s\n", what, detail);
    exit(1);
}

static void *memory(uint64_t bytes)
{
    void *data = malloc(bytes);

    if (!data)
        die("memory", "the host has no more");
    return data;
}

/* ---- Operands ------------------------------------------------------------------------------ */

static double unit(uint64_t *random) /* uniform in (-1, 1) */
{
    return (double)(int64_t)check_random(random) * 0x1p-63;
}

static double uniform(uint64_t *random)
{
    return unit(random);
}

static double positive(uint64_t *random)
{
    return fabs(unit(random));
}

static double wide(uint64_t *random)
{
    return ldexp(unit(random), (int)(20 * unit(random)));
}

static const struct inputs {
    const char *name;
    double (*draw)(uint64_t *random);
    bool cancels; /* the second half of each sum is the first with the other sign, but for 2^-12 */
} inputs[] = {
    {"uniform(-1, 1)", uniform, false},
    {"positive", positive, false},
    {"exponents of 2^-20 to 2^20", wide, false},
    {"cancelling", uniform, true},
};

static void fill(const struct inputs *from, struct product *p, uint64_t *random)
{
    uint64_t half = p->k / 2;

    for (uint64_t i = 0; i < p->side * p->k; i++)
        p->a[i] = (float)from->draw(random);
    for (uint64_t i = 0; i < p->side * p->k; i++)
        p->b[i] = (float)from->draw(random);
    for (uint64_t row = 0; from->cancels && row < p->side; row++) {
        for (uint64_t k = 0; k < half; k++)
            p->a[row * p->k + half + k] =
                (float)(-p->a[row * p->k + k] * (1 + 0x1p-12 * unit(random)));
    }
    for (uint64_t k = 0; from->cancels && k < half; k++)
        memcpy(p->b + (half + k) * p->side, p->b + k * p->side, p->side * sizeof(float));
}

/* ---- Products ------------------------------------------------------------------------------ */

static const struct gm_variant *variant_of(const char *name)
{
    const struct gm_variant *variant = NULL;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (variant->op == GM_OP_MATMUL && variant->run[GM_DEVICE_CUDA] &&
            strcmp(variant->name, name) == 0)
            break;
    }
    return variant;
}

static void multiply(const char *name, enum gm_dtype dtype, const struct product *p, const void *a,
                     const void *b, void *result)
{
    const struct gm_variant *variant = variant_of(name);
    const struct gm_op_options options = {.precision = GM_PRECISION_FP32};
    const bool present[GM_OPERANDS_MAX] = {true, true};
    const struct gm_shape shape[2] = {{2, {p->side, p->k}}, {2, {p->k, p->side}}};
    const void *from[2] = {a, b};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    struct gm_error err = {.detail = ""};
    struct gm_op op;

    for (int i = 0; i < 2; i++) {
        if (gm_matrix_init(&operand[i], dtype, GM_ROW_MAJOR, &shape[i], &err) != GM_OK)
            die("operand", err.detail);
    }
    if (gm_op_init(&op, GM_OP_MATMUL, &options, operand, present, &err) != GM_OK || !variant ||
        gm_variant_check(variant, &op, &device.facts, &err) != GM_OK)
        die(name, err.detail);
    for (int i = 0; i < 2; i++) {
        uint64_t bytes = gm_matrix_bytes(&op.operand[i]);
        if (cudaMalloc(&op.operand[i].data, bytes) != cudaSuccess ||
            cudaMemcpy(op.operand[i].data, from[i], bytes, cudaMemcpyDefault) != cudaSuccess)
            die("operand", "no room on the device");
    }
    if (cudaMalloc(&op.result.data, gm_matrix_bytes(&op.result)) != cudaSuccess ||
        device_run(&device, &op, variant) != GM_OK || !device_wait(&device) ||
        cudaMemcpy(result, op.result.data, gm_matrix_bytes(&op.result), cudaMemcpyDefault) !=
            cudaSuccess)
        die(name, device.error);
    cudaFree(op.operand[0].data);
    cudaFree(op.operand[1].data);
    cudaFree(op.result.data);
}

static void make_exact(struct product *p)
{
    uint64_t count = p->side * p->k;

    for (int absolute = 0; absolute < 2; absolute++) {
        for (uint64_t i = 0; i < count; i++) {
            p->wide_a[i] = absolute ? fabs((double)p->a[i]) : (double)p->a[i];
            p->wide_b[i] = absolute ? fabs((double)p->b[i]) : (double)p->b[i];
        }
        multiply("cublas", GM_F64, p, p->wide_a, p->wide_b, absolute ? p->bound : p->exact);
    }
}

static struct errors errors_of(const char *name, const struct product *p)
{
    double wrong = 0, all = 0, largest = 0;

    multiply(name, GM_F32, p, p->a, p->b, p->result);
    for (uint64_t i = 0; i < p->side * p->side; i++) {
        double error = (double)p->result[i] - p->exact[i];
        wrong += error * error;
        all += p->exact[i] * p->exact[i];
        if (!(fabs(error) <= largest * p->bound[i]))
            largest = fabs(error) / p->bound[i];
    }
    return (struct errors){sqrt(wrong / all), largest};
}

/* ---- The table ----------------------------------------------------------------------------- */

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static void report(FILE *json, bool first, const struct inputs *from, uint64_t k,
                   const struct errors by[2][SEEDS])
{
    double frobenius[SEEDS], largest[SEEDS];

    for (int i = 0; i < SEEDS; i++) {
        frobenius[i] = by[0][i].frobenius / by[1][i].frobenius;
        largest[i] = by[0][i].largest / by[1][i].largest;
    }
    qsort(frobenius, SEEDS, sizeof(double), by_size);
    qsort(largest, SEEDS, sizeof(double), by_size);
    printf("%-27s %6llu   frobenius %.2f (at most %.2f)   largest %.2f (at most %.2f)\n",
           from->name, (unsigned long long)k, frobenius[SEEDS / 2], frobenius[SEEDS - 1],
           largest[SEEDS / 2], largest[SEEDS - 1]);
    for (int i = 0; json && i < SEEDS; i++)
        fprintf(json,
                "%s\n  {\"inputs\": \"%s\", \"k\": %llu, \"seed\": %d, \"frobenius\": %.4g, "
                "\"largest\": %.4g, \"cublas_frobenius\": %.4g, \"cublas_largest\": %.4g}",
                first && i == 0 ? "" : ",", from->name, (unsigned long long)k, i + 1,
                by[0][i].frobenius, by[0][i].largest, by[1][i].frobenius, by[1][i].largest);
}

static void measure(FILE *json)
{
    uint64_t most = config.side * config.most, results = config.side * config.side;
    struct product p = {.side = config.side,
                        .a = memory(most * sizeof(float)),
                        .b = memory(most * sizeof(float)),
                        .result = memory(results * sizeof(float)),
                        .wide_a = memory(most * sizeof(double)),
                        .wide_b = memory(most * sizeof(double)),
                        .exact = memory(results * sizeof(double)),
                        .bound = memory(results * sizeof(double))};
    bool first = true;

    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        for (p.k = K_LEAST; p.k <= config.most; p.k *= 4) {
            struct errors by[2][SEEDS];
            for (int seed = 0; seed < SEEDS; seed++) {
                uint64_t random = (uint64_t)seed + 1;
                fill(&inputs[i], &p, &random);
                make_exact(&p);
                by[0][seed] = errors_of(config.variant, &p);
                by[1][seed] = errors_of("cublas", &p);
            }
            report(json, first, &inputs[i], p.k, by);
            first = false;
        }
    }
    free(p.a);
    free(p.b);
    free(p.result);
    free(p.wide_a);
    free(p.wide_b);
    free(p.exact);
    free(p.bound);
}

static void begin(FILE *json)
{
    const char *commit = getenv("GM_COMMIT"); /* where the sources came without their history */
    time_t now = time(NULL);
    struct tm utc;
    char date[32];

    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    fprintf(json,
            "{\n \"benchmark\": \"bench_accuracy\",\n \"device\": \"%s\",\n \"driver\": \"%s\",\n "
            "\"date\": \"%s\",\n \"commit\": \"%s\",\n \"variant\": \"%s\",\n \"side\": %llu,\n "
            "\"results\": [",
            device.facts.name, device.driver, date, commit ? commit : "unknown", config.variant,
            (unsigned long long)config.side);
}

int main(int argc, char **argv)
{
    FILE *json = NULL;

    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value && strcmp(argv[i], "--variant") == 0)
            config.variant = value;
        else if (value && strcmp(argv[i], "--json") == 0)
            config.json = value;
        else if (value && strcmp(argv[i], "--side") == 0 && strtoull(value, NULL, 10) > 0)
            config.side = strtoull(value, NULL, 10);
        else if (value && strcmp(argv[i], "--most") == 0 && strtoull(value, NULL, 10) >= K_LEAST)
            config.most = strtoull(value, NULL, 10);
        else
            die(argv[i],
                "usage: bench_accuracy [--variant NAME] [--side N] [--most K] [--json FILE]");
    }
    if (!device_open(&device) || !device.facts.tuned_blas) {
        printf("%s: nothing to compare\n", device.error[0] ? device.error : "no cuBLAS");
        return SKIPPED;
    }
    if (config.json && !(json = fopen(config.json, "we")))
        die(config.json, strerror(errno));
    printf("%s, driver %s: errors of %s over those of cuBLAS's SGEMM, results of %llu x %llu\n",
           device.facts.name, device.driver, config.variant, (unsigned long long)config.side,
           (unsigned long long)config.side);
    if (json)
        begin(json);
    measure(json);
    if (json && (fputs("\n]}\n", json) < 0 || fclose(json) != 0))
        die(config.json, "not all of it was written");
    device_close(&device);
    return 0;
}
