/*
 * explain.h - writes the access report of a kernel: derives figures from the counts of
 * kernels/access.h, words sentences about them, and formats both as JSON, text or SVG.
 */
#ifndef GM_SERVER_API_EXPLAIN_EXPLAIN_H
#define GM_SERVER_API_EXPLAIN_EXPLAIN_H

#include "kernels/access.h"
#include "kernels/backend.h"

/* What a report is written from. */
struct gm_explain {
    const char *id, *device;
    const struct gm_op *op;
    const struct gm_variant *variant;
    const struct gm_device_facts *facts;
    const struct gm_gpu *gpu; /* whose limits and ceilings are meant */
    const struct gm_access_report *report;
};

/* How the lanes of an example lie to each other. */
enum gm_pattern {
    GM_PATTERN_SAME,     /* one address for all */
    GM_PATTERN_ROW,      /* side by side, forwards or backwards */
    GM_PATTERN_ROWS,     /* side by side in several pieces */
    GM_PATTERN_STRIDE,   /* the same distance between neighbours, and it is not their width */
    GM_PATTERN_SCATTERED /* none of these */
};

/* Of one site; a figure for each request. */
struct gm_site_figures {
    enum gm_pattern pattern;
    int64_t stride;  /* bytes from lane to lane, of ROW, ROWS and STRIDE */
    unsigned pieces; /* of ROWS */
    double units, ideal, lanes;
    double ratio; /* units / ideal; 1 is as good as can be */
    double cost;  /* microseconds that its units beyond the ideal take at least, on `gpu` */
    char verdict[40];
};

/* Of the whole. What makes no sense or is not known is negative: as what compares the traffic with
 * the whole operation, where the report has a part of it alone. */
struct gm_explain_figures {
    double sectors, sectors_min, sectors_ideal, sectors_ratio;
    double wavefronts, wavefronts_ideal;
    double barriers_per_block, active_percent;
    double flops, bytes_min, bytes_moved;
    double intensity, executed_intensity; /* flops per byte: of bytes_min, of bytes_moved */
    double traced, blocks;
    const struct gm_launch_report *launch; /* the one whose occupancy it is; NULL: none ran */
    struct gm_occupancy occupancy;
    double peak_gflops, ridge; /* flops per byte at which arithmetic becomes the limit */
    double attainable_gflops, percent_of_peak;
    bool compute_bound;
};

void gm_explain_figures(const struct gm_explain *explain, struct gm_explain_figures *ret);
void gm_explain_site(const struct gm_explain *explain, const struct gm_access_site *site,
                     struct gm_site_figures *ret);
/* The site that costs most beyond its ideal; NULL where none costs anything to speak of. */
const struct gm_access_site *gm_explain_worst(const struct gm_explain *explain);

/* What is slow and why, and what cures it: a sentence each, from the figures alone. */
#define GM_EXPLAIN_WORDS_MAX 512
void gm_explain_words(const struct gm_explain *explain, char problem[GM_EXPLAIN_WORDS_MAX],
                      char cure[GM_EXPLAIN_WORDS_MAX]);
/* "Left of the ridge: ..." */
void gm_explain_place(const struct gm_explain *explain, const struct gm_explain_figures *figures,
                      char out[GM_EXPLAIN_WORDS_MAX]);

/* The document; free() it. NULL without memory. */
char *gm_explain_json(const struct gm_explain *explain);
char *gm_explain_text(const struct gm_explain *explain);
char *gm_explain_svg(const struct gm_explain *explain);

/*
 * map.c: an example request as a map: which lanes touch which segment of global memory, or which
 * word of which bank of shared memory.
 */

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
