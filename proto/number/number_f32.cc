/*
 * number_f32.cc - writes an f32 as the shortest text that reads back to the same bits.
 *
 * Most results are f32, and std::to_chars of libstdc++ takes as long for one as for an f64: 35 ns,
 * as {fmt} does. The shortest number between the two midpoints to the neighbours is found here with
 * three multiplications of 32 by 64 bits.
 */
#include "proto/number/number.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace
{

constexpr int WIDTH_MAX = 15;                     /* "-1.17549435e-38" */
constexpr int POWER_LEAST = -31, POWER_MOST = 45; /* of ten, that f32 need */

/* 10^power * 2^n, rounded up, with n so that it has 64 bits. */
constexpr uint64_t leading_bits(int power)
{
    unsigned __int128 five = 1; /* to the power: below 2^105. Twos are for n */
    for (int i = power < 0 ? -power : power; i > 0; i--)
        five *= 5;
    if (power >= 0) {
        while (!(five >> 127))
            five <<= 1;
        return uint64_t(five >> 64) + (uint64_t(five) != 0);
    }
    uint64_t quotient = 0;
    unsigned __int128 rest = 1;
    while (!(quotient >> 63)) {
        rest *= 2;
        quotient = quotient * 2 + (rest >= five);
        rest -= rest >= five ? five : 0;
    }
    return quotient + (rest != 0);
}

struct powers {
    uint64_t of_ten[POWER_MOST - POWER_LEAST + 1];
    constexpr powers() : of_ten()
    {
        for (int power = POWER_LEAST; power <= POWER_MOST; power++)
            of_ten[power - POWER_LEAST] = leading_bits(power);
    }
};
constexpr powers POWERS;

/* floor(log10(2^x)), floor(log10(3/4 * 2^x)), floor(log2(10^x)), for all x that occur here. */
constexpr int log10_of_two_to(int x)
{
    return x * 1262611 >> 22;
}
constexpr int log10_of_less_than_two_to(int x)
{
    return (x * 1262611 - 524031) >> 22;
}
constexpr int log2_of_ten_to(int x)
{
    return x * 1741647 >> 19;
}

/* factor * power / 2^64, rounded to odd: what it is compared with is even, and so the result is
 * on the side of it that the exact product is on. */
inline uint32_t product(uint64_t power, uint32_t factor)
{
    uint64_t low = (power & UINT32_MAX) * factor, high = (power >> 32) * factor + (low >> 32);
    return uint32_t(high >> 32) | (uint32_t(high) > 1);
}

/* Eight digits as the bytes of a word, 0 to 9 each, the first digit the lowest byte. */
inline uint64_t eight_digits(uint32_t below_10_to_8)
{
    uint64_t x = below_10_to_8 / 10000 | uint64_t(below_10_to_8 % 10000) << 32;
    uint64_t hundreds = (x * 10486 >> 20) & 0x0000007F0000007F;
    x = hundreds | (x - hundreds * 100) << 16;
    uint64_t tens = (x * 103 >> 10) & 0x000F000F000F000F;
    return tens | (x - tens * 10) << 8;
}

/* The first digit, behind it a point and the other digits, an exponent. */
char *write_scientific(char *out, uint64_t first_eight, char ninth, int count, int exponent)
{
    uint64_t others = first_eight >> 8 | uint64_t(uint8_t(ninth)) << 56;
    *out = char(first_eight);
    out[1] = '.';
    memcpy(out + 2, &others, 8);
    out += count + (count > 1);
    uint32_t size = uint32_t(exponent < 0 ? -exponent : exponent); /* of two digits at most */
    const char text[4] = {'e', exponent < 0 ? '-' : '+', char('0' + size / 10),
                          char('0' + size % 10)};
    memcpy(out, text, 4);
    return out + 4;
}

/* The shorter of plain and scientific notation, plain if they are the same. */
char *write_decimal(char *out, float positive)
{
    gm_decimal number = gm_shortest_f32(positive);
    uint32_t digits = uint32_t(number.digits);
    int point = number.exponent + 9; /* so many of 9 digits are before it */
    for (; digits < 10000000; point--)
        digits *= 10;
    point -= digits < 100000000; /* without a branch: it is one as often as the other */
    digits *= digits < 100000000 ? 10 : 1;

    /* The digits as text: the first eight, and the ninth; how many there are up to the last that is
     * not 0. */
    uint64_t eight = eight_digits(digits % 100000000);
    int count = eight ? 9 - __builtin_clzll(eight) / 8 : 1;
    uint64_t text = (eight << 8 | digits / 100000000) | 0x3030303030303030;
    char ninth = char('0' + (eight >> 56));

    int scientific = count + (count > 1) + 4; /* characters */
    if (-point + 2 + count > scientific || point > scientific)
        return write_scientific(out, text, ninth, count, point - 1);
    if (point >= count) /* whole, and below 10^14 */
        return std::to_chars(out, out + WIDTH_MAX, uint64_t(positive)).ptr;
    if (point <= 0) {
        memcpy(out, "0.000", 5);
        out += 2 - point;
        memcpy(out, &text, 8);
        out[8] = ninth;
        return out + count;
    }
    /* There are fractions only below 2^23: the point is behind the seventh digit at the latest. */
    uint64_t before = (uint64_t(1) << 8 * point) - 1;
    uint64_t with_point = (text & before) | uint64_t('.') << 8 * point | (text & ~before) << 8;
    memcpy(out, &with_point, 8);
    out[8] = char(text >> 56);
    out[9] = ninth;
    return out + count + 1;
}

} // namespace

struct gm_decimal gm_shortest_f32(float positive)
{
    uint32_t bits;
    memcpy(&bits, &positive, sizeof(bits));
    uint32_t fraction = bits & 0x7FFFFF, field = bits >> 23;
    uint32_t whole = field ? fraction | 0x800000 : fraction;
    int exponent = (field ? int(field) : 1) - 150; /* the value is whole * 2^exponent */
    bool closer = fraction == 0 && field > 1;      /* the neighbour below is half as far */
    bool open = whole & 1;                         /* the midpoints round to the neighbours */

    /* The value and the midpoints, times 4, in units of 10^power: of them there are at least one
     * and less than ten in between the midpoints. */
    int power = closer ? log10_of_less_than_two_to(exponent) : log10_of_two_to(exponent);
    int shift = exponent + log2_of_ten_to(-power) + 1;
    uint64_t scale = POWERS.of_ten[-power - POWER_LEAST];
    uint32_t low = product(scale, (4 * whole - 2 + closer) << shift) + open;
    uint32_t value = product(scale, 4 * whole << shift);
    uint32_t high = product(scale, (4 * whole + 2) << shift) - open;

    /* The number in units, and in tens. Nothing foretells which it is: masks, no branches. */
    uint32_t units = value / 4, tens = units / 10 * 10;
    uint32_t down = low <= 4 * units, up = 4 * units + 4 <= high;
    uint32_t middle = 4 * units + 2; /* if both are in between, or neither: the nearer, the even */
    uint32_t nearer = (value > middle) | ((value == middle) & units);
    units += (up & ~down) | (nearer & ~(up ^ down));
    down = low <= 4 * tens;
    up = 4 * tens + 40 <= high;
    uint32_t shorter = 0 - ((tens > 0) & (up ^ down));
    return {(units & ~shorter) | ((tens + 10 * up) & shorter), power};
}

char *gm_write_f32(char *out, const void *element)
{
    float value;
    memcpy(&value, element, sizeof(value));
    if (!std::isfinite(value))
        return nullptr;
    float positive = std::fabs(value);
    if (positive == 0) { /* readers that take "-0" for an integer lose its sign */
        size_t len = std::signbit(value) ? 4 : 1;
        memcpy(out, len == 4 ? "-0.0" : "0", len);
        return out + len;
    }
    *out = '-';
    out += std::signbit(value);
    if (positive < 1e5f && positive == float(uint32_t(positive))) /* no longer than 1e+04 */
        return std::to_chars(out, out + WIDTH_MAX, uint32_t(positive)).ptr;
    return write_decimal(out, positive);
}
