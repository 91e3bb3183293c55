/* dependent.cu - launches that may begin while the one before them still runs, and touch what is
 * its own. The first half of the result is what most first launches write. */
#include "tests/sim/launch.h"

/* The host function: the first kernel, then the second, which depends on it. */
#define LAUNCH_TWO(name, first)                                                                    \
    extern "C" enum gm_status GM_ENTRY(name)(const struct gm_op *op, struct gm_exec *exec)         \
    {                                                                                              \
        unsigned half = (unsigned)gm_matrix_elements(&op->result) / 2;                             \
        enum gm_status status =                                                                    \
            gm_launch(exec, first, 1, half, 0, gm_in<int>(op, 0), gm_out<int>(op), half);          \
        return status == GM_OK ? gm_launch_dependent(exec, true, name, 1, half, 0,                 \
                                                     gm_in<int>(op, 0), gm_out<int>(op), half)     \
                               : status;                                                           \
    }

static __global__ void dependent_first(const int *in, int *out, unsigned)
{
    gm_trigger_dependent();
    out[threadIdx.x] = in[threadIdx.x] + 1;
}
static __global__ void dependent_mover(const int *, int *out, unsigned half)
{
    out[half + threadIdx.x] = out[threadIdx.x];
}

static __global__ void read_unwaited(const int *, int *out, unsigned half)
{
    int x = out[threadIdx.x]; /* here: read_unwaited */
    gm_wait_for_primary();
    out[half + threadIdx.x] = x;
}
LAUNCH_TWO(read_unwaited, dependent_first)

static __global__ void write_unwaited(const int *in, int *out, unsigned)
{
    out[threadIdx.x] = in[threadIdx.x]; /* here: write_unwaited */
    gm_wait_for_primary();
}
LAUNCH_TWO(write_unwaited, dependent_first)

static __global__ void overwrite_unwaited(const int *in, int *out, unsigned)
{
    out[threadIdx.x] = in[threadIdx.x]; /* here: overwrite_unwaited */
    gm_wait_for_primary();
}
LAUNCH_TWO(overwrite_unwaited, dependent_mover)

static __global__ void end_unwaited(const int *in, int *out, unsigned half)
{ /* here: end_unwaited */
    if (threadIdx.x == 5)
        return;
    out[half + threadIdx.x] = in[threadIdx.x];
    gm_wait_for_primary();
}
LAUNCH_TWO(end_unwaited, dependent_first)

static __global__ void trigger_unwaited(const int *in, int *out, unsigned half)
{
    out[half + threadIdx.x] = in[threadIdx.x];
    gm_trigger_dependent(); /* here: trigger_unwaited */
    gm_wait_for_primary();
}
LAUNCH_TWO(trigger_unwaited, dependent_first)

/* Its own half before it waits, the other's after. */
static __global__ void sound_dependent(const int *in, int *out, unsigned half)
{
    out[half + threadIdx.x] = in[half + threadIdx.x];
    gm_wait_for_primary();
    out[half + threadIdx.x] += out[threadIdx.x];
    gm_trigger_dependent();
}
LAUNCH_TWO(sound_dependent, dependent_first)
