/*
 * replay.c - what `auto` would take, by recorded times of every variant, and profiles that are made
 * of such times: no GPU is needed.
 *
 *   replay [--losses] [--gpu MODEL] [--profile FILE] RESULTS.json...
 *   replay --fit FILE [--rounds N] [--link GROUPS.json] RESULTS.json...
 *   replay --check [--rounds N] RESULTS.json...
 *
 * The first says, for each operation of each file, on how many shapes the choice is within 3 % and
 * 15 % of the best that was recorded, the worst, and how far estimates are from the times. --fit
 * writes a profile, fitted to all files, of the GPU of the first; --link fits the link's numbers to
 * a file of bench_groups. --check fits to one half of the shapes and judges by the other, in both
 * directions.
 */
#include "kernels/choose/fit.h"
#include "kernels/device_facts.h"
#include "proto/status.h"
#include "shapes.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MAX 16u
#define PROFILE_BYTES_MAX 65536u
#define ROUNDS 200u

struct results {
    const char *path;
    json_t *document; /* which has the names of variants */
    const char *time; /* that counts */
    struct gm_gpu gpu;
    struct gm_device_facts facts;
    struct gm_op *ops;
    struct gm_timed *timed;
    size_t count;
    double launch_us; /* of an empty kernel; 0: not known */
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "replay: %s: %s\n", what, detail);
    exit(1);
}

static const char *text_of(json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));

    return text ? text : "";
}

/* "4096x64^T 64x8 col tf32": what is behind the shapes are options. */
static struct gm_op read_op(json_t *json)
{
    const char *type = text_of(json, "dtype");
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {false}, trans[2] = {false, false};
    struct gm_op_options options = {0};
    struct gm_error err = {.detail = ""};
    char text[128], *save, *word;
    enum gm_op_kind kind;
    unsigned count = 0;
    struct gm_op op;

    snprintf(text, sizeof(text), "%s", text_of(json, "shape"));
    if (!gm_op_from_name(text_of(json, "op"), &kind))
        die("no operation", text_of(json, "op"));
    for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *mark = strchr(word, '^');
        struct gm_shape shape;
        if (mark)
            *mark = '\0';
        if (count < 2 && gm_shape_parse(word, strlen(word), &shape)) {
            present[count] = true;
            trans[count] = mark != NULL;
            if (gm_matrix_init(&operand[count++], gm_dtype_from_name(type, strlen(type)),
                               GM_ROW_MAJOR, &shape, &err) != GM_OK)
                die("shape", err.detail);
        } else if (strcmp(word, "col") == 0 && count > 0) {
            operand[count - 1].layout = GM_COL_MAJOR;
        } else if (!gm_precision_from_name(word, strlen(word), &options.precision)) {
            die("neither a shape nor an option", word);
        }
    }
    options.transa = trans[0];
    options.transb = trans[1];
    if (gm_op_init(&op, kind, &options, operand, present, &err) != GM_OK)
        die("operation", err.detail);
    return op;
}

static bool same_operation(json_t *left, json_t *right)
{
    static const char *const names[] = {"op", "dtype", "shape"};

    for (unsigned i = 0; i < 3; i++)
        if (strcmp(text_of(left, names[i]), text_of(right, names[i])) != 0)
            return false;
    return true;
}

/* The median of what an empty kernel took. */
static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_of(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof(*numbers), by_size);
    return count > 0 ? numbers[count / 2] : 0;
}

static bool is_baseline(const char *name)
{
    return strcmp(name, "nothing") == 0 || strcmp(name, "cudaMemcpy") == 0;
}

/* As gm_may_be_automatic, which wants a build with the variant. */
static bool may_be_automatic(json_t *row, const char *variant)
{
    return strcmp(text_of(row, "op"), "transpose") != 0 || strcmp(variant, "cublas") != 0;
}

static bool is_of_tune(const struct results *results)
{
    const char *benchmark = text_of(results->document, "benchmark");

    return strcmp(benchmark, "gemmd --tune") == 0 || strcmp(benchmark, "bench_choices") == 0;
}

static void add_time(struct results *ret, json_t *row, const struct gm_op *op, const char *variant,
                     double us)
{
    if (!is_baseline(variant) && may_be_automatic(row, variant))
        ret->timed[ret->count++] = (struct gm_timed){op, variant, &ret->facts, us};
}

/* Each row has one variant's time, or those of all under "us". */
static void read_rows(struct results *ret)
{
    json_t *results = json_object_get(ret->document, "results"), *json, *before = NULL, *each;
    size_t rows = json_array_size(results), i, shapes = 0, empty = 0, times = 0;
    double *launches = calloc(rows + 1, sizeof(*launches));
    const char *variant;

    json_array_foreach (results, i, json)
        times += 1 + json_object_size(json_object_get(json, "us"));
    ret->ops = calloc(rows + 1, sizeof(*ret->ops));
    ret->timed = calloc(times + 1, sizeof(*ret->timed));
    if (!ret->ops || !ret->timed || !launches)
        die("memory", "there is no more");
    json_array_foreach (results, i, json) {
        double us = json_number_value(json_object_get(json, ret->time)) +
                    json_number_value(json_object_get(json, "prepare_us"));
        if (strcmp(text_of(json, "variant"), "nothing") == 0)
            launches[empty++] = us;
        if (is_baseline(text_of(json, "variant")))
            continue;
        if (!before || !same_operation(json, before))
            ret->ops[shapes++] = read_op(json);
        before = json;
        json_object_foreach (json_object_get(json, "us"), variant, each)
            add_time(ret, json, &ret->ops[shapes - 1], variant, json_number_value(each));
        if (us > 0)
            add_time(ret, json, &ret->ops[shapes - 1], text_of(json, "variant"), us);
    }
    ret->launch_us = median_of(launches, empty);
    free(launches);
}

/* The model that the file is of, with the counts and clocks that the file has. */
static struct gm_gpu gpu_of(json_t *document, const char *model)
{
    const char *device = text_of(document, "device"), *space = strchr(device, ' ');
    const struct gm_gpu *known = gm_gpu_find(model ? model : space ? space + 1 : device);
    struct gm_gpu gpu = known ? *known : *gm_gpu_at(0);
    double sms = json_number_value(json_object_get(document, "multiprocessors"));
    double mhz = json_number_value(json_object_get(document, "sm_clock_max_mhz"));
    double gbs = json_number_value(json_object_get(document, "memory_gbs_by_clock"));
    double faster = 1;

    if (model && !known)
        die("no such GPU", model);
    if (model)
        return gpu;
    if (mhz > 0)
        faster *= mhz / 1e3 / gm_gpu_ghz(&gpu);
    if (sms > 0) {
        faster *= sms / gpu.sms;
        gpu.sms = (unsigned)sms;
    }
    gpu.fp32_gflops *= faster;
    gpu.fp64_gflops *= faster;
    gpu.int32_gflops *= faster;
    gpu.tensor_f16_gflops *= faster;
    gpu.tensor_tf32_gflops *= faster;
    gpu.tensor_fp64_gflops *= faster;
    gpu.dram_gbs = gbs > 0 ? gbs : gpu.dram_gbs;
    return gpu;
}

static bool prints_losses;

static double estimate_of(const struct gm_timed *timed)
{
    return gm_timed_estimate(timed, timed->facts->profile);
}

static void print_loss(const struct gm_timed *timed, size_t count, double best, double chosen)
{
    char shape[SHAPES_TEXT_MAX];

    shapes_text(timed->op, shape);
    printf("%.2f times the best: %s %s %s:", chosen / best, gm_op_name(timed->op->kind),
           gm_dtype_name(timed->op->result.dtype), shape);
    for (size_t i = 0; i < count; i++) {
        if (timed[i].us < 2 * best || timed[i].us == chosen)
            printf(" %s %.3g (%.3g)", timed[i].variant, timed[i].us, estimate_of(&timed[i]));
    }
    printf("\n");
}

struct tally {
    unsigned shapes, near, far;
    double worst, squares;
};

/* Adds a shape to the tally of its operation. */
static void judge(const struct gm_timed *timed, size_t count, struct tally *tally)
{
    double best = INFINITY, least = INFINITY, chosen = INFINITY;

    for (size_t i = 0; i < count; i++) {
        double us = estimate_of(&timed[i]);
        best = timed[i].us < best ? timed[i].us : best;
        chosen = us < least ? timed[i].us : chosen;
        least = us < least ? us : least;
    }
    if (isinf(least))
        return;
    if (prints_losses && chosen / best - 1 > GM_FIT_NEAR)
        print_loss(timed, count, best, chosen);
    tally->shapes++;
    tally->near += chosen / best - 1 <= GM_FIT_NEAR;
    tally->far += chosen / best - 1 > GM_FIT_FAR;
    tally->worst = fmax(tally->worst, chosen / best);
    tally->squares += log(least / chosen) * log(least / chosen);
}

static void report(const struct results *r)
{
    struct tally tallies[GM_OP_COUNT] = {0};

    for (size_t i = 0, end; i < r->count; i = end) {
        for (end = i + 1; end < r->count && r->timed[end].op == r->timed[i].op; end++)
            ;
        judge(&r->timed[i], end - i, &tallies[r->timed[i].op->kind]);
    }
    for (unsigned kind = 0; kind < GM_OP_COUNT; kind++) {
        const struct tally *t = &tallies[kind];
        if (t->shapes > 0)
            printf("%s, %s: of %u shapes %.1f%% within %.0f%% of the best, %.1f%% within %.0f%%, "
                   "the worst %.2f times it; estimates of what is taken within %.1f%%\n",
                   r->path, gm_op_name((enum gm_op_kind)kind), t->shapes,
                   100.0 * t->near / t->shapes, 100 * GM_FIT_NEAR, 100 - 100.0 * t->far / t->shapes,
                   100 * GM_FIT_FAR, t->worst, 100 * sqrt(t->squares / t->shapes));
    }
}

static struct gm_profile *read_profile(const char *path)
{
    struct gm_profile *profile = NULL;
    struct gm_error err = {.detail = ""};
    char *text = calloc(1, PROFILE_BYTES_MAX + 1);
    FILE *file = fopen(path, "re");

    if (!text || !file || fread(text, 1, PROFILE_BYTES_MAX, file) == 0)
        die(path, "cannot be read, or is empty");
    if (gm_profile_read(text, &profile, &err) != GM_OK)
        die(path, err.detail);
    fclose(file);
    free(text);
    return profile;
}

/* ---- Fits. ---- */

/* The times of all files one behind another; of each second shape from `half` on, or of all. */
static struct gm_timed *times_of(const struct results *results, unsigned files, int half,
                                 size_t *ret_count)
{
    const struct gm_op *op = NULL;
    struct gm_timed *timed;
    size_t count = 0, shape = 0;

    for (unsigned f = 0; f < files; f++)
        count += results[f].count;
    timed = calloc(count + 1, sizeof(*timed));
    if (!timed)
        die("memory", "there is no more");
    *ret_count = 0;
    for (unsigned f = 0; f < files; f++) {
        for (size_t i = 0; i < results[f].count; i++) {
            shape += results[f].timed[i].op != op;
            op = results[f].timed[i].op;
            /* Neighbours in a list are alike, and so would be the halves: pairs take turns. */
            if (half < 0 || (shape / 2 + shape) % 2 == (size_t)half)
                timed[(*ret_count)++] = results[f].timed[i];
        }
    }
    return timed;
}

static struct gm_profile *fitted(const struct results *results, const struct gm_timed *timed,
                                 size_t count, unsigned rounds)
{
    json_t *head = results->document;
    struct gm_profile *profile = NULL;
    struct gm_error err = {.detail = ""};
    char date[11], driver[24]; /* of a CPU: the instruction set, which is first in the details */

    snprintf(driver, sizeof(driver), "%s%.*s", text_of(head, "driver"),
             (int)strcspn(text_of(head, "detail"), ","), text_of(head, "detail"));
    snprintf(date, sizeof(date), "%.10s", text_of(head, "date"));
    const struct gm_measured_on on = {text_of(head, "device"), driver, date,
                                      text_of(head, "commit")};
    if (gm_profile_fit(timed, count, results->launch_us, rounds, &on, &profile, &err) != GM_OK)
        die("fit", err.detail);
    return profile;
}

static void print_losses(FILE *out, const char *what, struct gm_fit_losses l)
{
    fprintf(out,
            "%s: of %u shapes %.1f%% within %.0f%% of the best, %.1f%% within %.0f%%, the "
            "worst %.2f times it\n",
            what, l.shapes, 100.0 * l.near / l.shapes, 100 * GM_FIT_NEAR,
            100 - 100.0 * l.far / l.shapes, 100 * GM_FIT_FAR, l.worst);
}

/* Lone jobs, of squares. */
static void fit_link(const char *path, struct gm_profile *profile)
{
    json_error_t error;
    json_t *document = json_load_file(path, 0, &error), *row;
    json_t *rows = json_object_get(document, "results");
    size_t all = json_array_size(rows), count = 0, i;
    struct gm_timed *timed = calloc(all + 1, sizeof(*timed));
    struct gm_op *ops = calloc(all + 1, sizeof(*ops));

    if (!document || !timed || !ops)
        die(path, document ? "there is no memory" : error.text);
    struct gm_gpu gpu = gpu_of(document, NULL);
    const struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA,
                                          .gpu = &gpu,
                                          .tuned_blas = true,
                                          .cache_bytes = (uint64_t)gpu.l2_bytes};
    json_array_foreach (rows, i, row) {
        int side = (int)json_integer_value(json_object_get(row, "side"));
        int operands =
            strcmp(text_of(row, "op"), "matmul") == 0 || strcmp(text_of(row, "op"), "add") == 0;
        char shape[64];
        if (json_integer_value(json_object_get(row, "jobs")) != 1 ||
            json_integer_value(json_object_get(row, "streams")) != 1 ||
            !may_be_automatic(row, text_of(row, "variant")))
            continue;
        snprintf(shape, sizeof(shape), operands ? "%dx%d %dx%d" : "%dx%d", side, side, side, side);
        json_object_set_new(row, "shape", json_string(shape));
        ops[count] = read_op(row);
        timed[count] =
            (struct gm_timed){.op = &ops[count],
                              .variant = text_of(row, "variant"),
                              .facts = &facts,
                              .us = 1e6 / json_number_value(json_object_get(row, "jobs_per_s"))};
        count++;
    }
    gm_profile_fit_link(timed, count, json_number_value(json_object_get(document, "link_in_gbs")),
                        json_number_value(json_object_get(document, "link_out_gbs")), profile);
    free(timed);
    free(ops);
    json_decref(document);
}

static void fit_all(const struct results *results, unsigned files, unsigned rounds,
                    const char *name, const char *link)
{
    char made[1024] = "by tests/bench/replay.c from";
    size_t count, len = strlen(made);
    struct gm_timed *timed = times_of(results, files, -1, &count);
    struct gm_profile *profile = fitted(results, timed, count, rounds);
    FILE *out = fopen(name, "we");

    if (link)
        fit_link(link, profile);
    for (unsigned f = 0; f < files && len < sizeof(made); f++) {
        const char *slash = strrchr(results[f].path, '/');
        len += (size_t)snprintf(made + len, sizeof(made) - len, " %s%s",
                                slash ? slash + 1 : results[f].path, f + 1 < files ? "," : ".");
    }
    if (!out)
        die(name, "cannot be written");
    gm_profile_write(profile, made, out);
    bool whole = !ferror(out);
    if (fclose(out) != 0 || !whole)
        die(name, "cannot be written");
    print_losses(stdout, name, gm_profile_losses(timed, count, profile));
    free(profile);
    free(timed);
}

static void check_fit(const struct results *results, unsigned files, unsigned rounds)
{
    for (int half = 0; half < 2; half++) {
        size_t count, others;
        struct gm_timed *timed = times_of(results, files, half, &count);
        struct gm_timed *other = times_of(results, files, 1 - half, &others);
        struct gm_profile *profile = fitted(results, timed, count, rounds);
        print_losses(stdout, "fitted to it", gm_profile_losses(timed, count, profile));
        print_losses(stdout, "the other half", gm_profile_losses(other, others, profile));
        free(profile);
        free(timed);
        free(other);
    }
}

/* Of a CPU, by the least times: other programs take part of it. */
static void read_host(struct results *ret, const struct gm_profile *profile)
{
    json_t *head = ret->document;

    ret->time = "least_us";
    ret->facts = (struct gm_device_facts){
        .kind = GM_DEVICE_CPU,
        .compute_units = (unsigned)json_integer_value(json_object_get(head, "cores")),
        .vector_bytes = (unsigned)json_integer_value(json_object_get(head, "vector_bytes")),
        .own_cache_bytes = (uint64_t)json_integer_value(json_object_get(head, "own_cache_bytes")),
        .tuned_blas = json_is_true(json_object_get(head, "tuned_blas")),
        .profile = profile};
    read_rows(ret);
}

static void read_results(struct results *ret, const char *path, const char *model,
                         const struct gm_profile *profile)
{
    json_error_t error;

    *ret = (struct results){.path = path, .document = json_load_file(path, 0, &error)};
    if (!ret->document)
        die(path, error.text);
    if (json_object_get(ret->document, "cores")) {
        read_host(ret, profile);
        return;
    }
    ret->time = "median_us";
    ret->gpu = gpu_of(ret->document, model);
    ret->facts = (struct gm_device_facts){
        .kind = GM_DEVICE_CUDA, .gpu = &ret->gpu, .profile = profile, .tuned_blas = true};
    /* the benchmark sets half a gigabyte before it times, and so leaves nothing in the cache */
    if (is_of_tune(ret))
        ret->facts.cache_bytes =
            (uint64_t)json_number_value(json_object_get(ret->document, "l2_bytes"));
    read_rows(ret);
}

static int usage(FILE *out)
{
    fprintf(
        out,
        "usage: replay [--losses] [--gpu MODEL] [--profile FILE] RESULTS.json...\n"
        "       replay --fit FILE [--rounds N] [--link GROUPS.json] RESULTS.json...\n"
        "       replay --check [--rounds N] RESULTS.json...\n\n"
        "Up to %u files of times of every variant (tests/bench/results). The first says how far\n"
        "from the best the choice of auto is. --fit writes a profile that is fitted to them into\n"
        "FILE; --link fits the link's numbers to a file of bench_groups. --check fits to one half\n"
        "of the shapes and judges by the other. A fit takes %u rounds unless N says otherwise.\n",
        FILES_MAX, ROUNDS);
    return out == stdout ? 0 : 2;
}

static unsigned rounds_of(const char *text)
{
    char *end;
    unsigned long rounds = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || rounds > UINT_MAX)
        die("not a number of rounds", text);
    return (unsigned)rounds;
}

int main(int argc, char **argv)
{
    static struct results results[FILES_MAX];
    const char *model = NULL, *fit = NULL, *link = NULL;
    struct gm_profile *profile = NULL;
    unsigned files = 0, rounds = ROUNDS;
    bool checks = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return usage(stdout);
        if (strcmp(argv[i], "--check") == 0)
            checks = true;
        else if (strcmp(argv[i], "--losses") == 0)
            prints_losses = true;
        else if (strcmp(argv[i], "--gpu") == 0 && i + 1 < argc)
            model = argv[++i];
        else if (strcmp(argv[i], "--fit") == 0 && i + 1 < argc)
            fit = argv[++i];
        else if (strcmp(argv[i], "--link") == 0 && i + 1 < argc)
            link = argv[++i];
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = rounds_of(argv[++i]);
        else if (strcmp(argv[i], "--profile") == 0 && i + 1 < argc)
            profile = read_profile(argv[++i]);
        else if (argv[i][0] == '-')
            return usage(stderr);
        else if (files < FILES_MAX)
            read_results(&results[files++], argv[i], model, profile);
        else
            die("more files than can be read", argv[i]);
    }
    if (files == 0 || (fit && checks) || (link && !fit))
        return usage(stderr);
    if (fit)
        fit_all(results, files, rounds, fit, link);
    else if (checks)
        check_fit(results, files, rounds);
    for (unsigned f = 0; f < files; f++) {
        if (!fit && !checks)
            report(&results[f]);
        free(results[f].ops);
        free(results[f].timed);
        json_decref(results[f].document);
    }
    free(profile);
    return 0;
}
