#include "server/http/internal.h"

#include "server/api/routes.h"
#include "server/log.h"

#include <microhttpd.h>
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
    else if (strstr(text, "handshake"))
        gm_stats_add(stats, GM_COUNT_NO_TLS, 1);
}

/* Level debug: the library also reports every disconnect. */
void gm_library_log(struct gm_stats *stats, const char *format, va_list args)
{
    char text[512];

    vsnprintf(text, sizeof text, format, args);
    count(stats, text);
    gm_log_detail(GM_LOG_DEBUG, "http", text);
}

bool gm_library_is_known(void)
{
    return MHD_get_version_bin() == MHD_VERSION;
}
