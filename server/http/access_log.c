#include "server/http/internal.h"

#include "server/clock.h"
#include "server/log.h"

#include <stdio.h>
#include <string.h>

/* On unknown paths the method is any string that the client sent. */
static const char *quote_method(char *out, size_t size, const char *method)
{
    bool plain = method[strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")] == '\0';

    return plain && strlen(method) < size ? method : gm_log_quote(out, size, method);
}

void gm_access_log(const struct gm_request *r, bool whole)
{
    char path[160], method[48], kernel[96] = "";
    double total_us = (double)(gm_now_ns() - r->account.started_ns) * 1e-3;
    enum gm_log_level level = GM_LOG_INFO;

    if (r->reply.http == 500)
        level = GM_LOG_ERROR;
    else if (r->reply.http == 200 && whole && r->route && r->route->probe)
        level = GM_LOG_DEBUG;
    if (r->reply.http == 200 && r->plan.variant && r->account.us[GM_STAGE_KERNEL] >= 0)
        snprintf(kernel, sizeof kernel, " kernel=%s device=%s kernel_us=%.1f",
                 r->plan.variant->name, r->plan.device->name, r->account.us[GM_STAGE_KERNEL]);
    gm_log(level, "request",
           "id=%s client=%s method=%s path=%s status=%d code=%s bytes_in=%llu bytes_out=%llu%s "
           "total_us=%.1f outcome=%s",
           r->id, r->head.address, quote_method(method, sizeof method, r->head.method),
           gm_log_quote(path, sizeof path, r->head.path), r->reply.http,
           r->reply.http == 0 ? "none" : gm_status_code(r->error.status),
           (unsigned long long)r->body.received, (unsigned long long)r->reply.body_len, kernel,
           total_us, whole ? "sent" : "aborted");
}
