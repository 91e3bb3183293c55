/*
 * refs.c - takes named matrices as operands.
 */
#include "server/request/body/internal.h"

#include <string.h>

enum gm_status gm_body_take_ref(struct gm_body *b, unsigned index, const char *name,
                                struct gm_error *err)
{
    struct gm_parsed *p = b->parsed;

    if (p->present[index])
        return gm_fail(err, GM_EXTRA_OPERAND, "operand %c is there twice", 'a' + (int)index);
    enum gm_status status =
        b->events.ref(b->events.cls, name, &p->ref[index], &b->region_bytes, err);
    if (status != GM_OK)
        return status;
    p->operand[index] = *gm_matrix_of(&p->ref[index]);
    p->present[index] = p->direct[index] = true;
    return GM_OK;
}

/* Whether what the request says besides is true of its named matrices. */
static enum gm_status check(const struct gm_parsed *p, struct gm_error *err)
{
    enum gm_dtype dtype = p->params.dtype;

    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        if (!p->ref[i].named)
            continue;
        if (dtype != GM_DTYPE_NONE && dtype != p->operand[i].dtype)
            return gm_fail(err, GM_BAD_DTYPE,
                           "operand %c is a named matrix of %s, the request says %s", 'a' + (int)i,
                           gm_dtype_name(p->operand[i].dtype), gm_dtype_name(dtype));
        if (p->params.shape[i].ndim > 0)
            return gm_fail(err, GM_BAD_PARAMETER,
                           "shape_%c is for bare elements; operand %c is a named matrix, which has "
                           "its own",
                           'a' + (int)i, 'a' + (int)i);
    }
    return GM_OK;
}

enum gm_status gm_body_take_refs(struct gm_body *b, struct gm_error *err)
{
    const struct gm_parsed *p = b->parsed;
    enum gm_status status = GM_OK;

    for (unsigned i = 0; i < GM_OPERANDS_MAX && status == GM_OK; i++)
        if (*p->params.ref[i] && !p->ref[i].named)
            status = gm_body_take_ref(b, i, p->params.ref[i], err);
    return status == GM_OK ? check(p, err) : status;
}

enum gm_status gm_body_read_refs(struct gm_body *b, struct gm_error *err)
{
    const struct gm_parsed *p = b->parsed;
    enum gm_status status = check(p, err); /* parts of the body may have come since */

    for (unsigned i = 0; i < GM_OPERANDS_MAX && status == GM_OK; i++)
        if (p->ref[i].named)
            status = b->events.ref_data(b->events.cls, i, err);
    return status;
}
