/* Admission by memory. */
#include "server/budget.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <string.h>

static struct gm_budget budget;

static void test_limits(void)
{
    struct gm_share a = {.budget = &budget}, b = {.budget = &budget};
    struct gm_error error;

    budget.limit = 1000;
    CHECK(gm_share_grow(&a, 600, &error) == GM_OK);
    CHECK(gm_share_grow(&a, 500, &error) == GM_OK); /* it only grows */
    CHECK(a.bytes == 600);
    CHECK(gm_share_grow(&b, 1001, &error) == GM_TOO_LARGE);
    CHECK(strstr(error.detail, "1001") && strstr(error.detail, "1000"));
    CHECK(gm_share_grow(&b, UINT64_MAX, &error) == GM_TOO_LARGE);
    CHECK(gm_share_grow(&b, 401, &error) == GM_MEMORY_FULL);
    CHECK(b.bytes == 0);
    CHECK(gm_share_grow(&b, 400, &error) == GM_OK);
    CHECK(budget.used == 1000);
    CHECK(gm_share_grow(&a, 601, &error) == GM_MEMORY_FULL);
    gm_share_release(&b, 100);
    CHECK(budget.used == 900 && b.bytes == 300);
    CHECK(gm_share_grow(&a, 700, &error) == GM_OK);
    gm_share_release(&a, UINT64_MAX); /* all of it */
    gm_share_release(&b, UINT64_MAX);
    CHECK(budget.used == 0 && a.bytes == 0 && b.bytes == 0);
}

static void *grab(void *cls)
{
    uint64_t *most = cls;

    for (int i = 0; i < 20000; i++) {
        struct gm_share share = {.budget = &budget};
        struct gm_error error;
        if (gm_share_grow(&share, 300, &error) == GM_OK) {
            uint64_t used = budget.used;
            if (used > *most)
                *most = used;
        }
        gm_share_release(&share, UINT64_MAX);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread[4];
    uint64_t most[4] = {0};

    budget.limit = 1000;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, grab, &most[i]) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK(most[i] > 0 && most[i] <= 1000);
    }
    CHECK(budget.used == 0);
}

int main(void)
{
    test_limits();
    test_threads();
    return check_report();
}
