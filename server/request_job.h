/*
 * request_job.h - between a request and its job: on which device, whose it is, whether anybody
 * still waits for it.
 */
#ifndef GM_SERVER_REQUEST_JOB_H
#define GM_SERVER_REQUEST_JOB_H

#include "server/request.h"

/* The device that its parameters name, or that goes without saying. */
enum gm_status gm_request_pick_device(struct gm_request *request, struct gm_error *err);

struct gm_request *gm_request_of_job(const struct gm_job *job);
/* Whether the client has gone: for struct gm_job. */
bool gm_request_job_abandoned(const struct gm_job *job, bool running);

#endif
