/*
 * test_sim_language.c - CUDA's language as kernels speak it, in language/: each result against
 * plain C, on one host thread and on several; and how wide accesses of vector types are.
 * test_sim_arithmetic.c has its functions of numbers.
 */
#include "run_kernel.h"

#define COUNT 2048
#define UNTOUCHED (-1) /* what the device's memory holds */

static int32_t in[COUNT], out[COUNT];

/* ---- Warps -------------------------------------------------------------------------------- */

/* The lanes of thread i's warp, of a block of so many threads. */
#define LANES(i, threads) for (int j = (i) / 32 * 32; j < (i) / 32 * 32 + 32 && j < (threads); j++)

static int32_t from(int i, int width, int lane)
{
    return in[i / width * width + (lane & (width - 1))];
}

static int32_t up(int i, int width, int delta)
{
    return i % width < delta ? in[i] : in[i - delta];
}

static int32_t down(int i, int width, int delta)
{
    return i % width + delta >= width ? in[i] : in[i + delta];
}

/* Groups below one's own may be read, those above not. */
static int32_t across(int i, int width, int mask)
{
    int other = i % 32 ^ mask;

    return other >= i % 32 / width * width + width ? in[i] : in[i / 32 * 32 + other];
}

static uint32_t ballot_of(int i, int threads, int odd)
{
    uint32_t bits = 0;

    LANES(i, threads)
    bits |= (uint32_t)(in[j] % 2 == odd) << j % 32;
    return bits;
}

static int32_t any_50(int i)
{
    int any = 0;

    LANES(i, 256)
    any |= in[j] % 50 == 0;
    return any;
}

static int32_t match(int i)
{
    uint32_t bits = 0;

    LANES(i, 256)
    bits |= (uint32_t)(in[j] % 3 == in[i] % 3) << j % 32;
    return (int32_t)bits;
}

enum reduction { ADD, MIN, MAX, UMIN, UMAX, AND, OR, XOR };
static int32_t reduced(int i, enum reduction how)
{
    int32_t sum = 0, least = INT32_MAX, most = INT32_MIN;
    uint32_t uleast = UINT32_MAX, umost = 0, all = UINT32_MAX, some = 0, odd = 0;

    LANES(i, 256)
    {
        uint32_t u = (uint32_t)in[j] - 500;
        sum += in[j];
        least = in[j] - 500 < least ? in[j] - 500 : least;
        most = in[j] - 500 > most ? in[j] - 500 : most;
        uleast = u < uleast ? u : uleast;
        umost = u > umost ? u : umost;
        all &= (uint32_t)in[j] | 0x11;
        some |= (uint32_t)in[j] & 0x44;
        odd ^= (uint32_t)in[j];
    }
    const int32_t result[] = {
        sum,          least,         most,        (int32_t)uleast, (int32_t)umost,
        (int32_t)all, (int32_t)some, (int32_t)odd};
    return result[how];
}

static int32_t odd_ones(int threads)
{
    int32_t count = 0;

    for (int i = 0; i < threads; i++)
        count += in[i] % 2;
    return count;
}

/* The same steps, in the same order, on all lanes at once. */
static int32_t nested_of(int i)
{
    int32_t x[32], y[32];
    int first = i / 32 * 32;

    for (int lane = 0; lane < 32; lane++)
        x[lane] = in[first + lane];
    for (int lane = 0; lane < 16; lane++)
        y[lane] = lane % 2 == 0 ? x[lane] + x[lane ^ 2] : x[lane] - x[lane ^ 4];
    for (int lane = 0; lane < 16; lane++)
        x[lane] = y[lane] + y[lane == 15 ? 15 : lane + 1];
    int32_t sum = 0;
    for (int lane = 16; lane < 24; lane++)
        sum += in[first + lane];
    for (int lane = 16; lane < 24; lane++)
        x[lane] = sum;
    return x[i % 32] + x[i % 32 ^ 16];
}

static int32_t scanned(int i)
{
    int32_t sum = 0;

    for (int j = i / 32 * 32; j <= i; j++)
        sum += in[j];
    return sum;
}

static int32_t place_of(int i)
{
    int thread = i % 60, block = i / 60;

    return thread % 4 + 10 * (thread / 4 % 3) + 100 * (thread / 12) + 1000 * (block % 3) +
           10000 * (block / 3 % 2) + 100000 * (block / 6) + 1000000 * 2;
}

static int32_t copied_of(int i)
{
    int t = i % 64;

    if (i < 64)
        return in[i];
    if (i < 128)
        return t < 32 ? in[2 * t] : in[t + 32];
    return 0;
}

/* ---- The list ---------------------------------------------------------------------------------
 * kernel, how many results it has, what result i is: x is in[i]. */
#define LANGUAGE(X)                                                                                \
    X(shuffle, 256, from(i, 32, i * 7 + 3))                                                        \
    X(shuffle_8, 256, from(i, 8, i * 5 + 1))                                                       \
    X(shuffle_up, 256, up(i, 32, 3))                                                               \
    X(shuffle_up_8, 256, up(i, 8, 3))                                                              \
    X(shuffle_down, 256, down(i, 32, 5))                                                           \
    X(shuffle_down_16, 256, down(i, 16, 5))                                                        \
    X(shuffle_xor, 256, across(i, 32, 9))                                                          \
    X(shuffle_xor_8, 256, across(i, 8, 9))                                                         \
    X(shuffle_1, 256, x)                                                                           \
    X(shuffle_wide, 256, in[i ^ 1])                                                                \
    X(shuffle_double, 256, down(i, 32, 1))                                                         \
    X(shuffle_short, 256, (int16_t)in[i ^ 31])                                                     \
    X(ballot, 256, (int32_t)ballot_of(i, 256, 1))                                                  \
    X(any, 256, any_50(i))                                                                         \
    X(all, 256, !any_50(i))                                                                        \
    X(match_any, 256, match(i))                                                                    \
    X(match_all, 256, i / 64 == 1 ? 0x40000000 : 0)                                                \
    X(ballot_partial, 72, (int32_t)ballot_of(i, 72, 1))                                            \
    X(shuffle_partial, 72, in[i ^ 7])                                                              \
    X(active, 72, i < 64 ? -1 : 0xFF)                                                              \
    X(reduce_add, 256, reduced(i, ADD))                                                            \
    X(reduce_min, 256, reduced(i, MIN))                                                            \
    X(reduce_max, 256, reduced(i, MAX))                                                            \
    X(reduce_min_unsigned, 256, reduced(i, UMIN))                                                  \
    X(reduce_max_unsigned, 256, reduced(i, UMAX))                                                  \
    X(reduce_and, 256, reduced(i, AND))                                                            \
    X(reduce_or, 256, reduced(i, OR))                                                              \
    X(reduce_xor, 256, reduced(i, XOR))                                                            \
    X(count, 200, odd_ones(200))                                                                   \
    X(block_and, 200, 1)                                                                           \
    X(block_or, 200, 1)                                                                            \
    X(block_or_none, 200, 0)                                                                       \
    X(nested, 256, nested_of(i))                                                                   \
    X(scan, 256, scanned(i))                                                                       \
    X(places, 720, place_of(i))                                                                    \
    X(warps, 60, i / 32 * 32)                                                                      \
    X(reversed, 1024, 3 * in[i / 64 * 64 + 63 - i % 64] + (int16_t)in[i / 64 * 64 + 63 - i % 64])  \
    X(copied, 192, copied_of(i))                                                                   \
    X(left_early, 256, i / 32 % 2 ? UNTOUCHED : x + in[i ^ 1])                                     \
    X(grid_stride, COUNT, 3 * x)

#define X(name, results, value) gm_kernel_fn gm_sim_##name;
LANGUAGE(X)
#undef X
gm_kernel_fn gm_sim_atomics;

#define X(name, results, value)                                                                    \
    static int32_t expect_##name(int i)                                                            \
    {                                                                                              \
        int32_t x = in[i];                                                                         \
        (void)x;                                                                                   \
        return i < results ? (value) : UNTOUCHED;                                                  \
    }
LANGUAGE(X)
#undef X

static void test_results(void *sim)
{
    static const struct {
        const char *name;
        gm_kernel_fn *run;
        int32_t (*expected)(int i);
    } kernels[] = {
#define X(name, results, value) {#name, gm_sim_##name, expect_##name},
        LANGUAGE(X)
#undef X
    };
    for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
        struct sim_ran ran = sim_run(sim, kernels[k].run, COUNT, in, out);
        int wrong = 0, first = -1;
        for (int i = 0; i < COUNT; i++) {
            if (out[i] != kernels[k].expected(i) && wrong++ == 0)
                first = i;
        }
        bool right = CHECK_STATUS(ran.status, GM_OK, &ran.error);
        if (!right | !CHECK_EQ(wrong, 0))
            fprintf(stderr, "  %s: result %d is %d, not %d\n", kernels[k].name, first,
                    first < 0 ? 0 : out[first], first < 0 ? 0 : kernels[k].expected(first));
    }
}

/* 1024 updates of each kind, by 8 blocks. */
static void test_atomics(void *sim)
{
    struct sim_ran ran = sim_run(sim, gm_sim_atomics, COUNT, in, out);
    int32_t sum = 0, least = 0, most = 0, some = 0, odd = 0;
    uint32_t umost = 0;
    float sum_float;
    double halves;
    uint64_t wide;

    CHECK_STATUS(ran.status, GM_OK, &ran.error);
    for (int i = 0; i < 1024; i++) {
        sum += in[i];
        least = in[i] - 2000 < least ? in[i] - 2000 : least;
        most = in[i] > most ? in[i] : most;
        umost = (uint32_t)in[i] - 500 > umost ? (uint32_t)in[i] - 500 : umost;
        some |= in[i];
        odd ^= in[i];
    }
    CHECK_EQ(out[0], sum);
    CHECK_EQ(out[1], least);
    CHECK_EQ(out[2], most);
    CHECK_EQ((uint32_t)out[3], umost);
    CHECK_EQ(out[4], some);
    CHECK_EQ(out[5], odd);
    CHECK_EQ(out[6], 1024 % 10);
    CHECK_EQ(out[7], 10 - 1024 % 10);
    CHECK_EQ(out[8], -sum);
    CHECK_EQ(out[10], sum);
    memcpy(&sum_float, &out[11], sizeof(sum_float));
    CHECK(sum_float == (float)sum); /* below 2^24: every order of it is exact */
    memcpy(&halves, &out[12], sizeof(halves));
    CHECK(halves == sum * 0.5);
    memcpy(&wide, &out[14], sizeof(wide));
    CHECK(wide == (uint64_t)sum << 24);
    CHECK_EQ(out[16] + out[17], sum);
    CHECK_EQ(out[18], 0);
    CHECK_EQ(out[19], 1024);
    for (int i = 0; i < 1024; i++)
        CHECK_EQ(out[32 + i], 1);
    /* Each of 8 x 4 warps, each kind once, but for the loop that tries again. */
    CHECK(ran.totals.kind[GM_GLOBAL_ATOMIC].requests >= 32 * 18);
}

/* ---- Widths ------------------------------------------------------------------------------- */

/* Of one warp: how many requests load (and as many store), each lane's bytes in one of them, and
 * the sectors of all. */
#define WIDTHS(X)                                                                                  \
    X(move_char, 1, 1, 1)                                                                          \
    X(move_short, 1, 2, 2)                                                                         \
    X(move_int, 1, 4, 4)                                                                           \
    X(move_double, 1, 8, 8)                                                                        \
    X(move_char4, 1, 4, 4)                                                                         \
    X(move_short2, 1, 4, 4)                                                                        \
    X(move_short4, 1, 8, 8)                                                                        \
    X(move_int2, 1, 8, 8)                                                                          \
    X(move_int4, 1, 16, 16)                                                                        \
    X(move_float2, 1, 8, 8)                                                                        \
    X(move_float3, 3, 4, 36)                                                                       \
    X(move_float4, 1, 16, 16)                                                                      \
    X(move_double2, 1, 16, 16)                                                                     \
    X(move_uint4, 1, 16, 16)                                                                       \
    X(move_longlong2, 1, 16, 16)                                                                   \
    X(move_uchar3, 3, 1, 9)                                                                        \
    X(move_f16, 1, 2, 2)                                                                           \
    X(computed, 1, 16, 16)                                                                         \
    X(hinted, 1, 16, 16)                                                                           \
    X(async_moved, 1, 16, 16)

#define X(name, requests, bytes, sectors) gm_kernel_fn gm_sim_##name;
WIDTHS(X)
#undef X
gm_kernel_fn gm_sim_members;

static void check_width(void *sim, const char *name, gm_kernel_fn *run, double requests,
                        unsigned bytes, double sectors)
{
    struct gm_access_report report = {0};
    struct sim_ran ran = sim_explain(sim, run, COUNT, in, &report);
    const struct gm_access_sums *kind = report.totals.kind;
    bool right = CHECK_STATUS(ran.status, GM_OK, &ran.error);

    for (int i = GM_GLOBAL_LOAD; i <= GM_GLOBAL_STORE; i++) {
        right &= CHECK(kind[i].requests == requests && kind[i].lanes == 32 * requests);
        right &= CHECK(kind[i].units == sectors && kind[i].bytes_moved == 32 * sectors);
        right &= CHECK(kind[i].bytes_useful == 32.0 * bytes * requests);
    }
    for (size_t i = 0; i < report.sites; i++)
        right &= CHECK_EQ(report.site[i].example.bytes, bytes);
    if (!right)
        fprintf(stderr, "  %s: %g loads of %g sectors, %g stores of %g\n", name,
                kind[GM_GLOBAL_LOAD].requests, kind[GM_GLOBAL_LOAD].units,
                kind[GM_GLOBAL_STORE].requests, kind[GM_GLOBAL_STORE].units);
    gm_access_report_clear(&report);
}

static void test_widths(void *sim)
{
    struct gm_access_report report = {0};

#define X(name, requests, bytes, sectors)                                                          \
    check_width(sim, #name, gm_sim_##name, requests, bytes, sectors);
    WIDTHS(X)
#undef X
    /* y and w of 32 float4: two loads, each of 4 bytes in 16 sectors. */
    struct sim_ran ran = sim_explain(sim, gm_sim_members, COUNT, in, &report);
    CHECK_STATUS(ran.status, GM_OK, &ran.error);
    CHECK(report.totals.kind[GM_GLOBAL_LOAD].requests == 2);
    CHECK(report.totals.kind[GM_GLOBAL_LOAD].units == 32);
    CHECK(report.totals.kind[GM_GLOBAL_STORE].units == 4);
    gm_access_report_clear(&report);
}

int main(void)
{
    for (int i = 0; i < COUNT; i++)
        in[i] = (i * 7919 + 13) % 1000;
    for (unsigned threads = 1; threads <= 3; threads++) {
        void *sim = sim_open(threads);
        test_results(sim);
        for (int round = 0; round < 10; round++)
            test_atomics(sim);
        test_widths(sim);
        sim_close(sim);
    }
    return check_report();
}
