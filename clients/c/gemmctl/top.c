/*
 * top.c - what a daemon does, looked at again and again: devices and their queues, requests a
 * second by route, errors, bytes, arithmetic. On a terminal the screen is redrawn with ANSI
 * sequences, and left as it was; elsewhere each look is a block of lines, or with --json a line.
 */
#include "clients/c/gemmctl/commands.h"
#include "clients/c/gemmctl/say.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define BAR 20 /* characters */
#define CLEAR_TO_END "\033[J"

/* Two looks, and the time between them. */
struct looks {
    json_t *stats, *devices, *before; /* before: stats; NULL at the first look */
    double seconds;
};

static double member(const json_t *stats, const char *group, const char *name)
{
    return gm_json_number(json_object_get(stats, group), name);
}

/* How fast a counter grows; 0 at the first look, and after a restart of the daemon. */
static double rate(const struct looks *l, const char *group, const char *name)
{
    double grown = member(l->stats, group, name) - member(l->before, group, name);

    return l->before && l->seconds > 0 && grown > 0 ? grown / l->seconds : 0;
}

static void print_bar(FILE *out, double part)
{
    int full = part > 0 ? (int)(part * BAR + 0.5) : 0;
    enum gm_style style = part > 0.9 ? GM_RED : part > 0.6 ? GM_YELLOW : GM_GREEN;

    full = full > BAR ? BAR : full;
    fprintf(out, "[%s%.*s%s%.*s]", gm_say_style(stdout, style), full, "####################",
            gm_say_style(stdout, GM_PLAIN), BAR - full, "....................");
}

static void print_head(FILE *out, const struct looks *l)
{
    double used = member(l->stats, "memory", "used_bytes");
    double limit = member(l->stats, "memory", "limit_bytes");
    char text[GM_QUANTITY_MAX], of[GM_QUANTITY_MAX];
    long up = (long)gm_json_number(l->stats, "uptime_s");

    fprintf(out, "%sgemmd %s%s  up %ld d %02ld:%02ld:%02ld%s\n", gm_say_style(stdout, GM_BOLD),
            gm_json_text(l->stats, "version"), gm_say_style(stdout, GM_PLAIN), up / 86400,
            up / 3600 % 24, up / 60 % 60, up % 60,
            json_is_true(json_object_get(l->stats, "draining")) ? "  DRAINING" : "");
    fprintf(out, "memory  ");
    print_bar(out, limit > 0 ? used / limit : 0);
    fprintf(out, " %s of %s\n", gm_say_bytes(used, text), gm_say_bytes(limit, of));
    fprintf(out, "now     %.0f requests, %.0f connections\n",
            gm_json_number(l->stats, "requests_in_flight"),
            gm_json_number(l->stats, "connections"));
    if (l->before)
        fprintf(out, "rates   %s/s in, %s/s out, %.3g GFLOP/s\n",
                gm_say_bytes(rate(l, "counters", "request_body_bytes"), text),
                gm_say_bytes(rate(l, "counters", "response_body_bytes"), of),
                rate(l, "counters", "kernel_flops") / 1e9);
}

static void print_devices(FILE *out, const struct looks *l)
{
    size_t index;
    json_t *device;

    fprintf(out, "\n%s%-10s %-22s %8s %8s  %s%s\n", gm_say_style(stdout, GM_BOLD), "device",
            "queue", "waiting", "running", "model", gm_say_style(stdout, GM_PLAIN));
    json_array_foreach (json_object_get(l->devices, "devices"), index, device) {
        const char *name = gm_json_text(device, "name");
        const json_t *queue = json_object_get(json_object_get(l->stats, "queues"), name);
        double queued = gm_json_number(queue, "queued");
        double capacity = gm_json_number(queue, "capacity");
        fprintf(out, "%-10s ", name);
        print_bar(out, capacity > 0 ? queued / capacity : 0);
        fprintf(out, " %8.0f %8.0f  %s%s\n", queued, gm_json_number(queue, "running"),
                gm_json_text(device, "model"),
                json_is_true(json_object_get(device, "lost")) ? " LOST" : "");
    }
}

/* The members of a group that are not zero: how many, and how fast they grow. */
static void print_counters(FILE *out, const struct looks *l, const char *group, const char *title)
{
    const char *name;
    json_t *value;
    bool any = false;

    json_object_foreach (json_object_get(l->stats, group), name, value) {
        if (json_number_value(value) <= 0)
            continue;
        if (!any)
            fprintf(out, "\n%s%-28s %12s %10s%s\n", gm_say_style(stdout, GM_BOLD), title, "in all",
                    l->before ? "a second" : "", gm_say_style(stdout, GM_PLAIN));
        any = true;
        fprintf(out, "%-28s %12.0f", name, json_number_value(value));
        if (l->before)
            fprintf(out, " %10.4g", rate(l, group, name));
        fputc('\n', out);
    }
}

static void print_look(FILE *out, const struct looks *l)
{
    print_head(out, l);
    print_devices(out, l);
    print_counters(out, l, "answered", "answered");
    print_counters(out, l, "failed", "errors");
}

/* The look as a screen: no more lines than there are, each cleared to its end. */
static void draw(const struct looks *l, double interval_s)
{
    char *text = NULL;
    size_t len = 0;
    struct winsize size = {0};
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return;
    print_look(out, l);
    if (fclose(out) != 0 || !text)
        return;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    printf("\033[H");
    unsigned lines = 0, rows = size.ws_row > 0 ? size.ws_row : 24; /* some do not say */
    unsigned most = rows > 2 ? rows - 2 : 1;
    for (char *line = text; *line && lines < most; lines++) {
        size_t width = strcspn(line, "\n");
        printf("%.*s\033[K\r\n", (int)width, line);
        line += width + (line[width] == '\n');
    }
    printf("%severy %g s; q ends%s\033[K" CLEAR_TO_END, gm_say_style(stdout, GM_DIM), interval_s,
           gm_say_style(stdout, GM_PLAIN));
    fflush(stdout);
    free(text);
}

/* ---- the terminal ---- */

static struct termios terminal_before;
static bool terminal_changed;

static void enter_screen(void)
{
    struct termios raw;

    printf("\033[?1049h\033[?25l\033[?7l"); /* another screen; no cursor; long lines are cut */
    if (tcgetattr(STDIN_FILENO, &terminal_before) != 0)
        return;
    raw = terminal_before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    terminal_changed = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void leave_screen(void)
{
    printf("\033[?7h\033[?25h\033[?1049l");
    fflush(stdout);
    if (terminal_changed)
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

/* Waits; true where a key or a signal says to end. */
static bool wait_for_end(double seconds, bool keys)
{
    double until = gm_say_clock() + seconds;
    struct pollfd input = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};

    while (!gm_say_interrupted()) {
        double left = until - gm_say_clock();
        if (left <= 0)
            return false;
        if (poll(&input, 1, (int)(left * 1000) + 1) <= 0)
            continue;
        char key = 0;
        if (read(STDIN_FILENO, &key, 1) <= 0)
            input.fd = -1; /* nobody types there any more */
        else if (key == 'q' || key == 'Q' || key == 3 || key == 27)
            return true;
    }
    return true;
}

/* false: it failed, which is still to be said. */
static bool look(struct gemmd_client *client, const struct gm_options *options, struct looks *l,
                 double *last, struct gemmd_error *err)
{
    json_t *stats = gm_try_json(client, options, "/v1/stats", err);
    json_t *devices = stats ? gm_try_json(client, options, "/v1/devices", err) : NULL;
    double now = gm_say_clock();

    if (!devices) {
        json_decref(stats);
        return false;
    }
    json_object_del(stats, "limits");
    json_decref(l->before);
    json_decref(l->devices);
    l->before = l->stats;
    l->stats = stats;
    l->devices = devices;
    l->seconds = now - *last;
    *last = now;
    return true;
}

static void print_plain(const struct gm_options *options, const struct looks *l)
{
    if (options->json) {
        json_dumpf(l->stats, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else {
        print_look(stdout, l);
        putchar('\n');
    }
    fflush(stdout);
}

enum gm_exit gm_command_top(struct gemmd_client *client, struct gm_options *options,
                            const char *name, char **args, int count)
{
    bool live = isatty(STDOUT_FILENO) && !options->json;
    double interval_s = options->interval_s > 0 ? options->interval_s : 1, last = gm_say_clock();
    struct looks l = {0};
    struct gemmd_error err;

    (void)args;
    if (count > 0)
        return gm_say_wrong(GM_EXIT_USAGE, "%s takes no operands", name);
    /* The first look is made before the screen changes: where it fails there is no need to. */
    bool good = look(client, options, &l, &last, &err);
    if (good && live)
        enter_screen();
    for (uint64_t n = 1; good; n++) {
        if (live)
            draw(&l, interval_s);
        else
            print_plain(options, &l);
        if (ferror(stdout) || (options->requests && n >= options->requests) ||
            wait_for_end(interval_s, live && isatty(STDIN_FILENO)))
            break;
        good = look(client, options, &l, &last, &err);
    }
    if (live && l.stats)
        leave_screen(); /* first: what is said on the other screen goes with it */
    enum gm_exit status = good ? GM_EXIT_OK : gm_say_error(options, &err);
    json_decref(l.stats);
    json_decref(l.devices);
    json_decref(l.before);
    return status;
}
