/*
 * cache.c - keeps choices by shape.
 *
 * Services ask for the same few shapes again and again, and estimates of all variants take some 10
 * microseconds.
 */
#include "kernels/choose/choose.h"
#include "proto/status.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 512u /* a power of two: one place for each hash */
#define WORDS_OF_OPERAND 4u

/* All that a choice depends on, beside the device. */
struct key {
    uint64_t words[1 + WORDS_OF_OPERAND * GM_OPERANDS_MAX];
};

struct gm_choice_cache {
    pthread_mutex_t lock;
    struct {
        struct key key;
        const struct gm_variant *variant; /* NULL: an empty slot */
        struct gm_tile_choice tiles;
    } slot[SLOTS];
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
static unsigned slot_of(const struct key *key)
{
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < sizeof(key->words) / sizeof(key->words[0]); i++)
        hash = (hash ^ key->words[i]) * 1099511628211u;
    return (unsigned)((hash ^ hash >> 32) % SLOTS);
}

enum gm_status gm_choice_cache_open(struct gm_choice_cache **ret, struct gm_error *err)
{
    struct gm_choice_cache *cache = calloc(1, sizeof(*cache));

    if (!cache || pthread_mutex_init(&cache->lock, NULL) != 0) {
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
    pthread_mutex_destroy(&cache->lock);
    free(cache);
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
    /* a graph's steps are no part of the key */
    bool automatic = (!name || name[0] == '\0' || strcmp(name, "auto") == 0) && !op->graph;
    struct key key = key_of(op);
    unsigned at = slot_of(&key);
    bool found = false;

    if (automatic) {
        pthread_mutex_lock(&cache->lock);
        found = cache->slot[at].variant && memcmp(&cache->slot[at].key, &key, sizeof(key)) == 0;
        if (found) {
            *ret = cache->slot[at].variant;
            op->tiles = cache->slot[at].tiles;
        }
        pthread_mutex_unlock(&cache->lock);
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
        pthread_mutex_lock(&cache->lock);
        cache->slot[at].key = key;
        cache->slot[at].variant = *ret;
        cache->slot[at].tiles = op->tiles;
        pthread_mutex_unlock(&cache->lock);
    }
    return GM_OK;
}
