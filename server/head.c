#include "server/head.h"

#include <string.h>
#include <strings.h>

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

void gm_head_header(struct gm_request_head *head, const char *name, const char *value,
                    size_t value_len)
{
    const struct {
        const char *name, **field;
    } wanted[] = {{"Host", &head->host},
                  {"Content-Type", &head->content_type},
                  {"Content-Encoding", &head->content_encoding},
                  {"Expect", &head->expect},
                  {"traceparent", &head->traceparent},
                  {"X-Request-Id", &head->request_id}};

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (strcasecmp(name, wanted[i].name) != 0)
            continue;
        if (*wanted[i].field)
            head->repeated = wanted[i].name;
        *wanted[i].field = value;
    }
    if (strcasecmp(name, "Content-Length") == 0) {
        head->content_lengths++;
        head->content_length_bad |= !parse_length(value, value_len, &head->content_length);
    }
    if (strcasecmp(name, "Transfer-Encoding") == 0)
        head->chunked++;
    for (unsigned i = 0; i < GM_ACCEPT_LINES_MAX && strcasecmp(name, "Accept") == 0; i++) {
        if (!head->accept[i]) {
            head->accept[i] = value;
            break;
        }
    }
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

void gm_head_mend_target(char *target)
{
    char *query = strchr(target, '?'), *last = query;

    if (!query || !query[1])
        return;
    /* An "&" at the very end begins none. */
    for (char *at = query + 1; at[0] && at[1]; at++)
        last = *at == '&' ? at : last;
    if (!strchr(last + 1, '='))
        last[1] = '=';
}

const char *gm_head_path(const char *target)
{
    if (strncasecmp(target, "http://", 7) != 0)
        return target;
    const char *slash = strchr(target + 7, '/');
    return slash ? slash : "/";
}
