/*
 * request_bench.h - requests driven as http.c drives them, without any HTTP library: a server on
 * the faulty device, and connections that only count how they are suspended and resumed.
 */
#ifndef GM_TESTS_UNIT_REQUEST_BENCH_H
#define GM_TESTS_UNIT_REQUEST_BENCH_H

#include "server/request/request.h"
#include "tests/unit/faulty_backend.h"

#include <pthread.h>

#define JSON "application/json"
#define NPY "application/x-npy"
#define RAW "application/octet-stream"
#define TRANSPOSE .path = "/v1/transpose"
#define MATMUL .path = "/v1/matmul"

#define BENCH_PREFIX "/gemmd-bench-" /* of shared memory that may be registered */

/* What a client sends before the body. */
struct ask {
    const char *method; /* NULL: POST */
    const char *path, *query, *type, *accept, *encoding, *traceparent, *request_id;
    const char *infer_header; /* Inference-Header-Content-Length */
    const char *if_match, *if_none_match;
    bool chunked;
    uint64_t stated; /* Content-Length, where it is not what the body has */
};

/* One connection with one request on it. */
struct exchange {
    struct gm_request *request;
    unsigned index;
    pthread_mutex_t mutex;
    pthread_cond_t resumed;
    unsigned suspends, resumes;
    atomic_bool half_closed, closed; /* by its client */
    char query[256];
};

extern struct gm_server bench_server;
/* The faulty backend, or another one; and one beside it; NULL, as it is at first: none. Set before
 * bench_open. */
extern const struct gm_backend *bench_first, *bench_second;

/* Checks that no request holds anything, or is there. */
void bench_check_all_returned(void);

/* A server with nothing to do. bench_close also checks that nothing of any request is left. */
void bench_open(uint64_t memory_limit, unsigned streams);
/* The same, with a device that counts accesses and times nothing. */
void bench_open_counting(uint64_t memory_limit);
void bench_close(void);

/* The headers have come; an error that they tell is in the reply. */
void bench_begin(struct exchange *x, const struct ask *ask, uint64_t body_len);
/* The body comes in pieces of this size at most, until it is not wanted any more. */
void bench_push(struct exchange *x, const void *body, uint64_t len, uint64_t piece);
/* The body is complete. Whether the reply is there; else the request is with somebody else. */
bool bench_advance(struct exchange *x);
/* Waits until it is resumed, which is once, and has the reply. */
void bench_finish(struct exchange *x);
/* The reply is sent, or the connection gone. */
void bench_end(struct exchange *x);

/* All of that up to the reply: begin, push, advance, finish. */
void bench_serve(struct exchange *x, const struct ask *ask, const void *body, uint64_t len,
                 uint64_t piece);

/* The reply's status, and the code of its problem document; prints it where it is another. */
bool bench_expect(const struct exchange *x, int http, const char *code);
/* The reply's only header of that name; NULL if there is none. */
const char *bench_header(const struct exchange *x, const char *name);
/* Waits until so many runs are in progress on the device. */
bool bench_wait_running(unsigned n);

#endif
