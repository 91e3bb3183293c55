#include "proto/nearest.h"

#include <string.h>

size_t gm_edit_distance(const char *from, size_t from_len, const char *to)
{
    size_t row[GM_WORD_MAX + 1], to_len = strnlen(to, GM_WORD_MAX);

    if (from_len > GM_WORD_MAX)
        from_len = GM_WORD_MAX;
    for (size_t j = 0; j <= to_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= from_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= to_len; j++) {
            size_t change = diagonal + (from[i - 1] != to[j - 1]);
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < other ? change : other;
        }
    }
    return row[to_len];
}

bool gm_is_near(const char *from, size_t from_len, const char *to)
{
    size_t to_len = strnlen(to, GM_WORD_MAX);

    return 2 * gm_edit_distance(from, from_len, to) <= (from_len > to_len ? from_len : to_len);
}
