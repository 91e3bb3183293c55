#include "server/http/http.h"
#include "server/http/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Writes without blocking: one or two kilobytes always fit the buffer of an idle socket. method:
 * NULL if unknown. A reply to HEAD has no body. */
static bool send_reply(int socket, const struct gm_reply *reply, const char *id, const char *method)
{
    size_t len;
    char *bytes = gm_reply_bytes(reply, id, &len);

    if (bytes && method && strcmp(method, "HEAD") == 0)
        len -= reply->head_len + reply->body_len;
    bool sent = bytes && send(socket, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;

    if (sent)
        shutdown(socket, SHUT_WR);
    free(bytes);
    return sent;
}

bool gm_raw_reply_send(struct gm_request *r)
{
    if (atomic_exchange(&r->connection.taken, 1))
        return false;
    r->connection.sent_raw = send_reply(r->connection.socket, &r->reply, r->id, r->head.method);
    return r->connection.sent_raw;
}

void gm_raw_refuse_head(int socket, const struct gm_error *error)
{
    const struct gm_request_head head = {0};
    struct gm_reply reply = {0};
    char id[GM_REQUEST_ID_MAX];

    gm_request_id(&head, id);
    gm_reply_problem(&reply, error, id, 0);
    send_reply(socket, &reply, id, NULL);
    gm_reply_clear(&reply);
}

void gm_raw_refuse_all(struct gm_server *server, enum gm_status status)
{
    struct gm_error error;
    struct gm_request *r;

    gm_fail(&error, status, "gemmd is shutting down and could not finish this request");
    pthread_mutex_lock(&server->mutex);
    /* A listed request that is not `taken` has an open socket on which nothing was sent. */
    LIST_FOREACH(r, &server->requests, link)
    {
        struct gm_reply reply = {0};
        if (atomic_exchange(&r->connection.taken, 1))
            continue;
        gm_reply_error(&reply, &error, r->head.path, r->id, 1);
        send_reply(r->connection.socket, &reply, r->id, r->head.method);
        atomic_fetch_add(&server->stats.failed[status], 1);
        gm_reply_clear(&reply);
    }
    pthread_mutex_unlock(&server->mutex);
}
