#include "server/routes.h"

#include "server/handlers.h"
#include "server/stats.h"

#include <stdio.h>
#include <string.h>

static const struct gm_route routes[] = {
    {"POST", "/v1/transpose", GM_BODY_OPERANDS, GM_OP_TRANSPOSE, gm_handle_op},
    {"POST", "/v1/matmul", GM_BODY_OPERANDS, GM_OP_MATMUL, gm_handle_op},
    {"GET", "/v1/kernels", GM_BODY_NONE, 0, gm_handle_kernels},
    {"GET", "/v1/devices", GM_BODY_NONE, 0, gm_handle_devices},
    {"GET", "/v1/stats", GM_BODY_NONE, 0, gm_handle_stats},
    {"GET", "/metrics", GM_BODY_NONE, 0, gm_handle_metrics},
    {"GET", "/healthz", GM_BODY_NONE, 0, gm_handle_healthz},
    {"GET", "/readyz", GM_BODY_NONE, 0, gm_handle_readyz},
};
#define ROUTE_COUNT (sizeof routes / sizeof *routes)
_Static_assert(ROUTE_COUNT < GM_ROUTES_MAX, "counters for each route, and for what has none");

const struct gm_route *gm_route_at(size_t index)
{
    return index < ROUTE_COUNT ? &routes[index] : NULL;
}

size_t gm_route_count(void)
{
    return ROUTE_COUNT;
}

size_t gm_route_index(const struct gm_route *route)
{
    return route ? (size_t)(route - routes) : ROUTE_COUNT;
}

static bool method_matches(const char *method, const struct gm_route *route)
{
    return strcmp(method, route->method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

enum gm_status gm_route_find(const char *method, const char *path, const struct gm_route **ret,
                             char allow[GM_ALLOW_MAX], struct gm_error *err)
{
    size_t at = 0;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (strcmp(path, routes[i].path) != 0)
            continue;
        if (method_matches(method, &routes[i])) {
            *ret = &routes[i];
            return GM_OK;
        }
        bool get = strcmp(routes[i].method, "GET") == 0;
        at += (size_t)snprintf(allow + at, GM_ALLOW_MAX - at, "%s%s%s", at ? ", " : "",
                               routes[i].method, get ? ", HEAD" : "");
    }
    if (at > 0)
        return gm_fail(err, GM_METHOD_NOT_ALLOWED, "%.100s takes %s, not %.20s", path, allow,
                       method);
    char paths[256] = "";
    at = 0;
    for (size_t i = 0; i < ROUTE_COUNT && at < sizeof paths; i++)
        at +=
            (size_t)snprintf(paths + at, sizeof paths - at, "%s%s", i ? ", " : "", routes[i].path);
    return gm_fail(err, GM_NOT_FOUND, "there is nothing at %.100s; there is: %s", path, paths);
}
