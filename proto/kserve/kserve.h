/*
 * kserve.h - requests and replies of the Open Inference Protocol v2: JSON that describes tensors,
 * whose elements are in it, behind it, or in a region of shared memory. Tensors are named A, B and
 * C as operands, and C as the result.
 */
#ifndef GM_PROTO_KSERVE_KSERVE_H
#define GM_PROTO_KSERVE_KSERVE_H

#include "proto/codec.h"
#include "proto/json/internal.h"

/* The protocol's name of an element type ("FP32"); NULL where it has none. */
const char *gm_kserve_datatype(enum gm_dtype dtype);
/* GM_DTYPE_NONE where gemmd has no such type. */
enum gm_dtype gm_kserve_dtype(const char *name, size_t len);

/* Names of regions and of what they are in have fewer bytes than this. */
#define GM_REGION_NAME_MAX 256

/* A part of a region, which has been registered before. */
struct gm_region_part {
    char region[GM_REGION_NAME_MAX];
    uint64_t offset, bytes;
};

/* Where the elements of a tensor are. */
enum gm_kserve_place { GM_KSERVE_ABSENT, GM_KSERVE_JSON, GM_KSERVE_BINARY, GM_KSERVE_REGION };

struct gm_kserve_input {
    enum gm_kserve_place place;
    struct gm_matrix matrix;    /* its data is not set */
    struct gm_json_rows rows;   /* of GM_KSERVE_JSON */
    struct gm_shape nested;     /* and the shape that they are written in */
    struct gm_region_part part; /* of GM_KSERVE_REGION */
};

struct gm_kserve_request {
    struct gm_json json; /* what was read: for gm_kserve_read_data */
    bool has_id;
    char id[GM_JSON_STRING_MAX + 1];
    struct gm_kserve_input input[GM_OPERANDS_MAX];
    unsigned inputs, order[GM_OPERANDS_MAX]; /* as they were listed: so follow the binary ones */
    enum gm_kserve_place output;             /* never GM_KSERVE_ABSENT */
    struct gm_region_part output_part;       /* of GM_KSERVE_REGION */
};

/* What a reader of a request is told. */
struct gm_kserve_plan {
    const char *model;     /* for messages */
    unsigned operands_max; /* 1 to 3 */
    enum gm_dtype dtype;   /* that all tensors must have; GM_DTYPE_NONE: any */
    /* As gm_sink.parameter: what is no parameter of the protocol itself. */
    enum gm_status (*parameter)(void *cls, const char *name, size_t name_len, const char *value,
                                size_t value_len, struct gm_error *err);
    void *cls;
};

/*
 * Reads a request, but not the elements of its tensors. text[len .. len+GM_TEXT_PADDING) is
 * readable, and the text must stay for gm_kserve_read_data. GM_BAD_JSON, GM_BAD_PARAMETER,
 * GM_BAD_SHAPE (also where bytes that are stated are not those of the shape), GM_BAD_DTYPE,
 * GM_MISSING_OPERAND, GM_EXTRA_OPERAND, or what `parameter` says.
 */
enum gm_status gm_kserve_read(const char *text, size_t len, const struct gm_kserve_plan *plan,
                              struct gm_kserve_request *ret, struct gm_error *err);
/* The elements of an input that are in the JSON itself, into room for all of them. */
enum gm_status gm_kserve_read_data(const struct gm_kserve_request *request, unsigned index,
                                   void *out, struct gm_error *err);
/* Bytes that follow the JSON. GM_BAD_SHAPE where they cannot be counted. */
enum gm_status gm_kserve_binary_bytes(const struct gm_kserve_request *request, uint64_t *ret,
                                      struct gm_error *err);

/* A request to register a region of shared memory. */
#define GM_CUDA_HANDLE_BYTES 64

struct gm_kserve_region {
    bool on_device;               /* of CUDA's kind: by its handle; else by its key */
    char key[GM_REGION_NAME_MAX]; /* the object's name */
    unsigned char handle[GM_CUDA_HANDLE_BYTES];
    uint64_t device;
    uint64_t offset, bytes;
};
enum gm_status gm_kserve_read_region(const char *text, size_t len, bool on_device,
                                     struct gm_kserve_region *ret, struct gm_error *err);

/*
 * How replies are written, by the output's place: each begins an object with the member "outputs"
 * and leaves it open. JSON has the elements as "data", flat; binary says how many bytes follow;
 * region has neither.
 */
extern const struct gm_codec gm_codec_kserve_json, gm_codec_kserve_binary, gm_codec_kserve_region;
const struct gm_codec *gm_kserve_codec(enum gm_kserve_place output);

#endif
