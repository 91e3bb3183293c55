/*
 * server.h - the state that all requests share.
 *
 * main makes it before the first request and ends it after the last.
 */
#ifndef GM_SERVER_SERVER_H
#define GM_SERVER_SERVER_H

#include "server/access/access.h"
#include "server/api/stats.h"
#include "server/config.h"
#include "server/http/connections.h"
#include "server/matrices/matrices.h"
#include "server/request/regions.h"
#include "server/sched/devices.h"
#include "server/sched/memory_quota.h"
#include "server/sched/worker.h"

#include <pthread.h>
#include <sys/queue.h>

struct gm_request;

enum gm_phase {
    GM_PHASE_SERVING,
    GM_PHASE_DELAY,    /* SIGTERM received: not ready, but still serving */
    GM_PHASE_DRAINING, /* new requests are refused */
    GM_PHASE_ENDING    /* requests that are still uploading are refused too */
};

#define GM_REQUEST_LISTS 16

struct gm_server {
    struct gm_config config;
    struct gm_devices devices;
    struct gm_workers *workers;
    struct gm_memory_quota memory;
    struct gm_regions regions;
    struct gm_matrices matrices;
    struct gm_access access;
    struct gm_connections connections;
    struct gm_stats stats;
    struct gm_recents recents;
    int64_t started_ns, started_unix;
    _Atomic int phase; /* enum gm_phase; only rises */
    /* On a line of its own: `phase` is read for each request. */
    _Alignas(64) struct gm_sched_slots slots;
    /* Requests that a worker or a stream holds. The HTTP library must not be stopped before this is
     * 0. */
    _Atomic unsigned suspended;

    /* The requests being served. Each processor adds to a list of its own, so that threads which
     * serve small requests do not wait for each other. */
    struct gm_request_list {
        _Alignas(64) pthread_mutex_t mutex; /* guards all below */
        LIST_HEAD(, gm_request) requests;
        uint64_t count;
    } being_served[GM_REQUEST_LISTS];
};

#endif
