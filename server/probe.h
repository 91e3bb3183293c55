/*
 * probe.h - asks a gemmd whether it is alive, over HTTP and so by the way that clients come:
 * GET /healthz. For `gemmd --probe`, with which a container checks itself without a shell or
 * curl in it, and for the watchdog of the service manager.
 */
#ifndef GM_SERVER_PROBE_H
#define GM_SERVER_PROBE_H

#include "proto/status.h"

#include <stdint.h>

/* Where --listen HOST:PORT listens. An address that stands for all of the machine's own is asked
 * by its loopback. GM_OK if the answer is 200 and has come, all of it, by then. */
enum gm_status gm_probe(const char *host, const char *port, int64_t until_ns, struct gm_error *err);

#endif
