/*
 * number_f32.h - the shortest decimal of an f32, and its text.
 */
#ifndef GM_PROTO_NUMBER_NUMBER_F32_H
#define GM_PROTO_NUMBER_NUMBER_F32_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* digits * 10^exponent; the last digits may be 0. */
struct gm_decimal {
    uint64_t digits;
    int exponent;
};

/*
 * Of the decimals that round to `positive`, which is finite, the one of fewest digits; of several
 * such the nearest. Source: R. Giulietti, The Schubfach way to render doubles (2021).
 */
struct gm_decimal gm_shortest_f32(float positive);

/* A gm_number_writer (proto/number/number.h): the text that std::to_chars gives. */
char *gm_write_f32(char *out, const void *element);

#ifdef __cplusplus
}
#endif
#endif
