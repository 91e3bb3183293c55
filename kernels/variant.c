/*
 * variant.c - the list of variants, made from variants.def, and the check whether one of them
 * can run an operation on a device.
 */
#include "variant.h"

#include "backend.h"
#include "layout.h"
#include "rows.h"

#include <stdio.h>

static const struct gm_variant rows[] = {
#define GM_VARIANT(op, name, devices, dtypes, folds, accepts, run, needs, note)                    \
    {op, name, devices, dtypes, folds, accepts, run, needs, note},
#include "variants.def"
#undef GM_VARIANT
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

enum gm_status gm_accepts_any(const struct gm_op *op, const struct gm_device_facts *facts,
                              struct gm_error *err)
{
    (void)op;
    (void)facts;
    (void)err;
    return GM_OK;
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

enum gm_status gm_variant_check(const struct gm_variant *variant, const struct gm_op *op,
                                const struct gm_device_facts *facts, struct gm_error *err)
{
    char types[160];

    if (!(variant->devices & (1u << facts->kind)))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE, "kernel \"%s\" is not one of device %s",
                       variant->name, device_names[facts->kind]);
    if (variant->op != op->kind && !(variant->op == GM_OP_COPY && gm_op_is_copy(op)))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE, "kernel \"%s\" is a %s%s", variant->name,
                       gm_op_name(variant->op),
                       variant->op == GM_OP_COPY ? ", and this operation moves elements" : "");
    if (!(variant->dtypes & GM_DTYPE_BIT(op->result.dtype)))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"%s\" takes %s, and the operands are %s", variant->name,
                       dtype_list(variant->dtypes, types, sizeof(types)),
                       gm_dtype_name(op->result.dtype));
    return variant->accepts(op, facts, err);
}
