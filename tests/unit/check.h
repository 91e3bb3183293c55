/*
 * check.h - checks for test programs. A check that fails says where and what; the program
 * then ends with 1, whatever main returns. main ends with `return check_report();`, which
 * also fails a program that checked nothing.
 *
 * Each check yields whether it held, and may be made by any thread.
 */
#ifndef GM_TESTS_UNIT_CHECK_H
#define GM_TESTS_UNIT_CHECK_H

#include "proto/status.h"

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) check_that((condition), __FILE__, __LINE__, "%s", #condition)

/* Two integers, printed where they differ. */
#define CHECK_EQ(actual, expected)                                                                 \
    check_equal((intmax_t)(actual), (intmax_t)(expected), __FILE__, __LINE__,                      \
                #actual " == " #expected)

#define CHECK_STR(actual, expected) check_strings((actual), (expected), __FILE__, __LINE__, #actual)

/* A status, printed with the error's sentence where it is another. */
#define CHECK_STATUS(actual, expected, error)                                                      \
    check_status((actual), (expected), (error), __FILE__, __LINE__, #actual)

/* Failures beyond so many are counted but not printed. */
#define CHECK_PRINT_MAX 50

__attribute__((weak)) atomic_ulong check_made, check_failed; /* the same in all of a program */

/* Runs at exit: main's return value must not hide a failure. */
static inline void check_exit(void)
{
    fflush(NULL);
    if (atomic_load(&check_failed))
        _exit(1);
}

static inline bool check_that(bool held, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static inline bool check_that(bool held, const char *file, int line, const char *format, ...)
{
    atomic_fetch_add(&check_made, 1);
    if (held)
        return true;
    unsigned long before = atomic_fetch_add(&check_failed, 1);
    if (before == 0)
        atexit(check_exit);
    if (before < CHECK_PRINT_MAX) {
        char text[1024];
        __builtin_va_list args;
        __builtin_va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        __builtin_va_end(args);
        fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
    }
    return false;
}

static inline bool check_equal(intmax_t actual, intmax_t expected, const char *file, int line,
                               const char *text)
{
    return check_that(actual == expected, file, line, "%s: %jd, not %jd", text, actual, expected);
}

static inline bool check_strings(const char *actual, const char *expected, const char *file,
                                 int line, const char *text)
{
    bool same = actual && expected ? strcmp(actual, expected) == 0 : actual == expected;
    return check_that(same, file, line, "%s: \"%s\", not \"%s\"", text, actual ? actual : "(null)",
                      expected ? expected : "(null)");
}

static inline bool check_status(enum gm_status actual, enum gm_status expected,
                                const struct gm_error *error, const char *file, int line,
                                const char *text)
{
    return check_that(actual == expected, file, line, "%s: %s, not %s%s%s", text,
                      gm_status_code(actual), gm_status_code(expected),
                      actual != GM_OK && error ? ": " : "",
                      actual != GM_OK && error ? error->detail : "");
}

/* The seed of this run's random inputs: GM_SEED, or 1. Printed by the first call. */
static inline uint64_t check_seed(void)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;
    const char *text = getenv("GM_SEED");
    uint64_t seed = text && *text ? strtoull(text, NULL, 0) : 1;
    if (!atomic_flag_test_and_set(&printed))
        printf("GM_SEED=%" PRIu64 "\n", seed);
    return seed;
}

/* The next of a sequence of random numbers (splitmix64). */
static inline uint64_t check_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

/* Whether this is built with a sanitizer: it takes three to twenty times as long, and what it looks
 * for shows in a part of the cases. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_SANITIZED true
#else
#define CHECK_SANITIZED false
#endif

static inline int check_report(void)
{
    unsigned long made = atomic_load(&check_made), failed = atomic_load(&check_failed);
    printf("%lu checks, %lu failed\n", made, failed);
    return made == 0 || failed > 0;
}

/* Keeps the calling thread on the processor that it is on: some caches are by processor. */
static inline void check_stay(void)
{
    int processor = sched_getcpu();
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor > 0 ? (unsigned)processor : 0, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

#endif
