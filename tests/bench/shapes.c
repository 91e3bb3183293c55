/*
 * shapes.c - the lists of what benchmarks time.
 */
#include "shapes.h"

#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "the list of shapes: %s: %s\n", what, detail);
    exit(1);
}

static bool read_option(const char *word, struct gm_op_options *options, enum gm_layout *layout)
{
    if (strcmp(word, "transa") == 0)
        options->transa = true;
    else if (strcmp(word, "transb") == 0)
        options->transb = true;
    else if (strcmp(word, "col") == 0)
        *layout = GM_COL_MAJOR;
    else
        return gm_precision_from_name(word, strlen(word), &options->precision);
    return true;
}

static struct gm_op read_line(char *line)
{
    const bool present[GM_OPERANDS_MAX][GM_OPERANDS_MAX] = {{false}, {true}, {true, true}};
    struct gm_matrix operand[GM_OPERANDS_MAX];
    struct gm_op_options options = {0};
    struct gm_shape shape[2];
    enum gm_layout layout = GM_ROW_MAJOR;
    enum gm_op_kind kind;
    struct gm_error err;
    struct gm_op op;
    unsigned shapes = 0;
    char *save, *word = strtok_r(line, " ", &save), *type = strtok_r(NULL, " ", &save);
    enum gm_dtype dtype = type ? gm_dtype_from_name(type, strlen(type)) : GM_DTYPE_NONE;

    if (!gm_op_from_name(word, &kind) || dtype == GM_DTYPE_NONE)
        die("no operation and type", word);
    while ((word = strtok_r(NULL, " ", &save))) {
        if (shapes < 2 && gm_shape_parse(word, strlen(word), &shape[shapes]))
            shapes++;
        else if (!read_option(word, &options, &layout))
            die("neither a shape nor an option", word);
    }
    for (unsigned i = 0; i < shapes; i++) {
        if (gm_matrix_init(&operand[i], dtype, i == 0 ? layout : GM_ROW_MAJOR, &shape[i], &err))
            die("shape", err.detail);
    }
    if (gm_op_init(&op, kind, &options, operand, present[shapes], &err) != GM_OK)
        die("operation", err.detail);
    return op;
}

bool shapes_next(FILE *list, struct gm_op *ret)
{
    char line[256];

    while (fgets(line, sizeof(line), list)) {
        line[strcspn(line, "#\n")] = '\0';
        if (line[strspn(line, " ")] == '\0')
            continue;
        *ret = read_line(line);
        return true;
    }
    return false;
}

void shapes_text(const struct gm_op *op, char ret[SHAPES_TEXT_MAX])
{
    static const char *const precisions[GM_PRECISION_COUNT] = {[GM_PRECISION_IEEE] = " ieee",
                                                               [GM_PRECISION_TF32] = " tf32",
                                                               [GM_PRECISION_BF16_PRODUCTS] =
                                                                   " bf16"};
    const char *precision = precisions[op->precision];
    char text[2][GM_SHAPE_TEXT_MAX];

    snprintf(ret, SHAPES_TEXT_MAX, "%s%s%s%s%s%s%s", gm_matrix_shape_text(&op->operand[0], text[0]),
             op->operand[0].layout == GM_COL_MAJOR ? " col" : "", op->transa ? "^T" : "",
             op->operands > 1 ? " " : "",
             op->operands > 1 ? gm_matrix_shape_text(&op->operand[1], text[1]) : "",
             op->transb ? "^T" : "", precision ? precision : "");
}
