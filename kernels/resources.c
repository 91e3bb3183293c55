/*
 * resources.c - finds the registers and the shared memory of a kernel in the table of what nvcc
 * made of each.
 */
#include "gpu.h"

#include <string.h>

struct row {
    const char *symbol;
    struct gm_resources by[7];
};

/* The columns of the table: compute capabilities. */
static const unsigned capabilities[] = {75, 80, 86, 89, 90, 100, 120};
#define CAPABILITIES (sizeof(capabilities) / sizeof(capabilities[0]))
_Static_assert(CAPABILITIES == 7, "a column each");

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

/* A report looks for one or two. */
static const struct row *find(const char *symbol)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].symbol, symbol) == 0)
            return &rows[i];
    return NULL;
}

bool gm_gpu_resources(const struct gm_gpu *gpu, const char *symbol, struct gm_resources *ret)
{
    const struct row *row = symbol ? find(symbol) : NULL;

    for (size_t i = 0; row && i < CAPABILITIES; i++) {
        if (capabilities[i] == gpu->capability && row->by[i].registers > 0) {
            *ret = row->by[i];
            return true;
        }
    }
    return false;
}
