/*
 * exec.h - holds what a kernel's host function runs with in the simulator, and its launches'
 * results.
 */
#ifndef GM_KERNELS_SIM_RUN_EXEC_H
#define GM_KERNELS_SIM_RUN_EXEC_H

#include "kernels/cpu/backend/pool.h"
#include "worker.h"

/* The simulated device: host threads, each with its worker. */
struct gm_sim_machine {
    struct gm_pool *pool;
    struct gm_sim_worker **worker; /* one per thread of the pool */
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
    uint64_t times, runs; /* launches that it stands for; those of them that were run */
    uint64_t events;      /* of one */
    struct gm_launch_report report;
    struct gm_tally tally;
};

struct gm_exec {
    struct gm_sim_machine *machine;
    const struct gm_gpu *gpu; /* what host code launches for; NULL: the machine's */
    const atomic_bool *stop;
    struct gm_sim_memory memory;
    struct gm_sim_touched before; /* by launches that a dependent one may overlap */
    void *scratch;
    unsigned more; /* operations after the first, for a variant that groups */
    enum gm_pass pass;
    bool sampling;          /* run only as many blocks as a report needs */
    uint64_t events_left;   /* events left for a sample */
    _Atomic int64_t cpu_ns; /* CPU time of a sample, over all host threads */
    bool late;              /* cpu_ns reached its limit */
    struct gm_error *error; /* the report of a check */
    size_t ran_count, ran_room;
    struct gm_sim_ran *ran;
};

/* Call before the first launch of a sample. If operands have data, all touched memory is kept. */
void gm_sim_exec_sample(struct gm_exec *exec, bool has_data);
void gm_sim_exec_clear(struct gm_exec *exec);

/* report.c: makes the report of all launches; *ret is empty before. */
enum gm_status gm_sim_report(struct gm_exec *exec, struct gm_access_report *ret,
                             struct gm_error *err);
/* The totals of the launches of one pass. */
struct gm_access_totals gm_sim_totals(const struct gm_exec *exec, enum gm_pass pass);

#endif
