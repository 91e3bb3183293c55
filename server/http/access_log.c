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

/* One line for each request that was not let in, and for what only an admin may do. */
static void audit(const struct gm_request *r)
{
    char reason[2 * GM_ERROR_DETAIL_MAX], path[160], method[48];
    bool refused = false;

    switch (r->error.status) {
    case GM_UNAUTHORIZED:
    case GM_FORBIDDEN:
    case GM_CROSS_ORIGIN:
    case GM_UNKNOWN_HOST:
    case GM_QUOTA_EXCEEDED:
        refused = true;
        break;
    default:
        break;
    }
    /* A probe without a key is no attempt at anything; its manager repeats it for ever. */
    if (refused && !r->head.authorization && r->route && (r->route->roles & GM_ROLE_PROBE))
        return;
    if (!refused && !r->caller.acted_as_admin)
        return;
    gm_log(GM_LOG_WARN, "audit",
           "id=%s client=%s key=%s method=%s path=%s outcome=%s code=%s reason=%s", r->id,
           r->head.address, *r->caller.name ? r->caller.name : "none",
           quote_method(method, sizeof method, r->head.method),
           gm_log_quote(path, sizeof path, r->head.path), refused ? "refused" : "done",
           gm_status_code(r->error.status),
           gm_log_quote(reason, sizeof reason,
                        refused ? r->error.detail : "an admin reached what is of another key"));
}

void gm_access_log(const struct gm_request *r, bool whole)
{
    char path_text[160], method_text[48], kernel[96] = "", key[GM_KEY_NAME_MAX + 8] = "";
    double total_us = (double)(gm_now_ns() - r->account.started_ns) * 1e-3;
    enum gm_log_level level = GM_LOG_INFO;

    if (r->reply.http == 500)
        level = GM_LOG_ERROR;
    else if (r->reply.http == 200 && whole && r->route && r->route->probe)
        level = GM_LOG_DEBUG;
    audit(r);
    if (!gm_log_writes(level))
        return;
    if (r->reply.http == 200 && r->plan.variant && r->account.us[GM_STAGE_KERNEL] >= 0)
        snprintf(kernel, sizeof kernel, " kernel=%s device=%s kernel_us=%.1f",
                 r->plan.variant->name, r->plan.device->name, r->account.us[GM_STAGE_KERNEL]);
    if (*r->caller.name)
        snprintf(key, sizeof key, " key=%s", r->caller.name);
    const char *method = quote_method(method_text, sizeof method_text, r->head.method);
    const char *path = gm_log_quote(path_text, sizeof path_text, r->head.path);
    gm_log(level, "request",
           "id=%s client=%s%s method=%s path=%s status=%d code=%s bytes_in=%llu bytes_out=%llu%s "
           "total_us=%.1f outcome=%s",
           r->id, r->head.address, key, method, path, r->reply.http,
           r->reply.http == 0 ? "none" : gm_status_code(r->error.status),
           (unsigned long long)r->body.received, (unsigned long long)r->reply.body_len, kernel,
           total_us, whole ? "sent" : "aborted");
}
