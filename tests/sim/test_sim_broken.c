/*
 * test_sim_broken.c - for each check of the simulator kernels that break it (in broken/), and the
 * whole of what is reported: kernel, line, block, thread, and what was touched where. With one host
 * thread, so that the first fault is always the same one; then with several.
 */
#include "marks.h"
#include "run_kernel.h"

#define COUNT 1000

/*
 * kernel, file, block and thread that are reported, and what. The line is the one marked
 * `here: kernel`, and %u %u are the lines marked `before: kernel` and `here: kernel`; @ is an
 * address, of which the page is not known.
 */
#define BROKEN(X)                                                                                  \
    /* Out of bounds. */                                                                           \
    X(load_past_end, "bounds", "3,0,0", "231,0,0",                                                 \
      "out of bounds: 4 bytes are read at @fa0, a + 4000, which has 4000 bytes")                   \
    X(store_past_end, "bounds", "3,0,0", "232,0,0",                                                \
      "out of bounds: 4 bytes are written at @fa0, result + 4000, which has 4000 bytes")           \
    X(negative_index, "bounds", "0,0,0", "0,0,0",                                                  \
      "out of bounds: 4 bytes are read at @ffc, a - 4, which has 4000 bytes")                      \
    X(guard_off_by_one, "bounds", "3,0,0", "232,0,0",                                              \
      "out of bounds: 4 bytes are read at @fa0, a + 4000, which has 4000 bytes")                   \
    X(far_past_end, "bounds", "0,0,0", "0,0,0",                                                    \
      "out of bounds: 4 bytes are read at @900, a + 4000000, which has 4000 bytes")                \
    X(write_operand, "bounds", "0,0,0", "0,0,0",                                                   \
      "out of bounds: operand a is written at @000, a + 0")                                        \
    X(update_operand, "bounds", "0,0,0", "0,0,0",                                                  \
      "out of bounds: operand a is written at @00c, a + 12")                                       \
    X(null_pointer, "bounds", "0,0,0", "0,0,0",                                                    \
      "out of bounds: 4 bytes are read at 0, a null pointer")                                      \
    X(vector_past_end, "bounds", "0,0,0", "250,0,0",                                               \
      "out of bounds: 16 bytes are written at @fa0, result + 4000, which has 4000 bytes")          \
    X(row_overflow, "bounds", "0,0,0", "31,0,0",                                                   \
      "out of bounds: index 33; 4 bytes are written at @, tile[1][0]")                             \
    X(last_row_overflow, "bounds", "0,0,0", "31,0,0",                                              \
      "out of bounds: index 33; 4 bytes are written at @, tile + 4224, which has 4224 bytes")      \
    X(neighbour_array, "bounds", "0,0,0", "0,0,0",                                                 \
      "out of bounds: index 32; 4 bytes are read at @, left + 128, which has 128 bytes")           \
    X(dynamic_overflow, "bounds", "0,0,0", "31,0,0",                                               \
      "out of bounds: 4 bytes are written at @080, dynamic shared memory + 128, which has 128 "    \
      "bytes")                                                                                     \
    X(anothers_shared, "bounds", "0,0,0", "0,0,0",                                                 \
      "out of bounds: 4 bytes are written at @, mine + 4096, which has 4096 bytes")                \
    X(anothers_shared_before, "bounds", "0,0,0", "0,0,0",                                          \
      "out of bounds: 4 bytes are written at @, mine - 128, which has 4096 bytes")                 \
    X(local_overflow, "bounds", "0,0,0", "4,0,0", "out of bounds: index 4")                        \
    X(constant_overflow, "bounds", "0,0,0", "4,0,0", "out of bounds: index 4")                     \
    /* Races, and reads of what nobody wrote. */                                                   \
    X(missing_barrier, "races", "0,0,0", "32,0,0",                                                 \
      "race: missing __syncthreads between the write at line %u and the read at line "             \
      "%u: thread (31,0,0) writes and this one reads piece[31]")                                   \
    X(early_read, "races", "0,0,0", "0,0,0",                                                       \
      "race: missing __syncthreads between the write at line %u and the read at line "             \
      "%u: thread (63,0,0) writes and this one reads pair[1][31]")                                 \
    X(never_written, "races", "0,0,0", "63,0,0",                                                   \
      "uninitialised: nobody of the block wrote the shared memory that is read: "                  \
      "sums[64]")                                                                                  \
    X(dynamic_unwritten, "races", "0,0,0", "0,0,0",                                                \
      "uninitialised: nobody of the block wrote the shared memory that is read: "                  \
      "dynamic shared memory + 0, which has 4096 bytes")                                           \
    X(write_then_read, "races", "0,0,0", "32,0,0",                                                 \
      "race: missing __syncthreads between the write at line %u and the read at line "             \
      "%u: thread (0,0,0) writes and this one reads piece[32]")                                    \
    X(write_then_write, "races", "0,0,0", "32,0,0",                                                \
      "race: thread (0,0,0) and this one write here, with no barrier between: piece[0]")           \
    X(read_then_write, "races", "0,0,0", "32,0,0",                                                 \
      "race: missing __syncthreads between the read at line %u and the write at line "             \
      "%u: thread (0,0,0) reads and this one writes piece[32]")                                    \
    X(many_read_then_write, "races", "0,0,0", "64,0,0",                                            \
      "race: missing __syncthreads between the read at line %u and the write at line "             \
      "%u: several threads read and this one writes first")                                        \
    X(loop_barrier, "races", "0,0,0", "0,0,0",                                                     \
      "race: missing __syncthreads between the read at line %u and the write at line "             \
      "%u: several threads read and this one writes tile[0]")                                      \
    X(warp_unsynced, "races", "0,0,0", "1,0,0",                                                    \
      "race: missing __syncthreads or __syncwarp between the read at line %u and the "             \
      "write at line %u: thread (0,0,0) reads and this one writes piece[1]")                       \
    X(warp_sync_for_block, "races", "0,0,0", "32,0,0",                                             \
      "race: missing __syncthreads between the read at line %u and the write at line "             \
      "%u: thread (0,0,0) reads and this one writes piece[32]")                                    \
    X(global_write_write, "races", "0,0,0", "32,0,0",                                              \
      "race: thread (0,0,0) and this one write here, with no barrier between: result + "           \
      "0, which has 4000 bytes")                                                                   \
    X(global_write_read, "races", "0,0,0", "32,0,0",                                               \
      "race: missing __syncthreads between the read at line %u and the write at line "             \
      "%u: thread (0,0,0) reads and this one writes result + 128, which has 4000 bytes")           \
    X(atomic_and_plain, "races", "0,0,0", "1,0,0",                                                 \
      "race: missing __syncthreads or __syncwarp between the read at line %u and the "             \
      "update at line %u: thread (0,0,0) reads and this one updates count")                        \
    X(byte_twice, "races", "0,0,0", "3,0,0",                                                       \
      "race: thread (2,0,0) and this one write here, with no barrier between: bytes[2]")           \
    X(word_over_bytes, "races", "0,0,0", "16,0,0",                                                 \
      "race: missing __syncthreads or __syncwarp between the write at line %u and the "            \
      "write at line %u: thread (8,0,0) writes and this one writes words[2]")                      \
    X(vector_overlap, "races", "0,0,0", "31,0,0",                                                  \
      "race: missing __syncthreads or __syncwarp between the write at line %u and the "            \
      "write at line %u: thread (0,0,0) writes and this one writes words[3]")                      \
    X(async_copy_unwaited, "races", "0,0,0", "32,0,0",                                             \
      "race: missing __syncthreads between the read at line %u and the write at line "             \
      "%u: thread (31,0,0) reads and this one writes piece[32]")                                   \
    /* Dependent launches. */                                                                      \
    X(read_unwaited, "dependent", "0,0,0", "0,0,0",                                                \
      "race: @000 is read before gm_wait_for_primary(), and a launch that may still run writes "   \
      "it: result + 0, which has 4000 bytes")                                                      \
    X(write_unwaited, "dependent", "0,0,0", "0,0,0",                                               \
      "race: @000 is written before gm_wait_for_primary(), and a launch that may still run "       \
      "writes it: result + 0, which has 4000 bytes")                                               \
    X(overwrite_unwaited, "dependent", "0,0,0", "0,0,0",                                           \
      "race: @000 is written before gm_wait_for_primary(), and a launch that may still run reads " \
      "it: result + 0, which has 4000 bytes")                                                      \
    X(end_unwaited, "dependent", "0,0,0", "5,0,0",                                                 \
      "a thread of a dependent launch ends without gm_wait_for_primary()")                         \
    X(trigger_unwaited, "dependent", "0,0,0", "0,0,0",                                             \
      "gm_trigger_dependent() comes before gm_wait_for_primary(): what begins then waits for "     \
      "this launch alone")                                                                         \
    /* Barriers and warp operations. */                                                            \
    X(half_block, "barriers", "0,0,0", "0,0,0",                                                    \
      "divergent: a barrier is not reached by thread (128,0,0), which has ended")                  \
    X(after_return, "barriers", "3,0,0", "0,0,0",                                                  \
      "divergent: a barrier is not reached by thread (232,0,0), which has ended")                  \
    X(two_barriers, "barriers", "0,0,0", "0,0,0",                                                  \
      "divergent: a barrier is not reached by thread (32,0,0), which waits at another one")        \
    X(uneven_loop, "barriers", "0,0,0", "1,0,0",                                                   \
      "divergent: a barrier is not reached by thread (0,0,0), which has ended")                    \
    X(count_half, "barriers", "0,0,0", "32,0,0",                                                   \
      "divergent: a barrier is not reached by thread (0,0,0), which has ended")                    \
    X(shuffle_from_absent, "barriers", "0,0,0", "15,0,0",                                          \
      "a shuffle reads from lane 16, which does not take part")                                    \
    X(shuffle_from_ended, "barriers", "0,0,0", "8,0,0",                                            \
      "a shuffle reads from lane 16, which does not take part")                                    \
    X(mask_without_caller, "barriers", "0,0,0", "0,0,0",                                           \
      "a warp operation's mask 0xfffffffe leaves out the lane that calls it")                      \
    X(shuffle_and_barrier, "barriers", "0,0,0", "0,0,0",                                           \
      "divergent: a warp operation waits for lane 1, which is at another operation or a barrier")  \
    X(different_masks, "barriers", "0,0,0", "0,0,0",                                               \
      "divergent: a warp operation waits for lane 16, which is at another operation or a barrier") \
    X(odd_width, "barriers", "0,0,0", "0,0,0",                                                     \
      "a shuffle's width is 12: it must be a power of two up to 32")                               \
    /* Undefined behaviour. */                                                                     \
    X(misaligned_vector, "undefined", "0,0,0", "0,0,0", "misaligned: 16 bytes are read at @004")   \
    X(misaligned_word, "undefined", "0,0,0", "5,0,0", "misaligned: 4 bytes are read at @016")      \
    X(multiplication, "undefined", "0,0,0", "22,0,0",                                              \
      "undefined: a signed multiplication overflows")                                              \
    X(addition, "undefined", "0,0,0", "1,0,0", "undefined: a signed addition overflows")           \
    X(subtraction, "undefined", "0,0,0", "2,0,0", "undefined: a signed subtraction overflows")     \
    X(shift, "undefined", "0,0,0", "27,0,0", "undefined: a shift by more than its type has bits")  \
    X(division, "undefined", "0,0,0", "7,0,0",                                                     \
      "undefined: a division by zero, or whose result does not fit")                               \
    /* A thread's own memory. */                                                                   \
    X(large_local, "undefined", "0,0,0", "0,0,0",                                                  \
      "a thread's own variables take more than the simulator's 65536 bytes")                       \
    X(endless_recursion, "undefined", "0,0,0", "0,0,0",                                            \
      "a thread's own variables take more than the simulator's 65536 bytes")

/* Launches that no device takes: the whole of what is said. */
#define REFUSED(X)                                                                                 \
    X(too_many_threads,                                                                            \
      "any: a launch with 1056 threads in a block, and H200 allows at most 1024")                  \
    X(too_deep_block,                                                                              \
      "any: a launch with 65 threads in a block along z, and H200 allows at most 64")              \
    X(no_threads, "any: a launch with 0 threads in a block along y, and H200 allows at least 1")   \
    X(too_high_grid, "any: a launch with 65536 blocks along y, and H200 allows at most 65535")     \
    X(too_much_dynamic,                                                                            \
      "any: a launch with 300000 bytes of shared memory a block, and H200 allows at most 232448")  \
    X(too_much_static, "too_much_static: a launch with 49168 bytes of static shared memory, and "  \
                       "H200 allows at most 49152")

#define X(name, ...) gm_kernel_fn gm_sim_##name;
BROKEN(X)
REFUSED(X)
#undef X
gm_kernel_fn gm_sim_endless_loop, gm_sim_endless_steps;

static int32_t in[COUNT], out[COUNT];

/* Whether text is as expected, where @ stands for 0x and digits, the last of which may be given.
 */
static bool matches(const char *text, const char *expected)
{
    for (; *expected != '\0'; expected++) {
        if (*expected != '@') {
            if (*text++ != *expected)
                return false;
            continue;
        }
        size_t last = strspn(expected + 1, "0123456789abcdef"), digits;
        if (strncmp(text, "0x", 2) != 0)
            return false;
        text += 2;
        digits = strspn(text, "0123456789abcdef");
        if (digits < 3 || digits < last || strncmp(text + digits - last, expected + 1, last) != 0)
            return false;
        text += digits;
        expected += last;
    }
    return *text == '\0';
}

struct broken {
    const char *name;
    gm_kernel_fn *run;
    const char *file, *block, *thread, *what;
};
static const struct broken broken[] = {
#define X(name, file, block, thread, what) {#name, gm_sim_##name, file, block, thread, what},
    BROKEN(X)
#undef X
};
#define BROKEN_COUNT (sizeof(broken) / sizeof(broken[0]))

static void test_reports(void)
{
    void *sim = sim_open(1);

    for (size_t i = 0; i < BROKEN_COUNT; i++) {
        const struct broken *b = &broken[i];
        struct sim_ran ran = sim_run(sim, b->run, COUNT, in, out);
        char expected[512], what[256];
        unsigned here = marked_line(GM_TEST_SIM "/broken", b->file, "here", b->name), before = 0;
        if (strstr(b->what, "%u"))
            before = marked_line(GM_TEST_SIM "/broken", b->file, "before", b->name);
        snprintf(what, sizeof(what), b->what, before, here);
        snprintf(expected, sizeof(expected),
                 "%s, tests/sim/broken/%s.cu:%u, block (%s), thread (%s): %s", b->name, b->file,
                 here, b->block, b->thread, what);
        CHECK_STATUS(ran.status, GM_KERNEL_FAULT, &ran.error);
        if (!CHECK(matches(ran.error.detail, expected)))
            fprintf(stderr, "  reported: %s\n  expected: %s\n", ran.error.detail, expected);
    }
    sim_close(sim);
}

/* On several host threads and in a sample too. What follows a fault is not disturbed by it. */
static void test_everywhere(void)
{
    void *sim = sim_open(3);

    for (size_t i = 0; i < BROKEN_COUNT; i++) {
        struct sim_ran ran = sim_run(sim, broken[i].run, COUNT, in, out);
        CHECK_STATUS(ran.status, GM_KERNEL_FAULT, &ran.error);
        CHECK(strncmp(ran.error.detail, broken[i].name, strlen(broken[i].name)) == 0);
        struct gm_access_report report = {0};
        ran = sim_explain(sim, broken[i].run, COUNT, in, &report);
        if (!CHECK_STATUS(ran.status, GM_KERNEL_FAULT, &ran.error))
            fprintf(stderr, "  explaining %s\n", broken[i].name);
        CHECK(report.site == NULL && report.launch == NULL);
    }
    sim_close(sim);
}

static void test_refused(void)
{
    static const struct {
        gm_kernel_fn *run;
        const char *what;
    } refused[] = {
#define X(name, what) {gm_sim_##name, what},
        REFUSED(X)
#undef X
    };
    void *sim = sim_open(2);

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct sim_ran ran = sim_run(sim, refused[i].run, COUNT, in, out);
        CHECK_STATUS(ran.status, GM_KERNEL_FAULT, &ran.error);
        CHECK_STR(ran.error.detail, refused[i].what);
    }
    sim_close(sim);
}

static void test_stop(void)
{
    gm_kernel_fn *const endless[] = {gm_sim_endless_loop, gm_sim_endless_steps};
    void *sim = sim_open(2);

    for (int i = 0; i < 2; i++) {
        struct gm_access_report report = {0};
        struct sim_ran ran = sim_stopped(sim, endless[i], COUNT, in, out, NULL, 50000);
        CHECK_EQ(ran.status, GM_CANCELLED);
        ran = sim_stopped(sim, endless[i], COUNT, in, out, &report, 100000);
        CHECK_EQ(ran.status, GM_CANCELLED);
        CHECK(report.site == NULL && report.launch == NULL);
    }
    sim_close(sim);
}

int main(void)
{
    for (int i = 0; i < COUNT; i++)
        in[i] = i;
    test_reports();
    test_everywhere();
    test_refused();
    test_stop();
    return check_report();
}
