/*
 * graph.c - sizes of programs, and the memory of graphs.
 */
#include "graph.h"

#include <stdlib.h>

/* Elements of a part: enough work that dividing a reduction further would not pay. */
#define PART_ELEMENTS ((uint64_t)1 << 16)
/* Parts times what remains: as many sums as a large GPU has threads, and 2 MiB of scratch. */
#define PART_SUMS ((uint64_t)1 << 18)

static enum gm_status accepts_nothing(const struct gm_op *op, const struct gm_device_facts *facts,
                                      struct gm_error *err)
{
    (void)op;
    (void)facts;
    return gm_fail(err, GM_KERNEL_UNAVAILABLE, "a graph has kernels of its own for each step");
}

const struct gm_variant gm_graph_variant = {
    .op = GM_OP_EVAL,
    .name = "graph",
    .accepts = accepts_nothing,
    .scratch = gm_scratch_none,
    .needs = "",
    .note = "the steps of an expression, one after another",
};

/* Takes `rows` out of the space: the new rows are those of the batch. */
static void drop_rows(struct gm_program *p)
{
    for (unsigned i = 0; i < p->inputs; i++) {
        p->input[i].row = p->input[i].batch;
        p->input[i].batch = 0;
    }
    p->rows = p->batch;
    p->batch = 1;
}

static void drop_cols(struct gm_program *p)
{
    for (unsigned i = 0; i < p->inputs; i++)
        p->input[i].col = p->input[i].row;
    p->cols = p->rows;
    drop_rows(p);
}

static bool rows_join(const struct gm_program *p)
{
    for (unsigned i = 0; i < p->inputs; i++)
        if (p->input[i].row != p->input[i].col * (int64_t)p->cols)
            return false;
    return p->rows > 1;
}

static bool batch_joins(const struct gm_program *p)
{
    for (unsigned i = 0; i < p->inputs; i++)
        if (p->input[i].batch != p->input[i].row * (int64_t)p->rows)
            return false;
    return p->batch > 1;
}

static void join_batch(struct gm_program *p)
{
    p->rows *= p->batch;
    p->batch = 1;
    for (unsigned i = 0; i < p->inputs; i++)
        p->input[i].batch = 0;
}

void gm_program_join(struct gm_program *p)
{
    if (gm_program_elements(p) == 0)
        return;
    for (unsigned i = 0; i < 2 && p->cols == 1; i++)
        drop_cols(p);
    if (p->rows == 1)
        drop_rows(p);
    if (batch_joins(p))
        join_batch(p);
    if (rows_join(p)) {
        p->cols *= p->rows;
        drop_rows(p);
    }
    if (rows_join(p)) {
        p->cols *= p->rows;
        drop_rows(p);
    }
}

uint64_t gm_program_elements(const struct gm_program *p)
{
    return p->batch * p->rows * p->cols;
}

static uint64_t ceil_div(uint64_t total, uint64_t each)
{
    return total / each + (total % each != 0);
}

struct gm_division gm_program_parts(const struct gm_program *p)
{
    uint64_t remain = p->outer * p->inner, parts = 1;

    if (p->reduction != GM_REDUCE_NONE && remain > 0 && p->along > 0) {
        uint64_t by_work = ceil_div(p->along * p->inner, PART_ELEMENTS);
        uint64_t by_sums = PART_SUMS / remain > 0 ? PART_SUMS / remain : 1;
        parts = by_work < by_sums ? by_work : by_sums;
    }
    uint64_t each = ceil_div(p->along, parts);
    return (struct gm_division){each > 0 ? ceil_div(p->along, each) : 1, each};
}

uint64_t gm_program_scratch(const struct gm_program *p)
{
    uint64_t parts = gm_program_parts(p).parts;

    return p->reduction != GM_REDUCE_NONE && parts > 1
               ? p->outer * parts * p->inner * sizeof(union gm_number)
               : 0;
}

double gm_program_flops(const struct gm_program *p)
{
    unsigned computes = p->reduction != GM_REDUCE_NONE;

    for (unsigned i = 0; i < p->code; i++) {
        unsigned kind = p->instruction[i].kind;
        computes += kind != GM_DO_LOAD && kind != GM_DO_STORE;
    }
    return (double)computes * (double)gm_program_elements(p);
}

uint64_t gm_program_bytes(const struct gm_program *p)
{
    uint64_t all = gm_program_elements(p);
    uint64_t out = p->reduction == GM_REDUCE_NONE ? all : p->outer * p->inner;
    uint64_t bytes = out * gm_dtype_size(p->dtype);

    for (unsigned i = 0; i < p->inputs; i++) {
        const struct gm_program_input *x = &p->input[i];
        uint64_t elements = (x->batch != 0 ? p->batch : 1) * (x->row != 0 ? p->rows : 1) *
                            (x->col != 0 ? p->cols : 1);
        if (all > 0 && !gm_size_add(bytes, elements * gm_dtype_size(x->dtype), &bytes))
            return UINT64_MAX;
    }
    return bytes;
}

void gm_graph_free(struct gm_graph *graph)
{
    if (!graph)
        return;
    free(graph->value);
    free(graph->step);
    free(graph);
}

static const char *const reduction_names[GM_REDUCTION_COUNT] = {
#define X(name, text) [GM_REDUCE_##name] = text,
    GM_REDUCTION_LIST(X)
#undef X
};

const char *gm_graph_step_op(const struct gm_graph_step *step)
{
    return step->variant ? gm_op_name(step->op.kind) : reduction_names[step->program.reduction];
}

const char *gm_graph_step_kernel(const struct gm_graph_step *step)
{
    return step->variant ? step->variant->name : "program";
}

unsigned gm_graph_step_operands(const struct gm_graph_step *step)
{
    return step->variant ? step->op.operands : step->program.inputs;
}

double gm_graph_step_flops(const struct gm_graph_step *step)
{
    return step->variant ? gm_op_flops(&step->op) : gm_program_flops(&step->program);
}

uint64_t gm_graph_step_bytes(const struct gm_graph_step *step)
{
    return step->variant ? gm_op_bytes_min(&step->op) : gm_program_bytes(&step->program);
}

bool gm_graph_step_is_empty(const struct gm_graph_step *step)
{
    return step->variant ? gm_matrix_elements(&step->op.result) == 0
                         : gm_program_elements(&step->program) == 0;
}

static char *address(const struct gm_graph *graph, unsigned index, void *memory)
{
    const struct gm_graph_value *value = &graph->value[index];

    return value->temporary ? (char *)memory + value->at : value->matrix.data;
}

void gm_graph_place(const struct gm_graph *graph, struct gm_graph_step *step, void *memory)
{
    struct gm_program *p = &step->program;

    for (unsigned i = 0; i < gm_graph_step_operands(step); i++) {
        const struct gm_graph_value *value = &graph->value[step->operand[i]];
        int64_t skip = step->skip[i] * (int64_t)gm_dtype_size(value->matrix.dtype);
        char *data = address(graph, step->operand[i], memory);
        /* Of an empty matrix there may be no memory. */
        data = data && skip != 0 ? data + skip : data;
        if (step->variant)
            step->op.operand[i].data = data;
        else
            p->input[i].data = data;
    }
    step->op.result.data = p->result = address(graph, step->result, memory);
    p->scratch = step->scratch_bytes > 0 ? (char *)memory + step->scratch_at : NULL;
}
