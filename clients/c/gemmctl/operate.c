/*
 * operate.c - operations and expressions on files, and reports on them: compare and explain. Files
 * go out as they are, and the daemon reads and writes their formats: nothing is converted here.
 */
#include "clients/c/gemmctl/commands.h"
#include "clients/c/gemmctl/files.h"
#include "clients/c/gemmctl/say.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Between attempts: the first and the longest pause. */
#define RETRY_STEP_S 0.1
#define RETRY_STEP_MAX_S 5.0
#define SLEEP_S 0.1 /* the longest that an interrupt waits */

bool gm_operation_takes(const char *op, size_t *ret_least, size_t *ret_most)
{
    static const struct {
        const char *op;
        size_t least, most; /* one file may hold several operands */
    } table[] = {{"transpose", 1, 1}, {"flip", 1, 1}, {"add", 1, 2}, {"matmul", 1, 3}};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].op, op) == 0) {
            *ret_least = table[i].least;
            *ret_most = table[i].most;
            return true;
        }
    }
    return false;
}

/* The first operand's; NPY where the daemon has them all. */
static const struct gm_format *format_of_inputs(const struct gm_inputs *inputs)
{
    return inputs->count > 0 ? inputs->input[0].format : gm_format_by_name("npy");
}

/* One line on standard error: what ran and how long it took. */
static void say_summary(const char *account)
{
    static const char *const stages[] = {"receive", "decode", "queue", "h2d",
                                         "prepare", "kernel", "d2h",   "encode"};
    char op[32] = "", kernel[64] = "", device[64] = "", path[32], buf[GM_QUANTITY_MAX];
    double number;

    if (!gemmd_account_text(account, "op", op, sizeof op))
        return;
    gemmd_account_text(account, "kernel", kernel, sizeof kernel);
    gemmd_account_text(account, "device", device, sizeof device);
    fprintf(stderr, "%s by %s on %s", op, kernel, device);
    if (gemmd_account_number(account, "us.total", &number))
        fprintf(stderr, ": %s", gm_say_seconds(number / 1e6, buf));
    const char *separator = " (";
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        snprintf(path, sizeof path, "us.%s", stages[i]);
        if (gemmd_account_number(account, path, &number)) {
            fprintf(stderr, "%s%s %s", separator, stages[i], gm_say_seconds(number / 1e6, buf));
            separator = ", ";
        }
    }
    if (*separator == ',')
        fprintf(stderr, ")");
    if (gemmd_account_number(account, "gflops", &number) && number > 0)
        fprintf(stderr, ", %.4g GFLOP/s", number);
    else if (gemmd_account_number(account, "effective_gbs", &number))
        fprintf(stderr, ", %.4g GB/s", number);
    if (gemmd_account_number(account, "percent_of_roofline", &number))
        fprintf(stderr, ", %.3g %% of the roofline", number);
    else if (gemmd_account_number(account, "percent_of_copy", &number))
        fprintf(stderr, ", %.3g %% of a copy", number);
    fprintf(stderr, "\n");
}

static void say_account(const struct gm_options *options, const char *account)
{
    bool to_file = options->output && strcmp(options->output, "-") != 0;

    if (!account)
        return;
    if (options->json) {
        if (to_file)
            printf("%s\n", account);
    } else if (!options->quiet && (options->verbose || (to_file && isatty(STDERR_FILENO)))) {
        say_summary(account);
    }
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Whether a request that failed may be sent again. Not where a pipe was read, or a result begun:
 * that is gone. Nor one with --keep that may have been done, whose result may have replaced its own
 * operand: where the connection broke, or something in between refused the reply, which has no code
 * of gemmd's. Any other has the same result twice. */
static bool may_retry(const struct gm_options *options, const struct gemmd_error *err,
                      const struct gemmd_source *sources, size_t count,
                      const struct gm_output *output)
{
    bool sent = err->status != GEMMD_NO_CONNECTION;
    bool keeps = gm_options_parameter(options, "keep");

    for (size_t i = 0; sent && i < count; i++)
        if (sources[i].read)
            return false;
    if (output && output->begun)
        return false;
    return err->status == GEMMD_NO_CONNECTION || (err->status == GEMMD_BROKEN && !keeps) ||
           (err->status == GEMMD_REFUSED && err->retry_after_s > 0 &&
            (err->http == 429 || err->http == 503) && (!keeps || *err->code));
}

/* Waits until the next attempt: as long as the daemon says, else *backoff_s, which grows. False if
 * that is too late, or at an interrupt. */
static bool wait_to_retry(const struct gm_options *options, const struct gemmd_error *err,
                          double until_s, double *backoff_s)
{
    double wait = err->retry_after_s > 0 ? err->retry_after_s : *backoff_s;

    if (now_s() + wait > until_s)
        return false;
    if (!options->quiet)
        fprintf(stderr, "gemmctl: %s; once more in %.1f s\n", err->detail, wait);
    *backoff_s = 2 * *backoff_s < RETRY_STEP_MAX_S ? 2 * *backoff_s : RETRY_STEP_MAX_S;
    /* In short sleeps: a signal may come just before one. */
    for (double left, end_s = now_s() + wait; (left = end_s - now_s()) > 0;) {
        const struct timespec span = {.tv_nsec = (long)(1e9 * fmin(left, SLEEP_S))};
        if (gm_say_interrupted())
            return false;
        nanosleep(&span, NULL);
    }
    return !gm_say_interrupted();
}

/* Sends the operands and takes what comes, to the file or the callback's. */
static enum gm_exit send(struct gemmd_client *client, struct gm_options *options, const char *path,
                         const char *accept, const struct gemmd_source *sources, size_t count,
                         struct gemmd_reply *reply, struct gm_output *output)
{
    struct gm_bar bar;
    struct gemmd_call call = {.parameters = options->parameters,
                              .parameter_count = options->parameter_count,
                              .progress = gm_bar_draw,
                              .progress_cls = &bar};
    struct gemmd_request request = {.method = "POST",
                                    .path = path,
                                    .accept = accept,
                                    .sources = sources,
                                    .source_count = count,
                                    .call = &call};
    struct gemmd_error err;

    if (output) {
        request.write = gm_output_write;
        request.write_cls = output;
    }
    enum gemmd_status status;
    double until_s = now_s() + options->retry_s, backoff_s = RETRY_STEP_S;
    do {
        gm_bar_start(&bar);
        status = gemmd_exchange(client, &request, reply, &err);
        gm_bar_end(&bar);
    } while (status != GEMMD_OK && may_retry(options, &err, sources, count, output) &&
             wait_to_retry(options, &err, until_s, &backoff_s));
    if (status == GEMMD_OK)
        return GM_EXIT_OK;
    return output && output->error ? GM_EXIT_FILE : gm_say_error(options, &err);
}

/* The result stays at the daemon. */
static enum gm_exit keep(struct gemmd_client *client, struct gm_options *options, const char *path,
                         const struct gemmd_source *sources, size_t count)
{
    struct gemmd_reply reply = {0};
    enum gm_exit status =
        send(client, options, path, "application/json", sources, count, &reply, NULL);

    if (status == GM_EXIT_OK)
        status = gm_say_kept(options, gm_options_parameter(options, "keep"), &reply);
    if (status == GM_EXIT_OK && options->verbose && reply.account)
        say_summary(reply.account);
    gemmd_reply_free(&reply);
    return status;
}

enum gm_exit gm_command_operate(struct gemmd_client *client, struct gm_options *options,
                                const char *name, char **args, int count)
{
    struct gm_inputs inputs;
    struct gm_output output;
    struct gemmd_reply reply = {0};
    size_t least = 1, most = 1;
    char path[64];

    gm_operation_takes(name, &least, &most);
    if ((size_t)count < least || (size_t)count > most)
        return gm_say_wrong(GM_EXIT_USAGE, "%s takes %s (- is standard input)", name,
                            most == 1   ? "one file"
                            : most == 2 ? "a file for a and one for b, or one with both"
                                        : "a file for a, one for b, and one for c if there is a "
                                          "c; or one with all");
    enum gm_exit status = gm_inputs_open(&inputs, options, args, (size_t)count);
    if (status != GM_EXIT_OK)
        return status;
    snprintf(path, sizeof path, "/v1/%s", name);
    if (gm_options_parameter(options, "keep") && !options->output && !options->to) {
        status = gm_inputs_share_shape(&inputs, options)
                     ? keep(client, options, path, inputs.source, inputs.count)
                     : GM_EXIT_USAGE;
        gm_inputs_close(&inputs);
        return status;
    }
    if (gm_options_parameter(options, "keep") && !gm_options_parameter(options, "return") &&
        !gm_options_add_parameter(options, "return", "result"))
        return GM_EXIT_USAGE;
    const struct gm_format *format = gm_format_of_result(options, format_of_inputs(&inputs));
    status = !format || !gm_inputs_share_shape(&inputs, options)
                 ? GM_EXIT_USAGE
                 : gm_output_open(&output, options->output);
    if (status == GM_EXIT_OK) {
        status =
            send(client, options, path, format->type, inputs.source, inputs.count, &reply, &output);
        enum gm_exit closed = gm_output_close(&output, status == GM_EXIT_OK);
        status = status == GM_EXIT_OK ? closed : status;
        if (status == GM_EXIT_OK)
            say_account(options, reply.account);
    }
    gemmd_reply_free(&reply);
    gm_inputs_close(&inputs);
    return status;
}

/* ---- expressions ---- */

#define EXPRESSION_OPERANDS_MAX 16

/* An expression, and its operands as parts of their names. */
struct expression {
    struct gm_inputs *inputs; /* of those that are files */
    struct gemmd_source *sources;
    size_t count; /* of sources, the expression included */
    const struct gm_format *format;
};

static void close_expression(struct expression *x)
{
    for (size_t i = 0; x->inputs && i < x->count; i++)
        gm_inputs_close(&x->inputs[i]);
    free(x->inputs);
    free(x->sources);
}

static struct gemmd_source text_source(const char *name, const char *text)
{
    return (struct gemmd_source){
        .name = name, .origin = GEMMD_FROM_MEMORY, .data = text, .size = strlen(text)};
}

static bool is_number(const char *text)
{
    char *end;

    strtod(text, &end);
    return end > text && !*end;
}

/* NAME=VALUE: a file, ref:NAME or a number. */
static enum gm_exit add_operand(struct expression *x, struct gm_options *options, char *argument)
{
    char *value = strchr(argument, '=');

    if (!value || value == argument)
        return gm_say_wrong(GM_EXIT_USAGE,
                            "%s: an operand is NAME=FILE, NAME=ref:NAME or NAME=NUMBER", argument);
    *value++ = '\0';
    if (strncmp(value, "ref:", 4) == 0 || is_number(value)) {
        x->sources[x->count++] = text_source(argument, value);
        return GM_EXIT_OK;
    }
    struct gm_inputs *inputs = &x->inputs[x->count];
    enum gm_exit status = gm_inputs_open(inputs, options, &value, 1);
    if (status != GM_EXIT_OK)
        return status;
    const struct gm_format *format = inputs->input[0].format;
    x->sources[x->count] = inputs->source[0];
    x->sources[x->count++].name = argument;
    if (strcmp(format->name, "raw") == 0)
        return gm_say_wrong(GM_EXIT_USAGE, "%s: an expression takes npy, csv and json", value);
    x->format = x->format ? x->format : format;
    return GM_EXIT_OK;
}

static enum gm_exit open_expression(struct expression *x, struct gm_options *options, char **args,
                                    size_t count)
{
    enum gm_exit status = GM_EXIT_OK;

    x->inputs = calloc(count, sizeof *x->inputs);
    x->sources = calloc(count, sizeof *x->sources);
    if (!x->inputs || !x->sources)
        return gm_say_wrong(GM_EXIT_FILE, "out of memory");
    x->sources[x->count++] = text_source("expr", args[0]);
    for (size_t i = 1; i < count && status == GM_EXIT_OK; i++)
        status = add_operand(x, options, args[i]);
    x->format = x->format ? x->format : gm_format_by_name("npy");
    return status;
}

/* What comes goes to the file. */
static enum gm_exit send_expression(struct gemmd_client *client, struct gm_options *options,
                                    const struct expression *x, const char *accept)
{
    struct gemmd_reply reply = {0};
    struct gm_output output;
    enum gm_exit status = gm_output_open(&output, options->output);

    if (status != GM_EXIT_OK)
        return status;
    status = send(client, options, "/v1/eval", accept, x->sources, x->count, &reply, &output);
    enum gm_exit closed = gm_output_close(&output, status == GM_EXIT_OK);
    status = status == GM_EXIT_OK ? closed : status;
    if (status == GM_EXIT_OK)
        say_account(options, reply.account);
    gemmd_reply_free(&reply);
    return status;
}

enum gm_exit gm_command_eval(struct gemmd_client *client, struct gm_options *options,
                             const char *name, char **args, int count)
{
    struct expression x = {0};
    bool keeps = gm_options_parameter(options, "keep");

    if (count < 1 || count > EXPRESSION_OPERANDS_MAX + 1)
        return gm_say_wrong(GM_EXIT_USAGE,
                            "%s takes an expression, as 'x @ w.T + 1', and at most %d operands, "
                            "NAME=FILE",
                            name, EXPRESSION_OPERANDS_MAX);
    enum gm_exit status = open_expression(&x, options, args, (size_t)count);
    if (status == GM_EXIT_OK && gm_options_parameter(options, "explain")) {
        status =
            send_expression(client, options, &x, options->json ? "application/json" : "text/plain");
    } else if (status == GM_EXIT_OK && keeps && !options->output && !options->to) {
        status = keep(client, options, "/v1/eval", x.sources, x.count);
    } else if (status == GM_EXIT_OK) {
        const struct gm_format *format = gm_format_of_result(options, x.format);
        bool good = format && (!keeps || gm_options_parameter(options, "return") ||
                               gm_options_add_parameter(options, "return", "result"));
        status = good ? send_expression(client, options, &x, format->type) : GM_EXIT_USAGE;
    }
    close_expression(&x);
    return status;
}

/* The format of a report; NULL: said what is wrong. A suffix that means a format of matrices is a
 * mistake, as it is in --to; one that means nothing gets text. */
static const char *report_format(const struct gm_options *options, const char *report)
{
    const char *path = options->output ? options->output : "", *name = options->to;
    const struct gm_format *format = gm_format_by_suffix(path, true);
    const struct gm_format *wrong = format ? NULL : gm_format_by_suffix(path, false);

    if (!name)
        name = wrong ? wrong->name : options->json ? "json" : format ? format->name : "text";
    if (strcmp(name, "text") == 0 || strcmp(name, "json") == 0 || strcmp(name, "svg") == 0)
        return name;
    gm_say_wrong(GM_EXIT_USAGE, "%s cannot be written as %s: it takes text, svg and json", report,
                 name);
    return NULL;
}

enum gm_exit gm_command_report(struct gemmd_client *client, struct gm_options *options,
                               const char *name, char **args, int count)
{
    struct gm_inputs inputs;
    struct gm_output output;
    struct gemmd_reply reply = {0};
    bool explain = strcmp(name, "explain") == 0;
    size_t least, most = 0;
    char path[128];

    if (count < 1 ||
        (!gm_operation_takes(args[0], &least, &most) && !(explain && strcmp(args[0], "copy") == 0)))
        return gm_say_wrong(GM_EXIT_USAGE, "%s wants an operation: transpose, matmul, add%s flip%s",
                            name, explain ? "," : " or", explain ? " or copy" : "");
    if ((size_t)count - 1 > most || (!explain && count < 2))
        return gm_say_wrong(GM_EXIT_USAGE, "%s %s takes %s%s", name, args[0],
                            !explain    ? ""
                            : most == 0 ? "no file"
                                        : "no file, or ",
                            most == 0   ? ""
                            : most == 1 ? "the file of its operand (- is standard input)"
                                        : "the files of its operands (- is standard input)");
    const char *format = report_format(options, name);
    if (!format || !gm_options_add_parameter(options, "format", format))
        return GM_EXIT_USAGE;
    enum gm_exit status = gm_inputs_open(&inputs, options, args + 1, (size_t)count - 1);
    if (status != GM_EXIT_OK)
        return status;
    status = gm_inputs_share_shape(&inputs, options) ? gm_output_open(&output, options->output)
                                                     : GM_EXIT_USAGE;
    if (status == GM_EXIT_OK) {
        snprintf(path, sizeof path, "/v1/%s/%s", name, args[0]);
        status = send(client, options, path, NULL, inputs.source, inputs.count, &reply,
                      output.path ? &output : NULL);
        enum gm_exit closed = gm_output_close(&output, status == GM_EXIT_OK);
        status = status == GM_EXIT_OK ? closed : status;
        if (reply.body)
            gm_say_text(stdout, reply.body, reply.body_bytes);
    }
    gemmd_reply_free(&reply);
    gm_inputs_close(&inputs);
    return status;
}
