/*
 * torture.h - what a daemon under torture shares with its tormentor: a file that both map. The
 * tormentor is torture.py, which reads the list of calls and the offsets below from this file.
 */
#ifndef GM_TESTS_FAULT_TORTURE_H
#define GM_TESTS_FAULT_TORTURE_H

#include <stdatomic.h>
#include <stdint.h>

/* X(NAME) - classes of calls. A fault is told to one class, and fails the n-th call of it. */
#define TORTURE_CLASSES(X)                                                                         \
    X(MEMORY)    /* malloc and all that take memory like it, and so C++'s new */                   \
    X(MAP)       /* mmap, munmap, mprotect, madvise */                                             \
    X(THREAD)    /* pthread_create, fork */                                                        \
    X(LOCK)      /* the making of mutexes, condition variables and their attributes */             \
    X(EVENT)     /* eventfd, epoll_create1, pipe2 */                                               \
    X(EPOLL_CTL) /* to add one: to remove one takes nothing */                                     \
    X(EPOLL_WAIT)                                                                                  \
    X(POLL)                                                                                        \
    X(ACCEPT)                                                                                      \
    X(SOCKET)  /* socket, bind, listen, getsockname, shutdown */                                   \
    X(OPTION)  /* setsockopt, getsockopt, fcntl */                                                 \
    X(RECEIVE) /* recvfrom, recvmsg; not a look at what could be received */                       \
    X(PEEK)    /* recvfrom with MSG_PEEK */                                                        \
    X(SEND)    /* send, sendmsg, sendto, sendfile */                                               \
    X(READ)    /* read, pread of files and eventfds */                                             \
    X(WRITE)   /* write; but to an eventfd, which takes a count of one at any time */              \
    X(STORE)   /* pwrite, of results to regions of shared memory */                                \
    X(CLOSE)   /* which closes nevertheless, as Linux does */                                      \
    X(OPEN)    /* open, fopen, open_memstream */                                                   \
    X(NAME)    /* getaddrinfo, getnameinfo */                                                      \
    X(RANDOM)  /* getrandom */                                                                     \
    X(SLEEP)   /* nanosleep */                                                                     \
    X(PROCESS) /* sigaction, getrlimit, setrlimit, sched_getaffinity */

enum torture_class {
#define X(name) TORTURE_##name,
    TORTURE_CLASSES(X)
#undef X
        TORTURE_CLASS_COUNT
};

#define TORTURE_FRAMES 32
#define TORTURE_SHORT 0 /* as an error: all goes well, but only with one byte */

struct torture {
    _Atomic uint64_t armed;    /* 0, or 1 + the class whose calls are counted down */
    _Atomic int64_t countdown; /* to the call that fails */
    _Atomic uint64_t error;    /* its errno */
    _Atomic uint64_t lasting;  /* the calls behind it fail too, until the fault is disarmed */
    _Atomic uint64_t fired;    /* calls that failed */
    _Atomic int64_t live;      /* blocks of memory that have been taken and not given back */
    uint64_t frames, frame[TORTURE_FRAMES]; /* where the first was: return addresses */
    _Atomic uint64_t calls[TORTURE_CLASS_COUNT];
};

#endif
