/*
 * drawn.h - reads result files that have the least times of all variants of a shape in one row
 * (least.py).
 */
#ifndef GM_TESTS_BENCH_DRAWN_H
#define GM_TESTS_BENCH_DRAWN_H

#include <jansson.h>

/* A row for each time, as other files have them: a new reference. */
static inline json_t *drawn_rows(json_t *results)
{
    json_t *rows = json_array(), *shape, *us, *row;
    const char *variant;
    size_t i;

    json_array_foreach (results, i, shape) {
        json_object_foreach (json_object_get(shape, "least_us"), variant, us) {
            row = json_copy(shape);
            json_object_set_new(row, "variant", json_string(variant));
            json_object_set(row, "least_us", us);
            json_array_append_new(rows, row);
        }
    }
    return rows;
}

#endif
