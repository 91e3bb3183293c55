/*
 * devices.h - the devices of all opened backends, each with its queue.
 *
 * Made once at start, constant until the end.
 */
#ifndef GM_SERVER_SCHED_DEVICES_H
#define GM_SERVER_SCHED_DEVICES_H

#include "kernels/backend.h"
#include "kernels/choose/choose.h"
#include "server/sched/cost.h"
#include "server/sched/memory_quota.h"
#include "server/sched/sched.h"

#define GM_DEVICES_MAX 16

struct gm_device {
    char name[24]; /* "cpu:0": as in the parameter `device` and in the account */
    const struct gm_backend *backend;
    void *context;
    const struct gm_device_facts *facts;
    struct gm_sched *sched;
    struct gm_cost_model cost;
    struct gm_choice_cache *choices;
};

/* Why a job runs on its device. */
enum gm_placed {
    GM_PLACED_ASKED, /* the client named it, or a kernel, or the operator did (--backend) */
    GM_PLACED_SHAPE, /* by operation, element type and shape alone */
    GM_PLACED_LOAD   /* it would end there first */
};

/* "asked", "shape", "load" */
const char *gm_placed_name(enum gm_placed placed);

struct gm_devices {
    unsigned count;
    struct gm_device device[GM_DEVICES_MAX];
    struct gm_allocator host;       /* allocates host memory for texts */
    struct gm_buffer_limit *memory; /* limit of the buffers of all backends together */
    const char *preferred;          /* backend of requests that name no device */
    bool automatic;                 /* chosen by gemmd: other devices may take their jobs */
    bool place_by_load;             /* also products of floating-point elements */
    struct gm_profile *profile;     /* read from a file; NULL: none */
    unsigned backends;
    struct {
        const struct gm_backend *backend;
        void *context;
    } opened[GM_DEVICES_MAX];
};

struct gm_devices_options {
    /* Name of the preferred backend, which must have a device. "auto": the first backend that has a
     * device and is not the simulator. */
    const char *backend;
    struct gm_backend_options backend_options;
    uint64_t queue_limit;
    struct gm_sched_slots *slots; /* sched.h */
    bool place_by_load;
    const char *profile; /* path of a table of numbers for estimates; "" or NULL: none */
    void (*lost)(void *cls);
    void *lost_cls;
};

/* Opens every backend of this build. Fails if there is no device, or the preferred backend has
 * none. */
enum gm_status gm_devices_open(struct gm_devices *ret, const struct gm_devices_options *options,
                               struct gm_error *err);
/* Reads the file of --profile; free(*ret). GM_BAD_PARAMETER, with the reason. */
enum gm_status gm_devices_read_profile(const char *path, struct gm_profile **ret,
                                       struct gm_error *err);
/* Closes the queues, failing waiting jobs, then the backends. All buffers must have been freed. */
void gm_devices_close(struct gm_devices *devices);

/*
 * Chooses a device by name: "" the least loaded of the preferred backend, "cpu" the least loaded of
 * that backend, "cpu:0" this one. GM_DEVICE_UNAVAILABLE lists the devices; GM_DEVICE_LOST if all
 * that match have failed.
 */
enum gm_status gm_devices_pick(struct gm_devices *devices, const char *name, struct gm_device **ret,
                               struct gm_error *err);

/*
 * Chooses the device of a job that names none, where `preferred` was picked for it: that one, or
 * the CPU. What has the same bits on every device (moved elements, sums, integers) goes where it is
 * estimated to end first: waiting, copies and kernel. A product of floating-point elements goes by
 * its shape alone, so that the same request gives the same bits at any load: to the CPU if it is
 * tiny (cost.h), unless place_by_load. Only a GPU that gemmd itself prefers is passed over.
 */
struct gm_device *gm_devices_place(struct gm_devices *devices, struct gm_device *preferred,
                                   const struct gm_op *op, enum gm_placed *ret);

/* Bytes of the device's memory in use, by any process; 0: unknown. */
uint64_t gm_device_memory_used(const struct gm_device *device);

/* Whether no device is lost. */
bool gm_devices_alive(const struct gm_devices *devices);

#endif
