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

/* Connects to where --listen HOST:PORT listens; a wildcard address means loopback. GM_OK if a
 * complete answer with status 200 arrives by until_ns, or 401: it asks for a key. */
enum gm_status gm_probe(const char *host, const char *port, int64_t until_ns, struct gm_error *err);

#endif
