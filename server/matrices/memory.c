/*
 * memory.c - where the elements of named matrices are: on the host, on a device, and on the way.
 */
#include "server/matrices/internal.h"

#include <string.h>

void gm_matrix_leave_device(struct gm_matrices *m, struct gm_named *named)
{
    const struct gm_device *device = named->device;

    if (!device)
        return;
    unsigned index = (unsigned)(device - m->devices->device);
    if (named->is_resident)
        TAILQ_REMOVE(&m->resident[index], named, resident_link);
    named->is_resident = false;
    m->resident_bytes[index] -= named->bytes;
    device->backend->device_put(device->context, device->facts->index, named->device_data);
    named->device = NULL;
    named->device_data = NULL;
}

/* Begins a copy, which one thread at a time may do. The mutex is held. */
static void begin_move(struct gm_named *named)
{
    named->moving = true;
    named->references++;
}

static void end_move(struct gm_matrices *m, struct gm_named *named)
{
    named->moving = false;
    pthread_cond_broadcast(&m->moved);
    gm_matrix_unref(m, named);
}

/* Where buffers of the host come from, which every device works with: a GPU's are pinned. */
static struct gm_allocator home_of(const struct gm_matrices *m)
{
    const struct gm_devices *d = m->devices;

    for (unsigned i = 0; i < d->backends; i++)
        if (d->opened[i].backend->device_get)
            return (struct gm_allocator){d->opened[i].backend, d->opened[i].context};
    return d->host;
}

/* Takes the reserved room on the host. It is never refused but by the system. */
static enum gm_status take_host(const struct gm_matrices *m, struct gm_named *named,
                                struct gm_allocation *ret, struct gm_error *err)
{
    return gm_allocation_make(ret, &named->reservation, home_of(m), named->bytes, err);
}

/* Copies the elements from the device to the host. Called and left with the mutex held, which it
 * releases meanwhile; `moving` is set. */
static enum gm_status copy_to_host(struct gm_matrices *m, struct gm_named *named,
                                   struct gm_error *err)
{
    const struct gm_device *device = named->device;
    struct gm_allocation host = {0};

    pthread_mutex_unlock(&m->mutex);
    enum gm_status status = take_host(m, named, &host, err);
    if (status == GM_OK)
        status =
            device->backend->device_copy(device->context, device->facts->index, host.buffer.data,
                                         named->device_data, named->bytes, false, err);
    pthread_mutex_lock(&m->mutex);
    if (status != GM_OK) {
        gm_allocation_drop(&host, &named->reservation);
        return status;
    }
    named->host = host;
    named->host_data = host.buffer.data;
    return GM_OK;
}

/* What spilling would copy: nothing, where the host has the elements too. */
static uint64_t bytes_to_spill(const struct gm_named *named)
{
    return named->host.backend ? 0 : named->bytes;
}

/* The least recently used matrix of a device, of those that no request holds, and that take at most
 * so many bytes to spill. */
static struct gm_named *find_idle(const struct gm_matrices *m, unsigned index, uint64_t may_copy)
{
    struct gm_named *named;

    TAILQ_FOREACH (named, &m->resident[index], resident_link)
        if (named->listed && named->references == 1 && !named->moving &&
            bytes_to_spill(named) <= may_copy)
            return named;
    return NULL;
}

/* Takes one off a device, if nobody begins to use it meanwhile. The mutex is held, but released
 * while it copies. false: it could not be copied. */
static bool spill(struct gm_matrices *m, struct gm_named *named)
{
    enum gm_status status = GM_OK;

    begin_move(named);
    if (!named->host.backend)
        status = copy_to_host(m, named, NULL);
    if (status == GM_OK && named->references <= (named->listed ? 2u : 1u))
        gm_matrix_leave_device(m, named);
    end_move(m, named);
    return status == GM_OK;
}

/* Takes memory of a device, from those that were used least recently if need be, but copies at most
 * so many bytes of theirs. NULL: there is none. The mutex is held, but released meanwhile. */
static void *take_device(struct gm_matrices *m, const struct gm_device *device, uint64_t bytes,
                         uint64_t may_copy)
{
    unsigned index = (unsigned)(device - m->devices->device);
    uint64_t most = device->facts->memory_bytes / GM_MATRIX_DEVICE_PART;
    void *data;

    if (!device->backend->device_get || bytes == 0 || bytes > most)
        return NULL;
    for (;;) {
        if (m->resident_bytes[index] <= most - bytes) {
            m->resident_bytes[index] += bytes; /* before the mutex is released */
            pthread_mutex_unlock(&m->mutex);
            enum gm_status status = device->backend->device_get(
                device->context, device->facts->index, bytes, &data, NULL);
            pthread_mutex_lock(&m->mutex);
            if (status == GM_OK)
                return data;
            m->resident_bytes[index] -= bytes;
            if (status != GM_DEVICE_MEMORY)
                return NULL;
        }
        struct gm_named *idle = find_idle(m, index, may_copy);
        if (!idle)
            return NULL;
        may_copy -= bytes_to_spill(idle);
        if (!spill(m, idle))
            return NULL;
    }
}

/* Notes the memory of a device as the matrix's. The mutex is held. */
static void set_device(struct gm_matrices *m, struct gm_named *named,
                       const struct gm_device *device, void *data)
{
    named->device = device;
    named->device_data = data;
    named->is_resident = true;
    TAILQ_INSERT_TAIL(&m->resident[device - m->devices->device], named, resident_link);
}

/* Copies the elements from the host to a device, if there is room. The mutex is held, but released
 * meanwhile. */
static void copy_to_device(struct gm_matrices *m, struct gm_named *named,
                           const struct gm_device *device)
{
    /* Small ones may be moved by an event thread, large ones by a worker. */
    bool small = named->bytes <= GM_TEXT_INLINE_BYTES_MAX;
    begin_move(named);
    void *data =
        take_device(m, device, named->bytes, small ? GM_TEXT_INLINE_BYTES_MAX : UINT64_MAX);
    if (data) {
        pthread_mutex_unlock(&m->mutex);
        enum gm_status status =
            device->backend->device_copy(device->context, device->facts->index, data,
                                         named->host_data, named->bytes, true, NULL);
        pthread_mutex_lock(&m->mutex);
        if (status == GM_OK) {
            set_device(m, named, device, data);
        } else {
            device->backend->device_put(device->context, device->facts->index, data);
            m->resident_bytes[device - m->devices->device] -= named->bytes;
        }
    }
    end_move(m, named);
}

/* ---- For writers and readers. ---- */

void *gm_matrix_place(const struct gm_matrix_use *use, const struct gm_device *device)
{
    struct gm_matrices *m = use->matrices;
    struct gm_named *named = use->named;
    void *data = NULL;

    if (!device->backend->device_get ||
        gm_reservation_raise(&named->reservation, gm_allocation_cost(home_of(m), named->bytes),
                             NULL) != GM_OK)
        return NULL;
    pthread_mutex_lock(&m->mutex);
    data = take_device(m, device, named->bytes, GM_TEXT_INLINE_BYTES_MAX);
    if (data)
        set_device(m, named, device, data);
    pthread_mutex_unlock(&m->mutex);
    if (!data)
        gm_reservation_trim(&named->reservation, 0);
    return data;
}

enum gm_status gm_matrix_take_room(const struct gm_matrix_use *use, void **ret_data,
                                   struct gm_error *err)
{
    struct gm_named *named = use->named;
    enum gm_status status = take_host(use->matrices, named, &named->host, err);

    if (status == GM_OK)
        *ret_data = named->host_data = named->host.buffer.data;
    return status;
}

static bool is_of_home(const struct gm_matrices *m, const struct gm_allocation *allocation)
{
    struct gm_allocator home = home_of(m);

    return allocation->backend == home.backend && allocation->context == home.context;
}

uint64_t gm_matrix_to_adopt(const struct gm_matrix_use *use, const struct gm_allocation *from)
{
    return is_of_home(use->matrices, from) ? 0 : use->named->bytes;
}

enum gm_status gm_matrix_adopt(const struct gm_matrix_use *use, struct gm_allocation *allocation,
                               struct gm_reservation *reservation, void *data, struct gm_error *err)
{
    struct gm_named *named = use->named;

    if (is_of_home(use->matrices, allocation)) {
        enum gm_status status =
            gm_allocation_move(&named->host, &named->reservation, allocation, reservation, err);
        if (status == GM_OK)
            named->host_data = data;
        return status;
    }
    enum gm_status status = take_host(use->matrices, named, &named->host, err);
    if (status != GM_OK)
        return status;
    if (named->bytes > 0)
        memcpy(named->host.buffer.data, data, named->bytes);
    named->host_data = named->host.buffer.data;
    return GM_OK;
}

uint64_t gm_matrix_to_copy(const struct gm_matrix_use *use, const struct gm_device *device)
{
    const struct gm_named *named = use->named;
    bool wants_device = device && device->backend->device_get;

    pthread_mutex_lock(&use->matrices->mutex);
    bool there = wants_device ? named->device == device : named->host.backend != NULL;
    there = there && !named->moving; /* else gm_matrix_data waits */
    pthread_mutex_unlock(&use->matrices->mutex);
    return there ? 0 : named->bytes;
}

enum gm_status gm_matrix_data(const struct gm_matrix_use *use, const struct gm_device *device,
                              void **ret, bool *ret_on_device, struct gm_error *err)
{
    struct gm_matrices *m = use->matrices;
    struct gm_named *named = use->named;
    bool wants_device = device && device->backend->device_get;
    enum gm_status status = GM_OK;

    pthread_mutex_lock(&m->mutex);
    while (named->moving)
        pthread_cond_wait(&m->moved, &m->mutex);
    if (!named->host.backend && !(wants_device && named->device == device)) {
        begin_move(named);
        status = copy_to_host(m, named, err);
        end_move(m, named);
    }
    if (status == GM_OK && wants_device && !named->device && !named->moving)
        copy_to_device(m, named, device);
    if (status == GM_OK) {
        *ret_on_device = wants_device && named->device == device;
        *ret = *ret_on_device ? named->device_data : named->host_data;
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}
