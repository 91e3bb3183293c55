#include "server/request/reply.h"

#include "server/api/routes.h"
#include "server/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gm_reply_header(struct gm_reply *reply, const char *name, const char *value)
{
    char *copy = reply->headers < GM_REPLY_HEADERS_MAX ? strdup(value) : NULL;

    if (!copy) {
        reply->failed = true;
        return;
    }
    reply->header[reply->headers].name = name;
    reply->header[reply->headers++].value = copy;
}

void gm_reply_text(struct gm_reply *reply, int http, const char *media_type, char *text)
{
    reply->http = http;
    reply->failed = reply->failed || !text;
    reply->media_type = media_type;
    reply->text = text;
    reply->body = text;
    reply->body_len = text ? strlen(text) : 0;
}

void gm_reply_clear(struct gm_reply *reply)
{
    for (unsigned i = 0; i < reply->headers; i++)
        free(reply->header[i].value);
    free(reply->text);
    memset(reply, 0, sizeof *reply);
}

static void set_retry_after(struct gm_reply *reply, unsigned retry_after_s)
{
    char seconds[16];

    if (retry_after_s == 0)
        return;
    snprintf(seconds, sizeof seconds, "%u", retry_after_s);
    gm_reply_header(reply, "Retry-After", seconds);
}

void gm_reply_error(struct gm_reply *reply, const struct gm_error *error, const char *path,
                    const char *request_id, unsigned retry_after_s)
{
    if (!path || !gm_path_is_v2(path)) {
        gm_reply_problem(reply, error, request_id, retry_after_s);
        return;
    }
    gm_reply_clear(reply);
    gm_reply_text(reply, gm_status_http(error->status), "application/json",
                  gm_document_text(json_pack("{s:s}", "error", error->detail), JSON_COMPACT));
    set_retry_after(reply, retry_after_s);
}

void gm_reply_problem(struct gm_reply *reply, const struct gm_error *error, const char *request_id,
                      unsigned retry_after_s)
{
    char type[64];
    int http = gm_status_http(error->status);

    gm_reply_clear(reply);
    snprintf(type, sizeof type, "urn:gemmd:error:%s", gm_status_code(error->status));
    json_t *problem = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:s}", "type", type, "title",
                                gm_status_title(error->status), "status", http, "code",
                                gm_status_code(error->status), "detail", error->detail, "error",
                                error->detail, "request_id", request_id);
    if (error->at > 0)
        json_object_set_new(problem, "at", json_integer(error->at));
    gm_reply_text(reply, http, "application/problem+json", gm_document_text(problem, JSON_COMPACT));
    set_retry_after(reply, retry_after_s);
}
