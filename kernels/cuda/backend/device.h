/*
 * device.h - one GPU as the backend knows it: its streams, events, launches and times.
 *
 * The backend owns its devices, a device its streams; a stream is used by one thread at a time.
 */
#ifndef GM_KERNELS_CUDA_BACKEND_DEVICE_H
#define GM_KERNELS_CUDA_BACKEND_DEVICE_H

#include "cublas.h"
#include "exec.h"
#include "kernels/backend.h"

/* ---- timeline.c: events on a stream, between its stages, from which their times are read --------
 * An event says to whose time that counts which goes on from there to the next event. */

#define GM_TIMELINE_EVENTS 64u

struct gm_timeline {
    cudaStream_t stream;
    unsigned events;
    struct {
        cudaEvent_t handle;
        double *us; /* NULL: nobody's */
    } event[GM_TIMELINE_EVENTS];
    /* What the next launch begins: the event waits for it, so that what the host does before, such
     * as loading the kernel's code, is not taken for the kernel's time. */
    double *awaited;
};

/* On the current device. gm_timeline_close of one that is all zero, or half open, is fine. */
cudaError_t gm_timeline_open(struct gm_timeline *timeline, cudaStream_t stream);
void gm_timeline_close(struct gm_timeline *timeline);

/* Forgets all events, which point to what may be gone. */
void gm_timeline_reset(struct gm_timeline *timeline);

/* What goes on from now, or from the next launch, counts as *us, in microseconds, which is
 * negative until some was read. */
cudaError_t gm_timeline_record(struct gm_timeline *timeline, double *us);
void gm_timeline_await(struct gm_timeline *timeline, double *us);
/* Called before each launch. */
cudaError_t gm_timeline_launching(struct gm_timeline *timeline);

/* Waits, asleep, for all that is on the stream, and reads the times. */
cudaError_t gm_timeline_wait(struct gm_timeline *timeline);

/* ---- device.c: a GPU and its streams, with what a task on them needs ----------------------------
 */

#define GM_CUDA_STREAMS 3u /* one copies in, one computes, one copies out */
#define GM_CUDA_STREAMS_MAX 16u
#define GM_CUDA_BATCH_MAX 48u /* problems of a launch: GM_GROUP_MAX of kernels/cuda/lib/group.h */
/* Some 80 us of a PCIe 5.0 link with 16 lanes: the longest that a small job waits for others. */
#define GM_CUDA_BATCH_BYTES ((uint64_t)4 << 20)
#define GM_CUDA_NAME_MAX 128u

struct gm_cuda_device;

struct gm_cuda_stream {
    struct gm_cuda_device *device;
    cudaStream_t handle;
    struct gm_timeline timeline;
    void *blas; /* a cuBLAS handle on the stream; NULL where there is none */
    /* The kernel launched last, and its name, asked for while the device still answers. */
    const void *kernel;
    char kernel_name[GM_CUDA_NAME_MAX];
};

struct gm_cuda_device {
    int ordinal; /* CUDA's number of it */
    struct gm_gpu gpu;
    struct gm_device_facts facts;
    const struct gm_cublas *blas; /* NULL where the library is not here */
    cudaMemPool_t pool;
    atomic_bool lost;
    unsigned streams;
    struct gm_cuda_stream stream[GM_CUDA_STREAMS_MAX];
};

/* Opens a GPU with so many streams, and measures it. GM_DEVICE_UNAVAILABLE and why, with nothing to
 * close, where it cannot be used. blas may be NULL, else outlives the device. */
enum gm_status gm_cuda_device_open(struct gm_cuda_device *ret, int ordinal, unsigned streams,
                                   const struct gm_cublas *blas, struct gm_error *err);
void gm_cuda_device_close(struct gm_cuda_device *device);

/* facts.c: what CUDA says of a GPU. */
cudaError_t gm_cuda_read_facts(struct gm_cuda_device *device);

/* ceiling.c: the best copy that the device can do, on the device, in 10^9 bytes read and written a
 * second, into its facts, where that is more than they have; nothing where there is no memory to
 * measure with, or it is stopped. */
enum gm_status gm_cuda_measure_copy(struct gm_cuda_stream *stream, const atomic_bool *stop,
                                    struct gm_error *err);

/* ceiling.c: the rates at which our copy kernel reads and writes pinned memory of the host, into
 * the device's facts likewise. */
enum gm_status gm_cuda_measure_link(struct gm_cuda_stream *stream, const atomic_bool *stop,
                                    struct gm_error *err);

/* run.c: what gm_backend's run does, on one stream. */
enum gm_status gm_cuda_run(struct gm_cuda_stream *stream, struct gm_task *task[], unsigned n);

/* ---- launch.c: what a kernel's host function runs with: its launches' outcome, its passes
 * --------
 */

struct gm_cuda_launch {
    struct gm_exec exec; /* the first member: kernels hand back a pointer to it */
    struct gm_cuda_stream *stream;
    const struct gm_variant *variant; /* NULL where none is run */
    double *prepare_us, *kernel_us;   /* what its passes count as */
    struct gm_error *error;
};

/* Nothing is timed until prepare_us and kernel_us are set. */
struct gm_cuda_launch gm_cuda_launch_on(struct gm_cuda_stream *stream,
                                        const struct gm_variant *variant, struct gm_error *err);

/* "kernel \"padded\" of transpose (_Z16transpose_padded...)": what the stream launched last. */
#define GM_CUDA_KERNEL_TEXT 256
const char *gm_cuda_kernel_text(const struct gm_cuda_stream *stream,
                                const struct gm_variant *variant, char buf[GM_CUDA_KERNEL_TEXT]);

/* ---- foreign.c: memory of other processes, as gm_backend's import and release have it -----------
 */

enum gm_status gm_cuda_import(const struct gm_cuda_device *device, struct gm_foreign *foreign,
                              struct gm_error *err);
void gm_cuda_release(const struct gm_cuda_device *device, struct gm_foreign *foreign);

/* address_range.c: the size of the allocation that begins at this address of a device; false where
 * the driver does not say, or none begins there. */
bool gm_cuda_allocation_bytes(const void *data, uint64_t *ret);

/* ---- times.c: the times of a batch, and what is made of repetitions
 * ------------------------------
 */

/* In microseconds; negative until measured. */
struct gm_cuda_times {
    double copy_in, rearrange, copy_out;
    unsigned runs;
    double *prepare, *kernel; /* of each run: the variant's passes */
    double one[2];            /* where they lie if there is one run */
};

/* Room for so many repetitions (0 counts as 1); false where there is no memory. */
bool gm_cuda_times_open(struct gm_cuda_times *ret, unsigned repeat);
void gm_cuda_times_close(struct gm_cuda_times *times);

/* How many runs to put on the stream before it is waited for, when the last group of that many has
 * just been read and ended with `run`: some milliseconds of work. */
unsigned gm_cuda_times_group(const struct gm_cuda_times *times, unsigned run, unsigned group);

/* The medians and the least, as the account wants them. Sorts the runs. */
struct gm_times gm_cuda_times_of(struct gm_cuda_times *times);

#endif
