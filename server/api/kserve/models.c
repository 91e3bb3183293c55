/*
 * models.c - the Open Inference Protocol v2: metadata, configuration, statistics, index, inference.
 *
 * A model is an operation. Its name is OP or OP.VARIANT, with @DTYPE for tensors of that type only.
 */
#include "proto/kserve/kserve.h"
#include "server/request/request.h"
#include "server/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum gm_op_kind models[] = {GM_OP_MATMUL, GM_OP_TRANSPOSE, GM_OP_ADD, GM_OP_FLIP};
#define MODEL_COUNT (sizeof models / sizeof *models)

static enum gm_progress reply_json(struct gm_request *r, json_t *document)
{
    return gm_request_reply(r, "application/json",
                            gm_document_text(document, JSON_COMPACT | JSON_REAL_PRECISION(12)));
}

/* Names. */

struct model {
    char name[GM_MODEL_NAME_MAX]; /* as the client wrote it */
    enum gm_op_kind op;
    const char *variant; /* NULL: auto */
    enum gm_dtype dtype; /* GM_DTYPE_NONE: any */
};

static bool is_here(const struct gm_devices *devices, const struct gm_variant *variant)
{
    bool here = false;

    for (unsigned i = 0; i < devices->count; i++)
        here = here || gm_variant_is_there(variant, devices->device[i].facts);
    return here;
}

/* Returns the name of an operation's next variant that a device here has, and advances *at; NULL
 * past the last. A name that several devices have is returned once. */
static const char *next_variant(const struct gm_devices *devices, enum gm_op_kind op, size_t *at)
{
    for (const struct gm_variant *v; (v = gm_variant_at(*at)) != NULL;) {
        size_t row = (*at)++;
        bool fresh = v->op == op && is_here(devices, v);
        for (size_t i = 0; i < row && fresh; i++) {
            const struct gm_variant *before = gm_variant_at(i);
            fresh =
                before->op != op || strcmp(before->name, v->name) != 0 || !is_here(devices, before);
        }
        if (fresh)
            return v->name;
    }
    return NULL;
}

/* The variant's current name; NULL if no device here has such a variant of the operation. */
static const char *find_variant(const struct gm_devices *devices, enum gm_op_kind op,
                                const char *name)
{
    const char *own = gm_variant_name(name), *found;
    size_t row = 0;

    do
        found = next_variant(devices, op, &row);
    while (found && strcmp(found, own) != 0);
    return found;
}

static enum gm_status fail_variant(const struct gm_devices *devices, enum gm_op_kind op,
                                   const char *name, struct gm_error *err)
{
    char names[GM_ERROR_DETAIL_MAX - 160] = "";
    size_t at = 0, row = 0;

    for (const char *v; (v = next_variant(devices, op, &row)) && at < sizeof names;)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", v);
    return gm_fail(err, GM_NOT_FOUND, "there is no variant '%.40s' of %s; there are %s", name,
                   gm_op_name(op), names);
}

/* Splits NAME = OP [.VARIANT] [@DTYPE] in place. */
static enum gm_status parse_name(const struct gm_devices *devices, char *name, struct model *model,
                                 struct gm_error *err)
{
    char *dtype = strchr(name, '@'), *variant = strchr(name, '.');
    bool known = false;

    if (dtype)
        *dtype++ = '\0';
    if (variant && (!dtype || variant < dtype))
        *variant++ = '\0';
    else
        variant = NULL;
    for (size_t i = 0; i < MODEL_COUNT && !known; i++) {
        model->op = models[i];
        known = strcmp(gm_op_name(models[i]), name) == 0;
    }
    if (!known)
        return gm_fail(err, GM_NOT_FOUND,
                       "there is no model '%.60s'; there are matmul, transpose, add and flip, "
                       "each also with a variant (matmul.tiled) and with an element type "
                       "(matmul@f16)",
                       model->name);
    model->variant = variant ? find_variant(devices, model->op, variant) : NULL;
    if (variant && !model->variant)
        return fail_variant(devices, model->op, variant, err);
    model->dtype = dtype ? gm_dtype_from_name(dtype, strlen(dtype)) : GM_DTYPE_NONE;
    if (dtype && (strcmp(dtype, gm_dtype_name(model->dtype)) != 0 || /* a model has one name */
                  !gm_kserve_datatype(model->dtype)))
        return gm_fail(err, GM_NOT_FOUND,
                       "there is no element type '%.40s' in this protocol; there are f16, bf16, "
                       "f32, f64, i8 to i64, u8 to u64 and bool",
                       dtype);
    return GM_OK;
}

/* The model that the request's path names; GM_NOT_FOUND says what there is. */
static enum gm_status model_of(const struct gm_request *r, struct model *ret, struct gm_error *err)
{
    static const char before[] = "/v2/models/";
    const char *begin = r->head.path + sizeof before - 1;
    size_t len = strcspn(begin, "/");
    char name[GM_MODEL_NAME_MAX];

    *ret = (struct model){.dtype = GM_DTYPE_NONE};
    if (len >= sizeof name)
        return gm_fail(err, GM_NOT_FOUND, "there is no model '%.60s...'", begin);
    memcpy(name, begin, len);
    name[len] = '\0';
    memcpy(ret->name, name, len + 1);
    return parse_name(&r->server->devices, name, ret, err);
}

/* Metadata and configuration. */

enum gm_progress gm_handle_v2(struct gm_request *r)
{
    const struct gm_config *c = &r->server->config;
    json_t *extensions = json_pack("[s, s, s, s]", "binary_tensor_data", "parameters", "statistics",
                                   "model_configuration");

    if (*c->shared_memory)
        json_array_append_new(extensions, json_string("system_shared_memory"));
    if (c->cuda_ipc)
        json_array_append_new(extensions, json_string("cuda_shared_memory"));
    json_t *server = json_pack("{s:s, s:s, s:o}", "name", "gemmd", "version", GM_VERSION,
                               "extensions", extensions);
    if (*c->shared_memory)
        json_object_set_new(server, "shared_memory_prefix",
                            json_sprintf("/%s", c->shared_memory + (*c->shared_memory == '/')));
    return reply_json(r, server);
}

/* The preferred device: it runs requests that name none. */
static const struct gm_device *preferred(const struct gm_devices *devices)
{
    for (unsigned i = 0; i < devices->count; i++)
        if (strcmp(devices->device[i].backend->name, devices->preferred) == 0)
            return &devices->device[i];
    return &devices->device[0];
}

static json_t *platform(const struct gm_request *r)
{
    return json_sprintf("gemmd_%s", r->server->devices.preferred);
}

/* Describes tensors of any size. If a model takes any type, FP32 stands for all. */
static json_t *tensors(const struct model *model, const char *const names[], unsigned n,
                       bool config)
{
    enum gm_dtype dtype = model->dtype == GM_DTYPE_NONE ? GM_F32 : model->dtype;
    json_t *list = json_array();

    for (unsigned i = 0; i < n; i++) {
        json_t *type = config ? json_sprintf("TYPE_%s", gm_kserve_datatype(dtype))
                              : json_string(gm_kserve_datatype(dtype));
        json_array_append_new(list, json_pack("{s:s, s:o, s:[i, i]}", "name", names[i],
                                              config ? "data_type" : "datatype", type,
                                              config ? "dims" : "shape", -1, -1));
    }
    return list;
}

static json_t *inputs(const struct model *model, bool config)
{
    static const char *const names[] = {"A", "B"};

    return tensors(model, names, gm_op_operands_min(model->op), config);
}

static json_t *outputs(const struct model *model, bool config)
{
    static const char *const names[] = {"C"};

    return tensors(model, names, 1, config);
}

typedef json_t *describe_fn(const struct gm_request *r, const struct model *model);

static enum gm_progress reply_of_model(struct gm_request *r, describe_fn *describe)
{
    struct model model;
    struct gm_error error;

    return model_of(r, &model, &error) == GM_OK ? reply_json(r, describe(r, &model))
                                                : gm_request_fail(r, &error);
}

static json_t *metadata(const struct gm_request *r, const struct model *model)
{
    return json_pack("{s:s, s:[s], s:o, s:o, s:o}", "name", model->name, "versions", "1",
                     "platform", platform(r), "inputs", inputs(model, false), "outputs",
                     outputs(model, false));
}

enum gm_progress gm_handle_v2_model(struct gm_request *r)
{
    return reply_of_model(r, metadata);
}

static json_t *config(const struct gm_request *r, const struct model *model)
{
    const struct gm_device *device = preferred(&r->server->devices);
    bool gpu = device->facts->kind == GM_DEVICE_CUDA;
    json_t *instance =
        json_pack("{s:o, s:s, s:i}", "name", json_sprintf("%s_0", model->name), "kind",
                  gpu ? "KIND_GPU" : "KIND_CPU", "count", (int)device->facts->streams);

    if (gpu)
        json_object_set_new(instance, "gpus", json_pack("[i]", (int)device->facts->index));
    return json_pack("{s:s, s:o, s:s, s:i, s:{s:{s:i}}, s:o, s:o, s:[o]}", "name", model->name,
                     "platform", platform(r), "backend", "gemmd", "max_batch_size", 0,
                     "version_policy", "latest", "num_versions", 1, "input", inputs(model, true),
                     "output", outputs(model, true), "instance_group", instance);
}

enum gm_progress gm_handle_v2_config(struct gm_request *r)
{
    return reply_of_model(r, config);
}

static json_t *ready(const struct gm_request *r, const struct model *model)
{
    (void)r;
    return json_pack("{s:s, s:b}", "name", model->name, "ready", 1);
}

enum gm_progress gm_handle_v2_model_ready(struct gm_request *r)
{
    struct gm_error error;

    return gm_check_ready(r->server, &error) == GM_OK ? reply_of_model(r, ready)
                                                      : gm_request_fail(r, &error);
}

/* Statistics of the operation, for requests of /v1 and /v2 together. */

static uint64_t count_of(const struct gm_histogram *histogram)
{
    uint64_t n = 0;

    for (unsigned i = 0; i <= GM_BUCKET_COUNT; i++)
        n += atomic_load(&histogram->bucket[i]);
    return n;
}

/* Requests for the operation that were answered with an error. */
static uint64_t failures(const struct gm_stats *stats, enum gm_op_kind op)
{
    uint64_t n = 0;

    for (size_t i = 0; gm_route_at(i); i++) {
        if (gm_route_at(i)->handle != gm_handle_op || gm_route_at(i)->op != op)
            continue;
        for (unsigned status = 400; status < GM_HTTP_STATUS_MAX; status++)
            n += atomic_load(&stats->answered[i][status]);
    }
    return n;
}

static json_t *duration(uint64_t count, uint64_t ns)
{
    return json_pack("{s:I, s:I}", "count", (json_int_t)count, "ns", (json_int_t)ns);
}

static json_t *statistics(const struct gm_request *r, const struct model *model)
{
    const struct gm_stats *stats = &r->server->stats;
    struct gm_stats_shard sums;
    uint64_t ns[GM_STAGE_COUNT];

    gm_stats_sum(stats, &sums);
    const struct gm_histogram *stage = sums.stage[model->op];
    uint64_t n = count_of(&sums.total[model->op]);
    int64_t last_ns = sums.last_ns[model->op];
    int64_t last_ms =
        last_ns == 0 ? 0
                     : r->server->started_unix * 1000 + (last_ns - r->server->started_ns) / 1000000;

    for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
        ns[i] = atomic_load(&stage[i].sum_ns);
    uint64_t in = ns[GM_STAGE_DECODE] + ns[GM_STAGE_H2D] + ns[GM_STAGE_PREPARE];
    uint64_t out = ns[GM_STAGE_D2H] + ns[GM_STAGE_ENCODE];
    json_t *each = json_object();
    json_object_set_new(each, "success", duration(n, sums.total[model->op].sum_ns));
    json_object_set_new(each, "fail", duration(failures(stats, model->op), 0));
    json_object_set_new(each, "queue", duration(n, ns[GM_STAGE_QUEUE]));
    json_object_set_new(each, "compute_input", duration(n, in));
    json_object_set_new(each, "compute_infer", duration(n, ns[GM_STAGE_KERNEL]));
    json_object_set_new(each, "compute_output", duration(n, out));
    json_object_set_new(each, "cache_hit", duration(0, 0));
    json_object_set_new(each, "cache_miss", duration(0, 0));
    json_t *batch = json_pack("{s:i, s:o, s:o, s:o}", "batch_size", 1, "compute_input",
                              duration(n, in), "compute_infer", duration(n, ns[GM_STAGE_KERNEL]),
                              "compute_output", duration(n, out));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:{}, s:[o]}", "name", model->name, "version",
                     "1", "last_inference", (json_int_t)last_ms, "inference_count", (json_int_t)n,
                     "execution_count", (json_int_t)n, "inference_stats", each, "response_stats",
                     "batch_stats", batch);
}

static json_t *one_statistics(const struct gm_request *r, const struct model *model)
{
    return json_pack("{s:[o]}", "model_stats", statistics(r, model));
}

enum gm_progress gm_handle_v2_statistics(struct gm_request *r)
{
    return reply_of_model(r, one_statistics);
}

enum gm_progress gm_handle_v2_all_statistics(struct gm_request *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < MODEL_COUNT; i++) {
        struct model model = {.op = models[i]};
        snprintf(model.name, sizeof model.name, "%s", gm_op_name(models[i]));
        json_array_append_new(list, statistics(r, &model));
    }
    return reply_json(r, json_pack("{s:o}", "model_stats", list));
}

/* The index. */

static void add_to_index(json_t *list, json_t *name)
{
    json_array_append_new(list, json_pack("{s:o, s:s, s:s, s:s}", "name", name, "version", "1",
                                          "state", "READY", "reason", ""));
}

enum gm_progress gm_handle_v2_index(struct gm_request *r)
{
    json_t *list = json_array();

    for (size_t m = 0; m < MODEL_COUNT; m++) {
        const char *op = gm_op_name(models[m]);
        add_to_index(list, json_string(op));
        size_t row = 0;
        for (const char *v; (v = next_variant(&r->server->devices, models[m], &row)) != NULL;)
            add_to_index(list, json_sprintf("%s.%s", op, v));
    }
    return reply_json(r, list);
}

enum gm_progress gm_handle_v2_load(struct gm_request *r)
{
    struct gm_error error;

    gm_fail(&error, GM_BAD_REQUEST,
            "models are operations, which are all there: they cannot be loaded or unloaded");
    return gm_request_fail(r, &error);
}

/* Inference: the parts that differ from operate.c. */

/* Three names of up to 256 characters, each perhaps six bytes as JSON, and the account. */
#define TEXT_MAX 4000

static enum gm_status set(struct gm_request *r, const char *name, const char *value,
                          struct gm_error *err)
{
    return gm_params_set(&r->parsed.params, r->route->op, name, strlen(name), value, strlen(value),
                         err);
}

enum gm_status gm_handle_infer_begin(struct gm_request *r, struct gm_error *err)
{
    struct model model;
    enum gm_status status = model_of(r, &model, err);

    if (status != GM_OK)
        return status;
    memcpy(r->parsed.model, model.name, sizeof model.name);
    if (model.variant)
        status = set(r, "kernel", model.variant, err);
    if (status == GM_OK && model.dtype != GM_DTYPE_NONE)
        status = set(r, "dtype", gm_dtype_name(model.dtype), err);
    return status;
}

char *gm_infer_account(struct gm_request *r, const struct gm_account_job *job, int64_t now_ns)
{
    char *text = malloc(TEXT_MAX);

    if (!text)
        return NULL;
    struct gm_json_line line = gm_json_line_begin(text, TEXT_MAX);
    gm_json_line_string(&line, "model_name", r->parsed.model);
    gm_json_line_string(&line, "model_version", "1");
    if (r->parsed.has_id)
        gm_json_line_string(&line, "id", r->parsed.id);
    gm_json_line_open(&line, "parameters", '{');
    r->account.total_us = (double)(now_ns - r->account.started_ns) * 1e-3;
    gm_account_members(&line, &r->account, job, true);
    gm_json_line_close(&line, '{');
    if (gm_json_line_end(&line))
        return text;
    free(text);
    return NULL;
}
