/*
 * metrics.c - GET /metrics, in Prometheus' text format 0.0.4.
 *
 * It uses no library: the C client library is unmaintained, and the format is a page long. The
 * figures come from stats.h's lists and from the parts that keep them.
 */
#include "kernels/buffer_pool.h"
#include "server/request/request.h"
#include "server/request/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_requests(FILE *out, const struct gm_stats *stats)
{
    family(out, "gemmd_http_requests_total", "counter", "Requests answered, by route and status.");
    for (size_t i = 0; i <= gm_route_count(); i++) {
        const struct gm_route *route = gm_route_at(i);
        for (unsigned status = 0; status < GM_HTTP_STATUS_MAX; status++) {
            uint64_t n = atomic_load(&stats->answered[i][status]);
            if (n > 0)
                fprintf(out, "gemmd_http_requests_total{route=\"%s\",code=\"%u\"} %llu\n",
                        route ? route->path : "other", status, (unsigned long long)n);
        }
    }
    family(out, "gemmd_requests_rejected_total", "counter",
           "Requests that failed, by the code of their problem.");
    for (unsigned i = 1; i < GM_STATUS_COUNT; i++)
        fprintf(out, "gemmd_requests_rejected_total{reason=\"%s\"} %llu\n",
                gm_status_code((enum gm_status)i),
                (unsigned long long)atomic_load(&stats->failed[i]));
}

static void write_counters(FILE *out, const struct gm_stats *stats)
{
    static const struct {
        const char *name, *help;
    } counters[GM_COUNTER_COUNT] = {
#define X(name, metric, help) {"gemmd_" metric "_total", help},
        GM_COUNTER_LIST(X)
#undef X
    };

    for (unsigned i = 0; i < GM_COUNTER_COUNT; i++) {
        family(out, counters[i].name, "counter", counters[i].help);
        fprintf(out, "%s %llu\n", counters[i].name,
                (unsigned long long)atomic_load(&stats->counter[i]));
    }
}

/* labels: without braces, may be empty. Each bucket is read once and summed, so that +Inf and
 * _count agree even while other threads add. */
static void write_histogram(FILE *out, const char *name, const char *labels,
                            const struct gm_histogram *histogram)
{
    uint64_t cumulative = 0;

    for (unsigned i = 0; i <= GM_BUCKET_COUNT; i++) {
        cumulative += atomic_load(&histogram->bucket[i]);
        if (i < GM_BUCKET_COUNT)
            fprintf(out, "%s_bucket{%s,le=\"%g\"} %llu\n", name, labels, gm_bucket_bounds[i],
                    (unsigned long long)cumulative);
        else
            fprintf(out, "%s_bucket{%s,le=\"+Inf\"} %llu\n", name, labels,
                    (unsigned long long)cumulative);
    }
    fprintf(out, "%s_sum{%s} %.9f\n", name, labels, (double)atomic_load(&histogram->sum_ns) * 1e-9);
    fprintf(out, "%s_count{%s} %llu\n", name, labels, (unsigned long long)cumulative);
}

static bool is_endpoint(enum gm_op_kind op)
{
    for (size_t i = 0; gm_route_at(i); i++)
        if (gm_route_at(i)->body == GM_BODY_OPERANDS && gm_route_at(i)->op == op)
            return true;
    return false;
}

static void write_histograms(FILE *out, const struct gm_stats *stats)
{
    char labels[64];

    family(out, "gemmd_request_duration_seconds", "histogram",
           "From the first look at a request to its reply, for those with a result.");
    for (unsigned op = 0; op < GM_OP_COUNT; op++) {
        if (!is_endpoint(op))
            continue;
        snprintf(labels, sizeof labels, "op=\"%s\"", gm_op_name(op));
        write_histogram(out, "gemmd_request_duration_seconds", labels, &stats->total[op]);
    }
    family(out, "gemmd_stage_duration_seconds", "histogram", "The parts of that time, by stage.");
    for (unsigned op = 0; op < GM_OP_COUNT; op++) {
        for (unsigned stage = 0; is_endpoint(op) && stage < GM_STAGE_COUNT; stage++) {
            snprintf(labels, sizeof labels, "op=\"%s\",stage=\"%s\"", gm_op_name(op),
                     gm_stage_name(stage));
            write_histogram(out, "gemmd_stage_duration_seconds", labels, &stats->stage[op][stage]);
        }
    }
}

static void gauge(FILE *out, const char *name, const char *help, double value)
{
    family(out, name, "gauge", help);
    fprintf(out, "%s %.17g\n", name, value);
}

static void write_queues(FILE *out, const struct gm_devices *devices)
{
    static const char *const names[] = {"gemmd_queue_depth", "gemmd_queue_capacity",
                                        "gemmd_jobs_running", "gemmd_device_up"};
    static const char *const helps[] = {"Jobs waiting for a device.", "Jobs that may wait.",
                                        "Jobs on a device.", "1 while the device works."};

    for (unsigned i = 0; i < 4; i++) {
        family(out, names[i], "gauge", helps[i]);
        for (unsigned d = 0; d < devices->count; d++) {
            struct gm_sched_load load = gm_sched_load(devices->device[d].sched);
            const uint64_t values[] = {load.queued, load.capacity, load.running, !load.lost};
            fprintf(out, "%s{device=\"%s\"} %llu\n", names[i], devices->device[d].name,
                    (unsigned long long)values[i]);
        }
    }
}

/* Resident memory of this process, in bytes; 0: unknown. */
static double resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file) {
        if (fscanf(file, "%*u %llu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void write_gauges(FILE *out, struct gm_server *server)
{
    pthread_mutex_lock(&server->mutex);
    uint64_t in_flight = server->request_count;
    pthread_mutex_unlock(&server->mutex);

    gauge(out, "gemmd_requests_in_flight", "Requests being served.", (double)in_flight);
    gauge(out, "gemmd_connections", "Connections that are open.",
          gm_connections_count(&server->connections));
    gauge(out, "gemmd_memory_used_bytes", "Memory reserved by the requests being served.",
          (double)atomic_load(&server->memory.reserved));
    gauge(out, "gemmd_memory_kept_bytes", "Memory of earlier requests, kept for later ones.",
          (double)gm_buffer_limit_usage(server->devices.memory).idle);
    gauge(out, "gemmd_memory_limit_bytes", "What they may reserve together.",
          (double)server->memory.limit);
    double resident = resident_bytes();
    if (resident > 0)
        gauge(out, "process_resident_memory_bytes", "Resident memory.", resident);
    gauge(out, "process_start_time_seconds", "When the process started, in Unix time.",
          (double)server->started_unix);
    write_queues(out, &server->devices);
    family(out, "gemmd_build_info", "gauge", "Always 1; the version is its label.");
    fprintf(out, "gemmd_build_info{version=\"%s\"} 1\n", GM_VERSION);
}

enum gm_progress gm_handle_metrics(struct gm_request *r)
{
    struct gm_text_stream text;

    if (!gm_text_stream_begin(&text))
        return gm_request_reply(r, NULL, NULL);
    write_requests(text.out, &r->server->stats);
    write_counters(text.out, &r->server->stats);
    write_histograms(text.out, &r->server->stats);
    write_gauges(text.out, r->server);
    return gm_request_reply(r, "text/plain; version=0.0.4; charset=utf-8",
                            gm_text_stream_end(&text, NULL));
}
