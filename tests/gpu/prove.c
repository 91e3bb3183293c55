/*
 * prove.c - one operation on the GPU by every variant, against the oracle.
 *
 * A case lies in host memory with guards around each matrix. All of it goes to the device and all
 * of it comes back, so that what is written beyond a result, or into an operand, is found. Each
 * variant runs twice, on results filled with different poison: an element that it leaves out, or
 * makes of what it finds, cannot come out right both times.
 */
#include "prove.h"

#include "kernels/layout.h"
#include "tests/unit/test_cpu_case.h"

#define VARIANTS_MAX 256

static unsigned long ran[VARIANTS_MAX], refused[VARIANTS_MAX], rearranged[VARIANTS_MAX];

/* Memory on the device for an operand or the result, with its guards; kept from case to case. */
static struct room {
    char *data;
    uint64_t bytes;
} room[GM_OPERANDS_MAX + 1];

/* A matrix of a case in host memory, its guards included. */
static uint64_t guarded_bytes(const struct gm_matrix *matrix, const char *buffer)
{
    uint64_t guard = (uint64_t)((char *)matrix->data - buffer);

    return 2 * guard + (gm_matrix_bytes(matrix) + 63) / 64 * 64;
}

static const struct gm_matrix *matrix_of(const struct kernel_case *made, unsigned i)
{
    return i < GM_OPERANDS_MAX ? &made->op.operand[i] : &made->op.result;
}

static bool upload(const struct kernel_case *made, struct gm_op *ret)
{
    bool done = true;

    *ret = made->op;
    for (unsigned i = 0; i <= GM_OPERANDS_MAX; i++) {
        const struct gm_matrix *matrix = matrix_of(made, i);
        if (!made->buffer[i])
            continue;
        uint64_t bytes = guarded_bytes(matrix, made->buffer[i]);
        if (room[i].bytes < bytes) {
            cudaFree(room[i].data);
            room[i].bytes = 0;
            if (!CHECK_EQ(cudaMalloc((void **)&room[i].data, bytes), cudaSuccess))
                return false;
            room[i].bytes = bytes;
        }
        done &= CHECK_EQ(cudaMemcpy(room[i].data, made->buffer[i], bytes, cudaMemcpyHostToDevice),
                         cudaSuccess);
        (i < GM_OPERANDS_MAX ? &ret->operand[i] : &ret->result)->data =
            room[i].data + ((char *)matrix->data - made->buffer[i]);
    }
    return done;
}

/* All of it, operands and guards too: case_intact then judges what the kernel has left. */
static bool download(const struct kernel_case *made)
{
    bool done = true;

    for (unsigned i = 0; i <= GM_OPERANDS_MAX; i++) {
        if (made->buffer[i])
            done &= CHECK_EQ(cudaMemcpy(made->buffer[i], room[i].data,
                                        guarded_bytes(matrix_of(made, i), made->buffer[i]),
                                        cudaMemcpyDeviceToHost),
                             cudaSuccess);
    }
    return done;
}

/* One run on a result that holds `poison`. */
static bool run(struct device *device, const struct kernel_case *made,
                const struct gm_variant *variant, int poison)
{
    struct gm_op op;

    memset(made->op.result.data, poison, gm_matrix_bytes(&made->op.result));
    if (!upload(made, &op))
        return false;
    if (!CHECK_EQ(device_run(device, &op, variant), GM_OK) || !CHECK(device_wait(device))) {
        fprintf(stderr, "  %s\n", device->error);
        return false;
    }
    return download(made);
}

static void prove(struct device *device, const struct kernel_case *made,
                  const struct gm_reference *reference, const struct gm_variant *variant)
{
    static const int poison[2] = {CASE_POISON, 0x5A};
    uint64_t bytes = gm_matrix_bytes(&made->op.result);
    /* What equals an exact reference twice is the same twice. */
    char *before = reference->exact ? NULL : malloc(bytes + 1);
    bool right = CHECK(reference->exact || before);
    struct gm_deviation deviation = {0};
    char text[256];

    for (int i = 0; i < 2 && right; i++) {
        right &= run(device, made, variant, poison[i]);
        if (!right)
            break;
        deviation = gm_reference_compare(reference, &made->op, made->op.result.data);
        right &= CHECK_EQ(deviation.wrong, 0);
        right &= CHECK(case_intact(made));
        if (before && i > 0)
            right &= CHECK(memcmp(before, made->op.result.data, bytes) == 0);
        else if (before)
            memcpy(before, made->op.result.data, bytes);
    }
    if (!right)
        fprintf(stderr, "  %s by %s: %llu wrong, first %llu, worst %g of its bound\n",
                case_text(&made->op, text), variant->name, (unsigned long long)deviation.wrong,
                (unsigned long long)deviation.first, deviation.worst);
    free(before);
}

static bool needs_rearranging(const struct gm_op *op, const struct gm_variant *variant)
{
    bool needs = false;

    for (unsigned i = 0; i < op->operands; i++)
        needs |= gm_needs_prepare(op, variant, i);
    return needs;
}

void prove_all(struct device *device, const struct kernel_case *made, const char *only)
{
    const struct gm_variant *variant;
    struct gm_reference reference = {0};
    struct gm_error err = {.detail = ""};

    /* No kernel is asked for what is empty. */
    if (gm_matrix_elements(&made->op.result) == 0 ||
        !CHECK_STATUS(gm_reference_make(&made->op, &reference, &err), GM_OK, &err))
        return;
    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        if (!gm_variant_is_there(variant, &device->facts) ||
            (only && strcmp(only, variant->name) != 0))
            continue;
        err.detail[0] = '\0';
        enum gm_status status = gm_variant_check(variant, &made->op, &device->facts, &err);
        if (status != GM_OK) {
            CHECK_EQ(status, GM_KERNEL_UNAVAILABLE);
            CHECK(err.detail[0] != '\0');
            refused[i]++;
        } else if (needs_rearranging(&made->op, variant)) {
            rearranged[i]++; /* a backend's work; the same shape comes row-major too */
        } else {
            prove(device, made, &reference, variant);
            ran[i]++;
        }
    }
    gm_reference_free(&reference);
}

/* A right answer from a test that never ran is none. */
void prove_ran(const struct device *device, const char *only)
{
    const struct gm_variant *variant;
    unsigned variants = 0;

    for (size_t i = 0; (variant = gm_variant_at(i)) && CHECK(i < VARIANTS_MAX); i++) {
        if (!gm_variant_is_there(variant, &device->facts) ||
            (only && strcmp(only, variant->name) != 0))
            continue;
        printf("%-10s %-15s ran %6lu times, refused %6lu, wanted another layout %6lu\n",
               gm_op_name(variant->op), variant->name, ran[i], refused[i], rearranged[i]);
        CHECK(ran[i] > 0);
        variants++;
    }
    CHECK(variants > 0);
}
