/*
 * document.c - replies that are collected, or given to a callback as they come: gemmd_exchange.
 */
#include "clients/c/lib/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct collected {
    const struct gemmd_request *request;
    char *body;
    size_t len, capacity;
};

static enum gemmd_status collect(void *cls, const void *bytes, size_t len, struct gemmd_error *err)
{
    struct collected *c = cls;

    if (c->request->write)
        return c->request->write(c->request->write_cls, bytes, len)
                   ? GEMMD_OK
                   : gm_client_fail(err, GEMMD_BAD_FILE, "the reply cannot be written");
    if (len > GEMMD_DOCUMENT_MAX - c->len)
        return gm_client_fail(err, GEMMD_BAD_REPLY, "the reply is longer than %u bytes",
                              GEMMD_DOCUMENT_MAX);
    if (c->len + len + 1 > c->capacity) {
        size_t capacity = 2 * (c->len + len) + 4096;
        char *larger = realloc(c->body, capacity);
        if (!larger)
            return gm_client_fail(err, GEMMD_NO_MEMORY, "out of memory");
        c->body = larger;
        c->capacity = capacity;
    }
    memcpy(c->body + c->len, bytes, len);
    c->len += len;
    c->body[c->len] = '\0';
    return GEMMD_OK;
}

enum gemmd_status gemmd_exchange(struct gemmd_client *client, const struct gemmd_request *request,
                                 struct gemmd_reply *reply, struct gemmd_error *err)
{
    struct collected c = {.request = request};
    struct gm_taker taker = {.write = collect, .cls = &c};
    struct gm_reply_head head = {.account = NULL};
    enum gemmd_status status = gm_client_exchange(client, request, &taker, &head, err);

    if (status == GEMMD_OK && !c.body && !request->write) /* an empty one is one too */
        status = collect(&c, "", 0, err);
    if (status != GEMMD_OK) {
        free(c.body);
        free(head.account);
        return status;
    }
    *reply = (struct gemmd_reply){
        .http = head.http, .account = head.account, .body = c.body, .body_bytes = c.len};
    memcpy(reply->type, head.type, sizeof reply->type);
    memcpy(reply->request_id, head.request_id, sizeof reply->request_id);
    return GEMMD_OK;
}

void gemmd_reply_free(struct gemmd_reply *reply)
{
    free(reply->account);
    free(reply->body);
    *reply = (struct gemmd_reply){0};
}
