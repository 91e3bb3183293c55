/*
 * task.h - one operation for a backend to run, and what came of it.
 */
#ifndef GM_KERNELS_TASK_H
#define GM_KERNELS_TASK_H

#include "access.h"
#include "variant.h"

#include <stdatomic.h>

/* In microseconds; negative means not measured (and is then left out of the account), as the
 * kernel of an empty result, for which none runs. */
struct gm_times {
    double h2d, prepare, kernel, d2h;
    double kernel_min; /* with repeat: kernel is the median, this the minimum */
};

/* One operation to run. The caller owns it, its slabs and its op's data throughout. */
struct gm_task {
    struct gm_op op;
    const struct gm_variant *variant;
    unsigned repeat;  /* run the kernel so many times (>= 1) and time each */
    atomic_bool stop; /* set by anybody: give up soon, if the device can; status GM_CANCELLED */

    /* Where not NULL, the simulator traces as many blocks as the report needs and no more: the
     * result's elements mean nothing then, and operands whose data is NULL are zeros. Empty
     * before, the caller's to clear after. */
    struct gm_access_report *report;

    enum gm_status status; /* set by run() or run_here() */
    struct gm_error error; /* where status is not GM_OK */
    struct gm_times times;
    bool has_accesses; /* set by the simulator where it ran the whole of the operation */
    struct gm_access_totals accesses;
};

#endif
