/* The route table: what it finds, and what it says when it does not. */
#include "server/api/routes.h"
#include "server/api/stats.h"
#include "tests/unit/check.h"

#include <string.h>

/* A path that a row's pattern stands for: with "x" where it may be anything. */
static const char *example(const char *pattern, bool options)
{
    static char path[128];
    size_t len = 0;

    for (const char *p = pattern; *p; p++) {
        if (*p == '[' && !options)
            p = strchr(p, ']');
        else if (*p == '{') {
            path[len++] = 'x';
            p = strchr(p, '}');
        } else if (*p != '[' && *p != ']') {
            path[len++] = *p;
        }
    }
    path[len] = '\0';
    return path;
}

static void check_patterns(void)
{
    static const struct {
        const char *method, *path, *row; /* NULL: there is none */
    } rows[] = {
        {"GET", "/v2", "/v2"},
        {"GET", "/v2/", NULL},
        {"GET", "/v2/models/stats", "/v2/models/stats"},
        {"GET", "/v2/models/matmul.tiled@f16", "/v2/models/{model}[/versions/1]"},
        {"GET", "/v2/models/matmul/versions/1", "/v2/models/{model}[/versions/1]"},
        {"GET", "/v2/models/matmul/versions/2", NULL},
        {"GET", "/v2/models/", NULL},
        {"GET", "/v2/models//ready", NULL},
        {"GET", "/v2/models/a/versions/1/ready", "/v2/models/{model}[/versions/1]/ready"},
        {"POST", "/v2/models/matmul/infer", "/v2/models/matmul{variant}[/versions/1]/infer"},
        {"POST", "/v2/models/add@i32/versions/1/infer",
         "/v2/models/add{variant}[/versions/1]/infer"},
        {"POST", "/v2/models/nope/infer", "/v2/models/{model}[/versions/1]/infer"},
        {"POST", "/v2/models/matmul/infer/", NULL},
        {"POST", "/v2/repository/index", "/v2/repository[/{repository}]/index"},
        {"POST", "/v2/repository/r/index", "/v2/repository[/{repository}]/index"},
    };
    const struct gm_route *route;
    char allow[GM_ALLOW_MAX] = "";
    struct gm_error error;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        route = NULL;
        enum gm_status status = gm_route_find(rows[i].method, rows[i].path, &route, allow, &error);
        CHECK_EQ(status, rows[i].row ? GM_OK : GM_NOT_FOUND);
        if (route && rows[i].row)
            CHECK_STR(route->path, rows[i].row);
    }
    CHECK(gm_route_find("GET", "/v2/models/matmul/infer", &route, allow, &error) ==
          GM_METHOD_NOT_ALLOWED);
    CHECK_STR(allow, "POST"); /* once, though two rows have the path */
    CHECK(gm_route_find("GET", "/v2/x", &route, allow, &error) == GM_NOT_FOUND);
    CHECK(strstr(error.detail, "/v2/health/live") && !strstr(error.detail, "/v1/"));
}

int main(void)
{
    const struct gm_route *route = NULL;
    char allow[GM_ALLOW_MAX] = "";
    struct gm_error error;

    CHECK(gm_route_count() < GM_ROUTES_MAX); /* counters have room for all and one more */
    for (size_t i = 0; gm_route_at(i); i++) {
        const struct gm_route *row = gm_route_at(i);
        bool get = strcmp(row->method, "GET") == 0;
        const char *path = example(row->path, i % 2 == 0);
        CHECK(gm_route_find(row->method, path, &route, allow, &error) == GM_OK);
        CHECK(route == row);
        CHECK(row->handle != NULL &&
              (row->plan || row->body == GM_BODY_NONE || row->body == GM_BODY_DOCUMENT));
        /* Methods of one path are counted together. */
        size_t index = gm_route_index(row);
        CHECK(index <= i && strcmp(gm_route_at(index)->path, row->path) == 0);
        CHECK(index == i || gm_route_index(gm_route_at(index)) == index);
        CHECK(!get || gm_route_find("HEAD", path, &route, allow, &error) == GM_OK);
        CHECK(gm_route_find("PATCH", path, &route, allow, &error) == GM_METHOD_NOT_ALLOWED);
        CHECK(strstr(allow, row->method) && !strstr(allow, "PATCH"));
        CHECK((strstr(allow, "HEAD") != NULL) == (strstr(allow, "GET") != NULL));
    }
    CHECK(gm_route_find("PUT", "/v1/transpose", &route, allow, &error) == GM_METHOD_NOT_ALLOWED);
    CHECK_STR(allow, "POST");
    CHECK(gm_route_find("HEAD", "/v1/transpose", &route, allow, &error) == GM_METHOD_NOT_ALLOWED);
    CHECK(gm_route_find("PUT", "/healthz", &route, allow, &error) == GM_METHOD_NOT_ALLOWED);
    CHECK_STR(allow, "GET, HEAD");
    CHECK(gm_route_find("PUT", "/v1/explain/copy", &route, allow, &error) == GM_METHOD_NOT_ALLOWED);
    CHECK_STR(allow, "GET, HEAD, POST");
    CHECK(gm_route_index(NULL) == gm_route_count());
    CHECK(gm_route_find("GET", "/v1", &route, allow, &error) == GM_NOT_FOUND);
    CHECK(gm_route_find("GET", "", &route, allow, &error) == GM_NOT_FOUND);
    CHECK(gm_route_find("POST", "/v1/transpose/", &route, allow, &error) == GM_NOT_FOUND);
    CHECK(strstr(error.detail, "/v1/transpose") != NULL);
    check_patterns();
    return check_report();
}
