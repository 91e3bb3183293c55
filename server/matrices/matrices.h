/*
 * matrices.h - matrices that clients keep under names, as operands of later requests.
 *
 * A named matrix never changes: a write makes another one, which takes the name. Whoever uses one
 * holds a reference, so that a matrix in use stays whole, whoever replaces or deletes it meanwhile.
 *
 * A name belongs to its owner, a key or an address. Another key reads it as OWNER.NAME, if the
 * owner shares it.
 *
 * The elements are in memory of a device (of GPUs), in buffers of the host, or in both. The least
 * recently used matrix gives up its memory of a device when another one needs that. It always can,
 * because each has room on the host reserved.
 *
 * Any thread may call any function. Those that copy block; the comments say so.
 */
#ifndef GM_SERVER_MATRICES_MATRICES_H
#define GM_SERVER_MATRICES_MATRICES_H

#include "proto/key.h"
#include "server/limits.h"
#include "server/sched/devices.h"
#include "server/sched/memory_quota.h"

#include <sys/queue.h>

#define GM_MATRIX_NAME_MAX 65                                    /* with the zero */
#define GM_MATRIX_REF_MAX (GM_KEY_NAME_MAX + GM_MATRIX_NAME_MAX) /* OWNER.NAME */
#define GM_ETAG_MAX 24                                           /* without quotes */
#define GM_MATRICES_TABLE 65536                                  /* positions in the table */
#define GM_MATRIX_SHARE_MAX (GM_PARAMETER_BYTES_MAX + 1)

struct gm_named; /* a named matrix */
TAILQ_HEAD(gm_named_list, gm_named);
struct gm_matrix_owner;

struct gm_matrices {
    uint64_t limit;  /* --matrix-memory */
    const char *dir; /* --matrix-dir; "": none */
    struct gm_memory_quota *quota;
    struct gm_devices *devices;
    /* Who owns what is in files: false if there is no such owner (any more). */
    bool (*owner_of)(void *cls, const char *owner, uint64_t *ret_client,
                     struct gm_quota **ret_quota);
    void *owner_cls;

    pthread_mutex_t files; /* guards the files; taken before the mutex */
    int dir_fd;
    atomic_bool some_left; /* a matrix is in files alone: not loaded, or not removed */

    pthread_mutex_t mutex;       /* guards all below, and what is said at struct gm_named */
    pthread_cond_t moved;        /* a copy between host and device has ended */
    struct gm_named_list *table; /* by owner and name */
    uint64_t seed, etags;        /* of its hash; what the next ETag is made from */
    struct gm_named_list resident[GM_DEVICES_MAX]; /* by device: least recently used first */
    uint64_t resident_bytes[GM_DEVICES_MAX];
    LIST_HEAD(, gm_matrix_owner) owners;
    uint64_t count, bytes; /* of names; and of all that exists */
    int64_t expires;       /* lower bound of the next one's, in Unix time */
};

/* Who asks. */
struct gm_matrix_caller {
    char owner[GM_KEY_NAME_MAX]; /* the key's name; "@" and the client id of an address */
    bool has_key, admin;
    uint64_t client;
    struct gm_quota *quota; /* may be NULL */
};

/* What a write says of the matrix. */
struct gm_matrix_terms {
    uint64_t ttl_s;    /* 0: no end */
    const char *share; /* "": with nobody; "*": all keys; else names of keys, with commas between */
};

/* The values of If-Match and If-None-Match, or NULL. still_wanted: asked just before a name
 * changes, as the writer may have waited; NULL: it is always wanted. */
struct gm_conditions {
    const char *if_match, *if_none_match;
    enum gm_status (*still_wanted)(const void *cls, struct gm_error *err);
    const void *cls;
};

/* A reference. All zero: none. */
struct gm_matrix_use {
    struct gm_named *named;
    struct gm_matrices *matrices;
};

struct gm_matrix_facts {
    char owner[GM_KEY_NAME_MAX], name[GM_MATRIX_NAME_MAX], share[GM_MATRIX_SHARE_MAX];
    char etag[GM_ETAG_MAX];
    struct gm_matrix matrix; /* without data */
    uint64_t bytes;
    const char *device;             /* the name of the device that has it; "host" */
    int64_t created, used, expires; /* in Unix time; expires: its last second; 0: never */
    bool durable;                   /* outlives the daemon */
};

/* The members up to owner_cls are set. */
enum gm_status gm_matrices_open(struct gm_matrices *matrices, struct gm_error *err);
/* Reads what is in --matrix-dir, if there is one, once the devices are open. Tells of files that
 * are damaged, or for which there is no room: they stay as they are. GM_BAD_PARAMETER: there is one
 * of a version that is not known. */
enum gm_status gm_matrices_load(struct gm_matrices *matrices,
                                void (*damaged)(void *cls, const struct gm_error *why), void *cls,
                                struct gm_error *err);
/* Call when no request uses one any more, before the devices are closed. */
void gm_matrices_close(struct gm_matrices *matrices);
/* Drops what has expired, where that is due; drops all that a client owns. They block. */
void gm_matrices_tick(struct gm_matrices *matrices);
void gm_matrices_drop_client(struct gm_matrices *matrices, uint64_t client);

/* Whether it is NAME, which is [A-Za-z_][A-Za-z0-9_]{0,63}; whether it is that or OWNER.NAME. */
bool gm_matrix_name_ok(const char *text, size_t len);
bool gm_matrix_ref_ok(const char *text, size_t len);
bool gm_matrix_is_of_other(const char *ref, const char *owner); /* OWNER.NAME of another one */
bool gm_matrix_share_ok(const char *text, size_t len); /* "*", or keys with commas between */

/* ---- Writing: make, fill, publish; or make and leave. ---- */

/*
 * Makes a matrix of this type and shape, without elements, that nobody sees. It counts as its
 * owner's from now on. GM_PRECONDITION_FAILED, as publishing would; GM_STORAGE_FULL: no room within
 * --matrix-memory, or too many names; GM_TOO_LARGE: there can never be.
 */
enum gm_status gm_matrix_make(struct gm_matrices *matrices, const struct gm_matrix_caller *caller,
                              const char *name, const struct gm_matrix_terms *terms,
                              const struct gm_conditions *conditions,
                              const struct gm_matrix *matrix, struct gm_matrix_use *ret,
                              struct gm_error *err);
/* Takes memory of the device for the elements, which a task is to write there, and reserves room on
 * the host. Others give up theirs if that copies at most TEXT_INLINE_BYTES_MAX. NULL: none. */
void *gm_matrix_place(const struct gm_matrix_use *use, const struct gm_device *device);
/* Takes over a buffer that has the elements at `data`, and its part of a reservation. Where it is
 * not memory that all devices work with, its content is copied, and it stays the caller's. */
enum gm_status gm_matrix_adopt(const struct gm_matrix_use *use, struct gm_allocation *allocation,
                               struct gm_reservation *reservation, void *data,
                               struct gm_error *err);
/* Bytes that it would copy. */
uint64_t gm_matrix_to_adopt(const struct gm_matrix_use *use, const struct gm_allocation *from);
/* Gives the name to it, once it is in files if there is a --matrix-dir: that blocks. Another matrix
 * of that name loses it. *ret_created: there was none. GM_PRECONDITION_FAILED, GM_UNAUTHORIZED (its
 * key was revoked), GM_STORAGE_FULL. */
enum gm_status gm_matrix_publish(const struct gm_matrix_use *use,
                                 const struct gm_conditions *conditions, bool *ret_created,
                                 struct gm_error *err);

/* ---- Reading. ---- */

/* Takes a reference to what NAME or OWNER.NAME is for this caller. GM_NOT_FOUND also where it is
 * another's, and not shared. */
enum gm_status gm_matrix_take(struct gm_matrices *matrices, const struct gm_matrix_caller *caller,
                              const char *ref, struct gm_matrix_use *ret, struct gm_error *err);
/* Drops the reference, if there is one. */
void gm_matrix_leave(struct gm_matrix_use *use);
struct gm_matrix_facts gm_matrix_facts_of(const struct gm_matrix_use *use);
const struct gm_matrix *gm_matrix_of(const struct gm_matrix_use *use);
/* Bytes that gm_matrix_data would copy, or wait for, for this device; NULL: for the host. */
uint64_t gm_matrix_to_copy(const struct gm_matrix_use *use, const struct gm_device *device);
/*
 * *ret: where the device (NULL: the host) finds the elements; *ret_on_device: that is its own
 * memory. Copies where they are not there, which blocks. GM_DEVICE_MEMORY, GM_MEMORY_FULL,
 * GM_DEVICE_LOST.
 */
enum gm_status gm_matrix_data(const struct gm_matrix_use *use, const struct gm_device *device,
                              void **ret, bool *ret_on_device, struct gm_error *err);

/* Takes the name away. GM_NOT_FOUND, GM_PRECONDITION_FAILED; GM_FORBIDDEN where it is another's,
 * who shares it. */
enum gm_status gm_matrix_delete(struct gm_matrices *matrices, const struct gm_matrix_caller *caller,
                                const char *ref, const struct gm_conditions *conditions,
                                struct gm_error *err);

/*
 * Tells of what the caller may read (an admin: of all), from a position in the table on, until
 * there are about `most`. *ret_next: where to go on; 0: there is no more. NULL: no memory. The
 * caller frees the array.
 */
struct gm_matrix_facts *gm_matrix_list(struct gm_matrices *matrices,
                                       const struct gm_matrix_caller *caller, unsigned from,
                                       unsigned most, unsigned *ret_count, unsigned *ret_next);

struct gm_matrices_usage {
    uint64_t count, bytes, device_bytes; /* names; bytes, in all and in memory of devices */
};
struct gm_matrices_usage gm_matrices_usage(struct gm_matrices *matrices);

/* ---- etag.c: entity tags, as RFC 9110 has them (sections 8.8.3 and 13.1). ---- */

/*
 * Checks If-Match and If-None-Match against the tag of what there is; NULL: there is nothing. What
 * follows a dash in a tag names a format, and does not count. GM_PRECONDITION_FAILED;
 * GM_BAD_REQUEST: a list that is none.
 */
enum gm_status gm_etag_check(const struct gm_conditions *conditions, const char *etag,
                             struct gm_error *err);
/* For a GET: whether If-None-Match has this very tag, or is "*". */
bool gm_etag_listed(const char *if_none_match, const char *etag);

#endif
