/*
 * probe.h - checks whether a gemmd is alive: sends GET /healthz as a client would.
 *
 * For `gemmd --probe`, a health check for containers without a shell or curl, and for the service
 * manager's watchdog. And finds the addresses of a host's name, as the listener does too.
 */
#ifndef GM_SERVER_PROBE_H
#define GM_SERVER_PROBE_H

#include "proto/status.h"

#include <netdb.h>
#include <stdint.h>

struct gm_config;
struct gm_listen;

/* Where to ask the gemmd that runs with these options: a place without TLS, if there is one.
 * `plain` is set where no TLS is spoken. */
void gm_probe_place(const struct gm_config *config, struct gm_listen *ret, unsigned *ret_index);

/*
 * Connects to where gemmd listens; a wildcard address means loopback. GM_OK if a complete answer
 * with status 200 arrives by until_ns, or 401: it asks for a key. Over TLS it does not check the
 * certificate. A daemon that asks for the client's certificate, which the probe has not, is alive
 * if it says so.
 */
enum gm_status gm_probe(const struct gm_listen *at, int64_t until_ns, struct gm_error *err);

/* As getaddrinfo() for TCP and a numeric port, with AI_PASSIVE in `flags` or 0. `localhost` is
 * 127.0.0.1 where the system does not know it: a minimal one has no /etc/hosts. Any thread. The
 * caller frees *ret with freeaddrinfo() where 0 is returned. */
int gm_resolve(const char *host, const char *port, int flags, struct addrinfo **ret);

#endif
