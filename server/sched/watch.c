/*
 * watch.c - a thread that ends jobs nobody waits for: those out of time, and those whose
 * client has gone. It looks every GM_WATCH_MS, and earlier where a deadline is nearer; while there
 * are no jobs it sleeps.
 */
#include "server/clock.h"
#include "server/limits.h"
#include "server/sched/sched_state.h"

#include <poll.h>

/* Sockets that the kernel is asked about at a time. */
#define ASKED_MAX 256

/* Jobs that wait on these, and what is to become of them. */
struct look {
    struct gm_sched *sched;
    struct gm_job_list late, abandoned;
    int64_t wake; /* when to look again */
    unsigned asked;
    struct gm_job *job[ASKED_MAX];
    struct pollfd socket[ASKED_MAX];
};

/* A client may close its sending half and still read; while the job only waits that is taken for
 * having gone, since the two cannot be told apart and the queue is precious. */
static void ask(struct look *look)
{
    int events = look->asked > 0 ? poll(look->socket, look->asked, 0) : 0;

    for (unsigned i = 0; i < look->asked && events > 0; i++)
        if (look->socket[i].revents & (POLLRDHUP | POLLHUP | POLLERR))
            gm_sched_drop(look->sched, look->job[i], &look->abandoned);
    look->asked = 0;
}

static void look_at_waiting(struct look *look, int64_t now)
{
    const struct gm_fair_queue *queue = &look->sched->queue;

    for (struct gm_fair_item *i = gm_fair_after(queue, NULL), *next; i; i = next) {
        struct gm_job *job = gm_job_of_slot(i);
        next = gm_fair_after(queue, i); /* before this one may leave */
        if (job->deadline_ns <= now) {
            gm_sched_drop(look->sched, job, &look->late);
            continue;
        }
        if (job->deadline_ns < look->wake)
            look->wake = job->deadline_ns;
        if (job->socket > 0) {
            look->job[look->asked] = job;
            look->socket[look->asked++] = (struct pollfd){job->socket, POLLRDHUP, 0};
            if (look->asked == ASKED_MAX)
                ask(look);
        } else if (job->abandoned && job->abandoned(job, false)) {
            gm_sched_drop(look->sched, job, &look->abandoned);
        }
    }
    ask(look);
}

static void look_at_running(struct look *look, int64_t now)
{
    struct gm_job *job;

    TAILQ_FOREACH(job, &look->sched->running, link)
    {
        if (job->deadline_ns <= now)
            gm_job_stop(job, GM_DEADLINE);
        else if (job->abandoned && job->abandoned(job, true))
            gm_job_stop(job, GM_CANCELLED);
        else if (job->deadline_ns < look->wake)
            look->wake = job->deadline_ns;
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
        struct look look;
        look.sched = s;
        TAILQ_INIT(&look.late);
        TAILQ_INIT(&look.abandoned);
        look.wake = now + (int64_t)GM_WATCH_MS * 1000000;
        look.asked = 0;
        look_at_waiting(&look, now);
        look_at_running(&look, now);
        if (!TAILQ_EMPTY(&look.late) || !TAILQ_EMPTY(&look.abandoned)) {
            if (gm_sched_startable(s))
                pthread_cond_signal(&s->work);
            pthread_mutex_unlock(&s->mutex);
            gm_sched_end(&look.late, GM_DEADLINE);
            gm_sched_end(&look.abandoned, GM_CANCELLED);
            pthread_mutex_lock(&s->mutex);
        }
        if (!s->closing) {
            struct timespec until = gm_timespec(look.wake);
            pthread_cond_timedwait(&s->timer, &s->mutex, &until);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}
