/*
 * config.h - the daemon's options, from the environment and the command line.
 *
 * One table in config.c makes the parser, the environment variables and --help. An invalid value is
 * a fatal error that names it, never replaced by a default. So is an unknown variable that begins
 * with GEMMD_.
 */
#ifndef GM_SERVER_CONFIG_H
#define GM_SERVER_CONFIG_H

#include "proto/key.h"
#include "server/log.h"

#include <stdbool.h>
#include <stdint.h>

#define GM_BACKEND_NAME_MAX 8
#define GM_PREFIX_MAX 64
#define GM_CONFIG_TEXT_MAX 1024 /* of a path, or a list of names */

struct gm_config {
    char host[256]; /* no brackets around IPv6 */
    char port[6];
    char backend[GM_BACKEND_NAME_MAX]; /* "auto" or a backend's name */
    bool place_by_load;                /* --placement */
    uint64_t memory_limit;             /* bytes; 0 until gm_config_parse has set it */
    uint64_t body_limit;
    uint64_t queue_limit;
    uint64_t threads; /* 0: one per core */
    uint64_t streams; /* 0: the backend's own choice */
    uint64_t timeout_ms, drain_delay_ms, drain_timeout_ms;
    char shared_memory[GM_PREFIX_MAX]; /* of objects that clients may register; "": none */
    bool cuda_ipc;
    char keys[GM_CONFIG_TEXT_MAX];  /* path of the keys file; "": none */
    char cors[GM_CONFIG_TEXT_MAX];  /* origins, "*" or "" */
    char hosts[GM_CONFIG_TEXT_MAX]; /* further names of this machine */
    bool open_probes, insecure;
    struct gm_quota_limits quota;
    enum gm_log_level log_level;
    enum gm_log_format log_format;
};

enum gm_config_outcome {
    GM_CONFIG_RUN,
    GM_CONFIG_PROBE, /* --probe: ask the gemmd that runs with these options */
    GM_CONFIG_EXIT_OK,
    GM_CONFIG_EXIT_USAGE
};

/*
 * Reads the defaults, then the environment, then the command line; later ones win. --help and
 * --version print to standard output and return GM_CONFIG_EXIT_OK. An error is printed to standard
 * error and returns GM_CONFIG_EXIT_USAGE.
 */
enum gm_config_outcome gm_config_parse(int argc, char **argv, struct gm_config *config);

#endif
