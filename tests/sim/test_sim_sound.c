/*
 * test_sim_sound.c - kernels that look suspicious and are right (broken/sound.cu, sound_warp.cu):
 * nothing may be reported of them, and what they compute is what the same sums in plain C give.
 */
#include "run_kernel.h"

#define COUNT 2016 /* whole warps */

#define UNTOUCHED (-1) /* what the device's memory holds */

typedef int32_t expected_fn(const int32_t *in, int i);

static int32_t warp_sum(const int32_t *in, int i)
{
    int32_t sum = 0;

    for (int j = i / 32 * 32; j < i / 32 * 32 + 32; j++)
        sum += in[j];
    return i < 256 ? sum : UNTOUCHED;
}

static int32_t double_buffer(const int32_t *in, int i)
{
    int32_t sum = 0;

    for (int j = 0; j < 512; j++)
        sum += in[j];
    return i < 64 ? sum : UNTOUCHED;
}

static int32_t bytes(const int32_t *in, int i)
{
    return i < 256 ? (uint8_t)(in[i] + 1) + (uint8_t)(in[255 - i] + 1) : UNTOUCHED;
}

static int32_t bytes_to_words(const int32_t *in, int i)
{
    uint32_t word = 0, own = (uint32_t)i / 4;

    for (int j = 0; j < 4 && i < 256; j++)
        word |= (uint32_t)(uint8_t)in[i / 4 * 4 + j] << 8 * j;
    return i < 256 ? (int32_t)(word + (own >> 8 * (i % 4) & 0xFF)) : UNTOUCHED;
}

static int32_t early_return(const int32_t *in, int i)
{
    return in[i] + 1;
}

static int32_t half_warp(const int32_t *in, int i)
{
    return i >= 64 ? UNTOUCHED : i % 32 < 16 ? in[i] + in[i ^ 1] : 0;
}

static int32_t histogram(const int32_t *in, int i)
{
    int32_t count = UNTOUCHED;

    for (int j = 0; j < 1024 && i < 32; j++)
        count += (in[j] & 31) == i;
    return count;
}

static int32_t tree(const int32_t *in, int i)
{
    int32_t sum = 0;

    for (int j = 0; j < 256; j++)
        sum += in[j];
    return i < 256 ? sum : UNTOUCHED;
}

static int32_t reuse(const int32_t *in, int i)
{
    return i < 512 ? in[i / 64 * 64 + 63 - i % 64] : UNTOUCHED;
}

static int32_t passes(const int32_t *in, int i)
{
    return i < 500 ? in[i] : i < 1000 ? in[999 - i] + 1 : UNTOUCHED;
}

static int32_t own(const int32_t *in, int i)
{
    static const int32_t table[8] = {1, 2, 3, 5, 8, 13, 21, 34}, weight[4] = {1, -1, 2, 5};
    int32_t sum = 0;

    for (int j = 0; j < 16; j++)
        sum += in[(i + j) % 64] * table[j % 8] * weight[j % 4];
    return i < 64 ? sum : UNTOUCHED;
}

static int32_t flag(const int32_t *in, int i)
{
    int32_t any = 0;

    for (int j = 0; j < 128; j++)
        any |= in[j] > 0;
    return i < 128 ? any : UNTOUCHED;
}

static int32_t agreed(const int32_t *in, int i)
{
    return i < 64 ? in[i] + 1 : UNTOUCHED;
}

static int32_t half_synced(const int32_t *in, int i)
{
    int from = 31 - i;

    return i < 32 ? in[from / 16 * 16 + (from + 1) % 16] : UNTOUCHED;
}

static int32_t aggregated(const int32_t *in, int i)
{
    int32_t odd = 0;

    for (int j = 0; j < 256; j++)
        odd += in[j] % 2;
    return i == 0 ? odd : i <= odd ? 1 : i < 1000 ? 0 : UNTOUCHED;
}

static int32_t dependent(const int32_t *in, int i)
{
    return i < COUNT / 2 ? in[i] + 1 : in[i] + in[i - COUNT / 2] + 1;
}

#define SOUND(X)                                                                                   \
    X(warp_sum)                                                                                    \
    X(double_buffer)                                                                               \
    X(bytes)                                                                                       \
    X(bytes_to_words)                                                                              \
    X(early_return)                                                                                \
    X(half_warp)                                                                                   \
    X(histogram)                                                                                   \
    X(tree)                                                                                        \
    X(reuse)                                                                                       \
    X(passes)                                                                                      \
    X(own)                                                                                         \
    X(flag)                                                                                        \
    X(agreed)                                                                                      \
    X(half_synced)                                                                                 \
    X(aggregated)                                                                                  \
    X(dependent)

#define X(name) gm_kernel_fn gm_sim_sound_##name;
SOUND(X)
#undef X

gm_kernel_fn gm_sim_sound_many_writes;

/* Too much to be run whole: in a sample things are left out, and must not be missed. */
static void test_sample(const int32_t *in)
{
    struct gm_access_report report = {0};
    void *sim = sim_open(2);
    struct sim_ran ran = sim_explain(sim, gm_sim_sound_many_writes, COUNT, in, &report);

    CHECK_STATUS(ran.status, GM_OK, &ran.error);
    CHECK(report.sampled && report.launches == 1);
    if (report.launches == 1)
        CHECK(report.launch[0].steps_sampled && report.launch[0].traced < report.launch[0].blocks);
    /* 40000 blocks of 2 warps, each of which writes 300 times. */
    double writes = report.totals.kind[GM_SHARED_STORE].requests / (40000.0 * 2 * 300);
    CHECK(writes > 1 - 1e-9 && writes < 1 + 1e-9);
    gm_access_report_clear(&report);
    sim_close(sim);
}

int main(void)
{
    static const struct {
        const char *name;
        gm_kernel_fn *run;
        expected_fn *expected;
    } sound[] = {
#define X(name) {#name, gm_sim_sound_##name, name},
        SOUND(X)
#undef X
    };
    static int32_t in[COUNT], out[COUNT];

    for (int i = 0; i < COUNT; i++)
        in[i] = (i * 7919 + 13) % 1000;
    for (unsigned threads = 1; threads <= 3; threads++) {
        void *sim = sim_open(threads);
        for (size_t k = 0; k < sizeof(sound) / sizeof(sound[0]); k++) {
            struct gm_access_report report = {0};
            struct sim_ran ran = sim_run(sim, sound[k].run, COUNT, in, out);
            int wrong = 0;
            for (int i = 0; i < COUNT; i++)
                wrong += out[i] != sound[k].expected(in, i);
            bool right = CHECK_STATUS(ran.status, GM_OK, &ran.error);
            right &= CHECK_EQ(wrong, 0);
            ran = sim_explain(sim, sound[k].run, COUNT, in, &report);
            right &= CHECK_STATUS(ran.status, GM_OK, &ran.error);
            if (!right)
                fprintf(stderr, "  %s\n", sound[k].name);
            gm_access_report_clear(&report);
        }
        sim_close(sim);
    }
    test_sample(in);
    return check_report();
}
