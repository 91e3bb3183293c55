#include "memory.h"

#include "proto/matrix.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* An unmapped gap before and after each buffer, which catches an index that is wrong by some rows,
 * or negative. It costs only addresses. */
#define GAP ((uint64_t)1 << 30)

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t gm_sim_memory_cost(uint64_t bytes)
{
    uint64_t page = page_bytes(), rounded;

    return gm_size_add(bytes, page - 1, &rounded) ? rounded / page * page : UINT64_MAX;
}

enum gm_status gm_sim_memory_add(struct gm_sim_memory *memory, const char *name, uint64_t bytes,
                                 bool writable, void **ret, struct gm_error *err)
{
    uint64_t total, pages = gm_sim_memory_cost(bytes > 0 ? bytes : 1);

    if (memory->count == GM_SIM_BUFFERS_MAX || !gm_size_add(pages, 2 * GAP, &total) ||
        total > SIZE_MAX)
        return gm_fail(err, GM_DEVICE_MEMORY, "the simulated device has no room for %llu bytes",
                       (unsigned long long)bytes);
    char *map = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return gm_fail(err, GM_DEVICE_MEMORY, "no memory for %llu bytes of the simulated device",
                       (unsigned long long)bytes);
    if (mprotect(map + GAP, pages, PROT_READ | PROT_WRITE) != 0) {
        munmap(map, total);
        return gm_fail(err, GM_DEVICE_MEMORY, "no memory for %llu bytes of the simulated device",
                       (unsigned long long)bytes);
    }
    if (memory->pages_max > 0)
        madvise(map + GAP, pages, MADV_NOHUGEPAGE);
    struct gm_sim_buffer *buffer = &memory->buffer[memory->count++];
    *buffer = (struct gm_sim_buffer){.begin = (uintptr_t)map + GAP,
                                     .end = (uintptr_t)map + GAP + bytes,
                                     .writable = writable,
                                     .map = map,
                                     .map_bytes = total,
                                     .usable_bytes = pages};
    snprintf(buffer->name, sizeof(buffer->name), "%s", name);
    *ret = map + GAP;
    return GM_OK;
}

void gm_sim_memory_clear(struct gm_sim_memory *memory)
{
    for (unsigned i = 0; i < memory->count; i++)
        munmap(memory->buffer[i].map, memory->buffer[i].map_bytes);
    memset(memory, 0, sizeof(*memory));
}

uint32_t gm_sim_memory_pages(uint64_t bytes)
{
    uint64_t pages = bytes / (2 * page_bytes());

    return pages > UINT32_MAX ? UINT32_MAX : pages < 1 ? 1 : (uint32_t)pages;
}

/* Replaces the pages by new ones: madvise() would leave the page tables, which for pages far apart
 * take as much again. Whoever accesses them meanwhile gets an old page or a new one. Huge pages
 * would be counted as small ones, so the new mapping excludes them before it takes the old one's
 * place. */
static void give_back(const struct gm_sim_buffer *buffer)
{
    void *at = (char *)buffer->map + GAP;
    size_t bytes = buffer->usable_bytes;
    void *new = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (new != MAP_FAILED) {
        madvise(new, bytes, MADV_NOHUGEPAGE);
        if (mremap(new, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at)
            return;
        munmap(new, bytes);
    }
    madvise(at, bytes, MADV_DONTNEED);
}

void gm_sim_memory_touch(struct gm_sim_memory *memory)
{
    if (memory->pages_max == 0 ||
        atomic_fetch_add_explicit(&memory->pages, 1, memory_order_relaxed) + 1 != memory->pages_max)
        return;
    for (unsigned i = 0; i < memory->count; i++)
        give_back(&memory->buffer[i]);
    atomic_fetch_add(&memory->given_back, 1);
    atomic_store(&memory->pages, 0);
}
