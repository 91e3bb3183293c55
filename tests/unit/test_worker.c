/* Workers: everything added runs once, also what is queued when they are closed. */
#include "server/worker.h"
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
    return check_report();
}
