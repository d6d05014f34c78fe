// Arguments that a call does not use, or uses less of than its type says; and a text that is printed into itself.
// flags: -U_FORTIFY_SOURCE
// library: check
#include "corpus.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A freed block: an argument that is not used. */
static void *stale(void)
{
    char *volatile p = malloc(24);
    free(p);
    return p;
}

static void sockets(void)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof name;
    int listening = socket(AF_INET, SOCK_STREAM, 0), from = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&name, sizeof name) != 0)
        return; // no network here
    CHECK(listen(listening, 1) == 0 && getsockname(listening, (struct sockaddr *)&name, &length) == 0);
    CHECK(connect(from, (struct sockaddr *)&name, length) == 0);
    int to = accept(listening, NULL, stale());
    CHECK(to >= 0 && send(from, "0123456789012345678901234567890123456789", 40, 0) == 40);
    // TCP drops the bytes.
    char *small = malloc(8);
    CHECK(recv(to, small, 4096, MSG_TRUNC) == 40);
    CHECK(send(from, "abcd", 4, 0) == 4 && recvfrom(to, small, 4, 0, NULL, stale()) == 4);
    free(small);
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    // The result is the length of the datagram, which is larger than the limit.
    char *block = malloc(16);
    CHECK(send(ends[0], "0123456789abcdef", 16, 0) == 16 && recv(ends[1], block, 16, 0) == 16);
    CHECK(send(ends[0], &(char[100]){ 1 }, 100, 0) == 100 && recv(ends[1], block, 16, MSG_TRUNC) == 100);
    // The kernel cuts a name's length.
    struct iovec part = { block, 16 };
    void *who = malloc(128);
    struct msghdr message = { .msg_name = who, .msg_namelen = 1024, .msg_iov = &part, .msg_iovlen = 1 };
    CHECK(send(ends[0], "x", 1, 0) == 1 && recvmsg(ends[1], &message, 0) == 1);
    free(who);
    free(block);
}

int main(void)
{
#ifdef __GLIBC__
    char *text = strcpy(malloc(64), "path");
    CHECK(sprintf(text, "%s/%s", text, "file") == 9 && strcmp(text, "path/file") == 0);
    free(text);
#endif

    char *name = malloc(15);
    memset(name, 'x', 15);
    CHECK(prctl(PR_SET_NAME, name) == 0);
    free(name);

    long page = sysconf(_SC_PAGESIZE);
    void *pages = mmap(NULL, 4 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *in = malloc(4);
    CHECK(pages != MAP_FAILED && mincore(pages, 4 * page, in) == 0);
    free(in);

    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){ 0 }, stale()) == 0);
    CHECK(klogctl(10, stale(), 24) >= -1);
    sockets();

    // More words than lie in a register or in a small frame.
    int process = fork();
    CHECK(process >= 0);
    if (process == 0) {
#define TEN "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"
#define HUNDRED TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN
        execl("/bin/sh", "sh", "-c", "exit $#", HUNDRED, HUNDRED, HUNDRED, (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(process, &status, 0) == process && WEXITSTATUS(status) == 299 % 256);
    return 0;
}
