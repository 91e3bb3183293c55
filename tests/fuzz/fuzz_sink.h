/*
 * fuzz_sink.h - a sink for fuzz targets: holds a codec to the contract of codec.h, and keeps what
 * it found, so that two ways of feeding the same bytes can be compared.
 */
#ifndef GM_TESTS_FUZZ_FUZZ_SINK_H
#define GM_TESTS_FUZZ_FUZZ_SINK_H

#include "proto/codec.h"
#include "tests/fuzz/fuzz.h"

/* Operands of more bytes than this together are refused, as a memory limit would. */
#define FUZZ_BYTES_MAX (UINT64_C(1) << 16)

struct fuzz_sink {
    struct gm_decode_plan plan;
    uint64_t elements_max; /* more than these nobody asks for: the input cannot hold them */
    bool take_dtype;       /* a parameter dtype changes the plan, as the server does it */

    enum gm_status status; /* how the decoding ended, and its sentence */
    struct gm_error error;
    bool present[GM_OPERANDS_MAX];
    struct gm_matrix operand[GM_OPERANDS_MAX];
    uint64_t bytes; /* of all operands */
    unsigned parameters;
    uint64_t parameters_hash;
};

/* Which operands a body can hold: `which` is 0, 1 or 2 for a; a and b; a, b and c; then 3 and 4
 * where it is a part, of an operand b or c. */
#define FUZZ_OPERANDS_COUNT 5
#define FUZZ_OPERANDS_ALL 2
void fuzz_sink_init(struct fuzz_sink *sink, unsigned which, enum gm_dtype dtype);
/* Frees the operands. */
void fuzz_sink_clear(struct fuzz_sink *sink);

/* Both end the same way, with the same sentence, parameters and operands, bit for bit. */
void fuzz_sink_must_agree(const struct fuzz_sink *one, const struct fuzz_sink *other);

/* Decodes a text whose padding is full of `filler`; checks what holds of every decoding. */
void fuzz_decode(struct fuzz_sink *sink, const struct gm_codec *codec, const char *text, size_t len,
                 char filler);

/* Streams a body in pieces of 1 to `longest` bytes, as `seed` has it (longest 0: in one). */
void fuzz_stream(struct fuzz_sink *sink, const struct gm_codec *codec, const void *body, size_t len,
                 size_t longest, uint64_t seed);

#endif
