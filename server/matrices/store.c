/* store.c - the table of named matrices: names, owners, room. */
#include "server/matrices/internal.h"

#include "server/clock.h"
#include "server/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static const struct gm_conditions always;

static int64_t unix_now(void)
{
    return (int64_t)time(NULL);
}

/* ---- The table. The mutex is held. ---- */

static struct gm_named_list *list_of(const struct gm_matrices *m, const char *owner,
                                     const char *name)
{
    uint64_t hash = m->seed;

    for (const char *p = owner; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 29;
    for (const char *p = name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x9E3779B97F4A7C15);
    return &m->table[(hash ^ hash >> 32) % GM_MATRICES_TABLE];
}

/* It is there through its last second, so that it lives no shorter than its ttl. */
bool gm_matrix_has_expired(int64_t expires, int64_t now)
{
    return expires > 0 && expires < now;
}

static bool has_expired(const struct gm_named *named, int64_t now)
{
    return gm_matrix_has_expired(named->expires, now);
}

/* Also one that has expired. */
static struct gm_named *find_any(const struct gm_matrices *m, const char *owner, const char *name)
{
    struct gm_named *named;

    TAILQ_FOREACH (named, list_of(m, owner, name), link)
        if (strcmp(named->name, name) == 0 && strcmp(named->owner->name, owner) == 0)
            return named;
    return NULL;
}

static struct gm_named *find(const struct gm_matrices *m, const char *owner, const char *name)
{
    struct gm_named *named = find_any(m, owner, name);

    return named && !has_expired(named, unix_now()) ? named : NULL;
}

/* Whether there is a matrix of this name in files alone, which the start did not load; its tag.
 * With `files` held, this stays so. */
static bool is_in_files_alone(struct gm_matrices *m, const char *owner, const char *name,
                              char ret_etag[GM_ETAG_MAX])
{
    if (!m->some_left)
        return false;
    pthread_mutex_lock(&m->mutex);
    const struct gm_named *there = find_any(m, owner, name);
    pthread_mutex_unlock(&m->mutex);
    return !there && gm_matrix_in_files(m, owner, name, ret_etag);
}

/* Frees one that nobody refers to. */
static void destroy(struct gm_matrices *m, struct gm_named *named)
{
    struct gm_matrix_owner *owner = named->owner;

    gm_matrix_leave_device(m, named);
    gm_allocation_free(&named->host, &named->reservation);
    gm_reservation_trim(&named->reservation, 0);
    gm_quota_unref(named->reservation.client_quota);
    m->bytes -= named->bytes;
    owner->bytes -= named->bytes;
    if (--owner->matrices == 0) {
        LIST_REMOVE(owner, link);
        free(owner);
    }
    free(named);
}

void gm_matrix_unref(struct gm_matrices *m, struct gm_named *named)
{
    if (--named->references == 0)
        destroy(m, named);
}

/* Takes its name away. */
static void unlist(struct gm_matrices *m, struct gm_named *named)
{
    TAILQ_REMOVE(list_of(m, named->owner->name, named->name), named, link);
    named->listed = false;
    named->owner->count--;
    m->count--;
    gm_matrix_unref(m, named);
}

typedef bool due_fn(const struct gm_named *, int64_t argument);

static void log_failure(const struct gm_error *err)
{
    gm_log_detail(GM_LOG_ERROR, "matrix_dir", err->detail);
}

/* Removes the files of those that are due. Elements stay where their facts do. `files` is held, so
 * no name changes, and not the mutex, for which readers would wait. */
static void remove_files(struct gm_matrices *m, due_fn *is_due, int64_t argument)
{
    struct gm_named *named;
    struct gm_error err;
    bool any = false;

    for (unsigned i = 0; i < GM_MATRICES_TABLE; i++) {
        TAILQ_FOREACH (named, &m->table[i], link) {
            if (!is_due(named, argument))
                continue;
            any = true;
            named->facts_left = gm_matrix_forget_files(m, named->owner->name, named->name,
                                                       named->etag, &err) != GM_OK;
            if (named->facts_left) {
                m->some_left = true;
                log_failure(&err);
            }
        }
    }
    if (any && gm_matrix_sync_files(m, &err) != GM_OK) { /* the next start removes the elements */
        log_failure(&err);
        any = false;
    }
    for (unsigned i = 0; i < GM_MATRICES_TABLE && any; i++)
        TAILQ_FOREACH (named, &m->table[i], link)
            if (is_due(named, argument) && !named->facts_left)
                gm_matrix_remove_elements(m, named->owner->name, named->name, named->etag);
}

/* Takes the names of those away that are due. The mutex is held. */
static void sweep(struct gm_matrices *m, due_fn *is_due, int64_t argument)
{
    struct gm_named *named, *next;

    m->expires = INT64_MAX;
    for (unsigned i = 0; i < GM_MATRICES_TABLE; i++) {
        for (named = TAILQ_FIRST(&m->table[i]); named; named = next) {
            next = TAILQ_NEXT(named, link);
            bool due = is_due(named, argument);
            if (due)
                unlist(m, named);
            else if (named->expires > 0 && named->expires < m->expires)
                m->expires = named->expires;
        }
    }
}

static bool is_of_client(const struct gm_named *named, int64_t client)
{
    return named->reservation.client == (uint64_t)client;
}

static bool is_any(const struct gm_named *named, int64_t argument)
{
    (void)named;
    (void)argument;
    return true;
}

enum gm_status gm_matrices_open(struct gm_matrices *m, struct gm_error *err)
{
    uint64_t random[2];

    if (getrandom(random, sizeof random, 0) != sizeof random) { /* else these will have to do */
        random[0] = (uint64_t)gm_now_ns();
        random[1] = (uint64_t)unix_now() << 20;
    }
    m->seed = random[0];
    m->etags = random[1];
    m->expires = INT64_MAX;
    m->dir_fd = -1;
    enum gm_status status = *m->dir ? gm_matrix_dir_open(m, err) : GM_OK;
    if (status != GM_OK)
        return status;
    m->table = malloc(GM_MATRICES_TABLE * sizeof *m->table);
    if (!m->table)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the table of named matrices");
    for (unsigned i = 0; i < GM_MATRICES_TABLE; i++)
        TAILQ_INIT(&m->table[i]);
    for (unsigned i = 0; i < GM_DEVICES_MAX; i++)
        TAILQ_INIT(&m->resident[i]);
    pthread_mutex_init(&m->files, NULL);
    pthread_mutex_init(&m->mutex, NULL);
    pthread_cond_init(&m->moved, NULL);
    return GM_OK;
}

void gm_matrices_close(struct gm_matrices *m)
{
    if (!m->table)
        return;
    sweep(m, is_any, 0);
    free(m->table);
    m->table = NULL;
    if (m->dir_fd >= 0)
        close(m->dir_fd);
    pthread_cond_destroy(&m->moved);
    pthread_mutex_destroy(&m->mutex);
    pthread_mutex_destroy(&m->files);
}

/* Names change with the files locked, if there are any, and the mutex. */
static void lock_files(struct gm_matrices *m)
{
    if (*m->dir)
        pthread_mutex_lock(&m->files);
}

static void unlock_files(struct gm_matrices *m)
{
    if (*m->dir)
        pthread_mutex_unlock(&m->files);
}

/* Forgets those that are due. */
static void forget(struct gm_matrices *m, due_fn *is_due, int64_t argument)
{
    lock_files(m);
    if (*m->dir)
        remove_files(m, is_due, argument);
    pthread_mutex_lock(&m->mutex);
    sweep(m, is_due, argument);
    pthread_mutex_unlock(&m->mutex);
    unlock_files(m);
}

void gm_matrices_tick(struct gm_matrices *m)
{
    int64_t now = unix_now();

    pthread_mutex_lock(&m->mutex);
    bool due = m->expires < now;
    pthread_mutex_unlock(&m->mutex);
    if (due)
        forget(m, has_expired, now);
}

void gm_matrices_drop_client(struct gm_matrices *m, uint64_t client)
{
    forget(m, is_of_client, (int64_t)client);
}

/* ---- Writing. ---- */

/* The owner's entry; NULL: no memory. The mutex is held. */
static struct gm_matrix_owner *owner_of(struct gm_matrices *m, const char *name)
{
    struct gm_matrix_owner *owner;

    LIST_FOREACH (owner, &m->owners, link)
        if (strcmp(owner->name, name) == 0)
            return owner;
    owner = calloc(1, sizeof *owner);
    if (owner) {
        snprintf(owner->name, sizeof owner->name, "%s", name);
        LIST_INSERT_HEAD(&m->owners, owner, link);
    }
    return owner;
}

static enum gm_status check_room(const struct gm_matrices *m, const struct gm_matrix_owner *owner,
                                 uint64_t bytes, struct gm_error *err)
{
    uint64_t most = m->limit / GM_MATRIX_OWNER_PART;

    if (bytes > most)
        return gm_fail(err, GM_TOO_LARGE,
                       "the matrix has %llu bytes; those of one owner may have %llu, one part in "
                       "%d of --matrix-memory",
                       (unsigned long long)bytes, (unsigned long long)most, GM_MATRIX_OWNER_PART);
    if (owner->bytes > most - bytes || m->bytes > m->limit - bytes)
        return gm_fail(err, GM_STORAGE_FULL,
                       "the matrix has %llu bytes, and there are %llu already, %llu of them this "
                       "owner's; the limits are %llu (--matrix-memory) and %llu. What replaces "
                       "another counts beside it: delete that, or some other, first",
                       (unsigned long long)bytes, (unsigned long long)m->bytes,
                       (unsigned long long)owner->bytes, (unsigned long long)m->limit,
                       (unsigned long long)most);
    return GM_OK;
}

/* What takes the name of another adds none. */
static enum gm_status check_names(const struct gm_matrices *m, const struct gm_named *named,
                                  struct gm_error *err)
{
    const struct gm_matrix_owner *owner = named->owner;

    if ((m->count < GM_MATRICES_MAX && owner->count < GM_MATRICES_OWNER_MAX) ||
        find_any(m, owner->name, named->name))
        return GM_OK;
    return gm_fail(err, GM_STORAGE_FULL,
                   "there are %llu named matrices, %llu of them this owner's; the limits are %d "
                   "and %d",
                   (unsigned long long)m->count, (unsigned long long)owner->count, GM_MATRICES_MAX,
                   GM_MATRICES_OWNER_MAX);
}

static enum gm_status check_conditions(const struct gm_matrices *m,
                                       const struct gm_conditions *conditions, const char *owner,
                                       const char *name, struct gm_error *err)
{
    const struct gm_named *there = find(m, owner, name);

    return gm_etag_check(conditions, there ? there->etag : NULL, err);
}

static enum gm_status check_wanted(const struct gm_conditions *conditions, struct gm_error *err)
{
    return conditions->still_wanted ? conditions->still_wanted(conditions->cls, err) : GM_OK;
}

/* Numbers of versions, unlike those before, also of a gemmd that ran before: SplitMix64 (Steele,
 * Lea and Flood, 2014), from where the system's random number has begun it. The mutex is held. */
static void make_etag(struct gm_matrices *m, char etag[GM_ETAG_MAX])
{
    uint64_t x = m->etags += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    snprintf(etag, GM_ETAG_MAX, "%016llx", (unsigned long long)(x ^ x >> 31));
}

static enum gm_status enter(struct gm_matrices *m, struct gm_named *named, const char *owner,
                            const struct gm_conditions *conditions, struct gm_error *err)
{
    enum gm_status status = check_conditions(m, conditions, owner, named->name, err);

    if (status != GM_OK)
        return status;
    named->owner = owner_of(m, owner);
    if (!named->owner)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for a named matrix");
    status = check_room(m, named->owner, named->bytes, err);
    if (status == GM_OK)
        status = check_names(m, named, err);
    if (status != GM_OK && named->owner->matrices == 0) {
        LIST_REMOVE(named->owner, link);
        free(named->owner);
    }
    if (status != GM_OK)
        return status;
    named->owner->matrices++;
    named->owner->bytes += named->bytes;
    m->bytes += named->bytes;
    return GM_OK;
}

enum gm_status gm_matrix_make(struct gm_matrices *m, const struct gm_matrix_caller *caller,
                              const char *name, const struct gm_matrix_terms *terms,
                              const struct gm_conditions *conditions,
                              const struct gm_matrix *matrix, struct gm_matrix_use *ret,
                              struct gm_error *err)
{
    char etag[GM_ETAG_MAX];
    struct gm_named *named;
    enum gm_status status = GM_OK;

    if (*terms->share && !caller->has_key)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "share names keys, and here are none: start gemmd with --keys");
    if (is_in_files_alone(m, caller->owner, name, etag)) {
        status = gm_etag_check(conditions, etag, err);
        conditions = &always;
    }
    if (status != GM_OK)
        return status;
    named = calloc(1, sizeof *named);
    if (!named)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for a named matrix");
    named->references = 1;
    named->matrix = *matrix;
    named->matrix.data = NULL;
    named->bytes = gm_matrix_bytes(matrix);
    named->ttl_s = terms->ttl_s;
    snprintf(named->name, sizeof named->name, "%s", name);
    snprintf(named->share, sizeof named->share, "%s", terms->share);
    pthread_mutex_lock(&m->mutex);
    make_etag(m, named->etag);
    status = enter(m, named, caller->owner, conditions, err);
    pthread_mutex_unlock(&m->mutex);
    if (status != GM_OK) {
        free(named);
        return status;
    }
    named->reservation = (struct gm_reservation){
        .quota = m->quota, .client = caller->client, .client_quota = gm_quota_ref(caller->quota)};
    *ret = (struct gm_matrix_use){named, m};
    return GM_OK;
}

/* Whether it may get its name now; its life begins. The mutex is held. */
static enum gm_status begin_publish(const struct gm_matrices *m, struct gm_named *named,
                                    const struct gm_conditions *conditions, struct gm_error *err)
{
    const struct gm_quota *quota = named->reservation.client_quota;
    enum gm_status status = check_conditions(m, conditions, named->owner->name, named->name, err);

    if (status == GM_OK)
        status = check_names(m, named, err);
    named->created = named->used = unix_now();
    named->expires = named->ttl_s > 0 ? named->created + (int64_t)named->ttl_s : 0;

    /* One that gets into the table before its key goes is found there and dropped. */
    if (status == GM_OK && quota && atomic_load(&quota->revoked))
        status = gm_fail(err, GM_UNAUTHORIZED, "the key was revoked meanwhile");
    return status;
}

/* Puts it into the table, in place of another, which it returns with a reference; NULL: there was
 * none. The mutex is held. */
static struct gm_named *list(struct gm_matrices *m, struct gm_named *named)
{
    struct gm_named_list *list = list_of(m, named->owner->name, named->name);
    struct gm_named *before = NULL, *other;

    TAILQ_FOREACH (other, list, link)
        if (strcmp(other->name, named->name) == 0 && other->owner == named->owner)
            before = other;
    if (before) {
        before->references++;
        unlist(m, before);
    }
    TAILQ_INSERT_TAIL(list, named, link);
    named->listed = true;
    named->references++;
    named->owner->count++;
    m->count++;
    if (named->expires > 0 && named->expires < m->expires)
        m->expires = named->expires;
    return before;
}

static bool is_new(const struct gm_named *before)
{
    return !before || has_expired(before, unix_now());
}

/* The files are written while readers and writers of other names go on; only the last step holds
 * up who changes names. */
static enum gm_status publish_durably(const struct gm_matrix_use *use,
                                      const struct gm_conditions *conditions, bool *ret_created,
                                      struct gm_error *err)
{
    struct gm_matrices *m = use->matrices;
    struct gm_named *named = use->named, *before = NULL;
    const char *owner = named->owner->name, *name = named->name;
    char old[GM_ETAG_MAX] = "";
    struct gm_error unsynced;
    bool on_device, synced = true;
    void *data;
    enum gm_status status = gm_matrix_data(use, NULL, &data, &on_device, err);

    if (status == GM_OK)
        status = gm_matrix_write_elements(m, named, data, err);
    if (status != GM_OK)
        return status;
    pthread_mutex_lock(&m->files);
    status = check_wanted(conditions, err); /* it may have waited for the disk */
    if (status == GM_OK && is_in_files_alone(m, owner, name, old)) {
        status = gm_etag_check(conditions, old, err);
        conditions = &always;
    }
    pthread_mutex_lock(&m->mutex);
    const struct gm_named *there = find_any(m, owner, name);
    if (there)
        memcpy(old, there->etag, sizeof old);
    if (status == GM_OK)
        status = begin_publish(m, named, conditions, err);
    pthread_mutex_unlock(&m->mutex);
    if (status == GM_OK) /* nobody else changes a name meanwhile */
        status = gm_matrix_retire_elements(m, owner, name, old, err);
    if (status == GM_OK) {
        status = gm_matrix_write_facts(m, named, err);
        if (status != GM_OK)
            gm_matrix_settle_elements(m, owner, name, old, &unsynced);
    }
    if (status == GM_OK) {
        synced = gm_matrix_settle_elements(m, owner, name, named->etag, &unsynced) == GM_OK &&
                 gm_matrix_sync_files(m, &unsynced) == GM_OK;
        if (!synced) /* it counts, but a loss of power may bring back the version before, whole */
            log_failure(&unsynced);
        pthread_mutex_lock(&m->mutex);
        named->durable = synced;
        before = list(m, named);
        pthread_mutex_unlock(&m->mutex);
        *ret_created = is_new(before);
    }
    if (status != GM_OK)
        gm_matrix_remove_elements(m, owner, name, named->etag);
    else if (synced)
        gm_matrix_remove_elements(m, owner, name, old);
    pthread_mutex_unlock(&m->files);
    gm_matrix_leave(&(struct gm_matrix_use){before, m});
    return status;
}

enum gm_status gm_matrix_publish(const struct gm_matrix_use *use,
                                 const struct gm_conditions *conditions, bool *ret_created,
                                 struct gm_error *err)
{
    struct gm_matrices *m = use->matrices;

    if (*m->dir)
        return publish_durably(use, conditions, ret_created, err);
    enum gm_status status = check_wanted(conditions, err);
    if (status != GM_OK)
        return status;
    pthread_mutex_lock(&m->mutex);
    status = begin_publish(m, use->named, conditions, err);
    if (status == GM_OK) {
        struct gm_named *before = list(m, use->named);
        *ret_created = is_new(before);
        if (before)
            gm_matrix_unref(m, before);
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}

enum gm_status gm_matrix_restore(struct gm_matrices *m, const struct gm_matrix_file *file,
                                 const struct gm_matrix *matrix, struct gm_matrix_use *ret,
                                 void **ret_data, struct gm_error *err)
{
    struct gm_matrix_caller caller = {.has_key = true};
    const struct gm_matrix_terms terms = {.share = file->share};

    if (matrix->dtype != file->dtype)
        return gm_fail(err, GM_INTERNAL, "it has elements of %s, not %s",
                       gm_dtype_name(matrix->dtype), gm_dtype_name(file->dtype));
    snprintf(caller.owner, sizeof caller.owner, "%s", file->owner);
    if (!m->owner_of(m->owner_cls, file->owner, &caller.client, &caller.quota))
        return gm_fail(err, GM_INTERNAL,
                       *file->owner == '@' ? "its owner %s is an address, and clients have keys"
                                           : "its owner %s has no key",
                       file->owner);
    enum gm_status status =
        gm_matrix_make(m, &caller, file->name, &terms, &always, matrix, ret, err);
    gm_quota_unref(caller.quota);
    if (status != GM_OK)
        return status;
    struct gm_named *named = ret->named;
    memcpy(named->etag, file->etag, strlen(file->etag) + 1);
    named->durable = true;
    named->created = named->used = file->created;
    named->expires = file->expires;
    return gm_matrix_take_room(ret, ret_data, err);
}

void gm_matrix_restored(const struct gm_matrix_use *use)
{
    struct gm_matrices *m = use->matrices;

    pthread_mutex_lock(&m->mutex);
    struct gm_named *before = list(m, use->named);
    if (before)
        gm_matrix_unref(m, before);
    pthread_mutex_unlock(&m->mutex);
}

/* ---- Reading. ---- */

static enum gm_status fail_unknown(const char *ref, struct gm_error *err)
{
    return gm_fail(err, GM_NOT_FOUND, "there is no named matrix '%.130s' for this client", ref);
}

/* Finds what a reference is for this caller. *ret_own: it may change it. The mutex is held. */
static struct gm_named *find_for(const struct gm_matrices *m, const struct gm_matrix_caller *caller,
                                 const char *ref, bool *ret_own)
{
    size_t len = strlen(ref), owner_chars = gm_matrix_owner_len(ref, len);
    char owner[GM_KEY_NAME_MAX];

    if (!gm_matrix_ref_ok(ref, len))
        return NULL;
    if (owner_chars == SIZE_MAX) {
        *ret_own = true;
        return find(m, caller->owner, ref);
    }
    snprintf(owner, sizeof owner, "%.*s", (int)owner_chars, ref);
    struct gm_named *named = find(m, owner, ref + owner_chars + 1);
    if (!named || !caller->has_key)
        return NULL;
    *ret_own = caller->admin || strcmp(owner, caller->owner) == 0;
    return *ret_own || gm_matrix_share_has(named->share, caller->owner) ? named : NULL;
}

enum gm_status gm_matrix_take(struct gm_matrices *m, const struct gm_matrix_caller *caller,
                              const char *ref, struct gm_matrix_use *ret, struct gm_error *err)
{
    bool own;

    pthread_mutex_lock(&m->mutex);
    struct gm_named *named = find_for(m, caller, ref, &own);
    if (named) {
        named->references++;
        named->used = unix_now();
    }
    if (named && named->is_resident) {
        struct gm_named_list *list = &m->resident[named->device - m->devices->device];
        TAILQ_REMOVE(list, named, resident_link);
        TAILQ_INSERT_TAIL(list, named, resident_link);
    }
    pthread_mutex_unlock(&m->mutex);
    if (!named)
        return fail_unknown(ref, err);
    *ret = (struct gm_matrix_use){named, m};
    return GM_OK;
}

void gm_matrix_leave(struct gm_matrix_use *use)
{
    if (use->named) {
        pthread_mutex_lock(&use->matrices->mutex);
        gm_matrix_unref(use->matrices, use->named);
        pthread_mutex_unlock(&use->matrices->mutex);
    }
    *use = (struct gm_matrix_use){0};
}

const struct gm_matrix *gm_matrix_of(const struct gm_matrix_use *use)
{
    return &use->named->matrix;
}

/* Removes the files of a matrix. The caller holds `files`, so the name cannot go meanwhile. */
static enum gm_status forget_files(const struct gm_matrices *m, const char *owner, const char *name,
                                   const char *etag, struct gm_error *err)
{
    enum gm_status status = gm_matrix_forget_files(m, owner, name, etag, err);
    struct gm_error unsynced;

    if (status != GM_OK)
        return status;
    if (gm_matrix_sync_files(m, &unsynced) == GM_OK)
        gm_matrix_remove_elements(m, owner, name, etag);
    else /* the next start removes them */
        log_failure(&unsynced);
    return GM_OK;
}

/* Removes what is in files alone, if it is the caller's. */
static enum gm_status delete_file(struct gm_matrices *m, const struct gm_matrix_caller *caller,
                                  const char *ref, const struct gm_conditions *conditions,
                                  struct gm_error *err)
{
    size_t len = gm_matrix_owner_len(ref, strlen(ref));
    const char *name = len == SIZE_MAX ? ref : ref + len + 1;
    char owner[GM_KEY_NAME_MAX], etag[GM_ETAG_MAX];

    snprintf(owner, sizeof owner, "%.*s", len == SIZE_MAX ? GM_KEY_NAME_MAX : (int)len,
             len == SIZE_MAX ? caller->owner : ref);
    bool own = strcmp(owner, caller->owner) == 0 || caller->admin;
    if (!gm_matrix_ref_ok(ref, strlen(ref)) || !own || !is_in_files_alone(m, owner, name, etag))
        return fail_unknown(ref, err);
    enum gm_status status = gm_etag_check(conditions, etag, err);
    if (status == GM_OK)
        status = forget_files(m, owner, name, etag, err);
    return status;
}

enum gm_status gm_matrix_delete(struct gm_matrices *m, const struct gm_matrix_caller *caller,
                                const char *ref, const struct gm_conditions *conditions,
                                struct gm_error *err)
{
    bool own = false;

    lock_files(m);
    enum gm_status status = check_wanted(conditions, err);
    pthread_mutex_lock(&m->mutex);
    struct gm_named *named = find_for(m, caller, ref, &own);
    if (status == GM_OK && !named)
        status = fail_unknown(ref, err);
    else if (status == GM_OK && !own)
        status = gm_fail(err, GM_FORBIDDEN, "%.130s is shared with this key read-only", ref);
    else if (status == GM_OK)
        status = gm_etag_check(conditions, named->etag, err);
    if (*m->dir && (status == GM_OK || status == GM_NOT_FOUND)) {
        pthread_mutex_unlock(&m->mutex);
        status = named ? forget_files(m, named->owner->name, named->name, named->etag, err)
                       : delete_file(m, caller, ref, conditions, err);
        pthread_mutex_lock(&m->mutex);
    }
    if (status == GM_OK && named)
        unlist(m, named);
    pthread_mutex_unlock(&m->mutex);
    unlock_files(m);
    return status;
}
