/*
 * tally.h - computes what requests cost, and sums it by place in the code.
 *
 * A request of global memory costs 32-byte sectors, one of shared memory wavefronts.
 */
#ifndef GM_KERNELS_SIM_WATCH_TALLY_H
#define GM_KERNELS_SIM_WATCH_TALLY_H

#include "kernels/access.h"

#include <stdint.h>

/* The most places in the code of one launch: far beyond any kernel of a few hundred lines. */
#define GM_TALLY_PLACES 2048u

/* Loads of neighbouring words, one after the other, that a compiler can make one vector load of. */
struct gm_tally_span {
    unsigned width,
        bytes; /* of a lane: of one load, and of all so far; 0 bytes: there is no span */
    uint32_t active;
    uint64_t address[GM_WARP]; /* where it begins */
    double weight, passes;     /* passes: of its loads, if they remain single */
};

/* The sums over the requests of one instruction to one memory. */
struct gm_tally_site {
    uint32_t key;
    uint8_t kind; /* enum gm_access_kind */
    uint16_t memory;
    struct gm_access_sums sums;
    double traced; /* traced lanes: sums.lanes before partly traced places are scaled */
    /* Have addresses instead of offsets until they are reported. */
    struct gm_access_example example, warp[GM_WARPS_SHOWN];
    struct gm_tally_span span; /* of shared loads: not yet in sums.passes */
};

struct gm_tally {
    /* The numbers of places: a hash table by key; 0 is none. */
    uint32_t place_key[2 * GM_TALLY_PLACES];
    uint16_t place[2 * GM_TALLY_PLACES];
    unsigned places;
    double unlogged[GM_TALLY_PLACES]; /* lanes that were not traced */
    size_t count, room;
    struct gm_tally_site *site;
    unsigned last; /* the site that was found last */
    size_t span;   /* the site, + 1, whose span a load of another site may continue */
    double barriers, steps, step_lanes, blocks, warps, loading;
    bool overflow; /* something did not fit: the sums are too small */
    bool lacking;  /* memory ran out: the sums are too small */
};

struct gm_tally_request {
    uint32_t key;
    uint8_t kind, bytes;
    uint16_t memory;
    uint32_t active;
    uint64_t address[GM_WARP]; /* of active lanes */
    double weight;             /* requests that it stands for */
    /* Of its sectors, those that its block touches for the first time; and as in gm_access_sums. */
    unsigned first, beside, again;
};

/* The sectors that a block has loaded, and those of the block before: hash tables. They are as an
 * L1 cache that keeps the last GM_TALLY_SEEN_MAX. All zeros is empty. */
#define GM_TALLY_SEEN_SLOTS 32768u
#define GM_TALLY_SEEN_MAX 16384u
struct gm_tally_seen {
    unsigned now; /* the set of the running block */
    bool beside;  /* the other set is of a block beside it */
    struct {
        unsigned count;
        bool cut;       /* the first of them were dropped */
        uint32_t round; /* entries of other rounds are empty */
        struct {
            uint32_t round;
            uint64_t sector;
        } slot[GM_TALLY_SEEN_SLOTS];
    } set[2];
};

/* Another block begins; beside: it lies beside the one before. */
void gm_tally_forget(struct gm_tally_seen *seen, bool beside);
/* Adds the sectors of a request to global memory, and sets its first, beside and again. */
void gm_tally_see(struct gm_tally_seen *seen, struct gm_tally_request *request);

void gm_tally_reset(struct gm_tally *tally);
void gm_tally_free(struct gm_tally *tally);

/* A small number for a place in the code; GM_TALLY_PLACES if there are too many. */
unsigned gm_tally_new_place(struct gm_tally *tally, uint32_t key);
static inline unsigned gm_tally_slot(uint32_t key)
{
    return key * UINT32_C(0x9E3779B1) >> 16 & (2 * GM_TALLY_PLACES - 1);
}
static inline unsigned gm_tally_place(struct gm_tally *tally, uint32_t key)
{
    unsigned slot = gm_tally_slot(key);

    return tally->place_key[slot] == key ? tally->place[slot] : gm_tally_new_place(tally, key);
}

/*
 * Adds a request to its site. If it is a better example (more lanes), returns the site's example,
 * for the caller to fill in block and warp; else NULL.
 */
struct gm_access_example *gm_tally_add(struct gm_tally *tally,
                                       const struct gm_tally_request *request);

/* Shows the request that was just added beside its site's example, if it is of the same block and
 * no other of its warp has more lanes. */
void gm_tally_show(struct gm_tally *tally, const struct gm_tally_request *request,
                   const uint32_t block[3], unsigned warp);

/* Whether `a` is the better example: it has more lanes or, if equal, an earlier block or warp. So
 * it does not depend on which thread ran first. */
bool gm_tally_better(const struct gm_access_example *a, const struct gm_access_example *b);

/* Adds `from` to `into`, and ends the runs of `from`. */
void gm_tally_merge(struct gm_tally *into, struct gm_tally *from);
/* Multiplies all sums by `factor`. */
void gm_tally_multiply(struct gm_tally *tally, double factor);
/* Scales the sums of partly traced places to the whole. Returns whether there are any. */
bool gm_tally_scale(struct gm_tally *tally);

/* Counts the distinct sectors and bytes that the lanes of a warp touch. Addresses are aligned to
 * `bytes` (a power of two up to 16). */
void gm_tally_sectors(const uint64_t address[GM_WARP], uint32_t active, unsigned bytes,
                      unsigned *sectors, unsigned *distinct_bytes);
/*
 * Counts the wavefronts that the banks need. Lanes are served together up to 128 bytes: 32 lanes of
 * up to 4 bytes, 16 of 8, 8 of 16. Twice as many lanes of a load of 8 or 16 bytes are served
 * together if each active lane has the address of its neighbour (lane ^ 1), or each that of lane ^
 * 2, unless that is inactive: Nsight Compute counts the same on an H200 (COUNTERS.md). Among those,
 * distinct words of one bank take a wavefront each. *ideal: one wavefront for all lanes that are
 * served together, the least for this width and these lanes.
 */
unsigned gm_tally_wavefronts(const uint64_t address[GM_WARP], uint32_t active, unsigned bytes,
                             bool load, unsigned *ideal);

#endif
