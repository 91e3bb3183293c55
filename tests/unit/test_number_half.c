/*
 * f16 and bf16 from and to text. Reading: the decimals exactly between all neighbours, and a
 * hair to either side. Writing: all values, each with as few digits as there can be.
 */
#include "proto/number/half.h"
#include "proto/number/number.h"
#include "tests/unit/check.h"

#include <math.h>

/* Reads text as dtype; true if it was read to its end. The text is followed by `after`. */
static bool read_as(enum gm_dtype dtype, const char *text, char after, void *element)
{
    static char buf[512 + 16];
    size_t len = strlen(text);
    if (!CHECK(len < 512))
        return false;
    memcpy(buf, text, len);
    buf[len] = after;
    memset(buf + len + 1, '7', 8);
    return gm_number_reader_of(dtype)(buf, element) == buf + len;
}

/* A half format: values by the conversions that test_half has proven. */
struct half {
    enum gm_dtype dtype;
    uint16_t infinity;
    float (*to_f32)(uint16_t);
    int digits; /* that any value needs at most */
};

static const struct half halves[] = {
    {GM_F16, 0x7C00, gm_f32_of_f16, 5},
    {GM_BF16, 0x7F80, gm_f32_of_bf16, 4},
};

static void check_half(const struct half *h, const char *text, unsigned want)
{
    uint16_t bits = 0xDEAD;
    bool good = read_as(h->dtype, text, ',', &bits);
    bool right = want >= h->infinity ? CHECK(!good) : CHECK(good) && CHECK_EQ(bits, want);
    if (!right)
        fprintf(stderr, "  %s as %s\n", text, gm_dtype_name(h->dtype));
}

/*
 * For all neighbours: the decimal exactly between them goes to the even one; one unit in some
 * far digit more or less decides. Written plainly, so that long ties go to <charconv>, and
 * where possible with few digits, so that the fast way sees them.
 */
static void test_half_ties(const struct half *h)
{
    for (uint16_t bits = 0; bits < h->infinity; bits++) {
        double low = h->to_f32(bits), high = h->to_f32((uint16_t)(bits + 1));
        if (isinf(high))
            high = low + (low - (double)h->to_f32((uint16_t)(bits - 1)));
        double middle = low + (high - low) / 2;
        unsigned even = bits + (bits & 1u);
        char text[400];

        snprintf(text, sizeof(text), "%.160g", middle); /* exact */
        check_half(h, text, even);
        snprintf(text, sizeof(text), "%.130e", middle);
        check_half(h, text, even);
        char *e = strchr(text, 'e');
        e[-1] = '1'; /* the last of 130 digits, none of which a tie needs */
        check_half(h, text, bits + 1u);

        /* One unit less: 1.25 becomes 1.24999...9 by borrowing. */
        e[-1] = '0';
        for (char *p = e - 1;; p--) {
            if (*p == '.')
                continue;
            if (*p != '0') {
                *p = (char)(*p - 1);
                break;
            }
            *p = '9';
        }
        check_half(h, text, bits);

        snprintf(text, sizeof(text), "%.17g", nextafter(middle, 0));
        check_half(h, text, bits);
        snprintf(text, sizeof(text), "%.17g", nextafter(middle, INFINITY));
        check_half(h, text, bits + 1u);
    }
}

/* How many digits a number's text has, and that they are the fewest. */
static int digits_of(const char *text)
{
    int n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (n > 0 || *text != '0')) {
            n++;
            zeros = *text == '0' ? zeros + 1 : 0;
        }
    return n - zeros;
}

/* The fewest digits that read back, by trying both neighbours of every length. */
static int fewest_digits(const struct half *h, uint16_t bits)
{
    double value = h->to_f32(bits & 0x7FFF);
    for (int digits = 1; digits < 12; digits++) {
        char text[40];
        snprintf(text, sizeof(text), "%.*e", digits - 1, value);
        char *e = strchr(text, 'e');
        long long number = 0;
        for (char *p = text; p < e; p++)
            if (*p != '.')
                number = number * 10 + (*p - '0');
        int exponent = atoi(e + 1) - (digits - 1);
        for (int step = -1; step <= 1; step++) {
            uint16_t back;
            snprintf(text, sizeof(text), "%llde%d", number + step, exponent);
            if (read_as(h->dtype, text, ',', &back) && back == (bits & 0x7FFF))
                return digits;
        }
    }
    return 99;
}

static void test_half_values(const struct half *h)
{
    for (unsigned i = 0; i < 65536; i++) {
        uint16_t bits = (uint16_t)i, back;
        char text[GM_NUMBER_WIDTH_MAX + 1];
        char *end = gm_number_writer_of(h->dtype)(text, &bits);
        if ((bits & 0x7FFF) >= h->infinity) {
            CHECK(end == NULL);
            continue;
        }
        if (!CHECK(end != NULL && end - text < GM_NUMBER_WIDTH_MAX))
            continue;
        *end = '\0';
        CHECK(read_as(h->dtype, text, ',', &back) && back == bits);
        if (bits & 0x7FFF && !CHECK_EQ(digits_of(text), fewest_digits(h, bits)))
            fprintf(stderr, "  %04x is written as %s\n", bits, text);
        CHECK(digits_of(text) <= h->digits);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
        test_half_ties(&halves[i]);
        test_half_values(&halves[i]);
    }
    return check_report();
}
