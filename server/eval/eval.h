/*
 * eval.h - expressions in NumPy's notation: from text to a graph of steps. It knows no request.
 *
 *   parse    text -> syntax tree: names, numbers, operators, calls, slices
 *   build    tree and operands -> values with types and shapes; what is computed twice is one value
 *   fuse     values -> programs and products: which values are stored, and which are not
 *   plan     -> struct gm_graph (kernels/graph.h), with variants and the memory of each step
 *
 * PROTOCOL.md has the grammar. Nothing here depends on elements, so all costs are known before
 * anything runs. Errors that belong to a place set err->at: the character, counted from 1.
 */
#ifndef GM_SERVER_EVAL_EVAL_H
#define GM_SERVER_EVAL_EVAL_H

#include "kernels/choose/choose.h"
#include "kernels/graph.h"
#include "server/limits.h"

#define GM_EVAL_NAME_MAX 65 /* with the zero */

/* Fails at a place of the expression. */
enum gm_status gm_eval_fail(struct gm_error *err, enum gm_status status, unsigned at,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- parse.c: the syntax tree. A node's children come before it. ---- */

enum gm_syntax_kind {
    GM_SYNTAX_NAME,   /* index: of the name */
    GM_SYNTAX_NUMBER, /* a Python number: number */
    GM_SYNTAX_UNARY,  /* an instruction on child[0]; +x: GM_DO_LOAD */
    GM_SYNTAX_BINARY, /* an instruction on child[0] and child[1] */
    GM_SYNTAX_MATMUL,
    GM_SYNTAX_POWER,
    GM_SYNTAX_WHERE,
    GM_SYNTAX_REDUCE, /* child[0] along axes */
    GM_SYNTAX_TRANSPOSE,
    GM_SYNTAX_SLICE /* child[0] by the slices from `index` on */
};

struct gm_syntax {
    uint8_t kind, instruction, reduction;
    bool in_parentheses, keepdims, has_axes, matrix, method; /* .mT and not .T; behind a point */
    uint8_t axes, slices;                                    /* axes: how many; slices: how many */
    int8_t axis[GM_DIMS_MAX];
    uint16_t at, index; /* at: its operator's or first character, from 1 */
    int16_t child[3];
    struct gm_scalar number;
};

struct gm_slice {
    bool is_index, has_start, has_stop;
    int64_t start, stop, step; /* of an index: start */
    uint16_t at;
};
struct gm_syntax_tree {
    unsigned nodes, names, slices;
    struct gm_syntax node[GM_EVAL_NODES_MAX]; /* the last one is the root */
    char name[GM_EVAL_OPERANDS_MAX][GM_EVAL_NAME_MAX];
    uint16_t name_at[GM_EVAL_OPERANDS_MAX]; /* where it stands first */
    struct gm_slice slice[GM_EVAL_SLICES_MAX];
};

/* GM_BAD_EXPRESSION with the place; also where the text exceeds a limit. */
enum gm_status gm_eval_parse(const char *text, size_t len, struct gm_syntax_tree *ret,
                             struct gm_error *err);

/* ---- build.c: values. ---- */

enum gm_value_kind {
    GM_VALUE_INPUT,    /* operand `index` */
    GM_VALUE_CONSTANT, /* number */
    GM_VALUE_VIEW,     /* child[0], which is no view, by strides */
    GM_VALUE_COMPUTED, /* an instruction on children, in loop_dtype */
    GM_VALUE_PRODUCT,  /* child[0] @ child[1], both of one type */
    GM_VALUE_REDUCED   /* child[0] as outer x along x inner */
};

/* A Python number, of no type. */
enum gm_weak { GM_WEAK_NOT, GM_WEAK_BOOL, GM_WEAK_INT, GM_WEAK_FLOAT };

/* Dimensions are as NumPy has them: 0 to 3. */
struct gm_value {
    uint8_t kind, instruction, reduction, weak;
    enum gm_dtype dtype, loop_dtype; /* of its elements; that it is computed in */
    struct gm_shape shape;
    int16_t child[3];
    uint16_t index, at;      /* at is not compared */
    struct gm_scalar number; /* of the type that it has */
    int64_t offset, stride[GM_DIMS_MAX];
    uint64_t outer, along, inner;
};

/* What an identifier means. */
struct gm_eval_operand {
    struct gm_matrix matrix; /* without data */
    bool is_number;          /* a Python number instead */
    struct gm_scalar number;
};

struct gm_eval {
    const struct gm_eval_operand *operand; /* by name */
    unsigned values;
    int root;
    struct gm_value value[GM_EVAL_VALUES_MAX];
    /* fuse.c: by value */
    uint16_t uses[GM_EVAL_VALUES_MAX];
    bool forced[GM_EVAL_VALUES_MAX];    /* stored, so that a program stays within its limits */
    int16_t group[GM_EVAL_VALUES_MAX];  /* the value whose step computes it; -1: it is not needed */
    int16_t stored[GM_EVAL_VALUES_MAX]; /* index in the graph; -1: it is not stored */
};

/* GM_BAD_SHAPE, GM_BAD_DTYPE, GM_OUT_OF_RANGE, GM_COST_LIMIT, with the place. */
enum gm_status gm_eval_build(const struct gm_syntax_tree *tree,
                             const struct gm_eval_operand *operand, struct gm_eval *ret,
                             struct gm_error *err);

/* ---- values.c ---- */

bool gm_eval_is_integer(enum gm_dtype dtype);
bool gm_eval_is_float(enum gm_dtype dtype);
/* What a type computes in. */
enum gm_compute_type gm_eval_compute_type(enum gm_dtype type);

/* The type of an operation on both: NumPy's, where Python's numbers are weak. */
enum gm_dtype gm_eval_common_type(const struct gm_value *a, const struct gm_value *b);

struct gm_value gm_eval_new(enum gm_value_kind kind, unsigned at);
/* The index of a value that is there already, or of a new one; -1: there are too many. */
int gm_eval_add(struct gm_eval *e, const struct gm_value *value);
/* Adds what has no syntax: a copy with another layout or type. -1 as above. */
int gm_eval_copy(struct gm_eval *e, int value, enum gm_dtype dtype);
/* The elements that a value reads: of what value, from where, by which strides (aligned to the
 * right; those of missing dimensions are 0). */
struct gm_reading {
    int base;
    int64_t offset, stride[GM_DIMS_MAX];
};
struct gm_reading gm_eval_reading(const struct gm_eval *e, int value);
/* Adds a view; its base where it is all of that. -1 as above. */
int gm_eval_view(struct gm_eval *e, const struct gm_reading *reading, const struct gm_shape *shape,
                 unsigned at);
/* Start and count of a slice of n elements, as Python has them. */
void gm_eval_resolve(const struct gm_slice *s, int64_t n, int64_t *ret_start, uint64_t *ret_count);
/* "(2, 3)" */
#define GM_EVAL_SHAPE_TEXT 80
const char *gm_eval_shape_text(const struct gm_shape *shape, char buf[GM_EVAL_SHAPE_TEXT]);
/* Sizes aligned to the right; missing dimensions are 1. */
void gm_eval_sizes(const struct gm_shape *shape, uint64_t ret[GM_DIMS_MAX]);

#define GM_REAL_NUMBER(x) ((struct gm_scalar){.real = (x)})
#define GM_WHOLE_NUMBER(x)                                                                         \
    ((struct gm_scalar){.real = (double)(x), .integer = (x), .is_integer = true})
/* Python's arithmetic on two numbers; a comparison gives 0 or 1. GM_OUT_OF_RANGE. */
enum gm_status gm_eval_fold(unsigned instruction, struct gm_scalar x, struct gm_scalar y,
                            unsigned at, struct gm_scalar *ret, struct gm_error *err);

/* The order of a chain of products with the fewest multiplications (Godbole, 1973): matrix i is
 * size[i] x size[i + 1], for i < n. ret[i][j]: the last matrix of the left factor of i to j. */
#define GM_EVAL_CHAIN_MAX 32
void gm_eval_order(const uint64_t size[], unsigned n,
                   uint8_t ret[GM_EVAL_CHAIN_MAX][GM_EVAL_CHAIN_MAX]);

/* ---- fuse.c ---- */

/* A product's operand: the value to store, and whether it is transposed. */
struct gm_factor_use {
    int base;
    bool transposed;
    int64_t offset;
    struct gm_matrix matrix;
};
/* Whether a value lies as a matrix that a product takes. */
bool gm_eval_as_matrix(const struct gm_eval *e, int value, struct gm_factor_use *ret);
/* A product with what is folded into it: alpha * (a @ b) + beta * c. c -1: none. */
struct gm_product_use {
    int product, c;
    struct gm_scalar alpha, beta;
    bool has_alpha;
};
/* Whether a computed value is that, and nothing else needs its parts. */
bool gm_eval_as_product(const struct gm_eval *e, int value, struct gm_product_use *ret);
/* Decides what is stored, and sets uses, group and stored. GM_COST_LIMIT. */
enum gm_status gm_eval_fuse(struct gm_eval *e, struct gm_error *err);
/* Makes the program of a stored value. *ret_reads: the values of its inputs. */
bool gm_eval_program(const struct gm_eval *e, int value, struct gm_program *ret,
                     int ret_reads[GM_PROGRAM_INPUTS_MAX]);

/* ---- plan.c, text.c ---- */

/* Makes the graph for a device. The values of operands come first, in the order of names; those of
 * numbers stay empty. GM_TOO_LARGE: its temporary memory exceeds `memory_bytes`. */
enum gm_status gm_eval_plan(struct gm_eval *e, unsigned names, const struct gm_device_facts *facts,
                            struct gm_choice_cache *choices, enum gm_precision precision,
                            uint64_t memory_bytes, struct gm_graph **ret, struct gm_error *err);

/* The plan, for people or as JSON. The caller frees it; NULL if memory ran out. */
char *gm_eval_text(const struct gm_graph *graph, const struct gm_syntax_tree *tree,
                   const char *expression, const char *device, bool json);

#endif
