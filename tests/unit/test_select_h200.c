/*
 * test_select_h200.c - what `auto` takes on an H200, against the times of every variant that
 * tests/bench/results/kernels_h200.json records, and for products of random shapes
 * random_h200.json: the thresholds of choose/cuda.c and cuda_matmul.c came from there, but
 * for those that they name. A change of either that parts them is found here, where there is no
 * GPU: choices if the build has the kernels for GPUs, what tiles.c estimates in any.
 */
#include "kernels/choose/choose.h"
#include "kernels/device_facts.h"
#include "kernels/layout.h"
#include "tests/unit/check.h"

#include <jansson.h>
#include <math.h>

#define NEAR 0.03 /* as good as the best */

/* What share of a file's shapes must be near, and how far none may be. */
struct bounds {
    double near_share, far;
};

/* "4096x64^T" or "4096x64 col": what is behind the shape itself is cut off and remembered. */
static bool read_shape(char *word, struct gm_shape *ret, bool *ret_trans)
{
    char *mark = strchr(word, '^');

    *ret_trans = mark != NULL;
    if (mark)
        *mark = '\0';
    return gm_shape_parse(word, strlen(word), ret);
}

static bool read_op(json_t *row, struct gm_op *ret)
{
    const char *op = json_string_value(json_object_get(row, "op"));
    const char *type = json_string_value(json_object_get(row, "dtype"));
    char text[128], *save, *word;
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {false}, trans[2] = {false, false};
    struct gm_op_options options = {0};
    struct gm_error err = {.detail = ""};
    enum gm_op_kind kind;

    snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(row, "shape")));
    if (!CHECK(gm_op_from_name(op, &kind)))
        return false;
    word = strtok_r(text, " ", &save);
    for (unsigned i = 0; word; word = strtok_r(NULL, " ", &save)) {
        struct gm_shape shape;
        if (i < 2 && read_shape(word, &shape, &trans[i])) {
            present[i] = true;
            if (!CHECK_STATUS(gm_matrix_init(&operand[i++], gm_dtype_from_name(type, strlen(type)),
                                             GM_ROW_MAJOR, &shape, &err),
                              GM_OK, &err))
                return false;
        } else if (!CHECK(gm_precision_from_name(word, strlen(word), &options.precision))) {
            return false;
        }
    }
    options.transa = trans[0];
    options.transb = trans[1];
    return CHECK_STATUS(gm_op_init(ret, kind, &options, operand, present, &err), GM_OK, &err);
}

static bool same_operation(json_t *left, json_t *right)
{
    return json_equal(json_object_get(left, "op"), json_object_get(right, "op")) &&
           json_equal(json_object_get(left, "dtype"), json_object_get(right, "dtype")) &&
           json_equal(json_object_get(left, "shape"), json_object_get(right, "shape"));
}

static double time_of(json_t *row)
{
    return json_number_value(json_object_get(row, "median_us")) +
           json_number_value(json_object_get(row, "prepare_us"));
}

/* A row that is no variant's. */
static bool is_baseline(json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "variant"));

    return strcmp(name, "nothing") == 0 || strcmp(name, "cudaMemcpy") == 0;
}

/* How much longer than the best what is chosen takes; negative where it was not timed. */
static double loss_of(json_t *results, size_t first, const char *chosen)
{
    json_t *row, *like = json_array_get(results, first);
    double best = -1, mine = -1;

    for (size_t i = first; (row = json_array_get(results, i)) && same_operation(row, like); i++) {
        if (is_baseline(row))
            continue;
        if (best < 0 || time_of(row) < best)
            best = time_of(row);
        if (strcmp(json_string_value(json_object_get(row, "variant")), chosen) == 0)
            mine = time_of(row);
    }
    return mine < 0 ? -1 : mine / best - 1;
}

/* Steps of the way from `register_tiled` to `multistage`, for readers: `auto` never takes them. */
static bool is_lesson(const char *name)
{
    static const char *const lessons[] = {"vector_loads", "warp_tiled", "double_buffered"};

    for (size_t i = 0; i < sizeof(lessons) / sizeof(lessons[0]); i++) {
        if (strcmp(name, lessons[i]) == 0)
            return true;
    }
    return false;
}

static void test_choices(json_t *results, const struct gm_device_facts *facts, struct bounds bounds)
{
    unsigned shapes = 0, near = 0;
    json_t *row, *before = NULL;

    for (size_t i = 0; (row = json_array_get(results, i)); before = row, i++) {
        const struct gm_variant *variant;
        struct gm_error err = {.detail = ""};
        struct gm_op op;
        if ((before && same_operation(row, before)) || !read_op(row, &op) ||
            !CHECK_STATUS(gm_select(&op, facts, NULL, &variant, &err), GM_OK, &err))
            continue;
        CHECK(!is_lesson(variant->name));
        double loss = loss_of(results, i, variant->name);
        if (loss < 0)
            continue;
        shapes++;
        near += loss <= NEAR;
        if (loss > NEAR)
            printf("%s of %s %s: %s takes %.1f%% longer than the best\n", gm_op_name(op.kind),
                   gm_dtype_name(op.result.dtype), json_string_value(json_object_get(row, "shape")),
                   variant->name, 100 * loss);
        CHECK(loss <= bounds.far);
    }
    printf("%u of %u within %.0f%%\n", near, shapes, 100 * NEAR);
    CHECK(shapes > 50);
    CHECK(near >= bounds.near_share * shapes);
}

/* m and n beyond those of a few vectors, nothing transposed; no stack that is one tall matrix since
 * it was timed. */
static bool is_plain_product(const struct gm_op *op)
{
    return op->kind == GM_OP_MATMUL && op->precision == GM_PRECISION_FP32 && !op->transa &&
           !op->transb && gm_op_m(op) > 8 && gm_op_n(op) > 8 && gm_op_joined(op) == 1;
}

/* The recorded time of a shape by one variant; negative if it has none. */
static double time_by(json_t *results, size_t first, const char *variant)
{
    json_t *row, *like = json_array_get(results, first);

    for (size_t i = first; (row = json_array_get(results, i)) && same_operation(row, like); i++) {
        if (strcmp(json_string_value(json_object_get(row, "variant")), variant) == 0)
            return time_of(row);
    }
    return -1;
}

/* What tiles.c estimates to take least, against the least that was recorded. */
static void test_tiles(json_t *results)
{
    const struct bounds bounds = {0.9, 0.15};
    unsigned shapes = 0, near = 0;
    json_t *row, *before = NULL;

    for (size_t i = 0; (row = json_array_get(results, i)); before = row, i++) {
        double least = INFINITY, loss;
        struct gm_op op;
        if ((before && same_operation(row, before)) || !read_op(row, &op) || !is_plain_product(&op))
            continue;
        for (int j = 0; j < GM_TILES_COUNT; j++) {
            double us = time_by(results, i, gm_tiles_name((enum gm_tiles)j));
            least = us >= 0 && us < least ? us : least;
        }
        enum gm_tiles tiles = gm_least_tiles(op.result.dtype, op.result.batch, gm_op_m(&op),
                                             gm_op_n(&op), gm_op_k(&op));
        loss = time_by(results, i, gm_tiles_name(tiles)) / least - 1;
        if (!CHECK(loss >= 0)) /* it was timed */
            continue;
        shapes++;
        near += loss <= NEAR;
        if (!CHECK(loss <= bounds.far))
            printf("%s of %s takes %.1f%% longer than the least\n", gm_tiles_name(tiles),
                   json_string_value(json_object_get(row, "shape")), 100 * loss);
    }
    printf("%u of %u within %.0f%% of the least tiles\n", near, shapes, 100 * NEAR);
    CHECK(shapes > 50);
    CHECK(near >= bounds.near_share * shapes);
}

static bool has_gpu_kernels(void)
{
    const struct gm_variant *row;

    for (size_t i = 0; (row = gm_variant_at(i)); i++) {
        if (row->run[GM_DEVICE_CUDA])
            return true;
    }
    return false;
}

int main(void)
{
    const struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA,
                                          .gpu = gm_gpu_find("H200"),
                                          .cache_bytes = (uint64_t)60 << 20,
                                          .tuned_blas = true};
    static const struct {
        const char *file;
        struct bounds bounds;
    } all[] = {{GM_RESULTS "kernels_h200.json", {0.95, 0.10}},
               {GM_RESULTS "random_h200.json", {0.95, 0.15}}};

    bool choices = has_gpu_kernels();

    if (!choices)
        printf("the kernels for GPUs are not in this build: tiles alone\n");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        json_error_t error;
        json_t *document = json_load_file(all[i].file, 0, &error);
        if (CHECK(document != NULL)) {
            if (choices)
                test_choices(json_object_get(document, "results"), &facts, all[i].bounds);
            if (i == 0)
                test_tiles(json_object_get(document, "results"));
        } else
            fprintf(stderr, "%s: %s\n", all[i].file, error.text);
        json_decref(document);
    }
    return check_report();
}
