/*
 * device.h - one GPU of the backend: its streams, and the events and times of what runs on them.
 *
 * The backend owns the devices, and a device owns its streams. One thread at a time uses a stream.
 */
#ifndef GM_KERNELS_CUDA_BACKEND_DEVICE_H
#define GM_KERNELS_CUDA_BACKEND_DEVICE_H

#include "cublas.h"
#include "exec.h"
#include "kernels/backend.h"

/* ---- timeline.c: CUDA events between the stages of a stream, which give each stage's time -------
 * Each event points to the time that counts what runs from this event to the next one. */

#define GM_TIMELINE_EVENTS 64u

struct gm_timeline {
    cudaStream_t stream;
    unsigned events;
    struct {
        cudaEvent_t handle;
        double *us; /* NULL: not counted */
    } event[GM_TIMELINE_EVENTS];
    /* The time that begins with the next launch. Its event is recorded only then, so that the work
     * of the host before it, such as loading the kernel's code, does not count. */
    double *awaited;
};

/* Opens a timeline on the current device. gm_timeline_close takes one that is all zero, or one
 * whose opening failed. */
cudaError_t gm_timeline_open(struct gm_timeline *timeline, cudaStream_t stream);
void gm_timeline_close(struct gm_timeline *timeline);

/* Forgets all events. Call it before the times that they point to are freed. */
void gm_timeline_reset(struct gm_timeline *timeline);

/* What runs from now on (record), or from the next launch on (await), counts as *us, in
 * microseconds. *us is negative until gm_timeline_wait has read a time. */
cudaError_t gm_timeline_record(struct gm_timeline *timeline, double *us);
void gm_timeline_await(struct gm_timeline *timeline, double *us);
/* What has run since this event does not count. */
void gm_timeline_discard(struct gm_timeline *timeline, unsigned event);
/* Records the event that gm_timeline_await asked for. Called before each launch. */
cudaError_t gm_timeline_launching(struct gm_timeline *timeline);

/* Sleeps until the stream has done all its work, then reads the times. */
cudaError_t gm_timeline_wait(struct gm_timeline *timeline);

/* ---- clock.c: the host's clock ----------------------------------------------------------------
 */

int64_t gm_cuda_now_ns(void); /* CLOCK_MONOTONIC */
/* For a loop that has waited for the device for so long: lets other threads have the core. */
void gm_cuda_pause(int64_t waited_ns);

/* ---- block_times.c: launches whose blocks tell the host when they begin and end -----------------
 */

struct gm_cuda_stream;

/* Waits for the last launch on the stream, of so many blocks, which fills stream->block_times. *us:
 * its time, from the first beginning to the last end; unchanged if that is too short to tell. */
cudaError_t gm_block_times_wait(const struct gm_cuda_stream *stream, unsigned blocks, double *us);

/* ---- device.c: a GPU and its streams ------------------------------------------------------- */

#define GM_CUDA_STREAMS_MAX 16u
#define GM_CUDA_NAME_MAX 128u

struct gm_cuda_device;

struct gm_cuda_stream {
    struct gm_cuda_device *device;
    cudaStream_t handle;
    struct gm_timeline timeline;
    struct gm_block_time *block_times; /* GM_BLOCK_TIMES_MAX, in pinned memory */
    void *blas;                        /* a cuBLAS handle on the stream; NULL where there is none */
    /* The last kernel launched. Its name is read at once: a lost device no longer tells it. */
    const void *kernel;
    char kernel_name[GM_CUDA_NAME_MAX];
};

struct gm_cuda_device {
    int ordinal; /* its number in CUDA */
    struct gm_gpu gpu;
    struct gm_device_facts facts;
    const struct gm_cublas *blas; /* NULL without cuBLAS */
    cudaMemPool_t pool;
    atomic_bool lost;
    cudaStream_t allocating, copying; /* resident.c's; any thread may put work on them */
    unsigned streams;
    struct gm_cuda_stream stream[GM_CUDA_STREAMS_MAX];
};

/* Opens a GPU with this number of streams, and measures it. GM_DEVICE_UNAVAILABLE, with the reason
 * in *err and nothing to close, where it cannot be used. blas is NULL, or outlives the device. */
enum gm_status gm_cuda_device_open(struct gm_cuda_device *ret, int ordinal, unsigned streams,
                                   const struct gm_cublas *blas, struct gm_error *err);
void gm_cuda_device_close(struct gm_cuda_device *device);

/* facts.c: reads the GPU's properties from CUDA. */
cudaError_t gm_cuda_read_facts(struct gm_cuda_device *device);

/* ceiling.c: measures the rate of the best copy in device memory, in 10^9 bytes a second, read and
 * written. Raises the rate in the device's facts, never lowers it. Leaves the facts alone where
 * there is no memory to measure with, or *stop is set. */
enum gm_status gm_cuda_measure_copy(struct gm_cuda_stream *stream, const atomic_bool *stop,
                                    struct gm_error *err);

/* ceiling.c: the same for the rates at which our copy kernel reads and writes the host's pinned
 * memory. */
enum gm_status gm_cuda_measure_link(struct gm_cuda_stream *stream, const atomic_bool *stop,
                                    struct gm_error *err);

/* run.c: gm_backend's run, on one stream. */
enum gm_status gm_cuda_run(struct gm_cuda_stream *stream, struct gm_task *task[], unsigned n);

/* graph.c: the same for a task whose operation is a graph. */
enum gm_status gm_cuda_run_graph(struct gm_cuda_stream *stream, struct gm_task *task);

/* resident.c: memory for matrices that stay, as gm_backend's device_get, device_put and device_copy
 * have it. */
enum gm_status gm_cuda_resident_get(struct gm_cuda_device *device, uint64_t bytes, void **ret,
                                    struct gm_error *err);
void gm_cuda_resident_put(struct gm_cuda_device *device, void *data);
enum gm_status gm_cuda_resident_copy(struct gm_cuda_device *device, void *to, const void *from,
                                     uint64_t bytes, bool to_device, struct gm_error *err);

/* ---- launch.c: what a kernel's host function launches with ------------------------------------
 */

struct gm_cuda_launch {
    struct gm_exec exec; /* the first member: kernels hand back a pointer to it */
    struct gm_cuda_stream *stream;
    const struct gm_variant *variant; /* NULL where none is run */
    double *prepare_us, *kernel_us;   /* the times that count its passes */
    int event; /* of the timeline, from which its first kernel is timed; negative: none yet */
    int64_t library_begun_ns, library_ns; /* the host's time in the calls of a library */
    struct gm_error *error;
};

/* Nothing is timed until prepare_us and kernel_us are set. */
struct gm_cuda_launch gm_cuda_launch_on(struct gm_cuda_stream *stream,
                                        const struct gm_variant *variant, struct gm_error *err);

/* Runs the launch's variant on op and, if it groups, on those after it. */
enum gm_status gm_cuda_run_variant(struct gm_cuda_launch *launch, const struct gm_op *op);

/* Names the last kernel launched: kernel "padded" of transpose (_Z16transpose_padded...). */
#define GM_CUDA_KERNEL_TEXT 256
const char *gm_cuda_kernel_text(const struct gm_cuda_stream *stream,
                                const struct gm_variant *variant, char buf[GM_CUDA_KERNEL_TEXT]);

/* ---- foreign.c: memory of other processes: gm_backend's import and release --------------------
 */

enum gm_status gm_cuda_import(const struct gm_cuda_device *device, struct gm_foreign *foreign,
                              struct gm_error *err);
void gm_cuda_release(const struct gm_cuda_device *device, struct gm_foreign *foreign);

/* head_start.cu: the stream does nothing for so long. The work that is enqueued meanwhile then
 * begins without the host. */
cudaError_t gm_cuda_head_start(cudaStream_t stream, double us, double ghz);

/* address_range.c: the size of the device's allocation that begins at this address. False where
 * none begins there, or the driver does not tell. */
bool gm_cuda_allocation_bytes(const void *data, uint64_t *ret);

/* ---- times.c: the times of a batch and of its repetitions --------------------------------------
 */

/* In microseconds; negative until measured. */
struct gm_cuda_times {
    double copy_in, rearrange, copy_out;
    unsigned runs;
    double *prepare, *kernel; /* of each run */
    double one[2];            /* their place when there is one run */
};

/* Opens times for this number of runs (0 counts as 1). False where there is no memory. */
bool gm_cuda_times_open(struct gm_cuda_times *ret, unsigned repeat);
void gm_cuda_times_close(struct gm_cuda_times *times);

/* The number of runs to launch before the next wait: some milliseconds of work. The last group had
 * `group` runs, ended with `run`, and its times have been read. */
unsigned gm_cuda_times_group(const struct gm_cuda_times *times, unsigned run, unsigned group);

/* The median and the least time of the runs, for the account. Sorts the runs. */
struct gm_times gm_cuda_times_of(struct gm_cuda_times *times);

#endif
