/*
 * tables.c - a program of the build: prints as JSON what the code has a list of, and the contract
 * for machines must have too. The lists themselves are read, so that no copy can be forgotten.
 */
#include "kernels/op.h"
#include "server/request/accept.h"
#include "server/request/account.h"
#include "server/request/params.h"

#include <stdio.h>

#define TEXT(text) "\"" text "\""
/* All that the lists hold are literals without quotes or backslashes in them. */
#define NAME(name, text, ...) "," TEXT(text)

/* reader: which of params.c's functions; ops: a bit each in the order of `op`. */
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

/* A list whose first element, null, stands before the first comma. */
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
    LIST("precision", fputs(GM_PRECISION_LIST(NAME), stdout))
    LIST("format", fputs(GM_REPORT_LIST(NAME), stdout))
    LIST("stage", fputs(GM_STAGE_LIST(NAME), stdout))
    fputs("\"variants\": [null", stdout);
#include "kernels/variants.def"
    puts("],");
    printf("\"version\": \"%s\"}\n", GM_VERSION);
    return 0;
}
