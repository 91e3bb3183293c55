/*
 * account.h - where a request's time went, and how far its kernel was from the hardware's
 * limit. Stages on the host are laps of one clock, so that they add up; stages on the device
 * are what the backend measured there.
 */
#ifndef GM_SERVER_REQUEST_ACCOUNT_H
#define GM_SERVER_REQUEST_ACCOUNT_H

#include "kernels/backend.h"
#include "server/request/text.h"

#include <stdint.h>

/* X(NAME, member, Server-Timing name) in the order in which they happen. */
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

struct gm_account {
    int64_t started_ns, mark_ns;
    double us[GM_STAGE_COUNT]; /* negative: not measured */
    double total_us;
};

/* What the account of a finished job is written from. */
struct gm_account_job {
    const char *id, *device;
    const struct gm_op *op;     /* what was asked for */
    const struct gm_task *task; /* what ran */
    const struct gm_device_facts *facts;
    unsigned batch;
    bool concurrent;
};

void gm_account_start(struct gm_account *account, int64_t now_ns);
/* The time since the last lap, or the start, was spent on `stage`. */
void gm_account_lap(struct gm_account *account, enum gm_stage stage, int64_t now_ns);
/* The last lap: ends `total`. */
void gm_account_end(struct gm_account *account, enum gm_stage stage, int64_t now_ns);
/* The job ran from started_ns to finished_ns; before that it waited. */
void gm_account_ran(struct gm_account *account, const struct gm_times *times, int64_t started_ns,
                    int64_t finished_ns);

/* The account as one line of JSON, or NULL without memory; free() it. Ends `total`. */
char *gm_account_json(struct gm_account *account, const struct gm_account_job *job, int64_t now_ns);

/* The same as members of an object that is open: no objects among them, and "kernel_us" for what
 * is "us":{"kernel"} there. Ends `total`. */
void gm_account_members(struct gm_json_line *line, struct gm_account *account,
                        const struct gm_account_job *job, int64_t now_ns);

/* The value of Server-Timing. */
#define GM_SERVER_TIMING_MAX 512
void gm_account_server_timing(const struct gm_account *account, const char *kernel,
                              char out[GM_SERVER_TIMING_MAX]);

#endif
