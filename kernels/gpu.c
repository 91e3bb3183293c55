/*
 * gpu.c - holds the facts of known GPUs, and computes occupancy from them.
 *
 * Limits of a multiprocessor depend on its compute capability (CUDA C++ Programming Guide,
 * technical specifications). Counts, clocks and bandwidths are from the models' data sheets.
 * Arithmetic is units x boost clock x 2, as in those sheets, without tensor cores. A multiprocessor
 * does 64 32-bit integer multiply-adds a cycle: the guide says so up to 9.0, and we assume it for
 * later ones. Bytes of the L2 cache are from published measurements (gpu-l2-cache of gpu-benches,
 * of sets that fit in it), and there are none where nobody has published any.
 *
 * Blocks share a multiprocessor as NVIDIA's occupancy calculator documents. Registers are allocated
 * per warp in units of 256, from four equal parts of the file. Shared memory is rounded up after
 * the system's own part is added.
 */
#include "gpu.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define REGISTER_UNIT 256u
#define PARTITIONS 4u
#define REGISTERS_PER_THREAD_MAX 255u
#define THREADS_PER_BLOCK_MAX 1024u

#define KIB 1024u
#define MIB (1024.0 * 1024)

/* The limits that depend on the compute capability. */
#define CAPABILITY_75                                                                              \
    .capability = 75, .threads_per_sm = 1024, .blocks_per_sm = 16, .registers_per_sm = 65536,      \
    .shared_per_sm = 64 * KIB, .shared_per_block = 64 * KIB, .shared_reserved = 0
#define CAPABILITY_80                                                                              \
    .capability = 80, .threads_per_sm = 2048, .blocks_per_sm = 32, .registers_per_sm = 65536,      \
    .shared_per_sm = 164 * KIB, .shared_per_block = 163 * KIB, .shared_reserved = KIB
#define CAPABILITY_86                                                                              \
    .capability = 86, .threads_per_sm = 1536, .blocks_per_sm = 16, .registers_per_sm = 65536,      \
    .shared_per_sm = 100 * KIB, .shared_per_block = 99 * KIB, .shared_reserved = KIB
#define CAPABILITY_89                                                                              \
    .capability = 89, .threads_per_sm = 1536, .blocks_per_sm = 24, .registers_per_sm = 65536,      \
    .shared_per_sm = 100 * KIB, .shared_per_block = 99 * KIB, .shared_reserved = KIB
#define CAPABILITY_90                                                                              \
    .capability = 90, .threads_per_sm = 2048, .blocks_per_sm = 32, .registers_per_sm = 65536,      \
    .shared_per_sm = 228 * KIB, .shared_per_block = 227 * KIB, .shared_reserved = KIB
#define CAPABILITY_100                                                                             \
    .capability = 100, .threads_per_sm = 2048, .blocks_per_sm = 32, .registers_per_sm = 65536,     \
    .shared_per_sm = 228 * KIB, .shared_per_block = 227 * KIB, .shared_reserved = KIB
#define CAPABILITY_120                                                                             \
    .capability = 120, .threads_per_sm = 1536, .blocks_per_sm = 24, .registers_per_sm = 65536,     \
    .shared_per_sm = 100 * KIB, .shared_per_block = 99 * KIB, .shared_reserved = KIB

/*
 * Multiply-adds per cycle and multiprocessor: f32, f64, i32, and on tensor cores f16 (and bf16),
 * tf32, f64. They depend on the compute capability alone. CUDA does not report them; the
 * Programming Guide does (the table of throughputs of native arithmetic instructions). Rates of
 * tensor cores, accumulating in f32, are from the data sheets of A100, H100 and B200. Of other
 * capabilities there are GPUs with tensor cores of full and of half rate, and CUDA does not say
 * which a GPU has: 0.
 */
#define UNITS_70 64, 32, 64, 0, 0, 0
#define UNITS_75 64, 2, 64, 0, 0, 0
#define UNITS_80 64, 32, 64, 1024, 512, 64
#define UNITS_86 128, 2, 64, 0, 0, 0
#define UNITS_90 128, 64, 64, 2048, 1024, 128
#define UNITS_100 128, 64, 64, 4096, 2048, 64

/* Two operations each, times GHz. */
#define RATES(multiprocessors, ghz, ...)                                                           \
    .sms = multiprocessors, RATES_OF((multiprocessors)*2.0 * (ghz), __VA_ARGS__)
#define RATES_OF(gigacycles, fp32, fp64, int32, tensor_f16, tensor_tf32, tensor_fp64)              \
    .fp32_gflops = (gigacycles) * (fp32), .fp64_gflops = (gigacycles) * (fp64),                    \
    .int32_gflops = (gigacycles) * (int32), .tensor_f16_gflops = (gigacycles) * (tensor_f16),      \
    .tensor_tf32_gflops = (gigacycles) * (tensor_tf32),                                            \
    .tensor_fp64_gflops = (gigacycles) * (tensor_fp64)

static const struct gm_gpu models[] = {
    {.name = "H200",
     CAPABILITY_90,
     RATES(GM_H200_SMS, 1.980, UNITS_90),
     .l2_bytes = 60 * MIB,
     .dram_gbs = 4800,
     .l2_bytes_per_clock = 37}, /* SXM */
    {.name = "H100",
     CAPABILITY_90,
     RATES(132, 1.980, UNITS_90),
     .l2_bytes = 50 * MIB,
     .dram_gbs = 3350,
     .l2_bytes_per_clock = 35}, /* SXM5 */
    {.name = "A100",
     CAPABILITY_80,
     RATES(108, 1.410, UNITS_80),
     .l2_bytes = 40 * MIB,
     .dram_gbs = 2039,
     .l2_bytes_per_clock = 35}, /* SXM 80 GB */
    {.name = "B200",
     CAPABILITY_100,
     RATES(148, 1.965, UNITS_100),
     .l2_bytes = 126 * MIB,
     .dram_gbs = 7700}, /* HGX */
    {.name = "RTX 5090",
     CAPABILITY_120,
     RATES(170, 2.407, UNITS_86),
     .l2_bytes = 96 * MIB,
     .dram_gbs = 1792},
    {.name = "RTX 4090",
     CAPABILITY_89,
     RATES(128, 2.520, UNITS_86),
     .l2_bytes = 72 * MIB,
     .dram_gbs = 1008,
     .l2_bytes_per_clock = 15},
    {.name = "RTX 3090",
     CAPABILITY_86,
     RATES(82, 1.695, UNITS_86),
     .l2_bytes = 6 * MIB,
     .dram_gbs = 936},
    {.name = "L4",
     CAPABILITY_89,
     RATES(58, 2.040, UNITS_86),
     .l2_bytes = 48 * MIB,
     .dram_gbs = 300,
     .l2_bytes_per_clock = 15},
    {.name = "T4", CAPABILITY_75, RATES(40, 1.590, UNITS_75), .l2_bytes = 4 * MIB, .dram_gbs = 320},
};
#define MODELS (sizeof(models) / sizeof(models[0]))

const struct gm_gpu *gm_gpu_at(size_t index)
{
    return index < MODELS ? &models[index] : NULL;
}

/* The next significant character in lower case: "RTX 4090", "rtx4090" and "RTX-4090" are the same
 * name. */
static int next_letter(const char **at)
{
    while (**at == ' ' || **at == '-' || **at == '_')
        (*at)++;
    int letter = tolower((unsigned char)**at);
    *at += letter != '\0';
    return letter;
}

static bool same_name(const char *a, const char *b)
{
    int letter;

    while ((letter = next_letter(&a)) == next_letter(&b))
        if (letter == '\0')
            return true;
    return false;
}

const struct gm_gpu *gm_gpu_find(const char *name)
{
    for (size_t i = 0; i < MODELS; i++)
        if (same_name(name, models[i].name))
            return &models[i];
    return NULL;
}

const struct gm_gpu *gm_gpu_model(const char *device)
{
    for (size_t i = 0; i < MODELS; i++) {
        size_t len = strlen(models[i].name);
        for (const char *at = device; (at = strstr(at, models[i].name)); at++)
            if ((at == device || !isalnum((unsigned char)at[-1])) &&
                !isalnum((unsigned char)at[len]))
                return &models[i];
    }
    return NULL;
}

double gm_gpu_gflops(const struct gm_gpu *gpu, enum gm_dtype dtype)
{
    switch (dtype) {
    case GM_F16:
    case GM_BF16:
    case GM_F32:
        return gpu->fp32_gflops;
    case GM_F64:
        return gpu->fp64_gflops;
    case GM_I32:
        return gpu->int32_gflops;
    default:
        return 0; /* i64 takes several instructions; data sheets do not give a rate */
    }
}

unsigned gm_gpu_fp32_lanes(const struct gm_gpu *gpu)
{
    return gpu->capability < 86 ? 64 : 128;
}

double gm_gpu_ghz(const struct gm_gpu *gpu)
{
    return gpu->fp32_gflops / (2.0 * gm_gpu_fp32_lanes(gpu) * gpu->sms);
}

/* The rates of GPUs of a capability, of one multiprocessor at 1 GHz. */
static const struct gm_gpu units[] = {
    {.capability = 70, RATES(1, 1, UNITS_70)},  {.capability = 75, RATES(1, 1, UNITS_75)},
    {.capability = 80, RATES(1, 1, UNITS_80)},  {.capability = 86, RATES(1, 1, UNITS_86)},
    {.capability = 87, RATES(1, 1, UNITS_86)},  {.capability = 89, RATES(1, 1, UNITS_86)},
    {.capability = 90, RATES(1, 1, UNITS_90)},  {.capability = 100, RATES(1, 1, UNITS_100)},
    {.capability = 120, RATES(1, 1, UNITS_86)},
};

void gm_gpu_set_rates(struct gm_gpu *gpu, double ghz)
{
    double times = gpu->sms * ghz;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (units[i].capability != gpu->capability)
            continue;
        gpu->fp32_gflops = times * units[i].fp32_gflops;
        gpu->fp64_gflops = times * units[i].fp64_gflops;
        gpu->int32_gflops = times * units[i].int32_gflops;
        gpu->tensor_f16_gflops = times * units[i].tensor_f16_gflops;
        gpu->tensor_tf32_gflops = times * units[i].tensor_tf32_gflops;
        gpu->tensor_fp64_gflops = times * units[i].tensor_fp64_gflops;
    }
}

double gm_gpu_l2_bytes_per_clock(const struct gm_gpu *gpu)
{
    double least = INFINITY;

    if (gpu->l2_bytes_per_clock > 0)
        return gpu->l2_bytes_per_clock;
    for (size_t i = 0; i < MODELS; i++) {
        if (!(models[i].l2_bytes_per_clock > 0))
            continue;
        if (models[i].threads_per_sm == gpu->threads_per_sm)
            return models[i].l2_bytes_per_clock;
        least = fmin(least, models[i].l2_bytes_per_clock);
    }
    return least;
}

double gm_gpu_l2_gbs(const struct gm_gpu *gpu)
{
    return gpu->l2_bytes_per_clock * gpu->sms * gm_gpu_ghz(gpu);
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Blocks of `warps` warps that the register file holds; UINT64_MAX if it is no limit. */
static uint64_t by_registers(const struct gm_gpu *gpu, unsigned warps, unsigned registers)
{
    if (registers == 0)
        return UINT64_MAX;
    uint64_t warp = round_up((uint64_t)registers * GM_WARP, REGISTER_UNIT);
    if (registers > REGISTERS_PER_THREAD_MAX ||
        warp * round_up(warps, PARTITIONS) > gpu->registers_per_sm)
        return 0;
    return gpu->registers_per_sm / PARTITIONS / warp * PARTITIONS / warps;
}

static uint64_t by_shared(const struct gm_gpu *gpu, uint64_t shared)
{
    uint64_t unit = gpu->capability < 80 ? 256 : 128;

    if (shared > gpu->shared_per_block)
        return 0;
    uint64_t block = round_up(shared + gpu->shared_reserved, unit);
    return block == 0 ? UINT64_MAX : gpu->shared_per_sm / block;
}

struct gm_occupancy gm_gpu_occupancy(const struct gm_gpu *gpu, unsigned threads, uint64_t shared,
                                     unsigned registers)
{
    struct gm_occupancy o = {.limited_by = "threads"};

    if (threads == 0 || threads > THREADS_PER_BLOCK_MAX)
        return o;
    unsigned warps = (threads + GM_WARP - 1) / GM_WARP;
    unsigned warps_per_sm = gpu->threads_per_sm / GM_WARP;
    /* If limits are equal the first is reported. */
    const struct {
        const char *name;
        uint64_t blocks;
    } limits[] = {{"threads", warps_per_sm / warps},
                  {"blocks", gpu->blocks_per_sm},
                  {"shared memory", by_shared(gpu, shared)},
                  {"registers", by_registers(gpu, warps, registers)}};
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (limits[i].blocks < least) {
            least = limits[i].blocks;
            o.limited_by = limits[i].name;
        }
    }
    o.blocks = (unsigned)least;
    o.warps = o.blocks * warps;
    o.percent = 100.0 * o.warps / warps_per_sm;
    return o;
}
