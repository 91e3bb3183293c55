/*
 * test_tune.c - --tune on a device whose times are known: those that a hidden profile gives, some
 * per cent beside it. What it writes must choose as the hidden one does, on operations that it
 * never saw.
 */
#include "kernels/choose/estimate.h"
#include "kernels/choose/fit.h"
#include "tests/unit/check.h"
#include "tests/unit/failing_alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHAPES 150u
#define JUDGED 300u

/* A GPU of another balance than the built-in profile's: tiles are good, skinny and vectors are not.
 */
static const char hidden_text[] =
    "GM_MEASURED_ON(\"NVIDIA A100\", \"1\", \"2026-01-01\", \"x\")\n"
    "GM_LAUNCH(6, 0.6)\n"
    "GM_RATES(tiled, 0.9, 0.9, 0.9, 0.9, 500, 600, 3000)\n"
    "GM_RATES(dynamic_tile, 0.2, 0.3, 0.3, 0.3, 900, 600, 3000)\n"
    "GM_RATES(register_tiled, 1.1, 1, 1, 0.9, 300, 900, 3000)\n"
    "GM_RATES(multistage, 0.3, 0.5, 0.3, 0.3, 300, 900, 3000)\n"
    "GM_RATES(multistage_tuned, 0.4, 0.4, 0.4, 0.4, 300, 900, 3000)\n"
    "GM_RATES(skinny_along, 0.3, 0.3, 0.3, 0.3, 900, 900, 3000)\n"
    "GM_RATES(skinny_across, 0.2, 0.3, 0.3, 0.3, 900, 900, 3000)\n"
    "GM_RATES(transpose_vectorized, 0.7, 0.5, 0.4, 0.4, 900, 600, 3000)\n"
    "GM_RATES(transpose_tiled, 0.7, 1, 1, 1, 300, 600, 3000)\n"
    "GM_RATES(add_vectorized, 0.7, 0.6, 0.6, 0.6, 300, 600, 3000)\n"
    "GM_RATES(add_direct, 0.7, 1, 1, 0.95, 300, 600, 3000)\n";

static struct {
    struct gm_device_facts facts;
    struct gm_profile *hidden;
    uint64_t random, device_bytes, device_most;
    unsigned runs, runs_max;  /* then the device is lost; 0: never */
    unsigned stop_after;      /* runs; 0: never */
    unsigned gets_until_full; /* 0: never */
    atomic_bool stop;
    const char *refuses; /* a variant for which there is no memory; NULL: none */
    unsigned refused;
    unsigned strange; /* runs whose matrices are not where they must be */
} gpu;

static const struct gm_device_facts *describe(void *context, unsigned index)
{
    (void)context;
    return index == 0 ? &gpu.facts : NULL;
}

static enum gm_status buffer_get(void *context, uint64_t bytes, struct gm_buffer *ret,
                                 struct gm_error *err)
{
    (void)context;
    *ret = (struct gm_buffer){.data = malloc(bytes), .bytes = bytes, .capacity = bytes};
    return ret->data ? GM_OK : gm_fail(err, GM_MEMORY_FULL, "no memory");
}

static void buffer_put(void *context, struct gm_buffer *buffer)
{
    (void)context;
    free(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}

/* Addresses alone: 400 MB of nothing are enough. */
static enum gm_status device_get(void *context, unsigned device, uint64_t bytes, void **ret,
                                 struct gm_error *err)
{
    (void)context;
    (void)device;
    if (gpu.gets_until_full > 0 && --gpu.gets_until_full == 0)
        return gm_fail(err, GM_DEVICE_MEMORY, "full");
    CHECK(gpu.device_bytes == 0); /* given back before the next */
    gpu.device_bytes = bytes;
    gpu.device_most = bytes > gpu.device_most ? bytes : gpu.device_most;
    *ret = (void *)(uintptr_t)0x100000000;
    return GM_OK;
}

static void device_put(void *context, unsigned device, void *data)
{
    (void)context;
    (void)device;
    CHECK(data == (void *)(uintptr_t)0x100000000);
    gpu.device_bytes = 0;
}

static enum gm_status device_copy(void *context, unsigned device, void *to, const void *from,
                                  uint64_t bytes, bool to_device, struct gm_error *err)
{
    (void)context;
    (void)device;
    (void)err;
    CHECK(to_device && from);
    CHECK((uintptr_t)to - 0x100000000 + bytes <= gpu.device_bytes);
    return GM_OK;
}

static bool is_inside(const struct gm_matrix *matrix)
{
    uintptr_t at = (uintptr_t)matrix->data - 0x100000000;

    return at % 256 == 0 && at + gm_matrix_bytes(matrix) <= gpu.device_bytes;
}

static enum gm_status run(void *context, unsigned device, unsigned stream, struct gm_task *task[],
                          unsigned n)
{
    struct gm_device_facts facts = gpu.facts;
    const struct gm_op *op = &task[0]->op;

    (void)context;
    CHECK(device == 0 && stream == 0 && n >= 1 && n <= gpu.facts.batch_max);
    for (unsigned i = 0; i < n; i++) {
        const struct gm_op *each = &task[i]->op;
        CHECK(task[i]->repeat == 1 && task[i]->head_start && task[i]->variant == task[0]->variant);
        gpu.strange += task[i]->on_device != (GM_RESULT_ON_DEVICE | ((1u << op->operands) - 1));
        gpu.strange += !is_inside(&each->result) || !is_inside(&each->operand[0]) ||
                       (each->operands > 1 && !is_inside(&each->operand[1]));
        task[i]->status = GM_OK;
    }
    gpu.runs++;
    if (gpu.stop_after > 0 && gpu.runs >= gpu.stop_after)
        atomic_store(&gpu.stop, true);
    if (gpu.runs_max > 0 && gpu.runs >= gpu.runs_max)
        return task[0]->status = GM_DEVICE_LOST;
    if (gpu.refuses && strcmp(task[0]->variant->name, gpu.refuses) == 0) {
        gpu.refused++;
        task[0]->status = GM_DEVICE_MEMORY;
        return GM_OK;
    }
    facts.profile = gpu.hidden;
    double us = gm_estimate(op, op->kind, task[0]->variant->name, &facts).us;
    /* A run in ten is disturbed. */
    double noise = 1 + 0.03 * ((double)(check_random(&gpu.random) % 2001) / 1000 - 1);
    task[0]->times = (struct gm_times){
        .h2d = -1, .prepare = n * us / 4, .kernel = n * us * (noise - 0.25), .d2h = -1};
    if (check_random(&gpu.random) % 10 == 0)
        task[0]->times.kernel *= 3;
    return task[0]->status = GM_OK;
}

static const struct gm_backend backend = {.name = "known",
                                          .describe = describe,
                                          .buffer_get = buffer_get,
                                          .buffer_put = buffer_put,
                                          .device_get = device_get,
                                          .device_put = device_put,
                                          .device_copy = device_copy,
                                          .run = run};

static void begin(void)
{
    struct gm_error err = {.detail = ""};

    free(gpu.hidden);
    memset(&gpu, 0, sizeof gpu);
    gpu.facts =
        (struct gm_device_facts){.kind = GM_DEVICE_CUDA,
                                 .name = "NVIDIA A100",
                                 .detail = "compute capability 8.0, driver 580.1 for CUDA 13.0",
                                 .memory_bytes = (uint64_t)40 << 30,
                                 .cache_bytes = 40 << 20,
                                 .batch_max = 48,
                                 .gpu = gm_gpu_find("A100"),
                                 .has_kernel_times = true};
    gpu.random = 1;
    CHECK_STATUS(gm_profile_read(hidden_text, &gpu.hidden, &err), GM_OK, &err);
}

static enum gm_status tune(const char *path, unsigned shapes, unsigned seconds,
                           struct gm_error *err)
{
    const struct gm_tune_options options = {
        .path = path, .shapes = shapes, .seconds = seconds, .stop = &gpu.stop};

    struct gm_fit_losses losses;

    return gm_tune(&backend, NULL, 0, &options, &losses, err);
}

static struct gm_profile *read_back(const char *path)
{
    struct gm_profile *profile = NULL;
    struct gm_error err = {.detail = ""};
    static char text[65536];
    FILE *file = fopen(path, "re");

    if (!CHECK(file != NULL))
        return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    CHECK_STATUS(gm_profile_read(text, &profile, &err), GM_OK, &err);
    CHECK(strstr(text, "\"NVIDIA A100\", \"580.1\"") != NULL);
    return profile;
}

/* How often what the profile chooses is near the best by the hidden one, and the worst. */
static double near_of(const struct gm_profile *profile, double *ret_worst)
{
    uint64_t random = 99;
    unsigned near = 0;

    *ret_worst = 1;
    for (unsigned i = 0; i < JUDGED; i++) {
        struct gm_op op = gm_draw_op(&random, 1);
        struct gm_candidate candidates[GM_CANDIDATES_MAX];
        struct gm_device_facts facts = gpu.facts;
        gm_set_tiles(&op, &facts);
        facts.profile = gpu.hidden;
        unsigned n = gm_candidates(&op, &facts, candidates);
        double least = INFINITY, chosen = 0;
        facts.profile = profile;
        for (unsigned j = 0; j < n && candidates[j].estimate.us > 0; j++) {
            double us = gm_estimate(&op, candidates[j].variant->op, candidates[j].name, &facts).us;
            chosen = us < least ? candidates[j].estimate.us : chosen;
            least = fmin(us, least);
        }
        near += chosen <= 1.05 * candidates[0].estimate.us;
        *ret_worst = fmax(*ret_worst, chosen / candidates[0].estimate.us);
    }
    return (double)near / JUDGED;
}

static void test_choice(const char *path)
{
    const enum gm_rates_row row = GM_RATES_transpose_unaligned;
    const struct gm_rates *first = &gm_profile_at(0)->rates[row];
    struct gm_profile untimed = *gm_profile_at(0);
    struct gm_error err = {.detail = ""};
    double worst, built_in_worst;

    begin();
    untimed.rates[row] = (struct gm_rates){0}; /* it has no estimate, and gets its numbers here */
    gpu.facts.profile = &untimed;
    CHECK_STATUS(tune(path, SHAPES, 600, &err), GM_OK, &err);
    struct gm_profile *profile = read_back(path);
    gpu.facts.profile = NULL;
    if (!profile)
        return;
    CHECK(memcmp(&profile->rates[row], first, sizeof(*first)) != 0);
    double built_in = near_of(gm_profile_at(0), &built_in_worst), near = near_of(profile, &worst);
    printf("within 5 %%: %.3f (worst %.2f), by the built-in profile %.3f (%.2f)\n", near, worst,
           built_in, built_in_worst);
    CHECK(near >= 0.9 && worst < built_in_worst && built_in < near - 0.2);
    CHECK(gpu.strange == 0 && gpu.device_bytes == 0);
    CHECK(gpu.device_most <= gpu.facts.memory_bytes / 4);
    free(profile);
}

/* A CPU of another balance: its own matmul is slow, and memory is not. */
static const char hidden_host_text[] =
    "GM_MEASURED_ON(\"CPU\", \"1\", \"2026-01-01\", \"x\")\n"
    "GM_QUEUED(5000)\n"
    "GM_RATES(host_blocked, 0.15, 0.5, 0.05, 0.5, 20, 900, 900)\n"
    "GM_RATES(host_skinny_along, 0.4, 0.3, 0.1, 0.9, 20, 200, 1000)\n"
    "GM_RATES(host_transpose_naive, 1, 1, 0.1, 0.9, 0.5, 50, 1000)\n"
    "GM_RATES(host_transpose_blocked, 0.2, 0.1, 0.1, 0.5, 40, 300, 1000)\n";

/* Draws operations, each timed by the hidden profile. Returns how many times there are. */
static size_t draw_host(const struct gm_device_facts *facts, const struct gm_profile *profile,
                        uint64_t seed, struct gm_op *ops, struct gm_timed *timed)
{
    struct gm_candidate candidates[GM_CANDIDATES_MAX];
    size_t count = 0;

    for (unsigned i = 0; i < JUDGED; i++) {
        ops[i] = gm_draw_op(&seed, 0.01);
        unsigned n = gm_candidates(&ops[i], facts, candidates);
        for (unsigned j = 0; j < n; j++, count++) {
            timed[count] = (struct gm_timed){&ops[i], candidates[j].name, facts, 0};
            timed[count].us = gm_timed_estimate(&timed[count], profile);
        }
    }
    return count;
}

/* A fit to times on a CPU finds numbers that choose as the hidden ones do. */
static void test_host(void)
{
    static struct gm_op ops[2][JUDGED];
    static struct gm_timed timed[2][JUDGED * 8];
    const struct gm_device_facts facts = {
        .kind = GM_DEVICE_CPU, .compute_units = 4, .vector_bytes = 32};
    const struct gm_measured_on on = {"CPU", "AVX2", "2026-01-01", "x"};
    struct gm_profile *hidden = NULL, *profile = NULL;
    struct gm_error err = {.detail = ""};

    if (!CHECK_STATUS(gm_profile_read(hidden_host_text, &hidden, &err), GM_OK, &err))
        return;
    size_t count = draw_host(&facts, hidden, 1, ops[0], timed[0]);
    size_t others = draw_host(&facts, hidden, 2, ops[1], timed[1]);
    if (CHECK_STATUS(gm_profile_fit(timed[0], count, 0, 20, &on, &profile, &err), GM_OK, &err)) {
        struct gm_fit_losses fitted = gm_profile_losses(timed[1], others, profile);
        struct gm_fit_losses before = gm_profile_losses(timed[1], others, gm_profile_at(1));
        printf("on a CPU within 3 %%: %u of %u (worst %.2f), by the built-in profile %u\n",
               fitted.near, fitted.shapes, fitted.worst, before.near);
        CHECK(fitted.shapes == JUDGED && fitted.near > 0.9 * JUDGED);
        CHECK(before.near < fitted.near - 0.1 * JUDGED);
    }
    free(profile);
    free(hidden);
}

/* The best may be what has no estimate, and so is never chosen. */
static void test_losses(void)
{
    const struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA, .gpu = gm_gpu_find("H200")};
    struct gm_op op = {.kind = GM_OP_TRANSPOSE, .operands = 1};

    op.operand[0] = op.result =
        (struct gm_matrix){.dtype = GM_F32, .batch = 1, .rows = 512, .cols = 512};
    const struct gm_timed timed[] = {{&op, "padded", &facts, 2}, {&op, "nobody", &facts, 1}};
    struct gm_fit_losses losses = gm_profile_losses(timed, 2, gm_profile_at(0));
    CHECK(losses.shapes == 1 && losses.near == 0 && losses.far == 1 && losses.worst == 2);
}

/* What was measured until then is a profile too; too little is not, and leaves the file alone. */
static void test_stops(const char *path)
{
    struct gm_error err = {.detail = ""};

    begin();
    gpu.stop_after = 4000;
    CHECK_STATUS(tune(path, 100000, 600, &err), GM_OK, &err);
    CHECK(gpu.runs < 4100);
    free(read_back(path));

    begin();
    gpu.stop_after = 10;
    unlink(path);
    CHECK(tune(path, SHAPES, 600, &err) == GM_BAD_PARAMETER);
    CHECK(strstr(err.detail, "operations were measured") && access(path, F_OK) != 0);

    begin();
    CHECK(tune(path, SHAPES, 0, &err) == GM_BAD_PARAMETER);
    CHECK(gpu.runs == 0);
}

static void test_failures(const char *path)
{
    struct gm_error err = {.detail = ""};

    begin();
    gpu.runs_max = 4000;
    CHECK(tune(path, SHAPES, 600, &err) == GM_DEVICE_LOST);
    CHECK(gpu.runs == 4000 && gpu.device_bytes == 0);
    free(read_back(path)); /* what it had */

    begin();
    gpu.gets_until_full = 3; /* one operation does not fit */
    CHECK_STATUS(tune(path, 30, 600, &err), GM_OK, &err);

    begin();
    gpu.facts.memory_bytes = (uint64_t)64 << 20; /* most operations do not fit, some once */
    gpu.refuses = "tiled";
    CHECK_STATUS(tune(path, SHAPES, 600, &err), GM_OK, &err);
    CHECK(gpu.device_most <= gpu.facts.memory_bytes / 4 && gpu.device_most > 0);
    CHECK(gpu.refused > 0);

    begin();
    CHECK(tune("/nowhere/profile", 30, 600, &err) == GM_BAD_PARAMETER);
    CHECK(gpu.runs == 0); /* it is said before anything is measured */
    CHECK(strstr(err.detail, "/nowhere/profile.part cannot be written") != NULL);
}

/* Whichever allocation fails, nothing is written, leaked or left held. */
static void test_memory(const char *path)
{
    struct gm_error err = {.detail = ""};
    unsigned long n = 1;
    enum gm_status status = GM_MEMORY_FULL;

    for (; status == GM_MEMORY_FULL && n < 200; n++) {
        begin();
        unlink(path);
        alloc_count = 0;
        alloc_fails_at = n;
        status = tune(path, 20, 600, &err);
        alloc_fails_at = 0;
        CHECK(gpu.device_bytes == 0 && (access(path, F_OK) == 0) == (status == GM_OK));
    }
    CHECK_STATUS(status, GM_OK, &err);
    CHECK(n > 12); /* those of the fit were among them */
}

int main(void)
{
    char folder[] = "/tmp/test_tune.XXXXXX", path[64];

    if (!CHECK(mkdtemp(folder) != NULL))
        return check_report();
    snprintf(path, sizeof path, "%s/profile", folder);
    test_choice(path);
    test_host();
    test_losses();
    test_stops(path);
    test_failures(path);
    test_memory(path);
    unlink(path);
    CHECK(rmdir(folder) == 0);
    free(gpu.hidden);
    return check_report();
}
