#include "tally.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS (2 * GM_TALLY_PLACES)

void gm_tally_reset(struct gm_tally *tally)
{
    struct gm_tally_site *site = tally->site;
    size_t room = tally->room;

    memset(tally, 0, sizeof(*tally));
    tally->site = site;
    tally->room = room;
}

void gm_tally_free(struct gm_tally *tally)
{
    free(tally->site);
    memset(tally, 0, sizeof(*tally));
}

unsigned gm_tally_new_place(struct gm_tally *tally, uint32_t key)
{
    /* Keys are never 0, because no code is at the beginning of the program's file. */
    unsigned slot = gm_tally_slot(key);

    while (tally->place_key[slot] != 0 && tally->place_key[slot] != key)
        slot = (slot + 1) & (SLOTS - 1);
    if (tally->place_key[slot] == key)
        return tally->place[slot];
    if (tally->places == GM_TALLY_PLACES) {
        tally->overflow = true;
        return GM_TALLY_PLACES;
    }
    tally->place_key[slot] = key;
    return tally->place[slot] = (uint16_t)tally->places++;
}

/* Sorts up to 32 numbers, which are often in ascending or descending order. */
static void sort(uint64_t *value, unsigned count)
{
    if (count > 1 && value[0] > value[count - 1]) {
        for (unsigned i = 0; i < count / 2; i++) {
            uint64_t swap = value[i];
            value[i] = value[count - 1 - i];
            value[count - 1 - i] = swap;
        }
    }
    for (unsigned i = 1; i < count; i++) {
        uint64_t x = value[i];
        unsigned at = i;
        for (; at > 0 && value[at - 1] > x; at--)
            value[at] = value[at - 1];
        value[at] = x;
    }
}

/* Sorts the addresses of active lanes. */
static unsigned gather(const uint64_t address[GM_WARP], uint32_t active, uint64_t *ret)
{
    unsigned count = 0;
    bool sorted = true;

    for (uint32_t rest = active; rest != 0; rest &= rest - 1) {
        ret[count] = address[__builtin_ctz(rest)];
        sorted &= count == 0 || ret[count] >= ret[count - 1];
        count++;
    }
    if (!sorted)
        sort(ret, count);
    return count;
}

void gm_tally_sectors(const uint64_t address[GM_WARP], uint32_t active, unsigned bytes,
                      unsigned *sectors, unsigned *distinct_bytes)
{
    uint64_t sorted[GM_WARP];
    unsigned count = gather(address, active, sorted), distinct = 0;

    *sectors = 0;
    for (unsigned i = 0; i < count; i++) {
        distinct += i == 0 || sorted[i] != sorted[i - 1];
        *sectors += i == 0 || sorted[i] / GM_SECTOR != sorted[i - 1] / GM_SECTOR;
    }
    *distinct_bytes = distinct * bytes;
}

/* The most distinct words that lanes access in one bank. */
static unsigned busiest_bank(const uint64_t *sorted, unsigned count, unsigned bytes)
{
    unsigned words = bytes <= 4 ? 1 : bytes / 4, most = 0;
    uint8_t in_bank[GM_BANKS] = {0};

    if (count > 0 && sorted[count - 1] / 128 == sorted[0] / 128)
        return 1; /* contiguous: at most one word per bank */
    for (unsigned i = 0; i < count; i++) {
        if (i > 0 && sorted[i] / (4 * words) == sorted[i - 1] / (4 * words))
            continue; /* the same word, which is broadcast */
        for (unsigned word = 0; word < words; word++) {
            uint8_t *bank = &in_bank[(sorted[i] / 4 + word) % GM_BANKS];
            *bank = (uint8_t)(*bank + 1);
            most = *bank > most ? *bank : most;
        }
    }
    return most;
}

/* Whether each active lane has the same address as lane ^ bit, unless that is inactive. */
static bool shares(const uint64_t address[GM_WARP], uint32_t active, unsigned bit)
{
    for (uint32_t rest = active; rest != 0; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest), other = lane ^ bit;
        if (active >> other & 1 && address[lane] != address[other])
            return false;
    }
    return true;
}

unsigned gm_tally_wavefronts(const uint64_t address[GM_WARP], uint32_t active, unsigned bytes,
                             bool load, unsigned *ideal)
{
    unsigned together = bytes <= 4 ? GM_WARP : 128 / bytes, total = 0;

    if (load && together < GM_WARP && (shares(address, active, 1) || shares(address, active, 2)))
        together *= 2;
    *ideal = 0;
    for (unsigned first = 0; first < GM_WARP; first += together) {
        uint32_t group = active & (UINT32_MAX >> (32 - together)) << first;
        uint64_t sorted[GM_WARP];
        total += busiest_bank(sorted, gather(address, group, sorted), bytes);
        *ideal += group != 0;
    }
    return total;
}

static void clear_set(struct gm_tally_seen *seen, unsigned set)
{
    seen->set[set].count = 0;
    if (++seen->set[set].round == 0) { /* came round: no entry may look new */
        memset(&seen->set[set], 0, sizeof(seen->set[set]));
        seen->set[set].round = 1;
    }
}

void gm_tally_forget(struct gm_tally_seen *seen, bool beside)
{
    seen->beside = beside && !seen->set[seen->now].cut && seen->set[seen->now].round > 0;
    seen->now ^= 1;
    seen->set[seen->now].cut = false;
    clear_set(seen, seen->now);
}

/* Where a sector is in a set, or would be. */
static size_t slot_of(const struct gm_tally_seen *seen, unsigned set, uint64_t sector)
{
    size_t at = (sector * UINT64_C(0x9E3779B97F4A7C15) >> 32) % GM_TALLY_SEEN_SLOTS;

    while (seen->set[set].slot[at].round == seen->set[set].round &&
           seen->set[set].slot[at].sector != sector)
        at = (at + 1) % GM_TALLY_SEEN_SLOTS;
    return at;
}

static bool is_in(const struct gm_tally_seen *seen, unsigned set, uint64_t sector)
{
    return seen->set[set].slot[slot_of(seen, set, sector)].round == seen->set[set].round;
}

void gm_tally_see(struct gm_tally_seen *seen, struct gm_tally_request *request)
{
    uint64_t sorted[GM_WARP];
    unsigned count = gather(request->address, request->active, sorted), now = seen->now;

    request->first = request->again = 0;
    if (seen->set[now].count > GM_TALLY_SEEN_MAX - GM_WARP || seen->set[now].round == 0) {
        seen->set[now].cut = seen->set[now].round > 0;
        clear_set(seen, now);
    }
    for (unsigned i = 0; i < count; i++) {
        uint64_t sector = sorted[i] / GM_SECTOR;
        if (i > 0 && sector == sorted[i - 1] / GM_SECTOR)
            continue;
        size_t at = slot_of(seen, now, sector);
        if (seen->set[now].slot[at].round == seen->set[now].round)
            continue;
        seen->set[now].slot[at].round = seen->set[now].round;
        seen->set[now].slot[at].sector = sector;
        request->first++;
        request->again += seen->beside && is_in(seen, now ^ 1, sector);
    }
    request->beside = seen->beside ? request->first : 0;
    seen->set[now].count += request->first;
}

static unsigned lines_of(const struct gm_tally_request *request)
{
    uint64_t sorted[GM_WARP];
    unsigned count = gather(request->address, request->active, sorted), lines = 0;

    for (unsigned i = 0; i < count; i++)
        lines += i == 0 || sorted[i] / GM_LINE != sorted[i - 1] / GM_LINE;
    return lines;
}

/* Adds a request to global memory. Through the L1 cache its data come in wavefronts over 32 banks,
 * as from shared memory, and the tags of 4 lines are looked up at a time. */
static void add_to_cache(struct gm_access_sums *sums, const struct gm_tally_request *request)
{
    unsigned ideal, lines = lines_of(request), tags = (lines + 3) / 4;
    unsigned data = gm_tally_wavefronts(request->address, request->active, request->bytes,
                                        request->kind == GM_GLOBAL_LOAD, &ideal);

    sums->passes += request->weight * (data > tags ? data : tags);
    sums->lines += request->weight * lines;
    sums->first += request->weight * request->first;
    sums->beside += request->weight * request->beside;
    sums->again += request->weight * request->again;
}

static void end_span(struct gm_tally_site *site)
{
    struct gm_tally_span *span = &site->span;
    unsigned bytes = span->bytes, ideal;
    bool vector = bytes > span->width && (bytes & (bytes - 1)) == 0;

    for (uint32_t rest = span->active; rest != 0 && vector; rest &= rest - 1)
        vector = span->address[__builtin_ctz(rest)] % bytes == 0;
    if (bytes > 0 && vector)
        site->sums.passes +=
            span->weight * gm_tally_wavefronts(span->address, span->active, bytes, true, &ideal);
    else if (bytes > 0)
        site->sums.passes += span->passes;
    span->bytes = 0;
}

/* Whether each lane goes on where the span ends, or before it begins, as arguments of a call do. */
static bool continues(const struct gm_tally_span *span, const struct gm_tally_request *request)
{
    bool after = true, before = true;

    if (span->bytes == 0 || span->bytes + request->bytes > 16 || span->width != request->bytes ||
        span->active != request->active || span->weight != request->weight)
        return false;
    for (uint32_t rest = span->active; rest != 0 && (after || before); rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        after &= request->address[lane] == span->address[lane] + span->bytes;
        before &= request->address[lane] + request->bytes == span->address[lane];
    }
    return after || before;
}

/* The site whose span a load continues: its own, or that of the load before, if a line of the
 * source loads several words one by one; else its own, where it begins another. */
static struct gm_tally_site *span_of(struct gm_tally *tally, struct gm_tally_site *site,
                                     const struct gm_tally_request *request)
{
    struct gm_tally_site *other = tally->span > 0 ? &tally->site[tally->span - 1] : site;

    if (!continues(&site->span, request) && other->memory == site->memory &&
        continues(&other->span, request))
        return other;
    tally->span = (size_t)(site - tally->site) + 1;
    return site;
}

/* Adds a load from shared memory to a span, of which it may be the first. */
static void add_to_span(struct gm_tally *tally, struct gm_tally_site *site,
                        const struct gm_tally_request *request, unsigned wavefronts)
{
    site = span_of(tally, site, request);
    struct gm_tally_span *span = &site->span;
    if (!continues(span, request)) {
        end_span(site);
        *span = (struct gm_tally_span){
            .width = request->bytes, .active = request->active, .weight = request->weight};
        memcpy(span->address, request->address, sizeof(span->address));
    } else if (request->address[__builtin_ctz(span->active)] <
               span->address[__builtin_ctz(span->active)]) {
        memcpy(span->address, request->address, sizeof(span->address));
    }
    span->bytes += request->bytes;
    span->passes += request->weight * wavefronts;
    if (span->bytes == 16)
        end_span(site);
}

static struct gm_tally_site *find(struct gm_tally *tally, uint32_t key, unsigned kind,
                                  unsigned memory)
{
    for (size_t n = 0, i = tally->last; n < tally->count; n++, i++) {
        if (i >= tally->count)
            i = 0; /* the next site is often the following one */
        struct gm_tally_site *site = &tally->site[i];
        if (site->key == key && site->kind == kind && site->memory == memory) {
            tally->last = (unsigned)i;
            return site;
        }
    }
    if (tally->count == tally->room) {
        size_t room = tally->room > 0 ? 2 * tally->room : 32;
        struct gm_tally_site *larger = realloc(tally->site, room * sizeof(*larger));
        if (!larger) {
            tally->lacking = true;
            return NULL;
        }
        tally->site = larger;
        tally->room = room;
    }
    struct gm_tally_site *site = &tally->site[tally->count];
    tally->last = (unsigned)tally->count++;
    *site = (struct gm_tally_site){.key = key, .kind = (uint8_t)kind, .memory = (uint16_t)memory};
    return site;
}

static void set_example(struct gm_access_example *example, const struct gm_tally_request *request)
{
    example->bytes = request->bytes;
    example->active = request->active;
    for (unsigned lane = 0; lane < GM_WARP; lane++)
        example->offset[lane] = request->active >> lane & 1 ? (int64_t)request->address[lane] : 0;
}

struct gm_access_example *gm_tally_add(struct gm_tally *tally,
                                       const struct gm_tally_request *request)
{
    struct gm_tally_site *site = find(tally, request->key, request->kind, request->memory);
    unsigned lanes = (unsigned)__builtin_popcount(request->active), units, ideal, useful, unit;

    if (!site)
        return NULL;
    gm_tally_sectors(request->address, request->active, request->bytes, &units, &useful);
    if (gm_access_is_shared((enum gm_access_kind)request->kind)) {
        units = gm_tally_wavefronts(request->address, request->active, request->bytes,
                                    request->kind == GM_SHARED_LOAD, &ideal);
        unit = 4 * GM_BANKS;
    } else {
        unit = GM_SECTOR;
        ideal = (useful + unit - 1) / unit;
    }
    site->sums.requests += request->weight;
    site->sums.lanes += request->weight * lanes;
    site->sums.bytes_useful += request->weight * useful;
    site->sums.bytes_moved += request->weight * units * unit;
    site->sums.units += request->weight * units;
    site->sums.units_ideal += request->weight * ideal;
    site->traced = site->sums.lanes;
    if (unit == GM_SECTOR)
        add_to_cache(&site->sums, request);
    else if (request->kind == GM_SHARED_LOAD)
        add_to_span(tally, site, request, units);
    else
        site->sums.passes += request->weight * units;
    if (site->example.active != 0 && (unsigned)__builtin_popcount(site->example.active) >= lanes)
        return NULL;
    set_example(&site->example, request);
    return &site->example;
}

void gm_tally_show(struct gm_tally *tally, const struct gm_tally_request *request,
                   const uint32_t block[3], unsigned warp)
{
    struct gm_tally_site *site = find(tally, request->key, request->kind, request->memory);

    if (!site || warp >= GM_WARPS_SHOWN || memcmp(site->example.block, block, 3 * sizeof *block))
        return;
    for (unsigned i = 0; i < GM_WARPS_SHOWN; i++) /* of an example that was not the best */
        if (memcmp(site->warp[i].block, block, 3 * sizeof *block))
            site->warp[i].active = 0;
    struct gm_access_example *shown = &site->warp[warp];
    if (__builtin_popcount(shown->active) >= __builtin_popcount(request->active))
        return;
    set_example(shown, request);
    memcpy(shown->block, block, sizeof shown->block);
    shown->warp = warp;
}

bool gm_tally_better(const struct gm_access_example *a, const struct gm_access_example *b)
{
    int lanes = __builtin_popcount(a->active) - __builtin_popcount(b->active);

    for (int i = 2; i >= 0 && lanes == 0; i--)
        if (a->block[i] != b->block[i])
            return a->block[i] < b->block[i];
    return lanes > 0 || (lanes == 0 && a->warp < b->warp);
}

void gm_tally_merge(struct gm_tally *into, struct gm_tally *from)
{
    for (size_t i = 0; i < from->count; i++) {
        struct gm_tally_site *other = &from->site[i];
        struct gm_tally_site *site = find(into, other->key, other->kind, other->memory);
        if (!site)
            continue;
        end_span(other);
        gm_access_add(&site->sums, &other->sums);
        site->traced += other->traced;
        if (gm_tally_better(&other->example, &site->example)) {
            site->example = other->example;
            memcpy(site->warp, other->warp, sizeof site->warp);
        }
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (from->place_key[slot] == 0)
            continue;
        unsigned place = gm_tally_place(into, from->place_key[slot]);
        if (place < GM_TALLY_PLACES)
            into->unlogged[place] += from->unlogged[from->place[slot]];
    }
    into->barriers += from->barriers;
    into->steps += from->steps;
    into->step_lanes += from->step_lanes;
    into->blocks += from->blocks;
    into->warps += from->warps;
    into->loading += from->loading;
    into->overflow |= from->overflow;
    into->lacking |= from->lacking;
}

/* Steps that were not traced: those at places without memory accesses. They are assumed to have as
 * many lanes as the others. */
static double unlogged_steps(struct gm_tally *tally)
{
    double unlogged = 0;

    for (unsigned place = 0; place < tally->places; place++)
        unlogged += tally->unlogged[place];
    for (size_t i = 0; i < tally->count; i++) {
        unsigned place = gm_tally_place(tally, tally->site[i].key);
        bool first = true; /* a place has one site per memory */
        for (size_t j = 0; j < i; j++)
            first &= tally->site[j].key != tally->site[i].key;
        if (place < GM_TALLY_PLACES && first)
            unlogged -= tally->unlogged[place];
    }
    return unlogged;
}

static void multiply(struct gm_access_sums *sums, double factor)
{
    sums->requests *= factor;
    sums->lanes *= factor;
    sums->bytes_useful *= factor;
    sums->bytes_moved *= factor;
    sums->units *= factor;
    sums->units_ideal *= factor;
    sums->passes *= factor;
    sums->lines *= factor;
    sums->first *= factor;
    sums->beside *= factor;
    sums->again *= factor;
}

void gm_tally_multiply(struct gm_tally *tally, double factor)
{
    for (size_t i = 0; i < tally->count; i++) {
        end_span(&tally->site[i]);
        multiply(&tally->site[i].sums, factor);
        tally->site[i].traced *= factor;
    }
    for (unsigned place = 0; place < tally->places; place++)
        tally->unlogged[place] *= factor;
    tally->barriers *= factor;
    tally->steps *= factor;
    tally->step_lanes *= factor;
    tally->blocks *= factor;
    tally->warps *= factor;
    tally->loading *= factor;
}

bool gm_tally_scale(struct gm_tally *tally)
{
    double steps = unlogged_steps(tally);
    bool any = steps > 0 && tally->step_lanes > 0;

    if (any) {
        double factor = 1 + steps / tally->step_lanes;
        tally->steps *= factor;
        tally->step_lanes *= factor;
    }
    for (size_t i = 0; i < tally->count; i++) {
        struct gm_tally_site *site = &tally->site[i];
        unsigned place = gm_tally_place(tally, site->key);
        double unlogged = place < GM_TALLY_PLACES ? tally->unlogged[place] : 0;
        if (unlogged <= 0 || site->traced <= 0)
            continue;
        multiply(&site->sums, 1 + unlogged / site->traced);
        any = true;
    }
    return any;
}
