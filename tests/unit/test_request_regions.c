/* Regions of shared memory with a device that works on them itself: what is copied and what is not,
 * and that all of it is given back, whoever goes first. */
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define SIDE 200 /* of a matrix that is copied by the device: more than 128 KiB */
#define BYTES (SIDE * SIDE * sizeof(float))

static char key[64];
static int object;

static void make_object(void)
{
    static float elements[SIDE * SIDE];

    snprintf(key, sizeof key, BENCH_PREFIX "%d", (int)getpid());
    object = shm_open(key, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (object < 0 || ftruncate(object, 3 * BYTES) != 0)
        abort();
    for (unsigned i = 0; i < SIDE * SIDE; i++)
        elements[i] = (float)i;
    CHECK_EQ(pwrite(object, elements, BYTES, 0), (ssize_t)BYTES);
}

/* What was read, or written, is the operand's transpose. */
static bool is_transposed(const float *result)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < SIDE; i++)
        for (unsigned j = 0; j < SIDE; j++)
            wrong += result[j * SIDE + i] != (float)(i * SIDE + j);
    return CHECK_EQ(wrong, 0);
}

static void post(const char *path, const char *query, const char *body, int http)
{
    const struct ask ask = {.path = path, .query = query};
    struct exchange x;

    bench_serve(&x, &ask, body, strlen(body), 100);
    if (!CHECK_EQ(x.request->reply.http, http))
        fprintf(stderr, "  %.*s\n", (int)x.request->reply.body_len,
                (const char *)x.request->reply.body);
    bench_end(&x);
}

#define REGISTER "/v2/systemsharedmemory/region/r/register"
#define UNREGISTER "/v2/systemsharedmemory/unregister"
#define QUERY "region=r&shape=200x200&region_result=r&offset_result=160000"

static const char *description(uint64_t offset, uint64_t bytes)
{
    static char text[160];

    snprintf(text, sizeof text, "{\"key\":\"%s\",\"offset\":%" PRIu64 ",\"byte_size\":%" PRIu64 "}",
             key, offset, bytes);
    return text;
}

static void test_direct(void)
{
    static float result[SIDE * SIDE];

    post(REGISTER, NULL, description(0, 3 * BYTES), 200);
    CHECK_EQ(atomic_load(&faulty_plan.imported), 1);
    CHECK_EQ(atomic_load(&bench_server.memory.reserved), 3 * BYTES);
    post("/v1/transpose", QUERY, "", 200);
    unsigned last = atomic_load(&faulty_plan.runs) - 1;
    const char *from = faulty_plan.run[last].operand, *to = faulty_plan.run[last].result;
    CHECK(to == from + BYTES); /* in the mapping, both */
    CHECK_EQ(faulty_plan.run[last].on_device, 0);
    CHECK_EQ(pread(object, result, BYTES, BYTES), (ssize_t)BYTES);
    is_transposed(result);
    /* Little, and what does not lie well, is copied. */
    static const char *const copied[] = {
        "region=r&shape=3x2&region_result=r&offset_result=160000",
        "region=r&shape=200x199&offset=4&region_result=r&offset_result=160004"};
    for (unsigned i = 0; i < 2; i++) {
        post("/v1/transpose", copied[i], "", 200);
        last = atomic_load(&faulty_plan.runs) - 1;
        const char *operand = faulty_plan.run[last].operand;
        CHECK(operand < from || operand >= from + 3 * BYTES);
    }
    CHECK_EQ(atomic_load(&bench_server.memory.reserved), 3 * BYTES);
    post(UNREGISTER, NULL, "", 200);
    CHECK_EQ(atomic_load(&faulty_plan.imported), 0);
    CHECK_EQ(atomic_load(&bench_server.memory.reserved), 0);
    /* At any offset of the object. */
    post(REGISTER, NULL, description(100, 2 * BYTES), 200);
    post("/v1/transpose", "region=r&shape=200x199&offset=28", "", 200);
    post(UNREGISTER, NULL, "", 200);
}

/* A region that is unregistered while a job has it stays until that is done. */
static void test_in_use(void)
{
    const struct ask ask = {.path = "/v1/transpose", .query = QUERY "&kernel=naive"};
    struct exchange x;

    post(REGISTER, NULL, description(0, 3 * BYTES), 200);
    atomic_store(&faulty_plan.hold, true);
    bench_begin(&x, &ask, 0);
    CHECK(!bench_advance(&x));
    CHECK(bench_wait_running(1));
    post(UNREGISTER, NULL, "", 200);
    CHECK_EQ(atomic_load(&faulty_plan.imported), 1);
    post("/v1/transpose", QUERY, "", 404);
    atomic_store(&faulty_plan.hold, false);
    bench_finish(&x);
    bench_expect(&x, 200, NULL);
    bench_end(&x);
    CHECK_EQ(atomic_load(&faulty_plan.imported), 0);
    bench_check_all_returned();
}

/* Beforehand, a region that has shrunk is refused even where the device would take it. */
static void test_shrunk(void)
{
    post(REGISTER, NULL, description(0, 3 * BYTES), 200);
    CHECK_EQ(ftruncate(object, 1000), 0);
    post("/v1/transpose", QUERY, "", 409);
    post("/v1/transpose", "region=r&shape=100x10", "", 409);
    CHECK_EQ(ftruncate(object, 3 * BYTES), 0);
    post(UNREGISTER, NULL, "", 200);
    faulty_plan.no_imports = true;
    post(REGISTER, NULL, description(0, 3 * BYTES), 400);
    faulty_plan.no_imports = false;
    post("/v1/transpose", QUERY, "", 404);
    bench_check_all_returned();
}

/* Memory of the device: its address goes to the task as it is. */
static void test_on_device(void)
{
    static _Alignas(64) float memory[2 * 40064]; /* SIDE * SIDE, to a multiple of 256 bytes */
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char handle[66] = {0};
    const void *address = memory;
    char text[256], base64[89];

    memcpy(handle, &address, sizeof address);
    for (unsigned i = 0; i < 22; i++) {
        uint32_t bits =
            (uint32_t)handle[3 * i] << 16 | (uint32_t)handle[3 * i + 1] << 8 | handle[3 * i + 2];
        for (unsigned k = 0; k < 4; k++)
            base64[4 * i + k] = digits[bits >> (18 - 6 * k) & 63];
    }
    memcpy(base64 + 86, "==", 3);
    snprintf(text, sizeof text,
             "{\"raw_handle\":{\"b64\":\"%s\"},\"device_id\":0,\"byte_size\":%zu}", base64,
             sizeof memory);
    for (unsigned i = 0; i < SIDE * SIDE; i++)
        memory[i] = (float)i;
    post("/v2/cudasharedmemory/region/r/register", NULL, text, 200);
    post("/v1/transpose", "region=r&shape=200x200&region_result=r&offset_result=160256", "", 200);
    unsigned last = atomic_load(&faulty_plan.runs) - 1;
    CHECK_EQ(faulty_plan.run[last].on_device, 1 | GM_RESULT_ON_DEVICE);
    CHECK(faulty_plan.run[last].operand == memory);
    is_transposed(memory + 40064);
    post("/v1/transpose", "region=r&shape=2x2&offset=4", "", 400);
    post("/v1/transpose", "region=r&shape=2x2&region_result=r&offset_result=4", "", 400);
    post("/v2/cudasharedmemory/unregister", NULL, "", 200);
    char *device = strstr(text, "\"device_id\":0");
    device[strlen("\"device_id\":")] = '1';
    post("/v2/cudasharedmemory/region/r/register", NULL, text, 400);
    bench_check_all_returned();
}

int main(void)
{
    make_object();
    bench_open(UINT64_C(1) << 24, 2);
    test_direct();
    test_in_use();
    test_shrunk();
    test_on_device();
    bench_check_all_returned();
    bench_close();
    shm_unlink(key);
    return check_report();
}
