/*
 * test_evaluate.c - the instructions of programs, as each instruction set has them: one result.
 * What they come to is compared with NumPy in http/test_eval.py.
 */
#include "check.h"
#include "kernels/cpu/lib/inner_loops.h"

#include <math.h>

#define COUNT 67 /* no multiple of a vector */

static uint64_t seed;

/* Numbers of all sizes, whole ones, infinities and NaN among them. */
static double number(void)
{
    uint64_t random = check_random(&seed);
    double small = (double)(int64_t)(random >> 40) / 4096.0 - 2048;

    switch (random % 8) {
    case 0:
        return random & 256 ? INFINITY : -INFINITY;
    case 1:
        return random & 256 ? NAN : 0;
    case 2:
        return trunc(small);
    case 3:
        return ldexp(small, (int)(random >> 8 & 63) - 32);
    default:
        return small / 512;
    }
}

/* A block of numbers of a compute type. */
static void fill(enum gm_compute_type type, uint64_t block[COUNT])
{
    for (unsigned i = 0; i < COUNT; i++) {
        double real = number();
        if (type == GM_COMPUTE_F32)
            ((float *)block)[i] = (float)real;
        else if (type == GM_COMPUTE_F64)
            ((double *)block)[i] = real;
        else
            ((int64_t *)block)[i] = (int64_t)(check_random(&seed) >> (i % 64));
    }
}

/* Bits, but for those of NaN. */
static bool same(enum gm_compute_type type, const uint64_t *a, const uint64_t *b)
{
    for (unsigned i = 0; i < COUNT; i++) {
        if (type == GM_COMPUTE_F32) {
            float x = ((const float *)a)[i], y = ((const float *)b)[i];
            if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y)))
                return false;
        } else if (type == GM_COMPUTE_F64) {
            double x = ((const double *)a)[i], y = ((const double *)b)[i];
            if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y)))
                return false;
        } else if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

static bool is_nan(enum gm_dtype dtype, const char *element)
{
    uint16_t half;
    float f32;
    double f64;

    memcpy(&half, element, sizeof half);
    memcpy(&f32, element, dtype == GM_F32 ? sizeof f32 : 0);
    memcpy(&f64, element, dtype == GM_F64 ? sizeof f64 : 0);
    return dtype == GM_F16    ? (half & 0x7fff) > 0x7c00
           : dtype == GM_BF16 ? (half & 0x7fff) > 0x7f80
           : dtype == GM_F32  ? isnan(f32)
                              : dtype == GM_F64 && isnan(f64);
}

/* The same of what was stored as elements of a type; nothing may be written behind them. */
static bool same_elements(enum gm_dtype dtype, const uint64_t *a, const uint64_t *b)
{
    size_t size = gm_dtype_size(dtype);

    for (size_t i = 0; i < COUNT; i++) {
        const char *x = (const char *)a + i * size, *y = (const char *)b + i * size;
        if (memcmp(x, y, size) != 0 && !(is_nan(dtype, x) && is_nan(dtype, y)))
            return false;
    }
    return memcmp((const char *)a + COUNT * size, (const char *)b + COUNT * size,
                  COUNT * (sizeof *a - size)) == 0;
}

static void test_instructions(enum gm_isa isa)
{
    uint64_t x[COUNT], y[COUNT], z[COUNT], base[COUNT];

    for (unsigned type = 0; type < GM_COMPUTE_COUNT; type++) {
        for (unsigned kind = 0; kind < GM_DO_COUNT; kind++) {
            gm_instruct_fn *fn = gm_instruct_get(type, kind, isa);
            gm_instruct_fn *expected = gm_instruct_get(type, kind, GM_ISA_BASE);
            if (!CHECK(!fn == !expected) || !fn)
                continue;
            fill(type, x);
            fill(type, y);
            fill(type, z);
            memcpy(base, x, sizeof x);
            fn(x, y, z, COUNT);
            expected(base, y, z, COUNT);
            CHECK(same(type, x, base));
        }
    }
    for (unsigned narrow = GM_NARROW_F16; narrow <= GM_NARROW_I32; narrow++) {
        enum gm_compute_type type = narrow == GM_NARROW_I32 ? GM_COMPUTE_I64 : GM_COMPUTE_F32;
        fill(type, x);
        memcpy(base, x, sizeof x);
        gm_narrow_get(narrow, isa)(x, NULL, NULL, COUNT);
        gm_narrow_get(narrow, GM_ISA_BASE)(base, NULL, NULL, COUNT);
        CHECK(same(type, x, base));
    }
}

static void test_conversions(enum gm_isa isa)
{
    uint64_t x[COUNT], y[2 * COUNT], base[COUNT];
    unsigned tried = 0;

    for (unsigned type = 0; type < GM_COMPUTE_COUNT; type++) {
        for (unsigned dtype = 0; dtype < GM_DTYPE_COUNT; dtype++) {
            gm_convert_fn *load = gm_load_get(type, dtype, isa);
            gm_convert_fn *store = gm_store_get(type, dtype, isa);
            fill(dtype == GM_F64   ? GM_COMPUTE_F64
                 : dtype == GM_F32 ? GM_COMPUTE_F32
                                   : GM_COMPUTE_I64,
                 y);
            memcpy(y + COUNT, y, sizeof x);
            for (int64_t stride = -1; load && stride <= 2; stride++) {
                const char *from = (const char *)(y + (stride < 0 ? COUNT : 0));
                load(x, from, stride, COUNT);
                gm_load_get(type, dtype, GM_ISA_BASE)(base, from, stride, COUNT);
                tried += CHECK(same(type, x, base));
            }
            if (!store)
                continue;
            fill(type, y);
            memset(x, 0, sizeof x);
            memset(base, 0, sizeof base);
            store(x, y, 1, COUNT);
            gm_store_get(type, dtype, GM_ISA_BASE)(base, y, 1, COUNT);
            tried += CHECK(same_elements((enum gm_dtype)dtype, x, base));
        }
    }
    CHECK(tried > 40);
}

/* Sums of whole numbers are exact in any order; maxima are in any case. */
static void test_reductions(enum gm_isa isa)
{
    uint64_t x[COUNT];
    union gm_number sums[COUNT];

    for (unsigned type = 0; type < GM_COMPUTE_COUNT; type++) {
        double sum = 0, most = -1e9, least = 1e9;
        for (unsigned i = 0; i < COUNT; i++) {
            int value = (int)(check_random(&seed) % 1000) - 500;
            if (type == GM_COMPUTE_F32)
                ((float *)x)[i] = (float)value;
            else if (type == GM_COMPUTE_F64)
                ((double *)x)[i] = value;
            else
                ((int64_t *)x)[i] = value;
            sum += value;
            most = value > most ? value : most;
            least = value < least ? value : least;
        }
        const double expected[] = {[GM_REDUCE_SUM] = sum,
                                   [GM_REDUCE_MEAN] = sum,
                                   [GM_REDUCE_MAX] = most,
                                   [GM_REDUCE_MIN] = least};
        for (unsigned kind = GM_REDUCE_SUM; kind < GM_REDUCTION_COUNT; kind++) {
            union gm_number all = gm_reduce_get(type, kind, isa)(x, COUNT);
            CHECK((type == GM_COMPUTE_I64 ? (double)all.integer : all.real) == expected[kind]);
            for (unsigned i = 0; i < COUNT; i++)
                sums[i] = gm_reduce_get(type, kind, isa)((char *)x + i * (type ? 8 : 4), 1);
            gm_gather_get(type, kind, isa)(sums, x, COUNT);
            double first = type == GM_COMPUTE_F32   ? (double)((float *)x)[5]
                           : type == GM_COMPUTE_F64 ? ((double *)x)[5]
                                                    : (double)((int64_t *)x)[5];
            double twice = kind <= GM_REDUCE_MEAN ? 2 * first : first;
            CHECK((type == GM_COMPUTE_I64 ? (double)sums[5].integer : sums[5].real) == twice);
        }
    }
}

int main(void)
{
    seed = check_seed();
    for (enum gm_isa isa = GM_ISA_BASE; isa <= gm_isa_best(); isa++) {
        test_instructions(isa);
        test_conversions(isa);
        test_reductions(isa);
    }
    return check_report();
}
