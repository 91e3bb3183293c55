#include "server/sched/fair_queue.h"

#include <math.h>
#include <stddef.h>

/* An odd factor permutes the low bits, so these never collide. The high bits only add an offset to
 * the result. */
unsigned gm_fair_bucket(uint64_t client)
{
    uint64_t high = (client / GM_FAIR_BUCKETS) * 0x9e3779b97f4a7c15u;

    return (unsigned)((client * 0xbf58476d1ce4e5b9u + (high >> 32)) % GM_FAIR_BUCKETS);
}

/* Costs below this are in class `size` or in a smaller one. */
static double bound_of(unsigned size)
{
    double bound_s = GM_FAIR_SMALLEST_S;

    while (size-- > 0)
        bound_s *= GM_FAIR_SIZE_STEP;
    return bound_s;
}

static unsigned size_of(double cost_s)
{
    unsigned size = 0;

    while (size < GM_FAIR_SIZES - 1 && cost_s >= bound_of(size))
        size++;
    return size;
}

static bool alike(double a_s, double b_s)
{
    return a_s < GM_FAIR_ALIKE * b_s && b_s < GM_FAIR_ALIKE * a_s;
}

/* The class of an item: that of its cost; or the one beside it, if the client has nothing in its
 * own, and its last item there, and the bound between them, are about that cost. */
static unsigned class_of(const struct gm_fair_queue *q, const struct gm_fair_item *item)
{
    unsigned own = size_of(item->cost_s), bucket = gm_fair_bucket(item->client);

    if (!TAILQ_EMPTY(&q->size[own].flow[bucket].items))
        return own;
    for (unsigned i = own > 0 ? own - 1 : 1; i <= own + 1 && i < GM_FAIR_SIZES; i += 2) {
        const struct gm_fair_item *last = TAILQ_LAST(&q->size[i].flow[bucket].items, gm_fair_items);
        if (last && alike(last->cost_s, item->cost_s) &&
            alike(bound_of(i < own ? i : own), item->cost_s))
            return i;
    }
    return own;
}

void gm_fair_init(struct gm_fair_queue *q)
{
    *q = (struct gm_fair_queue){0};
    for (unsigned i = 0; i < GM_FAIR_SIZES; i++) {
        TAILQ_INIT(&q->size[i].flows);
        for (unsigned bucket = 0; bucket < GM_FAIR_BUCKETS; bucket++)
            TAILQ_INIT(&q->size[i].flow[bucket].items);
    }
}

void gm_fair_push(struct gm_fair_queue *q, struct gm_fair_item *item)
{
    item->bucket = gm_fair_bucket(item->client);
    item->size = class_of(q, item);
    struct gm_fair_size *size = &q->size[item->size];
    struct gm_fair_flow *flow = &size->flow[item->bucket];

    if (q->waiting == 0 && q->in_service == 0) {
        /* The queue was idle: no item waited for what was served, so all classes start from
         * zero. */
        q->level_s = q->waiting_s = 0;
        for (unsigned i = 0; i < GM_FAIR_SIZES; i++)
            q->size[i].used_s = 0;
    }
    if (TAILQ_EMPTY(&size->flows))
        size->used_s = fmax(size->used_s, q->level_s);
    if (TAILQ_EMPTY(&size->flows))
        size->waiting_s = 0; /* no rounding errors stay */
    if (TAILQ_EMPTY(&flow->items)) {
        TAILQ_INSERT_TAIL(&size->flows, flow, link);
        flow->waiting_s = 0;
    }
    TAILQ_INSERT_TAIL(&flow->items, item, link);
    q->waiting++;
    flow->waiting++;
    q->waiting_s += item->cost_s;
    size->waiting_s += item->cost_s;
    flow->waiting_s += item->cost_s;
}

struct gm_fair_item *gm_fair_first(const struct gm_fair_queue *q)
{
    return gm_fair_first_of(q, GM_FAIR_SIZES);
}

struct gm_fair_item *gm_fair_first_of(const struct gm_fair_queue *q, unsigned sizes)
{
    struct gm_fair_item *best = NULL;
    double best_end_s = 0;

    for (unsigned i = 0; i < sizes; i++) {
        const struct gm_fair_flow *flow = TAILQ_FIRST(&q->size[i].flows);
        struct gm_fair_item *item = flow ? TAILQ_FIRST(&flow->items) : NULL;
        if (item && (!best || q->size[i].used_s + item->cost_s < best_end_s)) {
            best = item;
            best_end_s = q->size[i].used_s + item->cost_s;
        }
    }
    return best;
}

struct gm_fair_item *gm_fair_after(const struct gm_fair_queue *q, const struct gm_fair_item *item)
{
    const struct gm_fair_flow *flow = NULL;

    if (item && TAILQ_NEXT(item, link))
        return TAILQ_NEXT(item, link);
    if (item)
        flow = TAILQ_NEXT(&q->size[item->size].flow[item->bucket], link);
    for (unsigned i = item ? item->size + 1 : 0; i < GM_FAIR_SIZES && !flow; i++)
        flow = TAILQ_FIRST(&q->size[i].flows);
    return flow ? TAILQ_FIRST(&flow->items) : NULL;
}

static struct gm_fair_item *first_of(const struct gm_fair_flow *flow)
{
    return flow ? TAILQ_FIRST(&flow->items) : NULL;
}

struct gm_fair_item *gm_fair_first_client(const struct gm_fair_queue *q, unsigned size)
{
    return first_of(TAILQ_FIRST(&q->size[size].flows));
}

struct gm_fair_item *gm_fair_next_client(const struct gm_fair_queue *q,
                                         const struct gm_fair_item *item)
{
    return first_of(TAILQ_NEXT(&q->size[item->size].flow[item->bucket], link));
}

/* How many clients are looked at: this is asked for each job, with the owner's mutex held. The
 * others are taken to be like them. */
#define LOOKED_AT_MAX 64

/* The cost of the items of other clients that come before the next one of `own`, in turns. */
static double others_before_s(const struct gm_fair_size *size, const struct gm_fair_flow *own)
{
    const struct gm_fair_flow *flow;
    uint64_t turns = own->waiting + 1; /* of a client before it in the ring */
    double before_s = 0, looked_at_s = 0;
    unsigned looked_at = 0;

    TAILQ_FOREACH (flow, &size->flows, link) {
        if (flow == own) {
            turns--;
            continue;
        }
        if (looked_at++ == LOOKED_AT_MAX)
            break;
        looked_at_s += flow->waiting_s;
        before_s += flow->waiting <= turns
                        ? flow->waiting_s
                        : flow->waiting_s * (double)turns / (double)flow->waiting;
    }
    double own_s = own->waiting > 0 ? own->waiting_s : 0;
    return flow && looked_at_s > 0 ? before_s * (size->waiting_s - own_s) / looked_at_s : before_s;
}

/* How often the estimate is refined, from the most that it can be. */
#define ROUNDS 8

double gm_fair_before_s(const struct gm_fair_queue *q, const struct gm_fair_item *item)
{
    unsigned class = class_of(q, item);
    const struct gm_fair_size *size = &q->size[class];
    const struct gm_fair_flow *own = &size->flow[gm_fair_bucket(item->client)];
    double in_class_s = others_before_s(size, own) + (own->waiting > 0 ? own->waiting_s : 0);
    double from_s = TAILQ_EMPTY(&size->flows) ? fmax(size->used_s, q->level_s) : size->used_s;
    double end_s = from_s + in_class_s + item->cost_s, recent_s = 0, before_s = INFINITY;

    for (unsigned i = 0; i < GM_FAIR_SIZES; i++)
        recent_s += q->size[i].recent_s;
    for (unsigned round = 0; round < ROUNDS; round++) {
        double sum_s = in_class_s;
        for (unsigned i = 0; i < GM_FAIR_SIZES; i++) {
            const struct gm_fair_size *other = &q->size[i];
            const struct gm_fair_item *first = gm_fair_first_client(q, i);
            double most_s = end_s - (first ? other->used_s : fmax(other->used_s, q->level_s));
            double waiting_s = first ? other->waiting_s : 0;
            if (i == class || most_s <= 0 || (first && first->cost_s > most_s))
                continue;
            if (other->recent_s > 0)
                waiting_s += before_s * other->recent_s / recent_s;
            sum_s += fmin(waiting_s, most_s);
        }
        before_s = sum_s;
    }
    return before_s;
}

void gm_fair_remove(struct gm_fair_queue *q, struct gm_fair_item *item)
{
    struct gm_fair_size *size = &q->size[item->size];
    struct gm_fair_flow *flow = &size->flow[item->bucket];

    TAILQ_REMOVE(&flow->items, item, link);
    if (TAILQ_EMPTY(&flow->items))
        TAILQ_REMOVE(&size->flows, flow, link);
    q->waiting--;
    flow->waiting--;
    q->waiting_s -= item->cost_s;
    size->waiting_s -= item->cost_s;
    flow->waiting_s -= item->cost_s;
}

/* "Of late" has so many items at least. */
#define RECENT_ITEMS 8

void gm_fair_serve(struct gm_fair_queue *q, struct gm_fair_item *item)
{
    struct gm_fair_size *size = &q->size[item->size];
    struct gm_fair_flow *flow = &size->flow[item->bucket];

    gm_fair_remove(q, item);
    if (!TAILQ_EMPTY(&flow->items)) {
        TAILQ_REMOVE(&size->flows, flow, link);
        TAILQ_INSERT_TAIL(&size->flows, flow, link);
    }
    q->level_s = fmax(q->level_s, size->used_s);
    size->used_s += item->cost_s;
    q->in_service++;
    if (!(item->cost_s > 0))
        return;
    double kept = 1 - item->cost_s / (fmax(0, q->waiting_s) + RECENT_ITEMS * item->cost_s);
    for (unsigned i = 0; i < GM_FAIR_SIZES; i++)
        q->size[i].recent_s *= kept;
    size->recent_s += item->cost_s;
}

void gm_fair_served(struct gm_fair_queue *q, const struct gm_fair_item *item, double seconds)
{
    q->size[item->size].used_s += seconds - item->cost_s;
    q->in_service--;
}
