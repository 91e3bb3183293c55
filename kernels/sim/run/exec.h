/*
 * exec.h - what a kernel's host function runs with in the simulator, and what its launches come
 * to.
 */
#ifndef GM_KERNELS_SIM_RUN_EXEC_H
#define GM_KERNELS_SIM_RUN_EXEC_H

#include "kernels/cpu/backend/pool.h"
#include "worker.h"

/* The simulated device: host threads, each with its worker. */
struct gm_sim_machine {
    struct gm_pool *pool;
    struct gm_sim_worker **worker; /* of each thread of the pool */
    struct gm_symbols *symbols;
    const struct gm_gpu *gpu;
};

enum gm_status gm_sim_machine_open(unsigned threads, const struct gm_gpu *gpu,
                                   struct gm_sim_machine *ret, struct gm_error *err);
void gm_sim_machine_close(struct gm_sim_machine *machine);

/* One launch that was run. */
struct gm_sim_ran {
    const void *kernel;
    uint64_t dynamic_shared;
    uint64_t times, runs; /* how many launches it stands for, and how many of them were run */
    uint64_t events;      /* of one */
    struct gm_launch_report report;
    struct gm_tally tally;
};

struct gm_exec {
    struct gm_sim_machine *machine;
    const atomic_bool *stop;
    struct gm_sim_memory memory;
    struct gm_sim_touched before; /* by launches that may still run when a dependent one begins */
    void *scratch;
    enum gm_pass pass;
    bool sampling;          /* run no more blocks than a report needs */
    uint64_t events_left;   /* of a sample's budget */
    _Atomic int64_t cpu_ns; /* what a sample took of the host threads' time, all together */
    bool late;              /* that was too much */
    struct gm_error *error; /* what a check found */
    size_t ran_count, ran_room;
    struct gm_sim_ran *ran;
};

/* Before the first launch of a sample. Where operands have data all that is touched is kept. */
void gm_sim_exec_sample(struct gm_exec *exec, bool has_data);
void gm_sim_exec_clear(struct gm_exec *exec);

/* report.c: the report of what ran; *ret is empty before. */
enum gm_status gm_sim_report(struct gm_exec *exec, struct gm_access_report *ret,
                             struct gm_error *err);
/* Of the launches of one pass. */
struct gm_access_totals gm_sim_totals(const struct gm_exec *exec, enum gm_pass pass);

#endif
