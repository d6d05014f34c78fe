/*
 * Faults in memory while the debug heap's handler runs before the program's. All checks without the
 * debug heap also hold on the plain C library.
 */
#include "observe.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* The program calls old functions, and overflows a stack on purpose. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Winfinite-recursion"

/* A page that plays the debug heap's memory: `decide` knows it. */
static char *ours;
static size_t page;
static volatile int asked, verdict = GO_ON, last_write;
static volatile size_t last_address;

static int decide(const struct seen *seen)
{
    if (seen->what != 's')
        return NOT_OURS;
    asked++;
    last_address = seen->other;
    last_write = seen->is_write;
    CHECK(seen->context != NULL);
    sigset_t now;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
    CHECK(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGSEGV) == 1);
    errno = 77;
    if (seen->other - (size_t)ours >= page)
        return NOT_OURS;
    if (verdict == GO_ON)
        CHECK(mprotect(ours, page, PROT_READ | PROT_WRITE) == 0);
    return verdict;
}

static char *map(int access)
{
    char *got = mmap(NULL, page, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(got != MAP_FAILED);
    return got;
}

static void touch(volatile char *at)
{
    *at;
}

static sigjmp_buf way_out;
static char *bad;
static volatile int called, number_seen, code_seen, errno_seen;
static void *volatile address_seen;
static sigset_t mask_seen;
static volatile sig_atomic_t mends;

static void plain(int number)
{
    errno_seen = errno;
    called++;
    number_seen = number;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask_seen) == 0);
    if (mends)
        CHECK(mprotect(bad, page, PROT_READ | PROT_WRITE) == 0);
    else
        siglongjmp(way_out, 1);
}

static void with_info(int number, siginfo_t *info, void *context)
{
    CHECK(context != NULL);
    address_seen = info->si_addr;
    code_seen = info->si_code;
    plain(number);
}

static void twice(int number)
{
    (void)number;
    if (++called < 3)
        touch(bad);
    siglongjmp(way_out, 1);
}

static void set(void (*handler)(int), int flags, int blocked)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, old;
    if (flags & SA_SIGINFO)
        action.sa_sigaction = with_info;
    sigemptyset(&action.sa_mask);
    if (blocked)
        sigaddset(&action.sa_mask, blocked);
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    CHECK(sigaction(SIGSEGV, NULL, &old) == 0);
    CHECK(old.sa_handler == action.sa_handler);
    CHECK((old.sa_flags & ~0x04000000) == flags);
    CHECK(!blocked || sigismember(&old.sa_mask, blocked) == 1);
    CHECK(sigismember(&old.sa_mask, SIGUSR2) == 0);
    called = 0;
}

static void fault_out(void)
{
    if (sigsetjmp(way_out, 1) == 0) {
        touch(bad);
        CHECK(!"reached");
    }
    sigset_t now;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
    CHECK(sigismember(&now, SIGSEGV) == 0 && sigismember(&now, SIGUSR1) == 0);
}

/* Handlers of every kind, and the state in which they run. */
static void handlers(void)
{
    bad = map(PROT_NONE);
    for (int i = 0; i < 100; i++) {
        set(plain, 0, SIGUSR1);
        errno = 33;
        fault_out();
        CHECK(called == 1 && number_seen == SIGSEGV && errno_seen == 33);
        CHECK(sigismember(&mask_seen, SIGSEGV) == 1 && sigismember(&mask_seen, SIGUSR1) == 1);
        CHECK(sigismember(&mask_seen, SIGUSR2) == 0);
    }

    set(NULL, SA_SIGINFO | SA_NODEFER, 0);
    fault_out();
    CHECK(called == 1 && address_seen == bad && code_seen == SEGV_ACCERR);
    CHECK(sigismember(&mask_seen, SIGSEGV) == 0 && sigismember(&mask_seen, SIGUSR1) == 0);

    /* Signals that the thread had blocked stay blocked. */
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &some, NULL) == 0);
    fault_out();
    CHECK(sigismember(&mask_seen, SIGUSR2) == 1);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &some, NULL) == 0);

    /* A fault in the handler. */
    set(twice, SA_NODEFER, 0);
    fault_out();
    CHECK(called == 3);

    /* A handler that repairs the access, and returns. */
    mends = 1;
    set(plain, 0, 0);
    touch(bad);
    CHECK(called == 1);
    CHECK(mprotect(bad, page, PROT_READ) == 0);
    *(volatile char *)bad = 1;
    CHECK(called == 2);
    mends = 0;
    CHECK(mprotect(bad, page, PROT_NONE) == 0);

    /* A one-shot handler. */
    set(plain, SA_RESETHAND, 0);
    fault_out();
    struct sigaction now;
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0);
    CHECK(now.sa_handler == SIG_DFL);

    /* The older functions. */
    CHECK(signal(SIGSEGV, plain) == SIG_DFL);
    fault_out();
    CHECK(signal(SIGSEGV, SIG_IGN) == plain);
    CHECK(raise(SIGSEGV) == 0);
    CHECK(sysv_signal(SIGSEGV, plain) == SIG_IGN);
    fault_out();
    CHECK(sigismember(&mask_seen, SIGSEGV) == 0);
    CHECK(signal(SIGSEGV, SIG_DFL) == SIG_DFL);
    CHECK(ssignal(SIGSEGV, plain) == SIG_DFL);
    CHECK(sigset(SIGSEGV, twice) == plain);
    CHECK(sigset(SIGSEGV, SIG_HOLD) == twice);
    CHECK(sigset(SIGSEGV, plain) == SIG_HOLD);
    fault_out();
    CHECK(sigignore(SIGSEGV) == 0);
    CHECK(signal(SIGSEGV, plain) == SIG_IGN);
    CHECK(signal(SIGSEGV, SIG_ERR) == SIG_ERR && errno == EINVAL);
    CHECK(signal(0, plain) == SIG_ERR && signal(SIGKILL, plain) == SIG_ERR);
    CHECK(signal(SIGUSR1, plain) == SIG_DFL && signal(SIGUSR1, SIG_DFL) == plain);

    /* A signal that a process sends. */
    called = 0;
    if (sigsetjmp(way_out, 1) == 0)
        raise(SIGSEGV);
    CHECK(called == 1);
}

static void *volatile deep;
static int fall(int depth)
{
    char frame[4096];
    deep = frame;
    frame[depth & 4095] = 1;
    return fall(depth + 1) + frame[7];
}

static void *overflow(void *argument)
{
    static char space[65536];
    stack_t stack = { .ss_sp = space, .ss_size = sizeof space };
    CHECK(sigaltstack(&stack, NULL) == 0);
    set(plain, SA_ONSTACK, 0);
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(way_out, 1) == 0)
            fall(0);
    CHECK(called == 3);
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, NULL) == 0);
    return argument;
}

static void bus(void)
{
    char name[] = "/tmp/heapwright-bus-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && unlink(name) == 0);
    bad = mmap(NULL, page, PROT_READ, MAP_SHARED, file, 0);
    CHECK(bad != MAP_FAILED);
    CHECK(signal(SIGBUS, plain) == SIG_DFL);
    called = 0;
    fault_out();
    CHECK(called == 1 && number_seen == SIGBUS);
    CHECK(signal(SIGBUS, SIG_DFL) == plain);
}

static int ending_of(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status);
}

static void children(void)
{
    bad = map(PROT_NONE);
    set(plain, 0, 0);
    pid_t child = fork();
    if (child == 0) {
        fault_out();
        CHECK(called == 1);
        signal(SIGSEGV, SIG_DFL);
        touch(bad);
        _exit(1);
    }
    CHECK(ending_of(child) == SIGSEGV);
    fault_out();

    /* A child of vfork sets only its own action. */
    child = vfork();
    if (child == 0) {
        struct sigaction action = { .sa_handler = SIG_DFL }, old;
        int right = sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_handler == plain &&
                    sigaction(SIGSEGV, &action, &old) == 0 && old.sa_handler == plain &&
                    sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_handler == SIG_DFL;
        if (right)
            touch(bad);
        _exit(1);
    }
    CHECK(ending_of(child) == SIGSEGV);
    struct sigaction now;
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == plain);
    fault_out();
}

static atomic_int racing = 1;
static void *changes(void *argument)
{
    for (int i = 0; i < 20000; i++) {
        struct sigaction action = { .sa_handler = i & 1 ? plain : twice, .sa_flags = SA_NODEFER };
        struct sigaction old;
        CHECK(sigaction(SIGBUS, &action, &old) == 0);
        CHECK(old.sa_handler == SIG_DFL || old.sa_handler == plain || old.sa_handler == twice);
    }
    atomic_store(&racing, 0);
    return argument;
}

/* An emulator of another machine may not say whether it was a write. */
static int known(int is_write)
{
#ifndef __x86_64__
    if (last_write == -1)
        return -1;
#endif
    return is_write;
}

int main(int argc, char **argv)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    const char *what = argc > 1 ? argv[1] : "";
    int watched = hw_observe != NULL;
    ours = map(PROT_NONE);
    struct sigaction now;

    if (!strcmp(what, "inherited")) {
        /* The action from before the handler was installed is remembered, too. */
        set(plain, 0, 0);
        if (watched)
            hw_observe(decide);
        CHECK(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == plain);
        bad = map(PROT_NONE);
        fault_out();
        CHECK(asked == watched);
        return 0;
    }
    if (watched)
        hw_observe(decide);
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == SIG_DFL);

    if (!strcmp(what, "handlers")) {
        handlers();
        CHECK(!watched || asked > 100);
    } else if (!strcmp(what, "overflow")) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, overflow, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    } else if (!strcmp(what, "bus")) {
        bus();
    } else if (!strcmp(what, "children")) {
        children();
    } else if (!strcmp(what, "race")) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            CHECK(pthread_create(&threads[i], NULL, changes, NULL) == 0);
        bad = map(PROT_NONE);
        set(plain, 0, 0);
        while (atomic_load(&racing))
            fault_out();
        for (int i = 0; i < 2; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    } else if (!strcmp(what, "ours")) {
        CHECK(watched);
        set(plain, 0, 0);
        errno = 5;
        touch(ours + 123);
        CHECK(errno == 5 && asked == 1 && called == 0 && last_write == known(0));
        CHECK(last_address == (size_t)ours + 123);
        CHECK(mprotect(ours, page, PROT_READ) == 0);
        *(volatile char *)(ours + 7) = 1;
        CHECK(asked == 2 && last_write == known(1) && last_address == (size_t)ours + 7);
        /* After the verdict STOP the program may still save itself. */
        verdict = STOP;
        CHECK(mprotect(ours, page, PROT_NONE) == 0);
        bad = ours;
        fault_out();
        CHECK(called == 1 && asked == 3);
    } else if (!strcmp(what, "stop")) {
        CHECK(watched);
        verdict = STOP;
        touch(ours);
    } else if (!strcmp(what, "stop-ignored")) {
        CHECK(watched && signal(SIGSEGV, SIG_IGN) == SIG_DFL);
        verdict = STOP;
        touch(ours);
    } else if (!strcmp(what, "default")) {
        bad = map(PROT_NONE);
        touch(bad);
    } else if (!strcmp(what, "ignored")) {
        CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL);
        raise(SIGSEGV);
        kill(getpid(), SIGSEGV);
        bad = map(PROT_NONE);
        touch(bad);
    } else if (!strcmp(what, "sent")) {
        raise(SIGSEGV);
    } else if (!strcmp(what, "no-address")) {
        touch((char *)0x4141414141414141);
    } else {
        return 2;
    }
    return 0;
}
