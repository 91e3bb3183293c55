/*
 * variant.c - builds the list of variants from variants.def, and checks which can run an operation.
 */
#include "variant.h"

#include "device_facts.h"

#include <stdio.h>
#include <string.h>

#if GM_HAVE_CUDA
#define GM_ON_GPU(entry) gm_cuda_##entry
#else
#define GM_ON_GPU(entry) NULL
#endif

/* Declares the functions that the rows name. No kernel includes the list, so a new row recompiles
 * this file alone. */
#define GM_VARIANT(op, name, dtypes, folds, accepts, run, needs, note)                             \
    gm_accepts_fn accepts;                                                                         \
    gm_kernel_fn run;
#define GM_SIMT(op, entry, name, dtypes, folds, accepts, scratch, needs, note)                     \
    gm_accepts_fn accepts;                                                                         \
    gm_scratch_fn scratch;                                                                         \
    gm_kernel_fn gm_sim_##entry, gm_cuda_##entry;
#define GM_GROUPED(op, entry, name, dtypes, folds, accepts, needs, note)                           \
    gm_accepts_fn accepts;                                                                         \
    gm_kernel_fn gm_sim_##entry, gm_cuda_##entry;
#define GM_CUDA(op, entry, name, dtypes, folds, accepts, scratch, blas, products, needs, note)     \
    gm_accepts_fn accepts;                                                                         \
    gm_scratch_fn scratch;                                                                         \
    gm_kernel_fn gm_cuda_##entry;
#include "variants.def"
#undef GM_VARIANT
#undef GM_SIMT
#undef GM_GROUPED
#undef GM_CUDA

static const struct gm_variant rows[] = {
#define GM_ROW(op_, name_, dtypes_, folds_, accepts_, needs_, note_)                               \
    .op = op_, .name = name_, .dtypes = dtypes_, .folds = folds_, .accepts = accepts_,             \
    .needs = needs_, .note = note_
#define GM_VARIANT(op, name, dtypes, folds, accepts, run_, needs, note)                            \
    {GM_ROW(op, name, dtypes, folds, accepts, needs, note), .scratch = gm_scratch_none,            \
     .run = {[GM_DEVICE_CPU] = run_}},
#define GM_SIMT(op, entry, name, dtypes, folds, accepts, scratch_, needs, note)                    \
    {GM_ROW(op, name, dtypes, folds, accepts, needs, note), .scratch = scratch_,                   \
     .run = {[GM_DEVICE_SIM] = gm_sim_##entry, [GM_DEVICE_CUDA] = GM_ON_GPU(entry)}},
#define GM_GROUPED(op, entry, name, dtypes, folds, accepts, needs, note)                           \
    {GM_ROW(op, name, dtypes, folds, accepts, needs, note), .scratch = gm_scratch_none,            \
     .groups = true,                                                                               \
     .run = {[GM_DEVICE_SIM] = gm_sim_##entry, [GM_DEVICE_CUDA] = GM_ON_GPU(entry)}},
#define GM_CUDA(op, entry, name, dtypes, folds, accepts, scratch_, blas, products, needs, note)    \
    {GM_ROW(op, name, dtypes, folds, accepts, needs, note), .scratch = scratch_,                   \
     .wants_blas = blas, .tensor_products = products,                                              \
     .run = {[GM_DEVICE_CUDA] = gm_cuda_##entry}},
#include "variants.def"
#undef GM_VARIANT
#undef GM_SIMT
#undef GM_GROUPED
#undef GM_CUDA
};

/* Names that variants had before 0.2, accepted until 1.0. */
static const struct {
    const char *old, *name;
} aliases[] = {
    {"registers", "register_tiled"}, {"pipelined", "multistage"}, {"fitted", "multistage_tuned"},
    {"shifted", "unaligned"},        {"bytes", "packed_u8"},      {"stack", "batched"},
    {"dot", "split_k_dot"},          {"dynamic", "dynamic_tile"}, {"small", "small_tile"},
};

static const char *const device_names[GM_DEVICE_KINDS] = {"cpu", "sim", "cuda"};

const char *gm_device_kind_name(enum gm_device_kind kind)
{
    return device_names[kind];
}

const struct gm_variant *gm_variant_at(size_t index)
{
    return index < sizeof(rows) / sizeof(rows[0]) ? &rows[index] : NULL;
}

const char *gm_variant_name(const char *name)
{
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strcmp(name, aliases[i].old) == 0)
            return aliases[i].name;
    }
    return name;
}

bool gm_variant_is_there(const struct gm_variant *variant, const struct gm_device_facts *facts)
{
    return variant->run[facts->kind] && (facts->tuned_blas || !variant->wants_blas);
}

enum gm_status gm_accepts_any(const struct gm_op *op, const struct gm_device_facts *facts,
                              struct gm_error *err)
{
    (void)op;
    (void)facts;
    (void)err;
    return GM_OK;
}

uint64_t gm_scratch_none(const struct gm_op *op)
{
    (void)op;
    return 0;
}

static const char *dtype_list(uint32_t dtypes, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int i = GM_DTYPE_NONE + 1; i < GM_DTYPE_COUNT && used < size; i++) {
        if (dtypes & GM_DTYPE_BIT(i))
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
                                     gm_dtype_name((enum gm_dtype)i));
    }
    return buf;
}

static const char *device_list(const struct gm_variant *variant, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (unsigned kind = 0; kind < GM_DEVICE_KINDS && used < size; kind++) {
        if (variant->run[kind])
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
                                     device_names[kind]);
    }
    return buf;
}

enum gm_status gm_variant_check(const struct gm_variant *variant, const struct gm_op *op,
                                const struct gm_device_facts *facts, struct gm_error *err)
{
    char types[160], devices[32];

    if (!variant->run[facts->kind])
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"%s\" does not run on device %s; it runs on: %s", variant->name,
                       device_names[facts->kind], device_list(variant, devices, sizeof(devices)));
    if (!gm_variant_is_there(variant, facts))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"%s\" needs %s, which this machine does not have", variant->name,
                       variant->needs);
    if (variant->op != op->kind && !(variant->op == GM_OP_COPY && gm_op_is_copy(op)))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE, "kernel \"%s\" is %s %s%s", variant->name,
                       variant->op == GM_OP_ADD ? "an" : "a", gm_op_name(variant->op),
                       variant->op == GM_OP_COPY ? ", and this operation moves elements" : "");
    if (!(variant->dtypes & GM_DTYPE_BIT(op->result.dtype)))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"%s\" takes %s, and the operands are %s", variant->name,
                       dtype_list(variant->dtypes, types, sizeof(types)),
                       gm_dtype_name(op->result.dtype));
    return variant->accepts(op, facts, err);
}
