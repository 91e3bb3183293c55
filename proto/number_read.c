/*
 * number_read.c - decimal text to elements.
 *
 * A number is scanned once into digits * 10^exponent and converted by the first of three ways
 * that is exact for it:
 *   1. f32, f64: both parts are exact doubles, so one multiplication or division rounds once
 *      (Clinger's fast path). An f32 that would then be rounded from a tie goes on to
 *   2. all types: up to 19 digits and |exponent| <= 27, in 128-bit integers; the quotient's
 *      remainder is kept as a sticky bit and rounding happens once, into any format.
 *   3. <charconv>, for everything else.
 * The first two are why reading is as fast as it is: nearly all numbers that programs write end
 * there.
 *
 * Tried, and slower (17 ns for each f32 of a million random ones as it is): all digits of a run by
 * one load, a shift and three multiplications (20 ns: where the number ends then waits for that);
 * a loop over numbers for each type, with its reader inlined (23 ns: too few registers).
 */
#include "proto/number.h"

#include "proto/half.h"

#include <inttypes.h>
#include <stdio.h>

/* digits * 10^exponent, unless the digits were too many for 64 bits. */
struct decimal {
    uint64_t digits;
    int64_t exponent;
    ptrdiff_t count;   /* of the digits before an exponent, leading zeros included */
    const char *first; /* where they begin */
    bool negative;
};

/* More than any exponent that still matters, small enough never to overflow. */
#define EXPONENT_LIMIT ((int64_t)1 << 40)

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Whether the 8 bytes at text are all digits, and then their value: three multiplications. */
static inline bool eight_digits(const char *text, uint64_t *ret)
{
    uint64_t v;
    memcpy(&v, text, sizeof(v));
    if (((v + 0x4646464646464646) | (v - 0x3030303030303030)) & 0x8080808080808080)
        return false;
    v -= 0x3030303030303030;
    v = v * 10 + (v >> 8); /* pairs, in every other byte */
    *ret = ((v & 0x000000FF000000FF) * (100 + (UINT64_C(1000000) << 32)) +
            ((v >> 16) & 0x000000FF000000FF) * (1 + (UINT64_C(10000) << 32))) >>
           32;
    return true;
}

static inline const char *scan_exponent(const char *p, int64_t *exponent)
{
    int64_t value = 0;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    if (!is_digit(*p))
        return NULL;
    for (; is_digit(*p); p++)
        if (value < EXPONENT_LIMIT)
            value = value * 10 + (*p - '0');
    *exponent += negative ? -value : value;
    return p;
}

/* Inlined whatever its size, and free of branches on leading zeros: this is the hot loop. */
static inline __attribute__((always_inline)) const char *scan(const char *p, struct decimal *d)
{
    uint64_t digits = 0;
    d->negative = *p == '-';
    p += d->negative;
    d->first = p;
    for (; is_digit(*p); p++)
        digits = digits * 10 + (uint64_t)(*p - '0');
    d->count = p - d->first;
    if (d->count == 0 || (d->count > 1 && *d->first == '0'))
        return NULL;

    d->exponent = 0;
    if (*p == '.') {
        const char *point = ++p;
        uint64_t eight;
        for (int i = 0; i < 2 && eight_digits(p, &eight); i++, p += 8)
            digits = digits * 100000000 + eight;
        for (; is_digit(*p); p++)
            digits = digits * 10 + (uint64_t)(*p - '0');
        if (p == point)
            return NULL;
        d->count += p - point;
        d->exponent = point - p;
    }
    d->digits = digits;
    return (*p | 0x20) == 'e' ? scan_exponent(p + 1, &d->exponent) : p;
}

/* Whether d->digits is right: 19 digits always fit, and zeros before them do no harm. */
static inline bool few_digits(const struct decimal *d)
{
    ptrdiff_t count = d->count;
    for (const char *p = d->first; count > 19 && (*p == '0' || *p == '.'); p++)
        count -= *p == '0';
    return count <= 19;
}

/* A binary format: bits of precision with the leading one, exponent bias. */
struct format {
    int precision, bias;
};

/*
 * Rounds significand * 2^exponent to nearest even; the significand's top bit is set, sticky
 * says that the value is slightly more than that. Infinity's bits on overflow.
 */
static inline uint64_t round_bits(uint64_t significand, bool sticky, int exponent, struct format to)
{
    int leading = exponent + 63; /* the power of two of the top bit */
    int lowest = 1 - to.bias;    /* that of the smallest normal number */
    int drop = 64 - to.precision + (leading < lowest ? lowest - leading : 0);
    if (drop > 64)
        return 0;
    uint64_t kept = drop == 64 ? 0 : significand >> drop;
    uint64_t rest = significand << (64 - drop);
    uint64_t half = UINT64_C(1) << 63;
    kept += rest > half || (rest == half && (sticky || (kept & 1)));
    if (leading >= lowest) /* the leading one itself adds 1 to the exponent field */
        kept += (uint64_t)(leading - lowest) << (to.precision - 1);
    uint64_t infinity = (uint64_t)(2 * to.bias + 1) << (to.precision - 1);
    return kept < infinity ? kept : infinity;
}

#define FIVES_MAX 27 /* 5^27 < 2^63 */
/* clang-format off */
static const uint64_t fives[FIVES_MAX + 1] = {
    1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625, 48828125, 244140625,
    1220703125, 6103515625, 30517578125, 152587890625, 762939453125, 3814697265625,
    19073486328125, 95367431640625, 476837158203125, 2384185791015625, 11920928955078125,
    59604644775390625, 298023223876953125, 1490116119384765625, 7450580596923828125,
};
/* clang-format on */

static inline bool integers_hold(const struct decimal *d)
{
    return d->exponent >= -FIVES_MAX && d->exponent <= FIVES_MAX && few_digits(d);
}

/* digits * 10^exponent = digits * 5^exponent * 2^exponent, where integers_hold. */
static inline uint64_t exact_bits(const struct decimal *d, struct format to)
{
    if (d->digits == 0)
        return 0;
    int exponent = (int)d->exponent;
    int shift = __builtin_clzll(d->digits);
    uint64_t digits = d->digits << shift;
    int scale = exponent - shift;
    if (exponent < 0) {
        uint64_t divisor = fives[-exponent];
        int align = __builtin_clzll(divisor);
        divisor <<= align;
        /* Both have their top bit set, so the quotient is between 2^62 and 2^64. */
        unsigned __int128 dividend = (unsigned __int128)digits << 63;
        uint64_t quotient = (uint64_t)(dividend / divisor);
        bool sticky = (uint64_t)dividend != quotient * divisor; /* the low halves will do */
        shift = __builtin_clzll(quotient);
        return round_bits(quotient << shift, sticky, scale - 63 + align - shift, to);
    }
    unsigned __int128 product = (unsigned __int128)digits * fives[exponent];
    uint64_t high = (uint64_t)(product >> 64);
    shift = high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)product);
    product <<= shift;
    return round_bits((uint64_t)(product >> 64), (uint64_t)product != 0, scale + 64 - shift, to);
}

/* Where the digits and the power of ten are both exact doubles: one operation, one rounding. */
static inline bool doubles_hold(const struct decimal *d)
{
    return d->digits <= UINT64_C(1) << 53 && d->exponent >= -22 && d->exponent <= 22 &&
           few_digits(d);
}

static inline double exact_double(const struct decimal *d)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double digits = (double)d->digits;
    return d->exponent < 0 ? digits / tens[-d->exponent] : digits * tens[d->exponent];
}

double gm_number_scaled(uint64_t digits, int exponent)
{
    struct decimal d = {.digits = digits, .exponent = exponent};
    if (doubles_hold(&d))
        return exact_double(&d);
    char text[64];
    int len = snprintf(text, sizeof(text), "%" PRIu64 "e%d", digits, exponent);
    return gm_charconv_f64(text, (size_t)len, false);
}

static const char *read_f64(const char *text, void *ret)
{
    struct decimal d;
    const char *end = scan(text, &d);
    if (!end)
        return NULL;

    double value;
    if (doubles_hold(&d))
        value = exact_double(&d);
    else if (integers_hold(&d))
        value = gm_f64_of_bits(exact_bits(&d, (struct format){53, 1023}));
    else if (end - text <= GM_NUMBER_TEXT_MAX)
        value = gm_charconv_f64(text + d.negative, (size_t)(end - text) - d.negative, false);
    else
        return NULL;
    if (value > __DBL_MAX__)
        return NULL;
    /* The sign is as good as random: no branch on it. */
    uint64_t bits = gm_f64_bits(value) | (uint64_t)d.negative << 63;
    memcpy(ret, &bits, sizeof(bits));
    return end;
}

static const char *read_f32(const char *text, void *ret)
{
    struct decimal d;
    const char *end = scan(text, &d);
    if (!end)
        return NULL;

    float value = 0;
    bool done = false;
    if (doubles_hold(&d)) {
        /* Zero, or within 1e-22 to 1e38, where f32 is normal: its ties end in 1 and 28 zeros. */
        double wide = exact_double(&d);
        value = (float)wide;
        done = (gm_f64_bits(wide) & 0x1FFFFFFF) != 0x10000000;
    }
    if (!done && integers_hold(&d))
        value = gm_f32_of_bits((uint32_t)exact_bits(&d, (struct format){24, 127}));
    else if (!done && end - text <= GM_NUMBER_TEXT_MAX)
        value = gm_charconv_f32(text + d.negative, (size_t)(end - text) - d.negative);
    else if (!done)
        return NULL;
    if (value > __FLT_MAX__)
        return NULL;
    uint32_t bits = gm_f32_bits(value) | (uint32_t)d.negative << 31;
    memcpy(ret, &bits, sizeof(bits));
    return end;
}

static inline const char *read_half(const char *text, void *ret, struct format to,
                                    uint16_t (*of_f64)(double))
{
    struct decimal d;
    const char *end = scan(text, &d);
    if (!end)
        return NULL;

    uint16_t value;
    if (integers_hold(&d))
        value = (uint16_t)exact_bits(&d, to);
    else if (end - text <= GM_NUMBER_TEXT_MAX)
        value = of_f64(gm_charconv_f64(text + d.negative, (size_t)(end - text) - d.negative, true));
    else
        return NULL;
    if (value >= (2 * to.bias + 1) << (to.precision - 1)) /* infinity */
        return NULL;
    value |= (uint16_t)(d.negative << 15);
    memcpy(ret, &value, sizeof(value));
    return end;
}

static const char *read_f16(const char *text, void *ret)
{
    return read_half(text, ret, (struct format){11, 15}, gm_f16_of_f64);
}

static const char *read_bf16(const char *text, void *ret)
{
    return read_half(text, ret, (struct format){8, 127}, gm_bf16_of_f64);
}

/*
 * The magnitude of a number that was scanned, if it is a whole one. It need not be written as
 * one: 1.50e1 is 15. More than 64 bits count as UINT64_MAX with *ret_large set.
 */
static bool whole(const struct decimal *d, uint64_t *ret, bool *ret_large)
{
    uint64_t value = 0;
    bool large = false;
    if (d->exponent == 0 && d->count <= 19) {
        value = d->digits;
    } else {
        /* Digit by digit: those before the point, where the exponent moves it, count. */
        int64_t before = d->count + d->exponent, i = 0;
        for (const char *p = d->first; i < d->count; p++) {
            if (*p == '.')
                continue;
            if (i++ < before)
                large |= !gm_size_mul(value, 10, &value) ||
                         !gm_size_add(value, (uint64_t)(*p - '0'), &value);
            else if (*p != '0')
                return false;
        }
        for (; i < before && value && !large; i++)
            large = !gm_size_mul(value, 10, &value);
    }
    *ret = large ? UINT64_MAX : value;
    *ret_large = large;
    return true;
}

/* A whole number of at most max, or of at least -lowest. */
static inline const char *read_integer(const char *text, uint64_t max, uint64_t lowest,
                                       uint64_t *ret)
{
    struct decimal d;
    const char *end = scan(text, &d);
    uint64_t magnitude;
    bool large;
    if (!end || end - text > GM_NUMBER_TEXT_MAX || !whole(&d, &magnitude, &large) || large ||
        magnitude > (d.negative ? lowest : max))
        return NULL;
    *ret = d.negative ? 0 - magnitude : magnitude;
    return end;
}

#define INTEGER_READER(name, type, max, lowest)                                                    \
    static const char *name(const char *text, void *ret)                                           \
    {                                                                                              \
        uint64_t bits;                                                                             \
        const char *end = read_integer(text, max, lowest, &bits);                                  \
        if (!end)                                                                                  \
            return NULL;                                                                           \
        type value = (type)bits;                                                                   \
        memcpy(ret, &value, sizeof(value));                                                        \
        return end;                                                                                \
    }

INTEGER_READER(read_i8, int8_t, INT8_MAX, INT8_MAX + UINT64_C(1))
INTEGER_READER(read_i16, int16_t, INT16_MAX, INT16_MAX + UINT64_C(1))
INTEGER_READER(read_i32, int32_t, INT32_MAX, INT32_MAX + UINT64_C(1))
INTEGER_READER(read_i64, int64_t, INT64_MAX, INT64_MAX + UINT64_C(1))
INTEGER_READER(read_u8, uint8_t, UINT8_MAX, 0)
INTEGER_READER(read_u16, uint16_t, UINT16_MAX, 0)
INTEGER_READER(read_u32, uint32_t, UINT32_MAX, 0)
INTEGER_READER(read_u64, uint64_t, UINT64_MAX, 0)
INTEGER_READER(read_zero_one, uint8_t, 1, 0)

static const char *read_bool(const char *text, void *ret)
{
    bool yes = *text == 't';
    const char *word = yes ? "true" : "false";
    if (!yes && *text != 'f')
        return read_zero_one(text, ret);
    for (; *word; word++, text++)
        if (*text != *word)
            return NULL;
    memcpy(ret, &yes, 1);
    return text;
}

gm_number_reader *gm_number_reader_of(enum gm_dtype dtype)
{
    static gm_number_reader *const readers[GM_DTYPE_COUNT] = {
        [GM_F16] = read_f16, [GM_BF16] = read_bf16, [GM_F32] = read_f32,   [GM_F64] = read_f64,
        [GM_I32] = read_i32, [GM_I64] = read_i64,   [GM_BOOL] = read_bool, [GM_I8] = read_i8,
        [GM_U8] = read_u8,   [GM_I16] = read_i16,   [GM_U16] = read_u16,   [GM_U32] = read_u32,
        [GM_U64] = read_u64,
    };
    return (unsigned)dtype < GM_DTYPE_COUNT ? readers[dtype] : NULL;
}

const char *gm_number_end(const char *text)
{
    struct decimal d;
    return scan(text, &d);
}

enum gm_number_fault gm_number_fault(const char *text, enum gm_dtype dtype)
{
    struct decimal d;
    const char *end = scan(text, &d);
    uint64_t magnitude;
    bool large;
    if (!end)
        return GM_NUMBER_SYNTAX;
    if (end - text > GM_NUMBER_TEXT_MAX)
        return GM_NUMBER_LENGTH;
    if (dtype == GM_F16 || dtype == GM_BF16 || dtype == GM_F32 || dtype == GM_F64)
        return GM_NUMBER_RANGE;
    return whole(&d, &magnitude, &large) ? GM_NUMBER_RANGE : GM_NUMBER_FRACTION;
}
