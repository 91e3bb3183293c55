/*
 * info.c - what a daemon has and does, as tables: kernels, their choice, devices, stats. With
 * --json the documents themselves.
 */
#include "clients/c/gemmctl/commands.h"
#include "clients/c/gemmctl/say.h"
#include "clients/c/gemmctl/table.h"

#include <stdlib.h>
#include <string.h>

const char *gm_json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

double gm_json_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static enum gemmd_status get(struct gemmd_client *client, const struct gm_options *options,
                             const char *path, struct gemmd_reply *reply, struct gemmd_error *err)
{
    struct gemmd_call call = {.parameters = options->parameters,
                              .parameter_count = options->parameter_count,
                              .progress = gm_say_go_on};
    struct gemmd_request request = {.path = path, .accept = "application/json", .call = &call};

    return gemmd_exchange(client, &request, reply, err);
}

json_t *gm_try_json(struct gemmd_client *client, const struct gm_options *options, const char *path,
                    struct gemmd_error *err)
{
    struct gemmd_reply reply;

    if (get(client, options, path, &reply, err) != GEMMD_OK)
        return NULL;
    json_t *document = json_loadb(reply.body, reply.body_bytes, 0, NULL);
    gemmd_reply_free(&reply);
    if (!document)
        *err = (struct gemmd_error){.status = GEMMD_BAD_REPLY,
                                    .detail = "the reply is not JSON: is that a gemmd?"};
    return document;
}

json_t *gm_get_json(struct gemmd_client *client, const struct gm_options *options, const char *path,
                    enum gm_exit *ret_status)
{
    struct gemmd_error err;
    json_t *document = gm_try_json(client, options, path, &err);

    *ret_status = document ? GM_EXIT_OK : gm_say_error(options, &err);
    return document;
}

enum gm_exit gm_print_document(struct gemmd_client *client, const struct gm_options *options,
                               const char *path)
{
    struct gemmd_reply reply;
    struct gemmd_error err;

    if (get(client, options, path, &reply, &err) != GEMMD_OK)
        return gm_say_error(options, &err);
    gm_say_text(stdout, reply.body, reply.body_bytes);
    if (reply.body_bytes == 0 || reply.body[reply.body_bytes - 1] != '\n')
        putchar('\n');
    gemmd_reply_free(&reply);
    return GM_EXIT_OK;
}

/* The texts of a list, with blanks between, cut to fit. */
static void join(const json_t *list, char *out, size_t size)
{
    size_t index, at = 0;
    json_t *item;

    *out = '\0';
    json_array_foreach (list, index, item) {
        int len = snprintf(out + at, size - at, "%s%s", at ? " " : "",
                           json_string_value(item) ? json_string_value(item) : "?");
        at = (size_t)len < size - at ? at + (size_t)len : size - 1;
    }
}

static bool has_argument(const char *name, int count)
{
    if (count > 0)
        gm_say_wrong(GM_EXIT_USAGE, "%s takes no operands", name);
    return count > 0;
}

/* Takes out the kernels of all other operations. */
static void keep_operation(json_t *kernels, const char *op)
{
    for (size_t i = json_array_size(kernels); i-- > 0;)
        if (strcmp(gm_json_text(json_array_get(kernels, i), "op"), op) != 0)
            json_array_remove(kernels, i);
}

/* The document, indented as the daemon's own are. */
static enum gm_exit print_json(const json_t *document)
{
    char *text = json_dumps(document, JSON_INDENT(2));

    if (!text)
        return gm_say_wrong(GM_EXIT_FILE, "out of memory");
    gm_say_text(stdout, text, strlen(text));
    putchar('\n');
    free(text);
    return GM_EXIT_OK;
}

enum gm_exit gm_command_choose(struct gemmd_client *client, struct gm_options *options,
                               const char *name, char **args, int count)
{
    size_t dummy;
    char path[64];

    if (count < 1 || !gm_operation_takes(args[0], &dummy, &dummy))
        return gm_say_wrong(GM_EXIT_USAGE, "%s wants an operation: transpose, matmul, add or flip",
                            name);
    if (count > 1)
        return gm_say_wrong(GM_EXIT_USAGE, "%s %s takes no file; --shape says how large", name,
                            args[0]);
    if (!gm_options_add_parameter(options, "format", options->json ? "json" : "text"))
        return GM_EXIT_USAGE;
    snprintf(path, sizeof path, "/v1/choose/%s", args[0]);
    return gm_print_document(client, options, path);
}

enum gm_exit gm_command_kernels(struct gemmd_client *client, struct gm_options *options,
                                const char *name, char **args, int count)
{
    struct gm_table table = {.columns = 6};
    enum gm_exit status;
    size_t index, dummy;
    json_t *kernel;

    if (count > 1 || (count == 1 && !gm_operation_takes(args[0], &dummy, &dummy) &&
                      strcmp(args[0], "copy") != 0))
        return gm_say_wrong(GM_EXIT_USAGE, "%s takes the name of one operation, or none", name);
    if (options->json && count == 0)
        return gm_print_document(client, options, "/v1/kernels");
    json_t *document = gm_get_json(client, options, "/v1/kernels", &status);
    if (!document)
        return status;
    if (count == 1)
        keep_operation(json_object_get(document, "kernels"), args[0]);
    if (options->json) {
        status = print_json(document);
        json_decref(document);
        return status;
    }
    gm_table_add(&table, (const char *const[]){"op", "kernel", "devices", "types", "needs", ""});
    json_array_foreach (json_object_get(document, "kernels"), index, kernel) {
        const json_t *dtypes = json_object_get(kernel, "dtypes");
        char devices[256], types[256];
        join(json_object_get(kernel, "devices"), devices, sizeof devices);
        if (json_array_size(dtypes) == 20)
            strcpy(types, "all");
        else
            join(dtypes, types, sizeof types);
        gm_table_add(&table,
                     (const char *const[]){gm_json_text(kernel, "op"), gm_json_text(kernel, "name"),
                                           devices, types, gm_json_text(kernel, "needs"),
                                           gm_json_text(kernel, "note")});
    }
    gm_table_print(&table, stdout);
    json_decref(document);
    return GM_EXIT_OK;
}

enum gm_exit gm_command_devices(struct gemmd_client *client, struct gm_options *options,
                                const char *name, char **args, int count)
{
    struct gm_table table = {.columns = 8, .right = {[3] = true, true, true, true}};
    enum gm_exit status;
    size_t index;
    json_t *device;

    (void)args;
    if (has_argument(name, count))
        return GM_EXIT_USAGE;
    if (options->json)
        return gm_print_document(client, options, "/v1/devices");
    json_t *document = gm_get_json(client, options, "/v1/devices", &status);
    if (!document)
        return status;
    gm_table_add(&table, (const char *const[]){"device", "kind", "default", "memory", "copy GB/s",
                                               "f32 GFLOP/s", "waiting", "model"});
    json_array_foreach (json_object_get(document, "devices"), index, device) {
        const json_t *queue = json_object_get(device, "queue");
        double memory = gm_json_number(device, "memory_bytes");
        double copy = gm_json_number(device, "copy_gbs");
        double peak =
            gm_json_number(json_object_get(json_object_get(device, "peaks"), "f32"), "gflops");
        char memory_text[GM_QUANTITY_MAX] = "", copy_text[32] = "", peak_text[32] = "", waiting[64];
        char model[256];
        if (memory > 0)
            gm_say_bytes(memory, memory_text);
        if (copy > 0)
            snprintf(copy_text, sizeof copy_text, "%.4g", copy);
        if (peak > 0)
            snprintf(peak_text, sizeof peak_text, "%.4g", peak);
        snprintf(waiting, sizeof waiting, "%.0f of %.0f", gm_json_number(queue, "queued"),
                 gm_json_number(queue, "capacity"));
        snprintf(model, sizeof model, "%s (%s)%s", gm_json_text(device, "model"),
                 gm_json_text(device, "detail"),
                 json_is_true(json_object_get(device, "lost")) ? " LOST" : "");
        gm_table_add(&table, (const char *const[]){
                                 gm_json_text(device, "name"), gm_json_text(device, "kind"),
                                 json_is_true(json_object_get(device, "default")) ? "yes" : "",
                                 memory_text, copy_text, peak_text, waiting, model});
    }
    gm_table_print(&table, stdout);
    json_decref(document);
    return GM_EXIT_OK;
}

/* All numbers, words and texts of a document, a line each; its limits have reasons, and stay out.
 */
static void add_members(struct gm_table *table, const char *prefix, json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach (object, name, value) {
        char path[256];
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", name);
        if (json_is_object(value)) {
            add_members(table, path, value);
            continue;
        }
        char *text = json_is_string(value)
                         ? strdup(json_string_value(value))
                         : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        gm_table_add(table, (const char *const[]){path, text ? text : ""});
        free(text);
    }
}

enum gm_exit gm_command_stats(struct gemmd_client *client, struct gm_options *options,
                              const char *name, char **args, int count)
{
    struct gm_table table = {.columns = 2, .right = {[1] = true}};
    enum gm_exit status;

    (void)args;
    if (has_argument(name, count))
        return GM_EXIT_USAGE;
    if (options->json)
        return gm_print_document(client, options, "/v1/stats");
    json_t *document = gm_get_json(client, options, "/v1/stats", &status);
    if (!document)
        return status;
    json_object_del(document, "limits");
    gm_table_add(&table, (const char *const[]){"what", "value"});
    add_members(&table, "", document);
    gm_table_print(&table, stdout);
    json_decref(document);
    return GM_EXIT_OK;
}
