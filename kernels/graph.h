/*
 * graph.h - an expression as steps that a backend runs as one task, and programs of elementwise
 * steps.
 *
 * A program is a chain of instructions on an accumulator. It is interpreted for blocks of elements
 * that stay in registers or in the first-level cache, so that its inputs are read once and its
 * result is written once. Each instruction rounds to the type that NumPy would store, so a chain
 * has the bits of its single operations. A reduction is a program whose values are summed up, or
 * compared, along one dimension.
 */
#ifndef GM_KERNELS_GRAPH_H
#define GM_KERNELS_GRAPH_H

#include "variant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Programs. ---- */

/* What a program computes in: f32 also for f16 and bf16; i64, which wraps, also for i32. Elements
 * of bool are 0 and 1 in each. */
enum gm_compute_type { GM_COMPUTE_F32, GM_COMPUTE_F64, GM_COMPUTE_I64, GM_COMPUTE_COUNT };

/*
 * X(NAME, name, what becomes of the accumulator x). y and z come from the instruction's sources. A
 * comparison gives 0 or 1. maximum and minimum give NaN where either is NaN, as NumPy's do.
 * Integers have no divide, power, exp, log, sqrt and tanh.
 */
#define GM_INSTRUCTION_LIST(X)                                                                     \
    X(LOAD, "load", y)                                                                             \
    X(STORE, "store", x) /* and the temporary `index` becomes x */                                 \
    X(ADD, "add", x + y)                                                                           \
    X(SUB, "subtract", x - y)                                                                      \
    X(RSUB, "subtract from", y - x)                                                                \
    X(MUL, "multiply", x *y)                                                                       \
    X(DIV, "divide", x / y)                                                                        \
    X(RDIV, "divide into", y / x)                                                                  \
    X(POW, "power", pow(x, y))                                                                     \
    X(RPOW, "power of", pow(y, x))                                                                 \
    X(MAX, "maximum", max(x, y))                                                                   \
    X(MIN, "minimum", min(x, y))                                                                   \
    X(LT, "less", x < y)                                                                           \
    X(LE, "less_equal", x <= y)                                                                    \
    X(GT, "greater", x > y)                                                                        \
    X(GE, "greater_equal", x >= y)                                                                 \
    X(EQ, "equal", x == y)                                                                         \
    X(NE, "not_equal", x != y)                                                                     \
    X(WHERE, "where", x != 0 ? y : z)                                                              \
    X(NEG, "negative", -x)                                                                         \
    X(ABS, "absolute", abs(x))                                                                     \
    X(EXP, "exp", exp(x))                                                                          \
    X(LOG, "log", log(x))                                                                          \
    X(SQRT, "sqrt", sqrt(x))                                                                       \
    X(TANH, "tanh", tanh(x))                                                                       \
    X(TRUTH, "not zero", x != 0)

enum gm_instruction_kind {
#define X(name, text, meaning) GM_DO_##name,
    GM_INSTRUCTION_LIST(X)
#undef X
        GM_DO_COUNT
};

enum gm_source { GM_FROM_CONSTANT, GM_FROM_INPUT, GM_FROM_TEMPORARY };
/* What is done to x after an instruction, to have the bits of a stored element. */
enum gm_narrow { GM_NARROW_NOT, GM_NARROW_F16, GM_NARROW_BF16, GM_NARROW_I32 };

struct gm_instruction {
    uint8_t kind, narrow;
    uint8_t from, index;     /* of y: enum gm_source, and which one */
    uint8_t from_z, index_z; /* of z */
    uint8_t unused[2];
};

#define GM_PROGRAM_INPUTS_MAX 16
#define GM_PROGRAM_CODE_MAX 64
#define GM_PROGRAM_CONSTANTS_MAX 16
#define GM_PROGRAM_TEMPORARIES_MAX 12
/* An input: element (t, i, j) of the program's space is data[t * batch + i * row + j * col], and a
 * stride of 0 repeats. Strides are in elements and may be negative. */
struct gm_program_input {
    const void *data;
    int64_t batch, row, col;
    enum gm_dtype dtype;
};

union gm_number {
    double real;
    int64_t integer;
};

/* X(NAME, name): sums of f32 are summed up in f64 */
#define GM_REDUCTION_LIST(X)                                                                       \
    X(NONE, "elementwise")                                                                         \
    X(SUM, "sum")                                                                                  \
    X(MEAN, "mean")                                                                                \
    X(MAX, "max")                                                                                  \
    X(MIN, "min")

enum gm_reduction {
#define X(name, text) GM_REDUCE_##name,
    GM_REDUCTION_LIST(X)
#undef X
        GM_REDUCTION_COUNT
};

struct gm_program {
    enum gm_compute_type compute_type;
    enum gm_dtype dtype;        /* of the result */
    uint64_t batch, rows, cols; /* the space that it runs over, row-major */
    unsigned inputs, code, constants;
    struct gm_program_input input[GM_PROGRAM_INPUTS_MAX];
    struct gm_instruction instruction[GM_PROGRAM_CODE_MAX];
    union gm_number constant[GM_PROGRAM_CONSTANTS_MAX];
    void *result; /* row-major */
    /* Reductions: the space as outer x along x inner elements; outer x inner remain. */
    enum gm_reduction reduction;
    uint64_t outer, along, inner;
    void *scratch; /* gm_program_scratch() bytes */
};

/* Joins dimensions of the space that follow each other in every input, and drops those of size 1,
 * so that rows are as long as they can be. The order of elements stays. */
void gm_program_join(struct gm_program *program);
uint64_t gm_program_elements(const struct gm_program *program); /* of the space */

/*
 * A reduction is divided along its dimension by shape alone, so that its bits are the same on any
 * number of threads: into `parts` of `each` elements, the last one shorter. More than one: each
 * part's result goes to scratch, [outer][part][inner] numbers of 8 bytes, and those are reduced.
 */
struct gm_division {
    uint64_t parts, each;
};
struct gm_division gm_program_parts(const struct gm_program *program);
uint64_t gm_program_scratch(const struct gm_program *program);
/* Arithmetic operations, and compulsory bytes: an input that repeats counts once. */
double gm_program_flops(const struct gm_program *program);
uint64_t gm_program_bytes(const struct gm_program *program);

/* Run a program whose space is not empty. Errors as of a kernel (variant.h). */
enum gm_status gm_cpu_elementwise(const struct gm_program *program, struct gm_exec *exec);
enum gm_status gm_cuda_elementwise(const struct gm_program *program, struct gm_exec *exec);
enum gm_status gm_sim_elementwise(const struct gm_program *program, struct gm_exec *exec);

/* ---- Graphs. ---- */

/* A matrix of a graph: an input, the result, or a temporary one that lives at `at` of the graph's
 * temporary memory, between the steps that write and read it. */
struct gm_graph_value {
    struct gm_matrix matrix; /* data: of inputs and of the result */
    bool temporary, on_device;
    uint64_t at;
};

struct gm_graph_step {
    const struct gm_variant *variant; /* NULL: it is a program */
    struct gm_op op;                  /* whose data are set when it runs */
    struct gm_program program;
    unsigned result;                         /* index of a value */
    unsigned operand[GM_PROGRAM_INPUTS_MAX]; /* of the operands, or of the program's inputs */
    int64_t skip[GM_PROGRAM_INPUTS_MAX];     /* where they begin in those, in elements */
    uint64_t scratch_at, scratch_bytes;      /* in the temporary memory */
    double us;                               /* set by run(); negative: not measured */
};

/* gm_graph_free() frees it with its arrays. The backend that runs it writes addresses and times. */
struct gm_graph {
    unsigned values, steps;
    struct gm_graph_value *value;
    struct gm_graph_step *step;
    unsigned result; /* index of a value */
    uint64_t temporary_bytes;
    double flops;   /* of all steps */
    uint64_t bytes; /* likewise */
};

void gm_graph_free(struct gm_graph *graph); /* NULL is fine */
/* What a step computes, and by which kernel: "matmul", "blocked"; "sum", "program". */
const char *gm_graph_step_op(const struct gm_graph_step *step);
const char *gm_graph_step_kernel(const struct gm_graph_step *step);
/* How many operands it reads, its work as of gm_op_flops() and gm_op_bytes_min(), and whether there
 * is nothing to compute, so that no kernel runs. */
unsigned gm_graph_step_operands(const struct gm_graph_step *step);
double gm_graph_step_flops(const struct gm_graph_step *step);
uint64_t gm_graph_step_bytes(const struct gm_graph_step *step);
bool gm_graph_step_is_empty(const struct gm_graph_step *step);

/* Sets the addresses of a step's matrices. memory: the temporary memory. */
void gm_graph_place(const struct gm_graph *graph, struct gm_graph_step *step, void *memory);

/* The variant of a task whose operation is a graph. */
extern const struct gm_variant gm_graph_variant;

#ifdef __cplusplus
}
#endif
#endif
