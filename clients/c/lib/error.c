/*
 * error.c - what went wrong, as a status and a sentence: from curl's codes, and from the problem
 * documents in which a daemon says why it refused.
 */
#include "clients/c/lib/internal.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum gemmd_status gm_client_fail(struct gemmd_error *err, enum gemmd_status status,
                                 const char *format, ...)
{
    if (!err)
        return status;
    va_list args;

    *err = (struct gemmd_error){.status = status};
    va_start(args, format);
    vsnprintf(err->detail, sizeof err->detail, format, args);
    va_end(args);
    return status;
}

static enum gemmd_status status_of(CURLcode code)
{
    switch (code) {
    case CURLE_URL_MALFORMAT:
        return GEMMD_BAD_ARGUMENT;
    case CURLE_OUT_OF_MEMORY:
        return GEMMD_NO_MEMORY;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return GEMMD_NO_CONNECTION;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_USE_SSL_FAILED:
        return GEMMD_BAD_TLS;
    case CURLE_SSL_CACERT_BADFILE: /* ca_file */
        return GEMMD_BAD_FILE;
    case CURLE_OPERATION_TIMEDOUT:
        return GEMMD_TIMED_OUT;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL: /* not of the URL, which was read before */
        return GEMMD_BAD_REPLY;
    default:
        return GEMMD_BROKEN;
    }
}

enum gemmd_status gm_client_curl_error(struct gemmd_error *err, CURLcode code, const char *said)
{
    return gm_client_fail(err, status_of(code), "%s", *said ? said : curl_easy_strerror(code));
}

static void copy_member(const json_t *document, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(document, name));

    if (text)
        snprintf(out, size, "%s", text);
}

enum gemmd_status gm_client_problem(struct gemmd_error *err, int http, const char *body, size_t len)
{
    if (!err)
        return GEMMD_REFUSED;
    json_t *document = json_loadb(body, len, 0, NULL);

    gm_client_fail(err, GEMMD_REFUSED,
                   "HTTP status %d, without the explanation that gemmd gives: is there a proxy in "
                   "between, or another server?",
                   http);
    err->http = http;
    copy_member(document, "code", err->code, sizeof err->code);
    copy_member(document, "request_id", err->request_id, sizeof err->request_id);
    copy_member(document, "detail", err->detail, sizeof err->detail);
    json_decref(document);
    return GEMMD_REFUSED;
}
