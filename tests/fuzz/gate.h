/*
 * gate.h - a device for fuzz_sched.c that computes nothing: a run is held until it is let through
 * with a status, or all of its tasks are told to stop. It watches that the scheduler keeps to the
 * rules of backend.h: one thread a stream, 1 to batch_max tasks that are alike.
 */
#ifndef GM_TESTS_FUZZ_GATE_H
#define GM_TESTS_FUZZ_GATE_H

#include "kernels/backend.h"

#include <pthread.h>

#define GATE_STREAMS_MAX 4
#define GATE_BATCH_MAX 4

struct gate_run {
    bool active, released;
    enum gm_status verdict; /* of tasks that are not told to stop */
    unsigned n;
    struct gm_task *task[GATE_BATCH_MAX];
};

struct gate {
    struct gm_device_facts facts;
    pthread_mutex_t mutex; /* guards what follows, and what the callbacks touch */
    pthread_cond_t changed;
    bool open;                   /* nothing is held any more */
    enum gm_status here_verdict; /* of runs on a caller's thread, which are not held */
    struct gate_run run[GATE_STREAMS_MAX];
    unsigned active;

    /* A run begins or has ended; the mutex is held. */
    void (*began)(void *cls, const struct gate_run *run);
    void (*ended)(void *cls, const struct gate_run *run);
    void *cls;
};

/* The context is a struct gate. */
extern const struct gm_backend gate_backend;

void gate_init(struct gate *gate, unsigned streams, unsigned batch_max);
void gate_destroy(struct gate *gate);
/* Lets the index-th of the runs in progress through. false: there are not so many. */
bool gate_release(struct gate *gate, unsigned index, enum gm_status verdict);
/* Whether a run in progress is no longer held. The mutex is held. */
bool gate_ends(const struct gate_run *run);
/* Nothing is held from now on. */
void gate_open(struct gate *gate);
/* Makes the runs look whether they were told to stop. */
void gate_poke(struct gate *gate);

#endif
