/*
 * Each function of libheapwright-hardened.so, as a program calls it.
 *
 *   writers list, readers     prints the functions' names, and the bytes of a character of each
 *   writers right             calls all; each fills its destination to the last byte: in a block,
 *                             from the middle of a block to its end, on the stack, in static memory
 *   writers beyond NAME       calls one, with one character too many
 *   writers freed NAME        calls one, on a large freed block
 *   writers small-freed NAME  calls one, on a small freed block (which mode=debug knows)
 *   writers read NAME         calls one, with a source that ends with its block: correct
 *   writers read-beyond NAME  calls one, with one character too many of the source
 *
 * `right` leaves out functions that the C library lacks. With musl, so do `list` and `readers`.
 */
#include "check.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <wchar.h>

#define WEAK __attribute__((weak))

char *gets(char *) WEAK;
#ifndef __GLIBC__
wchar_t *wmempcpy(wchar_t *, const wchar_t *, size_t) WEAK;
#endif
size_t strlcpy(char *, const char *, size_t) WEAK;
size_t strlcat(char *, const char *, size_t) WEAK;
size_t __strlcpy_chk(char *, const char *, size_t, size_t) WEAK;
size_t __strlcat_chk(char *, const char *, size_t, size_t) WEAK;
void *__mempcpy(void *, const void *, size_t) WEAK;
void __bzero(void *, size_t) WEAK;
char *__stpcpy(char *, const char *) WEAK;
char *__stpncpy(char *, const char *, size_t) WEAK;
void *__memcpy_chk(void *, const void *, size_t, size_t) WEAK;
void *__memmove_chk(void *, const void *, size_t, size_t) WEAK;
void *__mempcpy_chk(void *, const void *, size_t, size_t) WEAK;
void *__memset_chk(void *, int, size_t, size_t) WEAK;
void __explicit_bzero_chk(void *, size_t, size_t) WEAK;
char *__strcpy_chk(char *, const char *, size_t) WEAK;
char *__stpcpy_chk(char *, const char *, size_t) WEAK;
char *__strcat_chk(char *, const char *, size_t) WEAK;
char *__strncpy_chk(char *, const char *, size_t, size_t) WEAK;
char *__stpncpy_chk(char *, const char *, size_t, size_t) WEAK;
char *__strncat_chk(char *, const char *, size_t, size_t) WEAK;
wchar_t *__wmemcpy_chk(wchar_t *, const wchar_t *, size_t, size_t) WEAK;
wchar_t *__wmemmove_chk(wchar_t *, const wchar_t *, size_t, size_t) WEAK;
wchar_t *__wmempcpy_chk(wchar_t *, const wchar_t *, size_t, size_t) WEAK;
wchar_t *__wmemset_chk(wchar_t *, wchar_t, size_t, size_t) WEAK;
wchar_t *__wcscpy_chk(wchar_t *, const wchar_t *, size_t) WEAK;
wchar_t *__wcpcpy_chk(wchar_t *, const wchar_t *, size_t) WEAK;
wchar_t *__wcscat_chk(wchar_t *, const wchar_t *, size_t) WEAK;
wchar_t *__wcsncpy_chk(wchar_t *, const wchar_t *, size_t, size_t) WEAK;
wchar_t *__wcpncpy_chk(wchar_t *, const wchar_t *, size_t, size_t) WEAK;
wchar_t *__wcsncat_chk(wchar_t *, const wchar_t *, size_t, size_t) WEAK;
int __vsprintf_chk(char *, int, size_t, const char *, va_list) WEAK;
int __vsnprintf_chk(char *, size_t, int, size_t, const char *, va_list) WEAK;
int __vswprintf_chk(wchar_t *, size_t, int, size_t, const wchar_t *, va_list) WEAK;
int __sprintf_chk(char *, int, size_t, const char *, ...) WEAK;
int __snprintf_chk(char *, size_t, int, size_t, const char *, ...) WEAK;
int __swprintf_chk(wchar_t *, size_t, int, size_t, const wchar_t *, ...) WEAK;
ssize_t __read_chk(int, void *, size_t, size_t) WEAK;
ssize_t __pread_chk(int, void *, size_t, off_t, size_t) WEAK;
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t) WEAK;
ssize_t __recv_chk(int, void *, size_t, size_t, int) WEAK;
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *) WEAK;
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *) WEAK;
size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *) WEAK;
char *__fgets_chk(char *, size_t, int, FILE *) WEAK;
char *__fgets_unlocked_chk(char *, size_t, int, FILE *) WEAK;
wchar_t *__fgetws_chk(wchar_t *, size_t, int, FILE *) WEAK;
char *__gets_chk(char *, size_t) WEAK;
ssize_t __readlink_chk(const char *, char *, size_t, size_t) WEAK;
ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t) WEAK;
char *__getcwd_chk(char *, size_t, size_t) WEAK;

enum { BLOCK = 64, LARGE = 1 << 20, MOST = 256, NO_LIMIT = -1 };
#define UNKNOWN ((size_t)NO_LIMIT)
#define W ((size_t)sizeof(wchar_t))

/* The source of copies: more bytes than any call copies. */
static char source[MOST];
static wchar_t wide_source[MOST];
static char text[MOST + 1];
static wchar_t wide_text[MOST + 1];

/* A string of this many characters. */
static const char *string(size_t length)
{
    return text + MOST - length;
}

static const wchar_t *wide_string(size_t length)
{
    return wide_text + MOST - length;
}

static int zeros(void)
{
    static int file = -1;
    if (file < 0)
        file = open("/dev/zero", O_RDONLY);
    CHECK(file >= 0);
    return file;
}

/* A socket with this many bytes waiting. */
static int sent(size_t bytes)
{
    static int ends[2] = {-1, -1};
    if (ends[0] < 0)
        CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    CHECK(send(ends[1], source, bytes, 0) == (ssize_t)bytes);
    return ends[0];
}

/* A stream of one long line, at its start: for plain and for wide characters. */
static FILE *streams[2];

static FILE *line(void)
{
    rewind(streams[0]);
    return streams[0];
}

static FILE *wide_line(void)
{
    rewind(streams[1]);
    return streams[1];
}

/* Opened before any block is freed whose memory the streams' buffers could take. */
static void open_streams(void)
{
    for (int i = 0; i < 2; i++) {
        streams[i] = tmpfile();
        CHECK(streams[i] && write(fileno(streams[i]), text, MOST) == MOST);
    }
    CHECK(fgetc(line()) == 't' && fgetwc(wide_line()) == L't');
}

/* A symbolic link to a long name, which ends with the process. */
static const char *link_name(void)
{
    static char path[64];
    if (!path[0]) {
        int file = memfd_create(string(MOST / 2), 0);
        CHECK(file >= 0);
        CHECK(snprintf(path, sizeof path, "/proc/self/fd/%d", file) < (int)sizeof path);
    }
    return path;
}

/* Whether code other than the tested call may touch the destination. */
static int is_touched = 1;

/* Puts a string of one character there, for functions that append. */
static void begin(char *to)
{
    if (is_touched)
        to[0] = 'a', to[1] = 0;
}

static void wide_begin(wchar_t *to)
{
    if (is_touched)
        to[0] = L'a', to[1] = 0;
}

/* Makes standard input: a line of this many characters, and another line. */
static void type(size_t length)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], source, length) == (ssize_t)length);
    CHECK(write(ends[1], "\nmore\n", 6) == 6);
    CHECK(dup2(ends[0], 0) == 0);
    close(ends[0]);
    close(ends[1]);
    CHECK(setvbuf(stdin, NULL, _IONBF, 0) == 0);
}

static int print_list(char *to, size_t n, int how, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int made = how == 0   ? vsprintf(to, format, list)
               : how == 1 ? vsnprintf(to, n, format, list)
               : how == 2 ? __vsprintf_chk(to, 1, UNKNOWN, format, list)
                          : __vsnprintf_chk(to, n, 1, UNKNOWN, format, list);
    va_end(list);
    return made;
}

static int wide_print_list(wchar_t *to, size_t n, int how, const wchar_t *format, ...)
{
    va_list list;
    va_start(list, format);
    int made = how == 0 ? vswprintf(to, n, format, list)
                        : __vswprintf_chk(to, n, 1, UNKNOWN, format, list);
    va_end(list);
    return made;
}

/*
 * The functions: F(name, bytes of a character, call). A call writes n characters to `to` (or to
 * `wide`), a string's end included. Its value says whether the result is right, if there is one.
 */
#define FUNCTIONS(F)                                                                                \
    F(memcpy, 1, memcpy(to, source, n) == to)                                                       \
    F(memmove, 1, memmove(to, source, n) == to)                                                     \
    F(mempcpy, 1, mempcpy(to, source, n) == to + n)                                                 \
    F(__mempcpy, 1, __mempcpy(to, source, n) == to + n)                                             \
    F(memset, 1, memset(to, 'x', n) == to)                                                          \
    F(memccpy, 1, memccpy(to, string(n - 1), 0, MOST) == to + n)                                    \
    F(bcopy, 1, (bcopy(source, to, n), 1))                                                          \
    F(bzero, 1, (bzero(to, n), 1))                                                                  \
    F(__bzero, 1, (__bzero(to, n), 1))                                                              \
    F(explicit_bzero, 1, (explicit_bzero(to, n), 1))                                                \
    F(strcpy, 1, strcpy(to, string(n - 1)) == to)                                                   \
    F(stpcpy, 1, stpcpy(to, string(n - 1)) == to + n - 1)                                           \
    F(__stpcpy, 1, __stpcpy(to, string(n - 1)) == to + n - 1)                                       \
    F(strcat, 1, (begin(to), strcat(to, string(n - 2)) == to))                         \
    F(strncat, 1, (begin(to), strncat(to, string(MOST), n - 2) == to))                 \
    F(strncpy, 1, strncpy(to, string(3), n) == to)                                                  \
    F(stpncpy, 1, stpncpy(to, string(3), n) == to + 3)                                              \
    F(__stpncpy, 1, __stpncpy(to, string(3), n) == to + 3)                                          \
    F(strlcpy, 1, strlcpy(to, string(MOST), n) == MOST)                                             \
    F(strlcat, 1, (begin(to), strlcat(to, string(MOST), n) == MOST + 1))               \
    F(__strlcpy_chk, 1, __strlcpy_chk(to, string(MOST), n, UNKNOWN) == MOST)                        \
    F(__strlcat_chk, 1, (begin(to), __strlcat_chk(to, string(MOST), n, UNKNOWN) == MOST + 1))       \
    F(wmemcpy, 4, wmemcpy(wide, wide_source, n) == wide)                                            \
    F(wmemmove, 4, wmemmove(wide, wide_source, n) == wide)                                          \
    F(wmempcpy, 4, wmempcpy(wide, wide_source, n) == wide + n)                                      \
    F(wmemset, 4, wmemset(wide, L'x', n) == wide)                                                   \
    F(wcscpy, 4, wcscpy(wide, wide_string(n - 1)) == wide)                                          \
    F(wcpcpy, 4, wcpcpy(wide, wide_string(n - 1)) == wide + n - 1)                                  \
    F(wcscat, 4, (wide_begin(wide), wcscat(wide, wide_string(n - 2)) == wide))           \
    F(wcsncpy, 4, wcsncpy(wide, wide_string(3), n) == wide)                                         \
    F(wcpncpy, 4, wcpncpy(wide, wide_string(3), n) == wide + 3)                                     \
    F(wcsncat, 4, (wide_begin(wide), wcsncat(wide, wide_string(MOST), n - 2) == wide))   \
    F(vsprintf, 1, print_list(to, n, 0, "%s%.1f", string(n - 4), 1.5) == (int)n - 1)                \
    F(vsnprintf, 1, print_list(to, n, 1, "%s%.1f", string(MOST), 1.5) == MOST + 3)                  \
    F(vswprintf, 4, wide_print_list(wide, n, 0, L"%ls", wide_string(n - 1)) == (int)n - 1)          \
    F(read, 1, read(zeros(), to, n) == (ssize_t)n)                                                  \
    F(pread, 1, pread(zeros(), to, n, 0) == (ssize_t)n)                                             \
    F(pread64, 1, pread64(zeros(), to, n, 0) == (ssize_t)n)                                         \
    F(recv, 1, recv(sent(n), to, n, 0) == (ssize_t)n)                                               \
    F(recvfrom, 1, recvfrom(sent(n), to, n, 0, NULL, NULL) == (ssize_t)n)                           \
    F(fread, 1, fread(to, n, 1, line()) == 1)                                                       \
    F(fread_unlocked, 1, fread_unlocked(to, 1, n, line()) == n)                                     \
    F(fgets, 1, fgets(to, (int)n, line()) == to)                                                    \
    F(fgets_unlocked, 1, fgets_unlocked(to, (int)n, line()) == to)                                  \
    F(fgetws, 4, fgetws(wide, (int)n, wide_line()) == wide)                                              \
    F(gets, 1, (type(n - 1), gets(to) == to && strlen(to) == n - 1))                                \
    F(readlink, 1, readlink(link_name(), to, n) == (ssize_t)n)                                      \
    F(readlinkat, 1, readlinkat(AT_FDCWD, link_name(), to, n) == (ssize_t)n)                        \
    F(getcwd, 1, (chdir("/"), getcwd(to, n) == to))                                                 \
    F(__memcpy_chk, 1, __memcpy_chk(to, source, n, UNKNOWN) == to)                                  \
    F(__memmove_chk, 1, __memmove_chk(to, source, n, UNKNOWN) == to)                                \
    F(__mempcpy_chk, 1, __mempcpy_chk(to, source, n, UNKNOWN) == to + n)                            \
    F(__memset_chk, 1, __memset_chk(to, 'x', n, UNKNOWN) == to)                                     \
    F(__explicit_bzero_chk, 1, (__explicit_bzero_chk(to, n, UNKNOWN), 1))                           \
    F(__strcpy_chk, 1, __strcpy_chk(to, string(n - 1), UNKNOWN) == to)                              \
    F(__stpcpy_chk, 1, __stpcpy_chk(to, string(n - 1), UNKNOWN) == to + n - 1)                      \
    F(__strcat_chk, 1, (begin(to), __strcat_chk(to, string(n - 2), UNKNOWN) == to))    \
    F(__strncpy_chk, 1, __strncpy_chk(to, string(3), n, UNKNOWN) == to)                             \
    F(__stpncpy_chk, 1, __stpncpy_chk(to, string(3), n, UNKNOWN) == to + 3)                         \
    F(__strncat_chk, 1,                                                                             \
      (begin(to), __strncat_chk(to, string(MOST), n - 2, UNKNOWN) == to))              \
    F(__wmemcpy_chk, 4, __wmemcpy_chk(wide, wide_source, n, UNKNOWN) == wide)                       \
    F(__wmemmove_chk, 4, __wmemmove_chk(wide, wide_source, n, UNKNOWN) == wide)                     \
    F(__wmempcpy_chk, 4, __wmempcpy_chk(wide, wide_source, n, UNKNOWN) == wide + n)                 \
    F(__wmemset_chk, 4, __wmemset_chk(wide, L'x', n, UNKNOWN) == wide)                              \
    F(__wcscpy_chk, 4, __wcscpy_chk(wide, wide_string(n - 1), UNKNOWN) == wide)                     \
    F(__wcpcpy_chk, 4, __wcpcpy_chk(wide, wide_string(n - 1), UNKNOWN) == wide + n - 1)             \
    F(__wcscat_chk, 4,                                                                              \
      (wide_begin(wide), __wcscat_chk(wide, wide_string(n - 2), UNKNOWN) == wide))       \
    F(__wcsncpy_chk, 4, __wcsncpy_chk(wide, wide_string(3), n, UNKNOWN) == wide)                    \
    F(__wcpncpy_chk, 4, __wcpncpy_chk(wide, wide_string(3), n, UNKNOWN) == wide + 3)                \
    F(__wcsncat_chk, 4,                                                                             \
      (wide_begin(wide), __wcsncat_chk(wide, wide_string(MOST), n - 2, UNKNOWN) == wide)) \
    F(__vsprintf_chk, 1, print_list(to, n, 2, "%s%.1f", string(n - 4), 1.5) == (int)n - 1)          \
    F(__vsnprintf_chk, 1, print_list(to, n, 3, "%s%.1f", string(MOST), 1.5) == MOST + 3)            \
    F(__vswprintf_chk, 4, wide_print_list(wide, n, 1, L"%ls", wide_string(n - 1)) == (int)n - 1)    \
    F(__read_chk, 1, __read_chk(zeros(), to, n, UNKNOWN) == (ssize_t)n)                             \
    F(__pread_chk, 1, __pread_chk(zeros(), to, n, 0, UNKNOWN) == (ssize_t)n)                        \
    F(__pread64_chk, 1, __pread64_chk(zeros(), to, n, 0, UNKNOWN) == (ssize_t)n)                    \
    F(__recv_chk, 1, __recv_chk(sent(n), to, n, UNKNOWN, 0) == (ssize_t)n)                          \
    F(__recvfrom_chk, 1, __recvfrom_chk(sent(n), to, n, UNKNOWN, 0, NULL, NULL) == (ssize_t)n)      \
    F(__fread_chk, 1, __fread_chk(to, UNKNOWN, n, 1, line()) == 1)                                  \
    F(__fread_unlocked_chk, 1, __fread_unlocked_chk(to, UNKNOWN, 1, n, line()) == n)                \
    F(__fgets_chk, 1, __fgets_chk(to, UNKNOWN, (int)n, line()) == to)                               \
    F(__fgets_unlocked_chk, 1, __fgets_unlocked_chk(to, UNKNOWN, (int)n, line()) == to)             \
    F(__fgetws_chk, 4, __fgetws_chk(wide, UNKNOWN, (int)n, wide_line()) == wide)                         \
    F(__gets_chk, 1, (type(n - 1), __gets_chk(to, UNKNOWN) == to && strlen(to) == n - 1))           \
    F(__readlink_chk, 1, __readlink_chk(link_name(), to, n, UNKNOWN) == (ssize_t)n)                 \
    F(__readlinkat_chk, 1, __readlinkat_chk(AT_FDCWD, link_name(), to, n, UNKNOWN) == (ssize_t)n)   \
    F(__getcwd_chk, 1, (chdir("/"), __getcwd_chk(to, n, UNKNOWN) == to))                            \
    F(sprintf, 1, sprintf(to, "%s%.1f%c", string(n - 5), 1.5, 'x') == (int)n - 1)                   \
    F(snprintf, 1,                                                                                  \
      snprintf(to, n, "%s%.1f%d%d%d%d%d", string(MOST), 1.5, 1, 2, 3, 4, 5) == MOST + 8)            \
    F(swprintf, 4, swprintf(wide, n, L"%ls%.1f", wide_string(n - 4), 1.5) == (int)n - 1)            \
    F(__sprintf_chk, 1, __sprintf_chk(to, 1, UNKNOWN, "%s%.1f", string(n - 4), 1.5) == (int)n - 1)  \
    F(__snprintf_chk, 1, __snprintf_chk(to, n, 1, UNKNOWN, "%s%.1f", string(MOST), 1.5) == MOST + 3) \
    F(__swprintf_chk, 4,                                                                            \
      __swprintf_chk(wide, n, 1, UNKNOWN, L"%ls%.1f", wide_string(n - 4), 1.5) == (int)n - 1)

#define DEFINE(NAME, UNIT, CALL)                                                                    \
    static int call_##NAME(char *to, size_t n)                                                      \
    {                                                                                               \
        wchar_t *wide = (wchar_t *)(void *)to;                                                      \
        (void)wide;                                                                                 \
        return CALL;                                                                                \
    }
#pragma GCC diagnostic ignored "-Wunused-result"
#pragma GCC diagnostic ignored "-Waddress"
FUNCTIONS(DEFINE)

static const struct function {
    const char *name;
    size_t unit;
    int (*call)(char *to, size_t n);
    /* Null if the C library lacks the function. */
    void *there;
} functions[] = {
#define LINE(NAME, UNIT, CALL) {#NAME, UNIT, call_##NAME, (void *)(uintptr_t)&NAME},
    FUNCTIONS(LINE)
};
enum { COUNT = sizeof functions / sizeof *functions };

/* Functions that read n characters of a block, and write to `other` (or `wide_other`). */
static char other[2 * MOST];
static wchar_t wide_other[2 * MOST];
#define READERS(F)                                                                                  \
    F(memcpy, 1, 0, memcpy(other, from, n))                                                         \
    F(memmove, 1, 0, memmove(other, from, n))                                                       \
    F(mempcpy, 1, 0, mempcpy(other, from, n))                                                       \
    F(bcopy, 1, 0, bcopy(from, other, n))                                                           \
    F(memccpy, 1, 0, memccpy(other, from, 7, n))                                                    \
    F(strcpy, 1, 1, strcpy(other, from))                                                            \
    F(stpcpy, 1, 1, stpcpy(other, from))                                                            \
    F(strcat, 1, 1, (other[0] = 0, strcat(other, from)))                                            \
    F(strncat, 1, 0, (other[0] = 0, strncat(other, from, n)))                                       \
    F(strncpy, 1, 0, strncpy(other, from, n))                                                       \
    F(strlcpy, 1, 1, strlcpy(other, from, 4))                                                       \
    F(__memcpy_chk, 1, 0, __memcpy_chk(other, from, n, sizeof other))                               \
    F(__strcpy_chk, 1, 1, __strcpy_chk(other, from, sizeof other))                                  \
    F(wmemcpy, 4, 0, wmemcpy(wide_other, wide, n))                                                  \
    F(wcscpy, 4, 1, wcscpy(wide_other, wide))                                                       \
    F(wcsncpy, 4, 0, wcsncpy(wide_other, wide, n))                                                  \
    F(readlink, 1, 1, readlink(from, other, sizeof other))

#define DEFINE_READER(NAME, UNIT, STRING, CALL)                                                     \
    static void read_##NAME(const char *from, size_t n)                                             \
    {                                                                                               \
        const wchar_t *wide = (const wchar_t *)(const void *)from;                                  \
        (void)wide, (void)n;                                                                        \
        (void)CALL;                                                                                 \
    }
#pragma GCC diagnostic ignored "-Wunused-value"
READERS(DEFINE_READER)

static const struct reader {
    const char *name;
    size_t unit;
    int is_string;
    void (*call)(const char *from, size_t n);
} readers[] = {
#define READER(NAME, UNIT, STRING, CALL) {#NAME, UNIT, STRING, read_##NAME},
    READERS(READER)
};
enum { READER_COUNT = sizeof readers / sizeof *readers };


/* Fills exactly the destination, and checks the bytes beside it. */
static void fill(const struct function *f, char *to, size_t bytes, const char *after)
{
    char kept = after ? *after : 0;
    if (!f->call(to, bytes / f->unit))
        check_failed(f->name, 0, "it does what it always does");
    if (after && *after != kept)
        check_failed(f->name, 0, "nothing is written behind the end");
}

static void right(void)
{
    static char still[2 * MOST] __attribute__((aligned(16)));
    char stack[2 * MOST] __attribute__((aligned(16)));
    memset(stack, 1, sizeof stack);
    for (const struct function *f = functions; f < functions + COUNT; f++) {
        if (!f->there || !is_in_c_library(f->name))
            continue;
        char *block = malloc(BLOCK), *large = malloc(LARGE);
        fill(f, block, BLOCK, NULL);
        fill(f, block + BLOCK / 2, BLOCK / 2, NULL);
        fill(f, large + LARGE - BLOCK, BLOCK, NULL);
        fill(f, still, BLOCK + f->unit, still + BLOCK + f->unit);
        fill(f, stack, BLOCK + f->unit, stack + BLOCK + f->unit);
        free(block);
        free(large);
    }
    /* A length of zero is right anywhere. A stated size that is not needed is no mistake. */
    char *block = malloc(BLOCK);
    memcpy(block + BLOCK, source, 0);
    CHECK(snprintf(NULL, 0, "%d", 12345) == 5);
    CHECK(snprintf(block, INT32_MAX, "%d", 12345) == 5 && strcmp(block, "12345") == 0);
    CHECK(snprintf(block, 3, "%d", 12345) == 5 && strcmp(block, "12") == 0);
    errno = 5;
    CHECK(sprintf(block, "%g %s %ld %a", 0.25, "text", 1L << 40, 1.0) == 30 && errno == 5);
    CHECK(strcmp(block, "0.25 text 1099511627776 0x1p+0") == 0);
    CHECK(sprintf(block, "%d%d%d%d%d%d%d%d%.0f%.0f%.0f%.0f%.0f%.0f%.0f%.0f%.0f%Lg", 1, 2, 3, 4, 5, 6,
                  7, 8, 1., 2., 3., 4., 5., 6., 7., 8., 9., 2.5L) == 20);
    CHECK(strcmp(block, "123456781234567892.5") == 0);
    CHECK(getcwd(block, 1) == NULL && errno == ERANGE);
    char *folder = getcwd(NULL, 0);
    CHECK(folder && strcmp(folder, "/") == 0);
    free(folder);
    free(block);
}

static const struct function *find(const char *name)
{
    for (const struct function *f = functions; f < functions + COUNT; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    check_failed(name, 0, "a function of this name");
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "";
    const char *name = count > 2 ? words[2] : "";
    memset(source, 's', sizeof source);
    memset(text, 't', MOST);
    wmemset(wide_source, L's', MOST);
    wmemset(wide_text, L't', MOST);
    open_streams();
    if (strcmp(how, "list") == 0) {
        for (const struct function *f = functions; f < functions + COUNT; f++)
            if (is_in_c_library(f->name))
                printf("%s %zu\n", f->name, f->unit);
        return 0;
    }
    if (strcmp(how, "readers") == 0) {
        for (const struct reader *f = readers; f < readers + READER_COUNT; f++)
            if (is_in_c_library(f->name))
                printf("%s %zu\n", f->name, f->unit);
        return 0;
    }
    if (strcmp(how, "right") == 0) {
        right();
    } else if (strcmp(how, "beyond") == 0) {
        const struct function *f = find(name);
        f->call(malloc(BLOCK), BLOCK / f->unit + 1);
        check_failed(name, 0, "this is noticed");
    } else if (strcmp(how, "freed") == 0 || strcmp(how, "small-freed") == 0) {
        const struct function *f = find(name);
        char *block = malloc(how[0] == 'f' ? LARGE : BLOCK);
        volatile uintptr_t address = (uintptr_t)block;
        memset(block, 0, BLOCK);
        free(block);
        is_touched = 0;
        f->call((char *)address, 8);
        check_failed(name, 0, "this is noticed");
    } else if (strcmp(how, "read") == 0 || strcmp(how, "read-beyond") == 0) {
        const struct reader *f = readers;
        while (strcmp(f->name, name) != 0)
            CHECK(++f < readers + READER_COUNT);
        int is_beyond = strcmp(how, "read") != 0;
        char *block = malloc(BLOCK);
        memset(block, 1, BLOCK);
        if (f->is_string && !is_beyond)
            memset(block + BLOCK - f->unit, 0, f->unit);
        f->call(block, BLOCK / f->unit + (size_t)is_beyond);
        if (is_beyond)
            check_failed(name, 0, "this is noticed");
        free(block);
    } else {
        check_failed(how, 0, "something to do");
    }
    return 0;
}
