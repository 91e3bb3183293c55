/*
 * options.h - the one table of gemmctl's options, and what a command line comes to. --help and the
 * parser are made from the table; the tests hold man page and completions against it.
 */
#ifndef GM_CLIENTS_C_GEMMCTL_OPTIONS_H
#define GM_CLIENTS_C_GEMMCTL_OPTIONS_H

#include "clients/c/include/gemmd_http.h"

/* The exit statuses, documented in gemmctl(1). */
enum gm_exit {
    GM_EXIT_OK = 0,
    GM_EXIT_REFUSED = 1,    /* the daemon said that the request is wrong (4xx) */
    GM_EXIT_USAGE = 2,      /* the command line is */
    GM_EXIT_CONNECTION = 3, /* no daemon was reached, or the connection broke */
    GM_EXIT_BUSY = 4,       /* 503, or too slow: later it may work */
    GM_EXIT_DAEMON = 5,     /* the daemon made a mistake (500), or is none */
    GM_EXIT_FILE = 6,       /* a file here cannot be read or written */
    GM_EXIT_KEY = 7,        /* 401 or 403 */
    GM_EXIT_INTERRUPTED = 130
};

enum gm_when { GM_AUTO, GM_ALWAYS, GM_NEVER };

/* As many as a command line may have: each is a part of the query string. */
#define GM_PARAMETERS_MAX 64

struct gm_options {
    /* the daemon */
    const char *url, *unix_socket, *key_file, *ca_file, *proxy;
    double connect_timeout_s, max_time_s, retry_s; /* 0: the default, none, never */
    /* the operation */
    struct gemmd_parameter parameters[GM_PARAMETERS_MAX + 1];
    size_t parameter_count;
    /* files */
    const char *output, *from, *to;
    /* what is said */
    bool json, quiet, verbose;
    const char *color;
    /* key */
    const char *keys, *roles, *quota;
    /* bench, top */
    uint64_t concurrency, requests;
    double rate, duration_s, interval_s;

    bool help, version;
    uint64_t given; /* a bit for each row of the table: whether it was there */
    char **args;    /* command and operands */
    int arg_count;
};

/* false: it has said on standard error what is wrong. */
bool gm_options_read(int argc, char **argv, struct gm_options *ret);
/* Whether the command takes all options that were given: one that it would ignore is a mistake.
 * false: said which it does not take. */
bool gm_options_suit(const struct gm_options *options, const char *command);
void gm_options_help(void);

/* The value of a parameter, or NULL. */
const char *gm_options_parameter(const struct gm_options *options, const char *name);
void gm_options_drop_parameter(struct gm_options *options, const char *name);
/* false: there are too many. Texts are kept, not copied. */
bool gm_options_add_parameter(struct gm_options *options, const char *name, const char *value);

#endif
