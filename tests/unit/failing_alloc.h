/*
 * failing_alloc.h - malloc and calloc that can be told to fail: all, or the n-th. For programs
 * linked with -Wl,--wrap=malloc,--wrap=calloc; one source file of each includes this.
 */
#ifndef GM_TESTS_UNIT_FAILING_ALLOC_H
#define GM_TESTS_UNIT_FAILING_ALLOC_H

#include <stdbool.h>
#include <stdlib.h>

static bool alloc_fails;
static unsigned long alloc_count, alloc_fails_at; /* 0: none alone */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t size)
{
    alloc_count++;
    return alloc_fails || alloc_count == alloc_fails_at ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    alloc_count++;
    return alloc_fails || alloc_count == alloc_fails_at ? NULL : __real_calloc(n, size);
}

#endif
