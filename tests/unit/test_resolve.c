/* Names of hosts, on a system that does not even know localhost: a minimal one has no /etc/hosts.
 */
#include "server/process.h"
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static unsigned asked; /* for a name */

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret);

/* Knows numbers alone. */
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    struct addrinfo numeric = *hints;

    numeric.ai_flags |= AI_NUMERICHOST;
    int fault = __real_getaddrinfo(host, port, &numeric, ret);
    asked += fault != 0;
    return fault;
}

/* Whether `host` is `want`, port 8080. */
static bool is(const char *host, const char *want)
{
    struct addrinfo *found;
    char text[INET6_ADDRSTRLEN] = "";

    if (gm_resolve(host, "8080", 0, &found) != 0)
        return false;
    const struct sockaddr_in *four = (const struct sockaddr_in *)found->ai_addr;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)found->ai_addr;
    bool is_four = found->ai_family == AF_INET;
    inet_ntop(found->ai_family,
              is_four ? (const void *)&four->sin_addr : (const void *)&six->sin6_addr, text,
              sizeof text);
    bool right = ntohs(is_four ? four->sin_port : six->sin6_port) == 8080 &&
                 found->ai_socktype == SOCK_STREAM && strcmp(text, want) == 0;
    freeaddrinfo(found);
    return right;
}

int main(void)
{
    struct addrinfo *found;

    CHECK(is("127.0.0.2", "127.0.0.2"));
    CHECK(is("::1", "::1"));
    CHECK_EQ(asked, 0);
    CHECK(is("localhost", "127.0.0.1"));
    CHECK(is("LOCALHOST", "127.0.0.1"));
    CHECK_EQ(asked, 2); /* whoever knows it is believed */
    CHECK(gm_resolve("localhost.example", "8080", 0, &found) != 0);
    CHECK(gm_resolve("", "8080", 0, &found) != 0);
    CHECK(gm_resolve("localhost", "http", 0, &found) != 0);
    return check_report();
}
