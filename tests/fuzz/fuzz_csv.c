/*
 * fuzz_csv.c - CSV texts. Input: which operand it is, the dtype asked for, the text.
 *
 * Checked: what lies behind the text never matters; no more elements are asked for than the text
 * can hold. What is accepted is accepted with a byte order mark, with CR LF for LF and with a last
 * line end too, as the same matrix; cut at its separators by the C library, it has the same numbers
 * (as f64, where all of it is plain numbers); and written as CSV again it reads back the same, bit
 * for bit, but for the payloads of NaN.
 */
#include "proto/number/number.h"
#include "tests/fuzz/fuzz_sink.h"

static void decode_said(struct fuzz_sink *sink, unsigned index, enum gm_dtype dtype,
                        const char *text, size_t len, char filler, enum gm_header header)
{
    fuzz_sink_init(sink, FUZZ_OPERANDS_ALL, dtype);
    sink->plan.header = header;
    sink->plan.operand_first = index;
    sink->elements_max = len / 2 + 1;
    fuzz_decode(sink, &gm_codec_csv, text, len, filler);
    MUST(sink->parameters == 0);
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        MUST(!sink->present[i] || i == index);
}

static void decode(struct fuzz_sink *sink, unsigned index, enum gm_dtype dtype, const char *text,
                   size_t len, char filler)
{
    decode_said(sink, index, dtype, text, len, filler, GM_HEADER_TELLS);
}

static void check_header(const struct fuzz_sink *sink, unsigned index, enum gm_dtype dtype,
                         const char *text, size_t len)
{
    struct fuzz_sink absent, present;

    decode_said(&absent, index, dtype, text, len, '7', GM_HEADER_ABSENT);
    decode_said(&present, index, dtype, text, len, '7', GM_HEADER_PRESENT);
    if (absent.status == GM_OK)
        fuzz_sink_must_agree(sink, &absent);
    else if (sink->status == GM_OK)
        fuzz_sink_must_agree(sink, &present);
    fuzz_sink_clear(&absent);
    fuzz_sink_clear(&present);
}

/* The same text as other programs would have written it. */
static void check_spelling(const struct fuzz_sink *sink, unsigned index, const char *text,
                           size_t len, bool mark, bool carriage, bool end)
{
    struct fuzz_sink other;
    char *copy = fuzz_alloc(2 * len + 5), *p = copy;

    if (mark)
        p = stpcpy(p, "\xEF\xBB\xBF");
    for (size_t i = 0; i < len; i++) {
        if (carriage && text[i] == '\n')
            *p++ = '\r';
        *p++ = text[i];
    }
    if (end)
        *p++ = '\n';
    decode(&other, index, sink->plan.dtype, copy, (size_t)(p - copy), ' ');
    fuzz_sink_must_agree(sink, &other);
    fuzz_sink_clear(&other);
    free(copy);
}

/* The next number as strtod reads it, behind blanks and separators; false at the end. */
static bool next_number(const char **at, char separator, double *ret)
{
    const char *p = *at;
    char *end;
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r' || *p == separator)
        p++;
    if (!*p)
        return false;
    *ret = strtod(p, &end);
    MUST_SAY(end > p, "no number: %.40s", p);
    *at = end;
    return true;
}

/* Whether all fields are numbers in digits: no header, no words, one kind of separator. */
static bool is_plain(const char *text)
{
    char before = '\n';
    for (const char *p = text; *p; before = *p++)
        if (!strchr("0123456789+-.eE,; \t\r\n", *p) ||
            ((*p | 0x20) == 'e' && !strchr("0123456789.", before)))
            return false;
    return !(strchr(text, ',') && strchr(text, ';'));
}

/* Against the C library, where it is clear what is a field. */
static void check_numbers(const struct fuzz_sink *sink, const char *text, size_t len)
{
    const struct gm_matrix *m = &sink->operand[sink->plan.operand_first];
    const double *at = m->data;

    if (m->dtype != GM_F64 || memchr(text, '\0', len))
        return;
    char *copy = fuzz_string(text, len);
    const char *p = copy;
    if (is_plain(copy)) {
        char separator = strchr(copy, ';') ? ';' : ',';
        uint64_t count = 0;
        double number;
        for (; next_number(&p, separator, &number); count++) {
            MUST(count < gm_matrix_elements(m));
            MUST_SAY(memcmp(&at[count], &number, sizeof number) == 0, "%a, strtod reads %a",
                     at[count], number);
        }
        MUST(count == gm_matrix_elements(m));
    }
    free(copy);
}

/* NaN has no payload in text: any becomes the same one. */
static void forget_payloads(struct gm_matrix *m)
{
    static const struct {
        uint64_t infinity, nan;
    } bits[GM_DTYPE_COUNT] = {[GM_F16] = {0x7C00, 0x7E00},
                              [GM_BF16] = {0x7F80, 0x7FC0},
                              [GM_F32] = {0x7F800000, 0x7FC00000},
                              [GM_F64] = {0x7FF0000000000000, 0x7FF8000000000000}};
    uint64_t n = gm_matrix_elements(m), size = gm_dtype_size(m->dtype);
    for (uint64_t i = 0; bits[m->dtype].nan && i < n; i++) {
        uint64_t value = 0, magnitude = UINT64_MAX >> (65 - 8 * size);
        memcpy(&value, (char *)m->data + i * size, size);
        if ((value & magnitude) > bits[m->dtype].infinity)
            memcpy((char *)m->data + i * size, &bits[m->dtype].nan, size);
    }
}

static void check_round_trip(struct fuzz_sink *sink)
{
    struct gm_matrix *m = &sink->operand[sink->plan.operand_first];
    struct gm_encode_options options = {0};
    struct fuzz_sink again;
    uint64_t bound, len;

    if (gm_matrix_elements(m) == 0)
        return;
    MUST(gm_codec_csv.encode_bound(m, &bound, NULL) == GM_OK);
    char *text = fuzz_alloc(bound);
    MUST(gm_codec_csv.encode(m, &options, text, bound, &len, NULL) == GM_OK && len <= bound);
    decode(&again, sink->plan.operand_first, sink->plan.dtype, text, len, '\0');
    free(text);
    if (again.status == GM_OK)
        forget_payloads(&again.operand[sink->plan.operand_first]);
    forget_payloads(m);
    fuzz_sink_must_agree(sink, &again);
    fuzz_sink_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    unsigned index = fuzz_choice(&in, GM_OPERANDS_MAX);
    enum gm_dtype dtype = (enum gm_dtype)fuzz_choice(&in, GM_DTYPE_COUNT);
    const char *text = (const char *)in.at;
    struct fuzz_sink sink, other;

    decode(&sink, index, dtype, text, in.left, '7');
    decode(&other, index, dtype, text, in.left, ',');
    fuzz_sink_must_agree(&sink, &other);
    fuzz_sink_clear(&other);
    check_header(&sink, index, dtype, text, in.left);
    if (sink.status == GM_OK) {
        bool quotes = memchr(text, '"', in.left), carriages = memchr(text, '\r', in.left);
        bool marked = in.left >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;
        check_spelling(&sink, index, text, in.left, !marked, false, false);
        if (!carriages && !quotes)
            check_spelling(&sink, index, text, in.left, false, true, true);
        check_numbers(&sink, text, in.left);
        check_round_trip(&sink);
    }
    fuzz_sink_clear(&sink);
    return 0;
}
