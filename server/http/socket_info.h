/*
 * socket_info.h - asks the kernel about the peer of a connection and the bytes under way. The HTTP
 * library shows none of this.
 */
#ifndef GM_SERVER_HTTP_SOCKET_INFO_H
#define GM_SERVER_HTTP_SOCKET_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a read would return: > 0 bytes, 0 end of stream, < 0 nothing now. */
ssize_t gm_socket_unread(int socket);
/* Whether the peer has yet to acknowledge bytes that were written. */
bool gm_socket_unsent(int socket);
/* Bytes received, and bytes acknowledged by the peer, since the connection began. Returns false if
 * it is not TCP, or the kernel does not count them. */
bool gm_socket_bytes(int socket, uint64_t *ret_received, uint64_t *ret_acknowledged);
/* Whether the peer has closed; `sending_too`: in both directions. */
bool gm_socket_gone(int socket, bool sending_too);
/* Makes close() drop unsent bytes and reset the connection. */
void gm_socket_drop_unsent(int socket);

#endif
