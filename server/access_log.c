#include "server/access_log.h"

#include "server/handlers.h"
#include "server/log.h"

#include <stdio.h>

/* Probes and scrapes come every few seconds for ever: that they went well is no news. */
static bool is_probe(const struct gm_route *route)
{
    return route && (route->handle == gm_handle_healthz || route->handle == gm_handle_readyz ||
                     route->handle == gm_handle_metrics);
}

void gm_access_log(const struct gm_request *r, bool whole)
{
    char path[160], kernel[96] = "";
    enum gm_log_level level = GM_LOG_INFO;

    if (r->reply.http == 500)
        level = GM_LOG_ERROR;
    else if (r->reply.http == 200 && whole && is_probe(r->route))
        level = GM_LOG_DEBUG;
    if (r->reply.http == 200 && r->variant && r->account.us[GM_STAGE_KERNEL] >= 0)
        snprintf(kernel, sizeof kernel, " kernel=%s device=%s kernel_us=%.1f", r->variant->name,
                 r->device->name, r->account.us[GM_STAGE_KERNEL]);
    gm_log(level, "request",
           "id=%s method=%s path=%s status=%d code=%s bytes_in=%llu bytes_out=%llu%s outcome=%s",
           r->id, gm_route_index(r->route) < gm_route_count() ? r->head.method : "other",
           gm_log_quote(path, sizeof path, r->head.path), r->reply.http,
           r->reply.http == 0 ? "none" : gm_status_code(r->error.status),
           (unsigned long long)r->received,
           (unsigned long long)(r->reply.head_len + r->reply.body_len), kernel,
           whole ? "sent" : "aborted");
}
