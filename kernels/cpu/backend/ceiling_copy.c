/*
 * ceiling_copy.c - measures the copy ceiling with the copy variants themselves.
 *
 * The buffers should be more than twice the cache. Processors with hundreds of MiB of cache, of
 * which a virtual machine has an unknown part, would need GiBs and seconds for that. So there is a
 * cap on the size, and one on the time for the first touch of the pages.
 */
#include "exec.h"
#include "facts.h"
#include "kernels/device_facts.h"
#include "kernels/variant.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

gm_kernel_fn gm_cpu_copy_memcpy, gm_cpu_copy_stream; /* kernels of variants.def */

#define CPU_COPY_BYTES_MIN ((uint64_t)16 << 20)
#define COPY_BYTES_MAX ((uint64_t)64 << 20)
#define MEMORY_SHARE 16 /* both buffers together: at most this fraction of the machine's memory */
#define TOUCH_BYTES ((uint64_t)4 << 20)
#define TOUCH_SECONDS 0.06
#define ROUNDS_MIN 6 /* the variants take turns */

/* A program with a sanitizer, which takes long to touch memory: each page has others behind it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct touch {
    char *data;
    uint64_t bytes; /* of a chunk */
};

static void touch_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct touch *touch = cls;

    (void)thread;
    memset(touch->data + chunk * touch->bytes, (int)chunk + 1, touch->bytes);
}

/* Touches the pages, within a time limit: the system maps pages at their first touch, which is slow
 * if they were never used. Returns how much of each half was touched. */
static uint64_t touch_halves(struct gm_exec *exec, char *data, uint64_t half)
{
    double begin = seconds();
    uint64_t done = 0;

    while (done + TOUCH_BYTES <= half && !atomic_load(exec->stop) &&
           (done < CPU_COPY_BYTES_MIN || seconds() - begin < TOUCH_SECONDS)) {
        for (int i = 0; i < 2; i++) {
            struct touch touch = {data + (uint64_t)i * half + done, TOUCH_BYTES / 4};
            gm_pool_run(exec->pool, 4, NULL, touch_chunk, &touch);
        }
        done += TOUCH_BYTES;
    }
    return done;
}

double gm_ceiling_copy(struct gm_exec *exec, uint64_t cache_bytes, uint64_t memory_bytes,
                       double copy_seconds)
{
    uint64_t half = 2 * cache_bytes;
    double best = 0;

    if (half < CPU_COPY_BYTES_MIN)
        half = CPU_COPY_BYTES_MIN;
    if (half > COPY_BYTES_MAX)
        half = COPY_BYTES_MAX;
    if (memory_bytes > 0 && 2 * half > memory_bytes / MEMORY_SHARE)
        half = memory_bytes / MEMORY_SHARE / 2;
    half = half / TOUCH_BYTES * TOUCH_BYTES;
    if (sanitized && half > TOUCH_BYTES)
        half = TOUCH_BYTES;
    if (half == 0)
        return 0;

    char *data = mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return 0;
    madvise(data, 2 * half, MADV_HUGEPAGE);
    uint64_t bytes = touch_halves(exec, data, half);

    struct gm_op op = {.kind = GM_OP_COPY, .operands = 1};
    op.operand[0] = (struct gm_matrix){GM_U8, GM_ROW_MAJOR, false, 1, 1, bytes, data};
    op.result = (struct gm_matrix){GM_U8, GM_ROW_MAJOR, false, 1, 1, bytes, data + half};
    double start = seconds();
    for (int round = 0; bytes > 0 && (round < ROUNDS_MIN || seconds() - start < copy_seconds);
         round++) {
        gm_kernel_fn *copy = round % 2 == 0 ? gm_cpu_copy_memcpy : gm_cpu_copy_stream;
        double begin = seconds();
        if (copy(&op, exec) != GM_OK)
            break;
        double gbs = 2e-9 * (double)bytes / (seconds() - begin);
        best = gbs > best ? gbs : best;
    }
    munmap(data, 2 * half);
    return best;
}
