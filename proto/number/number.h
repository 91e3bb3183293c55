/*
 * number.h - elements from and to decimal text, for every text format.
 *
 * Numbers are read with one correct rounding to the element type, however many digits they have;
 * integers are exact. Numbers are written as the shortest text that reads back to the same bits.
 */
#ifndef GM_PROTO_NUMBER_NUMBER_H
#define GM_PROTO_NUMBER_NUMBER_H

#include "proto/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number may be so many characters long: no f64 written out in full has more than 1077. */
#define GM_NUMBER_TEXT_MAX 2048

/* No element is written in more characters ("-2.2250738585072014e-308" has 24). */
#define GM_NUMBER_WIDTH_MAX 24

/*
 * Reads one number in JSON's grammar (for bool: true, false, 0, 1) into *ret_element and
 * returns the end of its text; NULL where there is none or it does not fit the type. The text
 * needs no end of its own, but some byte after the number that cannot be part of one, and then
 * 8 readable bytes.
 */
typedef const char *gm_number_reader(const char *text, void *ret_element);

/* Writes the element and returns the end of its text; NULL for NaN and infinity. */
typedef char *gm_number_writer(char *out, const void *element);

/* The most characters of one element. */
uint64_t gm_number_width_max(enum gm_dtype dtype);

/* NULL for types that have no text format (complex and opaque ones). */
gm_number_reader *gm_number_reader_of(enum gm_dtype dtype);
gm_number_writer *gm_number_writer_of(enum gm_dtype dtype);

/* Text with numbers in it; 8 bytes behind its end can be read. */
struct gm_number_text {
    const char *begin, *end;
};

/*
 * Reads numbers that each have a comma behind them, with white space around it or none, from
 * *ret_at on, where the first begins: at most `most`, and not beyond a ']', nor one that is none or
 * does not fit the type; or fewer, as it likes. Returns how many; *ret_at is where the next begins.
 */
typedef uint64_t gm_number_span(const struct gm_number_text *text, uint64_t most, void *out,
                                const char **ret_at);

/* NULL for types that are read one by one. */
gm_number_span *gm_number_span_of(enum gm_dtype dtype);

/* The end of the number in JSON's grammar at text, which is followed as above; NULL if there
 * is none. */
const char *gm_number_end(const char *text);

/* Why a reader returned NULL. */
enum gm_number_fault {
    GM_NUMBER_SYNTAX,   /* no number */
    GM_NUMBER_LENGTH,   /* more than GM_NUMBER_TEXT_MAX characters */
    GM_NUMBER_RANGE,    /* a number that the type cannot hold */
    GM_NUMBER_FRACTION, /* not a whole number, in an integer type */
};
enum gm_number_fault gm_number_fault(const char *text, enum gm_dtype dtype);

/*
 * For the readers: text[0..len) is a number in JSON's grammar. They give the nearest value, and
 * infinity beyond the range. narrow: rather than being nearest, stay on the number's side of any
 * value of up to 12 significant bits, so that rounding again to f16 or bf16 is correct.
 */
float gm_charconv_f32(const char *text, size_t len);
double gm_charconv_f64(const char *text, size_t len, bool narrow);

/* For the writers: digits * 10^exponent, correctly rounded; digits below 2^53. */
double gm_number_scaled(uint64_t digits, int exponent);

/* number_f32.cc: digits * 10^exponent; the last digits may be 0. */
struct gm_decimal {
    uint64_t digits;
    int exponent;
};

/*
 * Of the decimals that round to `positive`, which is finite, the one of fewest digits; of several
 * such the nearest. Source: R. Giulietti, The Schubfach way to render doubles (2021).
 */
struct gm_decimal gm_shortest_f32(float positive);

/* A gm_number_writer: the text that std::to_chars gives. */
char *gm_write_f32(char *out, const void *element);

#ifdef __cplusplus
}
#endif
#endif
