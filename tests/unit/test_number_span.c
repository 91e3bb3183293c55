/*
 * test_number_span.c - numbers read many at once are those read one by one: the same bits, as many
 * of them, and the next where it begins; in any spelling, among anything else, to the text's very
 * end.
 */
#include "proto/number/number.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096
#define PADDING 8 /* behind a text, as number.h wants */
#define MOST 400

static uint64_t random_state;

static unsigned below(unsigned n)
{
    return (unsigned)(check_random(&random_state) % n);
}

static char *put_digits(char *p, unsigned n)
{
    while (n-- > 0)
        *p++ = (char)('0' + below(10));
    return p;
}

/* A number of any kind, or now and then nothing that is one. */
static char *put_number(char *p)
{
    static const char *const odd[] = {"",      "-",    "01.5",  "1.",    ".5",    "+1",
                                      "1e",    "null", "1e999", "0x1.8", "1.5.2", "1 2.5",
                                      "--0.5", "NaN",  "[1]",   "1_0"};
    unsigned kind = below(64);

    if (kind == 0)
        return stpcpy(p, odd[below(sizeof(odd) / sizeof(odd[0]))]);
    if (below(2))
        *p++ = '-';
    if (kind < 40)
        *p++ = '0';
    else
        p = put_digits(stpcpy(p, "1"), below(kind < 60 ? 4 : 24));
    if (kind % 8 > 0) {
        *p++ = '.';
        p = put_digits(p, 1 + below(kind < 48 ? 10 : 30));
    }
    if (kind % 16 == 1) {
        p += sprintf(p, "e%d", (int)below(80) - 40);
    }
    return p;
}

static char *put_space(char *p)
{
    static const char spaces[] = " \n\r\t";
    unsigned kind = below(12);

    for (unsigned n = kind < 8 ? 0 : kind == 8 ? below(20) : 1; n > 0; n--)
        *p++ = kind < 11 ? ' ' : spaces[below(4)];
    return p;
}

static const char *after_space(const char *p)
{
    while (*p && strchr(" \n\r\t", *p))
        p++;
    return p;
}

/* As the header says it: how many, where the next begins, and what they are. */
static uint64_t one_by_one(gm_number_reader *read, const char **at, uint64_t most, float *out)
{
    uint64_t n = 0;

    while (n < most) {
        const char *end = read(*at, &out[n]);
        if (!end || *(end = after_space(end)) != ',')
            break;
        *at = after_space(end + 1);
        n++;
    }
    return n;
}

static void try_text(const char *begin, size_t len, uint64_t most)
{
    float one[MOST], many[MOST];
    /* Nothing behind the padding is there, nor before the text. */
    char *copy = malloc(len + PADDING);
    memcpy(copy, begin, len);
    memset(copy + len, 0, PADDING);
    struct gm_number_text text = {copy, copy + len};
    const char *at_one = after_space(copy), *at_many = at_one;
    uint64_t wanted = one_by_one(gm_number_reader_of(GM_F32), &at_one, most, one), got = 0, more;

    /* It may stop early where few numbers are plain, and then goes on. */
    gm_number_span *span = gm_number_span_of(GM_F32);
    do {
        more = span(&text, most - got, many + got, &at_many);
        if (more > 0) {
            got += more;
            continue;
        }
        if (got < wanted)
            more = one_by_one(gm_number_reader_of(GM_F32), &at_many, 1, many + got);
        got += more;
    } while (got < wanted && more > 0);
    if (!CHECK_EQ(got, wanted) || !CHECK(at_one == at_many) ||
        !CHECK_EQ(memcmp(one, many, wanted * sizeof(one[0])), 0))
        fprintf(stderr, "  of %.*s\n", (int)len, begin);
    free(copy);
}

/* A thousand plain numbers are one span; of those with exponents it soon has enough. */
static void try_whole_runs(void)
{
    static char plain[16000], others[16000];
    static float out[1000];
    char *p = plain, *o = others;

    for (unsigned i = 0; i < 1000; i++) {
        p += sprintf(p, "%s0.%u, ", i % 3 ? "" : "-", 1234567 + 89 * i);
        o += sprintf(o, "%ue-7, ", 1 + i);
    }
    const struct gm_number_text text = {plain, p}, other = {others, o};
    const char *at = plain;
    CHECK_EQ(gm_number_span_of(GM_F32)(&text, 1000, out, &at), 1000);
    CHECK(at == p);
    at = others;
    uint64_t n = gm_number_span_of(GM_F32)(&other, 1000, out, &at);
    CHECK(n > 0 && n < 100);
}

int main(void)
{
    static char text[TEXT_MAX];
    uint64_t numbers = 0;

    random_state = check_seed();
    for (unsigned round = 0; round < 60000; round++) {
        unsigned n = below(70);
        char *p = put_space(text);
        for (unsigned i = 0; i < n && p < text + TEXT_MAX - 200; i++) {
            p = put_space(put_number(p));
            *p++ = below(100) ? ',' : "];:} "[below(5)];
            p = put_space(p);
        }
        p = put_number(p);
        *p++ = ']';
        p += sprintf(p, "%s", below(2) ? ",1.5,2.5]" : "");
        numbers += n;
        try_text(text, (size_t)(p - text), below(8) ? MOST : below(n + 1));
    }
    CHECK(numbers > 1000000);
    try_whole_runs();
    CHECK(gm_number_span_of(GM_C64) == NULL);
    return check_report();
}
