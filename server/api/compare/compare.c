/*
 * compare.c - plans a comparison: its kernels, their order, and the memory that they need.
 */
#include "server/api/compare/compare.h"

#include "kernels/choose/choose.h"
#include "server/limits.h"

#include <stdlib.h>
#include <string.h>

/* Which variants become rows. */
struct listing {
    const struct gm_op *op, *copy;
    const struct gm_device_facts *facts;
    const char *name; /* the requested kernel, or "" for all */
    const struct gm_variant *automatic;
    bool automatic_too; /* include it even if another is named: others are compared with its result
                         */
};

static bool reference_is_cheap(const struct gm_op *op)
{
    bool cheap = gm_op_flops(op) <= GM_REFERENCE_FLOPS_MAX &&
                 gm_matrix_elements(&op->result) <= GM_REFERENCE_ELEMENTS_MAX;

    for (unsigned i = 0; i < op->operands; i++)
        cheap = cheap && gm_matrix_elements(&op->operand[i]) <= GM_REFERENCE_ELEMENTS_MAX;
    return cheap;
}

/* Makes the baseline: a copy of a's elements in their stored order. Fails only if the operation
 * does. */
static enum gm_status make_copy(const struct gm_op *op, struct gm_op *ret, struct gm_error *err)
{
    const struct gm_op_options options = {0};
    const bool present[GM_OPERANDS_MAX] = {true};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {op->operand[0]};

    operand[0].layout = GM_ROW_MAJOR;
    return gm_op_init(ret, GM_OP_COPY, &options, operand, present, err);
}

/* Fills in the listing. plan->variant is the one that auto chooses. */
static enum gm_status make_listing(const struct gm_plan *plan, const char *kernel,
                                   struct gm_op *copy, struct listing *ret, struct gm_error *err)
{
    const char *name = gm_variant_name(kernel);

    *ret = (struct listing){.op = &plan->op,
                            .copy = copy,
                            .facts = plan->device->facts,
                            .name = strcmp(name, "auto") == 0 ? "" : name,
                            .automatic = plan->variant,
                            .automatic_too = !reference_is_cheap(&plan->op)};
    return make_copy(&plan->op, copy, err);
}

/* Whether the variant becomes a row; if so, fills in the row. */
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
    row.baseline = !ours && variant->op == GM_OP_COPY && !gm_op_computes(l->op->kind);
    if (row.baseline) {
        row.failure.status = GM_OK;
        ours = gm_variant_check(variant, l->copy, l->facts, &row.failure) == GM_OK;
    }
    bool named = !row.baseline && strcmp(variant->name, l->name) == 0;
    if (!ours || (*l->name && !named && !(l->automatic_too && row.automatic)))
        return false;
    *ret = row;
    return true;
}

/* Counts the rows that can run, and the memory that they need. */
static void plan_rows(struct gm_plan *plan, const struct listing *l)
{
    const struct gm_allocator allocator = gm_plan_allocator(plan);
    struct gm_compare_row row;

    plan->able = 0;
    plan->scratch_bytes = 0;
    plan->result_bytes = gm_matrix_bytes(&l->op->result);
    for (size_t i = 0; gm_variant_at(i); i++) {
        if (!make_row(l, gm_variant_at(i), &row) || row.failure.status != GM_OK)
            continue;
        const struct gm_op *op = row.baseline ? l->copy : l->op;
        uint64_t bytes = allocator.backend->scratch_bytes(allocator.context, op, row.variant);
        if (bytes > plan->scratch_bytes)
            plan->scratch_bytes = bytes;
        if (gm_matrix_bytes(&op->result) > plan->result_bytes)
            plan->result_bytes = gm_matrix_bytes(&op->result);
        plan->able++;
    }
}

/* Checks the estimated cost before anything runs: each kernel once for the check, and `repeat`
 * times if that is stated. The time that they really take is bounded as they run. */
static enum gm_status check_cost(const struct gm_plan *plan, uint64_t repeat, struct gm_error *err)
{
    const struct gm_device_facts *facts = plan->device->facts;
    uint64_t runs = plan->able * (1 + (repeat > 1 ? repeat : 0));
    double seconds = gm_cost_seconds(&plan->op, facts) * (double)runs;

    if (facts->kind == GM_DEVICE_SIM)
        return gm_cost_simulated(&plan->op, 1, err);
    return seconds <= GM_REPEAT_COST_S
               ? GM_OK
               : gm_fail(err, GM_COST_LIMIT,
                         "%u kernels, %llu runs in all, would take at least %.0f seconds; at most "
                         "%d may be taken: name one with kernel=, or repeat fewer times",
                         plan->able, (unsigned long long)runs, seconds, GM_REPEAT_COST_S);
}

enum gm_status gm_handle_compare_plan(struct gm_plan *plan, const struct gm_plan_input *in,
                                      struct gm_error *err)
{
    const struct gm_params *params = &in->parsed->params;
    const struct gm_variant *named;
    struct gm_op copy;
    struct listing l;
    uint64_t reference;
    enum gm_status status =
        gm_choose(plan->device->choices, &plan->op, plan->device->facts, "", &plan->variant, err);

    if (status == GM_OK) {
        gm_set_tiles(&plan->op, plan->device->facts); /* whatever auto takes, it is a row */
        status = gm_select(&plan->op, plan->device->facts, params->kernel, &named, err);
    }
    if (status == GM_OK)
        status = make_listing(plan, params->kernel, &copy, &l, err);
    if (status != GM_OK)
        return status;
    plan_rows(plan, &l);
    plan->bytes = gm_allocation_cost(gm_plan_allocator(plan), plan->result_bytes);
    reference = plan->bytes;
    plan->has_reference =
        reference_is_cheap(&plan->op) && gm_compare_reference_bytes(&plan->op, &reference);
    if (!gm_size_add(plan->bytes, reference, &plan->bytes) ||
        !gm_size_add(plan->bytes, plan->scratch_bytes, &plan->bytes))
        plan->bytes = UINT64_MAX;
    return check_cost(plan, params->repeat, err);
}

static size_t variant_count(void)
{
    size_t count = 0;

    while (gm_variant_at(count))
        count++;
    return count;
}

struct gm_compare *gm_compare_new(const struct gm_request *r, struct gm_error *err)
{
    const size_t variants = variant_count();
    struct gm_compare *c = calloc(1, sizeof *c + variants * sizeof c->row[0]);
    const struct gm_params *params = &r->parsed.params;
    struct gm_compare_row row;
    struct listing l;

    if (!c) {
        gm_fail(err, GM_MEMORY_FULL, "no memory for a comparison");
        return NULL;
    }
    c->op = r->plan.op;
    c->repeat = params->repeat > 0 ? (unsigned)params->repeat : GM_COMPARE_REPEAT;
    c->has_reference = r->plan.has_reference;
    if (make_listing(&r->plan, params->kernel, &c->copy, &l, err) != GM_OK) {
        free(c);
        return NULL;
    }
    /* First auto's choice, then the baselines, then the others from the end of the list. */
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = variants; i > 0; i--) {
            if (!make_row(&l, gm_variant_at(i - 1), &row))
                continue;
            if ((row.automatic ? 0 : row.baseline ? 1 : 2) == round)
                c->row[c->count++] = row;
        }
    }
    return c;
}

void gm_handle_compare_drop(struct gm_request *r)
{
    struct gm_compare *c = gm_compare_of(r);

    if (c->slot)
        gm_sched_unreserve(r->plan.device->sched, r->head.client);
    gm_allocation_free(&c->expected, &r->reservation);
    gm_reference_free(&c->reference);
    free(c);
    r->run.state = NULL;
}

const struct gm_op *gm_compare_op(const struct gm_compare *c, const struct gm_compare_row *row)
{
    return row->baseline ? &c->copy : &c->op;
}
