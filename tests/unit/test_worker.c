/* Workers: everything added runs once, in its turn, also what is queued when they are closed. */
#include "server/sched/worker.h"
#include "tests/unit/check.h"

#include <stdatomic.h>
#include <time.h>

#define N 500

struct item {
    struct gm_work work;
    atomic_int runs;
};

static void run(struct gm_work *work)
{
    atomic_fetch_add(&((struct item *)work)->runs, 1);
}

static void run_slowly(struct gm_work *work)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    run(work);
}

/* The order in which they ran. */
static struct item *ran[16];
static atomic_int ran_count;
static atomic_bool go;

static void run_in_order(struct gm_work *work)
{
    ran[atomic_fetch_add(&ran_count, 1)] = (struct item *)work;
    while (!atomic_load(&go))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Two megabytes do not wait for all those of a hundred, nor a client for another's many. */
static void test_order(void)
{
    static const struct {
        uint64_t client;
        double cost_s;
    } work[] = {{1, 0.3}, {1, 0.3}, {1, 0.3}, {1, 0.3}, {2, 0.3}, {1, 0.005}};
    static const int expected[] = {0, 5, 1, 4, 2, 3};
    static struct item item[6];
    struct gm_workers *workers;
    struct gm_error error;

    CHECK(gm_workers_open(1, &workers, &error) == GM_OK);
    for (int i = 0; i < 6; i++) {
        item[i].work.run = run_in_order;
        item[i].work.slot.client = work[i].client;
        item[i].work.slot.cost_s = work[i].cost_s;
        gm_workers_add(workers, &item[i].work);
        while (i == 0 && atomic_load(&ran_count) == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    atomic_store(&go, true);
    gm_workers_close(workers);
    for (int i = 0; i < 6; i++)
        CHECK(ran[i] == &item[expected[i]]);
}

int main(void)
{
    static struct item items[N];
    struct gm_workers *workers;
    struct gm_error error;

    for (int round = 0; round < 2; round++) {
        CHECK(gm_workers_open(3, &workers, &error) == GM_OK);
        for (int i = 0; i < N; i++) {
            atomic_store(&items[i].runs, 0);
            items[i].work.run = i < 3 ? run_slowly : run;
            gm_workers_add(workers, &items[i].work);
        }
        gm_workers_close(workers);
        for (int i = 0; i < N; i++)
            CHECK(atomic_load(&items[i].runs) == 1);
    }
    gm_workers_close(NULL);
    test_order();
    return check_report();
}
