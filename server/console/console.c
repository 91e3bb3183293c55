/*
 * console.c - GET / and /console/...: the web console, whose files are part of the program.
 *
 * They need no key, since they have nothing in them that is not public; what they show comes from
 * the API, which asks for one. To clients that take gzip all but the page is sent compressed.
 */
#include "server/request/reply.h"
#include "server/request/request.h"

#include <string.h>

#ifdef GM_CONSOLE_FILES

GM_EMBED(gm_console_page, GM_CONSOLE_PAGE);
#define GM_FILE(n, name, packed, plain)                                                            \
    GM_EMBED(gm_console_packed_##n, packed);                                                       \
    GM_EMBED(gm_console_plain_##n, plain);
#include GM_CONSOLE_FILES
#undef GM_FILE

static const struct file {
    const char *name, *packed, *packed_end, *plain, *plain_end;
} files[] = {
#define GM_FILE(n, name, packed, plain)                                                            \
    {name, gm_console_packed_##n, gm_console_packed_##n##_end, gm_console_plain_##n,               \
     gm_console_plain_##n##_end},
#include GM_CONSOLE_FILES
#undef GM_FILE
};

static const char *media_type_of(const char *name)
{
    const char *suffix = strrchr(name, '.');

    if (strcmp(suffix, ".js") == 0)
        return "text/javascript; charset=utf-8";
    return strcmp(suffix, ".css") == 0 ? "text/css; charset=utf-8" : "text/plain; charset=utf-8";
}

enum gm_progress gm_handle_console(struct gm_request *r)
{
    gm_reply_header(&r->reply, "Content-Security-Policy", GM_PAGE_POLICY);
    gm_reply_header(&r->reply, "Cache-Control", "no-cache");
    return gm_reply_embedded(r, "text/html; charset=utf-8", gm_console_page, gm_console_page_end);
}

enum gm_progress gm_handle_console_file(struct gm_request *r)
{
    const char *name = r->head.path + strlen("/console/");
    struct gm_error error;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const struct file *file = &files[i];
        if (strcmp(file->name, name) != 0)
            continue;
        gm_reply_header(&r->reply, "Vary", "Accept-Encoding");
        /* Short: after an update a page of two versions would be none. */
        gm_reply_header(&r->reply, "Cache-Control", "max-age=60");
        if (!gm_accept_has_coding(r->head.accept_encoding, "gzip"))
            return gm_reply_embedded(r, media_type_of(name), file->plain, file->plain_end);
        gm_reply_header(&r->reply, "Content-Encoding", "gzip");
        return gm_reply_embedded(r, media_type_of(name), file->packed, file->packed_end);
    }
    gm_fail(&error, GM_NOT_FOUND, "the console has no file %.100s", name);
    return gm_request_fail(r, &error);
}

#else

enum gm_progress gm_handle_console(struct gm_request *r)
{
    struct gm_error error;

    gm_fail(&error, GM_NOT_FOUND,
            "this gemmd was built without its console, since d3 (package libjs-d3) was not there; "
            "what it answers is at /openapi.json");
    return gm_request_fail(r, &error);
}

enum gm_progress gm_handle_console_file(struct gm_request *r)
{
    return gm_handle_console(r);
}

#endif
