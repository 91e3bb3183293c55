/*
 * resolve.h - the addresses of a host's name, for the listener and the probe.
 */
#ifndef GM_SERVER_RESOLVE_H
#define GM_SERVER_RESOLVE_H

#include <netdb.h>

/* As getaddrinfo() for TCP and a numeric port, with AI_PASSIVE in `flags` or 0. `localhost` is
 * 127.0.0.1 where the system does not know it: a minimal one has no /etc/hosts. Any thread. The
 * caller frees *ret with freeaddrinfo() where 0 is returned. */
int gm_resolve(const char *host, const char *port, int flags, struct addrinfo **ret);

#endif
