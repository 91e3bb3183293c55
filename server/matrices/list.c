/* list.c - what clients are told of named matrices: one, those that they may see, and how much
 * there is. */
#include "server/matrices/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void tell(const struct gm_named *named, struct gm_matrix_facts *ret)
{
    *ret = (struct gm_matrix_facts){.matrix = named->matrix,
                                    .bytes = named->bytes,
                                    .device = named->device ? named->device->name : "host",
                                    .created = named->created,
                                    .used = named->used,
                                    .expires = named->expires,
                                    .durable = named->durable};
    memcpy(ret->owner, named->owner->name, sizeof ret->owner);
    memcpy(ret->name, named->name, sizeof ret->name);
    memcpy(ret->share, named->share, sizeof ret->share);
    memcpy(ret->etag, named->etag, sizeof ret->etag);
}

struct gm_matrix_facts gm_matrix_facts_of(const struct gm_matrix_use *use)
{
    struct gm_matrix_facts facts;

    pthread_mutex_lock(&use->matrices->mutex);
    tell(use->named, &facts);
    pthread_mutex_unlock(&use->matrices->mutex);
    return facts;
}

static bool may_see(const struct gm_named *named, const struct gm_matrix_caller *caller)
{
    return strcmp(named->owner->name, caller->owner) == 0 || caller->admin ||
           (caller->has_key && gm_matrix_share_has(named->share, caller->owner));
}

struct gm_matrix_facts *gm_matrix_list(struct gm_matrices *m, const struct gm_matrix_caller *caller,
                                       unsigned from, unsigned most, unsigned *ret_count,
                                       unsigned *ret_next)
{
    struct gm_matrix_facts *list = NULL, *more;
    unsigned count = 0, room = 0;
    const struct gm_named *named;
    int64_t now = (int64_t)time(NULL);
    bool lacking = false;

    pthread_mutex_lock(&m->mutex);
    for (; from < GM_MATRICES_TABLE && count < most && !lacking; from++) {
        TAILQ_FOREACH (named, &m->table[from], link) {
            if (!may_see(named, caller) || gm_matrix_has_expired(named->expires, now))
                continue;
            if (count == room) {
                room = room > 0 ? 2 * room : 16;
                more = reallocarray(list, room, sizeof *list);
                lacking = !more;
                if (lacking)
                    break;
                list = more;
            }
            tell(named, &list[count++]);
        }
    }
    pthread_mutex_unlock(&m->mutex);
    if (lacking || (!list && !(list = malloc(sizeof *list)))) { /* an empty list is no NULL */
        free(list);
        return NULL;
    }
    *ret_count = count;
    *ret_next = from < GM_MATRICES_TABLE ? from : 0;
    return list;
}

struct gm_matrices_usage gm_matrices_usage(struct gm_matrices *m)
{
    struct gm_matrices_usage usage = {0};

    pthread_mutex_lock(&m->mutex);
    usage.count = m->count;
    usage.bytes = m->bytes;
    for (unsigned i = 0; i < GM_DEVICES_MAX; i++)
        usage.device_bytes += m->resident_bytes[i];
    pthread_mutex_unlock(&m->mutex);
    return usage;
}
