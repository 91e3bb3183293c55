#include "server/problem.h"

#include "server/document.h"

#include <jansson.h>
#include <stdio.h>

void gm_problem(struct gm_reply *reply, const struct gm_error *error, const char *request_id,
                unsigned retry_after_s)
{
    char type[64], seconds[16];
    int http = gm_status_http(error->status);

    gm_reply_clear(reply);
    snprintf(type, sizeof type, "urn:gemmd:error:%s", gm_status_code(error->status));
    json_t *problem = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:s}", "type", type, "title",
                                gm_status_title(error->status), "status", http, "code",
                                gm_status_code(error->status), "detail", error->detail, "error",
                                error->detail, "request_id", request_id);
    gm_reply_text(reply, http, "application/problem+json", gm_document_text(problem, JSON_COMPACT));
    if (retry_after_s > 0) {
        snprintf(seconds, sizeof seconds, "%u", retry_after_s);
        gm_reply_header(reply, "Retry-After", seconds);
    }
}
