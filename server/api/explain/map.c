/*
 * map.c - maps of example requests; see explain.h.
 */
#include "server/api/explain/explain.h"

#include <stdio.h>
#include <string.h>

#define BANK_BYTES 4

static bool is_active(const struct gm_access_example *x, unsigned lane)
{
    return x->active >> lane & 1;
}

/* Divides, and rounds towards minus infinity: an access may lie before its buffer. */
static int64_t quotient(int64_t offset, int64_t unit)
{
    return offset >= 0 ? offset / unit : -((-offset + unit - 1) / unit);
}

static int64_t last_byte(const struct gm_access_example *x, unsigned lane)
{
    return x->offset[lane] + (x->bytes > 0 ? (int64_t)x->bytes - 1 : 0);
}

/* Position of `index` in a sorted list of n elements of that stride, or where to insert it. */
static unsigned position(const void *first, size_t stride, unsigned n, int64_t index)
{
    unsigned at = 0;

    for (; at < n; at++) {
        int64_t here;
        memcpy(&here, (const char *)first + at * stride, sizeof here);
        if (here >= index)
            break;
    }
    return at;
}

static void add_sector(struct gm_sectors *map, int64_t index, unsigned lane)
{
    unsigned at = position(map->row, sizeof map->row[0], map->rows, index);

    if (at == map->rows || map->row[at].index != index) {
        if (map->rows == GM_SECTORS_MAX)
            return;
        memmove(&map->row[at + 1], &map->row[at], (map->rows - at) * sizeof map->row[0]);
        map->row[at].index = index;
        map->row[at].lanes = 0;
        map->rows++;
    }
    map->row[at].lanes |= UINT32_C(1) << lane;
}

void gm_map_sectors(const struct gm_access_example *x, struct gm_sectors *ret)
{
    ret->rows = 0;
    for (unsigned lane = 0; lane < GM_WARP; lane++) {
        if (!is_active(x, lane))
            continue;
        int64_t last = quotient(last_byte(x, lane), GM_SECTOR);
        for (int64_t i = quotient(x->offset[lane], GM_SECTOR); i <= last; i++)
            add_sector(ret, i, lane);
    }
}

static void add_word(struct gm_banks *map, int64_t word, unsigned lane)
{
    int64_t index = quotient(word, GM_BANKS);
    unsigned bank = (unsigned)(word - index * (int64_t)GM_BANKS);
    unsigned at = position(map->row, sizeof map->row[0], map->rows, index);

    if (at == map->rows || map->row[at].index != index) {
        if (map->rows == GM_BANK_ROWS_MAX)
            return;
        memmove(&map->row[at + 1], &map->row[at], (map->rows - at) * sizeof map->row[0]);
        memset(&map->row[at], 0, sizeof map->row[at]);
        map->row[at].index = index;
        map->rows++;
    }
    map->words[bank] += map->row[at].lanes[bank] == 0;
    map->row[at].lanes[bank] |= UINT32_C(1) << lane;
}

void gm_map_banks(const struct gm_access_example *x, struct gm_banks *ret)
{
    memset(ret, 0, sizeof *ret);
    for (unsigned lane = 0; lane < GM_WARP; lane++) {
        if (!is_active(x, lane))
            continue;
        int64_t last = quotient(last_byte(x, lane), BANK_BYTES);
        for (int64_t word = quotient(x->offset[lane], BANK_BYTES); word <= last; word++)
            add_word(ret, word, lane);
    }
}

const char *gm_map_lanes_text(uint32_t lanes, char out[16])
{
    unsigned first = lanes ? (unsigned)__builtin_ctz(lanes) : 0;
    unsigned count = (unsigned)__builtin_popcount(lanes);
    unsigned last = lanes ? 31 - (unsigned)__builtin_clz(lanes) : 0;

    if (count <= 1)
        snprintf(out, 16, "%u", first);
    else if (last - first + 1 == count)
        snprintf(out, 16, "%u-%u", first, last);
    else
        snprintf(out, 16, "%u+%u", first, count - 1);
    return out;
}
