/*
 * docs.c - GET /openapi.json, /docs and /licenses: the contract for machines, a page that shows it
 * and the licences. All are part of the program, so none can be missing or of another version.
 */
#include "server/request/reply.h"
#include "server/request/request.h"

#include <string.h>

GM_EMBED(gm_docs_contract, GM_DOCS_BUILD "/openapi.json");
GM_EMBED(gm_docs_licenses, GM_DOCS_BUILD "/licenses.txt");
GM_EMBED(gm_docs_page, GM_DOCS_SOURCE "/page.html");
GM_EMBED(gm_docs_start, GM_DOCS_SOURCE "/start.js");

enum gm_progress gm_reply_embedded(struct gm_request *r, const char *media_type, const char *begin,
                                   const char *end)
{
    r->reply.http = 200;
    r->reply.media_type = media_type;
    r->reply.body = begin;
    r->reply.body_len = (uint64_t)(end - begin);
    return GM_READY;
}

enum gm_progress gm_handle_openapi(struct gm_request *r)
{
    return gm_reply_embedded(r, "application/json", gm_docs_contract, gm_docs_contract_end);
}

enum gm_progress gm_handle_licenses(struct gm_request *r)
{
    return gm_reply_embedded(r, "text/plain; charset=utf-8", gm_docs_licenses,
                             gm_docs_licenses_end);
}

#ifdef GM_DOCS_VIEWER

GM_EMBED(gm_docs_script, GM_DOCS_VIEWER "/swagger-ui-bundle.js");
GM_EMBED(gm_docs_style, GM_DOCS_VIEWER "/swagger-ui.css");

enum gm_progress gm_handle_docs(struct gm_request *r)
{
    gm_reply_header(&r->reply, "Content-Security-Policy", GM_PAGE_POLICY);
    return gm_reply_embedded(r, "text/html; charset=utf-8", gm_docs_page, gm_docs_page_end);
}

enum gm_progress gm_handle_docs_file(struct gm_request *r)
{
    const char *name = strrchr(r->route->path, '/') + 1;

    /* An hour: the page requests them each time, and one is large. */
    gm_reply_header(&r->reply, "Cache-Control", "max-age=3600");
    if (strcmp(name, "swagger-ui.css") == 0)
        return gm_reply_embedded(r, "text/css; charset=utf-8", gm_docs_style, gm_docs_style_end);
    if (strcmp(name, "start.js") == 0)
        return gm_reply_embedded(r, "text/javascript; charset=utf-8", gm_docs_start,
                                 gm_docs_start_end);
    return gm_reply_embedded(r, "text/javascript; charset=utf-8", gm_docs_script,
                             gm_docs_script_end);
}

#else

enum gm_progress gm_handle_docs(struct gm_request *r)
{
    struct gm_error error;

    gm_fail(&error, GM_NOT_FOUND,
            "this gemmd was built without Swagger UI, which shows the contract; the contract "
            "itself is at /openapi.json");
    return gm_request_fail(r, &error);
}

enum gm_progress gm_handle_docs_file(struct gm_request *r)
{
    return gm_handle_docs(r);
}

#endif
