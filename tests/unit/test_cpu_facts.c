/* test_cpu_facts.c - how the system's texts are read, and that this machine's facts make sense. */
#include "check.h"
#include "kernels/cpu/backend/facts.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void test_parsing(void)
{
    CHECK_EQ(gm_cpu_parse_quota("max 100000"), 0);
    CHECK_EQ(gm_cpu_parse_quota("100000 100000"), 1);
    CHECK_EQ(gm_cpu_parse_quota("150000 100000"), 2);
    CHECK_EQ(gm_cpu_parse_quota("50000 100000"), 1);
    CHECK_EQ(gm_cpu_parse_quota("6400000 100000"), 64);
    CHECK_EQ(gm_cpu_parse_quota("0 100000"), 1);
    CHECK_EQ(gm_cpu_parse_quota("100000 0"), 0);
    CHECK_EQ(gm_cpu_parse_quota("100000"), 0);
    CHECK_EQ(gm_cpu_parse_quota("-1 100000"), 0);
    CHECK_EQ(gm_cpu_parse_quota("99999999999999 1"), 0);
    CHECK_EQ(gm_cpu_parse_quota(""), 0);

    CHECK_EQ(gm_cpu_parse_bytes("32768K"), 32768 * 1024);
    CHECK_EQ(gm_cpu_parse_bytes("260M"), 260 * 1024 * 1024);
    CHECK_EQ(gm_cpu_parse_bytes("2G"), (int64_t)2 << 30);
    CHECK_EQ(gm_cpu_parse_bytes("536870912"), 536870912);
    CHECK_EQ(gm_cpu_parse_bytes("max"), 0);
    CHECK_EQ(gm_cpu_parse_bytes(""), 0);
    CHECK_EQ(gm_cpu_parse_bytes("-5"), 0);
    CHECK_EQ(gm_cpu_parse_bytes("18446744073709551615G"), 0);
}

static uint64_t number_in(const char *text, const char *key)
{
    FILE *lines = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    uint64_t number = gm_cpu_find_number(lines, key);

    fclose(lines);
    return number;
}

static void test_keys(void)
{
    CHECK_EQ(number_in("MemTotal:   10 kB\nMemAvailable:    7 kB\n", "MemAvailable:"), 7);
    CHECK_EQ(number_in("active_file 5\ninactive_file 6\nfile 7\n", "file"), 7);
    CHECK_EQ(number_in("inactive_file 18446744073709551615", "inactive_file"), UINT64_MAX);
    CHECK_EQ(number_in("inactive_file_not 6\n", "inactive_file"), 0);
    CHECK_EQ(number_in("inactive_file7 6\n", "inactive_file"), 0);
    CHECK_EQ(number_in("\n", "inactive_file"), 0);
}

/* Lines as of a container with both versions; a path of "/" is the root of what is mounted. */
static void test_cgroups(void)
{
    static const char text[] = "12:cpuset:/a\n4:memory:/pods/b c:d\n3:cpu,cpuacct:/e\n"
                               "1:name=systemd:/f\n2:pids:relative\n0::/\nnonsense\n";
    static const struct {
        const char *controller, *path;
    } rows[] = {{"cpuset", "/a"}, {"memory", "/pods/b c:d"},
                {"cpu", "/e"},    {"cpuacct", "/e"},
                {"", ""},         {"pids", NULL},
                {"io", NULL}};

    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[32] = "as it was";
        FILE *lines = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
        bool found = gm_cpu_find_cgroup(lines, rows[i].controller, path, sizeof path);
        fclose(lines);
        CHECK_EQ(found, rows[i].path != NULL);
        CHECK_STR(path, rows[i].path ? rows[i].path : "as it was");
    }
}

static void test_machine(void)
{
    char model[96];
    unsigned cores = gm_cpu_cores();

    CHECK(cores >= 1 && cores <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
    CHECK(gm_cpu_memory() >= (uint64_t)16 << 20);
    CHECK(gm_cpu_memory_used() > 0 && gm_cpu_memory_used() < gm_cpu_memory());
    gm_cpu_model(model, sizeof(model));
    CHECK(model[0] != '\0' && strchr(model, '\n') == NULL);
    for (int isa = 0; isa < GM_ISA_COUNT; isa++)
        CHECK(gm_isa_name((enum gm_isa)isa)[0] != '\0');
    CHECK(gm_isa_best() < GM_ISA_COUNT);
    printf("%s, %u cores, %llu MiB, cache %llu KiB, %s\n", model, cores,
           (unsigned long long)gm_cpu_memory() >> 20,
           (unsigned long long)gm_cpu_cache(GM_CACHE_LEVELS) >> 10, gm_isa_name(gm_isa_best()));
}

/* The affinity mask counts, not the machine. */
static void test_affinity(void)
{
    cpu_set_t before, one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(before), &before) != 0)
        return; /* more processors than this mask has room for */
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
            break;
        }
    }
    if (sched_setaffinity(0, sizeof(one), &one) == 0) {
        CHECK_EQ(gm_cpu_cores(), 1);
        sched_setaffinity(0, sizeof(before), &before);
    }
}

int main(void)
{
    test_parsing();
    test_keys();
    test_cgroups();
    test_machine();
    test_affinity();
    return check_report();
}
