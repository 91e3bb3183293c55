#include "server/config.h"

#include "kernels/backend.h"
#include "proto/status.h"
#include "server/access/access.h"
#include "server/limits.h"
#include "server/request/regions.h"

#include <ctype.h>
#include <stdarg.h>
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
    bool (*check)(const char *text); /* of parse_text; NULL: any text will do */
    size_t offset;
    uint64_t min, max;
    const char *takes; /* describes valid values, for errors and --help */
    const char *help;
    const char *const *words; /* in the order of their enum (of a flag: of no and yes), and NULL */
};

/* Where the values come from that are read now. Each source's addresses take the place of those of
 * the source before. */
struct source {
    enum source_kind { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_ENVIRONMENT, SOURCE_COMMAND } kind;
    const char *path; /* of SOURCE_FILE */
    unsigned line;
    struct gm_config *config;
    FILE *faults_to;
    unsigned faults;
    bool listened; /* it has named an address */
};

static parse_fn parse_flag, parse_text, parse_quota, parse_log_to;
static parse_fn parse_listen, parse_backend, parse_size, parse_count, parse_duration, parse_word;

static const char *const flag_words[] = {"no", "yes", NULL};
static const char *const placement_words[] = {"shape", "load", NULL};
static const char *const format_words[] = {"logfmt", "json", NULL};
static const char *const level_words[] = {
#define X(name, text) text,
    GM_LOG_LEVEL_LIST(X)
#undef X
        NULL,
};

#define FIELD(name) offsetof(struct gm_config, name)
#define SIZE_MOST (UINT64_C(1) << 50) /* far below where sums of sizes overflow */
_Static_assert(GM_QUEUE_LIMIT_MAX == 65536 && GM_TIMEOUT_MS_MAX == 3600000, "the table says these");

/* Algorithms if --tls-priority does not say: those with forward secrecy and authenticated
 * encryption; the server's order holds. */
#define TLS_PRIORITY                                                                               \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:"      \
    "+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD:-GROUP-ALL:+GROUP-X25519:"        \
    "+GROUP-SECP256R1:+GROUP-SECP384R1:%SERVER_PRECEDENCE"

static const struct option_row options[] = {
    {.flag = "--listen",
     .argument = "ADDR:PORT",
     .fallback = "127.0.0.1:8080",
     .parse = parse_listen,
     .takes =
         "an address and a port, as 127.0.0.1:8080 or [::1]:8080 (port 0 picks a free one; "
         "',plain' after it: without TLS), or a Unix socket, as unix:/run/gemmd.sock,mode=0660; "
         "at most 8, each its own --listen, or with spaces between them",
     .help =
         "where to listen; when ready, 'listening on http://ADDR:PORT' goes to standard output"},
    {.flag = "--tls-cert",
     .argument = "FILE",
     .parse = parse_text,
     .offset = FIELD(tls_cert),
     .takes = "a file in PEM: the certificate, then those that signed it",
     .help = "speak TLS, 1.2 and 1.3, on all addresses but Unix sockets; SIGHUP reads it again"},
    {.flag = "--tls-key",
     .argument = "FILE",
     .parse = parse_text,
     .offset = FIELD(tls_key),
     .takes = "a file in PEM",
     .help = "the private key of --tls-cert"},
    {.flag = "--tls-client-ca",
     .argument = "FILE",
     .parse = parse_text,
     .offset = FIELD(tls_client_ca),
     .takes = "a file in PEM",
     .help = "serve only clients that have a certificate of one of these authorities"},
    {.flag = "--tls-priority",
     .argument = "LIST",
     .fallback = TLS_PRIORITY,
     .parse = parse_text,
     .offset = FIELD(tls_priority),
     .takes = "a priority string of GnuTLS; versions before TLS 1.2 stay off",
     .help = "TLS algorithms, in the order of choice"},
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
     .parse = parse_flag,
     .offset = FIELD(place_by_load),
     .takes = "shape or load",
     .words = placement_words,
     .help =
         "which device runs a product that names none, where there is a GPU: by its shape alone, "
         "so that its bits never change, or the one where it would end first"},
    {.flag = "--profile",
     .argument = "FILE",
     .parse = parse_text,
     .offset = FIELD(profile),
     .takes = "a table that --tune wrote, of the model of a GPU that is here",
     .help = "numbers of the estimates by which auto chooses on a GPU"},
    {.flag = "--memory-limit",
     .argument = "SIZE",
     .parse = parse_size,
     .offset = FIELD(memory_limit),
     .min = 1 << 20,
     .max = SIZE_MOST,
     .takes = "a size from 1M to 1024T, as 512M or 4G",
     .help = "host memory for all requests together "
             "(default: half of what the machine or its cgroup has)"},
    {.flag = "--matrix-memory",
     .argument = "SIZE",
     .parse = parse_size,
     .offset = FIELD(matrix_memory),
     .max = SIZE_MOST,
     .takes = "a size up to 1024T, as 512M or 4G; 0 allows none",
     .help = "of --memory-limit, what matrices that clients keep by name may have together "
             "(default: half of it)"},
    {.flag = "--matrix-dir",
     .argument = "DIR",
     .parse = parse_text,
     .offset = FIELD(matrix_dir),
     .takes = "a directory that gemmd may write to",
     .help = "matrices that clients keep are in files there, and outlive the daemon"},
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
     .max = GM_THREADS_MAX,
     .takes = "a number from 0 to 512",
     .help = "threads of the cpu device, and of each stream of sim (64 at most); 0: one per core"},
    {.flag = "--streams",
     .alias = "--lanes",
     .argument = "N",
     .fallback = "0",
     .parse = parse_count,
     .offset = FIELD(streams),
     .max = 64,
     .takes = "a number from 0 to 64",
     .help = "jobs in flight on a device at once; 0: the device's choice"},
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
     .parse = parse_text,
     .check = gm_region_prefix_ok,
     .offset = FIELD(shared_memory),
     .takes = "the beginning of names of POSIX shared memory, as /gemmd-; no other slash",
     .help =
         "clients may register objects whose names begin so, and keep operands and results there"},
    {.flag = "--allow-cuda-ipc",
     .fallback = "no",
     .parse = parse_flag,
     .offset = FIELD(cuda_ipc),
     .takes = "yes or no; the flag alone is yes",
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
     .takes = "yes or no; the flag alone is yes",
     .help = "with --keys: health checks take none"},
    {.flag = "--insecure",
     .fallback = "no",
     .parse = parse_flag,
     .offset = FIELD(insecure),
     .takes = "yes or no; the flag alone is yes",
     .help = "without --keys: listen beyond this machine all the same"},
    {.flag = "--quota",
     .argument = "LIST",
     .parse = parse_quota,
     .offset = FIELD(quota),
     .takes = "whole numbers of requests, bytes, device, memory and jobs, as requests=100,jobs=8",
     .help = "of each client, an address, or a key whose line says none of that kind"},
    {.flag = "--cors",
     .argument = "ORIGINS",
     .parse = parse_text,
     .check = gm_access_origins_ok,
     .offset = FIELD(cors),
     .takes = "origins with commas between, as https://lab.example, or *",
     .help = "web pages of these may send requests"},
    {.flag = "--allow-host",
     .argument = "NAMES",
     .parse = parse_text,
     .check = gm_access_hosts_ok,
     .offset = FIELD(hosts),
     .takes = "names with commas between, as gemmd.example",
     .help = "on loopback, requests for these names are answered too: a proxy's"},
    {.flag = "--log-format",
     .argument = "FORMAT",
     .fallback = "logfmt",
     .parse = parse_word,
     .words = format_words,
     .offset = FIELD(log_format),
     .takes = "logfmt or json",
     .help = "how log lines are written"},
    {.flag = "--log-to",
     .argument = "PLACE",
     .fallback = "stderr",
     .parse = parse_log_to,
     .offset = FIELD(log_to),
     .takes = "stderr, journald or syslog, the last two perhaps as journald:/PATH of a socket",
     .help = "where the log goes"},
    {.flag = "--sandbox",
     .fallback = "yes",
     .parse = parse_flag,
     .offset = FIELD(sandbox),
     .takes = "yes or no",
     .help = "once started, give up the system calls that gemmd has no use for (seccomp)"},
    {.flag = "--log-level",
     .argument = "LEVEL",
     .fallback = "info",
     .parse = parse_word,
     .words = level_words,
     .offset = FIELD(log_level),
     .takes = "error, warn, info or debug",
     .help = "what to log"},
};
#define OPTION_COUNT (sizeof options / sizeof *options)

static bool parse_listen(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return gm_config_add_listens(text, field);
}

static bool parse_backend(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return gm_config_backend(text, field);
}

static bool parse_size(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return gm_config_size(text, field);
}

static bool parse_count(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return gm_config_count(text, field);
}

static bool parse_duration(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return gm_config_duration(text, field);
}

static bool parse_word(const struct option_row *row, const char *text, void *field)
{
    unsigned value = 0;

    while (row->words[value] && strcmp(text, row->words[value]) != 0)
        value++;
    if (row->words[value])
        memcpy(field, &value, sizeof value); /* an enum */
    return row->words[value];
}

static bool parse_flag(const struct option_row *row, const char *text, void *field)
{
    const char *const *words = row->words ? row->words : flag_words;
    bool yes = strcmp(text, words[1]) == 0;

    memcpy(field, &yes, sizeof yes);
    return yes || strcmp(text, words[0]) == 0;
}

static bool parse_quota(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return gm_quota_read(text, strlen(text), field, NULL) == GM_OK;
}

static bool parse_log_to(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return gm_log_place_read(text, field);
}

static bool parse_text(const struct option_row *row, const char *text, void *field)
{
    if (!*text || strlen(text) >= GM_CONFIG_TEXT_MAX || (row->check && !row->check(text)))
        return false;
    snprintf(field, GM_CONFIG_TEXT_MAX, "%s", text);
    return true;
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

/* Reports a fault of what is read now, and counts it. */
static void fault(struct source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void fault(struct source *source, const char *format, ...)
{
    va_list args;

    source->faults++;
    if (source->kind == SOURCE_FILE)
        fprintf(source->faults_to, "gemmd: %s:%u: ", source->path, source->line);
    else
        fputs("gemmd: ", source->faults_to);
    va_start(args, format);
    vfprintf(source->faults_to, format, args);
    va_end(args);
    fputc('\n', source->faults_to);
}

static void list_backends(char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "; this build has:");

    for (size_t i = 0; gm_backend_at(i) && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, " %s", gm_backend_at(i)->name);
}

static void set_option(struct source *source, const struct option_row *row, const char *name,
                       const char *text)
{
    void *field = (char *)source->config + row->offset;
    char quoted[256], more[128] = "";

    if (row->parse == parse_listen && !source->listened) {
        source->config->listens = 0;
        source->listened = true;
    }
    bool read = row->parse(row, text, field), within = true;
    if (read && row->max > 0) {
        uint64_t number;
        memcpy(&number, field, sizeof number);
        within = number >= row->min && number <= row->max;
    }
    if (read && within)
        return;
    if (row->parse == parse_backend)
        list_backends(more, sizeof more);
    fault(source, "%s: %s is %s %s%s", name, gm_log_quote(quoted, sizeof quoted, text),
          within ? "not" : "out of range: it takes", row->takes, more);
}

static void print_help(void)
{
    static const char *const commands[][3] = {
        {"--config FILE", "read options from this file, one a line, as 'memory-limit = 4G'; the",
         "environment and the command line come before it"},
        {"--check", "say whether gemmd could run so, without listening, and exit: 0 if it",
         "could, else 1"},
        {"--probe", "ask /healthz of the gemmd that listens at --listen, and exit: 0 if it is",
         "alive, else 1"},
        {"--tune FILE", "measure the GPU, while nothing else uses it, write a table for --profile",
         "to this file, and exit; SIGINT ends it with what it has"},
    };
    printf(
        "gemmd - matrix operations over HTTP, each answered with an account of its time and bytes\n"
        "\nUsage: gemmd [OPTION...]\n\nOptions, each also as an environment variable "
        "(GEMMD_LISTEN for --listen; any other\n"
        "GEMMD_ variable is an error, but what clients read), and in the file of --config:\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char left[48];
        const char *argument = options[i].argument ? options[i].argument : "";
        snprintf(left, sizeof left, "%s %s", options[i].flag, argument);
        printf("  %-24s %s\n", left, options[i].help);
        if (options[i].alias)
            printf("  %-24s   %s is an alias until 0.3\n", "", options[i].alias);
        const char *fallback = options[i].fallback;
        printf("  %-24s   takes %s%s%s\n", "", options[i].takes, fallback ? "; default " : "",
               fallback ? fallback : "");
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        printf("  %-24s %s\n  %-24s   %s\n", commands[i][0], commands[i][1], "", commands[i][2]);
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
static void check_variable(struct source *source, const char *variable)
{
    static const char *const others[] = {"GEMMD_URL", "GEMMD_KEY", "GEMMD_KEY_FILE", "GEMMD_CA",
                                         "GEMMD_CONFIG"};
    size_t len = strcspn(variable, "="), least = SIZE_MAX;
    char name[64], nearest[64] = "", shown[64], quoted[256];

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i]) == len && strncmp(variable, others[i], len) == 0)
            return;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (options[i].alias) {
            environment_name(options[i].alias, name);
            if (strlen(name) == len && strncmp(variable, name, len) == 0)
                return;
        }
        environment_name(options[i].flag, name);
        size_t distance =
            gm_edit_distance(variable + PREFIX_LEN, len - PREFIX_LEN, name + PREFIX_LEN);
        if (strlen(name) == len && strncmp(variable, name, len) == 0)
            return;
        if (distance < least) {
            least = distance;
            memcpy(nearest, name, sizeof nearest);
        }
    }
    snprintf(shown, sizeof shown, "%.*s", (int)len, variable);
    bool near = gm_is_near(variable + PREFIX_LEN, len - PREFIX_LEN, nearest + PREFIX_LEN);
    fault(source, "the environment variable %s belongs to no option; %s%s",
          gm_log_quote(quoted, sizeof quoted, shown), near ? "the nearest is " : "see gemmd --help",
          near ? nearest : "");
}

/* The value of a flag's variable, if there is one. */
static void apply_variable(struct source *source, const struct option_row *row, const char *flag)
{
    char name[64];

    environment_name(flag, name);
    const char *text = getenv(name);
    if (text)
        set_option(source, row, name, text);
}

static void apply_environment(struct source *source)
{
    for (char **variable = environ; variable && *variable; variable++)
        if (strncmp(*variable, PREFIX, PREFIX_LEN) == 0)
            check_variable(source, *variable);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &options[i];
        if (row->alias)
            apply_variable(source, row, row->alias);
        apply_variable(source, row, row->flag); /* the current name wins over the alias */
    }
}

/* ---- The file ---- */

static const struct option_row *row_of(const char *name)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &options[i];
        if (strcmp(name, row->flag + 2) == 0 || (row->alias && strcmp(name, row->alias + 2) == 0))
            return row;
    }
    return NULL;
}

/* said: as it stands in a file, or on the command line, perhaps with =VALUE. */
static void fault_unknown(struct source *source, const char *said)
{
    const char *name = said + (strncmp(said, "--", 2) == 0 ? 2 : 0), *nearest = options[0].flag;
    size_t len = strcspn(name, "="), least = SIZE_MAX;
    char quoted[256];

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        size_t distance = gm_edit_distance(name, len, options[i].flag + 2);
        if (distance < least) {
            least = distance;
            nearest = options[i].flag;
        }
    }
    if (strcmp(said, "config") == 0 && source->kind == SOURCE_FILE) {
        fault(source, "a configuration file cannot name another: config is for the command line");
        return;
    }
    bool near = gm_is_near(name, len, nearest + 2);
    fault(source, "there is no option %s; %s%s", gm_log_quote(quoted, sizeof quoted, said),
          near ? "the nearest is " : "see gemmd --help",
          near ? nearest + (source->kind == SOURCE_FILE ? 2 : 0) : "");
}

static void apply_line(struct source *source, char *line)
{
    char *text = gm_config_trim(line), *equals = strchr(text, '=');

    if (!*text || *text == '#')
        return;
    if (!equals) {
        char quoted[256];
        fault(source, "%s is not NAME = VALUE", gm_log_quote(quoted, sizeof quoted, text));
        return;
    }
    *equals = '\0';
    const char *name = gm_config_trim(text);
    const struct option_row *row = row_of(name);
    if (row)
        set_option(source, row, name, gm_config_trim(equals + 1));
    else
        fault_unknown(source, name);
}

unsigned gm_config_read(struct gm_config *config, const char *path, const char *text, size_t len,
                        FILE *faults)
{
    struct source source = {
        .kind = SOURCE_FILE, .path = path, .config = config, .faults_to = faults};
    char line[2 * GM_CONFIG_TEXT_MAX];

    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t line_len = end ? (size_t)(end - text) : len;
        source.line++;
        if (line_len >= sizeof line || memchr(text, '\0', line_len)) {
            fault(&source, "the line %s",
                  line_len >= sizeof line ? "is too long" : "has a zero byte");
        } else {
            memcpy(line, text, line_len);
            line[line_len] = '\0';
            apply_line(&source, line);
        }
        text += line_len + (end != NULL);
        len -= line_len + (end != NULL);
    }
    return source.faults;
}

static unsigned apply_file(struct gm_config *config, const char *path)
{
    struct gm_file file;
    struct gm_error error;

    if (gm_file_read(path, GM_CONFIG_BYTES_MAX, &file, &error) != GM_OK) {
        fprintf(stderr, "gemmd: --config: %s\n", error.detail);
        return 1;
    }
    unsigned faults = gm_config_read(config, path, file.bytes, file.len, stderr);
    gm_file_free(&file);
    return faults;
}

/* ---- The command line ---- */

/* Whether arg is --flag or --flag=VALUE. *ret_text is the VALUE, or NULL. */
static bool is_flag(const char *arg, const char *flag, const char **ret_text)
{
    size_t len = flag ? strlen(flag) : 0;

    if (!flag || strncmp(arg, flag, len) != 0 || (arg[len] && arg[len] != '='))
        return false;
    *ret_text = arg[len] ? arg + len + 1 : NULL;
    return true;
}

/* Handles one argument: --flag VALUE or --flag=VALUE. Returns how many it takes. */
static int apply_argument(struct source *source, int argc, char **argv, int at)
{
    const char *arg = argv[at], *text;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &options[i];
        if (!is_flag(arg, row->flag, &text) && !is_flag(arg, row->alias, &text))
            continue;
        const char *next = at + 1 < argc ? argv[at + 1] : NULL;
        bool said = next && (strcmp(next, flag_words[0]) == 0 || strcmp(next, flag_words[1]) == 0);
        bool alone = !text && !row->argument && !said;
        int taken = text || alone ? 1 : 2;
        if (!text)
            text = alone ? "yes" : next;
        if (text)
            set_option(source, row, row->flag, text);
        else
            fault(source, "%s needs a value: %s", row->flag, row->takes);
        return taken;
    }
    fault_unknown(source, arg);
    return 1;
}

/* The last --config of the command line, else of the environment; NULL if there is none. Removes
 * them, --probe, --check and --tune from the arguments, and sets the outcome that they ask for. */
static const char *take_commands(int *argc, char **argv, struct source *source,
                                 enum gm_config_outcome *ret)
{
    const char *path = getenv("GEMMD_CONFIG"), *text;
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--probe") == 0) {
            *ret = GM_CONFIG_PROBE;
        } else if (strcmp(argv[i], "--check") == 0) {
            *ret = GM_CONFIG_CHECK;
        } else if (is_flag(argv[i], "--tune", &text)) {
            *ret = GM_CONFIG_TUNE;
            text = text ? text : ++i < *argc ? argv[i] : "";
            if (*text == '\0' || strlen(text) >= GM_CONFIG_TEXT_MAX)
                fault(source, "--tune needs a value: a file");
            else
                strcpy(source->config->tune, text);
        } else if (is_flag(argv[i], "--config", &text)) {
            path = text ? text : ++i < *argc ? argv[i] : NULL;
            if (!path)
                fault(source, "--config needs a value: a file");
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
    return path;
}

/* What no option says alone. */
static void check_together(struct source *source)
{
    struct gm_config *config = source->config;

    if (config->matrix_memory == UINT64_MAX)
        config->matrix_memory = config->memory_limit / 2;
    if (config->matrix_memory > config->memory_limit && source->faults == 0)
        fault(source, "--matrix-memory exceeds --memory-limit, %zu", (size_t)config->memory_limit);
    if (!*config->tls_cert != !*config->tls_key)
        fault(source, "--tls-cert and --tls-key belong together");
    if (*config->tls_client_ca && !*config->tls_cert)
        fault(source, "--tls-client-ca needs --tls-cert");
}

static unsigned apply_all(struct gm_config *config, int argc, char **argv,
                          enum gm_config_outcome *ret)
{
    struct source source = {.config = config, .faults_to = stderr};

    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options[i].fallback)
            set_option(&source, &options[i], options[i].flag, options[i].fallback);
    const char *path = take_commands(&argc, argv, &source, ret);
    if (path)
        source.faults += apply_file(config, path);
    source.kind = SOURCE_ENVIRONMENT;
    source.listened = false;
    apply_environment(&source);
    source.kind = SOURCE_COMMAND;
    source.listened = false;
    for (int i = 1; i < argc;)
        i += apply_argument(&source, argc, argv, i);
    check_together(&source);
    return source.faults;
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
    config->matrix_memory = UINT64_MAX;
    if (apply_all(config, argc, argv, &outcome) == 0)
        return outcome;
    return outcome == GM_CONFIG_CHECK ? GM_CONFIG_EXIT_CHECK : GM_CONFIG_EXIT_USAGE;
}
