/*
 * resources.c - finds the registers and the shared memory of a kernel in the table of what nvcc
 * made of each.
 */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

struct row {
    const char *symbol;
    struct gm_resources by[7];
};

/* The columns of the table: compute capabilities. */
static const unsigned capabilities[] = {75, 80, 86, 89, 90, 100, 120};
#define CAPABILITIES (sizeof(capabilities) / sizeof(capabilities[0]))
_Static_assert(CAPABILITIES == 7, "a column each");

/* In the order of symbols. */
static const struct row rows[] = {
#define GM_R(registers, shared, spilled)                                                           \
    {                                                                                              \
        registers, shared, spilled                                                                 \
    }
#define GM_RESOURCES(symbol, ...) {symbol, {__VA_ARGS__}},
#include "resources.def"
#undef GM_RESOURCES
#undef GM_R
};

static int by_symbol(const void *symbol, const void *row)
{
    return strcmp(symbol, ((const struct row *)row)->symbol);
}

bool gm_gpu_resources(const struct gm_gpu *gpu, const char *symbol, struct gm_resources *ret)
{
    const struct row *row =
        symbol ? bsearch(symbol, rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]), by_symbol)
               : NULL;

    for (size_t i = 0; row && i < CAPABILITIES; i++) {
        if (capabilities[i] == gpu->capability && row->by[i].registers > 0) {
            *ret = row->by[i];
            return true;
        }
    }
    return false;
}
