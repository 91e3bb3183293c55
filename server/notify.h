/*
 * notify.h - tells the service manager that started gemmd how it goes: that it is ready, that it
 * ends, and, where the manager keeps a watchdog, that it is still alive. Without a manager that
 * asks for it, all of this does nothing.
 *
 * The protocol is systemd's (sd_notify(3), which promises that it stays): a datagram of NAME=VALUE
 * lines to the socket that NOTIFY_SOCKET names. It is spoken here, not by libsystemd, because it is
 * these few lines, and because other managers speak it too: the library would bring six more into
 * each image, and a build that differs from machine to machine.
 */
#ifndef GM_SERVER_NOTIFY_H
#define GM_SERVER_NOTIFY_H

#include "proto/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

struct gm_notify {
    int socket; /* -1: there is nobody to tell */
    struct sockaddr_un address;
    unsigned address_len;
    int64_t watchdog_ns; /* without a sign of life for this long we are killed; 0: no watchdog */
    int64_t due_ns;      /* when to look next whether there is one to give */
    /* Whether gemmd is alive, answered by until_ns. The error says why not. */
    enum gm_status (*alive)(void *cls, int64_t until_ns, struct gm_error *err);
    void *cls;
};

/* From the environment: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. One that says what cannot be
 * is an error: a manager would wait for a word that never comes. */
enum gm_status gm_notify_open(struct gm_notify *ret, struct gm_error *err);
void gm_notify_close(struct gm_notify *notify);

/* One or more lines, as "READY=1\nSTATUS=listening". */
enum gm_status gm_notify_send(const struct gm_notify *notify, const char *lines,
                              struct gm_error *err);

/* Milliseconds until gm_notify_watch is due, as poll(2) takes them; -1: never. */
int gm_notify_wait_ms(const struct gm_notify *notify);
/* If it is due: asks alive(), and gives the sign of life only if it is. A failure is tried again
 * while there is time. */
enum gm_status gm_notify_watch(struct gm_notify *notify, struct gm_error *err);

#endif
