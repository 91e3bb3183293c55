#include "server/sched/fair_queue.h"

#include <math.h>
#include <stddef.h>

/* An odd factor permutes the low bits; the high ones only shift the result. */
unsigned gm_fair_bucket(uint64_t client)
{
    uint64_t high = (client / GM_FAIR_BUCKETS) * 0x9e3779b97f4a7c15u;

    return (unsigned)((client * 0xbf58476d1ce4e5b9u + (high >> 32)) % GM_FAIR_BUCKETS);
}

static unsigned size_of(double cost_s)
{
    double bound_s = GM_FAIR_SMALLEST_S;
    unsigned size = 0;

    while (size < GM_FAIR_SIZES - 1 && cost_s >= bound_s) {
        bound_s *= GM_FAIR_SIZE_STEP;
        size++;
    }
    return size;
}

static void append_line(struct gm_fair_size *size, struct gm_fair_line *line)
{
    line->next = NULL;
    line->prev = size->last;
    if (size->last)
        size->last->next = line;
    else
        size->first = line;
    size->last = line;
}

static void remove_line(struct gm_fair_size *size, struct gm_fair_line *line)
{
    if (line->prev)
        line->prev->next = line->next;
    else
        size->first = line->next;
    if (line->next)
        line->next->prev = line->prev;
    else
        size->last = line->prev;
}

void gm_fair_push(struct gm_fair_queue *q, struct gm_fair_item *item)
{
    item->bucket = gm_fair_bucket(item->client);
    item->size = size_of(item->cost_s);
    struct gm_fair_size *size = &q->size[item->size];
    struct gm_fair_line *line = &size->line[item->bucket];

    if (q->waiting == 0 && q->in_service == 0) {
        /* Nobody has waited for what was served until now: all begin anew. */
        q->level_s = q->waiting_s = 0;
        for (unsigned i = 0; i < GM_FAIR_SIZES; i++)
            q->size[i].used_s = 0;
    }
    if (!size->first)
        size->used_s = fmax(size->used_s, q->level_s);
    if (!line->head)
        append_line(size, line);
    item->next = NULL;
    item->prev = line->tail;
    if (line->tail)
        line->tail->next = item;
    else
        line->head = item;
    line->tail = item;
    q->waiting++;
    q->waiting_s += item->cost_s;
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
        struct gm_fair_item *item = q->size[i].first ? q->size[i].first->head : NULL;
        if (item && (!best || q->size[i].used_s + item->cost_s < best_end_s)) {
            best = item;
            best_end_s = q->size[i].used_s + item->cost_s;
        }
    }
    return best;
}

struct gm_fair_item *gm_fair_after(const struct gm_fair_queue *q, const struct gm_fair_item *item)
{
    if (item && item->next)
        return item->next;
    if (item && q->size[item->size].line[item->bucket].next)
        return q->size[item->size].line[item->bucket].next->head;
    for (unsigned i = item ? item->size + 1 : 0; i < GM_FAIR_SIZES; i++)
        if (q->size[i].first)
            return q->size[i].first->head;
    return NULL;
}

void gm_fair_remove(struct gm_fair_queue *q, struct gm_fair_item *item)
{
    struct gm_fair_size *size = &q->size[item->size];
    struct gm_fair_line *line = &size->line[item->bucket];

    if (item->prev)
        item->prev->next = item->next;
    else
        line->head = item->next;
    if (item->next)
        item->next->prev = item->prev;
    else
        line->tail = item->prev;
    if (!line->head)
        remove_line(size, line);
    item->prev = item->next = NULL;
    q->waiting--;
    q->waiting_s -= item->cost_s;
}

void gm_fair_serve(struct gm_fair_queue *q, struct gm_fair_item *item)
{
    struct gm_fair_size *size = &q->size[item->size];
    struct gm_fair_line *line = &size->line[item->bucket];

    gm_fair_remove(q, item);
    if (line->head) {
        remove_line(size, line);
        append_line(size, line);
    }
    q->level_s = fmax(q->level_s, size->used_s);
    size->used_s += item->cost_s;
    q->in_service++;
}

void gm_fair_served(struct gm_fair_queue *q, const struct gm_fair_item *item, double seconds)
{
    q->size[item->size].used_s += seconds - item->cost_s;
    q->in_service--;
}
