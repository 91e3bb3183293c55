/*
 * internal.h - what the files of json/ share: a cursor over JSON text, arrays of numbers in it, and
 * writing.
 */
#ifndef GM_PROTO_JSON_INTERNAL_H
#define GM_PROTO_JSON_INTERNAL_H

#include "proto/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * json_text.c: a cursor over JSON text that is whole in memory, strict about RFC 8259.
 *
 * The text must end in ']' or '}' (gm_json_begin makes sure). No number, word or white space can
 * run past that byte, so only strings, and what follows a closing bracket, look for the end.
 */

struct gm_json {
    const char *start, *end; /* end: after the last byte that is not white space */
    const char *at;          /* never on white space between calls */
    struct gm_error *err;
};

/* Names and strings of more bytes than this are refused; the longest that means something (a
 * kernel's name) is far shorter. */
#define GM_JSON_STRING_MAX 256

/* An object of more members is refused; there are not half as many parameters. */
#define GM_JSON_MEMBERS_MAX 32

/* A string's content, escapes resolved. It may hold NUL bytes; there is one more after it. Of one
 * that is too long `len` alone is set, to more than GM_JSON_STRING_MAX. */
struct gm_json_string {
    size_t len;
    char text[GM_JSON_STRING_MAX + 1];
};

/* An object being read: the names seen so far. */
struct gm_json_object {
    unsigned count;
    struct gm_json_string name[GM_JSON_MEMBERS_MAX];
};

/* Stands on the first byte. */
enum gm_status gm_json_begin(struct gm_json *json, const char *text, size_t len,
                             struct gm_error *err);

/* GM_BAD_JSON: the sentence, and the byte that `at` is. */
enum gm_status gm_json_fail(const struct gm_json *json, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* GM_BAD_JSON unless the text ends here. */
enum gm_status gm_json_end(const struct gm_json *json);

static inline void gm_json_space(struct gm_json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t'))
        json->at++;
}

/* The byte here, 0 at the end. */
static inline char gm_json_peek(const struct gm_json *json)
{
    return json->at < json->end ? *json->at : '\0';
}

/* Stands on '"'. */
enum gm_status gm_json_string(struct gm_json *json, struct gm_json_string *ret);

/*
 * The next member of an object: stands on '{' the first time (object->count is 0), after a
 * member's value later. Either *ret_name is the member's name and the cursor is on its value,
 * or *ret_name is NULL and the cursor is after '}'. A name that came before is refused.
 */
enum gm_status gm_json_member(struct gm_json *json, struct gm_json_object *object,
                              const struct gm_json_string **ret_name);

bool gm_json_string_is(const struct gm_json_string *string, const char *text);

/*
 * json_rows.c: arrays of numbers: a prescan finds their shape, then each number is read straight to
 * its element.
 */

/* The text of a number or of an array of numbers, not yet known to be well-formed. */
struct gm_json_rows {
    const char *begin, *end;
    uint64_t opens, commas; /* '[' and ',' in between */
};

/* Reads a shape, "[2,3]": up to 3 whole numbers. GM_BAD_JSON or GM_BAD_SHAPE. */
enum gm_status gm_json_shape(struct gm_json *json, struct gm_shape *ret);

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
 * The matrix that an array of numbers is, its data not set, and *ret_nested, as what its elements
 * are to be read: of that shape, nested or flat, where one is stated (not NULL). GM_BAD_SHAPE where
 * it is not, and what gm_json_rows_shape and gm_matrix_init may say.
 */
enum gm_status gm_json_rows_matrix(const struct gm_json *json, const struct gm_json_rows *rows,
                                   enum gm_dtype dtype, const char *name,
                                   const struct gm_shape *stated, struct gm_shape *ret_nested,
                                   struct gm_matrix *ret);

/*
 * Reads every element into out, which has room for shape's. GM_BAD_JSON, GM_BAD_SHAPE (rows of
 * different lengths), GM_OUT_OF_RANGE (a number that dtype cannot hold) or GM_BAD_DTYPE (true
 * where dtype is not bool), naming the place.
 */
enum gm_status gm_json_rows_read(const struct gm_json *json, const struct gm_json_rows *rows,
                                 enum gm_dtype dtype, const char *name,
                                 const struct gm_shape *shape, void *out);

/* json_write.c: as in codec.h. */

enum gm_status gm_json_encode_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                    struct gm_error *err);
enum gm_status gm_json_encode(const struct gm_matrix *matrix,
                              const struct gm_encode_options *options, char *out, uint64_t capacity,
                              uint64_t *ret_len, struct gm_error *err);

#endif
