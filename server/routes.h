/*
 * routes.h - THE table of what gemmd answers: a path and a method, what body they take, and the
 * function that answers. 404, 405 and the Allow header come from it.
 */
#ifndef GM_SERVER_ROUTES_H
#define GM_SERVER_ROUTES_H

#include "kernels/op.h"
#include "proto/status.h"

struct gm_request;

/* Where a request stands after a step. */
enum gm_progress {
    GM_READY,  /* its reply is set; it is still the caller's */
    GM_PENDING /* handed to another thread: the caller must not touch it any more */
};

enum gm_body_kind {
    GM_BODY_NONE,    /* whatever comes is dropped */
    GM_BODY_OPERANDS /* matrices for `op`, in any form that proto/codec.h knows */
};

struct gm_route {
    const char *method; /* GET answers HEAD too */
    const char *path;
    enum gm_body_kind body;
    enum gm_op_kind op; /* with GM_BODY_OPERANDS */
    /* Called when the body is complete, on the request's event thread or, for a large text, on a
     * worker. */
    enum gm_progress (*handle)(struct gm_request *request);
};

/* NULL past the end. */
const struct gm_route *gm_route_at(size_t index);
/* For counters: a small number, gm_route_count() for requests without a route. */
size_t gm_route_index(const struct gm_route *route);
size_t gm_route_count(void);

/*
 * GM_NOT_FOUND, or GM_METHOD_NOT_ALLOWED with the methods that the path has in allow ("GET,
 * HEAD").
 */
#define GM_ALLOW_MAX 64
enum gm_status gm_route_find(const char *method, const char *path, const struct gm_route **ret,
                             char allow[GM_ALLOW_MAX], struct gm_error *err);

#endif
