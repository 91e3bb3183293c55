#include "server/connections.h"

#include <stdlib.h>
#include <sys/socket.h>

/* Sweeps that must agree: a client may close its sending half right behind a whole request,
 * which its event thread is about to see. */
#define DESERTED_SWEEPS 2

void gm_connections_init(struct gm_connections *connections)
{
    *connections = (struct gm_connections){0};
    pthread_mutex_init(&connections->mutex, NULL);
}

void gm_connections_destroy(struct gm_connections *connections)
{
    pthread_mutex_destroy(&connections->mutex);
}

struct gm_connection *gm_connections_add(struct gm_connections *connections, int socket)
{
    struct gm_connection *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->socket = socket;
    atomic_init(&c->reading, true);
    atomic_init(&c->deserted, 0);
    pthread_mutex_lock(&connections->mutex);
    c->next = connections->first;
    if (c->next)
        c->next->prev = c;
    connections->first = c;
    connections->count++;
    pthread_mutex_unlock(&connections->mutex);
    return c;
}

void gm_connections_remove(struct gm_connections *connections, struct gm_connection *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&connections->mutex);
    if (c->prev)
        c->prev->next = c->next;
    else
        connections->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    connections->count--;
    pthread_mutex_unlock(&connections->mutex);
    free(c);
}

void gm_connections_touch(struct gm_connection *c, bool reading)
{
    if (!c)
        return;
    atomic_store(&c->reading, reading);
    atomic_store(&c->deserted, 0);
}

unsigned gm_connections_count(struct gm_connections *connections)
{
    pthread_mutex_lock(&connections->mutex);
    unsigned count = connections->count;
    pthread_mutex_unlock(&connections->mutex);
    return count;
}

/* What a read would give: > 0 bytes, 0 the end, < 0 nothing now. */
static ssize_t peek(const struct gm_connection *c)
{
    char byte;

    return recv(c->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

void gm_connections_sweep(struct gm_connections *connections)
{
    pthread_mutex_lock(&connections->mutex);
    for (struct gm_connection *c = connections->first; c; c = c->next) {
        if (!atomic_load(&c->reading) || peek(c) != 0)
            atomic_store(&c->deserted, 0);
        else if (atomic_fetch_add(&c->deserted, 1) + 1 >= DESERTED_SWEEPS)
            shutdown(c->socket, SHUT_RDWR);
    }
    pthread_mutex_unlock(&connections->mutex);
}

bool gm_connections_unread(struct gm_connections *connections)
{
    bool unread = false;

    pthread_mutex_lock(&connections->mutex);
    for (struct gm_connection *c = connections->first; c && !unread; c = c->next)
        unread = atomic_load(&c->reading) && peek(c) > 0;
    pthread_mutex_unlock(&connections->mutex);
    return unread;
}
