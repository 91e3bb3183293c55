/*
 * block_times.c - waits for a launch whose blocks tell the host when they begin and end.
 *
 * The host polls its own memory. That takes no call of the driver, whose lock all streams share,
 * and is seen some microseconds before an event would be.
 */
#include "device.h"

#include "call.h"

/* A kernel that has failed tells nothing. So the driver is asked each 200 us, which is longer than
 * most small jobs take. */
#define ASK_NS 200000

cudaError_t gm_block_times_wait(const struct gm_cuda_stream *stream, unsigned blocks, double *us)
{
    int64_t begun_ns = gm_cuda_now_ns(), ask_ns = ASK_NS;
    uint64_t first = UINT64_MAX, last = 0;
    cudaError_t state = cudaErrorNotReady;

    for (unsigned i = 0; i < blocks; i++) {
        const struct gm_block_time *block = &stream->block_times[i];
        uint64_t end_ns;
        while ((end_ns = __atomic_load_n(&block->end_ns, __ATOMIC_ACQUIRE)) == 0) {
            int64_t waited_ns = gm_cuda_now_ns() - begun_ns;
            if (state == cudaSuccess)
                return cudaErrorUnknown; /* it has ended, and this block did not say so */
            gm_cuda_pause(waited_ns);
            if (waited_ns < ask_ns)
                continue;
            ask_ns = waited_ns + ASK_NS;
            state = GM_CALL(cudaStreamQuery, stream->handle);
            if (state != cudaSuccess && state != cudaErrorNotReady)
                return state;
            (void)cudaGetLastError(); /* "not ready" is no error of a later call */
        }
        first = block->begin_ns < first ? block->begin_ns : first;
        last = end_ns > last ? end_ns : last;
    }
    if (last > first) /* else the device's clock is too coarse to tell */
        *us = 1e-3 * (double)(last - first);
    return cudaSuccess;
}
