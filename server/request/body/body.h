/*
 * body.h - reads the body of a request: detects its format, and streams or collects its operands.
 *
 * Binary formats stream into the operands' memory; text is collected and decoded at the end. The
 * result is a value, struct gm_parsed, which is independent of the request. Memory is reserved
 * before it is allocated.
 */
#ifndef GM_SERVER_REQUEST_BODY_BODY_H
#define GM_SERVER_REQUEST_BODY_BODY_H

#include "proto/codec.h"
#include "server/eval/eval.h"
#include "server/matrices/matrices.h"
#include "server/request/head.h"
#include "server/request/params.h"
#include "server/request/regions.h"
#include "server/sched/memory_quota.h"

#define GM_MODEL_NAME_MAX 96
#define GM_INFER_ID_MAX 257

/* What an identifier of an expression means: a matrix of the body, a named one, or a number. */
struct gm_expression_operand {
    char name[GM_EVAL_NAME_MAX], ref[GM_MATRIX_REF_MAX]; /* ref: "" if it is no named matrix */
    bool is_number, present;
    struct gm_scalar number;
    struct gm_matrix matrix;
    struct gm_allocation memory;
    struct gm_matrix_use use;
    bool on_device; /* its data is memory of the device */
    bool is_text;   /* of a part: at text_at of the body's text */
    uint64_t text_at, text_len;
};

struct gm_expression_reader; /* eval.c */

/* An expression and its operands. */
struct gm_expression {
    char text[GM_EVAL_CHARACTERS_MAX + 1];
    size_t len;
    bool read; /* the tree is there, and names are matched */
    struct gm_syntax_tree tree;
    unsigned operands;
    struct gm_expression_operand operand[GM_EVAL_OPERANDS_MAX];
    uint8_t by_name[GM_EVAL_OPERANDS_MAX]; /* the operand of each of the tree's names */
    struct gm_expression_reader *reader;
};

/* The decoded contents of a request. */
struct gm_parsed {
    struct gm_params params; /* from the URL and the body */
    /* Default format of the reply: the body's own format; NPY for multipart/form-data; JSON if
     * there is no body, or its format is not known yet. */
    const struct gm_codec *format;
    bool present[GM_OPERANDS_MAX];
    struct gm_matrix operand[GM_OPERANDS_MAX];
    struct gm_allocation memory[GM_OPERANDS_MAX]; /* memory of the operands */

    /* The regions of shared memory of the operands, and of the result. */
    struct gm_region_use from[GM_OPERANDS_MAX], into;
    struct gm_matrix_use ref[GM_OPERANDS_MAX]; /* named matrices of the operands */
    bool
        direct[GM_OPERANDS_MAX]; /* the device reads the operand from its region or matrix itself */
    bool on_device[GM_OPERANDS_MAX]; /* that is memory of the device */

    struct gm_expression *expression; /* NULL: the request has none */

    /* Inference requests: the model's name, and the client's id of the request. */
    char model[GM_MODEL_NAME_MAX];
    bool has_id;
    char id[GM_INFER_ID_MAX];
};

/* Callbacks of the reader. A failure ends the reading. */
struct gm_body_events {
    /* The format, or another parameter, is known now. */
    enum gm_status (*settled)(void *cls, struct gm_error *err);
    /* Asks where to allocate operands, and for which device. */
    enum gm_status (*allocator)(void *cls, struct gm_allocator *ret, unsigned *ret_device,
                                struct gm_error *err);
    /* Takes a reference to a part of a region of shared memory. */
    enum gm_status (*region)(void *cls, const struct gm_region_part *part,
                             struct gm_region_use *ret, struct gm_error *err);
    /* Takes a reference to a named matrix, and adds the bytes that ref_data will have to copy. */
    enum gm_status (*ref)(void *cls, const char *name, struct gm_matrix_use *ret,
                          uint64_t *add_bytes, struct gm_error *err);
    /* Sets where the elements of such an operand are: parsed->operand[index].data and on_device;
     * from index GM_OPERANDS_MAX on, those of an expression's operands. */
    enum gm_status (*ref_data)(void *cls, unsigned index, struct gm_error *err);
    /* All required operands are known, but not their elements. Parameters and optional operands may
     * follow. */
    enum gm_status (*operands)(void *cls, struct gm_error *err);
    void *cls;
};

enum gm_body_kind {
    GM_BODY_NONE,     /* any body is dropped */
    GM_BODY_OPERANDS, /* matrices for an operation, in any format that proto/codec.h knows */
    GM_BODY_OPTIONAL, /* the same, or no body */
    GM_BODY_INFER,    /* matrices in the Open Inference Protocol v2: proto/kserve */
    GM_BODY_EVAL,     /* an expression and its operands, as JSON or as parts */
    GM_BODY_DOCUMENT  /* a small text, which stays in `text` */
};

struct gm_body {
    /* Set before gm_body_begin. */
    const struct gm_request_head *head;
    enum gm_body_kind kind;
    enum gm_op_kind op;
    const char *path;         /* for messages */
    uint64_t limit;           /* --body-limit */
    struct gm_allocator host; /* allocates memory for text */
    struct gm_reservation *reservation;
    struct gm_parsed *parsed; /* already has the query's parameters */
    struct gm_body_events events;

    uint64_t received;         /* bytes, counted by the caller before each gm_body_push */
    const struct gm_codec *in; /* its format; NULL until it is known, and for multipart */
    bool not_needed;           /* all operands are in regions or have names: no body is needed */
    uint64_t region_bytes;     /* bytes to copy from regions and named matrices */
    struct gm_decode_plan plan;
    struct gm_decoder *decoder; /* for a format that streams */
    struct gm_allocation text;  /* text, or the first bytes of a format that is not known yet */
    uint64_t text_len;
    uint64_t space_len;     /* leading white space found so far */
    struct gm_parts *parts; /* for multipart/form-data, whose texts are in `text`; else NULL */
    struct gm_infer *infer; /* for GM_BODY_INFER, whose JSON is in `text`; else NULL */
};

/* All media types that a body of this kind may have, as "application/json, ...". */
const char *gm_body_media_types(enum gm_body_kind kind, char buf[GM_MEDIA_TYPES_MAX]);
/* Whether the head says that the body is compressed, or encoded in another way. */
bool gm_body_is_encoded(const struct gm_request_head *head);

/* Call when the headers are complete: checks media types, length and limits. */
enum gm_status gm_body_begin(struct gm_body *body, struct gm_error *err);
/* Where the next bytes are to go, as gm_codec has it; 0 if gm_body_push must see them. */
unsigned gm_body_places(const struct gm_body *body, struct iovec place[GM_OPERANDS_MAX]);
/* Passes more bytes. NULL: they are in their places. */
enum gm_status gm_body_push(struct gm_body *body, const void *bytes, size_t len,
                            struct gm_error *err);
/* Call at the end of the body: detects the format if it is still unknown. */
enum gm_status gm_body_end(struct gm_body *body, struct gm_error *err);
/* Call afterwards, on any thread: checks streamed data, or decodes the text. */
enum gm_status gm_body_decode(struct gm_body *body, struct gm_error *err);

/* Bytes still to come; GM_SIZE_UNKNOWN if that is unknown. Uses only the head. */
uint64_t gm_body_remaining(const struct gm_body *body);

/* Frees the operands' memory, or the text and the decoder. Does nothing if there is none. */
void gm_body_drop_operands(struct gm_body *body);
void gm_body_drop_text(struct gm_body *body);

#endif
