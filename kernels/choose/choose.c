/*
 * choose.c - chooses the variant that runs an operation, for `auto` or by name.
 *
 * `auto` takes the least estimate (estimate.h); the simulator has none.
 */
#include "choose.h"

#include "kernels/layout.h"
#include "proto/status.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 200
/* What products by cuBLAS take. */
#define BLAS_TYPES                                                                                 \
    (GM_DTYPE_BIT(GM_F16) | GM_DTYPE_BIT(GM_BF16) | GM_DTYPE_BIT(GM_F32) | GM_DTYPE_BIT(GM_F64))

/* ---- The choice. ---- */

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

/* The simulator has no times: of the textbook kernels that with the best accesses. */
static const struct gm_variant *simulated(const struct gm_op *op,
                                          const struct gm_device_facts *facts)
{
    static const struct {
        enum gm_op_kind op;
        const char *name;
    } textbook[] = {{GM_OP_COPY, "vector"},  {GM_OP_TRANSPOSE, "padded"},
                    {GM_OP_MATMUL, "tiled"}, {GM_OP_ADD, "float3_staged"},
                    {GM_OP_ADD, "direct"},   {GM_OP_FLIP, "shared"}};
    const struct gm_variant *variant = NULL;

    for (size_t i = 0; i < sizeof(textbook) / sizeof(textbook[0]) && !variant; i++)
        variant = find(op, textbook[i].op, facts, textbook[i].name, NULL);
    return variant;
}

/* Before `right` in the list: with the lesser estimate, and any before none. */
static bool is_less(double left, double right)
{
    return left >= 0 && !(right <= left && right >= 0);
}

/* Inserts a candidate where it belongs. Returns how many there are then. */
static unsigned insert(struct gm_candidate ret[GM_CANDIDATES_MAX], unsigned count,
                       const struct gm_candidate *candidate)
{
    unsigned at = count;

    if (count == GM_CANDIDATES_MAX)
        return count;
    for (; at > 0 && is_less(candidate->estimate.us, ret[at - 1].estimate.us); at--)
        ret[at] = ret[at - 1];
    ret[at] = *candidate;
    return count + 1;
}

/* facts: of the device that the estimates are for. there: of one that the variants can run on. */
static unsigned list(const struct gm_op *op, const struct gm_device_facts *facts,
                     const struct gm_device_facts *there,
                     struct gm_candidate ret[GM_CANDIDATES_MAX])
{
    const struct gm_variant *variant;
    unsigned count = 0;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (!variant->run[there->kind] || gm_variant_check(variant, op, there, NULL) != GM_OK)
            continue; /* the first makes no sentence of its reason */
        struct gm_candidate candidate = {variant, variant->name, {.us = -1}};
        if (facts->kind != GM_DEVICE_SIM)
            candidate.estimate = gm_estimate(op, variant->op, variant->name, facts);
        count = insert(ret, count, &candidate);
    }
    return count;
}

unsigned gm_candidates(const struct gm_op *op, const struct gm_device_facts *facts,
                       struct gm_candidate ret[GM_CANDIDATES_MAX])
{
    return list(op, facts, facts, ret);
}

bool gm_may_be_automatic(const struct gm_variant *variant)
{
    return !(variant->wants_blas && variant->op == GM_OP_TRANSPOSE);
}

static const struct gm_variant *best(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct gm_candidate candidates[GM_CANDIDATES_MAX];
    const struct gm_variant *variant = facts->kind == GM_DEVICE_SIM ? simulated(op, facts) : NULL;

    if (variant)
        return variant;
    unsigned count = gm_candidates(op, facts, candidates), i = 0;
    while (i < count && candidates[i].estimate.us >= 0 &&
           !gm_may_be_automatic(candidates[i].variant))
        i++;
    bool estimated = i < count && candidates[i].estimate.us >= 0;
    if (facts->kind == GM_DEVICE_CUDA && estimated &&
        gm_is_small_job(op, facts, candidates[i].estimate.us) &&
        (variant = find(op, op->kind, facts, "grouped", NULL)))
        return variant;
    if (estimated)
        return candidates[i].variant;
    /* Without any estimate: later variants of the list improve on earlier ones. */
    while (count > 0 && !gm_may_be_automatic(candidates[count - 1].variant))
        count--;
    return count > 0 ? candidates[count - 1].variant : NULL;
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

/* What a GPU runs and no simulator, so that not each build has it. The conditions are those of
 * their accepts functions, but for dimensions above 2^31. */
static bool runs_on_gpu(const char *name, const struct gm_op *op, const struct gm_gpu *gpu)
{
    bool half = gm_dtype_size(op->result.dtype) == 2;

    if (op->kind != GM_OP_MATMUL || gm_op_k(op) == 0 || !gm_op_reads(op, 0))
        return false;
    if (strcmp(name, "cublas") == 0)
        return (GM_DTYPE_BIT(op->result.dtype) & BLAS_TYPES) && !(half && gm_op_reads(op, 2));
    if (strcmp(name, "mma") == 0)
        return half && gpu->capability >= 80;
    if (strcmp(name, "wgmma") == 0)
        return half && gpu->capability == 90;
    return op->result.dtype == GM_F32 && op->precision != GM_PRECISION_IEEE &&
           gpu->capability == 90; /* split_bf16 */
}

const struct gm_profile *gm_profile_for(const struct gm_gpu *gpu,
                                        const struct gm_device_facts *facts)
{
    bool same = !gpu || gpu == facts->gpu || gpu == gm_gpu_model(facts->name);

    if (facts->profile && same)
        return facts->profile;
    return gm_profile_at(!gpu && facts->kind == GM_DEVICE_CPU);
}

unsigned gm_candidates_for_gpu(const struct gm_op *op, const struct gm_gpu *gpu,
                               const struct gm_device_facts *facts,
                               struct gm_candidate ret[GM_CANDIDATES_MAX])
{
    static const char *const names[] = {"mma", "wgmma", "split_bf16", "cublas"};
    const struct gm_device_facts on_gpu = {.kind = GM_DEVICE_CUDA,
                                           .gpu = gpu,
                                           .tuned_blas = true,
                                           .cache_bytes = (uint64_t)gpu->l2_bytes,
                                           .profile = gm_profile_for(gpu, facts)};
    struct gm_device_facts simulated = *facts;

    simulated.kind = GM_DEVICE_SIM;
    simulated.gpu = gpu;
    unsigned count = list(op, &on_gpu, &simulated, ret);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!runs_on_gpu(names[i], op, gpu))
            continue;
        struct gm_candidate one = {NULL, names[i], gm_estimate(op, op->kind, names[i], &on_gpu)};
        count = insert(ret, count, &one);
    }
    return count;
}

const char *gm_select_for_gpu(const struct gm_op *op, const struct gm_gpu *gpu,
                              const struct gm_device_facts *facts,
                              const struct gm_variant **ret_traced)
{
    const struct gm_device_facts gathers = {.batch_max = UINT_MAX, /* as GPUs do */
                                            .profile = gm_profile_for(gpu, facts)};
    struct gm_candidate candidates[GM_CANDIDATES_MAX];
    struct gm_device_facts simulated = *facts;

    *ret_traced = NULL;
    simulated.kind = GM_DEVICE_SIM;
    simulated.gpu = gpu;
    unsigned count = gm_candidates_for_gpu(op, gpu, facts, candidates);
    if (count > 0 && gm_is_small_job(op, &gathers, candidates[0].estimate.us) &&
        (*ret_traced = find(op, op->kind, &simulated, "grouped", NULL)))
        return (*ret_traced)->name;
    for (unsigned i = 0; i < count && !*ret_traced && candidates[i].estimate.us >= 0; i++)
        *ret_traced = candidates[i].variant;
    return count > 0 && candidates[0].estimate.us >= 0 ? candidates[0].name : NULL;
}
