/*
 * operate.c - matrices in memory to a result in memory. They travel as raw elements: nothing is
 * converted on the way, the shapes and the type are parameters, and those of the result headers.
 */
#include "clients/c/lib/internal.h"
#include "proto/matrix.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "raw elements are little-endian"
#endif

#define OPERANDS_MAX 3
#define RAW "application/octet-stream"

/* The types, in the one list's order; gemmd.h, which stands alone, repeats their names. */
static const struct {
    const char *name, *numpy;
    size_t size;
} dtypes[] = {[GEMMD_DTYPE_NONE] = {NULL, NULL, 0},
#define X(name, text, numpy, bytes, kind) [GEMMD_##name] = {text, numpy, bytes},
              GM_DTYPE_LIST(X)
#undef X
};
#define X(name, ...)                                                                               \
    _Static_assert((int)GEMMD_##name == (int)GM_##name, "gemmd.h has the order of the list");
GM_DTYPE_LIST(X)
#undef X
#define DTYPE_COUNT (sizeof dtypes / sizeof *dtypes)

size_t gemmd_dtype_size(enum gemmd_dtype dtype)
{
    return (size_t)dtype < DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *gemmd_dtype_name(enum gemmd_dtype dtype)
{
    return (size_t)dtype < DTYPE_COUNT ? dtypes[dtype].name : NULL;
}

enum gemmd_dtype gemmd_dtype_from_name(const char *name)
{
    for (size_t i = 1; i < DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0 || strcmp(dtypes[i].numpy, name) == 0)
            return (enum gemmd_dtype)i;
    return GEMMD_DTYPE_NONE;
}

/* ---- operands ---- */

/* false where the bytes cannot be counted. */
static bool bytes_of(enum gemmd_dtype dtype, unsigned ndim, const uint64_t *dim, uint64_t *ret)
{
    uint64_t bytes = gemmd_dtype_size(dtype);
    bool empty = false;

    for (unsigned i = 0; i < ndim; i++) {
        if (dim[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(bytes, dim[i], &bytes) || bytes > INT64_MAX)
            return false;
    }
    *ret = empty ? 0 : bytes;
    return true;
}

static void shape_text(const struct gemmd_matrix *matrix, char out[GM_SHAPE_TEXT_MAX])
{
    const uint64_t *dim = matrix->dim;

    switch (matrix->ndim) {
    case 0:
        snprintf(out, GM_SHAPE_TEXT_MAX, "1x1");
        break;
    case 1:
        snprintf(out, GM_SHAPE_TEXT_MAX, "1x%" PRIu64, dim[0]);
        break;
    case 2:
        snprintf(out, GM_SHAPE_TEXT_MAX, "%" PRIu64 "x%" PRIu64, dim[0], dim[1]);
        break;
    default:
        snprintf(out, GM_SHAPE_TEXT_MAX, "%" PRIu64 "x%" PRIu64 "x%" PRIu64, dim[0], dim[1],
                 dim[2]);
    }
}

/* The request's own parameters, before those of the caller. */
struct outgoing {
    char path[64];
    char shape[OPERANDS_MAX][GM_SHAPE_TEXT_MAX];
    struct gemmd_source source[OPERANDS_MAX];
    struct gemmd_parameter *parameters;
    struct gemmd_call call;
};

static enum gemmd_status add_operand(struct outgoing *out, size_t i,
                                     const struct gemmd_matrix *matrix, enum gemmd_dtype dtype,
                                     struct gemmd_error *err)
{
    static const char *const names[OPERANDS_MAX] = {"shape_a", "shape_b", "shape_c"};
    char operand = (char)('a' + i);
    uint64_t bytes;

    if (!gemmd_dtype_name(matrix->dtype) || matrix->ndim > GEMMD_DIMS_MAX)
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT,
                              "%c has no element type, or more than three dimensions", operand);
    if (matrix->dtype != dtype)
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT, "a is %s and %c is %s: they must agree",
                              gemmd_dtype_name(dtype), operand, gemmd_dtype_name(matrix->dtype));
    if (!bytes_of(matrix->dtype, matrix->ndim, matrix->dim, &bytes) || (bytes > 0 && !matrix->data))
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT, "%c has no elements, or too many", operand);
    shape_text(matrix, out->shape[i]);
    out->source[i] = (struct gemmd_source){
        .type = RAW, .origin = GEMMD_FROM_MEMORY, .data = matrix->data, .size = bytes};
    out->parameters[i] = (struct gemmd_parameter){names[i], out->shape[i]};
    return GEMMD_OK;
}

/* Fills out; its parameters are to be freed, also after a failure. */
static enum gemmd_status prepare(struct outgoing *out, const char *op,
                                 const struct gemmd_matrix *operands, size_t count,
                                 const struct gemmd_call *call, struct gemmd_error *err)
{
    size_t more = call ? call->parameter_count : 0;

    if (count < 1 || count > OPERANDS_MAX)
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT, "an operation has 1 to 3 operands");
    if (!*op || strspn(op, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(op) ||
        strlen(op) > 32)
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT, "that is no operation's name");
    out->parameters = calloc(count + 1 + more, sizeof *out->parameters);
    if (!out->parameters)
        return gm_client_fail(err, GEMMD_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++) {
        enum gemmd_status status = add_operand(out, i, &operands[i], operands[0].dtype, err);
        if (status != GEMMD_OK)
            return status;
    }
    out->parameters[count] = (struct gemmd_parameter){"dtype", gemmd_dtype_name(operands[0].dtype)};
    for (size_t i = 0; i < more; i++)
        out->parameters[count + 1 + i] = call->parameters[i];
    if (call)
        out->call = *call;
    out->call.parameters = out->parameters;
    out->call.parameter_count = count + 1 + more;
    snprintf(out->path, sizeof out->path, "/v1/%s", op);
    return GEMMD_OK;
}

/* ---- the result ---- */

struct incoming {
    struct gemmd_result result;
    uint64_t bytes, at;
};

static bool read_shape(const char *text, struct gemmd_result *result)
{
    result->ndim = 0;
    do {
        char *end;
        if (result->ndim == GEMMD_DIMS_MAX || *text < '0' || *text > '9')
            return false;
        result->dim[result->ndim++] = strtoull(text, &end, 10);
        text = end;
    } while (*text == 'x' && text++);
    return *text == '\0';
}

static enum gemmd_status begin(void *cls, const struct gm_reply_head *head, struct gemmd_error *err)
{
    struct incoming *in = cls;
    struct gemmd_result *result = &in->result;

    result->dtype = gemmd_dtype_from_name(head->dtype);
    if (result->dtype == GEMMD_DTYPE_NONE || !read_shape(head->shape, result) ||
        !bytes_of(result->dtype, result->ndim, result->dim, &in->bytes) ||
        (head->body_bytes != GEMMD_SIZE_UNKNOWN && head->body_bytes != in->bytes))
        return gm_client_fail(err, GEMMD_BAD_REPLY,
                              "the reply is no matrix: what answers there is no gemmd, or a newer "
                              "one");
    if (result->data) {
        if (in->bytes > result->capacity)
            return gm_client_fail(err, GEMMD_TOO_SMALL,
                                  "the result is %s %s, of %" PRIu64 " bytes; the buffer has %zu",
                                  head->shape, head->dtype, in->bytes, result->capacity);
        return GEMMD_OK;
    }
    /* Never NULL, aligned for any use of the elements. */
    result->capacity = ((size_t)in->bytes + 64) & ~(size_t)63;
    result->data = result->owned = aligned_alloc(64, result->capacity);
    if (!result->data)
        return gm_client_fail(err, GEMMD_NO_MEMORY,
                              "there is no memory for a result of %" PRIu64 " bytes", in->bytes);
    return GEMMD_OK;
}

static enum gemmd_status receive(void *cls, const void *bytes, size_t len, struct gemmd_error *err)
{
    struct incoming *in = cls;

    if (len > in->bytes - in->at)
        return gm_client_fail(err, GEMMD_BAD_REPLY, "the reply has more elements than its shape");
    memcpy((char *)in->result.data + in->at, bytes, len);
    in->at += len;
    return GEMMD_OK;
}

enum gemmd_status gemmd_operate(struct gemmd_client *client, const char *op,
                                const struct gemmd_matrix *operands, size_t count,
                                const struct gemmd_call *call, struct gemmd_result *result,
                                struct gemmd_error *err)
{
    struct outgoing out = {0};
    struct incoming in = {.result = {.data = result->data, .capacity = result->capacity}};
    struct gm_taker taker = {begin, receive, &in};
    struct gm_reply_head head = {0};
    enum gemmd_status status = prepare(&out, op, operands, count, call, err);

    if (status == GEMMD_OK) {
        struct gemmd_request request = {.path = out.path,
                                        .accept = RAW,
                                        .sources = out.source,
                                        .source_count = count,
                                        .call = &out.call};
        status = gm_client_exchange(client, &request, &taker, &head, err);
    }
    free(out.parameters);
    if (status == GEMMD_OK && in.at != in.bytes)
        status = gm_client_fail(err, GEMMD_BAD_REPLY, "the reply ends before its last element");
    if (status != GEMMD_OK) {
        free(in.result.owned);
        free(head.account);
        return status;
    }
    *result = in.result;
    result->account = head.account;
    return GEMMD_OK;
}

enum gemmd_status gemmd_transpose(struct gemmd_client *client, const struct gemmd_matrix *a,
                                  const struct gemmd_call *call, struct gemmd_result *result,
                                  struct gemmd_error *err)
{
    return gemmd_operate(client, "transpose", a, 1, call, result, err);
}

enum gemmd_status gemmd_flip(struct gemmd_client *client, const struct gemmd_matrix *a,
                             const struct gemmd_call *call, struct gemmd_result *result,
                             struct gemmd_error *err)
{
    return gemmd_operate(client, "flip", a, 1, call, result, err);
}

enum gemmd_status gemmd_add(struct gemmd_client *client, const struct gemmd_matrix *a,
                            const struct gemmd_matrix *b, const struct gemmd_call *call,
                            struct gemmd_result *result, struct gemmd_error *err)
{
    return gemmd_operate(client, "add", (struct gemmd_matrix[]){*a, *b}, 2, call, result, err);
}

enum gemmd_status gemmd_matmul(struct gemmd_client *client, const struct gemmd_matrix *a,
                               const struct gemmd_matrix *b, const struct gemmd_matrix *c,
                               const struct gemmd_call *call, struct gemmd_result *result,
                               struct gemmd_error *err)
{
    struct gemmd_matrix operands[OPERANDS_MAX] = {*a, *b};

    if (c)
        operands[2] = *c;
    return gemmd_operate(client, "matmul", operands, c ? 3 : 2, call, result, err);
}

void gemmd_result_free(struct gemmd_result *result)
{
    free(result->owned);
    free(result->account);
    *result = (struct gemmd_result){0};
}

/* ---- the account ---- */

/* The member at a path, as "us.kernel"; NULL if there is none. *ret_root is to be released. */
static const json_t *member(const char *account, const char *path, json_t **ret_root)
{
    const json_t *value = *ret_root = account ? json_loads(account, 0, NULL) : NULL;
    char name[64];

    while (value && *path) {
        size_t len = strcspn(path, ".");
        if (len >= sizeof name)
            return NULL;
        memcpy(name, path, len);
        name[len] = '\0';
        value = json_object_get(value, name);
        path += len + (path[len] == '.');
    }
    return value;
}

bool gemmd_account_number(const char *account, const char *path, double *ret)
{
    json_t *root;
    const json_t *value = member(account, path, &root);
    bool found = json_is_number(value);

    if (found)
        *ret = json_number_value(value);
    json_decref(root);
    return found;
}

bool gemmd_account_text(const char *account, const char *path, char *out, size_t size)
{
    json_t *root;
    const char *text = json_string_value(member(account, path, &root));

    if (text)
        snprintf(out, size, "%s", text);
    json_decref(root);
    return text;
}
