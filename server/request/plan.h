/*
 * plan.h - plans a request once: operation, device, variant, memory, and the format of the reply.
 *
 * The early check, admission, the run and the account use the same plan. It does not depend on
 * struct gm_request.
 */
#ifndef GM_SERVER_REQUEST_PLAN_H
#define GM_SERVER_REQUEST_PLAN_H

#include "server/api/routes.h"
#include "server/sched/devices.h"

struct gm_plan {
    /* The format of the reply: a result's, or a report's if the route has reports. */
    const struct gm_codec *codec;
    enum gm_report_format report;

    struct gm_device *device; /* NULL until it is needed or named */
    bool device_named;        /* by the client */
    struct gm_device *home;   /* picked first: the operands are in its buffers */
    enum gm_placed placed;    /* why `device` was chosen */

    /* The rest is set once the operands are known. It is valid while `of` matches the inputs. */
    struct gm_op op;
    const struct gm_variant *variant; /* for a comparison: the one that auto chooses */
    const struct gm_variant *against; /* for a trace: the one to set it against; NULL: none */
    const char *automatic;  /* for a trace: what auto takes on the GPU; NULL: a kernel was named */
    uint64_t head_bytes;    /* room for the reply's head, before the result's elements */
    uint64_t result_bytes;  /* size of the result buffer, with that room */
    void *direct;           /* not NULL: the device writes the result here, in a region */
    bool result_on_device;  /* that region is memory of the device */
    uint64_t region_bytes;  /* bytes of the result to copy into a region */
    uint64_t scratch_bytes; /* scratch memory of the kernels */
    uint64_t text_bytes;    /* maximum size of the reply's text, if it is text */
    uint64_t bytes;         /* total to reserve, without the operands */
    unsigned able;          /* for a comparison: number of kernels that can run */
    bool has_reference;     /* for a comparison: memory and time allow a reference */

    struct {
        bool made, c_may_follow, present[GM_OPERANDS_MAX];
        uint64_t parameters; /* gm_params.seen */
    } of;
};

/* How many of the operands are known. */
enum gm_plan_operands {
    GM_PLAN_NO_OPERANDS, /* fewer than the operation needs: only format and device are planned */
    GM_PLAN_NEEDED_OPERANDS, /* all required ones; an optional one may follow */
    GM_PLAN_ALL_OPERANDS     /* none can follow */
};

struct gm_plan_input {
    const struct gm_route *route;
    const struct gm_request_head *head;
    const struct gm_parsed *parsed;
    struct gm_devices *devices;
    enum gm_plan_operands operands;
};

/*
 * Plans as much as the known inputs allow. Call it whenever more is known; unchanged parts are not
 * planned again. Reserves nothing. After a failure the plan must not be used.
 */
enum gm_status gm_plan_make(struct gm_plan *plan, const struct gm_plan_input *input,
                            struct gm_error *err);

/* Chooses only the device: the one that the parameters name, or the default. */
enum gm_status gm_plan_device(struct gm_plan *plan, const struct gm_plan_input *input,
                              struct gm_error *err);

/* The allocator of buffers for the plan's device; and for operands, which come before the device is
 * final. Every device takes operands from the buffers of `home`. */
struct gm_allocator gm_plan_allocator(const struct gm_plan *plan);
struct gm_allocator gm_plan_operand_allocator(const struct gm_plan *plan);

#endif
