/*
 * metrics.c - GET /metrics, in Prometheus' text format 0.0.4.
 *
 * It uses no library: the C client library is unmaintained, and the format is a page long. The
 * figures come from stats.h's lists and from the parts that keep them.
 *
 * The number of series is bounded: labels are routes, HTTP statuses, errors, operations, stages,
 * devices and reasons, each from a list of ours, and names of at most QUOTA_NAMED_MAX keys, which
 * the operator wrote. No label is what a client sent.
 */
#include "kernels/buffer_pool.h"
#include "server/request/request.h"
#include "server/text.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A device at one moment. */
struct device {
    const char *name;
    struct gm_sched_load load;
    double memory, memory_used; /* NAN: not known */
};

struct process {
    double cpu_s, virtual_bytes, resident_bytes, open_fds, max_fds; /* NAN: not known */
};

/* A snapshot of the sources: each is read once, so that the figures are consistent. */
struct view {
    FILE *out;
    struct gm_server *server;
    const struct gm_stats *stats;
    struct gm_stats_shard sums;
    uint64_t requests;
    struct gm_matrices_usage kept;
    unsigned devices;
    struct device device[GM_DEVICES_MAX];
    struct process process;
    /* The metric that is being written. Its first sample writes its head, so a metric without
     * samples is omitted. */
    const char *name, *type, *help;
    bool begun;
};

/*
 * THE list of metrics, in addition to the counters of stats.h: name, type, help, and source. ONE
 * has one sample: an expression of the view `v`. EACH has one sample per device: an expression of
 * `v` and the device `d`. NAN means no sample. MANY has the samples that a function writes.
 */
#define METRIC_LIST(ONE, EACH, MANY)                                                               \
    MANY("gemmd_http_requests_total", "counter", "Requests answered, by route and status.",        \
         write_answered)                                                                           \
    MANY("gemmd_requests_rejected_total", "counter", "Requests that failed, by error code.",       \
         write_failed)                                                                             \
    MANY("gemmd_connections_closed_total", "counter",                                              \
         "Connections that gemmd closed before their client did, by the reason.", write_closed)    \
    MANY("gemmd_key_requests_total", "counter", "Requests let in, by the name of their key.",      \
         write_key_requests)                                                                       \
    MANY("gemmd_key_body_bytes_total", "counter", "Bytes of their bodies and their replies'.",     \
         write_key_bytes)                                                                          \
    MANY("gemmd_key_device_seconds_total", "counter", "Time of devices that they had.",            \
         write_key_device)                                                                         \
    MANY("gemmd_quota_refused_total", "counter",                                                   \
         "Requests refused by a quota, by the name of their key and the quota.", write_refused)    \
    MANY("gemmd_request_duration_seconds", "histogram",                                            \
         "From the first look at a request to its reply, for those with a result.", write_totals)  \
    MANY("gemmd_stage_duration_seconds", "histogram", "The parts of that time, by stage.",         \
         write_stages)                                                                             \
    ONE("gemmd_requests_in_flight", "gauge", "Requests being served.", v->requests)                \
    ONE("gemmd_connections", "gauge", "Connections that are open.",                                \
        gm_connections_count(&v->server->connections))                                             \
    ONE("gemmd_memory_used_bytes", "gauge", "Memory reserved by the requests being served.",       \
        atomic_load(&v->server->memory.reserved))                                                  \
    ONE("gemmd_memory_kept_bytes", "gauge", "Memory of idle buffers, kept for reuse.",             \
        gm_buffer_limit_usage(v->server->devices.memory).idle)                                     \
    ONE("gemmd_matrices", "gauge", "Named matrices.", v->kept.count)                               \
    ONE("gemmd_matrices_bytes", "gauge", "Bytes of named matrices.", v->kept.bytes)                \
    ONE("gemmd_matrices_device_bytes", "gauge", "Those of them that are in memory of devices.",    \
        v->kept.device_bytes)                                                                      \
    ONE("gemmd_memory_limit_bytes", "gauge", "What they may reserve together.",                    \
        v->server->memory.limit)                                                                   \
    EACH("gemmd_queue_depth", "gauge", "Jobs waiting for a device.", d->load.queued)               \
    EACH("gemmd_queue_capacity", "gauge", "Jobs that may wait.", d->load.capacity)                 \
    EACH("gemmd_jobs_running", "gauge", "Jobs on a device.", d->load.running)                      \
    EACH("gemmd_device_up", "gauge", "1 while the device works.", !d->load.lost)                   \
    EACH("gemmd_device_busy_seconds_total", "counter",                                             \
         "Time in which jobs ran on a device: its rate is the share of time that it is busy.",     \
         d->load.busy_ns / 1e9)                                                                    \
    EACH("gemmd_device_memory_size_bytes", "gauge", "Memory of a device.", d->memory)              \
    EACH("gemmd_device_memory_used_bytes", "gauge", "Memory of a device in use, by any process.",  \
         d->memory_used)                                                                           \
    MANY("gemmd_build_info", "gauge", "Always 1; the version is its label.", write_build)          \
    ONE("process_cpu_seconds_total", "counter", "Time of processors that the process used.",       \
        v->process.cpu_s)                                                                          \
    ONE("process_resident_memory_bytes", "gauge", "Resident memory.", v->process.resident_bytes)   \
    ONE("process_virtual_memory_bytes", "gauge", "Virtual memory.", v->process.virtual_bytes)      \
    ONE("process_open_fds", "gauge", "Open file descriptors.", v->process.open_fds)                \
    ONE("process_max_fds", "gauge", "How many there may be.", v->process.max_fds)                  \
    ONE("process_start_time_seconds", "gauge", "When the process started, in Unix time.",          \
        v->server->started_unix)

static void describe(struct view *v, const char *name, const char *type, const char *help)
{
    v->name = name;
    v->type = type;
    v->help = help;
    v->begun = false;
}

static void begin(struct view *v)
{
    if (!v->begun)
        fprintf(v->out, "# HELP %s %s\n# TYPE %s %s\n", v->name, v->help, v->name, v->type);
    v->begun = true;
}

/* `labels` without braces; "": none. */
static void sample(struct view *v, const char *labels, double value)
{
    if (isnan(value))
        return;
    begin(v);
    if (*labels)
        fprintf(v->out, "%s{%s} %.17g\n", v->name, labels, value);
    else
        fprintf(v->out, "%s %.17g\n", v->name, value);
}

static void count(struct view *v, const char *labels, const _Atomic uint64_t *n)
{
    sample(v, labels, (double)atomic_load(n));
}

/* A route's successes are written from the start, so that the first one shows as an increase. */
static void write_answered(struct view *v)
{
    char labels[160];

    for (size_t i = 0; i <= gm_route_count(); i++) {
        const struct gm_route *route = gm_route_at(i); /* NULL: requests for no route */
        for (unsigned status = 0; status < GM_HTTP_STATUS_MAX; status++) {
            bool expected = status == 200 && route && gm_route_index(route) == i;
            if (!expected && atomic_load(&v->stats->answered[i][status]) == 0)
                continue;
            snprintf(labels, sizeof labels, "route=\"%s\",code=\"%u\"",
                     route ? route->path : "other", status);
            count(v, labels, &v->stats->answered[i][status]);
        }
    }
}

static void write_failed(struct view *v)
{
    char labels[64];

    for (unsigned i = 1; i < GM_STATUS_COUNT; i++) {
        snprintf(labels, sizeof labels, "reason=\"%s\"", gm_status_code((enum gm_status)i));
        count(v, labels, &v->stats->failed[i]);
    }
}

/* Calls write(): for the keys that have counters of their own, then for all others, and for clients
 * without a key. */
static void for_each_key(struct view *v, void (*write)(struct view *v, const char *key,
                                                       const struct gm_quota_counts *counts))
{
    struct gm_quotas *quotas = &v->server->access.quotas;
    const struct gm_quota *quota;

    pthread_mutex_lock(&quotas->mutex);
    TAILQ_FOREACH (quota, &quotas->keys, link)
        /* Not while a reload is about to name it, nor of a revoked key with requests left. */
        if (quota->named && *quota->name && !atomic_load(&quota->revoked))
            write(v, quota->name, quota->counts);
    if (!TAILQ_EMPTY(&quotas->keys))
        write(v, "other", &quotas->others);
    if (quotas->by_address)
        write(v, "none", &quotas->nobody);
    pthread_mutex_unlock(&quotas->mutex);
}

static void key_sample(struct view *v, const char *key, double value)
{
    char labels[GM_KEY_NAME_MAX + 16];

    snprintf(labels, sizeof labels, "key=\"%s\"", key);
    sample(v, labels, value);
}

static void write_requests_of(struct view *v, const char *key, const struct gm_quota_counts *counts)
{
    key_sample(v, key, (double)atomic_load(&counts->requests));
}

static void write_bytes_of(struct view *v, const char *key, const struct gm_quota_counts *counts)
{
    key_sample(v, key, (double)atomic_load(&counts->bytes));
}

static void write_device_of(struct view *v, const char *key, const struct gm_quota_counts *counts)
{
    key_sample(v, key, (double)atomic_load(&counts->device_ns) / 1e9);
}

static void write_refused_of(struct view *v, const char *key, const struct gm_quota_counts *counts)
{
    char labels[GM_KEY_NAME_MAX + 48];

    for (unsigned i = 0; i < GM_QUOTA_COUNT; i++) {
        snprintf(labels, sizeof labels, "key=\"%s\",quota=\"%s\"", key, gm_quota_name(i));
        count(v, labels, &counts->refused[i]);
    }
}

static void write_key_requests(struct view *v)
{
    for_each_key(v, write_requests_of);
}

static void write_key_bytes(struct view *v)
{
    for_each_key(v, write_bytes_of);
}

static void write_key_device(struct view *v)
{
    for_each_key(v, write_device_of);
}

static void write_refused(struct view *v)
{
    for_each_key(v, write_refused_of);
}

static void write_closed(struct view *v)
{
#define X(name, member, reason, help)                                                              \
    count(v, "reason=\"" reason "\"", &v->sums.counter[GM_COUNT_##name]);
    GM_CLOSING_LIST(X)
#undef X
}

/* labels: without braces, may be empty. Each bucket is read once and summed, so that +Inf and
 * _count agree even while other threads add. */
static void write_histogram(struct view *v, const char *labels,
                            const struct gm_histogram *histogram)
{
    unsigned long long cumulative = 0;

    begin(v);
    for (unsigned i = 0; i < GM_BUCKET_COUNT; i++) {
        cumulative += atomic_load(&histogram->bucket[i]);
        fprintf(v->out, "%s_bucket{%s,le=\"%g\"} %llu\n", v->name, labels, gm_bucket_bounds[i],
                cumulative);
    }
    cumulative += atomic_load(&histogram->bucket[GM_BUCKET_COUNT]);
    fprintf(v->out, "%s_bucket{%s,le=\"+Inf\"} %llu\n", v->name, labels, cumulative);
    fprintf(v->out, "%s_sum{%s} %.9f\n", v->name, labels,
            (double)atomic_load(&histogram->sum_ns) * 1e-9);
    fprintf(v->out, "%s_count{%s} %llu\n", v->name, labels, cumulative);
}

static bool is_endpoint(enum gm_op_kind op)
{
    for (size_t i = 0; gm_route_at(i); i++) {
        const struct gm_route *route = gm_route_at(i);
        bool takes = route->body == GM_BODY_OPERANDS || route->body == GM_BODY_EVAL;
        if (takes && route->ran == gm_handle_op_ran && route->op == op)
            return true;
    }
    return false;
}

static void write_totals(struct view *v)
{
    char labels[64];

    for (unsigned op = 0; op < GM_OP_COUNT; op++) {
        snprintf(labels, sizeof labels, "op=\"%s\"", gm_op_name(op));
        if (is_endpoint(op))
            write_histogram(v, labels, &v->sums.total[op]);
    }
}

static void write_stages(struct view *v)
{
    char labels[64];

    for (unsigned op = 0; op < GM_OP_COUNT; op++) {
        for (unsigned stage = 0; is_endpoint(op) && stage < GM_STAGE_COUNT; stage++) {
            snprintf(labels, sizeof labels, "op=\"%s\",stage=\"%s\"", gm_op_name(op),
                     gm_stage_name(stage));
            write_histogram(v, labels, &v->sums.stage[op][stage]);
        }
    }
}

static void write_build(struct view *v)
{
    sample(v, "version=\"" GM_VERSION "\"", 1);
}

static void write_metrics(struct view *v)
{
    char labels[sizeof v->server->devices.device->name + 16];

#define ONE(name, type, help, value)                                                               \
    describe(v, name, type, help);                                                                 \
    sample(v, "", (double)(value));
#define EACH(metric, type, help, value)                                                            \
    describe(v, metric, type, help);                                                               \
    for (const struct device *d = v->device; d < v->device + v->devices; d++) {                    \
        snprintf(labels, sizeof labels, "device=\"%s\"", d->name);                                 \
        sample(v, labels, (double)(value));                                                        \
    }
#define MANY(name, type, help, write)                                                              \
    describe(v, name, type, help);                                                                 \
    write(v);
#define X(name, member, metric, help)                                                              \
    ONE(metric, "counter", help, atomic_load(&v->sums.counter[GM_COUNT_##name]))
    GM_COUNTER_LIST(X)
    METRIC_LIST(ONE, EACH, MANY)
#undef X
#undef ONE
#undef EACH
#undef MANY
}

/* Writes the names from before 0.2, until 0.3. */
static void write_old_names(struct view *v)
{
#define OLD(member, now) "gemmd_" member "_total", "counter", "Until 0.3: now " now "."
#define X(name, member, reason, help)                                                              \
    if (GM_COUNT_##name != GM_COUNT_NO_TLS) { /* which is newer */                                 \
        describe(v, OLD(member, "gemmd_connections_closed_total"));                                \
        count(v, "", &v->sums.counter[GM_COUNT_##name]);                                           \
    }
    GM_CLOSING_LIST(X)
#undef X
    describe(v, OLD("connections", "gemmd_connections_accepted_total"));
    count(v, "", &v->sums.counter[GM_COUNT_CONNECTIONS]);
#undef OLD
}

static void look_at_memory(struct process *process)
{
    unsigned long long virtual, resident;
    FILE *file = fopen("/proc/self/statm", "re");

    process->virtual_bytes = process->resident_bytes = NAN;
    if (file && fscanf(file, "%llu %llu", &virtual, &resident) == 2) {
        process->virtual_bytes = (double)virtual * (double)sysconf(_SC_PAGESIZE);
        process->resident_bytes = (double)resident * (double)sysconf(_SC_PAGESIZE);
    }
    if (file)
        fclose(file);
}

static void look_at_descriptors(struct process *process)
{
    long most = sysconf(_SC_OPEN_MAX);
    DIR *folder = opendir("/proc/self/fd");

    process->open_fds = folder ? -3 : NAN; /* ".", "..", and the one that reads them */
    while (folder && readdir(folder))
        process->open_fds++;
    if (folder)
        closedir(folder);
    process->max_fds = most > 0 ? (double)most : NAN;
}

static void look(struct view *v, FILE *out, struct gm_server *server)
{
    const struct gm_devices *devices = &server->devices;
    struct timespec cpu;

    *v = (struct view){.out = out, .server = server, .stats = &server->stats};
    gm_stats_sum(&server->stats, &v->sums);
    v->requests = gm_requests_count(server);
    v->kept = gm_matrices_usage(&server->matrices);
    for (; v->devices < devices->count; v->devices++) {
        const struct gm_device *of = &devices->device[v->devices];
        uint64_t used = gm_device_memory_used(of);
        v->device[v->devices] = (struct device){
            .name = of->name,
            .load = gm_sched_load(of->sched),
            .memory = of->facts->memory_bytes > 0 ? (double)of->facts->memory_bytes : NAN,
            .memory_used = used > 0 ? (double)used : NAN,
        };
    }
    look_at_memory(&v->process);
    look_at_descriptors(&v->process);
    v->process.cpu_s = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0
                           ? ((double)cpu.tv_sec * 1e9 + (double)cpu.tv_nsec) / 1e9
                           : NAN;
}

enum gm_progress gm_handle_metrics(struct gm_request *r)
{
    struct gm_text_stream text;
    struct view view;

    if (!gm_text_stream_begin(&text))
        return gm_request_reply(r, NULL, NULL);
    look(&view, text.out, r->server);
    write_metrics(&view);
    write_old_names(&view);
    return gm_request_reply(r, "text/plain; version=0.0.4; charset=utf-8",
                            gm_text_stream_end(&text, NULL));
}
