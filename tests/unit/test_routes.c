/* The route table: what it finds, and what it says when it does not. */
#include "server/api/routes.h"
#include "server/api/stats.h"
#include "tests/unit/check.h"

#include <string.h>

int main(void)
{
    const struct gm_route *route = NULL;
    char allow[GM_ALLOW_MAX] = "";
    struct gm_error error;

    CHECK(gm_route_count() < GM_ROUTES_MAX); /* counters have room for all and one more */
    for (size_t i = 0; gm_route_at(i); i++) {
        const struct gm_route *row = gm_route_at(i);
        bool get = strcmp(row->method, "GET") == 0;
        CHECK(gm_route_find(row->method, row->path, &route, allow, &error) == GM_OK);
        CHECK(route == row);
        CHECK(row->handle != NULL && (row->plan || row->body == GM_BODY_NONE));
        /* Methods of one path are counted together. */
        size_t index = gm_route_index(row);
        CHECK(index <= i && strcmp(gm_route_at(index)->path, row->path) == 0);
        CHECK(index == i || gm_route_index(gm_route_at(index)) == index);
        CHECK(!get || gm_route_find("HEAD", row->path, &route, allow, &error) == GM_OK);
        CHECK(gm_route_find("PATCH", row->path, &route, allow, &error) == GM_METHOD_NOT_ALLOWED);
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
    return check_report();
}
