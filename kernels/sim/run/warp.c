/*
 * warp.c - runs what the lanes of a warp do together: shuffles, votes, reductions, synchronization.
 *
 * A lane states its operation and stops. When all lanes of its mask are there, each gets its
 * result.
 */
#include "worker.h"

/* The lane whose value `t` gets; itself where CUDA says so. */
static unsigned source_lane(const struct gm_sim_thread *t)
{
    int self = (int)(t->tid % GM_WARP), width = (int)t->width, first = self / width * width;
    int from = self;

    switch (t->op) {
    case GM_SIM_SHUFFLE_IDX:
        from = first + (t->lane & (width - 1));
        break;
    case GM_SIM_SHUFFLE_UP:
        from = self - t->lane < first ? self : self - t->lane;
        break;
    case GM_SIM_SHUFFLE_DOWN:
        from = self + t->lane >= first + width ? self : self + t->lane;
        break;
    case GM_SIM_SHUFFLE_XOR:
        from = (self ^ t->lane) >= first + width ? self : self ^ t->lane;
        break;
    default:
        break;
    }
    return (unsigned)from;
}

static uint64_t reduce(enum gm_sim_warp_op op, uint64_t a, uint64_t b)
{
    switch (op) {
    case GM_SIM_MIN:
        return (int64_t)b < (int64_t)a ? b : a;
    case GM_SIM_MAX:
        return (int64_t)b > (int64_t)a ? b : a;
    case GM_SIM_AND:
        return a & b;
    case GM_SIM_OR:
        return a | b;
    case GM_SIM_XOR:
        return a ^ b;
    default:
        return a + b;
    }
}

/* Computes the result of one lane from the values of its group. */
static bool warp_result(struct gm_sim_worker *w, struct gm_sim_thread *warp, uint32_t group,
                        unsigned lane, const uint64_t *given, uint64_t *ret)
{
    struct gm_sim_thread *t = &warp[lane];
    uint64_t value = 0;
    bool first = true;

    if (t->op >= GM_SIM_SHUFFLE_IDX && t->op <= GM_SIM_SHUFFLE_XOR) {
        unsigned from = source_lane(t);
        if (from >= GM_WARP || !(group >> from & 1)) {
            gm_sim_fail_of(w, t, t->wait_pc,
                           "a shuffle reads from lane %u, which does not take part", from);
            return false;
        }
        *ret = given[from];
        return true;
    }
    for (unsigned other = 0; other < GM_WARP; other++) {
        if (!(group >> other & 1))
            continue;
        if (t->op == GM_SIM_BALLOT)
            value |= given[other] << other;
        else if (t->op == GM_SIM_ACTIVE)
            value |= UINT64_C(1) << other;
        else if (t->op == GM_SIM_MATCH_ANY)
            value |= (uint64_t)(given[other] == given[lane]) << other;
        else
            value = first ? given[other] : reduce(t->op, value, given[other]);
        first = false;
    }
    *ret = value;
    return true;
}

/* Whether another lane waits at the same __activemask. */
static bool is_with(const struct gm_sim_thread *t, const struct gm_sim_thread *other)
{
    return other->state == GM_SIM_WARP && other->op == t->op && other->wait_pc == t->wait_pc;
}

#define NOBODY GM_WARP

/* Returns the lane that `leader` waits for in vain, or NOBODY: then *group is the lanes that it
 * waits for. They are those of its mask that have not ended. */
static unsigned absent_lane(const struct gm_sim_thread *warp, unsigned lanes, unsigned leader,
                            uint32_t *group)
{
    const struct gm_sim_thread *t = &warp[leader];

    *group = 0;
    for (unsigned lane = 0; lane < lanes; lane++) {
        const struct gm_sim_thread *other = &warp[lane];
        if (!(t->mask >> lane & 1) || other->state == GM_SIM_DONE)
            continue;
        if (t->op == GM_SIM_ACTIVE && !is_with(t, other))
            continue;
        if (other->state != GM_SIM_WARP || other->mask != t->mask || other->op != t->op)
            return lane;
        *group |= 1u << lane;
    }
    return NOBODY;
}

/* A group that is complete; 0 if there is none, which is a fault if lanes wait. */
static uint32_t find_group(struct gm_sim_worker *w, struct gm_sim_thread *warp, unsigned lanes)
{
    struct gm_sim_thread *first = NULL;
    unsigned absent = NOBODY;

    for (unsigned leader = 0; leader < lanes; leader++) {
        uint32_t group;
        if (warp[leader].state != GM_SIM_WARP)
            continue;
        unsigned lane = absent_lane(warp, lanes, leader, &group);
        if (lane == NOBODY)
            return group;
        if (!first) {
            first = &warp[leader];
            absent = lane;
        }
    }
    if (first)
        gm_sim_fail_of(w, first, first->wait_pc,
                       "divergent: a warp operation waits for lane %u, which is at another "
                       "operation or a barrier",
                       absent);
    return 0;
}

/* Lanes that wait for an abandoned lane are abandoned too. */
static void leave_waiting(struct gm_sim_worker *w, struct gm_sim_thread *warp, unsigned lanes)
{
    bool left = false;

    for (unsigned lane = 0; lane < lanes; lane++)
        left |= warp[lane].state == GM_SIM_ABSENT;
    for (unsigned lane = 0; lane < lanes && left; lane++)
        if (warp[lane].state == GM_SIM_WARP)
            gm_sim_leave(w, &warp[lane]);
}

bool gm_sim_release_warp(struct gm_sim_worker *w, struct gm_sim_thread *warp, unsigned lanes)
{
    leave_waiting(w, warp, lanes);
    uint32_t group = find_group(w, warp, lanes);
    uint64_t given[GM_WARP];

    if (group == 0)
        return false;
    for (unsigned lane = 0; lane < lanes; lane++)
        given[lane] = warp[lane].value;
    uint32_t clock = gm_shadow_sync(&w->shadow);
    for (uint32_t rest = group; rest != 0; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        if (!warp_result(w, warp, group, lane, given, &warp[lane].value))
            return false;
        if (warp[lane].op != GM_SIM_ACTIVE)
            warp[lane].synced = clock;
        warp[lane].state = GM_SIM_READY;
    }
    return true;
}

uint64_t gm_sim_warp(enum gm_sim_warp_op op, unsigned mask, uint64_t value, int lane, int width)
{
    struct gm_sim_worker *w = gm_sim_worker;
    struct gm_sim_thread *t = w->current;

    gm_sim_check_index(w);
    t->wait_pc = (uintptr_t)__builtin_return_address(0) - 1;
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
        gm_sim_fail(w, t->wait_pc, "a shuffle's width is %d: it must be a power of two up to 32",
                    width);
    if (!(mask >> t->tid % GM_WARP & 1))
        gm_sim_fail(w, t->wait_pc, "a warp operation's mask %#x leaves out the lane that calls it",
                    mask);
    t->op = op;
    t->mask = mask;
    t->value = value;
    t->lane = lane;
    t->width = (unsigned)width;
    t->state = GM_SIM_WARP;
    gm_sim_yield(w);
    return t->value;
}
