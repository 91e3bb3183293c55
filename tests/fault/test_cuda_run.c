/*
 * test_cuda_run.c - the cuda backend on the fake runtime: what it finds, and what tasks come to.
 */
#include "cuda_case.h"
#include "kernels/choose/choose.h"
#include "kernels/cuda/backend/cublas.h"
#include "kernels/cuda/backend/exec.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>

#define LARGE ((uint64_t)5 << 20) /* a buffer's bytes */

static void test_facts(void)
{
    fake_cuda_reset();
    void *context = open_backend(0);
    const struct gm_device_facts *facts = gm_backend_cuda.describe(context, 0);

    CHECK_STR(facts->name, "Fake GPU 0");
    CHECK_EQ(facts->kind, GM_DEVICE_CUDA);
    CHECK_STR(facts->uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    CHECK_EQ(facts->compute_units, 132);
    CHECK_EQ(facts->streams, 3);
    CHECK(facts->batch_max > 1);
    CHECK(facts->tuned_blas && facts->has_kernel_times);
    CHECK(strstr(facts->detail, "compute capability 9.0"));
    CHECK(strstr(facts->detail, "CUDA 13.1"));
    CHECK(strstr(facts->detail, "cuBLAS 13.0.2"));
    /* By hand: 132 x 128 x 2 x 1.98 GHz, and 132 x 64 x 2 x 1.98 GHz. */
    near(facts->peak_gflops[GM_F32], 66908.16);
    near(facts->peak_gflops[GM_F64], 33454.08);
    near(facts->peak_gflops[GM_I32], 33454.08);
    CHECK(facts->peak_gflops[GM_I64] == 0 && facts->peak_gflops[GM_C64] == 0);
    CHECK_STR(facts->peak_name[GM_BF16], "fp32");
    near(facts->gpu->dram_gbs, 3.201 * 2 * 6016 / 8);
    /* A copy of the fake takes its bytes' time, a kernel 7 us: the kernel is the better. */
    near(facts->copy_gbs, 2e-3 * 256 * 1024 * 1024 / FAKE_KERNEL_US);
    CHECK(gm_backend_cuda.describe(context, 1) == NULL);
    close_backend(context);
}

/* A table of numbers is for the devices of its model. */
static void test_profile(void)
{
    struct gm_backend_options options = {.streams = 1};
    struct gm_profile *profile = NULL;
    struct gm_error err = {.detail = ""};
    void *context = NULL;

    fake_cuda_reset();
    CHECK_STATUS(
        gm_profile_read("GM_MEASURED_ON(\"Fake GPU 0\", \"1\", \"2\", \"3\")\n", &profile, &err),
        GM_OK, &err);
    options.profile = profile;
    if (CHECK_STATUS(gm_backend_cuda.open(&options, &context, &err), GM_OK, &err)) {
        CHECK(gm_backend_cuda.describe(context, 0)->profile == profile);
        for (unsigned i = 1; gm_backend_cuda.describe(context, i); i++)
            CHECK(gm_backend_cuda.describe(context, i)->profile == NULL);
        gm_backend_cuda.close(context);
    }
    free(profile);
}

static void test_no_device(void)
{
    struct gm_backend_options options = {0};
    struct gm_error err = {.detail = ""};
    void *context = &options;

    fake_cuda_reset();
    fake_cuda.devices = 0;
    CHECK_STATUS(gm_backend_cuda.open(&options, &context, &err), GM_DEVICE_UNAVAILABLE, &err);
    CHECK(context == &options);
    CHECK(strstr(err.detail, "no NVIDIA GPU"));
    gm_backend_cuda.close(NULL);
}

static void test_without_blas(void)
{
    fake_cuda_reset();
    fake_cuda.no_blas = true;
    void *context = open_backend(2);
    const struct gm_device_facts *facts = gm_backend_cuda.describe(context, 0);
    CHECK(!facts->tuned_blas);
    CHECK_EQ(facts->streams, 2);
    CHECK(strstr(facts->detail, "no cuBLAS"));
    close_backend(context);
}

static void test_empty(void)
{
    struct cuda_request request = plain_transpose;
    struct cuda_case made;

    fake_cuda_reset();
    void *context = open_backend(1);
    unsigned long launches = fake_cuda_launches();
    request.shape[0][1] = 0;
    if (make(context, &request, &fake_transpose, &made)) {
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, (struct gm_task *[]){&made.task}, 1), GM_OK);
        CHECK_EQ(made.task.status, GM_OK);
        CHECK(made.task.times.kernel < 0 && made.task.times.h2d < 0 && made.task.times.d2h < 0);
        CHECK_EQ(fake_cuda_launches(), launches);
        cuda_case_put(context, &made);
    }
    close_backend(context);
}

/* Rows and columns, which cuBLAS sees the other way round: every way of lying there is. */
static void test_cublas(void)
{
    static const enum gm_dtype types[] = {GM_F16, GM_BF16, GM_F32, GM_F64};
    static const uint64_t batches[][3] = {{0, 0, 0}, {3, 0, 0}, {0, 3, 3}, {3, 3, 0}, {4, 1, 4}};
    static const uint64_t shapes[][3] = {{3, 4, 5}, {1, 7, 6}, {6, 7, 1}, {5, 1, 4}, {1, 1, 1}};
    struct cuda_case made;

    fake_cuda_reset();
    void *context = open_backend(1);
    for (unsigned i = 0; i < 4 * 5 * 5 * 32; i++) {
        const uint64_t *batch = batches[i / 32 % 5], *mkn = shapes[i / 160 % 5];
        struct cuda_request r = {.kind = GM_OP_MATMUL, .dtype = types[i / 800], .operands = 2};
        r.options.transa = i & 1;
        r.options.transb = i & 2;
        r.layout[0] = i & 4 ? GM_COL_MAJOR : GM_ROW_MAJOR;
        r.layout[1] = i & 8 ? GM_COL_MAJOR : GM_ROW_MAJOR;
        r.layout[2] = i & 4 ? GM_COL_MAJOR : GM_ROW_MAJOR;
        memcpy(r.shape[0], (uint64_t[]){batch[0], mkn[i & 1], mkn[!(i & 1)]}, sizeof(r.shape[0]));
        memcpy(r.shape[1], (uint64_t[]){batch[1], mkn[i & 2 ? 2 : 1], mkn[i & 2 ? 1 : 2]},
               sizeof(r.shape[1]));
        memcpy(r.shape[2], (uint64_t[]){batch[2], mkn[0], mkn[2]}, sizeof(r.shape[2]));
        if (i & 16) {
            r.operands = 3;
            r.options.has_alpha = r.options.has_beta = true;
            r.options.alpha = (struct gm_scalar){.real = -1.5};
            r.options.beta = (struct gm_scalar){.real = i & 1 ? 0.5 : 0};
        }
        if (!make(context, &r, &cublas_matmul, &made))
            continue;
        /* c is not added to what it has rounded to 16 bits. */
        bool takes = !gm_op_reads(&made.task.op, 2) || gm_dtype_size(r.dtype) > 2;
        CHECK_EQ(cublas_matmul.accepts(&made.task.op, NULL, NULL),
                 takes ? GM_OK : GM_KERNEL_UNAVAILABLE);
        if (takes)
            run_one(context, 0, &made);
        /* A stack of a with one b is one tall matrix, unless one c goes with all. */
        bool tall = batch[1] <= 1 && !r.options.transa &&
                    (!gm_op_reads(&made.task.op, 2) || batch[2] == batch[0]);
        if (takes && (tall || batch[1] > 1))
            CHECK_EQ(fake_cuda.blas_batch, tall ? 1 : 3);
        cuda_case_put(context, &made);
    }
    close_backend(context);
}

/* A product that cuBLAS refuses is that task's affair, for whatever reason; one that takes the
 * device with it is not. */
static void test_cublas_fails(void)
{
    static const struct {
        int answer;
        cudaError_t error;
        enum gm_status status;
        const char *says;
    } cases[] = {
        {GM_CUBLAS_ALLOC_FAILED, cudaSuccess, GM_DEVICE_MEMORY, "cudaErrorMemoryAllocation"},
        {GM_CUBLAS_NOT_SUPPORTED, cudaSuccess, GM_INTERNAL, ""},
        {13, cudaSuccess, GM_INTERNAL, ""},
        {GM_CUBLAS_SUCCESS, cudaSuccess, GM_OK, ""},
        {13, cudaErrorIllegalAddress, GM_DEVICE_LOST, "cudaErrorIllegalAddress"}};
    struct cuda_request r = {
        .kind = GM_OP_MATMUL, .dtype = GM_F32, .operands = 2, .shape = {{0, 3, 4}, {0, 4, 5}}};
    struct cuda_case made;

    fake_cuda_reset();
    void *context = open_backend(1);
    for (unsigned i = 0; i < 5 && make(context, &r, &cublas_matmul, &made); i++) {
        fake_cuda.blas_answer = cases[i].answer;
        fake_cuda.blas_error = cases[i].error;
        gm_backend_cuda.run(context, 0, 0, (struct gm_task *[]){&made.task}, 1);
        CHECK_EQ(made.task.status, cases[i].status);
        CHECK(made.task.status == GM_OK || strstr(made.task.error.detail, "\"cublas\" of matmul"));
        CHECK(made.task.status == GM_OK || strstr(made.task.error.detail, cases[i].says));
        cuda_case_put(context, &made);
    }
    close_backend(context);
}

static void test_geam(void)
{
    static const enum gm_dtype types[] = {GM_F32, GM_F64};
    struct gm_error err = {.detail = ""};
    struct cuda_case made;

    fake_cuda_reset();
    void *context = open_backend(1);
    for (unsigned i = 0; i < 4; i++) {
        struct cuda_request r = plain_transpose;
        r.dtype = types[i / 2];
        r.layout[0] = i % 2 ? GM_COL_MAJOR : GM_ROW_MAJOR;
        if (!make(context, &r, &cublas_transpose, &made))
            continue;
        CHECK_EQ(cublas_transpose.accepts(&made.task.op, NULL, NULL), GM_OK);
        run_one(context, 0, &made);
        cuda_case_put(context, &made);
    }
    if (make(context, &stacked_transpose, &cublas_transpose, &made)) {
        CHECK_STATUS(cublas_transpose.accepts(&made.task.op, NULL, &err), GM_KERNEL_UNAVAILABLE,
                     &err);
        CHECK(strstr(err.detail, "single matrices"));
        cuda_case_put(context, &made);
    }
    close_backend(context);
}

/* What the pool keeps in pieces of the wrong size is given back, and the allocation tried again;
 * what is too large for the device is so at once, and nothing else is harmed. */
static void test_memory(void)
{
    struct cuda_request large = plain_transpose;
    struct cuda_case made, small;

    fake_cuda_reset();
    void *context = open_backend(1);
    large.dtype = GM_U8;
    large.shape[0][1] = 2000;
    large.shape[0][2] = 6000;
    bool both = make(context, &large, &fake_transpose, &made) &&
                make(context, &plain_transpose, &fake_transpose, &small);
    if (!CHECK(both))
        return;
    run_one(context, 0, &made);
    CHECK(fake_cuda_pooled() >= 24000000);
    CHECK(gm_backend_cuda.memory_used(context, 0) >= fake_cuda_pooled());
    CHECK(gm_backend_cuda.memory_used(context, 0) < fake_cuda.memory_bytes);
    fake_cuda.fragmented = true;
    fake_cuda.memory_bytes = 30000000; /* as if others had taken the rest */
    run_one(context, 0, &made);
    CHECK(fake_cuda_pooled() <= 25000000);

    fake_cuda.memory_bytes = 20000000;
    CHECK_EQ(gm_backend_cuda.run(context, 0, 0, (struct gm_task *[]){&made.task}, 1), GM_OK);
    CHECK_EQ(made.task.status, GM_DEVICE_MEMORY);
    CHECK(strstr(made.task.error.detail, "out of memory"));
    run_one(context, 0, &small);
    cuda_case_put(context, &made);
    cuda_case_put(context, &small);
    close_backend(context);

    fake_cuda_reset();
    fake_cuda.memory_bytes = 20000000; /* nor is there room to measure a copy in */
    context = open_backend(1);
    CHECK(gm_backend_cuda.describe(context, 0)->copy_gbs == 0);
    if (make(context, &large, &fake_transpose, &made)) {
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, (struct gm_task *[]){&made.task}, 1), GM_OK);
        CHECK_EQ(made.task.status, GM_TOO_LARGE);
        cuda_case_put(context, &made);
    }
    close_backend(context);
}

/* CUDA pins what the host has allocated. What it cannot pin is given back, and tried again. */
static void test_large_buffers(void)
{
    struct gm_buffer buffer = {0};
    struct gm_error err = {.detail = ""};
    unsigned char there[1];

    for (int registers = 0; registers < 2; registers++) {
        fake_cuda_reset();
        fake_cuda.no_registering = registers == 0;
        void *context = open_backend(1), *data = NULL;
        long pinned = fake_cuda_live().pinned;
        if (registers)
            inject_at("cudaHostRegister", 1, cudaErrorMemoryAllocation, fake_cuda_remember);
        if (CHECK_STATUS(gm_backend_cuda.buffer_get(context, LARGE, &buffer, &err), GM_OK, &err)) {
            CHECK(!registers || inject_has_fired());
            data = buffer.data;
            memset(data, 1, LARGE);
            CHECK_EQ(fake_cuda_live().registered, registers);
            CHECK_EQ(fake_cuda_live().pinned, pinned + !registers);
            gm_backend_cuda.buffer_put(context, &buffer);
        }
        inject_reset();
        close_backend(context); /* and nothing is registered any more */
        if (registers)
            CHECK(mincore(data, 1, there) != 0); /* nor mapped */
    }
}

/* After a fault of a kernel: the sentence names it, and every later task is told. */
static void test_lost(void)
{
    struct cuda_case made;

    fake_cuda_reset();
    void *context = open_backend(2);
    if (make(context, &plain_transpose, &fake_transpose, &made)) {
        inject_at("cudaEventSynchronize", 1, cudaErrorIllegalAddress, fake_cuda_break);
        CHECK_EQ(gm_backend_cuda.run(context, 0, 1, (struct gm_task *[]){&made.task}, 1),
                 GM_DEVICE_LOST);
        CHECK_EQ(made.task.status, GM_DEVICE_LOST);
        CHECK(strstr(made.task.error.detail, "kernel \"fake\" of transpose (fake_kernel)"));
        CHECK(strstr(made.task.error.detail, "an illegal memory access was encountered"));
        CHECK(strstr(made.task.error.detail, "cudaErrorIllegalAddress"));
        CHECK_EQ(gm_backend_cuda.run(context, 0, 0, (struct gm_task *[]){&made.task}, 1),
                 GM_DEVICE_LOST);
        CHECK(strstr(made.task.error.detail, "has failed before"));
        inject_reset();
        cuda_case_put(context, &made);
    }
    close_backend(context);
    fake_cuda_reset();
}

static void test_devices(void)
{
    struct cuda_case made;

    fake_cuda_reset();
    fake_cuda.devices = 3;
    inject_at("cudaGetDeviceProperties", 2, cudaErrorInvalidDevice, NULL);
    void *context = open_backend(1); /* the second cannot be used */
    CHECK_STR(gm_backend_cuda.describe(context, 0)->name, "Fake GPU 0");
    CHECK_STR(gm_backend_cuda.describe(context, 1)->name, "Fake GPU 2");
    CHECK_EQ(gm_backend_cuda.describe(context, 1)->index, 1);
    CHECK(gm_backend_cuda.describe(context, 2) == NULL);
    if (make(context, &plain_transpose, &fake_transpose, &made)) {
        CHECK_EQ(gm_backend_cuda.run(context, 1, 0, (struct gm_task *[]){&made.task}, 1), GM_OK);
        CHECK(cuda_case_is_right(&made));
        cuda_case_put(context, &made);
    }
    close_backend(context);
    inject_reset();
}

/* On a thread of their own, whose device is 0 at first. */
static void *take_buffers(void *cls)
{
    struct gm_error error = {.detail = ""};
    struct gm_buffer buffer;

    for (uint64_t bytes = 1 << 12; bytes <= 1 << 24; bytes <<= 12) {
        CHECK_STATUS(gm_backend_cuda.buffer_get(cls, bytes, &buffer, &error), GM_OK, &error);
        if (buffer.data)
            gm_backend_cuda.buffer_put(cls, &buffer);
    }
    return NULL;
}

static void *close_all(void *cls)
{
    close_backend(cls);
    return NULL;
}

static void test_memory_is_pinned_by_a_device_that_works(void)
{
    pthread_t thread;

    fake_cuda_reset();
    fake_cuda.devices = 2;
    fake_cuda.unusable = 1;
    inject_at("cudaGetDeviceProperties", 1, cudaErrorInvalidDevice, NULL);
    void *context = open_backend(1); /* the first cannot be used */
    CHECK_STR(gm_backend_cuda.describe(context, 0)->name, "Fake GPU 1");
    CHECK(pthread_create(&thread, NULL, take_buffers, context) == 0);
    pthread_join(thread, NULL);
    CHECK(pthread_create(&thread, NULL, close_all, context) == 0);
    pthread_join(thread, NULL);
    CHECK(fake_cuda_live().pinned == 0 && fake_cuda_live().registered == 0);
    inject_reset();
    fake_cuda_reset();
}

struct worker {
    void *context;
    unsigned stream;
};

static void *work(void *cls)
{
    const struct worker *worker = cls;
    struct cuda_case made;

    for (unsigned i = 0; i < 50; i++) {
        const struct cuda_request *request = i % 2 ? &stacked_transpose : &plain_transpose;
        if (!make(worker->context, request, &fake_transpose, &made))
            break;
        CHECK_EQ(gm_backend_cuda.run(worker->context, 0, worker->stream,
                                     (struct gm_task *[]){&made.task}, 1),
                 GM_OK);
        CHECK(cuda_case_is_right(&made));
        cuda_case_put(worker->context, &made);
    }
    return NULL;
}

static void test_streams(void)
{
    pthread_t thread[3];
    struct worker worker[3];

    fake_cuda_reset();
    void *context = open_backend(3);
    for (unsigned i = 0; i < 3; i++) {
        worker[i] = (struct worker){context, i};
        CHECK_EQ(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    close_backend(context);
}

/* Memory of other processes: what is the device's is not copied, the host's is as any. */
static void test_foreign(void)
{
    struct cuda_case made;
    struct gm_error err = {.detail = ""};
    unsigned char handle[64] = {0};
    uint64_t bytes = 33 * 65 * 4;

    fake_cuda_reset();
    void *context = open_backend(1);
    if (make(context, &plain_transpose, &fake_transpose, &made)) {
        void *operand = made.task.op.operand[0].data;
        struct gm_foreign pinned = {.data = operand, .bytes = bytes};
        struct gm_foreign opened = {.handle = handle, .bytes = bytes};
        CHECK_STATUS(gm_backend_cuda.import(context, &pinned, &err), GM_OK, &err);
        run_one(context, 0, &made);
        near(made.task.times.h2d, (double)bytes * FAKE_US_PER_BYTE);
        gm_backend_cuda.release(context, &pinned);

        memcpy(handle, &operand, sizeof operand);
        memcpy(handle + sizeof operand, &bytes, sizeof bytes);
        CHECK_STATUS(gm_backend_cuda.import(context, &opened, &err), GM_OK, &err);
        CHECK(opened.data == operand);
        cuda_case_poison(&made);
        made.task.on_device = 1;
        run_one(context, 0, &made);
        CHECK(made.task.times.h2d < 0); /* nothing was copied, and no time is told */
        near(made.task.times.d2h, (double)bytes * FAKE_US_PER_BYTE);
        cuda_case_poison(&made);
        made.task.on_device = 1 | GM_RESULT_ON_DEVICE;
        run_one(context, 0, &made);
        CHECK(made.task.times.h2d < 0 && made.task.times.d2h < 0);
        gm_backend_cuda.release(context, &opened);

        opened = (struct gm_foreign){.handle = handle, .bytes = bytes + 1};
        CHECK_STATUS(gm_backend_cuda.import(context, &opened, &err), GM_BAD_PARAMETER, &err);
        CHECK(strstr(err.detail, "the allocation of raw_handle has 8580"));
        memset(handle, 0, sizeof handle);
        opened.bytes = 1;
        CHECK_STATUS(gm_backend_cuda.import(context, &opened, &err), GM_BAD_PARAMETER, &err);
        opened.device = 7;
        CHECK_STATUS(gm_backend_cuda.import(context, &opened, &err), GM_BAD_PARAMETER, &err);
        pinned = (struct gm_foreign){.data = NULL, .bytes = 1};
        CHECK_STATUS(gm_backend_cuda.import(context, &pinned, &err), GM_BAD_PARAMETER, &err);
        cuda_case_put(context, &made);
    }
    close_backend(context);
}

/* A matrix that stays: taken, filled, used by a task that copies nothing, read and given back. Each
 * step may fail, in words. */
static enum gm_status stay_once(void *context, struct gm_error *err)
{
    uint64_t bytes = 33 * 65 * 4;
    void *operand = NULL, *result = NULL;
    struct cuda_case made;

    if (cuda_case_make(context, &plain_transpose, &fake_transpose, check_seed(), &made, err) !=
        GM_OK)
        return err->status;
    void *in = made.task.op.operand[0].data, *out = made.task.op.result.data;
    cuda_case_poison(&made);
    enum gm_status status = gm_backend_cuda.device_get(context, 0, bytes, &operand, err);
    if (status == GM_OK)
        status = gm_backend_cuda.device_get(context, 0, bytes, &result, err);
    if (status == GM_OK)
        status = gm_backend_cuda.device_copy(context, 0, operand, in, bytes, true, err);
    if (status == GM_OK) {
        made.task.op.operand[0].data = operand;
        made.task.op.result.data = result;
        made.task.on_device = 1 | GM_RESULT_ON_DEVICE;
        gm_backend_cuda.run(context, 0, 0, (struct gm_task *[]){&made.task}, 1);
        status = made.task.status;
        *err = made.task.error;
        made.task.op.operand[0].data = in;
        made.task.op.result.data = out;
    }
    if (status == GM_OK) {
        CHECK(made.task.times.h2d < 0 && made.task.times.d2h < 0 && made.task.times.kernel > 0);
        status = gm_backend_cuda.device_copy(context, 0, out, result, bytes, false, err);
    }
    CHECK(fake_cuda_is_broken() || fake_cuda_live().unwaited == 0);
    if (status == GM_OK)
        CHECK(cuda_case_is_right(&made));
    if (result)
        gm_backend_cuda.device_put(context, 0, result);
    if (operand)
        gm_backend_cuda.device_put(context, 0, operand);
    cuda_case_put(context, &made);
    return status;
}

static void test_resident(void)
{
    static const char *const calls[] = {"cudaMallocAsync", "cudaMemcpyAsync",
                                        "cudaStreamSynchronize", "cudaSetDevice"};
    static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorInvalidValue,
                                         cudaErrorIllegalAddress};
    struct gm_error err = {.detail = ""};
    void *data = NULL;

    for (unsigned i = 0; i < 4; i++) {
        for (unsigned e = 0; e < 3; e++) {
            for (unsigned long n = 1; n <= 4; n++) {
                bool breaks = errors[e] == cudaErrorIllegalAddress;
                fake_cuda_reset();
                void *context = open_backend(1);
                inject_reset();
                inject_at(calls[i], n, errors[e], breaks ? fake_cuda_break : fake_cuda_remember);
                err.detail[0] = '\0';
                enum gm_status status = stay_once(context, &err);
                CHECK(status == GM_OK || err.detail[0]);
                CHECK(!breaks || !inject_has_fired() || status == GM_DEVICE_LOST);
                inject_reset();
                if (!breaks)
                    CHECK_STATUS(stay_once(context, &err), GM_OK, &err);
                close_backend(context);
            }
        }
    }
    /* What the pool keeps in pieces of the wrong size is given back. */
    fake_cuda_reset();
    void *context = open_backend(1);
    fake_cuda.memory_bytes = 20000000;
    fake_cuda.fragmented = true;
    CHECK_STATUS(gm_backend_cuda.device_get(context, 0, 12000000, &data, &err), GM_OK, &err);
    CHECK_STATUS(gm_backend_cuda.device_get(context, 0, 12000000, &data, &err), GM_DEVICE_MEMORY,
                 &err);
    gm_backend_cuda.device_put(context, 0, data);
    CHECK_STATUS(gm_backend_cuda.device_get(context, 0, 16000000, &data, &err), GM_OK, &err);
    gm_backend_cuda.device_put(context, 0, data);
    close_backend(context);
    fake_cuda_reset();
}

int main(void)
{
    test_facts();
    test_profile();
    test_no_device();
    test_without_blas();
    test_empty();
    test_cublas();
    test_cublas_fails();
    test_geam();
    test_memory();
    test_large_buffers();
    test_lost();
    test_devices();
    test_memory_is_pinned_by_a_device_that_works();
    test_streams();
    test_foreign();
    test_resident();
    return check_report();
}
