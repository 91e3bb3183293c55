/* Named matrices on a device with memory of its own, which is small and may fail: what lies where,
 * who gives way to whom, and that threads which write, use and delete see each matrix whole. */
#include "server/matrices/internal.h"
#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIDE 64
#define BLOCK (SIDE * SIDE * sizeof(float))
#define ROOM 4u /* matrices that fit into what they may have of the device */

/* ---- The device: the faulty one, whose memory is of the host, but counted. ---- */

static struct {
    atomic_uint taken, copies_in, copies_out;
    atomic_uint refuse_at, fail_copy_at; /* this call of them from now on, counted down */
    uint64_t room;                       /* what named matrices may have of it; 0: ROOM of them */
    struct gm_device_facts facts;
} memory;

static const struct gm_device_facts *describe(void *context, unsigned index)
{
    const struct gm_device_facts *facts = faulty_backend.describe(context, index);

    if (!facts)
        return NULL;
    memory.facts = *facts;
    memory.facts.memory_bytes =
        (memory.room > 0 ? memory.room : ROOM * BLOCK) * GM_MATRIX_DEVICE_PART;
    return &memory.facts;
}

static bool is_due(atomic_uint *countdown)
{
    return atomic_load(countdown) > 0 && atomic_fetch_sub(countdown, 1) == 1;
}

static enum gm_status device_get(void *context, unsigned device, uint64_t bytes, void **ret,
                                 struct gm_error *err)
{
    (void)context;
    CHECK_EQ(device, 0);
    if (is_due(&memory.refuse_at))
        return gm_fail(err, GM_DEVICE_MEMORY, "no device memory, as the test wants it");
    *ret = malloc(bytes); /* so that sanitizers know who uses it too long */
    atomic_fetch_add(&memory.taken, 1);
    return GM_OK;
}

static void device_put(void *context, unsigned device, void *data)
{
    (void)context;
    (void)device;
    free(data);
    atomic_fetch_sub(&memory.taken, 1);
}

static enum gm_status device_copy(void *context, unsigned device, void *to, const void *from,
                                  uint64_t bytes, bool to_device, struct gm_error *err)
{
    (void)context;
    (void)device;
    if (is_due(&memory.fail_copy_at))
        return gm_fail(err, GM_INTERNAL, "no copy, as the test wants it");
    atomic_fetch_add(to_device ? &memory.copies_in : &memory.copies_out, 1);
    memcpy(to, from, bytes);
    return GM_OK;
}

static struct gm_backend resident_backend;

static void open_bench_with(uint64_t room)
{
    resident_backend = faulty_backend;
    resident_backend.describe = describe;
    resident_backend.device_get = device_get;
    resident_backend.device_put = device_put;
    resident_backend.device_copy = device_copy;
    bench_first = &resident_backend;
    memset(&memory, 0, sizeof memory);
    memory.room = room;
    bench_open(64 << 20, 1);
}

static void open_bench(void)
{
    open_bench_with(0);
}

static void close_bench(void)
{
    bench_close();
    CHECK_EQ(atomic_load(&memory.taken), 0);
}

/* ---- Requests. ---- */

static const float *elements(float value)
{
    static float of[SIDE * SIDE];

    for (unsigned i = 0; i < SIDE * SIDE; i++)
        of[i] = value;
    return of;
}

static int ask_of(struct exchange *x, const char *method, const char *path, const char *query,
                  const void *body, uint64_t len)
{
    const struct ask ask = {
        .method = method, .path = path, .query = query, .type = body ? RAW : NULL, .accept = RAW};

    bench_serve(x, &ask, body ? body : "", len, 1 << 20);
    return x->request->reply.http;
}

static int put(const char *path, float value)
{
    struct exchange x;
    int http = ask_of(&x, "PUT", path, "shape=64x64", elements(value), BLOCK);

    bench_end(&x);
    return http;
}

static int act(const char *method, const char *path, const char *query)
{
    struct exchange x;
    int http = ask_of(&x, method, path, query, NULL, 0);

    bench_end(&x);
    return http;
}

/* Whether a reply's elements are all this. */
static bool is_all(const void *body, uint64_t len, float value)
{
    unsigned wrong = 0;

    for (uint64_t i = 0; i < len / sizeof(float); i++) {
        float element;
        memcpy(&element, (const char *)body + i * sizeof element, sizeof element);
        wrong += element != value;
    }
    return CHECK_EQ(len, BLOCK) && CHECK_EQ(wrong, 0);
}

static void check_get(const char *path, float value)
{
    struct exchange x;

    if (CHECK_EQ(ask_of(&x, "GET", path, NULL, NULL, 0), 200))
        is_all(x.request->reply.body, x.request->reply.body_len, value);
    bench_end(&x);
}

static const char *path_of(unsigned i)
{
    static char path[4][40];
    static unsigned at;

    at = (at + 1) % 4;
    snprintf(path[at], sizeof path[at], "/v1/matrices/w%u", i);
    return path[at];
}

static void delete_all(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        act("DELETE", path_of(i), NULL);
    act("DELETE", "/v1/matrices/sum", NULL);
}

/* Where the last run had its operand. */
static unsigned last_on_device(void)
{
    return faulty_plan.run[atomic_load(&faulty_plan.runs) - 1].on_device;
}

static struct gm_matrices_usage usage(void)
{
    return gm_matrices_usage(&bench_server.matrices);
}

/* Of what is on the device nothing is copied, neither operands nor results. */
static void test_stays(void)
{
    open_bench();
    CHECK_EQ(put(path_of(0), 3), 201);
    CHECK_EQ(usage().device_bytes, BLOCK);
    CHECK_EQ(atomic_load(&memory.copies_in), 1);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w0&b=ref:w0&keep=sum"), 200);
    CHECK_EQ(last_on_device(), 1u | 2u | GM_RESULT_ON_DEVICE);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:sum&b=ref:w0&keep=sum"), 200);
    CHECK_EQ(atomic_load(&memory.copies_in), 1);
    CHECK_EQ(atomic_load(&memory.copies_out), 0);
    CHECK_EQ(usage().device_bytes, 2 * BLOCK);
    check_get("/v1/matrices/sum", 9);
    CHECK_EQ(atomic_load(&memory.copies_out), 1);
    check_get("/v1/matrices/sum", 9); /* the host has it now */
    CHECK_EQ(atomic_load(&memory.copies_out), 1);
    /* What comes back as well goes by the host. */
    struct exchange x;
    CHECK_EQ(ask_of(&x, "POST", "/v1/add", "a=ref:w0&b=ref:sum&keep=sum&return=result", NULL, 0),
             200);
    is_all(x.request->reply.body, x.request->reply.body_len, 12);
    bench_end(&x);
    CHECK_EQ(last_on_device(), 1u | 2u);
    check_get("/v1/matrices/sum", 12);
    /* Reports look at operands on the host. */
    CHECK_EQ(act("POST", "/v1/compare/transpose", "a=ref:sum&format=json&repeat=1"), 200);
    delete_all(1);
    CHECK_EQ(usage().bytes, 0);
    CHECK_EQ(atomic_load(&bench_server.memory.reserved), 0);
    close_bench();
}

/* What is used least recently gives way, and comes back when it is used. */
static void test_gives_way(void)
{
    open_bench();
    for (unsigned i = 0; i < ROOM; i++)
        CHECK_EQ(put(path_of(i), (float)i), 201);
    CHECK_EQ(act("POST", "/v1/flip", "a=ref:w0"), 200); /* so that w1 is the next to go */
    CHECK_EQ(put(path_of(ROOM), ROOM), 201);
    CHECK_EQ(usage().device_bytes, ROOM * BLOCK);
    CHECK_EQ(usage().bytes, (ROOM + 1) * BLOCK);
    CHECK_EQ(atomic_load(&memory.copies_out), 0); /* the host has it still */
    unsigned in = atomic_load(&memory.copies_in);
    CHECK_EQ(act("POST", "/v1/flip", "a=ref:w0"), 200);
    CHECK_EQ(atomic_load(&memory.copies_in), in);
    CHECK_EQ(act("POST", "/v1/flip", "a=ref:w1"), 200);
    CHECK_EQ(last_on_device(), 1);
    CHECK_EQ(atomic_load(&memory.copies_in), in + 1);
    /* A result that is only there is copied out when it goes. */
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w1&b=ref:w1&keep=sum"), 200);
    for (unsigned i = 0; i <= ROOM; i++)
        CHECK_EQ(act("POST", "/v1/flip", i % 2 ? "a=ref:w1" : "a=ref:w0"), 200);
    for (unsigned i = 2; i <= ROOM; i++) {
        char query[32];
        snprintf(query, sizeof query, "a=ref:w%u", i);
        CHECK_EQ(act("POST", "/v1/flip", query), 200);
    }
    CHECK_EQ(atomic_load(&memory.copies_out), 1);
    check_get("/v1/matrices/sum", 2);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:sum&b=ref:w0"), 200);
    CHECK_EQ(last_on_device(), 3);
    for (unsigned i = 0; i <= ROOM; i++)
        check_get(path_of(i), (float)i);
    delete_all(ROOM + 1);
    close_bench();
}

/* A small matrix, which an event thread moves, makes none give way that takes long to copy. */
static void test_large_gives_way_to_large(void)
{
    const uint64_t side = 512,
                   bytes = side * side * sizeof(float); /* 1 MB: as TEXT_INLINE_BYTES_MAX */
    static float large[2 * 512 * 512];
    struct exchange x;

    for (unsigned i = 0; i < 2 * side * side; i++)
        large[i] = 4;
    open_bench_with(4 * bytes);
    CHECK_EQ(ask_of(&x, "PUT", path_of(0), "shape=1024x512", large, 2 * bytes), 201);
    bench_end(&x);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w0&b=ref:w0&keep=w1"), 200);
    CHECK_EQ(act("DELETE", path_of(0), NULL), 204);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w1&b=ref:w1&keep=w2"), 200);
    CHECK_EQ(usage().device_bytes, 4 * bytes); /* and the host has neither */
    CHECK_EQ(put(path_of(3), 3), 201);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w2&b=ref:w2&keep=w4"), 200); /* nor does a result */
    CHECK_EQ(last_on_device(), 3);
    CHECK_EQ(atomic_load(&memory.copies_out), 0);
    check_get(path_of(3), 3);
    CHECK_EQ(act("POST", "/v1/flip", "a=ref:w4"), 200); /* when it is used, by a worker */
    CHECK_EQ(last_on_device(), 1);
    CHECK_EQ(atomic_load(&memory.copies_out), 1);
    CHECK_EQ(usage().device_bytes, 4 * bytes);
    CHECK_EQ(ask_of(&x, "GET", path_of(1), "rows=0:32&cols=0:128", NULL, 0), 200);
    is_all(x.request->reply.body, x.request->reply.body_len, 8);
    bench_end(&x);
    delete_all(5);
    close_bench();
}

/* ---- A device beside it, whose buffers are not where named matrices are. ---- */

static struct {
    struct gm_backend backend;
    pthread_t ran_on, took_on; /* who ran its last job; who took the first one's last buffer */
} beside;

static enum gm_status note_buffer(void *context, uint64_t bytes, struct gm_buffer *ret,
                                  struct gm_error *err)
{
    beside.took_on = pthread_self();
    return faulty_backend.buffer_get(context, bytes, ret, err);
}

static enum gm_status note_run(void *context, unsigned device, unsigned stream,
                               struct gm_task *task[], unsigned n)
{
    beside.ran_on = pthread_self();
    return gm_backend_cpu.run(context, device, stream, task, n);
}

/* A large result is copied to where named matrices are by a worker: neither the event thread's
 * other connections nor the device's other jobs wait for that. */
static void test_large_is_copied_by_a_worker(void)
{
    static float large[2 * 512 * 512];
    struct exchange x;

    beside.backend = gm_backend_cpu;
    beside.backend.run = note_run;
    bench_second = &beside.backend;
    open_bench();
    CHECK_EQ(ask_of(&x, "PUT", path_of(0), "shape=1024x512", large, sizeof large), 201);
    bench_end(&x);
    resident_backend.buffer_get = note_buffer;
    CHECK_EQ(act("POST", "/v1/flip", "a=ref:w0&device=cpu:0&keep=w1"), 200);
    CHECK(!pthread_equal(beside.took_on, beside.ran_on));
    CHECK(!pthread_equal(beside.took_on, pthread_self()));
    delete_all(2);
    close_bench();
    bench_second = NULL;
}

/* A matrix in use stays, whatever comes, and whoever deletes or replaces it. */
static void test_in_use(void)
{
    const struct ask ask = {
        .path = "/v1/add", .query = "a=ref:w0&b=ref:w0&kernel=direct", .accept = RAW};
    struct exchange x;

    open_bench();
    CHECK_EQ(put(path_of(0), 5), 201);
    atomic_store(&faulty_plan.hold, true);
    bench_begin(&x, &ask, 0);
    CHECK(!bench_advance(&x));
    bench_wait_running(1);
    for (unsigned i = 1; i <= 2 * ROOM; i++)
        CHECK_EQ(put(path_of(i), (float)i), 201);
    CHECK_EQ(usage().device_bytes, ROOM * BLOCK);
    CHECK_EQ(put(path_of(0), 6), 200);
    CHECK_EQ(act("DELETE", path_of(0), NULL), 204);
    atomic_store(&faulty_plan.hold, false);
    bench_finish(&x);
    CHECK_EQ(last_on_device(), 3);
    is_all(x.request->reply.body, x.request->reply.body_len, 10);
    bench_end(&x);
    delete_all(2 * ROOM + 1);
    CHECK_EQ(usage().bytes, 0);
    close_bench();
}

/* Device memory that cannot be had, and copies that fail: the host serves, or the request fails and
 * leaves all as it was. */
static void test_device_fails(void)
{
    open_bench();
    atomic_store(&memory.refuse_at, 1);
    CHECK_EQ(put(path_of(0), 1), 201);
    CHECK_EQ(usage().device_bytes, 0);
    atomic_store(&memory.fail_copy_at, 1);
    CHECK_EQ(act("POST", "/v1/flip", "a=ref:w0"), 200); /* from the host */
    CHECK_EQ(last_on_device(), 0);
    CHECK_EQ(usage().device_bytes, 0);
    CHECK_EQ(act("POST", "/v1/flip", "a=ref:w0"), 200);
    CHECK_EQ(last_on_device(), 1);
    atomic_store(&memory.refuse_at, 1);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w0&b=ref:w0&keep=sum"),
             200); /* w0 gave way to nobody: it is in use */
    CHECK_EQ(last_on_device(), 3);
    check_get("/v1/matrices/sum", 2);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w0&b=ref:w0&keep=sum"), 200);
    CHECK_EQ(last_on_device(), 3 | GM_RESULT_ON_DEVICE);
    atomic_store(&memory.fail_copy_at, 1);
    CHECK_EQ(act("GET", "/v1/matrices/sum", NULL), 500);
    check_get("/v1/matrices/sum", 2);
    /* A run that fails keeps nothing. */
    faulty_plan.memory_at = atomic_load(&faulty_plan.runs) + 1;
    CHECK_EQ(act("POST", "/v1/flip", "a=ref:w0&keep=sum&kernel=naive"), 503);
    check_get("/v1/matrices/sum", 2);
    CHECK_EQ(usage().count, 2);
    delete_all(1);
    close_bench();
}

/* Where what should give way cannot be copied, it stays, and what is new lies on the host. */
static void test_cannot_give_way(void)
{
    open_bench();
    CHECK_EQ(put(path_of(0), 1), 201);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w0&b=ref:w0&keep=w1"), 200);
    CHECK_EQ(act("DELETE", path_of(0), NULL), 204);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w1&b=ref:w1&keep=w2"), 200);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w2&b=ref:w2&keep=w3"), 200);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w3&b=ref:w3&keep=w4"), 200);
    CHECK_EQ(usage().device_bytes, ROOM * BLOCK);
    atomic_store(&memory.fail_copy_at, 1);
    CHECK_EQ(put(path_of(5), 5), 201);
    CHECK_EQ(atomic_load(&memory.copies_in), 1);
    CHECK_EQ(atomic_load(&memory.copies_out), 0);
    for (unsigned i = 1; i <= ROOM; i++)
        check_get(path_of(i), (float)(1u << i));
    check_get(path_of(5), 5);
    delete_all(6);
    close_bench();
}

/* Each buffer that a request takes is refused in turn. */
static void test_no_buffers(void)
{
    static const struct {
        const char *method, *path, *query;
    } asks[] = {{"PUT", "/v1/matrices/w1", "shape=64x64"},
                {"PUT", "/v1/matrices/w0", "shape=64x64"},
                {"GET", "/v1/matrices/w0", NULL},
                {"GET", "/v1/matrices/sum", "rows=1:3"},
                {"POST", "/v1/add", "a=ref:w0&b=ref:sum&keep=sum&return=result"},
                {"POST", "/v1/add", "a=ref:w0&b=ref:sum&keep=w1"}};

    open_bench();
    CHECK_EQ(put(path_of(0), 1), 201);
    CHECK_EQ(act("POST", "/v1/add", "a=ref:w0&b=ref:w0&keep=sum"), 200);
    for (unsigned i = 0; i < sizeof asks / sizeof *asks; i++) {
        int http = 0;
        for (unsigned n = 1; http != 200 && http != 201 && n < 20; n++) {
            struct exchange x;
            bool has_body = strcmp(asks[i].method, "PUT") == 0;
            atomic_store(&faulty_plan.buffer_at, atomic_load(&faulty_plan.buffers) + n);
            http = ask_of(&x, asks[i].method, asks[i].path, asks[i].query,
                          has_body ? elements(1) : NULL, has_body ? BLOCK : 0);
            CHECK(http == 200 || http == 201 || http == 503);
            bench_end(&x);
        }
        CHECK(http == 200 || http == 201);
        atomic_store(&faulty_plan.buffer_at, 0);
    }
    delete_all(2);
    CHECK_EQ(usage().bytes, 0);
    CHECK_EQ(atomic_load(&bench_server.memory.reserved), 0);
    close_bench();
}

/* ---- Threads. ---- */

#define NAMES 6
#define THREADS 4
#define ROUNDS 300

static struct gm_matrix_caller me = {.owner = "@0", .client = 7};
static const struct gm_conditions none;

static void write_one(struct gm_matrices *m, const char *name, float value)
{
    const struct gm_shape shape = {.ndim = 2, .dim = {SIDE, SIDE}};
    const struct gm_matrix_terms terms = {.share = ""};
    struct gm_reservation reservation = {.quota = m->quota, .client = me.client};
    struct gm_allocation buffer = {0};
    struct gm_matrix_use use = {0};
    struct gm_matrix matrix;
    struct gm_error err;
    bool created;

    CHECK_EQ(gm_matrix_init(&matrix, GM_F32, GM_ROW_MAJOR, &shape, &err), GM_OK);
    if (!CHECK_STATUS(gm_matrix_make(m, &me, name, &terms, &none, &matrix, &use, &err), GM_OK,
                      &err))
        return;
    enum gm_status status = gm_allocation_make(
        &buffer, &reservation,
        (struct gm_allocator){m->devices->opened[0].backend, m->devices->opened[0].context}, BLOCK,
        &err);
    if (CHECK_STATUS(status, GM_OK, &err)) {
        for (unsigned i = 0; i < SIDE * SIDE; i++)
            ((float *)buffer.buffer.data)[i] = value;
        CHECK_STATUS(gm_matrix_adopt(&use, &buffer, &reservation, buffer.buffer.data, &err), GM_OK,
                     &err);
        CHECK_STATUS(gm_matrix_publish(&use, &none, &created, &err), GM_OK, &err);
    }
    gm_allocation_free(&buffer, &reservation);
    gm_reservation_trim(&reservation, 0);
    gm_matrix_leave(&use);
}

static void use_one(struct gm_matrices *m, const char *name, bool on_host)
{
    struct gm_matrix_use use = {0};
    struct gm_error err;
    bool on_device;
    void *data;

    if (gm_matrix_take(m, &me, name, &use, &err) != GM_OK) {
        CHECK_EQ(err.status, GM_NOT_FOUND);
        return;
    }
    if (CHECK_STATUS(
            gm_matrix_data(&use, on_host ? NULL : &m->devices->device[0], &data, &on_device, &err),
            GM_OK, &err)) {
        const float *x = data;
        unsigned wrong = 0;
        for (unsigned i = 1; i < SIDE * SIDE; i++)
            wrong += x[i] != x[0];
        CHECK_EQ(wrong, 0);
        CHECK(!on_host || !on_device);
    }
    gm_matrix_leave(&use);
}

static void *work(void *cls)
{
    struct gm_matrices *m = &bench_server.matrices;
    unsigned seed = *(const unsigned *)cls + (unsigned)check_seed();
    char name[8];

    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned n, next, what = (unsigned)rand_r(&seed) % 16;
        struct gm_error err;
        snprintf(name, sizeof name, "n%u", (unsigned)rand_r(&seed) % NAMES);
        if (what < 5)
            write_one(m, name, (float)(i % 100));
        else if (what < 13)
            use_one(m, name, what < 7);
        else if (what == 13)
            gm_matrix_delete(m, &me, name, &none, &err);
        else if (what == 14)
            gm_matrices_tick(m);
        else
            free(gm_matrix_list(m, &me, 0, 10, &n, &next));
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread[THREADS];
    unsigned number[THREADS];

    open_bench();
    for (unsigned i = 0; i < THREADS; i++) {
        number[i] = i;
        CHECK_EQ(pthread_create(&thread[i], NULL, work, &number[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK(usage().device_bytes <= ROOM * BLOCK);
    gm_matrices_drop_client(&bench_server.matrices, me.client);
    CHECK_EQ(usage().bytes, 0);
    CHECK_EQ(atomic_load(&memory.taken), 0);
    close_bench();
}

/* ---- Files. ---- */

static atomic_uint fail_sync_at; /* counted down */

int fsync(int fd)
{
    if (is_due(&fail_sync_at)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static bool owner_of(void *cls, const char *owner, uint64_t *ret_client,
                     struct gm_quota **ret_quota)
{
    (void)cls;
    (void)owner;
    *ret_client = 1;
    *ret_quota = NULL;
    return true;
}

static atomic_uint fail_rename_at;

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    if (is_due(&fail_rename_at)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

static void ignore(void *cls, const struct gm_error *why)
{
    (void)cls;
    (void)why;
}

static unsigned files_in(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    unsigned count = 0;

    while (dir && (entry = readdir(dir)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

/* PUT of "w". *ret_durable: what a client would be told. */
static enum gm_status write_w(struct gm_matrices *m, const struct gm_matrix_caller *caller,
                              bool *ret_durable)
{
    const struct gm_conditions always = {0};
    const struct gm_matrix_terms terms = {.share = ""};
    struct gm_matrix matrix;
    struct gm_matrix_use use = {0};
    struct gm_error error;
    bool created;
    void *data;

    const struct gm_shape shape = {.ndim = 2, .dim = {SIDE, SIDE}};
    enum gm_status status = gm_matrix_init(&matrix, GM_F32, GM_ROW_MAJOR, &shape, &error);
    if (status == GM_OK)
        status = gm_matrix_make(m, caller, "w", &terms, &always, &matrix, &use, &error);
    if (status == GM_OK)
        status = gm_matrix_take_room(&use, &data, &error);
    if (status == GM_OK) {
        memcpy(data, elements(1), BLOCK);
        status = gm_matrix_publish(&use, &always, &created, &error);
    }
    if (status == GM_OK)
        *ret_durable = gm_matrix_facts_of(&use).durable;
    gm_matrix_leave(&use);
    return status;
}

/* Where nobody knows whether the disk has the files, the version before stays whole in them. */
static void test_syncs_fail(void)
{
    const struct gm_matrix_caller caller = {.owner = "alice", .has_key = true, .client = 1};
    const struct gm_conditions always = {0};
    char folder[] = "/tmp/test_matrices.XXXXXX";
    struct gm_error error;
    bool durable = false;

    open_bench();
    CHECK(mkdtemp(folder) != NULL);
    struct gm_matrices m = {.limit = 1 << 20,
                            .dir = folder,
                            .quota = &bench_server.memory,
                            .devices = &bench_server.devices,
                            .owner_of = owner_of};
    CHECK_STATUS(gm_matrices_open(&m, &error), GM_OK, &error);
    CHECK_EQ(write_w(&m, &caller, &durable), GM_OK);
    CHECK(durable);
    CHECK_EQ(files_in(folder), 2);
    atomic_store(&fail_sync_at, 2); /* after the elements: no facts name them */
    CHECK_EQ(write_w(&m, &caller, &durable), GM_INTERNAL);
    CHECK_EQ(files_in(folder), 2);
    atomic_store(&fail_sync_at, 4); /* after the facts: the elements before stay as well */
    CHECK_EQ(write_w(&m, &caller, &durable), GM_OK);
    CHECK(!durable);
    CHECK_EQ(files_in(folder), 3);
    CHECK_EQ(write_w(&m, &caller, &durable), GM_OK);
    CHECK(durable);
    CHECK_EQ(files_in(folder), 3);
    atomic_store(&fail_sync_at, 1);
    CHECK_STATUS(gm_matrix_delete(&m, &caller, "w", &always, &error), GM_OK, &error);
    CHECK_EQ(files_in(folder), 2);
    CHECK_EQ(gm_matrix_delete(&m, &caller, "w", &always, &error), GM_NOT_FOUND);
    gm_matrices_close(&m);
    /* What no facts name goes at the next start. */
    CHECK_STATUS(gm_matrices_open(&m, &error), GM_OK, &error);
    CHECK_STATUS(gm_matrices_load(&m, ignore, NULL, &error), GM_OK, &error);
    CHECK_EQ(files_in(folder), 0);
    gm_matrices_close(&m);
    CHECK_EQ(rmdir(folder), 0);
    close_bench();
}

/* A name that cannot be changed leaves the version before, whole and under its own names. */
static void test_renames_fail(void)
{
    const struct gm_matrix_caller caller = {.owner = "alice", .has_key = true, .client = 1};
    const struct gm_conditions always = {0};
    char folder[] = "/tmp/test_matrices.XXXXXX", pattern[sizeof folder + 8];
    struct gm_error error;
    bool durable = false;
    glob_t own;

    open_bench();
    CHECK(mkdtemp(folder) != NULL);
    snprintf(pattern, sizeof pattern, "%s/[!.]*", folder);
    struct gm_matrices m = {.limit = 1 << 20,
                            .dir = folder,
                            .quota = &bench_server.memory,
                            .devices = &bench_server.devices,
                            .owner_of = owner_of};
    CHECK_STATUS(gm_matrices_open(&m, &error), GM_OK, &error);
    CHECK_EQ(write_w(&m, &caller, &durable), GM_OK);
    for (unsigned n = 1; n <= 3; n++) { /* the elements before; the facts; a DELETE's elements */
        atomic_store(&fail_rename_at, n < 3 ? n : 1);
        CHECK_EQ(n < 3 ? write_w(&m, &caller, &durable)
                       : gm_matrix_delete(&m, &caller, "w", &always, &error),
                 GM_INTERNAL);
        CHECK_EQ(glob(pattern, 0, NULL, &own), 0);
        CHECK_EQ(own.gl_pathc, 2);
        CHECK_EQ(files_in(folder), 2);
        globfree(&own);
    }
    atomic_store(&fail_rename_at, 3); /* the new elements: they count, under their other name */
    CHECK_EQ(write_w(&m, &caller, &durable), GM_OK);
    CHECK(!durable);
    CHECK_EQ(files_in(folder), 3);
    CHECK_STATUS(gm_matrix_delete(&m, &caller, "w", &always, &error), GM_OK, &error);
    CHECK_EQ(files_in(folder), 1);
    gm_matrices_close(&m);
    CHECK_STATUS(gm_matrices_open(&m, &error), GM_OK, &error);
    CHECK_STATUS(gm_matrices_load(&m, ignore, NULL, &error), GM_OK, &error);
    CHECK_EQ(files_in(folder), 0);
    gm_matrices_close(&m);
    CHECK_EQ(rmdir(folder), 0);
    close_bench();
}

int main(void)
{
    test_stays();
    test_gives_way();
    test_large_gives_way_to_large();
    test_large_is_copied_by_a_worker();
    test_syncs_fail();
    test_renames_fail();
    test_in_use();
    test_device_fails();
    test_cannot_give_way();
    test_no_buffers();
    test_threads();
    return check_report();
}
