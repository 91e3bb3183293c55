/*
 * limits.h - every bound of the daemon that is not an option, each with its reason, in one
 * list: the constants, the lines of --help and the "limits" of GET /v1/stats are made from it.
 */
#ifndef GM_SERVER_LIMITS_H
#define GM_SERVER_LIMITS_H

/* X(NAME, value, unit, reason) */
#define GM_LIMIT_LIST(X)                                                                           \
    X(DISCARD_BYTES_MAX, 1048576, "bytes",                                                         \
      "body still to come after an error that is read and dropped to keep the connection; more "   \
      "than this costs the client longer than connecting again")                                   \
    X(TEXT_INLINE_BYTES_MAX, 1048576, "bytes",                                                     \
      "text decoded or encoded on an event thread: about a millisecond; more goes to a worker, "   \
      "so that neighbours on the same thread do not wait")                                         \
    X(INLINE_FLOPS_MAX, 1048576, "operations",                                                     \
      "a CPU job run on the event thread, beside what runs and waits: about 20 microseconds, "     \
      "which is what handing it over costs")                                                       \
    X(INLINE_BYTES_MAX, 131072, "bytes", "the same, for the memory such a job moves")              \
    X(CONNECTIONS_MAX, 3072, "connections",                                                        \
      "each costs a descriptor and its pool: all of them together 48 MB beside the memory limit; " \
      "suspended requests count, so it is far above the queue")                                    \
    X(CONNECTION_POOL_BYTES, 16384, "bytes",                                                       \
      "request line, headers and read buffer of one connection: all of it once it has had a "      \
      "request; larger ones make uploads no faster")                                               \
    X(HEAD_BYTES_MAX, 12288, "bytes",                                                              \
      "request line, headers and trailers, with 64 bytes for each header, parameter, cookie and "  \
      "trailer, and cookies twice: what they take of the pool, whose rest is the reply's headers") \
    X(CONNECTION_IDLE_S, 60, "seconds",                                                            \
      "a connection without a whole request's head is closed after this long, whether nothing "    \
      "comes or too little")                                                                       \
    X(CLIENT_GRACE_S, 30, "seconds",                                                               \
      "how far a client may fall behind in sending a body or taking a reply")                      \
    X(CLIENT_RATE_MIN, 16384, "bytes/s",                                                           \
      "and the rate at which it would not: slower holds memory that others need")                  \
    X(CLIENT_MEMORY_S, 60, "seconds",                                                              \
      "that rate is higher for a request that holds much: it may hold all of --memory-limit for "  \
      "so long, half of it for twice as long, a tenth for ten times")                              \
    X(LINGER_MS, 1000, "ms",                                                                       \
      "what is still sent to a connection that was answered and closed early is read and dropped " \
      "for so long, so that the answer is not lost to a reset")                                    \
    X(LINGER_BYTES_MAX, 1073741824, "bytes",                                                       \
      "and so much of it at most: what a network of ten gigabits a second brings in that time")    \
    X(LINGERING_MAX, 64, "connections",                                                            \
      "that are kept for it at once, and no more than one in SPARE_PART of all: the oldest is "    \
      "closed for the next")                                                                       \
    X(MEMORY_KEPT_S, 60, "seconds",                                                                \
      "memory of earlier requests is kept for later ones, which get it faster than from the "      \
      "system; what nobody wanted for so long is given back")                                      \
    X(CONNECTIONS_MIN, 16, "connections",                                                          \
      "where there are no descriptors for so many gemmd does not start: a browser has six")        \
    X(OTHER_DESCRIPTORS, 32, "descriptors",                                                        \
      "kept from connections, beside those that are open at start: files that are read, the look " \
      "at itself, what drivers open while kernels run")                                            \
    X(SPARE_PART, 16, "parts",                                                                     \
      "one in so many connections is kept free for newcomers: beyond, each that comes ends the "   \
      "one whose client is furthest behind")                                                       \
    X(CROWDED_S, 1, "seconds", "and that is behind by no less than this: clients at work stay")    \
    X(INFER_HEAD_BYTES_MAX, 1048576, "bytes",                                                      \
      "JSON before binary tensors: it is looked through on an event thread, in less than a "       \
      "millisecond, since it says where the bytes behind it go")                                   \
    X(DOCUMENT_BYTES_MAX, 65536, "bytes",                                                          \
      "a body that describes something, as a region of shared memory: no description is as long")  \
    X(REGIONS_MAX, 256, "regions",                                                                 \
      "of shared memory, of all clients: each has a descriptor for as long as it is registered")   \
    X(REGIONS_CLIENT_MAX, 64, "regions", "and of one client: a fourth of them")                    \
    X(REGION_MEMORY_PART, 2, "parts",                                                              \
      "regions of one client may hold one part in so many of --memory-limit, so that its "         \
      "requests "                                                                                  \
      "find some too")                                                                             \
    X(REGION_DIRECT_BYTES_MIN, 131072, "bytes",                                                    \
      "a part of a region that a GPU copies by itself: drivers copy less than half of that by "    \
      "code on the host, which a client that shrinks its memory would end")                        \
    X(QUERY_PARAMETERS_MAX, 32, "parameters", "twice what any operation knows")                    \
    X(PARAMETER_BYTES_MAX, 128, "bytes",                                                           \
      "value of a parameter, wherever it stands: no name or shape is as long, and a number with "  \
      "more digits says nothing more")                                                             \
    X(REPEAT_MAX, 1000, "runs", "enough for a steady median; repeated jobs hold the device alone") \
    X(REPEAT_COST_S, 30, "seconds",                                                                \
      "what repeated runs may take together at the device's measured ceilings; real kernels take " \
      "longer")                                                                                    \
    X(SIM_FLOPS_MAX, 1073741824, "operations",                                                     \
      "arithmetic of a run on a simulated device, where each memory access is a function call: "   \
      "seconds to minutes of all cores; /v1/explain traces a sample of any size")                  \
    X(SIM_BYTES_MAX, 134217728, "bytes", "the same, for the memory that such a run must move")     \
    X(EXPLAIN_GIB_MAX, 1024, "GiB",                                                                \
      "operands and result of what /v1/explain traces: addresses, of which only those that the "   \
      "sample touches become memory")                                                              \
    X(EXPLAIN_MEMORY_BYTES, 67108864, "bytes",                                                     \
      "what the sample of one trace may hold of the memory that it touches; more is given back "   \
      "as it goes")                                                                                \
    X(EXPLAIN_CPU_MS, 2000, "ms",                                                                  \
      "the host's time that one trace may take: the last resort, since the steps that it follows " \
      "are counted and end it before, at the same place everywhere")                               \
    X(EXPLAIN_DRAWN_MAX, 16, "drawings",                                                           \
      "sites drawn in one SVG: more than a page or two is not looked at")                          \
    X(COMPARE_REPEAT, 5, "runs", "how often a comparison times each kernel if nothing is said")    \
    X(COMPARE_TIMING_MS, 1000, "ms",                                                               \
      "what those runs of a kernel may take together; a slower one is timed less often")           \
    X(COMPARE_RUN_S, 10, "seconds",                                                                \
      "what one kernel of a comparison may hold the device for: a slower one is stopped")          \
    X(REFERENCE_FLOPS_MAX, 268435456, "operations",                                                \
      "a product that is compared with plain loops: less than a second on a worker, which cannot " \
      "be interrupted; a larger one is compared with another kernel's")                            \
    X(REFERENCE_ELEMENTS_MAX, 16777216, "elements", "the same, for an operand and for the result") \
    X(TIMEOUT_MS_MAX, 3600000, "ms", "an hour: longer work does not belong into one HTTP request") \
    X(QUEUE_LIMIT_MAX, 2048, "jobs", "leaves connections for those who ask how it goes")           \
    X(RETRY_AFTER_S_MAX, 60, "seconds", "an estimate beyond a minute is a guess")                  \
    X(MEASURE_IDLE_S, 5, "seconds",                                                                \
      "a device without a job for this long has its ceilings measured again: what it reached at "  \
      "the start of a busy machine was too little; a job that comes stops it at once")             \
    X(MEASURE_AGAIN_S, 600, "seconds", "and not sooner than this: it takes a tenth of a second")   \
    X(WATCH_MS, 50, "ms", "how often queued jobs are checked for clients that have gone")          \
    X(SECOND_SIGNAL_MS, 1000, "ms",                                                                \
      "a second SIGTERM or SIGINT later than this ends gemmd at once; sooner it is the first one " \
      "again, as timeout(1) and service managers send it")                                         \
    X(PROBE_MS, 2000, "ms",                                                                        \
      "what gemmd --probe waits for an answer: a healthy daemon takes a millisecond")              \
    X(EVENT_THREADS_MAX, 8, "threads",                                                             \
      "event threads move bytes, which eight do for any network, and run small jobs")              \
    X(CODEC_THREADS_MAX, 4, "threads", "workers for large texts, beside the compute threads")

enum gm_limit {
#define X(name, value, unit, reason) GM_##name = value,
    GM_LIMIT_LIST(X)
#undef X
};

#endif
