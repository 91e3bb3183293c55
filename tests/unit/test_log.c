/* The log: one line an event, whatever its values hold and whoever does not read. */
#include "server/log.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PIPE_BYTES 32768
#define TEXT_MAX (1 << 20)

/* Standard error is a pipe that the test reads, or does not. */
static int saved_err, read_end;
static char text[TEXT_MAX];

static void open_pipe(void)
{
    int fds[2];

    fflush(stderr);
    saved_err = dup(STDERR_FILENO);
    if (saved_err < 0 || pipe2(fds, O_CLOEXEC) != 0 || dup2(fds[1], STDERR_FILENO) < 0)
        abort();
    close(fds[1]);
    read_end = fds[0];
    fcntl(read_end, F_SETFL, O_NONBLOCK);
}

/* All that is in the pipe now. */
static const char *drain(void)
{
    size_t len = 0;

    for (ssize_t n; (n = read(read_end, text + len, sizeof text - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

static void close_pipe(void)
{
    dup2(saved_err, STDERR_FILENO);
    close(saved_err);
    close(read_end);
}

static unsigned count(const char *in, const char *what)
{
    unsigned n = 0;

    for (const char *at = in; (at = strstr(at, what)) != NULL; at += strlen(what))
        n++;
    return n;
}

static bool matches(const char *line, const char *pattern)
{
    regex_t regex;

    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        abort();
    bool ok = regexec(&regex, line, 0, NULL, 0) == 0;
    regfree(&regex);
    return ok;
}

#define STAMP "^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9][.][0-9]{3}Z "

static void test_line(void)
{
    open_pipe();
    gm_log(GM_LOG_INFO, "request", "id=%s status=%d", "abc", 200);
    const char *line = drain();
    bool whole = matches(line, STAMP "level=info event=request id=abc status=200\n$");
    gm_log(GM_LOG_ERROR, "exit", "%s", "");
    bool bare = matches(drain(), STAMP "level=error event=exit\n$");
    close_pipe();
    CHECK(whole);
    CHECK(bare);
}

static void test_levels(void)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    unsigned lines[GM_LOG_LEVEL_COUNT];
    bool named = true;

    for (unsigned level = 0; level < GM_LOG_LEVEL_COUNT; level++) {
        gm_log_setup((enum gm_log_level)level, GM_LOG_FMT);
        open_pipe();
        for (unsigned i = 0; i < GM_LOG_LEVEL_COUNT; i++)
            gm_log((enum gm_log_level)i, "x", "n=%u", i);
        lines[level] = count(drain(), "\n");
        for (unsigned i = 0; i < GM_LOG_LEVEL_COUNT; i++) {
            char want[32];
            snprintf(want, sizeof want, "level=%s event=x", names[i]);
            named = named && (strstr(text, want) != NULL) == (i <= level);
        }
        close_pipe();
    }
    gm_log_setup(GM_LOG_INFO, GM_LOG_FMT);
    for (unsigned level = 0; level < GM_LOG_LEVEL_COUNT; level++)
        CHECK_EQ(lines[level], level + 1);
    CHECK(named);
}

/* Line breaks in a value would forge events. */
static void test_one_line(void)
{
    open_pipe();
    gm_log(GM_LOG_WARN, "x", "detail=%s", "a\nlevel=error event=forged\r\nb\n\n");
    unsigned lines = count(drain(), "\n");
    bool kept = strstr(text, "detail=a level=error event=forged  b\n") != NULL;
    bool carriage = strchr(text, '\r') != NULL;
    close_pipe();
    CHECK_EQ(lines, 1);
    CHECK(kept && !carriage);
}

/* Nor may a terminal obey one that came unquoted. */
static void test_control_characters(void)
{
    open_pipe();
    gm_log(GM_LOG_WARN, "x", "detail=%s",
           "a\033[2J\tb\x7f"
           "c");
    bool kept = strstr(drain(), "detail=a [2J b c\n") != NULL;
    gm_log_detail(GM_LOG_WARN, "x", "said \"no\" \\ level=error\n\033");
    bool quoted = matches(drain(), STAMP
                          "level=warn event=x "
                          "detail=\"said \\\\\"no\\\\\" \\\\\\\\ level=error\\\\x0a\\\\x1b\"\n$");
    close_pipe();
    CHECK(kept);
    CHECK(quoted);
}

/* Too long: cut, but still a line. */
static void test_cut(void)
{
    static char value[5000];
    bool ok = true;

    memset(value, 'v', sizeof value - 1);
    for (size_t len = 1900; len<sizeof value; len += len> 2100 ? 1000 : 1) {
        open_pipe();
        gm_log(GM_LOG_INFO, "x", "detail=%.*s", (int)len, value);
        size_t got = strlen(drain());
        ok = ok && count(text, "\n") == 1 && text[got - 1] == '\n' && got <= 2048;
        ok = ok && (len > 1970 || count(text, "v") == len + 2); /* and those of level, event */
        ok = ok && count(text, "v") > 1900;
        close_pipe();
    }
    CHECK(ok);
}

/* Nobody reads: lines are dropped and counted, never waited for, and never cut in two. */
static void test_full_pipe(void)
{
    const unsigned written = 2000;

    open_pipe();
    CHECK(fcntl(STDERR_FILENO, F_SETPIPE_SZ, PIPE_BYTES) > 0);
    alarm(60); /* should it wait after all */
    for (unsigned i = 0; i < written; i++)
        gm_log(GM_LOG_INFO, "x", "n=%u detail=\"%0200u\"", i, i);
    drain();
    unsigned arrived = count(text, "event=x");
    unsigned whole = count(text, "\n");
    gm_log(GM_LOG_INFO, "after", "%s", "");
    drain();
    alarm(0);
    const char *note = strstr(text, "event=log dropped=");
    unsigned long dropped = note ? strtoul(note + strlen("event=log dropped="), NULL, 10) : 0;
    bool after = strstr(text, "event=after\n") != NULL;
    gm_log(GM_LOG_INFO, "after", "%s", "");
    bool again = strstr(drain(), "dropped") != NULL;
    close_pipe();
    CHECK(arrived > 0 && arrived < written);
    CHECK_EQ(arrived, whole);
    CHECK(after);
    CHECK_EQ(dropped, written - arrived);
    CHECK(!again);
}

/* A log that is full or gone does not end the program, nor stop it, and what it did not take is
 * told of when there is one again. */
static void test_closed(void)
{
    open_pipe();
    dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    gm_log(GM_LOG_INFO, "x", "n=%d", 1);
    close(STDERR_FILENO);
    gm_log(GM_LOG_INFO, "x", "n=%d", 2);
    close_pipe();
    open_pipe();
    gm_log(GM_LOG_INFO, "x", "n=%d", 3);
    drain();
    close_pipe();
    CHECK(matches(text, "^[^\n]* event=log dropped=2\n[^\n]* event=x n=3\n$"));
}

/* A line that a file took in part is ended before the next one, and counts as dropped. */
static void test_taken_in_part(void)
{
    struct rlimit before, small;
    FILE *file = tmpfile();

    open_pipe();
    if (!file || dup2(fileno(file), STDERR_FILENO) < 0 || getrlimit(RLIMIT_FSIZE, &before) != 0)
        abort();
    signal(SIGXFSZ, SIG_IGN);
    small = (struct rlimit){70, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 1; i <= 3; i++) /* of 48 bytes */
        gm_log(GM_LOG_INFO, "x", "n=%d", i);
    setrlimit(RLIMIT_FSIZE, &before);
    gm_log(GM_LOG_INFO, "x", "n=%d", 4);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    close_pipe();
    CHECK(matches(
        text,
        STAMP "level=info event=x n=1\n[^\n]*\n[^\n]* event=log dropped=2\n[^\n]* event=x n=4\n$"));
}

static void *log_many(void *cls)
{
    for (unsigned i = 0; i < 100; i++)
        gm_log(GM_LOG_INFO, "x", "thread=%c n=%u end", *(const char *)cls, i);
    return NULL;
}

/* Threads do not mix their lines. */
static void test_threads(void)
{
    pthread_t thread[4];
    char name[4] = "abcd";
    unsigned good = 0;

    open_pipe();
    fcntl(STDERR_FILENO, F_SETPIPE_SZ, 1 << 18);
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, log_many, &name[i]);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    drain();
    close_pipe();
    CHECK_EQ(count(text, "\n"), 400);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        good += matches(line, STAMP "level=info event=x thread=[abcd] n=[0-9]+ end$");
    CHECK_EQ(good, 400);
}

static atomic_uint logging;

static void *log_thousands(void *cls)
{
    for (unsigned i = 0; i < 3000; i++)
        gm_log(GM_LOG_INFO, "x", "thread=%c n=%u detail=\"%0100u\" end", *(const char *)cls, i, i);
    atomic_fetch_sub(&logging, 1);
    return NULL;
}

/* More than a slow reader takes: what does not arrive is told of, and lines stay whole. */
static void test_slow_reader(void)
{
    pthread_t thread[4];
    char name[4] = "abcd";
    unsigned arrived = 0, whole = 0, lines = 0;
    unsigned long dropped = 0;
    char *rest = NULL;

    open_pipe();
    fcntl(STDERR_FILENO, F_SETPIPE_SZ, PIPE_BYTES);
    atomic_store(&logging, 4);
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, log_thousands, &name[i]);
    static char all[4 * TEXT_MAX];
    size_t len = 0;
    bool more = true;
    while (more) {
        more = atomic_load(&logging) > 0;
        const char *part = drain();
        size_t size = strlen(part);
        if (size > sizeof all - 1 - len)
            size = sizeof all - 1 - len;
        memcpy(all + len, part, size);
        len += size;
        usleep(1000);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    gm_log(GM_LOG_INFO, "after", "%s", "");
    gm_log_flush(true);
    const char *part = drain();
    snprintf(all + len, sizeof all - len, "%s", part);
    close_pipe();
    for (char *line = strtok_r(all, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *told = strstr(line, "event=log dropped=");
        lines++;
        arrived += strstr(line, "event=x ") != NULL;
        dropped += told ? strtoul(told + strlen("event=log dropped="), NULL, 10) : 0;
        whole +=
            matches(line, STAMP "level=[a-z]+ event=(x thread=[abcd] n=[0-9]+ detail=\"[0-9]+\" "
                                "end|after|log dropped=[0-9]+)$");
    }
    CHECK(arrived > 0);
    CHECK_EQ(whole, lines);
    CHECK_EQ(arrived + dropped, 12000);
}

/* Pairs that are there already make the same line. */
static void test_pairs(void)
{
    static char value[5000];
    const char pairs[] = "n=1 detail=\"a\nb\"";

    memset(value, 'v', sizeof value - 1);
    open_pipe();
    gm_log_pairs(GM_LOG_INFO, "x", pairs, strlen(pairs));
    bool same = matches(drain(), STAMP "level=info event=x n=1 detail=\"a b\"\n$");
    gm_log_pairs(GM_LOG_DEBUG, "x", pairs, strlen(pairs));
    bool silent = *drain() == '\0';
    gm_log_pairs(GM_LOG_INFO, "x", value, strlen(value));
    size_t got = strlen(drain());
    bool cut = got <= 2048 && text[got - 1] == '\n' && count(text, "\n") == 1;
    close_pipe();
    CHECK(same);
    CHECK(silent);
    CHECK(cut);
}

static void test_quote(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {{"", "\"\""},
                 {"plain text", "\"plain text\""},
                 {"a\"b\\c", "\"a\\\"b\\\\c\""},
                 {"\n\r\t\x01\x1b", "\"\\x0a\\x0d\\x09\\x01\\x1b\""},
                 {"\x7f\x80\xff", "\"\\x7f\\x80\\xff\""},
                 {"\xc3\xa4", "\"\\xc3\\xa4\""}};
    char out[64];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR(gm_log_quote(out, sizeof out, cases[i].in), cases[i].out);
    /* Cut to fit: never over the end, never within an escape. */
    for (size_t size = 8; size < sizeof out; size++) {
        memset(out, '#', sizeof out);
        gm_log_quote(out, size, "\n\"\\ab\n\"\\ab\n\"\\ab\n\"\\ab\n\"\\ab\n\"\\ab\n\"\\ab\n\"\\ab");
        size_t len = strlen(out);
        CHECK(len < size && out[0] == '"' && out[len - 1] == '"' && out[size] == '#');
        CHECK(matches(out, "^\"(\\\\x[0-9a-f]{2}|\\\\[\"\\\\]|[^\"\\\\])*\"$"));
    }
}

int main(void)
{
    test_line();
    test_levels();
    test_one_line();
    test_control_characters();
    test_cut();
    test_full_pipe();
    test_closed();
    test_taken_in_part();
    test_threads();
    test_slow_reader();
    test_pairs();
    test_quote();
    return check_report();
}
