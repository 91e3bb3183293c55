/*
 * lines.c - elfutils' libdw reads the debugging information: all that concerns kernels, when the
 * simulator opens, into tables of our own. Where it finds no memory it ends the process that it is
 * in, by its own decision or by a fault. So that is one of its own too, which hands the tables over
 * and ends; in the midst of a request is no time for either.
 *
 * Kernels are in units whose names end in ".cu". Of each we keep what its line table says, and
 * which pieces of code are a function, or were put where one is called.
 */
#include "lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Files, and a folder of files, whose functions are a kernel's vocabulary, not its code: what is
 * done in one of them is shown where the kernel calls it. */
static const char *const vocabulary[] = {"kernels/sim/", "kernels/cuda/element.h", "proto/half.h",
                                         "proto/bits.h"};

#define DEPTH_MAX 64 /* of functions within functions */

/* Holds from `begin` to the next one's. */
struct row {
    uint64_t begin;
    uint32_t order;      /* in which the table has it: of two at one address the later one holds */
    uint32_t file, line; /* line 0: no code */
};

/* Of those that hold an address, the outermost comes first and the innermost last. */
struct scope {
    uint64_t begin, end;
    uint32_t function;   /* its name; 0: one that was put here, */
    uint32_t file, line; /* where this is written */
};

struct list {
    void *at;
    size_t size, count, room;
};

struct text {
    char text[96]; /* as long as symbols.h has them */
};

/* Texts are told by their numbers, from 1 on. */
struct gm_lines {
    uintptr_t base; /* where the program was loaded */
    struct list row, scope, text;
};

/* Only where libdw is: nothing there is worth more than the process. */
static void __attribute__((noreturn)) give_up(void)
{
    _exit(EXIT_FAILURE);
}

static void *add(struct list *list)
{
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 64;
        void *larger = realloc(list->at, room * list->size);
        if (!larger)
            give_up();
        list->at = larger;
        list->room = room;
    }
    return (char *)list->at + list->count++ * list->size;
}

static uint32_t text_number(struct gm_lines *lines, const char *text)
{
    const struct text *known = lines->text.at;
    struct text new;

    if (!text)
        return 0;
    snprintf(new.text, sizeof(new.text), "%s", text);
    for (size_t i = lines->text.count; i > 0; i--)
        if (strcmp(known[i - 1].text, new.text) == 0)
            return (uint32_t)i;
    memcpy(add(&lines->text), &new, sizeof(new));
    return (uint32_t)lines->text.count;
}

static const char *text_at(const struct gm_lines *lines, uint32_t number)
{
    return number > 0 ? ((const struct text *)lines->text.at)[number - 1].text : "";
}

static void read_rows(struct gm_lines *lines, Dwarf_Die *unit)
{
    Dwarf_Lines *table;
    size_t count;

    if (dwarf_getsrclines(unit, &table, &count) != 0)
        give_up();
    for (size_t i = 0; i < count; i++) {
        Dwarf_Line *from = dwarf_onesrcline(table, i);
        Dwarf_Addr address;
        int number;
        bool end;
        if (dwarf_lineaddr(from, &address) != 0 || dwarf_lineno(from, &number) != 0 ||
            dwarf_lineendsequence(from, &end) != 0)
            give_up();
        uint32_t file = end ? 0 : text_number(lines, dwarf_linesrc(from, NULL, NULL));
        struct row *row = add(&lines->row);
        *row = (struct row){.begin = address,
                            .order = (uint32_t)lines->row.count,
                            .file = file,
                            .line = end ? 0 : (uint32_t)number};
    }
}

/* Where an inlined function is called. */
static void set_call(struct gm_lines *lines, Dwarf_Die *inlined, Dwarf_Files *files,
                     struct scope *ret)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file, line;

    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
        dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0)
        return;
    ret->file = text_number(lines, dwarf_filesrc(files, file, NULL, NULL));
    ret->line = (uint32_t)line;
}

/* Adds the pieces of code of a function, or of an inlined one. Answers whether there are any: of
 * what is only declared there are none. */
static bool add_scopes(struct gm_lines *lines, Dwarf_Die *die, Dwarf_Files *files)
{
    struct scope scope = {0};
    Dwarf_Addr base, begin, end;
    ptrdiff_t next = dwarf_ranges(die, 0, &base, &begin, &end);

    if (next > 0 && dwarf_tag(die) == DW_TAG_subprogram)
        scope.function = text_number(lines, dwarf_diename(die));
    else if (next > 0)
        set_call(lines, die, files, &scope);
    bool any = next > 0;
    for (; next > 0; next = dwarf_ranges(die, next, &base, &begin, &end)) {
        scope.begin = begin;
        scope.end = end;
        memcpy(add(&lines->scope), &scope, sizeof(scope));
    }
    if (next < 0)
        give_up();
    return any;
}

/* All functions in a piece of the program, with what was put into them. Below a function without
 * code, and in the classes within one, are others that have some: lambdas that were not put
 * where they are called. */
static void read_scopes(struct gm_lines *lines, Dwarf_Die *around, Dwarf_Files *files,
                        unsigned depth)
{
    Dwarf_Die die;
    int found = dwarf_child(around, &die);

    for (; found == 0; found = dwarf_siblingof(&die, &die)) {
        bool deeper = false;
        switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram:
            (void)add_scopes(lines, &die, files);
            deeper = true;
            break;
        case DW_TAG_inlined_subroutine:
            deeper = add_scopes(lines, &die, files);
            break;
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
        case DW_TAG_lexical_block:
        case DW_TAG_namespace:
            deeper = true;
            break;
        default:
            break;
        }
        if (deeper && depth < DEPTH_MAX)
            read_scopes(lines, &die, files, depth + 1);
    }
    if (found < 0)
        give_up();
}

static bool is_kernels(const char *unit)
{
    size_t len = unit ? strlen(unit) : 0;

    return len > 3 && strcmp(unit + len - 3, ".cu") == 0;
}

static int by_address(const void *left, const void *right)
{
    const struct row *a = left, *b = right;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static void read_program(struct gm_lines *lines)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    Dwarf *dwarf = fd >= 0 ? dwarf_begin(fd, DWARF_C_READ) : NULL;
    Dwarf_CU *unit = NULL;
    Dwarf_Half version;
    Dwarf_Die die, type;
    Dwarf_Files *files;
    size_t count;
    uint8_t kind;
    int found;

    if (!dwarf)
        give_up();
    while ((found = dwarf_get_units(dwarf, unit, &unit, &version, &kind, &die, &type)) == 0) {
        if (kind != DW_UT_compile || !is_kernels(dwarf_diename(&die)))
            continue;
        read_rows(lines, &die);
        if (dwarf_getsrcfiles(&die, &files, &count) != 0)
            give_up();
        read_scopes(lines, &die, files, 0);
    }
    if (found < 0)
        give_up();
    qsort(lines->row.at, lines->row.count, lines->row.size, by_address);
    dwarf_end(dwarf);
    close(fd);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

/* Their allocators have locks that a child of a process with threads may wait for for ever. */
static bool read_elsewhere(struct gm_lines *lines)
{
    read_program(lines);
    return true;
}

#else

static bool write_all(int fd, const void *from, size_t bytes)
{
    const char *at = from;

    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool read_all(int fd, void *to, size_t bytes)
{
    char *at = to;

    while (bytes > 0) {
        ssize_t n = read(fd, at, bytes);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool hand_over(int fd, const struct list *list)
{
    return write_all(fd, &list->count, sizeof(list->count)) &&
           write_all(fd, list->at, list->count * list->size);
}

static bool take_over(int fd, struct list *list)
{
    size_t count;

    if (!read_all(fd, &count, sizeof(count)) || !(list->at = calloc(count + 1, list->size)))
        return false;
    list->count = list->room = count;
    return read_all(fd, list->at, count * list->size);
}

static bool read_elsewhere(struct gm_lines *lines)
{
    int ends[2], state = 0;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t reader = fork();
    if (reader == 0) {
        close(ends[0]); /* so that a write fails when nobody reads any more */
        read_program(lines);
        bool all = hand_over(ends[1], &lines->row) && hand_over(ends[1], &lines->scope) &&
                   hand_over(ends[1], &lines->text);
        _exit(all ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    close(ends[1]);
    bool all = reader > 0 && take_over(ends[0], &lines->row) && take_over(ends[0], &lines->scope) &&
               take_over(ends[0], &lines->text);
    close(ends[0]);
    while (reader > 0 && waitpid(reader, &state, 0) < 0 && errno == EINTR)
        ;
    return all;
}

#endif

struct gm_lines *gm_lines_open(bool there, uintptr_t base)
{
    struct gm_lines *lines = calloc(1, sizeof(*lines));

    if (!lines)
        return NULL;
    *lines = (struct gm_lines){.base = base,
                               .row.size = sizeof(struct row),
                               .scope.size = sizeof(struct scope),
                               .text.size = sizeof(struct text)};
    if (there && !read_elsewhere(lines)) {
        gm_lines_close(lines);
        return NULL;
    }
    return lines;
}

void gm_lines_close(struct gm_lines *lines)
{
    if (!lines)
        return;
    free(lines->row.at);
    free(lines->scope.at);
    free(lines->text.at);
    free(lines);
}

/* What the table says of an address; NULL if that is no code of a kernel. */
static const struct row *find_row(const struct gm_lines *lines, uint64_t at)
{
    const struct row *row = lines->row.at;
    size_t from = 0, to = lines->row.count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (row[middle].begin <= at)
            from = middle + 1;
        else
            to = middle;
    }
    return from > 0 && row[from - 1].line > 0 ? &row[from - 1] : NULL;
}

/* Whether a path, which may be a whole one, is of the vocabulary. */
static bool is_vocabulary(const char *file)
{
    for (size_t i = 0; i < sizeof(vocabulary) / sizeof(vocabulary[0]); i++) {
        const char *at = strstr(file, vocabulary[i]);
        if (at && (at == file || at[-1] == '/'))
            return true;
    }
    return false;
}

/* The scopes that hold an address, from the outermost. */
static unsigned find_scopes(const struct gm_lines *lines, uint64_t at,
                            const struct scope *ret[DEPTH_MAX])
{
    const struct scope *scope = lines->scope.at;
    unsigned found = 0;

    for (size_t i = 0; i < lines->scope.count && found < DEPTH_MAX; i++)
        if (at - scope[i].begin < scope[i].end - scope[i].begin)
            ret[found++] = &scope[i];
    return found;
}

void gm_lines_find(const struct gm_lines *lines, uintptr_t pc, struct gm_symbol_line *ret)
{
    const struct scope *scope[DEPTH_MAX];
    uint64_t at = pc - lines->base;
    const struct row *row = find_row(lines, at);
    const char *function = "";

    *ret = (struct gm_symbol_line){.line = 0};
    if (!row)
        return;
    uint32_t file = row->file, line = row->line;
    /* From the code outwards: through what was put into a function to that function. */
    for (unsigned i = find_scopes(lines, at, scope); i > 0 && *function == '\0'; i--) {
        function = text_at(lines, scope[i - 1]->function);
        if (*function == '\0' && scope[i - 1]->line > 0 && is_vocabulary(text_at(lines, file))) {
            file = scope[i - 1]->file;
            line = scope[i - 1]->line;
        }
    }
    ret->line = line;
    snprintf(ret->file, sizeof(ret->file), "%s", text_at(lines, file));
    /* "transpose_tiled<float>" is transpose_tiled */
    snprintf(ret->function, sizeof(ret->function), "%.*s", (int)strcspn(function, "<"), function);
}
