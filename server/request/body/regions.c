/*
 * regions.c - takes operands from shared memory, and prepares the region of the result.
 */
#include "server/request/body/internal.h"

#include <string.h>

enum gm_status gm_body_set_region(struct gm_body *b, const struct gm_region_part *part,
                                  struct gm_error *err)
{
    return b->events.region(b->events.cls, part, &b->parsed->into, err);
}

enum gm_status gm_body_take_region(struct gm_body *b, unsigned index,
                                   const struct gm_matrix *matrix,
                                   const struct gm_region_part *part, struct gm_error *err)
{
    struct gm_parsed *p = b->parsed;
    struct gm_allocator allocator;
    unsigned device = 0;
    void *data;
    enum gm_status status = b->events.region(b->events.cls, part, &p->from[index], err);

    if (status == GM_OK)
        status = b->events.allocator(b->events.cls, &allocator, &device, err);
    if (status != GM_OK)
        return status;
    data = gm_region_direct(&p->from[index], allocator, device, &p->on_device[index]);
    if (!data) {
        p->on_device[index] = false;
        b->region_bytes += gm_matrix_bytes(matrix);
        return gm_body_take_operand(b, index, matrix, &data, err);
    }
    p->operand[index] = *matrix;
    p->operand[index].data = data;
    p->present[index] = p->direct[index] = true;
    return GM_OK;
}

/* Elements in a region are raw: their shape and type are parameters. */
static enum gm_status take_operand(struct gm_body *b, unsigned index, struct gm_error *err)
{
    const struct gm_params *params = &b->parsed->params;
    struct gm_region_part part = {.offset = params->offset[index]};
    struct gm_matrix matrix;

    if (params->shape[index].ndim == 0)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "region_%c needs the shape of what is there: add shape_%c=RxC",
                       'a' + (int)index, 'a' + (int)index);
    enum gm_status status =
        gm_matrix_init(&matrix, params->dtype == GM_DTYPE_NONE ? GM_F32 : params->dtype,
                       GM_ROW_MAJOR, &params->shape[index], err);
    if (status != GM_OK)
        return status;
    memcpy(part.region, params->region[index], sizeof params->region[index]);
    part.bytes = gm_matrix_bytes(&matrix);
    return gm_body_take_region(b, index, &matrix, &part, err);
}

enum gm_status gm_body_take_regions(struct gm_body *b, struct gm_error *err)
{
    const struct gm_params *params = &b->parsed->params;
    const char *result = params->region[GM_RESULT_REGION];
    enum gm_status status = GM_OK;
    unsigned taken = 0;

    for (unsigned i = 0; i <= GM_RESULT_REGION; i++)
        if (params->offset[i] > 0 && !*params->region[i])
            return gm_fail(err, GM_BAD_PARAMETER,
                           "an offset is that of a region in shared memory, and none is named");
    if (*result) {
        struct gm_region_part part = {.offset = params->offset[GM_RESULT_REGION],
                                      .bytes = GM_SIZE_UNKNOWN};
        memcpy(part.region, result, strlen(result) + 1);
        status = gm_body_set_region(b, &part, err);
    }
    for (unsigned i = 0; i < GM_OPERANDS_MAX && status == GM_OK; i++) {
        if (!*params->region[i] && !*params->ref[i])
            continue;
        if (*params->region[i] && *params->ref[i])
            return gm_fail(err, GM_EXTRA_OPERAND,
                           "operand %c is in a region, and a named matrix too", 'a' + (int)i);
        status = *params->region[i] ? take_operand(b, i, err)
                                    : gm_body_take_ref(b, i, params->ref[i], err);
        taken++;
    }
    if (status != GM_OK || taken == 0)
        return status;
    b->not_needed = !b->head->chunked &&
                    (b->head->content_length == GM_SIZE_UNKNOWN || b->head->content_length == 0);
    for (unsigned i = 0; i < gm_op_operands_min(b->op); i++)
        b->not_needed = b->not_needed && b->parsed->present[i];
    if (!b->not_needed)
        return GM_OK;
    status = gm_body_set_format(b, &gm_codec_json, err);
    return status == GM_OK ? gm_body_check_operands(b, err) : status;
}

enum gm_status gm_body_check_regions(const struct gm_body *b, struct gm_error *err)
{
    const struct gm_params *params = &b->parsed->params;

    for (unsigned i = 0; i <= GM_RESULT_REGION; i++) {
        const struct gm_region_use *use =
            i < GM_OPERANDS_MAX ? &b->parsed->from[i] : &b->parsed->into;
        if (*params->region[i] && !use->region)
            return gm_fail(err, GM_BAD_PARAMETER,
                           "a region is named in the URL, before the body: %.60s comes too late",
                           params->region[i]);
    }
    return GM_OK;
}

enum gm_status gm_body_read_regions(struct gm_body *b, struct gm_error *err)
{
    const struct gm_parsed *p = b->parsed;
    enum gm_status status = GM_OK;

    for (unsigned i = 0; i < GM_OPERANDS_MAX && status == GM_OK; i++) {
        if (!p->from[i].region)
            continue;
        status = p->direct[i] ? gm_region_check(&p->from[i], err)
                              : gm_region_read(&p->from[i], p->operand[i].data, err);
    }
    return status;
}
