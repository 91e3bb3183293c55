/*
 * main.c - gemmctl: gemmd's operations, reports and figures from a shell. The environment is read
 * here, and by say.c for colours: the library reads none of it.
 */
#include "clients/c/gemmctl/commands.h"
#include "clients/c/gemmctl/say.h"
#include "proto/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name, *takes, *help;
    gm_command *run;
} commands[] = {
    {"transpose", "A", "its transpose", gm_command_operate},
    {"matmul", "A B [C]", "alpha * A B + beta * C", gm_command_operate},
    {"add", "A B", "A + B; a row, a column or a number is repeated", gm_command_operate},
    {"flip", "A", "each row of it reversed", gm_command_operate},
    {"eval", "EXPR [NAME=FILE]...", "an expression in NumPy's notation; see /v1/eval",
     gm_command_eval},
    {"put", "NAME FILE", "the daemon keeps the matrix: then ref:NAME is an operand",
     gm_command_put},
    {"get", "NAME", "a matrix that it keeps", gm_command_get},
    {"list", "", "the matrices that it keeps", gm_command_list},
    {"delete", "NAME...", "it forgets them", gm_command_delete},
    {"compare", "OP FILE...", "every kernel of an operation on the same operands: a table",
     gm_command_report},
    {"explain", "OP [FILE...]", "where a kernel accesses memory, what that costs, and the cure",
     gm_command_report},
    {"choose", "OP", "what each kernel is estimated to take, and which one auto takes",
     gm_command_choose},
    {"kernels", "[OP]", "the kernels there are", gm_command_kernels},
    {"devices", "", "the devices there are", gm_command_devices},
    {"stats", "", "what the daemon has counted", gm_command_stats},
    {"bench", "OP [FILE...]", "many requests: how many a second, and how long they take",
     gm_command_bench},
    {"top", "", "what the daemon does, live", gm_command_top},
    {"key", "new|list|revoke", "the keys file of a daemon; new and revoke take a NAME",
     gm_command_key},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_help(void)
{
    printf("gemmctl - matrix operations by gemmd, from a shell\n\n"
           "Usage: gemmctl COMMAND [FILE...] [OPTION...]\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char left[48];
        snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].takes);
        printf("  %-22s %s\n", left, commands[i].help);
    }
    gm_options_help();
    printf(
        "\nFILE is .npy, .csv, .json or .raw, or - for standard input; -o FILE likewise. An "
        "operand\n"
        "is also ref:NAME, a matrix that the daemon keeps.\n"
        "\nExit status: 0 done, 1 the request is wrong, 2 the command line is, 3 no connection,\n"
        "4 busy or too slow, 5 the daemon failed, 6 a file failed, 7 no key that may. "
        "See gemmctl(1).\n");
}

static gm_command *find_command(const char *name)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        size_t distance = gm_edit_distance(name, strlen(name), commands[i].name);
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run;
        if (distance < least) {
            least = distance;
            nearest = commands[i].name;
        }
    }
    bool near = gm_is_near(name, strlen(name), nearest);
    gm_say_wrong(GM_EXIT_USAGE, "there is no command %s; %s%s", name,
                 near ? "the nearest is " : "see gemmctl --help", near ? nearest : "");
    return NULL;
}

#define KEY_FILE_MAX 4352

/* The first line of a file, without the blanks around it. false: said what is wrong. */
static bool read_key(const char *path, char out[KEY_FILE_MAX])
{
    FILE *file = fopen(path, "re");
    bool read = file && fgets(out, KEY_FILE_MAX, file);
    int error = errno;

    if (file)
        fclose(file);
    if (!read) {
        gm_say_wrong(GM_EXIT_FILE, "%s: %s", path,
                     file ? "there is no key in it" : strerror(error));
        return false;
    }
    char *begin = out + strspn(out, " \t\r\n");
    memmove(out, begin, strlen(begin) + 1);
    for (size_t len = strlen(out); len > 0 && strchr(" \t\r\n", out[len - 1]);)
        out[--len] = '\0';
    if (!*out)
        gm_say_wrong(GM_EXIT_FILE, "%s: there is no key in it", path);
    return *out;
}

/* A variable, or NULL where it is unset or empty. */
static const char *variable(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

/* Never 0 of a time that is stated: to the library that is no limit. */
static uint64_t milliseconds(double seconds)
{
    uint64_t whole = (uint64_t)(seconds * 1000);

    return seconds > 0 && whole == 0 ? 1 : whole;
}

static struct gemmd_client *make_client(const struct gm_options *options, enum gm_exit *ret_status)
{
    char key[KEY_FILE_MAX];
    struct gemmd_client *client = NULL;
    struct gemmd_error err;
    const char *key_file = options->key_file;
    if (!key_file && !variable("GEMMD_KEY"))
        key_file = variable("GEMMD_KEY_FILE");
    struct gemmd_options with = {
        .url = options->url ? options->url : variable("GEMMD_URL"),
        .unix_socket = options->unix_socket,
        .key = key_file ? key : variable("GEMMD_KEY"),
        .ca_file = options->ca_file ? options->ca_file : variable("GEMMD_CA"),
        .proxy = options->proxy,
        .connect_timeout_ms = milliseconds(options->connect_timeout_s),
        .timeout_ms = milliseconds(options->max_time_s),
    };

    *ret_status = GM_EXIT_FILE;
    if (key_file && !read_key(key_file, key))
        return NULL;
    if (gemmd_client_new(&with, &client, &err) != GEMMD_OK)
        *ret_status = gm_say_error(options, &err);
    explicit_bzero(key, sizeof key);
    return client;
}

int main(int argc, char **argv)
{
    struct gm_options options;
    enum gm_exit status;

    if (!gm_options_read(argc, argv, &options))
        return GM_EXIT_USAGE;
    if (options.version)
        printf("gemmctl %s\n", GM_VERSION);
    else if (options.help)
        print_help();
    if (options.version || options.help)
        return fflush(stdout) == 0
                   ? GM_EXIT_OK
                   : (int)gm_say_wrong(GM_EXIT_FILE, "standard output: %s", strerror(errno));
    if (!gm_say_start(&options))
        return GM_EXIT_USAGE;
    if (options.arg_count == 0)
        return (int)gm_say_wrong(GM_EXIT_USAGE, "what to do? See gemmctl --help");
    gm_command *run = find_command(options.args[0]);
    if (!run || !gm_options_suit(&options, options.args[0]))
        return GM_EXIT_USAGE;
    struct gemmd_client *client = NULL;
    /* A keys file needs no daemon, and a key that is just being made cannot be read. */
    if (run != gm_command_key && !(client = make_client(&options, &status)))
        return (int)status;
    status = run(client, &options, options.args[0], options.args + 1, options.arg_count - 1);
    gemmd_client_free(client);
    errno = 0; /* of fflush, or none where an earlier write has failed */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == GM_EXIT_OK) {
        struct stat about;
        status = GM_EXIT_FILE;
        /* Whoever closes a pipe, as head does, wants no word of it. */
        if (fstat(STDOUT_FILENO, &about) != 0 || !S_ISFIFO(about.st_mode))
            gm_say_wrong(status, "standard output: %s",
                         errno != 0 ? strerror(errno) : "it could not be written");
    }
    return (int)(status != GM_EXIT_OK && gm_say_interrupted() ? GM_EXIT_INTERRUPTED : status);
}
