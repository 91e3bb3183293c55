/* handlers.h - the functions that the route table names; one file an endpoint family. */
#ifndef GM_SERVER_HANDLERS_H
#define GM_SERVER_HANDLERS_H

#include "server/routes.h"

enum gm_progress gm_handle_op(struct gm_request *request); /* handle_op.c */
enum gm_status gm_handle_op_plan(struct gm_request *request, bool complete, struct gm_error *err);
void gm_handle_op_ran(struct gm_request *request);

#define GM_COMPARE_REPORTS (GM_REPORT_BIT(GM_REPORT_TEXT) | GM_REPORT_BIT(GM_REPORT_JSON))
enum gm_progress gm_handle_compare(struct gm_request *request); /* handle_compare.c */
enum gm_status gm_handle_compare_plan(struct gm_request *request, bool complete,
                                      struct gm_error *err);

#define GM_EXPLAIN_REPORTS                                                                         \
    (GM_REPORT_BIT(GM_REPORT_TEXT) | GM_REPORT_BIT(GM_REPORT_JSON) | GM_REPORT_BIT(GM_REPORT_SVG))
enum gm_progress gm_handle_explain(struct gm_request *request); /* handle_explain.c */
enum gm_status gm_handle_explain_plan(struct gm_request *request, bool complete,
                                      struct gm_error *err);
void gm_handle_explain_ran(struct gm_request *request);

enum gm_progress gm_handle_kernels(struct gm_request *request); /* handle_info.c */
enum gm_progress gm_handle_devices(struct gm_request *request);
enum gm_progress gm_handle_stats(struct gm_request *request);

enum gm_progress gm_handle_metrics(struct gm_request *request); /* metrics.c */

enum gm_progress gm_handle_healthz(struct gm_request *request); /* handle_health.c */
enum gm_progress gm_handle_readyz(struct gm_request *request);

#endif
