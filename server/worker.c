#include "server/worker.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct gm_workers {
    pthread_mutex_t mutex; /* guards head, tail, closing */
    pthread_cond_t wake;
    struct gm_work *head, *tail;
    bool closing;
    unsigned threads;
    pthread_t thread[];
};

static void *worker_main(void *cls)
{
    struct gm_workers *w = cls;

    pthread_mutex_lock(&w->mutex);
    for (;;) {
        struct gm_work *work = w->head;
        if (work) {
            w->head = work->next;
            pthread_mutex_unlock(&w->mutex);
            work->run(work);
            pthread_mutex_lock(&w->mutex);
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
    work->next = NULL;
    pthread_mutex_lock(&w->mutex);
    if (w->head)
        w->tail->next = work;
    else
        w->head = work;
    w->tail = work;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
}
