/*
 * multipart_log.h - what a parser of multipart/form-data says of a message, as one text that can
 * be compared: "[name|type]data." for each part, whatever pieces the message came in.
 */
#ifndef GM_TESTS_UNIT_MULTIPART_LOG_H
#define GM_TESTS_UNIT_MULTIPART_LOG_H

#include "proto/multipart/multipart.h"
#include "tests/unit/codec_input.h"

#define MULTIPART_LOG_MAX 16384

struct multipart_log {
    size_t len;
    char text[MULTIPART_LOG_MAX];
    bool in_part;
    const char *piece; /* data must lie in it, or in the parser */
    size_t piece_len, copied;
    const char *refuse; /* the name of a part that is not wanted, or NULL */
};

static inline void multipart_log_add(struct multipart_log *log, const char *text, size_t len)
{
    if (CHECK(len < sizeof(log->text) - log->len)) {
        memcpy(log->text + log->len, text, len);
        log->len += len;
        log->text[log->len] = '\0';
    }
}

static inline enum gm_status multipart_log_begin(void *cls, const struct gm_multipart_part *part,
                                                 struct gm_error *err)
{
    struct multipart_log *log = cls;

    CHECK(!log->in_part);
    log->in_part = true;
    multipart_log_add(log, "[", 1);
    multipart_log_add(log, part->name, strlen(part->name));
    multipart_log_add(log, "|", 1);
    multipart_log_add(log, part->type, strlen(part->type));
    multipart_log_add(log, "]", 1);
    bool refused = log->refuse && strcmp(part->name, log->refuse) == 0;
    return refused ? gm_fail(err, GM_BAD_PARAMETER, "refused by the test") : GM_OK;
}

static inline enum gm_status multipart_log_data(void *cls, const void *bytes, size_t len,
                                                struct gm_error *err)
{
    struct multipart_log *log = cls;
    const char *at = bytes;

    (void)err;
    CHECK(log->in_part && len > 0);
    if (at < log->piece || at + len > log->piece + log->piece_len)
        log->copied += len;
    multipart_log_add(log, at, len);
    return GM_OK;
}

static inline enum gm_status multipart_log_end(void *cls, struct gm_error *err)
{
    struct multipart_log *log = cls;

    (void)err;
    CHECK(log->in_part);
    log->in_part = false;
    multipart_log_add(log, ".", 1);
    return GM_OK;
}

/*
 * Parses a message in pieces: they end at each of the `cuts`, which rise, and at its end. The log
 * is emptied first; log->refuse stays.
 */
static inline enum gm_status multipart_log_parse(struct multipart_log *log, const char *type,
                                                 const char *message, size_t len,
                                                 const size_t *cuts, size_t cut_count,
                                                 struct gm_error *err)
{
    const struct gm_multipart_events events = {
        .begin = multipart_log_begin,
        .data = multipart_log_data,
        .end = multipart_log_end,
        .cls = log,
    };
    struct gm_multipart *multipart = NULL;
    enum gm_status status = gm_multipart_open(type, &events, &multipart, err);
    size_t at = 0;

    log->len = log->copied = 0;
    log->text[0] = '\0';
    log->in_part = false;
    for (size_t i = 0; i <= cut_count && status == GM_OK; i++) {
        size_t n = (i < cut_count ? cuts[i] : len) - at;
        char *piece = check_alloc(n); /* of its own: reading beyond it is seen */
        memcpy(piece, message + at, n);
        log->piece = piece;
        log->piece_len = n;
        status = gm_multipart_push(multipart, piece, n, err);
        memset(piece, '!', n); /* and keeping it too */
        free(piece);
        at += n;
    }
    if (status == GM_OK)
        status = gm_multipart_finish(multipart, err);
    if (status == GM_OK)
        CHECK(!log->in_part);
    gm_multipart_close(multipart);
    return status;
}

#endif
