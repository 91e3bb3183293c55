/*
 * regions.h - regions of shared memory that clients registered, for operands and results.
 *
 * A region belongs to the client that registered it: no other client sees or uses it.
 *
 * Another process can shrink an object of shared memory at any time. A process that then touches
 * its mapping is killed by SIGBUS. So host code never touches a mapping: it uses pread and pwrite,
 * which report a short count. Only a device works on a mapping. Its pages are pinned,
 * and stay in place whatever happens to the object.
 *
 * Any thread may call any function.
 */
#ifndef GM_SERVER_REQUEST_REGIONS_H
#define GM_SERVER_REQUEST_REGIONS_H

#include "proto/kserve/kserve.h"
#include "server/sched/devices.h"
#include "server/sched/memory_quota.h"

#include <sys/queue.h>

struct gm_region;

struct gm_regions {
    const char *prefix; /* prefix of the names of objects that may be registered; "": none may */
    bool cuda_ipc;      /* whether memory of devices may be registered */
    struct gm_memory_quota *quota;
    const struct gm_devices *devices;
    pthread_mutex_t mutex; /* guards all below, and each region's references */
    LIST_HEAD(, gm_region) list;
    unsigned count;
};

/* A reference to a part of a region, which keeps the region registered. All zero: none. */
struct gm_region_use {
    struct gm_region *region;
    struct gm_regions *regions;
    uint64_t offset, bytes;
};

/* The description of a region, for status. */
struct gm_region_facts {
    const char *name, *key; /* key: of the system's */
    const char *owner;      /* its client's key; "": an address */
    uint64_t device;        /* of CUDA's */
    uint64_t offset, bytes;
};

enum gm_status gm_regions_open(struct gm_regions *regions, struct gm_error *err);
/* Call when no request uses a region any more. */
void gm_regions_close(struct gm_regions *regions);

/* Whether regions are pinned for a device, which takes a while. */
bool gm_regions_pin(const struct gm_regions *regions);

/* Whether the text can be a prefix of object names: not empty, no slash except as the first
 * character, and no dot as the first of the rest. */
bool gm_region_prefix_ok(const char *text);

/*
 * Registers a region under a name that the client does not have yet. quota: the client's, or
 * NULL; the region keeps a reference. owner: its key's name, or "". GM_NOT_ALLOWED,
 * GM_REGION_CONFLICT, GM_BAD_PARAMETER (there is no such object, or it is smaller), GM_MEMORY_FULL
 * or GM_TOO_LARGE (its bytes count as the client's), GM_COST_LIMIT (too many regions).
 */
enum gm_status gm_region_register(struct gm_regions *regions, uint64_t client,
                                  struct gm_quota *quota, const char *owner, const char *name,
                                  const struct gm_kserve_region *what, struct gm_error *err);
/* Of one kind; name NULL: all that the client has, if any. Requests that use it may finish. */
enum gm_status gm_region_unregister(struct gm_regions *regions, uint64_t client, bool on_device,
                                    const char *name, struct gm_error *err);
/* Tells of the client's regions of one kind (all: of all clients'), or of those of a name:
 * GM_NOT_FOUND if there is none. `tell` must not call back. */
enum gm_status gm_region_list(struct gm_regions *regions, uint64_t client, bool all, bool on_device,
                              const char *name,
                              void (*tell)(void *cls, const struct gm_region_facts *facts),
                              void *cls, struct gm_error *err);

/* Takes a reference to a part of a client's region. If part->bytes is GM_SIZE_UNKNOWN, the part is
 * all behind the offset. Errors: GM_NOT_FOUND, GM_BAD_PARAMETER (the part is not within the
 * region). */
enum gm_status gm_region_take(struct gm_regions *regions, uint64_t client,
                              const struct gm_region_part *part, struct gm_region_use *ret,
                              struct gm_error *err);
/* Drops the reference, if there is one. */
void gm_region_leave(struct gm_region_use *use);
/* Whether two parts have bytes in common. */
bool gm_region_overlap(const struct gm_region_use *one, const struct gm_region_use *other);

/*
 * Returns the address at which a device of this backend reads or writes the part itself, for a
 * task. NULL: it cannot; use the functions below. *ret_on_device: it is memory of the device. Host
 * code must not access this address.
 */
void *gm_region_direct(const struct gm_region_use *use, struct gm_allocator backend,
                       unsigned device, bool *ret_on_device);
/* Checks that the object still has the whole part; else GM_REGION_CONFLICT. */
enum gm_status gm_region_check(const struct gm_region_use *use, struct gm_error *err);
/* Copy the whole part, or its first bytes. Errors: GM_REGION_CONFLICT if the object has shrunk,
 * GM_BAD_PARAMETER if it is memory of a device that this backend does not have. */
enum gm_status gm_region_read(const struct gm_region_use *use, void *out, struct gm_error *err);
enum gm_status gm_region_write(const struct gm_region_use *use, const void *data, uint64_t bytes,
                               struct gm_error *err);

#endif
