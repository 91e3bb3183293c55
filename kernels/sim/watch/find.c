#include "find.h"

#include <stdio.h>

bool gm_sim_is_constant(const struct gm_sim_worker *w, uintptr_t at, size_t bytes)
{
    const struct gm_sim_launch *launch = w->job->launch;

    return (at >= (uintptr_t)launch->call &&
            at + bytes <= (uintptr_t)launch->call + launch->call_bytes) ||
           gm_symbols_constant(w->job->symbols, at, bytes);
}

/* Finds the shared variable of the kernel, or of a function that it calls, that holds the bytes at
 * `offset`. */
static bool find_variable(const struct gm_sim_job *job, size_t offset, size_t bytes,
                          unsigned *memory)
{
    for (unsigned i = 0; i < job->variables; i++) {
        const struct gm_sim_variable *variable = &job->variable[i];
        if (offset >= variable->begin && offset + bytes <= variable->end) {
            *memory = GM_SIM_SHARED + variable->index;
            return true;
        }
    }
    size_t index = gm_symbols_shared_at(job->symbols, offset);
    if (index == GM_SYMBOLS_NONE)
        return false;
    const struct gm_symbol_shared *shared = gm_symbols_shared(job->symbols, index);
    *memory = GM_SIM_SHARED + (unsigned)index;
    return offset + bytes <= shared->end && gm_symbols_shared_of(shared, job->kernel);
}

bool gm_sim_find_shared(const struct gm_sim_worker *w, uintptr_t at, size_t bytes, unsigned *memory,
                        struct gm_shadow_cell **cells, size_t *cell)
{
    uintptr_t offset = at - w->statics;

    if (offset < w->shadow.static_bytes) {
        *cells = w->shadow.statics;
        *cell = offset;
        return find_variable(w->job, offset, bytes, memory);
    }
    offset = at - (uintptr_t)w->dynamic;
    *memory = GM_SIM_DYNAMIC;
    *cells = w->shadow.dynamics;
    *cell = offset;
    return offset < w->job->launch->dynamic_shared &&
           offset + bytes <= w->job->launch->dynamic_shared;
}

/* Describes the byte at `offset` as an element of a shared variable: "tile[8][0]". */
static void say_element(const struct gm_symbol_shared *s, size_t offset, char *buf, size_t size)
{
    const struct gm_sim_shared *of = s->from;
    size_t element = of->bytes, used = (size_t)snprintf(buf, size, "%s", of->name);

    for (unsigned i = 0; i < GM_SIM_DIMS_MAX && of->dim[i] > 0 && used < size; i++) {
        element /= of->dim[i];
        used += (size_t)snprintf(buf + used, size - used, "[%zu]", offset / element);
        offset %= element;
    }
    if (offset > 0 && used < size)
        snprintf(buf + used, size - used, " + %zu", offset);
}

/* Lower addresses are null pointers, because the system leaves them free. */
#define NULL_PAGE 4096u

void gm_sim_say_where(const struct gm_sim_worker *w, uintptr_t at, char *buf, size_t size)
{
    const struct gm_sim_memory *memory = w->job->memory;
    const struct gm_symbol_shared *shared = NULL;
    const char *name = "";
    uintptr_t begin = 0, end = 0, least = UINTPTR_MAX;

    if (at < NULL_PAGE) {
        snprintf(buf, size, "a null pointer");
        return;
    }
    for (unsigned i = 0; i < memory->count; i++) {
        const struct gm_sim_buffer *b = &memory->buffer[i];
        uintptr_t away = at < b->begin ? b->begin - at : at >= b->end ? at - b->end + 1 : 0;
        if (away < least) {
            least = away;
            name = b->name;
            begin = b->begin;
            end = b->end;
        }
    }
    for (size_t i = 0; i < gm_symbols_shared_count(w->job->symbols); i++) {
        const struct gm_symbol_shared *s = gm_symbols_shared(w->job->symbols, i);
        uintptr_t from = w->statics + s->begin, to = w->statics + s->end;
        uintptr_t away = at < from ? from - at : at >= to ? at - to + 1 : 0;
        if (away < least && gm_symbols_shared_of(s, w->job->kernel)) {
            least = away;
            name = s->from->name;
            shared = s;
            begin = from;
            end = to;
        }
    }
    if (w->job->launch->dynamic_shared > 0 &&
        at - (uintptr_t)w->dynamic < w->shadow.dynamic_bytes) {
        name = "dynamic shared memory";
        begin = (uintptr_t)w->dynamic;
        end = begin + w->job->launch->dynamic_shared;
    } else if (shared && at >= begin && at < end) {
        say_element(shared, at - begin, buf, size);
        return;
    }
    snprintf(buf, size, "%s %c %llu, which has %llu bytes", name, at < begin ? '-' : '+',
             (unsigned long long)(at < begin ? begin - at : at - begin),
             (unsigned long long)(end - begin));
}
