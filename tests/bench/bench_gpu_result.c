/*
 * bench_gpu_result.c - results as a line for people and as JSON. The JSON is written by hand,
 * since the machines that have a GPU to measure need not have a library for it.
 */
#include "bench_gpu_result.h"

#include "shapes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double gbs_of(const struct result *result)
{
    return 1e-3 * (double)gm_op_bytes_min(result->op) / result->contender->timing.median;
}

static double gflops_of(const struct result *result)
{
    return 1e-3 * gm_op_flops(result->op) / result->contender->timing.median;
}

static bool is_nothing(const struct result *result)
{
    return result->contender->baseline == baseline_nothing;
}

static double percent_of_copy(const struct result *result)
{
    if (is_nothing(result))
        return 0;
    if (result->copy_us > 0)
        return 100 * result->copy_us / result->contender->timing.median;
    return result->copy_gbs > 0 ? 100 * gbs_of(result) / result->copy_gbs : 0;
}

/* Against all that a variant takes, passes that prepare included. */
static double percent_of_cublas(const struct result *result)
{
    const struct timing *timing = &result->contender->timing;

    return is_nothing(result) ? 0 : 100 * result->cublas_us / (timing->median + timing->prepare);
}

void result_print(const struct result *result)
{
    const struct timing *timing = &result->contender->timing;
    char shape[SHAPES_TEXT_MAX];

    shapes_text(result->op, shape);
    printf("%-9s %-4s %-24s %c%-16s %11.2f us +-%3.0f%%", gm_op_name(result->op->kind),
           gm_dtype_name(result->op->result.dtype), shape, result->is_auto ? '*' : ' ',
           result->contender->name, timing->median, 100 * timing->spread);
    if (!is_nothing(result))
        printf(" %8.1f GB/s", gbs_of(result));
    if (percent_of_copy(result) > 0 && result->op->kind != GM_OP_MATMUL)
        printf(" %5.1f%% of copy", percent_of_copy(result));
    if (result->op->kind == GM_OP_MATMUL && !is_nothing(result))
        printf(" %9.1f GFLOP/s", gflops_of(result));
    if (percent_of_cublas(result) > 0)
        printf(" %5.1f%% of cublas", percent_of_cublas(result));
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

FILE *result_file_open(const char *path, const char *benchmark, const struct device *device,
                       const struct baseline_clocks *clocks)
{
    FILE *file = fopen(path, "we");
    char text[64];
    time_t now = time(NULL);
    struct tm utc;

    if (!file)
        return NULL;
    fprintf(file, "{\n   \"benchmark\": \"%s\"", benchmark);
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

static void begin_row(FILE *file, const struct gm_op *op)
{
    char shape[SHAPES_TEXT_MAX];
    static bool is_first = true;

    shapes_text(op, shape);
    fprintf(file, "%s\n  {\n   \"op\": \"%s\"", is_first ? "" : ",", gm_op_name(op->kind));
    is_first = false;
    put_string(file, "dtype", gm_dtype_name(op->result.dtype));
    put_string(file, "shape", shape);
}

void result_file_add_timed(FILE *file, const struct gm_timed *timed, unsigned count)
{
    begin_row(file, timed->op);
    put_name(file, "us");
    for (unsigned i = 0; i < count; i++)
        fprintf(file, "%s\"%s\": %.4g", i == 0 ? "{" : ", ", timed[i].variant, timed[i].us);
    fprintf(file, "}\n  }");
}

void result_file_add(FILE *file, const struct result *result)
{
    const struct timing *timing = &result->contender->timing;

    begin_row(file, result->op);
    put_string(file, "variant", result->contender->name);
    if (result->is_auto) {
        put_name(file, "auto");
        fprintf(file, "true");
    }
    put_number(file, "runs", timing->runs);
    put_number(file, "median_us", timing->median);
    put_number(file, "least_us", timing->least);
    put_number(file, "spread", timing->spread);
    put_number(file, "prepare_us", timing->prepare);
    if (!is_nothing(result)) {
        put_number(file, "bytes_min", (double)gm_op_bytes_min(result->op));
        put_number(file, "gbs", gbs_of(result));
        put_number(file, "copy_us", result->copy_us);
        put_number(file, "percent_of_copy", percent_of_copy(result));
        put_number(file, "gflops", gflops_of(result));
        put_number(file, "percent_of_cublas", percent_of_cublas(result));
    }
    fprintf(file, "\n  }");
    fflush(file);
}

bool result_file_close(FILE *file)
{
    fprintf(file, "\n ]\n}\n");
    bool written = !ferror(file);
    return fclose(file) == 0 && written;
}
