/*
 * task.c - decides which tasks share a run, and counts what they compute and move.
 */
#include "task.h"

#include "device_facts.h"
#include "layout.h"

unsigned gm_group_matrix(const struct gm_task *task)
{
    const unsigned matrix = gm_gather_matrix(&task->op);
    bool gathers = matrix < GM_OPERANDS_MAX && task->on_device & 1u << matrix &&
                   task->variant->folds & GM_FOLDS_ROWS && task->repeat <= 1 && !task->report;

    return gathers ? matrix : GM_OPERANDS_MAX;
}

/* Keys of gathered products have this bit, and those of variants that group have not: addresses are
 * shorter. */
#define GATHERED_KEY ((uint64_t)1 << 63)

uint64_t gm_group_key(const struct gm_task *task)
{
    if (task->variant->groups && task->repeat <= 1 && !task->report)
        return (uint64_t)(uintptr_t)task->variant * GM_DTYPE_COUNT + task->op.result.dtype;
    if (gm_group_matrix(task) == GM_OPERANDS_MAX)
        return 0;
    return (gm_gather_hash(&task->op) + (uintptr_t)task->variant) | GATHERED_KEY;
}

unsigned gm_group_most(const struct gm_task *task)
{
    return gm_group_matrix(task) < GM_OPERANDS_MAX ? GM_GATHERED_MAX : 0;
}

uint64_t gm_group_bytes(const struct gm_task *task)
{
    const unsigned matrix = gm_group_matrix(task);
    uint64_t bytes = gm_op_bytes_min(&task->op);

    if (matrix == GM_OPERANDS_MAX || bytes == UINT64_MAX)
        return bytes;
    return bytes - gm_matrix_bytes(&task->op.operand[matrix]);
}

struct gm_volume gm_volume_of(const struct gm_task *task, const struct gm_device_facts *facts)
{
    const struct gm_op *op = &task->op;
    struct gm_volume volume = {gm_op_flops(op), (double)gm_op_bytes_min(op), 0, 0};

    if (op->kind == GM_OP_EVAL || !task->variant->groups || facts->kind != GM_DEVICE_CUDA)
        return volume;
    for (unsigned i = 0; i < op->operands; i++)
        if (gm_op_reads(op, i) && !(task->on_device & 1u << i))
            volume.link_in += (double)gm_matrix_bytes(&op->operand[i]);
    if (!(task->on_device & GM_RESULT_ON_DEVICE))
        volume.link_out = (double)gm_matrix_bytes(&op->result);
    return volume;
}

void gm_volume_share(struct gm_task *task[], unsigned n, const struct gm_device_facts *facts)
{
    const unsigned matrix = gm_group_matrix(task[0]);
    struct gm_volume all = {0};

    for (unsigned i = 0; i < n; i++) {
        struct gm_volume one = gm_volume_of(task[i], facts);
        if (task[i]->status != GM_OK)
            continue;
        if (matrix < GM_OPERANDS_MAX && all.bytes > 0) /* read once for all */
            one.bytes -= (double)gm_matrix_bytes(&task[i]->op.operand[matrix]);
        all.flops += one.flops;
        all.bytes += one.bytes;
        all.link_in += one.link_in;
        all.link_out += one.link_out;
    }
    for (unsigned i = 0; i < n; i++)
        task[i]->volume = all;
}
