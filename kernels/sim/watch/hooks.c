/*
 * hooks.c - is called by compiled kernels before each load and store, at each step, and before UB.
 *
 * These are the hooks of GCC's -fsanitize=thread, -fsanitize-coverage=trace-pc, and of
 * -fsanitize=bounds and similar checks. They are renamed in the kernels' objects (hooks.syms), so
 * that a program that is itself built with sanitizers keeps their functions for its own code.
 */
#include "dependent.h"
#include "find.h"

#include <stdio.h>
#include <string.h>

/* The smallest page size; a larger page counts as several. */
#define PAGE_BYTES 4096u

_Thread_local struct gm_sim_worker *gm_sim_worker;

static const char *const access_words[] = {"read", "written", "updated", "exchanged"};

static _Noreturn void fail_bounds(struct gm_sim_worker *w, uintptr_t at, size_t bytes,
                                  enum gm_shadow_how how, uintptr_t pc)
{
    char where[120];

    gm_sim_say_where(w, at, where, sizeof(where));
    if (w->current->bad_pc != 0)
        gm_sim_fail(w, pc, "out of bounds: index %lld; %zu bytes are %s at %#llx, %s",
                    w->current->bad_index, bytes, access_words[how], (unsigned long long)at, where);
    gm_sim_fail(w, pc, "out of bounds: %zu bytes are %s at %#llx, %s", bytes, access_words[how],
                (unsigned long long)at, where);
}

/* A race: `other` accessed at pc[0] before, `how` at pc[1], and no barrier lies between. */
struct race {
    struct gm_sim_thread *thread; /* the thread that accessed at pc[1] */
    char other[48];
    bool several, one_warp;
    const char *word[2];
    uintptr_t pc[2], at;
};

static _Noreturn void fail_race(struct gm_sim_worker *w, const struct race *race)
{
    struct gm_symbol_line line[2];
    char where[120], place[2][120];
    const char *s = race->several ? "" : "s";

    gm_sim_say_where(w, race->at, where, sizeof(where));
    for (unsigned i = 0; i < 2; i++)
        gm_symbols_line(race->pc[i], &line[i]);
    bool one_file = strcmp(line[0].file, line[1].file) == 0;
    for (unsigned i = 0; i < 2; i++)
        snprintf(place[i], sizeof(place[i]), one_file ? "line %u" : "line %u of %s", line[i].line,
                 line[i].file);
    w->unwritten.reader = NULL;
    if (one_file && line[0].line == line[1].line && strcmp(race->word[0], "write") == 0 &&
        strcmp(race->word[1], "write") == 0)
        gm_sim_fail_of(w, race->thread, race->pc[1],
                       "race: %s and this one write here, with no barrier between: %s", race->other,
                       where);
    else
        gm_sim_fail_of(w, race->thread, race->pc[1],
                       "race: missing __syncthreads%s between the %s at %s and the %s at %s: %s "
                       "%s%s and this one %ss %s",
                       race->one_warp ? " or __syncwarp" : "", race->word[0], place[0],
                       race->word[1], place[1], race->other, race->word[0], s, race->word[1],
                       where);
    gm_sim_fail(w, race->pc[1], "race"); /* ends the block; the first report stays */
}

static void say_thread(const struct gm_sim_thread *t, char *buf, size_t size)
{
    snprintf(buf, size, "thread (%u,%u,%u)", t->idx.x, t->idx.y, t->idx.z);
}

/* How long a read of unwritten memory may wait for its writer, in events of the block. */
#define UNWRITTEN_EVENTS (1u << 20)

static void note_unwritten(struct gm_sim_worker *w, uintptr_t at, size_t bytes, uintptr_t pc,
                           enum gm_shadow_how how)
{
    char where[120];

    if (w->unwritten.reader || w->left_out)
        return;
    gm_sim_say_where(w, at, where, sizeof(where));
    w->unwritten.reader = w->current;
    w->unwritten.at = at;
    w->unwritten.pc = pc;
    w->unwritten.bytes = bytes;
    w->unwritten.end = w->events + UNWRITTEN_EVENTS;
    snprintf(w->unwritten.text, sizeof(w->unwritten.text),
             "uninitialised: nobody of the block wrote the shared memory that is %s: %s",
             access_words[how], where);
}

/* Another thread writes what was read before anyone wrote it. */
static _Noreturn void fail_early_read(struct gm_sim_worker *w, uintptr_t pc)
{
    struct race race = {.thread = w->unwritten.reader,
                        .one_warp = w->unwritten.reader->warp == w->current->warp,
                        .word = {"write", "read"},
                        .pc = {pc, w->unwritten.pc},
                        .at = w->unwritten.at};

    say_thread(w->current, race.other, sizeof(race.other));
    fail_race(w, &race);
}

static void check_shadow(struct gm_sim_worker *w, enum gm_shadow_verdict verdict, uintptr_t at,
                         size_t bytes, enum gm_shadow_how how, struct gm_shadow_other other,
                         uintptr_t pc)
{
    static const char *const words[] = {"read", "write", "update", "exchange"};
    struct gm_sim_thread *t = w->current;

    if (verdict == GM_SHADOW_FINE)
        return;
    if (verdict == GM_SHADOW_UNWRITTEN) {
        note_unwritten(w, at, bytes, pc, how);
        return;
    }
    const char *before = words[verdict == GM_SHADOW_AFTER_WRITE ? GM_SHADOW_WRITE : GM_SHADOW_READ];
    struct race race = {.thread = t,
                        .other = "several threads",
                        .several = other.thread == UINT16_MAX,
                        .word = {before, words[how]},
                        .pc = {gm_sim_key_pc(other.where), pc},
                        .at = at};
    if (!race.several) {
        say_thread(&w->thread[other.thread], race.other, sizeof(race.other));
        race.one_warp = w->thread[other.thread].warp == t->warp;
    }
    fail_race(w, &race);
}

/* UBSan's check saw an index beyond an array at a line: is this the access with it? */
static void check_index(struct gm_sim_worker *w, uintptr_t at, size_t bytes, enum gm_shadow_how how,
                        uintptr_t pc)
{
    struct gm_sim_thread *t = w->current;
    struct gm_symbol_line line;

    gm_symbols_line(pc, &line);
    bool same = line.line == t->bad_line;
    if (same && (gm_sim_is_local(w, at) || at - w->statics < w->shadow.static_bytes))
        fail_bounds(w, at, bytes, how, pc);
    if (++t->bad_accesses >= 8)
        gm_sim_fail(w, t->bad_pc, "out of bounds: index %lld", t->bad_index);
}

/* In a sample: whether this thread executed this place often enough. Further accesses there are
 * only counted, and still checked for their bounds. */
static inline __attribute__((always_inline)) bool seen_enough(struct gm_sim_worker *w, uint32_t key)
{
    unsigned place = gm_tally_place(&w->tally, key);

    if (place == GM_TALLY_PLACES)
        return false;
    uint16_t *seen = &w->repeats[w->current->tid][place];
    if (*seen < w->job->repeats_max) {
        *seen = (uint16_t)(*seen + 1);
        return false;
    }
    w->tally.unlogged[place] += w->warp_weight;
    return true;
}

/* Counts an event of a lane, and checks for a stop now and then and at the thread's limit. */
static inline __attribute__((always_inline)) void count_event(struct gm_sim_worker *w, uintptr_t pc)
{
    if ((uintptr_t)__builtin_frame_address(0) < w->current->stack_floor)
        gm_sim_fail(w, pc, "a thread's own variables take more than the simulator's %zu bytes",
                    GM_SIM_STACK_BYTES);
    if (++w->events >= w->look_at)
        gm_sim_look(w);
}

/* In a sample, pages of global memory cost time, and memory until they are given back. They are
 * numbered by position in the buffer, so that the report does not depend on the buffer's
 * address. */
static void note_page(struct gm_sim_worker *w, unsigned buffer, uintptr_t at)
{
    struct gm_sim_memory *memory = w->job->memory;
    uint32_t given_back = atomic_load_explicit(&memory->given_back, memory_order_relaxed);
    uint64_t number =
        (at - memory->buffer[buffer].begin) / PAGE_BYTES * GM_SIM_BUFFERS_MAX + buffer + 1;
    struct gm_sim_page *page =
        &w->page[number * UINT64_C(0x9E3779B97F4A7C15) >> 32 & (GM_SIM_PAGES - 1)];

    bool known = page->number == number && page->round == w->round;
    if (known && page->given_back == given_back)
        return;
    if (!known) {
        w->events += GM_SIM_PAGE_EVENTS;
        w->page_events += GM_SIM_PAGE_EVENTS;
        /* The first to touch a page does so for all: its own part of the budget stays. */
        if (w->events < w->job->block_max / 2)
            w->thread_end += GM_SIM_PAGE_EVENTS;
        if (w->page_events / GM_SIM_PAGE_EVENTS % memory->pages_max == 0)
            w->round++;
    }
    *page = (struct gm_sim_page){number, w->round, given_back};
    gm_sim_memory_touch(memory);
}

/* The next event of the running lane's log, once there is room. */
static inline __attribute__((always_inline)) struct gm_sim_event *
next_event(struct gm_sim_worker *w)
{
    unsigned lane = w->current->tid % GM_WARP, end = w->log_end[lane];

    if (end == GM_SIM_LOG_EVENTS) {
        gm_sim_yield(w);
        end = w->log_end[lane];
    }
    w->log_end[lane] = end + 1;
    return &w->log[lane][end];
}

static const enum gm_access_kind global_kinds[] = {GM_GLOBAL_LOAD, GM_GLOBAL_STORE,
                                                   GM_GLOBAL_ATOMIC, GM_GLOBAL_ATOMIC};
static const enum gm_access_kind shared_kinds[] = {GM_SHARED_LOAD, GM_SHARED_STORE,
                                                   GM_SHARED_ATOMIC, GM_SHARED_ATOMIC};

static void access_buffer(struct gm_sim_worker *w, unsigned memory, uintptr_t at, size_t bytes,
                          enum gm_shadow_how how, uintptr_t pc)
{
    const struct gm_sim_buffer *buffer = &w->job->memory->buffer[memory];
    const struct gm_sim_thread *t = w->current;
    struct gm_shadow_other other = {UINT16_MAX, 0};

    if (!buffer->writable) {
        if (how != GM_SHADOW_READ)
            gm_sim_fail(w, pc, "out of bounds: operand %s is written at %#llx, %s + %llu",
                        buffer->name, (unsigned long long)at, buffer->name,
                        (unsigned long long)(at - buffer->begin));
        return;
    }
    enum gm_shadow_verdict verdict = gm_shadow_access_global(&w->shadow, at, bytes, how, t->tid,
                                                             t->synced, gm_sim_key(pc, 0), &other);
    check_shadow(w, verdict, at, bytes, how, other, pc);
    gm_sim_note_access(w, memory, (struct gm_sim_extent){at, at + bytes}, how != GM_SHADOW_WRITE,
                       how != GM_SHADOW_READ, pc);
}

/* One access, as the hardware makes it: a power of two, aligned to its size. */
static void touch(struct gm_sim_worker *w, uintptr_t at, size_t bytes, enum gm_shadow_how how,
                  uintptr_t pc, unsigned piece)
{
    const struct gm_sim_thread *t = w->current;
    uint32_t key = gm_sim_key(pc, piece);
    struct gm_shadow_cell *cells = NULL;
    size_t cell = 0;

    if (t->bad_pc != 0)
        check_index(w, at, bytes, how, pc);
    if (gm_sim_is_local(w, at))
        return;
    unsigned index = gm_sim_find(w, at, bytes, &cells, &cell);
    if (index == GM_SIM_NOWHERE) {
        if (how == GM_SHADOW_READ && gm_sim_is_constant(w, at, bytes))
            return;
        fail_bounds(w, at, bytes, how, pc);
    }
    if (!cells && w->job->memory->pages_max > 0)
        note_page(w, index, at);
    count_event(w, pc);
    if (w->repeats && seen_enough(w, key)) {
        w->left_out |= cells && how != GM_SHADOW_READ;
        return;
    }
    if (at % bytes != 0)
        gm_sim_fail(w, pc, "misaligned: %zu bytes are %s at %#llx", bytes, access_words[how],
                    (unsigned long long)at);
    if (cells) {
        struct gm_shadow_other other = {UINT16_MAX, 0};
        enum gm_shadow_verdict verdict =
            gm_shadow_access(&w->shadow, cells, cell, bytes, how, t->tid, t->synced, key, &other);
        check_shadow(w, verdict, at, bytes, how, other, pc);
        if (how != GM_SHADOW_READ && w->unwritten.reader && w->unwritten.reader != t &&
            at < w->unwritten.at + w->unwritten.bytes && w->unwritten.at < at + bytes)
            fail_early_read(w, pc);
    } else {
        access_buffer(w, index, at, bytes, how, pc);
    }
    *next_event(w) =
        (struct gm_sim_event){.key = key,
                              .kind = (uint8_t)(cells ? shared_kinds[how] : global_kinds[how]),
                              .bytes = (uint8_t)bytes,
                              .memory = (uint16_t)index,
                              .address = at};
}

/* Structures without an instruction of their size are moved in pieces, as on the device. */
static void touch_pieces(struct gm_sim_worker *w, uintptr_t at, size_t bytes,
                         enum gm_shadow_how how, uintptr_t pc)
{
    size_t step = 8;
    unsigned piece = 0;

    while ((at | bytes) % step != 0)
        step /= 2;
    for (size_t done = 0; done < bytes; done += step, piece++)
        touch(w, at + done, step, how, pc, piece < GM_SIM_ASYNC ? piece : GM_SIM_ASYNC - 1);
}

#define CALLER ((uintptr_t)__builtin_return_address(0) - 1)
#define IN_KERNEL (gm_sim_worker && gm_sim_worker->current)

#define HOOKS(bytes)                                                                               \
    void gm_sim_read##bytes(void *at);                                                             \
    void gm_sim_read##bytes(void *at)                                                              \
    {                                                                                              \
        if (IN_KERNEL)                                                                             \
            touch(gm_sim_worker, (uintptr_t)at, bytes, GM_SHADOW_READ, CALLER, 0);                 \
    }                                                                                              \
    void gm_sim_write##bytes(void *at);                                                            \
    void gm_sim_write##bytes(void *at)                                                             \
    {                                                                                              \
        if (IN_KERNEL)                                                                             \
            touch(gm_sim_worker, (uintptr_t)at, bytes, GM_SHADOW_WRITE, CALLER, 0);                \
    }                                                                                              \
    void gm_sim_unaligned_read##bytes(void *at);                                                   \
    void gm_sim_unaligned_read##bytes(void *at)                                                    \
    {                                                                                              \
        if (IN_KERNEL)                                                                             \
            touch_pieces(gm_sim_worker, (uintptr_t)at, bytes, GM_SHADOW_READ, CALLER);             \
    }                                                                                              \
    void gm_sim_unaligned_write##bytes(void *at);                                                  \
    void gm_sim_unaligned_write##bytes(void *at)                                                   \
    {                                                                                              \
        if (IN_KERNEL)                                                                             \
            touch_pieces(gm_sim_worker, (uintptr_t)at, bytes, GM_SHADOW_WRITE, CALLER);            \
    }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void gm_sim_read_range(void *at, size_t bytes);
void gm_sim_read_range(void *at, size_t bytes)
{
    if (IN_KERNEL)
        touch_pieces(gm_sim_worker, (uintptr_t)at, bytes, GM_SHADOW_READ, CALLER);
}

void gm_sim_write_range(void *at, size_t bytes);
void gm_sim_write_range(void *at, size_t bytes)
{
    if (IN_KERNEL)
        touch_pieces(gm_sim_worker, (uintptr_t)at, bytes, GM_SHADOW_WRITE, CALLER);
}

void gm_sim_step(void);
void gm_sim_step(void)
{
    struct gm_sim_worker *w = gm_sim_worker;
    uint32_t key = gm_sim_key(CALLER, 0);

    if (!IN_KERNEL)
        return;
    count_event(w, CALLER);
    if (w->repeats && seen_enough(w, key))
        return;
    struct gm_sim_event *event = next_event(w);
    event->key = key; /* nothing else is read of a step */
    event->kind = GM_SIM_STEP;
}

/* Each kernel file calls this when the program starts. */
void gm_sim_init(void);
void gm_sim_init(void)
{
}

uint64_t gm_sim_atomic_begin(void *at, size_t bytes, bool needs_value)
{
    uint64_t value = 0;

    if (IN_KERNEL)
        touch(gm_sim_worker, (uintptr_t)at, bytes,
              needs_value ? GM_SHADOW_ATOMIC : GM_SHADOW_EXCHANGE, CALLER, 0);
    if (bytes == 2)
        value = __atomic_load_n((uint16_t *)at, __ATOMIC_RELAXED);
    else if (bytes == 4)
        value = __atomic_load_n((uint32_t *)at, __ATOMIC_RELAXED);
    else
        value = __atomic_load_n((uint64_t *)at, __ATOMIC_RELAXED);
    return value;
}

#define SWAP_IF(type)                                                                              \
    do {                                                                                           \
        type seen = (type)expected;                                                                \
        __atomic_compare_exchange_n((type *)at, &seen, (type)desired, 0, __ATOMIC_RELAXED,         \
                                    __ATOMIC_RELAXED);                                             \
        before = seen;                                                                             \
    } while (0)

uint64_t gm_sim_atomic_swap_if(void *at, size_t bytes, uint64_t expected, uint64_t desired)
{
    uint64_t before;

    if (bytes == 2)
        SWAP_IF(uint16_t);
    else if (bytes == 4)
        SWAP_IF(uint32_t);
    else
        SWAP_IF(uint64_t);
    return before;
}

void gm_sim_copy_async(void *to, const void *from, size_t bytes, size_t zeros)
{
    uintptr_t pc = CALLER;

    if (!IN_KERNEL)
        return;
    size_t copied = zeros < bytes ? bytes - zeros : 0;
    if (bytes != 4 && bytes != 8 && bytes != 16)
        gm_sim_fail(gm_sim_worker, pc, "an asynchronous copy moves 4, 8 or 16 bytes, not %zu",
                    bytes);
    if (copied > 0)
        touch(gm_sim_worker, (uintptr_t)from, bytes, GM_SHADOW_READ, pc, GM_SIM_ASYNC);
    touch(gm_sim_worker, (uintptr_t)to, bytes, GM_SHADOW_WRITE, pc, 0);
    memcpy(to, from, copied);
    memset((char *)to + copied, 0, bytes - copied);
}

bool gm_sim_is_shared(const void *at)
{
    const struct gm_sim_worker *w = gm_sim_worker;

    return w && ((uintptr_t)at - (uintptr_t)w->dynamic < w->shadow.dynamic_bytes ||
                 (uintptr_t)at - w->statics < w->shadow.static_bytes);
}

/* What the compiler passes about undefined behaviour; all its records begin like this. The caller's
 * address gives the same place as the report names it. */
struct place {
    const char *file;
    uint32_t line, column;
};

/* An index may be out of an array's bounds while its address is still within some memory. Only the
 * access that follows has the address. */
void gm_sim_bad_index(const struct place *place, uintptr_t index);
void gm_sim_bad_index(const struct place *place, uintptr_t index)
{
    if (!IN_KERNEL)
        return;
    struct gm_sim_thread *t = gm_sim_worker->current;
    t->bad_pc = CALLER;
    t->bad_line = place->line;
    t->bad_index = (long long)index;
    t->bad_accesses = 0;
}

#define UNDEFINED(name, what)                                                                      \
    void gm_sim_bad_##name(const struct place *place);                                             \
    void gm_sim_bad_##name(const struct place *place)                                              \
    {                                                                                              \
        (void)place;                                                                               \
        if (IN_KERNEL)                                                                             \
            gm_sim_fail(gm_sim_worker, CALLER, "undefined: " what);                                \
    }
UNDEFINED(add, "a signed addition overflows")
UNDEFINED(sub, "a signed subtraction overflows")
UNDEFINED(mul, "a signed multiplication overflows")
UNDEFINED(negate, "a signed negation overflows")
UNDEFINED(divrem, "a division by zero, or whose result does not fit")
UNDEFINED(shift, "a shift by more than its type has bits")
