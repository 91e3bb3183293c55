/*
 * number.h - converts elements from and to decimal text, for all text formats.
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

/* The most characters of a number that is read: an f64 written out in full has at most 1077. */
#define GM_NUMBER_TEXT_MAX 2048

/* The most characters of an element that is written ("-2.2250738585072014e-308" has 24). */
#define GM_NUMBER_WIDTH_MAX 24

/*
 * Reads one number in JSON's grammar (for bool: true, false, 0, 1) into *ret_element. Returns the
 * end of its text; NULL if there is no number or it does not fit the type. After the number there
 * must be a byte that cannot be part of one, and then 8 readable bytes.
 */
typedef const char *gm_number_reader(const char *text, void *ret_element);

/* Writes the element. Returns the end of its text; NULL for NaN and infinity. */
typedef char *gm_number_writer(char *out, const void *element);

/* The most characters of one element. */
uint64_t gm_number_width_max(enum gm_dtype dtype);

/* NULL for types that have no text format (complex and opaque ones). */
gm_number_reader *gm_number_reader_of(enum gm_dtype dtype);
gm_number_writer *gm_number_writer_of(enum gm_dtype dtype);

/* Text with numbers in it. The 8 bytes behind its end are readable. */
struct gm_number_text {
    const char *begin, *end;
};

/*
 * Reads at most `most` numbers from *ret_at, where the first begins. A comma follows each, with or
 * without white space around it. Stops before a ']', and before text that is no number or does not
 * fit the type; may also stop earlier. Returns how many it read; *ret_at is the beginning of the
 * next.
 */
typedef uint64_t gm_number_span(const struct gm_number_text *text, uint64_t most, void *out,
                                const char **ret_at);

/* NULL for types whose numbers are read one by one. */
gm_number_span *gm_number_span_of(enum gm_dtype dtype);

/* Finds the end of the number (JSON's grammar) at text; NULL if there is none. The bytes after it
 * are as above. */
const char *gm_number_end(const char *text);

/* The reason why a reader returned NULL. */
enum gm_number_fault {
    GM_NUMBER_SYNTAX,   /* no number */
    GM_NUMBER_LENGTH,   /* more than GM_NUMBER_TEXT_MAX characters */
    GM_NUMBER_RANGE,    /* a number that the type cannot hold */
    GM_NUMBER_FRACTION, /* not a whole number, in an integer type */
};
enum gm_number_fault gm_number_fault(const char *text, enum gm_dtype dtype);

/*
 * For the readers: text[0..len) is a number in JSON's grammar. The result is the nearest value;
 * infinity beyond the range. narrow: the result may not be the nearest, but is on the same side as
 * the number of each value of up to 12 significant bits, so that rounding it again to f16 or bf16
 * is correct.
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
 * Finds the decimal with the fewest digits that rounds to `positive`, a finite number; of several
 * the nearest. Source: R. Giulietti, The Schubfach way to render doubles (2021).
 */
struct gm_decimal gm_shortest_f32(float positive);

/* A gm_number_writer: writes the text of std::to_chars. */
char *gm_write_f32(char *out, const void *element);

#ifdef __cplusplus
}
#endif
#endif
