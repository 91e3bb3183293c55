/*
 * fuzz_params.c - the parameters of a request. Input: the operation, then a query string as the
 * request line gives it, escapes and all. Where the operation's byte has bit 6 set, values may also
 * hold NUL bytes, as members of a JSON body may.
 *
 * Checked: a failure leaves the parameters as they were; a success marks its row as seen, and what
 * is stated again changes nothing; the parameters that were accepted are accepted in the opposite
 * order too, and come to the same; every value is within its bounds, and scalars are strtod's.
 */
#include "server/limits.h"
#include "server/request/params.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <math.h>

struct pair {
    const char *name, *value;
    size_t name_len, value_len;
    bool taken;
};

static int hex(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* In place, as the HTTP library does it; bad escapes stay as they are. */
static size_t unescape(char *text, size_t len, bool nul)
{
    size_t to = 0;
    for (size_t i = 0; i < len; i++, to++) {
        text[to] = text[i] == '+' ? ' ' : text[i];
        if (text[i] != '%' || i + 2 >= len || !isxdigit((unsigned char)text[i + 1]) ||
            !isxdigit((unsigned char)text[i + 2]))
            continue;
        int byte = hex(text[i + 1]) * 16 + hex(text[i + 2]);
        if (byte == 0 && !nul)
            continue;
        text[to] = (char)byte;
        i += 2;
    }
    return to;
}

/* Cuts the query into at most `max` pairs, each in storage of its own. */
static unsigned take_pairs(struct fuzz_input *in, bool nul, struct pair *pairs, unsigned max)
{
    unsigned n = 0;
    while (in->left > 0 && n < max) {
        const uint8_t *end = memchr(in->at, '&', in->left);
        size_t len = end ? (size_t)(end - in->at) : in->left;
        const uint8_t *equals = memchr(in->at, '=', len);
        size_t name_len = equals ? (size_t)(equals - in->at) : len;
        size_t value_len = equals ? len - name_len - 1 : 0;
        char *name = fuzz_alloc(name_len), *value = fuzz_alloc(value_len);
        memcpy(name, in->at, name_len);
        if (equals)
            memcpy(value, equals + 1, value_len);
        pairs[n++] = (struct pair){name, value, unescape(name, name_len, nul),
                                   unescape(value, value_len, nul), false};
        in->at += len + (end != NULL);
        in->left -= len + (end != NULL);
    }
    return n;
}

static enum gm_status set(struct gm_params *params, enum gm_op_kind op, const struct pair *pair,
                          struct gm_error *err)
{
    return gm_params_set(params, op, pair->name, pair->name_len, pair->value, pair->value_len, err);
}

static void check_terminated(const char *field, size_t size)
{
    MUST(memchr(field, '\0', size));
}

static void check_scalar(const struct gm_scalar *scalar)
{
    MUST(isfinite(scalar->real));
    if (scalar->is_integer)
        MUST((double)scalar->integer == scalar->real);
    else
        MUST(scalar->integer == 0);
}

static void check_bounds(const struct gm_params *p)
{
    check_terminated(p->kernel, sizeof p->kernel);
    check_terminated(p->device, sizeof p->device);
    check_terminated(p->format, sizeof p->format);
    MUST(p->dtype < GM_DTYPE_COUNT && p->repeat <= GM_REPEAT_MAX);
    MUST(p->timeout_ms <= GM_TIMEOUT_MS_MAX);
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        MUST(p->shape[i].ndim <= GM_DIMS_MAX);
    check_scalar(&p->op.alpha);
    check_scalar(&p->op.beta);
}

static bool is_named(const struct pair *pair, const char *name)
{
    return pair->name_len == strlen(name) && memcmp(pair->name, name, pair->name_len) == 0;
}

/* What was taken as alpha or beta is the number that the C library reads. */
static void check_value(const struct gm_params *p, const struct pair *pair)
{
    char *value = fuzz_string(pair->value, pair->value_len), *end;
    double number = strtod(value, &end);
    bool alpha = is_named(pair, "alpha");
    if (alpha || is_named(pair, "beta"))
        MUST(*end == '\0' && end > value && (alpha ? p->op.alpha : p->op.beta).real == number);
    if (is_named(pair, "repeat"))
        MUST(p->repeat == strtoull(value, NULL, 10) && p->repeat > 0);
    if (is_named(pair, "dtype"))
        MUST(strcmp(gm_dtype_name(p->dtype), value) == 0);
    free(value);
}

/* Sets one pair; marks it where it was taken. */
static void try_pair(struct gm_params *params, enum gm_op_kind op, struct pair *pair)
{
    struct gm_params before;
    struct gm_error err = {0};

    uint64_t bit = 0;
    struct gm_error unknown = {0};

    memcpy(&before, params, sizeof before);
    enum gm_status status = set(params, op, pair, &err);
    enum gm_status found = gm_params_find(op, pair->name, pair->name_len, &bit, &unknown);
    MUST(found == GM_OK ? __builtin_popcountll(bit) == 1 : bit == 0);
    if (found != GM_OK)
        MUST(status == found && strcmp(err.detail, unknown.detail) == 0);
    if (status != GM_OK) {
        fuzz_check_error(status, &err);
        MUST(status == GM_UNKNOWN_PARAMETER || status == GM_BAD_PARAMETER);
        MUST(memcmp(&before, params, sizeof before) == 0);
        return;
    }
    MUST(params->seen == (before.seen | bit));
    pair->taken = true;
    check_value(params, pair);
    check_bounds(params);
    memcpy(&before, params, sizeof before);
    MUST(set(params, op, pair, &err) == GM_OK);
    MUST(memcmp(&before, params, sizeof before) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    bool nul = len > 0 && bytes[0] & 0x40;
    enum gm_op_kind op = (enum gm_op_kind)fuzz_choice(&in, GM_OP_COUNT);
    struct pair pairs[GM_QUERY_PARAMETERS_MAX];
    struct gm_params params, reversed;
    unsigned n = take_pairs(&in, nul, pairs, GM_QUERY_PARAMETERS_MAX);

    memset(&params, 0, sizeof params);
    memset(&reversed, 0, sizeof reversed);
    for (unsigned i = 0; i < n; i++)
        try_pair(&params, op, &pairs[i]);
    for (unsigned i = n; i-- > 0;) {
        struct gm_error err = {0};
        if (pairs[i].taken)
            MUST_SAY(set(&reversed, op, &pairs[i], &err) == GM_OK, "%s", err.detail);
    }
    MUST(memcmp(&params, &reversed, sizeof params) == 0);
    for (unsigned i = 0; i < n; i++) {
        free((char *)pairs[i].name);
        free((char *)pairs[i].value);
    }
    return 0;
}
