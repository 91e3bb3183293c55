/*
 * info.c - describes the daemon as JSON: its kernels, devices, and counters.
 */
#include "kernels/buffer_pool.h"
#include "kernels/device_facts.h"
#include "server/clock.h"
#include "server/limits.h"
#include "server/request/request.h"
#include "server/text.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static enum gm_progress reply_json(struct gm_request *r, json_t *document)
{
    char *text = gm_document_text(document, JSON_INDENT(2) | JSON_REAL_PRECISION(12));

    return gm_request_reply(r, "application/json", text);
}

static json_t *count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *dtypes_json(uint32_t mask)
{
    json_t *list = json_array();

    for (unsigned t = 1; t < GM_DTYPE_COUNT; t++)
        if (mask & GM_DTYPE_BIT(t))
            json_array_append_new(list, json_string(gm_dtype_name((enum gm_dtype)t)));
    return list;
}

/* Names of the devices that a variant can run on. */
static json_t *devices_of(const struct gm_devices *devices, const struct gm_variant *variant)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < devices->count; i++)
        if (gm_variant_is_there(variant, devices->device[i].facts))
            json_array_append_new(list, json_string(devices->device[i].name));
    return list;
}

enum gm_progress gm_handle_kernels(struct gm_request *r)
{
    json_t *list = json_array();

    for (size_t i = 0; gm_variant_at(i); i++) {
        const struct gm_variant *v = gm_variant_at(i);
        json_t *devices = devices_of(&r->server->devices, v);
        if (json_array_size(devices) == 0) {
            json_decref(devices);
            continue;
        }
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o, s:s, s:s}", "op",
                                              gm_op_name(v->op), "name", v->name, "devices",
                                              devices, "dtypes", dtypes_json(v->dtypes), "needs",
                                              v->needs, "note", v->note));
    }
    return reply_json(r, json_pack("{s:o}", "kernels", list));
}

static json_t *peaks_json(const struct gm_device_facts *facts)
{
    json_t *peaks = json_object();

    for (unsigned t = 1; t < GM_DTYPE_COUNT; t++)
        if (gm_rate(&facts->peak_gflops[t]) > 0)
            json_object_set_new(peaks, gm_dtype_name((enum gm_dtype)t),
                                json_pack("{s:f, s:s}", "gflops", gm_rate(&facts->peak_gflops[t]),
                                          "roof", facts->peak_name[t]));
    return peaks;
}

/* A GPU's limits and ceilings. */
static json_t *gpu_json(const struct gm_gpu *gpu)
{
    json_t *o = json_object();
    char capability[16];

    snprintf(capability, sizeof capability, "%u.%u", gpu->capability / 10, gpu->capability % 10);
    json_object_set_new(o, "name", json_string(gpu->name));
    json_object_set_new(o, "compute_capability", json_string(capability));
    json_object_set_new(o, "multiprocessors", count(gpu->sms));
    json_object_set_new(o, "threads_per_multiprocessor", count(gpu->threads_per_sm));
    json_object_set_new(o, "blocks_per_multiprocessor", count(gpu->blocks_per_sm));
    json_object_set_new(o, "registers_per_multiprocessor", count(gpu->registers_per_sm));
    json_object_set_new(o, "shared_bytes_per_multiprocessor", count(gpu->shared_per_sm));
    json_object_set_new(o, "shared_bytes_per_block", count(gpu->shared_per_block));
    json_object_set_new(o, "dram_gbs", json_real(gpu->dram_gbs));
    if (gpu->l2_bytes_per_clock > 0)
        json_object_set_new(o, "l2_gbs", json_real(round(gm_gpu_l2_gbs(gpu))));
    json_object_set_new(o, "fp32_gflops", json_real(round(gpu->fp32_gflops)));
    json_object_set_new(o, "fp64_gflops", json_real(round(gpu->fp64_gflops)));
    json_object_set_new(o, "int32_gops", json_real(round(gpu->int32_gflops)));
    if (gpu->tensor_f16_gflops > 0) {
        json_object_set_new(o, "tensor_f16_gflops", json_real(round(gpu->tensor_f16_gflops)));
        json_object_set_new(o, "tensor_tf32_gflops", json_real(round(gpu->tensor_tf32_gflops)));
        json_object_set_new(o, "tensor_fp64_gflops", json_real(round(gpu->tensor_fp64_gflops)));
    }
    return o;
}

static json_t *device_json(const struct gm_device *device, const char *preferred)
{
    const struct gm_device_facts *f = device->facts;
    struct gm_sched_load load = gm_sched_load(device->sched);
    uint64_t used = gm_device_memory_used(device);
    json_t *o = json_object();

    json_object_set_new(o, "name", json_string(device->name));
    json_object_set_new(o, "kind", json_string(gm_device_kind_name(f->kind)));
    json_object_set_new(o, "default", json_boolean(strcmp(device->backend->name, preferred) == 0));
    json_object_set_new(o, "model", json_string(f->name));
    json_object_set_new(o, "detail", json_string(f->detail));
    if (*f->uuid)
        json_object_set_new(o, "uuid", json_string(f->uuid));
    json_object_set_new(o, "compute_units", json_integer(f->compute_units));
    json_object_set_new(o, "streams", json_integer(f->streams));
    json_object_set_new(o, "units", json_integer(f->compute_units)); /* aliases until 0.3 */
    json_object_set_new(o, "lanes", json_integer(f->streams));
    json_object_set_new(o, "times_kernels", json_boolean(f->has_kernel_times));
    json_object_set_new(o, "batch_max", json_integer(f->batch_max));
    if (f->batch_bytes > 0)
        json_object_set_new(o, "batch_bytes", count(f->batch_bytes));
    if (f->memory_bytes > 0)
        json_object_set_new(o, "memory_bytes", count(f->memory_bytes));
    if (used > 0)
        json_object_set_new(o, "memory_used_bytes", count(used));
    if (f->cache_bytes > 0)
        json_object_set_new(o, "cache_bytes", count(f->cache_bytes));
    if (gm_rate(&f->copy_gbs) > 0)
        json_object_set_new(o, "copy_gbs", json_real(gm_rate(&f->copy_gbs)));
    if (gm_rate(&f->link_in_gbs) > 0)
        json_object_set_new(o, "link_in_gbs", json_real(gm_rate(&f->link_in_gbs)));
    if (gm_rate(&f->link_out_gbs) > 0)
        json_object_set_new(o, "link_out_gbs", json_real(gm_rate(&f->link_out_gbs)));
    if (gm_rate_time(&f->measured_unix) > 0)
        json_object_set_new(o, "copy_measured_unix", json_integer(gm_rate_time(&f->measured_unix)));
    if (gm_rate_time(&f->looked_unix) > 0)
        json_object_set_new(o, "last_measured_unix", json_integer(gm_rate_time(&f->looked_unix)));
    json_object_set_new(o, "peaks", peaks_json(f));
    if (f->gpu)
        json_object_set_new(o, "gpu", gpu_json(f->gpu));
    json_object_set_new(o, "has_kernel_times", json_boolean(f->has_kernel_times));
    json_object_set_new(o, "queue",
                        json_pack("{s:o, s:o, s:o}", "queued", count(load.queued), "running",
                                  count(load.running), "capacity", count(load.capacity)));
    json_object_set_new(o, "lost", json_boolean(load.lost));
    return o;
}

enum gm_progress gm_handle_devices(struct gm_request *r)
{
    const struct gm_devices *devices = &r->server->devices;
    json_t *list = json_array(), *gpus = json_array();

    for (unsigned i = 0; i < devices->count; i++)
        json_array_append_new(list, device_json(&devices->device[i], devices->preferred));
    for (size_t i = 0; gm_gpu_at(i); i++)
        json_array_append_new(gpus, gpu_json(gm_gpu_at(i)));
    return reply_json(r, json_pack("{s:o, s:o}", "devices", list, "gpus", gpus));
}

static json_t *limits_json(void)
{
    static const struct {
        const char *name, *unit, *reason;
        long value;
    } limits[] = {
#define X(name, value, unit, reason) {#name, unit, reason, value},
        GM_LIMIT_LIST(X)
#undef X
    };
    json_t *o = json_object();

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char name[48];
        size_t len = 0;
        for (const char *p = limits[i].name; *p && len + 1 < sizeof name; p++)
            name[len++] = (char)tolower((unsigned char)*p);
        name[len] = '\0';
        json_object_set_new(o, name,
                            json_pack("{s:o, s:s, s:s}", "value",
                                      json_integer((json_int_t)limits[i].value), "unit",
                                      limits[i].unit, "reason", limits[i].reason));
    }
    return o;
}

static json_t *counters_json(const struct gm_stats *stats)
{
    static const char *const names[GM_COUNTER_COUNT] = {
#define X(name, member, ...) member,
        GM_COUNTER_LIST(X) GM_CLOSING_LIST(X)
#undef X
    };
    json_t *o = json_object();
    struct gm_stats_shard sums;

    gm_stats_sum(stats, &sums);
    for (unsigned i = 0; i < GM_COUNTER_COUNT; i++)
        json_object_set_new(o, names[i], count(sums.counter[i]));
    return o;
}

static json_t *failed_json(const struct gm_stats *stats)
{
    json_t *o = json_object();

    for (unsigned i = 1; i < GM_STATUS_COUNT; i++) {
        uint64_t n = atomic_load(&stats->failed[i]);
        if (n > 0)
            json_object_set_new(o, gm_status_code((enum gm_status)i), count(n));
    }
    return o;
}

static json_t *answered_json(const struct gm_stats *stats)
{
    json_t *o = json_object();

    for (size_t i = 0; i <= gm_route_count(); i++) {
        const struct gm_route *route = gm_route_at(i); /* NULL: requests for no route */
        uint64_t n = 0;
        for (unsigned status = 0; status < GM_HTTP_STATUS_MAX; status++)
            n += atomic_load(&stats->answered[i][status]);
        if (gm_route_index(route) == i) /* all methods of a path share one counter */
            json_object_set_new(o, route ? route->path : "other", count(n));
    }
    return o;
}

static json_t *options_json(const struct gm_config *config)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "memory_limit", count(config->memory_limit),
                     "body_limit", count(config->body_limit), "queue_limit",
                     count(config->queue_limit), "timeout_ms", count(config->timeout_ms),
                     "drain_delay_ms", count(config->drain_delay_ms), "drain_timeout_ms",
                     count(config->drain_timeout_ms));
}

enum gm_progress gm_handle_stats(struct gm_request *r)
{
    struct gm_server *server = r->server;
    const struct gm_devices *devices = &server->devices;
    json_t *o = json_object(), *queues = json_object();

    uint64_t in_flight = gm_requests_count(server);

    for (unsigned i = 0; i < devices->count; i++) {
        struct gm_sched_load load = gm_sched_load(devices->device[i].sched);
        json_object_set_new(queues, devices->device[i].name,
                            json_pack("{s:o, s:o, s:o, s:o}", "queued", count(load.queued),
                                      "running", count(load.running), "capacity",
                                      count(load.capacity), "busy_s",
                                      json_real((double)load.busy_ns * 1e-9)));
    }
    json_object_set_new(o, "version", json_string(GM_VERSION));
    json_object_set_new(o, "uptime_s",
                        json_real((double)(gm_now_ns() - server->started_ns) * 1e-9));
    json_object_set_new(o, "draining", json_boolean(atomic_load(&server->phase) > 0));
    json_object_set_new(o, "requests_in_flight", count(in_flight));
    json_object_set_new(o, "connections", count(gm_connections_count(&server->connections)));
    json_object_set_new(o, "memory",
                        json_pack("{s:o, s:o, s:o}", "used_bytes",
                                  count(atomic_load(&server->memory.reserved)), "kept_bytes",
                                  count(gm_buffer_limit_usage(devices->memory).idle), "limit_bytes",
                                  count(server->memory.limit)));
    struct gm_matrices_usage kept = gm_matrices_usage(&server->matrices);
    json_object_set_new(o, "matrices",
                        json_pack("{s:o, s:o, s:o, s:o}", "count", count(kept.count), "used_bytes",
                                  count(kept.bytes), "device_bytes", count(kept.device_bytes),
                                  "limit_bytes", count(server->matrices.limit)));
    json_object_set_new(o, "queues", queues);
    json_object_set_new(o, "answered", answered_json(&server->stats));
    json_object_set_new(o, "failed", failed_json(&server->stats));
    json_object_set_new(o, "counters", counters_json(&server->stats));
    json_object_set_new(o, "options", options_json(&server->config));
    json_object_set_new(o, "limits", limits_json());
    return reply_json(r, o);
}
