/*
 * access.h - describes how a kernel accessed memory, as the simulator saw it.
 *
 * It has the totals of a run, and a report of each access in the source. A request is one memory
 * instruction of one warp: the addresses of its up to 32 active lanes. In global memory a request
 * costs sectors, the distinct 32-byte segments that it touches. In shared memory it costs
 * wavefronts, the passes that 32 banks of 4 bytes need, one word per bank each.
 */
#ifndef GM_KERNELS_ACCESS_H
#define GM_KERNELS_ACCESS_H

#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GM_SECTOR 32u
#define GM_LINE 128u
#define GM_BANKS 32u

#define GM_ACCESS_LIST(X)                                                                          \
    X(GLOBAL_LOAD, "global_load")                                                                  \
    X(GLOBAL_STORE, "global_store")                                                                \
    X(GLOBAL_ATOMIC, "global_atomic")                                                              \
    X(SHARED_LOAD, "shared_load")                                                                  \
    X(SHARED_STORE, "shared_store")                                                                \
    X(SHARED_ATOMIC, "shared_atomic")

enum gm_access_kind {
#define X(name, text) GM_##name,
    GM_ACCESS_LIST(X)
#undef X
        GM_ACCESS_KINDS
};

const char *gm_access_name(enum gm_access_kind kind);
static inline bool gm_access_is_shared(enum gm_access_kind kind)
{
    return kind >= GM_SHARED_LOAD;
}

/* The sums over requests of one kind, or of one place in the source. If only a sample was run, they
 * are estimates for the whole. */
struct gm_access_sums {
    double requests;
    double lanes;        /* active lanes, over all requests */
    double bytes_useful; /* distinct bytes that the lanes of a request asked for */
    double bytes_moved;  /* global: sectors of 32 bytes; shared: wavefronts of 128 */
    double units;        /* global: sectors; shared: wavefronts */
    /* global: sectors that the useful bytes would fill; shared: the least wavefronts of accesses of
     * this width whose lanes share words as these do */
    double units_ideal;
    /* Passes through the L1 cache's data stage, which shared memory uses too: wavefronts, with
     * loads of neighbouring words in succession taken as vector loads, which compilers make of
     * them. */
    double passes;
    double lines; /* global: distinct lines of 128 bytes, the units of the L2 cache */
    double first; /* global loads: of the sectors, those that the block had not loaded before */
    /* Of `first`, those of blocks behind another of their row of the grid; and of these, what that
     * one loads too. */
    double beside, again;
};

/* Adds `from` to `into`. */
void gm_access_add(struct gm_access_sums *into, const struct gm_access_sums *from);

/* The totals of a run by kind of access; kernel and preparing passes have one each. */
struct gm_access_totals {
    struct gm_access_sums kind[GM_ACCESS_KINDS];
    double barriers;     /* one per block that passes it */
    double steps, lanes; /* branchless stretches of code, per warp; active lanes in them */
    double blocks, warps;
    double loading; /* of the warps, those that load from global memory: others leave at once */
    double async;   /* of the requests that load from global memory, those of asynchronous copies */
};

/* The addresses of one request, as an example. */
struct gm_access_example {
    uint32_t block[3];
    unsigned warp;           /* in the block */
    unsigned bytes;          /* per lane */
    uint32_t active;         /* bit i: lane i takes part */
    int64_t offset[GM_WARP]; /* of active lanes: bytes from the beginning of `memory` */
};

/* How many warps of the example's block a site shows: all that a block may have. */
#define GM_WARPS_SHOWN 32u

struct gm_access_site {
    enum gm_access_kind kind;
    char kernel[64]; /* "transpose_tiled" */
    char file[96];   /* "kernels/cuda/transpose/tiled.cu" */
    unsigned line;
    char source[160]; /* that line, trimmed; "" if not known */
    char memory[32];  /* what it touches: "a", "b", "c", "result", "scratch", or a shared array's
                         name */
    struct gm_access_sums sums;
    struct gm_access_example example;
    /* The same of the warps of that block, by their number; active is 0 where one was not
     * traced, or made no such request. */
    struct gm_access_example warp[GM_WARPS_SHOWN];
};

/* One kernel launch, or several of the same shape. */
struct gm_launch_report {
    char kernel[64];
    const char *symbol; /* of the instance, mangled (gm_gpu_resources); static */
    bool prepares;      /* a pass that rearranges data, not the kernel itself */
    uint32_t grid[3], block[3];
    uint64_t shared;    /* bytes per block, static and dynamic */
    double blocks;      /* of the grid */
    double traced;      /* blocks that were run and traced */
    bool steps_sampled; /* long loops were traced in part */
    bool cut;           /* some threads were stopped early, or no block was run: too long */
};

/* What one report may take, beside its own size: memory for what the traced threads touch, and time
 * of the host's threads, all together, where counts have not ended it long before. */
#define GM_REPORT_BYTES 67108864
#define GM_REPORT_CPU_MS 2000

/* All numbers are of the whole operation. */
struct gm_access_report {
    struct gm_access_totals totals; /* of the kernel, without preparing passes */
    size_t launches, sites;
    struct gm_launch_report *launch; /* in the order in which they ran */
    struct gm_access_site *site;     /* of the kernel's launches, in the order of their lines */
    bool sampled;                    /* not every block or step was traced */
    bool cut;  /* some launch was cut: the sums are of what was run, and too small */
    bool late; /* it was cut because time ran out, and not by event counts */
};

/* Frees what the report holds, and zeroes it. An empty report is allowed. */
void gm_access_report_clear(struct gm_access_report *report);

/* The fewest sectors that global memory must transfer: each byte of bytes_min once. */
double gm_access_sectors_min(const struct gm_op *op);

#ifdef __cplusplus
}
#endif
#endif
