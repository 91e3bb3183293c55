#include "server/http/internal.h"
#include "server/text.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

char *gm_reply_bytes(const struct gm_reply *reply, const char *request_id, size_t *ret_len)
{
    struct gm_text_stream stream;

    if (reply->failed || !gm_text_stream_begin(&stream))
        return NULL;
    FILE *out = stream.out;
    time_t now = time(NULL);
    struct tm utc;
    char date[40];
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &utc));
    fprintf(out,
            "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %llu\r\n"
            "Connection: close\r\nX-Request-Id: %s\r\n",
            reply->http, MHD_get_reason_phrase_for((unsigned)reply->http), date, reply->media_type,
            (unsigned long long)reply->body_len, request_id);
    for (unsigned i = 0; i < reply->headers; i++)
        fprintf(out, "%s: %s\r\n", reply->header[i].name, reply->header[i].value);
    fputs("\r\n", out);
    fwrite(reply->body, 1, reply->body_len, out);
    return gm_text_stream_end(&stream, ret_len);
}

static void sent(void *cls)
{
    gm_request_unref(cls);
}

static struct MHD_Response *make_response(struct gm_request *r)
{
    struct gm_reply *reply = &r->reply;

    atomic_fetch_add(&r->references, 1);
    /* A body in several parts would go out after the headers, not with them: a system call more,
     * which wakes up the client for nothing. */
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        reply->body_len, reply->body_len > 0 ? reply->body : "", sent, r);
    if (!response)
        gm_request_unref(r);
    return response;
}

bool gm_reply_send(struct gm_request *r, struct MHD_Connection *connection)
{
    struct gm_reply *reply = &r->reply;

    if (reply->failed || atomic_exchange(&r->connection.taken, 1))
        return false; /* already answered by gm_http_refuse_requests */
    struct MHD_Response *response = make_response(r);
    if (!response)
        return false;
    bool ok = true;
    if (reply->http != MHD_HTTP_NO_CONTENT)
        ok = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->media_type) ==
             MHD_YES;
    ok = ok && MHD_add_response_header(response, "X-Request-Id", r->id) == MHD_YES;
    for (unsigned i = 0; ok && i < reply->headers; i++)
        ok = MHD_add_response_header(response, reply->header[i].name, reply->header[i].value) ==
             MHD_YES;
    if (ok && (reply->close || atomic_load(&r->server->phase) != GM_PHASE_SERVING))
        ok = MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
    if (ok && reply->http == 304) /* without the length of a body, which would be another one's */
        ok = MHD_set_response_options(response, MHD_RF_HEAD_ONLY_RESPONSE, MHD_RO_END) == MHD_YES;
    ok = ok && MHD_queue_response(connection, (unsigned)reply->http, response) == MHD_YES;
    MHD_destroy_response(response);
    return ok;
}
