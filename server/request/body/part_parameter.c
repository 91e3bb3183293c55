#include "proto/status.h"
#include "server/request/body/internal.h"

#include <string.h>

static enum gm_status fail_unknown(const struct gm_body *b, const char *name, struct gm_error *err)
{
    unsigned max = gm_op_operands_max(b->op);
    const char *nearest = gm_params_nearest(b->op, name, strlen(name));
    size_t least = gm_edit_distance(name, strlen(name), nearest);
    char operand[2] = "a";

    for (unsigned i = 0; i < max; i++) {
        const char lower[2] = {(char)('a' + i), '\0'}, upper[2] = {(char)('A' + i), '\0'};
        size_t distance = gm_edit_distance(name, strlen(name), lower);
        if (strcmp(name, upper) == 0)
            distance = 0;
        if (distance < least) {
            least = distance;
            operand[0] = lower[0];
            nearest = operand;
        }
    }
    bool near = least == 0 || gm_is_near(name, strlen(name), nearest);
    return gm_fail(
        err, GM_UNKNOWN_PARAMETER,
        "there is no part '%.60s'%s%s%s. Operands are parts named %s, and all others are "
        "parameters",
        name, near ? "; the nearest is '" : "", near ? nearest : "", near ? "'" : "",
        max == 1   ? "a"
        : max == 2 ? "a and b"
                   : "a, b and c");
}

enum gm_status gm_part_parameter_begin(struct gm_body *b, const char *name, struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    size_t len = strlen(name);
    uint64_t bit = 0;
    enum gm_status status = gm_params_find(b->op, name, len, &bit, err);

    if (status == GM_UNKNOWN_PARAMETER || len >= sizeof parts->name)
        return fail_unknown(b, name, err);
    if (status != GM_OK)
        return status;
    if (parts->parameters & bit)
        return gm_fail(err, GM_BAD_MULTIPART, "there are two parts named %s", name);
    parts->parameters |= bit;
    parts->index = GM_OPERANDS_MAX;
    memcpy(parts->name, name, len + 1);
    parts->value_len = 0;
    return GM_OK;
}

enum gm_status gm_part_parameter_push(struct gm_parts *parts, const void *bytes, size_t len,
                                      struct gm_error *err)
{
    if (len > sizeof parts->value - parts->value_len)
        return gm_fail(err, GM_BAD_MULTIPART, "the value of %s has more than %d bytes", parts->name,
                       GM_PARAMETER_BYTES_MAX);
    memcpy(parts->value + parts->value_len, bytes, len);
    parts->value_len += len;
    return GM_OK;
}

/* Rejects a dtype that comes after an operand which already has another one. */
static enum gm_status check_dtype(struct gm_body *b, unsigned index, struct gm_error *err)
{
    struct gm_matrix *operand = &b->parsed->operand[index];
    bool npy = b->parts->operand[index].format.codec == &gm_codec_npy;
    enum gm_dtype asked = b->parsed->params.dtype;

    if (npy && operand->dtype == GM_V2 && asked == GM_BF16)
        operand->dtype = GM_BF16;
    if (asked == operand->dtype)
        return GM_OK;
    if (npy)
        return gm_fail(err, GM_BAD_DTYPE, "operand %c is %s in its file, the request says %s",
                       'a' + (int)index, gm_dtype_name(operand->dtype), gm_dtype_name(asked));
    return gm_fail(err, GM_BAD_PARAMETER,
                   "dtype=%s comes after part %c, whose bare elements were read as %s: put it "
                   "before them, or into the URL",
                   gm_dtype_name(asked), 'a' + (int)index, gm_dtype_name(operand->dtype));
}

enum gm_status gm_part_parameter_end(struct gm_body *b, struct gm_error *err)
{
    const struct gm_parts *parts = b->parts;
    enum gm_status status = gm_params_set(&b->parsed->params, b->op, parts->name,
                                          strlen(parts->name), parts->value, parts->value_len, err);

    if (status == GM_OK)
        status = gm_body_check_regions(b, err);
    if (status == GM_OK)
        status = b->events.settled(b->events.cls, err); /* the parameter may affect the reply */
    for (unsigned i = 0; i < GM_OPERANDS_MAX && status == GM_OK; i++)
        if (b->parsed->present[i] && !b->parsed->ref[i].named &&
            b->parsed->params.dtype != GM_DTYPE_NONE)
            status = check_dtype(b, i, err);
    return status;
}
