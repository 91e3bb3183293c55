/*
 * fuzz_key.c - keys files and Authorization headers. Input: '0' and a keys file, '1' and a header,
 * '2' and a list of quotas.
 *
 * Checked: a file that is read has as many keys as it has lines that are not blank, each of them
 * writes a line that reads back to the same, and none of them lets in whoever does not know its
 * secret; a fault names a line; what a header yields is short, and is no more than the header has.
 */
#include "server/access/access.h"
#include "tests/fuzz/fuzz.h"

static unsigned check_lines(const char *text, size_t len)
{
    const char *at = text, *stop = text + len;
    char written[GM_KEY_LINE_MAX], again[GM_KEY_LINE_MAX];
    struct gm_key_line line, back;
    unsigned keys = 0;

    while (at < stop) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));
        size_t line_len = (size_t)((end ? end : stop) - at);
        if (!gm_key_line_is_blank(at, line_len)) {
            MUST(gm_key_line_read(at, line_len, &line, NULL) == GM_OK);
            gm_key_line_write(&line, written);
            size_t written_len = strlen(written);
            MUST(written_len + 1 < GM_KEY_LINE_MAX && written[written_len - 1] == '\n');
            MUST(gm_key_line_read(written, written_len - 1, &back, NULL) == GM_OK);
            MUST(strcmp(gm_key_line_write(&back, again), written) == 0);
            MUST(line.roles > 0 && gm_key_name_ok(line.name, strlen(line.name)));
            keys++;
        }
        at += line_len + 1;
    }
    return keys;
}

/* One for each key. */
static unsigned accounts_of(const struct gm_quotas *quotas)
{
    const struct gm_quota *quota;
    unsigned count = 0;

    TAILQ_FOREACH (quota, &quotas->keys, link)
        count++;
    return count;
}

static void fuzz_file(const char *text, size_t len)
{
    static const unsigned char hash[GM_KEY_HASH_BYTES] = {1, 2, 3};
    const struct gm_quota_limits none = {{0}};
    struct gm_caller caller = {.quota = NULL};
    struct gm_quotas quotas = {.by_address = false};
    struct gm_keys *keys = NULL, *second = NULL;
    struct gm_error err = {0};

    MUST(gm_quotas_open(&quotas, &none, NULL) == GM_OK);
    enum gm_status status = gm_keys_parse(text, len, &quotas, NULL, &keys, &err);
    if (status == GM_OK) {
        MUST(accounts_of(&quotas) == check_lines(text, len));
        MUST(!gm_keys_find(keys, "1", hash, &caller) && !caller.quota);
        MUST(gm_keys_parse(text, len, &quotas, keys, &second, &err) == GM_OK);
        MUST(accounts_of(&quotas) == check_lines(text, len)); /* the same ones */
    } else {
        fuzz_check_error(status, &err);
        MUST(status == GM_BAD_PARAMETER && strncmp(err.detail, "line ", 5) == 0);
    }
    gm_keys_free(keys);
    gm_keys_free(second);
    MUST(TAILQ_EMPTY(&quotas.keys) && quotas.named == 0);
    gm_quotas_close(&quotas);
}

static void fuzz_header(const char *text)
{
    char *key = fuzz_alloc(GM_KEY_TEXT_MAX), id[GM_KEY_ID_MAX];
    size_t len = gm_access_credentials(text, key);

    MUST(len < GM_KEY_TEXT_MAX && len <= strlen(text));
    if (gm_key_id(key, len, id)) {
        MUST(*id && strlen(id) < len);
        MUST(memcmp(id, key, strlen(id)) == 0 && key[strlen(id)] == '.');
    }
    free(key);
}

static void fuzz_quota(const char *text, size_t len)
{
    struct gm_quota_limits limits;
    struct gm_error err = {0};
    enum gm_status status = gm_quota_read(text, len, &limits, &err);

    if (status != GM_OK) {
        fuzz_check_error(status, &err);
        return;
    }
    for (unsigned i = 0; i < GM_QUOTA_COUNT; i++)
        MUST(limits.most[i] <= GM_QUOTA_MOST || limits.most[i] == GM_QUOTA_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    unsigned kind = fuzz_choice(&in, 3);
    char *text = fuzz_string(in.at, in.left); /* with a NUL: a header's end */
    char *exact = fuzz_alloc(in.left);        /* without: nothing may look behind it */

    if (in.left > 0)
        memcpy(exact, in.at, in.left);
    if (kind == 0)
        fuzz_file(exact, in.left);
    else if (kind == 1)
        fuzz_header(text);
    else
        fuzz_quota(exact, in.left);
    free(text);
    free(exact);
    return 0;
}
