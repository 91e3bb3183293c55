/*
 * symbols.c - shared variables are thread-local ones (see include/simt.h). The symbol table has
 * their places and sizes, which is what makes an index that leaves one of them visible.
 * A variable within a function has a mangled name of _ZZ function E variable.
 */
#include "symbols.h"

#include "lines.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A known place among a thread's variables, from which the others are found; as aligned as they
 * are, so that the distance to them does not depend on the thread. */
_Thread_local char gm_sim_anchor[128] __attribute__((aligned(128)));

#define CONSTANTS_MAX 8 /* segments of the program that are not writable: three or four */

struct gm_symbols {
    struct gm_lines *lines;
    bool has_lines, relative; /* debugging information; addresses from the begin of the program */
    size_t anchor, first;     /* offsets in the program's thread-local memory */
    size_t shared_count, shared_room, kernel_count, kernel_room;
    struct gm_symbol_shared *shared;
    struct gm_symbol_kernel *kernel; /* all functions, in the order of their addresses */
    unsigned constant_count;
    struct {
        uintptr_t begin, end;
    } constant[CONSTANTS_MAX];
};

/* Makes room for one more. */
static bool grow(void **array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return true;
    size_t more = *room > 0 ? 2 * *room : 64;
    void *larger = realloc(*array, more * size);
    if (!larger)
        return false;
    *array = larger;
    *room = more;
    return true;
}

/* "4tile" within a mangled name: the length, then the name. */
static bool mangled_name(const char *text, char *buf, size_t size)
{
    char *rest;
    unsigned long len = strtoul(text, &rest, 10);

    if (rest == text || len == 0 || len > strlen(rest))
        return false;
    snprintf(buf, size, "%.*s", (int)len, rest);
    return true;
}

/* The E that ends the function's part of _ZZ function E variable is the last one followed by a
 * number; a variable's own name has no E after that number begins. */
static const char *variable_part(const char *name)
{
    char ignored[32];

    for (const char *at = name + strlen(name); at > name; at--) {
        if (at[-1] == 'E' && mangled_name(at, ignored, sizeof(ignored))) {
            char *rest;
            unsigned long len = strtoul(at, &rest, 10);
            if (len <= strlen(rest) && (rest[len] == '\0' || rest[len] == '_'))
                return at;
        }
    }
    return NULL;
}

static bool add_shared(struct gm_symbols *s, const char *name, const GElf_Sym *sym)
{
    const char *variable = variable_part(name + 3);
    struct gm_symbol_shared shared = {.begin = sym->st_value, .end = sym->st_value + sym->st_size};

    if (!variable || !mangled_name(variable, shared.name, sizeof(shared.name)))
        return true; /* not one of ours */
    shared.owner = strndup(name + 3, (size_t)(variable - 1 - (name + 3)));
    if (!shared.owner ||
        !grow((void **)&s->shared, s->shared_count, &s->shared_room, sizeof(*s->shared))) {
        free(shared.owner);
        return false;
    }
    s->shared[s->shared_count++] = shared;
    return true;
}

/* Where the program's own addresses are counted from. */
static uintptr_t base_of(const struct gm_symbols *s)
{
    return s->relative ? gm_symbols_base() : 0;
}

static bool add_kernel(struct gm_symbols *s, const char *name, const GElf_Sym *sym)
{
    struct gm_symbol_kernel kernel = {.address = sym->st_value + base_of(s)};

    kernel.mangled = strdup(strncmp(name, "_Z", 2) == 0 ? name + 2 : name);
    if (!kernel.mangled ||
        !grow((void **)&s->kernel, s->kernel_count, &s->kernel_room, sizeof(*s->kernel))) {
        free(kernel.mangled);
        return false;
    }
    s->kernel[s->kernel_count++] = kernel;
    return true;
}

static bool read_symbol(struct gm_symbols *s, const char *name, const GElf_Sym *sym)
{
    if (GELF_ST_TYPE(sym->st_info) == STT_TLS && strcmp(name, "gm_sim_anchor") == 0)
        s->anchor = sym->st_value + 1; /* 0 is for not found */
    if (sym->st_size == 0 || sym->st_shndx == SHN_UNDEF)
        return true;
    if (GELF_ST_TYPE(sym->st_info) == STT_TLS && strncmp(name, "_ZZ", 3) == 0)
        return add_shared(s, name, sym);
    if (GELF_ST_TYPE(sym->st_info) == STT_FUNC && strncmp(name, "_Z", 2) == 0)
        return add_kernel(s, name, sym);
    return true;
}

static bool read_table(struct gm_symbols *s, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);

    if (!data || header->sh_entsize == 0)
        return false;
    for (size_t i = 0; i < header->sh_size / header->sh_entsize; i++) {
        GElf_Sym sym;
        const char *name;
        if (!gelf_getsym(data, (int)i, &sym) ||
            !(name = elf_strptr(elf, header->sh_link, sym.st_name)))
            return false;
        if (!read_symbol(s, name, &sym))
            return false;
    }
    return true;
}

static bool read_program(struct gm_symbols *s)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    Elf *elf = NULL;
    GElf_Ehdr ehdr;
    size_t names;
    bool ok = false;

    elf_version(EV_CURRENT);
    if (fd >= 0)
        elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (!elf || !gelf_getehdr(elf, &ehdr) || elf_getshdrstrndx(elf, &names) != 0)
        goto out;
    s->relative = ehdr.e_type == ET_DYN;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name = NULL;
        if (gelf_getshdr(section, &header))
            name = elf_strptr(elf, names, header.sh_name);
        if (name && header.sh_type == SHT_SYMTAB)
            ok = read_table(s, elf, section, &header);
        if (name && strcmp(name, ".debug_line") == 0)
            s->has_lines = true;
    }
out:
    if (elf)
        elf_end(elf);
    if (fd >= 0)
        close(fd);
    return ok && s->anchor > 0;
}

/* Called for the program itself first, which is the one that is wanted. */
static int read_segments(struct dl_phdr_info *program, size_t size, void *cls)
{
    struct gm_symbols *s = cls;

    (void)size;
    for (int i = 0; i < program->dlpi_phnum && s->constant_count < CONSTANTS_MAX; i++) {
        const ElfW(Phdr) *segment = &program->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
            continue;
        s->constant[s->constant_count].begin = program->dlpi_addr + segment->p_vaddr;
        s->constant[s->constant_count++].end =
            program->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    }
    return 1;
}

bool gm_symbols_constant(const struct gm_symbols *s, uintptr_t at, size_t bytes)
{
    for (unsigned i = 0; i < s->constant_count; i++)
        if (at >= s->constant[i].begin && at + bytes <= s->constant[i].end)
            return true;
    return false;
}

static int by_begin(const void *left, const void *right)
{
    const struct gm_symbol_shared *a = left, *b = right;

    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static int by_address(const void *left, const void *right)
{
    const struct gm_symbol_kernel *a = left, *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

static bool is_function(const struct gm_symbols *s, const char *mangled)
{
    for (size_t i = 0; i < s->kernel_count; i++)
        if (strcmp(s->kernel[i].mangled, mangled) == 0)
            return true;
    return false;
}

enum gm_status gm_symbols_open(struct gm_symbols **ret, struct gm_error *err)
{
    struct gm_symbols *s = calloc(1, sizeof(*s));

    if (!s || !read_program(s)) {
        gm_symbols_close(s);
        return gm_fail(err, GM_DEVICE_UNAVAILABLE,
                       "the simulator needs this program's symbol table, and cannot read one");
    }
    s->lines = gm_lines_open(s->has_lines, base_of(s));
    if (!s->lines) {
        gm_symbols_close(s);
        return gm_fail(err, GM_MEMORY_FULL,
                       "no memory for the source lines of the simulator's kernels");
    }
    s->anchor--;
    dl_iterate_phdr(read_segments, s);
    qsort(s->kernel, s->kernel_count, sizeof(*s->kernel), by_address);
    if (s->shared_count > 0) {
        qsort(s->shared, s->shared_count, sizeof(*s->shared), by_begin);
        s->first = s->shared[0].begin;
    }
    for (size_t i = 0; i < s->shared_count; i++) {
        s->shared[i].begin -= s->first;
        s->shared[i].end -= s->first;
        s->shared[i].owner_is_kernel = is_function(s, s->shared[i].owner);
    }
    *ret = s;
    return GM_OK;
}

void gm_symbols_close(struct gm_symbols *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->shared_count; i++)
        free(s->shared[i].owner);
    for (size_t i = 0; i < s->kernel_count; i++)
        free(s->kernel[i].mangled);
    gm_lines_close(s->lines);
    free(s->shared);
    free(s->kernel);
    free(s);
}

const struct gm_symbol_kernel *gm_symbols_kernel(const struct gm_symbols *s, const void *address)
{
    struct gm_symbol_kernel key = {.address = (uintptr_t)address};

    return bsearch(&key, s->kernel, s->kernel_count, sizeof(*s->kernel), by_address);
}

size_t gm_symbols_shared_count(const struct gm_symbols *s)
{
    return s->shared_count;
}

const struct gm_symbol_shared *gm_symbols_shared(const struct gm_symbols *s, size_t index)
{
    return &s->shared[index];
}

size_t gm_symbols_shared_at(const struct gm_symbols *s, size_t offset)
{
    size_t low = 0, high = s->shared_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (offset < s->shared[middle].begin)
            high = middle;
        else if (offset >= s->shared[middle].end)
            low = middle + 1;
        else
            return middle;
    }
    return GM_SYMBOLS_NONE;
}

bool gm_symbols_shared_of(const struct gm_symbol_shared *shared,
                          const struct gm_symbol_kernel *kernel)
{
    return !shared->owner_is_kernel || strcmp(shared->owner, kernel->mangled) == 0;
}

uint64_t gm_symbols_shared_bytes(const struct gm_symbols *s, const struct gm_symbol_kernel *kernel)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->shared_count; i++)
        if (strcmp(s->shared[i].owner, kernel->mangled) == 0)
            bytes += (s->shared[i].end - s->shared[i].begin + 15) / 16 * 16;
    return bytes;
}

size_t gm_symbols_shared_span(const struct gm_symbols *s)
{
    return s->shared_count > 0 ? s->shared[s->shared_count - 1].end : 0;
}

uintptr_t gm_symbols_shared_here(const struct gm_symbols *s)
{
    return (uintptr_t)gm_sim_anchor - s->anchor + s->first;
}

void gm_symbols_line(const struct gm_symbols *s, uintptr_t pc, struct gm_symbol_line *ret)
{
    gm_lines_find(s->lines, pc, ret);
}
