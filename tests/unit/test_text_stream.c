/* A text is whole or there is none, whichever of its allocations fails. */
#include "server/text.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

static long calls, fails_at; /* 0: none does */

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_realloc(void *p, size_t size)
{
    return ++calls == fails_at ? NULL : __real_realloc(p, size);
}

#define LINES 20000

static char *make(size_t *ret_len)
{
    struct gm_text_stream stream;

    if (!gm_text_stream_begin(&stream))
        return NULL;
    for (int i = 0; i < LINES; i++)
        fprintf(stream.out, "line %d\n", i);
    return gm_text_stream_end(&stream, ret_len);
}

static void check_whole(const char *text, size_t len)
{
    const char *at = text;
    char line[32];

    CHECK(text && strlen(text) == len);
    for (int i = 0; at && i < LINES; i++) {
        int n = snprintf(line, sizeof line, "line %d\n", i);
        CHECK(strncmp(at, line, (size_t)n) == 0);
        at += n;
    }
    CHECK(at && *at == '\0');
}

static void test_each_allocation(void)
{
    size_t len = 0;

    calls = 0;
    char *text = make(&len);
    check_whole(text, len);
    free(text);
    long all = calls;
    CHECK(all > 3);
    for (long n = 1; n <= all; n++) {
        calls = 0;
        fails_at = n;
        len = 7;
        text = make(&len);
        CHECK(!text && len == 7);
        free(text);
        fails_at = 0;
    }
    text = make(NULL);
    check_whole(text, text ? strlen(text) : 0);
    free(text);
}

static void test_empty(void)
{
    struct gm_text_stream stream;
    size_t len = 1;

    CHECK(gm_text_stream_begin(&stream));
    char *text = gm_text_stream_end(&stream, &len);
    CHECK(text && *text == '\0' && len == 0);
    free(text);
}

int main(void)
{
    test_each_allocation();
    test_empty();
    return check_report();
}
