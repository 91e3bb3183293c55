#include "tests/fuzz/fuzz.h"

void *fuzz_alloc(size_t bytes)
{
    void *storage = malloc(bytes ? bytes : 1);
    MUST(storage);
    return storage;
}

char *fuzz_string(const void *text, size_t len)
{
    char *copy = fuzz_alloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void fuzz_check_error(enum gm_status status, const struct gm_error *err)
{
    const unsigned char *p = (const unsigned char *)err->detail;
    MUST(status > GM_OK && status < GM_STATUS_COUNT && err->status == status);
    MUST(memchr(err->detail, '\0', sizeof(err->detail)));
    MUST(*p);
    while (*p) {
        size_t more = *p < 0x80 ? 0 : *p >= 0xF0 ? 3 : *p >= 0xE0 ? 2 : 1;
        MUST_SAY(*p >= 0x20 && *p != 0x7F && (*p < 0x80 || *p >= 0xC2) && *p <= 0xF4,
                 "byte %02x in: %s", *p, err->detail);
        for (p++; more > 0; more--, p++)
            MUST_SAY((*p & 0xC0) == 0x80, "broken UTF-8 in: %s", err->detail);
    }
}
