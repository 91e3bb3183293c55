#include "server/request/head.h"

#include "server/access/quota.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

uint64_t gm_client_of(const struct sockaddr *address)
{
    uint64_t client = 0;

    if (!address || address->sa_family == AF_UNIX)
        return GM_CLIENT_UNIX;
    if (address && address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        return ntohl(v4.sin_addr.s_addr);
    }
    if (address && address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        /* On a dual-stack socket, an IPv4 client has the same id. */
        unsigned from = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? 12 : 0;
        unsigned to = from > 0 ? 16 : 8;
        for (unsigned i = from; i < to; i++)
            client = client << 8 | v6.sin6_addr.s6_addr[i];
    }
    return client;
}

bool gm_client_is_loopback(const struct sockaddr *address)
{
    if (address && address->sa_family == AF_INET)
        return gm_client_of(address) >> 24 == IN_LOOPBACKNET;
    if (!address || address->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 v6;
    memcpy(&v6, address, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

void gm_client_text(const struct sockaddr *address, char out[GM_CLIENT_TEXT_MAX])
{
    const char *text = NULL;

    if (address && address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        text = inet_ntop(AF_INET, &v4.sin_addr, out, GM_CLIENT_TEXT_MAX);
    } else if (address && address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        text = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)
                   ? inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, out, GM_CLIENT_TEXT_MAX)
                   : inet_ntop(AF_INET6, &v6.sin6_addr, out, GM_CLIENT_TEXT_MAX);
    }
    if (!text)
        snprintf(out, GM_CLIENT_TEXT_MAX, "unknown");
}

static bool parse_length(const char *text, size_t len, uint64_t *ret)
{
    uint64_t n = 0;

    if (len == 0 || len > 19)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    *ret = n;
    return true;
}

/* The headers that are kept as they are. Compared by their length first: this is done for each
 * header of each request. */
#define WANTED(name, field)                                                                        \
    {                                                                                              \
        name, sizeof name - 1, offsetof(struct gm_request_head, field)                             \
    }
#define LISTS 4    /* wanted[] begins with them */
#define HOST LISTS /* in made[], behind the lists */
_Static_assert(HOST < GM_HEAD_MADE_MAX, "there is room for all");
static const struct {
    const char *name;
    size_t len, offset;
} wanted[] = {WANTED("Accept", accept),
              WANTED("Accept-Encoding", accept_encoding),
              WANTED("If-Match", if_match),
              WANTED("If-None-Match", if_none_match),
              WANTED("Host", host),
              WANTED("Content-Type", content_type),
              WANTED("Content-Encoding", content_encoding),
              WANTED("Content-Range", content_range),
              WANTED("Expect", expect),
              WANTED("Inference-Header-Content-Length", infer_header),
              WANTED("traceparent", traceparent),
              WANTED("X-Request-Id", request_id),
              WANTED("Authorization", authorization),
              WANTED("Origin", origin),
              WANTED("Sec-Fetch-Site", fetch_site),
              WANTED("Sec-Fetch-Mode", fetch_mode),
              WANTED("Access-Control-Request-Method", preflight_method)};

/* Adds a further line to the list that wanted[i] is. */
static void add_line(struct gm_request_head *head, size_t i, const char **list, const char *value)
{
    char *joined;

    if (asprintf(&joined, "%s, %s", *list, value) < 0) {
        head->no_memory = true;
        return;
    }
    free(head->made[i]);
    *list = head->made[i] = joined;
}

void gm_head_header(struct gm_request_head *head, const char *name, const char *value,
                    size_t value_len)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (wanted[i].len != len || strcasecmp(name, wanted[i].name) != 0)
            continue;
        const char **field = (const char **)((char *)head + wanted[i].offset);
        if (*field && i < LISTS) {
            add_line(head, i, field, value);
            return;
        }
        if (*field)
            head->repeated = wanted[i].name;
        *field = value;
        return;
    }
    if (strcasecmp(name, "Content-Length") == 0) {
        head->content_lengths++;
        head->content_length_bad |= !parse_length(value, value_len, &head->content_length);
    }
    if (strcasecmp(name, "Transfer-Encoding") == 0)
        head->chunked++;
}

void gm_head_query(struct gm_request_head *head, const char *name, size_t name_len,
                   const char *value, size_t value_len)
{
    if (head->queries > GM_QUERY_PARAMETERS_MAX)
        return;
    head->query[head->queries].name = name;
    head->query[head->queries].name_len = name_len;
    head->query[head->queries].value = value;
    head->query[head->queries++].value_len = value_len;
}

enum gm_status gm_head_check_queries(const struct gm_request_head *head, struct gm_error *err)
{
    if (head->queries <= GM_QUERY_PARAMETERS_MAX)
        return GM_OK;
    return gm_fail(err, GM_BAD_PARAMETER, "there are more than %d parameters",
                   GM_QUERY_PARAMETERS_MAX);
}

void gm_head_mend_target(char *target)
{
    char *query = strchr(target, '?'), *last = query;

    if (!query || !query[1])
        return;
    /* A final "&" begins no parameter. */
    for (char *at = query + 1; at[0] && at[1]; at++)
        last = *at == '&' ? at : last;
    if (!strchr(last + 1, '='))
        last[1] = '=';
}

void gm_head_target(struct gm_request_head *head, const char *target)
{
    size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
                    : strncasecmp(target, "https://", 8) == 0 ? 8
                                                              : 0;
    const char *host = target + scheme;
    size_t len = strcspn(host, "/");

    head->path = target;
    if (scheme == 0)
        return;
    head->path = host[len] ? host + len : "/";
    free(head->made[HOST]);
    head->host = head->made[HOST] = strndup(host, len);
    head->no_memory = head->no_memory || !head->host;
}

void gm_head_clear(struct gm_request_head *head)
{
    for (unsigned i = 0; i < GM_HEAD_MADE_MAX; i++)
        free(head->made[i]);
    memset(head->made, 0, sizeof head->made);
}

static const char hex[] = "0123456789abcdef";

/* The trace id of a W3C traceparent: version "-" 32 hex digits "-" 16 "-" 2, lower case, neither
 * id all zero, version not ff; later versions may go on after a dash. */
static bool trace_id(const char *text, char out[GM_REQUEST_ID_MAX])
{
    if (!text || strspn(text, hex) != 2 || memcmp(text, "ff", 2) == 0 || text[2] != '-' ||
        strspn(text + 3, hex) != 32 || text[35] != '-' || strspn(text + 36, hex) != 16 ||
        text[52] != '-' || strspn(text + 53, hex) != 2)
        return false;
    if (text[55] != '\0' && (memcmp(text, "00", 2) == 0 || text[55] != '-'))
        return false;
    if (strspn(text + 3, "0") >= 32 || strspn(text + 36, "0") >= 16)
        return false;
    memcpy(out, text + 3, 32);
    out[32] = '\0';
    return true;
}

static bool plain_id(const char *text, char out[GM_REQUEST_ID_MAX])
{
    size_t len = text ? strlen(text) : 0;

    if (len == 0 || len >= GM_REQUEST_ID_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i]))
            return false;
    memcpy(out, text, len + 1);
    return true;
}

/* The next number of a thread's generator: SplitMix64 (Steele, Lea and Flood, 2014), seeded by the
 * system. Ids must be distinct, not secret, and a system call for each takes longer. */
static uint64_t next_random(void)
{
    static _Thread_local uint64_t state;
    static _Thread_local bool seeded;

    if (!seeded) {
        ssize_t got = getrandom(&state, sizeof state, 0);
        (void)got; /* 8 bytes cannot fail once the pool is initialized */
        seeded = true;
    }
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void gm_request_id(const struct gm_request_head *head, char out[GM_REQUEST_ID_MAX])
{
    unsigned char bytes[16];

    if (trace_id(head->traceparent, out) || plain_id(head->request_id, out))
        return;
    for (size_t i = 0; i < sizeof bytes; i += sizeof(uint64_t))
        memcpy(bytes + i, &(uint64_t){next_random()}, sizeof(uint64_t));
    for (size_t i = 0; i < sizeof bytes; i++) {
        *out++ = hex[bytes[i] >> 4];
        *out++ = hex[bytes[i] & 15];
    }
    *out = '\0';
}
