/*
 * text.c - writes the plan of an expression, for people or as JSON.
 */
#include "server/text.h"
#include "proto/json/json.h"
#include "server/eval/eval.h"

#include <stdlib.h>
#include <string.h>

/* A step takes 4 KB at most: 64 instructions of 48 bytes, and 16 names; the expression six times
 * its characters. */
#define JSON_TEXT_MAX (8 * GM_EVAL_CHARACTERS_MAX + GM_EVAL_STEPS_MAX * 8192)

#define NAME_MAX_ 80

static const char *const instruction_names[GM_DO_COUNT] = {
#define X(name, text, meaning) [GM_DO_##name] = text,
    GM_INSTRUCTION_LIST(X)
#undef X
};

/* An operand's name; t1, t2, ... for what steps store. */
static const char *value_name(const struct gm_graph *graph, const struct gm_syntax_tree *tree,
                              unsigned index, char buf[NAME_MAX_])
{
    if (index < tree->names)
        snprintf(buf, NAME_MAX_, "%s", tree->name[index]);
    else if (index == graph->result)
        snprintf(buf, NAME_MAX_, "result");
    else
        snprintf(buf, NAME_MAX_, "t%u", index - tree->names + 1);
    return buf;
}

static double factor_of(const struct gm_scalar *factor)
{
    return factor->is_integer ? (double)factor->integer : factor->real;
}

/* ---- For people. ---- */

static void write_product(FILE *out, const struct gm_op *op)
{
    if (op->kind != GM_OP_MATMUL)
        return;
    if (op->transa || op->transb)
        fprintf(out, "%s%s", op->transa ? ", transa" : "", op->transb ? ", transb" : "");
    if (factor_of(&op->alpha) != 1)
        fprintf(out, ", alpha %g", factor_of(&op->alpha));
    if (op->operands == 3)
        fprintf(out, ", beta %g", factor_of(&op->beta));
}

static void write_program(FILE *out, const struct gm_program *program)
{
    fputs(": ", out);
    for (unsigned i = 0; i < program->code; i++)
        if (program->instruction[i].kind != GM_DO_STORE)
            fprintf(out, "%s%s", i > 0 ? ", " : "",
                    instruction_names[program->instruction[i].kind]);
}

static void write_step(FILE *out, const struct gm_graph *graph, const struct gm_syntax_tree *tree,
                       unsigned index)
{
    const struct gm_graph_step *step = &graph->step[index];
    const struct gm_matrix *result = &graph->value[step->result].matrix;
    char name[NAME_MAX_], shape[GM_SHAPE_TEXT_MAX];

    fprintf(out, "%2u. %s = %s(", index + 1, value_name(graph, tree, step->result, name),
            gm_graph_step_op(step));
    for (unsigned i = 0; i < gm_graph_step_operands(step); i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", value_name(graph, tree, step->operand[i], name));
    if (step->variant)
        write_product(out, &step->op);
    fputc(')', out);
    if (!step->variant)
        write_program(out, &step->program);
    fprintf(out, "\n    %s %s by kernel \"%s\"; %.4g operations on %llu bytes\n",
            gm_matrix_shape_text(result, shape), gm_dtype_name(result->dtype),
            gm_graph_step_kernel(step), gm_graph_step_flops(step),
            (unsigned long long)gm_graph_step_bytes(step));
}

static char *write_text(const struct gm_graph *graph, const struct gm_syntax_tree *tree,
                        const char *expression, const char *device)
{
    struct gm_text_stream stream;

    if (!gm_text_stream_begin(&stream))
        return NULL;
    fprintf(stream.out, "%s\n\non %s, %u step%s, %llu bytes stored between them\n\n", expression,
            device, graph->steps, graph->steps == 1 ? "" : "s",
            (unsigned long long)graph->temporary_bytes);
    for (unsigned i = 0; i < graph->steps; i++)
        write_step(stream.out, graph, tree, i);
    return gm_text_stream_end(&stream, NULL);
}

/* ---- JSON. ---- */

static void put_shape(struct gm_json_line *line, const struct gm_matrix *matrix)
{
    gm_json_line_open(line, "shape", '[');
    if (matrix->stacked)
        gm_json_line_integer(line, NULL, (int64_t)matrix->batch);
    gm_json_line_integer(line, NULL, (int64_t)matrix->rows);
    gm_json_line_integer(line, NULL, (int64_t)matrix->cols);
    gm_json_line_close(line, '[');
    gm_json_line_string(line, "dtype", gm_dtype_name(matrix->dtype));
}

static void put_product(struct gm_json_line *line, const struct gm_op *op)
{
    if (op->kind != GM_OP_MATMUL)
        return;
    if (op->transa)
        gm_json_line_true(line, "transa");
    if (op->transb)
        gm_json_line_true(line, "transb");
    gm_json_line_real(line, "alpha", factor_of(&op->alpha));
    if (op->operands == 3)
        gm_json_line_real(line, "beta", factor_of(&op->beta));
}

static void put_step(struct gm_json_line *line, const struct gm_graph *graph,
                     const struct gm_syntax_tree *tree, const struct gm_graph_step *step)
{
    char name[NAME_MAX_];

    gm_json_line_open(line, NULL, '{');
    gm_json_line_string(line, "op", gm_graph_step_op(step));
    gm_json_line_string(line, "kernel", gm_graph_step_kernel(step));
    gm_json_line_open(line, "operands", '[');
    for (unsigned i = 0; i < gm_graph_step_operands(step); i++)
        gm_json_line_string(line, NULL, value_name(graph, tree, step->operand[i], name));
    gm_json_line_close(line, '[');
    if (step->variant)
        put_product(line, &step->op);
    gm_json_line_string(line, "result", value_name(graph, tree, step->result, name));
    put_shape(line, &graph->value[step->result].matrix);
    if (!step->variant) {
        gm_json_line_open(line, "instructions", '[');
        for (unsigned i = 0; i < step->program.code; i++)
            gm_json_line_string(line, NULL, instruction_names[step->program.instruction[i].kind]);
        gm_json_line_close(line, '[');
    }
    gm_json_line_real(line, "flops", gm_graph_step_flops(step));
    gm_json_line_integer(line, "bytes", (int64_t)gm_graph_step_bytes(step));
    gm_json_line_close(line, '{');
}

static char *write_json(const struct gm_graph *graph, const struct gm_syntax_tree *tree,
                        const char *expression, const char *device)
{
    char *text = malloc(JSON_TEXT_MAX);

    if (!text)
        return NULL;
    struct gm_json_line line = gm_json_line_begin(text, JSON_TEXT_MAX);
    gm_json_line_open(&line, NULL, '{');
    gm_json_line_string(&line, "expr", expression);
    gm_json_line_string(&line, "device", device);
    put_shape(&line, &graph->value[graph->result].matrix);
    gm_json_line_integer(&line, "temporary_bytes", (int64_t)graph->temporary_bytes);
    gm_json_line_real(&line, "flops", graph->flops);
    gm_json_line_integer(&line, "bytes", (int64_t)graph->bytes);
    gm_json_line_open(&line, "steps", '[');
    for (unsigned i = 0; i < graph->steps; i++)
        put_step(&line, graph, tree, &graph->step[i]);
    gm_json_line_close(&line, '[');
    gm_json_line_close(&line, '{');
    if (gm_json_line_end(&line))
        return text;
    free(text);
    return NULL;
}

char *gm_eval_text(const struct gm_graph *graph, const struct gm_syntax_tree *tree,
                   const char *expression, const char *device, bool json)
{
    return json ? write_json(graph, tree, expression, device)
                : write_text(graph, tree, expression, device);
}
