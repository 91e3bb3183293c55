/*
 * health.c - the health checks of /v1 and /v2: liveness and readiness.
 *
 * Liveness fails only for what a restart fixes, never for overload. Readiness fails if new work
 * would be refused.
 */
#include "server/request/reply.h"
#include "server/request/request.h"

#include <string.h>

static enum gm_status check_alive(struct gm_server *server, struct gm_error *err)
{
    return gm_devices_alive(&server->devices)
               ? GM_OK
               : gm_fail(err, GM_DEVICE_LOST, "a device has failed and gemmd is about to restart");
}

enum gm_status gm_check_ready(struct gm_server *server, struct gm_error *err)
{
    return atomic_load(&server->phase) == GM_PHASE_SERVING
               ? check_alive(server, err)
               : gm_fail(err, GM_DRAINING, "gemmd is shutting down");
}

static enum gm_progress
reply(struct gm_request *r, enum gm_status (*check)(struct gm_server *server, struct gm_error *err),
      const char *media_type, const char *text)
{
    struct gm_error error;

    return check(r->server, &error) == GM_OK ? gm_request_reply(r, media_type, strdup(text))
                                             : gm_request_fail(r, &error);
}

enum gm_progress gm_handle_healthz(struct gm_request *r)
{
    return reply(r, check_alive, "text/plain", "ok\n");
}

enum gm_progress gm_handle_readyz(struct gm_request *r)
{
    return reply(r, gm_check_ready, "text/plain", "ok\n");
}

enum gm_progress gm_handle_v2_live(struct gm_request *r)
{
    return reply(r, check_alive, "application/json", "{\"live\":true}");
}

enum gm_progress gm_handle_v2_ready(struct gm_request *r)
{
    return reply(r, gm_check_ready, "application/json", "{\"ready\":true}");
}
