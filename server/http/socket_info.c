#include "server/http/connections.h"

#include <linux/tcp.h> /* its tcp_info has more members than the C library's */
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

ssize_t gm_socket_unread(int socket)
{
    char byte;

    return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

bool gm_socket_unsent(int socket)
{
    int bytes = 0;

    return ioctl(socket, TIOCOUTQ, &bytes) == 0 && bytes > 0;
}

bool gm_socket_bytes(int socket, uint64_t *ret_received, uint64_t *ret_acknowledged)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
        return false;
    *ret_received = info.tcpi_bytes_received;
    *ret_acknowledged = info.tcpi_bytes_acked;
    return true;
}

bool gm_socket_gone(int socket, bool sending_too)
{
    struct pollfd p = {.fd = socket, .events = POLLRDHUP};

    if (poll(&p, 1, 0) <= 0)
        return false;
    return (p.revents & (POLLHUP | POLLERR)) || (!sending_too && (p.revents & POLLRDHUP));
}

void gm_socket_drop_unsent(int socket)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

bool gm_socket_send_last(int socket, const void *bytes, size_t len)
{
    bool sent = send(socket, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;

    if (sent)
        shutdown(socket, SHUT_WR);
    return sent;
}
