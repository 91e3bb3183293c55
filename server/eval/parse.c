/*
 * parse.c - reads an expression into a syntax tree, by recursive descent.
 *
 * Precedence is Python's: comparison, + and -, then * / @, then a sign, then **, then what stands
 * behind an operand. What calls itself enters a level; their number is bounded, and so is the
 * stack.
 */
#include "server/eval/eval.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_SIGN };

struct token {
    enum token_kind kind;
    const char *text;
    unsigned len, at;
    struct gm_scalar number;
};

struct parser {
    const char *begin, *next, *end;
    struct token token; /* the current one */
    unsigned depth;
    struct gm_syntax_tree *tree;
    struct gm_error *err;
};

/* Functions and methods. */
static const struct function {
    const char *name;
    uint8_t kind, what; /* enum gm_syntax_kind; an instruction or a reduction */
    uint8_t operands;
} functions[] = {
    {"sum", GM_SYNTAX_REDUCE, GM_REDUCE_SUM, 1}, {"mean", GM_SYNTAX_REDUCE, GM_REDUCE_MEAN, 1},
    {"max", GM_SYNTAX_REDUCE, GM_REDUCE_MAX, 1}, {"min", GM_SYNTAX_REDUCE, GM_REDUCE_MIN, 1},
    {"where", GM_SYNTAX_WHERE, GM_DO_WHERE, 3},  {"exp", GM_SYNTAX_UNARY, GM_DO_EXP, 1},
    {"log", GM_SYNTAX_UNARY, GM_DO_LOG, 1},      {"sqrt", GM_SYNTAX_UNARY, GM_DO_SQRT, 1},
    {"abs", GM_SYNTAX_UNARY, GM_DO_ABS, 1},      {"tanh", GM_SYNTAX_UNARY, GM_DO_TANH, 1},
    {"maximum", GM_SYNTAX_BINARY, GM_DO_MAX, 2}, {"minimum", GM_SYNTAX_BINARY, GM_DO_MIN, 2},
    {"transpose", GM_SYNTAX_TRANSPOSE, 0, 1},
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

enum gm_status gm_eval_fail(struct gm_error *err, enum gm_status status, unsigned at,
                            const char *format, ...)
{
    char text[GM_ERROR_DETAIL_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    gm_fail(err, status, "character %u: %s", at, text);
    err->at = at;
    return status;
}

static enum gm_status fail(struct parser *p, unsigned at, const char *what)
{
    return gm_eval_fail(p->err, GM_BAD_EXPRESSION, at, "%s", what);
}

/* ---- Tokens. ---- */

static bool is_name_begin(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_name(char c)
{
    return is_name_begin(c) || isdigit((unsigned char)c);
}

/* Digits, with single underscores between them. */
static const char *skip_digits(const struct parser *p, const char *at)
{
    for (const char *begin = at; at < p->end; at++)
        if (!isdigit((unsigned char)*at) &&
            !(*at == '_' && at > begin && at + 1 < p->end && isdigit((unsigned char)at[1])))
            break;
    return at;
}

/* A number as Python writes it; strtod reads it. */
static enum gm_status read_number(struct parser *p)
{
    struct token *t = &p->token;
    const char *at = skip_digits(p, p->next);
    char text[GM_EVAL_CHARACTERS_MAX + 1], *end = text;
    bool real = at < p->end && *at == '.';

    unsigned digits = (unsigned)(at - p->next);
    if (real)
        at = skip_digits(p, at + 1);
    const char *exponent = at;
    if (at < p->end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < p->end && (*at == '+' || *at == '-');
        if (at == p->end || !isdigit((unsigned char)*at))
            return fail(p, t->at, "a number's exponent has no digits");
        at = skip_digits(p, at);
    }
    real = real || at > exponent;
    t->kind = TOKEN_NUMBER;
    t->len = (unsigned)(at - p->next);
    if (at < p->end && is_name(*at))
        return fail(p, t->at, "a number is followed by a letter");
    if (!real && digits > 1 && *p->next == '0')
        return fail(p, t->at, "a whole number begins with 0");
    for (const char *from = p->next; from < at; from++)
        if (*from != '_')
            *end++ = *from;
    *end = '\0';
    t->number.real = strtod(text, NULL);
    if (!real) {
        errno = 0;
        t->number.integer = strtoll(text, NULL, 10);
        t->number.is_integer = true;
        if (errno != 0)
            return fail(p, t->at, "a whole number does not fit in i64");
    }
    p->next = at;
    return GM_OK;
}

static enum gm_status advance(struct parser *p)
{
    static const char *const two[] = {"**", "//", "<=", ">=", "==", "!=", "&&", "||"};
    struct token *t = &p->token;

    while (p->next < p->end && strchr(" \t\r\n", *p->next) && *p->next)
        p->next++;
    *t = (struct token){.text = p->next, .at = (unsigned)(p->next - p->begin) + 1};
    if (p->next == p->end)
        return GM_OK;
    if (isdigit((unsigned char)*p->next) ||
        (*p->next == '.' && p->next + 1 < p->end && isdigit((unsigned char)p->next[1])))
        return read_number(p);
    if (is_name_begin(*p->next)) {
        t->kind = TOKEN_NAME;
        while (p->next < p->end && is_name(*p->next))
            p->next++;
        t->len = (unsigned)(p->next - t->text);
        return GM_OK;
    }
    t->kind = TOKEN_SIGN;
    t->len = 1;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (p->end - p->next >= 2 && memcmp(p->next, two[i], 2) == 0)
            t->len = 2;
    if (t->len == 1 && !(*p->next && strchr("+-*/@<>()[],.:=", *p->next)))
        return fail(
            p, t->at,
            "this character has no meaning in an expression: operators are + - * / ** @, and "
            "comparisons");
    p->next += t->len;
    return GM_OK;
}

static bool is_sign(const struct parser *p, const char *sign)
{
    return p->token.kind == TOKEN_SIGN && p->token.len == strlen(sign) &&
           memcmp(p->token.text, sign, p->token.len) == 0;
}

static bool is_word(const struct token *t, const char *word)
{
    return t->kind == TOKEN_NAME && t->len == strlen(word) && memcmp(t->text, word, t->len) == 0;
}

static enum gm_status expect(struct parser *p, const char *sign)
{
    char what[64];

    if (is_sign(p, sign))
        return advance(p);
    snprintf(what, sizeof what,
             p->token.kind == TOKEN_END ? "the expression ends, and %s is missing"
                                        : "there must be %s here",
             sign);
    return fail(p, p->token.at, what);
}

/* ---- Nodes. ---- */

static enum gm_status add(struct parser *p, struct gm_syntax node, int *ret)
{
    struct gm_syntax_tree *tree = p->tree;

    if (tree->nodes == GM_EVAL_NODES_MAX)
        return gm_eval_fail(p->err, GM_BAD_EXPRESSION, node.at,
                            "there are more than %d operations, names and numbers",
                            GM_EVAL_NODES_MAX);
    tree->node[tree->nodes] = node;
    *ret = (int)tree->nodes++;
    return GM_OK;
}

static enum gm_status expression(struct parser *p, int *ret);

static enum gm_status enter(struct parser *p)
{
    if (++p->depth <= GM_EVAL_DEPTH_MAX)
        return GM_OK;
    return gm_eval_fail(p->err, GM_BAD_EXPRESSION, p->token.at,
                        "the expression is nested more than %d levels deep", GM_EVAL_DEPTH_MAX);
}

/* A name that stands for a matrix. */
static enum gm_status add_name(struct parser *p, const struct token *t, int *ret)
{
    struct gm_syntax_tree *tree = p->tree;
    unsigned i = 0;

    if (t->len >= GM_EVAL_NAME_MAX)
        return fail(p, t->at, "a name has more than 64 characters");
    while (i < tree->names &&
           !(strlen(tree->name[i]) == t->len && memcmp(tree->name[i], t->text, t->len) == 0))
        i++;
    if (i == GM_EVAL_OPERANDS_MAX)
        return gm_eval_fail(p->err, GM_BAD_EXPRESSION, t->at, "there are more than %d names",
                            GM_EVAL_OPERANDS_MAX);
    if (i == tree->names) {
        memcpy(tree->name[i], t->text, t->len);
        tree->name[i][t->len] = '\0';
        tree->name_at[i] = (uint16_t)t->at;
        tree->names++;
    }
    return add(
        p, (struct gm_syntax){.kind = GM_SYNTAX_NAME, .at = (uint16_t)t->at, .index = (uint16_t)i},
        ret);
}

/* ---- Calls. ---- */

static const struct function *find_function(const struct token *t)
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (is_word(t, functions[i].name))
            return &functions[i];
    return NULL;
}

static enum gm_status fail_function(struct parser *p, const struct token *t)
{
    char names[160] = "";
    size_t at = 0;

    for (size_t i = 0; i < FUNCTIONS; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i > 0 ? ", " : "",
                               functions[i].name);
    return gm_eval_fail(p->err, GM_BAD_EXPRESSION, t->at, "there is no function %.*s; there are %s",
                        t->len < 64 ? (int)t->len : 64, t->text, names);
}

/* A whole number with its sign. */
static enum gm_status read_integer(struct parser *p, const char *what, int64_t *ret)
{
    bool minus = is_sign(p, "-");
    enum gm_status status = minus || is_sign(p, "+") ? advance(p) : GM_OK;

    if (status != GM_OK)
        return status;
    if (p->token.kind != TOKEN_NUMBER || !p->token.number.is_integer)
        return fail(p, p->token.at, what);
    *ret = minus ? -p->token.number.integer : p->token.number.integer;
    return advance(p);
}

static enum gm_status add_axis(struct parser *p, struct gm_syntax *node)
{
    /* Who writes max(x, y) means this. */
    const char *of_two = node->reduction == GM_REDUCE_MAX   ? "; maximum takes two matrices"
                         : node->reduction == GM_REDUCE_MIN ? "; minimum takes two matrices"
                                                            : "";
    int64_t axis = 0;
    unsigned at = p->token.at;
    char what[128];

    snprintf(what, sizeof what, "an axis is a whole number, or several in parentheses%s", of_two);
    enum gm_status status = read_integer(p, what, &axis);
    if (status != GM_OK)
        return status;
    if (axis < -GM_DIMS_MAX || axis >= GM_DIMS_MAX || node->axes == GM_DIMS_MAX)
        return fail(p, at, "there is no such axis: a matrix has two, a stack has three");
    node->axis[node->axes++] = (int8_t)axis;
    return GM_OK;
}

/* The value of axis=. */
static enum gm_status read_axes(struct parser *p, struct gm_syntax *node)
{
    if (is_word(&p->token, "None"))
        return advance(p);
    node->has_axes = true;
    if (!is_sign(p, "("))
        return add_axis(p, node);
    enum gm_status status = advance(p);
    while (status == GM_OK && !is_sign(p, ")")) {
        status = add_axis(p, node);
        if (status == GM_OK && !is_sign(p, ")"))
            status = expect(p, ",");
    }
    return status == GM_OK ? advance(p) : status;
}

static enum gm_status read_keepdims(struct parser *p, struct gm_syntax *node)
{
    node->keepdims = is_word(&p->token, "True");
    if (!node->keepdims && !is_word(&p->token, "False"))
        return fail(p, p->token.at, "keepdims is True or False");
    return advance(p);
}

/* Which options of a reduction have been stated. */
struct options {
    bool axis, keepdims;
};

/* Whether a keyword argument, or the axis of a reduction, follows; reads it. */
static enum gm_status read_option(struct parser *p, struct gm_syntax *node, bool first_option,
                                  struct options *options, bool *ret)
{
    struct parser before = *p;
    enum gm_status status;

    *ret = false;
    if (p->token.kind == TOKEN_NAME) {
        struct token name = p->token;
        status = advance(p);
        if (status != GM_OK)
            return status;
        if (is_sign(p, "=")) {
            *ret = true;
            bool axis = is_word(&name, "axis"), keepdims = is_word(&name, "keepdims");
            if (node->kind != GM_SYNTAX_REDUCE || (!axis && !keepdims))
                return fail(p, name.at,
                            node->kind == GM_SYNTAX_REDUCE
                                ? "a reduction takes axis and keepdims, and nothing else by name"
                                : "this function takes nothing by name");
            status = advance(p);
            if (status != GM_OK)
                return status;
            bool *stated = axis ? &options->axis : &options->keepdims;
            if (*stated)
                return fail(p, p->token.at,
                            axis ? "axis is stated twice" : "keepdims is stated twice");
            *stated = true;
            return axis ? read_axes(p, node) : read_keepdims(p, node);
        }
        p->next = before.next;
        p->token = before.token;
    }
    if (node->kind != GM_SYNTAX_REDUCE || !first_option)
        return GM_OK;
    *ret = options->axis = true; /* sum(x, 0) */
    return read_axes(p, node);
}

/* Reads the arguments of a call, from behind its parenthesis on. receiver: x of x.sum(); -1. */
static enum gm_status call(struct parser *p, const struct token *name,
                           const struct function *function, int receiver, int *ret)
{
    struct gm_syntax node = {.kind = function->kind,
                             .instruction = function->what,
                             .reduction = function->what,
                             .method = receiver >= 0,
                             .at = (uint16_t)name->at};
    unsigned given = receiver >= 0;
    struct options options = {false, false};
    enum gm_status status = enter(p);

    node.child[0] = (int16_t)receiver;
    while (status == GM_OK && !is_sign(p, ")")) {
        bool any_option = options.axis || options.keepdims, is_option = false;
        int child = 0;
        if (given == function->operands || p->token.kind == TOKEN_NAME)
            status = read_option(p, &node, given == function->operands && !any_option, &options,
                                 &is_option);
        if (status == GM_OK && !is_option) {
            if (given == function->operands || any_option)
                return gm_eval_fail(p->err, GM_BAD_EXPRESSION, p->token.at, "%s takes %u operand%s",
                                    function->name, function->operands,
                                    function->operands > 1 ? "s" : "");
            status = expression(p, &child);
            node.child[given++] = (int16_t)child;
        }
        if (status == GM_OK && !is_sign(p, ")"))
            status = expect(p, ",");
    }
    if (status != GM_OK)
        return status;
    if (given < function->operands)
        return gm_eval_fail(p->err, GM_BAD_EXPRESSION, name->at,
                            "%s takes %u operand%s, and has %u", function->name, function->operands,
                            function->operands > 1 ? "s" : "", given);
    p->depth--;
    status = advance(p);
    return status == GM_OK ? add(p, node, ret) : status;
}

/* ---- Slices. ---- */

static enum gm_status read_slice(struct parser *p, struct gm_slice *ret)
{
    static const char what[] = "an index is a whole number, or a range of them as in 0:10 or ::2";
    enum gm_status status = GM_OK;

    *ret = (struct gm_slice){.step = 1, .at = (uint16_t)p->token.at};
    if (!is_sign(p, ":")) {
        status = read_integer(p, what, &ret->start);
        ret->has_start = true;
    }
    if (status != GM_OK)
        return status;
    if (!is_sign(p, ":")) {
        ret->is_index = true;
        return GM_OK;
    }
    status = advance(p);
    if (status == GM_OK && !is_sign(p, ":") && !is_sign(p, ",") && !is_sign(p, "]")) {
        status = read_integer(p, what, &ret->stop);
        ret->has_stop = true;
    }
    if (status != GM_OK || !is_sign(p, ":"))
        return status;
    status = advance(p);
    if (status == GM_OK && !is_sign(p, ",") && !is_sign(p, "]"))
        status = read_integer(p, what, &ret->step);
    if (status == GM_OK && ret->step == 0)
        return fail(p, ret->at, "the step of a slice is 0");
    return status;
}

/* From behind the bracket on. */
static enum gm_status slices(struct parser *p, unsigned at, int *ret)
{
    struct gm_syntax_tree *tree = p->tree;
    struct gm_syntax node = {.kind = GM_SYNTAX_SLICE,
                             .at = (uint16_t)at,
                             .index = (uint16_t)tree->slices,
                             .child = {(int16_t)*ret}};
    enum gm_status status = GM_OK;

    do {
        if (node.slices > 0)
            status = advance(p);
        if (status == GM_OK && node.slices > 0 && is_sign(p, "]"))
            break; /* x[0,] */
        if (status == GM_OK && node.slices == GM_DIMS_MAX)
            return fail(p, p->token.at, "there are more than three indices");
        if (status == GM_OK && tree->slices == GM_EVAL_SLICES_MAX)
            return gm_eval_fail(p->err, GM_BAD_EXPRESSION, p->token.at,
                                "there are more than %d indices in the expression",
                                GM_EVAL_SLICES_MAX);
        if (status == GM_OK)
            status = read_slice(p, &tree->slice[tree->slices]);
        tree->slices += status == GM_OK;
        node.slices++;
    } while (status == GM_OK && is_sign(p, ","));
    if (status == GM_OK)
        status = expect(p, "]");
    return status == GM_OK ? add(p, node, ret) : status;
}

/* ---- Operands and operators. ---- */

/* np.inf and the like: Python's numbers, that no digits say. */
static enum gm_status constant_of_numpy(struct parser *p, const struct token *name, int *ret)
{
    static const struct {
        const char *name;
        double value;
    } constants[] = {{"inf", INFINITY}, {"nan", NAN}, {"pi", M_PI}, {"e", M_E}};
    struct gm_syntax node = {.kind = GM_SYNTAX_NUMBER, .at = (uint16_t)name->at};

    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        node.number = GM_REAL_NUMBER(constants[i].value);
        if (is_word(name, constants[i].name))
            return add(p, node, ret);
    }
    return fail(p, name->at,
                "np. stands before a function and its parentheses, or before inf, nan, pi or e");
}

/* A name, and what it is: a function is followed by a parenthesis. np. before it is skipped. */
static enum gm_status name_or_call(struct parser *p, int *ret)
{
    struct token name = p->token;
    enum gm_status status = advance(p);

    if (status == GM_OK && (is_word(&name, "np") || is_word(&name, "numpy")) && is_sign(p, ".")) {
        status = advance(p);
        if (status == GM_OK && p->token.kind != TOKEN_NAME)
            status = fail(p, p->token.at, "there must be a name here");
        name = p->token;
        if (status == GM_OK)
            status = advance(p);
        if (status == GM_OK && !is_sign(p, "("))
            return constant_of_numpy(p, &name, ret);
    }
    if (status != GM_OK)
        return status;
    if (!is_sign(p, "("))
        return add_name(p, &name, ret);
    const struct function *function = find_function(&name);
    if (!function)
        return fail_function(p, &name);
    status = advance(p);
    return status == GM_OK ? call(p, &name, function, -1, ret) : status;
}

static enum gm_status atom(struct parser *p, int *ret)
{
    struct gm_syntax node = {.kind = GM_SYNTAX_NUMBER, .at = (uint16_t)p->token.at};
    enum gm_status status;

    if (p->token.kind == TOKEN_NAME)
        return name_or_call(p, ret);
    if (p->token.kind == TOKEN_NUMBER) {
        node.number = p->token.number;
        status = advance(p);
        return status == GM_OK ? add(p, node, ret) : status;
    }
    if (!is_sign(p, "("))
        return fail(p, p->token.at,
                    p->token.kind == TOKEN_END
                        ? "the expression ends where an operand is missing"
                        : "there must be an operand here: a name, a number, a call or (");
    status = enter(p);
    if (status == GM_OK)
        status = advance(p);
    if (status == GM_OK)
        status = expression(p, ret);
    if (status == GM_OK)
        status = expect(p, ")");
    if (status == GM_OK)
        p->tree->node[*ret].in_parentheses = true;
    p->depth--;
    return status;
}

/* .T, .mT, .sum(...) */
static enum gm_status attribute(struct parser *p, int *ret)
{
    struct token name = p->token;
    const struct function *function = NULL;
    enum gm_status status;

    if (name.kind != TOKEN_NAME)
        return fail(p, name.at, "there must be T, mT or a method's name behind the point");
    status = advance(p);
    if (status != GM_OK)
        return status;
    if (is_word(&name, "T") || is_word(&name, "mT"))
        return add(p,
                   (struct gm_syntax){.kind = GM_SYNTAX_TRANSPOSE,
                                      .at = (uint16_t)name.at,
                                      .matrix = name.len == 2,
                                      .method = true,
                                      .child = {(int16_t)*ret}},
                   ret);
    function = find_function(&name);
    if (!function || (function->kind != GM_SYNTAX_REDUCE && function->kind != GM_SYNTAX_TRANSPOSE))
        return fail(p, name.at, "a matrix has T, mT, sum(), mean(), max(), min() and transpose()");
    status = expect(p, "(");
    return status == GM_OK ? call(p, &name, function, *ret, ret) : status;
}

static enum gm_status postfix(struct parser *p, int *ret)
{
    enum gm_status status = atom(p, ret);

    while (status == GM_OK && (is_sign(p, ".") || is_sign(p, "["))) {
        bool point = is_sign(p, ".");
        unsigned at = p->token.at;
        status = advance(p);
        if (status == GM_OK)
            status = point ? attribute(p, ret) : slices(p, at, ret);
    }
    return status;
}

static enum gm_status binary(struct parser *p, uint8_t kind, uint8_t instruction, unsigned at,
                             int left, int right, int *ret)
{
    return add(p,
               (struct gm_syntax){.kind = kind,
                                  .instruction = instruction,
                                  .at = (uint16_t)at,
                                  .child = {(int16_t)left, (int16_t)right}},
               ret);
}

static enum gm_status unary(struct parser *p, int *ret);

static enum gm_status power(struct parser *p, int *ret)
{
    int right = 0;
    enum gm_status status = postfix(p, ret);

    if (status != GM_OK || !is_sign(p, "**"))
        return status;
    unsigned at = p->token.at;
    status = enter(p);
    if (status == GM_OK)
        status = advance(p);
    if (status == GM_OK)
        status = unary(p, &right); /* binds to the right: 2 ** -x ** 2 */
    p->depth--;
    return status == GM_OK ? binary(p, GM_SYNTAX_POWER, GM_DO_POW, at, *ret, right, ret) : status;
}

static enum gm_status unary(struct parser *p, int *ret)
{
    unsigned at = p->token.at;
    bool minus = is_sign(p, "-");
    enum gm_status status;

    if (!minus && !is_sign(p, "+"))
        return power(p, ret);
    status = enter(p);
    if (status == GM_OK)
        status = advance(p);
    if (status == GM_OK)
        status = unary(p, ret);
    p->depth--;
    return status == GM_OK
               ? binary(p, GM_SYNTAX_UNARY, minus ? GM_DO_NEG : GM_DO_LOAD, at, *ret, 0, ret)
               : status;
}

static enum gm_status term(struct parser *p, int *ret)
{
    enum gm_status status = unary(p, ret);

    while (status == GM_OK && (is_sign(p, "*") || is_sign(p, "/") || is_sign(p, "@"))) {
        uint8_t kind = is_sign(p, "@") ? GM_SYNTAX_MATMUL : GM_SYNTAX_BINARY;
        uint8_t instruction = is_sign(p, "*") ? GM_DO_MUL : GM_DO_DIV;
        unsigned at = p->token.at;
        int right = 0;
        status = advance(p);
        if (status == GM_OK)
            status = unary(p, &right);
        if (status == GM_OK)
            status = binary(p, kind, instruction, at, *ret, right, ret);
    }
    return status;
}

static enum gm_status sum(struct parser *p, int *ret)
{
    enum gm_status status = term(p, ret);

    while (status == GM_OK && (is_sign(p, "+") || is_sign(p, "-"))) {
        uint8_t instruction = is_sign(p, "+") ? GM_DO_ADD : GM_DO_SUB;
        unsigned at = p->token.at;
        int right = 0;
        status = advance(p);
        if (status == GM_OK)
            status = term(p, &right);
        if (status == GM_OK)
            status = binary(p, GM_SYNTAX_BINARY, instruction, at, *ret, right, ret);
    }
    return status;
}

/* The instruction of a comparison; GM_DO_COUNT: it is none. */
static uint8_t comparison_of(const struct parser *p)
{
    static const struct {
        const char *sign;
        uint8_t instruction;
    } signs[] = {{"<", GM_DO_LT},  {"<=", GM_DO_LE}, {">", GM_DO_GT},
                 {">=", GM_DO_GE}, {"==", GM_DO_EQ}, {"!=", GM_DO_NE}};

    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (is_sign(p, signs[i].sign))
            return signs[i].instruction;
    return GM_DO_COUNT;
}

static enum gm_status expression(struct parser *p, int *ret)
{
    enum gm_status status = sum(p, ret);
    uint8_t instruction = comparison_of(p);
    unsigned at = p->token.at;
    int right = 0;

    if (status != GM_OK || instruction == GM_DO_COUNT)
        return status;
    status = advance(p);
    if (status == GM_OK)
        status = sum(p, &right);
    if (status == GM_OK && comparison_of(p) != GM_DO_COUNT)
        return fail(p, p->token.at,
                    "a < b < c has no meaning for matrices; put one comparison in parentheses");
    return status == GM_OK ? binary(p, GM_SYNTAX_BINARY, instruction, at, *ret, right, ret)
                           : status;
}

enum gm_status gm_eval_parse(const char *text, size_t len, struct gm_syntax_tree *ret,
                             struct gm_error *err)
{
    struct parser p = {.begin = text, .next = text, .end = text + len, .tree = ret, .err = err};
    int root = 0;

    ret->nodes = ret->names = ret->slices = 0;
    if (len > GM_EVAL_CHARACTERS_MAX)
        return gm_eval_fail(err, GM_BAD_EXPRESSION, GM_EVAL_CHARACTERS_MAX + 1,
                            "the expression has %zu characters, and %d is the limit", len,
                            GM_EVAL_CHARACTERS_MAX);
    enum gm_status status = advance(&p);
    if (status == GM_OK && p.token.kind == TOKEN_END)
        return fail(&p, 1, "the expression is empty");
    if (status == GM_OK)
        status = expression(&p, &root);
    if (status == GM_OK && p.token.kind != TOKEN_END)
        status = fail(&p, p.token.at,
                      is_sign(&p, "=")    ? "this is no assignment: == compares"
                      : is_sign(&p, "//") ? "there is no operator //: / divides"
                                          : "the expression should have ended here, or an operator "
                                            "is missing");
    return status;
}
