/*
 * matrices.c - named matrices: put, get, list and delete.
 */
#include "clients/c/gemmctl/commands.h"
#include "clients/c/gemmctl/files.h"
#include "clients/c/gemmctl/say.h"
#include "clients/c/gemmctl/table.h"

#include <stdlib.h>
#include <string.h>

/* The path of a name. false: said that it is none. */
static bool path_of(const char *name, char *out, size_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const char *dot = strrchr(name, '.'), *own = dot ? dot + 1 : name; /* NAME of OWNER.NAME */
    bool good = *own && strchr(letters, *own);

    for (const char *p = name; good && *p; p++)
        good = strchr(letters, *p) || strchr("0123456789.-", *p);
    if (!good || (size_t)snprintf(out, size, "/v1/matrices/%s", name) >= size) {
        gm_say_wrong(GM_EXIT_USAGE,
                     "%s is no name of a matrix: a name has letters, digits and _, no digit "
                     "first, 64 at most; before it OWNER. where it is another's",
                     name);
        return false;
    }
    return true;
}

static void shape_text(const json_t *matrix, char *out, size_t size)
{
    size_t index, at = 0;
    json_t *dim;

    *out = '\0';
    json_array_foreach (json_object_get(matrix, "shape"), index, dim) {
        int len = snprintf(out + at, size - at, "%s%lld", index ? "x" : "",
                           (long long)json_integer_value(dim));
        at = (size_t)len < size - at ? at + (size_t)len : size - 1;
    }
}

enum gm_exit gm_say_kept(const struct gm_options *options, const char *name,
                         const struct gemmd_reply *reply)
{
    json_t *said = json_loadb(reply->body, reply->body_bytes, 0, NULL);
    char shape[64];

    if (!said)
        return gm_say_wrong(GM_EXIT_DAEMON, "the reply is not JSON: is that a gemmd?");
    shape_text(said, shape, sizeof shape);
    if (options->json) {
        gm_say_text(stdout, reply->body, reply->body_bytes);
        if (reply->body_bytes > 0 && reply->body[reply->body_bytes - 1] != '\n')
            putchar('\n');
    } else if (!options->quiet) {
        printf("%s: %s %s\n", name, shape, gm_json_text(said, "dtype"));
    }
    json_decref(said);
    return GM_EXIT_OK;
}

enum gm_exit gm_command_put(struct gemmd_client *client, struct gm_options *options,
                            const char *name, char **args, int count)
{
    struct gm_inputs inputs;
    struct gemmd_reply reply = {0};
    struct gemmd_error err;
    struct gm_bar bar;
    char path[192];

    if (count != 2)
        return gm_say_wrong(GM_EXIT_USAGE, "%s takes a name and a file (- is standard input)",
                            name);
    if (!path_of(args[0], path, sizeof path))
        return GM_EXIT_USAGE;
    enum gm_exit status = gm_inputs_open(&inputs, options, args + 1, 1);
    if (status != GM_EXIT_OK)
        return status;
    struct gemmd_call call = {.parameters = options->parameters,
                              .parameter_count = options->parameter_count,
                              .progress = gm_bar_draw,
                              .progress_cls = &bar};
    struct gemmd_request request = {.method = "PUT",
                                    .path = path,
                                    .accept = "application/json",
                                    .sources = inputs.source,
                                    .source_count = inputs.count,
                                    .call = &call};
    gm_bar_start(&bar);
    enum gemmd_status sent = gemmd_exchange(client, &request, &reply, &err);
    gm_bar_end(&bar);
    status = sent == GEMMD_OK ? gm_say_kept(options, args[0], &reply) : gm_say_error(options, &err);
    gemmd_reply_free(&reply);
    gm_inputs_close(&inputs);
    return status;
}

enum gm_exit gm_command_get(struct gemmd_client *client, struct gm_options *options,
                            const char *name, char **args, int count)
{
    struct gm_output output;
    struct gemmd_reply reply = {0};
    struct gemmd_error err;
    struct gm_bar bar;
    char path[192];

    if (count != 1)
        return gm_say_wrong(GM_EXIT_USAGE, "%s takes the name of a matrix", name);
    const struct gm_format *format =
        gm_format_of_result(options, gm_format_by_name(options->json ? "json" : "npy"));
    if (!format || !path_of(args[0], path, sizeof path))
        return GM_EXIT_USAGE;
    enum gm_exit status = gm_output_open(&output, options->output);
    if (status != GM_EXIT_OK)
        return status;
    struct gemmd_call call = {.parameters = options->parameters,
                              .parameter_count = options->parameter_count,
                              .progress = gm_bar_draw,
                              .progress_cls = &bar};
    struct gemmd_request request = {.path = path,
                                    .accept = format->type,
                                    .call = &call,
                                    .write = gm_output_write,
                                    .write_cls = &output};
    gm_bar_start(&bar);
    enum gemmd_status got = gemmd_exchange(client, &request, &reply, &err);
    gm_bar_end(&bar);
    if (got != GEMMD_OK)
        status = output.error ? GM_EXIT_FILE : gm_say_error(options, &err);
    enum gm_exit closed = gm_output_close(&output, status == GM_EXIT_OK);
    gemmd_reply_free(&reply);
    return status == GM_EXIT_OK ? closed : status;
}

enum gm_exit gm_command_delete(struct gemmd_client *client, struct gm_options *options,
                               const char *name, char **args, int count)
{
    struct gemmd_reply reply = {0};
    struct gemmd_error err;
    enum gm_exit status = GM_EXIT_OK;
    char path[192];

    if (count < 1)
        return gm_say_wrong(GM_EXIT_USAGE, "%s takes names of matrices", name);
    for (int i = 0; i < count && status == GM_EXIT_OK; i++) {
        const struct gemmd_call call = {.progress = gm_say_go_on};
        const struct gemmd_request request = {.method = "DELETE", .path = path, .call = &call};
        if (!path_of(args[i], path, sizeof path))
            return GM_EXIT_USAGE;
        if (gemmd_exchange(client, &request, &reply, &err) != GEMMD_OK)
            status = gm_say_error(options, &err);
        gemmd_reply_free(&reply);
    }
    return status;
}

static void begin_table(struct gm_table *table)
{
    gm_table_add(table, (const char *const[]){"name", "shape", "type", "bytes", "device", "used",
                                              "expires", "owner"});
}

static void add_matrix(struct gm_table *table, const json_t *matrix)
{
    char shape[64], bytes[GM_QUANTITY_MAX];

    if (table->rows == GM_TABLE_ROWS_MAX) { /* another table */
        gm_table_print(table, stdout);
        begin_table(table);
    }
    shape_text(matrix, shape, sizeof shape);
    gm_table_add(table, (const char *const[]){
                            gm_json_text(matrix, "name"), shape, gm_json_text(matrix, "dtype"),
                            gm_say_bytes(gm_json_number(matrix, "bytes"), bytes),
                            gm_json_text(matrix, "device"), gm_json_text(matrix, "used"),
                            gm_json_text(matrix, "expires"), gm_json_text(matrix, "owner")});
}

enum gm_exit gm_command_list(struct gemmd_client *client, struct gm_options *options,
                             const char *name, char **args, int count)
{
    struct gm_table table = {.columns = 8, .right = {[3] = true}};
    char path[256] = "/v1/matrices";
    enum gm_exit status = GM_EXIT_OK;
    json_t *page, *matrix;
    size_t index;

    (void)args;
    if (count > 0)
        return gm_say_wrong(GM_EXIT_USAGE, "%s takes no operands", name);
    if (!options->json)
        begin_table(&table);
    while (*path && (page = gm_get_json(client, options, path, &status))) {
        json_array_foreach (json_object_get(page, "matrices"), index, matrix) {
            if (options->json) {
                char *text = json_dumps(matrix, JSON_COMPACT);
                if (text)
                    puts(text);
                free(text);
            } else {
                add_matrix(&table, matrix);
            }
        }
        snprintf(path, sizeof path, "%s", gm_json_text(page, "next"));
        json_decref(page);
    }
    if (!options->json) /* else a line each */
        gm_table_print(&table, stdout);
    return status;
}
