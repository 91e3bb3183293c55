/*
 * access.h - who may come in: the table of keys, and the checks of each request's head.
 *
 * Everything here is decided on the head, before a body is read. Keys are looked up by their id, in
 * a hash table that a reload replaces as a whole. A request takes what it needs to know of its key
 * when it comes in, so a reload neither waits for requests nor disturbs them. Any thread may call
 * any function, but open, reload and close, which are main's.
 */
#ifndef GM_SERVER_ACCESS_ACCESS_H
#define GM_SERVER_ACCESS_ACCESS_H

#include "server/access/quota.h"

struct gm_request_head;
struct gm_reply;
struct gm_keys;

struct gm_access {
    const char *keys_file; /* "": no keys */
    const char *cors;  /* origins whose pages may ask, with commas between; "*": any; "": none */
    const char *hosts; /* further names of this machine, in the same way */
    bool open_probes;
    char host_name[256]; /* the system's */
    struct gm_quotas quotas;
    /* Called for each key that a reload took away or gave another name: before that counts, and
     * again when nobody can come in with the key any more. */
    void (*gone)(void *cls, uint64_t client);
    void *gone_cls;

    pthread_mutex_t mutex; /* guards the pointer and the table behind it */
    struct gm_keys *keys;  /* NULL: no --keys */
};

/* Who sent a request: set once, when it comes in. */
struct gm_caller {
    struct gm_quota *quota;     /* with a reference; NULL: neither a key nor --quota */
    char name[GM_KEY_NAME_MAX]; /* of the key; "": none was needed */
    unsigned roles;             /* all, where no key is needed */
    bool acted_as_admin;        /* the request did what only an admin may */
};

/* What a route lets in, beside enum gm_role: a request without a key, with --open-probes; or in any
 * case, for what is the same for everybody. Neither is counted against a quota. */
#define GM_ROLE_PROBE 8u
#define GM_ROLE_PUBLIC 16u
#define GM_ROLES_UNCOUNTED (GM_ROLE_PROBE | GM_ROLE_PUBLIC)
#define GM_ROLES_ANY ((unsigned)GM_ROLE_USE | GM_ROLE_READ)

/* The members up to `gone` are set; quota: --quota. Reads the keys. */
enum gm_status gm_access_open(struct gm_access *access, const struct gm_quota_limits *quota,
                              struct gm_error *err);
void gm_access_close(struct gm_access *access);
/* Reads the keys again. On an error the ones there are stay. *ret_count: of keys. */
enum gm_status gm_access_reload(struct gm_access *access, unsigned *ret_count,
                                struct gm_error *err);

/* Whether these are lists for `cors` (of origins: a scheme, a name and perhaps a port, without a
 * path; or null) and for `hosts` (of names, without a port). */
bool gm_access_origins_ok(const char *list);
bool gm_access_hosts_ok(const char *list);

/*
 * Checks that no web page speaks through its visitor's browser (guard.c says how). GM_UNKNOWN_HOST,
 * GM_CROSS_ORIGIN.
 */
enum gm_status gm_access_check_browser(const struct gm_access *access,
                                       const struct gm_request_head *head, struct gm_error *err);
/* Whether it is a preflight request of a page that may ask. */
bool gm_access_is_preflight(const struct gm_access *access, const struct gm_request_head *head);

/*
 * Finds out who sent the request. roles: what the route lets in; GM_ROLES_ANY where there is no
 * route. GM_UNAUTHORIZED; and GM_FORBIDDEN with *ret set, so that the log can name the key. The
 * caller's quota is to be dropped with gm_quota_unref().
 */
enum gm_status gm_access_identify(struct gm_access *access, const struct gm_request_head *head,
                                  unsigned roles, struct gm_caller *ret, struct gm_error *err);

/* The key of an Authorization header: Bearer's, or Basic's password. Returns its length, 0 if there
 * is none. `out` is to be wiped. */
size_t gm_access_credentials(const char *authorization, char out[GM_KEY_TEXT_MAX]);

/* The client id and quota (with a reference, perhaps NULL) of a key by its name. false: there is
 * no such key. */
bool gm_access_find_owner(struct gm_access *access, const char *name, uint64_t *ret_client,
                          struct gm_quota **ret_quota);

/* Adds the headers that the checks above ask for: WWW-Authenticate, and those of CORS. page: adds
 * those that keep a page from being framed or misread. */
void gm_access_headers(const struct gm_access *access, const struct gm_request_head *head,
                       enum gm_status status, bool page, struct gm_reply *reply);

/* ---- keys.c ---- */

/* Parses the text of a keys file, and makes quotas for keys that `old` (NULL: none) does not
 * have. GM_BAD_PARAMETER names the line. */
enum gm_status gm_keys_parse(const char *text, size_t len, struct gm_quotas *quotas,
                             const struct gm_keys *old, struct gm_keys **ret, struct gm_error *err);
void gm_keys_free(struct gm_keys *keys);
/* The quota of a key by its name, with a reference; NULL: there is no such key. */
struct gm_quota *gm_keys_quota(const struct gm_keys *keys, const char *name);
/* Sets the caller, and returns true, if the key is one of the table. Takes as long for an id that
 * is unknown as for a wrong secret. */
bool gm_keys_find(const struct gm_keys *keys, const char *id,
                  const unsigned char hash[GM_KEY_HASH_BYTES], struct gm_caller *ret);

#endif
