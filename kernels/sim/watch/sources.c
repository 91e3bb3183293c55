/* sources.c - finds the text of a line of a kernel, in the copies that the build embeds. */
#include "table.h"

#include "symbols.h"

#include <stdio.h>
#include <string.h>

static const char *find_line(const struct gm_sim_source *source, unsigned line, const char **end)
{
    const char *at = source->begin;

    for (unsigned n = 1; at < source->end; n++) {
        const char *newline = memchr(at, '\n', (size_t)(source->end - at));
        *end = newline ? newline : source->end;
        if (n == line)
            return at;
        at = *end + 1;
    }
    return NULL;
}

void gm_symbols_source(const char *file, unsigned line, char *buf, size_t size)
{
    buf[0] = '\0';
    for (size_t i = 0; i < gm_sim_source_count; i++) {
        const char *end, *at;
        if (strcmp(gm_sim_sources[i].file, file) != 0 ||
            !(at = find_line(&gm_sim_sources[i], line, &end)))
            continue;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        snprintf(buf, size, "%.*s", (int)(end - at), at);
        return;
    }
}
