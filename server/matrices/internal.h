/*
 * internal.h - declarations shared by the files of matrices/.
 */
#ifndef GM_SERVER_MATRICES_INTERNAL_H
#define GM_SERVER_MATRICES_INTERNAL_H

#include "server/matrices/matrices.h"

struct gm_matrix_owner {
    LIST_ENTRY(gm_matrix_owner) link;
    char name[GM_KEY_NAME_MAX];
    uint64_t count, bytes; /* names, and bytes of all that exists */
    unsigned matrices;     /* that exist */
};

/* The mutex guards what is not constant: all from `references` on. What a copy works on is kept by
 * `moving`, which one thread at a time sets. */
struct gm_named {
    char name[GM_MATRIX_NAME_MAX], share[GM_MATRIX_SHARE_MAX], etag[GM_ETAG_MAX];
    struct gm_matrix_owner *owner;
    struct gm_matrix matrix; /* without data */
    uint64_t bytes;
    uint64_t ttl_s;           /* from when it gets its name; 0: for ever */
    int64_t created, expires; /* Unix time; expires: its last second; 0: never */
    bool durable;             /* set when it gets its name: the disk has its files */

    unsigned references; /* uses, and one of the table */
    bool listed, moving, is_resident;
    bool facts_left; /* guarded by `files`: the .json could not be removed */
    int64_t used;
    TAILQ_ENTRY(gm_named) link;          /* in its list of the table */
    TAILQ_ENTRY(gm_named) resident_link; /* in its device's list */
    struct gm_reservation reservation;   /* room for `host`, whether it is there or not */
    struct gm_allocation host;           /* the elements on the host, if it is not empty, */
    void *host_data;                     /* here */
    const struct gm_device *device;      /* and on a device; NULL: on none */
    void *device_data;
};

/* name.c: the length of OWNER in OWNER.NAME; SIZE_MAX: there is none. */
size_t gm_matrix_owner_len(const char *text, size_t len);
/* Whether a list of names of keys has this one. */
bool gm_matrix_share_has(const char *share, const char *key);

/* store.c: drops a reference. The mutex is held. */
void gm_matrix_unref(struct gm_matrices *matrices, struct gm_named *named);

/* files.c. Only if there is a --matrix-dir; they block. */

/* What a .json says of a matrix. */
struct gm_matrix_file {
    const char *owner, *name, *etag, *share, *file;
    enum gm_dtype dtype;
    int64_t created, expires;
};

/* GM_BAD_PARAMETER: it cannot be used. */
enum gm_status gm_matrix_dir_open(struct gm_matrices *matrices, struct gm_error *err);
/* Writes the elements, as a file that does not count yet. GM_STORAGE_FULL: the disk is full. */
enum gm_status gm_matrix_write_elements(const struct gm_matrices *matrices,
                                        const struct gm_named *named, const void *data,
                                        struct gm_error *err);
/* Makes this version the one that counts, once the disk has it: gm_matrix_sync_files. `files` is
 * held, here and below. */
enum gm_status gm_matrix_write_facts(const struct gm_matrices *matrices,
                                     const struct gm_named *named, struct gm_error *err);
/* Gives the elements' file its name, once facts name it; takes that away, before they stop to;
 * removes it where it has none. A start gives it back to what facts name. */
enum gm_status gm_matrix_settle_elements(const struct gm_matrices *matrices, const char *owner,
                                         const char *name, const char *etag, struct gm_error *err);
enum gm_status gm_matrix_retire_elements(const struct gm_matrices *matrices, const char *owner,
                                         const char *name, const char *etag, struct gm_error *err);
void gm_matrix_remove_elements(const struct gm_matrices *matrices, const char *owner,
                               const char *name, const char *etag);
/* Forgets a matrix: its elements are retired. GM_INTERNAL: the facts cannot be removed. */
enum gm_status gm_matrix_forget_files(const struct gm_matrices *matrices, const char *owner,
                                      const char *name, const char *etag, struct gm_error *err);
/* Waits until the disk has what was renamed or removed. Before that no elements may go that older
 * facts name: after a loss of power these may be back. GM_INTERNAL: nobody knows. */
enum gm_status gm_matrix_sync_files(const struct gm_matrices *matrices, struct gm_error *err);

bool gm_matrix_has_expired(int64_t expires, int64_t now); /* Unix time; expires 0: never */

/* Whether files have a matrix of this name that has not expired, and its tag; "": it is damaged. */
bool gm_matrix_in_files(const struct gm_matrices *matrices, const char *owner, const char *name,
                        char ret_etag[GM_ETAG_MAX]);

/* store.c: makes a matrix of a file; its elements go to *ret_data, and gm_matrix_restored gives it
 * its name. */
enum gm_status gm_matrix_restore(struct gm_matrices *matrices, const struct gm_matrix_file *file,
                                 const struct gm_matrix *matrix, struct gm_matrix_use *ret,
                                 void **ret_data, struct gm_error *err);
void gm_matrix_restored(const struct gm_matrix_use *use);

/* memory.c: a buffer of the host for the elements. */
enum gm_status gm_matrix_take_room(const struct gm_matrix_use *use, void **ret_data,
                                   struct gm_error *err);

/* memory.c: gives back the memory of its device, if it has some. The mutex is held. */
void gm_matrix_leave_device(struct gm_matrices *matrices, struct gm_named *named);

#endif
