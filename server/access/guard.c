/*
 * guard.c - checks a request's head: the browser that may have sent it, and its key.
 *
 * Browsers. A page that somebody visits can make the browser send requests to this machine. It gets
 * nowhere, in three ways:
 *  - Host: a page whose name resolves to an address of this machine (DNS rebinding) is of "the same
 *    origin", but its requests have its name in Host. So on loopback only names of this machine are
 *    answered, and IP addresses, which no DNS resolves. A target in absolute form has its own host.
 *  - Origin: what browsers send with requests of pages from elsewhere. Only --cors lets them in.
 *  - Sec-Fetch-Site: the same for requests that have no Origin, such as for images.
 * Clients that are no browsers send neither of the last two.
 */
#include "server/access/access.h"

#include "server/request/head.h"
#include "server/request/reply.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* Whether a list with commas has this word. */
static bool lists(const char *list, const char *word, size_t len)
{
    while (*list) {
        size_t part = strcspn(list, ",");
        if (part == len && strncasecmp(list, word, len) == 0)
            return true;
        list += part + (list[part] == ',');
    }
    return false;
}

static bool is_address(const char *host, size_t len)
{
    char text[INET6_ADDRSTRLEN + 1];
    unsigned char address[sizeof(struct in6_addr)];

    bool six = len > 2 && host[0] == '[' && host[len - 1] == ']';
    if (six) {
        host++;
        len -= 2;
    }
    if (len >= sizeof text)
        return false;
    memcpy(text, host, len);
    text[len] = '\0';
    return inet_pton(six ? AF_INET6 : AF_INET, text, address) == 1;
}

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* A host's name, or an IPv4 address. */
static bool is_host_name(const char *text, size_t len)
{
    return len > 0 && strspn(text, LETTERS DIGITS "-_.") >= len && *text != '.' &&
           text[len - 1] != '.' && !memmem(text, len, "..", 2);
}

/* An origin as browsers send it (RFC 6454): http://localhost:3000; null of a page from a file. */
static bool is_origin(const char *text, size_t len)
{
    const char *end = text + len, *host = memmem(text, len, "://", 3);

    if (len == 4 && memcmp(text, "null", 4) == 0)
        return true;
    if (!host || strspn(text, LETTERS) == 0 ||
        strspn(text, LETTERS DIGITS "+-.") < (size_t)(host - text))
        return false;
    host += 3;
    size_t host_len = *host == '[' ? strcspn(host, "],") + 1 : strcspn(host, ":,");
    const char *port = host + host_len;
    size_t name_len = host_len > 0 && host[host_len - 1] == '.' ? host_len - 1 : host_len;
    if (port > end || !(*host == '[' ? is_address(host, host_len) : is_host_name(host, name_len)))
        return false;
    size_t digits = port < end ? (size_t)(end - port) - 1 : 0;
    return port == end ||
           (*port == ':' && digits > 0 && digits <= 5 && strspn(port + 1, DIGITS) >= digits);
}

/* Whether each part of a list with commas is one. */
static bool all(const char *list, bool (*is_one)(const char *text, size_t len))
{
    for (;;) {
        size_t part = strcspn(list, ",");
        if (part == 0 || !is_one(list, part))
            return false;
        if (!list[part])
            return true;
        list += part + 1;
    }
}

bool gm_access_origins_ok(const char *list)
{
    return strcmp(list, "*") == 0 || all(list, is_origin);
}

bool gm_access_hosts_ok(const char *list)
{
    return all(list, is_host_name);
}

/* The name in a Host header, or behind the scheme of an origin: without port and final dot. */
static const char *host_of(const char *text, size_t *ret_len)
{
    size_t len = *text == '[' ? strcspn(text, "]") + 1 : strcspn(text, ":/");

    *ret_len = len > strlen(text) ? strlen(text) : len;
    if (*ret_len > 1 && text[*ret_len - 1] == '.')
        --*ret_len;
    return text;
}

static bool is_name_of_ours(const struct gm_access *access, const char *host, size_t len)
{
    static const char local[] = "localhost";
    const size_t local_len = sizeof local - 1;
    bool ends = len >= local_len && strncasecmp(host + len - local_len, local, local_len) == 0;

    if (ends && (len == local_len || host[len - local_len - 1] == '.'))
        return true;
    return (len > 0 && strlen(access->host_name) == len &&
            strncasecmp(access->host_name, host, len) == 0) ||
           lists(access->hosts, host, len);
}

static bool origin_may_ask(const struct gm_access *access, const char *origin)
{
    return strcmp(access->cors, "*") == 0 || lists(access->cors, origin, strlen(origin));
}

/* Whether an origin is this daemon, by the name that the browser knows it by. The scheme is not
 * compared: a proxy may speak TLS. */
static bool is_same_origin(const char *origin, const char *host)
{
    const char *scheme = strstr(origin, "://");

    return scheme && host && strcasecmp(scheme + 3, host) == 0;
}

/* A page, as one that the user opens by following a link. */
static bool is_navigation(const struct gm_request_head *head)
{
    return head->fetch_mode && strcmp(head->fetch_mode, "navigate") == 0 &&
           strcmp(head->method, "GET") == 0;
}

enum gm_status gm_access_check_browser(const struct gm_access *access,
                                       const struct gm_request_head *head, struct gm_error *err)
{
    size_t len;

    if (head->host && *head->host && head->loopback) {
        const char *host = host_of(head->host, &len);
        if (!is_address(host, len) && !is_name_of_ours(access, host, len))
            return gm_fail(err, GM_UNKNOWN_HOST,
                           "Host is %.100s, which is no name of this machine that gemmd knows; "
                           "--allow-host lets it in",
                           head->host);
    }
    if (head->origin)
        return is_same_origin(head->origin, head->host) || origin_may_ask(access, head->origin)
                   ? GM_OK
                   : gm_fail(err, GM_CROSS_ORIGIN,
                             "the request comes from a page of %.100s; --cors lets it in",
                             head->origin);
    bool elsewhere = head->fetch_site && (strcmp(head->fetch_site, "cross-site") == 0 ||
                                          strcmp(head->fetch_site, "same-site") == 0);
    if (elsewhere && !is_navigation(head) && strcmp(access->cors, "*") != 0)
        return gm_fail(err, GM_CROSS_ORIGIN, "the request comes from a page of another origin");
    return GM_OK;
}

bool gm_access_is_preflight(const struct gm_access *access, const struct gm_request_head *head)
{
    return strcmp(head->method, "OPTIONS") == 0 && head->origin && head->preflight_method &&
           origin_may_ask(access, head->origin);
}

/* Looks up the key that was sent. Hashing comes first, so that the lock is held for a look-up
 * alone. */
static bool find_key(struct gm_access *access, const char *authorization, struct gm_caller *ret)
{
    char key[GM_KEY_TEXT_MAX], id[GM_KEY_ID_MAX];
    unsigned char hash[GM_KEY_HASH_BYTES];
    size_t len = gm_access_credentials(authorization, key);
    bool found = false;

    if (len > 0 && gm_key_id(key, len, id)) {
        gm_key_hash(key, len, hash);
        pthread_mutex_lock(&access->mutex);
        found = gm_keys_find(access->keys, id, hash, ret);
        pthread_mutex_unlock(&access->mutex);
    }
    explicit_bzero(key, sizeof key);
    return found;
}

enum gm_status gm_access_identify(struct gm_access *access, const struct gm_request_head *head,
                                  unsigned roles, struct gm_caller *ret, struct gm_error *err)
{
    bool open = (roles & GM_ROLE_PUBLIC) || (access->open_probes && (roles & GM_ROLE_PROBE));

    ret->roles = ~0u;
    /* Whether there are keys never changes after the start. */
    if (!*access->keys_file) {
        ret->quota =
            roles & GM_ROLES_UNCOUNTED ? NULL : gm_quota_of_address(&access->quotas, head->client);
        return GM_OK;
    }
    if (open)
        return GM_OK;
    ret->roles = 0;
    if (!head->authorization)
        return gm_fail(err, GM_UNAUTHORIZED,
                       "a key is needed: Authorization: Bearer KEY, or Basic with it as password");
    if (!find_key(access, head->authorization, ret))
        return gm_fail(err, GM_UNAUTHORIZED, "there is no such key");
    if (ret->roles & roles)
        return GM_OK;
    return gm_fail(err, GM_FORBIDDEN, "the key %s may not do this: its line has no role %s",
                   ret->name, roles & GM_ROLE_USE ? "use" : "read");
}

bool gm_access_find_owner(struct gm_access *access, const char *name, uint64_t *ret_client,
                          struct gm_quota **ret_quota)
{
    struct gm_quota *quota = NULL;

    if (!*access->keys_file)
        return false;
    pthread_mutex_lock(&access->mutex);
    quota = gm_keys_quota(access->keys, name);
    pthread_mutex_unlock(&access->mutex);
    if (!quota)
        return false;
    *ret_client = quota->client;
    *ret_quota = quota;
    return true;
}

static void add_cors(const struct gm_access *access, const struct gm_request_head *head,
                     struct gm_reply *reply)
{
    gm_reply_header(reply, "Vary", "Origin");
    if (!head->origin || !*head->origin || !origin_may_ask(access, head->origin))
        return;
    gm_reply_header(reply, "Access-Control-Allow-Origin", head->origin);
    if (gm_access_is_preflight(access, head)) {
        gm_reply_header(reply, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE");
        gm_reply_header(reply, "Access-Control-Allow-Headers",
                        "Accept, Authorization, Content-Type, If-Match, If-None-Match, "
                        "Inference-Header-Content-Length, X-Request-Id, traceparent");
        gm_reply_header(reply, "Access-Control-Max-Age", "600");
    } else {
        gm_reply_header(reply, "Access-Control-Expose-Headers",
                        "ETag, Gemmd-Dtype, Gemmd-Kept, Gemmd-Shape, Gemmd-Stats, "
                        "Inference-Header-Content-Length, Location, RateLimit, RateLimit-Policy, "
                        "Retry-After, Server-Timing, X-Request-Id");
    }
}

void gm_access_headers(const struct gm_access *access, const struct gm_request_head *head,
                       enum gm_status status, bool page, struct gm_reply *reply)
{
    if (status == GM_UNAUTHORIZED) {
        gm_reply_header(reply, "WWW-Authenticate",
                        head->authorization ? "Bearer realm=\"gemmd\", error=\"invalid_token\""
                                            : "Bearer realm=\"gemmd\"");
        gm_reply_header(reply, "WWW-Authenticate", "Basic realm=\"gemmd\", charset=\"UTF-8\"");
    }
    if (*access->cors)
        add_cors(access, head, reply);
    if (!page)
        return;
    gm_reply_header(reply, "X-Content-Type-Options", "nosniff");
    gm_reply_header(reply, "X-Frame-Options", "DENY");
    gm_reply_header(reply, "Referrer-Policy", "no-referrer");
    if (!*access->cors)
        gm_reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
}
