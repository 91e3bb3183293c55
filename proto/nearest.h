/* nearest.h - how far a mistyped word is from a right one, for messages that name it. */
#ifndef GM_PROTO_NEAREST_H
#define GM_PROTO_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* Words longer than this are compared by their beginnings. */
#define GM_WORD_MAX 64

/* Levenshtein's distance: characters to change, add or remove. */
size_t gm_edit_distance(const char *from, size_t from_len, const char *to);

/* Whether one may have been meant by the other: at least half of the longer one is right. */
bool gm_is_near(const char *from, size_t from_len, const char *to);

#endif
