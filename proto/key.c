/* key.c - see key.h. SHA-256 is nettle's: it allocates nothing, cannot fail, and is there anyway
 * where GnuTLS is. */
#include "proto/key.h"

#include "proto/matrix.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

static const char *const quota_names[GM_QUOTA_COUNT] = {
#define X(name, text, counts) text,
    GM_QUOTA_LIST(X)
#undef X
};

const char *gm_quota_name(enum gm_quota_kind kind)
{
    return quota_names[kind];
}

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

bool gm_key_name_ok(const char *name, size_t len)
{
    if (len == 0 || len >= GM_KEY_NAME_MAX || is_word(name, len, "other") ||
        is_word(name, len, "none"))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_letter_or_digit(name[i]) && !memchr("._-", name[i], 3))
            return false;
    return true;
}

static bool id_ok(const char *id, size_t len)
{
    if (len == 0 || len >= GM_KEY_ID_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_letter_or_digit(id[i]))
            return false;
    return true;
}

bool gm_key_id(const char *key, size_t len, char id[GM_KEY_ID_MAX])
{
    const char *dot = len < GM_KEY_TEXT_MAX ? memchr(key, '.', len) : NULL;

    if (!dot || dot + 1 == key + len || !id_ok(key, (size_t)(dot - key)))
        return false;
    memcpy(id, key, (size_t)(dot - key));
    id[dot - key] = '\0';
    return true;
}

void gm_key_hash(const char *key, size_t len, unsigned char out[GM_KEY_HASH_BYTES])
{
    struct sha256_ctx context;

    _Static_assert(GM_KEY_HASH_BYTES == SHA256_DIGEST_SIZE, "a whole digest");
    sha256_init(&context);
    sha256_update(&context, len, (const uint8_t *)key);
    sha256_digest(&context, GM_KEY_HASH_BYTES, out);
    explicit_bzero(&context, sizeof context);
}

bool gm_read_size(const char *text, size_t len, uint64_t *ret)
{
    static const char suffixes[] = "KkMmGgTt";
    uint64_t n = 0, factor = 1;
    size_t at = 0;

    for (; at < len && text[at] >= '0' && text[at] <= '9'; at++)
        if (!gm_size_mul(n, 10, &n) || !gm_size_add(n, (uint64_t)(text[at] - '0'), &n))
            n = UINT64_MAX; /* and it stays there: each further digit overflows too */
    if (at == 0)
        return false;
    const char *suffix = at < len ? memchr(suffixes, text[at], sizeof suffixes - 1) : NULL;
    if (suffix) {
        factor = UINT64_C(1) << (10 * ((suffix - suffixes) / 2 + 1));
        at++;
        if (len - at == 2 && memcmp(text + at, "iB", 2) == 0)
            at += 2;
    }
    if (at < len)
        return false;
    *ret = gm_size_mul(n, factor, &n) ? n : UINT64_MAX;
    return true;
}

/* Takes the text up to `end`, or to the end of all. Returns what is behind. */
static const char *take(const char **at, const char *stop, char end, size_t *ret_len)
{
    const char *begin = *at, *found = memchr(begin, end, (size_t)(stop - begin));

    *ret_len = (size_t)((found ? found : stop) - begin);
    *at = found ? found + 1 : stop;
    return begin;
}

enum gm_status gm_roles_read(const char *text, size_t len, unsigned *ret, struct gm_error *err)
{
    static const struct {
        const char *text;
        unsigned bit;
    } rows[] = {
#define X(name, bit, text, allows) {text, bit},
        GM_ROLE_LIST(X)
#undef X
    };
    const char *at = text, *stop = text + len;
    unsigned roles = 0;
    size_t word_len;

    do {
        const char *word = take(&at, stop, ',', &word_len);
        unsigned bit = 0;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (is_word(word, word_len, rows[i].text))
                bit = rows[i].bit;
        if (bit == 0 || (roles & bit))
            return gm_fail(err, GM_BAD_PARAMETER,
                           "roles takes use, read and admin, with commas between them, each once");
        roles |= bit;
    } while (at < stop);
    if (len > 0 && stop[-1] == ',')
        return gm_fail(err, GM_BAD_PARAMETER, "roles ends with a comma");
    *ret = roles;
    return GM_OK;
}

/* One NAME=VALUE of a quota. */
static enum gm_status read_quota(const char *text, size_t len, struct gm_quota_limits *limits,
                                 struct gm_error *err)
{
    const char *at = text, *stop = text + len;
    size_t name_len;
    uint64_t value;

    take(&at, stop, '=', &name_len);
    for (unsigned i = 0; i < GM_QUOTA_COUNT; i++) {
        uint64_t most = i == GM_QUOTA_DEVICE ? GM_QUOTA_DEVICE_MOST : GM_QUOTA_MOST;
        if (!is_word(text, name_len, quota_names[i]))
            continue;
        if (limits->most[i] != GM_QUOTA_UNSAID)
            return gm_fail(err, GM_BAD_PARAMETER, "quota has %s twice", quota_names[i]);
        if (is_word(at, (size_t)(stop - at), "none"))
            value = GM_QUOTA_NONE;
        else if (!gm_read_size(at, (size_t)(stop - at), &value) || value < 1 || value > most)
            return gm_fail(err, GM_BAD_PARAMETER,
                           "%s of quota takes a number from 1 to %llu, as 100 or 4G, or none",
                           quota_names[i], (unsigned long long)most);
        limits->most[i] = value;
        return GM_OK;
    }
    return gm_fail(
        err, GM_BAD_PARAMETER,
        "quota takes requests, bytes, device, memory and jobs, as requests=100,memory=4G");
}

enum gm_status gm_quota_read(const char *text, size_t len, struct gm_quota_limits *ret,
                             struct gm_error *err)
{
    struct gm_quota_limits limits = {{0}};
    const char *at = text, *stop = text + len;
    size_t part_len;

    while (at < stop) {
        const char *part = take(&at, stop, ',', &part_len);
        enum gm_status status = read_quota(part, part_len, &limits, err);
        if (status != GM_OK)
            return status;
    }
    if (len > 0 && stop[-1] == ',')
        return gm_fail(err, GM_BAD_PARAMETER, "quota ends with a comma");
    *ret = limits;
    return GM_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool gm_key_line_is_blank(const char *text, size_t len)
{
    while (len > 0 && is_blank(*text)) {
        text++;
        len--;
    }
    return len == 0 || *text == '#';
}

static bool read_hash(const char *text, size_t len, unsigned char out[GM_KEY_HASH_BYTES])
{
    static const char hex[] = "0123456789abcdefABCDEF";

    if (len != 2 * GM_KEY_HASH_BYTES)
        return false;
    for (size_t i = 0; i < len; i++) {
        const char *digit = memchr(hex, text[i], sizeof hex - 1);
        if (!digit)
            return false;
        unsigned value = (unsigned)(digit - hex);
        value = value < 16 ? value : value - 6;
        out[i / 2] = (unsigned char)(i % 2 ? out[i / 2] | value : value << 4);
    }
    return true;
}

enum member { NAME, ID, HASH, ROLES, QUOTA, MEMBERS };
static const char *const member_names[MEMBERS] = {"name", "id", "sha256", "roles", "quota"};

static enum gm_status read_member(enum member member, const char *text, size_t len,
                                  struct gm_key_line *line, struct gm_error *err)
{
    switch (member) {
    case NAME:
        if (!gm_key_name_ok(text, len))
            return gm_fail(err, GM_BAD_PARAMETER,
                           "name takes 1 to %d letters, digits, dots, dashes and underscores; none "
                           "and other are taken",
                           GM_KEY_NAME_MAX - 1);
        memcpy(line->name, text, len);
        return GM_OK;
    case ID:
        if (!id_ok(text, len))
            return gm_fail(err, GM_BAD_PARAMETER, "id takes 1 to %d letters and digits",
                           GM_KEY_ID_MAX - 1);
        memcpy(line->id, text, len);
        return GM_OK;
    case HASH:
        return read_hash(text, len, line->hash)
                   ? GM_OK
                   : gm_fail(err, GM_BAD_PARAMETER, "sha256 takes %d hexadecimal digits",
                             2 * GM_KEY_HASH_BYTES);
    case ROLES:
        return gm_roles_read(text, len, &line->roles, err);
    case QUOTA:
        return gm_quota_read(text, len, &line->quota, err);
    case MEMBERS:
        break;
    }
    return gm_fail(err, GM_BAD_PARAMETER, "it takes name, id, sha256, roles and quota");
}

enum gm_status gm_key_line_read(const char *text, size_t len, struct gm_key_line *ret,
                                struct gm_error *err)
{
    struct gm_key_line line = {.roles = 0};
    const char *at = text, *stop = text + len;
    bool seen[MEMBERS] = {false};

    while (at < stop) {
        if (is_blank(*at)) {
            at++;
            continue;
        }
        const char *begin = at;
        while (at < stop && !is_blank(*at))
            at++;
        const char *value = begin;
        size_t name_len;
        take(&value, at, '=', &name_len);
        unsigned i = 0;
        while (i < MEMBERS && !is_word(begin, name_len, member_names[i]))
            i++;
        if (i < MEMBERS && seen[i])
            return gm_fail(err, GM_BAD_PARAMETER, "%s is there twice", member_names[i]);
        enum gm_status status = read_member(i, value, (size_t)(at - value), &line, err);
        if (status != GM_OK)
            return status;
        seen[i] = true;
    }
    for (unsigned i = 0; i < QUOTA; i++)
        if (!seen[i])
            return gm_fail(err, GM_BAD_PARAMETER, "%s is missing", member_names[i]);
    *ret = line;
    return GM_OK;
}

const char *gm_key_line_write(const struct gm_key_line *line, char out[GM_KEY_LINE_MAX])
{
    size_t at =
        (size_t)snprintf(out, GM_KEY_LINE_MAX, "name=%s id=%s sha256=", line->name, line->id);
    const char *before = " roles=";

    for (unsigned i = 0; i < GM_KEY_HASH_BYTES; i++)
        at += (size_t)snprintf(out + at, GM_KEY_LINE_MAX - at, "%02x", line->hash[i]);
#define X(name, bit, text, allows)                                                                 \
    if (line->roles & (bit)) {                                                                     \
        at += (size_t)snprintf(out + at, GM_KEY_LINE_MAX - at, "%s" text, before);                 \
        before = ",";                                                                              \
    }
    GM_ROLE_LIST(X)
#undef X
    before = " quota=";
    for (unsigned i = 0; i < GM_QUOTA_COUNT; i++) {
        uint64_t most = line->quota.most[i];
        if (most == GM_QUOTA_UNSAID)
            continue;
        at += (size_t)snprintf(out + at, GM_KEY_LINE_MAX - at,
                               most == GM_QUOTA_NONE ? "%s%s=none" : "%s%s=%llu", before,
                               quota_names[i], (unsigned long long)most);
        before = ",";
    }
    snprintf(out + at, GM_KEY_LINE_MAX - at, "\n");
    return out;
}
