/* Keys files, the table of keys, and what is read from Authorization, Host and Origin. */
#include "server/access/access.h"

#include "server/request/head.h"
#include "tests/unit/check.h"

static struct gm_quotas quotas;

static const char key_a[] = "1a.secret", key_b[] = "2b.another";

static struct gm_key_line line_of(const char *name, const char *key)
{
    struct gm_key_line line = {.roles = GM_ROLE_USE};

    snprintf(line.name, sizeof line.name, "%s", name);
    CHECK(gm_key_id(key, strlen(key), line.id));
    gm_key_hash(key, strlen(key), line.hash);
    return line;
}

static struct gm_keys *parse(const char *text, const struct gm_keys *old)
{
    struct gm_keys *keys = NULL;
    struct gm_error error = {.detail = ""};

    CHECK_STATUS(gm_keys_parse(text, strlen(text), &quotas, old, &keys, &error), GM_OK, &error);
    return keys;
}

static bool find(const struct gm_keys *keys, const char *key, struct gm_caller *ret)
{
    unsigned char hash[GM_KEY_HASH_BYTES];
    char id[GM_KEY_ID_MAX];

    *ret = (struct gm_caller){.quota = NULL};
    if (!gm_key_id(key, strlen(key), id))
        return false;
    gm_key_hash(key, strlen(key), hash);
    return gm_keys_find(keys, id, hash, ret);
}

static void test_lines(void)
{
    struct gm_key_line line = line_of("alice", key_a), read;
    char text[GM_KEY_LINE_MAX], again[GM_KEY_LINE_MAX];
    struct gm_error error;

    line.roles = GM_ROLE_USE | GM_ROLE_ADMIN;
    line.quota.most[GM_QUOTA_JOBS] = 5;
    line.quota.most[GM_QUOTA_BYTES] = GM_QUOTA_NONE;
    gm_key_line_write(&line, text);
    CHECK(strstr(text, " roles=use,admin quota=bytes=none,jobs=5\n"));
    CHECK_STATUS(gm_key_line_read(text, strlen(text) - 1, &read, &error), GM_OK, &error);
    CHECK_STR(gm_key_line_write(&read, again), text);
    /* The longest line fits. */
    memset(line.name, 'n', GM_KEY_NAME_MAX - 1);
    memset(line.id, 'i', GM_KEY_ID_MAX - 1);
    line.roles = 7;
    for (unsigned i = 0; i < GM_QUOTA_COUNT; i++)
        line.quota.most[i] = i == GM_QUOTA_DEVICE ? GM_QUOTA_DEVICE_MOST : GM_QUOTA_MOST;
    gm_key_line_write(&line, text);
    CHECK_EQ(text[strlen(text) - 1], '\n');
    CHECK_STATUS(gm_key_line_read(text, strlen(text) - 1, &read, &error), GM_OK, &error);
}

/* Which names a key can have, and what its id is made of. */
static void test_names(void)
{
    static const char *const names[] = {"a", "none.", "Other", "-", "a_b-c.9"};
    static const char *const bad_names[] = {"", "none", "other", " a", "a ", "a,b", "\xc3\xa9"};
    static const char *const bad_keys[] = {"",     "a",    ".",    "a.",   ".s",
                                           "-a.s", "a-.s", " a.s", "a=b.s"};
    char id[GM_KEY_ID_MAX], longest[GM_KEY_TEXT_MAX];

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(gm_key_name_ok(names[i], strlen(names[i])));
    for (unsigned i = 0; i < sizeof bad_names / sizeof *bad_names; i++)
        CHECK(!gm_key_name_ok(bad_names[i], strlen(bad_names[i])));
    for (unsigned i = 0; i < sizeof bad_keys / sizeof *bad_keys; i++)
        CHECK(!gm_key_id(bad_keys[i], strlen(bad_keys[i]), id));
    memset(longest, 'k', sizeof longest);
    CHECK(gm_key_name_ok(longest, GM_KEY_NAME_MAX - 1));
    CHECK(!gm_key_name_ok(longest, GM_KEY_NAME_MAX));
    longest[GM_KEY_ID_MAX] = '.';
    CHECK(!gm_key_id(longest, sizeof longest - 1, id));
    longest[GM_KEY_ID_MAX - 1] = '.';
    CHECK(gm_key_id(longest, sizeof longest - 1, id));
    CHECK_EQ(strlen(id), GM_KEY_ID_MAX - 1);
    CHECK(!gm_key_id(longest, sizeof longest, id)); /* too long as a whole */
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        uint64_t value; /* 0: it is none */
    } cases[] = {{"1", 1},
                 {"10M", 10 << 20},
                 {"4KiB", 4096},
                 {"2g", UINT64_C(2) << 30},
                 {"18446744073709551615", UINT64_MAX},
                 {"18446744073709551616", UINT64_MAX},
                 {"184467440737095516150", UINT64_MAX},
                 {"99999999999T", UINT64_MAX},
                 {"", 0},
                 {"K", 0},
                 {"1KB", 0},
                 {"1 ", 0},
                 {"-1", 0},
                 {"1.5", 0},
                 {"0x10", 0},
                 {"1iB", 0}};

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t value = 0;
        CHECK_EQ(gm_read_size(cases[i].text, strlen(cases[i].text), &value), cases[i].value > 0);
        CHECK(value == cases[i].value);
    }
}

static void test_table(void)
{
    struct gm_key_line a = line_of("a", key_a), b = line_of("b", key_b);
    char text[2 * GM_KEY_LINE_MAX], second[GM_KEY_LINE_MAX];
    struct gm_caller caller;

    gm_key_line_write(&a, text);
    struct gm_keys *one = parse(text, NULL);
    CHECK_EQ(quotas.named, 1);
    CHECK(find(one, key_a, &caller));
    CHECK_STR(caller.name, "a");
    CHECK_EQ(caller.roles, GM_ROLE_USE);
    struct gm_quota *quota = caller.quota;
    CHECK(!find(one, "1a.secreT", &caller) && !find(one, key_b, &caller));
    CHECK(!find(one, "zz.secret", &caller) && !caller.quota);
    /* Another table has the same quota for the same id and name, whatever its roles are now. */
    a.roles = GM_ROLE_ADMIN;
    strcat(strcpy(text, gm_key_line_write(&b, second)), "");
    gm_key_line_write(&a, second);
    strcat(text, second);
    struct gm_keys *two = parse(text, one);
    gm_keys_free(one);
    CHECK(find(two, key_a, &caller) && caller.quota == quota);
    CHECK_STR(quota->name, "a");
    CHECK(caller.roles & GM_ROLE_USE & GM_ROLE_READ || caller.roles == ~0u); /* admin: all */
    gm_quota_unref(caller.quota);
    /* A fault leaves the quotas as they were. */
    struct gm_keys *none = NULL;
    struct gm_error error;
    strcat(text, "name=x\n");
    CHECK_EQ(gm_keys_parse(text, strlen(text), &quotas, two, &none, &error), GM_BAD_PARAMETER);
    CHECK(!none && strstr(error.detail, "line 3: id is missing"));
    /* By another name it has another: what the old name owns is not for whoever gets that next. */
    snprintf(a.name, sizeof a.name, "new");
    struct gm_keys *three = parse(gm_key_line_write(&a, text), two);
    CHECK(find(three, key_a, &caller) && caller.quota != quota);
    CHECK_STR(caller.quota->name, "new");
    gm_quota_unref(caller.quota);
    gm_keys_free(three);
    gm_keys_free(two);
    CHECK_STR(quota->name, "a"); /* the first look-up still has a reference */
    gm_quota_unref(quota);
    CHECK(TAILQ_EMPTY(&quotas.keys));
    struct gm_keys *empty = parse("", NULL);
    CHECK(!find(empty, key_a, &caller));
    gm_keys_free(empty);
}

/* How much of a key is read of a Basic header of so many groups of four characters: `first`, many
 * of "kkk", and `last`. */
static size_t basic_length(unsigned groups, const char *first, const char *last)
{
    char text[1024] = "Basic ", out[GM_KEY_TEXT_MAX];

    for (unsigned i = 0; i < groups; i++)
        memcpy(text + 6 + 4 * i, i == 0 ? first : i < groups - 1 ? "a2tr" : last, 4);
    return gm_access_credentials(text, out);
}

static void test_credentials(void)
{
    static const struct {
        const char *text, *key;
    } cases[] = {{"Bearer a.b", "a.b"},
                 {"bearer  a.b \t", "a.b"},
                 {"Bearer", ""},
                 {"Bearera.b", ""},
                 {"Bearer a b", ""},
                 {"Basic dTphLmI=", "a.b"},
                 {"BASIC OmEuYg==", "a.b"},
                 {"Basic dTphLmI", ""},
                 {"Basic YQ==", ""},
                 {"Basic dTphOmI=", "a:b"},
                 {"Basic ====", ""},
                 {"Basic", ""},
                 {"Negotiate dTphLmI=", ""},
                 {"", ""},
                 {" Bearer a.b", ""}};
    char out[GM_KEY_TEXT_MAX], longest[1024] = "Bearer ";

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = gm_access_credentials(cases[i].text, out);
        CHECK_EQ(len, strlen(cases[i].key));
        CHECK(memcmp(out, cases[i].key, len) == 0);
    }
    memset(longest + 7, 'k', GM_KEY_TEXT_MAX - 1);
    CHECK_EQ(gm_access_credentials(longest, out), GM_KEY_TEXT_MAX - 1);
    memset(longest + 7, 'k', GM_KEY_TEXT_MAX);
    CHECK_EQ(gm_access_credentials(longest, out), 0);
    CHECK_EQ(basic_length(54, "Omtr", "aw=="), GM_KEY_TEXT_MAX - 1); /* ":kk" ... "k" */
    CHECK_EQ(basic_length(54, "Omtr", "a2s="), 0);
    CHECK_EQ(basic_length(GM_KEY_TEXT_MAX, "a2tr", "OmFi"), 2); /* a long name, and ":ab" */
    CHECK_EQ(basic_length(GM_KEY_TEXT_MAX + 1, "a2tr", "OmFi"), 0);
}

static enum gm_status browser(const struct gm_access *access, const char *host, const char *origin)
{
    const struct gm_request_head head = {
        .method = "POST", .host = host, .origin = origin, .loopback = true};

    return gm_access_check_browser(access, &head, NULL);
}

static void test_browsers(void)
{
    struct gm_access access = {.cors = "https://a.example,https://b.example", .hosts = "proxy"};

    CHECK_EQ(browser(&access, "localhost:1", NULL), GM_OK);
    CHECK_EQ(browser(&access, "", NULL), GM_OK);
    CHECK_EQ(browser(&access, NULL, NULL), GM_OK);
    CHECK_EQ(browser(&access, "PROXY:80", NULL), GM_OK);
    CHECK_EQ(browser(&access, "[::1]:80", "http://[::1]:80"), GM_OK);
    CHECK_EQ(browser(&access, "[::ffff:1.2.3.4]", NULL), GM_OK);
    CHECK_EQ(browser(&access, "[::1", NULL), GM_UNKNOWN_HOST);
    CHECK_EQ(browser(&access, "[]", NULL), GM_UNKNOWN_HOST);
    CHECK_EQ(browser(&access, ":80", NULL), GM_UNKNOWN_HOST);
    CHECK_EQ(browser(&access, ".localhost", NULL), GM_OK);
    CHECK_EQ(browser(&access, "prox", NULL), GM_UNKNOWN_HOST);
    CHECK_EQ(browser(&access, "localhost", "https://b.example"), GM_OK);
    CHECK_EQ(browser(&access, "localhost", "https://a.example,https://b.example"), GM_CROSS_ORIGIN);
    CHECK_EQ(browser(&access, "localhost", "localhost"), GM_CROSS_ORIGIN);
    CHECK_EQ(browser(&access, "localhost", "http://localhost:1"), GM_CROSS_ORIGIN);
    CHECK_EQ(browser(&access, NULL, "http://"), GM_CROSS_ORIGIN);
}

static void test_lists(void)
{
    static const char *const origins[] = {"*",
                                          "null",
                                          "http://a.",
                                          "http://a.:80",
                                          "http://localhost:3000",
                                          "https://a.example,http://10.0.0.1:80",
                                          "http://[::1]:80",
                                          "http://[::1]",
                                          "chrome-extension://abcd"};
    static const char *const no_origins[] = {"",
                                             "foo",
                                             "1a://b",
                                             "nulls",

                                             "*,http://a",
                                             "http://",
                                             "://a",
                                             "http://a/",
                                             "http://a:",
                                             "http://a:123456",
                                             "http://a:8x",
                                             "http://a b",
                                             "http://a,",
                                             ",http://a",
                                             "http://a,,http://b",
                                             "http://[::1",
                                             "http://[::1]x",
                                             "http://[]",
                                             "http://a..b",
                                             "http://[::1,http://b]"};
    static const char *const hosts[] = {"a", "gemmd.example,b-2.example", "10.0.0.1"};
    static const char *const no_hosts[] = {"",     "???", "a,", "a,,b", "http://a",
                                           "a:80", ".a",  "a.", "a b",  "*"};

    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        CHECK(gm_access_origins_ok(origins[i]));
    for (size_t i = 0; i < sizeof no_origins / sizeof *no_origins; i++)
        CHECK(!gm_access_origins_ok(no_origins[i]));
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        CHECK(gm_access_hosts_ok(hosts[i]));
    for (size_t i = 0; i < sizeof no_hosts / sizeof *no_hosts; i++)
        CHECK(!gm_access_hosts_ok(no_hosts[i]));
}

int main(void)
{
    const struct gm_quota_limits limits = {{0}};
    struct gm_error error;

    CHECK_STATUS(gm_quotas_open(&quotas, &limits, &error), GM_OK, &error);
    test_lines();
    test_names();
    test_sizes();
    test_table();
    test_credentials();
    test_browsers();
    test_lists();
    gm_quotas_close(&quotas);
    return check_report();
}
