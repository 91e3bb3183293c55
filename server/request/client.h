/*
 * client.h - whose a request is, for those who share things out between clients: an opaque number.
 * The one place that says what a client is.
 */
#ifndef GM_SERVER_REQUEST_CLIENT_H
#define GM_SERVER_REQUEST_CLIENT_H

#include <stdint.h>
#include <sys/socket.h>

/*
 * The peer's address: of IPv4 all of it, of IPv6 the first 64 bits, which is what one subscriber
 * has. Ports do not count, so that many connections are no more than one. 0 where there is no
 * address. NULL is fine.
 */
uint64_t gm_client_of(const struct sockaddr *address);

/* The peer's address as people write it, without the port; an IPv4 one as such on any socket.
 * "unknown" where there is none. NULL is fine. */
#define GM_CLIENT_TEXT_MAX 46
void gm_client_text(const struct sockaddr *address, char out[GM_CLIENT_TEXT_MAX]);

#endif
