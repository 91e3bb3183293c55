/* Inference requests and replies of the Open Inference Protocol v2: what is read, what is refused
 * and in which words, and what is written. */
#include "proto/kserve/kserve.h"
#include "tests/unit/check.h"

#define TENSOR(name, rest) "{\"name\":\"" name "\",\"shape\":[1,2],\"datatype\":\"FP32\"," rest "}"
#define DATA "\"data\":[1,2]"
#define INPUTS(list) "{\"inputs\":[" list "]}"
#define WITH(rest) "{\"inputs\":[" TENSOR("A", DATA) "]," rest "}"
#define OUT(rest) WITH("\"outputs\":[" rest "]")
#define PARAMETERS(list) "\"parameters\":{" list "}"

static char told[512]; /* parameters that were handed on: "name=value;" */

static enum gm_status on_parameter(void *cls, const char *name, size_t name_len, const char *value,
                                   size_t value_len, struct gm_error *err)
{
    size_t len = strlen(told);

    (void)cls;
    if (name_len == 6 && memcmp(name, "refuse", 6) == 0)
        return gm_fail(err, GM_UNKNOWN_PARAMETER, "refused");
    snprintf(told + len, sizeof told - len, "%.*s=%.*s;", (int)name_len, name, (int)value_len,
             value);
    return GM_OK;
}

static enum gm_status read_for(const char *text, unsigned operands, enum gm_dtype dtype,
                               struct gm_kserve_request *ret, struct gm_error *err)
{
    static char padded[8192];
    const struct gm_kserve_plan plan = {"matmul", operands, dtype, on_parameter, NULL};
    size_t len = strlen(text);

    told[0] = '\0';
    memset(padded, 'x', sizeof padded);
    memcpy(padded, text, len);
    return gm_kserve_read(padded, len, &plan, ret, err);
}

static const struct {
    const char *text;
    enum gm_status status;
    const char *part; /* of the message */
} bad[] = {
    {"", GM_BAD_JSON, "JSON object"},
    {" \n", GM_BAD_JSON, "JSON object"},
    {"[1]", GM_BAD_JSON, "JSON object"},
    {"{", GM_BAD_JSON, "does not end"},
    {"{}", GM_MISSING_OPERAND, "no input A"},
    {"{}{}", GM_BAD_JSON, "after the end"},
    {"{\"inputs\":[]}", GM_MISSING_OPERAND, "no input A"},
    {"{\"inputs\":{}}", GM_BAD_JSON, "inputs is an array"},
    {"{\"inputs\":[1]}", GM_BAD_JSON, "an input is an object"},
    {"{\"inputs\":[{}]}", GM_BAD_JSON, "has no name"},
    {"{\"inputs\":[{}{}]}", GM_BAD_JSON, NULL},
    {"{\"input\":[]}", GM_BAD_JSON, "not \"input\""},
    {"{\"id\":7}", GM_BAD_JSON, "id is a string"},
    {"{\"id\":\"a\\u0000b\"}", GM_BAD_JSON, "zero character"},
    {INPUTS(TENSOR("X", DATA)), GM_EXTRA_OPERAND, "'X'; matmul takes A and B"},
    {INPUTS(TENSOR("AB", DATA)), GM_EXTRA_OPERAND, "'AB'"},
    {INPUTS(TENSOR("C", DATA)), GM_EXTRA_OPERAND, "takes A and B"},
    {INPUTS(TENSOR("A", DATA) "," TENSOR("A", DATA)), GM_EXTRA_OPERAND, "two inputs A"},
    {INPUTS(TENSOR("B", DATA)), GM_MISSING_OPERAND, "no input A"},
    {INPUTS("{\"name\":\"A\",\"datatype\":\"FP32\",\"data\":[1]}"), GM_BAD_JSON, "no shape"},
    {INPUTS("{\"name\":\"A\",\"shape\":[1],\"data\":[1]}"), GM_BAD_JSON, "no datatype"},
    {INPUTS("{\"name\":\"A\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[1]}"), GM_BAD_DTYPE,
     "BYTES"},
    {INPUTS("{\"name\":\"A\",\"shape\":[1],\"datatype\":\"fp32\",\"data\":[1]}"), GM_BAD_DTYPE,
     "fp32"},
    {INPUTS("{\"name\":\"A\",\"shape\":[-1],\"datatype\":\"FP32\",\"data\":[1]}"), GM_BAD_SHAPE,
     "whole numbers"},
    {INPUTS("{\"name\":\"A\",\"shape\":[1,1,1,1],\"datatype\":\"FP32\",\"data\":[1]}"),
     GM_BAD_SHAPE, "up to 3"},
    {INPUTS("{\"name\":\"A\",\"shape\":[4611686018427387904,4],\"datatype\":\"FP32\","
            "\"parameters\":{\"binary_data_size\":0}}"),
     GM_BAD_SHAPE, NULL},
    {INPUTS(TENSOR("A", "\"data\":[1,2,3]")), GM_BAD_SHAPE, "data is 1x3"},
    {INPUTS(TENSOR("A", "\"data\":[[1],[2]]")), GM_BAD_SHAPE, "data is 2x1"},
    {INPUTS(TENSOR("A", "\"data\":\"x\"")), GM_BAD_JSON, "array of numbers"},
    {INPUTS(TENSOR("A", "\"more\":1")), GM_BAD_JSON, "not \"more\""},
    {INPUTS(TENSOR("A", "\"parameters\":{}")), GM_BAD_PARAMETER, "in one of them"},
    {INPUTS(TENSOR("A", DATA "," PARAMETERS("\"binary_data_size\":8"))), GM_BAD_PARAMETER,
     "in one of them"},
    {INPUTS(TENSOR("A", PARAMETERS("\"binary_data_size\":7"))), GM_BAD_SHAPE,
     "takes 8 bytes; binary_data_size says 7"},
    {INPUTS(TENSOR("A", PARAMETERS("\"binary_data_size\":-8"))), GM_BAD_PARAMETER, "whole number"},
    {INPUTS(TENSOR("A", PARAMETERS("\"binary_data_size\":\"8\""))), GM_BAD_PARAMETER,
     "whole number"},
    {INPUTS(TENSOR("A", PARAMETERS("\"binary_data_size\":18446744073709551616"))), GM_BAD_PARAMETER,
     "whole number"},
    {INPUTS(TENSOR("A", PARAMETERS("\"binary\":8"))), GM_UNKNOWN_PARAMETER, "'binary'"},
    {INPUTS(TENSOR("A", PARAMETERS("\"shared_memory_region\":\"\""))), GM_BAD_PARAMETER, "1 to"},
    {INPUTS(TENSOR("A", PARAMETERS("\"shared_memory_region\":1"))), GM_BAD_PARAMETER, "1 to"},
    {INPUTS(TENSOR("A", PARAMETERS("\"shared_memory_region\":\"r\","
                                   "\"shared_memory_byte_size\":9"))),
     GM_BAD_SHAPE, "shared_memory_byte_size says 9"},
    {WITH("\"parameters\":[]"), GM_BAD_JSON, "parameters is an object"},
    {WITH(PARAMETERS("\"alpha\":[]")), GM_BAD_JSON, "a string, a number"},
    {WITH(PARAMETERS("\"alpha\":null")), GM_BAD_JSON, "a string, a number"},
    {WITH(PARAMETERS("\"refuse\":1")), GM_UNKNOWN_PARAMETER, "refused"},
    {WITH(PARAMETERS("\"binary_data_output\":1")), GM_BAD_PARAMETER, "true or false"},
    {WITH(PARAMETERS("\"timeout\":\"1\"")), GM_BAD_PARAMETER, "microseconds"},
    {WITH(PARAMETERS("\"priority\":\"high\"")), GM_BAD_PARAMETER, "a number"},
    {WITH(PARAMETERS("\"sequence_id\":4")), GM_BAD_PARAMETER, "stands alone"},
    {OUT("{\"name\":\"D\"}"), GM_BAD_PARAMETER, "'D'; matmul has C alone"},
    {OUT("{}"), GM_BAD_PARAMETER, "C alone"},
    {OUT("{\"name\":\"C\"},{\"name\":\"C\"}"), GM_BAD_PARAMETER, "twice"},
    {OUT("{\"name\":\"C\",\"shape\":[1]}"), GM_BAD_JSON, "not \"shape\""},
    {OUT("{\"name\":\"C\"," PARAMETERS("\"classification\":3") "}"), GM_BAD_PARAMETER,
     "classification is not supported"},
    {OUT("{\"name\":\"C\"," PARAMETERS("\"binary_data\":1") "}"), GM_BAD_PARAMETER,
     "true or false"},
    {OUT("{\"name\":\"C\"," PARAMETERS("\"binary_data_size\":1") "}"), GM_UNKNOWN_PARAMETER,
     "an output has"},
    {OUT("{\"name\":\"C\"," PARAMETERS("\"shared_memory_region\":\"r\"") "}"), GM_BAD_PARAMETER,
     "shared_memory_byte_size"},
};

static void test_bad(void)
{
    struct gm_kserve_request request;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct gm_error error = {0};
        enum gm_status status = read_for(bad[i].text, 2, GM_DTYPE_NONE, &request, &error);
        if (!CHECK_STATUS(status, bad[i].status, &error) ||
            !CHECK(!bad[i].part || strstr(error.detail, bad[i].part)))
            fprintf(stderr, "  of %s: %s\n", bad[i].text, error.detail);
    }
}

static void test_places(void)
{
    struct gm_kserve_request q;
    struct gm_error error;
    float data[2] = {0};
    uint64_t bytes = 0;

    CHECK_STATUS(
        read_for(
            "{\"id\":\"a\\\"\\u00e9\",\"outputs\":[{\"name\":\"C\"}],\"inputs\":["
            "{\"name\":\"B\",\"shape\":[2,2,3],\"datatype\":\"INT64\"," PARAMETERS(
                "\"bina"
                "ry_"
                "data_"
                "size\""
                ":96") "}," TENSOR("A", "\"data\":[[1.5,-2]]") ","
                                                               "{\"name\":\"C\",\"shape\":[3],"
                                                               "\"datatype\":"
                                                               "\"BF16\"," PARAMETERS(
                                                                   "\"shared_memory_region\":"
                                                                   "\"r\",\"shared_memory_"
                                                                   "offset\":64") "}]"
                                                                                  "," PARAMETERS(
                                                                                      "\"binary"
                                                                                      "_data_"
                                                                                      "output\""
                                                                                      ":true,"
                                                                                      "\"timeou"
                                                                                      "t\":"
                                                                                      "1500,"
                                                                                      "\"priori"
                                                                                      "ty\":1,"
                                                                                      "\"kernel"
                                                                                      "\":"
                                                                                      "\"tiled"
                                                                                      "\","
                                                                                      "\"transa"
                                                                                      "\":true,"
                                                                                      "\"alpha"
                                                                                      "\":-2."
                                                                                      "5e1") "}",
            3, GM_DTYPE_NONE, &q, &error),
        GM_OK, &error);
    CHECK(q.has_id);
    CHECK_STR(q.id, "a\"\xc3\xa9");
    CHECK_EQ(q.inputs, 3);
    CHECK(q.order[0] == 1 && q.order[1] == 0 && q.order[2] == 2);
    CHECK(q.input[0].place == GM_KSERVE_JSON && q.input[0].matrix.dtype == GM_F32);
    CHECK(q.input[1].place == GM_KSERVE_BINARY && q.input[1].matrix.dtype == GM_I64);
    CHECK(q.input[1].matrix.stacked && q.input[1].matrix.batch == 2 && q.input[1].matrix.cols == 3);
    CHECK(q.input[2].place == GM_KSERVE_REGION && q.input[2].matrix.rows == 1);
    CHECK_STR(q.input[2].part.region, "r");
    CHECK(q.input[2].part.offset == 64 && q.input[2].part.bytes == 6);
    CHECK(q.output == GM_KSERVE_BINARY);
    CHECK_STR(told, "timeout_ms=2;kernel=tiled;transa=true;alpha=-2.5e1;");
    CHECK_STATUS(gm_kserve_read_data(&q, 0, data, &error), GM_OK, &error);
    CHECK(data[0] == 1.5f && data[1] == -2.0f);
    CHECK_STATUS(gm_kserve_binary_bytes(&q, &bytes, &error), GM_OK, &error);
    CHECK_EQ(bytes, 96);
}

static void test_outputs(void)
{
    static const struct {
        const char *text;
        enum gm_kserve_place output;
    } rows[] = {
        {INPUTS(TENSOR("A", DATA)), GM_KSERVE_JSON},
        {WITH("\"outputs\":[]"), GM_KSERVE_JSON},
        {WITH("\"outputs\":[]," PARAMETERS("\"binary_data_output\":true")), GM_KSERVE_BINARY},
        {WITH("\"parameters\":null"), GM_KSERVE_JSON},
        {OUT("{\"name\":\"C\",\"parameters\":null}"), GM_KSERVE_JSON},
        {OUT("{\"name\":\"C\"," PARAMETERS("\"binary_data\":true") "}"), GM_KSERVE_BINARY},
        {WITH("\"outputs\":[{\"name\":\"C\"," PARAMETERS("\"binary_data\":false") "}]," PARAMETERS(
             "\"binary_data_output\":true")),
         GM_KSERVE_JSON},
        {OUT("{\"name\":\"C\"," PARAMETERS(
             "\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":8") "}"),
         GM_KSERVE_REGION},
    };
    struct gm_kserve_request q;
    struct gm_error error;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_STATUS(read_for(rows[i].text, 1, GM_F32, &q, &error), GM_OK, &error);
        CHECK_EQ(q.output, rows[i].output);
        CHECK(gm_kserve_codec(q.output)->carries_stats);
    }
    CHECK(q.output_part.offset == 0 && q.output_part.bytes == 8);
    CHECK_STATUS(read_for(rows[0].text, 1, GM_F16, &q, &error), GM_BAD_DTYPE, &error);
    CHECK(strstr(error.detail, "FP32") && strstr(error.detail, "FP16"));
    /* Numbers that the type cannot hold are found when they are read. */
    CHECK_STATUS(read_for("{\"inputs\":[{\"name\":\"A\",\"shape\":[1],\"datatype\":\"UINT8\","
                          "\"data\":[256]}]}",
                          1, GM_DTYPE_NONE, &q, &error),
                 GM_OK, &error);
    CHECK_STATUS(gm_kserve_read_data(&q, 0, told, &error), GM_OUT_OF_RANGE, &error);
}

static void test_regions(void)
{
    static const char base64[] = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v"
                                 "MDEyMzQ1Njc4OTo7PD0+Pw==";
    struct gm_kserve_region region;
    struct gm_error error;
    char text[256];

#define REGION(text, on_device)                                                                    \
    gm_kserve_read_region(text, strlen(text), on_device, &region, &error)
    CHECK_STATUS(REGION("{\"key\":\"/k\",\"offset\":4096,\"byte_size\":64}    ", false), GM_OK,
                 &error);
    CHECK_STR(region.key, "/k");
    CHECK(region.offset == 4096 && region.bytes == 64 && !region.on_device);
    snprintf(text, sizeof text,
             "{\"raw_handle\":{\"b64\":\"%s\"},\"device_id\":1,\"byte_size\":64}        ", base64);
    CHECK_STATUS(REGION(text, true), GM_OK, &error);
    for (unsigned i = 0; i < GM_CUDA_HANDLE_BYTES; i++)
        CHECK_EQ(region.handle[i], i);
    CHECK(region.on_device && region.device == 1);
    CHECK_STATUS(REGION(text, false), GM_BAD_JSON, &error);
    text[30] = '?';
    CHECK_STATUS(REGION(text, true), GM_BAD_JSON, &error);
    CHECK_STATUS(REGION("{\"byte_size\":64}        ", false), GM_BAD_JSON, &error);
    CHECK_STATUS(REGION("{\"key\":\"/k\"}        ", false), GM_BAD_JSON, &error);
    CHECK_STATUS(REGION("{\"key\":\"\",\"byte_size\":1}        ", false), GM_BAD_JSON, &error);
    CHECK_STATUS(REGION("{\"key\":\"a\\u0000b\",\"byte_size\":1}       ", false), GM_BAD_JSON,
                 &error);
    CHECK_STATUS(REGION("{\"key\":\"/k\",\"byte_size\":-1}        ", false), GM_BAD_JSON, &error);
    CHECK_STATUS(REGION("{\"raw_handle\":{},\"byte_size\":1}        ", true), GM_BAD_JSON, &error);
    CHECK_STATUS(REGION("[]        ", false), GM_BAD_JSON, &error);
}

static void test_write(void)
{
    const struct gm_encode_options strict = {0}, lax = {.nonfinite_null = true};
    float elements[6] = {1, 2.5f, -3, 4, 5, 6};
    struct gm_matrix m = {GM_F32, GM_ROW_MAJOR, true, 1, 2, 3, elements};
    struct gm_error error;
    char out[1024];
    uint64_t len = 0, bound = 0;
    size_t head_len = 0;

    CHECK_STATUS(gm_codec_kserve_json.encode_bound(&m, &bound, &error), GM_OK, &error);
    CHECK(bound <= sizeof out);
    CHECK_STATUS(gm_codec_kserve_json.encode(&m, &strict, out, sizeof out, &len, &error), GM_OK,
                 &error);
    out[len] = '\0';
    CHECK_STR(out, "{\"outputs\":[{\"name\":\"C\",\"datatype\":\"FP32\",\"shape\":[1,2,3],"
                   "\"data\":[1,2.5,-3,4,5,6]}]");
    CHECK_STATUS(gm_codec_kserve_json.encode(&m, &strict, out, 8, &len, &error), GM_INTERNAL,
                 &error);
    CHECK_STATUS(gm_codec_kserve_binary.head(&m, out, &head_len, &error), GM_OK, &error);
    out[head_len] = '\0';
    CHECK_STR(out, "{\"outputs\":[{\"name\":\"C\",\"datatype\":\"FP32\",\"shape\":[1,2,3],"
                   "\"parameters\":{\"binary_data_size\":24}}]");
    bound = 0;
    CHECK_STATUS(gm_codec_kserve_region.encode_bound(&m, &bound, &error), GM_OK, &error);
    CHECK(bound > 0 && bound <= sizeof out);
    CHECK_STATUS(gm_codec_kserve_region.encode(&m, &strict, out, bound - 1, &len, &error),
                 GM_INTERNAL, &error);
    CHECK_STATUS(gm_codec_kserve_region.encode(&m, &strict, out, bound, &len, &error), GM_OK,
                 &error);
    out[len] = '\0';
    CHECK_STR(out, "{\"outputs\":[{\"name\":\"C\",\"datatype\":\"FP32\",\"shape\":[1,2,3]}]");

    elements[1] = 1.0f / 0.0f;
    CHECK_STATUS(gm_codec_kserve_json.encode(&m, &strict, out, sizeof out, &len, &error),
                 GM_NONFINITE_IN_JSON, &error);
    CHECK(strstr(error.detail, "element 1 of C"));
    CHECK_STATUS(gm_codec_kserve_json.encode(&m, &lax, out, sizeof out, &len, &error), GM_OK,
                 &error);
    CHECK(memmem(out, len, "[1,null,-3", 10));
    m = (struct gm_matrix){GM_BOOL, GM_ROW_MAJOR, false, 1, 0, 7, elements};
    CHECK_STATUS(gm_codec_kserve_json.encode(&m, &strict, out, sizeof out, &len, &error), GM_OK,
                 &error);
    CHECK(memmem(out, len, "\"shape\":[0,7],\"data\":[]}]", 25));
    m.dtype = GM_C64;
    CHECK_STATUS(gm_codec_kserve_binary.head(&m, out, &head_len, &error), GM_CANNOT_ENCODE, &error);
    m = (struct gm_matrix){GM_F64, GM_ROW_MAJOR, false, 1, UINT64_C(1) << 60, 1, elements};
    CHECK_STATUS(gm_codec_kserve_json.encode_bound(&m, &bound, &error), GM_TOO_LARGE, &error);
}

static void test_datatypes(void)
{
    for (unsigned i = 1; i < GM_DTYPE_COUNT; i++) {
        const char *name = gm_kserve_datatype((enum gm_dtype)i);
        bool opaque = i >= GM_C64;
        CHECK(!name == opaque);
        if (name)
            CHECK_EQ(gm_kserve_dtype(name, strlen(name)), i);
    }
    CHECK_EQ(gm_kserve_dtype("FP3", 3), GM_DTYPE_NONE);
}

int main(void)
{
    test_bad();
    test_places();
    test_outputs();
    test_regions();
    test_write();
    test_datatypes();
    return check_report();
}
