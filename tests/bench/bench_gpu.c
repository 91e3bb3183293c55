/*
 * bench_gpu.c - times every kernel variant for GPUs over a list of shapes. In the same run it times
 * a copy of the same bytes and cuBLAS, and says what `auto` would have taken.
 *
 *   bench_gpu [--shapes FILE | --draw COUNT [--seed N]] [--op OP] [--only VARIANT,...]
 *             [--seconds S] [--json FILE]
 *
 * --draw: operations that are drawn at random (kernels/choose/draw.c), so that choices are judged
 * by shapes that nobody chose.
 *
 * 77 where there is no GPU.
 */
#include "bench_gpu_result.h"
#include "kernels/choose/fit.h"
#include "shapes.h"
#include "tests/unit/check.h"

#include <errno.h>

#define SKIPPED 77
#define COPY_OF_CACHES 4u /* times the L2: a copy that is one of memory's */

static struct {
    const char *shapes, *json, *only, *op;
    double seconds; /* for each contender */
    uint64_t seed;
    unsigned long drawn;
} config = {.shapes = "tests/bench/gpu.shapes", .seconds = 0.15, .seed = 1};

/* How far `auto` was from the best. */
static struct {
    unsigned shapes, within_3, beyond_10;
    double worst;
    char worst_of[SHAPES_TEXT_MAX + 32];
} choices;

struct bench {
    struct device device;
    uint64_t random;
    FILE *json;
    double copy_gbs; /* the best copy of memory so far */
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_gpu: %s: %s\n", what, detail);
    exit(1);
}

/* Whether the variant is to be timed: one of those named, or cuBLAS, or any where none are named.
 */
static bool is_wanted(const char *name)
{
    size_t length = strlen(name);
    const char *at = config.only;

    if (!at || strcmp("cublas", name) == 0)
        return true;
    for (; (at = strstr(at, name)); at++) {
        if ((at == config.only || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

static unsigned list_variants(const struct bench *bench, const struct gm_op *op,
                              struct contender ret[CONTENDERS_MAX], unsigned count)
{
    const struct gm_variant *variant;

    for (size_t i = 0; (variant = gm_variant_at(i)) && count < CONTENDERS_MAX; i++) {
        if (variant->op == op->kind && is_wanted(variant->name) &&
            gm_variant_check(variant, op, &bench->device.facts, NULL) == GM_OK)
            ret[count++] = (struct contender){.name = variant->name, .variant = variant};
    }
    return count;
}

static double time_of(const struct contender *contender)
{
    return contender->timing.median + contender->timing.prepare;
}

/* The least time of a copy that reads and writes as much as op must, by whatever copies. */
static double copy_us_of(struct bench *bench, const struct gm_op *op)
{
    struct contender contenders[CONTENDERS_MAX] = {
        {.name = "cudaMemcpy", .baseline = baseline_memcpy}};
    struct gm_op copy = {.kind = GM_OP_COPY, .operands = 1};
    double least = 0;

    copy.operand[0] =
        (struct gm_matrix){.dtype = GM_U8, .batch = 1, .rows = 1, .cols = gm_op_bytes_min(op) / 2};
    copy.result = copy.operand[0];
    const struct gm_variant *variant;
    unsigned count = 1;
    for (size_t i = 0; (variant = gm_variant_at(i)) && count < CONTENDERS_MAX; i++) {
        if (variant->op == GM_OP_COPY &&
            gm_variant_check(variant, &copy, &bench->device.facts, NULL) == GM_OK)
            contenders[count++] = (struct contender){.name = variant->name, .variant = variant};
    }
    contest(&bench->device, &copy, contenders, count, config.seconds / 2, &bench->random);
    for (unsigned i = 0; i < count; i++) {
        if (least == 0 || contenders[i].timing.median < least)
            least = contenders[i].timing.median;
    }
    return least;
}

/* Judges what `auto` takes against the best of all that could run. */
static const char *judge_choice(struct bench *bench, const struct gm_op *op,
                                const struct contender *contenders, unsigned count)
{
    const struct gm_variant *chosen;
    const struct contender *mine = NULL;
    double best = 0;
    char shape[SHAPES_TEXT_MAX];

    if (gm_select(op, &bench->device.facts, NULL, &chosen, NULL) != GM_OK)
        return "";
    for (unsigned i = 0; i < count; i++) {
        if (!contenders[i].variant)
            continue;
        if (contenders[i].variant == chosen)
            mine = &contenders[i];
        if (best == 0 || time_of(&contenders[i]) < best)
            best = time_of(&contenders[i]);
    }
    if (!mine || config.only)
        return chosen->name;
    double loss = time_of(mine) / best - 1;
    choices.shapes++;
    choices.within_3 += loss <= 0.03;
    choices.beyond_10 += loss > 0.10;
    shapes_text(op, shape);
    if (loss > 0.03)
        printf("          auto takes %s, %.1f%% longer than the best\n", chosen->name, 100 * loss);
    if (loss > choices.worst) {
        choices.worst = loss;
        snprintf(choices.worst_of, sizeof(choices.worst_of), "%s of %s %s", gm_op_name(op->kind),
                 gm_dtype_name(op->result.dtype), shape);
    }
    return chosen->name;
}

static void bench_op(struct bench *bench, struct gm_op *op)
{
    struct contender contenders[CONTENDERS_MAX];
    bool copies = op->kind == GM_OP_COPY, moves = op->kind != GM_OP_MATMUL;
    unsigned count = 0;
    double copy_us = 0, cublas_us = 0;

    gm_set_tiles(op, &bench->device.facts); /* the daemon's */
    if (copies)
        contenders[count++] = (struct contender){.name = "cudaMemcpy", .baseline = baseline_memcpy};
    contenders[count++] = (struct contender){.name = "nothing", .baseline = baseline_nothing};
    count = list_variants(bench, op, contenders, count);
    if (moves && !copies)
        copy_us = copy_us_of(bench, op);
    contest(&bench->device, op, contenders, count, config.seconds, &bench->random);
    for (unsigned i = 0; i < count; i++) {
        if (copies && contenders[i].baseline != baseline_nothing &&
            (copy_us == 0 || contenders[i].timing.median < copy_us))
            copy_us = contenders[i].timing.median;
        if (op->kind == GM_OP_MATMUL && strcmp(contenders[i].name, "cublas") == 0)
            cublas_us = contenders[i].timing.median;
    }
    double gbs = copy_us > 0 ? 1e-3 * (double)gm_op_bytes_min(op) / copy_us : 0;
    if (copies && gbs > bench->copy_gbs &&
        gm_op_bytes_min(op) > COPY_OF_CACHES * bench->device.l2_bytes)
        bench->copy_gbs = gbs;
    const char *chosen = judge_choice(bench, op, contenders, count);
    for (unsigned i = 0; i < count; i++) {
        struct result result = {.op = op,
                                .contender = &contenders[i],
                                .is_auto = contenders[i].variant != NULL &&
                                           strcmp(chosen, contenders[i].name) == 0,
                                .copy_us = copy_us,
                                .copy_gbs = bench->copy_gbs,
                                .cublas_us = cublas_us};
        result_print(&result);
        if (bench->json)
            result_file_add(bench->json, &result);
    }
}

static void bench_drawn(struct bench *bench)
{
    uint64_t random = config.seed;

    for (unsigned long i = 0; i < config.drawn; i++) {
        struct gm_op op = gm_draw_op(&random, 1);
        if (!config.op || op.kind == GM_OP_COPY || strcmp(config.op, gm_op_name(op.kind)) == 0)
            bench_op(bench, &op);
    }
}

static void bench_list(struct bench *bench)
{
    FILE *file = fopen(config.shapes, "re");
    struct gm_op op;

    if (!file)
        die(config.shapes, strerror(errno));
    while (shapes_next(file, &op)) {
        /* Copies come first and say what 100 % is. */
        if (!config.op || op.kind == GM_OP_COPY || strcmp(config.op, gm_op_name(op.kind)) == 0)
            bench_op(bench, &op);
    }
    fclose(file);
}

static void parse_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value)
            die(argv[i], "usage: bench_gpu [--shapes FILE | --draw COUNT [--seed N]] [--op OP] "
                         "[--only VARIANT,...] [--seconds S] [--json FILE]");
        if (strcmp(argv[i], "--op") == 0)
            config.op = value;
        else if (strcmp(argv[i], "--shapes") == 0)
            config.shapes = value;
        else if (strcmp(argv[i], "--draw") == 0)
            config.drawn = strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            config.seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            config.only = value;
        else if (strcmp(argv[i], "--json") == 0)
            config.json = value;
        else if (strcmp(argv[i], "--seconds") == 0)
            config.seconds = strtod(value, NULL);
        else
            die(argv[i], "there is no such option");
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;

    parse_arguments(argc, argv);
    if (!device_open(&bench.device)) {
        printf("%s: nothing to measure\n", bench.device.error);
        return SKIPPED;
    }
    bench.device.times = true;
    bench.device.facts.cache_bytes = 0; /* a head start leaves nothing there */
    bench.random = check_seed();
    contest_spin_up(&bench.device);
    struct baseline_clocks clocks = baseline_read_clocks();
    printf("%s, driver %s, SM clock %u MHz (at most %u), memory %u (%u), %s\n",
           bench.device.facts.name, bench.device.driver, clocks.sm, clocks.sm_max, clocks.memory,
           clocks.memory_max, bench.device.facts.tuned_blas ? "with cuBLAS" : "cuBLAS not found");
    if (config.json &&
        !(bench.json = result_file_open(config.json, "bench_gpu", &bench.device, &clocks)))
        die(config.json, strerror(errno));
    if (config.drawn > 0)
        bench_drawn(&bench);
    else
        bench_list(&bench);
    printf("auto: within 3%% of the best on %u of %u shapes, beyond 10%% on %u; worst %.1f%%%s%s\n",
           choices.within_3, choices.shapes, choices.beyond_10, 100 * choices.worst,
           choices.worst > 0 ? ", " : "", choices.worst_of);
    if (bench.json && !result_file_close(bench.json))
        die(config.json, "not all of it was written");
    device_close(&bench.device);
    return 0;
}
