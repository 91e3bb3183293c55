/*
 * test_eval.c - expressions: their syntax, their plans, and that nothing is computed beyond limits.
 * What they come to is compared with NumPy in http/test_eval.py.
 */
#include "check.h"
#include "kernels/choose/choose.h"
#include "server/eval/eval.h"

#include <math.h>
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

/* An expression that is right, and cannot be planned on these operands. */
static void check_failure(const char *text, const struct gm_eval_operand *operand,
                          enum gm_status expected, unsigned at)
{
    struct gm_error err = {0};
    struct gm_graph *graph = NULL;
    char place[32];

    CHECK_STATUS(gm_eval_parse(text, strlen(text), &tree, &err), GM_OK, &err);
    enum gm_status status = gm_eval_build(&tree, operand, &eval, &err);
    if (status == GM_OK)
        status = gm_eval_fuse(&eval, &err);
    if (status == GM_OK)
        status = gm_eval_plan(&eval, tree.names, &cpu, choices, GM_PRECISION_FP32, 1u << 30, &graph,
                              &err);
    CHECK_STATUS(status, expected, &err);
    CHECK(!graph);
    CHECK_EQ(err.at, at);
    snprintf(place, sizeof place, "character %u: ", at);
    CHECK(at == 0 || strncmp(err.detail, place, strlen(place)) == 0);
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
        {"sum(x, axis=None, axis=0)", 24},
        {"sum(x, 0, axis=1)", 16},
        {"sum(x, keepdims=True, keepdims=False)", 32},
        {"x..T", 3},
        {"1_000.0_1e+1_0", 0},
        {"x[0, +1,].sum(axis=+0)", 0},
        {"1__0", 1},
        {"1._0", 1},
        {"x[0,,]", 5},
        {"07", 1},
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

/* Who asks for the larger of two is told its name, and nobody else. */
static void test_axes(void)
{
    static const char *const cases[][2] = {
        {"max(x, y)", "character 8: an axis is a whole number, or several in parentheses; maximum "
                      "takes two matrices"},
        {"x.min(y)", "character 7: an axis is a whole number, or several in parentheses; minimum "
                     "takes two matrices"},
        {"x.max(3)", "character 7: there is no such axis: a matrix has two, a stack has three"},
        {"sum(x, y)", "character 8: an axis is a whole number, or several in parentheses"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gm_error err = {0};
        gm_eval_parse(cases[i][0], strlen(cases[i][0]), &tree, &err);
        CHECK_STR(err.detail, cases[i][1]);
    }
}

/* Whatever nests is bounded: 64 levels. */
static void test_depth(void)
{
    static const struct {
        const char *before, *after;
        unsigned at; /* where level 65 begins */
    } cases[] = {{"(", ")", 65}, {"-", "", 65}, {"exp(", ")", 4 * 65 + 1}, {"x**", "", 3 * 64 + 2}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (unsigned levels = 64; levels <= 65; levels++) {
            struct gm_error err = {0};
            char text[1024] = "";
            for (unsigned k = 0; k < levels; k++)
                strcat(text, cases[i].before);
            strcat(text, "x");
            for (unsigned k = 0; k < levels; k++)
                strcat(text, cases[i].after);
            enum gm_status status = gm_eval_parse(text, strlen(text), &tree, &err);
            CHECK_STATUS(status, levels == 64 ? GM_OK : GM_BAD_EXPRESSION, &err);
            CHECK_EQ(err.at, levels == 64 ? 0 : cases[i].at);
        }
    }

    /* What follows one another does not nest. */
    char text[1024] = "x";
    for (unsigned k = 0; k < 70; k++)
        strcat(text, " + exp(x)");
    struct gm_error err = {0};
    CHECK_STATUS(gm_eval_parse(text, strlen(text), &tree, &err), GM_OK, &err);
}

/* What is as long as it may be, and what is longer by one. */
static void test_lengths(void)
{
    static const struct {
        const char *before, *piece, *after;
        unsigned most; /* pieces */
    } cases[] = {{"0.", "1", "", GM_EVAL_CHARACTERS_MAX - 2},
                 {"", "x", "", GM_EVAL_NAME_MAX - 1},
                 {"x", "[0:1]", "", GM_EVAL_SLICES_MAX},
                 {"", " ", "x", GM_EVAL_CHARACTERS_MAX - 1}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (unsigned more = 0; more < 2; more++) {
            char text[GM_EVAL_CHARACTERS_MAX + 8];
            struct gm_error err = {0};
            size_t len = (size_t)sprintf(text, "%s", cases[i].before);
            for (unsigned k = 0; k < cases[i].most + more; k++)
                len += (size_t)sprintf(text + len, "%s", cases[i].piece);
            len += (size_t)sprintf(text + len, "%s", cases[i].after);
            enum gm_status status = gm_eval_parse(text, len, &tree, &err);
            CHECK_STATUS(status, more ? GM_BAD_EXPRESSION : GM_OK, &err);
        }
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

    /* A factor is what f32 makes of it, also where that is infinite. */
    graph = plan("1e39 * (a @ b.T)", operand);
    if (!graph)
        return;
    CHECK(graph->flops >= 2 * 8 * 16 * 24);
    gm_graph_free(graph);
}

/* Values that are needed at different times share memory. */
static void test_memory_is_used_again(void)
{
    const struct gm_eval_operand operand[] = {matrix(GM_F64, 64, 64)};
    struct gm_error err = {0};
    struct gm_graph *graph = plan("(((x @ x) @ x) @ (x @ x)) @ x @ x", operand);

    if (!graph)
        return;
    CHECK(graph->steps >= 5);
    CHECK(graph->temporary_bytes <= 3 * 64 * 64 * sizeof(double));
    for (unsigned less = 0; less < 2; less++) { /* just enough, and not */
        struct gm_graph *again = NULL;
        CHECK_EQ(gm_eval_plan(&eval, tree.names, &cpu, choices, GM_PRECISION_FP32,
                              graph->temporary_bytes - less, &again, &err),
                 less ? GM_TOO_LARGE : GM_OK);
        CHECK(less ? !again : again && again->temporary_bytes == graph->temporary_bytes);
        gm_graph_free(again);
    }
    gm_graph_free(graph);
}

/* As many steps as there may be, and one more. */
static void test_steps(void)
{
    const struct gm_eval_operand operand[] = {matrix(GM_F32, 3, 3)};
    char text[1024] = "";

    for (unsigned i = 0; i < GM_EVAL_STEPS_MAX; i++)
        strcat(text, "(");
    strcat(text, "x");
    for (unsigned i = 0; i < GM_EVAL_STEPS_MAX; i++)
        strcat(text, " @ x)");
    struct gm_graph *graph = plan(text, operand);
    if (!graph)
        return;
    CHECK_EQ(graph->steps, GM_EVAL_STEPS_MAX);
    gm_graph_free(graph);
    strcat(text, " @ x");
    check_failure(text, operand, GM_COST_LIMIT, (unsigned)strlen(text) - 2);
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

/* What an expression computes is counted, wherever it has too much: at a power, a sum or a where.
 */
static void test_too_many_values(void)
{
    static const char *const ends[] = {"sum(2))", "where(2, i, i))", "where(i, 2, i))",
                                       "mean(2.5))", "i)[:1]"};
    const unsigned count = 2 * 5 * 63;
    const struct gm_eval_operand operand[] = {matrix(GM_I64, 2, 2)};
    unsigned refused = 0;

    for (unsigned n = 0; n < count; n++) {
        /* A power of 2^k - 1 takes 2 k - 2 values. */
        char text[512] = "(i";
        for (unsigned i = 0; i < 5; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), " + (i + %u) ** %lld", i + 1,
                     i < 4 ? (long long)INT64_MAX : (long long)INT64_MAX >> n / 10);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s + %s",
                 n % 2 == 0 ? "" : " + 7", ends[n / 2 % 5]);
        struct gm_error err = {0};
        if (CHECK_STATUS(gm_eval_parse(text, strlen(text), &tree, &err), GM_OK, &err))
            refused += gm_eval_build(&tree, operand, &eval, &err) == GM_COST_LIMIT;
        CHECK(eval.values <= GM_EVAL_VALUES_MAX);
        CHECK(err.status == GM_COST_LIMIT || eval.root >= 0);
    }
    CHECK(refused > 0 && refused < count);
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

    /* A longer chain is computed as it is written. */
    const struct gm_eval_operand operand[] = {matrix(GM_F32, 2, 2)};
    char text[256] = "x";
    for (unsigned i = 0; i < GM_EVAL_CHAIN_MAX + 8; i++)
        strcat(text, " @ x");
    check_failure(text, operand, GM_COST_LIMIT, (unsigned)strlen(text) - 2);
}

/* What Python's numbers come to is one of i64, or is refused. */
static void test_numbers(void)
{
    const struct gm_eval_operand operand[] = {matrix(GM_I64, 2, 2)};
    struct gm_graph *graph = plan("x + -2 ** 62 * 2", operand);

    gm_graph_free(graph);
    /* This takes no time. */
    graph = plan("x + 1 ** 9223372036854775807 - (-1) ** 9223372036854775806", operand);
    gm_graph_free(graph);
    check_failure("x + -(-2 ** 62 * 2)", operand, GM_OUT_OF_RANGE, 5);
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
    const struct gm_eval_operand larger[] = {matrix(GM_F64, 1, (uint64_t)1 << 33)};
    struct gm_eval_operand flat = matrix(GM_I32, (uint64_t)1 << 30, (uint64_t)1 << 31);
    const char *text = "(x.T @ x) + (x.T @ x)[:, :, ,]";
    struct gm_error err = {0};

    check_failure("sum(x.T @ x)", operand, GM_TOO_LARGE, 0);
    CHECK_STATUS(gm_eval_parse(text, strlen(text), &tree, &err), GM_BAD_EXPRESSION, &err);
    check_failure("x.T @ x", larger, GM_BAD_SHAPE, 5);
    check_failure("x.T @ x @ x.T @ x", larger, GM_BAD_SHAPE, 15); /* the first three are a column */
    check_failure("1 + (x + x.T)", larger, GM_BAD_SHAPE, 8);
    /* The elements of i32 can be counted; their sums, which are i64, cannot. */
    flat.matrix.stacked = true;
    flat.matrix.batch = 0;
    check_failure("1 + sum(x, axis=0)", &flat, GM_BAD_SHAPE, 5);
}

/* Sums and means of nothing are constants, and so are reductions of those: no element of the
 * space, which may have more of them than a year has nanoseconds, is visited. */
static void test_reductions_of_nothing(void)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"sum(x)", 0},
        {"mean(x)", NAN},
        {"sum(sum(x, axis=0))", 0},
        {"max(sum(x, axis=0))", 0},
        {"sum(mean(x, axis=0))", NAN},
        {"min(mean(x, axis=0, keepdims=True))", NAN},
        {"mean(sum(x, axis=(0, 1), keepdims=True))", 0},
    };
    struct gm_eval_operand operand = matrix(GM_F32, (uint64_t)1 << 30, (uint64_t)1 << 30);

    operand.matrix.stacked = true;
    operand.matrix.batch = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gm_graph *graph = plan(cases[i].text, &operand);
        if (!graph)
            return;
        const struct gm_program *p = &graph->step[0].program;
        CHECK_EQ(graph->steps, 1);
        CHECK_EQ(gm_program_elements(p), 1);
        CHECK(!graph->step[0].variant && p->reduction == GM_REDUCE_NONE && p->inputs == 0);
        CHECK_EQ(p->constants, 1);
        CHECK(isnan(cases[i].value) ? isnan(p->constant[0].real) : p->constant[0].real == 0);
        gm_graph_free(graph);
    }
    struct gm_graph *graph = plan("sum(x, axis=(1, 2))", &operand);
    if (!graph)
        return;
    CHECK(graph->flops == 0 && graph->bytes == 0 && gm_graph_step_is_empty(&graph->step[0]));
    gm_graph_free(graph);
    check_failure("max(x)", &operand, GM_BAD_SHAPE, 1);
    check_failure("2 * min(x, axis=0)", &operand, GM_BAD_SHAPE, 5);
    check_failure("max(x, axis=0)", (struct gm_eval_operand[]){matrix(GM_F32, 0, 0)}, GM_BAD_SHAPE,
                  1);
    operand = matrix(GM_F32, 3, 0); /* no greatest element is asked for */
    gm_graph_free(plan("max(x, axis=0)", &operand));
}

/* What a program keeps for later is no operation. */
static void test_work_of_temporaries(void)
{
    const struct gm_eval_operand operand[] = {matrix(GM_F32, 10, 10)};
    struct gm_graph *graph = plan("(x + 1) * (x - 1)", operand);

    if (!graph)
        return;
    const struct gm_program *p = &graph->step[0].program;
    unsigned kept = 0;
    for (unsigned i = 0; i < p->code; i++)
        kept += p->instruction[i].kind == GM_DO_STORE;
    CHECK_EQ(kept, 1);
    CHECK(graph->flops == 3 * 100);
    gm_graph_free(graph);
}

/* An input that repeats stands for as many elements as its space has, and each is an operation. */
static void test_work_of_repeated_inputs(void)
{
    const struct gm_eval_operand operand[] = {matrix(GM_F32, 1, (uint64_t)1 << 20)};
    struct gm_graph *graph = plan("sum(x + x.T)", operand);

    if (!graph)
        return;
    CHECK_EQ(graph->steps, 1);
    CHECK(graph->flops == 2 * 0x1p40);
    CHECK(graph->bytes < 1u << 24);
    gm_graph_free(graph);
}

int main(void)
{
    struct gm_error err = {0};

    if (!CHECK_STATUS(gm_choice_cache_open(&choices, &err), GM_OK, &err))
        return 1;
    test_syntax();
    test_axes();
    test_depth();
    test_lengths();
    test_names();
    test_folding();
    test_memory_is_used_again();
    test_steps();
    test_long_chains_are_divided();
    test_too_many_values();
    test_order_of_products();
    test_numbers();
    test_slices();
    test_sizes();
    test_reductions_of_nothing();
    test_work_of_temporaries();
    test_work_of_repeated_inputs();
    gm_choice_cache_close(choices);
    return check_report();
}
