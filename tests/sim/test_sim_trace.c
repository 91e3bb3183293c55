/*
 * test_sim_trace.c - from what each lane did to what its warp did, on logs made by hand: lanes that
 * part at a branch and meet again, loops that some leave early, logs that come in pieces.
 *
 * A lane's log is written as a text, an event a character: a to z are steps, A to Z loads, in the
 * order of their places in the code (a before A before b before B ...).
 */
#include "kernels/sim/run/worker.h"
#include "tests/unit/check.h"

static struct gm_sim_worker *w;

static void begin_warp(void)
{
    gm_tally_reset(&w->tally);
    w->warp_weight = 1;
    for (unsigned lane = 0; lane < GM_WARP; lane++) {
        w->log_begin[lane] = w->log_end[lane] = 0;
        w->thread[lane].state = GM_SIM_DONE;
    }
}

static uint32_t key_of(char c)
{
    return c >= 'a' ? 16 * (uint32_t)(c - 'a' + 1) : 16 * (uint32_t)(c - 'A' + 1) + 8;
}

static void put(unsigned lane, const char *events)
{
    for (; *events != '\0'; events++) {
        bool step = *events >= 'a';
        if (!CHECK(w->log_end[lane] < GM_SIM_LOG_EVENTS))
            return;
        w->log[lane][w->log_end[lane]++] = (struct gm_sim_event){
            .key = key_of(*events),
            .kind = step ? GM_SIM_STEP : GM_GLOBAL_LOAD,
            .bytes = 4,
            .address = step ? 0 : 4096 + 4 * lane,
        };
    }
}

static void put_all(const char *events)
{
    for (unsigned lane = 0; lane < GM_WARP; lane++)
        put(lane, events);
}

/* Requests made at a place, and the lanes in all of them. */
static void expect(char place, double requests, double lanes)
{
    struct gm_access_sums sums = {0};

    for (size_t i = 0; i < w->tally.count; i++)
        if (w->tally.site[i].key == key_of(place))
            gm_access_add(&sums, &w->tally.site[i].sums);
    if (!CHECK(sums.requests == requests) | !CHECK(sums.lanes == lanes))
        fprintf(stderr, "  %c: %g requests of %g lanes, not %g of %g\n", place, sums.requests,
                sums.lanes, requests, lanes);
}

static void expect_steps(double steps, double lanes)
{
    CHECK(w->tally.steps == steps);
    CHECK(w->tally.step_lanes == lanes);
}

static void trace(unsigned lanes)
{
    gm_sim_trace(w, 0, lanes);
    for (unsigned lane = 0; lane < lanes; lane++)
        CHECK(w->log_begin[lane] == w->log_end[lane]);
}

static void test_straight(void)
{
    begin_warp();
    put_all("aABbC");
    trace(32);
    expect('A', 1, 32);
    expect('B', 1, 32);
    expect('C', 1, 32);
    expect_steps(2, 64);
    CHECK_EQ(w->tally.site[0].example.active, UINT32_MAX);
    CHECK_EQ(w->tally.site[0].example.offset[31], 4096 + 124);
}

static void test_branch(void)
{
    begin_warp();
    for (unsigned lane = 0; lane < 32; lane++)
        put(lane, lane < 10 ? "abBdD" : "acCdD");
    trace(32);
    expect('B', 1, 10);
    expect('C', 1, 22);
    expect('D', 1, 32);
    expect_steps(4, 96);

    /* Of two branches one within the other: four ways, and all meet again. */
    begin_warp();
    for (unsigned lane = 0; lane < 32; lane++)
        put(lane, lane % 4 == 0 ? "abcCeEgG" : lane % 4 == 1 ? "abdDeEgG" : "afFgG");
    trace(32);
    expect('C', 1, 8);
    expect('D', 1, 8);
    expect('E', 1, 16);
    expect('F', 1, 16);
    expect('G', 1, 32);
}

/* In three rounds of a loop the even lanes load in the first and the last, the odd ones in the
 * second: three requests. Counted by visits there would be two. */
static void test_alternate_rounds(void)
{
    begin_warp();
    for (unsigned lane = 0; lane < 32; lane++)
        put(lane, lane % 2 == 0 ? "abBcaca"
                                  "bBcd"
                                : "acabBcacd");
    trace(32);
    expect('B', 3, 48);
    expect_steps(3 + 3 + 3 + 1, 3 * 32 + 48 + 3 * 32 + 32);
}

/* Lanes leave a loop after one to four rounds, and wait for the others behind it. */
static void test_uneven_rounds(void)
{
    static const char *const rounds[] = {"aAbB", "aAaAbB", "aAaAaAbB", "aAaAaAaAbB"};

    begin_warp();
    for (unsigned lane = 0; lane < 32; lane++)
        put(lane, rounds[lane % 4]);
    trace(32);
    expect('A', 4, 32 + 24 + 16 + 8);
    expect('B', 1, 32);
}

/* Threads that have ended, and warps with fewer lanes. */
static void test_fewer_lanes(void)
{
    begin_warp();
    for (unsigned lane = 0; lane < 32; lane++)
        put(lane, lane < 5 ? "aAbB" : "a");
    trace(32);
    expect('A', 1, 5);
    expect('B', 1, 5);
    begin_warp();
    for (unsigned lane = 0; lane < 7; lane++)
        put(lane, "aA");
    trace(7);
    expect('A', 1, 7);
}

/* A lane that is still running may yet do what comes first: nothing is decided without it. */
static void test_pieces(void)
{
    begin_warp();
    put_all("aA");
    put(0, "cC");
    w->thread[5].state = GM_SIM_READY;
    gm_sim_trace(w, 0, 32);
    expect('A', 1, 32);
    expect('C', 0, 0);
    CHECK_EQ(w->log_end[0] - w->log_begin[0], 2);
    put(5, "bBcC");
    w->thread[5].state = GM_SIM_DONE;
    trace(32);
    expect('B', 1, 1);
    expect('C', 1, 2);
}

/* A log that is full makes room for more, and loses nothing. */
static void test_full(void)
{
    begin_warp();
    for (unsigned i = 0; i < GM_SIM_LOG_EVENTS / 2; i++)
        put(0, "aA");
    put(1, "aAaA");
    w->thread[0].state = w->thread[1].state = GM_SIM_READY;
    gm_sim_trace(w, 0, 2);
    expect('A', 2, 4);
    CHECK_EQ(w->log_end[0], GM_SIM_LOG_EVENTS - 4);
    put(0, "aAbB");
    for (unsigned i = 2; i < GM_SIM_LOG_EVENTS / 2 + 1; i++)
        put(1, "aA");
    put(1, "b");
    w->thread[0].state = w->thread[1].state = GM_SIM_DONE;
    trace(2);
    expect('A', GM_SIM_LOG_EVENTS / 2 + 1, GM_SIM_LOG_EVENTS + 2);
    expect('B', 1, 1);
    expect_steps(GM_SIM_LOG_EVENTS / 2 + 2, GM_SIM_LOG_EVENTS + 4);
}

/* At one place, but in different memories or of different widths: requests of their own. */
static void test_kinds(void)
{
    begin_warp();
    put_all("aA");
    for (unsigned lane = 0; lane < 32; lane++) {
        struct gm_sim_event *event = &w->log[lane][1];
        event->memory = lane < 8 ? GM_SIM_SHARED + 3 : 1;
        event->kind = lane < 8 ? GM_SHARED_LOAD : GM_GLOBAL_LOAD;
        event->bytes = lane == 31 ? 8 : 4;
    }
    trace(32);
    expect('A', 3, 32);
    CHECK_EQ(w->tally.count, 2);
    CHECK(w->tally.site[0].sums.requests == 1 && w->tally.site[0].sums.lanes == 8);
    CHECK_EQ(w->tally.site[0].kind, GM_SHARED_LOAD);
    CHECK(w->tally.site[1].sums.requests == 2 && w->tally.site[1].sums.bytes_useful == 23 * 4 + 8);
}

/* The weight of a block counts for all that is in it. */
static void test_weight(void)
{
    begin_warp();
    w->warp_weight = 2.5;
    put_all("aA");
    trace(32);
    expect('A', 2.5, 80);
    expect_steps(2.5, 80);
}

int main(void)
{
    w = calloc(1, sizeof(*w));
    if (!CHECK(w != NULL))
        return check_report();
    test_straight();
    test_branch();
    test_alternate_rounds();
    test_uneven_rounds();
    test_fewer_lanes();
    test_pieces();
    test_full();
    test_kinds();
    test_weight();
    gm_tally_free(&w->tally);
    free(w);
    return check_report();
}
