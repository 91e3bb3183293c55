/*
 * internal.h - declarations shared by the files of body/: format detection, and
 * multipart/form-data.
 *
 * None of it depends on struct gm_request. Parts named a, b and c are operands, each in its own
 * format; all others are parameters. They come in any order. Binary parts stream into the operands'
 * memory. Text parts are collected one after another, and decoded at the end, so parameters that
 * affect a text may come anywhere. For streamed parts some parameters may come too late: the shape
 * and type of raw elements, and the device of the operands.
 */
#ifndef GM_SERVER_REQUEST_BODY_INTERNAL_H
#define GM_SERVER_REQUEST_BODY_INTERNAL_H

#include "proto/multipart/multipart.h"
#include "server/limits.h"
#include "server/request/body/body.h"

/* format.c: detects the format of a body by its Content-Type, else by its first bytes. */

/* By the header. *ret is NULL if that says nothing (absent, or curl's default), and the first bytes
 * decide. */
enum gm_status gm_body_format_by_type(const char *content_type, const struct gm_codec **ret,
                                      struct gm_error *err);

/*
 * By the first `len` bytes. *ret is NULL if more are needed; `all`: there are no more. *space_len,
 * 0 at first, is the leading white space already skipped, so that each byte is skipped once: a body
 * may be mostly white space in small pieces.
 */
enum gm_status gm_body_format_by_first_bytes(const char *text, uint64_t len, bool all,
                                             uint64_t *space_len, const struct gm_codec **ret,
                                             struct gm_error *err);

/* Whether a body in this format can hold the operation's required operands. */
enum gm_status gm_body_format_check_operands(const struct gm_codec *codec, unsigned operands_min,
                                             struct gm_error *err);

/* hint.c: errors for a body in an unknown format: what it looks like, and what to send instead. */

/* Bytes that suffice, or all if there are fewer. */
#define GM_BODY_HINT_BYTES 512

/* Recognizes a file type by its first bytes, and says what to do ("gzip: unpack it first, ...").
 * NULL if it is unknown. */
const char *gm_body_hint_file(const void *bytes, size_t len);

/* Fails with GM_UNSUPPORTED_MEDIA_TYPE and a hint for a body that begins like this. `all`: these
 * are all its bytes. */
enum gm_status gm_body_hint_fail(const void *bytes, size_t len, bool all, struct gm_error *err);

/*
 * part_format.c: detects the format of one part. Types that clients state for parts are unreliable:
 * curl sends application/octet-stream for every suffix that it does not know, .csv and .json among
 * them. That type and text/plain are therefore only hints, and the first bytes decide.
 */

/* The first bytes of a part, which tell text from binary. */
#define GM_PART_FIRST_BYTES 64

struct gm_first_bytes {
    size_t len; /* 0 when a part begins */
    char bytes[GM_PART_FIRST_BYTES];
};
/* Takes what is missing from bytes, and moves *bytes and *len behind it. Returns whether all are
 * there now. */
bool gm_first_bytes_take(struct gm_first_bytes *first, const char **bytes, size_t *len);

/* What is known about a part's format. */
struct gm_part_format {
    const struct gm_codec *codec; /* NULL: not known yet */
    bool text;                    /* known to be text */
};

/* By its Content-Type, as far as possible. `operand` is its name, 'a' to 'c'. */
enum gm_status gm_part_format_by_type(const char *type, char operand, struct gm_part_format *ret,
                                      struct gm_error *err);
/*
 * By its first GM_PART_FIRST_BYTES, or all bytes; there must be at least one. The result is NPY,
 * raw elements if has_shape, or text. On entry *format is the result of the type, without a codec.
 */
enum gm_status gm_part_format_by_first_bytes(const void *bytes, size_t len, char operand,
                                             bool has_shape, struct gm_part_format *format,
                                             struct gm_error *err);
/* The format of a complete text. */
enum gm_status gm_part_format_of_text(const char *text, uint64_t len, char operand,
                                      const struct gm_codec **ret, struct gm_error *err);

/* part_operand.c, part_parameter.c: read one part, an operand or a parameter. */

/* An operand from a part. */
struct gm_part_operand {
    bool given;
    struct gm_part_format format;
    bool is_ref;                /* it is the text ref:NAME */
    uint64_t text_at, text_len; /* for text: its position in the body's text */
};

struct gm_parts {
    struct gm_multipart *parser;
    struct gm_part_operand operand[GM_OPERANDS_MAX];
    uint64_t parameters; /* bits of gm_params.seen: parameters that came as parts */

    /* The part being read. */
    unsigned index;              /* index of its operand; GM_OPERANDS_MAX: it is a parameter */
    struct gm_first_bytes first; /* of an operand, until its format is known */
    char name[GM_PARAMETER_BYTES_MAX], value[GM_PARAMETER_BYTES_MAX];
    size_t value_len;
    struct gm_decode_plan plan;
    struct gm_decoder *decoder; /* for a format that streams, while its part is read */
};

/* A part named a, b or c: begins, reads more of, and ends the part. */
enum gm_status gm_part_operand_begin(struct gm_body *body, unsigned index, const char *type,
                                     struct gm_error *err);
enum gm_status gm_part_operand_push(struct gm_body *body, const char *bytes, size_t len,
                                    struct gm_error *err);
enum gm_status gm_part_operand_end(struct gm_body *body, struct gm_error *err);
/* After the body's end: decodes the text of an operand. */
enum gm_status gm_part_operand_decode(struct gm_body *body, unsigned index, struct gm_error *err);

/* The same for parts with other names. */
enum gm_status gm_part_parameter_begin(struct gm_body *body, const char *name,
                                       struct gm_error *err);
enum gm_status gm_part_parameter_push(struct gm_parts *parts, const void *bytes, size_t len,
                                      struct gm_error *err);
enum gm_status gm_part_parameter_end(struct gm_body *body, struct gm_error *err);

/* infer.c: the same steps as in body.h, for an inference request. The first one sets
 * body->infer. */
enum gm_status gm_infer_open(struct gm_body *body, struct gm_error *err);
enum gm_status gm_infer_push(struct gm_body *body, const char *bytes, size_t len,
                             struct gm_error *err);
enum gm_status gm_infer_end(struct gm_body *body, struct gm_error *err);
enum gm_status gm_infer_decode(struct gm_body *body, struct gm_error *err);
/* The JSON's length; GM_SIZE_UNKNOWN if it ends with the body. */
uint64_t gm_infer_text_bytes(const struct gm_body *body);
void gm_infer_close(struct gm_infer *infer); /* NULL is fine */

/* eval.c: the same steps, for an expression. The first one makes parsed->expression. */
enum gm_status gm_expression_open(struct gm_body *body, struct gm_error *err);
enum gm_status gm_expression_push(struct gm_body *body, const void *bytes, size_t len,
                                  struct gm_error *err);
enum gm_status gm_expression_end(struct gm_body *body, struct gm_error *err);
enum gm_status gm_expression_decode(struct gm_body *body, struct gm_error *err);
void gm_expression_close(struct gm_expression *expression,
                         struct gm_reservation *reservation); /* NULL is fine */

/* body.c: used by parts and inference requests. */

/* Calls `operands` once the operation has as many operands as it needs. */
enum gm_status gm_body_check_operands(struct gm_body *body, struct gm_error *err);
/* Allocates an operand; its elements go to *ret_data. */
enum gm_status gm_body_take_operand(struct gm_body *body, unsigned index,
                                    const struct gm_matrix *matrix, void **ret_data,
                                    struct gm_error *err);
/* regions.c: operands and results in shared memory. */

/* Takes a reference to the region of an operand. Allocates memory for a copy, unless the device
 * reads the region itself. */
enum gm_status gm_body_take_region(struct gm_body *body, unsigned index,
                                   const struct gm_matrix *matrix,
                                   const struct gm_region_part *part, struct gm_error *err);
/* Sets the region of the result. Call it before the operands are taken. */
enum gm_status gm_body_set_region(struct gm_body *body, const struct gm_region_part *part,
                                  struct gm_error *err);
/* Takes the regions that the parameters name. Call it when the headers are complete. */
enum gm_status gm_body_take_regions(struct gm_body *body, struct gm_error *err);
/* Fails if a parameter in the body names a region: those belong into the URL. */
enum gm_status gm_body_check_regions(const struct gm_body *body, struct gm_error *err);
/* Copies the operands that the device does not read from their regions itself. */
enum gm_status gm_body_read_regions(struct gm_body *body, struct gm_error *err);

/* refs.c: operands that are named matrices. */

/* Takes a reference to one. */
enum gm_status gm_body_take_ref(struct gm_body *body, unsigned index, const char *name,
                                struct gm_error *err);
/* Takes those that the parameters name and that are not taken yet. */
enum gm_status gm_body_take_refs(struct gm_body *body, struct gm_error *err);
/* After the body: finds their elements, which may copy. */
enum gm_status gm_body_read_refs(struct gm_body *body, struct gm_error *err);

/* Appends to the text. */
enum gm_status gm_body_add_text(struct gm_body *body, const void *bytes, uint64_t len,
                                struct gm_error *err);
/* Sets the reply's default format, and calls `settled`. */
enum gm_status gm_body_set_format(struct gm_body *body, const struct gm_codec *codec,
                                  struct gm_error *err);

/* parts.c: the same steps as in body.h, for multipart/form-data. The first one sets body->parts. */
enum gm_status gm_parts_open(struct gm_body *body, struct gm_error *err);
enum gm_status gm_parts_push(struct gm_body *body, const void *bytes, size_t len,
                             struct gm_error *err);
enum gm_status gm_parts_end(struct gm_body *body, struct gm_error *err);
enum gm_status gm_parts_decode(struct gm_body *body, struct gm_error *err);
void gm_parts_close(struct gm_parts *parts); /* NULL is fine */

#endif
