/*
 * kserve.h - requests and replies of the Open Inference Protocol v2. JSON describes the tensors;
 * their elements are in it, behind it, or in a region of shared memory. Operands are named A, B and
 * C, the result C.
 */
#ifndef GM_PROTO_KSERVE_KSERVE_H
#define GM_PROTO_KSERVE_KSERVE_H

#include "proto/codec.h"
#include "proto/json/json.h"

/* The protocol's name of an element type ("FP32"); NULL if it has none. */
const char *gm_kserve_datatype(enum gm_dtype dtype);
/* GM_DTYPE_NONE if gemmd has no such type. */
enum gm_dtype gm_kserve_dtype(const char *name, size_t len);

/* Names of regions and of their objects have fewer bytes than this. */
#define GM_REGION_NAME_MAX 256

/* A part of a registered region. */
struct gm_region_part {
    char region[GM_REGION_NAME_MAX];
    uint64_t offset, bytes;
};

/* Where the elements of a tensor are. */
enum gm_kserve_place {
    GM_KSERVE_ABSENT,
    GM_KSERVE_JSON,
    GM_KSERVE_BINARY,
    GM_KSERVE_REGION,
    GM_KSERVE_REF /* a matrix that the server keeps */
};

struct gm_kserve_input {
    enum gm_kserve_place place;
    struct gm_matrix matrix;          /* its data is not set */
    struct gm_json_rows rows;         /* for GM_KSERVE_JSON */
    struct gm_shape nested;           /* and the nesting of its elements */
    struct gm_region_part part;       /* for GM_KSERVE_REGION */
    char ref[GM_JSON_STRING_MAX + 1]; /* for GM_KSERVE_REF: its name */
};

struct gm_kserve_request {
    struct gm_json json; /* the text, for gm_kserve_read_data */
    bool has_id;
    char id[GM_JSON_STRING_MAX + 1];
    struct gm_kserve_input input[GM_OPERANDS_MAX];
    unsigned inputs,
        order[GM_OPERANDS_MAX];  /* in the order of the list, which is that of the binary ones */
    enum gm_kserve_place output; /* never GM_KSERVE_ABSENT */
    struct gm_region_part output_part; /* for GM_KSERVE_REGION */
};

/* What the reader of a request must know. */
struct gm_kserve_plan {
    const char *model;     /* for messages */
    unsigned operands_max; /* 1 to 3 */
    enum gm_dtype dtype;   /* element type of all tensors; GM_DTYPE_NONE: any */
    /* Like gm_sink.parameter: receives parameters that are not the protocol's own. */
    enum gm_status (*parameter)(void *cls, const char *name, size_t name_len, const char *value,
                                size_t value_len, struct gm_error *err);
    void *cls;
};

/*
 * Reads a request, but not the elements of its tensors. text[len .. len+GM_TEXT_PADDING) is
 * readable, and the text must outlive the calls of gm_kserve_read_data. Errors: GM_BAD_JSON,
 * GM_BAD_PARAMETER, GM_BAD_SHAPE (also if stated bytes contradict the shape), GM_BAD_DTYPE,
 * GM_MISSING_OPERAND, GM_EXTRA_OPERAND, and those of `parameter`.
 */
enum gm_status gm_kserve_read(const char *text, size_t len, const struct gm_kserve_plan *plan,
                              struct gm_kserve_request *ret, struct gm_error *err);
/* Reads the elements of an input that are in the JSON itself. There must be room for all of
 * them. */
enum gm_status gm_kserve_read_data(const struct gm_kserve_request *request, unsigned index,
                                   void *out, struct gm_error *err);
/* Counts the bytes that follow the JSON. Error: GM_BAD_SHAPE on overflow. */
enum gm_status gm_kserve_binary_bytes(const struct gm_kserve_request *request, uint64_t *ret,
                                      struct gm_error *err);

/* A request to register a region of shared memory. */
#define GM_CUDA_HANDLE_BYTES 64

struct gm_kserve_region {
    bool on_device; /* CUDA memory, named by its handle; else system memory, named by its key */
    char key[GM_REGION_NAME_MAX]; /* the object's name */
    unsigned char handle[GM_CUDA_HANDLE_BYTES];
    uint64_t device;
    uint64_t offset, bytes;
};
enum gm_status gm_kserve_read_region(const char *text, size_t len, bool on_device,
                                     struct gm_kserve_region *ret, struct gm_error *err);

/*
 * Writers of replies, by the place of the output. Each begins an object with the member "outputs"
 * and leaves it open. JSON has the elements as "data", flat; binary states how many bytes follow;
 * region has neither.
 */
extern const struct gm_codec gm_codec_kserve_json, gm_codec_kserve_binary, gm_codec_kserve_region;
const struct gm_codec *gm_kserve_codec(enum gm_kserve_place output);

#endif
