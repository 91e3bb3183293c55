/*
 * json_rows.h - arrays of numbers in JSON text: a prescan finds their shape, then each number is
 * read straight to its element.
 */
#ifndef GM_PROTO_JSON_JSON_ROWS_H
#define GM_PROTO_JSON_JSON_ROWS_H

#include "proto/json/json_text.h"
#include "proto/matrix.h"

/* The text of a number or of an array of numbers, not yet known to be well-formed. */
struct gm_json_rows {
    const char *begin, *end;
    uint64_t opens, commas; /* '[' and ',' in between */
};

/* Whether a value that begins so can be a number or an array of them. */
bool gm_json_rows_begin(char first);

/*
 * Moves the cursor over the value it stands on, at the speed of memory: a count of brackets and
 * commas, good enough to know how much storage a well-formed value needs.
 */
enum gm_status gm_json_rows_prescan(struct gm_json *json, struct gm_json_rows *ret);

/*
 * The shape that nesting and the first row suggest. Where the counts contradict it (rows of
 * different lengths), the value is read through to say what is wrong: GM_BAD_SHAPE or GM_BAD_JSON.
 * name is the operand's in messages.
 */
enum gm_status gm_json_rows_shape(const struct gm_json *json, const struct gm_json_rows *rows,
                                  enum gm_dtype dtype, const char *name, struct gm_shape *ret);

/*
 * Reads every element into out, which has room for shape's. GM_BAD_JSON, GM_BAD_SHAPE (rows of
 * different lengths), GM_OUT_OF_RANGE (a number that dtype cannot hold) or GM_BAD_DTYPE (true
 * where dtype is not bool), naming the place.
 */
enum gm_status gm_json_rows_read(const struct gm_json *json, const struct gm_json_rows *rows,
                                 enum gm_dtype dtype, const char *name,
                                 const struct gm_shape *shape, void *out);

#endif
