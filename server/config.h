/*
 * config.h - the daemon's options, from a file, the environment and the command line.
 *
 * One table in config.c makes the parser, the file's names, the environment variables and --help.
 * An invalid value is a fatal error that names it, never replaced by a default. So is an unknown
 * variable that begins with GEMMD_. All faults are named, not only the first.
 */
#ifndef GM_SERVER_CONFIG_H
#define GM_SERVER_CONFIG_H

#include "proto/key.h"
#include "proto/status.h"
#include "server/limits.h"
#include "server/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GM_BACKEND_NAME_MAX 8
#define GM_CONFIG_TEXT_MAX 1024 /* of a path, or a list of names */

/* A place to listen. */
struct gm_listen {
    char host[256]; /* no brackets around IPv6; of a Unix socket its path */
    char port[6];   /* "": a Unix socket */
    unsigned mode;  /* permissions of a Unix socket's file */
    bool plain;     /* no TLS here, even if there is a certificate; Unix sockets are always plain */
};

struct gm_config {
    struct gm_listen listen[GM_LISTENS_MAX];
    unsigned listens;
    /* Files in PEM; "": none. The client CA makes clients show a certificate. */
    char tls_cert[GM_CONFIG_TEXT_MAX], tls_key[GM_CONFIG_TEXT_MAX],
        tls_client_ca[GM_CONFIG_TEXT_MAX];
    char tls_priority[GM_CONFIG_TEXT_MAX]; /* GnuTLS's list of algorithms */
    bool sandbox;                          /* forbid system calls that gemmd does not need */
    char backend[GM_BACKEND_NAME_MAX];     /* "auto" or a backend's name */
    bool place_by_load;                    /* --placement */
    uint64_t memory_limit;                 /* bytes; 0 until gm_config_parse has set it */
    uint64_t matrix_memory;                /* bytes; UINT64_MAX until gm_config_parse has set it */
    char matrix_dir[GM_CONFIG_TEXT_MAX];   /* "": none */
    uint64_t body_limit;
    uint64_t queue_limit;
    uint64_t threads; /* 0: one per core */
    uint64_t streams; /* 0: the backend's own choice */
    uint64_t timeout_ms, drain_delay_ms, drain_timeout_ms;
    char shared_memory[GM_CONFIG_TEXT_MAX]; /* of objects that clients may register; "": none */
    bool cuda_ipc;
    char profile[GM_CONFIG_TEXT_MAX]; /* path of a table of numbers for estimates; "": none */
    char tune[GM_CONFIG_TEXT_MAX];    /* path of such a table that --tune is to write; "": none */
    char keys[GM_CONFIG_TEXT_MAX];    /* path of the keys file; "": none */
    char cors[GM_CONFIG_TEXT_MAX];    /* origins, "*" or "" */
    char hosts[GM_CONFIG_TEXT_MAX];   /* further names of this machine */
    bool open_probes, insecure;
    struct gm_quota_limits quota;
    enum gm_log_level log_level;
    enum gm_log_format log_format;
    struct gm_log_place log_to;
};

enum gm_config_outcome {
    GM_CONFIG_RUN,
    GM_CONFIG_PROBE, /* --probe: ask the gemmd that runs with these options */
    GM_CONFIG_CHECK, /* --check: only say whether gemmd could run with these options */
    GM_CONFIG_TUNE,  /* --tune: measure the GPU, and write a profile of it */
    GM_CONFIG_EXIT_OK,
    GM_CONFIG_EXIT_USAGE,
    GM_CONFIG_EXIT_CHECK
};

/*
 * Reads the defaults, then the file of --config, then the environment, then the command line; later
 * ones win. --help and --version print to standard output and return GM_CONFIG_EXIT_OK. Errors are
 * printed to standard error, all of them, and make it GM_CONFIG_EXIT_USAGE (of --check, 1:
 * GM_CONFIG_EXIT_CHECK).
 */
enum gm_config_outcome gm_config_parse(int argc, char **argv, struct gm_config *config);

/*
 * Reads the content of a configuration file over what *config has. One option a line, as in
 * "memory-limit = 4G"; blank lines and those that begin with # mean nothing. `path` is for the
 * faults, which go to `faults` as PATH:LINE. Returns their number.
 */
unsigned gm_config_read(struct gm_config *config, const char *path, const char *text, size_t len,
                        FILE *faults);

/* ---- Single values (config_values.c): false if the text is none. ---- */

/* "127.0.0.1:80", "[::1]:80,plain", "unix:PATH", "unix:PATH,mode=0660". */
bool gm_config_listen(const char *text, struct gm_listen *ret);
/* A number that does not fit is UINT64_MAX. Sizes: bytes, "512M". Durations: ms, "1500ms", "2m". */
bool gm_config_count(const char *text, uint64_t *ret);
bool gm_config_size(const char *text, uint64_t *ret);
bool gm_config_duration(const char *text, uint64_t *ret);
/* One address, or several with spaces between them: adds them to those that there are. */
bool gm_config_add_listens(const char *text, struct gm_config *config);
/* "auto", or a backend that this build has. */
bool gm_config_backend(const char *text, char ret[GM_BACKEND_NAME_MAX]);

/* Removes white space at both ends of a line, in place. */
char *gm_config_trim(char *text);

/* A file's content; a zero byte follows it. */
struct gm_file {
    char *bytes;
    size_t len;
    unsigned mode; /* its type and permissions, as of stat(2) */
};

/* Reads a file of at most `most` bytes. An error names it. */
enum gm_status gm_file_read(const char *path, size_t most, struct gm_file *ret,
                            struct gm_error *err);
/* Overwrites the content, which may be secret, and frees it. */
void gm_file_free(struct gm_file *file);

#endif
