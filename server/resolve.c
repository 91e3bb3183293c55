#include "server/resolve.h"

#include <strings.h>
#include <sys/socket.h>

int gm_resolve(const char *host, const char *port, int flags, struct addrinfo **ret)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    int fault = getaddrinfo(host, port, &hints, ret);

    if (fault != 0 && strcasecmp(host, "localhost") == 0)
        fault = getaddrinfo("127.0.0.1", port, &hints, ret);
    return fault;
}
