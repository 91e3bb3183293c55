/*
 * body_part_form.h - the form of one part of multipart/form-data. Clients state types of parts
 * carelessly: curl calls everything application/octet-stream whose suffix it does not know, .csv
 * and .json among them. So that type and text/plain are only hints, and first bytes decide.
 * Pure: knows no request.
 */
#ifndef GM_SERVER_BODY_PART_FORM_H
#define GM_SERVER_BODY_PART_FORM_H

#include "proto/codec.h"

#include <stdbool.h>

/* So many of a part's first bytes tell a text from what is none. */
#define GM_PART_FIRST_BYTES 64

/* What is known of a part. */
struct gm_part_form {
    const struct gm_codec *codec; /* NULL: not known yet */
    bool text;                    /* known to be some text */
};

/* By its Content-Type, as far as that tells. `operand` is its name, 'a' to 'c'. */
enum gm_status gm_part_form_by_type(const char *type, char operand, struct gm_part_form *ret,
                                    struct gm_error *err);
/*
 * By GM_PART_FIRST_BYTES or all of its bytes, of which there is at least one: NPY, bare elements if
 * it has_shape, or some text. *form is as the type left it, without a codec.
 */
enum gm_status gm_part_form_by_first_bytes(const void *bytes, size_t len, char operand,
                                           bool has_shape, struct gm_part_form *form,
                                           struct gm_error *err);
/* The form of a text that is there as a whole. */
enum gm_status gm_part_form_of_text(const char *text, uint64_t len, char operand,
                                    const struct gm_codec **ret, struct gm_error *err);

#endif
