/*
 * fuzz_eval.c - expressions: syntax, values, fusion and plan. Input: the types and sizes of the
 * operands, two bytes, then the expression.
 *
 * Checked: an error has a place within the text, and its sentence can be sent; a plan keeps all
 * limits, reads values only after they were made and before their memory is used again, and its
 * programs read what is there.
 */
#include "server/eval/eval.h"
#include "tests/fuzz/fuzz.h"

static void check_failure(enum gm_status status, const struct gm_error *err, size_t len)
{
    fuzz_check_error(status, err);
    MUST_SAY(err->at <= len + 1, "at %u of %zu", err->at, len);
}

static void check_tree(const struct gm_syntax_tree *tree, size_t len)
{
    MUST(tree->nodes > 0 && tree->nodes <= GM_EVAL_NODES_MAX);
    MUST(tree->names <= GM_EVAL_OPERANDS_MAX && tree->slices <= GM_EVAL_SLICES_MAX);
    for (unsigned i = 0; i < tree->nodes; i++) {
        const struct gm_syntax *node = &tree->node[i];
        unsigned children = node->kind <= GM_SYNTAX_NUMBER  ? 0
                            : node->kind == GM_SYNTAX_WHERE ? 3
                            : node->kind == GM_SYNTAX_BINARY || node->kind == GM_SYNTAX_MATMUL ||
                                    node->kind == GM_SYNTAX_POWER
                                ? 2
                                : 1;
        MUST(node->at >= 1 && node->at <= len);
        for (unsigned k = 0; k < children; k++)
            MUST(node->child[k] >= 0 && node->child[k] < (int)i);
    }
}

static void check_program(const struct gm_program *p)
{
    unsigned saved = 0;

    MUST(p->code > 0 && p->code <= GM_PROGRAM_CODE_MAX && p->inputs <= GM_PROGRAM_INPUTS_MAX);
    MUST(p->constants <= GM_PROGRAM_CONSTANTS_MAX);
    MUST(p->instruction[0].kind == GM_DO_LOAD);
    for (unsigned i = 0; i < p->code; i++) {
        const struct gm_instruction *in = &p->instruction[i];
        unsigned sources = in->kind == GM_DO_WHERE ? 2 : in->kind < GM_DO_WHERE;
        if (in->kind == GM_DO_STORE) {
            MUST(in->index < GM_PROGRAM_TEMPORARIES_MAX);
            saved |= 1u << in->index;
            continue;
        }
        for (unsigned k = 0; k < sources; k++) {
            unsigned from = k ? in->from_z : in->from, index = k ? in->index_z : in->index;
            MUST(from != GM_FROM_CONSTANT || index < p->constants);
            MUST(from != GM_FROM_INPUT || index < p->inputs);
            MUST(from != GM_FROM_TEMPORARY || (saved & 1u << index));
        }
    }
    /* Its work can be counted, and a reduction has some: those of nothing are constants. */
    uint64_t elements = 0;
    MUST(gm_size_mul(p->batch, p->rows, &elements) && gm_size_mul(elements, p->cols, &elements));
    if (p->reduction != GM_REDUCE_NONE)
        MUST(elements > 0 && p->outer * p->along * p->inner == elements);
}

/* Whether the bytes from `at` on are a value's that another step still needs. */
static void check_memory(const struct gm_graph *g, unsigned names)
{
    for (unsigned i = 0; i < g->steps; i++) {
        const struct gm_graph_step *step = &g->step[i];
        const struct gm_graph_value *made = &g->value[step->result];
        uint64_t elements = gm_matrix_elements(&made->matrix);
        if (!step->variant)
            check_program(&step->program);
        if (!step->variant)
            MUST(elements == (step->program.reduction == GM_REDUCE_NONE
                                  ? gm_program_elements(&step->program)
                                  : step->program.outer * step->program.inner));
        MUST(gm_graph_step_flops(step) >= 0 && gm_graph_step_flops(step) <= g->flops);
        MUST(step->result == names + i && made->temporary == (i + 1 < g->steps));
        MUST(!made->temporary || made->at + gm_matrix_bytes(&made->matrix) <= g->temporary_bytes);
        MUST(step->scratch_at + step->scratch_bytes <= g->temporary_bytes);
        for (unsigned k = 0; k < gm_graph_step_operands(step); k++) {
            MUST(step->operand[k] < names + i);
            const struct gm_graph_value *read = &g->value[step->operand[k]];
            MUST(!read->temporary || !made->temporary || gm_matrix_bytes(&read->matrix) == 0 ||
                 gm_matrix_bytes(&made->matrix) == 0 ||
                 read->at + gm_matrix_bytes(&read->matrix) <= made->at ||
                 made->at + gm_matrix_bytes(&made->matrix) <= read->at);
        }
    }
}

static void make_operands(struct fuzz_input *in, struct gm_eval_operand ret[GM_EVAL_OPERANDS_MAX])
{
    static const enum gm_dtype types[] = {GM_F32, GM_F64, GM_F16,  GM_BF16,
                                          GM_I32, GM_I64, GM_BOOL, GM_U8};
    unsigned type = fuzz_choice(in, 16), size = fuzz_choice(in, 16);

    memset(ret, 0, GM_EVAL_OPERANDS_MAX * sizeof *ret);
    for (unsigned i = 0; i < GM_EVAL_OPERANDS_MAX; i++) {
        struct gm_matrix *m = &ret[i].matrix;
        ret[i].is_number = type == 15 && i % 3 == 2;
        ret[i].number = GM_WHOLE_NUMBER((int64_t)i - 2);
        m->dtype = type < 8 ? types[type] : types[(type + i) % 8];
        m->stacked = size > 11;
        m->layout = size % 3 == 1 ? GM_COL_MAJOR : GM_ROW_MAJOR;
        m->batch = m->stacked ? size - 11 : 1;
        m->rows = size == 5 ? 0 : 1 + size % 4;
        m->cols = size == 10 ? (uint64_t)1 << 40 : 1 + size % 4 + (size > 8 ? i % 2 : 0);
        if (size == 15 && i % 2 == 0) { /* nothing, beside much */
            m->batch = 0;
            m->rows = m->cols = (uint64_t)1 << 30;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const struct gm_device_facts facts = {.kind = GM_DEVICE_CPU};
    static struct gm_syntax_tree tree;
    static struct gm_eval eval;
    struct fuzz_input in = {bytes, len};
    struct gm_eval_operand operand[GM_EVAL_OPERANDS_MAX];
    struct gm_error err = {0};
    struct gm_graph *graph = NULL;
    static struct gm_choice_cache *choices;

    MUST(choices || gm_choice_cache_open(&choices, &err) == GM_OK);
    make_operands(&in, operand);
    char *text = fuzz_alloc(in.left);
    memcpy(text, in.at, in.left);
    enum gm_status status = gm_eval_parse(text, in.left, &tree, &err);
    if (status == GM_OK) {
        check_tree(&tree, in.left);
        status = gm_eval_build(&tree, operand, &eval, &err);
    } else {
        MUST(status == GM_BAD_EXPRESSION);
    }
    if (status == GM_OK)
        status = gm_eval_fuse(&eval, &err);
    if (status == GM_OK)
        status = gm_eval_plan(&eval, tree.names, &facts, choices, GM_PRECISION_FP32,
                              (uint64_t)1 << 50, &graph, &err);
    if (status == GM_OK)
        check_memory(graph, tree.names);
    else
        check_failure(status, &err, in.left);
    gm_graph_free(graph);
    free(text);
    return 0;
}
