/*
 * request_job.h - between a request and its job: on which device, whose it is, whether anybody
 * still waits for it.
 */
#ifndef GM_SERVER_REQUEST_JOB_H
#define GM_SERVER_REQUEST_JOB_H

#include "server/request.h"

/* The device that its parameters name, or that goes without saying. */
enum gm_status gm_request_pick_device(struct gm_request *request, struct gm_error *err);

/* On the headers, where all parameters are known then: whether the device has a place for the job.
 * To be told so after the body would be late. */
enum gm_status gm_request_check_queue(struct gm_request *request, struct gm_error *err);

/* Whose the job is, what it is expected to take, and the socket to watch: its task and device are
 * known. */
void gm_request_set_place(struct gm_request *request);
/* What it took: the next of its kind is expected to take as long. */
void gm_request_learn_cost(struct gm_request *request);

struct gm_request *gm_request_of_job(const struct gm_job *job);
/* Whether the client has gone: for struct gm_job. */
bool gm_request_job_abandoned(const struct gm_job *job, bool running);

#endif
