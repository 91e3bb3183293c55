/*
 * ceiling_arithmetic.c - measures the arithmetic ceiling: multiply-adds in registers.
 *
 * For each type and instruction set, with as many independent multiply-adds as hide the latency.
 */
#include "exec.h"
#include "facts.h"
#include "kernels/device_facts.h"

#include <string.h>
#include <time.h>

#define CHAINS 12   /* independent sums: more than latency times units, fewer than registers */
#define STEPS 16000 /* of a chunk: some 30 us */
#define PIECES 8    /* chunks a thread in each round */
#define ROUNDS 4

/* x = x * factor + term, on CHAINS vectors. The factors are arguments and the sums are returned, so
 * that the compiler cannot compute them beforehand; with 1 and 0 nothing overflows. */
#define PEAK(name, target, type, bytes)                                                            \
    target static void name(const void *factors, void *ret)                                        \
    {                                                                                              \
        typedef type vector __attribute__((vector_size(bytes)));                                   \
        vector factor = (vector){0} + ((const type *)factors)[0];                                  \
        vector term = (vector){0} + ((const type *)factors)[1];                                    \
        vector x[CHAINS], sum = {0};                                                               \
                                                                                                   \
        UNROLL for (int i = 0; i < CHAINS; i++) x[i] = term + (type)i;                             \
        for (int step = 0; step < STEPS; step++) {                                                 \
            UNROLL for (int i = 0; i < CHAINS; i++) x[i] = x[i] * factor + term;                   \
        }                                                                                          \
        UNROLL for (int i = 0; i < CHAINS; i++) sum += x[i];                                       \
        memcpy(ret, &sum, sizeof(sum));                                                            \
    }

#define UNROLL _Pragma("GCC unroll 16")

#define PEAKS(suffix, target, bytes)                                                               \
    PEAK(f32_##suffix, target, float, bytes)                                                       \
    PEAK(f64_##suffix, target, double, bytes)                                                      \
    PEAK(u32_##suffix, target, uint32_t, bytes)                                                    \
    PEAK(u64_##suffix, target, uint64_t, bytes)

typedef void peak_fn(const void *factors, void *ret);

PEAKS(base, , 16)
#if defined(__x86_64__)
PEAKS(avx2, GM_TARGET_AVX2, 32)
PEAKS(avx512, GM_TARGET_AVX512, 64)
#endif

struct peak {
    peak_fn *run[GM_ISA_COUNT];
    const char *name;
    size_t element_bytes;
    enum gm_dtype dtypes[3]; /* types with this ceiling; the rest GM_DTYPE_NONE */
    union {
        float f32[2];
        double f64[2];
        uint32_t u32[2];
        uint64_t u64[2];
    } factors;
};

#if defined(__x86_64__)
#define EACH(type)                                                                                 \
    {                                                                                              \
        type##_base, type##_avx2, type##_avx512                                                    \
    }
#else
#define EACH(type)                                                                                 \
    {                                                                                              \
        type##_base                                                                                \
    }
#endif

static const struct peak peaks[] = {
    {EACH(f32), "fp32", 4, {GM_F16, GM_BF16, GM_F32}, {.f32 = {1, 0}}},
    {EACH(f64), "fp64", 8, {GM_F64}, {.f64 = {1, 0}}},
    {EACH(u32), "int32", 4, {GM_I32}, {.u32 = {1, 0}}},
    {EACH(u64), "int64", 8, {GM_I64}, {.u64 = {1, 0}}},
};

static const size_t vector_bytes[GM_ISA_COUNT] = {16, 32, 64};

struct job {
    const struct peak *peak;
    struct gm_exec *exec;
    atomic_uint_fast64_t nanoseconds; /* CPU time of all threads */
};

/* CPU time instead of wall time, so that other load on the machine does not count. */
static uint64_t thread_nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void peak_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    struct job *job = cls;
    uint64_t begin = thread_nanoseconds();

    (void)chunk;
    job->peak->run[job->exec->isa](&job->peak->factors, gm_pool_scratch(job->exec->pool, thread));
    atomic_fetch_add(&job->nanoseconds, thread_nanoseconds() - begin);
}

static double measure(const struct peak *peak, struct gm_exec *exec)
{
    struct job job = {.peak = peak, .exec = exec};
    unsigned threads = gm_pool_threads(exec->pool);
    uint64_t chunks = (uint64_t)PIECES * threads;
    double lanes = (double)(vector_bytes[exec->isa] / peak->element_bytes), best = 0;
    double operations = 2.0 * CHAINS * STEPS * lanes * (double)chunks;

    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&job.nanoseconds, 0);
        if (!gm_pool_run(exec->pool, chunks, exec->stop, peak_chunk, &job))
            break; /* stopped: the work is incomplete */
        double gflops = operations * threads / (double)atomic_load(&job.nanoseconds);
        best = gflops > best ? gflops : best;
    }
    return best;
}

void gm_ceiling_arithmetic(struct gm_exec *exec, struct gm_device_facts *facts)
{
    for (size_t i = 0; i < sizeof(peaks) / sizeof(peaks[0]); i++) {
        double gflops = measure(&peaks[i], exec);
        for (int j = 0; j < 3 && peaks[i].dtypes[j] != GM_DTYPE_NONE; j++) {
            facts->peak_gflops[peaks[i].dtypes[j]] = gflops;
            facts->peak_name[peaks[i].dtypes[j]] = peaks[i].name;
        }
    }
}
