/*
 * device.h - one GPU and one stream, for the tests and benchmarks of kernels: what a variant's
 * function runs with, and the times of its passes.
 */
#ifndef GM_TESTS_GPU_DEVICE_H
#define GM_TESTS_GPU_DEVICE_H

#include "kernels/backend.h"
#include "kernels/cuda/backend/cublas.h"
#include "kernels/cuda/backend/exec.h"

#define DEVICE_EVENTS_MAX 1024u

/* A moment on the stream, and what goes on from there to the next. */
struct device_event {
    cudaEvent_t event;
    enum gm_pass pass;
    bool ends; /* nothing goes on: the next event is another run's */
};

struct device {
    struct gm_exec exec; /* the first member: what kernels hand back is the device */
    struct gm_gpu gpu;
    struct gm_device_facts facts;
    struct gm_cublas blas; /* where facts.tuned_blas */
    char driver[64];       /* "580.65.06", or CUDA's version where that is not known */
    char error[256];       /* of the last launch that failed */
    uint64_t l2_bytes, scratch_bytes;
    bool times; /* device_run leaves events */
    bool launched;
    unsigned events;
    struct device_event event[DEVICE_EVENTS_MAX];
};

/* Opens the first GPU. false, with why not in ret->error, where there is none that works. */
bool device_open(struct device *ret);
void device_close(struct device *device);

/* Enqueues a variant's run of op, whose data lies on the device. Grows the scratch memory first,
 * which waits for what runs. */
enum gm_status device_run(struct device *device, const struct gm_op *op,
                          const struct gm_variant *variant);
/* Waits for all that was enqueued; false, with why in device->error, where something failed. */
bool device_wait(struct device *device);

/* For work that is no variant's: events around it, as device_run leaves them. */
void device_begin(struct device *device);
void device_end(struct device *device);

/* In microseconds, of the runs since the last call, in their order; how many there
 * were, at most `max`. After device_wait. */
struct device_times {
    double kernel, prepare;
};
unsigned device_read_times(struct device *device, struct device_times *ret, unsigned max);

#endif
