/*
 * gemmd.h - libgemmd: asks a gemmd daemon for matrix operations, over HTTP, HTTPS or a Unix socket.
 *
 * Matrices go out from the caller's memory or file, and results come into the caller's buffer or
 * the library's; neither is ever held twice. The library prints nothing, ends no process and reads
 * no environment variables. Functions return a status, and fill *err (which may be NULL) only on
 * failure; unless it says otherwise an output is then unchanged.
 *
 * Threads: a client may be used by any number of threads at once. Each call takes a connection
 * from the client's pool, or opens one. gemmd_client_free must be the last call. Calls block.
 *
 * Structures are zero-initialised, so that members that a later version adds have a meaning:
 * `struct gemmd_options options = {.url = "http://gpu-box:8080"};`
 */
#ifndef GEMMD_H
#define GEMMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GEMMD_API __attribute__((visibility("default")))

/* ---- how a call ends ---- */

enum gemmd_status {
    GEMMD_OK,
    GEMMD_BAD_ARGUMENT, /* what the caller gave cannot be used */
    GEMMD_NO_MEMORY,
    GEMMD_NO_CONNECTION, /* nobody listens there, or there is no such host */
    GEMMD_BAD_TLS,       /* no certificate that could be trusted, or no common protocol */
    GEMMD_TIMED_OUT,     /* connect_timeout_ms or timeout_ms passed here */
    GEMMD_BROKEN,        /* the connection ended early */
    GEMMD_REFUSED,       /* the daemon answered with an error: see http, code and detail */
    GEMMD_BAD_REPLY, /* what answers is no gemmd, or one that this library does not understand */
    GEMMD_BAD_FILE,  /* a file or callback of the caller's failed */
    GEMMD_TOO_SMALL, /* the result does not fit in the caller's buffer */
    GEMMD_STOPPED    /* the progress callback said so */
};

struct gemmd_error {
    enum gemmd_status status;
    int http;               /* the reply's HTTP status; 0 if there was none */
    unsigned retry_after_s; /* when to try again; 0 if the daemon did not say */
    char code[48];          /* of the daemon's error, as "bad_shape"; else "" */
    char request_id[72];    /* by which the daemon's log knows the request; else "" */
    char detail[1024];      /* a sentence for people */
};

/* ---- a client ---- */

struct gemmd_client; /* opaque */

struct gemmd_options {
    const char *url;             /* NULL: "http://localhost:8080". Also https://HOST, unix:PATH,
                                    http+unix://%2Frun%2Fgemmd.sock */
    const char *unix_socket;     /* connect to this socket instead of the url's host */
    const char *key;             /* sent as `Authorization: Bearer KEY`; NULL: none */
    const char *ca_file;         /* PEM: trust these for https instead of the system's */
    const char *proxy;           /* URL of an HTTP proxy; NULL: none */
    uint64_t connect_timeout_ms; /* 0: 10 s */
    uint64_t timeout_ms;         /* for each call as a whole; 0: no limit */
};

/* Does not connect yet. Copies the options (NULL: all defaults). */
GEMMD_API enum gemmd_status gemmd_client_new(const struct gemmd_options *options,
                                             struct gemmd_client **ret, struct gemmd_error *err);
GEMMD_API void gemmd_client_free(struct gemmd_client *client); /* NULL is fine */

/* ---- what goes with a call ---- */

/* A parameter of PROTOCOL.md, as {"kernel", "tiled"}. Unknown ones are passed on. */
struct gemmd_parameter {
    const char *name, *value;
};

/* Bytes so far, and in all; a total that is not known is 0. Returns false to stop the call. Called
 * by the calling thread, several times a second. */
struct gemmd_progress {
    uint64_t sent, send_total, received, receive_total;
};
typedef bool gemmd_progress_fn(void *cls, const struct gemmd_progress *progress);

struct gemmd_call {
    const struct gemmd_parameter *parameters;
    size_t parameter_count;
    gemmd_progress_fn *progress; /* or NULL */
    void *progress_cls;
    uint64_t timeout_ms; /* 0: the client's */
};

/* ---- matrices ---- */

/* In the order of PROTOCOL.md; the first six can be computed with. */
enum gemmd_dtype {
    GEMMD_DTYPE_NONE,
    GEMMD_F16,
    GEMMD_BF16,
    GEMMD_F32,
    GEMMD_F64,
    GEMMD_I32,
    GEMMD_I64,
    GEMMD_BOOL,
    GEMMD_I8,
    GEMMD_U8,
    GEMMD_I16,
    GEMMD_U16,
    GEMMD_U32,
    GEMMD_U64,
    GEMMD_C64,
    GEMMD_C128,
    GEMMD_V1,
    GEMMD_V2,
    GEMMD_V4,
    GEMMD_V8,
    GEMMD_V16
};

GEMMD_API size_t gemmd_dtype_size(enum gemmd_dtype dtype);      /* bytes; 0: no type */
GEMMD_API const char *gemmd_dtype_name(enum gemmd_dtype dtype); /* "f32"; NULL: no type */
/* By our name or NumPy's, f32 or float32; GEMMD_DTYPE_NONE if there is none such. */
GEMMD_API enum gemmd_dtype gemmd_dtype_from_name(const char *name);

#define GEMMD_DIMS_MAX 3

/* Dense row-major elements in native byte order. ndim 2: dim[0] rows of dim[1]; 3: a stack of
 * dim[0] such matrices; 1 and 0: one row, one number. `data` stays the caller's and is only read.
 */
struct gemmd_matrix {
    enum gemmd_dtype dtype;
    unsigned ndim;
    uint64_t dim[GEMMD_DIMS_MAX];
    const void *data;
};

/* data NULL at the call: the library allocates it, and gemmd_result_free frees it. Else it is the
 * caller's buffer of `capacity` bytes, and has undefined content after a failure. A result must be
 * freed before it is used again, also one in the caller's buffer: a call overwrites what is the
 * library's. */
struct gemmd_result {
    void *data;
    size_t capacity;
    enum gemmd_dtype dtype;
    unsigned ndim;
    uint64_t dim[GEMMD_DIMS_MAX];
    char *account; /* JSON, see PROTOCOL.md; the library's; NULL if there was none */
    void *owned;   /* the library's */
};

/* op "matmul" etc. on operands a, b, c. `call` may be NULL. */
GEMMD_API enum gemmd_status gemmd_operate(struct gemmd_client *client, const char *op,
                                          const struct gemmd_matrix *operands, size_t count,
                                          const struct gemmd_call *call,
                                          struct gemmd_result *result, struct gemmd_error *err);

/* The same by name. c may be NULL: then the result is alpha * a b, else alpha * a b + beta * c. */
GEMMD_API enum gemmd_status gemmd_transpose(struct gemmd_client *client,
                                            const struct gemmd_matrix *a,
                                            const struct gemmd_call *call,
                                            struct gemmd_result *result, struct gemmd_error *err);
GEMMD_API enum gemmd_status gemmd_flip(struct gemmd_client *client, const struct gemmd_matrix *a,
                                       const struct gemmd_call *call, struct gemmd_result *result,
                                       struct gemmd_error *err);
GEMMD_API enum gemmd_status gemmd_add(struct gemmd_client *client, const struct gemmd_matrix *a,
                                      const struct gemmd_matrix *b, const struct gemmd_call *call,
                                      struct gemmd_result *result, struct gemmd_error *err);
GEMMD_API enum gemmd_status gemmd_matmul(struct gemmd_client *client, const struct gemmd_matrix *a,
                                         const struct gemmd_matrix *b, const struct gemmd_matrix *c,
                                         const struct gemmd_call *call, struct gemmd_result *result,
                                         struct gemmd_error *err);

/* Frees what the library allocated, and clears the rest. */
GEMMD_API void gemmd_result_free(struct gemmd_result *result);

/* A number of an account, by its path, as "us.kernel". false if it is not there. */
GEMMD_API bool gemmd_account_number(const char *account, const char *path, double *ret);
/* A string of it, as "device"; cut to fit. false if it is not there. */
GEMMD_API bool gemmd_account_text(const char *account, const char *path, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
