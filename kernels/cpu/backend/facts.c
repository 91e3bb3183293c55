/*
 * facts.c - reads the processor's facts from Linux: affinity, cgroup v2, sysfs, /proc.
 *
 * A container's CPU quota and memory limit count like its cores: 64 threads on a quota of 2 would
 * be stopped for most of each period.
 */
#include "facts.h"

#include <ctype.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CGROUP_ROOT "/sys/fs/cgroup"
#define CGROUP_PATH_MAX 512
#define CPUS_MAX 65536 /* the largest affinity mask to try */

/* The first line of a file, without its end; false if there is none. */
static bool read_line(const char *path, char *buf, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found = file && fgets(buf, (int)size, file);

    if (file)
        fclose(file);
    if (found)
        buf[strcspn(buf, "\n")] = '\0';
    return found;
}

unsigned gm_cpu_parse_quota(const char *text)
{
    unsigned long long quota, period;

    if (!isdigit((unsigned char)*text) || sscanf(text, "%llu %llu", &quota, &period) != 2 ||
        period == 0 || quota / period >= CPUS_MAX)
        return 0;
    unsigned cores = (unsigned)((quota + period - 1) / period);
    return cores > 0 ? cores : 1;
}

uint64_t gm_cpu_parse_bytes(const char *text)
{
    char *end;

    if (!isdigit((unsigned char)*text))
        return 0;
    uint64_t bytes = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return bytes > UINT64_MAX >> shift ? 0 : bytes << shift;
}

/* This process's cgroup v2 as a path below CGROUP_ROOT, "" for the root. */
static void find_cgroup(char *buf, size_t size)
{
    char line[CGROUP_PATH_MAX];
    FILE *file = fopen("/proc/self/cgroup", "re");

    buf[0] = '\0';
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::/", 4) == 0 && strlen(line + 3) < size)
            strcpy(buf, strcmp(line + 3, "/") == 0 ? "" : line + 3);
    }
    if (file)
        fclose(file);
}

/*
 * The smallest limit of this process's cgroup and its ancestors; 0: none. Unless ret_group is NULL,
 * it gets the path below CGROUP_ROOT of the group that has the limit.
 */
static uint64_t cgroup_limit(const char *name, uint64_t (*parse)(const char *text),
                             char ret_group[CGROUP_PATH_MAX])
{
    char group[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX + 88], text[64];
    uint64_t limit = 0;

    find_cgroup(group, sizeof(group));
    for (;;) {
        snprintf(path, sizeof(path), CGROUP_ROOT "%s/%s", group, name);
        uint64_t here = read_line(path, text, sizeof(text)) ? parse(text) : 0;
        if (here > 0 && (limit == 0 || here < limit)) {
            limit = here;
            if (ret_group)
                strcpy(ret_group, group);
        }
        char *slash = strrchr(group, '/');
        if (!slash)
            return limit;
        *slash = '\0';
    }
}

static uint64_t parse_quota(const char *text)
{
    return gm_cpu_parse_quota(text);
}

static unsigned affinity_cores(void)
{
    for (int cpus = 1024; cpus <= CPUS_MAX; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        if (!set)
            break;
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return (unsigned)count;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned gm_cpu_cores(void)
{
    unsigned cores = affinity_cores();
    uint64_t quota = cgroup_limit("cpu.max", parse_quota, NULL);

    return quota > 0 && quota < cores ? (unsigned)quota : cores;
}

/* The memory there is. *in_group: a cgroup's, whose path is then in `group`. */
static uint64_t find_memory(bool *in_group, char group[CGROUP_PATH_MAX])
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    uint64_t limit = cgroup_limit("memory.max", gm_cpu_parse_bytes, group);

    *in_group = limit > 0 && (memory == 0 || limit < memory);
    return *in_group ? limit : memory;
}

uint64_t gm_cpu_memory(void)
{
    char group[CGROUP_PATH_MAX];
    bool in_group;

    return find_memory(&in_group, group);
}

uint64_t gm_cpu_find_number(FILE *lines, const char *key)
{
    char line[128];
    size_t len = strlen(key);

    while (fgets(line, sizeof(line), lines))
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return strtoull(line + len, NULL, 10);
    return 0;
}

/* Of the file; 0 if it, or the key, is not there. */
static uint64_t find_number(const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    uint64_t number = file ? gm_cpu_find_number(file, key) : 0;

    if (file)
        fclose(file);
    return number;
}

uint64_t gm_cpu_memory_used(void)
{
    char group[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX + 88], text[64];
    bool in_group;
    uint64_t all = find_memory(&in_group, group), used, idle;

    if (in_group) {
        snprintf(path, sizeof(path), CGROUP_ROOT "%s/memory.current", group);
        used = read_line(path, text, sizeof(text)) ? gm_cpu_parse_bytes(text) : 0;
        snprintf(path, sizeof(path), CGROUP_ROOT "%s/memory.stat", group);
        idle = find_number(path, "inactive_file");
    } else {
        used = all;
        idle = find_number("/proc/meminfo", "MemAvailable:") << 10;
        if (idle == 0)
            return 0;
    }
    return used > idle ? used - idle : 0;
}

uint64_t gm_cpu_cache(void)
{
    char path[96], text[64];
    uint64_t bytes = 0, last_level = 0;

    for (int i = 0; i < 16; i++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        if (!read_line(path, text, sizeof(text)))
            break;
        uint64_t level = gm_cpu_parse_bytes(text);
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        if (level > last_level && read_line(path, text, sizeof(text))) {
            last_level = level;
            bytes = gm_cpu_parse_bytes(text);
        }
    }
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (bytes == 0 && sysconf(_SC_LEVEL3_CACHE_SIZE) > 0)
        bytes = (uint64_t)sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes;
}

void gm_cpu_model(char *buf, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    struct utsname machine;

    buf[0] = '\0';
    while (file && buf[0] == '\0' && fgets(line, sizeof(line), file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(buf, size, "%s", value);
    }
    if (file)
        fclose(file);
    if (buf[0] == '\0')
        snprintf(buf, size, "%s", uname(&machine) == 0 ? machine.machine : "processor");
}
