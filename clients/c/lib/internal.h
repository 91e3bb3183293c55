/*
 * internal.h - what the files of libgemmd share: a client, errors, and the exchange that all
 * calls are made of. Nothing here is exported from the shared library.
 */
#ifndef GM_CLIENTS_C_LIB_INTERNAL_H
#define GM_CLIENTS_C_LIB_INTERNAL_H

#include "clients/c/include/gemmd_http.h"

#include <curl/curl.h>
#include <pthread.h>

/* Connections kept for later calls. More than that many threads at once still work; the rest of
 * their connections are closed after use. */
#define GM_CLIENT_IDLE_MAX 1024

/* Characters of a key: with the other headers it must fit into a request's head. */
#define GM_CLIENT_KEY_MAX 4096

struct gemmd_client {
    char *url;    /* without a slash at its end */
    char *socket; /* or NULL */
    char *key, *ca_file, *proxy;
    uint64_t connect_timeout_ms, timeout_ms;

    pthread_mutex_t lock; /* of the members below */
    CURL *idle[GM_CLIENT_IDLE_MAX];
    unsigned idle_count;
};

/* A handle of the pool, or a new one; without settings, and so it is given back. NULL: no memory.
 */
CURL *gm_client_take(struct gemmd_client *client);
void gm_client_give_back(struct gemmd_client *client, CURL *handle);

/* Fills *err (which may be NULL) and returns status. */
enum gemmd_status gm_client_fail(struct gemmd_error *err, enum gemmd_status status,
                                 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* *err from what curl says. `said` is its sentence, or "". */
enum gemmd_status gm_client_curl_error(struct gemmd_error *err, CURLcode code, const char *said);

/* *err from a reply that is an error: its status, and its body, which may be anything. */
enum gemmd_status gm_client_problem(struct gemmd_error *err, int http, const char *body,
                                    size_t len);

/* What is known of a reply before its body. Texts are "" or NULL where the header is not there. */
struct gm_reply_head {
    int http;
    unsigned retry_after_s;
    uint64_t body_bytes; /* or GEMMD_SIZE_UNKNOWN */
    char type[128], request_id[72], shape[64], dtype[16];
    char *account;
};

/* What becomes of a good reply. `begin` is called once, before the first byte. */
struct gm_taker {
    enum gemmd_status (*begin)(void *cls, const struct gm_reply_head *head,
                               struct gemmd_error *err);
    enum gemmd_status (*write)(void *cls, const void *bytes, size_t len, struct gemmd_error *err);
    void *cls;
};

/* One request and its reply. On success *head is filled, and its account is the caller's. */
enum gemmd_status gm_client_exchange(struct gemmd_client *client,
                                     const struct gemmd_request *request,
                                     const struct gm_taker *taker, struct gm_reply_head *head,
                                     struct gemmd_error *err);

/* ---- bodies ---- */

/* A source while it is being sent. */
struct gm_upload {
    const struct gemmd_source *source;
    uint64_t size, at; /* size may be GEMMD_SIZE_UNKNOWN */
    int64_t fd_start;  /* where a file stood, so that it can be sent again; -1: it cannot */
    struct gemmd_error *err;
    enum gemmd_status *status; /* of the exchange: set where a source fails */
};

/* As many as a body has: operands, and parameters as parts. */
#define GM_SOURCES_MAX 40

/* The sources of a body, sent one after the other or as its parts. */
struct gm_body {
    struct gm_upload upload[GM_SOURCES_MAX];
    size_t count, now; /* now: the upload that is read, where they follow one another */
};

enum gemmd_status gm_body_open(struct gm_body *body, const struct gemmd_request *request,
                               enum gemmd_status *status, struct gemmd_error *err);
uint64_t gm_body_bytes(const struct gm_body *body); /* or GEMMD_SIZE_UNKNOWN */

/* As curl's read and seek callbacks want it: of an upload, and of a body as a whole. */
size_t gm_upload_read(char *buffer, size_t size, size_t count, void *upload);
int gm_upload_seek(void *upload, curl_off_t offset, int origin);
size_t gm_body_read(char *buffer, size_t size, size_t count, void *body);
int gm_body_seek(void *body, curl_off_t offset, int origin);

#endif
