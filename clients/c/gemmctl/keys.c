/*
 * keys.c - gemmctl key: makes, lists and revokes the keys of a keys file.
 *
 * The file is replaced as a whole by a rename, so a daemon that reads it sees the old one or the
 * new one. A lock keeps two gemmctls apart. The key itself is shown once; the file has its hash.
 */
#include "clients/c/gemmctl/commands.h"
#include "clients/c/gemmctl/say.h"
#include "clients/c/gemmctl/table.h"
#include "proto/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_BYTES 8      /* of random bits in an id: enough to be unique */
#define SECRET_BYTES 32 /* and in a secret: nobody can guess it */

/* A keys file that is open and locked, and its text. */
struct file {
    char path[4096]; /* behind symbolic links, which stay */
    int fd;
    struct stat about;
    char *text; /* with a zero behind it */
    size_t len;
};

static enum gm_exit say_errno(const char *path)
{
    return gm_say_wrong(GM_EXIT_FILE, "%s: %s", path, strerror(errno));
}

static void close_file(struct file *file)
{
    if (file->fd >= 0)
        close(file->fd); /* and with it the lock */
    free(file->text);
}

/* Opens the file that has this name once it is locked: another gemmctl may have replaced it. */
static int open_locked(const char *path, int flags)
{
    struct stat named, opened;

    for (;;) {
        int fd = open(path, flags | O_CLOEXEC, S_IRUSR | S_IWUSR);
        if (fd < 0 || flock(fd, LOCK_EX) != 0 || fstat(fd, &opened) != 0)
            return fd;
        if (stat(path, &named) == 0 && named.st_ino == opened.st_ino &&
            named.st_dev == opened.st_dev)
            return fd;
        close(fd);
    }
}

static enum gm_exit open_file(const char *path, bool make, struct file *file)
{
    char *real = realpath(path, NULL);

    *file = (struct file){.fd = -1};
    int written = snprintf(file->path, sizeof file->path, "%s", real ? real : path);
    free(real);
    if ((size_t)written >= sizeof file->path)
        return gm_say_wrong(GM_EXIT_FILE, "the path of the keys file is too long");
    file->fd = open_locked(file->path, make ? O_RDONLY | O_CREAT : O_RDONLY);
    if (file->fd < 0 || fstat(file->fd, &file->about) != 0)
        return say_errno(file->path);
    if (!S_ISREG(file->about.st_mode))
        return gm_say_wrong(GM_EXIT_FILE, "%s is no regular file", file->path);
    file->text = malloc((size_t)file->about.st_size + 1);
    if (!file->text)
        return gm_say_wrong(GM_EXIT_FILE, "no memory for %s", file->path);
    for (ssize_t got; file->len < (size_t)file->about.st_size; file->len += (size_t)got) {
        got = read(file->fd, file->text + file->len, (size_t)file->about.st_size - file->len);
        if (got < 0)
            return say_errno(file->path);
        if (got == 0)
            break;
    }
    file->text[file->len] = '\0';
    return GM_EXIT_OK;
}

static bool write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, text, len);
        if (written < 0 && errno != EINTR)
            return false;
        text += written > 0 ? written : 0;
        len -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* Replaces the file by two texts, one behind the other. Owner, group and mode stay, but nobody else
 * may read it. */
static enum gm_exit replace(const struct file *file, const char *text, size_t len, const char *more)
{
    char path[sizeof file->path + 16];
    int written = snprintf(path, sizeof path, "%s.XXXXXX", file->path);
    int fd = (size_t)written < sizeof path ? mkostemp(path, O_CLOEXEC) : -1;

    if (fd < 0)
        return say_errno(file->path);
    /* Only root may give files away; the mode is for those who own it then. */
    bool kept = fchown(fd, file->about.st_uid, file->about.st_gid) == 0;
    mode_t mode =
        kept ? file->about.st_mode & (S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP) : S_IRUSR | S_IWUSR;
    if (fchmod(fd, mode) == 0 && write_all(fd, text, len) && write_all(fd, more, strlen(more)) &&
        fsync(fd) == 0 && close(fd) == 0) {
        if (rename(path, file->path) == 0)
            return GM_EXIT_OK;
    } else {
        close(fd);
    }
    enum gm_exit status = say_errno(file->path);
    unlink(path);
    return status;
}

/* A line of the file: where it begins, its length with the newline, and its key if it has one. */
struct line {
    const char *text;
    size_t len;
    bool has_key;
    struct gm_key_line key;
};

/* Moves on to the next line. false: there is none, or it is no line of a keys file, which was
 * said in *ret_status. */
static bool next_line(const struct file *file, struct line *line, unsigned *number,
                      enum gm_exit *ret_status)
{
    const char *at = line->text ? line->text + line->len : file->text;
    const char *stop = file->text + file->len;
    struct gm_error err;

    if (at == stop)
        return false;
    const char *end = memchr(at, '\n', (size_t)(stop - at));
    size_t len = (size_t)((end ? end : stop) - at);
    ++*number;
    line->text = at;
    line->len = len + (end != NULL);
    line->has_key = !gm_key_line_is_blank(at, len);
    if (!line->has_key || gm_key_line_read(at, len, &line->key, &err) == GM_OK)
        return true;
    *ret_status = gm_say_wrong(GM_EXIT_FILE, "%s, line %u: %s", file->path, *number, err.detail);
    return false;
}

/* Finds the line of a name. false: there is none. */
static bool find_line(const struct file *file, const char *name, struct line *ret,
                      enum gm_exit *ret_status)
{
    unsigned number = 0;

    *ret = (struct line){.text = NULL};
    while (next_line(file, ret, &number, ret_status))
        if (ret->has_key && strcmp(ret->key.name, name) == 0)
            return true;
    return false;
}

static void to_hex(const unsigned char *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++)
        sprintf(out + 2 * i, "%02x", bytes[i]);
}

/* Makes up a key, and its id and hash. */
static bool make_key(struct gm_key_line *line, char key[GM_KEY_TEXT_MAX])
{
    unsigned char bytes[ID_BYTES + SECRET_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    to_hex(bytes, ID_BYTES, line->id);
    memcpy(key, line->id, 2 * ID_BYTES);
    key[2 * ID_BYTES] = '.';
    to_hex(bytes + ID_BYTES, SECRET_BYTES, key + 2 * ID_BYTES + 1);
    gm_key_hash(key, strlen(key), line->hash);
    explicit_bzero(bytes, sizeof bytes);
    return true;
}

/* Without json_dumpf, which can run out of memory: the key could not be had again. None of the
 * three has a character that JSON escapes. */
static enum gm_exit say_key(const struct gm_options *options, const struct gm_key_line *line,
                            const char *key)
{
    if (options->json)
        printf("{\"name\":\"%s\",\"id\":\"%s\",\"key\":\"%s\"}\n", line->name, line->id, key);
    else
        printf("%s\n", key);
    if (!options->quiet)
        fprintf(stderr,
                "gemmctl: this is the key of %s, shown only now; a gemmd that runs reads "
                "the file again on SIGHUP\n",
                line->name);
    return GM_EXIT_OK;
}

static enum gm_exit add_key(struct file *file, const struct gm_options *options, const char *name)
{
    char key[GM_KEY_TEXT_MAX] = "", text[GM_KEY_LINE_MAX + 1];
    struct gm_key_line line = {.roles = GM_ROLE_USE};
    enum gm_exit status = GM_EXIT_OK;
    struct line other;
    struct gm_error err = {.detail = ""};

    if (!gm_key_name_ok(name, strlen(name)))
        return gm_say_wrong(GM_EXIT_USAGE,
                            "a key's name has 1 to %d letters, digits, dots, dashes and "
                            "underscores; none and other are taken",
                            GM_KEY_NAME_MAX - 1);
    if ((options->roles &&
         gm_roles_read(options->roles, strlen(options->roles), &line.roles, &err) != GM_OK) ||
        (options->quota &&
         gm_quota_read(options->quota, strlen(options->quota), &line.quota, &err) != GM_OK))
        return gm_say_wrong(GM_EXIT_USAGE, "%s", err.detail);
    if (find_line(file, name, &other, &status))
        return gm_say_wrong(GM_EXIT_FILE, "%s has a key named %s already: revoke it first",
                            file->path, name);
    if (status != GM_EXIT_OK)
        return status;
    strcpy(line.name, name);
    if (!make_key(&line, key))
        return gm_say_wrong(GM_EXIT_FILE, "no random bytes: %s", strerror(errno));
    bool open_line = file->len > 0 && file->text[file->len - 1] != '\n';
    text[0] = '\n';
    gm_key_line_write(&line, text + 1);
    status = replace(file, file->text, file->len, open_line ? text : text + 1);
    if (status == GM_EXIT_OK)
        status = say_key(options, &line, key);
    explicit_bzero(key, sizeof key);
    return status;
}

static enum gm_exit revoke_key(struct file *file, const struct gm_options *options,
                               const char *name)
{
    enum gm_exit status = GM_EXIT_OK;
    struct line line;

    if (!find_line(file, name, &line, &status))
        return status != GM_EXIT_OK
                   ? status
                   : gm_say_wrong(GM_EXIT_FILE, "%s has no key named %s", file->path, name);
    size_t before = (size_t)(line.text - file->text);
    status = replace(file, file->text, before, line.text + line.len);
    if (status == GM_EXIT_OK && !options->quiet)
        fprintf(stderr, "gemmctl: %s is revoked once gemmd has read the file again (SIGHUP)\n",
                name);
    return status;
}

/* The part of a written line behind a word, up to a blank or the end. "" where there is none. */
static const char *member_of(const char *line, const char *word, char out[GM_KEY_LINE_MAX])
{
    const char *at = strstr(line, word);

    *out = '\0';
    if (at)
        sscanf(at + strlen(word), "%511[^ \n]", out);
    return out;
}

static void begin_table(struct gm_table *table)
{
    gm_table_add(table, (const char *const[]){"name", "id", "roles", "quota"});
}

static void add_row(struct gm_table *table, const char *const *cells)
{
    if (table->rows == GM_TABLE_ROWS_MAX) { /* another table */
        gm_table_print(table, stdout);
        begin_table(table);
    }
    gm_table_add(table, cells);
}

static enum gm_exit list_keys(const struct file *file, const struct gm_options *options)
{
    char text[GM_KEY_LINE_MAX], roles[GM_KEY_LINE_MAX], quota[GM_KEY_LINE_MAX];
    struct gm_table table = {.columns = 4};
    struct line line = {.text = NULL};
    enum gm_exit status = GM_EXIT_OK;
    json_t *list = options->json ? json_array() : NULL;
    unsigned number = 0;

    if (!options->json)
        begin_table(&table);
    while (next_line(file, &line, &number, &status)) {
        if (!line.has_key)
            continue;
        gm_key_line_write(&line.key, text);
        member_of(text, " roles=", roles);
        member_of(text, " quota=", quota);
        if (options->json)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:s, s:s}", "name", line.key.name, "id",
                                            line.key.id, "roles", roles, "quota", quota));
        else
            add_row(&table, (const char *const[]){line.key.name, line.key.id, roles, quota});
    }
    if (status == GM_EXIT_OK && options->json) {
        json_dumpf(list, stdout, JSON_INDENT(1));
        putchar('\n');
    } else if (!options->json) { /* also the keys before a line that is wrong */
        gm_table_print(&table, stdout);
    }
    json_decref(list);
    return status;
}

enum gm_exit gm_command_key(struct gemmd_client *client, struct gm_options *options,
                            const char *name, char **args, int count)
{
    const char *action = count > 0 ? args[0] : "",
               *path = options->keys ? options->keys : getenv("GEMMD_KEYS");
    bool new = strcmp(action, "new") == 0, revoke = strcmp(action, "revoke") == 0;
    struct file file;

    (void)client;
    (void)name;
    if ((!new && !revoke &&strcmp(action, "list") != 0) || count != (new || revoke ? 2 : 1))
        return gm_say_wrong(GM_EXIT_USAGE, "key takes new NAME, revoke NAME or list");
    if (!path || !*path)
        return gm_say_wrong(GM_EXIT_USAGE, "which file? Say --keys FILE, or set GEMMD_KEYS");
    enum gm_exit status = open_file(path, new, &file);
    if (status == GM_EXIT_OK)
        status = new      ? add_key(&file, options, args[1])
                 : revoke ? revoke_key(&file, options, args[1])
                          : list_keys(&file, options);
    close_file(&file);
    return status;
}
