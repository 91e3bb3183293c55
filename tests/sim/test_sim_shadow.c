/*
 * test_sim_shadow.c - races and reads of what nobody wrote: the classic cases, then random accesses
 * of two warps and a half against the rule itself, by a list of all that was done.
 */
#include "kernels/sim/watch/shadow.h"
#include "tests/unit/operands.h"

#define THREADS 80u
#define BYTES 32u

static struct gm_shadow shadow;
static uint32_t synced[THREADS];

static void begin_block(void)
{
    gm_shadow_begin_block(&shadow);
    for (unsigned i = 0; i < THREADS; i++)
        synced[i] = shadow.barrier;
}

static void barrier(void)
{
    gm_shadow_barrier(&shadow);
    for (unsigned i = 0; i < THREADS; i++)
        synced[i] = shadow.barrier;
}

static void sync_warp(unsigned warp)
{
    uint32_t clock = gm_shadow_sync(&shadow);

    for (unsigned i = 32 * warp; i < 32 * warp + 32 && i < THREADS; i++)
        synced[i] = clock;
}

static struct gm_shadow_other other;
static enum gm_shadow_verdict touch(enum gm_shadow_how how, unsigned tid, size_t offset,
                                    size_t bytes)
{
    other = (struct gm_shadow_other){0xEEEE, 0};
    return gm_shadow_access(&shadow, shadow.statics, offset, bytes, how, tid, synced[tid],
                            100 + tid, &other);
}

static void test_classics(void)
{
    /* Written, then read: by itself, by a neighbour, after the warp's barrier, after the block's.
     */
    begin_block();
    CHECK_EQ(touch(GM_SHADOW_WRITE, 0, 0, 4), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_READ, 0, 0, 4), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_READ, 1, 0, 4), GM_SHADOW_AFTER_WRITE);
    CHECK_EQ(other.thread, 0);
    sync_warp(0);
    CHECK_EQ(touch(GM_SHADOW_READ, 1, 0, 4), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_READ, 33, 0, 4), GM_SHADOW_AFTER_WRITE);
    sync_warp(1);
    CHECK_EQ(touch(GM_SHADOW_READ, 33, 0, 4), GM_SHADOW_AFTER_WRITE);
    barrier();
    CHECK_EQ(touch(GM_SHADOW_READ, 33, 0, 4), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_READ, 65, 0, 4), GM_SHADOW_FINE);

    /* Read by two warps, then written by one of the readers, and by a third. */
    CHECK_EQ(touch(GM_SHADOW_WRITE, 33, 0, 4), GM_SHADOW_AFTER_READ);
    CHECK_EQ(other.thread, UINT16_MAX);
    barrier();
    CHECK_EQ(touch(GM_SHADOW_READ, 2, 0, 4), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_WRITE, 2, 0, 4), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_WRITE, 3, 0, 4), GM_SHADOW_AFTER_WRITE);
    CHECK_EQ(other.thread, 2);

    /* What the block before wrote is not written. */
    begin_block();
    CHECK_EQ(touch(GM_SHADOW_READ, 0, 0, 4), GM_SHADOW_UNWRITTEN);
    CHECK_EQ(touch(GM_SHADOW_ATOMIC, 0, 0, 4), GM_SHADOW_UNWRITTEN);
    CHECK_EQ(touch(GM_SHADOW_EXCHANGE, 0, 0, 4), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_ATOMIC, 40, 0, 4), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_READ, 40, 0, 4), GM_SHADOW_AFTER_WRITE);
    CHECK_EQ(touch(GM_SHADOW_WRITE, 40, 0, 4), GM_SHADOW_AFTER_WRITE);
}

/* Bytes of a word are told apart from when they are first used so, until the block ends. */
static void test_bytes(void)
{
    begin_block();
    CHECK_EQ(touch(GM_SHADOW_WRITE, 0, 0, 1), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_WRITE, 1, 1, 1), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_WRITE, 2, 2, 2), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_READ, 1, 1, 1), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_READ, 1, 0, 2), GM_SHADOW_AFTER_WRITE);
    CHECK_EQ(touch(GM_SHADOW_READ, 2, 0, 4), GM_SHADOW_AFTER_WRITE);
    CHECK_EQ(touch(GM_SHADOW_WRITE, 3, 3, 1), GM_SHADOW_AFTER_WRITE);
    CHECK_EQ(other.thread, 2);
    barrier();
    CHECK_EQ(touch(GM_SHADOW_READ, 5, 0, 4), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_WRITE, 5, 3, 1), GM_SHADOW_FINE);
    /* A whole word, and a byte in it that another thread writes. */
    CHECK_EQ(touch(GM_SHADOW_WRITE, 7, 8, 8), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_WRITE, 8, 13, 1), GM_SHADOW_AFTER_WRITE);
    CHECK_EQ(touch(GM_SHADOW_READ, 7, 8, 4), GM_SHADOW_FINE);
    /* Half of it unwritten. */
    CHECK_EQ(touch(GM_SHADOW_WRITE, 7, 16, 2), GM_SHADOW_FINE);
    CHECK_EQ(touch(GM_SHADOW_READ, 7, 16, 4), GM_SHADOW_UNWRITTEN);
    CHECK_EQ(touch(GM_SHADOW_READ, 7, 8, 8), GM_SHADOW_FINE);
}

static void test_global(void)
{
    const uint64_t at = UINT64_C(0x7F0012345600);

    begin_block();
    /* Nobody need have written it. */
    CHECK_EQ(gm_shadow_access_global(&shadow, at, 16, GM_SHADOW_READ, 0, synced[0], 100, &other),
             GM_SHADOW_FINE);
    CHECK_EQ(
        gm_shadow_access_global(&shadow, at + 12, 4, GM_SHADOW_WRITE, 1, synced[1], 101, &other),
        GM_SHADOW_AFTER_READ);
    CHECK_EQ(other.thread, 0);
    CHECK_EQ(
        gm_shadow_access_global(&shadow, at + 16, 4, GM_SHADOW_WRITE, 1, synced[1], 101, &other),
        GM_SHADOW_FINE);
    CHECK_EQ(
        gm_shadow_access_global(&shadow, at + 16, 4, GM_SHADOW_READ, 2, synced[2], 102, &other),
        GM_SHADOW_AFTER_WRITE);
    barrier();
    CHECK_EQ(
        gm_shadow_access_global(&shadow, at + 16, 4, GM_SHADOW_READ, 2, synced[2], 102, &other),
        GM_SHADOW_FINE);
    /* What another block did is not ordered, and not looked at. */
    begin_block();
    CHECK_EQ(
        gm_shadow_access_global(&shadow, at + 12, 4, GM_SHADOW_WRITE, 3, synced[3], 103, &other),
        GM_SHADOW_FINE);
    /* Neighbours of less than a word. */
    CHECK_EQ(
        gm_shadow_access_global(&shadow, at + 65, 1, GM_SHADOW_WRITE, 4, synced[4], 104, &other),
        GM_SHADOW_FINE);
    CHECK_EQ(
        gm_shadow_access_global(&shadow, at + 66, 1, GM_SHADOW_WRITE, 5, synced[5], 105, &other),
        GM_SHADOW_FINE);
    CHECK_EQ(
        gm_shadow_access_global(&shadow, at + 65, 1, GM_SHADOW_WRITE, 5, synced[5], 105, &other),
        GM_SHADOW_AFTER_WRITE);
}

/* The clock goes on over blocks, and begins anew in time. */
static void test_clock(void)
{
    begin_block();
    CHECK_EQ(touch(GM_SHADOW_WRITE, 0, 4, 4), GM_SHADOW_FINE);
    shadow.clock = UINT32_C(0xF0000001);
    begin_block();
    CHECK(shadow.clock < 10);
    CHECK_EQ(touch(GM_SHADOW_READ, 0, 4, 4), GM_SHADOW_UNWRITTEN);
}

/* ---- Against the rule -------------------------------------------------------------------- */

#define DONE_MAX 400
static struct done {
    enum gm_shadow_how how;
    unsigned tid;
    size_t begin, end;
    uint32_t when;
} done[DONE_MAX];
static unsigned done_count;

static bool is_atomic(enum gm_shadow_how how)
{
    return how == GM_SHADOW_ATOMIC || how == GM_SHADOW_EXCHANGE;
}

static bool is_ordered(const struct done *before, unsigned tid)
{
    return before->when < shadow.barrier ||
           (before->tid / 32 == tid / 32 && before->when < synced[tid]);
}

/* Whether a byte was written again since. */
static bool is_hidden(unsigned index, size_t byte)
{
    for (unsigned i = index + 1; i < done_count; i++)
        if (done[i].how != GM_SHADOW_READ && byte >= done[i].begin && byte < done[i].end)
            return true;
    return false;
}

/* What a byte's history says about an access: the worst first, as the shadow looks for it. Atomics
 * are told apart from the last write alone. */
static enum gm_shadow_verdict judge(size_t byte, enum gm_shadow_how how, unsigned tid)
{
    bool written = false, after_read = false;

    for (unsigned i = 0; i < done_count; i++) {
        const struct done *d = &done[i];
        if (byte < d->begin || byte >= d->end)
            continue;
        bool races = d->tid != tid && !is_ordered(d, tid);
        if (is_atomic(how) && d->how != GM_SHADOW_READ)
            races &= !is_atomic(d->how) && !is_hidden(i, byte);
        written |= d->how != GM_SHADOW_READ;
        if (d->how != GM_SHADOW_READ && races)
            return GM_SHADOW_AFTER_WRITE;
        after_read |= d->how == GM_SHADOW_READ && races && how != GM_SHADOW_READ;
    }
    if (!written && (how == GM_SHADOW_READ || how == GM_SHADOW_ATOMIC))
        return GM_SHADOW_UNWRITTEN;
    return after_read ? GM_SHADOW_AFTER_READ : GM_SHADOW_FINE;
}

static void test_random(void)
{
    uint64_t random = check_seed();
    unsigned long verdicts[4] = {0}, blocks = 0;

    while (blocks < 30000) {
        begin_block();
        done_count = 0;
        if (blocks++ % 8 != 0) {
            for (size_t at = 0; at < BYTES; at += 16)
                CHECK_EQ(touch(GM_SHADOW_WRITE, 0, at, 16), GM_SHADOW_FINE);
            done[done_count++] = (struct done){GM_SHADOW_WRITE, 0, 0, BYTES, shadow.clock};
            barrier();
        }
        enum gm_shadow_verdict expected = GM_SHADOW_FINE;
        while (expected == GM_SHADOW_FINE && done_count < DONE_MAX) {
            uint64_t what = random_below(&random, 12);
            if (what < 1 + blocks % 3) {
                barrier();
                continue;
            }
            if (what < 5) {
                sync_warp((unsigned)random_below(&random, 3));
                continue;
            }
            size_t bytes = (size_t)1 << random_below(&random, 5);
            size_t offset = bytes * random_below(&random, BYTES / bytes);
            unsigned tid = (unsigned)random_below(&random, blocks % 2 ? THREADS : 3);
            enum gm_shadow_how how = (enum gm_shadow_how)random_below(&random, 4);
            for (size_t i = offset; i < offset + bytes && expected == GM_SHADOW_FINE; i++)
                expected = judge(i, how, tid);
            if (!CHECK_EQ(touch(how, tid, offset, bytes), expected)) {
                fprintf(stderr, "  block %lu: thread %u, how %d, %zu bytes at %zu, after %u\n",
                        blocks, tid, how, bytes, offset, done_count);
                return;
            }
            verdicts[expected]++;
            done[done_count++] = (struct done){how, tid, offset, offset + bytes, shadow.clock};
        }
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(verdicts[i] > 1000 ? 1000 : verdicts[i], 1000);
}

int main(void)
{
    if (!CHECK(gm_shadow_open(&shadow, 256, 256)))
        return check_report();
    test_classics();
    test_bytes();
    test_global();
    test_clock();
    test_random();
    gm_shadow_close(&shadow);
    return check_report();
}
