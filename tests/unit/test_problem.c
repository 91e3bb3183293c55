/* Replies and problem documents, as bytes on the wire: read back by a strict little parser. */
#include "server/http/internal.h"
#include "tests/unit/check.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 16

/* A reply that was taken apart; its strings point into a copy of the wire. */
struct parsed {
    char *copy;
    int status;
    unsigned fields;
    char *name[FIELDS_MAX], *value[FIELDS_MAX];
    const char *body;
    size_t body_len;
};

/* Cuts a line that ends in CRLF off *at; NULL if there is none, or a control character in it. */
static char *take_line(char **at)
{
    char *line = *at, *end = strstr(line, "\r\n");

    if (!end)
        return NULL;
    *end = '\0';
    for (const char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return NULL;
    *at = end + 2;
    return line;
}

static bool is_token(const char *s)
{
    size_t len = strlen(s);

    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '-')
            return false;
    return len > 0;
}

/* HTTP/1.1 SP 3 digits SP reason CRLF (name ": " value CRLF)* CRLF, and nothing looser. */
static bool parse(const char *wire, size_t len, struct parsed *p)
{
    char *at, *line, *end;

    memset(p, 0, sizeof *p);
    at = p->copy = malloc(len + 1);
    memcpy(at, wire, len);
    at[len] = '\0';
    line = take_line(&at);
    if (!line || strncmp(line, "HTTP/1.1 ", 9) != 0)
        return false;
    p->status = (int)strtol(line + 9, &end, 10);
    if (end != line + 12 || *end != ' ' || !isupper((unsigned char)end[1]))
        return false;
    while ((line = take_line(&at)) != NULL && *line) {
        char *colon = strchr(line, ':');
        if (!colon || colon[1] != ' ' || colon[2] == ' ' || p->fields == FIELDS_MAX)
            return false;
        *colon = '\0';
        if (!is_token(line))
            return false;
        p->name[p->fields] = line;
        p->value[p->fields++] = colon + 2;
    }
    p->body = at;
    p->body_len = len - (size_t)(at - p->copy);
    return line != NULL;
}

/* The header's only value; NULL if it is not there, or there twice. */
static const char *field(const struct parsed *p, const char *name)
{
    const char *value = NULL;

    for (unsigned i = 0; i < p->fields; i++) {
        if (strcasecmp(p->name[i], name) != 0)
            continue;
        if (value)
            return NULL;
        value = p->value[i];
    }
    return value;
}

/* Writes the reply and takes it apart. */
static bool send_and_parse(const struct gm_reply *reply, struct parsed *p)
{
    size_t len = 0;
    char *wire = gm_reply_bytes(reply, "id-1", &len);
    bool ok = CHECK(wire != NULL) && CHECK(parse(wire, len, p));

    free(wire);
    if (!ok)
        return false;
    CHECK_EQ(p->status, reply->http);
    CHECK_STR(field(p, "Connection"), "close");
    CHECK_STR(field(p, "X-Request-Id"), "id-1");
    const char *length = field(p, "Content-Length");
    CHECK(length && strtoull(length, NULL, 10) == p->body_len);
    return true;
}

static void check_member(const json_t *problem, const char *name, const char *value)
{
    CHECK_STR(json_string_value(json_object_get(problem, name)), value);
}

/* A problem document of an error whose sentence is `detail`. */
static void check_problem(enum gm_status status, const char *detail, unsigned retry_after)
{
    struct gm_reply reply = {0};
    struct gm_error error = {0};
    struct parsed p = {0};
    char type[64], seconds[16];
    json_error_t fault;

    gm_fail(&error, status, "%s", detail);
    gm_reply_problem(&reply, &error, "id-1", retry_after);
    CHECK_EQ(reply.http, gm_status_http(status));
    if (!send_and_parse(&reply, &p))
        goto out;
    CHECK_STR(field(&p, "Content-Type"), "application/problem+json");
    snprintf(seconds, sizeof seconds, "%u", retry_after);
    CHECK_STR(field(&p, "Retry-After"), retry_after ? seconds : NULL);
    json_t *problem = json_loadb(p.body, p.body_len, JSON_REJECT_DUPLICATES, &fault);
    if (!CHECK(json_is_object(problem)))
        goto out;
    snprintf(type, sizeof type, "urn:gemmd:error:%s", gm_status_code(status));
    check_member(problem, "type", type);
    check_member(problem, "code", gm_status_code(status));
    check_member(problem, "title", gm_status_title(status));
    check_member(problem, "detail", error.detail);
    check_member(problem, "error", error.detail);
    check_member(problem, "request_id", "id-1");
    CHECK_EQ(json_integer_value(json_object_get(problem, "status")), gm_status_http(status));
    CHECK_EQ(json_object_size(problem), 7);
    json_decref(problem);
out:
    free(p.copy);
    gm_reply_clear(&reply);
}

static void test_problems(void)
{
    static const char *const details[] = {
        "plain", "", "with \"quotes\", a \\ and a / in it",
        "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
        /* What a client can send, and JSON cannot hold. */
        "\xff\xfe", "\x80", "cut \xe2\x82", "overlong \xc0\x80 \xe0\x80\x80", "\xed\xa0\x80",
        "\xf8\x88\x80\x80\x80", "line\r\nInjected: yes\r\n\r\n", "\x01\x02\x1b[2J\x7f"};
    char lengthy[2 * GM_ERROR_DETAIL_MAX];

    for (unsigned i = 1; i < GM_STATUS_COUNT; i++)
        check_problem((enum gm_status)i, "a sentence", i % 3);
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        check_problem(GM_BAD_PARAMETER, details[i], 0);
    /* Cut to fit, at every place within a sequence of three bytes. */
    for (size_t shift = 0; shift < 3; shift++) {
        memset(lengthy, 'x', sizeof lengthy);
        for (size_t i = shift; i + 3 < sizeof lengthy; i += 3)
            memcpy(lengthy + i, "\xe2\x82\xac", 3);
        lengthy[sizeof lengthy - 1] = '\0';
        check_problem(GM_BAD_JSON, lengthy, 60);
    }
}

/* A problem takes the place of whatever reply had been begun. */
static void test_replaces(void)
{
    struct gm_reply reply = {0};
    struct gm_error error;
    struct parsed p = {0};

    gm_reply_text(&reply, 200, "text/plain", strdup("half a result"));
    gm_reply_header(&reply, "Gemmd-Stats", "{}");
    reply.body = "NUMPY";
    reply.body_len = 5;
    gm_fail(&error, GM_INTERNAL, "broken");
    gm_reply_problem(&reply, &error, "id-1", 0);
    if (send_and_parse(&reply, &p)) {
        CHECK_EQ(p.status, 500);
        CHECK(field(&p, "Gemmd-Stats") == NULL);
        CHECK(p.body_len > 0 && p.body[0] == '{');
    }
    free(p.copy);
    gm_reply_clear(&reply);
    CHECK(reply.http == 0 && reply.headers == 0 && reply.text == NULL);
}

/* Under /v2 errors have the format of that protocol. */
static void test_v2(void)
{
    struct gm_reply reply = {0};
    struct gm_error error;
    struct parsed p = {0};

    gm_fail(&error, GM_QUEUE_FULL, "full \"up\"");
    gm_reply_error(&reply, &error, "/v2/models/matmul/infer", "id-1", 7);
    CHECK_STR(reply.media_type, "application/json");
    if (send_and_parse(&reply, &p)) {
        CHECK_EQ(p.status, 503);
        CHECK_STR(field(&p, "Retry-After"), "7");
        CHECK_EQ(p.body_len, strlen("{\"error\":\"full \\\"up\\\"\"}\n"));
        CHECK(memcmp(p.body, "{\"error\":\"full \\\"up\\\"\"}\n", p.body_len) == 0);
    }
    free(p.copy);
    static const char *const others[] = {"/v1/matmul", "/v20", "/", NULL};
    for (size_t i = 0; i < 4; i++) {
        gm_reply_error(&reply, &error, others[i], "id-1", 0);
        CHECK_STR(reply.media_type, "application/problem+json");
    }
    gm_reply_clear(&reply);
}

/* A head and a body that is no text, and headers of the reply's own. */
static void test_binary(void)
{
    static const unsigned char body[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 13, 10,
                                         13,   10,  0,   13,  255, 0,   7};
    struct gm_reply reply = {.http = 200, .media_type = "application/x-npy"};
    struct parsed p = {0};

    reply.body = body;
    reply.body_len = sizeof body;
    gm_reply_header(&reply, "Server-Timing", "kernel;dur=0.1");
    gm_reply_header(&reply, "Gemmd-Shape", "2x4");
    if (send_and_parse(&reply, &p)) {
        CHECK_STR(field(&p, "Content-Type"), "application/x-npy");
        CHECK_STR(field(&p, "Server-Timing"), "kernel;dur=0.1");
        CHECK_STR(field(&p, "Gemmd-Shape"), "2x4");
        CHECK_EQ(p.body_len, sizeof body);
        CHECK(memcmp(p.body, body, sizeof body) == 0);
    }
    free(p.copy);
    gm_reply_clear(&reply);
}

static void test_empty_body(void)
{
    struct gm_reply reply = {0};
    struct parsed p = {0};

    gm_reply_text(&reply, 200, "text/plain", strdup(""));
    if (send_and_parse(&reply, &p))
        CHECK_EQ(p.body_len, 0);
    free(p.copy);
    gm_reply_clear(&reply);
}

/* What cannot be sent whole is not sent: no text, or a header too many. */
static void test_failed(void)
{
    struct gm_reply reply = {0};
    size_t len = 0;

    gm_reply_text(&reply, 200, "text/plain", NULL);
    CHECK(reply.failed);
    CHECK(gm_reply_bytes(&reply, "id-1", &len) == NULL);
    gm_reply_clear(&reply);
    CHECK(!reply.failed);

    gm_reply_text(&reply, 200, "text/plain", strdup("x"));
    for (unsigned i = 0; i < GM_REPLY_HEADERS_MAX; i++)
        gm_reply_header(&reply, "X-Filler", "1");
    CHECK(!reply.failed);
    gm_reply_header(&reply, "X-Filler", "1");
    CHECK(reply.failed);
    gm_reply_clear(&reply);
}

/* Values are copied: their source may go. */
static void test_copies(void)
{
    struct gm_reply reply = {0};
    struct parsed p = {0};
    char value[] = "before";

    gm_reply_text(&reply, 200, "text/plain", strdup("x"));
    gm_reply_header(&reply, "X-Test", value);
    memcpy(value, "after!", 6);
    if (send_and_parse(&reply, &p))
        CHECK_STR(field(&p, "X-Test"), "before");
    free(p.copy);
    gm_reply_clear(&reply);
}

int main(void)
{
    test_problems();
    test_replaces();
    test_v2();
    test_binary();
    test_empty_body();
    test_failed();
    test_copies();
    return check_report();
}
