#include "server/library_log.h"

#include "server/log.h"
#include "server/routes.h"

#include <stdio.h>
#include <string.h>

static void count(struct gm_stats *stats, const char *text)
{
    unsigned status;

    if (sscanf(text, "Error processing request (HTTP response code is %u ", &status) == 1 &&
        status < GM_HTTP_STATUS_MAX)
        atomic_fetch_add_explicit(&stats->answered[gm_route_count()][status], 1,
                                  memory_order_relaxed);
    else if (strstr(text, "request line") || strstr(text, "before the request"))
        gm_stats_add(stats, GM_COUNT_NO_HTTP, 1);
}

/* It also tells of every disconnect: of interest only to who is looking for one. */
void gm_library_log(struct gm_stats *stats, const char *format, va_list args)
{
    char text[512], quoted[600];

    vsnprintf(text, sizeof text, format, args);
    count(stats, text);
    gm_log(GM_LOG_DEBUG, "http", "detail=%s", gm_log_quote(quoted, sizeof quoted, text));
}
