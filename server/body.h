/*
 * body.h - a request's body on its way to its operands: finds out its form, and either streams
 * it into slabs or collects its text. Memory is reserved before it is taken.
 */
#ifndef GM_SERVER_BODY_H
#define GM_SERVER_BODY_H

#include "proto/codec.h"
#include "server/budget.h"

struct gm_parts;
struct gm_request;

/* What has come of a body. */
struct gm_body {
    const struct gm_codec *in; /* its form; NULL until that is known */
    struct gm_decode_plan plan;
    struct gm_decoder *decoder; /* of a form that streams */
    struct gm_block text;       /* a text form, or the first bytes of a form not known yet */
    uint64_t text_len;
    uint64_t space_len;     /* white space at its beginning, as far as that has been looked for */
    struct gm_parts *parts; /* of multipart/form-data, whose texts are in `text`; else NULL */
};

/* "application/json, ...": all types that a body may have. */
const char *gm_body_media_types(char buf[GM_MEDIA_TYPES_MAX]);

/* On the headers: media types, length, limits. */
enum gm_status gm_body_begin(struct gm_request *request, struct gm_error *err);
/* More bytes. */
enum gm_status gm_body_push(struct gm_request *request, const void *bytes, size_t len,
                            struct gm_error *err);
/* All bytes are there: settles the form if that is still open. */
enum gm_status gm_body_end(struct gm_request *request, struct gm_error *err);
/* Afterwards, on any thread: checks what was streamed, or decodes the text. */
enum gm_status gm_body_decode(struct gm_request *request, struct gm_error *err);

/* Gives back what the operands hold, or the text and the decoder. Fine when there is nothing. */
void gm_body_drop_operands(struct gm_request *request);
void gm_body_drop_text(struct gm_request *request);

/* For body_parts.c. The form of the reply, given that of the body. */
enum gm_status gm_body_choose_reply(struct gm_request *request, const struct gm_codec *form,
                                    struct gm_error *err);
/* Memory for an operand; where it goes is in *ret_data. */
enum gm_status gm_body_take_operand(struct gm_request *request, unsigned index,
                                    const struct gm_matrix *matrix, void **ret_data,
                                    struct gm_error *err);
/* More text behind that which is there. */
enum gm_status gm_body_add_text(struct gm_request *request, const void *bytes, uint64_t len,
                                struct gm_error *err);

#endif
