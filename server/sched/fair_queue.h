/*
 * fair_queue.h - in what order those are served who wait, where many ask and some ask for much.
 * Pure: no threads, no clock; an owner's mutex guards it.
 *
 *  1. Sizes. By its expected cost an item is of one of GM_FAIR_SIZES sizes. Sizes in which
 * something waits share the time of whoever serves equally: served is the one whose next item would
 * be done first if all of them were served at once, each at the same rate (fair queueing: Demers,
 *     Keshav and Shenker, 1989). One in which nothing waited starts level with the one that was
 *     served last, as that was when it began (start-time: Goyal, Vin and Cheng, 1996).
 *  2. Clients. Within a size they take turns, an item a turn (Nagle, RFC 970, 1987); a client's
 *     own items are served as they came. Clients are told apart by a hash of GM_FAIR_BUCKETS
 *     values; those whose numbers differ in the low ten bits alone always are (stochastic
 *     fairness queueing: McKenney, 1990).
 *
 * So small items go before a large one until they have had as much time as that will take: what
 * comes waits for what is being served, and seldom for something larger than itself. Nothing waits
 * for ever, since a size in which something waits gets its share. And a client's first item of a
 * size waits for one of each other client there at most, however many those have.
 */
#ifndef GM_SERVER_SCHED_FAIR_QUEUE_H
#define GM_SERVER_SCHED_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define GM_FAIR_BUCKETS 1024
#define GM_FAIR_SIZES 5          /* the last has no upper bound */
#define GM_FAIR_SMALLEST_S 0.001 /* expected cost below which an item is of the first size */
#define GM_FAIR_SIZE_STEP 16     /* and each further size reaches so many times as far */

/* Embedded in what waits. */
struct gm_fair_item {
    uint64_t client; /* whose it is: equal numbers are one client */
    double cost_s;   /* what serving it is expected to take; 0 where that is not known */

    TAILQ_ENTRY(gm_fair_item) link; /* the queue's from here on */
    unsigned bucket, size;
};

/* What a client has waiting of a size; the lines with something in them form a ring. */
struct gm_fair_line {
    TAILQ_HEAD(, gm_fair_item) items;
    TAILQ_ENTRY(gm_fair_line) link;
};

struct gm_fair_size {
    TAILQ_HEAD(, gm_fair_line) lines; /* first whose turn it is, last who has just had one */
    double used_s;                    /* the time it has had, or has been levelled to */
    struct gm_fair_line line[GM_FAIR_BUCKETS];
};

struct gm_fair_queue {
    uint64_t waiting;
    double waiting_s; /* the sum of their costs */
    uint64_t in_service;
    double level_s; /* used_s of the size served last, when it was */
    struct gm_fair_size size[GM_FAIR_SIZES];
};

/* Nothing waits. */
void gm_fair_init(struct gm_fair_queue *queue);

unsigned gm_fair_bucket(uint64_t client);

/* Client and cost are set, and stay while it waits. */
void gm_fair_push(struct gm_fair_queue *queue, struct gm_fair_item *item);
/* Whose turn it is; NULL where nothing waits. */
struct gm_fair_item *gm_fair_first(const struct gm_fair_queue *queue);
/* The same, of the `sizes` smallest sizes alone. */
struct gm_fair_item *gm_fair_first_of(const struct gm_fair_queue *queue, unsigned sizes);
/* All that waits, in no particular order: from NULL to NULL. */
struct gm_fair_item *gm_fair_after(const struct gm_fair_queue *queue,
                                   const struct gm_fair_item *item);
/* Leaves to be served: its client has had its turn, its size is charged with the cost. */
void gm_fair_serve(struct gm_fair_queue *queue, struct gm_fair_item *item);
/* Has been served, which took so long: that is what its size has had. */
void gm_fair_served(struct gm_fair_queue *queue, const struct gm_fair_item *item, double seconds);
/* Leaves without having been served. */
void gm_fair_remove(struct gm_fair_queue *queue, struct gm_fair_item *item);

#endif
