/*
 * eval.c - POST /v1/eval: computes an expression as one job, and replies as an operation does.
 *
 * What is particular to it is the plan: the expression becomes a graph, whose result is the job's.
 * The body is read by request/body/eval.c, the expression by server/eval/.
 */
#include "server/eval/eval.h"

#include "kernels/buffer_pool.h"
#include "server/request/request.h"
#include "server/sched/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The operands by the expression's names, as it is planned with them. */
static void list_operands(const struct gm_expression *x,
                          struct gm_eval_operand ret[GM_EVAL_OPERANDS_MAX])
{
    memset(ret, 0, GM_EVAL_OPERANDS_MAX * sizeof *ret);
    for (unsigned i = 0; i < x->tree.names; i++) {
        const struct gm_expression_operand *operand = &x->operand[x->by_name[i]];
        ret[i] = (struct gm_eval_operand){
            .matrix = operand->matrix, .is_number = operand->is_number, .number = operand->number};
        ret[i].matrix.data = NULL;
    }
}

/* Memory for what is stored between steps. What is no GPU works in buffers of the host. */
static uint64_t memory_between(const struct gm_plan_input *in, const struct gm_device *device)
{
    uint64_t bytes = device->facts->memory_bytes;
    uint64_t limit = gm_buffer_limit_usage(in->devices->memory).limit;

    if (!device->backend->device_get && limit < bytes)
        bytes = limit;
    return bytes / GM_EVAL_MEMORY_PART;
}

static enum gm_status make_graph(const struct gm_plan_input *in, const struct gm_device *device,
                                 struct gm_graph **ret, struct gm_error *err)
{
    const struct gm_expression *x = in->parsed->expression;
    const struct gm_device_facts *facts = device->facts;
    struct gm_eval_operand operand[GM_EVAL_OPERANDS_MAX];
    struct gm_eval *eval = malloc(sizeof *eval);
    struct gm_graph *graph = NULL;

    if (!eval)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for planning an expression");
    list_operands(x, operand);
    enum gm_status status = gm_eval_build(&x->tree, operand, eval, err);
    if (status == GM_OK)
        status = gm_eval_fuse(eval, err);
    if (status == GM_OK)
        status =
            gm_eval_plan(eval, x->tree.names, facts, device->choices,
                         in->parsed->params.op.precision, memory_between(in, device), &graph, err);
    free(eval);
    if (status != GM_OK)
        return status;
    for (unsigned i = 0; i < x->tree.names; i++) {
        const struct gm_expression_operand *o = &x->operand[x->by_name[i]];
        graph->value[i].matrix.data = o->matrix.data;
        graph->value[i].on_device = o->on_device;
    }
    *ret = graph;
    return GM_OK;
}

/* Least seconds of a step. An element of a program's space costs as much as one that memory moves,
 * even if inputs are so small that they repeat: it is loaded, or written, or summed up. */
static double step_seconds(const struct gm_graph_step *step, const struct gm_device_facts *facts)
{
    const struct gm_program *p = &step->program;
    double bytes = (double)gm_graph_step_bytes(step);
    enum gm_dtype dtype = p->compute_type == GM_COMPUTE_I64   ? GM_I64
                          : p->compute_type == GM_COMPUTE_F64 ? GM_F64
                                                              : GM_F32;

    if (step->variant)
        dtype = step->op.result.dtype;
    else
        bytes = fmax(bytes, (double)gm_program_elements(p) * (double)gm_dtype_size(p->dtype));
    return gm_cost_work(gm_graph_step_flops(step), bytes, dtype, facts);
}

/* Work is bounded by nothing else: small operands that repeat, or empty ones, may stand for more of
 * it than any device does. */
static enum gm_status check_cost(const struct gm_plan *plan, struct gm_error *err)
{
    const struct gm_device_facts *facts = plan->device->facts;
    const struct gm_graph *graph = plan->op.graph;
    double seconds = 0;

    if (facts->kind == GM_DEVICE_SIM)
        return gm_cost_simulated(&plan->op, 1, err);
    for (unsigned i = 0; i < graph->steps; i++)
        seconds += step_seconds(&graph->step[i], facts);
    if (seconds <= GM_REPEAT_COST_S)
        return GM_OK;
    return gm_fail(err, GM_COST_LIMIT,
                   "this is %.4g operations on %.4g bytes, which would take %s about %.0f "
                   "seconds; at most %d may be taken",
                   graph->flops, (double)graph->bytes, plan->device->name, seconds,
                   GM_REPEAT_COST_S);
}

enum gm_status gm_handle_eval_plan(struct gm_plan *plan, const struct gm_plan_input *in,
                                   struct gm_error *err)
{
    struct gm_graph *graph = NULL;

    enum gm_status status = make_graph(in, plan->device, &graph, err);
    if (status != GM_OK)
        return status;
    gm_graph_free(plan->op.graph);
    plan->op = (struct gm_op){.kind = GM_OP_EVAL,
                              .precision = in->parsed->params.op.precision,
                              .result = graph->value[graph->result].matrix,
                              .graph = graph,
                              .graph_flops = graph->flops,
                              .graph_bytes = graph->bytes};
    plan->variant = &gm_graph_variant;
    status = check_cost(plan, err);
    return status == GM_OK ? gm_operation_memory(plan, in, err) : status;
}

static enum gm_progress reply_plan(struct gm_request *r)
{
    struct gm_error error;
    enum gm_report_format format;
    enum gm_status status = gm_request_plan(r, GM_PLAN_ALL_OPERANDS, &error);

    if (status == GM_OK)
        status = gm_report_choose(r->head.accept, "",
                                  GM_REPORT_BIT(GM_REPORT_TEXT) | GM_REPORT_BIT(GM_REPORT_JSON),
                                  &format, &error);
    if (status != GM_OK)
        return gm_request_fail(r, &error);
    const struct gm_expression *x = r->parsed.expression;
    char *text = gm_eval_text(r->plan.op.graph, &x->tree, x->text, r->plan.device->name,
                              format == GM_REPORT_JSON);
    gm_body_drop_operands(&r->body);
    return gm_request_reply(r, gm_report_media_type(format), text);
}

enum gm_progress gm_handle_eval(struct gm_request *r)
{
    return r->parsed.params.explain_plan ? reply_plan(r) : gm_handle_op(r);
}
