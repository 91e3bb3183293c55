/*
 * The heads of NPY files: every way a dict can be wrong, versions and lengths, what curl -d
 * leaves of a file, byte orders and element types.
 */
#include "tests/unit/codec_input.h"

/* An NPY file with this dict, and `data` zero bytes behind it. */
static size_t make_file(char *out, unsigned major, const char *dict, size_t dict_len, size_t data)
{
    size_t at = 8;
    memcpy(out, "\x93NUMPY\x01", 8);
    out[6] = (char)major;
    for (unsigned i = 0; i < (major == 1 ? 2u : 4u); i++)
        out[at++] = (char)(dict_len >> 8 * i);
    memcpy(out + at, dict, dict_len);
    at += dict_len;
    memset(out + at, 0, data);
    return at + data;
}

struct header_case {
    const char *dict; /* the newline is added */
    enum gm_status status;
    const char *part; /* of the message */
};

#define DICT(descr, order, shape)                                                                  \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "}"
#define SHAPE(shape) DICT("'<f4'", "False", shape)
#define DESCR(descr) DICT(descr, "False", "(1, 2)")

static const struct header_case headers[] = {
    {SHAPE("(1, 2)"), GM_OK, NULL},
    {SHAPE("(1, 2), "), GM_OK, NULL},
    {SHAPE("(1,2,)"), GM_OK, NULL},
    {SHAPE("( 1 , 2 )  "), GM_OK, NULL},
    {SHAPE("(2,)"), GM_OK, NULL},
    {SHAPE("(1L, 2L)"), GM_OK, NULL},
    {"  {\"descr\":\"<f4\",\"shape\":(2,),\"fortran_order\":True}   ", GM_OK, NULL},
    {"{'shape':(1,2),\t'fortran_order':False,\n'descr':'<f4',\n}", GM_OK, NULL},
    {"", GM_BAD_NPY, "{"},
    {"{}", GM_BAD_NPY, "descr"},
    {"{'descr': '<f4', 'fortran_order': False}", GM_BAD_NPY, "'shape'"},
    {"{'descr': '<f4', 'shape': (1, 2)}", GM_BAD_NPY, "'fortran_order'"},
    {"{'fortran_order': False, 'shape': (1, 2)}", GM_BAD_NPY, "'descr'"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", GM_BAD_NPY,
     "twice"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), 'x': 1}", GM_BAD_NPY, "unknown"},
    {"{'Descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", GM_BAD_NPY, "'Descr'"},
    {"{'desc\\162': '<f4', 'fortran_order': False, 'shape': (1, 2)}", GM_BAD_NPY, "a key"},
    {"{descr: '<f4', 'fortran_order': False, 'shape': (1, 2)}", GM_BAD_NPY, "a key"},
    {"{, 'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", GM_BAD_NPY, "a key"},
    {"{'descr': '<f4',, 'fortran_order': False, 'shape': (1, 2)}", GM_BAD_NPY, "a key"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (1, 2)}", GM_BAD_NPY, "a comma"},
    {"{'descr' '<f4', 'fortran_order': False, 'shape': (1, 2)}", GM_BAD_NPY, "a colon"},
    {"{'descr': '<f4, 'fortran_order': False, 'shape': (1, 2)}", GM_BAD_DTYPE, NULL},
    {"{'descr': '<f4", GM_BAD_NPY, "descr"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)", GM_BAD_NPY, "a comma"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2", GM_BAD_NPY, "a comma"},
    {SHAPE("(1, 2)") " x", GM_BAD_NPY, "nothing"},
    {SHAPE("(1, 2)") "}", GM_BAD_NPY, "nothing"},
    {"[" SHAPE("(1, 2)") "]", GM_BAD_NPY, "{"},
    {DICT("'<f4'", "false", "(1, 2)"), GM_BAD_NPY, "True or False"},
    {DICT("'<f4'", "1", "(1, 2)"), GM_BAD_NPY, "True or False"},
    {DICT("'<f4'", "Truely", "(1, 2)"), GM_BAD_NPY, "comma"},
    {SHAPE("2"), GM_BAD_NPY, "tuple"},
    {SHAPE("(2)"), GM_BAD_NPY, "tuple"},
    {SHAPE("[1, 2]"), GM_BAD_NPY, "tuple"},
    {SHAPE("(1 2)"), GM_BAD_NPY, "comma"},
    {SHAPE("(1,,2)"), GM_BAD_NPY, "a size"},
    {SHAPE("(,)"), GM_BAD_NPY, "a size"},
    {SHAPE("(-1, 2)"), GM_BAD_NPY, "negative"},
    {SHAPE("(+1, 2)"), GM_BAD_NPY, "a size"},
    {SHAPE("(1.0, 2)"), GM_BAD_NPY, "comma"},
    {SHAPE("(01, 2)"), GM_BAD_NPY, "a size"},
    {SHAPE("(1_0, 2)"), GM_BAD_NPY, "comma"},
    {SHAPE("(0x1, 2)"), GM_BAD_NPY, "comma"},
    {SHAPE("('1', 2)"), GM_BAD_NPY, "a size"},
    {SHAPE("(None, 2)"), GM_BAD_NPY, "a size"},
    {SHAPE("(1LL, 2)"), GM_BAD_NPY, "comma"},
    {SHAPE("(1, 1, 1, 2)"), GM_BAD_SHAPE, "4 dimensions"},
    {SHAPE("(1, 1, 1, 1, 1, 1, 1, 2)"), GM_BAD_SHAPE, "8 dimensions"},
    {SHAPE("(18446744073709551616, 2)"), GM_BAD_SHAPE, "64 bits"},
    {SHAPE("(99999999999999999999999999, 0)"), GM_BAD_SHAPE, "64 bits"},
    {SHAPE("(4294967296, 4294967296)"), GM_BAD_SHAPE, "63-bit"},
    {SHAPE("(18446744073709551615, 1)"), GM_BAD_SHAPE, "63-bit"},
    {SHAPE("(2305843009213693952, 1)"), GM_BAD_SHAPE, "63-bit"},
    {SHAPE("(0, 4294967296, 4294967296)"), GM_BAD_SHAPE, "63-bit"},
    {DESCR("'|O'"), GM_BAD_DTYPE, "objects"},
    {DESCR("'O'"), GM_BAD_DTYPE, "objects"},
    {DESCR("'<U5'"), GM_BAD_DTYPE, "text"},
    {DESCR("'|S8'"), GM_BAD_DTYPE, "text"},
    {DESCR("'<M8[ns]'"), GM_BAD_DTYPE, ".view('i8')"},
    {DESCR("'<m8[s]'"), GM_BAD_DTYPE, ".view('i8')"},
    {DESCR("'<M8'"), GM_BAD_DTYPE, ".view('i8')"},
    {DESCR("[('x', '<f4'), ('y', '<f4')]"), GM_BAD_DTYPE, ".view('V8')"},
    {DESCR("('<f4', (2,))"), GM_BAD_DTYPE, ".view('V8')"},
    {DESCR("'|V3'"), GM_BAD_DTYPE, "16 bytes"},
    {DESCR("'|V32'"), GM_BAD_DTYPE, "16 bytes"},
    {DESCR("'|V0'"), GM_BAD_DTYPE, "16 bytes"},
    {DESCR("'<f16'"), GM_BAD_DTYPE, ".astype('f8')"},
    {DESCR("'<c32'"), GM_BAD_DTYPE, ".astype('c16')"},
    {DESCR("'<f3'"), GM_BAD_DTYPE, NULL},
    {DESCR("'<i16'"), GM_BAD_DTYPE, NULL},
    {DESCR("'<f'"), GM_BAD_DTYPE, NULL},
    {DESCR("'<'"), GM_BAD_DTYPE, NULL},
    {DESCR("''"), GM_BAD_DTYPE, NULL},
    {DESCR("'<f4x'"), GM_BAD_DTYPE, NULL},
    {DESCR("'<f4 '"), GM_BAD_DTYPE, NULL},
    {DESCR("' <f4'"), GM_BAD_DTYPE, NULL},
    {DESCR("'<f18446744073709551620'"), GM_BAD_DTYPE, NULL},
    {DESCR("'!f4'"), GM_BAD_DTYPE, NULL},
    {DESCR("'<x4'"), GM_BAD_DTYPE, NULL},
    {DESCR("'<f4\\n'"), GM_BAD_NPY, "descr"},
    {DESCR("None"), GM_BAD_NPY, "descr"},
    {DESCR("4"), GM_BAD_NPY, "descr"},
};

static void check_header(const char *dict, size_t len, unsigned major, size_t data,
                         enum gm_status want, const char *part)
{
    char body[1024];
    size_t n = make_file(body, major, dict, len, data);
    for (int known = 0; known < 2; known++)
        for (size_t step = 0; step < 2; step++) {
            struct sink sink;
            struct gm_error err = {0};
            sink_init(&sink, 1);
            sink.plan.body_bytes = known ? n : GM_SIZE_UNKNOWN;
            enum gm_status status = sink_stream(&sink, &gm_codec_npy, body, n, step, step, &err);
            if (!CHECK_STATUS(status, want, &err) ||
                (part && !CHECK(strstr(err.detail, part) != NULL)))
                fprintf(stderr, "  %.*s -> %s\n", (int)len, dict, err.detail);
            CHECK_EQ(sink.present[0], want == GM_OK);
            sink_clear(&sink);
        }
}

static void test_headers(void)
{
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        for (unsigned major = 1; major <= 3; major++) {
            char dict[512];
            size_t len = (size_t)snprintf(dict, sizeof(dict), "%s\n", headers[i].dict);
            bool python2 = strstr(headers[i].dict, "1L,") != NULL && major == 3;
            check_header(dict, len, major, 8, python2 ? GM_BAD_NPY : headers[i].status,
                         python2 ? NULL : headers[i].part);
            if (headers[i].status == GM_OK && !python2) /* without its newline */
                check_header(dict, len - 1, major, 8, GM_BAD_NPY, "--data-binary");
        }

    /* No prefix and no single change of a header may crash or be misread as another size. */
    const char dict[] = DICT("'<f4'", "False", "(1, 2)") "\n";
    for (size_t len = 0; len < sizeof(dict) - 1; len++) {
        char cut[sizeof(dict)];
        memcpy(cut, dict, len);
        cut[len] = '\n';
        check_header(cut, len + 1, 1, 8, len == sizeof(dict) - 2 ? GM_OK : GM_BAD_NPY, NULL);
    }
    for (size_t at = 0; at < sizeof(dict) - 1; at++)
        for (int c = 0; c < 256; c++) {
            char body[256], changed[sizeof(dict)];
            memcpy(changed, dict, sizeof(dict));
            changed[at] = (char)c;
            size_t n = make_file(body, 1, changed, sizeof(dict) - 1, 8);
            struct sink sink;
            struct gm_error err = {0};
            sink_init(&sink, 1);
            sink.plan.body_bytes = n;
            if (sink_stream(&sink, &gm_codec_npy, body, n, 0, 0, &err) == GM_OK)
                CHECK_EQ(gm_matrix_bytes(&sink.operand[0]), 8);
            sink_clear(&sink);
        }
}

static void test_prefixes(void)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum gm_status status;
        const char *part;
    } cases[] = {
        {"", 0, GM_BODY_TRUNCATED, "--data-binary"},
        {"{\"a\":[[1,2]]}", 13, GM_BAD_NPY, "begin"},
        {"\x93NUMPX\x01\0v\0{'de", 14, GM_BAD_NPY, "begin"},
        {"\x93NUMPY\0\0v\0{'de", 14, GM_BAD_NPY, "0.0"},
        {"\x93NUMPY\x04\0v\0{'de", 14, GM_BAD_NPY, "4.0"},
        {"\x93NUMPY\x01\x01v\0{'de", 14, GM_BAD_NPY, "1.1"},
        /* What curl -d leaves of a file: no newlines, no NUL bytes. */
        {"\x93NUMPY\x01v{'descr': '<f4', 'fo", 26, GM_BAD_NPY, "--data-binary"},
        {"\x93NUMPY\x01", 7, GM_BODY_TRUNCATED, "--data-binary"},
        {"\x93NUMPY\x01\0\x11\x27 {'descr': ", 20, GM_BAD_NPY, "10001"},
        {"\x93NUMPY\x02\0\0\0\0\x80 {'descr': ", 22, GM_BAD_NPY, "2147483648"},
        {"\x93NUMPY\x03\0\xFF\xFF\xFF\xFF {'descr': ", 22, GM_BAD_NPY, "4294967295"},
        {"\x93NUMPY\x01\0\x10\x27 {'descr': ", 20, GM_BODY_TRUNCATED, "--data-binary"},
        {"\x93NUMPY\x01\0\0\0xxxxx", 15, GM_BAD_NPY, "newline"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int known = 0; known < 2; known++)
            for (size_t step = 0; step < 4; step++) {
                struct sink sink;
                struct gm_error err = {0};
                sink_init(&sink, 1);
                sink.plan.body_bytes = known ? cases[i].len : GM_SIZE_UNKNOWN;
                enum gm_status status = sink_stream(&sink, &gm_codec_npy, cases[i].bytes,
                                                    cases[i].len, step, step, &err);
                if (!CHECK_STATUS(status, cases[i].status, &err) ||
                    !CHECK(strstr(err.detail, cases[i].part) != NULL))
                    fprintf(stderr, "  prefix %zu: %s\n", i, err.detail);
            }

    /* A header as long as is allowed. */
    static char body[GM_TEXT_PADDING + 10100], dict[10000];
    memset(dict, ' ', sizeof(dict));
    memcpy(dict, SHAPE("(1, 2)"), strlen(SHAPE("(1, 2)")));
    dict[sizeof(dict) - 1] = '\n';
    for (size_t step = 0; step < 3000; step += 999) {
        struct sink sink;
        struct gm_error err = {0};
        sink_init(&sink, 1);
        size_t n = make_file(body, 1, dict, sizeof(dict), 8);
        CHECK_STATUS(sink_stream(&sink, &gm_codec_npy, body, n, step, step, &err), GM_OK, &err);
        sink_clear(&sink);
    }
}

/* Byte orders and the dtype that the request asks for. */
static void test_dtypes(void)
{
    static const struct {
        const char *descr;
        enum gm_dtype asked, dtype; /* GM_DTYPE_NONE: GM_BAD_DTYPE */
        bool swapped;
    } cases[] = {
        {"<f4", GM_DTYPE_NONE, GM_F32, false},  {"=f4", GM_F32, GM_F32, false},
        {"|f4", GM_F32, GM_F32, false},         {"f4", GM_F32, GM_F32, false},
        {">f4", GM_F32, GM_F32, true},          {"<f4", GM_F64, GM_DTYPE_NONE, false},
        {"<f2", GM_BF16, GM_DTYPE_NONE, false}, {"|V2", GM_BF16, GM_BF16, false},
        {"<V2", GM_BF16, GM_BF16, false},       {"|V2", GM_V2, GM_V2, false},
        {"|V2", GM_DTYPE_NONE, GM_V2, false},   {">V2", GM_DTYPE_NONE, GM_V2, false},
        {"|V2", GM_F16, GM_DTYPE_NONE, false},  {">V8", GM_DTYPE_NONE, GM_V8, false},
        {"<V4", GM_V8, GM_DTYPE_NONE, false},   {"|b1", GM_BOOL, GM_BOOL, false},
        {">b1", GM_BOOL, GM_BOOL, false},       {"|b1", GM_U8, GM_DTYPE_NONE, false},
        {"|u1", GM_DTYPE_NONE, GM_U8, false},   {"<i8", GM_U64, GM_DTYPE_NONE, false},
        {">c16", GM_C128, GM_C128, true},       {">u2", GM_U16, GM_U16, true},
        {"<c8", GM_DTYPE_NONE, GM_C64, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char dict[200], body[400];
        size_t len = (size_t)snprintf(dict, sizeof(dict),
                                      "{'descr': '%s', 'fortran_order': False, 'shape': (1,)}\n",
                                      cases[i].descr);
        enum gm_dtype held = cases[i].dtype ? cases[i].dtype : GM_C128;
        size_t size = gm_dtype_size(held);
        size_t n = make_file(body, 1, dict, len, size);
        for (size_t b = 0; b < size; b++)
            body[n - size + b] = (char)(b + 1);
        struct sink sink;
        struct gm_error err = {0};
        sink_init(&sink, 1);
        sink.plan.dtype = cases[i].asked;
        enum gm_status status = sink_stream(&sink, &gm_codec_npy, body, n, 0, 1, &err);
        bool good = cases[i].dtype != GM_DTYPE_NONE;
        if (!CHECK_STATUS(status, good ? GM_OK : GM_BAD_DTYPE, &err))
            fprintf(stderr, "  descr %s\n", cases[i].descr);
        if (good && sink.present[0]) {
            const unsigned char *data = sink.operand[0].data;
            size_t unit = held == GM_C128 ? 8 : size;
            CHECK_EQ(sink.operand[0].dtype, cases[i].dtype);
            for (size_t b = 0; b < size; b++)
                CHECK_EQ(data[b], cases[i].swapped ? b - b % unit + unit - b % unit : b + 1);
        }
        sink_clear(&sink);
    }
}

int main(void)
{
    test_headers();
    test_prefixes();
    test_dtypes();
    return check_report();
}
