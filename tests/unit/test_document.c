/* A document is whole or there is none, whichever of its allocations fails; the next one is whole
 * again. */
#include "server/text.h"
#include "tests/unit/check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static long calls, fails_at; /* 0: none does */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    return ++calls == fails_at ? NULL : __real_malloc(size);
}

/* What json_dumps itself takes it takes elsewhere. */
static char *make(void)
{
    json_t *o = json_object(), *list = json_array();

    for (int i = 0; i < 20; i++)
        json_array_append_new(list, json_integer(i));
    json_object_set_new(o, "name", json_string("a"));
    json_object_set_new(o, "list", list);
    json_object_set_new(o, "real", json_real(0.5));
    return gm_document_text(o, JSON_COMPACT);
}

static void test_each_allocation(void)
{
    static const char whole[] = "{\"name\":\"a\",\"list\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,"
                                "16,17,18,19],\"real\":0.5}\n";
    long all;

    calls = 0;
    char *text = make();
    CHECK(text && strcmp(text, whole) == 0);
    free(text);
    all = calls;
    CHECK(all > 25);
    for (long n = 1; n <= all; n++) {
        calls = 0;
        fails_at = n;
        text = make();
        CHECK(!text);
        free(text);
        fails_at = 0;
        text = make();
        CHECK(text && strcmp(text, whole) == 0);
        free(text);
    }
}

static void test_none(void)
{
    CHECK(!gm_document_text(NULL, 0));
}

int main(void)
{
    gm_document_init();
    test_each_allocation();
    test_none();
    return check_report();
}
