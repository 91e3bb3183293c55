/*
 * exchange.c - one request and its reply by libcurl: what is set, what is sent, what comes, and
 * what it means when it does not.
 */
#include "clients/c/lib/internal.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What is read of the body of an error. */
#define PROBLEM_BYTES (64u << 10)
/* curl's buffers: large, since bodies are. */
#define SEND_BUFFER (512L << 10)
#define RECEIVE_BUFFER (512L << 10)

struct exchange {
    const struct gemmd_request *request;
    const struct gm_taker *taker;
    struct gemmd_error *err;
    enum gemmd_status status; /* what our own callbacks found; GEMMD_OK: nothing wrong */
    struct gm_reply_head head;
    bool begun;
    char *problem; /* the body of an error */
    size_t problem_len;

    CURL *curl;
    curl_mime *mime;
    struct curl_slist *headers;
    struct gm_body body;
    char said[CURL_ERROR_SIZE];
};

/* ---- the reply ---- */

static void forget_head(struct gm_reply_head *head)
{
    free(head->account);
    *head = (struct gm_reply_head){.body_bytes = GEMMD_SIZE_UNKNOWN};
}

/* The value of a header's line where it has that name. */
static bool is_header(const char *line, size_t len, const char *name, const char **ret,
                      size_t *ret_len)
{
    size_t name_len = strlen(name);

    if (len <= name_len || strncasecmp(line, name, name_len) != 0 || line[name_len] != ':')
        return false;
    const char *begin = line + name_len + 1, *end = line + len;
    while (begin < end && isspace((unsigned char)*begin))
        begin++;
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    *ret = begin;
    *ret_len = (size_t)(end - begin);
    return true;
}

static void copy_value(char *out, size_t size, const char *value, size_t len)
{
    snprintf(out, size, "%.*s", (int)(len < size ? len : size - 1), value);
}

static bool is_good(int http)
{
    return http >= 200 && http < 300;
}

/* The head of a good reply has come. */
static bool begin(struct exchange *x)
{
    if (!x->begun && x->status == GEMMD_OK && x->taker->begin)
        x->status = x->taker->begin(x->taker->cls, &x->head, x->err);
    x->begun = true;
    return x->status == GEMMD_OK;
}

static size_t take_header(char *line, size_t size, size_t count, void *cls)
{
    struct exchange *x = cls;
    struct gm_reply_head *head = &x->head;
    size_t len = size * count;
    const char *value;
    size_t value_len;

    if (len == 2 && memcmp(line, "\r\n", 2) == 0 && is_good(head->http)) {
        if (!begin(x))
            return 0; /* ends the transfer */
    } else if (len > 5 &&
               strncmp(line, "HTTP/", 5) == 0) { /* another reply: the one before was 100 */
        forget_head(head);
        const char *space = memchr(line, ' ', len);
        head->http = space ? atoi(space + 1) : 0;
    } else if (is_header(line, len, "Content-Type", &value, &value_len)) {
        const char *semicolon = memchr(value, ';', value_len);
        copy_value(head->type, sizeof head->type, value,
                   semicolon ? (size_t)(semicolon - value) : value_len);
    } else if (is_header(line, len, "Content-Length", &value, &value_len)) {
        head->body_bytes = strtoull(value, NULL, 10);
    } else if (is_header(line, len, "X-Request-Id", &value, &value_len)) {
        copy_value(head->request_id, sizeof head->request_id, value, value_len);
    } else if (is_header(line, len, "Gemmd-Shape", &value, &value_len)) {
        copy_value(head->shape, sizeof head->shape, value, value_len);
    } else if (is_header(line, len, "Gemmd-Dtype", &value, &value_len)) {
        copy_value(head->dtype, sizeof head->dtype, value, value_len);
    } else if (is_header(line, len, "Retry-After", &value, &value_len)) {
        head->retry_after_s = (unsigned)strtoul(value, NULL, 10); /* a date counts as 0 */
    } else if (is_header(line, len, "Gemmd-Stats", &value, &value_len)) {
        free(head->account);
        head->account = strndup(value, value_len);
        if (!head->account) {
            x->status = gm_client_fail(x->err, GEMMD_NO_MEMORY, "out of memory");
            return 0;
        }
    }
    return len;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *cls)
{
    struct exchange *x = cls;
    size_t len = size * count;

    if (is_good(x->head.http)) {
        if (x->status == GEMMD_OK)
            x->status = x->taker->write(x->taker->cls, bytes, len, x->err);
        return x->status == GEMMD_OK ? len : len + 1; /* any other number ends the transfer */
    }
    if (!x->problem)
        x->problem = malloc(PROBLEM_BYTES);
    size_t room = x->problem ? PROBLEM_BYTES - x->problem_len : 0;
    size_t part = len < room ? len : room;
    if (part > 0)
        memcpy(x->problem + x->problem_len, bytes, part);
    x->problem_len += part;
    return len;
}

static int take_progress(void *cls, curl_off_t receive_total, curl_off_t received,
                         curl_off_t send_total, curl_off_t sent)
{
    struct exchange *x = cls;
    const struct gemmd_call *call = x->request->call;
    struct gemmd_progress progress = {(uint64_t)sent, (uint64_t)send_total, (uint64_t)received,
                                      (uint64_t)receive_total};

    if (call->progress(call->progress_cls, &progress))
        return 0;
    x->status = gm_client_fail(x->err, GEMMD_STOPPED, "stopped");
    return 1;
}

/* ---- the request ---- */

/* Adds `name: value`. */
static bool add_header(struct exchange *x, const char *name, const char *value)
{
    char *line = NULL;

    if (asprintf(&line, *value ? "%s: %s" : "%s:%s", name, value) < 0)
        return false;
    struct curl_slist *longer = curl_slist_append(x->headers, line);
    free(line);
    if (longer)
        x->headers = longer;
    return longer;
}

/* Adds a piece of the query, `?name=value` or `&name=value`, to *url. */
static bool add_parameter(CURL *curl, char **url, const struct gemmd_parameter *parameter)
{
    char *name = curl_easy_escape(curl, parameter->name, 0);
    char *value = curl_easy_escape(curl, parameter->value, 0);
    char *longer = NULL;

    if (!name || !value ||
        asprintf(&longer, "%s%c%s=%s", *url, strchr(*url, '?') ? '&' : '?', name, value) < 0)
        longer = NULL;
    curl_free(name);
    curl_free(value);
    free(*url);
    *url = longer;
    return longer;
}

/* The whole URL of a request; NULL: no memory. */
static char *make_url(const struct gemmd_client *client, struct exchange *x)
{
    const struct gemmd_call *call = x->request->call;
    char *url = NULL;

    if (asprintf(&url, "%s%s", client->url, x->request->path) < 0)
        return NULL;
    for (size_t i = 0; url && call && i < call->parameter_count; i++)
        add_parameter(x->curl, &url, &call->parameters[i]);
    return url;
}

static bool set_parts(struct exchange *x)
{
    x->mime = curl_mime_init(x->curl);
    for (size_t i = 0; x->mime && i < x->body.count; i++) {
        struct gm_upload *upload = &x->body.upload[i];
        curl_mimepart *part = curl_mime_addpart(x->mime);
        curl_off_t size = upload->size == GEMMD_SIZE_UNKNOWN ? -1 : (curl_off_t)upload->size;
        if (!part || curl_mime_name(part, upload->source->name) != CURLE_OK ||
            (upload->source->type && curl_mime_type(part, upload->source->type) != CURLE_OK) ||
            curl_mime_data_cb(part, size, gm_upload_read, gm_upload_seek, NULL, upload) != CURLE_OK)
            return false;
    }
    return x->mime && curl_easy_setopt(x->curl, CURLOPT_MIMEPOST, x->mime) == CURLE_OK;
}

static bool set_whole(struct exchange *x)
{
    uint64_t bytes = gm_body_bytes(&x->body);
    const char *type = x->request->sources[0].type;

    curl_easy_setopt(x->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(x->curl, CURLOPT_READFUNCTION, gm_body_read);
    curl_easy_setopt(x->curl, CURLOPT_READDATA, &x->body);
    curl_easy_setopt(x->curl, CURLOPT_SEEKFUNCTION, gm_body_seek);
    curl_easy_setopt(x->curl, CURLOPT_SEEKDATA, &x->body);
    curl_easy_setopt(x->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     bytes == GEMMD_SIZE_UNKNOWN ? (curl_off_t)-1 : (curl_off_t)bytes);
    return (bytes != GEMMD_SIZE_UNKNOWN || add_header(x, "Transfer-Encoding", "chunked")) &&
           add_header(x, "Content-Type", type ? type : "");
}

/* POST without a body has one of length 0. */
static bool set_method(struct exchange *x)
{
    const char *method = x->request->method;

    if (x->body.count == 0 && strcmp(method, "POST") == 0)
        return curl_easy_setopt(x->curl, CURLOPT_POST, 1L) == CURLE_OK &&
               curl_easy_setopt(x->curl, CURLOPT_POSTFIELDS, "") == CURLE_OK;
    return curl_easy_setopt(x->curl, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK;
}

static bool set_headers(const struct gemmd_client *client, struct exchange *x)
{
    char key[GM_CLIENT_KEY_MAX + sizeof "Bearer "];

    if (!add_header(x, "Accept", x->request->accept ? x->request->accept : "*/*"))
        return false;
    if (!client->key)
        return true;
    snprintf(key, sizeof key, "Bearer %s", client->key);
    return add_header(x, "Authorization", key);
}

static void set_connection(const struct gemmd_client *client, struct exchange *x)
{
    const struct gemmd_call *call = x->request->call;
    uint64_t timeout_ms = call && call->timeout_ms ? call->timeout_ms : client->timeout_ms;
    CURL *curl = x->curl;

    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L); /* other threads have their own signals */
    curl_easy_setopt(curl, CURLOPT_PROXY, client->proxy ? client->proxy : ""); /* "": not even
                                                                  the environment's */
    /* What a proxy says before TLS is not the reply. */
    curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (client->socket)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->socket);
    if (client->ca_file) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca_file);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "libgemmd/" GM_VERSION);
    curl_easy_setopt(
        curl, CURLOPT_CONNECTTIMEOUT_MS,
        (long)(client->connect_timeout_ms < LONG_MAX ? client->connect_timeout_ms : LONG_MAX));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                     (long)(timeout_ms < LONG_MAX ? timeout_ms : LONG_MAX));
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
    curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, SEND_BUFFER);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, x->said);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, x);
    if (call && call->progress) {
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, take_progress);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, x);
    }
}

/* All of a request but its transfer. */
static enum gemmd_status prepare(const struct gemmd_client *client, struct exchange *x)
{
    enum gemmd_status status = gm_body_open(&x->body, x->request, &x->status, x->err);
    bool set = false;

    if (status != GEMMD_OK)
        return status;
    set_connection(client, x);
    char *url = make_url(client, x);
    if (url && curl_easy_setopt(x->curl, CURLOPT_URL, url) == CURLE_OK && set_headers(client, x))
        set = x->body.count == 0 || (x->request->sources[0].name ? set_parts(x) : set_whole(x));
    free(url);
    if (set && x->request->method)
        set = set_method(x);
    if (!set)
        return gm_client_fail(x->err, GEMMD_NO_MEMORY, "out of memory");
    curl_easy_setopt(x->curl, CURLOPT_HTTPHEADER, x->headers);
    return GEMMD_OK;
}

/* No connection to a socket of this machine. curl names the host of the URL, which is not asked,
 * and no reason. */
static enum gemmd_status no_socket(const struct gemmd_client *client, struct exchange *x)
{
    long error = 0;

    curl_easy_getinfo(x->curl, CURLINFO_OS_ERRNO, &error);
    return gm_client_fail(x->err, GEMMD_NO_CONNECTION, "cannot connect to the socket %s%s%s",
                          client->socket, error ? ": " : "", error ? strerror((int)error) : "");
}

/* What a transfer came to. */
static enum gemmd_status judge(const struct gemmd_client *client, struct exchange *x, CURLcode code)
{
    if (x->status != GEMMD_OK)
        return x->status;
    /* An error may be answered, and the connection be closed, before all was sent. */
    if (x->head.http >= 300) {
        gm_client_problem(x->err, x->head.http, x->problem ? x->problem : "", x->problem_len);
        if (x->err) {
            x->err->retry_after_s = x->head.retry_after_s;
            if (!x->err->request_id[0])
                memcpy(x->err->request_id, x->head.request_id, sizeof x->err->request_id);
        }
        return GEMMD_REFUSED;
    }
    if (code != CURLE_OK) {
        long tunnel = 0; /* the status of a proxy that was asked to connect */
        curl_easy_getinfo(x->curl, CURLINFO_HTTP_CONNECTCODE, &tunnel);
        if (code == CURLE_COULDNT_CONNECT && client->socket)
            return no_socket(client, x);
        if (tunnel < 300)
            return gm_client_curl_error(x->err, code, x->said);
        gm_client_fail(x->err, GEMMD_REFUSED,
                       "the proxy did not connect to gemmd: it answered HTTP status %ld", tunnel);
        if (x->err)
            x->err->http = (int)tunnel;
        return GEMMD_REFUSED;
    }
    if (!is_good(x->head.http))
        return gm_client_fail(x->err, GEMMD_BAD_REPLY, "the reply is not HTTP");
    return x->status;
}

enum gemmd_status gm_client_exchange(struct gemmd_client *client,
                                     const struct gemmd_request *request,
                                     const struct gm_taker *taker, struct gm_reply_head *head,
                                     struct gemmd_error *err)
{
    struct exchange *x = calloc(1, sizeof *x);
    CURL *curl = x ? gm_client_take(client) : NULL;

    if (!curl) {
        free(x);
        return gm_client_fail(err, GEMMD_NO_MEMORY, "out of memory");
    }
    x->request = request;
    x->taker = taker;
    x->err = err;
    x->curl = curl;
    forget_head(&x->head);
    enum gemmd_status status = prepare(client, x);
    if (status == GEMMD_OK)
        status = judge(client, x, curl_easy_perform(curl));
    if (status == GEMMD_OK)
        *head = x->head;
    else
        free(x->head.account);
    curl_easy_reset(curl); /* it points to what is freed now; its connections stay open */
    curl_mime_free(x->mime);
    curl_slist_free_all(x->headers);
    gm_client_give_back(client, curl);
    free(x->problem);
    free(x);
    return status;
}
