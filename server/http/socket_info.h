/*
 * socket_info.h - asks the kernel for the peer's state and the unread or unsent bytes of a socket.
 *
 * The HTTP library does not report them.
 */
#ifndef GM_SERVER_HTTP_SOCKET_INFO_H
#define GM_SERVER_HTTP_SOCKET_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a read would return: > 0 if there are bytes, 0 at the end of the stream, < 0 if there is
 * nothing yet. */
ssize_t gm_socket_unread(int socket);
/* Whether the peer has not yet acknowledged some written bytes. */
bool gm_socket_unsent(int socket);
/* Bytes received, and bytes acknowledged by the peer, since the connection began. Returns false if
 * the socket is not TCP, or the kernel does not count them. */
bool gm_socket_bytes(int socket, uint64_t *ret_received, uint64_t *ret_acknowledged);
/* Whether the peer has closed. sending_too: only if it has closed both directions. */
bool gm_socket_gone(int socket, bool sending_too);
/* Makes close() drop unsent bytes and reset the connection. */
void gm_socket_drop_unsent(int socket);

#endif
