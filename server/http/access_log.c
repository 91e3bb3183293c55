#include "server/http/internal.h"

#include "proto/number/number.h"
#include "server/clock.h"
#include "server/log.h"

#include <math.h>
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

/* The pairs of a line: " key=value" after one another. What does not fit is left out. */
struct pairs {
    char text[1024];
    size_t len;
};

static void add(struct pairs *pairs, const char *key, const char *value, size_t len)
{
    size_t key_len = strlen(key);

    if (key_len + len > sizeof pairs->text - pairs->len)
        return;
    memcpy(pairs->text + pairs->len, key, key_len);
    memcpy(pairs->text + pairs->len + key_len, value, len);
    pairs->len += key_len + len;
}

static void add_text(struct pairs *pairs, const char *key, const char *value)
{
    add(pairs, key, value, strlen(value));
}

static void add_number(struct pairs *pairs, const char *key, uint64_t number)
{
    char digits[24];

    add(pairs, key, digits, (size_t)(gm_number_writer_of(GM_U64)(digits, &number) - digits));
}

/* With one decimal. */
static void add_us(struct pairs *pairs, const char *key, double us)
{
    uint64_t tenths = us > 0 ? (uint64_t)llround(us * 10) : 0;
    const char decimal = (char)('0' + tenths % 10);

    add_number(pairs, key, tenths / 10);
    add(pairs, ".", &decimal, 1);
}

void gm_access_log(const struct gm_request *r, bool whole)
{
    char path[160], method[48];
    enum gm_log_level level = GM_LOG_INFO;
    struct pairs pairs = {.len = 0};
    const struct gm_refusal *refusal = &r->connection.refused;
    const bool refused = refusal->status != GM_OK;
    const enum gm_status status = refused ? refusal->status : r->error.status;
    const int http = refused ? gm_status_http(status) : r->reply.http;

    if (http == 500)
        level = GM_LOG_ERROR;
    else if (http == 200 && whole && r->route && r->route->probe)
        level = GM_LOG_DEBUG;
    audit(r);
    if (!gm_log_writes(level))
        return;
    add_text(&pairs, "id=", r->id);
    add_text(&pairs, " client=", r->head.address);
    if (*r->caller.name)
        add_text(&pairs, " key=", r->caller.name);
    add_text(&pairs, " method=", quote_method(method, sizeof method, r->head.method));
    add_text(&pairs, " path=", gm_log_quote(path, sizeof path, r->head.path));
    add_number(&pairs, " status=", (uint64_t)http);
    add_text(&pairs, " code=", http == 0 ? "none" : gm_status_code(status));
    add_number(&pairs, " bytes_in=", r->body.received);
    add_number(&pairs, " bytes_out=", refused ? refusal->body_len : r->reply.body_len);
    if (http == 200 && r->plan.variant && r->account.us[GM_STAGE_KERNEL] >= 0) {
        add_text(&pairs, " kernel=", r->plan.variant->name);
        add_text(&pairs, " device=", r->plan.device->name);
        add_us(&pairs, " kernel_us=", r->account.us[GM_STAGE_KERNEL]);
    }
    add_us(&pairs, " total_us=", (double)(gm_now_ns() - r->account.started_ns) * 1e-3);
    add_text(&pairs, " outcome=", whole ? "sent" : "aborted");
    gm_log_pairs(level, "request", pairs.text, pairs.len);
}
