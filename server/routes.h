/*
 * routes.h - THE table of what gemmd answers: a path and a method, what body they take, and the
 * function that answers. 404, 405 and the Allow header come from it.
 */
#ifndef GM_SERVER_ROUTES_H
#define GM_SERVER_ROUTES_H

#include "kernels/op.h"
#include "proto/status.h"
#include "server/report.h"

struct gm_request;

/* Where a request stands after a step. */
enum gm_progress {
    GM_READY,  /* its reply is set; it is still the caller's */
    GM_PENDING /* handed to another thread: the caller must not touch it any more */
};

enum gm_body_kind {
    GM_BODY_NONE,     /* whatever comes is dropped */
    GM_BODY_OPERANDS, /* matrices for `op`, in any form that proto/codec.h knows */
    GM_BODY_OPTIONAL  /* the same, or nothing at all */
};

struct gm_route {
    const char *method; /* GET answers HEAD too */
    const char *path;
    enum gm_body_kind body;
    enum gm_op_kind op; /* where there is a plan */
    bool traces;        /* on a simulated device alone, a sample of the work: shapes will do */
    unsigned reports;   /* GM_REPORT_BIT(...): it answers with a report; 0: with something else */
    /*
     * Of what is done with an operation, else NULL: once operands are known, before their elements
     * are, whether what is asked for exists for them, and whether all that it needs can be had;
     * which is then reserved. `complete`: no operand can follow.
     */
    enum gm_status (*plan)(struct gm_request *request, bool complete, struct gm_error *err);
    /* Called when the body is complete, on the request's event thread or, for a large text, on a
     * worker. */
    enum gm_progress (*handle)(struct gm_request *request);
    /* The rest of handle, on the event thread, once a job has run: sets the reply. */
    void (*ran)(struct gm_request *request);
};

/* NULL past the end. */
const struct gm_route *gm_route_at(size_t index);
/* For counters: a small number, one for all methods of a path (the index of its first row);
 * gm_route_count() for requests without a route. */
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
