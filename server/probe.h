/*
 * probe.h - checks whether a gemmd is alive: sends GET /healthz as a client would.
 *
 * For `gemmd --probe`, a health check for containers without a shell or curl, and for the service
 * manager's watchdog.
 */
#ifndef GM_SERVER_PROBE_H
#define GM_SERVER_PROBE_H

#include "proto/status.h"

#include <stdint.h>

struct gm_config;
struct gm_listen;

/* Where to ask the gemmd that runs with these options: a place without TLS, if there is one.
 * `plain` is set where no TLS is spoken. */
void gm_probe_place(const struct gm_config *config, struct gm_listen *ret, unsigned *ret_index);

/*
 * Connects to where gemmd listens; a wildcard address means loopback. GM_OK if a complete answer
 * with status 200 arrives by until_ns. Over TLS it does not check the certificate. A daemon that
 * asks for the client's certificate, which the probe has not, is alive if it says so.
 */
enum gm_status gm_probe(const struct gm_listen *at, int64_t until_ns, struct gm_error *err);

#endif
