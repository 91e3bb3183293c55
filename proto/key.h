/*
 * key.h - API keys: a line of a keys file, its roles and quotas, and the hash of a key.
 *
 * A key is ID.SECRET. The file has a line for each key, with a hash in place of the secret. gemmctl
 * writes such files, and gemmd reads them:
 *
 *   name=alice id=5f1d0c6a2b9e4433 sha256=9f86d081... roles=use,read quota=requests=100,memory=4G
 *
 * A secret is 256 random bits, so nobody can guess it from its hash, and a fast hash is right:
 * slow ones are for passwords, which people choose. Pure functions; any thread.
 */
#ifndef GM_PROTO_KEY_H
#define GM_PROTO_KEY_H

#include "proto/status.h"

#include <stdint.h>

/* X(NAME, bit, text, what it allows) */
#define GM_ROLE_LIST(X)                                                                            \
    X(USE, 1, "use", "operations, compare, explain, inference, shared memory")                     \
    X(READ, 2, "read", "statistics and metrics")                                                   \
    X(ADMIN, 4, "admin", "all of it, and what belongs to other keys is shown")

enum gm_role {
#define X(name, bit, text, allows) GM_ROLE_##name = (bit),
    GM_ROLE_LIST(X)
#undef X
};

/* X(NAME, text, what it counts). The first three are rates. */
#define GM_QUOTA_LIST(X)                                                                           \
    X(REQUESTS, "requests", "requests a second")                                                   \
    X(BYTES, "bytes", "bytes of bodies a second, in both directions")                              \
    X(DEVICE, "device", "seconds of devices a minute")                                             \
    X(MEMORY, "memory", "bytes of memory that its requests hold together")                         \
    X(JOBS, "jobs", "operations at a time")

enum gm_quota_kind {
#define X(name, text, counts) GM_QUOTA_##name,
    GM_QUOTA_LIST(X)
#undef X
        GM_QUOTA_COUNT
};

#define GM_QUOTA_UNSAID UINT64_C(0)
#define GM_QUOTA_NONE UINT64_MAX                /* no limit */
#define GM_QUOTA_MOST UINT64_C(999999999999999) /* the largest integer of RateLimit (RFC 9651) */
#define GM_QUOTA_DEVICE_MOST UINT64_C(86400)    /* 24 devices' days a minute: no host has as many */

struct gm_quota_limits {
    uint64_t most[GM_QUOTA_COUNT]; /* each 1 to GM_QUOTA_MOST, UNSAID or NONE */
};

#define GM_KEY_NAME_MAX 64   /* with the zero, as are the next two */
#define GM_KEY_ID_MAX 33     /* letters and digits */
#define GM_KEY_TEXT_MAX 160  /* of a whole key */
#define GM_KEY_HASH_BYTES 32 /* SHA-256 */
#define GM_KEY_LINE_MAX 512

struct gm_key_line {
    char id[GM_KEY_ID_MAX]; /* first what each request looks at */
    unsigned char hash[GM_KEY_HASH_BYTES];
    unsigned roles; /* bits of enum gm_role; at least one */
    char name[GM_KEY_NAME_MAX];
    struct gm_quota_limits quota;
};

const char *gm_quota_name(enum gm_quota_kind kind);

/* Whether a line has no key: it is blank, or a comment. */
bool gm_key_line_is_blank(const char *text, size_t len);
/* Reads a line without its newline. GM_BAD_PARAMETER says what is wrong, and never quotes a value,
 * which may be a secret in the wrong place. */
enum gm_status gm_key_line_read(const char *text, size_t len, struct gm_key_line *ret,
                                struct gm_error *err);
/* Writes a line, with its newline. Returns out. */
const char *gm_key_line_write(const struct gm_key_line *line, char out[GM_KEY_LINE_MAX]);

/* 1 to 63 letters, digits, dots, dashes and underscores; not a name that metrics use. */
bool gm_key_name_ok(const char *name, size_t len);
/* "use,read": at least one, none twice. */
enum gm_status gm_roles_read(const char *text, size_t len, unsigned *ret, struct gm_error *err);
/* "requests=100,bytes=10M,memory=none": each at most once. "" sets none. */
enum gm_status gm_quota_read(const char *text, size_t len, struct gm_quota_limits *ret,
                             struct gm_error *err);
/* Digits, and perhaps K, M, G or T (powers of 1024), KiB and so on. False if it is no such text;
 * too large a number is UINT64_MAX. */
bool gm_read_size(const char *text, size_t len, uint64_t *ret);

/* The id of a key. False if the text does not look like a key. */
bool gm_key_id(const char *key, size_t len, char id[GM_KEY_ID_MAX]);
/* SHA-256 of the whole key: an id that is changed in the file fits no key any more. */
void gm_key_hash(const char *key, size_t len, unsigned char out[GM_KEY_HASH_BYTES]);

#endif
