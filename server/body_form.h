/*
 * body_form.h - finds out the form of a body, or of one part of it: by its Content-Type, else by
 * its first bytes; and says what to type instead where neither tells. Pure: knows no request.
 */
#ifndef GM_SERVER_BODY_FORM_H
#define GM_SERVER_BODY_FORM_H

#include "proto/codec.h"

#include <stdbool.h>

/*
 * By the header alone: *ret is NULL where it says nothing (absent, or what curl sends when it is
 * told nothing), so that the first bytes decide.
 */
enum gm_status gm_body_form_by_type(const char *content_type, const struct gm_codec **ret,
                                    struct gm_error *err);

/*
 * By the first `len` bytes: *ret is NULL where more are needed first; `all`: no more will come.
 * White space is passed over once: *space_len, 0 at first, is how much of it has been seen. A body
 * may consist of little else and come in small pieces.
 */
enum gm_status gm_body_form_by_first_bytes(const char *text, uint64_t len, bool all,
                                           uint64_t *space_len, const struct gm_codec **ret,
                                           struct gm_error *err);

/* Whether a whole body in this form can hold what an operation needs at the least. */
enum gm_status gm_body_form_check_operands(const struct gm_codec *codec, unsigned operands_min,
                                           struct gm_error *err);

#endif
