/*
 * backend.h - opens devices, takes buffers, and runs tasks (task.h) on streams.
 *
 * cpu, cuda and sim each have one table of functions on an opaque context.
 *
 * Threads: any thread may call any function except open and close at any time, with one rule: a
 * stream is used by one thread at a time. Nothing here logs, exits or keeps globals.
 */
#ifndef GM_KERNELS_BACKEND_H
#define GM_KERNELS_BACKEND_H

#include "device_facts.h"
#include "task.h"

/* Memory a request's matrices live in: pinned host memory on cuda, plain on cpu. 64-byte
 * aligned, and GM_TEXT_PADDING readable bytes beyond `bytes`. */
struct gm_buffer {
    void *data;
    uint64_t bytes;    /* as asked for */
    uint64_t capacity; /* as taken */
};

struct gm_buffer_limit; /* buffer_pool.h */

/* Memory that is another process's too. */
struct gm_foreign {
    const void *handle; /* of a device's memory: 64 bytes; NULL: the host's, mapped at data */
    unsigned device;    /* whose it is */
    void *data;         /* of a device's memory, import sets it: an address there */
    uint64_t bytes;
};

/* OpenBLAS has buffers for some 600 calls at once, and ends the program where there are more. */
#define GM_THREADS_MAX 512u

struct gm_backend_options {
    unsigned threads;      /* compute threads, THREADS_MAX at most; 0: one per core */
    unsigned streams;      /* 0: the backend's own choice */
    uint64_t memory_limit; /* of buffers, in use and kept for reuse; 0: the memory there is */
    /* Numbers of estimates, for the devices that are the model they were measured on (choose/);
     * NULL: the built-in ones alone. It outlives the backend. */
    const struct gm_profile *profile;
    /* Instead: a limit that several backends share, to be closed after them. May be NULL. */
    struct gm_buffer_limit *shared_limit;
};

struct gm_backend {
    const char *name; /* "cpu" */

    /* Opens all devices of this kind and measures their ceilings. GM_DEVICE_UNAVAILABLE, with
     * the reason, where there is none. */
    enum gm_status (*open)(const struct gm_backend_options *options, void **ret_context,
                           struct gm_error *err);
    /* All tasks done, all buffers put back. close(NULL) is fine. */
    void (*close)(void *context);

    /* Facts of device `index`, valid until close; NULL past the last. */
    const struct gm_device_facts *(*describe)(void *context, unsigned index);

    /* Bytes of a device's memory (facts.memory_bytes) that are in use now, by this process and by
     * others; 0: not known. NULL where it never is. */
    uint64_t (*memory_used)(void *context, unsigned device);

    /* What buffer_get(bytes) will take: count this against a limit. UINT64_MAX on overflow. */
    uint64_t (*buffer_cost)(void *context, uint64_t bytes);
    enum gm_status (*buffer_get)(void *context, uint64_t bytes, struct gm_buffer *ret,
                                 struct gm_error *err);
    /* Takes back a buffer and zeroes *buffer; an empty one is fine. */
    void (*buffer_put)(void *context, struct gm_buffer *buffer);

    /*
     * Makes foreign memory such that run() takes operands from it and puts results into it without
     * a copy on the host: pins the host's, opens a device's. Host code does not touch it.
     * GM_BAD_PARAMETER where the memory is not that, or is smaller. release gives it back, when
     * nothing runs on it. Both NULL where a backend's own code reads and writes operands.
     */
    enum gm_status (*import)(void *context, struct gm_foreign *foreign, struct gm_error *err);
    void (*release)(void *context, struct gm_foreign *foreign);

    /*
     * Memory of a device, for operands and results that stay there (on_device of struct gm_task).
     * GM_DEVICE_MEMORY where there is none left. Give it back when no task uses it. copy: to or
     * from it, and waits for that. All NULL where devices work on buffers of the host.
     */
    enum gm_status (*device_get)(void *context, unsigned device, uint64_t bytes, void **ret,
                                 struct gm_error *err);
    void (*device_put)(void *context, unsigned device, void *data);
    enum gm_status (*device_copy)(void *context, unsigned device, void *to, const void *from,
                                  uint64_t bytes, bool to_device, struct gm_error *err);

    /* Memory beyond operands and result that the task needs while it runs (rearranged operands);
     * it is taken from the same buffers. */
    uint64_t (*scratch_bytes)(void *context, const struct gm_op *op,
                              const struct gm_variant *variant);

    /*
     * Runs n tasks on a stream of a device, and returns when they are done, each with its status,
     * error and times set: the times of all. There are 1 to batch_max. Several have one variant; if
     * its tasks share launches, also one gm_group_key other than 0, at most gm_group_most of them,
     * and gm_group_bytes of at most batch_bytes together. One that fails does not affect the
     * others. Different streams overlap: while one copies, another computes. Returns GM_OK, or
     * GM_DEVICE_LOST when the device is beyond use; every task then has that status.
     *
     * It blocks on purpose: a thread per stream is all the asynchrony a caller needs, and no
     * callback from a driver's thread has to be reasoned about.
     */
    enum gm_status (*run)(void *context, unsigned device, unsigned stream, struct gm_task *task[],
                          unsigned n);

    /*
     * Measures the ceilings of a device again, on a stream as run() has it, and keeps the best of
     * each: what was measured while others used the machine was too little. Ends soon after *stop.
     * GM_OK, also where it was stopped or had no memory; GM_DEVICE_LOST as run. NULL where nothing
     * is measured.
     */
    enum gm_status (*measure)(void *context, unsigned device, unsigned stream,
                              const atomic_bool *stop, struct gm_error *err);

    /*
     * For a task that is smaller than handing it to another thread: runs it on the calling thread
     * alone, beside all streams and what runs there. Otherwise like run. NULL where a device takes
     * no task but by its streams.
     */
    enum gm_status (*run_here)(void *context, unsigned device, struct gm_task *task);
};

extern const struct gm_backend gm_backend_cpu, gm_backend_sim, gm_backend_cuda;

/* Memory that this process may use, in bytes: the machine's, or its cgroup's. */
uint64_t gm_host_memory(void);

/* The backends of this build, the preferred first; NULL past the end. */
const struct gm_backend *gm_backend_at(size_t index);

#endif
