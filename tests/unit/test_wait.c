/* How event threads wait, as the HTTP library sees it: what has come is told soon, whether it waits
 * or not, and an answer that was full is followed by one at once. */
#include "server/clock.h"
#include "server/http/internal.h"
#include "tests/unit/check.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SOON_MS 10000 /* on a busy machine; what is tested takes microseconds */

static int set, file[2];

static void begin(void)
{
    set = epoll_create1(0);
    CHECK(set >= 0);
    for (unsigned i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data = {.u32 = i}};
        file[i] = eventfd(0, EFD_NONBLOCK);
        CHECK(file[i] >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, file[i], &event) == 0);
    }
}

static void end(void)
{
    close(set);
    for (unsigned i = 0; i < 2; i++)
        close(file[i]);
}

static void happens(unsigned index)
{
    const uint64_t one = 1;

    CHECK_EQ(write(file[index], &one, sizeof one), sizeof one);
}

/* Once the library has had an answer, an event that comes just after it is told while the library
 * only asks without waiting, as it does while a connection goes on. */
static void test_without_waiting(void)
{
    struct epoll_event events[2];
    int64_t until_ns = gm_now_ns() + SOON_MS * INT64_C(1000000);
    int count = 0;

    begin();
    CHECK_EQ(epoll_wait(set, events, 2, 1), 0);
    unsigned answers = gm_wait_events();
    happens(1);
    while (count == 0 && gm_now_ns() < until_ns)
        count = epoll_wait(set, events, 2, 0);
    CHECK_EQ(count, 1);
    CHECK(count == 1 && events[0].data.u32 == 1);
    CHECK_EQ(gm_wait_events(), answers + 1);
    end();
}

/* Who waits is told at once, however short the last answer is ago. */
static void test_waiting(void)
{
    struct epoll_event events[2];

    begin();
    for (unsigned i = 0; i < 100; i++) {
        int64_t begun_ns = gm_now_ns();
        happens(i % 2);
        CHECK_EQ(epoll_wait(set, events, 2, SOON_MS), 1);
        CHECK(events[0].data.u32 == i % 2);
        CHECK(gm_now_ns() - begun_ns < SOON_MS * INT64_C(500000));
    }
    end();
}

/* After a full answer nobody sleeps, and the next event is not missed. */
static void test_full(void)
{
    struct epoll_event events[2];
    int64_t begun_ns = gm_now_ns();

    begin();
    happens(0);
    happens(1);
    CHECK_EQ(epoll_wait(set, events, 2, SOON_MS), 2);
    CHECK_EQ(epoll_wait(set, events, 2, SOON_MS), 0);
    CHECK(gm_now_ns() - begun_ns < SOON_MS * INT64_C(500000));
    happens(0);
    CHECK_EQ(epoll_wait(set, events, 2, SOON_MS), 1);
    end();
}

/* An answer about one set says nothing of another. */
static void test_another_set(void)
{
    struct epoll_event events[2];
    int empty = epoll_create1(0);

    begin();
    happens(0);
    CHECK_EQ(epoll_wait(empty, events, 2, 1), 0);
    CHECK_EQ(epoll_wait(set, events, 2, 0), 1);
    close(empty);
    end();
}

int main(void)
{
    test_without_waiting();
    test_waiting();
    test_full();
    test_another_set();
    return check_report();
}
