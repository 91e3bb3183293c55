/*
 * main.c - starts the daemon, waits for its end, and drains it.
 *
 * In order: options, devices, workers, HTTP, wait, drain.
 */
#include "kernels/buffer_pool.h"
#include "kernels/device_facts.h"
#include "server/clock.h"
#include "server/http/connection_limiter.h"
#include "server/http/http.h"
#include "server/limits.h"
#include "server/process.h"
#include "server/request/request.h"
#include "server/text.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Time for finished replies to reach their clients at the very end. */
#define FLUSH_NS 1000000000
#define STEP_NS 10000000 /* interval between checks for requests in progress */
#define TRIM_MS 1000     /* interval between checks of the buffers kept for reuse */
#define EXPIRES_SOON_S (14 * 86400)
#define SWEEP_STEPS 25 /* steps between sweeps for slow clients */

enum exit_code { EXIT_DRAINED = 0, EXIT_DEVICE_LOST = 1, EXIT_USAGE = 2, EXIT_START = 3 };

/* What main waits for, as eventfds. */
struct events {
    int signal; /* SIGTERM or SIGINT */
    int lost;   /* a device */
    int reload; /* SIGHUP */
};

/* events.signal and events.reload, for the signal handlers. */
static int signal_event = -1, reload_event = -1;

static void raise_event(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);

    (void)written; /* cannot fail: adds one to an eventfd */
}

/* Runs on any thread, perhaps on two at once, because libraries start threads before main could
 * block signals. */
static void on_signal(int number)
{
    static _Atomic int64_t first_ns;
    int64_t now_ns = gm_now_ns(), seen_ns = 0;
    int saved = errno;

    (void)number;
    if (atomic_compare_exchange_strong(&first_ns, &seen_ns, now_ns))
        raise_event(signal_event);
    else if (now_ns - seen_ns > (int64_t)GM_SECOND_SIGNAL_MS * 1000000)
        _exit(EXIT_FAILURE); /* at once, whatever state the drain is in */
    errno = saved;
}

static void on_hangup(int number)
{
    int saved = errno;

    (void)number;
    raise_event(reload_event);
    errno = saved;
}

static void device_lost(void *cls)
{
    raise_event(((const struct events *)cls)->lost);
}

static bool open_events(struct events *events)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction hangup = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};

    events->signal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    events->lost = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    events->reload = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events->signal < 0 || events->lost < 0 || events->reload < 0)
        return false;
    signal_event = events->signal;
    reload_event = events->reload;
    signal(SIGPIPE, SIG_IGN);
    return sigaction(SIGTERM, &action, NULL) == 0 && sigaction(SIGINT, &action, NULL) == 0 &&
           sigaction(SIGHUP, &hangup, NULL) == 0;
}

/* Waits until a device is lost (true) or until_ns (false). */
static bool wait_lost(const struct events *events, int64_t until_ns)
{
    struct pollfd p = {.fd = events->lost, .events = POLLIN};

    for (;;) {
        int64_t left = until_ns - gm_now_ns();
        int ms = left <= 0 ? 0 : left / 1000000 >= 1000000 ? 1000000 : (int)(left / 1000000) + 1;
        if (poll(&p, 1, ms) > 0)
            return true;
        if (gm_now_ns() >= until_ns)
            return false;
    }
}

/* Returns buffers that stayed unused to the system. */
static void trim_memory(const struct gm_server *server)
{
    const int64_t idle_ns = (int64_t)GM_MEMORY_KEPT_S * 1000000000;

    if (gm_buffer_limit_trim(server->devices.memory, gm_now_ns(), idle_ns) > 0)
        malloc_trim(0); /* small buffers come from malloc, which keeps freed memory too */
}

static int wait_ms(const struct gm_notify *notify)
{
    int ms = gm_notify_wait_ms(notify);

    return ms < 0 || ms > TRIM_MS ? TRIM_MS : ms;
}

/* What belongs to a key goes with it. */
static void key_gone(void *cls, uint64_t client)
{
    struct gm_server *server = cls;

    gm_region_unregister(&server->regions, client, false, NULL, NULL);
    gm_region_unregister(&server->regions, client, true, NULL, NULL);
    gm_matrices_drop_client(&server->matrices, client);
}

/* Who owns a named matrix that is in a file: a key, or "@" and the client id of an address, whose
 * matrices nobody could name where clients have keys. */
static bool owner_of(void *cls, const char *owner, uint64_t *ret_client,
                     struct gm_quota **ret_quota)
{
    struct gm_server *server = cls;
    char *end;

    if (*owner != '@')
        return gm_access_find_owner(&server->access, owner, ret_client, ret_quota);
    *ret_client = strtoull(owner + 1, &end, 16);
    if (*end || strlen(owner) != 17 || *server->access.keys_file)
        return false;
    *ret_quota = gm_quota_of_address(&server->access.quotas, *ret_client);
    return true;
}

static void matrix_damaged(void *cls, const struct gm_error *why)
{
    (void)cls;
    gm_log_detail(GM_LOG_ERROR, "matrix_dir", why->detail);
}

/* Warns of a certificate that clients refuse, or soon will. */
static void check_certificate(struct gm_http *http)
{
    int64_t left_s =
        gm_http_expires(http) == INT64_MAX ? INT64_MAX : gm_http_expires(http) - time(NULL);

    if (left_s < 0)
        gm_log_detail(GM_LOG_WARN, "tls", "the certificate has expired");
    else if (left_s < EXPIRES_SOON_S)
        gm_log(GM_LOG_WARN, "tls", "detail=\"the certificate expires soon\" days=%d",
               (int)(left_s / 86400));
}

static void reload_keys(struct gm_server *server)
{
    struct gm_error error;
    unsigned keys;

    if (gm_access_reload(&server->access, &keys, &error) == GM_OK)
        gm_log(GM_LOG_INFO, "reload", "keys=%u", keys);
    else
        gm_log_detail(GM_LOG_ERROR, "reload", error.detail);
}

static void reload_certificates(struct gm_http *http)
{
    struct gm_error error;

    if (gm_http_reload(http, &error) == GM_OK)
        gm_log(GM_LOG_INFO, "reload", "outcome=done");
    else
        gm_log_detail(GM_LOG_ERROR, "reload", error.detail);
    check_certificate(http);
}

/* On SIGHUP: reads what can change while gemmd runs. What fails stays as it was. */
static void reload(struct gm_server *server, struct gm_http *http, const struct events *events)
{
    const struct gm_config *config = &server->config;
    uint64_t count;

    if (read(events->reload, &count, sizeof count) != sizeof count)
        return;
    if (*config->keys)
        reload_keys(server);
    if (*config->tls_cert)
        reload_certificates(http);
    if (!*config->keys && !*config->tls_cert)
        gm_log_detail(GM_LOG_INFO, "reload",
                      "there is nothing to read again: no --keys, no --tls-cert");
}

/* What is due now and then, and when SIGHUP has come. */
static void keep_house(struct gm_server *server, struct gm_http *http, const struct events *events)
{
    reload(server, http, events);
    gm_matrices_tick(&server->matrices);
    trim_memory(server);
}

/* Waits for a signal (false) or the loss of a device (true). Serves the watchdog and reloads
 * meanwhile. */
static bool wait_end(struct gm_server *server, struct gm_http *http, const struct events *events,
                     struct gm_notify *notify)
{
    struct pollfd p[3] = {{.fd = events->signal, .events = POLLIN},
                          {.fd = events->lost, .events = POLLIN},
                          {.fd = events->reload, .events = POLLIN}};
    struct gm_error error;

    while (poll(p, 3, wait_ms(notify)) <= 0 || !(p[0].revents || p[1].revents)) {
        keep_house(server, http, events);
        if (gm_notify_watch(notify, &error) != GM_OK)
            gm_log_detail(GM_LOG_WARN, "watchdog", error.detail);
    }
    return p[1].revents != 0;
}

/* Serves on until then. Returns whether a device was lost. */
static bool wait_delay(struct gm_server *server, struct gm_http *http, const struct events *events,
                       int64_t until_ns)
{
    struct pollfd p[2] = {{.fd = events->lost, .events = POLLIN},
                          {.fd = events->reload, .events = POLLIN}};
    int64_t left_ms;

    while ((left_ms = (until_ns - gm_now_ns()) / 1000000) > 0 && !p[0].revents) {
        poll(p, 2, left_ms < TRIM_MS ? (int)left_ms : TRIM_MS);
        keep_house(server, http, events);
    }
    return wait_lost(events, until_ns);
}

/* Waits until no request is in progress. Returns false at until_ns or if a device is lost. */
static bool wait_idle(struct gm_http *http, const struct events *events, int64_t until_ns)
{
    unsigned idle = 0;

    for (unsigned i = 1;; i++) {
        if (i % SWEEP_STEPS == 0)
            gm_http_tick(http);
        /* Idle must be seen twice, even after until_ns: a request whose bytes were read but that is
         * not registered yet is not counted. */
        idle = gm_http_idle(http) ? idle + 1 : 0;
        int64_t now = gm_now_ns();
        if (idle >= 2 || (idle == 0 && now >= until_ns))
            return idle >= 2;
        if (wait_lost(events, now + STEP_NS))
            return false;
    }
}

static void sleep_ns(int64_t ns)
{
    struct timespec ts = gm_timespec(ns);

    nanosleep(&ts, NULL);
}

static void fail_jobs(struct gm_server *server, enum gm_status status)
{
    for (unsigned i = 0; i < server->devices.count; i++)
        gm_sched_fail_all(server->devices.device[i].sched, status);
}

/* Waits until no worker or stream holds a request. */
static void wait_resumed(struct gm_server *server, int64_t until_ns)
{
    while (atomic_load(&server->suspended) > 0 && gm_now_ns() < until_ns)
        sleep_ns(STEP_NS);
}

/* Answers all remaining requests with 503: queued, computed or uploading. Includes a job that does
 * not stop because its device hangs. */
static void end_requests(struct gm_server *server, struct gm_http *http, enum gm_status status)
{
    int64_t until = gm_now_ns() + FLUSH_NS;

    atomic_store(&server->phase, GM_PHASE_ENDING);
    fail_jobs(server, status);
    wait_resumed(server, until);
    gm_http_refuse_requests(server, status);
    while (!gm_http_idle(http) && gm_now_ns() < until)
        sleep_ns(STEP_NS);
}

/* Runs from SIGTERM, or the loss of a device, until no request is in progress. Returns whether a
 * device was lost. */
static bool drain(struct gm_server *server, struct gm_http *http, const struct events *events,
                  bool lost)
{
    const struct gm_config *config = &server->config;

    atomic_store(&server->phase, GM_PHASE_DELAY);
    lost = lost || wait_delay(server, http, events,
                              gm_now_ns() + (int64_t)config->drain_delay_ms * 1000000);
    /* Connections in the backlog are still served; later requests are refused. */
    gm_http_stop_accepting(http);
    atomic_store(&server->phase, GM_PHASE_DRAINING);
    gm_http_refuse_connections(http);
    int64_t until = gm_now_ns() + (int64_t)config->drain_timeout_ms * 1000000;
    if (!lost && wait_idle(http, events, until)) {
        /* The thread that handed the last one back may not have left it yet. */
        wait_resumed(server, gm_now_ns() + FLUSH_NS);
        return false;
    }
    lost = lost || wait_lost(events, 0);
    gm_log(GM_LOG_WARN, "drain", "detail=\"the remaining requests are answered 503\"");
    end_requests(server, http, lost ? GM_DEVICE_LOST : GM_DRAINING);
    return lost;
}

static enum gm_status open_access(struct gm_server *server, struct gm_error *err)
{
    const struct gm_config *config = &server->config;

    server->access.keys_file = config->keys;
    server->access.cors = config->cors;
    server->access.hosts = config->hosts;
    server->access.open_probes = config->open_probes;
    server->access.gone = key_gone;
    server->access.gone_cls = server;
    return gm_access_open(&server->access, &config->quota, err);
}

static enum gm_status open_server(struct gm_server *server, struct events *events,
                                  struct gm_error *err)
{
    const struct gm_config *config = &server->config;
    struct gm_devices_options options = {
        .backend = config->backend,
        .backend_options = {.threads = (unsigned)config->threads,
                            .streams = (unsigned)config->streams,
                            .memory_limit = config->memory_limit},
        .queue_limit = config->queue_limit,
        .slots = &server->slots,
        .place_by_load = config->place_by_load,
        .profile = config->profile,
        .lost = device_lost,
        .lost_cls = events,
    };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned workers = cores < 1                      ? 1
                       : cores > GM_CODEC_THREADS_MAX ? GM_CODEC_THREADS_MAX
                                                      : (unsigned)cores;

    server->started_ns = gm_now_ns();
    server->started_unix = time(NULL);
    enum gm_status status = gm_requests_open(server, err);
    if (status != GM_OK)
        return status;
    status = gm_memory_quota_open(&server->memory, config->memory_limit, err);
    if (status == GM_OK) {
        server->regions = (struct gm_regions){.prefix = config->shared_memory,
                                              .cuda_ipc = config->cuda_ipc,
                                              .quota = &server->memory,
                                              .devices = &server->devices};
        status = gm_regions_open(&server->regions, err);
    }
    if (status == GM_OK) {
        server->matrices.limit = config->matrix_memory;
        server->matrices.dir = config->matrix_dir;
        server->matrices.owner_of = owner_of;
        server->matrices.owner_cls = server;
        server->matrices.quota = &server->memory;
        server->matrices.devices = &server->devices;
        status = gm_matrices_open(&server->matrices, err);
    }
    if (status == GM_OK)
        status = gm_recents_open(&server->recents, err);
    if (status == GM_OK)
        status = open_access(server, err);
    if (status == GM_OK)
        status = gm_workers_open(workers, &server->workers, err);
    if (status == GM_OK)
        status = gm_devices_open(&server->devices, &options, err);
    if (status == GM_OK)
        status = gm_matrices_load(&server->matrices, matrix_damaged, NULL, err);
    if (status == GM_OK)
        trim_memory(server); /* frees what the measurements used, and starts the clock */
    return status;
}

static void close_server(struct gm_server *server)
{
    gm_workers_close(server->workers);
    gm_regions_close(&server->regions);
    gm_matrices_close(&server->matrices);
    gm_access_close(&server->access);
    gm_recents_close(&server->recents);
    gm_devices_close(&server->devices);
    gm_memory_quota_close(&server->memory);
    gm_requests_close(server);
}

static void log_device(const struct gm_device *device)
{
    char model[256], copy[32] = "";

    if (gm_rate(&device->facts->copy_gbs) > 0)
        snprintf(copy, sizeof copy, " copy_gbs=%.1f", gm_rate(&device->facts->copy_gbs));
    gm_log(GM_LOG_INFO, "device", "name=%s model=%s%s", device->name,
           gm_log_quote(model, sizeof model, device->facts->name), copy);
}

/* Arguments of alive(). */
struct life {
    struct gm_server *server;
    struct gm_http *http;
    struct gm_listen place; /* where to ask */
};

/* Whether /healthz answers that gemmd is alive, which takes the listener, an event thread and a
 * handler. If all connections are taken, a probe gets no answer, but a restart would not help: then
 * only the devices are checked. */
static enum gm_status alive(void *cls, int64_t until_ns, struct gm_error *err)
{
    const struct life *life = cls;

    if (gm_http_full(life->http) && gm_devices_alive(&life->server->devices))
        return GM_OK;
    return gm_probe(&life->place, until_ns, err);
}

static void tell(const struct gm_notify *notify, const char *lines)
{
    struct gm_error error;

    if (gm_notify_send(notify, lines, &error) != GM_OK)
        gm_log_detail(GM_LOG_WARN, "notify", error.detail);
}

static void tell_ready(const struct gm_notify *notify, const struct gm_http *http)
{
    char lines[GM_CONFIG_TEXT_MAX + 64];

    snprintf(lines, sizeof lines, "READY=1\nSTATUS=listening on %s", gm_http_address(http, 0));
    tell(notify, lines);
}

/* Where it listens, as numbers: a name may be of other machines too, and name servers be away. */
static void set_life(struct life *life)
{
    struct gm_listen bound;
    unsigned i;

    gm_probe_place(&life->server->config, &life->place, &i);
    const char *address = gm_http_address(life->http, i), *at = strstr(address, "://");
    if (*life->place.port && at && gm_config_listen(at + strlen("://"), &bound)) {
        memcpy(life->place.host, bound.host, sizeof bound.host);
        memcpy(life->place.port, bound.port, sizeof bound.port);
    }
}

static void warn_of_reach(const struct gm_server *server, const struct gm_http *http)
{
    const struct gm_config *config = &server->config;
    /* Over TLS nobody on the way reads a key, and who has no certificate may be kept out. */
    bool secure_too = !*config->keys && !*config->tls_client_ca;
    const char *address = gm_http_exposed(http, secure_too);
    char text[GM_CONFIG_TEXT_MAX + 64];

    if (!address)
        return;
    snprintf(text, sizeof text,
             *config->keys ? "keys and matrices travel unencrypted to %s"
                           : "anyone who can reach %s can use this daemon",
             address);
    gm_log_detail(GM_LOG_WARN, "listen", text);
}

static int serve(struct gm_server *server, struct events *events, struct gm_notify *notify)
{
    struct gm_http *http;
    struct gm_error error;

    if (gm_http_open(server, &http, &error) != GM_OK) {
        fprintf(stderr, "gemmd: %s\n", error.detail);
        return error.status == GM_NOT_ALLOWED ? EXIT_USAGE : EXIT_START;
    }
    if (server->config.sandbox && gm_sandbox_enter(&error) != GM_OK)
        gm_log_detail(GM_LOG_WARN, "sandbox", error.detail);
    warn_of_reach(server, http);
    check_certificate(http);
    for (unsigned i = 0; i < server->devices.count; i++)
        log_device(&server->devices.device[i]);
    for (unsigned i = 0; i < server->config.listens; i++)
        printf("listening on %s\n", gm_http_address(http, i));
    fflush(stdout);
    struct life life = {.server = server, .http = http};
    set_life(&life);
    notify->alive = alive;
    notify->cls = &life;
    tell_ready(notify, http);

    bool lost = wait_end(server, http, events, notify);
    tell(notify, "STOPPING=1\nSTATUS=draining");
    gm_log(lost ? GM_LOG_ERROR : GM_LOG_INFO, lost ? "device_lost" : "signal",
           "detail=\"draining\" drain_delay_ms=%llu drain_timeout_ms=%llu",
           (unsigned long long)server->config.drain_delay_ms,
           (unsigned long long)server->config.drain_timeout_ms);
    lost = drain(server, http, events, lost);
    int code = lost ? EXIT_DEVICE_LOST : EXIT_DRAINED;
    if (atomic_load(&server->suspended) > 0) {
        /* The library would abort if it were stopped now, and the hanging device would block the
         * exit. */
        gm_log(GM_LOG_WARN, "exit", "status=%d detail=\"a job did not stop\"", code);
        gm_log_flush(true);
        _exit(code);
    }
    gm_http_close(http);
    gm_log(GM_LOG_INFO, "exit", "status=%d", code);
    return code;
}

/* Runs --probe. */
static int probe(const struct gm_config *config)
{
    struct gm_error error;
    int64_t until = gm_now_ns() + (int64_t)GM_PROBE_MS * 1000000;

    struct gm_listen place;
    unsigned i;

    gm_probe_place(config, &place, &i);
    if (gm_probe(&place, until, &error) == GM_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "gemmd: %s\n", error.detail);
    return EXIT_FAILURE;
}

static bool uses_low_port(const struct gm_config *config)
{
    bool low = false;

    for (unsigned i = 0; i < config->listens; i++)
        low = low || (*config->listen[i].port && atoi(config->listen[i].port) < IPPORT_RESERVED &&
                      atoi(config->listen[i].port) > 0);
    return low;
}

static enum gm_status check_tls(const struct gm_config *config, struct gm_error *err)
{
    struct gm_tls *tls;
    enum gm_status status = gm_tls_load(config, &tls, err);

    if (status != GM_OK)
        return status;
    bool expired = gm_tls_expires(tls) < time(NULL);
    gm_tls_unref(tls);
    return expired ? gm_fail(err, GM_INTERNAL, "%s: the certificate has expired", config->tls_cert)
                   : GM_OK;
}

static enum gm_status check_keys(struct gm_server *server, struct gm_error *err)
{
    enum gm_status status = open_access(server, err);

    gm_access_close(&server->access);
    return status;
}

static enum gm_status check_profile(const struct gm_config *config, struct gm_error *err)
{
    struct gm_profile *profile = NULL;
    enum gm_status status = gm_devices_read_profile(config->profile, &profile, err);

    free(profile);
    return status;
}

/* Does not lock it: a gemmd that runs may have it. */
static enum gm_status check_matrix_dir(const struct gm_config *config, struct gm_error *err)
{
    int dir = open(config->matrix_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return gm_fail(err, GM_BAD_PARAMETER, "--matrix-dir: %s: %s", config->matrix_dir,
                       strerror(errno));
    close(dir);
    return GM_OK;
}

/* Whether the folders of Unix sockets are there, and may be written. */
static enum gm_status check_sockets(const struct gm_config *config, struct gm_error *err)
{
    for (unsigned i = 0; i < config->listens; i++) {
        char folder[sizeof config->listen[i].host];
        if (*config->listen[i].port)
            continue;
        memcpy(folder, config->listen[i].host, sizeof folder);
        char *slash = strrchr(folder, '/');
        strcpy(slash ? slash + (slash == folder) : folder, slash ? "" : ".");
        if (access(folder, W_OK | X_OK) != 0)
            return gm_fail(err, GM_BAD_PARAMETER, "--listen unix:%s: %s: %s",
                           config->listen[i].host, folder, strerror(errno));
    }
    return GM_OK;
}

/* Says what is wrong, if something is. */
static bool is_right(enum gm_status status, const struct gm_error *error)
{
    if (status != GM_OK)
        fprintf(stderr, "gemmd: %s\n", error->detail);
    return status == GM_OK;
}

/* Runs --check: all that the options alone do not show, so that one run names all that is wrong. */
static int check(struct gm_server *server)
{
    const struct gm_config *config = &server->config;
    struct gm_error error;
    bool right = is_right(gm_log_open(&config->log_to, &error), &error);

    if (*config->tls_cert)
        right &= is_right(check_tls(config, &error), &error);
    if (*config->keys)
        right &= is_right(check_keys(server, &error), &error);
    if (*config->profile)
        right &= is_right(check_profile(config, &error), &error);
    if (*config->matrix_dir)
        right &= is_right(check_matrix_dir(config, &error), &error);
    right &= is_right(check_sockets(config, &error), &error);
    right &= is_right(gm_http_check_reach(config, &error), &error);
    if (!right)
        return EXIT_FAILURE;
    printf("gemmd could run so\n");
    return EXIT_SUCCESS;
}

/* Runs --tune. */
static int tune(const struct gm_config *config)
{
    struct gm_error error;
    enum gm_status status = gm_tune_first_gpu(config, &error);

    if (status == GM_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "gemmd: %s\n", error.detail);
    return status == GM_DEVICE_LOST ? EXIT_DEVICE_LOST : EXIT_START;
}

/* Opens /dev/null for each closed standard stream. Otherwise the next opened file would get its
 * number, and then the log's lines or the ready line. */
static bool open_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    static struct gm_server server;
    struct events events;
    struct gm_notify notify;
    struct gm_error error;
    int code = EXIT_START;

    if (!open_standard_streams())
        return EXIT_START; /* there is no stream to report it on */
    switch (gm_config_parse(argc, argv, &server.config)) {
    case GM_CONFIG_EXIT_OK:
        return EXIT_SUCCESS;
    case GM_CONFIG_EXIT_USAGE:
        return EXIT_USAGE;
    case GM_CONFIG_EXIT_CHECK:
        return EXIT_FAILURE;
    case GM_CONFIG_CHECK:
        return check(&server);
    case GM_CONFIG_TUNE:
        return tune(&server.config);
    case GM_CONFIG_PROBE:
        return probe(&server.config);
    case GM_CONFIG_RUN:
        break;
    }
    gm_log_setup(server.config.log_level, server.config.log_format);
    if (gm_log_open(&server.config.log_to, &error) != GM_OK) {
        fprintf(stderr, "gemmd: %s\n", error.detail);
        return EXIT_START;
    }
    if (server.config.sandbox && gm_sandbox_begin(uses_low_port(&server.config), &error) != GM_OK)
        gm_log_detail(GM_LOG_WARN, "sandbox", error.detail);
    gm_document_init();
    gm_descriptors_raise();
    if (!open_events(&events)) {
        fprintf(stderr, "gemmd: cannot handle signals: %s\n", strerror(errno));
        return EXIT_START;
    }
    if (gm_notify_open(&notify, &error) != GM_OK) {
        fprintf(stderr, "gemmd: %s\n", error.detail);
        return EXIT_START;
    }
    enum gm_status status = open_server(&server, &events, &error);
    if (status == GM_OK)
        code = serve(&server, &events, &notify);
    else
        fprintf(stderr, "gemmd: %s\n", error.detail);
    if (status == GM_BAD_PARAMETER)
        code = EXIT_USAGE; /* no device supports the value of an option */
    close_server(&server);
    gm_notify_close(&notify);
    gm_log_flush(true);
    return code;
}
