/*
 * map.h - an example request as a map: which lanes touch which segment of global memory,
 * or which word of which bank of shared memory.
 */
#ifndef GM_SERVER_API_EXPLAIN_MAP_H
#define GM_SERVER_API_EXPLAIN_MAP_H

#include "kernels/access.h"

/* A lane touches two segments at most: accesses have 16 bytes or fewer. */
#define GM_SEGMENTS_MAX (2 * GM_WARP)
/* It touches up to 5 words, which are in one or two rows of 128 bytes. */
#define GM_BANK_ROWS_MAX (2 * GM_WARP)

struct gm_segments {
    unsigned rows;
    struct {
        int64_t index;      /* of the segment: its offset / 32 */
        uint32_t lanes;     /* bit i: lane i touches it */
    } row[GM_SEGMENTS_MAX]; /* in the order of their addresses */
};

struct gm_banks {
    unsigned rows;
    struct {
        int64_t index;            /* of the 128 bytes: their offset / 128 */
        uint32_t lanes[GM_BANKS]; /* those that touch the word there */
    } row[GM_BANK_ROWS_MAX];      /* in the order of their addresses */
    unsigned words[GM_BANKS];     /* different words asked of each bank */
};

void gm_map_segments(const struct gm_access_example *example, struct gm_segments *ret);
void gm_map_banks(const struct gm_access_example *example, struct gm_banks *ret);

/* A set of lanes in at most 5 characters: "7", "0-31", "3+2" (lane 3 and two more). */
const char *gm_map_lanes_text(uint32_t lanes, char out[16]);

#endif
