/*
 * internal.h - what the files of body/ share: finding out the format of a body, or of one part of
 * it; and the parts of multipart/form-data. Knows no request.
 *
 * Parts named a, b and c are operands, each in a format of its own, and all others parameters.
 * They come in any order. Binary parts stream into their operands' memory; text parts are
 * collected, one behind the other, and decoded when all is there: so whatever a parameter changes
 * for a text, it may stand anywhere. For what has streamed already it may come too late: the shape
 * and type of bare elements, and the device on which operands go.
 */
#ifndef GM_SERVER_REQUEST_BODY_INTERNAL_H
#define GM_SERVER_REQUEST_BODY_INTERNAL_H

#include "proto/multipart/multipart.h"
#include "server/limits.h"
#include "server/request/body/body.h"

/* format.c: the format of a body, by its Content-Type, else by its first bytes. */

/*
 * By the header alone: *ret is NULL where it says nothing (absent, or what curl sends when it is
 * told nothing), so that the first bytes decide.
 */
enum gm_status gm_body_format_by_type(const char *content_type, const struct gm_codec **ret,
                                      struct gm_error *err);

/*
 * By the first `len` bytes: *ret is NULL where more are needed first; `all`: no more will come.
 * White space is passed over once: *space_len, 0 at first, is how much of it has been seen. A body
 * may consist of little else and come in small pieces.
 */
enum gm_status gm_body_format_by_first_bytes(const char *text, uint64_t len, bool all,
                                             uint64_t *space_len, const struct gm_codec **ret,
                                             struct gm_error *err);

/* Whether a whole body in this form can hold what an operation needs at the least. */
enum gm_status gm_body_format_check_operands(const struct gm_codec *codec, unsigned operands_min,
                                             struct gm_error *err);

/* hint.c: a body in no format that gemmd takes: what it looks like, and what to type instead. */

/* So many bytes, or all that there are, are enough. */
#define GM_BODY_HINT_BYTES 512

/*
 * A kind of file that is known by its first bytes, and what to do with it ("gzip: unpack it
 * first, ..."); NULL if it is none.
 */
const char *gm_body_hint_file(const void *bytes, size_t len);

/* GM_UNSUPPORTED_MEDIA_TYPE with the sentence for a body that begins like this; `all`: and is no
 * longer. */
enum gm_status gm_body_hint_fail(const void *bytes, size_t len, bool all, struct gm_error *err);

/*
 * part_format.c: the format of one part. Clients state types of parts carelessly: curl calls
 * everything application/octet-stream whose suffix it does not know, .csv and .json among them. So
 * that type and text/plain are only hints, and first bytes decide.
 */

/* So many of a part's first bytes tell a text from what is none. */
#define GM_PART_FIRST_BYTES 64

/* What is known of a part. */
struct gm_part_format {
    const struct gm_codec *codec; /* NULL: not known yet */
    bool text;                    /* known to be some text */
};

/* By its Content-Type, as far as that tells. `operand` is its name, 'a' to 'c'. */
enum gm_status gm_part_format_by_type(const char *type, char operand, struct gm_part_format *ret,
                                      struct gm_error *err);
/*
 * By GM_PART_FIRST_BYTES or all of its bytes, of which there is at least one: NPY, bare elements if
 * it has_shape, or some text. *form is as the type left it, without a codec.
 */
enum gm_status gm_part_format_by_first_bytes(const void *bytes, size_t len, char operand,
                                             bool has_shape, struct gm_part_format *form,
                                             struct gm_error *err);
/* The form of a text that is there as a whole. */
enum gm_status gm_part_format_of_text(const char *text, uint64_t len, char operand,
                                      const struct gm_codec **ret, struct gm_error *err);

/* part_operand.c, part_parameter.c: one part on its way to where it belongs. */

/* An operand that came as a part. */
struct gm_part_operand {
    bool given;
    struct gm_part_format form;
    uint64_t text_at, text_len; /* of a text: where it is in the body's */
};

struct gm_parts {
    struct gm_multipart *parser;
    struct gm_part_operand operand[GM_OPERANDS_MAX];
    uint32_t parameters; /* of gm_params.seen: those that were parts */

    /* The part being read. */
    unsigned index; /* of its operand; GM_OPERANDS_MAX: it is a parameter */
    size_t first_len;
    char first[GM_PART_FIRST_BYTES]; /* of an operand, until its form is known */
    char name[GM_PARAMETER_BYTES_MAX], value[GM_PARAMETER_BYTES_MAX];
    size_t value_len;
    struct gm_decode_plan plan;
    struct gm_decoder *decoder; /* of a form that streams, from its first bytes to its end */
};

/* A part named a, b or c: its header, more of its data, its end. */
enum gm_status gm_part_operand_begin(struct gm_body *body, unsigned index, const char *type,
                                     struct gm_error *err);
enum gm_status gm_part_operand_push(struct gm_body *body, const char *bytes, size_t len,
                                    struct gm_error *err);
enum gm_status gm_part_operand_end(struct gm_body *body, struct gm_error *err);
/* Afterwards: decodes its text. */
enum gm_status gm_part_operand_decode(struct gm_body *body, unsigned index, struct gm_error *err);

/* The same for any other name. */
enum gm_status gm_part_parameter_begin(struct gm_body *body, const char *name,
                                       struct gm_error *err);
enum gm_status gm_part_parameter_push(struct gm_parts *parts, const void *bytes, size_t len,
                                      struct gm_error *err);
enum gm_status gm_part_parameter_end(struct gm_body *body, struct gm_error *err);

/* infer.c: an inference request; the same steps as body.h has. body->infer is set by the first. */

enum gm_status gm_infer_open(struct gm_body *body, struct gm_error *err);
enum gm_status gm_infer_push(struct gm_body *body, const char *bytes, size_t len,
                             struct gm_error *err);
enum gm_status gm_infer_end(struct gm_body *body, struct gm_error *err);
enum gm_status gm_infer_decode(struct gm_body *body, struct gm_error *err);
/* The JSON's length; GM_SIZE_UNKNOWN if it ends with the body. */
uint64_t gm_infer_text_bytes(const struct gm_body *body);
void gm_infer_close(struct gm_infer *infer); /* NULL is fine */

/* body.c, for the parts and inference requests. */

/* Once as many operands are there as the operation needs: tells so. */
enum gm_status gm_body_check_operands(struct gm_body *body, struct gm_error *err);
/* Memory for an operand; where it goes is in *ret_data. */
enum gm_status gm_body_take_operand(struct gm_body *body, unsigned index,
                                    const struct gm_matrix *matrix, void **ret_data,
                                    struct gm_error *err);
/* regions.c: operands and results in shared memory. */

/* An operand that is in a region: takes hold of it, and memory to copy it to unless the device
 * takes it from there. */
enum gm_status gm_body_take_region(struct gm_body *body, unsigned index,
                                   const struct gm_matrix *matrix,
                                   const struct gm_region_part *part, struct gm_error *err);
/* Where the result goes. Before the operands. */
enum gm_status gm_body_set_region(struct gm_body *body, const struct gm_region_part *part,
                                  struct gm_error *err);
/* What the parameters say of regions, when the head has come. */
enum gm_status gm_body_take_regions(struct gm_body *body, struct gm_error *err);
/* After a parameter of the body: it is not about regions, which belong into the URL. */
enum gm_status gm_body_check_regions(const struct gm_body *body, struct gm_error *err);
/* Copies what is to be copied. */
enum gm_status gm_body_read_regions(struct gm_body *body, struct gm_error *err);

/* More text behind that which is there. */
enum gm_status gm_body_add_text(struct gm_body *body, const void *bytes, uint64_t len,
                                struct gm_error *err);
/* This is what the reply is written in if the client states no other: tells so. */
enum gm_status gm_body_set_format(struct gm_body *body, const struct gm_codec *codec,
                                  struct gm_error *err);

/* parts.c: the same steps as body.h has; body->parts is set by the first. */

enum gm_status gm_parts_open(struct gm_body *body, struct gm_error *err);
enum gm_status gm_parts_push(struct gm_body *body, const void *bytes, size_t len,
                             struct gm_error *err);
enum gm_status gm_parts_end(struct gm_body *body, struct gm_error *err);
enum gm_status gm_parts_decode(struct gm_body *body, struct gm_error *err);
void gm_parts_close(struct gm_parts *parts); /* NULL is fine */

#endif
