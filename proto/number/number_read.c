/*
 * number_read.c - reads one decimal number: scans it once into digits * 10^exponent, which
 * decimal.inc converts. number_span.c reads many at once.
 *
 * It takes 17 ns per f32, of a million random ones. Two attempts were slower: all digits by one
 * load, a shift and three multiplications (20 ns: finding the number's end waits for that), and a
 * loop over numbers for each type with its reader inlined (23 ns: too few registers).
 */
#include "proto/number/decimal.inc"

#include <inttypes.h>
#include <stdio.h>

/* Beyond every exponent that matters, and far from overflow. */
#define EXPONENT_LIMIT ((int64_t)1 << 40)

/* Whether the 8 bytes at text are all digits; if so, also their value. */
static inline bool eight_digits(const char *text, uint64_t *ret)
{
    uint64_t v;
    memcpy(&v, text, sizeof(v));
    if (((v + 0x4646464646464646) | (v - 0x3030303030303030)) & 0x8080808080808080)
        return false;
    *ret = value_of_eight(v - 0x3030303030303030);
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

/* The hot loop: always inlined, without branches on leading zeros. */
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

    return end && decimal_to_f64(&d, text, end, ret) ? end : NULL;
}

static const char *read_f32(const char *text, void *ret)
{
    struct decimal d;
    const char *end = scan(text, &d);

    return end && decimal_to_f32(&d, text, end, ret) ? end : NULL;
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
 * Returns the magnitude of a scanned number if it is whole, however it is written: 1.50e1 is 15.
 * More than 64 bits give UINT64_MAX, with *ret_large set.
 */
static bool whole(const struct decimal *d, uint64_t *ret, bool *ret_large)
{
    uint64_t value = 0;
    bool large = false;
    if (d->exponent == 0 && d->count <= 19) {
        value = d->digits;
    } else {
        /* Digit by digit: those before the point count, after the exponent has moved it. */
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

/* Reads a whole number between -lowest and max. */
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
