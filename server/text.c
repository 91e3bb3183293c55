/*
 * text.c - see text.h.
 */
#include "server/text.h"

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
    size_t len = text ? strlen(text) : 0;
    char *line = text && !lacking ? realloc(text, len + 2) : NULL;

    if (line)
        memcpy(line + len, "\n", 2);
    else
        free(text);
    lacking = false;
    json_decref(document);
    return line;
}

void gm_svg_escape(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&')
            fputs("&amp;", out);
        else if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else
            fputc(c < 0x20 ? ' ' : c < 0x7F ? c : '?', out);
    }
}

void gm_svg_begin(FILE *out, int width, int height, const char *title)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\" "
            "fill=\"" GM_SVG_INK "\">\n<title>",
            width, height, width, height);
    gm_svg_escape(out, title);
    fputs("</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
}

void gm_svg_text(FILE *out, double x, double y, const char *anchor, const char *fill,
                 const char *words)
{
    fprintf(out,
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" paint-order=\"stroke\" "
            "stroke=\"#fff\" stroke-width=\"4\">",
            x, y, anchor, fill);
    gm_svg_escape(out, words);
    fputs("</text>\n", out);
}

void gm_svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2,
            style);
}
