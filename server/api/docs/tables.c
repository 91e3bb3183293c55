/*
 * tables.c - a build-time program: prints as JSON the lists that openapi.json must have too. It
 * reads the code's own lists, so no copy can become stale.
 */
#include "kernels/op.h"
#include "server/request/accept.h"
#include "server/request/account.h"
#include "server/request/params.h"

#include <stdio.h>

#define TEXT(text) "\"" text "\""
/* The lists contain only literals without quotes and backslashes. */
#define NAME(name, text, ...) "," TEXT(text)
#define NUMPY(name, text, numpy, ...) "," TEXT(numpy)

/* reader: a function of params.c; ops: one bit per operation, in the order of `op`. */
#define PART(member, name, ops, reader, max, takes)                                                \
    printf(",\n{\"name\": \"%s\", \"ops\": %u, \"reader\": \"%s\", \"max\": %llu, \"takes\": "     \
           "\"%s\"}",                                                                              \
           name, (unsigned)(ops), #reader, (unsigned long long)(max), takes);
#define OWN(type, ...) PART(__VA_ARGS__)

#define STATUS(id, http, code, title)                                                              \
    printf(",\n{\"status\": %d, \"code\": \"%s\", \"title\": \"%s\"}", http, code, title);

#define GM_HAVE_CUDA 1
#define GM_HAVE_OPENBLAS 1
#define VARIANT(op, name) printf(",\n{\"op\": %d, \"name\": \"%s\"}", op, name);
#define GM_VARIANT(op, name, ...) VARIANT(op, name)
#define GM_SIMT(op, entry, name, ...) VARIANT(op, name)
#define GM_GROUPED(op, entry, name, ...) VARIANT(op, name)
#define GM_CUDA(op, entry, name, ...) VARIANT(op, name)

/* A list. Its first element is null, because each row begins with a comma. */
#define LIST(name, rows)                                                                           \
    fputs("\"" name "\": [null", stdout);                                                          \
    rows;                                                                                          \
    puts("],");

int main(void)
{
    puts("{");
    LIST("parameters", GM_PARAM_LIST(OWN, PART))
    LIST("errors", GM_STATUS_LIST(STATUS))
    LIST("op", fputs(GM_OP_LIST(NAME), stdout))
    LIST("dtype", fputs(GM_DTYPE_LIST(NAME), stdout))
    LIST("numpy", fputs(GM_DTYPE_LIST(NUMPY), stdout))
    LIST("precision", fputs(GM_PRECISION_LIST(NAME), stdout))
    LIST("format", fputs(GM_REPORT_LIST(NAME), stdout))
    LIST("stage", fputs(GM_STAGE_LIST(NAME), stdout))
    fputs("\"variants\": [null", stdout);
#include "kernels/variants.def"
    puts("],");
    printf("\"version\": \"%s\"}\n", GM_VERSION);
    return 0;
}
