/*
 * account.h - the account: where a request's time went, and how close its kernel came to the
 * roofline.
 *
 * Host stages are laps of one clock, so they add up. Device stages are what the backend measured.
 */
#ifndef GM_SERVER_REQUEST_ACCOUNT_H
#define GM_SERVER_REQUEST_ACCOUNT_H

#include "kernels/task.h"
#include "proto/json/json.h"

#include <stdint.h>

/* X(NAME, name in Server-Timing), in the order in which the stages happen. */
#define GM_STAGE_LIST(X)                                                                           \
    X(RECEIVE, "receive")                                                                          \
    X(DECODE, "decode")                                                                            \
    X(QUEUE, "queue")                                                                              \
    X(H2D, "h2d")                                                                                  \
    X(PREPARE, "prepare")                                                                          \
    X(KERNEL, "kernel")                                                                            \
    X(D2H, "d2h")                                                                                  \
    X(ENCODE, "encode")

enum gm_stage {
#define X(name, text) GM_STAGE_##name,
    GM_STAGE_LIST(X)
#undef X
        GM_STAGE_COUNT
};

const char *gm_stage_name(enum gm_stage stage);

/* A stretch of time that a request spent in a stage. It can be in one several times: it waits for a
 * worker, for the device, and for the thread that answers. */
struct gm_span {
    enum gm_stage stage;
    int64_t start_ns, end_ns;
};
/* No request has more: receive, decode and encode with a wait before each, and four on the device.
 */
#define GM_SPANS_MAX 12

struct gm_account {
    int64_t started_ns, lap_start_ns; /* of the request, and of the running lap */
    double us[GM_STAGE_COUNT];        /* negative: not measured */
    double total_us;
    unsigned spans;
    struct gm_span span[GM_SPANS_MAX]; /* in the order of their starts */
};

/* The facts of a finished job that its account reports. */
struct gm_account_job {
    const char *id, *device, *placed;
    const struct gm_op *op;     /* the requested operation */
    const struct gm_task *task; /* the task that ran */
    const struct gm_device_facts *facts;
    unsigned batch;
    bool concurrent;
};

void gm_account_start(struct gm_account *account, int64_t now_ns);
/* Adds the time since the last lap, or the start, to `stage`. */
void gm_account_lap(struct gm_account *account, enum gm_stage stage, int64_t now_ns);
/* Adds the last lap, and sets total_us. */
void gm_account_end(struct gm_account *account, enum gm_stage stage, int64_t now_ns);
/* Adds the stages of a job that ran from started_ns to finished_ns. Before that it was queued. */
void gm_account_ran(struct gm_account *account, const struct gm_times *times, int64_t started_ns,
                    int64_t finished_ns);

/* The account as one line of JSON, which the caller frees; NULL if memory ran out. Sets
 * total_us. */
char *gm_account_json(struct gm_account *account, const struct gm_account_job *job, int64_t now_ns);

/* The same as members of an open object, and total_us as it is. flat: none of them is an object:
 * "kernel_us" replaces "us":{"kernel"}. */
void gm_account_members(struct gm_json_line *line, const struct gm_account *account,
                        const struct gm_account_job *job, bool flat);

/* The value of Server-Timing. */
#define GM_SERVER_TIMING_MAX 512
void gm_account_server_timing(const struct gm_account *account, const char *kernel,
                              char out[GM_SERVER_TIMING_MAX]);

#endif
