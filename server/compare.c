/*
 * compare.c - which kernels a comparison runs, in what order, and what memory that takes.
 */
#include "server/compare.h"

#include "kernels/select.h"
#include "server/limits.h"
#include "server/request.h"

#include <stdlib.h>
#include <string.h>

/* What makes a variant a row. */
struct listing {
    const struct gm_op *op, *copy;
    const struct gm_device_facts *facts;
    const char *name; /* of the one kernel that is asked for, or "" */
    const struct gm_variant *automatic;
    bool automatic_too; /* whatever the name: others are compared with its result */
};

static bool reference_is_cheap(const struct gm_op *op)
{
    bool cheap = gm_op_flops(op) <= GM_REFERENCE_FLOPS_MAX &&
                 gm_matrix_elements(&op->result) <= GM_REFERENCE_ELEMENTS_MAX;

    for (unsigned i = 0; i < op->operands; i++)
        cheap = cheap && gm_matrix_elements(&op->operand[i]) <= GM_REFERENCE_ELEMENTS_MAX;
    return cheap;
}

/* A copy of a's elements in the order in which they lie. Without operation a copy cannot fail. */
static enum gm_status make_copy(const struct gm_op *op, struct gm_op *ret, struct gm_error *err)
{
    const struct gm_op_options options = {0};
    const bool present[GM_OPERANDS_MAX] = {true};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {op->operand[0]};

    operand[0].layout = GM_ROW_MAJOR;
    return gm_op_init(ret, GM_OP_COPY, &options, operand, present, err);
}

static enum gm_status make_listing(const struct gm_request *r, struct gm_op *copy,
                                   struct listing *ret, struct gm_error *err)
{
    const struct gm_op *op = &r->job.task.op;
    const char *name = strcmp(r->params.kernel, "auto") == 0 ? "" : r->params.kernel;
    const struct gm_variant *automatic, *named;
    enum gm_status status = gm_select(op, r->device->facts, "", &automatic, err);

    if (status == GM_OK)
        status = gm_select(op, r->device->facts, name, &named, err);
    if (status == GM_OK)
        status = make_copy(op, copy, err);
    if (status == GM_OK)
        *ret = (struct listing){.op = op,
                                .copy = copy,
                                .facts = r->device->facts,
                                .name = name,
                                .automatic = automatic,
                                .automatic_too = !reference_is_cheap(op)};
    return status;
}

/* Whether the variant is a row, and which. */
static bool make_row(const struct listing *l, const struct gm_variant *variant,
                     struct gm_compare_row *ret)
{
    struct gm_compare_row row = {.variant = variant,
                                 .automatic = variant == l->automatic,
                                 .us_min = -1,
                                 .us_median = -1,
                                 .us_prepare = -1};

    if (!gm_variant_is_there(variant, l->facts))
        return false;
    bool able = gm_variant_check(variant, l->op, l->facts, &row.failure) == GM_OK;
    bool ours = variant->op == l->op->kind || able;
    row.yardstick = !ours && variant->op == GM_OP_COPY && !gm_op_computes(l->op->kind);
    if (row.yardstick) {
        row.failure.status = GM_OK;
        ours = gm_variant_check(variant, l->copy, l->facts, &row.failure) == GM_OK;
    }
    bool named = !row.yardstick && strcmp(variant->name, l->name) == 0;
    if (!ours || (*l->name && !named && !(l->automatic_too && row.automatic)))
        return false;
    *ret = row;
    return true;
}

enum gm_status gm_compare_plan(const struct gm_request *r, struct gm_compare_plan *ret,
                               struct gm_error *err)
{
    const struct gm_source source = {r->device->backend, r->device->context};
    struct gm_compare_plan plan = {0};
    struct gm_compare_row row;
    struct gm_op copy;
    struct listing l;
    uint64_t scratch = 0, reference;
    enum gm_status status = make_listing(r, &copy, &l, err);

    if (status != GM_OK)
        return status;
    plan.result_bytes = gm_matrix_bytes(&l.op->result);
    for (size_t i = 0; gm_variant_at(i); i++) {
        if (!make_row(&l, gm_variant_at(i), &row) || row.failure.status != GM_OK)
            continue;
        const struct gm_op *op = row.yardstick ? &copy : l.op;
        uint64_t bytes = source.backend->scratch_bytes(source.context, op, row.variant);
        scratch = bytes > scratch ? bytes : scratch;
        if (gm_matrix_bytes(&op->result) > plan.result_bytes)
            plan.result_bytes = gm_matrix_bytes(&op->result);
        plan.able++;
    }
    plan.bytes = gm_block_cost(source, plan.result_bytes);
    reference = plan.bytes;
    plan.has_reference = reference_is_cheap(l.op) && gm_compare_reference_bytes(l.op, &reference);
    if (!gm_size_add(plan.bytes, reference, &plan.bytes) ||
        !gm_size_add(plan.bytes, scratch, &plan.bytes))
        plan.bytes = UINT64_MAX;
    *ret = plan;
    return GM_OK;
}

static size_t variant_count(void)
{
    size_t count = 0;

    while (gm_variant_at(count))
        count++;
    return count;
}

struct gm_compare *gm_compare_new(const struct gm_request *r, const struct gm_compare_plan *plan)
{
    const size_t variants = variant_count();
    struct gm_compare *c = calloc(1, sizeof *c + variants * sizeof c->row[0]);
    struct gm_compare_row row;
    struct gm_error error;
    struct listing l;

    if (!c)
        return NULL;
    c->op = r->job.task.op;
    c->repeat = r->params.repeat > 0 ? (unsigned)r->params.repeat : GM_COMPARE_REPEAT;
    c->has_reference = plan->has_reference;
    if (make_listing(r, &c->copy, &l, &error) != GM_OK) {
        free(c);
        return NULL;
    }
    /* auto's choice, the yardsticks, and the others from the end of the list. */
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = variants; i > 0; i--) {
            if (!make_row(&l, gm_variant_at(i - 1), &row))
                continue;
            if ((row.automatic ? 0 : row.yardstick ? 1 : 2) == round)
                c->row[c->count++] = row;
        }
    }
    return c;
}

void gm_compare_drop(struct gm_request *r)
{
    struct gm_compare *c = r->compare;

    if (!c)
        return;
    if (c->slot)
        gm_sched_unreserve(r->device->sched, r->head.client);
    gm_block_put(&c->expected, &r->share);
    gm_reference_free(&c->reference);
    free(c);
    r->compare = NULL;
}

const struct gm_op *gm_compare_op(const struct gm_compare *c, const struct gm_compare_row *row)
{
    return row->yardstick ? &c->copy : &c->op;
}
