/*
 * json.h - reads and writes JSON text: a cursor over it, arrays of numbers, one line
 * written in place, and matrices.
 */
#ifndef GM_PROTO_JSON_JSON_H
#define GM_PROTO_JSON_JSON_H

#include "proto/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * json_text.c: a cursor over a JSON text in memory, strict about RFC 8259.
 *
 * The text must end in ']' or '}'; gm_json_begin checks it. No number, word or white space can run
 * past that byte, so the end is tested only within strings and after closing brackets.
 */

struct gm_json {
    const char *start, *end; /* `end` is after the last byte that is not white space */
    const char *at;          /* never on white space between calls */
    struct gm_error *err;
};

/* Longer names and strings are errors. The longest meaningful one, a kernel's name, is far
 * shorter. */
#define GM_JSON_STRING_MAX 256

/* An object with more members is an error. There are less than half as many parameters. */
#define GM_JSON_MEMBERS_MAX 32

/* A string's content, with escapes resolved. It may contain NUL bytes, and a further one ends it.
 * If it is too long, only `len` is set, to more than GM_JSON_STRING_MAX. */
struct gm_json_string {
    size_t len;
    char text[GM_JSON_STRING_MAX + 1];
};

/* The names seen so far of an object that is being read. */
struct gm_json_object {
    unsigned count;
    struct gm_json_string name[GM_JSON_MEMBERS_MAX];
};

/* Sets the cursor to the first byte. */
enum gm_status gm_json_begin(struct gm_json *json, const char *text, size_t len,
                             struct gm_error *err);

/* Fails with GM_BAD_JSON: the sentence, and the position of `at`. */
enum gm_status gm_json_fail(const struct gm_json *json, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fails with GM_BAD_JSON unless the text ends here. */
enum gm_status gm_json_end(const struct gm_json *json);

static inline void gm_json_space(struct gm_json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t'))
        json->at++;
}

/* The byte at the cursor; 0 at the end. */
static inline char gm_json_peek(const struct gm_json *json)
{
    return json->at < json->end ? *json->at : '\0';
}

/* Reads a string of at most `most` bytes, behind which a NUL is written. The cursor is on its '"'.
 * If it is too long, *ret_len is more than `most`. */
enum gm_status gm_json_text(struct gm_json *json, char *to, size_t most, size_t *ret_len);
/* The same, of a string that is short. */
enum gm_status gm_json_string(struct gm_json *json, struct gm_json_string *ret);

/*
 * Reads the next member of an object. The cursor is on '{' at first (object->count is 0), later
 * after a member's value. Then *ret_name is the member's name and the cursor is on its value; or
 * *ret_name is NULL and the cursor is after '}'. A name that came before is an error.
 */
enum gm_status gm_json_member(struct gm_json *json, struct gm_json_object *object,
                              const struct gm_json_string **ret_name);

bool gm_json_string_is(const struct gm_json_string *string, const char *text);

/*
 * json_rows.c: reads arrays of numbers. A prescan finds their shape; then each number is read
 * straight to its element.
 */

/* The text of a number or of an array of numbers, not yet known to be well-formed. */
struct gm_json_rows {
    const char *begin, *end;
    uint64_t opens, commas; /* the number of '[' and ',' in it */
};

/* Reads a shape, "[2,3]": up to 3 whole numbers. Errors: GM_BAD_JSON, GM_BAD_SHAPE. */
enum gm_status gm_json_shape(struct gm_json *json, struct gm_shape *ret);

/* Whether a value that begins with this byte can be a number or an array of numbers. */
bool gm_json_rows_begin(char first);

/*
 * Skips the value at the cursor at the speed of memory, counting brackets and commas. That suffices
 * to know how much storage a well-formed value needs.
 */
enum gm_status gm_json_rows_prescan(struct gm_json *json, struct gm_json_rows *ret);

/*
 * Finds the shape from the nesting and the first row. If the counts contradict it (rows of
 * different lengths), reads the whole value to find the error: GM_BAD_SHAPE or GM_BAD_JSON. `name`
 * is the operand's name in messages.
 */
enum gm_status gm_json_rows_shape(const struct gm_json *json, const struct gm_json_rows *rows,
                                  enum gm_dtype dtype, const char *name, struct gm_shape *ret);

/*
 * Makes the matrix of an array of numbers, without data. `stated`: its shape, if the body states
 * one, else NULL; the array is nested like that, or flat. *ret_nested is the nesting with which to
 * read the elements. Errors: GM_BAD_SHAPE, and those of gm_json_rows_shape and gm_matrix_init.
 */
enum gm_status gm_json_rows_matrix(const struct gm_json *json, const struct gm_json_rows *rows,
                                   enum gm_dtype dtype, const char *name,
                                   const struct gm_shape *stated, struct gm_shape *ret_nested,
                                   struct gm_matrix *ret);

/*
 * Reads all elements into out, which has room for the shape's. Errors name the position:
 * GM_BAD_JSON, GM_BAD_SHAPE (rows of different lengths), GM_OUT_OF_RANGE (a number that dtype
 * cannot hold), GM_BAD_DTYPE (true if dtype is not bool).
 */
enum gm_status gm_json_rows_read(const struct gm_json *json, const struct gm_json_rows *rows,
                                 enum gm_dtype dtype, const char *name,
                                 const struct gm_shape *shape, void *out);

/*
 * json_line.c: JSON on one line, written in place. For what every reply of an operation carries:
 * the members before the elements, and the account. A tree of a library would take longer to build
 * than a small operation.
 *
 * The caller provides the buffer, and must close every object and array. Text that does not fit is
 * dropped, and gm_json_line_end returns false.
 */

#define GM_DECIMAL_PLACES_MAX 18

struct gm_json_line {
    char *begin, *at, *end;
    bool full;
};

/* size: at least 1. */
struct gm_json_line gm_json_line_begin(char *text, size_t size);
/* Ends the text. Returns false if it did not fit. */
bool gm_json_line_end(struct gm_json_line *line);

/* bracket: '{' or '['. name: NULL inside arrays and for the outermost one. Names must need no
 * escapes. */
void gm_json_line_open(struct gm_json_line *line, const char *name, char bracket);
void gm_json_line_close(struct gm_json_line *line, char bracket);

void gm_json_line_string(struct gm_json_line *line, const char *name, const char *value);
void gm_json_line_integer(struct gm_json_line *line, const char *name, int64_t value);
/* The shortest text that reads back to the same value; null for NaN and infinity. */
void gm_json_line_real(struct gm_json_line *line, const char *name, double value);
/* value / 10^places, exactly; places: at most GM_DECIMAL_PLACES_MAX. Ten times as fast as
 * gm_json_line_real. */
void gm_json_line_decimal(struct gm_json_line *line, const char *name, int64_t value,
                          unsigned places);
/* So many significant digits of the value, and no more than GM_DECIMAL_PLACES_MAX behind the point;
 * digits: at most 15. Just as fast below 10^18. */
void gm_json_line_rounded(struct gm_json_line *line, const char *name, double value,
                          unsigned digits);
void gm_json_line_true(struct gm_json_line *line, const char *name);
/* A matrix's shape: [rows,cols], of a stack [batch,rows,cols]. */
void gm_json_line_shape(struct gm_json_line *line, const char *name,
                        const struct gm_matrix *matrix);

/* json_write.c: functions of codec.h. */

enum gm_status gm_json_encode_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                    struct gm_error *err);
enum gm_status gm_json_encode(const struct gm_matrix *matrix,
                              const struct gm_encode_options *options, char *out, uint64_t capacity,
                              uint64_t *ret_len, struct gm_error *err);

#endif
