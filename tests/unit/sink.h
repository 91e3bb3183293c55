/*
 * sink.h - a sink for codec tests: keeps operands in storage of exactly their size, so that
 * a sanitizer sees every byte written beyond it, and parameters as text.
 */
#ifndef GM_TESTS_UNIT_SINK_H
#define GM_TESTS_UNIT_SINK_H

#include "proto/codec.h"
#include "tests/unit/check.h"

#define SINK_PARAMETERS_MAX 40

struct sink {
    struct gm_decode_plan plan;
    bool present[GM_OPERANDS_MAX];
    struct gm_matrix operand[GM_OPERANDS_MAX];
    unsigned parameters;
    struct {
        char name[300], value[300];
    } parameter[SINK_PARAMETERS_MAX];
    bool late_parameter;           /* one came after an operand: against the contract */
    bool take_dtype;               /* a parameter dtype changes the plan, as a server's would */
    enum gm_status refuse_operand; /* unless GM_OK */
    const char *refuse_parameter;  /* the name of one to be refused, or NULL */
    uint64_t largest_bytes;        /* operands of more are refused with GM_TOO_LARGE */
};

static inline enum gm_status sink_operand(void *cls, unsigned index, const struct gm_matrix *matrix,
                                          void **ret_data, struct gm_error *err)
{
    struct sink *sink = cls;
    if (sink->refuse_operand != GM_OK)
        return gm_fail(err, sink->refuse_operand, "refused by the test");
    uint64_t bytes = gm_matrix_bytes(matrix);
    if (bytes > sink->largest_bytes)
        return gm_fail(err, GM_TOO_LARGE, "%" PRIu64 " bytes", bytes);
    if (!CHECK(index < sink->plan.operands_max && !sink->present[index]))
        return gm_fail(err, GM_INTERNAL, "operand %u twice or too many", index);
    void *data = NULL;
    if (!CHECK(posix_memalign(&data, 64, bytes ? bytes : 1) == 0))
        abort();
    memset(data, 0xA5, bytes);
    sink->present[index] = true;
    sink->operand[index] = *matrix;
    sink->operand[index].data = data;
    *ret_data = data;
    return GM_OK;
}

static inline enum gm_status sink_parameter(void *cls, const char *name, size_t name_len,
                                            const char *value, size_t value_len,
                                            struct gm_error *err)
{
    struct sink *sink = cls;
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        sink->late_parameter |= sink->present[i];
    if (!CHECK(sink->parameters < SINK_PARAMETERS_MAX && name_len < 300 && value_len < 300))
        return gm_fail(err, GM_INTERNAL, "too much for the test's sink");
    char *to = sink->parameter[sink->parameters].name;
    memcpy(to, name, name_len);
    to[name_len] = '\0';
    if (sink->refuse_parameter && strcmp(to, sink->refuse_parameter) == 0)
        return gm_fail(err, GM_UNKNOWN_PARAMETER, "refused by the test");
    if (sink->take_dtype && strcmp(to, "dtype") == 0)
        sink->plan.dtype = gm_dtype_from_name(value, value_len);
    to = sink->parameter[sink->parameters++].value;
    memcpy(to, value, value_len);
    to[value_len] = '\0';
    return GM_OK;
}

static inline void sink_init(struct sink *sink, unsigned operands_max)
{
    memset(sink, 0, sizeof(*sink));
    sink->largest_bytes = UINT64_C(1) << 30;
    sink->plan.operands_max = operands_max;
    sink->plan.body_bytes = GM_SIZE_UNKNOWN;
    sink->plan.sink.operand = sink_operand;
    sink->plan.sink.parameter = sink_parameter;
    sink->plan.sink.cls = sink;
}

/* Forgets what was found; the plan stays. */
static inline void sink_clear(struct sink *sink)
{
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        if (sink->present[i])
            free(sink->operand[i].data);
        sink->present[i] = false;
    }
    sink->parameters = 0;
    sink->late_parameter = false;
}

#endif
