#include "server/request/body/internal.h"

#include <stdlib.h>
#include <string.h>

static bool is_parameter(const struct gm_parts *parts)
{
    return parts->index == GM_OPERANDS_MAX;
}

/* Callbacks of the multipart parser. */

static enum gm_status on_begin(void *cls, const struct gm_multipart_part *part,
                               struct gm_error *err)
{
    struct gm_body *b = cls;
    const char *name = part->name;
    bool operand = name[0] >= 'a' && name[0] < 'a' + GM_OPERANDS_MAX && name[1] == '\0';

    return operand ? gm_part_operand_begin(b, (unsigned)(name[0] - 'a'), part->type, err)
                   : gm_part_parameter_begin(b, name, err);
}

static enum gm_status on_data(void *cls, const void *bytes, size_t len, struct gm_error *err)
{
    struct gm_body *b = cls;

    return is_parameter(b->parts) ? gm_part_parameter_push(b->parts, bytes, len, err)
                                  : gm_part_operand_push(b, bytes, len, err);
}

static enum gm_status on_end(void *cls, struct gm_error *err)
{
    struct gm_body *b = cls;

    return is_parameter(b->parts) ? gm_part_parameter_end(b, err) : gm_part_operand_end(b, err);
}

/* The body's steps. */

enum gm_status gm_parts_open(struct gm_body *b, struct gm_error *err)
{
    const struct gm_multipart_events events = {on_begin, on_data, on_end, b};
    enum gm_status status = gm_body_set_format(b, &gm_codec_npy, err);

    if (status != GM_OK)
        return status;
    struct gm_parts *parts = calloc(1, sizeof *parts);
    if (!parts)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for reading " GM_MULTIPART_TYPE);
    status = gm_multipart_open(b->head->content_type, &events, &parts->parser, err);
    if (status == GM_OK)
        b->parts = parts;
    else
        free(parts);
    return status;
}

enum gm_status gm_parts_push(struct gm_body *b, const void *bytes, size_t len, struct gm_error *err)
{
    return gm_multipart_push(b->parts->parser, bytes, len, err);
}

enum gm_status gm_parts_end(struct gm_body *b, struct gm_error *err)
{
    const struct gm_parts *parts = b->parts;
    const struct gm_part_operand *operand = parts->operand;
    bool any = operand[0].given || operand[1].given || operand[2].given;
    enum gm_status status = gm_multipart_finish(parts->parser, err);

    if (status != GM_OK || !any)
        return status;
    if (!operand[0].given && !b->parsed->present[0])
        return gm_fail(err, GM_MISSING_OPERAND, "there is no part a, which holds operand a");
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        if (b->parsed->params.shape[i].ndim == 0 || b->parsed->from[i].region ||
            (operand[i].given && operand[i].format.codec == &gm_codec_raw))
            continue;
        return operand[i].is_ref
                   ? gm_fail(err, GM_BAD_PARAMETER,
                             "shape_%c is for bare elements; part %c is a named matrix",
                             'a' + (int)i, 'a' + (int)i)
               : operand[i].given
                   ? gm_fail(err, GM_BAD_PARAMETER,
                             "shape_%c is for bare elements; part %c is %s, which states its own",
                             'a' + (int)i, 'a' + (int)i, operand[i].format.codec->media_type)
                   : gm_fail(err, GM_BAD_PARAMETER, "there is a shape_%c, but no part %c",
                             'a' + (int)i, 'a' + (int)i);
    }
    return GM_OK;
}

enum gm_status gm_parts_decode(struct gm_body *b, struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    enum gm_status status = GM_OK;

    for (unsigned i = 0; i < GM_OPERANDS_MAX && status == GM_OK; i++)
        if (parts->operand[i].given && parts->operand[i].format.text)
            status = gm_part_operand_decode(b, i, err);
    gm_body_drop_text(b);
    return status;
}

void gm_parts_close(struct gm_parts *parts)
{
    if (!parts)
        return;
    if (parts->decoder)
        parts->operand[parts->index].format.codec->close(parts->decoder);
    gm_multipart_close(parts->parser);
    free(parts);
}
