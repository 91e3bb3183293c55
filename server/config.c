#include "server/config.h"

#include "kernels/backend.h"
#include "proto/status.h"
#include "server/limits.h"
#include "server/request/regions.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct option_row;
typedef bool parse_fn(const struct option_row *row, const char *text, void *field);

/* One option. min and max bound a number, in the field's unit; both 0: the field is no number. A
 * number too large for the field is UINT64_MAX. */
struct option_row {
    const char *flag, *argument, *fallback; /* argument NULL: it may stand alone */
    const char *alias;                      /* former flag, until 0.3; or NULL */
    parse_fn *parse;
    size_t offset;
    uint64_t min, max;
    const char *takes; /* describes valid values, for errors and --help */
    const char *help;
};

static parse_fn parse_prefix, parse_flag, parse_placement, parse_text, parse_quota,
    parse_log_format;
static parse_fn parse_listen, parse_backend, parse_size, parse_count, parse_duration, parse_level;

#define FIELD(name) offsetof(struct gm_config, name)
#define SIZE_MOST (UINT64_C(1) << 50) /* far below where sums of sizes overflow */
_Static_assert(GM_QUEUE_LIMIT_MAX == 65536 && GM_TIMEOUT_MS_MAX == 3600000, "the table says these");

static const struct option_row options[] = {
    {.flag = "--listen",
     .argument = "ADDR:PORT",
     .fallback = "127.0.0.1:8080",
     .parse = parse_listen,
     .offset = FIELD(host),
     .takes = "an address and a port, as 127.0.0.1:8080 or [::1]:8080; port 0 picks a free one",
     .help =
         "where to listen; when ready, 'listening on http://ADDR:PORT' goes to standard output"},
    {.flag = "--backend",
     .argument = "NAME",
     .fallback = "auto",
     .parse = parse_backend,
     .offset = FIELD(backend),
     .takes = "auto, or one that this build has",
     .help = "backend of the requests that name no device"},
    {.flag = "--placement",
     .argument = "RULE",
     .fallback = "shape",
     .parse = parse_placement,
     .offset = FIELD(place_by_load),
     .takes = "shape or load",
     .help =
         "which device runs a product that names none, where there is a GPU: by its shape alone, "
         "so that its bits never change, or the one where it would end first"},
    {.flag = "--memory-limit",
     .argument = "SIZE",
     .parse = parse_size,
     .offset = FIELD(memory_limit),
     .min = 1 << 20,
     .max = SIZE_MOST,
     .takes = "a size from 1M to 1024T, as 512M or 4G",
     .help = "host memory for all requests together "
             "(default: half of what the machine or its cgroup has)"},
    {.flag = "--body-limit",
     .argument = "SIZE",
     .fallback = "4G",
     .parse = parse_size,
     .offset = FIELD(body_limit),
     .min = 1024,
     .max = SIZE_MOST,
     .takes = "a size from 1K to 1024T, as 512M or 4G",
     .help = "the largest body of a request"},
    {.flag = "--queue-limit",
     .argument = "N",
     .fallback = "65536",
     .parse = parse_count,
     .offset = FIELD(queue_limit),
     .min = 1,
     .max = GM_QUEUE_LIMIT_MAX,
     .takes = "a number from 1 to 65536",
     .help = "jobs that may wait for a device; one more is answered 503 at once, as is one that "
             "would not end in its time"},
    {.flag = "--threads",
     .argument = "N",
     .fallback = "0",
     .parse = parse_count,
     .offset = FIELD(threads),
     .max = 1024,
     .takes = "a number from 0 to 1024",
     .help = "compute threads of the cpu device; 0: one per core"},
    {.flag = "--streams",
     .alias = "--lanes",
     .argument = "N",
     .fallback = "0",
     .parse = parse_count,
     .offset = FIELD(streams),
     .max = 64,
     .takes = "a number from 0 to 64",
     .help = "jobs in flight on a device at once; 0: the backend's own choice"},
    {.flag = "--timeout",
     .argument = "TIME",
     .fallback = "60s",
     .parse = parse_duration,
     .offset = FIELD(timeout_ms),
     .min = 1,
     .max = GM_TIMEOUT_MS_MAX,
     .takes = "a time from 1ms to 1h, as 1500ms or 60s (a bare number is seconds)",
     .help = "time limit of an answer, from the end of the body; timeout_ms can only shorten it"},
    {.flag = "--drain-delay",
     .argument = "TIME",
     .fallback = "0s",
     .parse = parse_duration,
     .offset = FIELD(drain_delay_ms),
     .max = GM_TIMEOUT_MS_MAX,
     .takes = "a time from 0s to 1h, as 5s",
     .help = "after SIGTERM: keep serving for this long, while /readyz answers 503"},
    {.flag = "--drain-timeout",
     .argument = "TIME",
     .fallback = "8s",
     .parse = parse_duration,
     .offset = FIELD(drain_timeout_ms),
     .max = GM_TIMEOUT_MS_MAX,
     .takes = "a time from 0s to 1h, as 8s",
     .help = "then: finish accepted requests within this time; answer the rest 503"},
    {.flag = "--allow-shared-memory",
     .argument = "PREFIX",
     .parse = parse_prefix,
     .offset = FIELD(shared_memory),
     .takes = "the beginning of names of POSIX shared memory, as /gemmd-; no other slash",
     .help =
         "clients may register objects whose names begin so, and keep operands and results there"},
    {.flag = "--allow-cuda-ipc",
     .fallback = "no",
     .parse = parse_flag,
     .offset = FIELD(cuda_ipc),
     .takes = "yes or no; without a value it is yes",
     .help = "clients may register memory of a GPU; one that frees it in use can end the daemon"},
    {.flag = "--keys",
     .argument = "FILE",
     .parse = parse_text,
     .offset = FIELD(keys),
     .takes = "the path of a file that gemmctl key new has made",
     .help = "who may come in; read again on SIGHUP"},
    {.flag = "--open-probes",
     .fallback = "no",
     .parse = parse_flag,
     .offset = FIELD(open_probes),
     .takes = "yes or no; without a value it is yes",
     .help = "with --keys: health checks take none"},
    {.flag = "--insecure",
     .fallback = "no",
     .parse = parse_flag,
     .offset = FIELD(insecure),
     .takes = "yes or no; without a value it is yes",
     .help = "without --keys: listen beyond this machine all the same"},
    {.flag = "--quota",
     .argument = "LIST",
     .parse = parse_quota,
     .offset = FIELD(quota),
     .takes = "some of requests, bytes, device, memory and jobs, as requests=100,memory=4G",
     .help = "of each client, an address, or a key whose line says none of that kind"},
    {.flag = "--cors",
     .argument = "ORIGINS",
     .parse = parse_text,
     .offset = FIELD(cors),
     .takes = "origins with commas between, as https://lab.example, or *",
     .help = "web pages of these may send requests"},
    {.flag = "--allow-host",
     .argument = "NAMES",
     .parse = parse_text,
     .offset = FIELD(hosts),
     .takes = "names with commas between, as gemmd.example",
     .help = "on loopback, requests for these names are answered too: a proxy's"},
    {.flag = "--log-format",
     .argument = "FORMAT",
     .fallback = "logfmt",
     .parse = parse_log_format,
     .offset = FIELD(log_format),
     .takes = "logfmt or json",
     .help = "how log lines are written"},
    {.flag = "--log-level",
     .argument = "LEVEL",
     .fallback = "info",
     .parse = parse_level,
     .offset = FIELD(log_level),
     .takes = "error, warn, info or debug",
     .help = "what to log to standard error"},
};
#define OPTION_COUNT (sizeof options / sizeof *options)

static bool parse_listen(const struct option_row *row, const char *text, void *field)
{
    struct gm_config *config = (struct gm_config *)((char *)field - row->offset);
    const char *colon = strrchr(text, ':');
    const char *host = text;
    size_t host_len, port_len;

    if (!colon)
        return false;
    host_len = (size_t)(colon - text);
    port_len = strlen(colon + 1);
    if (host_len >= 2 && host[0] == '[' && host[host_len - 1] == ']') {
        host++;
        host_len -= 2;
    } else if (memchr(text, ':', host_len)) {
        return false; /* IPv6 without brackets is ambiguous */
    }
    if (host_len == 0 || host_len >= sizeof config->host)
        return false;
    if (port_len == 0 || port_len >= sizeof config->port ||
        strspn(colon + 1, "0123456789") != port_len || atoi(colon + 1) > 65535)
        return false;
    memcpy(config->host, host, host_len);
    config->host[host_len] = '\0';
    memcpy(config->port, colon + 1, port_len + 1);
    return true;
}

static bool parse_backend(const struct option_row *row, const char *text, void *field)
{
    bool known = strcmp(text, "auto") == 0;

    (void)row;
    for (size_t i = 0; gm_backend_at(i); i++)
        known = known || strcmp(text, gm_backend_at(i)->name) == 0;
    if (known)
        snprintf(field, GM_BACKEND_NAME_MAX, "%s", text);
    return known;
}

static bool parse_placement(const struct option_row *row, const char *text, void *field)
{
    bool by_load = strcmp(text, "load") == 0;

    (void)row;
    if (!by_load && strcmp(text, "shape") != 0)
        return false;
    *(bool *)field = by_load;
    return true;
}

/* Parses digits without a sign; *ret_rest is what follows. Returns UINT64_MAX if it does not
 * fit. */
static bool parse_digits(const char *text, uint64_t *ret, const char **ret_rest)
{
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    *ret = strtoull(text, &end, 10);
    *ret_rest = end;
    return true;
}

static bool parse_size(const struct option_row *row, const char *text, void *field)
{
    uint64_t n;

    (void)row;
    if (!gm_read_size(text, strlen(text), &n))
        return false;
    memcpy(field, &n, sizeof n);
    return true;
}

static bool parse_count(const struct option_row *row, const char *text, void *field)
{
    uint64_t n;
    const char *rest;

    (void)row;
    if (!parse_digits(text, &n, &rest) || *rest)
        return false;
    memcpy(field, &n, sizeof n);
    return true;
}

static bool parse_duration(const struct option_row *row, const char *text, void *field)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    char *end;

    (void)row;
    /* Digits and a point only: strtod also accepts "0x10" and "1e3". */
    size_t digits = strspn(text, "0123456789.");
    if (!isdigit((unsigned char)*text))
        return false;
    double n = strtod(text, &end);
    if (end != text + digits)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) != 0)
            continue;
        double ms = ceil(n * units[i].ms);
        uint64_t whole = ms < 0x1p63 ? (uint64_t)ms : UINT64_MAX;
        memcpy(field, &whole, sizeof whole);
        return true;
    }
    return false;
}

static bool parse_level(const struct option_row *row, const char *text, void *field)
{
    static const char *const names[] = {
#define X(name, text) text,
        GM_LOG_LEVEL_LIST(X)
#undef X
    };

    (void)row;
    for (size_t i = 0; i < GM_LOG_LEVEL_COUNT; i++) {
        if (strcmp(text, names[i]) == 0) {
            enum gm_log_level level = (enum gm_log_level)i;
            memcpy(field, &level, sizeof level);
            return true;
        }
    }
    return false;
}

static bool parse_prefix(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    if (!gm_region_prefix_ok(text) || strlen(text) >= GM_PREFIX_MAX)
        return false;
    snprintf(field, GM_PREFIX_MAX, "%s", text);
    return true;
}

static bool parse_flag(const struct option_row *row, const char *text, void *field)
{
    bool yes = strcmp(text, "yes") == 0;

    (void)row;
    memcpy(field, &yes, sizeof yes);
    return yes || strcmp(text, "no") == 0;
}

static bool parse_text(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    if (strlen(text) >= GM_CONFIG_TEXT_MAX)
        return false;
    snprintf(field, GM_CONFIG_TEXT_MAX, "%s", text);
    return true;
}

static bool parse_quota(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return gm_quota_read(text, strlen(text), field, NULL) == GM_OK;
}

static bool parse_log_format(const struct option_row *row, const char *text, void *field)
{
    enum gm_log_format format = strcmp(text, "json") == 0 ? GM_LOG_JSON : GM_LOG_FMT;

    (void)row;
    memcpy(field, &format, sizeof format);
    return format == GM_LOG_JSON || strcmp(text, "logfmt") == 0;
}

#define PREFIX "GEMMD_"
#define PREFIX_LEN (sizeof PREFIX - 1)

/* Makes the variable's name of a flag: GEMMD_MEMORY_LIMIT for --memory-limit. */
static void environment_name(const char *flag, char out[64])
{
    size_t at = (size_t)snprintf(out, 64, PREFIX);

    for (const char *p = flag + 2; *p && at < 63; p++)
        out[at++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
    out[at] = '\0';
}

static bool set_option(struct gm_config *config, const struct option_row *row, const char *source,
                       const char *text)
{
    void *field = (char *)config + row->offset;
    bool read = row->parse(row, text, field), within = true;

    if (read && row->max > 0) {
        uint64_t number;
        memcpy(&number, field, sizeof number);
        within = number >= row->min && number <= row->max;
    }
    if (read && within)
        return true;
    char quoted[256];
    fprintf(stderr, "gemmd: %s: %s is %s %s\n", source, gm_log_quote(quoted, sizeof quoted, text),
            within ? "not" : "out of range: it takes", row->takes);
    if (row->parse == parse_backend) {
        fprintf(stderr, "gemmd: this build has:");
        for (size_t i = 0; gm_backend_at(i); i++)
            fprintf(stderr, " %s", gm_backend_at(i)->name);
        fprintf(stderr, "\n");
    }
    return false;
}

static void print_help(void)
{
    printf(
        "gemmd - matrix operations over HTTP, each answered with an account of its time and bytes\n"
        "\nUsage: gemmd [OPTION...]\n\nOptions, each also as an environment variable "
        "(GEMMD_LISTEN for --listen; any other\n"
        "GEMMD_ variable is an error, but what clients read):\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char left[48];
        const char *argument = options[i].argument ? options[i].argument : "";
        snprintf(left, sizeof left, "%s %s", options[i].flag, argument);
        printf("  %-24s %s\n", left, options[i].help);
        if (options[i].alias)
            printf("  %-24s   %s is an alias until 0.3\n", "", options[i].alias);
        if (options[i].fallback)
            printf("  %-24s   takes %s; default %s\n", "", options[i].takes, options[i].fallback);
        else
            printf("  %-24s   takes %s\n", "", options[i].takes);
    }
    printf("  %-24s ask /healthz of the gemmd that listens at --listen, and exit: 0 if it is\n"
           "  %-24s   alive, else 1\n",
           "--probe", "");
    printf("  %-24s print the version and exit\n  %-24s print this and exit\n", "--version",
           "--help");
    printf("\nFixed limits:\n");
#define X(name, value, unit, reason)                                                               \
    printf("  %-24s %ld %s: %s\n", #name, (long)(value), unit, reason);
    GM_LIMIT_LIST(X)
#undef X
}

/* Whether a variable that begins with GEMMD_ belongs to an option. If not, it is an error: a typing
 * mistake is likely. */
static bool check_variable(const char *variable)
{
    static const char *const of_clients[] = {"GEMMD_URL", "GEMMD_KEY", "GEMMD_KEY_FILE",
                                             "GEMMD_CA"};
    size_t len = strcspn(variable, "="), least = SIZE_MAX;
    char name[64], nearest[64] = "", shown[64], quoted[256];

    for (size_t i = 0; i < sizeof of_clients / sizeof *of_clients; i++)
        if (strlen(of_clients[i]) == len && strncmp(variable, of_clients[i], len) == 0)
            return true;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (options[i].alias) {
            environment_name(options[i].alias, name);
            if (strlen(name) == len && strncmp(variable, name, len) == 0)
                return true;
        }
        environment_name(options[i].flag, name);
        size_t distance =
            gm_edit_distance(variable + PREFIX_LEN, len - PREFIX_LEN, name + PREFIX_LEN);
        if (strlen(name) == len && strncmp(variable, name, len) == 0)
            return true;
        if (distance < least) {
            least = distance;
            memcpy(nearest, name, sizeof nearest);
        }
    }
    snprintf(shown, sizeof shown, "%.*s", (int)len, variable);
    bool near = gm_is_near(variable + PREFIX_LEN, len - PREFIX_LEN, nearest + PREFIX_LEN);
    fprintf(stderr, "gemmd: the environment variable %s belongs to no option; %s%s\n",
            gm_log_quote(quoted, sizeof quoted, shown),
            near ? "the nearest is " : "see gemmd --help", near ? nearest : "");
    return false;
}

/* The value of a flag's variable, or NULL. */
static bool apply_variable(struct gm_config *config, const struct option_row *row, const char *flag)
{
    char name[64];

    environment_name(flag, name);
    const char *text = getenv(name);
    return !text || set_option(config, row, name, text);
}

static bool apply_environment(struct gm_config *config)
{
    for (char **variable = environ; variable && *variable; variable++)
        if (strncmp(*variable, PREFIX, PREFIX_LEN) == 0 && !check_variable(*variable))
            return false;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &options[i];
        if ((row->alias && !apply_variable(config, row, row->alias)) ||
            !apply_variable(config, row, row->flag)) /* the current name wins over the alias */
            return false;
    }
    return true;
}

/* Whether arg is --flag or --flag=VALUE. *ret_text is the VALUE, or NULL. */
static bool is_flag(const char *arg, const char *flag, const char **ret_text)
{
    size_t len = flag ? strlen(flag) : 0;

    if (!flag || strncmp(arg, flag, len) != 0 || (arg[len] && arg[len] != '='))
        return false;
    *ret_text = arg[len] ? arg + len + 1 : NULL;
    return true;
}

/* Handles one argument: --flag VALUE or --flag=VALUE. Moves *at past it. */
static bool apply_argument(struct gm_config *config, int argc, char **argv, int *at)
{
    const char *arg = argv[*at], *text;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &options[i];
        if (!is_flag(arg, row->flag, &text) && !is_flag(arg, row->alias, &text))
            continue;
        bool alone = !text && !row->argument;
        *at += text || alone ? 1 : 2;
        if (alone)
            text = "yes";
        else if (!text && *at <= argc)
            text = argv[*at - 1];
        if (!text) {
            fprintf(stderr, "gemmd: %s needs a value: %s\n", row->flag, row->takes);
            return false;
        }
        return set_option(config, row, row->flag, text);
    }
    char quoted[256];
    fprintf(stderr, "gemmd: there is no option %s; see gemmd --help\n",
            gm_log_quote(quoted, sizeof quoted, arg));
    return false;
}

enum gm_config_outcome gm_config_parse(int argc, char **argv, struct gm_config *config)
{
    enum gm_config_outcome outcome = GM_CONFIG_RUN;

    memset(config, 0, sizeof *config);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return GM_CONFIG_EXIT_OK;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("gemmd " GM_VERSION "\n");
            return GM_CONFIG_EXIT_OK;
        }
    }
    config->memory_limit = gm_host_memory() / 2;
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options[i].fallback &&
            !set_option(config, &options[i], options[i].flag, options[i].fallback))
            return GM_CONFIG_EXIT_USAGE;
    if (!apply_environment(config))
        return GM_CONFIG_EXIT_USAGE;
    for (int i = 1; i < argc;) {
        if (strcmp(argv[i], "--probe") == 0) {
            outcome = GM_CONFIG_PROBE;
            i++;
        } else if (!apply_argument(config, argc, argv, &i)) {
            return GM_CONFIG_EXIT_USAGE;
        }
    }
    return outcome;
}
