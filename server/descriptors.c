#include "server/descriptors.h"

#include "server/limits.h"
#include "server/log.h"

#include <fcntl.h>
#include <sys/resource.h>

void gm_descriptors_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Asked one by one: that needs neither /proc nor a descriptor. */
static unsigned count_free(rlim_t limit, unsigned most)
{
    unsigned n = 0;

    for (int fd = 0; (rlim_t)fd < limit && n < most; fd++)
        n += fcntl(fd, F_GETFD) < 0;
    return n;
}

enum gm_status gm_descriptors_connections(unsigned others, unsigned *ret, struct gm_error *err)
{
    struct rlimit limit;
    unsigned kept = others + GM_OTHER_DESCRIPTORS;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return gm_fail(err, GM_INTERNAL, "cannot tell how many descriptors gemmd may have");
    unsigned left = count_free(limit.rlim_cur, GM_CONNECTIONS_MAX + kept);
    if (left < GM_CONNECTIONS_MIN + kept)
        return gm_fail(err, GM_INTERNAL,
                       "gemmd may have %llu descriptors (ulimit -n), and needs %llu: %d for "
                       "connections, %u beside them",
                       (unsigned long long)limit.rlim_cur,
                       (unsigned long long)limit.rlim_cur - left + GM_CONNECTIONS_MIN + kept,
                       GM_CONNECTIONS_MIN, (unsigned)(limit.rlim_cur - left) + kept);
    *ret = left - kept;
    if (*ret < GM_CONNECTIONS_MAX)
        gm_log(GM_LOG_WARN, "descriptors", "limit=%llu connections_max=%u wanted=%d",
               (unsigned long long)limit.rlim_cur, *ret, GM_CONNECTIONS_MAX);
    return GM_OK;
}
