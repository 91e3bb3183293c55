/*
 * body_part.h - one part of multipart/form-data on its way to where it belongs: an operand
 * (body_part_operand.c) or a parameter (body_part_parameter.c). Internal to body_part*.c.
 */
#ifndef GM_SERVER_BODY_PART_H
#define GM_SERVER_BODY_PART_H

#include "server/body_part_form.h"
#include "server/body_parts.h"
#include "server/request.h"

/* Of a parameter's name and of its value: more than any has. */
#define GM_PART_PARAMETER_MAX 128

/* An operand that came as a part. */
struct gm_part_operand {
    bool given;
    struct gm_part_form form;
    uint64_t text_at, text_len; /* of a text: where it is in the body's */
};

struct gm_parts {
    struct gm_multipart *parser;
    struct gm_part_operand operand[GM_OPERANDS_MAX];
    uint32_t parameters; /* of gm_params.seen: those that were parts */

    /* The part being read. */
    unsigned index; /* of its operand; GM_OPERANDS_MAX: it is a parameter */
    size_t first_len;
    char first[GM_PART_FIRST_BYTES]; /* of an operand, until its form is known */
    char name[GM_PART_PARAMETER_MAX], value[GM_PART_PARAMETER_MAX];
    size_t value_len;
    struct gm_decode_plan plan;
    struct gm_decoder *decoder; /* of a form that streams, from its first bytes to its end */
};

/* A part named a, b or c: its header, more of its data, its end. */
enum gm_status gm_part_operand_begin(struct gm_request *request, unsigned index, const char *type,
                                     struct gm_error *err);
enum gm_status gm_part_operand_push(struct gm_request *request, const char *bytes, size_t len,
                                    struct gm_error *err);
enum gm_status gm_part_operand_end(struct gm_request *request, struct gm_error *err);
/* Afterwards: decodes its text. */
enum gm_status gm_part_operand_decode(struct gm_request *request, unsigned index,
                                      struct gm_error *err);

/* The same for any other name. */
enum gm_status gm_part_parameter_begin(struct gm_request *request, const char *name,
                                       struct gm_error *err);
enum gm_status gm_part_parameter_push(struct gm_parts *parts, const void *bytes, size_t len,
                                      struct gm_error *err);
enum gm_status gm_part_parameter_end(struct gm_request *request, struct gm_error *err);

#endif
