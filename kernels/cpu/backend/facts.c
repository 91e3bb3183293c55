/*
 * facts.c - reads the processor's facts from Linux: affinity, cgroups, sysfs, /proc.
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

bool gm_cpu_find_cgroup(FILE *lines, const char *controller, char *buf, size_t size)
{
    char line[CGROUP_PATH_MAX], names[CGROUP_PATH_MAX + 3], wanted[64];

    snprintf(wanted, sizeof(wanted), ",%s,", controller);
    while (fgets(line, sizeof(line), lines)) {
        /* 4:cpu,cpuacct:/path, or of version 2, 0::/path */
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || path[1] != '/')
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        snprintf(names, sizeof(names), ",%s,", list + 1);
        if (strstr(names, wanted) && strlen(path) < size) {
            strcpy(buf, strcmp(path, "/") == 0 ? "" : path);
            return true;
        }
    }
    return false;
}

/* Files of a controller, in version 2 of cgroups and in version 1. The limit of version 1 on
 * processors is two files. */
enum controller { MEMORY, CPU };
static const struct files {
    const char *root, *name; /* its folder; "" in version 2, where all have the same */
    const char *limit, *period, *used, *idle;
} controllers[][2] = {
    [MEMORY] = {{"/sys/fs/cgroup", "", "memory.max", NULL, "memory.current", "inactive_file"},
                {"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", NULL,
                 "memory.usage_in_bytes", "total_inactive_file"}},
    [CPU] = {{.root = "/sys/fs/cgroup", .name = "", .limit = "cpu.max"},
             {.root = "/sys/fs/cgroup/cpu",
              .name = "cpu",
              .limit = "cpu.cfs_quota_us",
              .period = "cpu.cfs_period_us"}},
};

/* A cgroup that has a limit. */
struct group {
    const struct files *files;
    char path[CGROUP_PATH_MAX]; /* below the root */
};

/* Reads a file of a group; two files, if `second` is one, with a blank between them. */
static bool read_group(const struct files *files, const char *group, const char *name,
                       const char *second, char *text, size_t size)
{
    char path[CGROUP_PATH_MAX + 88];

    snprintf(path, sizeof(path), "%s%s/%s", files->root, group, name);
    if (!read_line(path, text, size))
        return false;
    size_t len = strlen(text);
    if (!second || len + 2 > size)
        return true;
    text[len] = ' ';
    snprintf(path, sizeof(path), "%s%s/%s", files->root, group, second);
    return read_line(path, text + len + 1, size - len - 1);
}

/* The smallest limit of this process's cgroup and its ancestors, in either version; 0: none. *ret:
 * the one that has it. */
static uint64_t cgroup_limit(enum controller controller, uint64_t (*parse)(const char *text),
                             struct group *ret)
{
    uint64_t limit = 0;

    for (unsigned version = 0; version < 2; version++) {
        const struct files *files = &controllers[controller][version];
        char group[CGROUP_PATH_MAX], text[64];
        FILE *lines = fopen("/proc/self/cgroup", "re");
        bool found = lines && gm_cpu_find_cgroup(lines, files->name, group, sizeof(group));
        if (lines)
            fclose(lines);
        while (found) {
            uint64_t here =
                read_group(files, group, files->limit, files->period, text, sizeof(text))
                    ? parse(text)
                    : 0;
            if (here > 0 && (limit == 0 || here < limit)) {
                limit = here;
                ret->files = files;
                strcpy(ret->path, group);
            }
            char *slash = strrchr(group, '/');
            found = slash != NULL;
            if (slash)
                *slash = '\0';
        }
    }
    return limit;
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
    struct group group;
    uint64_t quota = cgroup_limit(CPU, parse_quota, &group);

    return quota > 0 && quota < cores ? (unsigned)quota : cores;
}

/* The memory there is. *in_group: a cgroup's, which is then *group. */
static uint64_t find_memory(bool *in_group, struct group *group)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    uint64_t limit = cgroup_limit(MEMORY, gm_cpu_parse_bytes, group);

    *in_group = limit > 0 && (memory == 0 || limit < memory);
    return *in_group ? limit : memory;
}

uint64_t gm_cpu_memory(void)
{
    struct group group;
    bool in_group;

    return find_memory(&in_group, &group);
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

/* Of the file; 0 if the key is not there. false: the file is not. */
static bool find_number(const char *path, const char *key, uint64_t *ret)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return false;
    *ret = gm_cpu_find_number(file, key);
    fclose(file);
    return true;
}

uint64_t gm_cpu_memory_used(void)
{
    char path[CGROUP_PATH_MAX + 88], text[64];
    struct group group;
    bool in_group;
    uint64_t all = find_memory(&in_group, &group), used, idle = 0;

    if (in_group) {
        const struct files *files = group.files;
        used = read_group(files, group.path, files->used, NULL, text, sizeof(text))
                   ? gm_cpu_parse_bytes(text)
                   : 0;
        snprintf(path, sizeof(path), "%s%s/memory.stat", files->root, group.path);
        if (!find_number(path, files->idle, &idle))
            return 0;
    } else {
        used = all;
        if (!find_number("/proc/meminfo", "MemAvailable:", &idle) || idle == 0)
            return 0;
        idle <<= 10;
    }
    return used > idle ? used - idle : 0;
}

uint64_t gm_cpu_cache(unsigned most)
{
    char path[96], text[64];
    uint64_t bytes = 0, last_level = 0;

    for (int i = 0; i < 16; i++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        if (!read_line(path, text, sizeof(text)))
            break;
        uint64_t level = gm_cpu_parse_bytes(text);
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        if (level > last_level && level <= most && read_line(path, text, sizeof(text))) {
            last_level = level;
            bytes = gm_cpu_parse_bytes(text);
        }
    }
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (bytes == 0 && most > 2 && sysconf(_SC_LEVEL3_CACHE_SIZE) > 0)
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
