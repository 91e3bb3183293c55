/*
 * choose.c - chooses the variant that runs an operation, for `auto` or by name.
 *
 * `auto` uses a table of preferences for each device and operation (choose.h); the tables of
 * GPUs are in cuda.c and cuda_matmul.c. The thresholds here were measured with
 * tests/bench/bench_kernels.
 */
#include "choose.h"

#include "kernels/layout.h"
#include "proto/status.h"

#include <stdio.h>
#include <string.h>

#define NAMES_MAX 200
/* What products by cuBLAS take. */
#define BLAS_TYPES                                                                                 \
    (GM_DTYPE_BIT(GM_F16) | GM_DTYPE_BIT(GM_BF16) | GM_DTYPE_BIT(GM_F32) | GM_DTYPE_BIT(GM_F64))

bool gm_always(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)op;
    (void)facts;
    return true;
}

bool gm_is_copy(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return gm_op_is_copy(op);
}

/* Below this size the result stays in the cache for its next reader. */
static bool cpu_streams(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return gm_op_is_copy(op) && gm_matrix_bytes(&op->result) >= (uint64_t)1 << 20;
}

/* The set-up of a better kernel costs more than it saves: in total, or for each matrix of a
 * stack. */
static bool cpu_is_tiny(const struct gm_op *op, const struct gm_device_facts *facts)
{
    double depth = op->kind == GM_OP_MATMUL && gm_op_k(op) > 0 ? (double)gm_op_k(op) : 1;
    double each = (double)op->result.rows * (double)op->result.cols * depth;

    (void)facts;
    return each * (double)op->result.batch <= 64 || (op->kind == GM_OP_MATMUL && each <= 8);
}

/* The same for add, whose better kernel merges dimensions and analyses the layouts. */
static bool cpu_adds_few(const struct gm_op *op, const struct gm_device_facts *facts)
{
    (void)facts;
    return gm_matrix_elements(&op->result) <= 16;
}

static bool cpu_has_blas(const struct gm_op *op, const struct gm_device_facts *facts)
{
    return facts->tuned_blas && (op->result.dtype == GM_F32 || op->result.dtype == GM_F64);
}

/*
 * A matrix times few vectors. The matrices of a stack that share one B count as one tall matrix.
 * Lines along K must be long enough to pay for the reduction of each dot product. A tuned BLAS is
 * as good if the matrix is in the cache, or has enough vectors to reuse it there.
 */
static bool cpu_is_skinny(const struct gm_op *op, const struct gm_device_facts *facts)
{
    uint64_t m = gm_op_m(op), n = gm_op_n(op), k = gm_op_k(op);
    uint64_t rows = m * gm_op_joined(op);
    uint64_t vectors = rows < n ? rows : n, lanes = rows < n ? n : rows;
    bool along_k = n <= rows ? gm_op_view(op, 0).col == 1 : gm_op_view(op, 1).row == 1;

    if (cpu_has_blas(op, facts) && ((double)lanes * (double)k < 32768 || (along_k && vectors > 4)))
        return false;
    return vectors <= 8 && (!along_k || k >= 32 * vectors);
}

static const struct gm_preference preferences[] = {
    {GM_DEVICE_CPU, GM_OP_COPY, GM_OP_COPY, "stream", cpu_streams},
    {GM_DEVICE_CPU, GM_OP_COPY, GM_OP_COPY, "memcpy", gm_always},

    {GM_DEVICE_CPU, GM_OP_TRANSPOSE, GM_OP_COPY, "stream", cpu_streams},
    {GM_DEVICE_CPU, GM_OP_TRANSPOSE, GM_OP_COPY, "memcpy", gm_is_copy},
    {GM_DEVICE_CPU, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "naive", cpu_is_tiny},
    {GM_DEVICE_CPU, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "blocked", gm_always},

    {GM_DEVICE_CPU, GM_OP_MATMUL, GM_OP_MATMUL, "naive", cpu_is_tiny},
    {GM_DEVICE_CPU, GM_OP_MATMUL, GM_OP_MATMUL, "skinny", cpu_is_skinny},
    {GM_DEVICE_CPU, GM_OP_MATMUL, GM_OP_MATMUL, "openblas", cpu_has_blas},
    {GM_DEVICE_CPU, GM_OP_MATMUL, GM_OP_MATMUL, "blocked", gm_always},

    {GM_DEVICE_CPU, GM_OP_ADD, GM_OP_ADD, "direct", cpu_adds_few},
    {GM_DEVICE_CPU, GM_OP_ADD, GM_OP_ADD, "vector", gm_always},

    {GM_DEVICE_CPU, GM_OP_FLIP, GM_OP_COPY, "stream", cpu_streams},
    {GM_DEVICE_CPU, GM_OP_FLIP, GM_OP_COPY, "memcpy", gm_is_copy},
    {GM_DEVICE_CPU, GM_OP_FLIP, GM_OP_FLIP, "naive", cpu_is_tiny},
    {GM_DEVICE_CPU, GM_OP_FLIP, GM_OP_FLIP, "vector", gm_always},

    /* The simulator has no times: the best of the textbook kernels, by their memory accesses. */
    {GM_DEVICE_SIM, GM_OP_COPY, GM_OP_COPY, "vector", gm_always},
    {GM_DEVICE_SIM, GM_OP_TRANSPOSE, GM_OP_COPY, "vector", gm_is_copy},
    {GM_DEVICE_SIM, GM_OP_TRANSPOSE, GM_OP_TRANSPOSE, "padded", gm_always},
    {GM_DEVICE_SIM, GM_OP_MATMUL, GM_OP_MATMUL, "tiled", gm_always},
    {GM_DEVICE_SIM, GM_OP_ADD, GM_OP_ADD, "float3_staged", gm_always},
    {GM_DEVICE_SIM, GM_OP_ADD, GM_OP_ADD, "direct", gm_always},
    {GM_DEVICE_SIM, GM_OP_FLIP, GM_OP_COPY, "vector", gm_is_copy},
    {GM_DEVICE_SIM, GM_OP_FLIP, GM_OP_FLIP, "shared", gm_always},
    {.name = NULL},
};

/* Finds a variant by name. Several can have one name: on different devices, or a copy beside the
 * operation's own. */
static const struct gm_variant *find(const struct gm_op *op, enum gm_op_kind variant_op,
                                     const struct gm_device_facts *facts, const char *name,
                                     struct gm_error *err)
{
    const struct gm_variant *variant;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (variant->op == variant_op && strcmp(variant->name, name) == 0 &&
            gm_variant_check(variant, op, facts, err) == GM_OK)
            return variant;
    }
    return NULL;
}

static const struct gm_variant *preferred(const struct gm_preference *row, const struct gm_op *op,
                                          const struct gm_device_facts *facts)
{
    const struct gm_variant *variant;

    for (; row->name; row++) {
        if (row->device == facts->kind && row->op == op->kind && row->holds(op, facts) &&
            (variant = find(op, row->variant_op, facts, row->name, NULL)))
            return variant;
    }
    return NULL;
}

static const struct gm_variant *best(const struct gm_op *op, const struct gm_device_facts *facts)
{
    const struct gm_preference *rows = facts->kind != GM_DEVICE_CUDA ? preferences
                                       : op->kind == GM_OP_MATMUL    ? gm_preferences_cuda_matmul
                                                                     : gm_preferences_cuda;
    const struct gm_variant *variant = preferred(rows, op, facts);

    if (variant)
        return variant;
    /* No preference fits. Later variants of the list improve on earlier ones, so take the last that
     * can. */
    const struct gm_variant *last = NULL;
    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (gm_variant_check(variant, op, facts, NULL) == GM_OK)
            last = variant;
    }
    return last;
}

/* Lists the variants that can run op here, as "a, b and c", and returns their number. */
static unsigned list_able(const struct gm_op *op, const struct gm_device_facts *facts,
                          char buf[NAMES_MAX])
{
    const struct gm_variant *variant;
    unsigned total = 0, listed = 0;
    size_t used = 0;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++)
        total += gm_variant_check(variant, op, facts, NULL) == GM_OK;
    buf[0] = '\0';
    for (size_t i = 0; (variant = gm_variant_at(i)) && used < NAMES_MAX; i++) {
        if (gm_variant_check(variant, op, facts, NULL) != GM_OK)
            continue;
        const char *join = listed == 0 ? "" : listed + 1 == total ? " and " : ", ";
        used += (size_t)snprintf(buf + used, NAMES_MAX - used, "%s%s", join, variant->name);
        listed++;
    }
    return total;
}

/* The variant with the name most similar to `name`, among those that can run op; NULL if none is
 * similar. */
static const char *nearest(const struct gm_op *op, const struct gm_device_facts *facts,
                           const char *name)
{
    const struct gm_variant *variant;
    const char *found = NULL;
    size_t least = 3; /* a larger distance is another word */

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        size_t distance = gm_edit_distance(name, strlen(name), variant->name);
        if (distance < least && distance < strlen(variant->name) &&
            gm_variant_check(variant, op, facts, NULL) == GM_OK) {
            least = distance;
            found = variant->name;
        }
    }
    return found;
}

/* Fails with the reason why no variant of that name runs op here, and a list of those that can. */
static enum gm_status refuse(const struct gm_op *op, const struct gm_device_facts *facts,
                             const char *name, struct gm_error *err)
{
    const struct gm_variant *variant;
    struct gm_error reason = {.detail = ""};
    char able[NAMES_MAX];
    unsigned count = list_able(op, facts, able), best_fit = 0;
    const char *near = nearest(op, facts, name);

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        /* Of several variants of that name, the one for this operation and device gives the best
         * reason. */
        unsigned fits = 1 + 2 * (variant->op == op->kind) + (variant->run[facts->kind] != NULL);
        if (strcmp(variant->name, name) == 0 && fits > best_fit) {
            best_fit = fits;
            gm_variant_check(variant, op, facts, &reason);
        }
    }
    if (reason.detail[0] == '\0')
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "there is no kernel \"%s\"%s%s%s; %s on %s can run with: %s", name,
                       near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "",
                       gm_op_name(op->kind), gm_device_kind_name(facts->kind), able);
    if (count == 0)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE, "%s; no kernel of this build can run it",
                       reason.detail);
    return gm_fail(err, GM_KERNEL_UNAVAILABLE, "%s; %s on %s can run with: %s", reason.detail,
                   gm_op_name(op->kind), gm_device_kind_name(facts->kind), able);
}

enum gm_status gm_select(const struct gm_op *op, const struct gm_device_facts *facts,
                         const char *name, const struct gm_variant **ret, struct gm_error *err)
{
    const struct gm_variant *variant = NULL;
    bool automatic = !name || name[0] == '\0' || strcmp(name, "auto") == 0;

    if (automatic) {
        variant = best(op, facts);
        if (!variant)
            return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                           "no kernel of this build runs %s of %s on %s", gm_op_name(op->kind),
                           gm_dtype_name(op->result.dtype), gm_device_kind_name(facts->kind));
    } else {
        name = gm_variant_name(name);
        variant = find(op, op->kind, facts, name, NULL);
        if (!variant && op->kind != GM_OP_COPY)
            variant = find(op, GM_OP_COPY, facts, name, NULL);
        if (!variant)
            return refuse(op, facts, name, err);
    }
    *ret = variant;
    return GM_OK;
}

/* Whether a variant that only GPUs run takes the operation's types; its other conditions cannot be
 * checked without one. */
static bool is_for_gpus(const struct gm_preference *row, const struct gm_op *op)
{
    return row->variant_op == GM_OP_MATMUL && strcmp(row->name, "cublas") == 0 &&
           (GM_DTYPE_BIT(op->result.dtype) & BLAS_TYPES);
}

const char *gm_select_for_gpu(const struct gm_op *op, const struct gm_gpu *gpu,
                              const struct gm_device_facts *facts,
                              const struct gm_variant **ret_traced)
{
    const struct gm_device_facts on_gpu = {.kind = GM_DEVICE_CUDA,
                                           .compute_units = gpu->sms,
                                           .batch_max = facts->batch_max,
                                           .batch_bytes = facts->batch_bytes,
                                           .gpu = gpu,
                                           .tuned_blas = true,
                                           .has_kernel_times = true};
    const struct gm_preference *row =
        op->kind == GM_OP_MATMUL ? gm_preferences_cuda_matmul : gm_preferences_cuda;
    struct gm_device_facts simulated = *facts;
    const char *name = NULL;

    *ret_traced = NULL;
    simulated.gpu = gpu;
    for (; row->name && !*ret_traced; row++) {
        if (row->op != op->kind || !row->holds(op, &on_gpu))
            continue;
        *ret_traced = find(op, row->variant_op, &simulated, row->name, NULL);
        if (!name && (*ret_traced || is_for_gpus(row, op)))
            name = row->name;
    }
    return name;
}
