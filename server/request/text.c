/*
 * text.c - see text.h.
 */
#include "server/request/text.h"

#include "proto/number/number.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/*
 * A stream of its own instead of open_memstream. When open_memstream runs out of memory, it drops a
 * piece, keeps later ones, and neither sets the stream's error flag nor fails when closed. So the
 * memory is allocated here.
 */

#define ROOM_MIN 4096

static bool make_room(struct gm_text_stream *s, size_t more)
{
    size_t wanted = s->len + more + 1, room = s->room < ROOM_MIN ? ROOM_MIN : s->room;

    if (wanted <= s->room)
        return true;
    while (room < wanted)
        room *= 2;
    char *larger = realloc(s->text, room);
    if (!larger)
        return false;
    s->text = larger;
    s->room = room;
    return true;
}

static ssize_t take(void *cls, const char *bytes, size_t len)
{
    struct gm_text_stream *s = cls;

    if (s->lacking || !make_room(s, len)) {
        s->lacking = true;
        return 0; /* fopencookie: 0 means an error */
    }
    memcpy(s->text + s->len, bytes, len);
    s->len += len;
    return (ssize_t)len;
}

bool gm_text_stream_begin(struct gm_text_stream *s)
{
    *s = (struct gm_text_stream){0};
    s->out = fopencookie(s, "w", (cookie_io_functions_t){.write = take});
    return s->out != NULL;
}

char *gm_text_stream_end(struct gm_text_stream *s, size_t *ret_len)
{
    bool whole = !ferror(s->out);

    whole = fclose(s->out) == 0 && whole && !s->lacking && make_room(s, 0);
    if (!whole) {
        free(s->text);
        return NULL;
    }
    s->text[s->len] = '\0';
    if (ret_len)
        *ret_len = s->len;
    return s->text;
}

/*
 * JSON documents. jansson turns a failed allocation into NULL, and NULL omits a member silently. So
 * its memory is allocated here, and a failure is remembered until the text is made.
 */

static _Thread_local bool lacking;

static void *take_memory(size_t bytes)
{
    void *memory = malloc(bytes);

    lacking = lacking || !memory;
    return memory;
}

void gm_document_init(void)
{
    json_set_alloc_funcs(take_memory, free);
}

char *gm_document_text(json_t *document, size_t json_flags)
{
    char *text = document ? json_dumps(document, json_flags) : NULL;

    if (lacking) {
        free(text);
        text = NULL;
    }
    lacking = false;
    json_decref(document);
    return text;
}

/* Lines. */

struct gm_json_line gm_json_line_begin(char *text, size_t size)
{
    return (struct gm_json_line){.begin = text, .at = text, .end = text + size - 1};
}

bool gm_json_line_end(struct gm_json_line *line)
{
    *line->at = '\0';
    return !line->full;
}

static void put(struct gm_json_line *line, const char *text, size_t len)
{
    if (line->full || len > (size_t)(line->end - line->at)) {
        line->full = true;
        return;
    }
    memcpy(line->at, text, len);
    line->at += len;
}

/* Writes the comma, if one is needed, and the name. */
static void put_name(struct gm_json_line *line, const char *name)
{
    if (line->at > line->begin && line->at[-1] != '{' && line->at[-1] != '[')
        put(line, ",", 1);
    if (!name)
        return;
    put(line, "\"", 1);
    put(line, name, strlen(name));
    put(line, "\":", 2);
}

void gm_json_line_open(struct gm_json_line *line, const char *name, char bracket)
{
    put_name(line, name);
    put(line, &bracket, 1);
}

void gm_json_line_close(struct gm_json_line *line, char bracket)
{
    put(line, bracket == '[' ? "]" : "}", 1);
}

void gm_json_line_string(struct gm_json_line *line, const char *name, const char *value)
{
    static const char hex[] = "0123456789abcdef";

    put_name(line, name);
    put(line, "\"", 1);
    for (const char *p = value; *p; p++) {
        unsigned char c = (unsigned char)*p;
        const char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        if (c < 0x20 || c == '"' || c == '\\')
            put(line, escape, sizeof escape);
        else
            put(line, p, 1);
    }
    put(line, "\"", 1);
}

static void put_number(struct gm_json_line *line, const char *name, enum gm_dtype dtype,
                       const void *value)
{
    char text[GM_NUMBER_WIDTH_MAX];
    const char *end = gm_number_writer_of(dtype)(text, value);

    put_name(line, name);
    if (!end) {
        put(line, "null", 4);
        return;
    }
    put(line, text, (size_t)(end - text));
    /* Keep a decimal point, even if the value is a whole number. */
    if (dtype == GM_F64 && !memchr(text, '.', (size_t)(end - text)) &&
        !memchr(text, 'e', (size_t)(end - text)))
        put(line, ".0", 2);
}

void gm_json_line_integer(struct gm_json_line *line, const char *name, int64_t value)
{
    put_number(line, name, GM_I64, &value);
}

void gm_json_line_real(struct gm_json_line *line, const char *name, double value)
{
    put_number(line, name, GM_F64, &value);
}

void gm_json_line_true(struct gm_json_line *line, const char *name)
{
    put_name(line, name);
    put(line, "true", 4);
}
