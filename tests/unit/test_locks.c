/* Locks that the system does not give: whatever wants them says so, and does without none. */
#include "kernels/buffer_pool.h"
#include "server/http/connections.h"
#include "server/limits.h"
#include "server/request/request.h"
#include "server/sched/sched.h"
#include "server/sched/worker.h"
#include "tests/unit/check.h"
#include "tests/unit/fake_backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>

static atomic_long given = LONG_MAX; /* how many more there are */

static bool lacks(void)
{
    return atomic_fetch_sub(&given, 1) <= 0;
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    int (*real)(pthread_mutex_t *, const pthread_mutexattr_t *) =
        (int (*)(pthread_mutex_t *, const pthread_mutexattr_t *))dlsym(RTLD_NEXT,
                                                                       "pthread_mutex_init");

    return lacks() ? ENOMEM : real(mutex, attr);
}

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    int (*real)(pthread_cond_t *, const pthread_condattr_t *) =
        (int (*)(pthread_cond_t *, const pthread_condattr_t *))dlsym(RTLD_NEXT,
                                                                     "pthread_cond_init");

    return lacks() ? ENOMEM : real(cond, attr);
}

#define LOCKS_MAX 2000 /* more than anything here takes */

static struct fake fake;

static enum gm_status try_limit(struct gm_error *err)
{
    struct gm_buffer_limit *limit;
    enum gm_status status = gm_buffer_limit_open(1 << 20, &limit, err);

    if (status == GM_OK)
        gm_buffer_limit_close(limit);
    return status;
}

static enum gm_status try_backend(const struct gm_backend *backend, struct gm_error *err)
{
    struct gm_backend_options options = {.threads = 2, .memory_limit = 1 << 26};
    void *context;
    enum gm_status status = backend->open(&options, &context, err);

    if (status == GM_OK)
        backend->close(context);
    return status;
}

static enum gm_status try_cpu(struct gm_error *err)
{
    return try_backend(&gm_backend_cpu, err);
}

static enum gm_status try_sim(struct gm_error *err)
{
    return try_backend(&gm_backend_sim, err);
}

static enum gm_status try_connections(struct gm_error *err)
{
    static struct gm_connections connections;
    enum gm_status status = gm_connections_open(&connections, err);

    if (status == GM_OK)
        gm_connections_close(&connections);
    return status;
}

static enum gm_status try_quota(struct gm_error *err)
{
    static struct gm_memory_quota quota;
    enum gm_status status = gm_memory_quota_open(&quota, 1000, err);

    if (status == GM_OK)
        gm_memory_quota_close(&quota);
    return status;
}

static enum gm_status try_recents(struct gm_error *err)
{
    static struct gm_recents recents;
    enum gm_status status = gm_recents_open(&recents, err);

    if (status == GM_OK)
        gm_recents_close(&recents);
    return status;
}

static enum gm_status try_requests(struct gm_error *err)
{
    static struct gm_server server;
    enum gm_status status = gm_requests_open(&server, err);

    if (status == GM_OK)
        gm_requests_close(&server);
    return status;
}

static enum gm_status try_workers(struct gm_error *err)
{
    struct gm_workers *workers;
    enum gm_status status = gm_workers_open(2, &workers, err);

    if (status == GM_OK)
        gm_workers_close(workers);
    return status;
}

static enum gm_status try_sched(struct gm_error *err)
{
    struct gm_sched_options options = {
        .backend = &fake_backend, .context = &fake, .queue_limit = 4};
    struct gm_sched *sched;
    enum gm_status status = gm_sched_open(&options, &sched, err);

    if (status == GM_OK)
        gm_sched_close(sched);
    return status;
}

int main(void)
{
    static const struct {
        const char *name;
        enum gm_status (*run)(struct gm_error *err);
        int least; /* of locks */
    } tries[] = {{"limit", try_limit, 2},
                 {"cpu", try_cpu, 4},
                 {"sim", try_sim, 3},
                 {"connections", try_connections, 1},
                 {"quota", try_quota, 1},
                 {"workers", try_workers, 2},
                 {"sched", try_sched, 3},
                 {"recents", try_recents, GM_RECENT_ACCOUNTS_MAX},
                 {"requests", try_requests, GM_REQUEST_LISTS}};

    fake_init(&fake, 1, 1);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        enum gm_status status;
        int locks = -1;
        do {
            struct gm_error err = {.detail = ""};
            atomic_store(&given, ++locks);
            status = tries[i].run(&err);
            bool wanted = atomic_load(&given) < 0; /* more than there were */
            bool right = CHECK_EQ(status != GM_OK, wanted);
            right &= CHECK_EQ(err.detail[0] != '\0', wanted);
            if (!right)
                fprintf(stderr, "  %s with %d locks\n", tries[i].name, locks);
            status = wanted ? GM_MEMORY_FULL : GM_OK;
        } while (status != GM_OK && locks < LOCKS_MAX);
        CHECK(locks >= tries[i].least && locks < LOCKS_MAX);
    }
    atomic_store(&given, LONG_MAX);
    fake_destroy(&fake);
    return check_report();
}
