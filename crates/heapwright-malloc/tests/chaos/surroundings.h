/*
 *   chaos in SURROUNDINGS SEED FOLDER MS STACK
 *
 * One thread allocates, in surroundings that a program makes for itself or finds:
 *
 *   sandbox     a filter that kills for each call but those of docs/platforms.md
 *   closed      descriptors 0, 1 and 2 are closed; then the program's own files get these numbers,
 *               and must stay empty
 *   no-files    no file may have a byte (RLIMIT_FSIZE), and the signal for that ends the program
 *   stack       a coroutine's stack of STACK bytes, above an inaccessible page
 *   group       a control group of 64 MiB, of either version, in which one buffer follows another
 *   strangers   another user's link, pipe or file stands in the place of each file that the library
 *               makes
 *
 * With an odd seed the surroundings exist when the library is loaded. (The filter comes just before
 * the first allocation.) `instead` (refusals.h) leads the library's system calls here. After 20 s
 * SIGALRM ends the program.
 */
#ifndef SURROUNDINGS_H
#define SURROUNDINGS_H

#include "watchdog.h"
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { GROUP_LIMIT = 64 << 20, DIAGNOSES = 700 };

static const char *surroundings = "", *folder;
static uint64_t strange;
static int open_at_first, is_back, is_second_version;

static int is_in(const char *name) { return !strcmp(surroundings, name); }

static int open_files(void)
{
    int count = 0;
    for (int file = 0; file < DIAGNOSES; file++)
        count += raw_call(SYS_fcntl, file, F_GETFD, 0, 0, 0, 0) >= 0;
    return count;
}

/* Resident bytes of the process's own memory, which a control group counts. */
static size_t resident(void)
{
    char text[64], *at = text;
    contents("/proc/self/statm", text, sizeof text);
    strtoul(at, &at, 10);
    size_t pages = strtoul(at, &at, 10);
    return (pages - strtoul(at, NULL, 10)) * (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- a control group ---- */

static long in_group(long number, long a, long b, long c, long d, long e, long f)
{
    const char *path = number == SYS_openat ? (const char *)b : "";
    const char *folders[] = { "/sys/fs/cgroup/memory/job/", "/sys/fs/cgroup/job/" };
    const char *limits[] = { "memory.limit_in_bytes", "memory.max" };
    const char *used[] = { "memory.usage_in_bytes", "memory.current" };
    const char *group = folders[is_second_version];
    size_t length = strlen(group);
    char text[128];
    if (!strcmp(path, "/proc/self/cgroup"))
        strcpy(text, is_second_version ? "0::/job\n" : "4:cpu,memory:/job\n");
    else if (strncmp(path, "/sys/fs/cgroup", 14) != 0)
        return raw_call(number, a, b, c, d, e, f);
    else if (strncmp(path, group, length) != 0)
        return -ENOENT;
    else if (!strcmp(path + length, limits[is_second_version]))
        snprintf(text, sizeof text, "%d\n", GROUP_LIMIT);
    else if (!strcmp(path + length, used[is_second_version]))
        snprintf(text, sizeof text, "%zu\n", resident());
    else if (!strcmp(path + length, "memory.stat"))
        strcpy(text, "inactive_file 0\ntotal_inactive_file 0\n");
    else
        return -ENOENT;
    long file = raw_call(SYS_memfd_create, (long)"group", 0, 0, 0, 0, 0);
    CHECK(file >= 0 && raw_call(SYS_pwrite64, file, (long)text, (long)strlen(text), 0, 0, 0) > 0);
    return file;
}

/* Frees a buffer before a longer one comes. The bytes in use fit, so the group kills no process. */
static void buffers(uint64_t live)
{
    static char *buffer;
    static size_t size = 4 << 20;
    free(buffer);
    size += size / 40 + (1 << 20);
    if (size + live > GROUP_LIMIT / 4 * 3)
        size = 4 << 20;
    buffer = size % 3 ? malloc(size) : calloc(1, size);
    CHECK(buffer != NULL);
    memset(buffer, 1, size);
    size_t have = resident();
    if (have > GROUP_LIMIT) {
        say("chaos: the group is full: %zu bytes are resident, with a buffer of %zu\n", have, size);
        end_at_once(1);
    }
}

/* ---- strangers ---- */

__attribute__((noreturn)) static void gave_in(const char *what, const char *path)
{
    say("chaos: a stranger's file %s: %s\n", what, path);
    end_at_once(1);
}

/* Puts another user's file, link or pipe in the place of a file that the library will make. */
static void be_a_stranger(const char *path, const char *victim)
{
    int how = (int)(next_random(&strange) % 5);
    const char *his = how ? victim : path;
    long file = raw_call(SYS_openat, AT_FDCWD, (long)his, O_CREAT | O_RDWR, 0666, 0, 0);
    if (file < 0)
        return;
    /* (Only root can make another user's file.) */
    if (how == 0 && fchown((int)file, 65534, 65534) != 0)
        CHECK(unlink(path) == 0);
    raw_call(SYS_close, file, 0, 0, 0, 0, 0);
    int made = 0;
    switch (how) {
    case 1: made = symlink(victim, path); break;
    case 2: made = link(victim, path); break;
    case 3: made = mkfifo(path, 0666); break;
    }
    /* (The file's folder may be missing.) */
    CHECK(made == 0 || errno == ENOENT);
}

/* The library may open and read another user's file, but may not change it. */
static long among_strangers(long number, long a, long b, long c, long d, long e, long f)
{
    static long strangers = -1;
    const char *path = number == SYS_openat ? (const char *)b : "";
    int writes = (c & O_ACCMODE) != O_RDONLY && *path && strncmp(path, "/proc/", 6) != 0;
    char victim[512];
    struct stat is, his;
    snprintf(victim, sizeof victim, "%s/victim", folder);
    if (writes && lstat(path, &is) != 0)
        be_a_stranger(path, victim);
    if (number == SYS_write && a == strangers)
        gave_in("was written to", "");
    if (number == SYS_close && a == strangers)
        strangers = -1;
    long result = raw_call(number, a, b, c, d, e, f);
    if (result >= 0 && writes) {
        CHECK(fstat((int)result, &is) == 0);
        int is_victim = stat(victim, &his) == 0 && his.st_ino == is.st_ino;
        if (is_victim || !S_ISREG(is.st_mode) || is.st_uid != geteuid()) {
            if (c & O_TRUNC)
                gave_in("was cut", path);
            strangers = result;
        } else if ((is.st_mode & 077) != 0) {
            say("chaos: others may read %s: %o\n", path, (unsigned)is.st_mode);
            end_at_once(1);
        }
    }
    return result;
}

/* ---- the rest ---- */

#define ALLOW(number)                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void enter_sandbox(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mremap), ALLOW(SYS_mprotect),
        ALLOW(SYS_madvise), ALLOW(SYS_futex), ALLOW(SYS_write), ALLOW(SYS_clock_gettime),
        ALLOW(SYS_exit), ALLOW(SYS_exit_group),
        /* The handler prints the call's number, and ends the program. */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    /* The library's prctl sees the call. (The program's own prctl comes before it.) */
    int (*library_prctl)(int, ...) = (int (*)(int, ...))dlsym(RTLD_NEXT, "prctl");
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(library_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void close_all(void)
{
    say_to = DIAGNOSES;
    CHECK(fcntl(2, F_DUPFD, DIAGNOSES) == DIAGNOSES);
    for (int file = 0; file < 3; file++)
        close(file);
}

/* Before the library's constructor. */
static void prepare(char **argv)
{
    surroundings = argv[2];
    is_back = !strcmp(argv[1], "back");
    say_to = is_back && is_in("closed") ? DIAGNOSES : 2;
    strange = (strtoul(argv[3], NULL, 10) + 1) * 0x9e3779b97f4a7c15u | 1;
    is_second_version = strtol(argv[3], NULL, 10) / 2 % 2;
    folder = argv[4];
    open_at_first = open_files();
    if (is_in("group"))
        instead = in_group;
    if (is_in("strangers"))
        instead = among_strangers;
}

/* Enters the surroundings. `anew`: starts the program again in them. */
static void enter(char **argv, int anew)
{
    struct rlimit none = { 0, 0 };
    if (is_in("sandbox"))
        enter_sandbox();
    if (is_in("no-files"))
        CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    if (is_in("closed"))
        close_all();
    if (anew && (is_in("no-files") || is_in("closed"))) {
        argv[1] = "back";
        execv("/proc/self/exe", argv);
        CHECK(!"execv");
    }
}

#endif
