/*
 * routes.h - the table of routes: path and method, the body that they take, and their handler.
 *
 * 404, 405 and the Allow header come from it.
 */
#ifndef GM_SERVER_API_ROUTES_H
#define GM_SERVER_API_ROUTES_H

#include "server/request/accept.h"
#include "server/request/body/body.h"

struct gm_plan;
struct gm_plan_input;
struct gm_request;

/* State of a request after a step. */
enum gm_progress {
    GM_READY,  /* its reply is set; the caller still owns it */
    GM_PENDING /* handed to another thread: the caller must not touch it any more */
};

struct gm_route {
    const char *method; /* GET also handles HEAD */
    const char *path;
    enum gm_body_kind body;
    enum gm_op_kind op; /* if `plan` is set */
    bool probe;         /* called every few seconds: successes are logged at level debug */
    bool traces;        /* runs a sample on a simulated device only; shapes are enough */
    unsigned reports;   /* formats of its report, of GM_REPORT_BIT; 0: it has no report */
    /*
     * For routes with an operation, else NULL: plans the endpoint's part (plan.h), the variant and
     * the memory. The plan's op and device are set.
     */
    enum gm_status (*plan)(struct gm_plan *plan, const struct gm_plan_input *input,
                           struct gm_error *err);
    /* Handles a complete body, on the request's event thread or, for a large text, on a worker. */
    enum gm_progress (*handle)(struct gm_request *request);
    /* Continues on the event thread after a job has run: sets the reply. */
    void (*ran)(struct gm_request *request);
    /* Frees request->run.state. NULL: it is never used. */
    void (*drop)(struct gm_request *request);
};

/* The route at an index; NULL past the end. */
const struct gm_route *gm_route_at(size_t index);
/* Index for counters: the first row of the path, the same for all its methods. gm_route_count() for
 * requests without a route. */
size_t gm_route_index(const struct gm_route *route);
size_t gm_route_count(void);

/*
 * Finds a route. Errors: GM_NOT_FOUND; GM_METHOD_NOT_ALLOWED, with the path's methods in `allow`
 * ("GET, HEAD").
 */
#define GM_ALLOW_MAX 64
enum gm_status gm_route_find(const char *method, const char *path, const struct gm_route **ret,
                             char allow[GM_ALLOW_MAX], struct gm_error *err);

/* The functions that the table names; one file an endpoint family. */

enum gm_progress gm_handle_op(struct gm_request *request); /* operate.c */
enum gm_status gm_handle_op_plan(struct gm_plan *plan, const struct gm_plan_input *input,
                                 struct gm_error *err);
void gm_handle_op_ran(struct gm_request *request);

#define GM_COMPARE_REPORTS (GM_REPORT_BIT(GM_REPORT_TEXT) | GM_REPORT_BIT(GM_REPORT_JSON))
enum gm_progress gm_handle_compare(struct gm_request *request); /* compare/handle.c */
enum gm_status gm_handle_compare_plan(struct gm_plan *plan, const struct gm_plan_input *input,
                                      struct gm_error *err);
void gm_handle_compare_drop(struct gm_request *request);

#define GM_EXPLAIN_REPORTS                                                                         \
    (GM_REPORT_BIT(GM_REPORT_TEXT) | GM_REPORT_BIT(GM_REPORT_JSON) | GM_REPORT_BIT(GM_REPORT_SVG))
enum gm_progress gm_handle_explain(struct gm_request *request); /* explain/handle.c */
enum gm_status gm_handle_explain_plan(struct gm_plan *plan, const struct gm_plan_input *input,
                                      struct gm_error *err);
void gm_handle_explain_ran(struct gm_request *request);

/* Pages for GET, without a body: X(path, function, whether it is a probe). */
#define GM_PAGES(X)                                                                                \
    X("/v1/kernels", gm_handle_kernels, false)                                                     \
    X("/v1/devices", gm_handle_devices, false)                                                     \
    X("/v1/stats", gm_handle_stats, false)                                                         \
    X("/metrics", gm_handle_metrics, true)                                                         \
    X("/healthz", gm_handle_healthz, true)                                                         \
    X("/readyz", gm_handle_readyz, true)                                                           \
    X("/openapi.json", gm_handle_openapi, false)                                                   \
    X("/docs", gm_handle_docs, false)                                                              \
    X("/licenses", gm_handle_licenses, false)                                                      \
    X("/docs/start.js", gm_handle_docs_file, false)                                                \
    X("/docs/swagger-ui-bundle.js", gm_handle_docs_file, false)                                    \
    X("/docs/swagger-ui.css", gm_handle_docs_file, false)
#define GM_DECLARE_PAGE(path, page, probe) enum gm_progress page(struct gm_request *request);
GM_PAGES(GM_DECLARE_PAGE)
#undef GM_DECLARE_PAGE

#endif
