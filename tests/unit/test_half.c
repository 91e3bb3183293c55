/*
 * Conversions of f16 and bf16 against a slow reference that shares nothing with them: values
 * by ldexp, rounding by rint on the value scaled to units of the last place.
 */
#include "proto/number/half.h"
#include "tests/unit/check.h"

#include <math.h>

struct format {
    const char *name;
    int precision, bias;
    uint16_t (*of_f32)(float);
    uint16_t (*of_f64)(double);
    float (*to_f32)(uint16_t);
};

static const struct format formats[] = {
    {"f16", 11, 15, gm_f16_of_f32, gm_f16_of_f64, gm_f32_of_f16},
    {"bf16", 8, 127, gm_bf16_of_f32, gm_bf16_of_f64, gm_f32_of_bf16},
};

static uint16_t infinity_bits(const struct format *f)
{
    return (uint16_t)((2 * f->bias + 1) << (f->precision - 1));
}

static bool is_nan_bits(const struct format *f, uint16_t bits)
{
    return (bits & 0x7FFF) > infinity_bits(f);
}

/* What the bits stand for, from the definition. */
static double reference_value(const struct format *f, uint16_t bits)
{
    int fraction_bits = f->precision - 1;
    int exponent = (bits & 0x7FFF) >> fraction_bits;
    int fraction = bits & ((1 << fraction_bits) - 1);
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 2 * f->bias + 1)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - f->bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - f->bias - fraction_bits);
}

/* The nearest value's bits. Scaling by powers of two is exact here, so rint rounds once. */
static uint16_t reference_round(const struct format *f, double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    if (isnan(value))
        return 0x7FFF;
    if (magnitude == 0)
        return sign;
    if (isinf(value))
        return sign | infinity_bits(f);
    int exponent; /* magnitude is in [2^(exponent-1), 2^exponent) */
    frexp(magnitude, &exponent);
    int unit = exponent - f->precision;
    int lowest = 1 - f->bias - (f->precision - 1);
    unit = unit < lowest ? lowest : unit;
    /* Far below half of the smallest unit: scaling up an f64 that small might still be 0. */
    double rounded = exponent < lowest - 2 ? 0 : rint(ldexp(magnitude, -unit));
    double result = ldexp(rounded, unit);
    if (result >= ldexp(1, f->bias + 1))
        return sign | infinity_bits(f);
    if (result == 0)
        return sign;
    frexp(result, &exponent);
    if (exponent - 1 < 1 - f->bias)
        return sign | (uint16_t)ldexp(result, -lowest);
    uint16_t fraction =
        (uint16_t)(ldexp(result, f->precision - exponent) - ldexp(1, f->precision - 1));
    return (uint16_t)(sign | (uint16_t)((exponent - 1 + f->bias) << (f->precision - 1)) | fraction);
}

static void check_f64(const struct format *f, double value)
{
    uint16_t bits = f->of_f64(value), want = reference_round(f, value);
    if (isnan(value)) {
        CHECK(is_nan_bits(f, bits));
        CHECK_EQ(bits >> 15, signbit(value) != 0);
    } else if (!CHECK_EQ(bits, want)) {
        fprintf(stderr, "  %s of %a\n", f->name, value);
    }
}

static void check_f32(const struct format *f, float value)
{
    uint16_t bits = f->of_f32(value), want = reference_round(f, value);
    if (isnan(value)) {
        CHECK(is_nan_bits(f, bits));
        CHECK_EQ(bits >> 15, signbit(value) != 0);
    } else if (!CHECK_EQ(bits, want)) {
        fprintf(stderr, "  %s of %a (f32)\n", f->name, (double)value);
    }
}

static void test_all_values(const struct format *f)
{
    for (unsigned i = 0; i < 65536; i++) {
        uint16_t bits = (uint16_t)i;
        float wide = f->to_f32(bits);
        double want = reference_value(f, bits);
        if (isnan(want)) {
            CHECK(isnan(wide) && is_nan_bits(f, f->of_f32(wide)) &&
                  is_nan_bits(f, f->of_f64(wide)));
            /* Payloads survive; signalling ones become quiet at most. */
            uint16_t quiet = (uint16_t)(1 << (f->precision - 2));
            CHECK_EQ(f->of_f32(wide) | quiet, bits | quiet);
            CHECK_EQ(f->of_f64(wide) | quiet, bits | quiet);
            continue;
        }
        CHECK((double)wide == want && !signbit(wide) == !signbit(want));
        CHECK_EQ(f->of_f32(wide), bits);
        CHECK_EQ(f->of_f64(want), bits);
    }
}

/* Midpoints between neighbours, and the next values to both sides of them, in both widths. */
static void test_ties(const struct format *f)
{
    for (uint16_t bits = 0; bits < infinity_bits(f); bits++) {
        double low = reference_value(f, bits), high = reference_value(f, (uint16_t)(bits + 1));
        if (isinf(high)) /* the midpoint to where the next value would be */
            high = ldexp(1, f->bias + 1);
        double middle = low + (high - low) / 2;
        for (int sign = -1; sign <= 1; sign += 2) {
            check_f64(f, sign * middle);
            check_f64(f, sign * nextafter(middle, 0));
            check_f64(f, sign * nextafter(middle, INFINITY));
            check_f32(f, sign * (float)middle);
            check_f32(f, sign * nextafterf((float)middle, 0));
            check_f32(f, sign * nextafterf((float)middle, INFINITY));
        }
    }
}

static void test_random(const struct format *f)
{
    uint64_t random = check_seed();
    for (int i = 0; i < 500000; i++) {
        uint64_t bits = check_random(&random);
        check_f64(f, gm_f64_of_bits(bits));
        check_f32(f, gm_f32_of_bits((uint32_t)bits));
        /* Exponents within the format's range, where random ones seldom are; few bits set. */
        int exponent = (int)(check_random(&random) % (unsigned)(3 * f->bias)) - 2 * f->bias;
        uint64_t mantissa = bits & (bits >> 11 | UINT64_C(0xFFF) << 40) & ((UINT64_C(1) << 52) - 1);
        check_f64(f, ldexp(1 + ldexp((double)mantissa, -52), exponent));
        check_f32(f, (float)ldexp(1 + ldexp((double)(mantissa >> 29), -23), exponent));
    }
    static const double special[] = {0.0,
                                     -0.0,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     1e308,
                                     -1e308,
                                     5e-324,
                                     1e-45,
                                     65504,
                                     65519,
                                     65520,
                                     65536,
                                     3.4028234663852886e38,
                                     3.3895313892515355e38,
                                     3.396e38,
                                     0x1p-24,
                                     0x1p-25,
                                     0x1.8p-25,
                                     0x1p-133,
                                     0x1p-134,
                                     0x1.8p-134,
                                     0x1p-14,
                                     0x1p-126};
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
        check_f64(f, special[i]);
        check_f64(f, -special[i]);
        check_f32(f, (float)special[i]);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        test_all_values(&formats[i]);
        test_ties(&formats[i]);
        test_random(&formats[i]);
    }
    /* One rounding, not two: through f32 this would end at 1.0. */
    CHECK_EQ(gm_f16_of_f64(1 + 0x1p-11 + 0x1p-40), 0x3C01);
    CHECK_EQ(gm_bf16_of_f64(1 + 0x1p-8 + 0x1p-40), 0x3F81);
    return check_report();
}
