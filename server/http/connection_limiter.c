#include "server/http/connection_limiter.h"

#include "server/clock.h"
#include "server/http/raw_reply.h"
#include "server/limits.h"

/* Answers, and counts, what ended within a head: no request of it is known. */
static void refuse_head(struct gm_door *door, int socket)
{
    struct gm_error error;

    gm_fail(&error, GM_UPLOAD_TIMEOUT,
            "the request line and the headers must have come as a whole after %d seconds",
            GM_CONNECTION_IDLE_S);
    gm_wire_refuse_head(socket, &error);
    atomic_fetch_add(&door->stats->failed[error.status], 1);
    atomic_fetch_add(&door->stats->answered[gm_route_count()][gm_status_http(error.status)], 1);
}

static void on_end(void *cls, const struct gm_connection *c, enum gm_phase_of_connection phase,
                   enum gm_connection_end why)
{
    static const enum gm_counter slow[] = {[GM_CONNECTION_HEAD] = GM_COUNT_SLOW_HEADS_ENDED,
                                           [GM_CONNECTION_BODY] = GM_COUNT_SLOW_BODIES_ENDED,
                                           [GM_CONNECTION_REPLY] = GM_COUNT_SLOW_READERS_ENDED};
    struct gm_door *door = cls;

    if (why == GM_END_IDLE)
        gm_stats_add(door->stats, GM_COUNT_IDLE_ENDED, 1);
    else if (why == GM_END_CROWDED || why == GM_END_WANTED)
        gm_stats_add(door->stats, GM_COUNT_EVICTED, 1);
    else if (why == GM_END_SLOW)
        gm_stats_add(door->stats, slow[phase], 1);
    if (why == GM_END_SLOW && phase == GM_CONNECTION_HEAD)
        refuse_head(door, c->socket);
}

enum gm_status gm_door_open(struct gm_door *door, unsigned max, struct gm_connections *connections,
                            struct gm_stats *stats, struct gm_error *err)
{
    enum gm_status status = gm_connections_open(connections, err);

    if (status != GM_OK)
        return status;
    *door = (struct gm_door){.connections = connections, .stats = stats, .max = max};
    connections->ended = on_end;
    connections->cls = door;
    return GM_OK;
}

void gm_door_close(struct gm_door *door)
{
    gm_connections_close(door->connections);
}

static unsigned underway(const struct gm_door *door)
{
    unsigned passed = atomic_load(&door->passed); /* first: it is never ahead */

    return atomic_load(&door->entered) - passed;
}

/* How many would have to leave for as many to be free as should. */
static int crowd(struct gm_door *door)
{
    unsigned staying = gm_connections_staying(door->connections) + underway(door);

    return (int)staying - (int)(door->max - door->max / GM_SPARE_PART);
}

bool gm_door_has_room(const struct gm_door *door, unsigned lingering)
{
    return gm_connections_count(door->connections) + underway(door) + lingering < door->max;
}

void gm_door_enter(struct gm_door *door)
{
    atomic_fetch_add(&door->entered, 1);
    if (crowd(door) > 0)
        gm_connections_evict(door->connections, GM_END_CROWDED, NULL, NULL);
}

void gm_door_missed(struct gm_door *door)
{
    unsigned passed = atomic_load(&door->passed);

    /* Where it has been given up it is counted already. */
    while (passed != atomic_load(&door->entered) &&
           !atomic_compare_exchange_weak(&door->passed, &passed, passed + 1))
        ;
}

bool gm_door_underway(struct gm_door *door)
{
    return underway(door) > 0;
}

struct gm_connection *gm_door_passed(struct gm_door *door, int socket, uint64_t client)
{
    struct gm_connection *c = gm_connections_add(door->connections, socket, client);

    gm_stats_add(door->stats, GM_COUNT_CONNECTIONS, 1);
    gm_door_missed(door); /* only now: whoever looks for it finds it in one place at the least */
    return c;
}

static void give_up_lost(struct gm_door *door)
{
    unsigned passed = atomic_load(&door->passed), all = door->entered_before;

    while ((int)(all - passed) > 0 && !atomic_compare_exchange_weak(&door->passed, &passed, all))
        ;
    door->entered_before = atomic_load(&door->entered);
}

/* A client that was refused memory. */
struct wish {
    struct gm_budget *budget;
    uint64_t client, held;
};

static bool holds_more(void *cls, const struct gm_connection *c)
{
    const struct wish *wish = cls;

    return !gm_budget_is_small(wish->budget, atomic_load(&c->held)) && c->client != wish->client &&
           gm_budget_held(wish->budget, c->client) > wish->held;
}

void gm_want_memory(struct gm_connections *connections, struct gm_budget *budget, uint64_t client)
{
    struct wish wish = {budget, client, gm_budget_held(budget, client)};

    gm_connections_evict(connections, GM_END_WANTED, holds_more, &wish);
}

void gm_door_tick(struct gm_door *door)
{
    gm_connections_sweep(door->connections, gm_now_ns());
    give_up_lost(door);
    /* Those who came in a burst were let be then: nobody was behind yet. */
    while (crowd(door) > 0 && gm_connections_evict(door->connections, GM_END_CROWDED, NULL, NULL))
        ;
}
