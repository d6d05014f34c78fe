/*
 * Each function that only libheapwright-check.so interposes, as a program calls it.
 *
 *   readers list          the functions' names, and whether each reads or writes
 *   readers right         calls all functions: up to the last byte of a block, of static memory, of the stack
 *   readers beyond NAME   calls one: one character too many, or no end
 *   readers freed NAME    calls one: in a freed block
 *   readers before NAME   calls one: from one character before a block
 */
#include "check.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <syslog.h>
#include <wchar.h>

#define WEAK __attribute__((weak))

#ifndef __GLIBC__
void *rawmemchr(const void *, int) WEAK;
#endif
char *__strdup(const char *) WEAK;
char *__strndup(const char *, size_t) WEAK;
char *__strtok_r(char *, const char *, char **) WEAK;
ssize_t __getdelim(char **, size_t *, int, FILE *) WEAK;
long __isoc23_strtol(const char *, char **, int) WEAK;
unsigned long __isoc23_strtoul(const char *, char **, int) WEAK;
long long __isoc23_strtoll(const char *, char **, int) WEAK;
unsigned long long __isoc23_strtoull(const char *, char **, int) WEAK;
int __printf_chk(int, const char *, ...) WEAK;
int __fprintf_chk(FILE *, int, const char *, ...) WEAK;
int __dprintf_chk(int, int, const char *, ...) WEAK;
int __asprintf_chk(char **, int, const char *, ...) WEAK;
void __syslog_chk(int, int, const char *, ...) WEAK;
int __vprintf_chk(int, const char *, va_list) WEAK;
int __vfprintf_chk(FILE *, int, const char *, va_list) WEAK;
int __vdprintf_chk(int, int, const char *, va_list) WEAK;
int __vasprintf_chk(char **, int, const char *, va_list) WEAK;
void __vsyslog_chk(int, int, const char *, va_list) WEAK;
int __isoc99_vsscanf(const char *, const char *, va_list) WEAK;
int __isoc99_sscanf(const char *, const char *, ...) WEAK;
int __isoc23_vsscanf(const char *, const char *, va_list) WEAK;
int __isoc23_sscanf(const char *, const char *, ...) WEAK;
/* The headers give these two functions other names. */
int plain_sscanf(const char *, const char *, ...) __asm__("sscanf");
int plain_vsscanf(const char *, const char *, va_list) __asm__("vsscanf");

enum { BLOCK = 64, MOST = 4096, ONE = '1' };

/* The characters that fill blocks, and more of them. */
static char same[MOST];
static wchar_t wide_same[MOST];
static char other[MOST];
static int zeros, nowhere, file, ends[2];
static FILE *out, *wide_out, *lines;

static void begin(void)
{
    memset(same, ONE, MOST - 1);
    wmemset(wide_same, ONE, MOST - 1);
    zeros = open("/dev/zero", O_RDONLY);
    nowhere = open("/dev/null", O_WRONLY);
    file = memfd_create("file", 0);
    out = fopen("/dev/null", "w");
    wide_out = fopen("/dev/null", "w");
    lines = tmpfile();
    CHECK(zeros >= 0 && nowhere >= 0 && file >= 0 && out && wide_out && lines);
    CHECK(ftruncate(file, MOST) == 0 && fputs("a line\n", lines) >= 0);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    CHECK(dup2(nowhere, 1) == 1);
}

static FILE *line(void)
{
    rewind(lines);
    return lines;
}

static int compare(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

static int compare_with(const void *a, const void *b, void *with)
{
    return with == same ? compare(a, b) : 0;
}

static struct iovec part(const char *from, size_t n)
{
    return (struct iovec){(void *)(uintptr_t)from, n};
}

static struct msghdr message(struct iovec *part)
{
    return (struct msghdr){.msg_iov = part, .msg_iovlen = 1};
}

static int printed(int how, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *made = NULL;
    int length = how == 0   ? vprintf(format, list)
                 : how == 1 ? vfprintf(out, format, list)
                 : how == 2 ? vdprintf(nowhere, format, list)
                 : how == 3 ? vasprintf(&made, format, list)
                 : how == 4 ? (vsyslog(LOG_DEBUG, format, list), 0)
                 : how == 5 ? __vprintf_chk(1, format, list)
                 : how == 6 ? __vfprintf_chk(out, 1, format, list)
                 : how == 7 ? __vdprintf_chk(nowhere, 1, format, list)
                 : how == 8 ? __vasprintf_chk(&made, 1, format, list)
                            : (__vsyslog_chk(LOG_DEBUG, 1, format, list), 0);
    va_end(list);
    free(made);
    return length;
}

static int taken(int how, const char *text, ...)
{
    va_list list;
    va_start(list, text);
    int count = how == 0   ? plain_vsscanf(text, "%*s", list)
                : how == 1 ? __isoc99_vsscanf(text, "%*s", list)
                           : __isoc23_vsscanf(text, "%*s", list);
    va_end(list);
    return count;
}

/*
 * The functions: F(name, bytes of a character, kind of argument, reads or writes, call). A call
 * takes n characters at `from` (or `wide`), or a STRING of n characters, the end included.
 */
#define FUNCTIONS(F)                                                                                  \
    F(memcmp, 1, BYTES, reads, memcmp(from, same, n) == 0)                                            \
    F(bcmp, 1, BYTES, reads, bcmp(from, same, n) == 0)                                                \
    F(memchr, 1, BYTES, reads, memchr(from, 'x', n) == NULL)                                          \
    F(memrchr, 1, BYTES, reads, memrchr(from, 'x', n) == NULL)                                        \
    F(rawmemchr, 1, STRING, reads, rawmemchr(from, 0) == from + n - 1)                                \
    F(memmem, 1, BYTES, reads, memmem(from, n, "xyz", 3) == NULL)                                     \
    F(wmemcmp, 4, BYTES, reads, wmemcmp(wide, wide_same, n) == 0)                                     \
    F(wmemchr, 4, BYTES, reads, wmemchr(wide, L'x', n) == NULL)                                       \
    F(strlen, 1, STRING, reads, strlen(from) == n - 1)                                                \
    F(strnlen, 1, BYTES, reads, strnlen(from, n) == n)                                                \
    F(strcmp, 1, STRING, reads, strcmp(from, same) < 0)                                               \
    F(strncmp, 1, BYTES, reads, strncmp(from, same, n) == 0)                                          \
    F(strcasecmp, 1, STRING, reads, strcasecmp(from, same) < 0)                                       \
    F(strncasecmp, 1, BYTES, reads, strncasecmp(from, same, n) == 0)                                  \
    F(strcoll, 1, STRING, reads, strcoll(from, same) < 0)                                             \
    F(strxfrm, 1, STRING, reads, strxfrm(other, from, MOST) == n - 1)                                 \
    F(strchr, 1, STRING, reads, strchr(from, 'x') == NULL)                                            \
    F(strrchr, 1, STRING, reads, strrchr(from, 'x') == NULL)                                          \
    F(strchrnul, 1, STRING, reads, strchrnul(from, 'x') == from + n - 1)                              \
    F(index, 1, STRING, reads, index(from, 'x') == NULL)                                              \
    F(rindex, 1, STRING, reads, rindex(from, 'x') == NULL)                                            \
    F(strstr, 1, STRING, reads, strstr(from, "xy") == NULL)                                           \
    F(strcasestr, 1, STRING, reads, strcasestr(from, "xy") == NULL)                                   \
    F(strspn, 1, STRING, reads, strspn(from, "1") == n - 1)                                           \
    F(strcspn, 1, STRING, reads, strcspn(from, "x") == n - 1)                                         \
    F(strpbrk, 1, STRING, reads, strpbrk(from, "xy") == NULL)                                         \
    F(strtok, 1, STRING, reads, strtok(from, "x") == from)                                            \
    F(strtok_r, 1, STRING, reads, (rest = from, strtok_r(NULL, "x", &rest) == from))                  \
    F(__strtok_r, 1, STRING, reads, __strtok_r(from, "x", &rest) == from)                             \
    F(strsep, 1, STRING, reads, (rest = from, strsep(&rest, "x") == from))                            \
    F(strdup, 1, STRING, reads, drop(strdup(from)))                                                   \
    F(__strdup, 1, STRING, reads, drop(__strdup(from)))                                               \
    F(strndup, 1, BYTES, reads, drop(strndup(from, n)))                                               \
    F(__strndup, 1, BYTES, reads, drop(__strndup(from, n)))                                           \
    F(atoi, 1, STRING, reads, atoi(from) != 0)                                                        \
    F(atol, 1, STRING, reads, atol(from) != 0)                                                        \
    F(atoll, 1, STRING, reads, atoll(from) != 0)                                                      \
    F(atof, 1, STRING, reads, atof(from) > 1)                                                         \
    F(strtol, 1, STRING, reads, strtol(from, NULL, 10) != 0)                                          \
    F(strtoul, 1, STRING, reads, strtoul(from, NULL, 10) != 0)                                        \
    F(strtoll, 1, STRING, reads, strtoll(from, NULL, 10) != 0)                                        \
    F(strtoull, 1, STRING, reads, strtoull(from, NULL, 10) != 0)                                      \
    F(strtod, 1, STRING, reads, strtod(from, NULL) > 1)                                               \
    F(strtof, 1, STRING, reads, strtof(from, NULL) > 1)                                               \
    F(__isoc23_strtol, 1, STRING, reads, __isoc23_strtol(from, NULL, 10) != 0)                        \
    F(__isoc23_strtoul, 1, STRING, reads, __isoc23_strtoul(from, NULL, 10) != 0)                      \
    F(__isoc23_strtoll, 1, STRING, reads, __isoc23_strtoll(from, NULL, 10) != 0)                      \
    F(__isoc23_strtoull, 1, STRING, reads, __isoc23_strtoull(from, NULL, 10) != 0)                    \
    F(wcslen, 4, STRING, reads, wcslen(wide) == n - 1)                                                \
    F(wcsnlen, 4, BYTES, reads, wcsnlen(wide, n) == n)                                                \
    F(wcscmp, 4, STRING, reads, wcscmp(wide, wide_same) < 0)                                          \
    F(wcsncmp, 4, BYTES, reads, wcsncmp(wide, wide_same, n) == 0)                                     \
    F(wcschr, 4, STRING, reads, wcschr(wide, L'x') == NULL)                                           \
    F(wcsrchr, 4, STRING, reads, wcsrchr(wide, L'x') == NULL)                                         \
    F(wcsstr, 4, STRING, reads, wcsstr(wide, L"xy") == NULL)                                          \
    F(wcsdup, 4, STRING, reads, drop(wcsdup(wide)))                                                   \
    F(vprintf, 1, STRING, reads, printed(0, "%s", from) == (int)n - 1)                                \
    F(printf, 1, STRING, reads, printf("%d%s", 1, from) == (int)n)                                    \
    F(vfprintf, 1, STRING, reads, printed(1, "%g %Lg %s", 1.5, 2.5L, from) == (int)n + 7)             \
    F(fprintf, 1, BYTES, reads, fprintf(out, "%.*s", (int)n, from) == (int)n)                         \
    F(vdprintf, 1, STRING, reads, (printed(2, "%1$s", from), printed(2, "%s", from)) == (int)n - 1)   \
    F(dprintf, 1, STRING, reads, dprintf(nowhere, "%-80s%%%s", "x", from) == (int)n + 80)             \
    F(vasprintf, 1, STRING, reads, printed(3, "%s", from) == (int)n - 1)                              \
    F(asprintf, 1, STRING, reads, (asprintf(&rest, "%lld%c%s", 1LL, 'x', from), drop(rest)))          \
    F(vsyslog, 1, STRING, reads, printed(4, "%s", from) == 0)                                         \
    F(syslog, 1, STRING, reads, (syslog(LOG_DEBUG, "%s", from), 1))                                   \
    F(__vprintf_chk, 1, STRING, reads, printed(5, "%s", from) == (int)n - 1)                          \
    F(__printf_chk, 1, STRING, reads, __printf_chk(1, "%s", from) == (int)n - 1)                      \
    F(__vfprintf_chk, 1, STRING, reads, printed(6, "%s", from) == (int)n - 1)                         \
    F(__fprintf_chk, 1, STRING, reads,                                                                \
      __fprintf_chk(out, 1, "%d%d%d%d%f%f%f%f%f%f%f%f%f%s", 1, 2, 3, 4, 1., 2., 3., 4., 5., 6., 7.,   \
                    8., 9., from) == (int)n + 3 + 72)                                                 \
    F(__vdprintf_chk, 1, STRING, reads, printed(7, "%s", from) == (int)n - 1)                         \
    F(__dprintf_chk, 1, STRING, reads, __dprintf_chk(nowhere, 1, "%s", from) == (int)n - 1)           \
    F(__vasprintf_chk, 1, STRING, reads, printed(8, "%s", from) == (int)n - 1)                        \
    F(__asprintf_chk, 1, STRING, reads, (__asprintf_chk(&rest, 1, "%s", from), drop(rest)))           \
    F(__vsyslog_chk, 1, STRING, reads, printed(9, "%s", from) == 0)                                   \
    F(__syslog_chk, 1, STRING, reads, (__syslog_chk(LOG_DEBUG, 1, "%s", from), 1))                    \
    F(puts, 1, STRING, reads, puts(from) >= 0)                                                        \
    F(fputs, 1, STRING, reads, fputs(from, out) >= 0)                                                 \
    F(fputs_unlocked, 1, STRING, reads, fputs_unlocked(from, out) >= 0)                               \
    F(fputws, 4, STRING, reads, fputws(wide, wide_out) >= 0)                                          \
    F(vsscanf, 1, STRING, reads, taken(0, from) == 0)                                                 \
    F(sscanf, 1, STRING, reads, plain_sscanf(from, "%*s") == 0)                                       \
    F(__isoc99_vsscanf, 1, STRING, reads, taken(1, from) == 0)                                        \
    F(__isoc99_sscanf, 1, STRING, reads, __isoc99_sscanf(from, "%*s") == 0)                           \
    F(__isoc23_vsscanf, 1, STRING, reads, taken(2, from) == 0)                                        \
    F(__isoc23_sscanf, 1, STRING, reads, __isoc23_sscanf(from, "%*s") == 0)                           \
    F(write, 1, BYTES, reads, write(nowhere, from, n) == (ssize_t)n)                                  \
    F(pwrite, 1, BYTES, reads, pwrite(file, from, n, 0) == (ssize_t)n)                                \
    F(pwrite64, 1, BYTES, reads, pwrite64(file, from, n, 0) == (ssize_t)n)                            \
    F(send, 1, BYTES, reads, send(ends[0], from, n, 0) == (ssize_t)n)                                 \
    F(sendto, 1, BYTES, reads, sendto(ends[0], from, n, 0, NULL, 0) == (ssize_t)n)                    \
    F(writev, 1, BYTES, reads, (p = part(from, n), writev(nowhere, &p, 1) == (ssize_t)n))             \
    F(pwritev, 1, BYTES, reads, (p = part(from, n), pwritev(file, &p, 1, 0) == (ssize_t)n))           \
    F(sendmsg, 1, BYTES, reads,                                                                       \
      (p = part(from, n), m = message(&p), sendmsg(ends[0], &m, 0) == (ssize_t)n))                    \
    F(readv, 1, BYTES, writes, (p = part(from, n), readv(zeros, &p, 1) == (ssize_t)n))                \
    F(preadv, 1, BYTES, writes, (p = part(from, n), preadv(file, &p, 1, 0) == (ssize_t)n))            \
    F(recvmsg, 1, BYTES, writes,                                                                      \
      (p = part(from, n), m = message(&p), send(ends[0], same, n, 0),                                 \
       recvmsg(ends[1], &m, 0) > 0))                                                                  \
    F(fwrite, 1, BYTES, reads, fwrite(from, 1, n, out) == n)                                          \
    F(fwrite_unlocked, 1, BYTES, reads, fwrite_unlocked(from, n, 1, out) == 1)                        \
    F(getline, 1, BYTES, writes, (rest = from, size = n, getline(&rest, &size, line()) == 7))         \
    F(getdelim, 1, BYTES, writes, (rest = from, size = n, getdelim(&rest, &size, 10, line()) == 7))   \
    F(__getdelim, 1, BYTES, writes,                                                                   \
      (rest = from, size = n, __getdelim(&rest, &size, 10, line()) == 7))                             \
    F(qsort, 1, BYTES, writes, (qsort(from, n, 1, compare), 1))                                       \
    F(qsort_r, 1, BYTES, writes, (qsort_r(from, n, 1, compare_with, same), 1))                        \
    F(bsearch, 1, BYTES, reads, bsearch(same, from, n, 1, compare) != NULL)

enum takes { BYTES, STRING };

static int drop(void *made)
{
    free(made);
    return made != NULL;
}

#define DEFINE(NAME, UNIT, TAKES, DOES, CALL)                                                         \
    static int call_##NAME(char *from, size_t n)                                                      \
    {                                                                                                 \
        wchar_t *wide = (wchar_t *)(void *)from;                                                      \
        char *rest = NULL;                                                                            \
        size_t size = 0;                                                                              \
        struct iovec p;                                                                               \
        struct msghdr m;                                                                              \
        (void)wide, (void)rest, (void)size, (void)p, (void)m, (void)n;                                \
        return CALL;                                                                                  \
    }
FUNCTIONS(DEFINE)

static const struct function {
    const char *name, *does;
    size_t unit;
    enum takes takes;
    int (*call)(char *from, size_t n);
} functions[] = {
#define FUNCTION(NAME, UNIT, TAKES, DOES, CALL) {#NAME, #DOES, UNIT, TAKES, call_##NAME},
    FUNCTIONS(FUNCTION)
};
enum { COUNT = sizeof functions / sizeof *functions };

/* Fills BLOCK bytes with characters. */
static void paint_text(const struct function *f, char *to, int has_end)
{
    size_t n = BLOCK / f->unit;
    if (f->unit == 1)
        memset(to, ONE, n);
    else
        wmemcpy((wchar_t *)(void *)to, wide_same, n);
    if (has_end)
        memset(to + BLOCK - f->unit, 0, f->unit);
}

static void right(void)
{
    static char still[BLOCK] __attribute__((aligned(16)));
    char stack[BLOCK] __attribute__((aligned(16)));
    for (const struct function *f = functions; f < functions + COUNT; f++) {
        if (!is_in_c_library(f->name))
            continue;
        char *places[] = {malloc(BLOCK), still, stack};
        for (int i = 0; i < 3; i++) {
            paint_text(f, places[i], f->takes == STRING);
            int is_fine = f->call(places[i], BLOCK / f->unit);
            if (!is_fine)
                check_failed(f->name, i, "it does what it always does");
        }
        free(places[0]);
    }
    /* A function that stops early needs no memory behind its stop. Stray pointers are not read. */
    char *block = malloc(8);
    memcpy(block, "12,45,78", 8);
    CHECK(memchr(block, ',', SIZE_MAX) == block + 2);
    CHECK(!is_in_c_library("rawmemchr") || rawmemchr(block, ',') == block + 2);
    CHECK(strchr(block, ',') == block + 2 && strtol(block + 3, NULL, 10) == 45);
    CHECK(strcmp(block, "12;") != 0 && strncmp(block, "12,45,78 and more", 8) == 0);
    CHECK(strnlen(block, 8) == 8 && memcmp(block + 8, same, 0) == 0);
    CHECK(dprintf(nowhere, "%.8s %.3s", block, block + 5) == 12);
    char *volatile none = NULL;
    CHECK(dprintf(nowhere, "%s", none) > 0);
    char *copy = strndup(block, 8);
    CHECK(strlen(copy) == 8);
    free(copy);
    free(block);
    char *line = NULL;
    size_t size = 0;
    CHECK(getline(&line, &size, (rewind(lines), lines)) == 7);
    CHECK(getline(&line, &size, (rewind(lines), lines)) == 7);
    free(line);
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "";
    const char *name = count > 2 ? words[2] : "";
    if (strcmp(how, "list") == 0) {
        for (const struct function *f = functions; f < functions + COUNT; f++)
            if (is_in_c_library(f->name))
                printf("%s %s\n", f->name, f->does);
        return 0;
    }
    begin();
    if (strcmp(how, "right") == 0) {
        right();
        return 0;
    }
    const struct function *f = functions;
    while (strcmp(f->name, name) != 0)
        CHECK(++f < functions + COUNT);
    char *before = malloc(BLOCK), *block = malloc(BLOCK), *behind = malloc(BLOCK);
    CHECK(before && behind);
    int is_beyond = strcmp(how, "beyond") == 0;
    paint_text(f, block, f->takes == STRING && !is_beyond);
    size_t n = BLOCK / f->unit;
    char *volatile from = block;
    if (strcmp(how, "freed") == 0)
        free(block);
    else if (strcmp(how, "before") == 0)
        from -= f->unit;
    else
        CHECK(is_beyond);
    f->call(from, n + (size_t)is_beyond);
    _exit(0);
}
