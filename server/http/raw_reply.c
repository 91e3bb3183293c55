#include "server/http/http.h"
#include "server/http/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The bytes to send. A reply to HEAD has no body. */
static char *bytes_of(const struct gm_reply *reply, const char *id, const char *method,
                      size_t *ret_len)
{
    char *bytes = gm_reply_bytes(reply, id, ret_len);

    if (bytes && strcmp(method, "HEAD") == 0)
        *ret_len -= reply->body_len;
    return bytes;
}

static bool send_reply(const struct gm_request *r, const struct gm_reply *reply)
{
    size_t len;
    char *bytes = bytes_of(reply, r->id, r->head.method, &len);
    bool sent = bytes && r->connection.transport->send_last(r->connection.handle,
                                                            r->connection.socket, bytes, len);

    free(bytes);
    return sent;
}

bool gm_raw_reply_send(struct gm_request *r)
{
    if (atomic_exchange(&r->connection.taken, 1))
        return false;
    r->connection.sent_raw = send_reply(r, &r->reply);
    return r->connection.sent_raw;
}

void gm_raw_refuse_head(int socket, const struct gm_error *error)
{
    const struct gm_request_head head = {0};
    struct gm_reply reply = {0};
    char id[GM_REQUEST_ID_MAX];
    size_t len;

    gm_request_id(&head, id);
    gm_reply_problem(&reply, error, id, 0);
    char *bytes = bytes_of(&reply, id, "", &len);
    if (bytes)
        gm_socket_send_last(socket, bytes, len);
    free(bytes);
    gm_reply_clear(&reply);
}

/* With the mutex of its list: a listed request that is not `taken` has an open socket on which
 * nothing was sent. */
static void refuse(struct gm_request *r, const struct gm_error *error)
{
    struct gm_reply reply = {0};

    if (!r->connection.transport->any_thread)
        return; /* answered when its next bytes come, else closed when the library stops */
    if (atomic_exchange(&r->connection.taken, 1))
        return;
    gm_reply_error(&reply, error, r->head.path, r->id, 1);
    if (send_reply(r, &reply))
        r->connection.refused = (struct gm_refusal){error->status, reply.body_len};
    atomic_fetch_add(&r->server->stats.failed[error->status], 1);
    gm_reply_clear(&reply);
}

void gm_http_refuse_requests(struct gm_server *server, enum gm_status status)
{
    struct gm_error error;
    struct gm_request *r;

    gm_fail(&error, status, "gemmd is shutting down and could not finish this request");
    for (unsigned i = 0; i < GM_REQUEST_LISTS; i++) {
        struct gm_request_list *list = &server->being_served[i];
        pthread_mutex_lock(&list->mutex);
        LIST_FOREACH (r, &list->requests, link)
            refuse(r, &error);
        pthread_mutex_unlock(&list->mutex);
    }
}
