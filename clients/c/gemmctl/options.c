#include "clients/c/gemmctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/status.h"

enum kind {
    TEXT,      /* a const char * */
    SWITCH,    /* a bool */
    COUNT,     /* a uint64_t above 0 */
    NUMBER,    /* a double above 0 */
    TIME,      /* a double, in seconds; the text may end in ms, s, m, h */
    PARAMETER, /* of the daemon: the name is the long option's, with _ for - */
    FLAG,      /* the same, "true" */
    PAIR       /* NAME=VALUE */
};

struct row {
    const char *name;
    char letter; /* or 0 */
    const char *argument;
    enum kind kind;
    size_t offset;
    const char *help;
};

#define FIELD(name) offsetof(struct gm_options, name)

static const struct row rows[] = {
    {"url", 'u', "URL", TEXT, FIELD(url),
     "where gemmd is: http://HOST:PORT, https://..., unix:PATH; else $GEMMD_URL, else "
     "http://localhost:8080"},
    {"unix-socket", 0, "PATH", TEXT, FIELD(unix_socket), "connect to this socket of this machine"},
    {"key-file", 0, "FILE", TEXT, FIELD(key_file),
     "the key is in this file; else $GEMMD_KEY is it, or is in $GEMMD_KEY_FILE"},
    {"ca", 0, "FILE", TEXT, FIELD(ca_file),
     "trust these certificates (PEM) for https; else $GEMMD_CA"},
    {"proxy", 0, "URL", TEXT, FIELD(proxy), "through this HTTP proxy"},
    {"connect-timeout", 0, "TIME", TIME, FIELD(connect_timeout_s), "to connect; default 10s"},
    {"max-time", 'm', "TIME", TIME, FIELD(max_time_s), "for a request as a whole; default: none"},
    {"retry", 0, "TIME", TIME, FIELD(retry_s),
     "send it again, for so long, where gemmd is away, restarts or is busy; default: once"},

    {"output", 'o', "FILE", TEXT, FIELD(output), "the result goes there, in its suffix's format"},
    {"from", 'f', "FORMAT", TEXT, FIELD(from),
     "format of the operands: npy, csv, json or raw; default: by suffix, then by first bytes"},
    {"to", 't', "FORMAT", TEXT, FIELD(to),
     "format of the result: npy, csv, json, raw; of a report: text, json, svg"},

    {"kernel", 'k', "NAME", PARAMETER, 0, "a variant of `gemmctl kernels`; default auto"},
    {"device", 'd', "NAME", PARAMETER, 0, "a device of `gemmctl devices`"},
    {"dtype", 0, "TYPE", PARAMETER, 0, "how text and raw elements are read: f32, i64, ..."},
    {"shape", 's', "RxC", PARAMETER, 0,
     "of raw elements; or of what explain, choose and bench look at"},
    {"shape-a", 0, "RxC", PARAMETER, 0, "of a"},
    {"shape-b", 0, "RxC", PARAMETER, 0, "of b"},
    {"shape-c", 0, "RxC", PARAMETER, 0, "of c"},
    {"transa", 0, NULL, FLAG, 0, "multiply with the transpose of a"},
    {"transb", 0, NULL, FLAG, 0, "multiply with the transpose of b"},
    {"alpha", 0, "NUMBER", PARAMETER, 0, "factor of a b; the result is alpha * a b + beta * c"},
    {"beta", 0, "NUMBER", PARAMETER, 0, "factor of c"},
    {"precision", 0, "NAME", PARAMETER, 0, "fp32, ieee, tf32 or bf16"},
    {"repeat", 0, "N", PARAMETER, 0, "run the kernel so often, alone, and time it"},
    {"timeout-ms", 0, "N", PARAMETER, 0, "the daemon gives up after so long"},
    {"keep", 0, "NAME", PARAMETER, 0, "the daemon keeps the result under this name"},
    {"ttl", 0, "N", PARAMETER, 0, "put, --keep: for so many seconds"},
    {"share", 0, "KEYS", PARAMETER, 0, "put, --keep: these keys may read it, or *"},
    {"rows", 0, "RANGE", PARAMETER, 0, "get: as 7, 0:100 or 50:"},
    {"cols", 0, "RANGE", PARAMETER, 0, "get: the same of columns"},
    {"header", 0, "BOOL", PARAMETER, 0, "true or false: the first line of CSV is a header, or not"},
    {"nonfinite", 0, "HOW", PARAMETER, 0, "null: NaN and infinity are null in JSON"},
    {"gpu", 0, "NAME", PARAMETER, 0, "explain, choose: whose limits, as H100 or rtx4090"},
    {"param", 'p', "NAME=VALUE", PAIR, 0, "any other parameter of the daemon"},

    {"concurrency", 'c', "N", COUNT, FIELD(concurrency),
     "bench: requests at a time; default 8, with --rate 256 at most"},
    {"requests", 'n', "N", COUNT, FIELD(requests), "bench: so many requests; top: so many times"},
    {"duration", 0, "TIME", TIME, FIELD(duration_s), "bench: for so long; default 10s"},
    {"rate", 'r', "N", NUMBER, FIELD(rate),
     "bench: so many requests a second, whether or not earlier ones have been answered"},
    {"interval", 'i', "TIME", TIME, FIELD(interval_s), "top: between two looks; default 1s"},

    {"keys", 0, "FILE", TEXT, FIELD(keys), "key: the keys file; else $GEMMD_KEYS"},
    {"roles", 0, "LIST", TEXT, FIELD(roles), "key new: some of use, read and admin; default use"},
    {"quota", 0, "LIST", TEXT, FIELD(quota), "key new: as requests=100,bytes=10M,jobs=4"},

    {"json", 'j', NULL, SWITCH, FIELD(json), "say everything as JSON"},
    {"quiet", 'q', NULL, SWITCH, FIELD(quiet), "no progress, no summary"},
    {"verbose", 'v', NULL, SWITCH, FIELD(verbose), "say on standard error what ran and how long"},
    {"color", 0, "WHEN", TEXT, FIELD(color),
     "auto (default: on a terminal, unless $NO_COLOR is set), always or never"},
    {"help", 'h', NULL, SWITCH, FIELD(help), "print this and exit"},
    {"version", 'V', NULL, SWITCH, FIELD(version), "print the version and exit"},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)
_Static_assert(ROW_COUNT <= 64, "gm_options.given has a bit for each");

/* Options that only some commands take. All take the others, or the daemon says that it does not.
 */
#define THAT_SEND "transpose matmul add flip eval compare explain"
static const struct {
    const char *name, *commands; /* with blanks between */
    const char *instead;         /* for the others, or "" */
} limited[] = {
    {"retry", THAT_SEND, ""},
    {"output", THAT_SEND " get", "; standard output can be sent to a file"},
    {"from", THAT_SEND " put bench", ""},
    {"to", THAT_SEND " get", "; --json asks for JSON"},
    {"concurrency", "bench", ""},
    {"requests", "bench top", ""},
    {"duration", "bench", ""},
    {"rate", "bench", ""},
    {"interval", "top", ""},
    {"keys", "key", ""},
    {"roles", "key", ""},
    {"quota", "key", ""},
};

void gm_options_help(void)
{
    printf("\nOptions:\n");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        char left[48];
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
                 rows[i].argument ? rows[i].argument : "");
        if (rows[i].letter)
            printf("  -%c, %-22s %s\n", rows[i].letter, left, rows[i].help);
        else
            printf("      %-22s %s\n", left, rows[i].help);
    }
}

static bool was_given(const struct gm_options *options, const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return options->given >> i & 1;
    return false;
}

/* Whether a list of words with blanks between them has this one. */
static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *p = list; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == len && strncmp(p, word, len) == 0)
            return true;
    return false;
}

bool gm_options_suit(const struct gm_options *options, const char *command)
{
    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++) {
        if (!was_given(options, limited[i].name) || has_word(limited[i].commands, command))
            continue;
        fprintf(stderr, "gemmctl: %s takes no --%s%s\n", command, limited[i].name,
                limited[i].instead);
        return false;
    }
    /* Their requests have none, so the daemon could not say that it does not take them. */
    if (options->parameter_count > 0 &&
        has_word("delete devices kernels list stats top", command)) {
        fprintf(stderr, "gemmctl: %s takes no parameters, as %s is\n", command,
                options->parameters[0].name);
        return false;
    }
    return true;
}

const char *gm_options_parameter(const struct gm_options *options, const char *name)
{
    for (size_t i = 0; i < options->parameter_count; i++)
        if (strcmp(options->parameters[i].name, name) == 0)
            return options->parameters[i].value;
    return NULL;
}

void gm_options_drop_parameter(struct gm_options *options, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < options->parameter_count; i++)
        if (strcmp(options->parameters[i].name, name) != 0)
            options->parameters[kept++] = options->parameters[i];
    options->parameter_count = kept;
}

bool gm_options_add_parameter(struct gm_options *options, const char *name, const char *value)
{
    if (options->parameter_count == GM_PARAMETERS_MAX) {
        fprintf(stderr, "gemmctl: more than %d parameters\n", GM_PARAMETERS_MAX);
        return false;
    }
    options->parameters[options->parameter_count++] = (struct gemmd_parameter){name, value};
    return true;
}

/* A parameter whose name is the row's with _ for -. The names live as long as the program. */
static bool add_named(struct gm_options *options, const struct row *row, const char *value)
{
    static char names[ROW_COUNT][32];
    char *name = names[row - rows];

    snprintf(name, sizeof *names, "%s", row->name);
    for (char *p = name; *p; p++)
        if (*p == '-')
            *p = '_';
    return gm_options_add_parameter(options, name, value);
}

static bool complain(const struct row *row, const char *text, const char *wants)
{
    fprintf(stderr, "gemmctl: --%s: %s is not %s\n", row->name, text, wants);
    return false;
}

static bool read_time(const struct row *row, const char *text, double *ret)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
    char *end;
    double number = strtod(text, &end);

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (end != text && strcmp(end, units[i].unit) == 0 && number > 0 && number < 1e7) {
            *ret = number * units[i].seconds;
            return true;
        }
    }
    return complain(row, text, "a time, as 500ms, 10s or 2m");
}

static bool apply(struct gm_options *options, const struct row *row, char *text)
{
    void *field = (char *)options + row->offset;
    char *end, *equals;

    switch (row->kind) {
    case TEXT:
        *(const char **)field = text;
        if (!*text)
            fprintf(stderr, "gemmctl: --%s: '' is not a %s\n", row->name, row->argument);
        return *text;
    case SWITCH:
        *(bool *)field = true;
        return true;
    case COUNT:
        errno = 0;
        *(uint64_t *)field = strtoull(text, &end, 10);
        return (*text >= '0' && *text <= '9' && !*end && !errno && *(uint64_t *)field > 0) ||
               complain(row, text, "a number above 0");
    case NUMBER:
        *(double *)field = strtod(text, &end);
        return (end != text && !*end && isfinite(*(double *)field) && *(double *)field > 0) ||
               complain(row, text, "a number above 0");
    case TIME:
        return read_time(row, text, field);
    case PARAMETER:
        return add_named(options, row, text);
    case FLAG:
        return add_named(options, row, "true");
    case PAIR:
        equals = strchr(text, '=');
        if (!equals || equals == text)
            return complain(row, text, "NAME=VALUE");
        *equals = '\0';
        return gm_options_add_parameter(options, text, equals + 1);
    }
    return false;
}

/* After getopt has said what is wrong with this argument. */
static void say_nearest(const char *argument)
{
    const char *name = argument + 2, *nearest = NULL;
    size_t len = strcspn(name, "="), least = SIZE_MAX;

    for (size_t i = 0; i < ROW_COUNT; i++) {
        size_t distance = gm_edit_distance(name, len, rows[i].name);
        if (distance < least) {
            least = distance;
            nearest = rows[i].name;
        }
    }
    bool near = gm_is_near(name, len, nearest);
    fprintf(stderr, "gemmctl: %s%s\n", near ? "the nearest is --" : "see gemmctl --help",
            near ? nearest : "");
}

bool gm_options_read(int argc, char **argv, struct gm_options *ret)
{
    struct option longs[ROW_COUNT + 1] = {0};
    char letters[2 * ROW_COUNT + 1] = "";
    size_t at = 0;
    int found, index;

    for (size_t i = 0; i < ROW_COUNT; i++) {
        longs[i] = (struct option){.name = rows[i].name,
                                   .has_arg = rows[i].argument ? required_argument : no_argument,
                                   .val = rows[i].letter ? rows[i].letter : 256 + (int)i};
        if (rows[i].letter) {
            letters[at++] = rows[i].letter;
            if (rows[i].argument)
                letters[at++] = ':';
        }
    }
    *ret = (struct gm_options){0};
    while ((found = getopt_long(argc, argv, letters, longs, &index)) != -1) {
        size_t i = 0;
        while (i < ROW_COUNT && longs[i].val != found)
            i++;
        if (i == ROW_COUNT) {
            if (optopt == 0) /* it knows no such long option; else a letter, or an argument */
                say_nearest(argv[optind - 1]);
            else
                fprintf(stderr, "gemmctl: see gemmctl --help\n");
            return false;
        }
        if (!apply(ret, &rows[i], optarg))
            return false;
        ret->given |= UINT64_C(1) << i;
    }
    ret->args = argv + optind;
    ret->arg_count = argc - optind;
    return true;
}
