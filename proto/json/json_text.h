/*
 * json_text.h - a cursor over JSON text that is whole in memory, strict about RFC 8259.
 *
 * The text must end in ']' or '}' (gm_json_begin makes sure). No number, word or white space can
 * run past that byte, so only strings, and what follows a closing bracket, look for the end.
 */
#ifndef GM_PROTO_JSON_JSON_TEXT_H
#define GM_PROTO_JSON_JSON_TEXT_H

#include "proto/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
