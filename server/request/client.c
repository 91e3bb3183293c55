#include "server/request/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

uint64_t gm_client_of(const struct sockaddr *address)
{
    uint64_t client = 0;

    if (address && address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        return ntohl(v4.sin_addr.s_addr);
    }
    if (address && address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        /* An IPv4 client of a socket that takes both is the same client there. */
        unsigned from = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? 12 : 0;
        unsigned to = from > 0 ? 16 : 8;
        for (unsigned i = from; i < to; i++)
            client = client << 8 | v6.sin6_addr.s6_addr[i];
    }
    return client;
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
