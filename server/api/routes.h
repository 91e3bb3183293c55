/*
 * routes.h - the table of routes: path and method, the body that they take, and their handler.
 *
 * 404, 405 and the Allow header come from it.
 */
#ifndef GM_SERVER_API_ROUTES_H
#define GM_SERVER_API_ROUTES_H

#include "server/access/access.h"
#include "server/request/accept.h"
#include "server/request/body/body.h"

struct gm_plan;
struct gm_plan_input;
struct gm_account_job;
struct gm_recent;
struct gm_request;
struct gm_server;

/* State of a request after a step. */
enum gm_progress {
    GM_READY,  /* its reply is set; the caller still owns it */
    GM_PENDING /* handed to another thread: the caller must not touch it any more */
};

struct gm_route {
    const char *method; /* GET answers HEAD too */
    /* {name} stands for the rest of a path segment; not empty if it is the whole segment.
     * [Brackets] enclose an optional part. */
    const char *path;
    enum gm_body_kind body;
    enum gm_op_kind op; /* for routes with a plan */
    /* Reads parameters from the path, before the body. NULL: there are none. */
    enum gm_status (*begin)(struct gm_request *request, struct gm_error *err);
    unsigned roles;   /* whose keys it lets in, one of these: access.h */
    bool probe;       /* asked every few seconds for ever: not logged while it goes well */
    bool traces;      /* on a simulated device alone, a sample of the work */
    bool by_shape;    /* shapes will do, where there are no operands; it may name a GPU model */
    unsigned reports; /* GM_REPORT_BIT(...): it answers with a report; 0: with something else */
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

/* Whether it is one of the Open Inference Protocol v2, whose errors have a format of their own. */
bool gm_path_is_v2(const char *path);

/* The functions that the table names; one file per endpoint family. */

enum gm_progress gm_handle_op(struct gm_request *request); /* operate.c */
enum gm_status gm_handle_op_plan(struct gm_plan *plan, const struct gm_plan_input *input,
                                 struct gm_error *err);
void gm_handle_op_ran(struct gm_request *request);

/* Plans result and memory of an operation whose variant is chosen. */
enum gm_status gm_operation_memory(struct gm_plan *plan, const struct gm_plan_input *input,
                                   struct gm_error *err);

enum gm_progress gm_handle_eval(struct gm_request *request); /* eval.c */
enum gm_status gm_handle_eval_plan(struct gm_plan *plan, const struct gm_plan_input *input,
                                   struct gm_error *err);

#define GM_DRAWN_REPORTS                                                                           \
    (GM_REPORT_BIT(GM_REPORT_TEXT) | GM_REPORT_BIT(GM_REPORT_JSON) | GM_REPORT_BIT(GM_REPORT_SVG))
enum gm_progress gm_handle_compare(struct gm_request *request); /* compare/handle.c */
enum gm_status gm_handle_compare_plan(struct gm_plan *plan, const struct gm_plan_input *input,
                                      struct gm_error *err);
void gm_handle_compare_drop(struct gm_request *request);

enum gm_progress gm_handle_explain(struct gm_request *request); /* explain/handle.c */
enum gm_status gm_handle_explain_plan(struct gm_plan *plan, const struct gm_plan_input *input,
                                      struct gm_error *err);
void gm_handle_explain_ran(struct gm_request *request);

#define GM_CHOOSE_REPORTS (GM_REPORT_BIT(GM_REPORT_TEXT) | GM_REPORT_BIT(GM_REPORT_JSON))
enum gm_progress gm_handle_choose(struct gm_request *request); /* choose.c */
enum gm_status gm_handle_choose_plan(struct gm_plan *plan, const struct gm_plan_input *input,
                                     struct gm_error *err);

/* matrices/matrices.c */
enum gm_status gm_handle_put_begin(struct gm_request *request, struct gm_error *err);
enum gm_status gm_handle_put_plan(struct gm_plan *plan, const struct gm_plan_input *input,
                                  struct gm_error *err);
enum gm_progress gm_handle_put(struct gm_request *request);
enum gm_progress gm_handle_get(struct gm_request *request);
enum gm_progress gm_handle_delete(struct gm_request *request);

/* Pages for GET, without a body: X(path, function, whether it is a probe, the roles that it lets
 * in). */
#define GM_OF_ANY GM_ROLES_ANY
#define GM_OF_READ GM_ROLE_READ
#define GM_OF_USE GM_ROLE_USE
#define GM_OF_PROBE GM_ROLES_ANY | GM_ROLE_PROBE
#define GM_OF_ALL GM_ROLES_ANY | GM_ROLE_PUBLIC
#define GM_PAGES(X)                                                                                \
    X("/v1/matrices", gm_handle_matrices, false, GM_OF_USE)                                        \
    X("/", gm_handle_console, false, GM_OF_ALL)                                                    \
    X("/console/{file}", gm_handle_console_file, false, GM_OF_ALL)                                 \
    X("/console/{folder}/{file}", gm_handle_console_file, false, GM_OF_ALL)                        \
    X("/v1/kernels", gm_handle_kernels, false, GM_OF_ANY)                                          \
    X("/v1/devices", gm_handle_devices, false, GM_OF_ANY)                                          \
    X("/v1/stats", gm_handle_stats, false, GM_OF_READ)                                             \
    X("/v1/requests", gm_handle_requests, false, GM_OF_ANY)                                        \
    X("/v1/requests/roofline.svg", gm_handle_requests, false, GM_OF_ANY)                           \
    X("/v1/requests/waterfall.svg", gm_handle_requests, false, GM_OF_ANY)                          \
    X("/v1/requests/streams.svg", gm_handle_requests, false, GM_OF_ANY)                            \
    X("/v1/requests/live.svg", gm_handle_requests, false, GM_OF_ANY)                               \
    X("/metrics", gm_handle_metrics, true, GM_OF_READ)                                             \
    X("/healthz", gm_handle_healthz, true, GM_OF_PROBE)                                            \
    X("/readyz", gm_handle_readyz, true, GM_OF_PROBE)                                              \
    X("/v2", gm_handle_v2, false, GM_OF_ANY)                                                       \
    X("/v2/health/live", gm_handle_v2_live, true, GM_OF_PROBE)                                     \
    X("/v2/health/ready", gm_handle_v2_ready, true, GM_OF_PROBE)                                   \
    X("/v2/models/stats", gm_handle_v2_all_statistics, false, GM_OF_ANY)                           \
    X("/v2/models/{model}[/versions/1]", gm_handle_v2_model, false, GM_OF_ANY)                     \
    X("/v2/models/{model}[/versions/1]/ready", gm_handle_v2_model_ready, false, GM_OF_ANY)         \
    X("/v2/models/{model}[/versions/1]/config", gm_handle_v2_config, false, GM_OF_ANY)             \
    X("/v2/models/{model}[/versions/1]/stats", gm_handle_v2_statistics, false, GM_OF_ANY)          \
    X("/v2/systemsharedmemory[/region/{region}]/status", gm_handle_region_status, false,           \
      GM_OF_ANY)                                                                                   \
    X("/v2/cudasharedmemory[/region/{region}]/status", gm_handle_region_status, false, GM_OF_ANY)  \
    X("/openapi.json", gm_handle_openapi, false, GM_OF_ANY)                                        \
    X("/docs", gm_handle_docs, false, GM_OF_ANY)                                                   \
    X("/licenses", gm_handle_licenses, false, GM_OF_ANY)                                           \
    X("/docs/start.js", gm_handle_docs_file, false, GM_OF_ANY)                                     \
    X("/docs/swagger-ui-bundle.js", gm_handle_docs_file, false, GM_OF_ANY)                         \
    X("/docs/swagger-ui.css", gm_handle_docs_file, false, GM_OF_ANY)
#define GM_DECLARE_PAGE(path, page, probe, roles) enum gm_progress page(struct gm_request *request);
GM_PAGES(GM_DECLARE_PAGE)
#undef GM_DECLARE_PAGE

/* The time that a picture is of. 0: not said, and the picture's own is taken. */
struct gm_window {
    int64_t from_ns, to_ns, now_ns;
};

/* The last accounts as pictures, which the caller frees; NULL if memory ran out. requests_svg.c,
 * requests_time_svg.c */
char *gm_requests_roofline_svg(const struct gm_recent *recent, size_t n,
                               const struct gm_window *window);
/* Of one account a line for each of its stages, else a line for each account. */
char *gm_requests_waterfall_svg(const struct gm_recent *recent, size_t n,
                                const struct gm_window *window);
char *gm_requests_streams_svg(const struct gm_recent *recent, size_t n,
                              const struct gm_window *window);
char *gm_requests_live_svg(const struct gm_recent *recent, size_t n,
                           const struct gm_window *window);

/* Replies with a file of the build (GM_EMBED of reply.h); in docs/docs.c. */
enum gm_progress gm_reply_embedded(struct gm_request *request, const char *media_type,
                                   const char *begin, const char *end);

/* Checks readiness: GM_OK, or why new work would be refused. */
enum gm_status gm_check_ready(struct gm_server *server, struct gm_error *err);

/* POST of the Open Inference Protocol v2; in kserve/. */
enum gm_status gm_handle_infer_begin(struct gm_request *request, struct gm_error *err);
enum gm_progress gm_handle_v2_index(struct gm_request *request); /* models.c */
enum gm_progress gm_handle_v2_load(struct gm_request *request);
enum gm_progress gm_handle_region_register(struct gm_request *request); /* regions.c */
enum gm_progress gm_handle_region_unregister(struct gm_request *request);
/* Writes the members after "outputs" of an inference reply, without braces: the model's name, the
 * request's id, and the account as parameters. Sets the account's total_us. The caller frees the
 * text; NULL if memory ran out. */
char *gm_infer_account(struct gm_request *request, const struct gm_account_job *job,
                       int64_t now_ns);

#endif
