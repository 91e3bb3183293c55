/*
 * text_stream.c - see text_stream.h. The C library has open_memstream, but that forgets: a piece
 * for which it found no memory is left out, the pieces behind it are not, and neither the stream's
 * error flag nor its closing tells. So the memory is asked for here.
 */
#include "server/request/text_stream.h"

#include <stdlib.h>
#include <string.h>

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
        return 0; /* as fopencookie has it: nothing was taken */
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
