#include "server/request/plan.h"

#include <string.h>

/* Default rows and columns of an operand of a trace or a choice. */
#define TRACED_SIDE 1024

struct gm_allocator gm_plan_allocator(const struct gm_plan *plan)
{
    return (struct gm_allocator){plan->device->backend, plan->device->context};
}

struct gm_allocator gm_plan_operand_allocator(const struct gm_plan *plan)
{
    return (struct gm_allocator){plan->home->backend, plan->home->context};
}

/* Chooses the format of the reply. A result has the body's format unless Accept wants another; a
 * report is text for people. */
static enum gm_status choose_format(struct gm_plan *plan, const struct gm_plan_input *in,
                                    struct gm_error *err)
{
    const struct gm_params *params = &in->parsed->params;

    if ((params->gpu && !in->route->by_shape) || (*params->against && !in->route->traces))
        return gm_fail(err, GM_BAD_PARAMETER,
                       "%s does not take '%s', which is a parameter of /v1/explain%s",
                       in->route->path, params->gpu && !in->route->by_shape ? "gpu" : "against",
                       params->gpu && !in->route->by_shape ? " and /v1/choose" : "");
    for (unsigned i = 0; i <= GM_RESULT_REGION && in->route->reports > 0; i++)
        if (*params->region[i])
            return gm_fail(err, GM_BAD_PARAMETER, "%s does not take regions of shared memory",
                           in->route->path);
    if (in->route->reports > 0 && (*params->keep || params->returns != GM_RETURN_UNSAID ||
                                   params->ttl_s > 0 || *params->share))
        return gm_fail(err, GM_BAD_PARAMETER,
                       "%s has no result: it does not take keep, return, ttl and share",
                       in->route->path);
    if (in->route->reports > 0 && (params->rows.stated || params->cols.stated))
        return gm_fail(err, GM_BAD_PARAMETER,
                       "%s does not take rows and cols, which are for reading named matrices",
                       in->route->path);
    if (in->route->reports > 0)
        return gm_report_choose(in->head->accept, params->format, in->route->reports, &plan->report,
                                err);
    if (*params->format)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "%s does not take 'format', which is for reports: Accept chooses the format "
                       "of a result",
                       in->route->path);
    bool elsewhere = in->parsed->into.region || *params->keep;
    if (params->explain_plan) { /* a text, of whose format the endpoint decides */
        plan->codec = &gm_codec_json;
        return GM_OK;
    }
    if (params->returns == GM_RETURN_RESULT && in->parsed->into.region)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "the result goes into a region: return=result cannot be had beside it");
    if (params->returns == GM_RETURN_ACCOUNT ||
        (elsewhere && params->returns == GM_RETURN_UNSAID)) {
        plan->codec =
            in->route->body == GM_BODY_INFER ? &gm_codec_kserve_region : &gm_codec_json_shape;
        return GM_OK;
    }
    if (in->route->body == GM_BODY_INFER) { /* which states it itself */
        plan->codec = in->parsed->format;
        return GM_OK;
    }
    enum gm_status status =
        gm_accept_choose(in->head->accept, in->parsed->format, &plan->codec, err);
    bool may_explain = in->route->op == GM_OP_EVAL && in->operands == GM_PLAN_NO_OPERANDS &&
                       gm_accept_weight(in->head->accept, "text/plain") > 0;
    if (status != GM_NOT_ACCEPTABLE || !may_explain)
        return status;
    plan->codec = &gm_codec_json; /* until the body is read, which may have explain=plan */
    return GM_OK;
}

enum gm_status gm_plan_device(struct gm_plan *plan, const struct gm_plan_input *in,
                              struct gm_error *err)
{
    const struct gm_parsed *parsed = in->parsed;
    bool named = *parsed->params.device;
    const char *name = named || !in->route->traces ? parsed->params.device : "sim";
    struct gm_device *device, *used = plan->device;

    if (used && (plan->device_named || !named))
        return GM_OK;
    enum gm_status status = gm_devices_pick(in->devices, name, &device, err);
    if (status != GM_OK)
        return status;
    if (in->route->traces && device->facts->kind != GM_DEVICE_SIM)
        return gm_fail(err, GM_DEVICE_UNAVAILABLE,
                       "%s traces a kernel's accesses, which a simulated device does (sim) and %s "
                       "cannot",
                       in->route->path, device->name);
    bool placed = parsed->present[0] || parsed->present[1] || parsed->present[2];
    for (unsigned i = 0; parsed->expression && i < parsed->expression->operands; i++)
        placed = placed || parsed->expression->operand[i].matrix.data;
    if (used && used != device && placed)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "device=%s comes after operands that are already on %s: put it before "
                       "them, or into the URL",
                       name, used->name);
    plan->device = plan->home = device;
    plan->device_named = named;
    return GM_OK;
}

/* The device of a job that names none. Regions, named matrices, named kernels and repetitions stay
 * on the preferred one. */
static void place(struct gm_plan *plan, const struct gm_plan_input *in)
{
    const struct gm_params *params = &in->parsed->params;
    bool anywhere = gm_params_take_auto(params) && params->repeat <= 1 &&
                    !in->parsed->into.region && !*params->keep && in->route->op != GM_OP_EVAL;

    plan->placed = GM_PLACED_ASKED;
    if (plan->device_named || in->route->reports > 0)
        return;
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        anywhere = anywhere && !in->parsed->from[i].region && !in->parsed->ref[i].named;
    plan->device =
        anywhere ? gm_devices_place(in->devices, plan->home, &plan->op, &plan->placed) : plan->home;
}

/* Makes operands without data from shapes alone, for traces and choices. */
static enum gm_status set_shapes(const struct gm_plan_input *in,
                                 struct gm_matrix operand[GM_OPERANDS_MAX],
                                 bool present[GM_OPERANDS_MAX], struct gm_error *err)
{
    const struct gm_shape unsaid = {.ndim = 2, .dim = {TRACED_SIDE, TRACED_SIDE}};
    const struct gm_params *params = &in->parsed->params;
    enum gm_dtype dtype = params->dtype == GM_DTYPE_NONE ? GM_F32 : params->dtype;
    unsigned min = gm_op_operands_min(in->route->op), max = gm_op_operands_max(in->route->op);

    for (unsigned i = 0; i < max; i++) {
        /* One shape alone is that of all. */
        bool alone = i > 0 && params->shape[1].ndim == 0 && params->shape[2].ndim == 0;
        const struct gm_shape *shape = &params->shape[alone ? 0 : i];
        bool said = shape->ndim > 0 && (!alone || i < min);
        bool needed = i < min || (i == 2 && params->op.has_beta);
        if (!said && !needed)
            continue;
        enum gm_status status = gm_matrix_init(&operand[i], dtype, GM_ROW_MAJOR,
                                               shape->ndim > 0 ? shape : &unsaid, err);
        if (status != GM_OK)
            return status;
        present[i] = true;
    }
    return GM_OK;
}

static enum gm_status make_op(struct gm_plan *plan, const struct gm_plan_input *in,
                              bool c_may_follow, struct gm_error *err)
{
    const struct gm_parsed *parsed = in->parsed;
    struct gm_op_options options = parsed->params.op;
    struct gm_matrix operand[GM_OPERANDS_MAX];
    bool present[GM_OPERANDS_MAX], any = false;
    enum gm_status status = GM_OK;

    memcpy(operand, parsed->operand, sizeof operand);
    memcpy(present, parsed->present, sizeof present);
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        any = any || present[i];
    if (!any && in->route->by_shape)
        status = set_shapes(in, operand, present, err);
    options.has_beta = options.has_beta && !c_may_follow;
    return status == GM_OK ? gm_op_init(&plan->op, in->route->op, &options, operand, present, err)
                           : status;
}

enum gm_status gm_plan_make(struct gm_plan *plan, const struct gm_plan_input *in,
                            struct gm_error *err)
{
    const struct gm_parsed *parsed = in->parsed;
    bool c_may_follow = in->operands == GM_PLAN_NEEDED_OPERANDS && parsed->params.op.has_beta &&
                        !parsed->present[2];
    enum gm_status status = GM_OK;

    if (in->operands == GM_PLAN_NO_OPERANDS) {
        status = choose_format(plan, in, err);
        return status == GM_OK && *parsed->params.device ? gm_plan_device(plan, in, err) : status;
    }
    if (in->route->op == GM_OP_EVAL && (status = choose_format(plan, in, err)) != GM_OK)
        return status;
    if (plan->of.made && plan->of.c_may_follow == c_may_follow &&
        plan->of.parameters == parsed->params.seen &&
        memcmp(plan->of.present, parsed->present, sizeof parsed->present) == 0)
        return GM_OK;
    if (in->route->op != GM_OP_EVAL) /* whose graph depends on the device */
        status = make_op(plan, in, c_may_follow, err);
    if (status == GM_OK)
        status = gm_plan_device(plan, in, err);
    if (status == GM_OK) {
        place(plan, in);
        status = in->route->plan(plan, in, err);
    }
    if (status != GM_OK)
        return status;
    plan->of.made = true;
    plan->of.c_may_follow = c_may_follow;
    plan->of.parameters = parsed->params.seen;
    memcpy(plan->of.present, parsed->present, sizeof parsed->present);
    return GM_OK;
}
