/*
 * bench_kernels.c - times every kernel variant of the cpu backend over a list of shapes.
 *
 *   bench_kernels [--shapes FILE | --draw COUNT [--seed N]] [--only VARIANT] [--threads N]
 *                 [--seconds S] [--json FILE]
 *
 * Proves, then times: each variant's result is compared with the oracle before it is timed, and
 * the first that is wrong ends the program with 1. Operands are random; several sets of them take
 * turns, so that no run finds in a core's own cache what the one before it left there. Variants
 * take turns as well, so that whatever else the machine does meets all of them.
 *
 * --draw: operations that are drawn at random (kernels/choose/draw.c), of which the least times are
 * written: what estimates are fitted to and judged by.
 */
#include "kernels/backend.h"
#include "kernels/choose/choose.h"
#include "kernels/choose/fit.h"
#include "proof.h"
#include "shapes.h"
#include "tests/unit/operands.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <time.h>

#define SETS_MAX 64
#define SET_BYTES_WANTED ((uint64_t)64 << 20) /* all sets together: beyond what a core caches */
#define RUNS_MIN 5
#define RUNS_MAX 2000
#define RUN_SECONDS_MAX 1.0 /* a variant slower than this is not run again */
#define VARIANTS_MAX 8
#define BURST_RUNS 16 /* of one variant, before the next has its turn */
#define BURST_US 1000
#define DRAWN_PART 0.01 /* of the work of operations for a large GPU */

static struct {
    const char *shapes, *json, *only;
    unsigned threads;
    unsigned long drawn;
    uint64_t seed;
    double seconds;
} config = {.shapes = GM_SHAPES_FILE, .seed = 1, .seconds = 0.3};

struct set {
    struct gm_op op;
    struct gm_buffer buffer[GM_OPERANDS_MAX + 1]; /* operands, result */
};

struct bench {
    void *context;
    const struct gm_device_facts *facts;
    json_t *results;
    uint64_t random;
};

struct timing {
    unsigned runs;
    double median, least, spread, prepare; /* microseconds; spread: the middle half / the median */
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_kernels: %s: %s\n", what, detail);
    exit(1);
}

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *new_buffer(struct bench *bench, const struct gm_matrix *matrix,
                        struct gm_buffer *buffer)
{
    struct gm_error err;

    if (gm_backend_cpu.buffer_get(bench->context, gm_matrix_bytes(matrix), buffer, &err) != GM_OK)
        die("memory", err.detail);
    return buffer->data;
}

static void fill_set(struct bench *bench, struct set *set, const struct gm_op *op)
{
    set->op = *op;
    for (unsigned i = 0; i < op->operands; i++) {
        struct gm_matrix *x = &set->op.operand[i];
        x->data = new_buffer(bench, x, &set->buffer[i]);
        random_fill(&bench->random, x->dtype, x->data, gm_matrix_elements(x));
    }
    set->op.result.data = new_buffer(bench, &op->result, &set->buffer[GM_OPERANDS_MAX]);
    memset(set->op.result.data, 0, gm_matrix_bytes(&op->result)); /* no run is to fetch pages */
}

static struct gm_times run(struct bench *bench, const struct gm_op *op,
                           const struct gm_variant *variant)
{
    struct gm_task task = {.op = *op, .variant = variant, .repeat = 1};

    gm_backend_cpu.run(bench->context, 0, 0, (struct gm_task *[]){&task}, 1);
    if (task.status != GM_OK)
        die(variant->name, task.error.detail);
    return task.times;
}

/* Returns the times of the run that was proved. */
static struct gm_times prove(struct bench *bench, const struct gm_op *op,
                             const struct gm_variant *variant, const struct proof *proof)
{
    memset(op->result.data, 0xFF, gm_matrix_bytes(&op->result)); /* NaN, in floats */
    struct gm_times times = run(bench, op, variant);
    if (!proof_holds(proof, op))
        die(variant->name, "the result is wrong");
    return times;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

/* A variant and its runs. */
struct contender {
    const struct gm_variant *variant;
    unsigned runs;
    double us; /* of all runs */
    double kernel[RUNS_MAX], prepare[RUNS_MAX];
};

/* Whether it has been run enough, or takes too long to be run again. */
static bool is_done(const struct contender *c)
{
    double budget = 1e6 * config.seconds;

    return c->runs == RUNS_MAX || c->us > 10 * budget ||
           (c->runs > 0 && c->kernel[0] > 1e6 * RUN_SECONDS_MAX) ||
           (c->runs >= RUNS_MIN && c->us > budget);
}

static void burst(struct bench *bench, const struct set *set, unsigned sets, unsigned *next,
                  struct contender *c)
{
    double us = 0;

    for (unsigned i = 0; i < BURST_RUNS && us < BURST_US && !is_done(c); i++) {
        double begin = seconds_now();
        struct gm_times times = run(bench, &set[(*next)++ % sets].op, c->variant);
        us += 1e6 * (seconds_now() - begin);
        c->kernel[c->runs] = times.kernel;
        c->prepare[c->runs++] = times.prepare;
    }
    c->us += us;
}

static struct timing timing_of(struct contender *c)
{
    struct timing timing = {.runs = c->runs};

    qsort(c->kernel, c->runs, sizeof(*c->kernel), by_size);
    qsort(c->prepare, c->runs, sizeof(*c->prepare), by_size);
    timing.median = c->kernel[c->runs / 2];
    timing.least = c->kernel[0];
    timing.prepare = c->prepare[c->runs / 2];
    timing.spread = (c->kernel[c->runs * 3 / 4] - c->kernel[c->runs / 4]) / timing.median;
    return timing;
}

static void put_number(json_t *object, const char *name, double value)
{
    if (isfinite(value) && value > 0)
        json_object_set_new(object, name, json_real(value));
}

static void report(struct bench *bench, const struct gm_op *op, const struct gm_variant *variant,
                   bool is_auto, const struct timing *timing)
{
    double gbs = 1e-3 * (double)gm_op_bytes_min(op) / timing->median;
    double gflops = 1e-3 * gm_op_flops(op) / timing->median;
    double of_copy = 100 * gbs / bench->facts->copy_gbs;
    double of_peak = 100 * gflops / bench->facts->peak_gflops[op->result.dtype];
    char shape[SHAPES_TEXT_MAX], rates[64] = "";

    shapes_text(op, shape);
    if (gflops > 0)
        snprintf(rates, sizeof(rates), "%9.1f GFLOP/s %5.1f%%", gflops, of_peak);
    printf("%-9s %-5s %-28s %c%-9s %12.2f us +-%3.0f%%, least %10.2f %8.2f GB/s %5.1f%% %s",
           gm_op_name(op->kind), gm_dtype_name(op->result.dtype), shape, is_auto ? '*' : ' ',
           variant->name, timing->median, 100 * timing->spread, timing->least, gbs, of_copy, rates);
    if (timing->prepare >= 0)
        printf("  prepare %.2f us", timing->prepare);
    printf("\n");
    fflush(stdout);

    json_t *row = json_object();
    json_object_set_new(row, "op", json_string(gm_op_name(op->kind)));
    json_object_set_new(row, "dtype", json_string(gm_dtype_name(op->result.dtype)));
    json_object_set_new(row, "shape", json_string(shape));
    json_object_set_new(row, "variant", json_string(variant->name));
    json_object_set_new(row, "auto", json_boolean(is_auto));
    put_number(row, "least_us", timing->least);
    json_array_append_new(bench->results, row);
    if (config.drawn > 0)
        return;
    json_object_set_new(row, "runs", json_integer(timing->runs));
    put_number(row, "median_us", timing->median);
    put_number(row, "spread", timing->spread);
    put_number(row, "prepare_us", timing->prepare);
    put_number(row, "gbs", gbs);
    put_number(row, "percent_of_copy", of_copy);
    put_number(row, "gflops", gflops);
    put_number(row, "percent_of_peak", gflops > 0 ? of_peak : 0);
}

/* Proves and times every variant that can run op. Returns how many there are. */
static unsigned contest(struct bench *bench, const struct set *set, unsigned sets,
                        struct contender ret[VARIANTS_MAX])
{
    const struct gm_variant *variant;
    struct proof proof;
    unsigned count = 0, next = 1, done = 0;

    if (!proof_make(&proof, &set[0].op, &bench->random))
        die("memory", "no room for a proof");
    for (size_t i = 0; (variant = gm_variant_at(i)) && count < VARIANTS_MAX; i++) {
        if (gm_variant_check(variant, &set[0].op, bench->facts, NULL) != GM_OK ||
            (config.only && strcmp(variant->name, config.only) != 0))
            continue;
        struct gm_times times = prove(bench, &set[0].op, variant, &proof);
        struct contender *c = &ret[count++];
        c->variant = variant;
        c->us = 0;
        c->kernel[0] = times.kernel;
        c->prepare[0] = times.prepare;
        /* what was proved was in the caches; of a slow variant there will be no other run */
        c->runs = times.kernel > 1e6 * RUN_SECONDS_MAX;
    }
    proof_free(&proof);
    while (done < count) {
        done = 0;
        for (unsigned i = 0; i < count; i++) {
            burst(bench, set, sets, &next, &ret[i]);
            done += is_done(&ret[i]);
        }
    }
    return count;
}

static void bench_op(struct bench *bench, const struct gm_op *op)
{
    static struct contender contenders[VARIANTS_MAX];
    const struct gm_variant *best;
    struct gm_error err;
    struct set set[SETS_MAX] = {0};
    uint64_t sets = SET_BYTES_WANTED / (gm_op_bytes_min(op) + 1) + 1;

    if (gm_select(op, bench->facts, NULL, &best, &err) != GM_OK)
        die("select", err.detail);
    sets = sets > SETS_MAX ? SETS_MAX : sets;
    for (unsigned i = 0; i < sets; i++)
        fill_set(bench, &set[i], op);
    unsigned count = contest(bench, set, (unsigned)sets, contenders);
    for (unsigned i = 0; i < count; i++) {
        struct timing timing = timing_of(&contenders[i]);
        report(bench, op, contenders[i].variant, contenders[i].variant == best, &timing);
    }
    for (unsigned i = 0; i < sets; i++) {
        for (unsigned j = 0; j <= GM_OPERANDS_MAX; j++)
            gm_backend_cpu.buffer_put(bench->context, &set[i].buffer[j]);
    }
}

static void bench_drawn(struct bench *bench)
{
    uint64_t random = config.seed;

    for (unsigned long i = 0; i < config.drawn; i++) {
        struct gm_op op = gm_draw_op(&random, DRAWN_PART);
        bench_op(bench, &op);
    }
}

static void bench_list(struct bench *bench)
{
    FILE *file = fopen(config.shapes, "re");
    struct gm_op op;

    if (!file)
        die(config.shapes, strerror(errno));
    while (shapes_next(file, &op))
        bench_op(bench, &op);
    fclose(file);
}

static void write_json(const struct bench *bench)
{
    char commit[64] = "unknown", date[32];
    time_t now = time(NULL);
    struct tm utc;
    FILE *git = popen("git -C " GM_SOURCE_DIR " describe --always --dirty 2>/dev/null", "r");

    if (git && fgets(commit, sizeof(commit), git))
        commit[strcspn(commit, "\n")] = '\0';
    if (git)
        pclose(git);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));

    json_t *document = json_object();
    json_object_set_new(document, "device", json_string(bench->facts->name));
    json_object_set_new(document, "detail", json_string(bench->facts->detail));
    json_object_set_new(document, "cores", json_integer(bench->facts->compute_units));
    json_object_set_new(document, "vector_bytes", json_integer(bench->facts->vector_bytes));
    json_object_set_new(document, "own_cache_bytes",
                        json_integer((json_int_t)bench->facts->own_cache_bytes));
    json_object_set_new(document, "tuned_blas", json_boolean(bench->facts->tuned_blas));
    json_object_set_new(document, "copy_gbs", json_real(bench->facts->copy_gbs));
    json_object_set_new(document, "peak_gflops_f32", json_real(bench->facts->peak_gflops[GM_F32]));
    json_object_set_new(document, "peak_gflops_f64", json_real(bench->facts->peak_gflops[GM_F64]));
    json_object_set_new(document, "date", json_string(date));
    json_object_set_new(document, "commit", json_string(commit));
    json_object_set(document, "results", bench->results);
    size_t flags = config.drawn > 0 ? JSON_COMPACT | JSON_REAL_PRECISION(4)
                                    : JSON_INDENT(1) | JSON_REAL_PRECISION(6);
    if (json_dump_file(document, config.json, flags) != 0)
        die(config.json, "cannot be written");
    json_decref(document);
}

static void parse_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value)
            die(argv[i], "usage: bench_kernels [--shapes FILE | --draw COUNT [--seed N]] "
                         "[--only VARIANT] [--threads N] [--seconds S] [--json FILE]");
        if (strcmp(argv[i], "--shapes") == 0)
            config.shapes = value;
        else if (strcmp(argv[i], "--draw") == 0)
            config.drawn = strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            config.seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            config.only = value;
        else if (strcmp(argv[i], "--json") == 0)
            config.json = value;
        else if (strcmp(argv[i], "--threads") == 0)
            config.threads = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0)
            config.seconds = strtod(value, NULL);
        else
            die(argv[i], "there is no such option");
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {.results = json_array(), .random = check_seed()};
    struct gm_backend_options options = {0};
    struct gm_error err;

    parse_arguments(argc, argv);
    options.threads = config.threads;
    double begin = seconds_now();
    if (gm_backend_cpu.open(&options, &bench.context, &err) != GM_OK)
        die("cpu", err.detail);
    double opened = seconds_now() - begin;
    bench.facts = gm_backend_cpu.describe(bench.context, 0);
    printf("%s, %s, %u cores, opened in %.0f ms\n"
           "copy %.1f GB/s; GFLOP/s: f32 %.1f, f64 %.1f, i32 %.1f, i64 %.1f\n"
           "(*: what auto takes; %% of copy, %% of peak)\n",
           bench.facts->name, bench.facts->detail, bench.facts->compute_units, 1e3 * opened,
           bench.facts->copy_gbs, bench.facts->peak_gflops[GM_F32],
           bench.facts->peak_gflops[GM_F64], bench.facts->peak_gflops[GM_I32],
           bench.facts->peak_gflops[GM_I64]);
    if (config.drawn > 0)
        bench_drawn(&bench);
    else
        bench_list(&bench);
    if (config.json)
        write_json(&bench);
    json_decref(bench.results);
    gm_backend_cpu.close(bench.context);
    return 0;
}
