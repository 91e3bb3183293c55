/*
 * task.h - one operation for a backend to run, with its status and times.
 */
#ifndef GM_KERNELS_TASK_H
#define GM_KERNELS_TASK_H

#include "access.h"
#include "variant.h"

#include <stdatomic.h>

/* What one report may take, beside its own size: memory for what the traced threads touch, and time
 * of the host's threads, all together, where counts have not ended it long before. */
#define GM_REPORT_BYTES 67108864
#define GM_REPORT_CPU_MS 2000

/* In microseconds; negative means not measured (and is then left out of the account), as the
 * kernel of an empty result, for which none runs. */
struct gm_times {
    double h2d, prepare, kernel, d2h;
    double kernel_min; /* with repeat: kernel is the median, this the minimum */
};

/* One operation to run. The caller owns it, its buffers and its op's data throughout. */
struct gm_task {
    struct gm_op op;
    const struct gm_variant *variant;
    unsigned repeat;  /* run the kernel so many times (>= 1) and time each */
    atomic_bool stop; /* set by anybody: give up soon, if the device can; status GM_CANCELLED */

    /* Where not NULL, the simulator traces as many blocks as the report needs and no more: the
     * result's elements mean nothing then, and operands whose data is NULL are zeros. What it takes
     * of memory is bounded (GM_REPORT_BYTES) where all are. Empty before, the caller's to clear
     * after. */
    struct gm_access_report *report;

    enum gm_status status; /* set by run() or run_here() */
    struct gm_error error; /* where status is not GM_OK */
    struct gm_times times;
    bool has_accesses; /* set by the simulator where it ran the whole of the operation */
    struct gm_access_totals accesses;
};

#endif
