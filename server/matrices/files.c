/*
 * files.c - named matrices in files, so that they outlive the daemon: --matrix-dir.
 *
 * OWNER.NAME.ETAG.npy has the elements, OWNER.NAME.json says what they are. The .json is renamed
 * over the one before: that is when a version becomes the one that counts. Until then new elements
 * are in .OWNER.NAME.ETAG.npy.new; and so are those that are about to go, from before the .json
 * stops naming them. A daemon that is killed at any moment leaves the version before, or the new
 * one, whole: a start looks for the elements that a .json names under both names, and removes what
 * else ends in .new. It removes no other file, whatever it is called: that may be a person's.
 */
#include "server/matrices/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FORMAT 1
#define JSON_BYTES_MAX 65536
#define FILE_NAME_MAX (GM_MATRIX_REF_MAX + GM_ETAG_MAX + 16)
#define NEW_NAME_MAX (FILE_NAME_MAX + 8)

/* Clients are told, too: it does not say where the folder is. */
static enum gm_status fail_file(const char *file, int error, struct gm_error *err)
{
    bool full = error == ENOSPC || error == EDQUOT;

    return gm_fail(err, full ? GM_STORAGE_FULL : GM_INTERNAL, "%s (--matrix-dir): %s", file,
                   strerror(error));
}

static void facts_name(const char *owner, const char *name, char out[FILE_NAME_MAX])
{
    snprintf(out, FILE_NAME_MAX, "%s.%s.json", owner, name);
}

static void elements_name(const char *owner, const char *name, const char *etag,
                          char out[FILE_NAME_MAX])
{
    snprintf(out, FILE_NAME_MAX, "%s.%s.%s.npy", owner, name, etag);
}

/* What a file is called until it counts, and when it no longer does. */
static void new_name(const char *file, char out[NEW_NAME_MAX])
{
    snprintf(out, NEW_NAME_MAX, ".%s.new", file);
}

/* 0, or errno. */
static int write_all(int fd, const char *bytes, uint64_t len)
{
    while (len > 0) {
        size_t most = (size_t)1 << 30;
        ssize_t n = write(fd, bytes, len < most ? (size_t)len : most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        bytes += n;
        len -= (uint64_t)n;
    }
    return 0;
}

/* Writes a file under its new name, as a whole or not at all. */
static enum gm_status write_new(const struct gm_matrices *m, const char *file, const char *head,
                                size_t head_len, const char *bytes, uint64_t len,
                                struct gm_error *err)
{
    char temporary[NEW_NAME_MAX];

    new_name(file, temporary);
    int fd = openat(m->dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_file(file, errno, err);
    int error = write_all(fd, head, head_len);
    if (error == 0)
        error = write_all(fd, bytes, len);
    if (error == 0 && fsync(fd) != 0)
        error = errno;
    if (close(fd) != 0 && error == 0 && errno != EINTR)
        error = errno;
    if (error == 0)
        return GM_OK;
    unlinkat(m->dir_fd, temporary, 0);
    return fail_file(file, error, err);
}

/* From its new name to its own. */
static enum gm_status settle_file(const struct gm_matrices *m, const char *file,
                                  struct gm_error *err)
{
    char temporary[NEW_NAME_MAX];

    new_name(file, temporary);
    return renameat(m->dir_fd, temporary, m->dir_fd, file) == 0 ? GM_OK
                                                                : fail_file(file, errno, err);
}

enum gm_status gm_matrix_write_elements(const struct gm_matrices *m, const struct gm_named *named,
                                        const void *data, struct gm_error *err)
{
    char head[GM_HEAD_MAX], file[FILE_NAME_MAX];
    size_t len;
    enum gm_status status = gm_codec_npy.head(&named->matrix, head, &len, err);

    elements_name(named->owner->name, named->name, named->etag, file);
    if (status == GM_OK)
        status = write_new(m, file, head, len, data, named->bytes, err);
    if (status == GM_OK) { /* before any facts name them */
        status = gm_matrix_sync_files(m, err);
        if (status != GM_OK)
            gm_matrix_remove_elements(m, named->owner->name, named->name, named->etag);
    }
    return status;
}

enum gm_status gm_matrix_settle_elements(const struct gm_matrices *m, const char *owner,
                                         const char *name, const char *etag, struct gm_error *err)
{
    char file[FILE_NAME_MAX];

    elements_name(owner, name, etag, file);
    return settle_file(m, file, err);
}

enum gm_status gm_matrix_retire_elements(const struct gm_matrices *m, const char *owner,
                                         const char *name, const char *etag, struct gm_error *err)
{
    char file[FILE_NAME_MAX], temporary[NEW_NAME_MAX];

    if (!*etag) /* none; or damaged facts, and nobody knows which they are */
        return GM_OK;
    elements_name(owner, name, etag, file);
    new_name(file, temporary);
    return renameat(m->dir_fd, file, m->dir_fd, temporary) == 0 || errno == ENOENT
               ? GM_OK
               : fail_file(file, errno, err);
}

void gm_matrix_remove_elements(const struct gm_matrices *m, const char *owner, const char *name,
                               const char *etag)
{
    char file[FILE_NAME_MAX], temporary[NEW_NAME_MAX];

    elements_name(owner, name, etag, file);
    new_name(file, temporary);
    unlinkat(m->dir_fd, temporary, 0);
}

enum gm_status gm_matrix_write_facts(const struct gm_matrices *m, const struct gm_named *named,
                                     struct gm_error *err)
{
    char file[FILE_NAME_MAX], elements[NEW_NAME_MAX];

    facts_name(named->owner->name, named->name, file);
    elements_name(named->owner->name, named->name, named->etag, elements);
    json_t *o =
        json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "format", FORMAT, "owner",
                  named->owner->name, "name", named->name, "etag", named->etag, "dtype",
                  gm_dtype_name(named->matrix.dtype), "share", named->share, "file", elements,
                  "created", (json_int_t)named->created, "expires", (json_int_t)named->expires);
    char *text = o ? json_dumps(o, JSON_INDENT(1)) : NULL;
    enum gm_status status = GM_OK;

    json_decref(o);
    if (!text)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for %s", file);
    status = write_new(m, file, "", 0, text, strlen(text), err);
    free(text);
    if (status == GM_OK && (status = settle_file(m, file, err)) != GM_OK) {
        new_name(file, elements);
        unlinkat(m->dir_fd, elements, 0);
    }
    return status;
}

enum gm_status gm_matrix_forget_files(const struct gm_matrices *m, const char *owner,
                                      const char *name, const char *etag, struct gm_error *err)
{
    char file[FILE_NAME_MAX];
    struct gm_error ignored;
    enum gm_status status = gm_matrix_retire_elements(m, owner, name, etag, err);

    if (status != GM_OK)
        return status;
    facts_name(owner, name, file);
    if (unlinkat(m->dir_fd, file, 0) == 0 || errno == ENOENT)
        return GM_OK;
    fail_file(file, errno, err);
    gm_matrix_settle_elements(m, owner, name, etag, &ignored);
    return err->status;
}

enum gm_status gm_matrix_sync_files(const struct gm_matrices *m, struct gm_error *err)
{
    return fsync(m->dir_fd) == 0 ? GM_OK : fail_file("the folder", errno, err);
}

/* ---- At the start. ---- */

enum gm_status gm_matrix_dir_open(struct gm_matrices *m, struct gm_error *err)
{
    static const char probe[] = ".gemmd.new";
    m->dir_fd = open(m->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->dir_fd < 0)
        return gm_fail(err, GM_BAD_PARAMETER, "--matrix-dir: %s: %s", m->dir, strerror(errno));
    int error = flock(m->dir_fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    int fd =
        error == 0 ? openat(m->dir_fd, probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    /* Full: it can still be read. One of that name is not ours, and can stay. */
    if (error == 0 && fd < 0 && errno != ENOSPC && errno != EDQUOT && errno != EEXIST)
        error = errno;
    if (fd >= 0) {
        close(fd);
        unlinkat(m->dir_fd, probe, 0);
    }
    if (error == 0)
        return GM_OK;
    close(m->dir_fd);
    m->dir_fd = -1;
    /* Another one may be about to end: that is worth another start. */
    return gm_fail(err, error == EWOULDBLOCK ? GM_INTERNAL : GM_BAD_PARAMETER,
                   "--matrix-dir: %s: %s", m->dir,
                   error == EWOULDBLOCK ? "another gemmd uses it" : strerror(error));
}

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);

    return len > n && strcmp(text + len - n, end) == 0;
}

/* The document of a .json; NULL: *err says why not. GM_BAD_PARAMETER: of a version that is not
 * known. */
static json_t *read_facts(const struct gm_matrices *m, const char *file, struct gm_error *err)
{
    static const char *const texts[] = {"owner", "name", "etag", "dtype", "share", "file"};
    char text[JSON_BYTES_MAX];
    json_error_t said;
    int fd = openat(m->dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof text) : -1;

    if (fd >= 0)
        close(fd);
    json_t *o = len >= 0 ? json_loadb(text, (size_t)len, JSON_REJECT_DUPLICATES, &said) : NULL;
    if (!o) {
        gm_fail(err, GM_INTERNAL, "%s/%s: %s", m->dir, file, len < 0 ? strerror(errno) : said.text);
        return NULL;
    }
    json_int_t format = json_integer_value(json_object_get(o, "format"));
    bool whole = json_is_object(o) && format == FORMAT &&
                 json_is_integer(json_object_get(o, "created")) &&
                 json_is_integer(json_object_get(o, "expires"));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        whole = whole && json_is_string(json_object_get(o, texts[i]));
    if (whole)
        return o;
    if (format > 0 && format != FORMAT)
        gm_fail(err, GM_BAD_PARAMETER,
                "%s/%s (--matrix-dir) has format %" JSON_INTEGER_FORMAT
                ", and this gemmd knows %d: it does not start, so as not to lose it",
                m->dir, file, format, FORMAT);
    else
        gm_fail(err, GM_INTERNAL, "%s/%s: it is not what gemmd writes", m->dir, file);
    json_decref(o);
    return NULL;
}

static const char *text_of(const json_t *o, const char *name)
{
    return json_string_value(json_object_get(o, name));
}

/* What a .json says, checked. The strings are the document's. */
static enum gm_status check_facts(const struct gm_matrices *m, const char *file, const json_t *o,
                                  struct gm_matrix_file *ret, struct gm_error *err)
{
    char expected[FILE_NAME_MAX];
    const char *etag = text_of(o, "etag"), *dtype = text_of(o, "dtype");

    *ret = (struct gm_matrix_file){.owner = text_of(o, "owner"),
                                   .name = text_of(o, "name"),
                                   .etag = etag,
                                   .share = text_of(o, "share"),
                                   .file = text_of(o, "file"),
                                   .dtype = gm_dtype_from_name(dtype, strlen(dtype)),
                                   .created = json_integer_value(json_object_get(o, "created")),
                                   .expires = json_integer_value(json_object_get(o, "expires"))};
    snprintf(expected, sizeof expected, "%s.%s.json", ret->owner, ret->name);
    bool ok = strcmp(expected, file) == 0 && strlen(ret->owner) < GM_KEY_NAME_MAX &&
              gm_matrix_name_ok(ret->name, strlen(ret->name)) && strlen(etag) == 16 &&
              strspn(etag, "0123456789abcdef") == 16 && ret->dtype != GM_DTYPE_NONE &&
              (!*ret->share || gm_matrix_share_ok(ret->share, strlen(ret->share)));
    snprintf(expected, sizeof expected, "%s.%s.%s.npy", ret->owner, ret->name, etag);
    ok = ok && strcmp(expected, ret->file) == 0;
    return ok ? GM_OK
              : gm_fail(err, GM_INTERNAL, "%s/%s: it is not what gemmd writes", m->dir, file);
}

bool gm_matrix_in_files(const struct gm_matrices *m, const char *owner, const char *name,
                        char ret_etag[GM_ETAG_MAX])
{
    struct gm_matrix_file said = {.expires = 0};
    char file[FILE_NAME_MAX];
    struct gm_error err;

    facts_name(owner, name, file);
    json_t *o = read_facts(m, file, &err);
    bool sound = o && check_facts(m, file, o, &said, &err) == GM_OK;
    snprintf(ret_etag, GM_ETAG_MAX, "%s", sound ? said.etag : "");
    bool expired = sound && gm_matrix_has_expired(said.expires, (int64_t)time(NULL));
    json_decref(o);
    return !expired && (sound || faccessat(m->dir_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

/* What reads the elements, for the decoder's sink. */
struct loading {
    struct gm_matrices *matrices;
    const struct gm_matrix_file *file;
    struct gm_matrix_use *use;
};

static enum gm_status on_operand(void *cls, unsigned index, const struct gm_matrix *matrix,
                                 void **ret_data, struct gm_error *err)
{
    const struct loading *loading = cls;

    (void)index;
    return gm_matrix_restore(loading->matrices, loading->file, matrix, loading->use, ret_data, err);
}

static enum gm_status decode(const struct gm_matrices *m, const char *file,
                             struct gm_decoder *decoder, struct gm_error *err)
{
    size_t size = (size_t)1 << 20;
    char *piece = malloc(size);
    int fd = openat(m->dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    enum gm_status status = GM_OK;
    ssize_t n = 1;

    if (!piece)
        status = gm_fail(err, GM_MEMORY_FULL, "no memory to read it");
    else if (fd < 0)
        status = gm_fail(err, GM_INTERNAL, "%s", strerror(errno));
    while (status == GM_OK && n > 0) {
        n = read(fd, piece, size);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            status = gm_fail(err, GM_INTERNAL, "%s", strerror(errno));
        else if (n > 0)
            status = gm_codec_npy.push(decoder, piece, (size_t)n, err);
    }
    if (status == GM_OK)
        status = gm_codec_npy.finish(decoder, err);
    if (fd >= 0)
        close(fd);
    free(piece);
    return status;
}

static enum gm_status load(struct gm_matrices *m, const struct gm_matrix_file *file,
                           struct gm_error *err)
{
    struct gm_matrix_use use = {0};
    struct loading loading = {m, file, &use};
    struct gm_decoder *decoder = NULL;
    const struct gm_decode_plan plan = {
        /* Of the types, a file lacks a name for this one alone. */
        .dtype = file->dtype == GM_BF16 ? GM_BF16 : GM_DTYPE_NONE,
        .operands_max = 1,
        .body_bytes = GM_SIZE_UNKNOWN,
        .sink = {.operand = on_operand, .cls = &loading},
    };
    enum gm_status status = gm_codec_npy.open(&plan, &decoder, err);

    if (status == GM_OK)
        status = decode(m, file->file, decoder, err);
    gm_codec_npy.close(decoder);
    if (status == GM_OK && !use.named)
        status = gm_fail(err, GM_INTERNAL, "it has no matrix");
    if (status == GM_OK)
        gm_matrix_restored(&use);
    gm_matrix_leave(&use);
    if (status == GM_OK)
        return GM_OK;
    const struct gm_error why = *err;
    return gm_fail(err, status, "%s/%s was not loaded, and stays as it is: %s", m->dir, file->file,
                   why.detail);
}

/* Whether a name is OWNER.NAME. */
static bool is_full_name(const char *text, size_t len)
{
    size_t owner = gm_matrix_owner_len(text, len);

    if (owner == SIZE_MAX || !gm_matrix_name_ok(text + owner + 1, len - owner - 1))
        return false;
    return *text == '@' ? owner == 17 && strspn(text + 1, "0123456789abcdef") == 16
                        : gm_key_name_ok(text, owner);
}

/* The length of OWNER.NAME in OWNER.NAME.ETAG.npy; 0: the file has another name. */
static size_t elements_of(const char *file, size_t len)
{
    const size_t end = strlen(".0123456789abcdef.npy");
    bool ok = len > end && len < FILE_NAME_MAX && memcmp(file + len - 4, ".npy", 4) == 0 &&
              file[len - end] == '.' &&
              strspn(file + len - end + 1, "0123456789abcdef") == end - strlen("..npy");

    return ok && is_full_name(file, len - end) ? len - end : 0;
}

/* The file that has this one as its new name: its length, from the second character on. 0: none. */
static size_t file_of_new(const char *temporary, size_t len)
{
    if (*temporary != '.' || !ends_in(temporary, ".new"))
        return 0;
    len -= strlen("..new");
    temporary++;
    return elements_of(temporary, len) > 0 ||
                   (len > 5 && memcmp(temporary + len - 5, ".json", 5) == 0 &&
                    is_full_name(temporary, len - 5))
               ? len
               : 0;
}

/* Removes what a daemon left that was killed, and tells of elements that no .json names. What a
 * .json names stays, and so does all that is beside a damaged one. */
static enum gm_status clean(const struct gm_matrices *m, const char *found, struct gm_error *err)
{
    char facts[FILE_NAME_MAX], file[FILE_NAME_MAX];
    struct gm_matrix_file said;
    struct gm_error why;
    size_t len = strlen(found), new_len = file_of_new(found, len);

    if (new_len == 0 && elements_of(found, len) == 0)
        return GM_OK;
    snprintf(file, sizeof file, "%.*s", (int)(new_len > 0 ? new_len : len), found + (new_len > 0));
    size_t name = elements_of(file, strlen(file));
    snprintf(facts, sizeof facts, "%.*s.json", (int)name, file);
    json_t *o = name > 0 ? read_facts(m, facts, &why) : NULL;
    bool sound = o && check_facts(m, facts, o, &said, &why) == GM_OK;
    bool other = name == 0 || (sound ? strcmp(said.file, file) != 0
                                     : faccessat(m->dir_fd, facts, F_OK, AT_SYMLINK_NOFOLLOW) != 0);
    json_decref(o);
    if (!other)
        return GM_OK;
    if (new_len == 0)
        return gm_fail(err, GM_INTERNAL,
                       "%s/%s was not loaded, and stays as it is: no .json beside it names it",
                       m->dir, file);
    unlinkat(m->dir_fd, found, 0);
    return GM_OK;
}

enum gm_status gm_matrices_load(struct gm_matrices *m,
                                void (*damaged)(void *cls, const struct gm_error *why), void *cls,
                                struct gm_error *err)
{
    int fd = m->dir_fd >= 0 ? dup(m->dir_fd) : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    enum gm_status status = GM_OK;
    const struct dirent *entry;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return *m->dir ? gm_fail(err, GM_INTERNAL, "--matrix-dir: %s: %s", m->dir, strerror(errno))
                       : GM_OK;
    }
    while (status == GM_OK && (entry = readdir(dir))) {
        struct gm_matrix_file file;
        struct gm_error why;
        const char *name = entry->d_name;
        if (!ends_in(name, ".json") || (*name == '.' && !is_full_name(name, strlen(name) - 5)))
            continue;
        json_t *o = read_facts(m, name, &why);
        enum gm_status found = o ? check_facts(m, name, o, &file, &why) : why.status;
        if (found == GM_OK && gm_matrix_has_expired(file.expires, (int64_t)time(NULL)))
            found = gm_matrix_forget_files(m, file.owner, file.name, file.etag, &why);
        else if (found == GM_OK) {
            if (faccessat(m->dir_fd, file.file, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
                settle_file(m, file.file, &why); /* what load finds missing, it tells of */
            found = load(m, &file, &why);
        }
        if (!o && found == GM_BAD_PARAMETER) {
            *err = why;
            status = found;
        } else if (found != GM_OK) {
            m->some_left = true;
            damaged(cls, &why);
        }
        json_decref(o);
    }
    rewinddir(dir);
    while (status == GM_OK && (entry = readdir(dir))) {
        struct gm_error why;
        if (clean(m, entry->d_name, &why) != GM_OK)
            damaged(cls, &why);
    }
    closedir(dir);
    return status;
}
