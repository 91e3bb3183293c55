/*
 * choose.h - estimates what each variant takes on a device, and chooses the one that takes least.
 *
 * Pure functions of the operation, the device's facts and a table of numbers (its profile), so they
 * are tested without the device. Nothing that is measured while the daemon runs enters them: the
 * same request gets the same choice, and the same bits.
 */
#ifndef GM_KERNELS_CHOOSE_CHOOSE_H
#define GM_KERNELS_CHOOSE_CHOOSE_H

#include "kernels/device_facts.h"
#include "kernels/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * If `name` is NULL, "" or "auto", *ret is the variant with the least estimate. Any other name
 * selects that variant, or fails with GM_KERNEL_UNAVAILABLE and a sentence that lists the variants
 * that can run this operation on this device (and a similar name, if there is one).
 *
 * `auto` may select a variant of another operation that computes the same: the transpose of one
 * column-major matrix is a copy of its bytes.
 */
enum gm_status gm_select(const struct gm_op *op, const struct gm_device_facts *facts,
                         const char *name, const struct gm_variant **ret, struct gm_error *err);

/*
 * gm_select, and op->tiles for the device, for callers that ask often: what `auto` takes is kept by
 * shape. A cache is of one device; any thread may use it.
 */
struct gm_choice_cache;
enum gm_status gm_choice_cache_open(struct gm_choice_cache **ret, struct gm_error *err);
void gm_choice_cache_close(struct gm_choice_cache *cache);
enum gm_status gm_choose(struct gm_choice_cache *cache, struct gm_op *op,
                         const struct gm_device_facts *facts, const char *name,
                         const struct gm_variant **ret, struct gm_error *err);

/*
 * The name of what `auto` takes on a GPU of this model. Neither the GPU nor its kernels' code need
 * be here: what a variant accepts is in variants.def. NULL if there is none. *ret_traced:
 * that variant, if the simulator (facts) runs it too, else the one with the least estimate of those
 * that it runs.
 */
const char *gm_select_for_gpu(const struct gm_op *op, const struct gm_gpu *gpu,
                              const struct gm_device_facts *facts,
                              const struct gm_variant **ret_traced);

/* ---- Estimates ---------------------------------------------------------------------------------
 */

/* An estimate in microseconds, and what it is made of (README.md): us is launch and passes, and the
 * root of the sum of the squares of the others. */
struct gm_kernel_time {
    double us, launch, math, shared, l2, dram, wait, passes;
};

/* What the kernel takes with its passes, and without copies over the link; us is negative for a
 * variant without an estimate, which `auto` does not take. */
struct gm_kernel_time gm_estimate(const struct gm_op *op, enum gm_op_kind kind, const char *name,
                                  const struct gm_device_facts *facts);

/* Whether a variant has no estimate because it was not timed: it has a row in estimate.c, and the
 * profile has no numbers for it. --tune and --fit find them. */
bool gm_lacks_numbers(const struct gm_op *op, enum gm_op_kind kind, const char *name,
                      const struct gm_device_facts *facts);

/* A variant that can run an operation, and its estimate. variant: NULL for one that only a GPU runs
 * and that is not in this build. */
struct gm_candidate {
    const struct gm_variant *variant;
    const char *name;
    struct gm_kernel_time estimate;
};

#define GM_CANDIDATES_MAX 32u

/* The variants that can run op on the device, the least estimate first and those without one last.
 * Returns how many. */
unsigned gm_candidates(const struct gm_op *op, const struct gm_device_facts *facts,
                       struct gm_candidate ret[GM_CANDIDATES_MAX]);

/* The same on a GPU of this model, as gm_select_for_gpu has it. */
unsigned gm_candidates_for_gpu(const struct gm_op *op, const struct gm_gpu *gpu,
                               const struct gm_device_facts *facts,
                               struct gm_candidate ret[GM_CANDIDATES_MAX]);

/* Whether `auto` may take a variant that has the least estimate. Not a library's transpose, which
 * is arithmetic and may lose the bits of a NaN. */
bool gm_may_be_automatic(const struct gm_variant *variant);

/* Whether a device that gathers jobs is to run op with others, in one launch that reads and writes
 * the host's memory (variant `grouped`): a lone one then ends before it would with copies and a
 * kernel of kernel_us. */
bool gm_is_small_job(const struct gm_op *op, const struct gm_device_facts *facts, double kernel_us);

/* What a lone job whose matrices are in the host's memory takes by what `auto` takes, in
 * microseconds: on a GPU with copies, at the link's measured rates, where there are any. Infinite
 * if the device cannot run it, or that variant has no estimate. For placement by load, which may
 * change with the measurements. */
double gm_job_us(const struct gm_op *op, const struct gm_device_facts *facts);

/* ---- Tiles: how a variant divides a product ---------------------------------------------------
 */

/* A tile config of multistage_tuned: sizes of a block's tile, the widest load of B that is staged
 * in registers (0: none), warps of a block, and blocks that share a multiprocessor. */
struct gm_tile_config {
    unsigned BM, BN, BK, staged_max, warps, resident;
};

/* Those of f32, largest first, then those of f64 (cuda/matmul/multistage_tuned.cu). */
#define GM_F32_CONFIGS 12u
#define GM_F64_CONFIGS 3u
/* clang-format off */
/*   BM   BN  BK  staged_max, warps, resident */
#define GM_TILE_CONFIGS        \
    {128, 256,  8, 1, 8,  1},  \
    { 64, 128,  8, 1, 2,  4},  \
    { 64, 128,  8, 2, 4,  3},  \
    { 32, 128, 16, 0, 2,  6},  \
    { 64,  64, 16, 0, 2,  6},  \
    { 64,  64, 16, 2, 4,  4},  \
    { 32,  64,  8, 2, 1, 12},  \
    { 32,  32,  8, 2, 1, 16},  \
    { 32,  32, 16, 0, 2, 10},  \
    { 16,  32, 16, 1, 1, 15},  \
    { 16,  64, 16, 0, 1,  8},  \
    { 64,  16, 16, 0, 1,  8},  \
    {128, 128,  8, 0, 8,  1},  \
    { 32,  64,  8, 0, 4,  4},  \
    { 16,  32, 16, 0, 1,  8}
/* clang-format on */

/* Sets op->tiles for a GPU, real or simulated, so that multistage_tuned divides the product in the
 * same way whoever asks for it: products of f32 and f64 alone have any. */
void gm_set_tiles(struct gm_op *op, const struct gm_device_facts *facts);

/* For f32 and f64. facts: NULL for the first GPU model. */
struct gm_tile_choice gm_choose_tiles(const struct gm_op *op, const struct gm_device_facts *facts);

/* For what runs on tensor cores: the config of a kernel, in the order in which it has them, and the
 * number of splits of K. Of the shape alone, on any device, as bits are.
 */
struct gm_tile_choice gm_mma_tiles(const struct gm_op *op);
struct gm_tile_choice gm_wgmma_tiles(const struct gm_op *op);
struct gm_tile_choice gm_split_bf16_tiles(const struct gm_op *op);

/* ---- Profiles ----------------------------------------------------------------------------------
 */

struct gm_profile; /* a table of numbers, for one GPU model */

/* The tables of this build: 0 for GPUs and 1 for CPUs, also those that nobody measured: numbers are
 * shares of what a device's facts say. NULL past the end. */
const struct gm_profile *gm_profile_at(size_t index);

/* The model that it was measured on: "NVIDIA H200". */
const char *gm_profile_gpu(const struct gm_profile *profile);

/* The table for a GPU model, where `facts` are of a device that may be another one: its own, if it
 * has one and is that model; else the built-in one. gpu: NULL for the device's. */
const struct gm_profile *gm_profile_for(const struct gm_gpu *gpu,
                                        const struct gm_device_facts *facts);

/* Reads a table as profiles/ has them. Rows that it does not have are the built-in one's; none may
 * be there twice. free() the result. GM_BAD_PARAMETER with the line that is wrong. */
enum gm_status gm_profile_read(const char *text, struct gm_profile **ret, struct gm_error *err);

#ifdef __cplusplus
}
#endif
#endif
