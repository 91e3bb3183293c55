/*
 * plan.c - makes the graph of a fused expression: operations with their variants, programs, and
 * where each temporary value lies.
 */
#include "kernels/task.h"
#include "server/eval/eval.h"

#include <stdlib.h>
#include <string.h>

struct planner {
    struct gm_eval *e;
    unsigned names;
    const struct gm_device_facts *facts;
    struct gm_choice_cache *choices;
    enum gm_precision precision;
    struct gm_graph *graph;
    struct gm_error *err;
};

/* The index in the graph of what a value's elements are read from. */
static unsigned place_of(const struct planner *p, int base)
{
    const struct gm_value *x = &p->e->value[base];

    return x->kind == GM_VALUE_INPUT ? x->index : p->names + (unsigned)p->e->stored[base];
}

/* ---- Steps. ---- */

static enum gm_status choose(struct planner *p, struct gm_graph_step *step, enum gm_op_kind kind,
                             const struct gm_op_options *options,
                             const struct gm_matrix operand[GM_OPERANDS_MAX],
                             const bool present[GM_OPERANDS_MAX])
{
    enum gm_status status = gm_op_init(&step->op, kind, options, operand, present, p->err);

    if (status == GM_OK)
        status = gm_choose(p->choices, &step->op, p->facts, NULL, &step->variant, p->err);
    if (status == GM_OK && p->facts->kind != GM_DEVICE_CPU)
        step->scratch_bytes = step->variant->scratch(&step->op);
    return status;
}

static enum gm_status plan_product(struct planner *p, const struct gm_product_use *use,
                                   struct gm_graph_step *step)
{
    const struct gm_value *product = &p->e->value[use->product];
    struct gm_op_options options = {.precision = p->precision};
    struct gm_matrix operand[GM_OPERANDS_MAX];
    bool present[GM_OPERANDS_MAX] = {true, true, use->c >= 0};
    const int index[GM_OPERANDS_MAX] = {product->child[0], product->child[1], use->c};
    struct gm_factor_use factor;

    memset(operand, 0, sizeof operand);
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        if (!present[i])
            continue;
        gm_eval_as_matrix(p->e, index[i], &factor);
        operand[i] = factor.matrix;
        step->operand[i] = place_of(p, factor.base);
        step->skip[i] = factor.offset;
        *(i == 0 ? &options.transa : &options.transb) |= i < 2 && factor.transposed;
    }
    if (present[2]) { /* as the product has it, which may have been a vector's */
        uint64_t m = options.transa ? operand[0].cols : operand[0].rows;
        uint64_t n = options.transb ? operand[1].rows : operand[1].cols;
        operand[2].stacked = operand[0].stacked || operand[1].stacked;
        operand[2].batch =
            operand[0].batch > operand[1].batch ? operand[0].batch : operand[1].batch;
        operand[2].rows = m;
        operand[2].cols = n;
    }
    options.has_alpha = use->has_alpha;
    options.has_beta = present[2];
    options.alpha = use->alpha;
    options.beta = use->beta;
    return choose(p, step, GM_OP_MATMUL, &options, operand, present);
}

/* Whether a value is a matrix transposed, and nothing else: there are kernels for that. */
static bool is_transpose(const struct gm_eval *e, int index, struct gm_factor_use *ret)
{
    const struct gm_value *x = &e->value[index];

    return x->kind == GM_VALUE_COMPUTED && x->instruction == GM_DO_LOAD &&
           x->dtype == e->value[x->child[0]].dtype && x->shape.ndim >= 2 &&
           gm_eval_as_matrix(e, x->child[0], ret) && ret->transposed;
}

static enum gm_status plan_transpose(struct planner *p, const struct gm_factor_use *use,
                                     struct gm_graph_step *step)
{
    const struct gm_op_options options = {0};
    const struct gm_matrix operand[GM_OPERANDS_MAX] = {use->matrix};
    const bool present[GM_OPERANDS_MAX] = {true};

    step->operand[0] = place_of(p, use->base);
    step->skip[0] = use->offset;
    return choose(p, step, GM_OP_TRANSPOSE, &options, operand, present);
}

static void plan_program(struct planner *p, int value, struct gm_graph_step *step)
{
    int reads[GM_PROGRAM_INPUTS_MAX];

    gm_eval_program(p->e, value, &step->program, reads);
    for (unsigned i = 0; i < step->program.inputs; i++) {
        struct gm_reading reading = gm_eval_reading(p->e, reads[i]);
        step->operand[i] = place_of(p, reading.base);
        step->skip[i] = reading.offset;
    }
    gm_program_join(&step->program);
    step->scratch_bytes = gm_program_scratch(&step->program);
}

static enum gm_status plan_step(struct planner *p, int value, struct gm_graph_step *step)
{
    struct gm_product_use use;
    struct gm_factor_use factor;

    step->us = -1;
    if (gm_eval_as_product(p->e, value, &use))
        return plan_product(p, &use, step);
    if (is_transpose(p->e, value, &factor))
        return plan_transpose(p, &factor, step);
    plan_program(p, value, step);
    return GM_OK;
}

/* ---- Memory. ---- */

/* A part of the temporary memory, and the steps between which it is in use. */
struct span {
    uint64_t at, bytes;
    unsigned from, to;
};

/* The last step that reads a value. */
static unsigned last_use(const struct gm_graph *graph, unsigned value, unsigned made)
{
    unsigned last = made;

    for (unsigned i = made; i < graph->steps; i++)
        for (unsigned k = 0; k < gm_graph_step_operands(&graph->step[i]); k++)
            if (graph->step[i].operand[k] == value)
                last = i;
    return last;
}

/* The first place that is free from `from` to `to`. */
static bool find_room(const struct span *spans, unsigned n, struct span *span)
{
    bool moved = true;

    span->at = 0;
    while (moved) {
        moved = false;
        for (unsigned i = 0; i < n; i++) {
            const struct span *other = &spans[i];
            bool meets = other->from <= span->to && span->from <= other->to &&
                         other->at < span->at + span->bytes && span->at < other->at + other->bytes;
            if (meets) {
                span->at = other->at + other->bytes;
                moved = true;
            }
        }
    }
    uint64_t end;
    return gm_size_add(span->at, span->bytes, &end);
}

static bool add_span(struct gm_graph *graph, struct span *spans, unsigned *n, uint64_t bytes,
                     unsigned from, unsigned to, uint64_t *ret_at)
{
    struct span span = {.from = from, .to = to};

    if (!gm_size_add(bytes, GM_DEVICE_ALIGNMENT - 1, &span.bytes))
        return false;
    span.bytes &= ~(GM_DEVICE_ALIGNMENT - 1);
    if (!find_room(spans, *n, &span))
        return false;
    spans[(*n)++] = span;
    *ret_at = span.at;
    if (graph->temporary_bytes < span.at + span.bytes)
        graph->temporary_bytes = span.at + span.bytes;
    return true;
}

static enum gm_status plan_memory(struct planner *p, uint64_t memory_bytes)
{
    struct gm_graph *graph = p->graph;
    struct span spans[2 * GM_EVAL_STEPS_MAX];
    unsigned n = 0;
    bool fits = true;

    for (unsigned i = 0; i < graph->steps && fits; i++) {
        struct gm_graph_step *step = &graph->step[i];
        struct gm_graph_value *value = &graph->value[step->result];
        if (step->scratch_bytes > 0)
            fits = add_span(graph, spans, &n, step->scratch_bytes, i, i, &step->scratch_at);
        if (fits && value->temporary)
            fits = add_span(graph, spans, &n, gm_matrix_bytes(&value->matrix), i,
                            last_use(graph, step->result, i), &value->at);
    }
    if (fits && graph->temporary_bytes <= memory_bytes)
        return GM_OK;
    return gm_fail(
        p->err, GM_TOO_LARGE,
        "between its steps the expression stores %llu bytes; the limit is %llu, half of the "
        "device's memory, or of --memory-limit if the device works in that",
        fits ? (unsigned long long)graph->temporary_bytes : UINT64_MAX,
        (unsigned long long)memory_bytes);
}

/* ---- The graph. ---- */

static enum gm_status add_step(struct planner *p, int value)
{
    struct gm_graph *graph = p->graph;
    const struct gm_value *x = &p->e->value[value];
    struct gm_graph_step *step = &graph->step[p->e->stored[value]];
    unsigned result = place_of(p, value);
    struct gm_graph_value *stored = &graph->value[result];
    enum gm_status status =
        gm_matrix_init(&stored->matrix, x->dtype, GM_ROW_MAJOR, &x->shape, p->err);

    if (status == GM_OK)
        status = plan_step(p, value, step);
    if (status != GM_OK) {
        struct gm_error why = *p->err;
        return why.at > 0 ? status : gm_eval_fail(p->err, status, x->at, "%s", why.detail);
    }
    stored->temporary = value != p->e->root;
    step->result = result;
    graph->flops += gm_graph_step_flops(step);
    if (!gm_size_add(graph->bytes, gm_graph_step_bytes(step), &graph->bytes))
        graph->bytes = UINT64_MAX;
    return GM_OK;
}

enum gm_status gm_eval_plan(struct gm_eval *e, unsigned names, const struct gm_device_facts *facts,
                            struct gm_choice_cache *choices, enum gm_precision precision,
                            uint64_t memory_bytes, struct gm_graph **ret, struct gm_error *err)
{
    struct planner p = {.e = e,
                        .names = names,
                        .facts = facts,
                        .choices = choices,
                        .precision = precision,
                        .err = err};
    enum gm_status status = GM_OK;
    unsigned steps = (unsigned)e->stored[e->root] + 1;

    p.graph = calloc(1, sizeof *p.graph);
    if (p.graph) {
        p.graph->value = calloc(names + steps, sizeof *p.graph->value);
        p.graph->step = calloc(steps, sizeof *p.graph->step);
    }
    if (!p.graph || !p.graph->value || !p.graph->step) {
        gm_graph_free(p.graph);
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the plan of an expression");
    }
    p.graph->values = names + steps;
    p.graph->steps = steps;
    for (unsigned i = 0; i < names; i++)
        p.graph->value[i].matrix = e->operand[i].matrix;
    err->at = 0;
    for (int i = 0; i <= e->root && status == GM_OK; i++)
        if (e->stored[i] >= 0)
            status = add_step(&p, i);
    p.graph->result = names + steps - 1;
    if (status == GM_OK)
        status = plan_memory(&p, memory_bytes);
    if (status != GM_OK) {
        gm_graph_free(p.graph);
        return status;
    }
    *ret = p.graph;
    return GM_OK;
}
