/* dependent.c - reports accesses of dependent launches to what they have not waited for. */
#include "dependent.h"

#include "find.h"
#include "kernels/sim/run/exec.h"

#include <string.h>

static void extend(struct gm_sim_extent *extent, struct gm_sim_extent by)
{
    if (by.begin == by.end)
        return;
    if (extent->begin == extent->end)
        *extent = by;
    extent->begin = by.begin < extent->begin ? by.begin : extent->begin;
    extent->end = by.end > extent->end ? by.end : extent->end;
}

static bool overlap(struct gm_sim_extent a, struct gm_sim_extent b)
{
    return a.begin < b.end && b.begin < a.end;
}

void gm_sim_note_access(struct gm_sim_worker *w, unsigned buffer, struct gm_sim_extent bytes,
                        bool reads, bool writes, uintptr_t pc)
{
    const struct gm_sim_touched *before = w->job->before;
    char where[120];

    if (reads)
        extend(&w->touched.read[buffer], bytes);
    if (writes)
        extend(&w->touched.written[buffer], bytes);
    if (w->current->waited)
        return;
    bool written = overlap(before->written[buffer], bytes);
    if (!written && !(writes && overlap(before->read[buffer], bytes)))
        return;
    gm_sim_say_where(w, bytes.begin, where, sizeof(where));
    gm_sim_fail(w, pc,
                "race: %#llx is %s before gm_wait_for_primary(), and a launch that may still run "
                "%s it: %s",
                (unsigned long long)bytes.begin, writes ? "written" : "read",
                written ? "writes" : "reads", where);
}

void gm_sim_check_waited(struct gm_sim_worker *w)
{
    if (!w->current->waited)
        gm_sim_fail(w, (uintptr_t)w->job->launch->kernel,
                    "a thread of a dependent launch ends without gm_wait_for_primary()");
}

void gm_sim_wait_for_primary(void)
{
    gm_sim_worker->current->waited = true;
}

void gm_sim_trigger_dependent(void)
{
    if (!gm_sim_worker->current->waited)
        gm_sim_fail(gm_sim_worker, (uintptr_t)__builtin_return_address(0) - 1,
                    "gm_trigger_dependent() comes before gm_wait_for_primary(): what begins then "
                    "waits for this launch alone");
}

void gm_sim_note_launch(struct gm_exec *exec, const struct gm_sim_launch *launch)
{
    if (!launch->dependent)
        memset(&exec->before, 0, sizeof(exec->before));
    for (unsigned i = 0; i < gm_pool_threads(exec->machine->pool); i++) {
        const struct gm_sim_touched *touched = &exec->machine->worker[i]->touched;
        for (unsigned buffer = 0; buffer < GM_SIM_BUFFERS_MAX; buffer++) {
            extend(&exec->before.read[buffer], touched->read[buffer]);
            extend(&exec->before.written[buffer], touched->written[buffer]);
        }
    }
}
