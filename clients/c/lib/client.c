/*
 * client.c - a client: where its daemon is, how to be let in, and the pool of connections.
 */
#include "clients/c/lib/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_URL "http://localhost:8080"
#define CONNECT_TIMEOUT_MS 10000

/* curl wants to be initialised once in a process, before any thread uses it. */
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_status;

static void start_curl(void)
{
    curl_status = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static bool is_before(const char *text, const char *prefix, const char **ret_rest)
{
    size_t len = strlen(prefix);

    if (strncmp(text, prefix, len) != 0)
        return false;
    *ret_rest = text + len;
    return true;
}

/* NULL stays NULL. */
static bool copy(const char *text, char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return !text || *ret;
}

/* Whether a header's line can carry it. */
static bool is_header_text(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x21 || (unsigned char)*text > 0x7e)
            return false;
    return true;
}

static enum gemmd_status no_memory(struct gemmd_error *err)
{
    return gm_client_fail(err, GEMMD_NO_MEMORY, "out of memory");
}

/* unix:PATH, unix:///PATH or http+unix://%2FPATH: `path` is what follows the colon. The URL proper
 * then has a host that means nothing. */
static enum gemmd_status read_socket_url(struct gemmd_client *client, const char *path,
                                         struct gemmd_error *err)
{
    int len = 0;

    if (path[0] == '/' && path[1] == '/')
        path += 2;
    char *decoded = curl_easy_unescape(NULL, path, 0, &len);
    if (!decoded)
        return no_memory(err);
    bool good = len > 0 && strlen(decoded) == (size_t)len;
    bool copied = copy(decoded, &client->socket) && copy("http://localhost", &client->url);
    curl_free(decoded);
    if (!good)
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT,
                              "the URL names no socket, as unix:/run/gemmd.sock does");
    return copied ? GEMMD_OK : no_memory(err);
}

static enum gemmd_status read_url(struct gemmd_client *client, const char *url,
                                  struct gemmd_error *err)
{
    const char *rest = url;

    if (is_before(url, "unix:", &rest) || is_before(url, "http+unix:", &rest))
        return read_socket_url(client, rest, err);
    bool has_scheme = is_before(url, "http://", &rest) || is_before(url, "https://", &rest);
    if (!has_scheme && strstr(url, "://"))
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT,
                              "the URL %s begins with none of http://, https://, unix: and "
                              "http+unix://",
                              url);
    if (!*rest || *rest == '/' || strpbrk(rest, "?# \t\r\n"))
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT,
                              "the URL %s is not one of a server, as http://localhost:8080", url);
    if (asprintf(&client->url, "%s%s", has_scheme ? "" : "http://", url) < 0) {
        client->url = NULL;
        return no_memory(err);
    }
    for (size_t end = strlen(client->url); client->url[end - 1] == '/'; end--)
        client->url[end - 1] = '\0';
    return GEMMD_OK;
}

enum gemmd_status gemmd_client_new(const struct gemmd_options *options, struct gemmd_client **ret,
                                   struct gemmd_error *err)
{
    static const struct gemmd_options defaults;
    const struct gemmd_options *o = options ? options : &defaults;

    pthread_once(&curl_once, start_curl);
    if (curl_status != CURLE_OK)
        return gm_client_fail(err, GEMMD_NO_MEMORY, "libcurl cannot be started: %s",
                              curl_easy_strerror(curl_status));
    if (o->key && (!*o->key || strlen(o->key) > GM_CLIENT_KEY_MAX || !is_header_text(o->key)))
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT,
                              "a key has 1 to %d letters, digits and signs, and neither blanks "
                              "nor line ends",
                              GM_CLIENT_KEY_MAX);
    struct gemmd_client *client = calloc(1, sizeof *client);
    if (!client || pthread_mutex_init(&client->lock, NULL) != 0) {
        free(client);
        return no_memory(err);
    }
    client->connect_timeout_ms = o->connect_timeout_ms ? o->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    client->timeout_ms = o->timeout_ms;
    enum gemmd_status status = read_url(client, o->url ? o->url : DEFAULT_URL, err);
    if (status == GEMMD_OK && o->unix_socket) {
        free(client->socket);
        client->socket = NULL;
    }
    if (status == GEMMD_OK && !((!o->unix_socket || copy(o->unix_socket, &client->socket)) &&
                                copy(o->key, &client->key) && copy(o->ca_file, &client->ca_file) &&
                                copy(o->proxy, &client->proxy)))
        status = no_memory(err);
    if (status != GEMMD_OK) {
        gemmd_client_free(client);
        return status;
    }
    *ret = client;
    return GEMMD_OK;
}

void gemmd_client_free(struct gemmd_client *client)
{
    if (!client)
        return;
    for (unsigned i = 0; i < client->idle_count; i++)
        curl_easy_cleanup(client->idle[i]);
    pthread_mutex_destroy(&client->lock);
    if (client->key)
        explicit_bzero(client->key, strlen(client->key));
    free(client->key);
    free(client->url);
    free(client->socket);
    free(client->ca_file);
    free(client->proxy);
    free(client);
}

CURL *gm_client_take(struct gemmd_client *client)
{
    CURL *handle = NULL;

    pthread_mutex_lock(&client->lock);
    if (client->idle_count > 0)
        handle = client->idle[--client->idle_count];
    pthread_mutex_unlock(&client->lock);
    return handle ? handle : curl_easy_init();
}

void gm_client_give_back(struct gemmd_client *client, CURL *handle)
{
    pthread_mutex_lock(&client->lock);
    if (client->idle_count < GM_CLIENT_IDLE_MAX) {
        client->idle[client->idle_count++] = handle;
        handle = NULL;
    }
    pthread_mutex_unlock(&client->lock);
    curl_easy_cleanup(handle);
}
