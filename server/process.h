/*
 * process.h - gemmd as a process: what it tells its service manager, how one asks whether it lives,
 * what it gives up, and how it measures the GPU at hand.
 *
 * notify.c says that gemmd is ready, alive (watchdog), or stopping. Does nothing if no manager asks
 * for it. The protocol is systemd's (sd_notify(3), which promises stability): datagrams of
 * NAME=VALUE lines to the socket in NOTIFY_SOCKET. gemmd does not use libsystemd: the protocol is
 * these few lines, and other managers speak it too. The library would bring six more into each
 * image, and make builds differ between machines.
 */
#ifndef GM_SERVER_PROCESS_H
#define GM_SERVER_PROCESS_H

#include "proto/status.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

struct gm_config;
struct gm_listen;

struct gm_notify {
    int socket; /* -1: no manager */
    struct sockaddr_un address;
    unsigned address_len;
    int64_t
        watchdog_ns; /* watchdog time-out, after which the manager kills gemmd; 0: no watchdog */
    int64_t due_ns;  /* time of the next check */
    /* Whether gemmd is alive; must return by until_ns. The error says why not. */
    enum gm_status (*alive)(void *cls, int64_t until_ns, struct gm_error *err);
    void *cls;
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. An invalid value is an error, because the
 * manager would wait in vain. */
enum gm_status gm_notify_open(struct gm_notify *ret, struct gm_error *err);
void gm_notify_close(struct gm_notify *notify);

/* Sends one or more lines, as "READY=1\nSTATUS=listening". */
enum gm_status gm_notify_send(const struct gm_notify *notify, const char *lines,
                              struct gm_error *err);

/* Milliseconds until gm_notify_watch is due, as poll(2) takes them; -1: never. */
int gm_notify_wait_ms(const struct gm_notify *notify);
/* If a check is due: calls alive(), and notifies the watchdog only if it succeeds. A failure is
 * retried while there is time. */
enum gm_status gm_notify_watch(struct gm_notify *notify, struct gm_error *err);

/*
 * probe.c asks whether a gemmd is alive by GET /healthz, as a client would: for `gemmd --probe`, a
 * health check for containers without a shell or curl, and for the service manager's watchdog. It
 * also finds the addresses of a host's name, as the listener does.
 */

/* Where to ask the gemmd that runs with these options: a place without TLS, if there is one.
 * `plain` is set where no TLS is spoken; *ret_index: which --listen it is. */
void gm_probe_place(const struct gm_config *config, struct gm_listen *ret, unsigned *ret_index);

/*
 * Connects to where gemmd listens; a wildcard address means loopback. GM_OK if a complete answer
 * with status 200 arrives by until_ns, or 401: it asks for a key. Over TLS it does not check the
 * certificate. A daemon that asks for the client's certificate, which the probe has not, is alive
 * if it says so.
 */
enum gm_status gm_probe(const struct gm_listen *at, int64_t until_ns, struct gm_error *err);

/* As getaddrinfo() for TCP and a numeric port, with AI_PASSIVE in `flags` or 0. `localhost` is
 * 127.0.0.1 where the system does not know it: a minimal one has no /etc/hosts. Any thread. The
 * caller frees *ret with freeaddrinfo() where 0 is returned. */
int gm_resolve(const char *host, const char *port, int flags, struct addrinfo **ret);

/*
 * sandbox.c: an attacker who runs code in gemmd shall find no way to become more than it: no
 * capability, no program to start, no kernel interface beyond those that serving and the GPU's
 * driver take.
 */

/* Drops all capabilities, but that to use a port below 1024 if that is wanted. Each thread has its
 * own, so call this before there are others. */
enum gm_status gm_sandbox_begin(bool low_port, struct gm_error *err);

/* Drops the rest, forbids to gain privileges by starting programs, and puts a filter on the system
 * calls of all threads. Files can be read, and connections made, as before. */
enum gm_status gm_sandbox_enter(struct gm_error *err);

/* tune.c: runs --tune on the first GPU, and prints how good the table is. Catches SIGINT and
 * SIGTERM. Measures at most GM_TUNE_S seconds. GM_DEVICE_UNAVAILABLE: there is no such GPU. */
enum gm_status gm_tune_first_gpu(const struct gm_config *config, struct gm_error *err);

#endif
