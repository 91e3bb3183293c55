/* The order of service: against a model, and what is promised of it. */
#include "server/access/quota.h"
#include "server/request/head.h"
#include "server/sched/fair_queue.h"
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS 400
#define CLIENTS 7

static struct gm_fair_queue queue;

static void push(struct gm_fair_item *item, uint64_t client, double cost_s)
{
    memset(item, 0, sizeof *item);
    item->client = client;
    item->cost_s = cost_s;
    gm_fair_push(&queue, item);
}

/* Serves whose turn it is, in no time but its cost. */
static struct gm_fair_item *serve(void)
{
    struct gm_fair_item *item = gm_fair_first(&queue);

    if (item) {
        gm_fair_serve(&queue, item);
        gm_fair_served(&queue, item, item->cost_s);
    }
    return item;
}

static void check_empty(void)
{
    CHECK(gm_fair_first(&queue) == NULL);
    CHECK(gm_fair_after(&queue, NULL) == NULL);
    CHECK_EQ(queue.waiting, 0);
    CHECK_EQ(queue.in_service, 0);
}

/* One client, one size: as they came. */
static void test_arrival(void)
{
    struct gm_fair_item item[50];

    for (int i = 0; i < 50; i++)
        push(&item[i], 1, 0);
    for (int i = 0; i < 50; i++)
        CHECK(serve() == &item[i]);
    check_empty();
}

/* A client with one item waits for one item of each other client, however many those have. */
static void test_clients_take_turns(void)
{
    static struct gm_fair_item many[3][100];
    struct gm_fair_item one, again;

    for (int i = 0; i < 100; i++)
        for (uint64_t c = 0; c < 3; c++)
            push(&many[c][i], c, 0.01);
    CHECK(serve() == &many[0][0]);
    push(&one, 9, 0.01);
    CHECK(serve() == &many[1][0]);
    CHECK(serve() == &many[2][0]);
    CHECK(serve() == &many[0][1]);
    CHECK(serve() == &one);
    push(&again, 9, 0.01);
    CHECK(serve() == &many[1][1]);
    CHECK(serve() == &many[2][1]);
    CHECK(serve() == &many[0][2]);
    CHECK(serve() == &again);
    while (serve())
        ;
    check_empty();
}

/* Small ones wait for what is in service and no more, though large ones of any size came first. */
static void test_small_before_large(void)
{
    struct gm_fair_item large[10], small[20];

    for (int i = 0; i < 10; i++)
        push(&large[i], (uint64_t)i, i % 3 ? 1 : 5);
    struct gm_fair_item *running = gm_fair_first(&queue);
    gm_fair_serve(&queue, running);
    for (int i = 0; i < 20; i++)
        push(&small[i], 3, 1e-5);
    gm_fair_served(&queue, running, 1);
    for (int i = 0; i < 20; i++)
        CHECK(serve() == &small[i]);
    while (serve())
        ;
    check_empty();
}

/* And large ones do not wait for ever: where small ones never end, each has half of the time, by
 * what it takes in truth and not by what was expected. */
static void test_large_do_not_starve(double small_takes_s)
{
    struct gm_fair_item large[8], small[2];
    double small_s = 0, large_s = 0;
    int served = 0;

    for (int i = 0; i < 8; i++)
        push(&large[i], 1, 1);
    push(&small[0], 1, 1e-4);
    push(&small[1], 1, 1e-4);
    while (served < 8) {
        struct gm_fair_item *item = gm_fair_first(&queue);
        gm_fair_serve(&queue, item);
        bool is_small = item->cost_s < 1;
        gm_fair_served(&queue, item, is_small ? small_takes_s : 1);
        if (is_small) {
            small_s += small_takes_s;
            push(item, 1, 1e-4);
        } else {
            CHECK(item == &large[served++]);
            large_s += 1;
        }
        CHECK(small_s <= large_s + 1 + 2 * small_takes_s);
    }
    CHECK(small_s >= large_s - 1 - 2 * small_takes_s);
    while (serve())
        ;
    check_empty();
}

/* Equal items of one client come as they came, though the estimate of their cost moves over a bound
 * meanwhile. Smaller ones still come first, and other clients' ones take turns. */
static void test_estimates_move(void)
{
    static const double cost_s[] = {0.015, 0.017, 0.03, 0.014, 0.018};
    struct gm_fair_item item[20], small, other;

    for (int i = 0; i < 20; i++)
        push(&item[i], 1, cost_s[i % 5]);
    push(&small, 1, 0.0009);
    push(&other, 2, 0.015);
    CHECK(serve() == &small);
    CHECK(serve() == &item[0]);
    CHECK(serve() == &other);
    for (int i = 1; i < 20; i++)
        CHECK(serve() == &item[i]);
    check_empty();
    push(&item[0], 1, 0.3); /* downwards too */
    push(&item[1], 1, 0.2);
    push(&item[2], 1, 0.06); /* that much less than the bound is another kind */
    CHECK(serve() == &item[2]);
    CHECK(serve() == &item[0]);
    push(&item[3], 1, 0.07);
    push(&item[4], 1, 0.01); /* as is that much less than the last one */
    CHECK(serve() == &item[4]);
    while (serve())
        ;
    check_empty();
}

/* What a size has had while nobody else wanted it does not count against it. */
static void test_no_debts(void)
{
    struct gm_fair_item item[200], other[2];

    for (int i = 0; i < 100; i++) {
        push(&item[i], 1, 1e-4);
        serve();
    }
    push(&other[0], 1, 1);
    push(&other[1], 1, 1);
    struct gm_fair_item *running = gm_fair_first(&queue);
    gm_fair_serve(&queue, running);
    push(&item[100], 1, 1e-4);
    gm_fair_served(&queue, running, 1);
    CHECK(serve() == &item[100]);
    CHECK(serve() == &other[1]);
    check_empty();
}

/* The same in the plainest words: arrays that are searched from end to end. */
struct model {
    struct gm_fair_item *item[ITEMS]; /* as they came */
    unsigned count, in_service;
    unsigned ring[GM_FAIR_SIZES][CLIENTS], ring_count[GM_FAIR_SIZES]; /* clients */
    double used[GM_FAIR_SIZES], level;
    const struct gm_fair_item *base; /* all items, and the size of each */
    unsigned size[ITEMS];
};

static unsigned model_size(const struct model *m, const struct gm_fair_item *item)
{
    return m->size[item - m->base];
}

static struct gm_fair_item *model_next(const struct model *m, unsigned size, uint64_t client)
{
    for (unsigned i = 0; i < m->count; i++)
        if (m->item[i]->client == client && model_size(m, m->item[i]) == size)
            return m->item[i];
    return NULL;
}

static unsigned model_find_size(const struct model *m, const struct gm_fair_item *item)
{
    static const double bound[] = {0.001, 0.016, 0.256, 4.096};
    const struct gm_fair_item *of[GM_FAIR_SIZES] = {0}; /* the last one of each size */
    unsigned own = 0;

    while (own < 4 && item->cost_s >= bound[own])
        own++;
    for (unsigned i = 0; i < m->count; i++)
        if (m->item[i]->client == item->client)
            of[model_size(m, m->item[i])] = m->item[i];
    for (unsigned low = own > 0 ? own - 1 : own; low <= own && low < 4 && !of[own]; low++) {
        const struct gm_fair_item *near = of[low < own ? low : own + 1];
        if (near && near->cost_s < 4 * item->cost_s && item->cost_s < 4 * near->cost_s &&
            bound[low] < 4 * item->cost_s && item->cost_s < 4 * bound[low])
            return low < own ? low : own + 1;
    }
    return own;
}

static void model_push(struct model *m, struct gm_fair_item *item)
{
    unsigned size = m->size[item - m->base] = model_find_size(m, item);

    if (m->count == 0 && m->in_service == 0) {
        memset(m->used, 0, sizeof m->used);
        m->level = 0;
    }
    if (m->ring_count[size] == 0 && m->used[size] < m->level)
        m->used[size] = m->level;
    if (!model_next(m, size, item->client))
        m->ring[size][m->ring_count[size]++] = (unsigned)item->client;
    m->item[m->count++] = item;
}

static struct gm_fair_item *model_first(const struct model *m)
{
    struct gm_fair_item *first[GM_FAIR_SIZES];
    int best = -1;

    for (unsigned s = 0; s < GM_FAIR_SIZES; s++)
        first[s] = m->ring_count[s] > 0 ? model_next(m, s, m->ring[s][0]) : NULL;
    for (int s = GM_FAIR_SIZES - 1; s >= 0; s--)
        if (first[s] &&
            (best < 0 || m->used[s] + first[s]->cost_s <= m->used[best] + first[best]->cost_s))
            best = s;
    return best < 0 ? NULL : first[best];
}

static void model_leave(struct model *m, const struct gm_fair_item *item, bool served)
{
    unsigned size = model_size(m, item), at = 0, client = 0;

    while (m->item[at] != item)
        at++;
    memmove(&m->item[at], &m->item[at + 1], (--m->count - at) * sizeof m->item[0]);
    while (m->ring[size][client] != item->client)
        client++;
    bool more = model_next(m, size, item->client);
    if (more && !served)
        return;
    m->ring_count[size]--;
    memmove(&m->ring[size][client], &m->ring[size][client + 1],
            (m->ring_count[size] - client) * sizeof m->ring[0][0]);
    if (more)
        m->ring[size][m->ring_count[size]++] = (unsigned)item->client;
}

static void check_same(const struct model *m)
{
    unsigned seen = 0;

    CHECK(gm_fair_first(&queue) == model_first(m));
    CHECK_EQ(queue.waiting, m->count);
    for (const struct gm_fair_item *i = NULL; (i = gm_fair_after(&queue, i)) != NULL; seen++) {
        unsigned at = 0;
        while (at < m->count && m->item[at] != i)
            at++;
        CHECK(at < m->count);
    }
    CHECK_EQ(seen, m->count);
}

static void test_against_model(unsigned seed)
{
    static const double costs[] = {0, 5e-6, 0.0009, 0.001, 0.01, 0.016, 0.2, 0.256, 3, 4.096, 60};
    static struct gm_fair_item item[ITEMS];
    static struct model m;
    struct gm_fair_item *running[3] = {0};

    memset(&m, 0, sizeof m);
    m.base = item;
    for (unsigned made = 0; made < ITEMS || m.count > 0;) {
        unsigned dice = (unsigned)rand_r(&seed) % 16, lane = (unsigned)rand_r(&seed) % 3;
        if (dice < 6 && made < ITEMS) {
            push(&item[made], (uint64_t)rand_r(&seed) % CLIENTS, costs[rand_r(&seed) % 11]);
            model_push(&m, &item[made++]);
        } else if (dice < 9 && m.count > 0) {
            struct gm_fair_item *any = m.item[(unsigned)rand_r(&seed) % m.count];
            gm_fair_remove(&queue, any);
            model_leave(&m, any, false);
        } else if (running[lane]) {
            /* Quarters, so that sums are exact in whatever order they are made. */
            double took = (double)(rand_r(&seed) % 64) / 4;
            gm_fair_served(&queue, running[lane], took);
            m.used[model_size(&m, running[lane])] += took - running[lane]->cost_s;
            m.in_service--;
            running[lane] = NULL;
        } else if (m.count > 0) {
            running[lane] = model_first(&m);
            gm_fair_serve(&queue, running[lane]);
            model_leave(&m, running[lane], true);
            unsigned size = model_size(&m, running[lane]);
            m.level = m.used[size] > m.level ? m.used[size] : m.level;
            m.used[size] += running[lane]->cost_s;
            m.in_service++;
        }
        check_same(&m);
    }
    for (unsigned lane = 0; lane < 3; lane++)
        if (running[lane])
            gm_fair_served(&queue, running[lane], 1);
    check_empty();
}

/* What is served before an item is told when it is pushed: as it turns out, but for one item of
 * each class, where items of a class cost the same, and clients' numbers of them whatever. */
static void test_before(unsigned seed)
{
    static const double costs[GM_FAIR_SIZES] = {0.0005, 0.008, 0.125, 2, 30};
    static struct gm_fair_item item[ITEMS];
    unsigned made = 0, sizes = 1 + (unsigned)rand_r(&seed) % GM_FAIR_SIZES;
    double unsure_s = 0;

    gm_fair_init(&queue);
    for (unsigned i = 0; i < sizes; i++)
        unsure_s += costs[i];
    while (made < ITEMS - 1) {
        for (unsigned n = (unsigned)rand_r(&seed) % 20; n > 0 && made < ITEMS - 1; n--) {
            unsigned client = (unsigned)rand_r(&seed) % CLIENTS;
            push(&item[made++], client * ((unsigned)rand_r(&seed) % 2),
                 costs[(unsigned)rand_r(&seed) % sizes]);
        }
        for (unsigned n = (unsigned)rand_r(&seed) % 10; n > 0; n--)
            serve();
    }
    /* No others come, so none have come of late. */
    for (unsigned i = 0; i < GM_FAIR_SIZES; i++)
        queue.size[i].recent_s = 0;
    struct gm_fair_item last = {.client = (unsigned)rand_r(&seed) % (CLIENTS + 2),
                                .cost_s = costs[(unsigned)rand_r(&seed) % sizes]};
    double expected_s = gm_fair_before_s(&queue, &last), before_s = 0;
    gm_fair_push(&queue, &last);
    for (struct gm_fair_item *next = serve(); next != &last; next = serve())
        before_s += next->cost_s;
    CHECK(fabs(expected_s - before_s) <= unsure_s + 1e-9);
    while (serve())
        ;
    check_empty();
}

/* What has come of late counts too: small items that go on coming get as much as a large one. */
static void test_before_others(void)
{
    struct gm_fair_item large[2], small[2];

    gm_fair_init(&queue);
    push(&large[0], 1, 1);
    for (int i = 0; i < 100; i++) {
        push(&small[i % 2], 1, 0.005);
        CHECK(serve() == &small[i % 2]);
    }
    large[1] = large[0];
    CHECK(gm_fair_before_s(&queue, &large[1]) > 1.9); /* the other one, and small ones */
    CHECK(gm_fair_before_s(&queue, &small[0]) < 0.1);
    while (serve())
        ;
    check_empty();
}

/* Neighbours are told apart, whatever the rest of the address. */
static void test_buckets(void)
{
    for (uint64_t network = 0; network < 40; network++) {
        static bool taken[GM_FAIR_BUCKETS];
        memset(taken, 0, sizeof taken);
        for (uint64_t host = 0; host < GM_FAIR_BUCKETS; host++) {
            unsigned bucket = gm_fair_bucket(network * 0x123456789a000400u + host);
            CHECK(bucket < GM_FAIR_BUCKETS && !taken[bucket]);
            taken[bucket] = true;
        }
    }
}

static uint64_t client(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = (in_port_t)rand()};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = (in_port_t)rand()};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return gm_client_of((struct sockaddr *)&v4);
    CHECK(inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
    return gm_client_of((struct sockaddr *)&v6);
}

static void test_who_is_a_client(void)
{
    CHECK(client("127.0.0.1") == client("127.0.0.1")); /* whatever the port */
    CHECK(client("127.0.0.1") != client("127.0.0.2"));
    CHECK(client("::ffff:10.1.2.3") == client("10.1.2.3"));
    CHECK(client("2001:db8:1:2::1") == client("2001:db8:1:2:ffff::9"));
    CHECK(client("2001:db8:1:2::1") != client("2001:db8:1:3::1"));
    /* All of Unix sockets are one, which is no address's. */
    CHECK_EQ(gm_client_of(NULL), GM_CLIENT_UNIX);
    CHECK_EQ(gm_client_of(&(struct sockaddr){.sa_family = AF_UNIX}), GM_CLIENT_UNIX);
    CHECK_EQ(client("::1"), 0);
}

int main(void)
{
    gm_fair_init(&queue);
    test_arrival();
    test_clients_take_turns();
    test_small_before_large();
    test_large_do_not_starve(1e-4);
    test_large_do_not_starve(0.05); /* five hundred times what was expected */
    test_estimates_move();
    test_no_debts();
    for (unsigned i = 0; i < 50; i++)
        test_against_model(check_seed() + i);
    for (unsigned i = 0; i < 200; i++)
        test_before(check_seed() + i);
    test_before_others();
    test_buckets();
    test_who_is_a_client();
    return check_report();
}
