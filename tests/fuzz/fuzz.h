/*
 * fuzz.h - what the fuzz targets share: bytes taken from the input, and checks that end the
 * program. A target is one file, whose head comment says what it checks beyond the sanitizers. Its
 * first input bytes choose what the rest is tried with, so that inputs stay readable.
 */
#ifndef GM_TESTS_FUZZ_FUZZ_H
#define GM_TESTS_FUZZ_FUZZ_H

#include "proto/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Also in builds with NDEBUG. What follows the condition is printed: a format, and its values. */
#define MUST(condition) MUST_SAY(condition, "%s", "")
#define MUST_SAY(condition, ...)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n  ", __FILE__, __LINE__, #condition);              \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* What is left of an input. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

/* 0 for ever after the last. */
static inline uint8_t fuzz_byte(struct fuzz_input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

/* A choice among n: '0' is 0, '1' is 1, and so on upwards in ASCII. */
static inline unsigned fuzz_choice(struct fuzz_input *in, unsigned n)
{
    return (unsigned)(uint8_t)(fuzz_byte(in) - '0') % n;
}

/* Storage of exactly so many bytes, so that AddressSanitizer sees each one beyond it. */
void *fuzz_alloc(size_t bytes);
/* A copy with a NUL behind it. */
char *fuzz_string(const void *text, size_t len);

/* A failure says which it is, in a sentence that may be put into a reply or a log line. */
void fuzz_check_error(enum gm_status status, const struct gm_error *err);

#endif
