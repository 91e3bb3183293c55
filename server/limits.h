/*
 * limits.h - the one list of the daemon's fixed limits, each with its reason.
 *
 * It makes the constants, the lines of --help, and "limits" of GET /v1/stats.
 */
#ifndef GM_SERVER_LIMITS_H
#define GM_SERVER_LIMITS_H

/* X(NAME, value, unit, reason) */
#define GM_LIMIT_LIST(X)                                                                           \
    X(DISCARD_BYTES_MAX, 1048576, "bytes",                                                         \
      "rest of a refused body that is read and dropped to keep the connection; reading more "      \
      "costs the client longer than reconnecting")                                                 \
    X(TEXT_INLINE_BYTES_MAX, 1048576, "bytes",                                                     \
      "text decoded or encoded on an event thread: about a millisecond; a worker takes larger "    \
      "ones, so that the thread's other connections do not wait")                                  \
    X(INLINE_FLOPS_MAX, 1048576, "operations",                                                     \
      "work of a CPU job that runs on the event thread at once, without the queue: about 20 "      \
      "microseconds, as long as handing it to another thread takes")                               \
    X(INLINE_BYTES_MAX, 131072, "bytes", "memory that such a job moves, for the same reason")      \
    X(INLINE_US_MAX, 100, "us",                                                                    \
      "expected time of a job that an event thread runs on an idle GPU; hand-overs take a tenth")  \
    X(CONNECTIONS_MAX, 3072, "connections",                                                        \
      "each connection takes a descriptor and a pool: 96 MB in all, beside the memory limit; "     \
      "requests that wait for a device count too")                                                 \
    X(CONNECTION_POOL_BYTES, 32768, "bytes",                                                       \
      "request line, headers and read buffer of one connection, kept from its first request on; "  \
      "with half of it, a body is read in twice as many calls, and requests of 0.5 to 8 MB are a " \
      "tenth slower")                                                                              \
    X(RECEIVE_BYTES_MAX, 262144, "bytes",                                                          \
      "of a body that are read at once to where its operands are: a tenth of a millisecond")       \
    X(DIRECT_SOCKETS_MAX, 8192, "descriptors",                                                     \
      "sockets whose bodies are read so, more than gemmd opens; others go through the pool")       \
    X(HEAD_BYTES_MAX, 12288, "bytes",                                                              \
      "request line, headers and trailers, plus 64 bytes for each header, parameter, cookie and "  \
      "trailer, cookies twice: their part of the pool; the rest is the reply's")                   \
    X(CONNECTION_IDLE_S, 60, "seconds",                                                            \
      "a connection is closed if no complete request head arrives in this time, whether it is "    \
      "idle or slow")                                                                              \
    X(FIRST_REQUEST_S, 1, "seconds",                                                               \
      "the end waits so long for the first request of a new connection, which may be on its way: " \
      "it is answered 503")                                                                        \
    X(CLIENT_GRACE_S, 30, "seconds",                                                               \
      "how far a client may fall behind the minimum rate while it sends a body or reads a reply")  \
    X(CLIENT_RATE_MIN, 16384, "bytes/s",                                                           \
      "minimum rate of a client; slower ones hold memory that others need")                        \
    X(CLIENT_MEMORY_S, 60, "seconds",                                                              \
      "minimum rate of a request that holds much memory: it may hold all of --memory-limit for "   \
      "this long, half of it for twice as long")                                                   \
    X(LINGER_MS, 1000, "ms",                                                                       \
      "after an early answer, input is read and dropped for this long before the close, so that "  \
      "a reset does not destroy the answer")                                                       \
    X(LINGER_BYTES_MAX, 1073741824, "bytes",                                                       \
      "input that is dropped in that time: what a network of 10 Gbit/s delivers in it")            \
    X(LINGERING_MAX, 64, "connections",                                                            \
      "lingering connections at a time, and at most one in SPARE_PART of all connections; a new "  \
      "one closes the oldest")                                                                     \
    X(MEMORY_KEPT_S, 60, "seconds",                                                                \
      "buffers are kept for reuse, which is faster than the system's allocator; one that stays "   \
      "unused for this long is returned to the system")                                            \
    X(LISTENS_MAX, 8, "addresses", "places to listen: --listen may be given so many times")        \
    X(CONFIG_BYTES_MAX, 65536, "bytes", "configuration file: far more than all options take")      \
    X(TLS_RESUME_S, 3600, "seconds",                                                               \
      "a TLS session may be resumed for this long: what its ticket's key protects under TLS 1.2 "  \
      "is as old at most")                                                                         \
    X(TLS_FILE_BYTES_MAX, 1048576, "bytes",                                                        \
      "file of certificates or of a key: a bundle of all public authorities is a fourth of it")    \
    X(CONNECTIONS_MIN, 16, "connections",                                                          \
      "gemmd does not start with descriptors for fewer: a browser alone opens six")                \
    X(OTHER_DESCRIPTORS, 32, "descriptors",                                                        \
      "kept from connections, beside those open at start: for files, the daemon's own checks, "    \
      "and drivers while kernels run")                                                             \
    X(SPARE_PART, 16, "parts",                                                                     \
      "one in this many connections is kept free; when fewer are free, each new one closes the "   \
      "one whose client is furthest behind")                                                       \
    X(CROWDED_S, 1, "seconds",                                                                     \
      "only connections whose client is behind by at least this much are closed for a new one: "   \
      "clients at work stay")                                                                      \
    X(INFER_HEAD_BYTES_MAX, 1048576, "bytes",                                                      \
      "JSON before binary tensors; an event thread scans it in less than a millisecond, because "  \
      "it says where the bytes after it go")                                                       \
    X(DOCUMENT_BYTES_MAX, 65536, "bytes",                                                          \
      "body that describes something, such as a region of shared memory; none is longer")          \
    X(REGIONS_MAX, 256, "regions",                                                                 \
      "registered regions of shared memory, of all clients; each takes a descriptor")              \
    X(REGIONS_CLIENT_MAX, 64, "regions", "registered regions of one client: a fourth of all")      \
    X(REGION_MEMORY_PART, 2, "parts",                                                              \
      "regions of one client may hold one part in this many of --memory-limit; the rest is for "   \
      "its requests")                                                                              \
    X(REGION_DIRECT_BYTES_MIN, 131072, "bytes",                                                    \
      "least part of a region that a GPU copies directly; drivers copy parts of less than half "   \
      "of that by host code, which a client that shrinks its object would crash")                  \
    X(MATRICES_MAX, 262144, "matrices",                                                            \
      "named matrices of all owners; each takes half a kilobyte beside its elements")              \
    X(MATRICES_OWNER_MAX, 131072, "matrices", "named matrices of one owner: half of all")          \
    X(MATRIX_OWNER_PART, 2, "parts",                                                               \
      "one owner may hold one part in this many of --matrix-memory; the rest is for others")       \
    X(MATRIX_DEVICE_PART, 2, "parts",                                                              \
      "named matrices may hold one part in this many of a device's memory; the rest is for "       \
      "requests")                                                                                  \
    X(MATRIX_TTL_S_MAX, 31536000, "seconds", "a year: longer is for ever")                         \
    X(MATRICES_LISTED_MAX, 1000, "matrices",                                                       \
      "named matrices in one page of a list, about 300 bytes each; the page says where to go on")  \
    X(EVAL_CHARACTERS_MAX, 4096, "characters",                                                     \
      "text of an expression: far more than anybody reads, and read in microseconds")              \
    X(EVAL_DEPTH_MAX, 64, "levels",                                                                \
      "parentheses, calls, signs and powers within each other: the parser's stack")                \
    X(EVAL_NODES_MAX, 256, "nodes", "operations, names and numbers of an expression")              \
    X(EVAL_VALUES_MAX, 640, "values",                                                              \
      "what an expression computes, with the steps of powers and conversions")                     \
    X(EVAL_SLICES_MAX, 64, "indices", "indices and ranges in brackets, in all of an expression")   \
    X(EVAL_OPERANDS_MAX, 16, "operands", "names in an expression; a program reads as many")        \
    X(EVAL_STEPS_MAX, 24, "steps",                                                                 \
      "kernels that one expression runs, each with its line in the account, which is a header")    \
    X(EVAL_MEMORY_PART, 2, "parts",                                                                \
      "what an expression stores between its steps may take one part in this many of the memory "  \
      "of a GPU, or of --memory-limit; the rest is for operands, results and other requests")      \
    X(QUERY_PARAMETERS_MAX, 32, "parameters", "twice as many as any operation has")                \
    X(PARAMETER_BYTES_MAX, 132, "bytes",                                                           \
      "value of a parameter, in the URL or the body: no name or shape is longer (ref:OWNER.NAME "  \
      "is the longest), and more digits make no number more exact")                                \
    X(REPEAT_MAX, 1000, "runs", "enough for a stable median; repeated jobs hold the device alone") \
    X(REPEAT_COST_S, 30, "seconds",                                                                \
      "estimated time of all repeated runs, or of an expression, at the device's measured "        \
      "ceilings; real kernels take longer")                                                        \
    X(SIM_FLOPS_MAX, 1073741824, "operations",                                                     \
      "arithmetic of a run on a simulated device, where each memory access is a function call: "   \
      "seconds to minutes of all cores; /v1/explain traces samples instead")                       \
    X(SIM_BYTES_MAX, 134217728, "bytes", "memory that such a run moves, for the same reason")      \
    X(EXPLAIN_GIB_MAX, 1024, "GiB",                                                                \
      "operands and result of a trace by /v1/explain: these are addresses, and only what the "     \
      "sample touches takes memory")                                                               \
    X(EXPLAIN_MEMORY_BYTES, 67108864, "bytes",                                                     \
      "memory that the sample of one trace holds at a time; the rest is freed as it goes")         \
    X(EXPLAIN_CPU_MS, 2000, "ms",                                                                  \
      "host CPU time of one trace, as a last resort: the limit on its steps ends it earlier, at "  \
      "the same point on every machine")                                                           \
    X(EXPLAIN_DRAWN_MAX, 16, "drawings",                                                           \
      "access sites drawn in one SVG: nobody looks at more than a page or two")                    \
    X(COMPARE_REPEAT, 5, "runs", "timed runs of a kernel in a comparison if repeat is not given")  \
    X(COMPARE_TIMING_MS, 1000, "ms",                                                               \
      "total time of these runs for one kernel; slow kernels are timed less often")                \
    X(COMPARE_RUN_S, 10, "seconds",                                                                \
      "time that one kernel of a comparison may hold the device; a slower one is stopped")         \
    X(REFERENCE_FLOPS_MAX, 268435456, "operations",                                                \
      "largest product that is checked with plain loops: under a second on a worker, which "       \
      "cannot be interrupted; larger ones are checked against another kernel")                     \
    X(REFERENCE_ELEMENTS_MAX, 16777216, "elements",                                                \
      "elements of each operand and of the result of such a check, for the same reason")           \
    X(TIMEOUT_MS_MAX, 3600000, "ms", "an hour: longer work does not belong in one HTTP request")   \
    X(QUEUE_LIMIT_MAX, 65536, "jobs",                                                              \
      "each waiting request takes 10 KB, an expression 36 KB; connections end a queue earlier")    \
    X(RETRY_AFTER_S_MAX, 60, "seconds", "an estimate beyond a minute is a guess")                  \
    X(RECENT_ACCOUNTS_MAX, 1000, "accounts",                                                       \
      "accounts of the last requests, which /v1/requests shows: 1.6 MB, and more than a screen "   \
      "can draw")                                                                                  \
    X(KEYS_MAX, 65536, "keys", "lines of --keys: a few hundred bytes each, and seconds to read")   \
    X(KEYS_FILE_BYTES_MAX, 33554432, "bytes", "of that file: such lines at their longest")         \
    X(QUOTA_NAMED_MAX, 100, "keys",                                                                \
      "keys with counters of their own in /metrics, so that its length is bounded; further ones "  \
      "are counted together as `other`")                                                           \
    X(QUOTA_ADDRESSES_MAX, 4096, "addresses",                                                      \
      "addresses whose quotas are remembered without --keys; the one unseen for longest goes")     \
    X(QUOTA_DEBT_S, 86400, "seconds",                                                              \
      "longest time for which a client is refused for what one request took; quotas are no ban")   \
    X(MEASURE_IDLE_S, 5, "seconds",                                                                \
      "ceilings are measured again after so much idle time, as the first measurement is too low "  \
      "if the machine was busy; a new job stops it")                                               \
    X(MEASURE_AGAIN_S, 600, "seconds",                                                             \
      "time between two such measurements, each of which takes a tenth of a second")               \
    X(AWAKE_US, 1000, "us",                                                                        \
      "how long one thread of an idle GPU stays awake for the next job; waking it takes 50 us, "   \
      "longer than many jobs, and a client's next request comes within this time")                 \
    X(AWAKE_BUSY_US, 5000, "us",                                                                   \
      "the same for one event thread while requests wait for their jobs; beyond it, 50 us are "    \
      "little of what they have waited")                                                           \
    X(WATCH_MS, 50, "ms", "how often the clients of queued jobs are checked for disconnects")      \
    X(SECOND_SIGNAL_MS, 1000, "ms",                                                                \
      "a second SIGTERM or SIGINT after this time ends gemmd at once; an earlier one is a copy "   \
      "of the first, as timeout(1) and service managers send it")                                  \
    X(TUNE_S, 480, "s",                                                                            \
      "how long gemmd --tune measures; the fit that follows takes seconds: 10 minutes in all")     \
    X(TUNE_OPERATIONS, 2000, "operations",                                                         \
      "what gemmd --tune measures in that time, if the GPU is a fast one; of 400, choices among "  \
      "others were worse")                                                                         \
    X(PROBE_MS, 2000, "ms",                                                                        \
      "how long gemmd --probe waits for an answer; a healthy daemon takes a millisecond")          \
    X(EVENT_THREADS_MAX, 16, "threads",                                                            \
      "event threads move bytes and run small jobs: one for two cores, and one more; more than "   \
      "30 cores were never measured")                                                              \
    X(CODEC_THREADS_MAX, 4, "threads",                                                             \
      "workers that decode and encode large texts, beside the compute threads")

enum gm_limit {
#define X(name, value, unit, reason) GM_##name = value,
    GM_LIMIT_LIST(X)
#undef X
};

#endif
