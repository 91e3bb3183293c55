/*
 * sandbox.h - gives up what gemmd has no use for once it has started.
 *
 * An attacker who runs code in gemmd shall find no way to become more than it: no capability, no
 * program to start, no kernel interface beyond those that serving and the GPU's driver take.
 */
#ifndef GM_SERVER_SANDBOX_H
#define GM_SERVER_SANDBOX_H

#include "proto/status.h"

#include <stdbool.h>

/* Drops all capabilities, but that to use a port below 1024 if that is wanted. Each thread has its
 * own, so call this before there are others. */
enum gm_status gm_sandbox_begin(bool low_port, struct gm_error *err);

/* Drops the rest, forbids to gain privileges by starting programs, and puts a filter on the system
 * calls of all threads. Files can be read, and connections made, as before. */
enum gm_status gm_sandbox_enter(struct gm_error *err);

#endif
