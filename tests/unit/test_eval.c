/*
 * test_eval.c - expressions: their syntax, their plans, and that nothing is computed beyond limits.
 * What they come to is compared with NumPy in http/test_eval.py.
 */
#include "check.h"
#include "kernels/choose/choose.h"
#include "server/eval/eval.h"

#include <stdlib.h>

static const struct gm_device_facts cpu = {.kind = GM_DEVICE_CPU, .memory_bytes = 1u << 30};
static struct gm_syntax_tree tree;
static struct gm_eval eval;
static struct gm_choice_cache *choices;

static struct gm_eval_operand matrix(enum gm_dtype dtype, uint64_t rows, uint64_t cols)
{
    return (struct gm_eval_operand){
        .matrix = {.dtype = dtype, .batch = 1, .rows = rows, .cols = cols}};
}

/* Plans an expression on these operands, by the order of their names. */
static struct gm_graph *plan(const char *text, const struct gm_eval_operand *operand)
{
    struct gm_error err = {0};
    struct gm_graph *graph = NULL;

    if (!CHECK_STATUS(gm_eval_parse(text, strlen(text), &tree, &err), GM_OK, &err) ||
        !CHECK_STATUS(gm_eval_build(&tree, operand, &eval, &err), GM_OK, &err) ||
        !CHECK_STATUS(gm_eval_fuse(&eval, &err), GM_OK, &err))
        return NULL;
    CHECK_STATUS(
        gm_eval_plan(&eval, tree.names, &cpu, choices, GM_PRECISION_FP32, 1u << 30, &graph, &err),
        GM_OK, &err);
    return graph;
}

static void test_syntax(void)
{
    static const struct {
        const char *text;
        unsigned at; /* 0: it is right */
    } cases[] = {
        {"x", 0},
        {"-x ** -2 @ y.T", 0},
        {"np.sum(x, axis=(0, -1), keepdims=True)[0, ::-1]", 0},
        {"x.sum(1).T", 0},
        {"where(x < 1, 2., .5e-3)", 0},
        {"x[", 3},
        {"x[]", 3},
        {"f(x)", 1},
        {"np.x", 4},
        {"sum()", 1},
        {"sum(x, axis=0, axis=1)", 21},
        {"x..T", 3},
        {"1_000", 1},
        {"\x01", 1},
        {"x\\y", 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gm_error err = {0};
        enum gm_status status = gm_eval_parse(cases[i].text, strlen(cases[i].text), &tree, &err);
        CHECK_STATUS(status, cases[i].at ? GM_BAD_EXPRESSION : GM_OK, &err);
        CHECK_EQ(err.at, cases[i].at);
    }
}

/* Each name is one, wherever it stands; its place is the first. */
static void test_names(void)
{
    const char *text = "a + bb * a - (c @ bb)";
    struct gm_error err = {0};

    CHECK_STATUS(gm_eval_parse(text, strlen(text), &tree, &err), GM_OK, &err);
    CHECK_EQ(tree.names, 3);
    CHECK_STR(tree.name[1], "bb");
    CHECK_EQ(tree.name_at[2], 15);
}

static void test_folding(void)
{
    const struct gm_eval_operand operand[] = {matrix(GM_F32, 8, 16), matrix(GM_F32, 24, 16),
                                              matrix(GM_F32, 8, 24)};
    struct gm_graph *graph = plan("0.5 * (a @ b.T) - 2 * c", operand);

    if (!graph)
        return;
    CHECK_EQ(graph->steps, 1);
    const struct gm_op *op = &graph->step[0].op;
    CHECK(graph->step[0].variant && op->kind == GM_OP_MATMUL);
    CHECK(!op->transa && op->transb && op->alpha.real == 0.5 && op->beta.real == -2);
    CHECK_EQ(graph->temporary_bytes, 0);
    gm_graph_free(graph);
}

/* Values that are needed at different times share memory. */
static void test_memory_is_used_again(void)
{
    const struct gm_eval_operand operand[] = {matrix(GM_F64, 64, 64)};
    struct gm_graph *graph = plan("(((x @ x) @ x) @ (x @ x)) @ x @ x", operand);

    if (!graph)
        return;
    CHECK(graph->steps >= 5);
    CHECK(graph->temporary_bytes <= 3 * 64 * 64 * sizeof(double));
    gm_graph_free(graph);
}

/* A program that would exceed its limits is divided. */
static void test_long_chains_are_divided(void)
{
    const struct gm_eval_operand operand[] = {matrix(GM_F32, 3, 3)};
    char text[4096] = "x";

    for (unsigned i = 0; i < 60; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " * x + %u.5", i);
    struct gm_graph *graph = plan(text, operand);
    if (!graph)
        return;
    CHECK(graph->steps > 1 && graph->steps <= GM_EVAL_STEPS_MAX);
    for (unsigned i = 0; i < graph->steps; i++)
        CHECK(!graph->step[i].variant && graph->step[i].program.code <= GM_PROGRAM_CODE_MAX);
    gm_graph_free(graph);
}

static void test_order_of_products(void)
{
    /* The example of Cormen, Leiserson, Rivest and Stein, section 15.2. */
    static const uint64_t size[] = {30, 35, 15, 5, 10, 20, 25};
    uint8_t split[GM_EVAL_CHAIN_MAX][GM_EVAL_CHAIN_MAX];

    gm_eval_order(size, 6, split);
    CHECK_EQ(split[0][5], 2);
    CHECK_EQ(split[0][2], 0);
    CHECK_EQ(split[3][5], 4);
    static const uint64_t same[] = {4, 4, 4, 4};
    gm_eval_order(same, 3, split);
    CHECK_EQ(split[0][2], 1); /* from left to right */
}

static void test_slices(void)
{
    static const struct {
        struct gm_slice slice;
        int64_t start;
        uint64_t count;
    } cases[] = {
        {{.step = 1}, 0, 10},
        {{.step = -1}, 9, 10},
        {{.step = 3}, 0, 4},
        {{.has_start = true, .start = -3, .step = 1}, 7, 3},
        {{.has_stop = true, .stop = -20, .step = 1}, 0, 0},
        {{.has_start = true, .start = 20, .step = -4}, 9, 3},
        {{.has_start = true, .start = 2, .has_stop = true, .stop = 2, .step = 1}, 2, 0},
        {{.has_start = true, .start = INT64_MAX, .step = INT64_MAX}, 10, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t start = 0;
        uint64_t count = 0;
        gm_eval_resolve(&cases[i].slice, 10, &start, &count);
        CHECK_EQ(start, cases[i].start);
        CHECK_EQ(count, cases[i].count);
    }
}

/* Too much for the memory, or for numbers of 64 bits, is told before anything runs. */
static void test_sizes(void)
{
    const struct gm_eval_operand operand[] = {matrix(GM_F32, 1, (uint64_t)1 << 30)};
    struct gm_error err = {0};
    struct gm_graph *graph = NULL;
    const char *text = "sum(x.T @ x)";

    CHECK_STATUS(gm_eval_parse(text, strlen(text), &tree, &err), GM_OK, &err);
    CHECK_STATUS(gm_eval_build(&tree, operand, &eval, &err), GM_OK, &err);
    CHECK_STATUS(gm_eval_fuse(&eval, &err), GM_OK, &err);
    CHECK_STATUS(
        gm_eval_plan(&eval, tree.names, &cpu, choices, GM_PRECISION_FP32, 1u << 30, &graph, &err),
        GM_TOO_LARGE, &err);
    CHECK(!graph);
    text = "(x.T @ x) + (x.T @ x)[:, :, ]";
    CHECK_STATUS(gm_eval_parse(text, strlen(text), &tree, &err), GM_BAD_EXPRESSION, &err);
    const struct gm_eval_operand larger[] = {matrix(GM_F64, 1, (uint64_t)1 << 33)};
    text = "x.T @ x";
    CHECK_STATUS(gm_eval_parse(text, strlen(text), &tree, &err), GM_OK, &err);
    CHECK_STATUS(gm_eval_build(&tree, larger, &eval, &err), GM_BAD_SHAPE, &err);
    CHECK_EQ(err.at, 5);
}

int main(void)
{
    struct gm_error err = {0};

    if (!CHECK_STATUS(gm_choice_cache_open(&choices, &err), GM_OK, &err))
        return 1;
    test_syntax();
    test_names();
    test_folding();
    test_memory_is_used_again();
    test_long_chains_are_divided();
    test_order_of_products();
    test_slices();
    test_sizes();
    gm_choice_cache_close(choices);
    return check_report();
}
