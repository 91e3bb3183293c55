/*
 * profile.c - has the tables of numbers that tests/bench/fit.py wrote, and reads others.
 */
#include "kernels/choose/estimate.h"
#include "proto/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gm_profile h200 = {
#define GM_MEASURED_ON(gpu_, driver_, date_, commit_)                                              \
    .gpu = gpu_, .driver = driver_, .date = date_, .commit = commit_,
#define GM_LAUNCH(us, pass_rate_) .launch_us = us, .pass_rate = pass_rate_,
#define GM_RATES(name, ...) .rates[GM_RATES_##name] = {__VA_ARGS__},
#define GM_TILE(index, ...) .tiles[index] = {__VA_ARGS__},
#define GM_MULTISTAGE(...) .multistage = {__VA_ARGS__},
#include "kernels/choose/profiles/h200.inc"
#undef GM_MEASURED_ON
#undef GM_LAUNCH
#undef GM_RATES
#undef GM_TILE
#undef GM_MULTISTAGE
};

const struct gm_profile *gm_profile_at(size_t index)
{
    return index == 0 ? &h200 : NULL;
}

const char *gm_profile_gpu(const struct gm_profile *profile)
{
    return profile->gpu;
}

#define RATES (sizeof(struct gm_rates) / sizeof(double))
#define TILES (sizeof(struct gm_tile_rates) / sizeof(double))
#define MULTISTAGE (sizeof(struct gm_multistage_rates) / sizeof(double))

/* Reads `count` finite numbers, of which none but the last may be negative, and the parenthesis. */
static bool read_numbers(const char *at, double *ret, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *end;
        ret[i] = strtod(at, &end);
        if (end == at || !isfinite(ret[i]) || (ret[i] < 0 && i + 1 < count))
            return false;
        at = end + strspn(end, " ");
        if (*at++ != (i + 1 < count ? ',' : ')'))
            return false;
    }
    return true;
}

/* The place of a row's numbers, and their count; 0 if there is no such row. `at` is behind the
 * row's name or number. */
static size_t place_of(struct gm_profile *p, const char *line, double **ret, const char **at)
{
    static const char *const names[] = {
#define GM_RATES_ROW(name) #name,
#include "kernels/choose/rates.def"
#undef GM_RATES_ROW
    };
    char name[32];
    unsigned index;
    int used = 0;

    if (sscanf(line, "GM_LAUNCH(%n", &used) == 0 && used > 0) {
        *ret = &p->launch_us;
        *at = line + used;
        return 2;
    }
    if (sscanf(line, "GM_MULTISTAGE(%n", &used) == 0 && used > 0) {
        *ret = (double *)&p->multistage;
        *at = line + used;
        return MULTISTAGE;
    }
    if (sscanf(line, "GM_TILE(%2u,%n", &index, &used) == 1 && used > 0 &&
        index < GM_F32_CONFIGS + GM_F64_CONFIGS) {
        *ret = (double *)&p->tiles[index];
        *at = line + used;
        return TILES;
    }
    if (sscanf(line, "GM_RATES(%31[a-z0-9_],%n", name, &used) != 1 || used == 0)
        return 0;
    for (size_t i = 0; i < GM_RATES_COUNT; i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        *ret = (double *)&p->rates[i];
        *at = line + used;
        return RATES;
    }
    return 0;
}

static bool read_line(struct gm_profile *p, const char *line)
{
    const char *at = line;
    double *numbers = NULL;

    if (strspn(line, " */\r") == strlen(line) || strncmp(line, "/*", 2) == 0 ||
        strncmp(line, " *", 2) == 0)
        return true;
    if (strncmp(line, "GM_MEASURED_ON(", 15) == 0)
        return sscanf(line,
                      "GM_MEASURED_ON(\"%95[^\"]\", \"%23[^\"]\", \"%23[^\"]\", \"%23[^\"]\")",
                      p->gpu, p->driver, p->date, p->commit) == 4;
    size_t count = place_of(p, line, &numbers, &at);
    return count > 0 && read_numbers(at, numbers, count);
}

enum gm_status gm_profile_read(const char *text, struct gm_profile **ret, struct gm_error *err)
{
    struct gm_profile *p = malloc(sizeof(*p));
    unsigned number = 1;

    if (!p)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for a profile");
    *p = h200; /* for what the table does not have */
    for (const char *at = text; *at; number++) {
        char line[256];
        size_t len = strcspn(at, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line) - 1),
                 at);
        if (len >= sizeof(line) || !read_line(p, line)) {
            free(p);
            return gm_fail(err, GM_BAD_PARAMETER,
                           "line %u of the profile is not one of a table: %s", number, line);
        }
        at += len + (at[len] == '\n');
    }
    *ret = p;
    return GM_OK;
}
