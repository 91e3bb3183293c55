/*
 * sandbox.c - see process.h.
 *
 * The filter is a table of what is allowed; all else fails with EPERM. It was made from what gemmd
 * and the C library call, and from what NVIDIA's driver library calls while kernels run. There is
 * no libseccomp: for one architecture a filter is the loop below, and every image would have to
 * bring the library.
 */
#include "server/process.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* A sanitizer's report takes calls that gemmd does not: there is no filter in such a build. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef ARCHITECTURE
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* Sets the calling thread's capabilities; those beyond `kept` are dropped. */
static bool keep_capabilities(unsigned kept)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    /* Nothing to drop: a service manager that was here before may have forbidden to ask. */
    if (((data[0].permitted | data[0].inheritable) & ~kept) == 0 &&
        (data[1].permitted | data[1].inheritable) == 0)
        return true;
    data[0].permitted &= kept;
    data[0].effective &= kept;
    data[0].inheritable = data[1].permitted = data[1].effective = data[1].inheritable = 0;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 &&
           syscall(SYS_capset, &header, data) == 0;
}

enum gm_status gm_sandbox_begin(bool low_port, struct gm_error *err)
{
    if (keep_capabilities(low_port ? 1u << CAP_NET_BIND_SERVICE : 0))
        return GM_OK;
    return gm_fail(err, GM_INTERNAL, "cannot drop capabilities: %s", strerror(errno));
}

#ifdef ARCHITECTURE

/* Those of each request come first: older kernels go through the list for each call. */
static const int allowed[] = {
    SYS_read,
    SYS_write,
    SYS_recvfrom,
    SYS_sendto,
    SYS_sendmsg,
    SYS_futex,
    SYS_epoll_pwait,
    SYS_epoll_ctl,
    SYS_clock_gettime,
    /* memory */
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_mlock,
    SYS_munlock,
    SYS_mincore,
    SYS_membarrier,
    SYS_memfd_create,
    SYS_mbind,
    SYS_get_mempolicy,
    SYS_set_mempolicy,
    /* files; CUDA keeps the code that it makes in some */
    SYS_openat,
    SYS_close,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_lseek,
    SYS_fcntl,
    SYS_dup,
    SYS_dup3,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_statfs,
    SYS_fstatfs,
    SYS_ftruncate,
    SYS_fsync,
    SYS_fallocate,
    SYS_flock,
    SYS_unlinkat,
    SYS_mkdirat,
    SYS_renameat,
    SYS_renameat2,
    SYS_getcwd,
    SYS_pipe2,
    /* connections */
    SYS_accept4,
    SYS_accept,
    SYS_connect,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_recvmsg,
    SYS_recvmmsg,
    SYS_sendmmsg,
    SYS_shutdown,
    SYS_ppoll,
    SYS_pselect6,
    SYS_eventfd2,
    SYS_epoll_create1,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_sendfile,
    /* threads, time, and questions about the process */
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_tgkill,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getgroups,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_setaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_getcpu,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_uname,
    SYS_sysinfo,
    SYS_prlimit64,
    SYS_getrlimit,
    SYS_getrusage,
    SYS_times,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#ifdef __x86_64__
    /* older forms of the above */
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_unlink,
    SYS_mkdir,
    SYS_rename,
    SYS_poll,
    SYS_select,
    SYS_epoll_wait,
    SYS_epoll_create,
    SYS_dup2,
    SYS_pipe,
    SYS_time,
    SYS_arch_prctl,
    SYS_getdents,
#endif
};
#define ALLOWED (sizeof allowed / sizeof *allowed)

/* A call that is allowed if an argument has one of these values, or (mask) all of these bits. */
static const struct rule {
    int call;
    unsigned argument;
    bool mask, deny; /* deny: it is allowed unless it has the value */
    unsigned values[4], count;
} rules[] = {
    {SYS_clone, 0, .mask = true, .values = {CLONE_THREAD | CLONE_VM}, .count = 1}, /* no process */
    {SYS_socket, 0, .values = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}, .count = 4},
    {SYS_prctl, 0, .values = {PR_SET_NAME, PR_GET_NAME, 0x53564d41 /* PR_SET_VMA */}, .count = 3},
    /* These would type into a terminal. */
    {SYS_ioctl, 1, .deny = true, .values = {TIOCSTI, TIOCLINUX}, .count = 2},
};
#define RULES (sizeof rules / sizeof *rules)

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ARGUMENT(n)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n)) /* low half  \
                                                                                       */
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define IF_EQUAL(value, then, otherwise)                                                           \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), (then), (otherwise))
#define DENY(error) (SECCOMP_RET_ERRNO | (error))

struct program {
    struct sock_filter code[16 + 2 * ALLOWED + 16 * RULES];
    unsigned short len;
};

static void add(struct program *p, struct sock_filter instruction)
{
    p->code[p->len++] = instruction;
}

static void add_rule(struct program *p, const struct rule *rule)
{
    unsigned n = rule->count;

    /* Another call: past the 3 + n (+ 1) instructions below. */
    add(p, (struct sock_filter)IF_EQUAL(rule->call, 0, (unsigned char)(3 + n + rule->mask)));
    add(p, (struct sock_filter)ARGUMENT(rule->argument));
    if (rule->mask)
        add(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule->values[0]));
    for (unsigned i = 0; i < n; i++) /* a hit goes past the other values and the first RETURN */
        add(p, (struct sock_filter)IF_EQUAL(rule->values[i], (unsigned char)(n - i), 0));
    add(p, (struct sock_filter)RETURN(rule->deny ? SECCOMP_RET_ALLOW : DENY(EPERM)));
    add(p, (struct sock_filter)RETURN(rule->deny ? DENY(EPERM) : SECCOMP_RET_ALLOW));
}

static void make_program(struct program *p)
{
    p->len = 0;
    add(p, (struct sock_filter)LOAD(arch));
    add(p, (struct sock_filter)IF_EQUAL(ARCHITECTURE, 1, 0));
    add(p, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    add(p, (struct sock_filter)LOAD(nr));
    for (size_t i = 0; i < ALLOWED; i++) {
        add(p, (struct sock_filter)IF_EQUAL(allowed[i], 0, 1));
        add(p, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
    }
    for (size_t i = 0; i < RULES; i++)
        add_rule(p, &rules[i]);
    /* Its arguments are out of sight. The C library then uses clone. */
    add(p, (struct sock_filter)IF_EQUAL(SYS_clone3, 0, 1));
    add(p, (struct sock_filter)RETURN(DENY(ENOSYS)));
    add(p, (struct sock_filter)RETURN(DENY(EPERM)));
}

static bool filter_calls(void)
{
    struct program program;

    make_program(&program);
    const struct sock_fprog fprog = {.len = program.len, .filter = program.code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &fprog) == 0;
}

#else

static bool filter_calls(void)
{
    errno = ENOSYS;
    return SANITIZED;
}

#endif

enum gm_status gm_sandbox_enter(struct gm_error *err)
{
    if (!keep_capabilities(0))
        return gm_fail(err, GM_INTERNAL, "cannot drop capabilities: %s", strerror(errno));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return gm_fail(err, GM_INTERNAL, "cannot forbid new privileges: %s", strerror(errno));
    if (!filter_calls())
        return gm_fail(err, GM_INTERNAL, "cannot filter system calls: %s", strerror(errno));
    return GM_OK;
}
