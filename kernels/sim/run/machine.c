/*
 * machine.c - opens and closes the simulated device: host threads, and a worker for each.
 */
#include "exec.h"
#include "kernels/cpu/backend/rearrange.h"

#include <stdlib.h>
#include <sys/mman.h>

static enum gm_status open_worker(struct gm_sim_machine *machine, struct gm_sim_worker **ret,
                                  struct gm_error *err)
{
    struct gm_sim_worker *w;
    size_t dynamic_bytes = machine->gpu->shared_per_block;
    enum gm_status status = gm_sim_worker_open(&w, err);

    if (status != GM_OK)
        return status;
    w->dynamic = mmap(NULL, dynamic_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->dynamic == MAP_FAILED)
        w->dynamic = NULL;
    if (!w->dynamic ||
        !gm_shadow_open(&w->shadow, dynamic_bytes, gm_symbols_shared_span(machine->symbols))) {
        gm_sim_worker_close(w);
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the simulator's shared memory");
    }
    *ret = w;
    return GM_OK;
}

enum gm_status gm_sim_machine_open(unsigned threads, const struct gm_gpu *gpu,
                                   struct gm_sim_machine *ret, struct gm_error *err)
{
    struct gm_sim_machine machine = {.gpu = gpu};
    enum gm_status status = gm_symbols_open(&machine.symbols, err);

    if (status == GM_OK)
        status = gm_pool_open(threads, gm_rearrange_scratch(), &machine.pool, err);
    if (status == GM_OK && !(machine.worker = calloc(threads, sizeof(struct gm_sim_worker *))))
        status = gm_fail(err, GM_MEMORY_FULL, "no memory for the simulator");
    for (unsigned i = 0; i < threads && status == GM_OK; i++)
        status = open_worker(&machine, &machine.worker[i], err);
    if (status != GM_OK) {
        gm_sim_machine_close(&machine);
        return status;
    }
    *ret = machine;
    return GM_OK;
}

void gm_sim_machine_close(struct gm_sim_machine *machine)
{
    unsigned threads = machine->pool ? gm_pool_threads(machine->pool) : 0;

    for (unsigned i = 0; i < threads && machine->worker; i++)
        gm_sim_worker_close(machine->worker[i]);
    free(machine->worker);
    gm_pool_close(machine->pool);
    gm_symbols_close(machine->symbols);
    *machine = (struct gm_sim_machine){0};
}
