/*
 * main.c - the life of the daemon, in order: options, devices, workers, HTTP, wait, drain.
 */
#include "server/clock.h"
#include "server/http.h"
#include "server/limits.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long replies that are already made may take to reach their clients at the very end. */
#define FLUSH_NS 1000000000

enum exit_code { EXIT_DRAINED = 0, EXIT_DEVICE_LOST = 1, EXIT_USAGE = 2, EXIT_START = 3 };

/* What main waits for: eventfds, written when it happens. */
struct events {
    int signals; /* SIGTERM and SIGINT, one count each */
    int lost;    /* a device */
};

/* For the signal handler, which has no other way to know it. */
static int signal_event = -1;

static void raise_event(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);

    (void)written; /* an eventfd takes a count of one */
}

/* On any thread: libraries start theirs before main could block signals for them. */
static void on_signal(int number)
{
    int saved = errno;

    (void)number;
    raise_event(signal_event);
    errno = saved;
}

static void device_lost(void *cls)
{
    raise_event(((const struct events *)cls)->lost);
}

static bool open_events(struct events *events)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    events->signals = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    events->lost = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events->signals < 0 || events->lost < 0)
        return false;
    signal_event = events->signals;
    signal(SIGPIPE, SIG_IGN);
    return sigaction(SIGTERM, &action, NULL) == 0 && sigaction(SIGINT, &action, NULL) == 0;
}

static bool take_event(int fd)
{
    uint64_t count;

    return read(fd, &count, sizeof count) == sizeof count;
}

/* Waits until a signal (true) or until_ns (false). */
static bool wait_signal(const struct events *events, int64_t until_ns)
{
    struct pollfd p = {.fd = events->signals, .events = POLLIN};

    for (;;) {
        int64_t left = until_ns - gm_now_ns();
        int ms = left <= 0 ? 0 : left / 1000000 >= 1000000 ? 1000000 : (int)(left / 1000000) + 1;
        if (poll(&p, 1, ms) > 0 && take_event(events->signals))
            return true;
        if (gm_now_ns() >= until_ns)
            return false;
    }
}

/* Waits for a signal or the loss of a device; true if it was a device. */
static bool wait_end(const struct events *events)
{
    struct pollfd p[2] = {{.fd = events->signals, .events = POLLIN},
                          {.fd = events->lost, .events = POLLIN}};

    for (;;) {
        if (poll(p, 2, -1) <= 0)
            continue;
        if (p[1].revents)
            return true;
        if (take_event(events->signals))
            return false;
    }
}

/* A second signal ends the process at once. */
static _Noreturn void end_now(void)
{
    gm_log(GM_LOG_WARN, "stop", "detail=\"second signal\"");
    _exit(EXIT_FAILURE);
}

/* Whether all requests are done before until_ns. */
static bool wait_idle(struct gm_http *http, const struct events *events, int64_t until_ns)
{
    const int64_t step = 10 * 1000000;
    unsigned idle = 0;

    for (;;) {
        /* Twice: between its bytes being read and its being known, a request is neither. */
        idle = gm_http_idle(http) ? idle + 1 : 0;
        int64_t now = gm_now_ns();
        if (idle >= 2 || now >= until_ns)
            return idle >= 2;
        if (wait_signal(events, now + step < until_ns ? now + step : until_ns))
            end_now();
    }
}

static void fail_jobs(struct gm_server *server, enum gm_status status)
{
    for (unsigned i = 0; i < server->devices.count; i++)
        gm_sched_fail_all(server->devices.device[i].sched, status);
}

/* From SIGTERM, or the loss of a device, to the moment when nothing is in flight. */
static void drain(struct gm_server *server, struct gm_http *http, const struct events *events,
                  bool lost)
{
    const struct gm_config *config = &server->config;

    atomic_store(&server->phase, GM_PHASE_DELAY);
    if (!lost && config->drain_delay_ms > 0 &&
        wait_signal(events, gm_now_ns() + (int64_t)config->drain_delay_ms * 1000000))
        end_now();
    /* Whoever was in the backlog is still served; later requests are refused. */
    gm_http_stop_accepting(http);
    atomic_store(&server->phase, GM_PHASE_DRAINING);
    gm_http_refuse_connections(http);
    int64_t until = gm_now_ns() + (int64_t)config->drain_timeout_ms * 1000000;
    if (lost)
        fail_jobs(server, GM_DEVICE_LOST);
    if (!wait_idle(http, events, until)) {
        gm_log(GM_LOG_WARN, "drain", "detail=\"time is up: what is left is answered 503\"");
        atomic_store(&server->phase, GM_PHASE_ENDING);
        fail_jobs(server, GM_DRAINING);
        gm_http_refuse_uploads(http);
        wait_idle(http, events, gm_now_ns() + FLUSH_NS);
    }
}

/* A connection must not be suspended when the library stops: jobs that were told to stop do so
 * soon, and are waited for; a device that never answers must not keep the process. */
static void wait_jobs(struct gm_server *server, const struct events *events)
{
    for (unsigned i = 0; i < server->devices.count; i++) {
        int64_t until = gm_now_ns() + FLUSH_NS;
        while (gm_sched_load(server->devices.device[i].sched).running > 0) {
            if (gm_now_ns() >= until) {
                gm_log(GM_LOG_WARN, "stop", "detail=\"a device does not stop\" device=%s",
                       server->devices.device[i].name);
                _exit(EXIT_DRAINED);
            }
            if (wait_signal(events, gm_now_ns() + 10 * 1000000))
                end_now();
        }
    }
}

static bool loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0;
}

static enum gm_status open_server(struct gm_server *server, struct events *events,
                                  struct gm_error *err)
{
    const struct gm_config *config = &server->config;
    struct gm_devices_options options = {
        .backend = config->backend,
        .backend_options = {.threads = (unsigned)config->threads,
                            .lanes = (unsigned)config->lanes,
                            .memory_limit = config->memory_limit},
        .queue_limit = config->queue_limit,
        .lost = device_lost,
        .lost_cls = events,
    };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned workers = cores < 1                      ? 1
                       : cores > GM_CODEC_THREADS_MAX ? GM_CODEC_THREADS_MAX
                                                      : (unsigned)cores;

    server->budget.limit = config->memory_limit;
    server->started_ns = gm_now_ns();
    server->started_unix = time(NULL);
    pthread_mutex_init(&server->mutex, NULL);
    enum gm_status status = gm_workers_open(workers, &server->workers, err);
    return status == GM_OK ? gm_devices_open(&server->devices, &options, err) : status;
}

static void close_server(struct gm_server *server)
{
    gm_workers_close(server->workers);
    gm_devices_close(&server->devices);
    pthread_mutex_destroy(&server->mutex);
}

static int serve(struct gm_server *server, struct events *events)
{
    struct gm_http *http;
    struct gm_error error;

    if (gm_http_open(server, &http, &error) != GM_OK) {
        fprintf(stderr, "gemmd: %s\n", error.detail);
        return EXIT_START;
    }
    if (!loopback(server->config.host))
        gm_log(GM_LOG_WARN, "listen", "detail=\"anybody who can reach %s can use this daemon\"",
               server->config.host);
    for (unsigned i = 0; i < server->devices.count; i++)
        gm_log(GM_LOG_INFO, "device", "name=%s model=\"%s\" copy_gbs=%.1f",
               server->devices.device[i].name, server->devices.device[i].facts->name,
               server->devices.device[i].facts->copy_gbs);
    printf("listening on %s\n", gm_http_address(http));
    fflush(stdout);

    bool lost = wait_end(events);
    gm_log(lost ? GM_LOG_ERROR : GM_LOG_INFO, lost ? "device_lost" : "signal",
           "detail=\"draining\" drain_delay_ms=%llu drain_timeout_ms=%llu",
           (unsigned long long)server->config.drain_delay_ms,
           (unsigned long long)server->config.drain_timeout_ms);
    drain(server, http, events, lost);
    wait_jobs(server, events);
    gm_http_close(http);
    gm_log(GM_LOG_INFO, "exit", "drained=true");
    return lost ? EXIT_DEVICE_LOST : EXIT_DRAINED;
}

int main(int argc, char **argv)
{
    static struct gm_server server;
    struct events events;
    struct gm_error error;
    int code = EXIT_START;

    switch (gm_config_parse(argc, argv, &server.config)) {
    case GM_CONFIG_EXIT_OK:
        return EXIT_SUCCESS;
    case GM_CONFIG_EXIT_USAGE:
        return EXIT_USAGE;
    case GM_CONFIG_RUN:
        break;
    }
    gm_log_set_level(server.config.log_level);
    if (!open_events(&events)) {
        fprintf(stderr, "gemmd: cannot watch for signals: %s\n", strerror(errno));
        return EXIT_START;
    }
    if (open_server(&server, &events, &error) == GM_OK)
        code = serve(&server, &events);
    else
        fprintf(stderr, "gemmd: %s\n", error.detail);
    close_server(&server);
    return code;
}
