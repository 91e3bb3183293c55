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

/* For GPUs, and for CPUs. */
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

#define NUMBERS(type) (sizeof(type) / sizeof(double))
#define TILES (GM_F32_CONFIGS + GM_F64_CONFIGS)
#define HEADS 5u
#define PLACES (HEADS + GM_RATES_COUNT + TILES)

/* A row of a table: what it begins with, and its place in a profile. */
struct place {
    char begins[48];
    double *numbers;
    size_t count, divided; /* the first `divided` are divided by, and so above 0 */
    bool signed_last;
};

static const char *const names[] = {
#define GM_RATES_ROW(name) #name,
#include "kernels/choose/rates.def"
#undef GM_RATES_ROW
};

/* The rows in the order in which they are written. */
static struct place place_at(struct gm_profile *p, size_t i)
{
    const struct place head[HEADS] = {
        {"GM_LAUNCH(", &p->launch_us, 2, 2, false},
        {"GM_MISSES(", &p->first_miss, 3, 0, false},
        {"GM_QUEUED(", &p->queued, 1, 0, false},
        {"GM_LINK(", (double *)&p->link, NUMBERS(p->link), 2, false},
        {"GM_MULTISTAGE(", (double *)&p->multistage, NUMBERS(p->multistage), 6, true}};
    struct place one = {.count = NUMBERS(*p->rates), .divided = NUMBERS(*p->rates)};

    if (i < HEADS)
        return head[i];
    i -= HEADS;
    if (i < GM_RATES_COUNT) {
        one.numbers = (double *)&p->rates[i];
        snprintf(one.begins, sizeof(one.begins), "GM_RATES(%s,", names[i]);
        return one;
    }
    i -= GM_RATES_COUNT;
    one = (struct place){"", (double *)&p->tiles[i], NUMBERS(*p->tiles), 3, false};
    snprintf(one.begins, sizeof(one.begins), "GM_TILE(%zu,", i);
    return one;
}

/* Reads finite numbers, the parenthesis, and the end of the line. */
static bool read_numbers(const struct place *place, const char *at)
{
    for (size_t i = 0; i < place->count; i++) {
        bool last = i + 1 == place->count;
        double *number = &place->numbers[i];
        char *end;
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

static bool is_host_row(size_t place)
{
    return place >= HEADS + GM_RATES_HOST && place < HEADS + GM_RATES_COUNT;
}

/* seen: rows that the table has, each once at most. A table of a CPU has no rates of a GPU's, which
 * would lack their other numbers. */
static bool read_line(struct gm_profile *p, const char *line, bool on_host, bool seen[PLACES])
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
    for (size_t i = 0; i < PLACES; i++) {
        const struct place place = place_at(p, i);
        size_t len = strlen(place.begins);
        if (strncmp(line, place.begins, len) != 0)
            continue;
        bool again = seen[i], rates = i >= HEADS && i < HEADS + GM_RATES_COUNT;
        seen[i] = true;
        return !again && (!rates || is_host_row(i) == on_host) && read_numbers(&place, line + len);
    }
    return false;
}

enum gm_status gm_profile_read(const char *text, struct gm_profile **ret, struct gm_error *err)
{
    struct gm_profile *p = malloc(sizeof(*p));
    bool seen[PLACES] = {false}, on_host = strstr(text, "GM_RATES(host_") != NULL;
    unsigned number = 1;

    if (!p)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for a profile");
    *p = built_in[on_host]; /* what the table does not have */
    *p->gpu = '\0';
    for (const char *at = text; *at; number++) {
        char line[256];
        size_t len = strcspn(at, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line) - 1),
                 at);
        if (len >= sizeof(line) || !read_line(p, line, on_host, seen)) {
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

void gm_profile_write(const struct gm_profile *profile, const char *made, FILE *out)
{
    struct gm_profile p = *profile;
    const bool on_host = p.rates[GM_RATES_HOST].math > 0;
    const struct gm_profile *first = gm_profile_at(on_host);
    char comment[2048];
    int len = snprintf(comment, sizeof comment,
                       "What the kernels do on %s: the numbers of the "
                       "estimates (estimate.h). Made %s",
                       p.gpu, made);

    for (size_t i = 0, kept = 0; i < GM_RATES_COUNT && len < (int)sizeof comment; i++)
        if (p.rates[i].math > 0 && memcmp(&p.rates[i], &first->rates[i], sizeof p.rates[i]) == 0)
            len +=
                snprintf(comment + len, sizeof comment - (size_t)len, "%s %s",
                         kept++ == 0 ? " Without times, as in the built-in table:" : ",", names[i]);
    fprintf(out, "/*\n");
    write_comment(comment, out);
    fprintf(out, " *\n * GM_RATES(row, math, shared, l2, dram, step, start, pass)\n%s */\n",
            on_host ? "" : " * GM_TILE(config, rate_1, rate_2, rate_full, start, scalar_b)\n");
    fprintf(out, "GM_MEASURED_ON(\"%s\", \"%s\", \"%s\", \"%s\")\n", p.gpu, p.driver, p.date,
            p.commit);
    for (size_t i = 0; i < PLACES; i++) {
        const struct place place = place_at(&p, i);
        bool any = false; /* the other kind of device has none */
        for (size_t j = 0; j < place.count; j++)
            any = any || place.numbers[j] > 0;
        if (!any)
            continue;
        fprintf(out, "%s%s", place.begins, i < HEADS ? "" : " ");
        for (size_t j = 0; j < place.count; j++)
            fprintf(out, "%s%.4g", j > 0 ? ", " : "", place.numbers[j]);
        fprintf(out, ")\n");
    }
}
