/*
 * fuzz_number.c - numbers from and to text. Input: a dtype, then either the text of a number, or
 * (where bit 7 of the first byte is set) the bytes of an element.
 *
 * Checked against the C library and arithmetic on decimal digits: a reader takes exactly the
 * longest number of JSON's grammar; f32 and f64 are strtof's and strtod's; f16 and bf16 are rounded
 * once, from the value between strtod's in both directions; integers are the digits'; what does not
 * fit is refused, and for the right reason. What is written reads back to the same bits, is JSON,
 * and is not longer than it may be, or than what printf needs. Outputs of failures are untouched.
 */
#include "proto/number/number.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <fenv.h>
#include <math.h>

/* The length of the number in JSON's grammar at text; 0 if there is none. The grammar again, as
 * RFC 8259 has it, but a digit that follows a leading zero spoils the number. */
static size_t grammar(const char *text)
{
    const char *p = text + (*text == '-');
    const char *whole = p;
    while (isdigit((unsigned char)*p))
        p++;
    if (p == whole || (*whole == '0' && p - whole > 1))
        return 0;
    if (*p == '.') {
        if (!isdigit((unsigned char)*++p))
            return 0;
        while (isdigit((unsigned char)*p))
            p++;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        if (!isdigit((unsigned char)*p))
            return 0;
        while (isdigit((unsigned char)*p))
            p++;
    }
    return (size_t)(p - text);
}

/* The bits of |x|, which is exact or has an odd last bit, rounded to a narrower format. */
static uint16_t narrow(double x, int precision, int bias)
{
    int lowest = 1 - bias, exponent = x == 0 ? lowest : ilogb(x);
    exponent = (exponent < lowest ? lowest : exponent) - (precision - 1);
    double units = nearbyint(ldexp(x, -exponent)); /* of the last place; up to 2^precision */
    uint64_t field = (uint64_t)(exponent - lowest + (precision - 1)) << (precision - 1);
    uint64_t bits = (uint64_t)units + field;
    uint64_t infinity = (uint64_t)(2 * bias + 1) << (precision - 1);
    return (uint16_t)(bits < infinity ? bits : infinity);
}

/* What |text| is as f16 or bf16. */
static uint16_t expected_half(const char *text, enum gm_dtype dtype)
{
    fesetround(FE_DOWNWARD);
    double low = strtod(text, NULL);
    fesetround(FE_UPWARD);
    double high = strtod(text, NULL);
    fesetround(FE_TONEAREST);
    uint64_t bits;
    memcpy(&bits, &low, sizeof bits);
    double odd = low == high || (bits & 1) ? low : high;
    return dtype == GM_F16 ? narrow(odd, 11, 15) : narrow(odd, 8, 127);
}

/* A float's bits, as wide as the type; false beyond its range. */
static bool expected_float(const char *text, enum gm_dtype dtype, uint64_t *ret)
{
    bool negative = *text == '-';
    double wide;
    float single;
    uint32_t bits;

    text += negative;
    switch (dtype) {
    case GM_F64:
        wide = strtod(text, NULL);
        memcpy(ret, &wide, sizeof wide);
        *ret |= (uint64_t)negative << 63;
        return wide <= __DBL_MAX__;
    case GM_F32:
        single = strtof(text, NULL);
        memcpy(&bits, &single, sizeof bits);
        *ret = bits | (uint64_t)negative << 31;
        return single <= __FLT_MAX__;
    default:
        bits = expected_half(text, dtype);
        *ret = bits | (uint64_t)negative << 15;
        return bits < (dtype == GM_F16 ? 0x7C00 : 0x7F80);
    }
}

/* An integer as its digits without zeros around them: 0.digits * 10^point. */
struct digits {
    bool negative;
    char digit[4096];
    size_t count;
    long long point;
};

static void read_digits(const char *text, size_t len, struct digits *d)
{
    const char *end = text + len, *p = text;
    bool fraction = false;
    d->negative = *p == '-';
    d->count = 0;
    d->point = 0;
    for (p += d->negative; p < end && (isdigit((unsigned char)*p) || *p == '.'); p++) {
        if (*p == '.') {
            fraction = true;
        } else {
            bool leading = d->count == 0 && *p == '0';
            if (!leading)
                d->digit[d->count++] = *p;
            d->point += (!fraction && !leading) - (fraction && leading);
        }
    }
    if (p < end) {
        bool down = p[1] == '-';
        long long exponent = 0;
        for (p += 1 + (p[1] == '-' || p[1] == '+'); p < end; p++)
            exponent = exponent < 1000000000000 ? exponent * 10 + (*p - '0') : exponent;
        d->point += down ? -exponent : exponent;
    }
    while (d->count > 0 && d->digit[d->count - 1] == '0')
        d->count--;
}

struct range {
    uint64_t max, lowest; /* lowest: the magnitude of the most negative */
};

static struct range range_of(enum gm_dtype dtype)
{
    unsigned bits = 8 * (unsigned)gm_dtype_size(dtype);
    uint64_t half = UINT64_C(1) << (bits - 1);
    switch (dtype) {
    case GM_BOOL:
        return (struct range){1, 0};
    case GM_I8:
    case GM_I16:
    case GM_I32:
    case GM_I64:
        return (struct range){half - 1, half};
    default:
        return (struct range){half - 1 + half, 0};
    }
}

/* GM_NUMBER_RANGE or GM_NUMBER_FRACTION where the type does not have it; else its bits. */
static bool expected_integer(const struct digits *d, enum gm_dtype dtype, uint64_t *ret,
                             enum gm_number_fault *ret_fault)
{
    struct range range = range_of(dtype);
    char text[24] = "0";
    if (d->count > 0 && d->point < (long long)d->count) {
        *ret_fault = GM_NUMBER_FRACTION;
        return false;
    }
    *ret_fault = GM_NUMBER_RANGE;
    if (d->count > 0 && d->point > 20)
        return false;
    if (d->count > 0) {
        memset(text, '0', (size_t)d->point);
        memcpy(text, d->digit, d->count);
        text[d->point] = '\0';
        if (strlen(text) == 20 && strcmp(text, "18446744073709551615") > 0)
            return false;
    }
    uint64_t magnitude = strtoull(text, NULL, 10);
    *ret = d->negative ? 0 - magnitude : magnitude;
    return magnitude <= (d->negative ? range.lowest : range.max);
}

static bool is_float(enum gm_dtype dtype)
{
    return dtype == GM_F16 || dtype == GM_BF16 || dtype == GM_F32 || dtype == GM_F64;
}

/* What the element is, read as an integer of its size. */
static uint64_t bits_of(const unsigned char *element, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, element, size);
    return bits;
}

static void check_read(const char *text, size_t len, enum gm_dtype dtype)
{
    static struct digits digits;
    size_t size = gm_dtype_size(dtype), end = grammar(text);
    unsigned char *element = fuzz_alloc(size);
    enum gm_number_fault fault = GM_NUMBER_RANGE;
    uint64_t expected = 0;

    memset(element, 0xA5, size);
    const char *got = gm_number_reader_of(dtype)(text, element);
    bool word =
        dtype == GM_BOOL && (strncmp(text, "true", 4) == 0 || strncmp(text, "false", 5) == 0);
    MUST(gm_number_end(text) == (end ? text + end : NULL));
    if (word) {
        MUST(got == text + (*text == 't' ? 4 : 5) && *element == (*text == 't'));
    } else if (end == 0) {
        MUST(!got && gm_number_fault(text, dtype) == GM_NUMBER_SYNTAX);
    } else if (end > GM_NUMBER_TEXT_MAX && !got) {
        MUST(gm_number_fault(text, dtype) == GM_NUMBER_LENGTH);
    } else if (end < sizeof digits.digit) {
        char *number = fuzz_string(text, end);
        read_digits(number, end, &digits);
        bool fits = is_float(dtype) ? expected_float(number, dtype, &expected)
                                    : expected_integer(&digits, dtype, &expected, &fault);
        expected &= UINT64_MAX >> (64 - 8 * size);
        MUST_SAY(fits == (got != NULL), "%s as %s", number, gm_dtype_name(dtype));
        MUST(fits || gm_number_fault(text, dtype) == fault);
        MUST_SAY(!fits || (got == text + end && bits_of(element, size) == expected),
                 "%s as %s: %llx, not %llx", number, gm_dtype_name(dtype),
                 (unsigned long long)bits_of(element, size), (unsigned long long)expected);
        free(number);
    }
    for (size_t i = 0; !got && i < size; i++)
        MUST(element[i] == 0xA5);
    MUST(strlen(text) == len || !got || got <= text + len);
    free(element);
}

/* The shortest that printf finds for it: an upper bound. */
static size_t printf_width(const unsigned char *element, enum gm_dtype dtype)
{
    char text[64];
    double wide;
    float single;
    memcpy(&single, element, sizeof single);
    if (dtype == GM_F64)
        memcpy(&wide, element, sizeof wide);
    else
        wide = (double)single;
    for (int precision = 1;; precision++) {
        int len = snprintf(text, sizeof text, "%.*g", precision, wide);
        if (dtype == GM_F64 ? strtod(text, NULL) == wide : strtof(text, NULL) == single)
            return (size_t)len;
        MUST(precision < 17);
    }
}

static bool is_finite(const unsigned char *element, enum gm_dtype dtype)
{
    uint64_t bits = bits_of(element, gm_dtype_size(dtype));
    uint64_t exponent = dtype == GM_F16    ? 0x7C00
                        : dtype == GM_BF16 ? 0x7F80
                        : dtype == GM_F32  ? 0x7F800000
                                           : 0x7FF0000000000000;
    return !is_float(dtype) || (bits & exponent) != exponent;
}

static void check_write(const unsigned char *element, enum gm_dtype dtype)
{
    size_t size = gm_dtype_size(dtype);
    char *text = fuzz_alloc(GM_NUMBER_WIDTH_MAX);
    unsigned char *again = fuzz_alloc(size);
    const char *end = gm_number_writer_of(dtype)(text, element);

    MUST((end != NULL) == is_finite(element, dtype));
    if (end) {
        size_t len = (size_t)(end - text);
        char padded[GM_NUMBER_WIDTH_MAX + 9] = "";
        MUST(len > 0 && len <= GM_NUMBER_WIDTH_MAX);
        memcpy(padded, text, len);
        padded[len] = ']';
        MUST(gm_number_reader_of(dtype)(padded, again) == padded + len);
        MUST_SAY(memcmp(again, element, size) == 0, "%.*s", (int)len, text);
        MUST(dtype == GM_BOOL || grammar(padded) == len);
        if (dtype == GM_F32 || dtype == GM_F64) /* "-0.0" is "-0" to printf */
            MUST_SAY(len <= printf_width(element, dtype) + 2, "%.*s", (int)len, text);
    }
    free(text);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    bool write = len > 0 && bytes[0] & 0x80;
    enum gm_dtype dtype = (enum gm_dtype)(GM_F16 + fuzz_choice(&in, GM_U64 - GM_F16 + 1));
    size_t size = gm_dtype_size(dtype);

    if (write) {
        unsigned char *element = fuzz_alloc(size);
        for (size_t i = 0; i < size; i++)
            element[i] = fuzz_byte(&in);
        element[0] &= dtype == GM_BOOL ? 1 : 0xFF;
        check_write(element, dtype);
        free(element);
        return 0;
    }
    /* A byte that is no part of a number, and the bytes that readers may look at. */
    char *text = fuzz_alloc(in.left + 9);
    memcpy(text, in.at, in.left);
    memcpy(text + in.left, "]7777777", 9);
    check_read(text, in.left, dtype);
    free(text);
    return 0;
}
