/* The door: who is between it and the HTTP library, and when one that got lost there is given up.
 */
#include "server/http/connection_limiter.h"
#include "tests/unit/check.h"

static struct gm_connections connections;
static struct gm_stats stats;
static struct gm_door door;

static void pass(void)
{
    struct gm_connection *c = gm_door_passed(&door, -1, 0);

    CHECK_EQ(gm_connections_count(&connections), 1);
    gm_connections_remove(&connections, c);
}

static void test_on_its_way(void)
{
    CHECK(!gm_door_underway(&door));
    gm_door_enter(&door);
    gm_door_enter(&door);
    CHECK(gm_door_underway(&door));
    pass();
    CHECK(gm_door_underway(&door));
    gm_door_missed(&door);
    CHECK(!gm_door_underway(&door));
}

/* It may have entered just before a tick: that one says nothing, and the next does. */
static void test_lost(void)
{
    gm_door_enter(&door);
    gm_door_tick(&door);
    CHECK(gm_door_underway(&door));
    gm_door_tick(&door);
    CHECK(!gm_door_underway(&door));
    /* It comes after all. */
    pass();
    CHECK(!gm_door_underway(&door));
    /* Another, which entered between the ticks, is not given up with it. */
    gm_door_enter(&door);
    gm_door_tick(&door);
    gm_door_enter(&door);
    gm_door_tick(&door);
    CHECK(gm_door_underway(&door));
    pass();
    CHECK(!gm_door_underway(&door));
    gm_door_tick(&door);
    CHECK(!gm_door_underway(&door) && gm_door_has_room(&door, 0));
    CHECK(gm_door_has_room(&door, 99) && !gm_door_has_room(&door, 100));
}

int main(void)
{
    struct gm_error err;

    if (!CHECK_EQ(gm_door_open(&door, 100, &connections, &stats, &err), GM_OK))
        return check_report();
    test_on_its_way();
    test_lost();
    gm_door_close(&door);
    return check_report();
}
