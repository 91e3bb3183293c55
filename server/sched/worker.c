#include "server/sched/worker.h"

#include "server/clock.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

struct gm_workers {
    pthread_mutex_t mutex; /* guards queue, closing */
    pthread_cond_t wake;
    struct gm_fair_queue queue;
    bool closing;
    unsigned threads;
    pthread_t thread[];
};

/* Runs one item. Called with the mutex held, and releases it meanwhile. */
static void run_next(struct gm_workers *w, struct gm_fair_item *first)
{
    struct gm_work *work = (struct gm_work *)((char *)first - offsetof(struct gm_work, slot));
    const struct gm_fair_item slot = *first; /* a copy, because run() may free the work */
    int64_t begun = gm_now_ns();

    pthread_mutex_unlock(&w->mutex);
    work->run(work);
    pthread_mutex_lock(&w->mutex);
    gm_fair_served(&w->queue, &slot, (double)(gm_now_ns() - begun) * 1e-9);
}

static void *worker_main(void *cls)
{
    struct gm_workers *w = cls;

    pthread_mutex_lock(&w->mutex);
    for (;;) {
        struct gm_fair_item *first = gm_fair_first(&w->queue);
        if (first) {
            gm_fair_serve(&w->queue, first);
            run_next(w, first);
        } else if (w->closing) {
            break;
        } else {
            pthread_cond_wait(&w->wake, &w->mutex);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

enum gm_status gm_workers_open(unsigned threads, struct gm_workers **ret, struct gm_error *err)
{
    struct gm_workers *w = calloc(1, sizeof *w + threads * sizeof w->thread[0]);

    if (!w)
        return gm_fail(err, GM_INTERNAL, "no memory for workers");
    gm_fair_init(&w->queue);
    if (pthread_mutex_init(&w->mutex, NULL) != 0 || pthread_cond_init(&w->wake, NULL) != 0) {
        free(w);
        return gm_fail(err, GM_INTERNAL, "no memory for workers");
    }
    while (w->threads < threads &&
           pthread_create(&w->thread[w->threads], NULL, worker_main, w) == 0)
        w->threads++;
    if (w->threads < threads) {
        gm_workers_close(w);
        return gm_fail(err, GM_INTERNAL, "cannot start %u worker threads", threads);
    }
    *ret = w;
    return GM_OK;
}

void gm_workers_close(struct gm_workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->mutex);
    w->closing = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->mutex);
    for (unsigned i = 0; i < w->threads; i++)
        pthread_join(w->thread[i], NULL);
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->wake);
    free(w);
}

void gm_workers_add(struct gm_workers *w, struct gm_work *work)
{
    pthread_mutex_lock(&w->mutex);
    gm_fair_push(&w->queue, &work->slot);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
}
