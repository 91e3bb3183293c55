/* cuda_case.c - tasks on the fake runtime. */
#include "cuda_case.h"

#include "kernels/cuda/backend/device.h"
#include "kernels/graph.h"
#include "kernels/layout.h"
#include "kernels/variant.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* Kernels of variants.def. */
gm_kernel_fn gm_cuda_copy_vector, gm_cuda_matmul_cublas, gm_cuda_transpose_cublas;
gm_accepts_fn gm_cublas_accepts_product, gm_cublas_accepts_transpose;

uint64_t gm_host_memory(void)
{
    return (uint64_t)1 << 31;
}

uint64_t gm_scratch_none(const struct gm_op *op)
{
    (void)op;
    return 0;
}

enum gm_status gm_accepts_any(const struct gm_op *op, const struct gm_device_facts *facts,
                              struct gm_error *err)
{
    (void)op;
    (void)facts;
    (void)err;
    return GM_OK;
}

/* What a launch is, around the work of a host function: begin(), work, end(). */
static const char kernel_a, kernel_b;

static enum gm_status end(struct gm_exec *exec, const void *kernel)
{
    return gm_cuda_launched(exec, fake_cuda_launch(), kernel);
}

enum gm_status gm_cuda_copy_vector(const struct gm_op *op, struct gm_exec *exec)
{
    enum gm_status status = gm_cuda_launching(exec, &kernel_a);

    if (status != GM_OK)
        return status;
    if (gm_matrix_bytes(&op->result) <= fake_cuda.pretend)
        memcpy(op->result.data, op->operand[0].data, gm_matrix_bytes(&op->result));
    return end(exec, &kernel_a);
}

enum gm_status gm_cuda_rearrange(const struct gm_matrix *x, void *data, struct gm_exec *exec)
{
    size_t size = gm_dtype_size(x->dtype);
    const char *in = x->data;
    char *out = data;
    enum gm_status status = gm_cuda_launching(exec, &kernel_b);

    if (status != GM_OK)
        return status;
    for (uint64_t b = 0; b < x->batch; b++)
        for (uint64_t i = 0; i < x->rows; i++)
            for (uint64_t j = 0; j < x->cols; j++)
                memcpy(out + ((b * x->rows + i) * x->cols + j) * size,
                       in + ((j * x->rows + i) * x->batch + b) * size, size);
    return end(exec, &kernel_b);
}

enum gm_status gm_cuda_gather_rows(const struct gm_rows *rows, unsigned padded, void *matrix,
                                   struct gm_exec *exec)
{
    size_t size = gm_dtype_size(rows->dtype);
    enum gm_status status = gm_cuda_launching(exec, &kernel_b);

    if (status != GM_OK)
        return status;
    memset(matrix, 0, rows->length * padded * size);
    for (uint64_t i = 0; i < rows->length * rows->count; i++)
        memcpy((char *)matrix + (i / rows->count * padded + i % rows->count) * size,
               (const char *)rows->row[i % rows->count] + i / rows->count * size, size);
    return end(exec, &kernel_b);
}

enum gm_status gm_cuda_scatter_rows(const void *matrix, const struct gm_rows *rows,
                                    struct gm_exec *exec)
{
    size_t bytes = rows->length * gm_dtype_size(rows->dtype);
    enum gm_status status = gm_cuda_launching(exec, &kernel_b);

    for (unsigned i = 0; i < rows->count && status == GM_OK; i++)
        memcpy(rows->row[i], (const char *)matrix + i * bytes, bytes);
    return status == GM_OK ? end(exec, &kernel_b) : status;
}

static void transpose(const struct gm_op *op)
{
    const struct gm_matrix *a = &op->operand[0];
    size_t size = gm_dtype_size(a->dtype);

    for (uint64_t b = 0; b < a->batch; b++)
        for (uint64_t i = 0; i < a->rows; i++)
            for (uint64_t j = 0; j < a->cols; j++)
                memcpy((char *)op->result.data + ((b * a->cols + j) * a->rows + i) * size,
                       (const char *)a->data + ((b * a->rows + i) * a->cols + j) * size, size);
}

static enum gm_status run_transpose(const struct gm_op *op, struct gm_exec *exec)
{
    enum gm_status status = gm_cuda_launching(exec, &kernel_a);

    if (status != GM_OK)
        return status;
    transpose(op);
    return end(exec, &kernel_a);
}

/* Of two blocks, of which the second ends last. */
static enum gm_status run_group(const struct gm_op *op, struct gm_exec *exec)
{
    struct gm_block_time *times = gm_begin_block_times(exec, 2);
    enum gm_status status = gm_cuda_launching(exec, &kernel_a);

    if (status != GM_OK)
        return status;
    for (unsigned i = 0; i < gm_op_count(exec); i++)
        transpose(&op[i]);
    if (times) {
        times[0] = (struct gm_block_time){1000000, 1002000};
        times[1].begin_ns = 1001000;
        fake_cuda_end_block(exec->stream, &times[1].end_ns, 1000000 + FAKE_GROUP_NS);
    }
    return end(exec, &kernel_a);
}

/* A program is a sum of two inputs, whatever its instructions say. */
enum gm_status gm_cuda_elementwise(const struct gm_program *program, struct gm_exec *exec)
{
    const float *a = program->input[0].data, *b = program->input[1].data;
    float *result = program->result;
    enum gm_status status = gm_cuda_launching(exec, &kernel_b);

    for (uint64_t i = 0; i < gm_program_elements(program) && status == GM_OK; i++)
        result[i] = a[i] + b[i];
    return status == GM_OK ? end(exec, &kernel_b) : status;
}

/* a to the scratch; the sum there; the sum to the result. */
static enum gm_status run_sum(const struct gm_op *op, struct gm_exec *exec)
{
    uint64_t elements = gm_matrix_elements(&op->result);
    const float *b = op->operand[1].data;
    float *scratch = gm_scratch(exec);
    enum gm_status status = gm_begin_pass(exec, GM_PASS_PREPARES);

    if (status == GM_OK && (status = gm_cuda_launching(exec, &kernel_a)) == GM_OK) {
        memcpy(scratch, op->operand[0].data, elements * sizeof(float));
        status = end(exec, &kernel_a);
    }
    if (status == GM_OK)
        status = gm_begin_pass(exec, GM_PASS_COMPUTES);
    if (status == GM_OK && (status = gm_cuda_launching(exec, &kernel_b)) == GM_OK) {
        for (uint64_t i = 0; i < elements; i++)
            scratch[i] += b[i];
        status = end(exec, &kernel_b);
    }
    if (status == GM_OK)
        status = gm_begin_pass(exec, GM_PASS_PREPARES);
    if (status == GM_OK && (status = gm_cuda_launching(exec, &kernel_a)) == GM_OK) {
        memcpy(op->result.data, scratch, elements * sizeof(float));
        status = end(exec, &kernel_a);
    }
    return status;
}

static uint64_t sum_scratch(const struct gm_op *op)
{
    return gm_matrix_bytes(&op->result);
}

const struct gm_variant fake_transpose = {.op = GM_OP_TRANSPOSE,
                                          .name = "fake",
                                          .dtypes = GM_TYPES_ALL,
                                          .accepts = gm_accepts_any,
                                          .scratch = gm_scratch_none,
                                          .run = {[GM_DEVICE_CUDA] = run_transpose}};
const struct gm_variant fake_group = {.op = GM_OP_TRANSPOSE,
                                      .name = "fake_group",
                                      .dtypes = GM_TYPES_ALL,
                                      .accepts = gm_accepts_any,
                                      .scratch = gm_scratch_none,
                                      .groups = true,
                                      .run = {[GM_DEVICE_CUDA] = run_group}};
const struct gm_variant fake_sum = {.op = GM_OP_ADD,
                                    .name = "fake",
                                    .dtypes = GM_DTYPE_BIT(GM_F32),
                                    .accepts = gm_accepts_any,
                                    .scratch = sum_scratch,
                                    .run = {[GM_DEVICE_CUDA] = run_sum}};
const struct gm_variant cublas_matmul = {.op = GM_OP_MATMUL,
                                         .name = "cublas",
                                         .folds = GM_FOLDS_TRANS,
                                         .accepts = gm_cublas_accepts_product,
                                         .scratch = gm_scratch_none,
                                         .run = {[GM_DEVICE_CUDA] = gm_cuda_matmul_cublas}};
const struct gm_variant cublas_transpose = {.op = GM_OP_TRANSPOSE,
                                            .name = "cublas",
                                            .accepts = gm_cublas_accepts_transpose,
                                            .scratch = gm_scratch_none,
                                            .run = {[GM_DEVICE_CUDA] = gm_cuda_transpose_cublas}};

static enum gm_status make_op(const struct cuda_request *request, struct gm_op *ret,
                              struct gm_error *err)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {false};

    for (unsigned i = 0; i < request->operands; i++) {
        const uint64_t *dim = request->shape[i];
        struct gm_shape shape = dim[0] == 0 ? (struct gm_shape){2, {dim[1], dim[2]}}
                                            : (struct gm_shape){3, {dim[0], dim[1], dim[2]}};
        enum gm_status status =
            gm_matrix_init(&operand[i], request->dtype, request->layout[i], &shape, err);
        if (status != GM_OK)
            return status;
        present[i] = true;
    }
    return gm_op_init(ret, request->kind, &request->options, operand, present, err);
}

enum gm_status cuda_case_make(void *context, const struct cuda_request *request,
                              const struct gm_variant *variant, uint64_t seed,
                              struct cuda_case *ret, struct gm_error *err)
{
    struct cuda_case made = {.task = {.variant = variant, .repeat = 1}};
    struct gm_op *op = &made.task.op;
    enum gm_status status = make_op(request, op, err);

    for (unsigned i = 0; i <= GM_OPERANDS_MAX && status == GM_OK; i++) {
        struct gm_matrix *x = i < GM_OPERANDS_MAX ? &op->operand[i] : &op->result;
        if (i < GM_OPERANDS_MAX && i >= op->operands)
            continue;
        status = gm_backend_cuda.buffer_get(context, gm_matrix_bytes(x), &made.buffer[i], err);
        if (status != GM_OK)
            break;
        x->data = made.buffer[i].data;
        if (i < GM_OPERANDS_MAX)
            random_fill(&seed, x->dtype, x->data, gm_matrix_elements(x));
        /* Bytes that are no numbers are not geam's to keep. */
        if (x->dtype == GM_C64)
            random_fill(&seed, GM_F32, x->data, 2 * gm_matrix_elements(x));
        if (x->dtype == GM_C128)
            random_fill(&seed, GM_F64, x->data, 2 * gm_matrix_elements(x));
    }
    if (status != GM_OK) {
        cuda_case_put(context, &made);
        return status;
    }
    *ret = made;
    return GM_OK;
}

const struct cuda_request plain_transpose = {
    .kind = GM_OP_TRANSPOSE, .dtype = GM_F32, .operands = 1, .shape = {{0, 33, 65}}};
const struct cuda_request stacked_transpose = {.kind = GM_OP_TRANSPOSE,
                                               .dtype = GM_F64,
                                               .operands = 1,
                                               .shape = {{5, 7, 9}},
                                               .layout = {GM_COL_MAJOR}};

bool make(void *context, const struct cuda_request *request, const struct gm_variant *variant,
          struct cuda_case *ret)
{
    struct gm_error err = {.detail = ""};
    bool made = CHECK_STATUS(cuda_case_make(context, request, variant, check_seed(), ret, &err),
                             GM_OK, &err);

    if (made)
        cuda_case_poison(ret);
    return made;
}

void run_one(void *context, unsigned stream, struct cuda_case *made)
{
    CHECK_EQ(gm_backend_cuda.run(context, 0, stream, (struct gm_task *[]){&made->task}, 1), GM_OK);
    CHECK_STATUS(made->task.status, GM_OK, &made->task.error);
    CHECK(cuda_case_is_right(made));
}

void cuda_case_put(void *context, struct cuda_case *made)
{
    for (unsigned i = 0; i <= GM_OPERANDS_MAX; i++)
        gm_backend_cuda.buffer_put(context, &made->buffer[i]);
}

void cuda_case_poison(struct cuda_case *made)
{
    memset(made->task.op.result.data, 0xFF, gm_matrix_bytes(&made->task.op.result));
}

bool cuda_case_is_right(const struct cuda_case *made)
{
    struct gm_reference reference = {0};
    struct gm_error err = {.detail = ""};

    if (!CHECK_STATUS(gm_reference_make(&made->task.op, &reference, &err), GM_OK, &err))
        return false;
    struct gm_deviation deviation =
        gm_reference_compare(&reference, &made->task.op, made->task.op.result.data);
    gm_reference_free(&reference);
    return deviation.wrong == 0;
}

void *open_backend(unsigned streams)
{
    struct gm_backend_options options = {.streams = streams, .memory_limit = (uint64_t)1 << 26};
    struct gm_error err = {.detail = ""};
    void *context = NULL;

    CHECK_STATUS(gm_backend_cuda.open(&options, &context, &err), GM_OK, &err);
    return context;
}

void close_backend(void *context)
{
    gm_backend_cuda.close(context);
    struct fake_live live = fake_cuda_live();
    CHECK_EQ(live.streams, 0);
    CHECK_EQ(live.events, 0);
    CHECK_EQ(live.pinned, 0);
    CHECK_EQ(live.device_memory, 0);
    CHECK_EQ(live.handles, 0);
    CHECK_EQ(live.registered, 0);
    CHECK_EQ(live.opened, 0);
}

bool near(double actual, double expected)
{
    return CHECK(fabs(actual - expected) <= 0.01 + 1e-3 * expected) ||
           (fprintf(stderr, "  %g, not %g\n", actual, expected), false);
}
