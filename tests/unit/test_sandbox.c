/* What is left to a process in the sandbox, and what is not: in a child, with a thread that began
 * before. */
#include "server/process.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FILTERED false
#else
#define FILTERED true
#endif

static atomic_bool entered;
static int earlier_fault; /* of a forbidden call by the thread that began before */

/* errno of a system call that must fail; 0 if it did not. */
static int fault_of(long result)
{
    return result == -1 ? errno : 0;
}

static void *earlier(void *cls)
{
    (void)cls;
    while (!atomic_load(&entered))
        poll(NULL, 0, 1);
    if (FILTERED) /* else it would be traced, and stop when a sanitizer looks for leaks */
        earlier_fault = fault_of(syscall(SYS_ptrace, PTRACE_TRACEME, 0, NULL, NULL));
    return NULL;
}

static void *later(void *cls)
{
    *(bool *)cls = true;
    return NULL;
}

static void check_forbidden(void)
{
    char *const arguments[] = {"true", NULL};

    CHECK_EQ(fault_of(execve("/bin/true", arguments, arguments)), EPERM);
    CHECK_EQ(fault_of(syscall(SYS_execveat, AT_FDCWD, "/bin/true", arguments, arguments, 0)),
             EPERM);
    CHECK_EQ(fault_of(fork()), EPERM);
    CHECK_EQ(fault_of(syscall(SYS_ptrace, PTRACE_TRACEME, 0, NULL, NULL)), EPERM);
    CHECK_EQ(fault_of(syscall(SYS_clone3, NULL, 0)), ENOSYS);
    CHECK_EQ(fault_of(socket(AF_PACKET, SOCK_DGRAM, 0)), EPERM);
    CHECK(fault_of(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) != EPERM);
    CHECK_EQ(fault_of(syscall(SYS_bpf, 0, NULL, 0)), EPERM);
    CHECK_EQ(fault_of(syscall(SYS_unshare, 0)), EPERM);
    CHECK_EQ(fault_of(syscall(SYS_kill, getppid(), 0)), EPERM);
    CHECK_EQ(fault_of(syscall(SYS_mount, NULL, "/", NULL, 0, NULL)), EPERM);
    CHECK_EQ(fault_of(syscall(SYS_io_uring_setup, 1, NULL)), EPERM);
    CHECK_EQ(fault_of(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)), EPERM);
    CHECK_EQ(fault_of(ioctl(STDIN_FILENO, TIOCSTI, "x")), EPERM);
    CHECK_EQ(fault_of(ioctl(STDIN_FILENO, TIOCLINUX, "x")), EPERM);
    CHECK_EQ(earlier_fault, EPERM);
}

static void check_allowed(void)
{
    pthread_t thread;
    bool ran = false;
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC), bytes;

    CHECK(file >= 0 && close(file) == 0);
    CHECK(fault_of(ioctl(STDIN_FILENO, FIONREAD, &bytes)) != EPERM);
    CHECK(pthread_create(&thread, NULL, later, &ran) == 0);
    pthread_join(thread, NULL);
    CHECK(ran);
    CHECK(prctl(PR_SET_NAME, "name", 0, 0, 0) == 0);
    void *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && munmap(memory, 1 << 20) == 0);
}

static void check_no_capabilities(void)
{
    char line[256];
    unsigned seen = 0;
    FILE *status = fopen("/proc/self/status", "r");

    CHECK(status != NULL);
    while (status && fgets(line, sizeof line, status)) {
        unsigned long long value;
        if (sscanf(line, "CapEff: %llx", &value) == 1 ||
            sscanf(line, "CapPrm: %llx", &value) == 1 ||
            sscanf(line, "CapInh: %llx", &value) == 1 ||
            sscanf(line, "CapAmb: %llx", &value) == 1) {
            CHECK_EQ(value, 0);
            seen++;
        } else if (sscanf(line, "NoNewPrivs: %llx", &value) == 1) {
            CHECK_EQ(value, 1);
            seen++;
        }
    }
    CHECK_EQ(seen, 5);
    if (status)
        fclose(status);
}

static int child(void)
{
    struct gm_error error;
    pthread_t thread;

    CHECK_STATUS(gm_sandbox_begin(true, &error), GM_OK, &error);
    CHECK(pthread_create(&thread, NULL, earlier, NULL) == 0);
    CHECK_STATUS(gm_sandbox_enter(&error), GM_OK, &error);
    atomic_store(&entered, true);
    pthread_join(thread, NULL);
    check_no_capabilities();
    if (FILTERED)
        check_forbidden();
    check_allowed();
    return check_report();
}

int main(void)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        int code = child();
        fflush(stdout);
        _exit(code);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
    return check_report();
}
