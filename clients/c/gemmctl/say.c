#include "clients/c/gemmctl/say.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BAR_AFTER_S 0.5 /* what takes less needs no bar */
#define BAR_EVERY_S 0.1

static atomic_bool interrupted; /* set by a signal, read by any thread */
static enum gm_when color;
static bool with_bar;

/* The second time the signal does what it does by default, should we hang. */
static void interrupt(int signal)
{
    (void)signal;
    interrupted = true;
}

bool gm_say_interrupted(void)
{
    return interrupted;
}

bool gm_say_go_on(void *cls, const struct gemmd_progress *progress)
{
    (void)cls;
    (void)progress;
    return !gm_say_interrupted();
}

bool gm_say_start(const struct gm_options *options)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    const char *no_color = getenv("NO_COLOR");

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* writing fails, and says so */
    with_bar = !options->quiet && !options->json && isatty(STDERR_FILENO);
    color = no_color && *no_color ? GM_NEVER : GM_AUTO;
    if (!options->color || strcmp(options->color, "auto") == 0)
        return true;
    if (strcmp(options->color, "always") != 0 && strcmp(options->color, "never") != 0) {
        gm_say_wrong(GM_EXIT_USAGE, "--color: %s is none of auto, always and never",
                     options->color);
        return false;
    }
    color = strcmp(options->color, "always") == 0 ? GM_ALWAYS : GM_NEVER;
    return true;
}

const char *gm_say_style(FILE *out, enum gm_style style)
{
    static const char *const codes[] = {
        [GM_PLAIN] = "\033[0m", [GM_BOLD] = "\033[1m",   [GM_DIM] = "\033[2m",
        [GM_RED] = "\033[31m",  [GM_GREEN] = "\033[32m", [GM_YELLOW] = "\033[33m",
    };
    const char *term = getenv("TERM");
    bool dumb = term && strcmp(term, "dumb") == 0;

    return color == GM_ALWAYS || (color == GM_AUTO && !dumb && isatty(fileno(out))) ? codes[style]
                                                                                    : "";
}

void gm_say_text(FILE *out, const char *text, size_t len)
{
    if (!isatty(fileno(out))) {
        fwrite(text, 1, len, out);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        putc((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : c, out);
    }
}

enum gm_exit gm_say_wrong(enum gm_exit status, const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%sgemmctl:%s ", gm_say_style(stderr, GM_RED), gm_say_style(stderr, GM_PLAIN));
    gm_say_text(stderr, text, strlen(text));
    fputc('\n', stderr);
    return status;
}

enum gm_exit gm_say_exit(const struct gemmd_error *err)
{
    switch (err->status) {
    case GEMMD_OK:
        return GM_EXIT_OK;
    case GEMMD_BAD_ARGUMENT:
        return GM_EXIT_USAGE;
    case GEMMD_NO_MEMORY:
    case GEMMD_BAD_FILE:
    case GEMMD_TOO_SMALL:
        return GM_EXIT_FILE;
    case GEMMD_NO_CONNECTION:
    case GEMMD_BAD_TLS:
    case GEMMD_BROKEN:
        return GM_EXIT_CONNECTION;
    case GEMMD_TIMED_OUT:
        return GM_EXIT_BUSY;
    case GEMMD_BAD_REPLY:
        return GM_EXIT_DAEMON;
    case GEMMD_STOPPED:
        return GM_EXIT_INTERRUPTED;
    case GEMMD_REFUSED:
        break;
    }
    if (err->http == 401 || err->http == 403)
        return GM_EXIT_KEY;
    if (err->http == 503 || err->http == 429 || err->http == 408)
        return GM_EXIT_BUSY;
    return err->http < 500 ? GM_EXIT_REFUSED : GM_EXIT_DAEMON;
}

/* What the daemon advises is of HTTP; here it is an option. NULL: it advises nothing of the kind.
 */
static const char *hint_of_code(const struct gemmd_error *err)
{
    static const struct {
        const char *code, *word, *hint; /* word: which the daemon's sentence has, or "" */
    } table[] = {
        {"kernel_unavailable", "", "`gemmctl kernels` lists them"},
        {"device_unavailable", "", "`gemmctl devices` lists them"},
        {"nonfinite_in_json", "", "in gemmctl that is --to npy, or --nonfinite null"},
        {"cannot_encode", "Accept", "in gemmctl that is --to npy"},
        {"bad_csv", "Content-Type", "in gemmctl that is --from FORMAT"},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(err->code, table[i].code) == 0 && strstr(err->detail, table[i].word))
            return table[i].hint;
    return NULL;
}

/* Whether the daemon is asked over TCP without TLS. */
static bool is_plain(const struct gm_options *options)
{
    const char *url = options->url ? options->url : getenv("GEMMD_URL");

    return !options->unix_socket &&
           (!url || (strncasecmp(url, "https:", 6) != 0 && !strstr(url, "unix:")));
}

/* What may be done about it, or NULL. */
static const char *hint(const struct gm_options *options, const struct gemmd_error *err)
{
    switch (err->status) {
    case GEMMD_BROKEN: /* in the words of libcurl, for a connection that ended before a reply began
                        */
        return strstr(err->detail, "Empty reply") && is_plain(options)
                   ? "does gemmd speak TLS there? Then the URL begins with https://"
                   : NULL;
    case GEMMD_NO_CONNECTION:
        return options->url || getenv("GEMMD_URL") || options->unix_socket
                   ? "is gemmd running there?"
                   : "is gemmd running on this machine? --url says where else it is";
    case GEMMD_BAD_TLS:
        if (!strstr(err->detail, "certificate"))
            return "does gemmd speak TLS there? If not, the URL begins with http://";
        return options->ca_file || getenv("GEMMD_CA")
                   ? "is that the CA that signed the daemon's certificate?"
                   : "a CA of your own is given by --ca FILE";
    case GEMMD_REFUSED:
        return err->http == 401 ? "a key is given by --key-file FILE, or in GEMMD_KEY"
                                : hint_of_code(err);
    default:
        return NULL;
    }
}

static void say_json(const struct gemmd_error *err, enum gm_exit status)
{
    json_t *document =
        json_pack("{s:s, s:i, s:i}", "detail", err->detail, "http", err->http, "exit", (int)status);
    if (!document) /* the detail is not UTF-8 */
        document = json_pack("{s:i, s:i}", "http", err->http, "exit", (int)status);
    if (err->code[0])
        json_object_set_new(document, "code", json_string(err->code));
    if (err->request_id[0])
        json_object_set_new(document, "request_id", json_string(err->request_id));
    if (err->retry_after_s)
        json_object_set_new(document, "retry_after_s", json_integer(err->retry_after_s));
    json_dumpf(document, stderr, 0);
    fputc('\n', stderr);
    json_decref(document);
}

enum gm_exit gm_say_error(const struct gm_options *options, const struct gemmd_error *err)
{
    enum gm_exit status = gm_say_exit(err);
    const char *help = hint(options, err);

    if (options->json) {
        say_json(err, status);
        return status;
    }
    gm_say_wrong(status, "%s%s%s%s", err->detail, err->code[0] ? " (" : "", err->code,
                 err->code[0] ? ")" : "");
    if (err->retry_after_s)
        fprintf(stderr, "  try again in %u s\n", err->retry_after_s);
    if (help)
        fprintf(stderr, "  %s\n", help);
    if (err->request_id[0]) {
        fprintf(stderr, "  request id ");
        gm_say_text(stderr, err->request_id, strlen(err->request_id));
        fputc('\n', stderr);
    }
    return status;
}

const char *gm_say_bytes(double bytes, char buf[GM_QUANTITY_MAX])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;

    while (bytes >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf(buf, GM_QUANTITY_MAX, bytes >= 100 || unit == 0 ? "%.0f %s" : "%.3g %s", bytes,
             units[unit]);
    return buf;
}

const char *gm_say_seconds(double seconds, char buf[GM_QUANTITY_MAX])
{
    static const struct {
        double least;
        const char *unit;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
    size_t i = 0;

    while (i < 2 && seconds < units[i].least * 0.9995)
        i++;
    double number = seconds / units[i].least;
    snprintf(buf, GM_QUANTITY_MAX, number >= 100 ? "%.0f %s" : "%.3g %s", number, units[i].unit);
    return buf;
}

double gm_say_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void gm_bar_start(struct gm_bar *bar)
{
    *bar = (struct gm_bar){.start = gm_say_clock()};
}

bool gm_bar_draw(void *cls, const struct gemmd_progress *progress)
{
    struct gm_bar *bar = cls;
    double now = gm_say_clock();

    if (interrupted)
        return false;
    if (!with_bar || now - bar->start < BAR_AFTER_S || now - bar->drawn < BAR_EVERY_S)
        return true;
    bool back = progress->received > 0;
    uint64_t done = back ? progress->received : progress->sent;
    uint64_t total = back ? progress->receive_total : progress->send_total;
    double rate = (double)(progress->sent + progress->received) / (now - bar->start);
    char done_text[GM_QUANTITY_MAX], total_text[GM_QUANTITY_MAX], rate_text[GM_QUANTITY_MAX];
    char line[41];
    int full = total ? (int)(40 * (double)done / (double)total) : 0;

    full = full < 0 ? 0 : full > 40 ? 40 : full;
    memset(line, '.', 40);
    memset(line, '#', (size_t)full);
    line[40] = '\0';
    const char *what = back ? "receiving" : done < total || !total ? "sending" : "waiting";
    fprintf(stderr, "\r\033[K%-9s [%s] %s%s%s, %s/s", what, line,
            gm_say_bytes((double)done, done_text), total ? " of " : "",
            total ? gm_say_bytes((double)total, total_text) : "", gm_say_bytes(rate, rate_text));
    fflush(stderr);
    bar->drawn = now;
    bar->shown = true;
    return true;
}

void gm_bar_end(struct gm_bar *bar)
{
    if (bar->shown)
        fprintf(stderr, "\r\033[K");
    bar->shown = false;
}
