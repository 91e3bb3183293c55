/*
 * status.h - the one list of outcomes of a request. The enum, the stable code of a problem
 * document, its HTTP status and its title are made from it. A new error is one row here.
 */
#ifndef GM_PROTO_STATUS_H
#define GM_PROTO_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, HTTP status, stable code, title). The code is part of the wire contract. */
#define GM_STATUS_LIST(X)                                                                          \
    X(OK, 200, "ok", "OK")                                                                         \
    X(BAD_REQUEST, 400, "bad_request", "The request is malformed")                                 \
    X(BAD_LENGTH, 400, "bad_length", "The body's length is stated twice or wrongly")               \
    X(BAD_PARAMETER, 400, "bad_parameter", "A parameter's value is not one it can have")           \
    X(UNKNOWN_PARAMETER, 400, "unknown_parameter", "There is no such parameter")                   \
    X(BAD_JSON, 400, "bad_json", "The body is not the JSON this takes")                            \
    X(BAD_CSV, 400, "bad_csv", "The body is not the CSV this takes")                               \
    X(BAD_NPY, 400, "bad_npy", "The body is not a well-formed NPY file")                           \
    X(BAD_MULTIPART, 400, "bad_multipart", "The body is not well-formed multipart/form-data")      \
    X(BAD_EXPRESSION, 400, "bad_expression", "The expression cannot be read")                      \
    X(BODY_TRUNCATED, 400, "body_truncated", "The body ends before its matrix does")               \
    X(BODY_TRAILING, 400, "body_trailing", "The body goes on after its last matrix")               \
    X(UPLOAD_TIMEOUT, 408, "upload_timeout", "The request came too slowly")                        \
    X(UNAUTHORIZED, 401, "unauthorized", "A key is needed")                                        \
    X(FORBIDDEN, 403, "forbidden", "This key may not do that")                                     \
    X(CROSS_ORIGIN, 403, "cross_origin", "A page of another origin may not ask")                   \
    X(UNKNOWN_HOST, 403, "unknown_host", "This machine has no such name")                          \
    X(NOT_ALLOWED, 403, "not_allowed", "This daemon does not allow it")                            \
    X(NOT_FOUND, 404, "not_found", "There is nothing at this path")                                \
    X(METHOD_NOT_ALLOWED, 405, "method_not_allowed", "This path does not take this method")        \
    X(NOT_ACCEPTABLE, 406, "not_acceptable", "No format named by Accept can be written")           \
    X(REGION_CONFLICT, 409, "region_conflict", "The shared memory is not as the request has it")   \
    X(PRECONDITION_FAILED, 412, "precondition_failed", "The matrix is not as the request has it")  \
    X(LENGTH_REQUIRED, 411, "length_required", "A body is needed")                                 \
    X(BODY_TOO_LARGE, 413, "body_too_large", "The body is larger than the limit")                  \
    X(TOO_LARGE, 413, "too_large", "The request can never fit in the memory limit")                \
    X(UNSUPPORTED_MEDIA_TYPE, 415, "unsupported_media_type", "The body's format is not known")     \
    X(QUOTA_EXCEEDED, 429, "quota_exceeded", "The quota is used up")                               \
    X(HEAD_TOO_LARGE, 431, "head_too_large", "Request line and headers are too large")             \
    X(BAD_SHAPE, 422, "bad_shape", "The shapes do not fit together")                               \
    X(BAD_DTYPE, 422, "bad_dtype", "The element type does not fit")                                \
    X(OUT_OF_RANGE, 422, "out_of_range", "A number does not fit the element type")                 \
    X(MISSING_OPERAND, 422, "missing_operand", "An operand is missing")                            \
    X(EXTRA_OPERAND, 422, "extra_operand", "There is an operand too many")                         \
    X(KERNEL_UNAVAILABLE, 422, "kernel_unavailable", "That kernel cannot run this")                \
    X(DEVICE_UNAVAILABLE, 422, "device_unavailable", "There is no such device here")               \
    X(NONFINITE_IN_JSON, 422, "nonfinite_in_json", "JSON cannot carry NaN or infinity")            \
    X(CANNOT_ENCODE, 422, "cannot_encode", "The result cannot be written in this format")          \
    X(COST_LIMIT, 422, "cost_limit", "The request costs more than one request may")                \
    X(INTERNAL, 500, "internal", "gemmd made a mistake")                                           \
    X(KERNEL_FAULT, 500, "kernel_fault", "The kernel did what no kernel may do")                   \
    X(QUEUE_FULL, 503, "queue_full", "The queue is full")                                          \
    X(MEMORY_FULL, 503, "memory_full", "The memory for requests is in use")                        \
    X(DRAINING, 503, "draining", "gemmd is shutting down")                                         \
    X(DEADLINE, 503, "deadline_passed", "The request's time ran out")                              \
    X(DEVICE_MEMORY, 503, "device_memory", "The device ran out of memory")                         \
    X(DEVICE_LOST, 503, "device_lost", "The device has failed")                                    \
    X(CANCELLED, 503, "cancelled", "The client went away")                                         \
    X(STORAGE_FULL, 507, "storage_full", "There is no room to keep this")

enum gm_status {
#define X(name, http, code, title) GM_##name,
    GM_STATUS_LIST(X)
#undef X
        GM_STATUS_COUNT
};

/* Long enough for a sentence that says what was wrong and what is allowed. */
#define GM_ERROR_DETAIL_MAX 512

/* An error message for people. Set only on failure; success leaves it unchanged. */
struct gm_error {
    enum gm_status status;
    unsigned at; /* the character of an expression, from 1; 0: it is about none */
    char detail[GM_ERROR_DETAIL_MAX];
};

int gm_status_http(enum gm_status status);
const char *gm_status_code(enum gm_status status);
const char *gm_status_title(enum gm_status status);

/*
 * Sets *err (which may be NULL) and returns status, so that a failing function can end with `return
 * gm_fail(err, GM_BAD_SHAPE, "a is %s, ...", ...)`. A client's text is cut to fit and stays valid
 * UTF-8: control characters and broken sequences become '?'.
 */
enum gm_status gm_fail(struct gm_error *err, enum gm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Distance between a mistyped word and a right one, for messages that suggest it. */

/* Of longer words only the beginning is compared. */
#define GM_WORD_MAX 64

/* Levenshtein distance: characters to change, add or remove. */
size_t gm_edit_distance(const char *from, size_t from_len, const char *to);

/* Whether one may be a mistyping of the other: at least half of the longer one is right. */
bool gm_is_near(const char *from, size_t from_len, const char *to);

#ifdef __cplusplus
}
#endif
#endif
