/*
 * explain.h - writes a kernel's access report: figures, sentences, and the formats JSON, text and
 * SVG.
 *
 * The figures derive from the counts of kernels/access.h.
 */
#ifndef GM_SERVER_API_EXPLAIN_EXPLAIN_H
#define GM_SERVER_API_EXPLAIN_EXPLAIN_H

#include "kernels/device_facts.h"
#include "kernels/task.h"

#include <stdio.h>

/* The inputs of a report. */
struct gm_explain {
    const char *id, *device;
    const struct gm_op *op;
    const struct gm_variant *variant;
    struct gm_device_facts facts; /* of the device, with that GPU */
    const struct gm_gpu *gpu;     /* the GPU whose limits and ceilings apply */
    const struct gm_access_report *report;
    const char *automatic;            /* what auto takes on `gpu`; NULL: a kernel was named */
    const struct gm_explain *against; /* another kernel, to set beside this one; NULL: none */
};

/* Access pattern of an example warp: how its lanes' addresses relate. */
enum gm_pattern {
    GM_PATTERN_SAME,     /* neighbours mostly share an address */
    GM_PATTERN_ROW,      /* contiguous, ascending or descending */
    GM_PATTERN_ROWS,     /* several contiguous spans */
    GM_PATTERN_STRIDE,   /* constant stride that is not the access width */
    GM_PATTERN_SCATTERED /* none of these */
};

/* Figures of one access site, per request. */
struct gm_site_figures {
    enum gm_pattern pattern;
    int64_t stride; /* bytes between neighbouring lanes; for ROW, ROWS and STRIDE */
    unsigned spans; /* number of spans; for ROWS */
    double units, ideal, lanes;
    double used_percent; /* of the bytes moved, those that lanes asked for */
    double ratio;  /* units / ideal; of shared loads that a compiler makes vectors, as vectors */
    bool wasteful; /* clearly beyond the ideal */
    double cost;   /* least time in microseconds on `gpu` of the units beyond the ideal */
    char verdict[40];
};

/* Figures of the whole kernel. Negative: unknown or not applicable, such as a comparison with the
 * whole operation if the report covers only a part. */
struct gm_explain_figures {
    double sectors, sectors_min, sectors_ideal, sectors_ratio;
    double wavefronts, wavefronts_ideal;
    double requests, passes; /* of all kinds; through the data stage of L1 and shared memory */
    double l1_hit_percent;   /* of loaded sectors: those that their block had loaded before */
    double l2_sectors;       /* sectors of loads that miss L1, and of all stores */
    double l2_lines;         /* lines of loads that miss L1, and of all stores */
    double l2_hit_percent;   /* of the sectors of loads that miss L1 */
    double dram_bytes;       /* loads that miss L2, and what is stored, once */
    double barriers_per_block, active_percent;
    double flops, bytes_min, bytes_moved;
    double bytes_used;                    /* of bytes_moved, those that lanes asked for */
    unsigned registers;                   /* per thread; 0: not known */
    unsigned spilled;                     /* bytes per thread that did not fit in them */
    double intensity, executed_intensity; /* flops per byte, of bytes_min and of bytes_moved */
    double traced, blocks;
    const struct gm_launch_report *launch; /* launch of the occupancy; NULL: there was none */
    struct gm_occupancy occupancy;
    double peak_gflops, ridge; /* ridge: flops per byte above which arithmetic is the limit */
    double attainable_gflops, percent_of_peak; /* by the lowest roof, which no kernel breaks */
    const char *roof;                          /* "dram", "l2", "l1_and_shared" or "arithmetic" */
    bool compute_bound;
};

void gm_explain_figures(const struct gm_explain *explain, struct gm_explain_figures *ret);
/* cache.c: sets l2_hit_percent and dram_bytes of figures whose other members are set. */
void gm_explain_caches(const struct gm_explain *explain, struct gm_explain_figures *figures);
void gm_explain_site(const struct gm_explain *explain, const struct gm_access_site *site,
                     struct gm_site_figures *ret);
/* Lines that a site asks of the L2 cache. */
double gm_explain_lines(const struct gm_access_site *site);
/* The site with the highest cost beyond its ideal; NULL if no cost matters. */
const struct gm_access_site *gm_explain_worst(const struct gm_explain *explain);

/* Two sentences, from the figures alone: what is slow and why, and how to fix it. */
#define GM_EXPLAIN_WORDS_MAX 640
void gm_explain_words(const struct gm_explain *explain, char problem[GM_EXPLAIN_WORDS_MAX],
                      char cure[GM_EXPLAIN_WORDS_MAX]);
/* places.c: the same of one place. */
void gm_explain_place_words(const struct gm_explain *explain, const struct gm_access_site *site,
                            char problem[GM_EXPLAIN_WORDS_MAX], char cure[GM_EXPLAIN_WORDS_MAX]);
const char *gm_explain_verb(enum gm_access_kind kind); /* "load", "store" or "atomic" */
/* What a cure says before the variant that it names. */
#define GM_EXPLAIN_CURED_BY ": see kernel="
/* A variant is named as faster only if its measured time is below this part of this one's. */
#define GM_EXPLAIN_FASTER 0.98
/* Writes a technique, and the variant that gm_explain_variant finds for it. */
void gm_explain_cure(const struct gm_explain *explain, const char *technique,
                     const char *const *words, char cure[GM_EXPLAIN_WORDS_MAX]);
/* The first variant that is no slower, as far as that was measured, and has one of the words in its
 * name or note. */
const char *gm_explain_variant(const struct gm_explain *explain, const char *const *words);
/* The variant that the cure names; NULL if it names none. */
const struct gm_variant *gm_explain_cured(const struct gm_explain *explain);
/* The measured time on `gpu` of the very shape, in microseconds; negative: none. */
double gm_explain_measured_us(const struct gm_explain *explain);
/* What was measured of the kernel on `gpu`, in words; false if nothing was. */
bool gm_explain_measured(const struct gm_explain *explain, char out[GM_EXPLAIN_WORDS_MAX]);
/* Writes the position on the roofline: "left of the ridge: ..." */
void gm_explain_place(const struct gm_explain *explain, const struct gm_explain_figures *figures,
                      char out[GM_EXPLAIN_WORDS_MAX]);

/*
 * estimate.c: the time on `gpu` by each resource alone, and by all. Unknown if the report was cut.
 */
enum gm_bound {
    GM_BOUND_DRAM,
    GM_BOUND_L2,         /* lines of 128 bytes */
    GM_BOUND_L1,         /* passes through the data stage of L1 and shared memory */
    GM_BOUND_ISSUE,      /* instructions beside arithmetic */
    GM_BOUND_ARITHMETIC, /* multiply-adds */
    GM_BOUND_LATENCY,
    GM_BOUNDS
};
const char *gm_bound_name(enum gm_bound bound);

struct gm_estimate {
    bool known;
    double us, part[GM_BOUNDS]; /* microseconds: of the kernel; of each resource */
    double launch_us;           /* of `us`, what an empty kernel takes */
    double waves;               /* of blocks: the grid in units of what fits on the GPU at once */
    double uneven;       /* blocks of the busiest multiprocessor, by the mean one's: 1 or more */
    enum gm_bound bound; /* the largest part */
};

/* How estimates did on the shapes that they were not fitted to. */
#define GM_ESTIMATE_ERROR                                                                          \
    "on an H200, of shapes that the estimate was not fitted to, 80 % are within 25 % of the "      \
    "measured time, and 91 % of pairs of kernels in the measured order"

/* GFLOP/s that the GPU does at most; 0: not known. */
double gm_explain_peak(const struct gm_explain *explain);
void gm_explain_estimate(const struct gm_explain *explain, const struct gm_explain_figures *figures,
                         struct gm_estimate *ret);
/* The estimate if a site's requests were ideal, in microseconds. */
double gm_estimate_without(const struct gm_explain *explain,
                           const struct gm_explain_figures *figures,
                           const struct gm_estimate *estimate, const struct gm_access_site *site);
/* Lines that a site asks of L2 beyond what its bytes would fill. */
double gm_explain_beyond_lines(const struct gm_explain *explain, const struct gm_access_site *site);

/* Loads under way on a multiprocessor, by Little's law: bytes, what its part of the memory's
 * bandwidth times its latency asks, loads of a warp, and its warps. Negative: not known. */
struct gm_in_flight {
    double bytes, needed, requests, warps;
};
struct gm_in_flight gm_explain_in_flight(const struct gm_explain *explain,
                                         const struct gm_explain_figures *figures);

/* against.c: a kernel beside the one of `against`, which is there. Two sentences: what differs
 * most, and what that brings; and a table. */
void gm_explain_changed(const struct gm_explain *explain, char changed[GM_EXPLAIN_WORDS_MAX],
                        char brought[GM_EXPLAIN_WORDS_MAX]);
void gm_explain_side_by_side(FILE *out, const struct gm_explain *explain);

/* The report. The caller frees it; NULL: no memory. */
char *gm_explain_json(const struct gm_explain *explain);
char *gm_explain_text(const struct gm_explain *explain);
char *gm_explain_svg(const struct gm_explain *explain);

/* map.c: which lanes of an example request touch which sector, or which word of which bank. */

/* A lane touches at most two sectors, and up to 5 words in two rows of 128 bytes. */
#define GM_SECTORS_MAX (2 * GM_WARP)
#define GM_BANK_ROWS_MAX (2 * GM_WARP)

struct gm_sectors {
    unsigned rows;
    struct {
        int64_t index;     /* of the sector: offset / 32 */
        uint32_t lanes;    /* bit i: lane i touches it */
    } row[GM_SECTORS_MAX]; /* sorted by address */
};

struct gm_banks {
    unsigned rows;
    struct {
        int64_t index;            /* of the row: offset / 128 */
        uint32_t lanes[GM_BANKS]; /* the lanes that touch the word of each bank */
    } row[GM_BANK_ROWS_MAX];      /* sorted by address */
    unsigned words[GM_BANKS];     /* different words requested from each bank */
};

void gm_map_sectors(const struct gm_access_example *example, struct gm_sectors *ret);
void gm_map_banks(const struct gm_access_example *example, struct gm_banks *ret);

/* "7", "0-31", "3+2" (lane 3 and two more) */
const char *gm_map_lanes_text(uint32_t lanes, char out[16]);

#endif
