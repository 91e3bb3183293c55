/*
 * multipart.c - finds where the parts of multipart/form-data begin and end.
 *
 * No parser in Debian fits. Those for mail build a tree of a whole message. libmicrohttpd's copies
 * the data, needs one of its connections, and gives no reason when it fails.
 *
 *   state:  DATA (preamble) -> BOUNDARY -> HEADER -> DATA -> BOUNDARY ... -> BOUNDARY -> EPILOGUE
 *
 * The delimiter "\r\n--BOUNDARY" has its only CR at its beginning, since a boundary cannot contain
 * one. So text that matches a part of it and then differs contains no other beginning, and the
 * search continues after it: linear, and memchr for CR almost everywhere. If a push ends within a
 * delimiter, its bytes need not be kept, since they are the delimiter's own text.
 */
#include "proto/multipart/multipart.h"

#include <stdlib.h>
#include <string.h>

/* "\r\n--", the boundary, "--" */
#define DELIMITER_MAX (4 + GM_MULTIPART_BOUNDARY_MAX + 2)

struct gm_multipart {
    struct gm_multipart_events events;
    enum { DATA, BOUNDARY, HEADER, EPILOGUE } state;
    bool in_part; /* else DATA is the preamble */
    unsigned parts;
    size_t outside; /* bytes of preamble and epilogue so far */

    /*
     * The text "\r\n--BOUNDARY--". Its first delimiter_len bytes are the delimiter. The last
     * `matched` bytes of the input match it (or also the dash behind it). At the beginning of the
     * message or of a part's data CR LF counts as seen: `unreal` is then 2.
     */
    char delimiter[DELIMITER_MAX + 1];
    size_t delimiter_len, matched, unreal;

    size_t header_len;
    char header[GM_MULTIPART_HEADER_MAX];
};

/* A boundary may come at once: its CR LF counts as seen. */
static void expect_boundary(struct gm_multipart *m)
{
    m->state = DATA;
    m->matched = m->unreal = 2;
}

enum gm_status gm_multipart_open(const char *content_type, const struct gm_multipart_events *events,
                                 struct gm_multipart **ret, struct gm_error *err)
{
    char boundary[GM_MULTIPART_BOUNDARY_MAX + 1];
    enum gm_status status = gm_multipart_boundary(content_type, boundary, err);

    if (status != GM_OK)
        return status;
    struct gm_multipart *m = malloc(sizeof(*m));
    if (!m)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for reading multipart/form-data");
    m->events = *events;
    m->in_part = false;
    m->parts = 0;
    m->outside = 0;
    size_t len = strlen(boundary);
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary, len);
    memcpy(m->delimiter + 4 + len, "--", 3);
    m->delimiter_len = 4 + len;
    expect_boundary(m);
    *ret = m;
    return GM_OK;
}

void gm_multipart_close(struct gm_multipart *m)
{
    free(m);
}

/* The boundary as it is written, without the CR LF before it. */
static const char *line_of(const struct gm_multipart *m)
{
    return m->delimiter + 2;
}

/* Drops bytes outside of all parts. */
static enum gm_status pass_over(struct gm_multipart *m, size_t len, struct gm_error *err)
{
    if (len <= GM_MULTIPART_OUTSIDE_MAX - m->outside) {
        m->outside += len;
        return GM_OK;
    }
    if (m->state == EPILOGUE)
        return gm_fail(err, GM_BODY_TRAILING,
                       "after its last boundary, %s, the body goes on for more than %d bytes",
                       line_of(m), GM_MULTIPART_OUTSIDE_MAX);
    return gm_fail(
        err, GM_BAD_MULTIPART,
        "%d bytes of the body hold no line %.*s, which the boundary in Content-Type asks "
        "for; curl -F writes both",
        GM_MULTIPART_OUTSIDE_MAX, (int)m->delimiter_len - 2, line_of(m));
}

static enum gm_status deliver(struct gm_multipart *m, const char *bytes, size_t len,
                              struct gm_error *err)
{
    if (len == 0)
        return GM_OK;
    return m->in_part ? m->events.data(m->events.cls, bytes, len, err) : pass_over(m, len, err);
}

/* The bytes matched so far are not a delimiter but data. */
static enum gm_status release(struct gm_multipart *m, struct gm_error *err)
{
    size_t from = m->unreal, len = m->matched - m->unreal;

    m->state = DATA;
    m->matched = m->unreal = 0;
    return deliver(m, m->delimiter + from, len, err);
}

/* Finds the next CR; NULL if there is none. Many CRs in a row do not cost a call each. */
static const char *find_cr(const char *at, const char *end)
{
    return at < end && *at == '\r' ? at : memchr(at, '\r', (size_t)(end - at));
}

/* Number of bytes at `at` that continue the delimiter after its first `have`. */
static size_t match(const struct gm_multipart *m, const char *at, const char *end, size_t have)
{
    size_t most = m->delimiter_len - have, n = 0;

    if ((size_t)(end - at) < most)
        most = (size_t)(end - at);
    while (n < most && at[n] == m->delimiter[have + n])
        n++;
    return n;
}

/* Reads data up to the next delimiter, or to the end of the input; moves *at past it. */
static enum gm_status take_data(struct gm_multipart *m, const char **at, const char *end,
                                struct gm_error *err)
{
    const char *from = *at, *p = from;
    enum gm_status status;

    if (m->matched > 0) {
        size_t n = match(m, p, end, m->matched);
        m->matched += n;
        p += n;
        if (m->matched < m->delimiter_len && p < end) {
            status = release(m, err);
            if (status != GM_OK)
                return status;
            from = p;
        }
    }
    while (m->matched == 0 && (p = find_cr(p, end)) != NULL) {
        size_t n = match(m, p, end, 0);
        if (n == m->delimiter_len || p + n == end) {
            m->matched = n;
            status = deliver(m, from, (size_t)(p - from), err);
            if (status != GM_OK)
                return status;
        }
        p += n;
    }
    *at = p ? p : end;
    if (m->matched == m->delimiter_len)
        m->state = BOUNDARY;
    return p ? GM_OK : deliver(m, from, (size_t)(end - from), err);
}

static enum gm_status end_part(struct gm_multipart *m, struct gm_error *err)
{
    bool in_part = m->in_part;

    m->in_part = false;
    return in_part ? m->events.end(m->events.cls, err) : GM_OK;
}

/* Decides by the byte behind a delimiter. */
static enum gm_status take_boundary(struct gm_multipart *m, const char **at, struct gm_error *err)
{
    bool dash = m->matched > m->delimiter_len;
    char c = **at;

    if (c == '-') {
        ++*at;
        m->matched++;
        if (!dash)
            return GM_OK;
        m->state = EPILOGUE;
        return end_part(m, err);
    }
    if (dash || (c != ' ' && c != '\t' && c != '\r' && c != '\n'))
        return release(m, err);
    if (m->parts == GM_MULTIPART_PARTS_MAX)
        return gm_fail(err, GM_BAD_MULTIPART, "the body has more than %d parts",
                       GM_MULTIPART_PARTS_MAX);
    m->parts++;
    m->state = HEADER;
    m->header_len = 0;
    return end_part(m, err);
}

/* Reads the rest of a boundary's line, and the part's header up to its empty line. */
static enum gm_status take_header(struct gm_multipart *m, const char **at, const char *end,
                                  struct gm_error *err)
{
    struct gm_multipart_part part;

    for (const char *p = *at; p < end; p++) {
        if (m->header_len == sizeof(m->header))
            return gm_fail(err, GM_BAD_MULTIPART, "the header of part %u has more than %d bytes",
                           m->parts, GM_MULTIPART_HEADER_MAX);
        m->header[m->header_len++] = *p;
        if (*p != '\n')
            continue;
        if (m->header_len < 2 || m->header[m->header_len - 2] != '\r')
            return gm_fail(err, GM_BAD_MULTIPART,
                           "a line of the header of part %u ends in LF alone; it must be CR LF",
                           m->parts);
        if (m->header_len < 4 || memcmp(m->header + m->header_len - 4, "\r\n\r\n", 4) != 0)
            continue;
        *at = p + 1;
        enum gm_status status = gm_multipart_header_read(m->header, m->header_len, &part, err);
        if (status != GM_OK)
            return status;
        expect_boundary(m);
        m->in_part = true;
        return m->events.begin(m->events.cls, &part, err);
    }
    *at = end;
    return GM_OK;
}

enum gm_status gm_multipart_push(struct gm_multipart *m, const void *bytes, size_t len,
                                 struct gm_error *err)
{
    const char *at = bytes, *end = at + len;
    enum gm_status status = GM_OK;

    while (at < end && status == GM_OK) {
        switch (m->state) {
        case DATA:
            status = take_data(m, &at, end, err);
            break;
        case BOUNDARY:
            status = take_boundary(m, &at, err);
            break;
        case HEADER:
            status = take_header(m, &at, end, err);
            break;
        case EPILOGUE:
            status = pass_over(m, (size_t)(end - at), err);
            at = end;
            break;
        }
    }
    return status;
}

enum gm_status gm_multipart_finish(struct gm_multipart *m, struct gm_error *err)
{
    if (m->state == EPILOGUE)
        return GM_OK;
    if (m->parts == 0)
        return gm_fail(err, GM_BODY_TRUNCATED,
                       "the body holds no line %.*s, which the boundary in Content-Type asks for; "
                       "curl -F writes both",
                       (int)m->delimiter_len - 2, line_of(m));
    return gm_fail(err, GM_BODY_TRUNCATED,
                   "the body ends early, in its part %u: its last line, %s, is missing", m->parts,
                   line_of(m));
}
