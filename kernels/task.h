/*
 * task.h - one operation for a backend to run, with its status and times; and which tasks share a
 * run.
 */
#ifndef GM_KERNELS_TASK_H
#define GM_KERNELS_TASK_H

#include "access.h"
#include "variant.h"

#include <stdatomic.h>

#define GM_RESULT_ON_DEVICE (1u << GM_OPERANDS_MAX)

/* Matrices in a device's memory begin at multiples of this, as CUDA's allocations do. */
#define GM_DEVICE_ALIGNMENT ((uint64_t)256)

/* In microseconds. A negative time was not measured, and is left out of the account: for example
 * the kernel of an empty result, because none runs. */
struct gm_times {
    double h2d, prepare, kernel, d2h;
    double kernel_min; /* with repeat: kernel is the median, this the minimum */
};

/* What tasks compute, and the bytes that they move at least. */
struct gm_volume {
    double flops, bytes;
    double link_in, link_out; /* those of `bytes` that a kernel moves over the link to the host */
};

/* One operation to run. The caller owns it, its buffers and its op's data throughout. */
struct gm_task {
    struct gm_op op;
    const struct gm_variant *variant;
    unsigned repeat; /* run the kernel so many times (>= 1) and time each */
    /* The times are to be the device's alone: it begins when some or all has been enqueued. So it
     * is with repeat > 1. A backend whose times have no host in them need not care. */
    bool head_start;
    /* Bits of operands, by their index, and GM_RESULT_ON_DEVICE: whose data is memory of the device
     * that runs it, imported by the backend, and is not copied. */
    unsigned on_device;
    atomic_bool stop; /* set by anybody: give up soon, if the device can; status GM_CANCELLED */

    /* If not NULL, the simulator runs and traces only as many blocks as the report needs. The
     * result's elements are then meaningless, and operands whose data is NULL are zeros. If all
     * are NULL, memory is bounded by GM_REPORT_BYTES. The report is empty before; the caller
     * clears it. */
    struct gm_access_report *report;
    const struct gm_gpu *gpu; /* of a report: what it is launched for; NULL: the simulator's own */

    enum gm_status status; /* set by run() or run_here() */
    struct gm_error error; /* where status is not GM_OK */
    struct gm_times times;
    struct gm_volume volume; /* of all tasks of a run() of several, to which the times belong */
    bool has_accesses;       /* set by the simulator where it ran the whole of the operation */
    struct gm_access_totals accesses;
};

/* A task's own volume; and that of all of a run(), for a backend to set in each that succeeded. */
struct gm_volume gm_volume_of(const struct gm_task *task, const struct gm_device_facts *facts);
void gm_volume_share(struct gm_task *task[], unsigned n, const struct gm_device_facts *facts);

/* Which tasks can share a run() of a backend. Those with the same key other than 0: of one variant
 * that groups, whatever their shapes; or products of one row by the same matrix of the device. At
 * most gm_group_most of them, and gm_group_bytes is what each moves beside that matrix. */
uint64_t gm_group_key(const struct gm_task *task);
unsigned gm_group_most(const struct gm_task *task);
uint64_t gm_group_bytes(const struct gm_task *task);
/* Index of the matrix that the tasks share; GM_OPERANDS_MAX: none. */
unsigned gm_group_matrix(const struct gm_task *task);

#endif
