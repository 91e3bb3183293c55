/*
 * trace.c - turns the logs of a warp's lanes into the requests of the warp.
 *
 * Lanes run one after the other, and each logs its steps (branchless stretches of code) and its
 * accesses. On a GPU the lanes of a warp run together: they diverge at a branch and reconverge
 * after it. This file replays that by the old rule of SIMT machines: of all places where lanes are,
 * the earliest in the code goes on, with all lanes that are there. Code is in source order
 * (-fno-reorder-blocks), so a lane that skips ahead waits behind the branch, or at the loop's end,
 * for the others. Accesses at one place that go together are a request.
 *
 * Counting a lane's visits instead would pair the first visits of two lanes even if they belong to
 * different iterations of a loop.
 */
#include "kernels/sim/run/worker.h"

#include <string.h>

static void add_request(struct gm_sim_worker *w, struct gm_tally_request *request, unsigned warp)
{
    const uint32_t block[3] = {w->block.x, w->block.y, w->block.z};

    request->first = request->beside = request->again = 0;
    if (request->kind == GM_GLOBAL_LOAD) {
        gm_tally_see(&w->seen, request);
        if (!(w->loading >> warp & 1))
            w->tally.loading += w->warp_weight;
        w->loading |= 1u << warp;
    }
    struct gm_access_example *example = gm_tally_add(&w->tally, request);

    if (example) {
        memcpy(example->block, block, sizeof block);
        example->warp = warp;
    }
    gm_tally_show(&w->tally, request, block, warp);
}

/* The lanes in `at` did the same thing at the same time. Lanes with different memories or widths
 * made separate requests. */
static void take(struct gm_sim_worker *w, uint32_t at, unsigned warp)
{
    while (at != 0) {
        unsigned leader = (unsigned)__builtin_ctz(at);
        const struct gm_sim_event *first = &w->log[leader][w->log_begin[leader]];
        struct gm_tally_request request;
        uint32_t active = 0;
        if (first->kind == GM_SIM_STEP) {
            w->tally.steps += w->warp_weight;
            w->tally.step_lanes += w->warp_weight * __builtin_popcount(at);
            return;
        }
        for (uint32_t rest = at; rest != 0; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            const struct gm_sim_event *event = &w->log[lane][w->log_begin[lane]];
            if (event->kind == first->kind && event->memory == first->memory &&
                event->bytes == first->bytes) {
                active |= 1u << lane;
                request.address[lane] = event->address;
            }
        }
        request.key = first->key;
        request.kind = first->kind;
        request.bytes = first->bytes;
        request.memory = first->memory;
        request.active = active;
        request.weight = w->warp_weight;
        add_request(w, &request, warp);
        at &= ~active;
    }
}

/* The lanes at the earliest place; 0 if some lane must run on before that is known. */
static uint32_t earliest(const struct gm_sim_worker *w, const struct gm_sim_thread *thread,
                         unsigned lanes)
{
    uint32_t least = UINT32_MAX, at = 0;

    for (unsigned lane = 0; lane < lanes; lane++) {
        if (w->log_begin[lane] == w->log_end[lane]) {
            if (thread[lane].state == GM_SIM_READY)
                return 0;
            continue;
        }
        uint32_t key = w->log[lane][w->log_begin[lane]].key;
        if (key < least) {
            least = key;
            at = 0;
        }
        at |= (uint32_t)(key == least) << lane;
    }
    return at;
}

void gm_sim_trace(struct gm_sim_worker *w, unsigned first, unsigned lanes)
{
    uint32_t at;

    while ((at = earliest(w, &w->thread[first], lanes)) != 0) {
        take(w, at, first / GM_WARP);
        for (uint32_t rest = at; rest != 0; rest &= rest - 1)
            w->log_begin[__builtin_ctz(rest)]++;
    }
    for (unsigned lane = 0; lane < lanes; lane++) {
        unsigned left = w->log_end[lane] - w->log_begin[lane];
        if (left == 0) {
            w->log_begin[lane] = w->log_end[lane] = 0;
        } else if (w->log_end[lane] == GM_SIM_LOG_EVENTS) {
            memmove(w->log[lane], &w->log[lane][w->log_begin[lane]], left * sizeof(w->log[0][0]));
            w->log_begin[lane] = 0;
            w->log_end[lane] = left;
        }
    }
}
