/*
 * say.h - what gemmctl tells people: errors with their exit status, progress on a terminal, and
 * text from elsewhere, cleaned of what would command a terminal.
 */
#ifndef GM_CLIENTS_C_GEMMCTL_SAY_H
#define GM_CLIENTS_C_GEMMCTL_SAY_H

#include "clients/c/gemmctl/options.h"

#include <stdio.h>

/* Set by SIGINT and SIGTERM, once gm_say_start has been called: end what is being done. */
bool gm_say_interrupted(void);
/* The same as the progress callback of a call: false ends it. */
bool gm_say_go_on(void *cls, const struct gemmd_progress *progress);

/* Looks at the terminal, the environment (NO_COLOR) and the options. */
bool gm_say_start(const struct gm_options *options);

/* "\033[1m" and the like, or "" where `out` shows no colours. */
enum gm_style { GM_PLAIN, GM_BOLD, GM_DIM, GM_RED, GM_GREEN, GM_YELLOW };
const char *gm_say_style(FILE *out, enum gm_style style);

/* Says what went wrong on standard error, and what may help. The exit status to end with. */
enum gm_exit gm_say_error(const struct gm_options *options, const struct gemmd_error *err);

/* The exit status that an error is worth. */
enum gm_exit gm_say_exit(const struct gemmd_error *err);

/* "gemmctl: " and the sentence, on standard error. Returns `status`. */
enum gm_exit gm_say_wrong(enum gm_exit status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text from elsewhere: where `out` is a terminal, '?' for control characters but LF and tab. */
void gm_say_text(FILE *out, const char *text, size_t len);

/* "1.5 GB", "12 kB"; "2.5 ms", "310 us". The buffer is the caller's. */
#define GM_QUANTITY_MAX 32
const char *gm_say_bytes(double bytes, char buf[GM_QUANTITY_MAX]);
const char *gm_say_seconds(double seconds, char buf[GM_QUANTITY_MAX]);

double gm_say_clock(void); /* monotonic, in seconds */

/* A bar on standard error for transfers that take long, on a terminal only. As gemmd_progress_fn:
 * cls is a struct gm_bar. Also ends the call after an interrupt. */
struct gm_bar {
    double start, drawn; /* times; drawn 0: not yet */
    bool shown;
};
void gm_bar_start(struct gm_bar *bar);
bool gm_bar_draw(void *bar, const struct gemmd_progress *progress);
void gm_bar_end(struct gm_bar *bar);

#endif
