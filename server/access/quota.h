/*
 * quota.h - what a client may take: token buckets, memory and jobs, counted by key or address.
 *
 * A rate of N a window is a bucket of N tokens that fills again within a window. So N may come at
 * once, and over any longer time the rate holds. What a request costs is known late (the time of a
 * device) or is more than a bucket holds (a large body): such a cost is charged in full and may
 * leave the bucket in debt, and the next request waits until that is paid.
 *
 * Times are arguments: gm_now_ns() of clock.h, or a test's own. Any thread may call any function.
 */
#ifndef GM_SERVER_ACCESS_QUOTA_H
#define GM_SERVER_ACCESS_QUOTA_H

#include "proto/key.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

/* Client ids that are no address's, as ff00::/8 is multicast: that of all who come by Unix sockets,
 * and behind it those of keys. */
#define GM_CLIENT_UNIX (UINT64_C(0xff) << 56)

/* ---- A bucket. Pure; the owner's mutex guards it. ---- */

struct gm_rate {
    uint64_t tokens; /* a window, and what the bucket holds; 1 to GM_QUOTA_MOST */
    int64_t window_ns;
};

/* All zero: full. The only state is the time at which it will be full: a token moves that by
 * window / tokens, rounded up, so errors never favour the client and never add up to much. */
struct gm_bucket {
    int64_t full_ns;
};

/* How long until `cost` tokens are there; 0: they are. A cost above what the bucket holds needs it
 * full. */
int64_t gm_bucket_wait(const struct gm_bucket *bucket, const struct gm_rate *rate, uint64_t cost,
                       int64_t now_ns);
/* Takes tokens, whether or not they are there: each time a debt of at most QUOTA_DEBT_S. */
void gm_bucket_take(struct gm_bucket *bucket, const struct gm_rate *rate, uint64_t cost,
                    int64_t now_ns);
/* Gives back what was taken at once and not used. */
void gm_bucket_give(struct gm_bucket *bucket, const struct gm_rate *rate, uint64_t taken,
                    uint64_t used);
/* Whole tokens that are there. */
uint64_t gm_bucket_left(const struct gm_bucket *bucket, const struct gm_rate *rate, int64_t now_ns);

/* ---- A client's quota. ---- */

#define GM_QUOTA_RATES GM_QUOTA_MEMORY /* the kinds before it are rates */

/* Counters, for /metrics. */
struct gm_quota_counts {
    _Atomic uint64_t requests, bytes, device_ns, refused[GM_QUOTA_COUNT];
};

struct gm_quotas;

struct gm_quota {
    struct gm_quotas *quotas;
    uint64_t client;        /* client id: head.h */
    atomic_bool revoked;    /* its key is gone: it may not leave anything behind */
    atomic_uint references; /* one each of its key, its requests and what they hold */

    atomic_uint limited;     /* bits of the kinds that have a limit: most clients have none */
    _Atomic uint64_t jobs;   /* at work now; raised with the mutex where they are limited */
    _Atomic uint64_t memory; /* held now; raised with the memory quota's mutex where limited */
    struct gm_quota_counts *counts; /* its own, or those that it shares */

    pthread_mutex_t mutex; /* guards what follows */
    struct gm_quota_limits limits;
    struct gm_bucket bucket[GM_QUOTA_RATES];

    /* Guarded by the mutex of the quotas. */
    char name[GM_KEY_NAME_MAX]; /* of its key; "": an address */
    bool named;                 /* has counters of its own */
    TAILQ_ENTRY(gm_quota) link;
    LIST_ENTRY(gm_quota) chain; /* of an address: those of one hash value */
    struct gm_quota_counts own;
};

TAILQ_HEAD(gm_quota_list, gm_quota);
LIST_HEAD(gm_quota_chain, gm_quota);

#define GM_QUOTA_TABLE 1024 /* hash values of addresses */

/* All quotas. */
struct gm_quotas {
    struct gm_quota_limits limits;        /* of a client where its key says none: --quota */
    bool by_address;                      /* whether clients without a key have quotas */
    pthread_mutex_t mutex;                /* guards the lists; taken before a quota's */
    struct gm_quota_list keys, addresses; /* addresses: least recently used first */
    struct gm_quota_chain table[GM_QUOTA_TABLE];
    unsigned named, address_count;
    uint64_t sequence;                     /* of keys seen */
    struct gm_quota_counts others, nobody; /* of keys that are not named; of addresses */
};

enum gm_status gm_quotas_open(struct gm_quotas *quotas, const struct gm_quota_limits *limits,
                              struct gm_error *err);
/* Call when nothing refers to a quota any more. */
void gm_quotas_close(struct gm_quotas *quotas);

/* A new quota for a key, with one reference. Its client id is unlike any address's. NULL: no
 * memory. */
struct gm_quota *gm_quota_of_key(struct gm_quotas *quotas);
/* Sets the key's name and limits; those unsaid are --quota's. */
void gm_quota_set(struct gm_quota *quota, const char *name, const struct gm_quota_limits *limits);
/* The quota of an address, with a reference for the caller. NULL: addresses have none, or memory
 * ran out. */
struct gm_quota *gm_quota_of_address(struct gm_quotas *quotas, uint64_t client);
/* NULL is fine, here and below: nothing is limited. */
struct gm_quota *gm_quota_ref(struct gm_quota *quota);
void gm_quota_unref(struct gm_quota *quota);

/* ---- A request. ---- */

/*
 * Lets a request in, and charges it: one request, the bytes of its body, and a job if it is one. Or
 * changes nothing and fails with GM_QUOTA_EXCEEDED; *ret_wait_s is for Retry-After.
 */
enum gm_status gm_quota_enter(struct gm_quota *quota, uint64_t body_bytes, bool job, int64_t now_ns,
                              unsigned *ret_wait_s, struct gm_error *err);
/* The job's reply is about to be sent. */
void gm_quota_leave(struct gm_quota *quota);
/* Charges what was not known before. */
void gm_quota_charge_bytes(struct gm_quota *quota, uint64_t bytes, int64_t now_ns);
void gm_quota_charge_device(struct gm_quota *quota, int64_t device_ns, int64_t now_ns);
/* Counts a request for /metrics. All at once: clients may share the counters. */
void gm_quota_count(struct gm_quota *quota, uint64_t bytes, int64_t device_ns);
/* Whether anything of the kinds before memory is limited. */
bool gm_quota_has_rates(const struct gm_quota *quota);
/* Gives back body bytes that were charged at once and did not come. */
void gm_quota_return_bytes(struct gm_quota *quota, uint64_t charged, uint64_t came);
/* Whether a quota bounds the memory that the client holds. quota: may be NULL. */
bool gm_quota_limits_memory(const struct gm_quota *quota);
/* Memory: GM_QUOTA_EXCEEDED if others of the client hold it, GM_TOO_LARGE if it can never be. Call
 * it with the memory quota's mutex held. */
enum gm_status gm_quota_hold(struct gm_quota *quota, uint64_t had, uint64_t total,
                             struct gm_error *err);
/* Counts memory as held, whatever the limit: it may have been set or lowered a moment ago. */
void gm_quota_hold_surely(struct gm_quota *quota, uint64_t bytes);
void gm_quota_release(struct gm_quota *quota, uint64_t bytes);

/* The values of RateLimit-Policy and RateLimit; "" where there is no rate. */
#define GM_RATE_LIMIT_MAX 192
void gm_quota_headers(struct gm_quota *quota, int64_t now_ns, char policy[GM_RATE_LIMIT_MAX],
                      char state[GM_RATE_LIMIT_MAX]);

#endif
