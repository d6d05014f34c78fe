/*
 * Calls of the kernel, as a program makes them. Each call has one piece of memory, which the kernel
 * reads or writes. NAME is a call. Its result and errno are printed.
 *
 *   calls list          prints the calls: name, function, whether the kernel reads or writes
 *   calls still NAME    the memory is static
 *   calls zeros NAME    the memory is static, and all zeros
 *   calls right NAME    the memory is a block
 *   calls beyond NAME   the memory is a block that is one byte too small
 *   calls freed NAME    the memory is a freed block
 *   calls nowhere       passes invalid pointers: the kernel refuses them
 *   calls raw           passes a freed block, by `syscall`
 *   calls in-place      reads a path without an end, and writes over it
 *
 * The program runs in a folder of its own.
 */
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <sched.h>
#include <time.h>
#include <utime.h>

#define NO_PATH "a path that is long enough for a block of its own"

enum { PAGE = 4096, SHORT = 32 };

static int file, zeros, nowhere, ends[2], bound, listening, polls, timer;
static mqd_t queue;
static timer_t made;
static char buffer[PAGE];
static char *words[] = {"true", NULL};
static struct iovec part;
static socklen_t length;

static void make(const char *path)
{
    int made = open(path, O_CREAT | O_RDWR, 0600);
    CHECK(made >= 0 && close(made) == 0);
}

static int name_of(struct sockaddr_un *name, const char *path)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    strcpy(name->sun_path, path);
    return 1;
}

static void begin(void)
{
    file = open("file", O_CREAT | O_RDWR, 0600);
    zeros = open("/dev/zero", O_RDONLY);
    nowhere = open("/dev/null", O_WRONLY);
    CHECK(file >= 0 && ftruncate(file, PAGE) == 0 && zeros >= 0 && nowhere >= 0);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    struct sockaddr_un name;
    unlink("listening"), unlink("bound");
    name_of(&name, "listening");
    listening = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listening, (struct sockaddr *)&name, sizeof name) == 0 && listen(listening, 8) == 0);
    bound = socket(AF_UNIX, SOCK_STREAM, 0);
    polls = epoll_create1(0);
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    queue = mq_open("/heapwright-calls", O_CREAT | O_RDWR, 0600, NULL);
    mq_unlink("/heapwright-calls");
    CHECK(bound >= 0 && polls >= 0 && timer >= 0);
}

/* The result is 0 or -1, because descriptors' numbers vary. */
static long is_open(int made)
{
    return made < 0 ? -1 : 0;
}

/* Waits for a child. Returns its exit status. */
static int ended(int process)
{
    int status = -1;
    CHECK(process > 0 && waitpid(process, &status, 0) == process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int child(void)
{
    int process = fork();
    CHECK(process >= 0);
    if (process == 0)
        _exit(3);
    return process;
}

/* The errno of an `exec` that returned, as a child's exit status. */
#define IN_CHILD(CALL)                                                                             \
    ({                                                                                             \
        int process = vfork();                                                                     \
        if (process == 0) {                                                                        \
            CALL;                                                                                  \
            _exit(errno);                                                                          \
        }                                                                                          \
        ended(process);                                                                            \
    })

static struct msghdr *message(void)
{
    static struct msghdr m;
    m = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    return &m;
}

static int sent(void)
{
    return send(ends[0], buffer, SHORT, 0) == SHORT;
}

/* A command for a set of five semaphores, which is made and removed. */
static long of_semaphores(int command, void *p)
{
    int set = semget(IPC_PRIVATE, 5, 0600), result = semctl(set, 0, command, p), error = errno;
    CHECK(set >= 0 && semctl(set, 0, IPC_RMID) == 0);
    errno = error;
    return result;
}

#define SET(TYPE, ...) (*(TYPE *)p = (TYPE)__VA_ARGS__)
#define TEXT(S) memcpy(p, S, sizeof(S))
#define NOTHING (void)0

/* Functions that musl does not declare, or declares by another name. */
#ifdef __GLIBC__
#define OF_GLIBC(F)                                                                                \
    F(preadv2, preadv2, writes, SHORT, NOTHING,                                                    \
      (part.iov_base = p, preadv2(file, &part, 1, 0, 0)))                                          \
    F(getdents64, getdents64, writes, 1024, NOTHING, getdents64(open(".", O_RDONLY), p, 1024) > 0) \
    OUT(F, statx, struct statx, statx(AT_FDCWD, "file", 0, STATX_SIZE, p))
#else
#define OF_GLIBC(F)
#endif

/* F(name, function, what the kernel does, bytes, their first contents, the call) */
#define PATH(F, NAME, CALL) F(NAME, NAME, reads, sizeof NO_PATH, TEXT(NO_PATH), CALL)
#define OUT(F, NAME, TYPE, CALL) F(NAME, NAME, writes, sizeof(TYPE), NOTHING, CALL)
#define CALLS(F)                                                                                   \
    F(read, read, writes, SHORT, NOTHING, read(zeros, p, SHORT))                                   \
    F(pread, pread, writes, SHORT, NOTHING, pread(file, p, SHORT, 0))                              \
    F(readv, readv, writes, SHORT, NOTHING, (part.iov_base = p, readv(zeros, &part, 1)))           \
    F(preadv, preadv, writes, SHORT, NOTHING, (part.iov_base = p, preadv(file, &part, 1, 0)))      \
    OF_GLIBC(F)                                                                                    \
    F(readv_list, readv, reads, 2 * sizeof part,                                                   \
      SET(struct iovec, {buffer, 8}), readv(zeros, p, 2))                                          \
    F(write, write, reads, SHORT, NOTHING, write(nowhere, p, SHORT))                               \
    F(pwrite, pwrite, reads, SHORT, NOTHING, pwrite(file, p, SHORT, 0))                            \
    F(writev, writev, reads, SHORT, NOTHING, (part.iov_base = p, writev(nowhere, &part, 1)))       \
    F(pwritev, pwritev, reads, SHORT, NOTHING, (part.iov_base = p, pwritev(file, &part, 1, 0)))    \
    F(process_vm_readv, process_vm_readv, writes, SHORT, NOTHING,                                  \
      (part.iov_base = p,                                                                          \
       process_vm_readv(getpid(), &part, 1, &(struct iovec){buffer, SHORT}, 1, 0)))                \
    F(sendfile, sendfile, writes, sizeof(off_t), NOTHING, sendfile(ends[0], file, p, SHORT))       \
    F(copy_file_range, copy_file_range, writes, sizeof(off64_t), SET(off64_t, 64),                 \
      copy_file_range(file, p, file, &(off64_t){1024}, 8, 0))                                      \
    OUT(F, fstat, struct stat, fstat(file, p))                                                     \
    OUT(F, fstatfs, struct statfs, fstatfs(file, p))                                               \
    OUT(F, fstatvfs, struct statvfs, fstatvfs(file, p))                                            \
    F(fgetxattr, fgetxattr, reads, 10, TEXT("user.what"), fgetxattr(file, p, buffer, PAGE))        \
    F(getlk, fcntl, writes, sizeof(struct flock), SET(struct flock, {.l_type = F_WRLCK}),          \
      fcntl(file, F_GETLK, p))                                                                     \
    F(setlk, fcntl, reads, sizeof(struct flock), SET(struct flock, {.l_type = F_WRLCK}),           \
      fcntl(file, F_SETLK, p))                                                                     \
    F(fionread, ioctl, writes, sizeof(int), NOTHING, ioctl(ends[1], FIONREAD, p))                  \
    F(fionbio, ioctl, reads, sizeof(int), SET(int, 1), ioctl(ends[1], FIONBIO, p))                 \
    F(window, ioctl, writes, sizeof(struct winsize), NOTHING,                                      \
      ioctl(open("/dev/ptmx", O_RDWR | O_NOCTTY), TIOCGWINSZ, p))                                  \
    F(master, ioctl, writes, sizeof(int), NOTHING,                                                 \
      ioctl(open("/dev/ptmx", O_RDWR | O_NOCTTY), TIOCGPTN, p))                                    \
    F(readlink, readlink, writes, SHORT, NOTHING, readlink("link", p, SHORT))                      \
    PATH(F, open, is_open(open(p, O_RDONLY)))                                                      \
    PATH(F, openat, is_open(openat(AT_FDCWD, p, O_RDONLY)))                                        \
    PATH(F, creat, is_open(creat(p, 0600)))                                                        \
    F(stat_path, stat, reads, sizeof NO_PATH, TEXT(NO_PATH), stat(p, (struct stat *)buffer))       \
    F(lstat_path, lstat, reads, sizeof NO_PATH, TEXT(NO_PATH), lstat(p, (struct stat *)buffer))    \
    OUT(F, stat, struct stat, stat("file", p))                                                     \
    OUT(F, lstat, struct stat, lstat("file", p))                                                   \
    OUT(F, fstatat, struct stat, fstatat(AT_FDCWD, "file", p, 0))                                  \
    OUT(F, statfs, struct statfs, statfs(".", p))                                                  \
    OUT(F, statvfs, struct statvfs, statvfs(".", p))                                               \
    PATH(F, access, access(p, F_OK))                                                               \
    PATH(F, faccessat, faccessat(AT_FDCWD, p, F_OK, 0))                                            \
    PATH(F, unlink, unlink(p))                                                                     \
    PATH(F, rmdir, rmdir(p))                                                                       \
    PATH(F, remove, remove(p))                                                                     \
    PATH(F, mkdir, mkdir(p, 0700))                                                                 \
    PATH(F, mkfifo, mkfifo(p, 0700))                                                               \
    PATH(F, rename, rename(p, NO_PATH "2"))                                                        \
    F(rename_to, rename, reads, sizeof NO_PATH, TEXT(NO_PATH), rename("other", p))                 \
    PATH(F, link, link(p, "new"))                                                                  \
    PATH(F, symlink, symlink("to", p))                                                             \
    PATH(F, chdir, chdir(p))                                                                       \
    PATH(F, chmod, chmod(p, 0600))                                                                 \
    PATH(F, chown, chown(p, getuid(), getgid()))                                                   \
    PATH(F, truncate, truncate(p, 0))                                                              \
    F(utimes, utimes, reads, 2 * sizeof(struct timeval), NOTHING, utimes("file", p))               \
    F(utimensat, utimensat, reads, 2 * sizeof(struct timespec), NOTHING,                           \
      utimensat(AT_FDCWD, "file", p, 0))                                                           \
    PATH(F, fopen, fopen(p, "r") ? 0 : -1)                                                         \
    PATH(F, opendir, opendir(p) ? 0 : -1)                                                          \
    PATH(F, realpath, realpath(p, buffer) ? 0 : -1)                                                \
    F(getcwd, getcwd, writes, PAGE, NOTHING, getcwd(p, PAGE) ? 0 : -1)                             \
    F(execve, execve, reads, sizeof "/bin/true", TEXT("/bin/true"),                                \
      IN_CHILD(execve(p, words, environ)))                                                         \
    F(execl, execv, reads, sizeof "/bin/true", TEXT("/bin/true"),                                  \
      IN_CHILD(execl(p, "true", NULL)))                                                            \
    F(execv_list, execv, reads, 2 * sizeof(char *), SET(char *, "true"),                           \
      IN_CHILD(execv("/bin/true", p)))                                                             \
    F(execle_word, execve, reads, SHORT, TEXT("0123456789012345678901234567890"),                  \
      IN_CHILD(execle("/bin/true", "true", p, NULL, environ)))                                     \
    F(posix_spawn, posix_spawn, writes, sizeof(pid_t), NOTHING,                                    \
      posix_spawn(p, "/bin/true", NULL, NULL, words, environ))                                     \
    F(system, system, reads, sizeof "exit 7", TEXT("exit 7"), WEXITSTATUS(system(p)))              \
    OUT(F, wait, int, wait(p) == child_process)                                                    \
    OUT(F, waitpid, int, waitpid(child_process, p, 0) == child_process)                            \
    F(wait4, wait4, writes, sizeof(struct rusage), NOTHING,                                        \
      wait4(child_process, NULL, 0, p) == child_process)                                           \
    F(send, send, reads, SHORT, NOTHING, send(ends[0], p, SHORT, 0))                               \
    F(sendto, sendto, reads, SHORT, NOTHING, sendto(ends[0], p, SHORT, 0, NULL, 0))                \
    F(recv, recv, writes, SHORT, NOTHING, sent() + recv(ends[1], p, SHORT, 0))                     \
    F(recvfrom, recvfrom, writes, SHORT, NOTHING,                                                  \
      sent() + recvfrom(ends[1], buffer, SHORT, 0, p, (length = SHORT, &length)))                  \
    F(sendmsg, sendmsg, reads, sizeof(struct msghdr), SET(struct msghdr, *message()),              \
      (part.iov_base = buffer, sendmsg(ends[0], p, 0)))                                            \
    F(sendmsg_part, sendmsg, reads, SHORT, NOTHING,                                                \
      (part.iov_base = p, sendmsg(ends[0], message(), 0)))                                         \
    F(recvmsg_part, recvmsg, writes, SHORT, NOTHING,                                               \
      (sent(), part.iov_base = p, recvmsg(ends[1], message(), 0)))                                 \
    F(recvmmsg, recvmmsg, writes, SHORT, NOTHING,                                                  \
      (sent(), part.iov_base = p,                                                                  \
      recvmmsg(ends[1], &(struct mmsghdr){*message(), 0}, 1, 0, NULL)))                            \
    F(bind, bind, reads, sizeof(struct sockaddr_un), name_of(p, "bound"),                          \
      bind(bound, p, sizeof(struct sockaddr_un)))                                                  \
    F(connect, connect, reads, sizeof(struct sockaddr_un), name_of(p, "listening"),                \
      connect(bound, p, sizeof(struct sockaddr_un)))                                               \
    F(getsockname, getsockname, writes, sizeof(struct sockaddr_un), NOTHING,                       \
      getsockname(listening, p, (length = sizeof(struct sockaddr_un), &length)))                   \
    F(getsockname_length, getsockname, writes, sizeof length, SET(socklen_t, PAGE),                \
      getsockname(listening, (struct sockaddr *)buffer, p))                                        \
    F(getsockopt, getsockopt, writes, sizeof(int), NOTHING,                                        \
      getsockopt(bound, SOL_SOCKET, SO_TYPE, p, (length = sizeof(int), &length)))                  \
    F(setsockopt, setsockopt, reads, sizeof(int), SET(int, 1),                                     \
      setsockopt(bound, SOL_SOCKET, SO_KEEPALIVE, p, sizeof(int)))                                 \
    F(socketpair, socketpair, writes, sizeof(int[2]), NOTHING,                                     \
      socketpair(AF_UNIX, SOCK_STREAM, 0, p))                                                      \
    F(pipe, pipe, writes, sizeof(int[2]), NOTHING, pipe(p))                                        \
    F(pipe2, pipe2, writes, sizeof(int[2]), NOTHING, pipe2(p, O_CLOEXEC))                          \
    F(memfd_create, memfd_create, reads, SHORT, TEXT("0123456789012345678901234567890"),           \
      is_open(memfd_create(p, 0)))                                                                 \
    F(poll, poll, writes, sizeof(struct pollfd), SET(struct pollfd, {.fd = 1}), poll(p, 1, 0))     \
    F(ppoll, ppoll, reads, sizeof(struct timespec), NOTHING, ppoll(NULL, 0, p, NULL))              \
    F(select, select, writes, 8, NOTHING, select(3, p, NULL, NULL, &(struct timeval){0}))          \
    F(pselect, pselect, reads, sizeof(struct timespec), NOTHING,                                   \
      pselect(0, NULL, NULL, NULL, p, NULL))                                                       \
    F(epoll_ctl, epoll_ctl, reads, sizeof(struct epoll_event),                                     \
      SET(struct epoll_event, {.events = EPOLLIN}), epoll_ctl(polls, EPOLL_CTL_ADD, ends[0], p))   \
    F(epoll_wait, epoll_wait, writes, 2 * sizeof(struct epoll_event), NOTHING,                     \
      epoll_wait(polls, p, 2, 0))                                                                  \
    OUT(F, clock_gettime, struct timespec, clock_gettime(CLOCK_MONOTONIC, p))                      \
    OUT(F, gettimeofday, struct timeval, gettimeofday(p, NULL))                                    \
    OUT(F, time, time_t, time(p) > 0)                                                              \
    F(nanosleep, nanosleep, reads, sizeof(struct timespec), SET(struct timespec, {0, 1000}),       \
      nanosleep(p, NULL))                                                                          \
    F(clock_nanosleep, clock_nanosleep, reads, sizeof(struct timespec),                            \
      SET(struct timespec, {0, 1000}), clock_nanosleep(CLOCK_MONOTONIC, 0, p, NULL))               \
    OUT(F, getitimer, struct itimerval, getitimer(ITIMER_REAL, p))                                 \
    F(setitimer, setitimer, reads, sizeof(struct itimerval), NOTHING,                              \
      setitimer(ITIMER_REAL, p, NULL))                                                             \
    OUT(F, timer_create, timer_t, timer_create(CLOCK_MONOTONIC, NULL, p))                          \
    F(timer_create_how, timer_create, reads, sizeof(struct sigevent),                              \
      SET(struct sigevent, {.sigev_notify = SIGEV_NONE}), timer_create(CLOCK_MONOTONIC, p, &made)) \
    OUT(F, mq_getattr, struct mq_attr, mq_getattr(queue, p))                                       \
    F(mq_notify, mq_notify, reads, sizeof(struct sigevent),                                        \
      SET(struct sigevent, {.sigev_notify = SIGEV_NONE}), mq_notify(queue, p))                     \
    OUT(F, timerfd_gettime, struct itimerspec, timerfd_gettime(timer, p))                          \
    F(timerfd_settime, timerfd_settime, reads, sizeof(struct itimerspec),                          \
      SET(struct itimerspec, {{0}, {10, 0}}), timerfd_settime(timer, 0, p, NULL))                  \
    F(sigprocmask, sigprocmask, writes, 8, NOTHING, sigprocmask(SIG_BLOCK, NULL, p))               \
    F(pthread_sigmask, pthread_sigmask, reads, 8, NOTHING, pthread_sigmask(SIG_BLOCK, p, NULL))    \
    OUT(F, uname, struct utsname, uname(p))                                                        \
    F(gethostname, gethostname, writes, 256, NOTHING, gethostname(p, 256))                         \
    OUT(F, sysinfo, struct sysinfo, sysinfo(p))                                                    \
    OUT(F, getrlimit, struct rlimit, getrlimit(RLIMIT_NOFILE, p))                                  \
    F(setrlimit, prlimit, reads, sizeof(struct rlimit), SET(struct rlimit, {0, 0}),                \
      setrlimit(RLIMIT_CORE, p))                                                                   \
    OUT(F, prlimit, struct rlimit, prlimit(0, RLIMIT_NOFILE, NULL, p))                             \
    OUT(F, getrusage, struct rusage, getrusage(RUSAGE_SELF, p))                                    \
    F(getrandom, getrandom, writes, SHORT, NOTHING, getrandom(p, SHORT, 0))                        \
    F(semctl_getall, semctl, writes, 5 * sizeof(short), NOTHING, of_semaphores(GETALL, p))         \
    F(semctl_setall, semctl, reads, 5 * sizeof(short), NOTHING, of_semaphores(SETALL, p))          \
    F(sched_getaffinity, sched_getaffinity, writes, 128, NOTHING, sched_getaffinity(0, 128, p))

static int child_process;

#define DEFINE(NAME, FUNCTION, DOES, BYTES, INIT, CALL)                                            \
    static void init_##NAME(void *p)                                                               \
    {                                                                                              \
        (void)p, INIT;                                                                             \
    }                                                                                              \
    static long call_##NAME(void *p)                                                               \
    {                                                                                              \
        return CALL;                                                                               \
    }
CALLS(DEFINE)

static const struct call {
    const char *name, *function, *does;
    size_t bytes;
    void (*init)(void *);
    long (*call)(void *);
} calls[] = {
#define ENTRY(NAME, FUNCTION, DOES, BYTES, INIT, CALL)                                             \
    {#NAME, #FUNCTION, #DOES, BYTES, init_##NAME, call_##NAME},
    CALLS(ENTRY)
};
enum { COUNT = sizeof calls / sizeof *calls };

/* Pointers into an inaccessible page, and to unmapped memory. */
static void leads_nowhere(void)
{
    char *shut = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(shut != MAP_FAILED);
    char *bad[] = {shut, shut + PAGE - 4, (char *)8, (char *)-64};
    for (int i = 0; i < 4; i++) {
        void *p = bad[i];
        CHECK(writev(nowhere, p, 1) < 0 && errno == EFAULT);
        CHECK(sendmsg(ends[0], p, 0) < 0 && errno == EFAULT);
        CHECK(getsockname(bound, (struct sockaddr *)buffer, p) < 0 && errno == EFAULT);
        CHECK(execve("/bin/true", p, NULL) < 0 && errno == EFAULT);
        CHECK(execve("/bin/true", (char *[]){p, NULL}, NULL) < 0 && errno == EFAULT);
        CHECK(stat("file", p) < 0 && errno == EFAULT && open(p, O_RDONLY) < 0 && errno == EFAULT);
        CHECK(fcntl(file, F_GETLK, p) < 0 && errno == EFAULT && uname(p) < 0 && errno == EFAULT);
        CHECK(syscall(SYS_uname, p) < 0 && errno == EFAULT);
    }
    /* These commands take no argument, so a register's old contents are passed. */
    char *volatile block = malloc(1);
    CHECK(of_semaphores(GETPID, block) >= 0 && of_semaphores(GETZCNT, block) == 0);
    CHECK(syscall(SYS_getpid) == getpid());
    CHECK(syscall(SYS_openat, AT_FDCWD, "none", O_RDONLY) == -1 && errno == ENOENT);
}

int main(int count, char **argv)
{
    /* The programs that this one runs use the system's C library. The preloaded library may be for
     * another C library. */
    unsetenv("LD_PRELOAD");
    const char *how = count > 1 ? argv[1] : "";
    const char *name = count > 2 ? argv[2] : "";
    const struct call *c = calls;
    if (strcmp(how, "list") == 0) {
        for (; c < calls + COUNT; c++)
            printf("%s %s %s\n", c->name, c->function, c->does);
        return 0;
    }
    begin();
    if (strcmp(how, "nowhere") == 0) {
        leads_nowhere();
        return 0;
    }
    if (strcmp(how, "raw") == 0) {
        char *volatile block = malloc(64);
        free(block);
        CHECK(syscall(SYS_uname, block) == -1 && errno == EFAULT);
        return 0;
    }
    if (strcmp(how, "in-place") == 0) {
        make("other"), unlink("link");
        CHECK(symlink("file", "link") == 0);
        char *volatile p = memcpy(malloc(4), "link", 4), *volatile to = p;
        CHECK(readlink(p, to, 4) == 4 && memcmp(to, "file", 4) == 0);
        return 0;
    }
    while (strcmp(c->name, name) != 0)
        CHECK(++c < calls + COUNT);
    static char still[PAGE] __attribute__((aligned(16)));
    part = (struct iovec){buffer, SHORT};
    make("other"), unlink("link");
    CHECK(symlink("file", "link") == 0);
    if (strncmp(name, "wait", 4) == 0)
        child_process = child();
    int is_beyond = strcmp(how, "beyond") == 0, is_freed = strcmp(how, "freed") == 0;
    if (strcmp(how, "zeros") != 0)
        c->init(still);
    char *volatile p = still;
    if (is_beyond || is_freed || strcmp(how, "right") == 0) {
        p = malloc(c->bytes - (size_t)is_beyond);
        CHECK(p);
        memcpy(p, still, c->bytes - (size_t)is_beyond);
    }
    if (is_freed)
        free(p);
    errno = 0;
    long result = c->call(p);
    int error = result < 0 ? errno : 0;
    printf("%ld %d\n", result, error);
    fflush(stdout);
    _exit(0);
}
