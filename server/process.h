/*
 * process.h - gemmd as a process: what it tells its service manager, and what it gives up.
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

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

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

#endif
