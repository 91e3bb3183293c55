/* The connection limiter: who is between it and the HTTP library, and when one that got lost there
 * is given up.
 */
#include "server/http/connection_limiter.h"
#include "tests/unit/check.h"

static struct gm_connections connections;
static struct gm_stats stats;
static struct gm_limiter limiter;

static void pass(void)
{
    struct gm_connection *c = gm_limiter_passed(&limiter, -1, 0, NULL);

    CHECK_EQ(gm_connections_count(&connections), 1);
    gm_connections_remove(&connections, c);
}

static void test_on_its_way(void)
{
    CHECK(!gm_limiter_underway(&limiter));
    gm_limiter_enter(&limiter);
    gm_limiter_enter(&limiter);
    CHECK(gm_limiter_underway(&limiter));
    pass();
    CHECK(gm_limiter_underway(&limiter));
    gm_limiter_missed(&limiter);
    CHECK(!gm_limiter_underway(&limiter));
}

/* It may have entered just before a tick: that one says nothing, and the next does. */
static void test_lost(void)
{
    gm_limiter_enter(&limiter);
    gm_limiter_tick(&limiter);
    CHECK(gm_limiter_underway(&limiter));
    gm_limiter_tick(&limiter);
    CHECK(!gm_limiter_underway(&limiter));
    /* It comes after all. */
    pass();
    CHECK(!gm_limiter_underway(&limiter));
    /* Another, which entered between the ticks, is not given up with it. */
    gm_limiter_enter(&limiter);
    gm_limiter_tick(&limiter);
    gm_limiter_enter(&limiter);
    gm_limiter_tick(&limiter);
    CHECK(gm_limiter_underway(&limiter));
    pass();
    CHECK(!gm_limiter_underway(&limiter));
    gm_limiter_tick(&limiter);
    CHECK(!gm_limiter_underway(&limiter) && gm_limiter_has_room(&limiter, 0));
    CHECK(gm_limiter_has_room(&limiter, 99) && !gm_limiter_has_room(&limiter, 100));
}

int main(void)
{
    struct gm_error err;

    if (!CHECK_EQ(gm_limiter_open(&limiter, 100, &connections, &stats, &err), GM_OK))
        return check_report();
    test_on_its_way();
    test_lost();
    gm_limiter_close(&limiter);
    return check_report();
}
