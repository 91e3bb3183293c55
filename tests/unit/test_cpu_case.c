/* test_cpu_case.c - operations between guards. */
#include "test_cpu_case.h"

#define GUARD 4096u /* bytes on either side: many rows of most shapes */
#define GUARD_BYTE 0xA5

static uint64_t padded(uint64_t bytes)
{
    return (bytes + 63) & ~(uint64_t)63;
}

static void *make_buffer(uint64_t bytes, char **ret)
{
    *ret = aligned_alloc(64, padded(bytes) + 2 * GUARD);
    if (!*ret)
        abort();
    memset(*ret, GUARD_BYTE, padded(bytes) + 2 * GUARD);
    return *ret + GUARD;
}

static bool is_guarded(const char *buffer, uint64_t bytes)
{
    uint64_t end = padded(bytes) + 2 * GUARD;

    for (uint64_t i = 0; i < end; i++) {
        if (i == GUARD)
            i += bytes;
        if ((unsigned char)buffer[i] != GUARD_BYTE)
            return false;
    }
    return true;
}

struct kernel_case case_make(const struct gm_op *op, uint64_t *random)
{
    struct kernel_case made = {.op = *op};

    for (unsigned i = 0; i < op->operands; i++) {
        struct gm_matrix *x = &made.op.operand[i];
        x->data = make_buffer(gm_matrix_bytes(x), &made.buffer[i]);
        random_fill(random, x->dtype, x->data, gm_matrix_elements(x));
    }
    made.op.result.data = make_buffer(gm_matrix_bytes(&op->result), &made.buffer[GM_OPERANDS_MAX]);
    return made;
}

void case_seal(struct kernel_case *made)
{
    for (unsigned i = 0; i < made->op.operands; i++) {
        uint64_t bytes = gm_matrix_bytes(&made->op.operand[i]);
        made->copy[i] = malloc(bytes + 1);
        if (!made->copy[i])
            abort();
        memcpy(made->copy[i], made->op.operand[i].data, bytes);
    }
}

void case_poison(const struct kernel_case *made)
{
    memset(made->op.result.data, CASE_POISON, gm_matrix_bytes(&made->op.result));
}

bool case_intact(const struct kernel_case *made)
{
    for (unsigned i = 0; i < made->op.operands; i++) {
        uint64_t bytes = gm_matrix_bytes(&made->op.operand[i]);
        if (!is_guarded(made->buffer[i], bytes) ||
            memcmp(made->copy[i], made->op.operand[i].data, bytes) != 0)
            return false;
    }
    return is_guarded(made->buffer[GM_OPERANDS_MAX], gm_matrix_bytes(&made->op.result));
}

void case_free(struct kernel_case *made)
{
    for (unsigned i = 0; i <= GM_OPERANDS_MAX; i++)
        free(made->buffer[i]);
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        free(made->copy[i]);
    *made = (struct kernel_case){0};
}

const char *case_text(const struct gm_op *op, char buf[256])
{
    char text[GM_OPERANDS_MAX][GM_SHAPE_TEXT_MAX];
    size_t used =
        (size_t)snprintf(buf, 256, "%s %s", gm_op_name(op->kind), gm_dtype_name(op->result.dtype));

    for (unsigned i = 0; i < op->operands; i++)
        used += (size_t)snprintf(buf + used, 256 - used, " %s%s",
                                 gm_matrix_shape_text(&op->operand[i], text[i]),
                                 op->operand[i].layout == GM_COL_MAJOR ? "F" : "");
    snprintf(buf + used, 256 - used, "%s%s alpha %g beta %g", op->transa ? " transa" : "",
             op->transb ? " transb" : "", op->alpha.real, op->beta.real);
    return buf;
}

enum gm_status case_run(void *context, const struct kernel_case *made,
                        const struct gm_variant *variant, struct gm_times *ret_times)
{
    struct gm_task task = {.op = made->op, .variant = variant, .repeat = 1};

    CHECK_EQ(gm_backend_cpu.run(context, 0, 0, (struct gm_task *[]){&task}, 1), GM_OK);
    if (ret_times)
        *ret_times = task.times;
    return task.status;
}
