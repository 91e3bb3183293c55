/*
 * devices.h - what this daemon computes on: every device of every backend it has opened, each
 * with its queue. Made once at start, constant until the end.
 */
#ifndef GM_SERVER_SCHED_DEVICES_H
#define GM_SERVER_SCHED_DEVICES_H

#include "kernels/backend.h"
#include "server/request/memory_quota.h"
#include "server/sched/cost.h"
#include "server/sched/sched.h"

#define GM_DEVICES_MAX 16

struct gm_device {
    char name[24]; /* "cpu:0": what the parameter `device` and the account say */
    const struct gm_backend *backend;
    void *context;
    const struct gm_device_facts *facts;
    struct gm_sched *sched;
    struct gm_cost_model cost;
};

struct gm_devices {
    unsigned count;
    struct gm_device device[GM_DEVICES_MAX];
    struct gm_allocator host;       /* plain memory, for texts */
    struct gm_buffer_limit *memory; /* of the buffers of all backends together */
    const char *preferred;          /* name of the backend that serves requests naming no device */
    unsigned backends;
    struct {
        const struct gm_backend *backend;
        void *context;
    } opened[GM_DEVICES_MAX];
};

struct gm_devices_options {
    /* "auto", which is the first that has a device and does not simulate it; or the one to prefer,
     * which must then be there. */
    const char *backend;
    struct gm_backend_options backend_options;
    uint64_t queue_limit;
    void (*lost)(void *cls);
    void *lost_cls;
};

/* Opens every backend of this build. Fails if there is no device, or not the preferred one. */
enum gm_status gm_devices_open(struct gm_devices *ret, const struct gm_devices_options *options,
                               struct gm_error *err);
/* Ends the queues (failing what waits), then the backends. All buffers must have been put back. */
void gm_devices_close(struct gm_devices *devices);

/*
 * By name: "" the preferred backend's, "cpu" the least loaded of that kind, "cpu:0" that one.
 * GM_DEVICE_UNAVAILABLE names what there is; GM_DEVICE_LOST if all that match have failed.
 */
enum gm_status gm_devices_pick(struct gm_devices *devices, const char *name, struct gm_device **ret,
                               struct gm_error *err);

/* Bytes of its memory in use by whomever; 0: not known. */
uint64_t gm_device_memory_used(const struct gm_device *device);

/* Whether every device still works. */
bool gm_devices_alive(const struct gm_devices *devices);

#endif
