/*
 * number_charconv.cc - converts numbers by <charconv>: the rare ones that number_read.c does not
 * read itself, and those that are written, except f32 (number_f32.cc), as the shortest text that
 * reads back to the same bits. C++ because C has neither; nothing here throws or allocates.
 */
#include "proto/number/half.h"
#include "proto/number/number.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace
{

/* The value is beyond the type: is it huge rather than tiny? By the power of ten of its first
 * digit that is not 0. */
bool is_huge(const char *text, size_t len)
{
    const char *end = text + len, *p = text;
    long long power = -1;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        power += power >= 0 || *p != '0';
    if (p < end && *p == '.' && power < 0)
        for (p++; p < end && *p == '0'; p++)
            power--;
    while (p < end && *p != 'e' && *p != 'E')
        p++;
    int exponent = 0; /* the sum below has room for it */
    if (p < end) {
        p += p + 1 < end && p[1] == '+' ? 2 : 1;
        if (std::from_chars(p, end, exponent).ec != std::errc())
            return *p != '-';
    }
    return power + exponent > 0;
}

template <typename T> T nearest(const char *text, size_t len)
{
    T value = 0;
    if (std::from_chars(text, text + len, value).ec == std::errc::result_out_of_range)
        value = is_huge(text, len) ? std::numeric_limits<T>::infinity() : T(0);
    return value;
}

/* The digits of a number without its point, from the first that is not 0 on. */
class digits
{
  public:
    digits(const char *text, size_t len) : at(text), end(text + len)
    {
        while (at < end && (*at == '0' || *at == '.'))
            at++;
    }
    int next() /* 0 for ever after the last */
    {
        if (at < end && *at == '.')
            at++;
        return at < end && *at >= '0' && *at <= '9' ? *at++ - '0' : 0;
    }
    bool more() const
    {
        return at < end && ((*at >= '0' && *at <= '9') || *at == '.');
    }

  private:
    const char *at, *end;
};

} // namespace

float gm_charconv_f32(const char *text, size_t len)
{
    return nearest<float>(text, len);
}

double gm_charconv_f64(const char *text, size_t len, bool narrow)
{
    double value = nearest<double>(text, len);
    uint64_t bits = gm_f64_bits(value);
    const uint64_t beyond_12_bits = (uint64_t(1) << 41) - 1;

    /* Ties of f16 and bf16 lie between these. */
    if (!narrow || (bits & beyond_12_bits) || value < 0x1p-140 || value > 0x1p130)
        return value;

    /* The value as decimal, exactly (110 digits do), against the number. They are so close that
     * the first digit to differ tells, and no tie is a power of ten, where 9.99 would meet 10. */
    char exact[256];
    auto written =
        std::to_chars(exact, exact + sizeof(exact), value, std::chars_format::scientific, 120);
    digits ours(exact, size_t(written.ptr - exact)), theirs(text, len);
    while (ours.more() || theirs.more()) {
        int difference = theirs.next() - ours.next();
        if (difference)
            return gm_f64_of_bits(difference > 0 ? bits + 1 : bits - 1);
    }
    return value;
}

namespace
{

template <typename T> char *write_integer(char *out, const void *element)
{
    T value;
    memcpy(&value, element, sizeof(value));
    return std::to_chars(out, out + GM_NUMBER_WIDTH_MAX, value).ptr;
}

char *write_f64(char *out, const void *element)
{
    double value;
    memcpy(&value, element, sizeof(value));
    if (!std::isfinite(value))
        return nullptr;
    if (value == 0) { /* readers that take "-0" for an integer lose its sign */
        const char *zero = std::signbit(value) ? "-0.0" : "0";
        size_t len = strlen(zero);
        memcpy(out, zero, len);
        return out + len;
    }
    return std::to_chars(out, out + GM_NUMBER_WIDTH_MAX, value).ptr;
}

/*
 * f16 and bf16: of the value's digits as f32 the last are taken away as long as one of the two
 * nearest numbers of so many digits still rounds to the value: it lies between the midpoints to
 * the neighbours, which are exact doubles. (Where it is one of them, the even neighbour gets it,
 * provided that it is exact itself.) Numbers below `enough` have as many digits as any value
 * needs: it begins there.
 */
char *write_half(char *out, uint16_t bits, float (*widen)(uint16_t), uint64_t enough)
{
    float value = widen(bits);
    if (!std::isfinite(value) || value == 0)
        return gm_write_f32(out, &value);

    uint16_t magnitude = bits & 0x7FFF;
    double middle = std::fabs(double(value));
    double below = middle - (middle - double(widen(magnitude - 1))) / 2;
    double next = double(widen(magnitude + 1));
    double above = std::isfinite(next) ? middle + (next - middle) / 2 : middle + (middle - below);
    const gm_decimal whole = gm_shortest_f32(std::fabs(value));
    double shortest = gm_number_scaled(whole.digits, whole.exponent);
    int exponent = whole.exponent;
    uint64_t unit = 1;
    bool shorter = true;
    while (shorter && unit * 10 <= whole.digits) {
        do {
            unit *= 10;
            exponent++;
        } while (whole.digits / unit >= enough);
        uint64_t down = whole.digits / unit;
        bool up = whole.digits % unit * 2 >= unit;
        shorter = false;
        for (int i = 0; i < 2 && !shorter; i++, up = !up) {
            double candidate = gm_number_scaled(down + up, exponent);
            bool tie = !(bits & 1) && exponent >= 0 && candidate < 0x1p53;
            shorter = tie ? candidate >= below && candidate <= above
                          : candidate > below && candidate < above;
            if (shorter)
                shortest = candidate;
        }
    }
    shortest = std::copysign(shortest, double(value));
    return write_f64(out, &shortest);
}

char *write_f16(char *out, const void *element)
{
    uint16_t bits;
    memcpy(&bits, element, sizeof(bits));
    return write_half(out, bits, gm_f32_of_f16, 100000);
}

char *write_bf16(char *out, const void *element)
{
    uint16_t bits;
    memcpy(&bits, element, sizeof(bits));
    return write_half(out, bits, gm_f32_of_bf16, 10000);
}

char *write_bool(char *out, const void *element)
{
    uint8_t value;
    memcpy(&value, element, sizeof(value));
    const char *word = value ? "true" : "false";
    size_t len = strlen(word);
    memcpy(out, word, len);
    return out + len;
}

} // namespace

gm_number_writer *gm_number_writer_of(enum gm_dtype dtype)
{
    switch (dtype) {
    case GM_F16:
        return write_f16;
    case GM_BF16:
        return write_bf16;
    case GM_F32:
        return gm_write_f32;
    case GM_F64:
        return write_f64;
    case GM_I32:
        return write_integer<int32_t>;
    case GM_I64:
        return write_integer<int64_t>;
    case GM_BOOL:
        return write_bool;
    case GM_I8:
        return write_integer<int8_t>;
    case GM_U8:
        return write_integer<uint8_t>;
    case GM_I16:
        return write_integer<int16_t>;
    case GM_U16:
        return write_integer<uint16_t>;
    case GM_U32:
        return write_integer<uint32_t>;
    case GM_U64:
        return write_integer<uint64_t>;
    default:
        return nullptr;
    }
}

uint64_t gm_number_width_max(enum gm_dtype dtype)
{
    switch (dtype) {
    case GM_F16:
    case GM_BF16:
    case GM_F32:
        return strlen("-1.17549435e-38");
    case GM_F64:
        return strlen("-2.2250738585072014e-308");
    case GM_I64:
    case GM_U64:
        return strlen("-9223372036854775808");
    case GM_I32:
    case GM_U32:
        return strlen("-2147483648");
    default:
        return strlen("-32768"); /* and false */
    }
}
