/*
 * bench_choices.c - times every variant of operations as `gemmd --tune` does, and says how far what
 * `auto` takes is from the best. Its files are what profiles are fitted to and judged by
 * (kernels/choose/README.md).
 *
 *   bench_choices [--shapes FILE | --draw COUNT [--seed N]] [--limit SECONDS] [--json FILE]
 *
 * --draw: operations that are drawn at random (kernels/choose/draw.c): 2000 unless said. --limit:
 * none is begun after so many seconds.
 *
 * 77 where there is no GPU.
 */
#include "bench_gpu_result.h"
#include "kernels/choose/fit.h"
#include "shapes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77

extern const struct gm_backend gm_backend_cuda;

static struct {
    const char *shapes, *json;
    unsigned long drawn;
    uint64_t seed;
    double seconds;
} config = {.drawn = 2000, .seed = 1, .seconds = HUGE_VAL};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_choices: %s: %s\n", what, detail);
    exit(1);
}

static unsigned long number_of(const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (end == text || *end)
        die(text, "it is no number");
    return number;
}

static void parse_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value)
            die(argv[i], "usage: bench_choices [--shapes FILE | --draw COUNT [--seed N]] "
                         "[--limit SECONDS] [--json FILE]");
        if (strcmp(argv[i], "--shapes") == 0)
            config.shapes = value;
        else if (strcmp(argv[i], "--draw") == 0)
            config.drawn = number_of(value);
        else if (strcmp(argv[i], "--seed") == 0)
            config.seed = number_of(value);
        else if (strcmp(argv[i], "--limit") == 0)
            config.seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--json") == 0)
            config.json = value;
        else
            die(argv[i], "there is no such option");
    }
}

/* The file, with the facts of the device, which is closed again. */
static FILE *open_file(void)
{
    static struct device device;
    FILE *file;

    if (!device_open(&device)) {
        printf("%s: nothing to measure\n", device.error);
        exit(SKIPPED);
    }
    struct baseline_clocks clocks = baseline_read_clocks();
    file = config.json ? result_file_open(config.json, "bench_choices", &device, &clocks) : NULL;
    if (config.json && !file)
        die(config.json, strerror(errno));
    device_close(&device);
    return file;
}

/* false: there are no more. */
static bool next_op(FILE *list, uint64_t *random, unsigned long drawn, struct gm_op *ret)
{
    if (list)
        return shapes_next(list, ret);
    if (drawn < config.drawn)
        *ret = gm_draw_op(random, 1);
    return drawn < config.drawn;
}

int main(int argc, char **argv)
{
    const struct gm_backend_options options = {.streams = 1};
    struct gm_fit_losses all = {.worst = 1};
    struct gm_timed timed[GM_CANDIDATES_MAX];
    struct gm_measure measure;
    struct gm_error err = {.detail = ""};
    struct gm_op op;
    void *context;
    char text[SHAPES_TEXT_MAX];

    parse_arguments(argc, argv);
    FILE *json = open_file(), *list = config.shapes ? fopen(config.shapes, "re") : NULL;
    if (config.shapes && !list)
        die(config.shapes, strerror(errno));
    if (gm_backend_cuda.open(&options, &context, &err) != GM_OK ||
        gm_measure_open(&gm_backend_cuda, context, 0, &measure, &err) != GM_OK)
        die("the GPU", err.detail);
    gm_measure_until(&measure, config.seconds, NULL);
    uint64_t random = config.seed;
    for (unsigned long i = 0; !gm_measure_is_stopped(&measure) && next_op(list, &random, i, &op);
         i++) {
        unsigned count;
        enum gm_status status = gm_measure_op(&measure, &op, timed, &count, &err);
        shapes_text(&op, text);
        if (status == GM_DEVICE_LOST)
            die("the GPU", err.detail);
        if (status != GM_OK)
            fprintf(stderr, "bench_choices: %s %s: %s\n", gm_op_name(op.kind), text, err.detail);
        if (count == 0 || gm_measure_is_stopped(&measure)) /* perhaps not all of its variants */
            continue;
        struct gm_fit_losses one = gm_profile_losses(timed, count, measure.facts->profile);
        all.shapes += one.shapes;
        all.near += one.near;
        all.far += one.far;
        all.worst = fmax(all.worst, one.worst);
        if (one.near < one.shapes)
            printf("%-9s %-4s %s: %.3f times the best\n", gm_op_name(op.kind),
                   gm_dtype_name(op.result.dtype), text, one.worst);
        if (json)
            result_file_add_timed(json, timed, count);
    }
    printf("auto: within %g%% of the best on %u of %u shapes, beyond %g%% on %u; the worst %.2f "
           "times\n",
           100 * GM_FIT_NEAR, all.near, all.shapes, 100 * GM_FIT_FAR, all.far, all.worst);
    if (json && !result_file_close(json))
        die(config.json, "not all of it was written");
    gm_measure_close(&measure);
    gm_backend_cuda.close(context);
    return 0;
}
