/*
 * socket_info.h - what the kernel knows of the other end of a connection, and of the bytes on their
 * way to and from it. The HTTP library shows none of this.
 */
#ifndef GM_SERVER_HTTP_SOCKET_INFO_H
#define GM_SERVER_HTTP_SOCKET_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a read would give: > 0 bytes, 0 the end, < 0 nothing now. */
ssize_t gm_peer_unread(int socket);
/* Whether bytes have been written to it that its kernel has not acknowledged. */
bool gm_peer_unsent(int socket);
/* Bytes of all the connection's life, as they came and as they were acknowledged. false: no TCP,
 * or a kernel that does not count them. */
bool gm_peer_bytes(int socket, uint64_t *ret_received, uint64_t *ret_acknowledged);
/* Whether it has closed; `sending_too`: only count a close of both directions. */
bool gm_peer_gone(int socket, bool sending_too);
/* Closing the socket will drop what has not been sent, and tell the other end so. */
void gm_peer_drop_unsent(int socket);

#endif
