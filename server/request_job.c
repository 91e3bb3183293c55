#include "server/request_job.h"

enum gm_status gm_request_pick_device(struct gm_request *r, struct gm_error *err)
{
    const char *name = *r->params.device || !r->route->traces ? r->params.device : "sim";
    struct gm_device *device;
    enum gm_status status = gm_devices_pick(&r->server->devices, name, &device, err);

    if (status != GM_OK)
        return status;
    if (r->route->traces && device->facts->kind != GM_DEVICE_SIM)
        return gm_fail(err, GM_DEVICE_UNAVAILABLE,
                       "%s traces a kernel's accesses, which a simulated device does (sim) and %s "
                       "cannot",
                       r->route->path, device->name);
    r->device = device;
    return GM_OK;
}

enum gm_status gm_request_check_queue(struct gm_request *r, struct gm_error *err)
{
    /* In other forms the body may say more, and name another device; and a small job may need no
     * place. */
    bool streams = r->body.in && r->body.in->push && r->head.content_length > GM_INLINE_BYTES_MAX;
    enum gm_status status = GM_OK;

    if (streams && !r->device)
        status = gm_request_pick_device(r, err);
    return streams && status == GM_OK ? gm_sched_check(r->device->sched, r->head.client, err)
                                      : status;
}

void gm_request_set_place(struct gm_request *r)
{
    struct gm_job *job = &r->job;

    job->place.client = r->head.client;
    job->place.cost_s = gm_cost_expected(&r->device->cost, &job->task, r->device->facts);
    job->socket = r->carrier->pollable ? r->socket : 0;
}

void gm_request_learn_cost(struct gm_request *r)
{
    const struct gm_job *job = &r->job;

    if (job->task.status == GM_OK)
        gm_cost_learn(&r->device->cost, &job->task, r->device->facts,
                      (double)(job->finished_ns - job->started_ns) * 1e-9);
}

struct gm_request *gm_request_of_job(const struct gm_job *job)
{
    return (struct gm_request *)((char *)(uintptr_t)job - offsetof(struct gm_request, job));
}

bool gm_request_job_abandoned(const struct gm_job *job, bool running)
{
    const struct gm_request *r = gm_request_of_job(job);

    /* A client may close its sending half and still read; while the job only waits that is taken
     * for having gone, since the two cannot be told apart and the queue is precious. */
    return r->carrier->gone(r->socket, running);
}
