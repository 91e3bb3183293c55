/*
 * Messages of multipart/form-data, good and bad, in every split: what is said of them must not
 * depend on it.
 */
#include "tests/unit/failing_alloc.h"
#include "tests/unit/multipart_log.h"

#define TYPE "multipart/form-data; boundary=xyz"
#define A "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"
#define B "--xyz\r\nContent-Disposition: form-data; name=b\r\nContent-Type: text/csv\r\n\r\n"
#define END "\r\n--xyz--"

static const struct test_case {
    const char *message; /* may hold NULs: its length counts */
    size_t len;
    enum gm_status status;
    const char *log; /* where it is well-formed */
    const char *detail;
} cases[] = {
#define GOOD(message, log)                                                                         \
    {                                                                                              \
        message, sizeof(message) - 1, GM_OK, log, NULL                                             \
    }
#define BAD(status, message, detail)                                                               \
    {                                                                                              \
        message, sizeof(message) - 1, status, NULL, detail                                         \
    }
    GOOD(A "1,2" END "\r\n", "[a|]1,2."),
    GOOD(A "1\r\n" B "2" END, "[a|]1.[b|text/csv]2."),
    GOOD(A END, "[a|]."),
    GOOD(A "--xyz--", "[a|]."), /* the empty line is the boundary's */
    GOOD(A B "2" END, "[a|].[b|text/csv]2."),
    GOOD("--xyz--", ""),
    GOOD("a preamble\r\nof lines\n\r\n" A "1" END "\r\nan epilogue\r\n--xyz\r\n", "[a|]1."),
    GOOD("\r\n" A "1" END, "[a|]1."),
    GOOD("--xy\r\n--xyz1\r\n" A "1" END, "[a|]1."),
    /* What only begins like a boundary. */
    GOOD(A "\r" END, "[a|]\r."),
    GOOD(A "\r\n" END, "[a|]\r\n."),
    GOOD(A "\r\n-" END, "[a|]\r\n-."),
    GOOD(A "\r\r\r\n\r\n--\r\n--xy\r" END, "[a|]\r\r\r\n\r\n--\r\n--xy\r."),
    GOOD(A "\r\n--xyz1\r\n--xyzz" END, "[a|]\r\n--xyz1\r\n--xyzz."),
    GOOD(A "\r\n--xyz-\r\n--xyz-1\r\n--xyz-\r" END, "[a|]\r\n--xyz-\r\n--xyz-1\r\n--xyz-\r."),
    GOOD(A "--xyz1" END, "[a|]--xyz1."),
    GOOD(A "--xyz-" END, "[a|]--xyz-."),
    GOOD(A "-" END, "[a|]-."),
    GOOD(A "--xy" END, "[a|]--xy."),
    GOOD(A "1--xyz--\n--xyz--\n" END, "[a|]1--xyz--\n--xyz--\n."),
    GOOD(A "\n--xyz--" END, "[a|]\n--xyz--."),
    /* Blanks behind a boundary, and a close that ends there. */
    GOOD("--xyz \t \r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--xyz-- \t\r\n",
         "[a|]1."),
    GOOD("--xyz\t\r\nContent-Disposition: form-data; name=a\r\n\r\n1" END, "[a|]1."),
    /* Fields in any order and case; those not known; one that goes on in the next line. */
    GOOD("--xyz\r\ncontent-TYPE:text/plain; charset=utf-8 \r\nX-Other: ;;\"\r\n"
         "CONTENT-disposition:\r\n\tform-data;\r\n name=a; filename=\"--xyz--\"\r\n\r\n1" END,
         "[a|text/plain; charset=utf-8]1."),
    BAD(GM_BODY_TRUNCATED, "", "no line --xyz, which"),
    BAD(GM_BODY_TRUNCATED, "{\"a\": [[1, 2]]}", "no line --xyz, which"),
    BAD(GM_BODY_TRUNCATED, A, "part 1: its last line, --xyz--, is missing"),
    BAD(GM_BODY_TRUNCATED, A "1\r\n--xyz", "part 1: its last line"),
    BAD(GM_BODY_TRUNCATED, A "1\r\n--xyz-", "part 1: its last line"),
    BAD(GM_BODY_TRUNCATED, A "1\r\n--xyz\r\n", "part 2: its last line"),
    BAD(GM_BODY_TRUNCATED, A "1\r\n" B "2\n--xyz--", "part 2: its last line"),
    BAD(GM_BODY_TRUNCATED, A "1\r\n--xyz\r\nContent-Disposition: form-data", "part 2"),
    BAD(GM_BAD_MULTIPART, "--xyz\n", "part 1 ends in LF alone"),
    BAD(GM_BAD_MULTIPART, A "1\r\n--xyz\n", "part 2 ends in LF alone"),
    BAD(GM_BAD_MULTIPART, "--xyz\r\nContent-Disposition: form-data; name=a\n\n1",
        "part 1 ends in LF"),
    BAD(GM_BAD_MULTIPART, "--xyz 1\r\n\r\n", "a boundary goes on with ' 1'"),
    BAD(GM_BAD_MULTIPART, "--xyz\r1\r\n\r\n", "control character (13)"),
    BAD(GM_BAD_MULTIPART, "--xyz\r\n\r\n1" END, "no line Content-Disposition"),
    BAD(GM_BAD_MULTIPART, A "1\r\n--xyz\r\n--xyz\r\n\r\n" END, "stands '--xyz'"),
#undef GOOD
#undef BAD
};

static void check_case(const struct test_case *c, struct multipart_log *log, const size_t *cuts,
                       size_t cut_count)
{
    struct gm_error error = {0};
    enum gm_status status =
        multipart_log_parse(log, TYPE, c->message, c->len, cuts, cut_count, &error);
    char cut[80] = "";

    for (size_t i = 0, at = 0; i < cut_count && i < 3; i++)
        at += (size_t)snprintf(cut + at, sizeof(cut) - at, "%zu ", cuts[i]);
    bool same = status == c->status &&
                (c->log ? strcmp(log->text, c->log) == 0 : strstr(error.detail, c->detail) != NULL);
    check_that(same, __FILE__, __LINE__, "case %d, cut at %s: %s \"%s\" \"%s\"", (int)(c - cases),
               cut, gm_status_code(status), log->text, error.detail);
}

/* Whole, at every byte, in every two and every three pieces. */
static void test_every_split(void)
{
    static struct multipart_log log;
    size_t every[1024];

    for (size_t i = 0; i < sizeof(every) / sizeof(every[0]); i++)
        every[i] = i + 1;
    for (const struct test_case *c = cases; c < cases + sizeof(cases) / sizeof(cases[0]); c++) {
        check_case(c, &log, NULL, 0);
        check_case(c, &log, every, c->len ? c->len - 1 : 0);
        for (size_t i = 0; i <= c->len; i++)
            for (size_t j = i; j <= c->len; j++)
                check_case(c, &log, (size_t[]){i, j}, 2);
    }
}

/* A message made for the occasion. */
struct message {
    size_t len;
    char text[MULTIPART_LOG_MAX];
};

static void add(struct message *m, const char *text, size_t len)
{
    if (CHECK(len <= sizeof(m->text) - m->len)) {
        memcpy(m->text + m->len, text, len);
        m->len += len;
    }
}

static void fill(struct message *m, char c, size_t len)
{
    for (size_t i = 0; i < len; i++)
        add(m, &c, 1);
}

/* Pieces of boundaries, of which no data can make a whole one: each differs from it somewhere. */
static size_t random_data(uint64_t *state, char *out)
{
    static const char *const pieces[] = {"\r",          "\n", "\r\n",     "-",       "--",
                                         "x",           "xy", "\r\n--xy", "z1",      "\r\n--xyz.",
                                         "\r\n--xyz-.", "",   "\0",       "--xyz--."};
    size_t len = 0;

    for (uint64_t n = check_random(state) % 12; n > 0; n--) {
        const char *piece = pieces[check_random(state) % (sizeof(pieces) / sizeof(pieces[0]))];
        size_t piece_len = *piece ? strlen(piece) : 1;
        memcpy(out + len, piece, piece_len);
        len += piece_len;
    }
    out[len] = '\0';
    return len;
}

/* Whether data that is followed by a boundary holds one itself, or makes one with what is before.
 */
static bool holds_boundary(const char *data, size_t len)
{
    char text[256] = "\r\n";

    memcpy(text + 2, data, len);
    memcpy(text + 2 + len, END, sizeof(END));
    for (char *at = text; at < text + 2 + len; at++)
        if (memcmp(at, "\r\n--xyz", 7) == 0 &&
            (strchr(" \t\r\n", at[7]) || memcmp(at + 7, "--", 2) == 0))
            return true;
    return false;
}

static void test_random_messages(void)
{
    static struct multipart_log log;
    static struct message message;
    uint64_t state = check_seed();
    struct gm_error error = {0};

    for (int round = 0; round < 20000; round++) {
        char expected[4096] = "", data[256];
        size_t at = 0, cuts[6];
        message.len = 0;
        for (uint64_t parts = check_random(&state) % 4; parts > 0; parts--) {
            size_t len = random_data(&state, data);
            if (holds_boundary(data, len))
                continue;
            add(&message, A, sizeof(A) - 1);
            add(&message, data, len);
            add(&message, "\r\n", 2);
            memcpy(expected + at, "[a|]", 4);
            memcpy(expected + at + 4, data, len);
            at += 4 + len;
            expected[at++] = '.';
        }
        add(&message, "--xyz--", 7);
        size_t n = check_random(&state) % 6;
        for (size_t i = 0, from = 0; i < n; i++)
            cuts[i] = from += check_random(&state) % (message.len - from + 1);
        enum gm_status status =
            multipart_log_parse(&log, TYPE, message.text, message.len, cuts, n, &error);
        if (!CHECK_STATUS(status, GM_OK, &error) ||
            !CHECK(log.len == at && memcmp(log.text, expected, at) == 0))
            printf("round %d\n", round);
    }
}

static enum gm_status parse(struct multipart_log *log, const struct message *m,
                            struct gm_error *err)
{
    return multipart_log_parse(log, TYPE, m->text, m->len, NULL, 0, err);
}

static void test_bounds(void)
{
    static struct multipart_log log;
    static struct message m;
    struct gm_error error = {0};

    for (int extra = 0; extra < 2; extra++) {
        enum gm_status expected = extra ? GM_BAD_MULTIPART : GM_OK;
        m.len = 0; /* parts */
        for (int i = 0; i < GM_MULTIPART_PARTS_MAX + extra; i++)
            add(&m, A "1\r\n", sizeof(A "1\r\n") - 1);
        add(&m, "--xyz--", 7);
        CHECK_STATUS(parse(&log, &m, &error), expected, &error);

        m.len = 0; /* a part's header */
        size_t line = sizeof("\r\nX: \r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n") - 1;
        add(&m, "--xyz\r\nX: ", 10);
        fill(&m, 'x', GM_MULTIPART_HEADER_MAX - line + (size_t)extra);
        add(&m, "\r\n", 2);
        add(&m, A + 7, sizeof(A) - 8);
        add(&m, END, sizeof(END) - 1);
        CHECK_STATUS(parse(&log, &m, &error), expected, &error);

        m.len = 0; /* preamble and epilogue: each boundary's own line ends are not of it */
        fill(&m, 'x', 1000);
        add(&m, "\r\n" A END, sizeof("\r\n" A END) - 1);
        fill(&m, '\r', GM_MULTIPART_OUTSIDE_MAX - 1000 + (size_t)extra);
        CHECK_STATUS(parse(&log, &m, &error), extra ? GM_BODY_TRAILING : GM_OK, &error);

        m.len = 0;
        fill(&m, 'x', GM_MULTIPART_OUTSIDE_MAX + (size_t)extra);
        add(&m, "\r\n" A END, sizeof("\r\n" A END) - 1);
        CHECK_STATUS(parse(&log, &m, &error), expected, &error);
    }
    m.len = 0; /* a header without an end ends early */
    add(&m, A, 20);
    fill(&m, 'x', MULTIPART_LOG_MAX - 20);
    CHECK_STATUS(parse(&log, &m, &error), GM_BAD_MULTIPART, &error);
    CHECK(strstr(error.detail, "part 1 has more than 4096 bytes"));
}

/* Only what was held back at the end of a piece comes from elsewhere than the piece. */
static void test_data_is_not_copied(void)
{
    static struct multipart_log log;
    static struct message m;
    struct gm_error error = {0};
    size_t cuts[10];

    for (size_t i = 0; i < 10; i++)
        cuts[i] = 1000 * (i + 1);
    m.len = 0;
    add(&m, A "0\r", sizeof(A) + 1);
    while (m.len < 10010)
        add(&m, "0123\r\n--xy", 11);
    size_t data = m.len - (sizeof(A) - 1);
    add(&m, END, sizeof(END) - 1);
    CHECK_STATUS(multipart_log_parse(&log, TYPE, m.text, m.len, cuts, 10, &error), GM_OK, &error);
    CHECK_EQ(log.len, data + 5);
    CHECK(log.copied > 0 && log.copied <= 10 * (sizeof("\r\n--xyz-") - 1));
    CHECK_STATUS(multipart_log_parse(&log, TYPE, m.text, m.len, NULL, 0, &error), GM_OK, &error);
    CHECK_EQ(log.copied, 0);
}

static void test_refusals(void)
{
    static struct multipart_log log;
    static const char text[] = A "1\r\n" B "2" END;
    struct gm_error error = {0};
    struct gm_multipart *multipart = NULL;
    const struct gm_multipart_events events = {0};

    log.refuse = "b";
    CHECK_STATUS(multipart_log_parse(&log, TYPE, text, sizeof(text) - 1, NULL, 0, &error),
                 GM_BAD_PARAMETER, &error);
    CHECK_STR(log.text, "[a|]1.[b|text/csv]");
    alloc_fails = true;
    CHECK_STATUS(gm_multipart_open(TYPE, &events, &multipart, &error), GM_MEMORY_FULL, &error);
    alloc_fails = false;
    CHECK(!multipart);
    gm_multipart_close(NULL);
}

int main(void)
{
    test_every_split();
    test_random_messages();
    test_bounds();
    test_data_is_not_copied();
    test_refusals();
    return check_report();
}
