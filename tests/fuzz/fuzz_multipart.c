/*
 * fuzz_multipart.c - multipart/form-data. Input: what cuts the body into pieces, a line that is the
 * body's Content-Type, the body.
 *
 * Checked: any cut gives the same parts, the same data, the same outcome and sentence; events come
 * in order; names and types lie within the header's bound, data are pieces of the body, in order; a
 * part named "refuse" ends the parsing with its own status; the parts written by the book, with
 * another boundary, are read as the same.
 */
#include "proto/multipart/multipart.h"
#include "tests/fuzz/fuzz.h"

#define BOUNDARY "fuzz-7e57-da7a-0123456789-abcdefghijklmnop"

struct part {
    char *name, *type;
    uint8_t *data;
    size_t len, capacity;
};

struct parts {
    enum gm_status status;
    struct gm_error error;
    unsigned count;
    bool open, refused;
    size_t total, total_max;
    struct part part[GM_MULTIPART_PARTS_MAX];
};

static enum gm_status on_begin(void *cls, const struct gm_multipart_part *part,
                               struct gm_error *err)
{
    struct parts *parts = cls;
    MUST(!parts->open && !parts->refused && parts->count < GM_MULTIPART_PARTS_MAX);
    MUST(strlen(part->name) + strlen(part->type) < GM_MULTIPART_HEADER_MAX);
    if (strcmp(part->name, "refuse") == 0) {
        parts->refused = true;
        return gm_fail(err, GM_UNKNOWN_PARAMETER, "refused by the events");
    }
    parts->open = true;
    parts->part[parts->count++] =
        (struct part){.name = fuzz_string(part->name, strlen(part->name)),
                      .type = fuzz_string(part->type, strlen(part->type))};
    return GM_OK;
}

static enum gm_status on_data(void *cls, const void *bytes, size_t len, struct gm_error *err)
{
    struct parts *parts = cls;
    struct part *part = &parts->part[parts->count - 1];
    (void)err;
    MUST(parts->open && len > 0);
    parts->total += len;
    MUST(parts->total <= parts->total_max);
    if (part->len + len > part->capacity) {
        part->capacity = 2 * part->capacity + len;
        part->data = realloc(part->data, part->capacity);
        MUST(part->data);
    }
    memcpy(part->data + part->len, bytes, len);
    part->len += len;
    return GM_OK;
}

static enum gm_status on_end(void *cls, struct gm_error *err)
{
    struct parts *parts = cls;
    (void)err;
    MUST(parts->open);
    parts->open = false;
    return GM_OK;
}

static void free_parts(struct parts *parts)
{
    for (unsigned i = 0; i < parts->count; i++) {
        free(parts->part[i].name);
        free(parts->part[i].type);
        free(parts->part[i].data);
    }
    free(parts);
}

/* Parses the body in pieces of 1 to `longest` bytes (0: in one). */
static struct parts *parse(const char *type, const void *body, size_t len, size_t longest,
                           uint64_t seed)
{
    struct parts *parts = calloc(1, sizeof *parts);
    MUST(parts);
    struct gm_multipart_events events = {on_begin, on_data, on_end, parts};
    struct gm_multipart *multipart = NULL;
    const char *at = body;

    parts->total_max = len;
    parts->status = gm_multipart_open(type, &events, &multipart, &parts->error);
    MUST((parts->status == GM_OK) == (multipart != NULL));
    while (parts->status == GM_OK && len > 0) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t n = longest ? 1 + (size_t)(seed >> 33) % longest : len;
        n = n < len ? n : len;
        char *piece = fuzz_alloc(n);
        memcpy(piece, at, n);
        parts->status = gm_multipart_push(multipart, piece, n, &parts->error);
        free(piece);
        at += n;
        len -= n;
    }
    if (parts->status == GM_OK) {
        parts->status = gm_multipart_finish(multipart, &parts->error);
        MUST(parts->status != GM_OK || !parts->open);
    }
    gm_multipart_close(multipart);
    if (parts->status != GM_OK)
        fuzz_check_error(parts->status, &parts->error);
    else
        MUST(!parts->error.detail[0] && !parts->refused);
    return parts;
}

static void must_be_alike(const struct parts *one, const struct parts *other)
{
    MUST_SAY(one->status == other->status && strcmp(one->error.detail, other->error.detail) == 0,
             "%s\n  %s", one->error.detail, other->error.detail);
    MUST(one->count == other->count && one->open == other->open);
    for (unsigned i = 0; i < one->count; i++) {
        const struct part *a = &one->part[i], *b = &other->part[i];
        bool last = one->status != GM_OK && i + 1 == one->count && one->open;
        MUST(strcmp(a->name, b->name) == 0 && strcmp(a->type, b->type) == 0);
        /* Of a part that broke off, some data may still have been held back. */
        MUST(last || a->len == b->len);
        MUST(memcmp(a->data ? a->data : (uint8_t *)"", b->data ? b->data : (uint8_t *)"",
                    a->len < b->len ? a->len : b->len) == 0);
    }
}

/* The data are pieces of the body, one after the other. */
static void check_content(const struct parts *parts, const uint8_t *body, size_t len)
{
    for (unsigned i = 0; i < parts->count; i++) {
        const struct part *part = &parts->part[i];
        if (part->len == 0)
            continue;
        const uint8_t *at = memmem(body, len, part->data, part->len);
        MUST(at);
        len -= (size_t)(at + part->len - body);
        body = at + part->len;
    }
}

/* A name between quotes, as curl writes it. */
static char *put_name(char *out, const char *name)
{
    for (; *name; name++) {
        if (*name == '"' || *name == '\r' || *name == '\n')
            out += sprintf(out, "%%%02X", (unsigned)*name);
        else if (*name == '\\')
            out = stpcpy(out, "\\\\");
        else
            *out++ = *name;
    }
    return out;
}

/* Writes the parts by the book and reads them again. */
static void check_round_trip(const struct parts *parts)
{
    size_t capacity = 256 + parts->total + parts->count * (3 * GM_MULTIPART_HEADER_MAX + 256);
    char *text = fuzz_alloc(capacity), *p = text;
    bool fits = true;

    for (unsigned i = 0; i < parts->count; i++) {
        const struct part *part = &parts->part[i];
        p += sprintf(p, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"");
        char *begin = p;
        p = put_name(p, part->name);
        p = stpcpy(p, "\"\r\n");
        if (*part->type)
            p += sprintf(p, "Content-Type: %s\r\n", part->type);
        fits = fits && p - begin < GM_MULTIPART_HEADER_MAX - 100; /* longer than it was */
        p = stpcpy(p, "\r\n");
        if (part->len > 0)
            memcpy(p, part->data, part->len);
        fits = fits && !memmem(p, part->len, BOUNDARY, strlen(BOUNDARY));
        p = stpcpy(p + part->len, "\r\n");
    }
    p = stpcpy(p, "--" BOUNDARY "--\r\n");
    MUST((size_t)(p - text) < capacity);
    if (fits) {
        struct parts *again =
            parse("multipart/form-data; boundary=\"" BOUNDARY "\"", text, (size_t)(p - text), 0, 0);
        must_be_alike(parts, again);
        free_parts(again);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    uint64_t seed = fuzz_byte(&in);
    const uint8_t *end = memchr(in.at, '\n', in.left);
    size_t line = end ? (size_t)(end - in.at) : in.left;
    char *type = fuzz_string(in.at, line);

    in.at += line + (end != NULL);
    in.left -= line + (end != NULL);
    (void)gm_multipart_is(type);
    struct parts *whole = parse(type, in.at, in.left, 0, 0);
    for (size_t longest = 1; longest < 200; longest *= 8) {
        struct parts *cut = parse(type, in.at, in.left, longest, seed);
        must_be_alike(whole, cut);
        free_parts(cut);
    }
    check_content(whole, in.at, in.left);
    if (whole->status == GM_OK)
        check_round_trip(whole);
    free_parts(whole);
    free(type);
    return 0;
}
