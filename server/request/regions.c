#include "server/request/regions.h"

#include "server/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct gm_region {
    LIST_ENTRY(gm_region) link;
    char name[GM_REGION_NAME_MAX], owner[GM_KEY_NAME_MAX];
    struct gm_kserve_region what;
    struct gm_reservation reservation;
    unsigned references; /* uses, and one of the list */
    bool listed;
    int fd; /* for system memory; else -1 */
    /* A backend's import of it; all zero: none. */
    const struct gm_backend *backend;
    void *context;
    struct gm_foreign foreign;
    void *mapping;
    uint64_t mapped;
};

enum gm_status gm_regions_open(struct gm_regions *regions, struct gm_error *err)
{
    return pthread_mutex_init(&regions->mutex, NULL) == 0
               ? GM_OK
               : gm_fail(err, GM_INTERNAL, "no lock for regions of shared memory");
}

bool gm_region_prefix_ok(const char *text)
{
    text += *text == '/';
    return *text && *text != '.' && !strchr(text, '/') && strlen(text) < GM_REGION_NAME_MAX - 1;
}

/* Frees a region that is not in the list. */
static void destroy(struct gm_region *region)
{
    if (region->backend)
        region->backend->release(region->context, &region->foreign);
    if (region->mapping)
        munmap(region->mapping, region->mapped);
    if (region->fd >= 0)
        close(region->fd);
    if (region->reservation.quota)
        gm_reservation_trim(&region->reservation, 0);
    gm_quota_unref(region->reservation.client_quota);
    free(region);
}

void gm_regions_close(struct gm_regions *regions)
{
    while (!LIST_EMPTY(&regions->list)) {
        struct gm_region *region = LIST_FIRST(&regions->list);
        LIST_REMOVE(region, link);
        destroy(region);
    }
    pthread_mutex_destroy(&regions->mutex);
}

/* The list. The mutex is held. */

static struct gm_region *find(const struct gm_regions *regions, uint64_t client, const char *name)
{
    struct gm_region *region;

    LIST_FOREACH (region, &regions->list, link)
        if (region->reservation.client == client && strcmp(region->name, name) == 0)
            return region;
    return NULL;
}

/* How many regions and bytes a client has. */
static unsigned held(const struct gm_regions *regions, uint64_t client, uint64_t *ret_bytes)
{
    const struct gm_region *region;
    unsigned n = 0;

    *ret_bytes = 0;
    LIST_FOREACH (region, &regions->list, link) {
        if (region->reservation.client != client)
            continue;
        n++;
        *ret_bytes += region->what.bytes;
    }
    return n;
}

static enum gm_status check_room(const struct gm_regions *regions, const struct gm_region *region,
                                 struct gm_error *err)
{
    uint64_t client = region->reservation.client, bytes, most;
    unsigned n = held(regions, client, &bytes);

    most = regions->quota->limit / GM_REGION_MEMORY_PART;
    /* A region that got into the list before its key went is found there and dropped. */
    if (region->reservation.client_quota && atomic_load(&region->reservation.client_quota->revoked))
        return gm_fail(err, GM_UNAUTHORIZED, "the key was revoked meanwhile");
    if (find(regions, client, region->name))
        return gm_fail(err, GM_REGION_CONFLICT,
                       "there is a region '%.60s' already: unregister it first", region->name);
    if (n >= GM_REGIONS_CLIENT_MAX || regions->count >= GM_REGIONS_MAX)
        return gm_fail(err, GM_COST_LIMIT,
                       "there are %u regions, %u of them this client's; the limits are %d and %d",
                       regions->count, n, GM_REGIONS_MAX, GM_REGIONS_CLIENT_MAX);
    if (region->what.bytes > most || bytes > most - region->what.bytes)
        return gm_fail(err, GM_TOO_LARGE,
                       "the region has %llu bytes, beside %llu in other regions of this client; "
                       "all of them may have %llu, one part in %d of --memory-limit",
                       (unsigned long long)region->what.bytes, (unsigned long long)bytes,
                       (unsigned long long)most, GM_REGION_MEMORY_PART);
    return GM_OK;
}

/* Before the region takes memory, and again where it goes into the list: others may have come. */
static enum gm_status has_room(struct gm_regions *regions, const struct gm_region *region,
                               struct gm_error *err)
{
    pthread_mutex_lock(&regions->mutex);
    enum gm_status status = check_room(regions, region, err);
    pthread_mutex_unlock(&regions->mutex);
    return status;
}

/* From here on others find it. */
static enum gm_status add(struct gm_regions *regions, struct gm_region *region,
                          struct gm_error *err)
{
    pthread_mutex_lock(&regions->mutex);
    enum gm_status status = check_room(regions, region, err);
    if (status == GM_OK) {
        LIST_INSERT_HEAD(&regions->list, region, link);
        regions->count++;
        region->listed = true;
        region->references = 1;
    }
    pthread_mutex_unlock(&regions->mutex);
    return status;
}

static void unlink_region(struct gm_regions *regions, struct gm_region *region)
{
    LIST_REMOVE(region, link);
    regions->count--;
    region->listed = false;
}

/* Drops a reference. The mutex is not held, because freeing after the last one may take a while. */
static void unref(struct gm_regions *regions, struct gm_region *region)
{
    pthread_mutex_lock(&regions->mutex);
    bool last = --region->references == 0;
    pthread_mutex_unlock(&regions->mutex);
    if (last)
        destroy(region);
}

/* Regions of system memory. */

/* "/gemmd-a" or "gemmd-a" -> "/gemmd-a"; false if it is not one name. */
static bool object_name(const char *key, char out[GM_REGION_NAME_MAX + 1])
{
    key += *key == '/';
    if (!gm_region_prefix_ok(key))
        return false;
    out[0] = '/';
    memcpy(out + 1, key, strlen(key) + 1);
    return true;
}

static enum gm_status check_key(const struct gm_regions *regions, const char *key,
                                char object[GM_REGION_NAME_MAX + 1], struct gm_error *err)
{
    const char *prefix = regions->prefix + (*regions->prefix == '/');

    if (!*prefix)
        return gm_fail(err, GM_NOT_ALLOWED,
                       "shared memory is not allowed here: start gemmd with --allow-shared-memory");
    if (!object_name(key, object))
        return gm_fail(err, GM_BAD_PARAMETER,
                       "key is '%.60s'; it is the name of an object of shared memory, with no "
                       "slash but the first",
                       key);
    return strncmp(object + 1, prefix, strlen(prefix)) == 0
               ? GM_OK
               : gm_fail(err, GM_NOT_ALLOWED,
                         "key is '%.60s'; the names of objects begin with '%s' "
                         "(--allow-shared-memory)",
                         key, regions->prefix);
}

static enum gm_status check_size(const struct gm_region *region, uint64_t end, struct gm_error *err)
{
    struct stat status;

    if (fstat(region->fd, &status) != 0)
        return gm_fail(err, GM_INTERNAL, "cannot tell the size of a region: %s", strerror(errno));
    return S_ISREG(status.st_mode) && (uint64_t)status.st_size >= end
               ? GM_OK
               : gm_fail(err, GM_REGION_CONFLICT,
                         "the object '%.60s' has %lld bytes, and region '%.60s' needs %llu of it",
                         region->what.key, (long long)status.st_size, region->name,
                         (unsigned long long)end);
}

static enum gm_status open_object(const struct gm_regions *regions, struct gm_region *region,
                                  struct gm_error *err)
{
    char object[GM_REGION_NAME_MAX + 1];
    uint64_t end;
    enum gm_status status = check_key(regions, region->what.key, object, err);

    if (status != GM_OK)
        return status;
    if (region->what.bytes == 0 || !gm_size_add(region->what.offset, region->what.bytes, &end) ||
        end > INT64_MAX)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "byte_size is %llu and offset %llu; a region has some bytes, as many as can "
                       "be counted",
                       (unsigned long long)region->what.bytes,
                       (unsigned long long)region->what.offset);
    region->fd =
        shm_open(object, O_RDWR, 0); /* implies close-on-exec, and follows no symbolic link */
    if (region->fd < 0)
        return gm_fail(err, GM_BAD_PARAMETER, "the object '%.60s' cannot be opened: %s",
                       region->what.key, strerror(errno));
    return check_size(region, end, err);
}

/* Finds the first backend that can import memory. */
static bool find_importer(const struct gm_devices *devices, struct gm_allocator *ret)
{
    for (unsigned i = 0; i < devices->backends; i++) {
        *ret = (struct gm_allocator){devices->opened[i].backend, devices->opened[i].context};
        if (ret->backend->import)
            return true;
    }
    return false;
}

bool gm_regions_pin(const struct gm_regions *regions)
{
    struct gm_allocator to;

    return find_importer(regions->devices, &to);
}

/* Pins a region for devices with copy engines. Only the kernel touches its pages, for the driver:
 * if the object has shrunk by then, that is an error and not a signal. */
static enum gm_status pin(const struct gm_regions *regions, struct gm_region *region,
                          struct gm_error *err)
{
    struct gm_allocator to;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skip = region->what.offset % page;

    if (!find_importer(regions->devices, &to))
        return GM_OK;
    region->mapped = region->what.bytes + skip;
    void *mapping = mmap(NULL, region->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd,
                         (off_t)(region->what.offset - skip));
    if (mapping == MAP_FAILED)
        return gm_fail(err, GM_MEMORY_FULL, "the region cannot be mapped: %s", strerror(errno));
    region->mapping = mapping;
    region->foreign = (struct gm_foreign){.data = mapping, .bytes = region->mapped};
    enum gm_status status = to.backend->import(to.context, &region->foreign, err);
    if (status == GM_OK) {
        region->backend = to.backend;
        region->context = to.context;
    }
    return status;
}

/* Regions of CUDA memory. */

static enum gm_status open_handle(const struct gm_regions *regions, struct gm_region *region,
                                  struct gm_error *err)
{
    struct gm_allocator to;

    if (!regions->cuda_ipc)
        return gm_fail(err, GM_NOT_ALLOWED,
                       "CUDA shared memory is not allowed here: start gemmd with --allow-cuda-ipc");
    if (!find_importer(regions->devices, &to))
        return gm_fail(err, GM_DEVICE_UNAVAILABLE, "there is no CUDA device here");
    if (region->what.bytes == 0 || region->what.device >= GM_DEVICES_MAX)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "byte_size is %llu and device_id %llu: a region has at least 1 byte, and "
                       "device_id is at most %d",
                       (unsigned long long)region->what.bytes,
                       (unsigned long long)region->what.device, GM_DEVICES_MAX - 1);
    region->foreign = (struct gm_foreign){.handle = region->what.handle,
                                          .device = (unsigned)region->what.device,
                                          .bytes = region->what.bytes};
    enum gm_status status = to.backend->import(to.context, &region->foreign, err);
    if (status == GM_OK) {
        region->backend = to.backend;
        region->context = to.context;
    }
    return status;
}

enum gm_status gm_region_register(struct gm_regions *regions, uint64_t client,
                                  struct gm_quota *quota, const char *owner, const char *name,
                                  const struct gm_kserve_region *what, struct gm_error *err)
{
    struct gm_region *region = calloc(1, sizeof *region);

    if (!region)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for a region");
    region->what = *what;
    region->fd = -1;
    region->reservation = (struct gm_reservation){
        .quota = regions->quota, .client = client, .client_quota = gm_quota_ref(quota)};
    memcpy(region->name, name, strlen(name) + 1);
    memcpy(region->owner, owner, strlen(owner) + 1);
    enum gm_status status =
        what->on_device ? open_handle(regions, region, err) : open_object(regions, region, err);
    if (status == GM_OK)
        status = has_room(regions, region, err);
    if (status == GM_OK)
        status = gm_reservation_raise(&region->reservation, what->bytes, err);
    if (status == GM_OK && !what->on_device)
        status = pin(regions, region, err);
    if (status == GM_OK)
        status = add(regions, region, err);
    if (status != GM_OK)
        destroy(region);
    return status;
}

static enum gm_status fail_unknown(const char *name, struct gm_error *err)
{
    return gm_fail(err, GM_NOT_FOUND, "this client has no region '%.60s'", name);
}

enum gm_status gm_region_unregister(struct gm_regions *regions, uint64_t client, bool on_device,
                                    const char *name, struct gm_error *err)
{
    bool any = false;

    for (;;) {
        pthread_mutex_lock(&regions->mutex);
        struct gm_region *region;
        LIST_FOREACH (region, &regions->list, link)
            if (region->reservation.client == client && region->what.on_device == on_device &&
                (!name || strcmp(region->name, name) == 0))
                break;
        if (region)
            unlink_region(regions, region);
        pthread_mutex_unlock(&regions->mutex);
        if (!region)
            break;
        any = true;
        unref(regions, region);
    }
    return any || !name ? GM_OK : fail_unknown(name, err);
}

enum gm_status gm_region_list(struct gm_regions *regions, uint64_t client, bool all, bool on_device,
                              const char *name,
                              void (*tell)(void *cls, const struct gm_region_facts *facts),
                              void *cls, struct gm_error *err)
{
    const struct gm_region *region;
    bool any = false;

    pthread_mutex_lock(&regions->mutex);
    LIST_FOREACH (region, &regions->list, link) {
        if ((!all && region->reservation.client != client) || region->what.on_device != on_device ||
            (name && strcmp(region->name, name) != 0))
            continue;
        const struct gm_region_facts facts = {region->name,        region->what.key,
                                              region->owner,       region->what.device,
                                              region->what.offset, region->what.bytes};
        any = true;
        tell(cls, &facts);
    }
    pthread_mutex_unlock(&regions->mutex);
    return any || !name ? GM_OK : fail_unknown(name, err);
}

/* Uses. */

enum gm_status gm_region_take(struct gm_regions *regions, uint64_t client,
                              const struct gm_region_part *part, struct gm_region_use *ret,
                              struct gm_error *err)
{
    pthread_mutex_lock(&regions->mutex);
    struct gm_region *region = find(regions, client, part->region);
    uint64_t have = region ? region->what.bytes : 0;
    uint64_t left = part->offset <= have ? have - part->offset : 0;
    uint64_t bytes = part->bytes == GM_SIZE_UNKNOWN ? left : part->bytes;
    bool within = region && part->offset <= have && bytes <= left;
    if (within)
        region->references++;
    pthread_mutex_unlock(&regions->mutex);
    if (!region)
        return fail_unknown(part->region, err);
    if (!within)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "region '%.60s' has %llu bytes; %llu from offset %llu on are not within it",
                       part->region, (unsigned long long)have, (unsigned long long)bytes,
                       (unsigned long long)part->offset);
    *ret = (struct gm_region_use){region, regions, part->offset, bytes};
    return GM_OK;
}

void gm_region_leave(struct gm_region_use *use)
{
    if (use->region)
        unref(use->regions, use->region);
    *use = (struct gm_region_use){0};
}

/* Two regions may be in one object. Two handles count as different memory. */
bool gm_region_overlap(const struct gm_region_use *one, const struct gm_region_use *other)
{
    const struct gm_region *a = one->region, *b = other->region;

    if (!a || !b || one->bytes == 0 || other->bytes == 0 || a->what.on_device != b->what.on_device)
        return false;
    const char *key_a = a->what.key + (*a->what.key == '/');
    const char *key_b = b->what.key + (*b->what.key == '/');
    bool same = a->what.on_device
                    ? memcmp(a->what.handle, b->what.handle, GM_CUDA_HANDLE_BYTES) == 0
                    : strcmp(key_a, key_b) == 0;
    uint64_t begin_a = a->what.offset + one->offset, begin_b = b->what.offset + other->offset;
    return same && begin_a < begin_b + other->bytes && begin_b < begin_a + one->bytes;
}

void *gm_region_direct(const struct gm_region_use *use, struct gm_allocator backend,
                       unsigned device, bool *ret_on_device)
{
    const struct gm_region *region = use->region;
    char *base = region->foreign.data;

    *ret_on_device = region->what.on_device;
    if (!region->backend || region->backend != backend.backend ||
        region->context != backend.context)
        return NULL;
    if (region->what.on_device)
        return region->what.device == device && use->offset % 256 == 0 ? base + use->offset : NULL;
    base += region->mapped - region->what.bytes + use->offset;
    /* A driver may copy few bytes by its own code on the host, which must not touch the mapping. */
    return use->bytes >= GM_REGION_DIRECT_BYTES_MIN && (uintptr_t)base % 64 == 0 ? base : NULL;
}

static enum gm_status fail_on_device(const struct gm_region_use *use, struct gm_error *err)
{
    return gm_fail(
        err, GM_BAD_PARAMETER,
        "region '%.60s' is memory of device %llu, which only work on that device can use, "
        "at an offset of a multiple of 256 bytes",
        use->region->name, (unsigned long long)use->region->what.device);
}

enum gm_status gm_region_check(const struct gm_region_use *use, struct gm_error *err)
{
    const struct gm_region *region = use->region;

    return region->fd < 0 ? GM_OK
                          : check_size(region, region->what.offset + use->offset + use->bytes, err);
}

enum gm_status gm_region_read(const struct gm_region_use *use, void *out, struct gm_error *err)
{
    const struct gm_region *region = use->region;
    uint64_t at = 0;

    if (region->what.on_device)
        return fail_on_device(use, err);
    while (at < use->bytes) {
        ssize_t n = pread(region->fd, (char *)out + at, use->bytes - at,
                          (off_t)(region->what.offset + use->offset + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gm_fail(err, GM_INTERNAL, "region '%.60s' cannot be read: %s", region->name,
                           strerror(errno));
        if (n == 0)
            return gm_fail(err, GM_REGION_CONFLICT,
                           "the object of region '%.60s' has shrunk: it ends %llu bytes early",
                           region->name, (unsigned long long)(use->bytes - at));
        at += (uint64_t)n;
    }
    return GM_OK;
}

enum gm_status gm_region_write(const struct gm_region_use *use, const void *data, uint64_t bytes,
                               struct gm_error *err)
{
    const struct gm_region *region = use->region;
    uint64_t at = 0;

    if (region->what.on_device)
        return fail_on_device(use, err);
    /* A write would grow the object again. That is allowed, since those bytes are registered, but
     * no client expects it. */
    enum gm_status status = check_size(region, region->what.offset + use->offset + bytes, err);
    while (status == GM_OK && at < bytes) {
        ssize_t n = pwrite(region->fd, (const char *)data + at, bytes - at,
                           (off_t)(region->what.offset + use->offset + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return gm_fail(err, GM_REGION_CONFLICT, "region '%.60s' cannot be written: %s",
                           region->name, n < 0 ? strerror(errno) : "it takes no more");
        at += (uint64_t)n;
    }
    return status;
}
