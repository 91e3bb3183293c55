#include "clients/c/gemmctl/files.h"

#include "clients/c/gemmctl/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct gm_format formats[] = {
    {"npy", "application/x-npy", ".npy", true, false},
    {"csv", "text/csv", ".csv .tsv", false, false},
    {"json", "application/json", ".json", false, false},
    {"raw", "application/octet-stream", ".raw .bin", true, false},
    {"text", "text/plain", ".txt .text", false, true},
    {"json", "application/json", ".json", false, true},
    {"svg", "image/svg+xml", ".svg", false, true},
};
#define FORMAT_COUNT (sizeof formats / sizeof *formats)

const struct gm_format *gm_format_by_name(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

/* Whether a list of words with blanks between them has this one. */
static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *p = list; (p = strstr(p, word)); p += len)
        if (p[len] == ' ' || p[len] == '\0')
            return true;
    return false;
}

const struct gm_format *gm_format_by_suffix(const char *path, bool report)
{
    const char *dot = strrchr(path, '.');
    char suffix[8] = "";

    if (!dot || strlen(dot) >= sizeof suffix)
        return NULL;
    for (size_t i = 0; dot[i]; i++)
        suffix[i] = dot[i] >= 'A' && dot[i] <= 'Z' ? (char)(dot[i] - 'A' + 'a') : dot[i];
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (formats[i].report == report && has_word(formats[i].suffixes, suffix))
            return &formats[i];
    return NULL;
}

const struct gm_format *gm_format_of_result(const struct gm_options *options,
                                            const struct gm_format *own)
{
    const struct gm_format *format, *report;
    bool to_file = options->output && strcmp(options->output, "-") != 0;

    if (options->to) {
        format = gm_format_by_name(options->to);
        if (!format || format->report)
            gm_say_wrong(GM_EXIT_USAGE, "--to: %s is none of npy, csv, json and raw", options->to);
        return format && !format->report ? format : NULL;
    }
    if (to_file) {
        format = gm_format_by_suffix(options->output, false);
        report = format ? NULL : gm_format_by_suffix(options->output, true);
        if (report && strcmp(report->name, "svg") == 0) {
            gm_say_wrong(GM_EXIT_USAGE, "%s: a matrix cannot be written as svg", options->output);
            return NULL;
        }
        return format ? format : own;
    }
    if (options->json)
        return gm_format_by_name("json");
    return own->binary && isatty(STDOUT_FILENO) ? gm_format_by_name("csv") : own;
}

/* ---- operands ---- */

/* Reads the beginning of a file or pipe without losing it. -1: it cannot be read. */
static ssize_t look(struct gm_input *input, bool seekable)
{
    if (seekable)
        return pread(input->fd, input->first, sizeof input->first, 0);
    while (input->first_len < 8) {
        ssize_t got = read(input->fd, input->first + input->first_len,
                           sizeof input->first - input->first_len);
        if (got < 0 && errno == EINTR && !gm_say_interrupted())
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        input->first_len += (size_t)got;
    }
    return (ssize_t)input->first_len;
}

/* By how the elements begin. NULL where that says nothing. */
static const struct gm_format *format_of_bytes(const char *bytes, size_t len, bool has_shape)
{
    size_t blanks = 0;

    if (len >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0)
        return gm_format_by_name("npy");
    if (has_shape)
        return gm_format_by_name("raw");
    if (len == 0) /* of a command that failed, and not a matrix without elements */
        return NULL;
    while (blanks < len && strchr(" \t\r\n", bytes[blanks]) && bytes[blanks])
        blanks++;
    if (blanks < len && (bytes[blanks] == '[' || bytes[blanks] == '{'))
        return gm_format_by_name("json");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
            return NULL;
    }
    return gm_format_by_name("csv");
}

static const char *const operand_names[GM_OPERANDS_MAX] = {"a", "b", "c"};
static const char *const shape_names[GM_OPERANDS_MAX] = {"shape_a", "shape_b", "shape_c"};

static bool has_shape(const struct gm_options *options, size_t operand)
{
    return gm_options_parameter(options, "shape") ||
           gm_options_parameter(options, shape_names[operand]);
}

static enum gm_exit find_format(struct gm_input *input, size_t operand,
                                const struct gm_options *options, bool seekable)
{
    ssize_t len = 1;

    input->format =
        options->from ? gm_format_by_name(options->from) : gm_format_by_suffix(input->path, false);
    if (options->from && (!input->format || input->format->report))
        return gm_say_wrong(GM_EXIT_USAGE, "--from: %s is none of npy, csv, json and raw",
                            options->from);
    if (!input->format) {
        len = look(input, seekable);
        if (len < 0)
            return gm_say_interrupted()
                       ? GM_EXIT_INTERRUPTED
                       : gm_say_wrong(GM_EXIT_FILE, "%s: %s", input->path, strerror(errno));
        input->format = format_of_bytes(input->first, (size_t)len, has_shape(options, operand));
    }
    if (!input->format && len == 0)
        return gm_say_wrong(GM_EXIT_USAGE,
                            "%s is empty: a matrix without elements takes --from FORMAT",
                            input->path);
    if (!input->format && len >= 4 && memcmp(input->first, "PK\3\4", 4) == 0)
        return gm_say_wrong(GM_EXIT_USAGE,
                            "%s is a zip archive, as .npz files are: unzip -l FILE lists its "
                            "arrays, and unzip -p FILE NAME.npy | gemmctl OP - takes one",
                            input->path);
    if (!input->format)
        return gm_say_wrong(GM_EXIT_USAGE,
                            "%s: neither its name nor its first bytes tell its format: say "
                            "--from FORMAT, and for raw elements --shape RxC and --dtype TYPE",
                            input->path);
    if (strcmp(input->format->name, "raw") == 0 && !has_shape(options, operand))
        return gm_say_wrong(GM_EXIT_USAGE,
                            "%s: of raw elements --shape RxC is needed, and --dtype "
                            "TYPE unless they are f32",
                            input->path);
    return GM_EXIT_OK;
}

/* What was looked at, then the rest. */
static int64_t read_pipe(void *cls, void *buffer, size_t len)
{
    struct gm_input *input = cls;
    size_t left = input->first_len - input->first_at;
    ssize_t got;

    if (left > 0) {
        len = len < left ? len : left;
        memcpy(buffer, input->first + input->first_at, len);
        input->first_at += len;
        return (int64_t)len;
    }
    do
        got = read(input->fd, buffer, len);
    while (got < 0 && errno == EINTR && !gm_say_interrupted());
    return got;
}

static enum gm_exit open_input(struct gm_inputs *inputs, size_t index,
                               const struct gm_options *options)
{
    struct gm_input *input = &inputs->input[index];
    struct gemmd_source *source = &inputs->source[index];
    bool standard = strcmp(input->path, "-") == 0;
    struct stat about;

    input->fd = standard ? STDIN_FILENO : open(input->path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0 && errno == ENOENT && !strpbrk(input->path, "./"))
        return gm_say_wrong(GM_EXIT_FILE, "%s: %s; a matrix that the daemon keeps is ref:%s",
                            input->path, strerror(errno), input->path);
    if (input->fd < 0 || fstat(input->fd, &about) != 0)
        return gm_say_wrong(GM_EXIT_FILE, "%s: %s", input->path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return gm_say_wrong(GM_EXIT_FILE, "%s is a folder", input->path);
    if (standard && isatty(STDIN_FILENO) && !options->quiet)
        fprintf(stderr, "gemmctl: reading a matrix from the terminal; end it with Ctrl-D\n");
    bool seekable = S_ISREG(about.st_mode) && !standard;
    enum gm_exit status = find_format(input, input->operand, options, seekable);
    if (status != GM_EXIT_OK)
        return status;
    *source = (struct gemmd_source){.type = input->format->type, .size = GEMMD_SIZE_UNKNOWN};
    if (seekable) {
        source->origin = GEMMD_FROM_FD;
        source->fd = input->fd;
    } else {
        source->origin = GEMMD_FROM_CALLBACK;
        source->read = read_pipe;
        source->cls = input;
    }
    return GM_EXIT_OK;
}

/* Adds an operand that the daemon has as a parameter. */
static bool add_ref(struct gm_options *options, const char *ref, size_t operand)
{
    return gm_options_add_parameter(options, operand_names[operand], ref);
}

static bool is_ref(const char *path)
{
    return strncmp(path, "ref:", 4) == 0;
}

enum gm_exit gm_inputs_open(struct gm_inputs *inputs, struct gm_options *options,
                            char *const *paths, size_t count)
{
    size_t standard = 0;

    *inputs = (struct gm_inputs){0};
    for (size_t i = 0; i < count; i++)
        standard += strcmp(paths[i], "-") == 0;
    if (standard > 1)
        return gm_say_wrong(GM_EXIT_USAGE, "standard input (-) can be one operand only; NPY files "
                                           "back to back are: cat a.npy b.npy | gemmctl matmul -");
    for (size_t i = 0; i < count; i++) {
        size_t at = inputs->count;
        if (is_ref(paths[i])) {
            if (!add_ref(options, paths[i], i))
                return GM_EXIT_USAGE;
            continue;
        }
        inputs->input[at] = (struct gm_input){.path = paths[i], .fd = -1, .operand = i};
        inputs->count = at + 1;
        enum gm_exit status = open_input(inputs, at, options);
        if (status != GM_EXIT_OK) {
            gm_inputs_close(inputs);
            return status;
        }
    }
    for (size_t i = 0; i < inputs->count && inputs->count > 1; i++)
        inputs->source[i].name = operand_names[inputs->input[i].operand];
    return GM_EXIT_OK;
}

/* Whether the only file is not operand a: a shape for all is its own. */
static bool is_later(const struct gm_inputs *inputs)
{
    return inputs->count == 1 && inputs->input[0].operand > 0;
}

bool gm_inputs_share_shape(const struct gm_inputs *inputs, struct gm_options *options)
{
    const char *shape = gm_options_parameter(options, "shape");

    if (!shape || (inputs->count < 2 && !is_later(inputs)))
        return true;
    gm_options_drop_parameter(options, "shape");
    for (size_t i = 0; i < inputs->count; i++) {
        const char *name = shape_names[inputs->input[i].operand];
        if (strcmp(inputs->input[i].format->name, "raw") == 0 &&
            !gm_options_parameter(options, name) && !gm_options_add_parameter(options, name, shape))
            return false;
    }
    return true;
}

void gm_inputs_close(struct gm_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (inputs->input[i].fd > STDIN_FILENO)
            close(inputs->input[i].fd);
    inputs->count = 0;
}

/* ---- the result ---- */

/* A file beside the final one, with the rights that this will have. */
static enum gm_exit open_temporary(struct gm_output *output, const struct stat *about)
{
    mode_t mask = umask(0);

    umask(mask);
    if (asprintf(&output->temporary, "%s.XXXXXX", output->final) < 0) {
        output->temporary = NULL;
        return gm_say_wrong(GM_EXIT_FILE, "out of memory");
    }
    output->fd = mkostemp(output->temporary, O_CLOEXEC);
    if (output->fd < 0 || fchmod(output->fd, about ? about->st_mode & 0777 : 0666 & ~mask) != 0)
        return gm_say_wrong(GM_EXIT_FILE, "%s: %s", output->path, strerror(errno));
    return GM_EXIT_OK;
}

enum gm_exit gm_output_open(struct gm_output *output, const char *path)
{
    struct stat about;

    *output = (struct gm_output){.path = path, .fd = STDOUT_FILENO};
    if (!path || strcmp(path, "-") == 0) {
        output->path = NULL;
        return GM_EXIT_OK;
    }
    bool there = stat(path, &about) == 0;
    if (there && !S_ISREG(about.st_mode)) { /* a device or a pipe is written as it is */
        output->fd = open(path, O_WRONLY | O_CLOEXEC);
        return output->fd >= 0 ? GM_EXIT_OK
                               : gm_say_wrong(GM_EXIT_FILE, "%s: %s", path, strerror(errno));
    }
    output->final = there ? realpath(path, NULL) : strdup(path); /* what a link leads to */
    output->fd = -1;
    enum gm_exit status = output->final
                              ? open_temporary(output, there ? &about : NULL)
                              : gm_say_wrong(GM_EXIT_FILE, "%s: %s", path, strerror(errno));
    if (status != GM_EXIT_OK)
        gm_output_close(output, false);
    return status;
}

bool gm_output_write(void *cls, const void *bytes, size_t len)
{
    struct gm_output *output = cls;
    const char *at = bytes;

    while (len > 0) {
        ssize_t done = write(output->fd, at, len);
        if (done < 0 && errno == EINTR && !gm_say_interrupted())
            continue;
        if (done < 0) {
            output->error = errno;
            return false;
        }
        output->begun = true;
        at += done;
        len -= (size_t)done;
    }
    return true;
}

enum gm_exit gm_output_close(struct gm_output *output, bool good)
{
    enum gm_exit status = output->error ? GM_EXIT_FILE : GM_EXIT_OK;

    /* Whoever closes a pipe, as head does, wants no word of it. */
    if (output->error && (output->path || output->error != EPIPE))
        gm_say_wrong(status, "%s: %s", output->path ? output->path : "standard output",
                     strerror(output->error));
    if (output->fd > STDERR_FILENO && close(output->fd) != 0 && good)
        status = gm_say_wrong(GM_EXIT_FILE, "%s: %s", output->path, strerror(errno));
    good = good && status == GM_EXIT_OK;
    if (good && output->temporary && rename(output->temporary, output->final) != 0) {
        status = gm_say_wrong(GM_EXIT_FILE, "%s: %s", output->path, strerror(errno));
        good = false;
    }
    if (!good && output->temporary && output->fd >= 0)
        unlink(output->temporary);
    free(output->final);
    free(output->temporary);
    *output = (struct gm_output){.fd = -1};
    return status;
}
