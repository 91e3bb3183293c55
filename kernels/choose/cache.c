/*
 * cache.c - keeps choices by shape.
 *
 * Services ask for the same few shapes again and again, and estimates of all variants take some 10
 * microseconds.
 */
#include "kernels/choose/choose.h"
#include "proto/status.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Each processor has a part of its own: sixteen that take one lock for each small request would
 * wait for each other. */
#define PARTS 16u
#define SLOTS 128u /* of a part; a power of two: one place for each hash */
#define WORDS_OF_OPERAND 4u

/* All that a choice depends on, beside the device. */
struct key {
    uint64_t words[1 + WORDS_OF_OPERAND * GM_OPERANDS_MAX];
};

struct slot {
    struct key key;
    const struct gm_variant *variant; /* NULL: an empty slot */
    struct gm_tile_choice tiles;
};

struct gm_choice_cache {
    struct part {
        _Alignas(64) pthread_mutex_t lock;
        struct slot slot[SLOTS];
    } part[PARTS];
};

static struct key key_of(const struct gm_op *op)
{
    struct key key = {{0}};
    uint64_t bits = op->operands;

    bits = bits << 8 | (uint64_t)op->kind;
    bits = bits << 8 | (uint64_t)op->precision;
    bits = bits << 8 | (uint64_t)op->result.dtype;
    bits = bits << 1 | op->transa;
    bits = bits << 1 | op->transb;
    for (unsigned i = 0; i < op->operands; i++) {
        const struct gm_matrix *x = &op->operand[i];
        uint64_t *words = &key.words[1 + WORDS_OF_OPERAND * i];
        bits = bits << 1 | gm_op_reads(op, i);
        words[0] = x->batch;
        words[1] = x->rows;
        words[2] = x->cols;
        words[3] = (uint64_t)x->layout << 1 | x->stacked;
    }
    key.words[0] = bits;
    return key;
}

/* FNV-1a, by words. */
static unsigned hash_of(const struct key *key)
{
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < sizeof(key->words) / sizeof(key->words[0]); i++)
        hash = (hash ^ key->words[i]) * 1099511628211u;
    return (unsigned)(hash ^ hash >> 32);
}

enum gm_status gm_choice_cache_open(struct gm_choice_cache **ret, struct gm_error *err)
{
    struct gm_choice_cache *cache = aligned_alloc(_Alignof(struct part), sizeof(*cache));
    unsigned made = 0;

    if (cache) {
        memset(cache, 0, sizeof(*cache));
        while (made < PARTS && pthread_mutex_init(&cache->part[made].lock, NULL) == 0)
            made++;
    }
    if (made < PARTS) {
        while (made > 0)
            pthread_mutex_destroy(&cache->part[--made].lock);
        free(cache);
        return gm_fail(err, GM_MEMORY_FULL, "no memory for choices");
    }
    *ret = cache;
    return GM_OK;
}

void gm_choice_cache_close(struct gm_choice_cache *cache)
{
    if (!cache)
        return;
    for (unsigned i = 0; i < PARTS; i++)
        pthread_mutex_destroy(&cache->part[i].lock);
    free(cache);
}

static struct part *own_part(struct gm_choice_cache *cache)
{
    int processor = sched_getcpu();

    return &cache->part[processor > 0 ? (unsigned)processor % PARTS : 0];
}

void gm_set_tiles(struct gm_op *op, const struct gm_device_facts *facts)
{
    bool has_tiles = facts->kind != GM_DEVICE_CPU && op->kind == GM_OP_MATMUL &&
                     (op->result.dtype == GM_F32 || op->result.dtype == GM_F64);

    op->tiles = has_tiles ? gm_choose_tiles(op, facts) : (struct gm_tile_choice){.splits = 0};
}

enum gm_status gm_choose(struct gm_choice_cache *cache, struct gm_op *op,
                         const struct gm_device_facts *facts, const char *name,
                         const struct gm_variant **ret, struct gm_error *err)
{
    bool automatic = !name || name[0] == '\0' || strcmp(name, "auto") == 0;
    struct key key = key_of(op);
    struct part *part = automatic ? own_part(cache) : NULL;
    struct slot *slot = automatic ? &part->slot[hash_of(&key) % SLOTS] : NULL;
    bool found = false;

    if (automatic) {
        pthread_mutex_lock(&part->lock);
        found = slot->variant && memcmp(&slot->key, &key, sizeof(key)) == 0;
        if (found) {
            *ret = slot->variant;
            op->tiles = slot->tiles;
        }
        pthread_mutex_unlock(&part->lock);
    }
    if (found)
        return GM_OK;
    enum gm_status status = gm_select(op, facts, name, ret, err);
    if (status != GM_OK)
        return status;
    if (strcmp((*ret)->name, "multistage_tuned") == 0)
        gm_set_tiles(op, facts);
    else
        op->tiles.splits = 0;
    if (automatic) {
        pthread_mutex_lock(&part->lock);
        *slot = (struct slot){.key = key, .variant = *ret, .tiles = op->tiles};
        pthread_mutex_unlock(&part->lock);
    }
    return GM_OK;
}
