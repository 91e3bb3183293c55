/* The options: defaults, environment, command line, every kind of value, good and bad. */
#include "kernels/backend.h"
#include "server/config.h"
#include "server/limits.h"
#include "tests/unit/check.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16

/* What a parse answered, set and said. */
static struct {
    enum gm_config_outcome outcome;
    struct gm_config config;
    char out[32768], err[4096];
} seen;

static int divert(int fd, int *ret_saved)
{
    int file = memfd_create("output", MFD_CLOEXEC);

    *ret_saved = dup(fd);
    CHECK(file >= 0 && *ret_saved >= 0 && dup2(file, fd) == fd);
    return file;
}

static void restore(int fd, int saved, int file, char *text, size_t size)
{
    ssize_t len = pread(file, text, size - 1, 0);

    CHECK(len >= 0 && (size_t)len < size - 1 && dup2(saved, fd) == fd);
    text[len > 0 ? len : 0] = '\0';
    close(saved);
    close(file);
}

/* Parses a command line without the program's name; NULL ends it. */
static enum gm_config_outcome parse(const char *const *arguments)
{
    char copy[ARGUMENTS_MAX][GM_CONFIG_TEXT_MAX + 64], *argv[ARGUMENTS_MAX + 1] = {copy[0]};
    int argc = 1, saved_out, saved_err;

    strcpy(copy[0], "gemmd");
    for (; arguments[argc - 1]; argc++) {
        snprintf(copy[argc], sizeof copy[argc], "%s", arguments[argc - 1]);
        argv[argc] = copy[argc];
    }
    memset(&seen, 0xA5, sizeof seen);
    fflush(stdout);
    int out = divert(STDOUT_FILENO, &saved_out), err = divert(STDERR_FILENO, &saved_err);
    seen.outcome = gm_config_parse(argc, argv, &seen.config);
    fflush(stdout);
    restore(STDOUT_FILENO, saved_out, out, seen.out, sizeof seen.out);
    restore(STDERR_FILENO, saved_err, err, seen.err, sizeof seen.err);
    return seen.outcome;
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void test_defaults(void)
{
    CHECK_EQ(parse((const char *const[]){NULL}), GM_CONFIG_RUN);
    const struct gm_config *c = &seen.config;
    CHECK_STR(c->listen[0].host, "127.0.0.1");
    CHECK_STR(c->listen[0].port, "8080");
    CHECK_STR(c->backend, "auto");
    CHECK_EQ(c->body_limit, INT64_C(4) << 30);
    CHECK_EQ(c->queue_limit, 65536);
    CHECK_EQ(c->threads, 0);
    CHECK_EQ(c->streams, 0);
    CHECK_EQ(c->timeout_ms, 60000);
    CHECK_EQ(c->drain_delay_ms, 0);
    CHECK_EQ(c->drain_timeout_ms, 8000);
    CHECK_EQ(c->log_level, GM_LOG_INFO);
    uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
    CHECK(c->memory_limit > 0 && c->memory_limit <= half);
    CHECK_STR(seen.out, "");
    CHECK_STR(seen.err, "");
}

/* The command line beats the environment, which beats the default; the last of two wins. */
static void test_precedence(void)
{
    setenv("GEMMD_QUEUE_LIMIT", "7", 1);
    setenv("GEMMD_MEMORY_LIMIT", "3M", 1);
    CHECK_EQ(parse((const char *const[]){NULL}), GM_CONFIG_RUN);
    CHECK_EQ(seen.config.queue_limit, 7);
    CHECK_EQ(seen.config.memory_limit, 3 << 20);
    CHECK_EQ(PARSE("--queue-limit", "9"), GM_CONFIG_RUN);
    CHECK_EQ(seen.config.queue_limit, 9);
    CHECK_EQ(seen.config.memory_limit, 3 << 20);
    CHECK_EQ(PARSE("--queue-limit=11", "--queue-limit", "12"), GM_CONFIG_RUN);
    CHECK_EQ(seen.config.queue_limit, 12);
    /* A bad value in the environment is fatal even where the command line has another. */
    setenv("GEMMD_QUEUE_LIMIT", "many", 1);
    CHECK_EQ(PARSE("--queue-limit", "9"), GM_CONFIG_EXIT_USAGE);
    CHECK(strstr(seen.err, "GEMMD_QUEUE_LIMIT") && strstr(seen.err, "\"many\""));
    setenv("GEMMD_QUEUE_LIMIT", "", 1);
    CHECK_EQ(parse((const char *const[]){NULL}), GM_CONFIG_EXIT_USAGE);
    unsetenv("GEMMD_QUEUE_LIMIT");
    unsetenv("GEMMD_MEMORY_LIMIT");
}

/* What our clients read may be in the environment of a daemon; what is nobody's may not. */
static void test_variables_of_clients(void)
{
    setenv("GEMMD_URL", "http://localhost:8080", 1);
    setenv("GEMMD_KEY", "id.secret", 1);
    setenv("GEMMD_KEY_FILE", "key", 1);
    setenv("GEMMD_CA", "ca.pem", 1);
    CHECK_EQ(parse((const char *const[]){NULL}), GM_CONFIG_RUN);
    setenv("GEMMD_KEYFILE", "", 1);
    CHECK_EQ(parse((const char *const[]){NULL}), GM_CONFIG_EXIT_USAGE);
    CHECK(strstr(seen.err, "GEMMD_KEYFILE"));
    unsetenv("GEMMD_KEYFILE");
    unsetenv("GEMMD_URL");
    unsetenv("GEMMD_KEY");
    unsetenv("GEMMD_KEY_FILE");
    unsetenv("GEMMD_CA");
}

/* A former name means the same. Where both are set the new one holds. */
static void test_aliases(void)
{
    CHECK_EQ(PARSE("--lanes", "3"), GM_CONFIG_RUN); /* alias until 0.3 */
    CHECK_EQ(seen.config.streams, 3);
    CHECK_EQ(PARSE("--lanes=4"), GM_CONFIG_RUN); /* alias until 0.3 */
    CHECK_EQ(seen.config.streams, 4);
    setenv("GEMMD_LANES", "5", 1); /* alias until 0.3 */
    CHECK_EQ(parse((const char *const[]){NULL}), GM_CONFIG_RUN);
    CHECK_EQ(seen.config.streams, 5);
    setenv("GEMMD_STREAMS", "6", 1);
    CHECK_EQ(parse((const char *const[]){NULL}), GM_CONFIG_RUN);
    CHECK_EQ(seen.config.streams, 6);
    unsetenv("GEMMD_STREAMS");
    unsetenv("GEMMD_LANES");                          /* alias until 0.3 */
    CHECK_EQ(PARSE("--lanes"), GM_CONFIG_EXIT_USAGE); /* alias until 0.3 */
    CHECK(strstr(seen.err, "--streams needs a value"));
}

/* Every option that holds a number, in all ways of writing it. */
struct number_case {
    const char *option, *text;
    size_t offset;
    uint64_t value;
};

#define N(option, field, text, value)                                                              \
    {                                                                                              \
        option, text, offsetof(struct gm_config, field), value                                     \
    }
#define MEMORY(text, value) N("--memory-limit", memory_limit, text, value)
#define TIMEOUT(text, value) N("--timeout", timeout_ms, text, value)

static const struct number_case numbers[] = {
    MEMORY("1048576", 1 << 20),
    MEMORY("1024K", 1 << 20),
    MEMORY("1024k", 1 << 20),
    MEMORY("1M", 1 << 20),
    MEMORY("1MiB", 1 << 20),
    MEMORY("3g", UINT64_C(3) << 30),
    MEMORY("2T", UINT64_C(2) << 40),
    MEMORY("2TiB", UINT64_C(2) << 40),
    MEMORY("0001M", 1 << 20),
    MEMORY("1125899906842624", UINT64_C(1) << 50),
    MEMORY("1024T", UINT64_C(1) << 50),
    N("--body-limit", body_limit, "1K", 1024),
    N("--body-limit", body_limit, "1024", 1024),
    N("--queue-limit", queue_limit, "1", 1),
    N("--queue-limit", queue_limit, "65536", GM_QUEUE_LIMIT_MAX),
    N("--threads", threads, "0", 0),
    N("--threads", threads, "512", 512),
    N("--streams", streams, "64", 64),
    TIMEOUT("60", 60000),
    TIMEOUT("1ms", 1),
    TIMEOUT("1500ms", 1500),
    TIMEOUT("1.5s", 1500),
    TIMEOUT("1.5", 1500),
    TIMEOUT("2m", 120000),
    TIMEOUT("1h", GM_TIMEOUT_MS_MAX),
    TIMEOUT("3600", GM_TIMEOUT_MS_MAX),
    TIMEOUT("0.0001", 1), /* never rounded down to nothing */
    TIMEOUT("1.2ms", 2),
    N("--drain-delay", drain_delay_ms, "0", 0),
    N("--drain-delay", drain_delay_ms, "0s", 0),
    N("--drain-timeout", drain_timeout_ms, "0ms", 0),
    N("--drain-timeout", drain_timeout_ms, "250ms", 250),
};

static uint64_t field_of(const struct number_case *n)
{
    uint64_t value;

    memcpy(&value, (const char *)&seen.config + n->offset, sizeof value);
    return value;
}

static void environment_name(const char *option, char *out)
{
    static const char lower[] = "-abcdefghijklmnopqrstuvwxyz";
    static const char upper[] = "_ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    strcpy(out, "GEMMD_");
    out += 6;
    for (option += 2; *option; option++)
        *out++ = upper[strchr(lower, *option) - lower];
    *out = '\0';
}

static void test_good_numbers(void)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct number_case *n = &numbers[i];
        char joined[128], name[64];
        snprintf(joined, sizeof joined, "%s=%s", n->option, n->text);
        environment_name(n->option, name);
        bool ok = PARSE(n->option, n->text) == GM_CONFIG_RUN && field_of(n) == n->value;
        ok = ok && PARSE(joined) == GM_CONFIG_RUN && field_of(n) == n->value;
        setenv(name, n->text, 1);
        ok = ok && parse((const char *const[]){NULL}) == GM_CONFIG_RUN && field_of(n) == n->value;
        unsetenv(name);
        check_that(ok, __FILE__, __LINE__, "%s %s: %llu, not %llu: %s", n->option, n->text,
                   (unsigned long long)field_of(n), (unsigned long long)n->value, seen.err);
    }
}

static const struct {
    const char *option, *values[24];
} bad[] = {
    {"--listen",
     {"", "127.0.0.1", ":8080", "[]:8080", "::1:8080", "::1", "[::1]", "[::1:80",
      "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:99999", "127.0.0.1:100000", "127.0.0.1:-1",
      "127.0.0.1:+80", "127.0.0.1: 80", "127.0.0.1:80 x", "127.0.0.1:http", "127.0.0.1:0x50"}},
    {"--backend", {"", "gpu", "CPU", "cpu:0", "cuda3", "automatic"}},
    {"--memory-limit",
     {"", "-1", "+1M", " 1M", "1M ", "1X", "M", "1MB", "1Mi", "1MiBs", "1.5G", "0x100000", "1e9",
      "all", "inf"}},
    {"--body-limit", {"", "-4G", "1KB"}},
    {"--queue-limit", {"", "-1", "1K", "2.0", "ten"}},
    {"--threads", {"", "-2", "4k", "0x4", "two"}},
    {"--streams", {"", "-1", "x", "1.0"}},
    {"--timeout",
     {"", "-1", "+1", " 1", "1 s", "1 ", "soon", "0x10", "0X1p3", "0x10s", "inf", "nan", "infinity",
      "1us", "1S", "1.5.5s", "1,5s", ".5s"}},
    {"--drain-delay", {"", "-1", "0x1", "inf", "nan", "5sec"}},
    {"--drain-timeout", {"", "-1", "0x1", "inf", "nan", "8 s"}},
    {"--log-level", {"", "INFO", "loud", "2", "warning", "info "}},
    {"--keys", {""}},
    {"--cors", {"", "example.org", "https://a.example,", "https://a.example,*"}},
    {"--allow-host", {"", "http://a.example", "a.example,"}},
    {"--allow-shared-memory", {"", "/", "a/b", ".hidden"}},
};

/* Numbers, but too small or too large: with what would do. */
static const struct {
    const char *option, *range, *values[12];
} beyond[] = {
    {"--memory-limit",
     "a size from 1M to 1024T",
     {"0", "1048575", "1023K", "1125899906842625", "1025T", "4611686018427387904",
      "18446744073709551616", "99999999999999999999G", "16777217T", "17179869185G"}},
    {"--body-limit", "a size from 1K to 1024T", {"0", "1023", "99999999999999999999"}},
    {"--queue-limit", "a number from 1 to 65536", {"0", "65537", "18446744073709551617"}},
    {"--threads", "a number from 0 to 512", {"513", "18446744073709551616"}},
    {"--streams", "a number from 0 to 64", {"65", "18446744073709551615"}},
    {"--timeout",
     "a time from 1ms to 1h",
     {"0", "0s", "2h", "61m", "3601", "99999999999999999999h"}},
    {"--drain-delay", "a time from 0s to 1h", {"2h", "3600001ms"}},
    {"--drain-timeout", "a time from 0s to 1h", {"2h", "99999999999999999999"}},
};

/* Refused on the command line and in the environment, with the option, the value and `why`. */
static void check_refused(const char *option, const char *value, const char *why)
{
    char joined[128], name[64], said[192];

    snprintf(joined, sizeof joined, "%s=%s", option, value);
    snprintf(said, sizeof said, "%s: \"%s\" is %s", option, value, why);
    environment_name(option, name);
    bool refused = PARSE(option, value) == GM_CONFIG_EXIT_USAGE;
    check_that(refused && strstr(seen.err, said) && !*seen.out, __FILE__, __LINE__,
               "%s '%s' is to be refused and named: %s", option, value, seen.err);
    CHECK_EQ(PARSE(joined), GM_CONFIG_EXIT_USAGE);
    setenv(name, value, 1);
    CHECK_EQ(parse((const char *const[]){NULL}), GM_CONFIG_EXIT_USAGE);
    CHECK(strstr(seen.err, name) != NULL);
    unsetenv(name);
}

static void test_bad_values(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t j = 0; j < 24 && bad[i].values[j]; j++)
            check_refused(bad[i].option, bad[i].values[j], "not ");
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        char why[96];
        snprintf(why, sizeof why, "out of range: it takes %s", beyond[i].range);
        for (size_t j = 0; j < 12 && beyond[i].values[j]; j++)
            check_refused(beyond[i].option, beyond[i].values[j], why);
    }
    CHECK_EQ(PARSE("--backend", "quantum"), GM_CONFIG_EXIT_USAGE);
    for (size_t i = 0; gm_backend_at(i); i++)
        CHECK(strstr(seen.err, gm_backend_at(i)->name) != NULL);
}

static void test_texts(void)
{
    static const struct {
        const char *text, *host, *port;
    } listens[] = {{"127.0.0.1:0", "127.0.0.1", "0"},
                   {"[::1]:8080", "::1", "8080"},
                   {"[::]:65535", "::", "65535"},
                   {"example.org:80", "example.org", "80"},
                   {"0.0.0.0:1", "0.0.0.0", "1"}};
    static const char *const levels[] = {"error", "warn", "info", "debug"};

    for (size_t i = 0; i < sizeof listens / sizeof *listens; i++) {
        CHECK_EQ(PARSE("--listen", listens[i].text), GM_CONFIG_RUN);
        CHECK_STR(seen.config.listen[0].host, listens[i].host);
        CHECK_STR(seen.config.listen[0].port, listens[i].port);
    }
    for (unsigned i = 0; i < GM_LOG_LEVEL_COUNT; i++) {
        CHECK_EQ(PARSE("--log-level", levels[i]), GM_CONFIG_RUN);
        CHECK_EQ(seen.config.log_level, i);
    }
    for (size_t i = 0; gm_backend_at(i); i++) {
        CHECK_EQ(PARSE("--backend", gm_backend_at(i)->name), GM_CONFIG_RUN);
        CHECK_STR(seen.config.backend, gm_backend_at(i)->name);
    }
    /* A host as long as the field, and one byte longer. */
    char text[300];
    memset(text, 'h', sizeof text);
    strcpy(text + sizeof seen.config.listen[0].host - 1, ":80");
    CHECK_EQ(PARSE("--listen", text), GM_CONFIG_RUN);
    CHECK_EQ(strlen(seen.config.listen[0].host), sizeof seen.config.listen[0].host - 1);
    memset(text, 'h', sizeof text);
    strcpy(text + sizeof seen.config.listen[0].host, ":80");
    CHECK_EQ(PARSE("--listen", text), GM_CONFIG_EXIT_USAGE);
    /* So too a path. */
    char path[GM_CONFIG_TEXT_MAX + 1] = "";
    memset(path, 'p', GM_CONFIG_TEXT_MAX - 1);
    CHECK_EQ(PARSE("--keys", path), GM_CONFIG_RUN);
    CHECK_STR(seen.config.keys, path);
    path[GM_CONFIG_TEXT_MAX - 1] = 'p';
    CHECK_EQ(PARSE("--keys", path), GM_CONFIG_EXIT_USAGE);
}

static void test_flags(void)
{
    CHECK_EQ(PARSE("--threads", "1"), GM_CONFIG_RUN);
    CHECK(seen.config.sandbox && !seen.config.insecure);
    CHECK_EQ(PARSE("--insecure", "--sandbox", "no", "--threads", "2"), GM_CONFIG_RUN);
    CHECK(!seen.config.sandbox && seen.config.insecure && seen.config.threads == 2);
    CHECK_EQ(PARSE("--sandbox=no", "--insecure=yes"), GM_CONFIG_RUN);
    CHECK(!seen.config.sandbox && seen.config.insecure);
    CHECK_EQ(PARSE("--sandbox", "no", "--sandbox", "yes", "--insecure", "no"), GM_CONFIG_RUN);
    CHECK(seen.config.sandbox && !seen.config.insecure);
    CHECK_EQ(PARSE("--sandbox=perhaps"), GM_CONFIG_EXIT_USAGE);
    CHECK_EQ(PARSE("--sandbox", "perhaps"), GM_CONFIG_EXIT_USAGE);
}

static void test_unknown(void)
{
    static const char *const unknown[] = {
        "--colour", "--time", "--timeouts", "--listen2=1:1", "-l",         "listen",      "--",
        "-",        "",       "cpu:0",      "--Timeout",     "--help=yes", "--timeout_ms"};

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        CHECK_EQ(PARSE(unknown[i]), GM_CONFIG_EXIT_USAGE);
        CHECK_EQ(PARSE(unknown[i], "1"), GM_CONFIG_EXIT_USAGE);
        CHECK_EQ(PARSE("--threads", "1", unknown[i]), GM_CONFIG_EXIT_USAGE);
        CHECK(strstr(seen.err, "there is no option") && strstr(seen.err, unknown[i]));
        CHECK(strstr(seen.err, "--help") || strstr(seen.err, "the nearest is --"));
    }
    CHECK_EQ(PARSE("--queue-limt=3"), GM_CONFIG_EXIT_USAGE);
    CHECK(strstr(seen.err, "the nearest is --queue-limit\n") != NULL);
    CHECK_EQ(PARSE("--timeout"), GM_CONFIG_EXIT_USAGE);
    CHECK(strstr(seen.err, "--timeout needs a value") != NULL);
    /* What comes from outside cannot write to the terminal. */
    CHECK_EQ(PARSE("--\033[2Jx\n"), GM_CONFIG_EXIT_USAGE);
    CHECK(!strchr(seen.err, '\033') && strstr(seen.err, "\\x1b") && strstr(seen.err, "\\x0a"));
}

/* A variable that begins like ours and is none was meant for something. */
static void test_unknown_variables(void)
{
    static const struct {
        const char *name, *said;
    } unknown[] = {{"GEMMD_QUEUE_LIMITS", "the nearest is GEMMD_QUEUE_LIMIT"},
                   {"GEMMD_DRIAN_DELAY", "the nearest is GEMMD_DRAIN_DELAY"},
                   {"GEMMD_listen", "see gemmd --help"},
                   {"GEMMD_LISTE", "the nearest is GEMMD_LISTEN"},
                   {"GEMMD_WHATEVER", "see gemmd --help"},
                   {"GEMMD_PORT_8080_TCP_ADDR", "see gemmd --help"},
                   {"GEMMD_", "see gemmd --help"},
                   {"GEMMD_X\033[2J", "\\x1b"}};

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        setenv(unknown[i].name, "1", 1);
        CHECK_EQ(PARSE("--threads", "1"), GM_CONFIG_EXIT_USAGE);
        check_that(strstr(seen.err, unknown[i].said) && !strchr(seen.err, '\033'), __FILE__,
                   __LINE__, "%s: %s", unknown[i].name, seen.err);
        CHECK_EQ(PARSE("--help"), GM_CONFIG_EXIT_OK);
        unsetenv(unknown[i].name);
    }
    setenv("GEMMDX", "1", 1); /* somebody else's */
    setenv("GM_SLOW", "1", 1);
    CHECK_EQ(PARSE("--threads", "1"), GM_CONFIG_RUN);
    clearenv();
}

/* What named matrices may have is a part of the memory limit, in whatever order they are given. */
static void test_matrix_memory(void)
{
    CHECK_EQ(PARSE("--memory-limit", "64M"), GM_CONFIG_RUN);
    CHECK_EQ(seen.config.matrix_memory, 32u << 20);
    CHECK_EQ(PARSE("--matrix-memory", "64M", "--memory-limit", "64M"), GM_CONFIG_RUN);
    CHECK_EQ(seen.config.matrix_memory, 64u << 20);
    CHECK_EQ(PARSE("--matrix-memory", "0"), GM_CONFIG_RUN);
    CHECK_EQ(seen.config.matrix_memory, 0);
    CHECK_EQ(PARSE("--matrix-memory", "65M", "--memory-limit", "64M"), GM_CONFIG_EXIT_USAGE);
    CHECK(strstr(seen.err, "--matrix-memory exceeds --memory-limit, 67108864") != NULL);
}

/* --probe runs with the options of what it asks, in any order, and takes no value. */
static void test_probe(void)
{
    setenv("GEMMD_LISTEN", "0.0.0.0:81", 1);
    CHECK_EQ(PARSE("--probe"), GM_CONFIG_PROBE);
    CHECK_STR(seen.config.listen[0].host, "0.0.0.0");
    CHECK_STR(seen.config.listen[0].port, "81");
    CHECK_EQ(PARSE("--listen", "[::1]:82", "--probe", "--threads", "3"), GM_CONFIG_PROBE);
    CHECK_STR(seen.config.listen[0].host, "::1");
    CHECK_STR(seen.config.listen[0].port, "82");
    CHECK_EQ(PARSE("--probe", "--threads", "some"), GM_CONFIG_EXIT_USAGE);
    CHECK_EQ(PARSE("--listen", "--probe"), GM_CONFIG_EXIT_USAGE);
    CHECK_EQ(PARSE("--probe=yes"), GM_CONFIG_EXIT_USAGE);
    CHECK_EQ(PARSE("--probe", "yes"), GM_CONFIG_EXIT_USAGE);
    unsetenv("GEMMD_LISTEN");
}

/* --help names every option with its variable's rule, its default and every fixed limit. */
static void test_help(void)
{
    static const char *const lines[] = {"--version",      "--help",       "--probe",
                                        "127.0.0.1:8080", "GEMMD_LISTEN",
#define X(name, value, unit, reason) #name,
                                        GM_LIMIT_LIST(X)
#undef X
    };

    CHECK_EQ(PARSE("--timeout", "nonsense", "--help"), GM_CONFIG_EXIT_OK);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        CHECK(strstr(seen.out, lines[i]) != NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(strstr(seen.out, bad[i].option) != NULL);
    CHECK_STR(seen.err, "");
    CHECK_EQ(PARSE("-h"), GM_CONFIG_EXIT_OK);
    CHECK_EQ(PARSE("--version"), GM_CONFIG_EXIT_OK);
    CHECK_STR(seen.out, "gemmd " GM_VERSION "\n");
}

int main(void)
{
    clearenv();
    test_defaults();
    test_precedence();
    test_variables_of_clients();
    test_aliases();
    test_good_numbers();
    test_bad_values();
    test_texts();
    test_flags();
    test_unknown();
    test_unknown_variables();
    test_matrix_memory();
    test_probe();
    test_help();
    return check_report();
}
