/* keys.c - the table of keys, made from a keys file: an array, and hash tables of ids and names. */
#include "server/access/access.h"

#include "server/config.h"
#include "server/limits.h"

#include <fcntl.h>
#include <nettle/base64.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct key {
    struct gm_key_line line;
    struct gm_quota *quota; /* with a reference */
};

/* index: of a key plus 1; 0: free. tag: bits of the hash, so that other keys are seldom looked at.
 */
struct slot {
    unsigned index, tag;
};

struct gm_keys {
    struct key *key;
    unsigned count, room;
    /* Open addressing. At least half of each is free. */
    struct slot *by_id, *by_name;
    size_t mask;
};

static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a; the file is the operator's */

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* The slot of a text, or the free one where it belongs. name: of the table by name. */
static struct slot *find_slot(const struct gm_keys *keys, const char *text, bool name)
{
    struct slot *slots = name ? keys->by_name : keys->by_id;
    uint64_t hash = hash_text(text);
    size_t at = (size_t)hash & keys->mask;
    unsigned tag = (unsigned)(hash >> 32);

    for (; slots[at].index; at = (at + 1) & keys->mask) {
        const struct gm_key_line *line = &keys->key[slots[at].index - 1].line;
        if (slots[at].tag == tag && strcmp(name ? line->name : line->id, text) == 0)
            break;
    }
    return &slots[at];
}

static void fill(struct slot *slot, const char *text, unsigned index)
{
    *slot = (struct slot){index, (unsigned)(hash_text(text) >> 32)};
}

void gm_keys_free(struct gm_keys *keys)
{
    if (!keys)
        return;
    for (unsigned i = 0; i < keys->count; i++)
        gm_quota_unref(keys->key[i].quota);
    free(keys->key);
    free(keys->by_id);
    free(keys->by_name);
    free(keys);
}

/* An empty table for the keys that so many lines may have. */
static struct gm_keys *make_keys(size_t lines)
{
    struct gm_keys *keys = calloc(1, sizeof *keys);
    size_t slots = 16;

    if (!keys)
        return NULL;
    keys->room = (unsigned)(lines < GM_KEYS_MAX ? lines : GM_KEYS_MAX);
    while (slots < 2 * (size_t)keys->room)
        slots *= 2;
    keys->mask = slots - 1;
    keys->key = calloc(keys->room + 1, sizeof *keys->key);
    keys->by_id = calloc(slots, sizeof *keys->by_id);
    keys->by_name = calloc(slots, sizeof *keys->by_name);
    if (keys->key && keys->by_id && keys->by_name)
        return keys;
    gm_keys_free(keys);
    return NULL;
}

/* Takes the quota of the key in `old` that has this id and name, or makes one: what a name owns
 * is not another's. */
static struct gm_quota *quota_of(struct gm_quotas *quotas, const struct gm_keys *old,
                                 const struct gm_key_line *line)
{
    unsigned at = old ? find_slot(old, line->id, false)->index : 0;
    bool same = at && strcmp(old->key[at - 1].line.name, line->name) == 0;

    return same ? gm_quota_ref(old->key[at - 1].quota) : gm_quota_of_key(quotas);
}

static enum gm_status add_key(struct gm_keys *keys, const struct gm_key_line *line,
                              struct gm_quotas *quotas, const struct gm_keys *old,
                              struct gm_error *err)
{
    struct slot *id = find_slot(keys, line->id, false), *name = find_slot(keys, line->name, true);
    struct key *key = &keys->key[keys->count];

    if (id->index || name->index)
        return gm_fail(err, GM_BAD_PARAMETER, "an earlier line has the same %s",
                       id->index ? "id" : "name");
    if (keys->count == keys->room)
        return gm_fail(err, GM_BAD_PARAMETER, "there are more than %d keys", GM_KEYS_MAX);
    key->line = *line;
    key->quota = quota_of(quotas, old, line);
    if (!key->quota)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the keys");
    keys->count++;
    fill(id, line->id, keys->count);
    fill(name, line->name, keys->count);
    return GM_OK;
}

static size_t count_lines(const char *text, size_t len)
{
    size_t lines = 1;

    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    return lines;
}

enum gm_status gm_keys_parse(const char *text, size_t len, struct gm_quotas *quotas,
                             const struct gm_keys *old, struct gm_keys **ret, struct gm_error *err)
{
    struct gm_keys *keys = make_keys(count_lines(text, len));
    const char *at = text, *stop = text + len;
    struct gm_key_line line;
    struct gm_error fault;
    enum gm_status status = keys ? GM_OK : gm_fail(&fault, GM_MEMORY_FULL, "no memory");
    unsigned number = 0;

    while (status == GM_OK && at < stop) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));
        size_t line_len = (size_t)((end ? end : stop) - at);
        number++;
        if (!gm_key_line_is_blank(at, line_len)) {
            status = gm_key_line_read(at, line_len, &line, &fault);
            if (status == GM_OK)
                status = add_key(keys, &line, quotas, old, &fault);
        }
        at += line_len + 1;
    }
    if (status != GM_OK) {
        gm_keys_free(keys);
        return gm_fail(err, status, "line %u: %s", number, fault.detail);
    }
    /* Nothing can fail any more: quotas that old keys share change only now. */
    for (unsigned i = 0; i < keys->count; i++)
        gm_quota_set(keys->key[i].quota, keys->key[i].line.name, &keys->key[i].line.quota);
    *ret = keys;
    return GM_OK;
}

bool gm_keys_find(const struct gm_keys *keys, const char *id,
                  const unsigned char hash[GM_KEY_HASH_BYTES], struct gm_caller *ret)
{
    static const struct key nobody; /* its hash is no text's that anybody knows */
    unsigned at = find_slot(keys, id, false)->index;
    const struct key *key = at ? &keys->key[at - 1] : &nobody;
    int same = memeql_sec(key->line.hash, hash, GM_KEY_HASH_BYTES);

    if (!same || !at)
        return false;
    ret->quota = gm_quota_ref(key->quota);
    ret->roles = key->line.roles & GM_ROLE_ADMIN ? ~0u : key->line.roles;
    memcpy(ret->name, key->line.name, sizeof ret->name);
    return true;
}

struct gm_quota *gm_keys_quota(const struct gm_keys *keys, const char *name)
{
    unsigned at = find_slot(keys, name, true)->index;

    return at ? gm_quota_ref(keys->key[at - 1].quota) : NULL;
}

/* The text behind a scheme and blanks, or NULL. */
static const char *after_scheme(const char *text, const char *scheme)
{
    size_t len = strlen(scheme);

    if (strncasecmp(text, scheme, len) != 0 || text[len] != ' ')
        return NULL;
    text += len;
    return text + strspn(text, " ");
}

/* The length without blanks at the end; 0 where there are some within. */
static size_t word_length(const char *text)
{
    size_t len = strcspn(text, " \t");

    return text[len + strspn(text + len, " \t")] == '\0' ? len : 0;
}

size_t gm_access_credentials(const char *authorization, char out[GM_KEY_TEXT_MAX])
{
    const char *bearer = after_scheme(authorization, "Bearer");
    const char *basic = bearer ? NULL : after_scheme(authorization, "Basic");
    char plain[BASE64_DECODE_LENGTH(4 * GM_KEY_TEXT_MAX)];
    size_t len = 0, size = sizeof plain;
    struct base64_decode_ctx context;

    if (bearer) {
        len = word_length(bearer);
        if (len >= GM_KEY_TEXT_MAX)
            return 0;
        memcpy(out, bearer, len);
        return len;
    }
    size_t text_len = basic ? word_length(basic) : 0;
    base64_decode_init(&context);
    if (text_len > 0 && text_len <= 4 * GM_KEY_TEXT_MAX &&
        base64_decode_update(&context, &size, (uint8_t *)plain, text_len, basic) &&
        base64_decode_final(&context)) {
        const char *colon = memchr(plain, ':', size);
        len = colon ? (size_t)(plain + size - (colon + 1)) : 0;
        if (len < GM_KEY_TEXT_MAX)
            memcpy(out, colon ? colon + 1 : plain, len);
        else
            len = 0;
    }
    explicit_bzero(plain, sizeof plain);
    return len;
}

static enum gm_status read_keys(struct gm_access *access, struct gm_keys **ret,
                                struct gm_error *err)
{
    struct gm_error fault;
    struct gm_file file;
    enum gm_status status = gm_file_read(access->keys_file, GM_KEYS_FILE_BYTES_MAX, &file, &fault);

    if (status != GM_OK)
        return gm_fail(err, GM_BAD_PARAMETER, "%s%s", fault.detail,
                       faccessat(AT_FDCWD, access->keys_file, F_OK, 0) == 0
                           ? ""
                           : " (gemmctl key new makes a file of keys)");
    if (!S_ISREG(file.mode))
        status = gm_fail(&fault, GM_BAD_PARAMETER, "it is no regular file");
    else if (file.mode & S_IWOTH)
        status = gm_fail(&fault, GM_BAD_PARAMETER, "everybody may write to it");
    else
        status = gm_keys_parse(file.bytes, file.len, &access->quotas, access->keys, ret, &fault);
    gm_file_free(&file);
    return status == GM_OK ? GM_OK
                           : gm_fail(err, status, "%s: %s", access->keys_file, fault.detail);
}

enum gm_status gm_access_open(struct gm_access *access, const struct gm_quota_limits *quota,
                              struct gm_error *err)
{
    if (pthread_mutex_init(&access->mutex, NULL) != 0)
        return gm_fail(err, GM_INTERNAL, "no lock for the keys");
    if (gethostname(access->host_name, sizeof access->host_name - 1) != 0)
        *access->host_name = '\0';
    enum gm_status status = gm_quotas_open(&access->quotas, quota, err);
    if (status != GM_OK)
        return status;
    if (*access->keys_file)
        return read_keys(access, &access->keys, err);
    for (unsigned i = 0; i < GM_QUOTA_COUNT; i++)
        access->quotas.by_address |=
            quota->most[i] != GM_QUOTA_UNSAID && quota->most[i] != GM_QUOTA_NONE;
    return GM_OK;
}

void gm_access_close(struct gm_access *access)
{
    gm_keys_free(access->keys);
    gm_quotas_close(&access->quotas);
    pthread_mutex_destroy(&access->mutex);
}

/* Drops what belongs to the keys of `old` that are not in `keys`, or by another name. */
static void drop_gone(struct gm_access *access, const struct gm_keys *old,
                      const struct gm_keys *keys)
{
    for (unsigned i = 0; i < old->count; i++) {
        const struct key *key = &old->key[i];
        unsigned at = find_slot(keys, key->line.id, false)->index;
        if (at && strcmp(keys->key[at - 1].line.name, key->line.name) == 0)
            continue;
        atomic_store(&key->quota->revoked, true);
        access->gone(access->gone_cls, key->quota->client);
    }
}

enum gm_status gm_access_reload(struct gm_access *access, unsigned *ret_count, struct gm_error *err)
{
    struct gm_keys *keys, *old = access->keys;
    enum gm_status status = read_keys(access, &keys, err);

    if (status != GM_OK)
        return status;
    /* Before others come in by these names; and what came in by them meanwhile. */
    drop_gone(access, old, keys);
    pthread_mutex_lock(&access->mutex);
    access->keys = keys;
    pthread_mutex_unlock(&access->mutex);
    drop_gone(access, old, keys);
    *ret_count = keys->count;
    gm_keys_free(old);
    return GM_OK;
}
