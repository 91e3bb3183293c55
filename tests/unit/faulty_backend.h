/*
 * faulty_backend.h - the cpu backend with the faults that a test asks for: its results are right,
 * but it may be slow, short of memory, deaf, or lost. There is one in a process.
 */
#ifndef GM_TESTS_UNIT_FAULTY_BACKEND_H
#define GM_TESTS_UNIT_FAULTY_BACKEND_H

#include "kernels/backend.h"

#define FAULTY_RUNS_MAX 64

/* Runs and buffers are counted from 1, since it was opened; 0: never. */
struct faulty_plan {
    unsigned streams;      /* 0: one */
    atomic_bool hold;      /* runs wait until it is false, or they are told to stop */
    unsigned memory_at;    /* the run that finds no memory on the device */
    unsigned lose_at;      /* the run that loses the device; later ones wait for that */
    unsigned hang_at;      /* the run that never ends, whatever it is told */
    unsigned stall_at;     /* the run that waits until it is told to stop */
    unsigned wrong_at;     /* the run whose result has a bit too many */
    double gflops;         /* its rate, which its streams share, so that a run takes that long */
    bool counts;           /* like the simulator: counts accesses, and times nothing */
    atomic_uint buffer_at; /* the buffer that cannot be had; and */
    atomic_uint buffers;   /* how many were asked for */
    atomic_uint running;   /* runs that are in progress now */
    atomic_uint runs;      /* that have begun; the first of them were */
    struct {
        const struct gm_variant *variant;
        unsigned repeat;
        unsigned on_device;
        const void *operand, *result; /* where they were */
    } run[FAULTY_RUNS_MAX];
    bool no_imports;      /* foreign memory is refused */
    atomic_uint imported; /* and how much of it is not given back */
};

/* Set it before the backend is opened; what is atomic, at any time. */
extern struct faulty_plan faulty_plan;
extern const struct gm_backend faulty_backend;

#endif
