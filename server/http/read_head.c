#include "server/http/internal.h"

#include "server/request/head.h"

#include <microhttpd.h>
#include <string.h>
#include <strings.h>

/* The library's pool entry for a header, parameter, cookie or trailer. */
#define POOL_ENTRY_BYTES 64

static enum MHD_Result take_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                   size_t name_len, const char *value, size_t value_len)
{
    struct gm_request_head *head = cls;

    (void)kind;
    if (name_len == 6 && strcasecmp(name, "Cookie") == 0)
        head->bytes += value_len; /* the library copies it, to parse it */
    gm_head_header(head, name, value ? value : "", value ? value_len : 0);
    return MHD_YES;
}

static enum MHD_Result take_query(void *cls, enum MHD_ValueKind kind, const char *name,
                                  size_t name_len, const char *value, size_t value_len)
{
    (void)kind;
    gm_head_query(cls, name, name_len, value ? value : "", value ? value_len : 0);
    return MHD_YES; /* continue: the number of parameters is needed */
}

static enum MHD_Result take_trailer(void *cls, enum MHD_ValueKind kind, const char *name,
                                    size_t name_len, const char *value, size_t value_len)
{
    struct gm_request_head *head = cls;

    (void)kind;
    (void)name;
    (void)value;
    head->bytes += name_len + value_len + 4; /* the name's ": " and the CRLF */
    return MHD_YES;
}

void gm_http_head(struct MHD_Connection *connection, const char *url, const char *method,
                  const char *version, struct gm_request_head *ret)
{
    *ret = (struct gm_request_head){.method = method,
                                    .http_1_0 = strcmp(version, "HTTP/1.0") == 0,
                                    .content_length = GM_SIZE_UNKNOWN};
    /* The library reuses one buffer: each call overwrites the last result. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    ret->client = gm_client_of(info ? info->client_addr : NULL);
    ret->loopback = gm_client_is_loopback(info ? info->client_addr : NULL);
    gm_client_text(info ? info->client_addr : NULL, ret->address);
    int entries = MHD_get_connection_values_n(connection, MHD_HEADER_KIND, take_header, ret) +
                  MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, take_query, ret) +
                  MHD_get_connection_values_n(connection, MHD_COOKIE_KIND, NULL, NULL);
    gm_head_target(ret, url);
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    ret->bytes += (info ? info->header_size : 0) + (uint64_t)entries * POOL_ENTRY_BYTES;
}

void gm_http_head_trailers(struct MHD_Connection *connection, struct gm_request_head *head)
{
    int trailers = MHD_get_connection_values_n(connection, MHD_FOOTER_KIND, take_trailer, head);

    head->bytes += (uint64_t)trailers * POOL_ENTRY_BYTES;
}

void *gm_http_head_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    (void)cls;
    (void)connection;
    gm_head_mend_target((char *)(uintptr_t)target); /* the library's own buffer, not constant */
    return NULL;
}

size_t gm_http_head_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    const char *escape = strchr(text, '%');

    if (!escape || strstr(escape, "%00") || strcasestr(escape, "%2f"))
        return strlen(text);
    return MHD_http_unescape(text);
}
