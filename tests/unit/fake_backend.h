/*
 * fake_backend.h - a device that does what a test tells it: waits, fails, batches, is lost. It
 * computes nothing; its results are its bookkeeping. All of it is guarded by one mutex.
 */
#ifndef GM_TESTS_UNIT_FAKE_BACKEND_H
#define GM_TESTS_UNIT_FAKE_BACKEND_H

#include "kernels/backend.h"

#include <pthread.h>

#define FAKE_RUNS_MAX 4096
#define FAKE_DEVICES_MAX 20

struct fake {
    struct gm_device_facts facts; /* of each device */
    unsigned devices;             /* 1, or what a test makes of it before anybody asks */
    pthread_mutex_t mutex;
    pthread_cond_t changed;

    /* What it is told. */
    bool hold;           /* runs wait until it is false, or their task is told to stop */
    bool hold_here;      /* the same, of runs on a caller's thread */
    bool deaf;           /* ... or not even then */
    enum gm_status next; /* how tasks end */
    unsigned busy_us;    /* how long a run takes */

    /* What it saw. */
    unsigned running, running_most; /* runs at once */
    unsigned runs, runs_here;
    bool stream_taken[FAKE_DEVICES_MAX][64];
    bool stream_clash; /* a stream was used by two threads at a time */
    unsigned closed;   /* how often */
    struct {
        unsigned n;
        struct gm_task *first;
    } run[FAKE_RUNS_MAX];
};

/* Without open: the context is a struct fake. */
extern const struct gm_backend fake_backend;

void fake_init(struct fake *fake, unsigned streams, unsigned batch_max);
void fake_destroy(struct fake *fake);
void fake_hold(struct fake *fake, bool hold);
void fake_hold_here(struct fake *fake, bool hold);
void fake_next(struct fake *fake, enum gm_status status);
/* Waits until n runs are in progress at once; false after some seconds. */
bool fake_wait_running(struct fake *fake, unsigned n);
/* Waits until n runs on callers' threads have begun. */
bool fake_wait_here(struct fake *fake, unsigned n);
unsigned fake_runs(struct fake *fake);

#endif
