/* The devices: what is opened at start, what a name picks, and what becomes of those lost. */
#include "kernels/gpu.h"
#include "server/sched/devices.h"
#include "tests/unit/check.h"
#include "tests/unit/fake_backend.h"

#include <string.h>
#include <time.h>

/* The backends of this program: alpha is preferred, beta may be without a device. */
#define BACKENDS 3
static struct gm_backend table[BACKENDS];
static struct fake fake[BACKENDS];
static enum gm_status open_status[BACKENDS];
static unsigned opened[BACKENDS], lost_calls;
static struct gm_backend_options options_seen;

const struct gm_backend *gm_backend_at(size_t index)
{
    return index < BACKENDS ? &table[index] : NULL;
}

/* Never called here; it keeps the library's own list out of the program. */
uint64_t gm_host_memory(void)
{
    return UINT64_C(1) << 30;
}

static enum gm_status open_fake(unsigned i, const struct gm_backend_options *options,
                                void **ret_context, struct gm_error *err)
{
    options_seen = *options;
    if (open_status[i] != GM_OK)
        return gm_fail(err, open_status[i], "no %s device today", table[i].name);
    opened[i]++;
    *ret_context = &fake[i];
    return GM_OK;
}

static enum gm_status open_alpha(const struct gm_backend_options *o, void **ret, struct gm_error *e)
{
    return open_fake(0, o, ret, e);
}

static enum gm_status open_beta(const struct gm_backend_options *o, void **ret, struct gm_error *e)
{
    return open_fake(1, o, ret, e);
}

static enum gm_status open_gamma(const struct gm_backend_options *o, void **ret, struct gm_error *e)
{
    return open_fake(2, o, ret, e);
}

static void on_lost(void *cls)
{
    CHECK(cls == &lost_calls);
    __atomic_add_fetch(&lost_calls, 1, __ATOMIC_SEQ_CST);
}

/* alpha has 2 devices, beta 3 and gamma 1, of two streams each. */
static void set_up(void)
{
    static const char *const names[BACKENDS] = {"alpha", "beta", "gamma"};
    static enum gm_status (*const opens[BACKENDS])(const struct gm_backend_options *, void **,
                                                   struct gm_error *) = {open_alpha, open_beta,
                                                                         open_gamma};
    static const unsigned devices[BACKENDS] = {2, 3, 1};

    for (unsigned i = 0; i < BACKENDS; i++) {
        fake_init(&fake[i], 2, 1);
        fake[i].facts.kind = i == 2 ? GM_DEVICE_CPU : GM_DEVICE_CUDA;
        fake[i].devices = devices[i];
        table[i] = fake_backend;
        table[i].name = names[i];
        table[i].open = opens[i];
        open_status[i] = GM_OK;
        opened[i] = 0;
    }
    lost_calls = 0;
}

static void tear_down(void)
{
    for (unsigned i = 0; i < BACKENDS; i++) {
        CHECK_EQ(fake[i].closed, opened[i]); /* whatever was opened has been closed, once */
        CHECK(!fake[i].stream_clash);
        fake_destroy(&fake[i]);
    }
}

static enum gm_status open_devices(struct gm_devices *d, const char *backend, struct gm_error *err)
{
    const struct gm_devices_options options = {
        .backend = backend,
        .backend_options = {.threads = 3, .memory_limit = 12345},
        .queue_limit = 8,
        .lost = on_lost,
        .lost_cls = &lost_calls};

    return gm_devices_open(d, &options, err);
}

static void check_pick(struct gm_devices *d, const char *name, const char *expected)
{
    struct gm_device *device = NULL;
    struct gm_error error;

    CHECK_STATUS(gm_devices_pick(d, name, &device, &error), GM_OK, &error);
    CHECK_STR(device ? device->name : NULL, expected);
}

static void test_names(void)
{
    static const char *const all[] = {"alpha:0", "alpha:1", "beta:0",
                                      "beta:1",  "beta:2",  "gamma:0"};
    static const char *const none[] = {"alpha:2", "alpha:", "alph", "alpha:00", "Alpha",  "delta",
                                       ":0",      "0",      "auto", " alpha",   "beta:-1"};
    struct gm_devices d;
    struct gm_error error;

    set_up();
    CHECK_STATUS(open_devices(&d, "auto", &error), GM_OK, &error);
    CHECK_EQ(d.count, 6);
    CHECK(options_seen.threads == 3 && options_seen.memory_limit == 12345);
    CHECK(options_seen.shared_limit && options_seen.shared_limit == d.memory); /* one for all */
    for (unsigned i = 0; i < 6; i++)
        check_pick(&d, all[i], all[i]);
    check_pick(&d, "", "alpha:0");
    check_pick(&d, "alpha", "alpha:0");
    check_pick(&d, "beta", "beta:0");
    check_pick(&d, "gamma", "gamma:0");
    for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
        struct gm_device *device = NULL;
        CHECK_EQ(gm_devices_pick(&d, none[i], &device, &error), GM_DEVICE_UNAVAILABLE);
        CHECK(device == NULL && strstr(error.detail, none[i]));
        for (unsigned j = 0; j < 6; j++)
            CHECK(strstr(error.detail, all[j]) != NULL);
    }
    CHECK(gm_devices_alive(&d));
    CHECK(d.host.context == &fake[2]); /* plain memory comes from the cpu kind */
    gm_devices_close(&d);
    CHECK(d.count == 0 && !gm_devices_alive(&d));
    tear_down();
}

static void test_preferred(void)
{
    struct gm_devices d;
    struct gm_error error;

    set_up();
    CHECK_STATUS(open_devices(&d, "beta", &error), GM_OK, &error);
    CHECK_EQ(d.count, 6); /* all are open, whichever is preferred */
    check_pick(&d, "", "beta:0");
    gm_devices_close(&d);
    tear_down();
}

/* A device that is only played serves those who ask for it, and is no answer to "auto". */
static void test_simulated(void)
{
    struct gm_devices d;
    struct gm_error error;

    set_up();
    fake[0].facts.kind = GM_DEVICE_SIM;
    CHECK_STATUS(open_devices(&d, "auto", &error), GM_OK, &error);
    check_pick(&d, "", "beta:0");
    check_pick(&d, "alpha", "alpha:0");
    gm_devices_close(&d);
    CHECK_STATUS(open_devices(&d, "alpha", &error), GM_OK, &error);
    check_pick(&d, "", "alpha:0");
    gm_devices_close(&d);
    tear_down();

    set_up();
    fake[0].facts.kind = GM_DEVICE_SIM;
    open_status[1] = open_status[2] = GM_DEVICE_UNAVAILABLE;
    CHECK_EQ(open_devices(&d, "auto", &error), GM_DEVICE_UNAVAILABLE);
    tear_down();
}

static bool on_abandoned(const struct gm_job *job, bool running)
{
    (void)job;
    (void)running;
    return false;
}

struct probe {
    struct gm_job job;
    atomic_int done;
};

static void on_done(struct gm_job *job)
{
    atomic_store(&((struct probe *)job)->done, 1);
}

static void commit(struct gm_device *device, struct probe *p)
{
    struct gm_error error;

    memset(p, 0, sizeof *p);
    p->job.deadline_ns = INT64_MAX;
    p->job.abandoned = on_abandoned;
    p->job.done = on_done;
    if (CHECK_STATUS(gm_sched_reserve(device->sched, 0, &error), GM_OK, &error))
        gm_sched_commit(device->sched, &p->job);
}

static bool wait_done(struct probe *p)
{
    for (int i = 0; i < 5000 && !atomic_load(&p->done); i++)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    return atomic_load(&p->done) != 0;
}

/* Waiting jobs count as much as running ones, and reserved places do. */
static void test_least_loaded(void)
{
    struct gm_devices d;
    struct gm_error error;
    struct probe p[6];

    set_up();
    fake_hold(&fake[1], true);
    CHECK_STATUS(open_devices(&d, "beta", &error), GM_OK, &error);
    static const char *const order[] = {"beta:0", "beta:1", "beta:2", "beta:0", "beta:1", "beta:2"};
    for (unsigned i = 0; i < 6; i++) {
        struct gm_device *device = NULL;
        check_pick(&d, i % 2 ? "beta" : "", order[i]);
        CHECK_STATUS(gm_devices_pick(&d, "beta", &device, &error), GM_OK, &error);
        commit(device, &p[i]);
    }
    CHECK_EQ(gm_sched_reserve(d.device[2].sched, 0, &error), GM_OK);
    check_pick(&d, "beta", "beta:1");
    gm_sched_unreserve(d.device[2].sched, 0);
    check_pick(&d, "beta", "beta:0");
    check_pick(&d, "beta:2", "beta:2"); /* who names one gets that one */
    check_pick(&d, "alpha", "alpha:0");
    fake_hold(&fake[1], false);
    for (unsigned i = 0; i < 6; i++)
        CHECK(wait_done(&p[i]));
    gm_devices_close(&d);
    tear_down();
}

/* A lost device is no longer picked, and is dead to the probes, while others serve. */
static void test_lost(void)
{
    struct gm_devices d;
    struct gm_error error;
    struct gm_device *device;
    struct probe p;

    set_up();
    CHECK_STATUS(open_devices(&d, "auto", &error), GM_OK, &error);
    fake_next(&fake[0], GM_DEVICE_LOST);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_STATUS(gm_devices_pick(&d, "alpha", &device, &error), GM_OK, &error);
        CHECK(device == &d.device[i]);
        commit(device, &p);
        CHECK(wait_done(&p));
        CHECK_EQ(p.job.task.status, GM_DEVICE_LOST);
        CHECK(!gm_devices_alive(&d));
    }
    static const char *const gone[] = {"", "alpha", "alpha:0", "alpha:1"};
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQ(gm_devices_pick(&d, gone[i], &device, &error), GM_DEVICE_LOST);
    CHECK_EQ(gm_devices_pick(&d, "alpha:2", &device, &error), GM_DEVICE_UNAVAILABLE);
    check_pick(&d, "beta", "beta:0");
    gm_devices_close(&d);
    CHECK_EQ(lost_calls, 2);
    tear_down();
}

/* Who is asked for must be there; who is not may be missing, but not broken. */
static void test_open_failures(void)
{
    static const struct {
        const char *backend;
        enum gm_status status[BACKENDS], expected;
        const char *said;
    } cases[] = {
        {"auto", {GM_DEVICE_UNAVAILABLE, GM_OK, GM_OK}, GM_OK, "beta:0"},
        {"auto", {GM_DEVICE_UNAVAILABLE, GM_DEVICE_UNAVAILABLE, GM_OK}, GM_OK, "gamma:0"},
        {"auto", {GM_OK, GM_OK, GM_DEVICE_UNAVAILABLE}, GM_OK, "alpha:0"},
        {"gamma", {GM_DEVICE_UNAVAILABLE, GM_OK, GM_OK}, GM_OK, "gamma:0"},
        {"beta", {GM_OK, GM_DEVICE_UNAVAILABLE, GM_OK}, GM_DEVICE_UNAVAILABLE, "no beta device"},
        {"alpha", {GM_INTERNAL, GM_OK, GM_OK}, GM_INTERNAL, "no alpha device"},
        {"auto", {GM_OK, GM_MEMORY_FULL, GM_OK}, GM_MEMORY_FULL, "no beta device"},
        {"alpha", {GM_OK, GM_OK, GM_INTERNAL}, GM_INTERNAL, "no gamma device"},
        {"auto",
         {GM_DEVICE_UNAVAILABLE, GM_DEVICE_UNAVAILABLE, GM_DEVICE_UNAVAILABLE},
         GM_DEVICE_UNAVAILABLE,
         "device"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gm_devices d;
        struct gm_error error = {0};
        set_up();
        memcpy(open_status, cases[i].status, sizeof open_status);
        memset(&d, 0x5A, sizeof d);
        enum gm_status status = open_devices(&d, cases[i].backend, &error);
        CHECK_STATUS(status, cases[i].expected, &error);
        if (status == GM_OK) {
            check_pick(&d, "", cases[i].said);
            gm_devices_close(&d);
        } else {
            CHECK(d.count == 0x5A5A5A5A); /* untouched on failure */
            CHECK(error.status == status && strstr(error.detail, cases[i].said));
        }
        tear_down();
    }
}

/* A number of streams that no device can have is fatal; one that some can is fine. */
static void test_streams(void)
{
    struct gm_devices d;
    struct gm_error error;
    struct gm_devices_options options = {
        .backend = "auto", .backend_options = {.streams = 2}, .queue_limit = 8, .lost = on_lost};

    set_up();
    fake[0].facts.streams = 1;
    CHECK_STATUS(gm_devices_open(&d, &options, &error), GM_OK, &error);
    CHECK_EQ(options_seen.streams, 2);
    gm_devices_close(&d);
    options.backend_options.streams = 7;
    CHECK_EQ(gm_devices_open(&d, &options, &error), GM_BAD_PARAMETER);
    CHECK(strstr(error.detail, "--streams") && strstr(error.detail, "7"));
    tear_down();
}

/* More devices than there is room for: those that fit are served. */
static void test_many(void)
{
    struct gm_devices d;
    struct gm_error error;

    set_up();
    fake[0].devices = FAKE_DEVICES_MAX;
    CHECK_STATUS(open_devices(&d, "auto", &error), GM_OK, &error);
    CHECK_EQ(d.count, GM_DEVICES_MAX);
    check_pick(&d, "alpha:15", "alpha:15");
    gm_devices_close(&d);
    tear_down();
}

/* The device of a square product, transpose, ... of this element type. */
static const char *placed(struct gm_devices *d, enum gm_op_kind kind, enum gm_dtype dtype,
                          uint64_t side, enum gm_placed why)
{
    const struct gm_shape shape = {.ndim = 2, .dim = {side, side}};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {{0}};
    bool present[GM_OPERANDS_MAX] = {true, kind == GM_OP_MATMUL || kind == GM_OP_ADD};
    struct gm_op_options options = {0};
    struct gm_device *device = NULL;
    struct gm_error error;
    enum gm_placed seen;
    struct gm_op op;

    for (unsigned i = 0; i < 2; i++)
        CHECK(gm_matrix_init(&operand[i], dtype, GM_ROW_MAJOR, &shape, &error) == GM_OK);
    if (!CHECK_STATUS(gm_op_init(&op, kind, &options, operand, present, &error), GM_OK, &error) ||
        !CHECK_STATUS(gm_devices_pick(d, "", &device, &error), GM_OK, &error))
        return "";
    device = gm_devices_place(d, device, &op, &seen);
    CHECK_STR(gm_placed_name(seen), gm_placed_name(why));
    return device->name;
}

/* Makes each GPU one of a known model, with such a link. */
static void set_link(struct gm_devices *d, double gbs)
{
    for (unsigned i = 0; i < d->count; i++) {
        struct gm_device_facts *facts = (struct gm_device_facts *)d->device[i].facts;
        if (facts->kind != GM_DEVICE_CUDA)
            continue;
        facts->gpu = gm_gpu_find("H200");
        facts->link_in_gbs = facts->link_out_gbs = gbs;
    }
}

/* Products of floating-point elements go by shape alone; what has the same bits everywhere goes
 * where it ends first. */
static void test_place(void)
{
    struct gm_devices d;
    struct gm_error error;
    struct probe p[4];

    set_up();
    CHECK_STATUS(open_devices(&d, "auto", &error), GM_OK, &error);
    for (unsigned i = 0; i < d.count; i++) {
        struct gm_device_facts *facts = (struct gm_device_facts *)d.device[i].facts;
        bool cpu = facts->kind == GM_DEVICE_CPU;
        facts->copy_gbs = cpu ? 20 : 4000;
        facts->peak_gflops[GM_F32] = facts->peak_gflops[GM_I32] = cpu ? 100 : 60000;
        facts->link_in_gbs = facts->link_out_gbs = cpu ? 0 : 50;
    }
    CHECK_STR(placed(&d, GM_OP_MATMUL, GM_F32, 64, GM_PLACED_SHAPE), "gamma:0");
    CHECK_STR(placed(&d, GM_OP_MATMUL, GM_F32, 512, GM_PLACED_SHAPE), "alpha:0");
    CHECK_STR(placed(&d, GM_OP_MATMUL, GM_I32, 64, GM_PLACED_LOAD), "gamma:0");
    CHECK_STR(placed(&d, GM_OP_MATMUL, GM_I32, 2048, GM_PLACED_LOAD), "alpha:0");
    CHECK_STR(placed(&d, GM_OP_TRANSPOSE, GM_F32, 64, GM_PLACED_LOAD), "gamma:0");
    CHECK_STR(placed(&d, GM_OP_TRANSPOSE, GM_F32, 512, GM_PLACED_LOAD), "alpha:0");

    /* Where the GPU's model is known, copies count, at the link's rate: 105 us on this CPU. */
    set_link(&d, 5);
    CHECK_STR(placed(&d, GM_OP_TRANSPOSE, GM_F32, 512, GM_PLACED_LOAD), "gamma:0");
    CHECK_STR(placed(&d, GM_OP_MATMUL, GM_I32, 2048, GM_PLACED_LOAD), "alpha:0");
    set_link(&d, 50);
    CHECK_STR(placed(&d, GM_OP_TRANSPOSE, GM_F32, 512, GM_PLACED_LOAD), "alpha:0");

    /* Waiting counts, but never for the bits of a product: one second of work waits on each GPU. */
    fake_hold(&fake[0], true);
    for (unsigned i = 0; i < 4; i++) {
        memset(&p[i], 0, sizeof p[i]);
        p[i].job.deadline_ns = INT64_MAX;
        p[i].job.slot.cost_s = 1;
        p[i].job.abandoned = on_abandoned;
        p[i].job.done = on_done;
        if (CHECK(gm_sched_reserve(d.device[i % 2].sched, 0, &error) == GM_OK))
            gm_sched_commit(d.device[i % 2].sched, &p[i].job);
    }
    CHECK_STR(placed(&d, GM_OP_TRANSPOSE, GM_F32, 512, GM_PLACED_LOAD), "gamma:0");
    CHECK(strncmp(placed(&d, GM_OP_MATMUL, GM_F32, 512, GM_PLACED_SHAPE), "alpha", 5) == 0);
    d.place_by_load = true;
    CHECK_STR(placed(&d, GM_OP_MATMUL, GM_F32, 512, GM_PLACED_LOAD), "gamma:0");
    d.place_by_load = false;
    d.automatic = false; /* --backend alpha */
    CHECK(strncmp(placed(&d, GM_OP_TRANSPOSE, GM_F32, 64, GM_PLACED_ASKED), "alpha", 5) == 0);
    fake_hold(&fake[0], false);
    for (unsigned i = 0; i < 4; i++)
        CHECK(wait_done(&p[i]));
    gm_devices_close(&d);
    for (unsigned i = 0; i < BACKENDS; i++)
        fake_destroy(&fake[i]);
}

int main(void)
{
    test_names();
    test_preferred();
    test_simulated();
    test_least_loaded();
    test_lost();
    test_open_failures();
    test_streams();
    test_many();
    test_place();
    return check_report();
}
