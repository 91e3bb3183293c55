/*
 * profile.c - has the built-in tables of numbers, and reads and writes others.
 */
#include "kernels/choose/estimate.h"
#include "kernels/choose/fit.h"
#include "proto/status.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gm_profile built_in[] = {
    {
#define GM_MEASURED_ON(gpu_, driver_, date_, commit_)                                              \
    .gpu = gpu_, .driver = driver_, .date = date_, .commit = commit_,
#define GM_LAUNCH(us, pass_rate_) .launch_us = us, .pass_rate = pass_rate_,
#define GM_MISSES(first, each, cleared_) .first_miss = first, .miss = each, .cleared = cleared_,
#define GM_QUEUED(cycles) .queued = cycles,
#define GM_LINK(...) .link = {__VA_ARGS__},
#define GM_RATES(name, ...) .rates[GM_RATES_##name] = {__VA_ARGS__},
#define GM_TILE(index, ...) .tiles[index] = {__VA_ARGS__},
#define GM_MULTISTAGE(...) .multistage = {__VA_ARGS__},
#include "kernels/choose/profiles/h200.inc"
    },
    {
#include "kernels/choose/profiles/host.inc"
    },
#undef GM_MEASURED_ON
#undef GM_LAUNCH
#undef GM_MISSES
#undef GM_QUEUED
#undef GM_LINK
#undef GM_RATES
#undef GM_TILE
#undef GM_MULTISTAGE
};

const struct gm_profile *gm_profile_at(size_t index)
{
    return index < sizeof(built_in) / sizeof(built_in[0]) ? &built_in[index] : NULL;
}

const char *gm_profile_gpu(const struct gm_profile *profile)
{
    return profile->gpu;
}

#define RATES (sizeof(struct gm_rates) / sizeof(double))
#define TILES (sizeof(struct gm_tile_rates) / sizeof(double))
#define LINK (sizeof(struct gm_link_rates) / sizeof(double))
#define MULTISTAGE (sizeof(struct gm_multistage_rates) / sizeof(double))
/* All of a table, one behind another. */
#define NUMBERS                                                                                    \
    ((sizeof(struct gm_profile) - offsetof(struct gm_profile, launch_us)) / sizeof(double))

/* A row of a table that is read. */
struct place {
    double *numbers;
    size_t count;   /* 0: there is no such row */
    size_t divided; /* the first of them that are divided by, and so above 0 */
    bool signed_last;
    const char *at; /* behind the row's name or number */
};

/* Reads finite numbers, the parenthesis, and the end of the line. */
static bool read_numbers(const struct place *place)
{
    const char *at = place->at;

    for (size_t i = 0; i < place->count; i++) {
        bool last = i + 1 == place->count;
        double *number = &place->numbers[i];
        char *end;
        if (!isnan(*number)) /* twice */
            return false;
        *number = strtod(at, &end);
        if (end == at || !isfinite(*number) || (*number < 0 && !(last && place->signed_last)) ||
            (*number == 0 && i < place->divided))
            return false;
        at = end + strspn(end, " ");
        if (*at++ != (last ? ')' : ','))
            return false;
    }
    return at[strspn(at, " \r")] == '\0';
}

static const char *const names[] = {
#define GM_RATES_ROW(name) #name,
#include "kernels/choose/rates.def"
#undef GM_RATES_ROW
};

static struct place place_of(struct gm_profile *p, const char *line)
{
    char name[32];
    unsigned index;
    int used = 0;

    if (sscanf(line, "GM_LAUNCH(%n", &used) == 0 && used > 0)
        return (struct place){&p->launch_us, 2, 2, false, line + used};
    if (sscanf(line, "GM_MISSES(%n", &used) == 0 && used > 0)
        return (struct place){&p->first_miss, 3, 0, false, line + used};
    if (sscanf(line, "GM_QUEUED(%n", &used) == 0 && used > 0)
        return (struct place){&p->queued, 1, 0, false, line + used};
    if (sscanf(line, "GM_LINK(%n", &used) == 0 && used > 0)
        return (struct place){(double *)&p->link, LINK, 2, false, line + used};
    if (sscanf(line, "GM_MULTISTAGE(%n", &used) == 0 && used > 0)
        return (struct place){(double *)&p->multistage, MULTISTAGE, 6, true, line + used};
    if (sscanf(line, "GM_TILE(%2u,%n", &index, &used) == 1 && used > 0 &&
        index < GM_F32_CONFIGS + GM_F64_CONFIGS)
        return (struct place){(double *)&p->tiles[index], TILES, 3, false, line + used};
    if (sscanf(line, "GM_RATES(%31[a-z0-9_],%n", name, &used) == 1 && used > 0)
        for (size_t i = 0; i < GM_RATES_COUNT; i++)
            if (strcmp(name, names[i]) == 0)
                return (struct place){(double *)&p->rates[i], RATES, RATES, false, line + used};
    return (struct place){.count = 0};
}

static bool read_line(struct gm_profile *p, const char *line)
{
    int used = 0;

    if (strspn(line, " */\r") == strlen(line) || strncmp(line, "/*", 2) == 0 ||
        strncmp(line, " *", 2) == 0)
        return true;
    if (strncmp(line, "GM_MEASURED_ON(", 15) == 0)
        return *p->gpu == '\0' &&
               sscanf(line,
                      "GM_MEASURED_ON(\"%95[^\"]\", \"%23[^\"]\", \"%23[^\"]\", \"%23[^\"]\")%n",
                      p->gpu, p->driver, p->date, p->commit, &used) == 4 &&
               used > 0;
    const struct place place = place_of(p, line);
    return place.count > 0 && read_numbers(&place);
}

/* Numbers that a table may have are NaN until they are read. */
static void forget(double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = NAN;
}

static void fill(double *numbers, const double *first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = isnan(numbers[i]) ? first[i] : numbers[i];
}

enum gm_status gm_profile_read(const char *text, struct gm_profile **ret, struct gm_error *err)
{
    struct gm_profile *p = malloc(sizeof(*p));
    unsigned number = 1;

    if (!p)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for a profile");
    memset(p, 0, sizeof(*p));
    forget(&p->launch_us, NUMBERS);
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
    if (*p->gpu == '\0') {
        free(p);
        return gm_fail(err, GM_BAD_PARAMETER,
                       "the profile does not say what it was measured on: %s",
                       "GM_MEASURED_ON(\"GPU\", \"driver\", \"date\", \"commit\")");
    }
    fill((double *)&p->rates[GM_RATES_HOST], (const double *)&built_in[1].rates[GM_RATES_HOST],
         (GM_RATES_COUNT - GM_RATES_HOST) * RATES);
    fill(&p->launch_us, &built_in[0].launch_us, NUMBERS);
    *ret = p;
    return GM_OK;
}

/* Writes words as lines of a comment. */
static void write_comment(const char *text, FILE *out)
{
    const size_t line_max = 97;
    size_t column = 0;

    for (const char *word = text; *word;) {
        size_t len = strcspn(word, " ");
        if (column > 0 && column + 1 + len > line_max)
            column = 0;
        fprintf(out, "%s%.*s", column > 0 ? " " : word == text ? " * " : "\n * ", (int)len, word);
        column += (column > 0) + len;
        word += len + strspn(word + len, " ");
    }
    fprintf(out, "\n");
}

static void write_numbers(const double *numbers, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%.4g", i > 0 ? ", " : "", numbers[i]);
    fprintf(out, ")\n");
}

void gm_profile_write(const struct gm_profile *p, const char *made, FILE *out)
{
    /* A table has the rows of one kind of device. */
    const bool on_host = p->rates[GM_RATES_HOST].math > 0;
    const struct gm_profile *first = gm_profile_at(on_host);
    char comment[2048];
    int len = snprintf(comment, sizeof comment,
                       "What the kernels do on %s: the numbers of the "
                       "estimates (estimate.h). Made %s",
                       p->gpu, made);

    for (size_t i = 0, kept = 0; i < GM_RATES_COUNT && len < (int)sizeof comment; i++)
        if (p->rates[i].math > 0 && memcmp(&p->rates[i], &first->rates[i], sizeof p->rates[i]) == 0)
            len +=
                snprintf(comment + len, sizeof comment - (size_t)len, "%s %s",
                         kept++ == 0 ? " Without times, as in the built-in table:" : ",", names[i]);
    fprintf(out, "/*\n");
    write_comment(comment, out);
    fprintf(out, " *\n * GM_RATES(row, math, shared, l2, dram, step, start, pass)\n%s */\n",
            on_host ? "" : " * GM_TILE(config, rate_1, rate_2, rate_full, start, scalar_b)\n");
    fprintf(out, "GM_MEASURED_ON(\"%s\", \"%s\", \"%s\", \"%s\")\n", p->gpu, p->driver, p->date,
            p->commit);
    fprintf(out, "GM_LAUNCH(");
    write_numbers(&p->launch_us, 2, out);
    fprintf(out, "GM_QUEUED(");
    write_numbers(&p->queued, 1, out);
    for (size_t i = 0; i < GM_RATES_COUNT; i++) {
        if (p->rates[i].math == 0)
            continue;
        fprintf(out, "GM_RATES(%s, ", names[i]);
        write_numbers((const double *)&p->rates[i], RATES, out);
    }
    if (on_host)
        return;
    fprintf(out, "GM_MISSES(");
    write_numbers(&p->first_miss, 3, out);
    fprintf(out, "GM_LINK(");
    write_numbers((const double *)&p->link, LINK, out);
    for (size_t i = 0; i < GM_F32_CONFIGS + GM_F64_CONFIGS; i++) {
        fprintf(out, "GM_TILE(%zu, ", i);
        write_numbers((const double *)&p->tiles[i], TILES, out);
    }
    fprintf(out, "GM_MULTISTAGE(");
    write_numbers((const double *)&p->multistage, MULTISTAGE, out);
}
