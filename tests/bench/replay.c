/*
 * replay.c - what `auto` would take, by recorded times of every variant: no GPU is needed.
 *
 *   replay [--losses] [--gpu MODEL] [--profile FILE] RESULTS.json...
 *       For each operation of each file: on how many shapes the choice is within 3 % and 15 % of
 * the best that was recorded, the worst, and how far estimates are from the times. replay --serve
 * RESULTS.json... For fit.py: reads profiles from standard input (a line with the length and maybe
 * a variant, then the text) and writes the estimate of each recorded row as a double, 0 for others.
 */
#include "kernels/choose/choose.h"
#include "kernels/device_facts.h"
#include "proto/status.h"
#include "shapes.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 0.03
#define FAR 0.15

struct row {
    struct gm_op op;
    const char *variant;
    double us;    /* as measured */
    bool is_same; /* the same operation as the row before */
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

static struct row *read_rows(json_t *document, size_t *ret_count)
{
    json_t *results = json_object_get(document, "results"), *json, *before = NULL;
    struct row *rows = calloc(json_array_size(results) + 1, sizeof(*rows));
    size_t i;

    if (!rows)
        die("memory", "there is no more");
    json_array_foreach(results, i, json)
    {
        rows[i].is_same = before && same_operation(json, before);
        rows[i].op = read_op(json);
        rows[i].variant = text_of(json, "variant");
        rows[i].us = json_number_value(json_object_get(json, "median_us")) +
                     json_number_value(json_object_get(json, "prepare_us"));
        before = json;
    }
    *ret_count = json_array_size(results);
    return rows;
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

static bool is_baseline(const char *name)
{
    return strcmp(name, "nothing") == 0 || strcmp(name, "cudaMemcpy") == 0;
}

static double estimate_of(const struct row *row, const struct gm_device_facts *facts)
{
    double us = gm_estimate(&row->op, row->op.kind, row->variant, facts).us;

    return is_baseline(row->variant) || us < 0 ? INFINITY : us;
}

static bool prints_losses;

static void print_loss(const struct row *rows, size_t count, const struct gm_device_facts *facts,
                       double best, double chosen)
{
    char shape[SHAPES_TEXT_MAX];

    shapes_text(&rows->op, shape);
    printf("%.2f times the best: %s %s %s:", chosen / best, gm_op_name(rows->op.kind),
           gm_dtype_name(rows->op.result.dtype), shape);
    for (size_t i = 0; i < count; i++) {
        if (!is_baseline(rows[i].variant) && rows[i].us < 2 * best)
            printf(" %s %.1f (%.1f)", rows[i].variant, rows[i].us, estimate_of(&rows[i], facts));
    }
    printf("\n");
}

struct tally {
    unsigned shapes, near, far, estimates;
    double worst, squares;
};

/* Adds the shape whose rows are `rows` to the tally of its operation. */
static void judge(const struct row *rows, size_t count, const struct gm_device_facts *facts,
                  struct tally *tally)
{
    double best = INFINITY, least = INFINITY, chosen = INFINITY;

    for (size_t i = 0; i < count; i++) {
        double us = estimate_of(&rows[i], facts);
        if (is_baseline(rows[i].variant))
            continue;
        best = rows[i].us < best ? rows[i].us : best;
        if (us < least) {
            least = us;
            chosen = rows[i].us;
        }
    }
    if (isinf(least))
        return;
    if (prints_losses && chosen / best - 1 > NEAR)
        print_loss(rows, count, facts, best, chosen);
    tally->shapes++;
    tally->near += chosen / best - 1 <= NEAR;
    tally->far += chosen / best - 1 > FAR;
    tally->worst = chosen / best > tally->worst ? chosen / best : tally->worst;
    tally->estimates++;
    tally->squares += log(least / chosen) * log(least / chosen);
}

static void report(const char *file, const struct row *rows, size_t count,
                   const struct gm_device_facts *facts)
{
    struct tally tallies[GM_OP_COUNT] = {0};

    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && rows[end].is_same; end++)
            ;
        judge(&rows[i], end - i, facts, &tallies[rows[i].op.kind]);
    }
    for (unsigned kind = 0; kind < GM_OP_COUNT; kind++) {
        const struct tally *t = &tallies[kind];
        if (t->shapes > 0)
            printf(
                "%s, %s: of %u shapes %.1f%% within %.0f%% of the best, %.1f%% within %.0f%%, the "
                "worst %.2f times it; estimates of what is taken within %.1f%%\n",
                file, gm_op_name((enum gm_op_kind)kind), t->shapes, 100.0 * t->near / t->shapes,
                100 * NEAR, 100 - 100.0 * t->far / t->shapes, 100 * FAR, t->worst,
                100 * sqrt(t->squares / t->estimates));
    }
}

static struct gm_profile *read_profile(FILE *file, const char *name, size_t size)
{
    struct gm_profile *profile = NULL;
    struct gm_error err = {.detail = ""};
    char *text = calloc(1, size + 1);

    if (!text || !file)
        die(name, "cannot be read");
    if (fread(text, 1, size, file) == 0)
        die(name, "is empty");
    if (gm_profile_read(text, &profile, &err) != GM_OK)
        die(name, err.detail);
    free(text);
    return profile;
}

static void serve(const struct row *rows, const size_t *counts, unsigned files,
                  struct gm_device_facts *facts)
{
    char head[64];

    while (fgets(head, sizeof(head), stdin)) {
        char *only;
        size_t length = strtoul(head, &only, 10);
        only += strspn(only, " ");
        only[strcspn(only, "\n")] = '\0';
        struct gm_profile *profile = read_profile(stdin, "input", length);
        for (unsigned f = 0, first = 0; f < files; first += (unsigned)counts[f++]) {
            facts[f].profile = profile;
            for (size_t i = first; i < first + counts[f]; i++) {
                bool asked = *only == '\0' || strcmp(rows[i].variant, only) == 0;
                double us =
                    asked ? gm_estimate(&rows[i].op, rows[i].op.kind, rows[i].variant, &facts[f]).us
                          : 0;
                fwrite(&us, sizeof(us), 1, stdout);
            }
        }
        fflush(stdout);
        free(profile);
    }
}

#define FILES_MAX 16u
#define PROFILE_BYTES_MAX 65536u

int main(int argc, char **argv)
{
    static struct gm_gpu gpus[FILES_MAX];
    struct gm_device_facts facts[FILES_MAX];
    const char *model = NULL;
    struct gm_profile *profile = NULL;
    struct row *all = NULL;
    size_t counts[FILES_MAX], total = 0;
    unsigned files = 0;
    bool serves = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--serve") == 0) {
            serves = true;
        } else if (strcmp(argv[i], "--losses") == 0) {
            prints_losses = true;
        } else if (strcmp(argv[i], "--gpu") == 0 && i + 1 < argc) {
            model = argv[++i];
        } else if (strcmp(argv[i], "--profile") == 0 && i + 1 < argc) {
            FILE *file = fopen(argv[++i], "re");
            profile = read_profile(file, argv[i], PROFILE_BYTES_MAX);
            fclose(file);
        } else if (files < FILES_MAX) {
            json_error_t error;
            json_t *document = json_load_file(argv[i], 0, &error);
            if (!document)
                die(argv[i], error.text);
            struct row *rows = read_rows(document, &counts[files]);
            gpus[files] = gpu_of(document, model);
            facts[files] = (struct gm_device_facts){.kind = GM_DEVICE_CUDA,
                                                    .gpu = &gpus[files],
                                                    .profile = profile,
                                                    .tuned_blas = true};
            if (!serves)
                report(argv[i], rows, counts[files], &facts[files]);
            all = realloc(all, (total + counts[files]) * sizeof(*all));
            if (!all)
                die("memory", "there is no more");
            memcpy(all + total, rows, counts[files] * sizeof(*all));
            total += counts[files++];
            free(rows); /* the document stays: rows have its names */
        }
    }
    if (serves)
        serve(all, counts, files, facts);
    free(all);
    free(profile);
    return 0;
}
