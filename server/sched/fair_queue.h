/*
 * fair_queue.h - decides which item is served next: fair between size classes and clients.
 *
 * Size classes: the expected cost puts each item into one of GM_FAIR_SIZES classes. The next item
 * is the one that would finish first if all classes were served at once at the same rate (fair
 * queueing: Demers, Keshav and Shenker, 1989). A class that was empty starts level with the class
 * served last, at the start of that service (start-time: Goyal, Vin and Cheng, 1996). So small
 * items go before a large one until they have used as much time as it will take. No class starves.
 *
 * Costs are estimates, which move while items wait. So an item joins those of its client in the
 * next class if they cost about as much: equal items do not overtake each other at a class's bound.
 *
 * Clients: a class serves its clients round robin, one item each (Nagle, RFC 970, 1987), and a
 * client's items first in, first out. So a client's first item waits for at most one item of each
 * other client. Clients are told apart by a hash (stochastic fairness queueing: McKenney, 1990).
 * Pure: no threads, no clock; the owner's mutex guards it.
 */
#ifndef GM_SERVER_SCHED_FAIR_QUEUE_H
#define GM_SERVER_SCHED_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Hash values of clients. Numbers that differ only in the low ten bits never collide. */
#define GM_FAIR_BUCKETS 1024
#define GM_FAIR_SIZES 5          /* size classes; the last one has no upper bound */
#define GM_FAIR_SMALLEST_S 0.001 /* bound of the first class, in seconds of expected cost */
#define GM_FAIR_SIZE_STEP 16     /* ratio of the bounds of successive classes */
#define GM_FAIR_ALIKE 4          /* costs differ by less than this factor: about equal */

/* An item; embed it in whatever waits. */
struct gm_fair_item {
    uint64_t client; /* client id; equal numbers are one client */
    double cost_s;   /* expected time to serve it, in seconds; 0: unknown */

    TAILQ_ENTRY(gm_fair_item) link; /* from here on for the queue only */
    unsigned bucket, size;
};

/* The items of one client in one class. The flows that are not empty are in a ring. */
struct gm_fair_flow {
    TAILQ_HEAD(gm_fair_items, gm_fair_item) items;
    TAILQ_ENTRY(gm_fair_flow) link;
    uint64_t waiting;
    double waiting_s; /* sum of the items' costs */
};

struct gm_fair_size {
    TAILQ_HEAD(, gm_fair_flow)
    flows;         /* round robin: the first is next, the last was served most recently */
    double used_s; /* service time used, or the level that it started at */
    double waiting_s;
    double recent_s; /* cost of what was served of late: as much in all as waits, or a few items */
    struct gm_fair_flow flow[GM_FAIR_BUCKETS];
};

struct gm_fair_queue {
    uint64_t waiting;
    double waiting_s; /* sum of the waiting items' costs */
    uint64_t in_service;
    double level_s; /* used_s of the class served last, when that service started */
    struct gm_fair_size size[GM_FAIR_SIZES];
};

/* Initializes an empty queue. */
void gm_fair_init(struct gm_fair_queue *queue);

unsigned gm_fair_bucket(uint64_t client);

/* Adds an item. Its client and cost_s must be set, and constant while it waits. */
void gm_fair_push(struct gm_fair_queue *queue, struct gm_fair_item *item);
/* The next item to serve; NULL if the queue is empty. */
struct gm_fair_item *gm_fair_first(const struct gm_fair_queue *queue);
/* The next item of the `sizes` smallest classes. */
struct gm_fair_item *gm_fair_first_of(const struct gm_fair_queue *queue, unsigned sizes);
/* Iterates over all items, in no particular order: starts with NULL, ends with NULL. */
struct gm_fair_item *gm_fair_after(const struct gm_fair_queue *queue,
                                   const struct gm_fair_item *item);
/* The first item of the client whose turn comes after that of `item`, in its class; NULL past the
 * last client. The others of a client follow the first one (TAILQ_NEXT). */
struct gm_fair_item *gm_fair_next_client(const struct gm_fair_queue *queue,
                                         const struct gm_fair_item *item);
/* The first item of the client whose turn it is in a class; NULL if the class is empty. */
struct gm_fair_item *gm_fair_first_client(const struct gm_fair_queue *queue, unsigned size);
/* Estimates the cost of all that would be served before this item, if it were pushed now: the items
 * of its client in its class, as many of each other client there, and of each other class what
 * waits and what will come at the rate of late, but no more than its own class has until then. */
double gm_fair_before_s(const struct gm_fair_queue *queue, const struct gm_fair_item *item);
/* Removes an item to serve it. Its client goes to the end of the ring, and its class is charged
 * with cost_s. */
void gm_fair_serve(struct gm_fair_queue *queue, struct gm_fair_item *item);
/* Reports the time that serving the item took; it replaces cost_s in the charge. */
void gm_fair_served(struct gm_fair_queue *queue, const struct gm_fair_item *item, double seconds);
/* Removes an item that is not served. */
void gm_fair_remove(struct gm_fair_queue *queue, struct gm_fair_item *item);

#endif
