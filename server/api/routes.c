#include "server/api/routes.h"

#include "server/api/stats.h"

#include <stdio.h>
#include <string.h>

#define RUN(op_kind, run_path)                                                                     \
    {                                                                                              \
        .method = "POST", .roles = GM_ROLE_USE, .path = run_path, .body = GM_BODY_OPERANDS,        \
        .op = GM_OP_##op_kind, .plan = gm_handle_op_plan, .handle = gm_handle_op,                  \
        .ran = gm_handle_op_ran                                                                    \
    }
#define EVAL(eval_path)                                                                            \
    {                                                                                              \
        .method = "POST", .roles = GM_ROLE_USE, .path = eval_path, .body = GM_BODY_EVAL,           \
        .op = GM_OP_EVAL, .plan = gm_handle_eval_plan, .handle = gm_handle_eval,                   \
        .ran = gm_handle_op_ran                                                                    \
    }
#define COMPARE(op_kind, compare_path)                                                             \
    {                                                                                              \
        .method = "POST", .roles = GM_ROLE_USE, .path = compare_path, .body = GM_BODY_OPERANDS,    \
        .op = GM_OP_##op_kind, .reports = GM_DRAWN_REPORTS, .plan = gm_handle_compare_plan,        \
        .handle = gm_handle_compare, .drop = gm_handle_compare_drop                                \
    }
#define EXPLAIN(how, what, op_kind, explain_path)                                                  \
    {                                                                                              \
        .method = how, .roles = GM_ROLE_USE, .path = explain_path, .body = what,                   \
        .op = GM_OP_##op_kind, .traces = true, .by_shape = true, .reports = GM_DRAWN_REPORTS,      \
        .plan = gm_handle_explain_plan, .handle = gm_handle_explain, .ran = gm_handle_explain_ran  \
    }
#define CHOOSE(op_kind, choose_path)                                                               \
    {                                                                                              \
        .method = "GET", .roles = GM_ROLE_USE, .path = choose_path, .body = GM_BODY_NONE,          \
        .op = GM_OP_##op_kind, .by_shape = true, .reports = GM_CHOOSE_REPORTS,                     \
        .plan = gm_handle_choose_plan, .handle = gm_handle_choose                                  \
    }
#define INFER(op_kind, model)                                                                      \
    {                                                                                              \
        .method = "POST", .roles = GM_ROLE_USE, .path = "/v2/models/" model "[/versions/1]/infer", \
        .body = GM_BODY_INFER, .op = GM_OP_##op_kind, .begin = gm_handle_infer_begin,              \
        .plan = gm_handle_op_plan, .handle = gm_handle_op, .ran = gm_handle_op_ran                 \
    }
#define ACT(act_path, lets_in, what, act)                                                          \
    {                                                                                              \
        .method = "POST", .roles = lets_in, .path = act_path, .body = what, .handle = act          \
    }
#define REGION(kind)                                                                               \
    ACT("/v2/" kind "sharedmemory/region/{region}/register", GM_ROLE_USE, GM_BODY_DOCUMENT,        \
        gm_handle_region_register),                                                                \
        ACT("/v2/" kind "sharedmemory[/region/{region}]/unregister", GM_ROLE_USE, GM_BODY_NONE,    \
            gm_handle_region_unregister)
#define MATRIX(how, what, do_begin, do_plan, act)                                                  \
    {                                                                                              \
        .method = how, .roles = GM_ROLE_USE, .path = "/v1/matrices/{name}", .body = what,          \
        .op = GM_OP_COPY, .begin = do_begin, .plan = do_plan, .handle = act                        \
    }
#define PAGE(page_path, page, is_probe, lets_in)                                                   \
    {.method = "GET",                                                                              \
     .path = page_path,                                                                            \
     .body = GM_BODY_NONE,                                                                         \
     .roles = lets_in,                                                                             \
     .probe = is_probe,                                                                            \
     .handle = page},

static const struct gm_route routes[] = {
    RUN(TRANSPOSE, "/v1/transpose"),
    RUN(MATMUL, "/v1/matmul"),
    RUN(ADD, "/v1/add"),
    RUN(FLIP, "/v1/flip"),
    EVAL("/v1/eval"),
    COMPARE(TRANSPOSE, "/v1/compare/transpose"),
    COMPARE(MATMUL, "/v1/compare/matmul"),
    COMPARE(ADD, "/v1/compare/add"),
    COMPARE(FLIP, "/v1/compare/flip"),
    EXPLAIN("GET", GM_BODY_NONE, TRANSPOSE, "/v1/explain/transpose"),
    EXPLAIN("POST", GM_BODY_OPTIONAL, TRANSPOSE, "/v1/explain/transpose"),
    EXPLAIN("GET", GM_BODY_NONE, MATMUL, "/v1/explain/matmul"),
    EXPLAIN("POST", GM_BODY_OPTIONAL, MATMUL, "/v1/explain/matmul"),
    EXPLAIN("GET", GM_BODY_NONE, ADD, "/v1/explain/add"),
    EXPLAIN("POST", GM_BODY_OPTIONAL, ADD, "/v1/explain/add"),
    EXPLAIN("GET", GM_BODY_NONE, FLIP, "/v1/explain/flip"),
    EXPLAIN("POST", GM_BODY_OPTIONAL, FLIP, "/v1/explain/flip"),
    EXPLAIN("GET", GM_BODY_NONE, COPY, "/v1/explain/copy"),
    EXPLAIN("POST", GM_BODY_OPTIONAL, COPY, "/v1/explain/copy"),
    CHOOSE(TRANSPOSE, "/v1/choose/transpose"),
    CHOOSE(MATMUL, "/v1/choose/matmul"),
    CHOOSE(ADD, "/v1/choose/add"),
    CHOOSE(FLIP, "/v1/choose/flip"),
    MATRIX("GET", GM_BODY_NONE, NULL, gm_handle_put_plan, gm_handle_get),
    MATRIX("PUT", GM_BODY_OPERANDS, gm_handle_put_begin, gm_handle_put_plan, gm_handle_put),
    MATRIX("DELETE", GM_BODY_NONE, NULL, NULL, gm_handle_delete),
    GM_PAGES(PAGE)
    /* POST of the Open Inference Protocol v2. */
    INFER(TRANSPOSE, "transpose{variant}"),
    INFER(MATMUL, "matmul{variant}"),
    INFER(ADD, "add{variant}"),
    INFER(FLIP, "flip{variant}"),
    INFER(COPY, "{model}"), /* any other name: not found */
    ACT("/v2/repository[/{repository}]/index", GM_ROLES_ANY, GM_BODY_NONE, gm_handle_v2_index),
    ACT("/v2/repository/models/{model}/load", GM_ROLE_USE, GM_BODY_NONE, gm_handle_v2_load),
    ACT("/v2/repository/models/{model}/unload", GM_ROLE_USE, GM_BODY_NONE, gm_handle_v2_load),
    REGION("system"),
    REGION("cuda"),
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
    size_t index = route ? 0 : ROUTE_COUNT;

    while (route && strcmp(routes[index].path, route->path) != 0)
        index++;
    return index;
}

static bool path_matches(const char *pattern, const char *path)
{
    for (const char *p = pattern; *p; p++) {
        if (*p == '[') {
            if (path_matches(p + 1, path))
                return true;
            p = strchr(p, ']');
        } else if (*p == '{') {
            size_t len = strcspn(path, "/");
            if (len == 0 && p > pattern && p[-1] == '/')
                return false;
            path += len;
            p = strchr(p, '}');
        } else if (*p != ']') {
            if (*p != *path)
                return false;
            path++;
        }
    }
    return *path == '\0';
}

bool gm_path_is_v2(const char *path)
{
    return strncmp(path, "/v2", 3) == 0 && (path[3] == '\0' || path[3] == '/');
}

static bool method_matches(const char *method, const struct gm_route *route)
{
    return strcmp(method, route->method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

/* Parts of a page, which nobody asks for by hand. */
static bool is_part(const char *path)
{
    const char *last = strrchr(path, '/');

    return strncmp(path, "/console/", 9) == 0 || (last > path && strchr(last, '.'));
}

/* The path before the operation's name, where there is a route of each operation below a folder of
 * its own: such are listed once, with {op}. Else 0. */
static size_t family_length(const struct gm_route *route)
{
    const char *folder = strchr(route->path + 1, '/');
    const char *name = route->plan && folder ? strchr(folder + 1, '/') : NULL;
    const char *op = gm_op_name(route->op);

    return name && strncmp(name + 1, op, strlen(op)) == 0 ? (size_t)(name + 1 - route->path) : 0;
}

/* What there is, without what nobody asks for by hand. It ends in ... where there is more. */
static void list_paths(bool v2, char *buf, size_t size)
{
    const char *before = "";
    size_t at = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < ROUTE_COUNT && at < size; i++) {
        const char *path = routes[i].path;
        size_t family = family_length(&routes[i]);
        if (gm_route_index(&routes[i]) != i || is_part(path) || gm_path_is_v2(path) != v2)
            continue;
        if (family == 0)
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", path);
        else if (strncmp(before, path, family) != 0)
            at += (size_t)snprintf(buf + at, size - at, "%s%.*s{op}%s", at ? ", " : "", (int)family,
                                   path, path + family + strlen(gm_op_name(routes[i].op)));
        before = family > 0 ? path : before;
    }
    if (at >= size)
        memcpy(buf + size - 4, "...", 4);
}

enum gm_status gm_route_find(const char *method, const char *path, const struct gm_route **ret,
                             char allow[GM_ALLOW_MAX], struct gm_error *err)
{
    size_t at = 0;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!path_matches(routes[i].path, path))
            continue;
        if (method_matches(method, &routes[i])) {
            *ret = &routes[i];
            return GM_OK;
        }
        bool get = strcmp(routes[i].method, "GET") == 0;
        if (at > 0 && strstr(allow, routes[i].method))
            continue;
        at += (size_t)snprintf(allow + at, GM_ALLOW_MAX - at, "%s%s%s", at ? ", " : "",
                               routes[i].method, get ? ", HEAD" : "");
    }
    if (at > 0)
        return gm_fail(err, GM_METHOD_NOT_ALLOWED, "%.100s takes %s, not %.20s", path, allow,
                       method);
    char paths[GM_ERROR_DETAIL_MAX - 128];
    list_paths(gm_path_is_v2(path), paths, sizeof paths);
    return gm_fail(err, GM_NOT_FOUND, "there is nothing at %.100s; there is: %s", path, paths);
}
