/*
 * bench_gpu_result.c - results as a line for people and as JSON. The JSON is written by hand,
 * since the machines that have a GPU to measure need not have a library for it.
 */
#include "bench_gpu_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double gbs_of(const struct result *result)
{
    return 1e-3 * (double)gm_op_bytes_min(result->op) / result->timing.median;
}

static double gflops_of(const struct result *result)
{
    return 1e-3 * gm_op_flops(result->op) / result->timing.median;
}

static void shape_text(const struct gm_op *op, char *ret, size_t size)
{
    char text[2][GM_SHAPE_TEXT_MAX];

    snprintf(ret, size, "%s%s%s%s%s", gm_matrix_shape_text(&op->operand[0], text[0]),
             op->transa ? "^T" : "", op->operands > 1 ? " " : "",
             op->operands > 1 ? gm_matrix_shape_text(&op->operand[1], text[1]) : "",
             op->transb ? "^T" : "");
}

void result_print(const struct result *result)
{
    const struct timing *timing = &result->timing;
    char shape[2 * GM_SHAPE_TEXT_MAX + 8];

    shape_text(result->op, shape, sizeof(shape));
    printf("%-9s %-4s %-24s %-14s %11.2f us +-%3.0f%% %8.1f GB/s", gm_op_name(result->op->kind),
           gm_dtype_name(result->op->result.dtype), shape, result->variant, timing->median,
           100 * timing->spread, gbs_of(result));
    if (result->copy_gbs > 0)
        printf(" %5.1f%% of copy", 100 * gbs_of(result) / result->copy_gbs);
    if (result->op->kind == GM_OP_MATMUL)
        printf(" %9.1f GFLOP/s", gflops_of(result));
    if (result->cublas_gflops > 0)
        printf(" %5.1f%% of cublas", 100 * gflops_of(result) / result->cublas_gflops);
    if (timing->prepare > 0)
        printf(", prepare %.2f us", timing->prepare);
    printf("\n");
    fflush(stdout);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void put_name(FILE *file, const char *name)
{
    fprintf(file, ",\n   \"%s\": ", name);
}

static void put_string(FILE *file, const char *name, const char *text)
{
    put_name(file, name);
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        if ((unsigned char)*text >= ' ')
            fputc(*text, file);
    }
    fputc('"', file);
}

/* What was not measured is left out. */
static void put_number(FILE *file, const char *name, double value)
{
    if (!(isfinite(value) && value > 0))
        return;
    put_name(file, name);
    fprintf(file, "%.6g", value);
}

static void read_commit(char *ret, size_t size)
{
    const char *said = getenv("GM_COMMIT"); /* where the sources came without their history */
    FILE *git = said ? NULL : popen("git describe --always --dirty 2>/dev/null", "r");

    snprintf(ret, size, "%s", said ? said : "unknown");
    if (!git)
        return;
    char line[64];
    if (fgets(line, sizeof(line), git))
        snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line);
    pclose(git);
}

FILE *result_file_open(const char *path, const struct device *device,
                       const struct yardstick_clocks *clocks)
{
    FILE *file = fopen(path, "we");
    char text[64];
    time_t now = time(NULL);
    struct tm utc;

    if (!file)
        return NULL;
    fprintf(file, "{\n   \"benchmark\": \"bench_gpu\"");
    put_string(file, "device", device->facts.name);
    put_string(file, "driver", device->driver);
    put_number(file, "compute_capability", device->gpu.capability / 10.0);
    put_number(file, "multiprocessors", device->gpu.sms);
    put_number(file, "memory_bytes", (double)device->facts.memory_bytes);
    put_number(file, "l2_bytes", (double)device->l2_bytes);
    put_number(file, "memory_gbs_by_clock", device->gpu.dram_gbs);
    put_number(file, "sm_clock_mhz", clocks->sm);
    put_number(file, "sm_clock_max_mhz", clocks->sm_max);
    put_number(file, "memory_clock_mhz", clocks->memory);
    put_number(file, "memory_clock_max_mhz", clocks->memory_max);
    put_number(file, "cuda_runtime", CUDART_VERSION);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    put_string(file, "date", text);
    read_commit(text, sizeof(text));
    put_string(file, "commit", text);
    put_name(file, "results");
    fprintf(file, "[");
    return file;
}

void result_file_add(FILE *file, const struct result *result)
{
    char shape[2 * GM_SHAPE_TEXT_MAX + 8];
    double gbs = gbs_of(result), gflops = gflops_of(result);
    static bool is_first = true;

    shape_text(result->op, shape, sizeof(shape));
    fprintf(file, "%s\n  {\n   \"op\": \"%s\"", is_first ? "" : ",", gm_op_name(result->op->kind));
    is_first = false;
    put_string(file, "dtype", gm_dtype_name(result->op->result.dtype));
    put_string(file, "shape", shape);
    put_string(file, "variant", result->variant);
    put_number(file, "runs", result->timing.runs);
    put_number(file, "median_us", result->timing.median);
    put_number(file, "least_us", result->timing.least);
    put_number(file, "spread", result->timing.spread);
    put_number(file, "prepare_us", result->timing.prepare);
    put_number(file, "bytes_min", (double)gm_op_bytes_min(result->op));
    put_number(file, "gbs", gbs);
    if (result->copy_gbs > 0)
        put_number(file, "percent_of_copy", 100 * gbs / result->copy_gbs);
    put_number(file, "gflops", gflops);
    if (result->cublas_gflops > 0)
        put_number(file, "percent_of_cublas", 100 * gflops / result->cublas_gflops);
    fprintf(file, "\n  }");
    fflush(file);
}

bool result_file_close(FILE *file)
{
    fprintf(file, "\n ]\n}\n");
    bool written = !ferror(file);
    return fclose(file) == 0 && written;
}
