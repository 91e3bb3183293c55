/* problem.h - errors as application/problem+json (RFC 9457), made from the one status list. */
#ifndef GM_SERVER_PROBLEM_H
#define GM_SERVER_PROBLEM_H

#include "proto/status.h"
#include "server/reply.h"

/* Replaces whatever the reply held. retry_after_s 0: no Retry-After. */
void gm_problem(struct gm_reply *reply, const struct gm_error *error, const char *request_id,
                unsigned retry_after_s);

#endif
