/*
 * health.c - the health checks /healthz (liveness) and /readyz (readiness).
 *
 * Liveness fails only for what a restart fixes, never for overload. Readiness fails if new work
 * would be refused.
 */
#include "server/request/reply.h"
#include "server/request/request.h"

#include <string.h>

static enum gm_progress reply_ok(struct gm_request *r)
{
    return gm_request_reply(r, "text/plain", strdup("ok\n"));
}

static enum gm_progress fail_lost(struct gm_request *r)
{
    struct gm_error error;

    gm_fail(&error, GM_DEVICE_LOST, "a device has failed and gemmd is about to restart");
    return gm_request_fail(r, &error);
}

enum gm_progress gm_handle_healthz(struct gm_request *r)
{
    return gm_devices_alive(&r->server->devices) ? reply_ok(r) : fail_lost(r);
}

enum gm_progress gm_handle_readyz(struct gm_request *r)
{
    struct gm_error error;

    if (atomic_load(&r->server->phase) != GM_PHASE_SERVING) {
        gm_fail(&error, GM_DRAINING, "gemmd is shutting down");
        return gm_request_fail(r, &error);
    }
    return gm_devices_alive(&r->server->devices) ? reply_ok(r) : fail_lost(r);
}
