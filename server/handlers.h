/* handlers.h - the functions that the route table names; one file an endpoint family. */
#ifndef GM_SERVER_HANDLERS_H
#define GM_SERVER_HANDLERS_H

#include "server/routes.h"

enum gm_progress gm_handle_op(struct gm_request *request); /* handle_op.c */
/*
 * Once an operation's operands are known, before their elements are: whether it exists for them,
 * whether a variant runs it, and whether all that it needs can be had; which is then reserved.
 * `complete`: no operand can follow.
 */
enum gm_status gm_handle_op_plan(struct gm_request *request, bool complete, struct gm_error *err);
/* The rest of gm_handle_op, once the job has run: encodes the result, sets the reply. */
void gm_handle_op_ran(struct gm_request *request);

enum gm_progress gm_handle_kernels(struct gm_request *request); /* handle_info.c */
enum gm_progress gm_handle_devices(struct gm_request *request);
enum gm_progress gm_handle_stats(struct gm_request *request);

enum gm_progress gm_handle_metrics(struct gm_request *request); /* metrics.c */

enum gm_progress gm_handle_healthz(struct gm_request *request); /* handle_health.c */
enum gm_progress gm_handle_readyz(struct gm_request *request);

#endif
