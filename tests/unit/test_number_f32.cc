// The text of f32 against std::to_chars's: a spread of all numbers, those around powers of two and
// ten, whole ones.
//
//   test_number_f32 [--all]
//
// --all: every number there is, in some minutes.
#include "proto/number/number.h"

#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace
{

constexpr size_t WIDTH_MAX = 15; // gm_number_width_max
uint64_t tried, failed;

uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

void expect(bool held, uint32_t bits, const char *what)
{
    tried++;
    if (!held && failed++ < 20)
        std::printf("%08" PRIx32 ": %s\n", bits, what);
}

void try_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    char text[2 * WIDTH_MAX], want[64];
    memset(text, '#', sizeof(text));
    char *end = gm_write_f32(text, &value);
    if (!std::isfinite(value)) {
        expect(end == nullptr && text[0] == '#', bits, "written, and it is no number");
        return;
    }
    size_t len = value == 0 && std::signbit(value) ? 4 : 0; // of "-0.0", which is ours
    memcpy(want, "-0.0", 4);
    if (len == 0)
        len = size_t(std::to_chars(want, want + sizeof(want), value).ptr - want);
    expect(end == text + len && memcmp(text, want, len) == 0, bits, "another text");
    bool beyond = false;
    for (size_t i = WIDTH_MAX; i < sizeof(text); i++)
        beyond |= text[i] != '#';
    expect(!beyond, bits, "more written than the width");
}

void try_around(uint32_t bits)
{
    for (uint32_t i = 0; i < 5; i++) {
        try_bits(bits - 2 + i);
        try_bits((bits - 2 + i) ^ UINT32_C(0x80000000));
    }
}

} // namespace

int main(int argc, char **argv)
{
    bool all = argc == 2 && strcmp(argv[1], "--all") == 0;

    for (uint32_t exponent = 0; exponent < 256; exponent++) {
        try_around(exponent << 23);
        try_around(exponent << 23 | 0x400000);
    }
    for (int power = -45; power <= 38; power++)
        for (int times = 1; times < 10; times++)
            try_around(bits_of(float(times * std::pow(10.0, power))));
    for (uint32_t whole = 0; whole < 100000; whole++) {
        try_bits(bits_of(float(whole)));
        try_bits(bits_of(float(whole * 167.77)));
        try_bits(bits_of(float(whole) / 64));
        try_bits(bits_of(-float(whole) / 1000));
    }
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += all ? 1 : 4093)
        try_bits(uint32_t(bits));
    std::printf("%" PRIu64 " checks, %" PRIu64 " failed\n", tried, failed);
    return failed > 0 || tried == 0;
}
