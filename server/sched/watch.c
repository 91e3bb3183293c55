/*
 * watch.c - a thread that ends jobs that are out of time or whose client has disconnected.
 *
 * It checks each job every GM_WATCH_MS, and when its deadline has come. It sleeps while there are
 * no jobs. With many, it asks the kernel for some sockets at a time, because it holds the mutex.
 */
#include "server/clock.h"
#include "server/limits.h"
#include "server/sched/sched_state.h"

#include <poll.h>

/* Sockets per check: polling so many takes some 50 us. The next ones follow after PAUSE_NS. */
#define SOCKETS_MAX 256
#define PAUSE_NS 2000000

/* One check: the jobs that it ends, and the sockets still to poll. */
struct check {
    struct gm_sched *sched;
    struct gm_job_list late, abandoned;
    int64_t wake; /* time of the next check */
    unsigned sockets;
    struct gm_job *job[SOCKETS_MAX];
    struct pollfd socket[SOCKETS_MAX];
};

/* Polls the collected sockets. A client that has closed its sending half may still read. But that
 * looks like a disconnect, and queue slots are scarce, so a waiting job counts as abandoned. */
static void poll_sockets(struct check *check)
{
    int events = check->sockets > 0 ? poll(check->socket, check->sockets, 0) : 0;

    for (unsigned i = 0; i < check->sockets && events > 0; i++)
        if (check->socket[i].revents & (POLLRDHUP | POLLHUP | POLLERR))
            gm_sched_drop(check->sched, check->job[i], &check->abandoned);
}

static void check_waiting(struct check *check, int64_t now)
{
    const struct gm_fair_queue *queue = &check->sched->queue;

    for (struct gm_fair_item *i = gm_fair_after(queue, NULL), *next; i; i = next) {
        struct gm_job *job = gm_job_of_slot(i);
        next = gm_fair_after(queue, i); /* read before `job` may leave the queue */
        if (job->deadline_ns <= now) {
            gm_sched_learn(check->sched, job, now);
            gm_sched_drop(check->sched, job, &check->late);
            continue;
        }
        if (job->deadline_ns < check->wake)
            check->wake = job->deadline_ns;
        /* This may be a check before its time, for somebody's deadline. */
        if (job->watched_ns > now - (int64_t)GM_WATCH_MS * 1000000 / 2)
            continue;
        if (job->socket <= 0) {
            if (job->abandoned && job->abandoned(job, false))
                gm_sched_drop(check->sched, job, &check->abandoned);
        } else if (check->sockets == SOCKETS_MAX) {
            check->wake = check->wake < now + PAUSE_NS ? check->wake : now + PAUSE_NS;
        } else {
            job->watched_ns = now;
            check->job[check->sockets] = job;
            check->socket[check->sockets++] = (struct pollfd){job->socket, POLLRDHUP, 0};
        }
    }
    poll_sockets(check);
}

static void check_running(struct check *check, int64_t now)
{
    struct gm_job *job;

    TAILQ_FOREACH (job, &check->sched->running, link) {
        if (job->deadline_ns <= now)
            gm_job_stop(job, GM_DEADLINE);
        else if (job->abandoned && job->abandoned(job, true))
            gm_job_stop(job, GM_CANCELLED);
        else if (job->deadline_ns < check->wake)
            check->wake = job->deadline_ns;
    }
}

void *gm_sched_watch_main(void *cls)
{
    struct gm_sched *s = cls;

    pthread_mutex_lock(&s->mutex);
    while (!s->closing) {
        if (s->queue.waiting == 0 && TAILQ_EMPTY(&s->running)) {
            s->timer_asleep = true;
            pthread_cond_wait(&s->timer, &s->mutex);
            continue;
        }
        int64_t now = gm_now_ns();
        struct check check;
        check.sched = s;
        TAILQ_INIT(&check.late);
        TAILQ_INIT(&check.abandoned);
        check.wake = now + (int64_t)GM_WATCH_MS * 1000000;
        check.sockets = 0;
        check_waiting(&check, now);
        check_running(&check, now);
        if (!TAILQ_EMPTY(&check.late) || !TAILQ_EMPTY(&check.abandoned)) {
            if (gm_sched_startable(s))
                gm_sched_wake(s);
            pthread_mutex_unlock(&s->mutex);
            gm_sched_end(&check.late, GM_DEADLINE);
            gm_sched_end(&check.abandoned, GM_CANCELLED);
            pthread_mutex_lock(&s->mutex);
            continue; /* a job may have come meanwhile whose deadline is before check.wake */
        }
        struct timespec until = gm_timespec(check.wake);
        pthread_cond_timedwait(&s->timer, &s->mutex, &until);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}
