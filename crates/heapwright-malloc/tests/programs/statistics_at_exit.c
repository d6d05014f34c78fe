/* Ends in the way that its argument names. Some ways have a child or a thread. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>

static void close_streams(void)
{
    /* The core utilities do this at exit. */
    fclose(stdout);
    fclose(stderr);
}

static void *ends(void *argument)
{
    (void)argument;
    exit(0);
}

static void report_child(pid_t pid)
{
    printf("child %d\n", (int)pid);
    fflush(stdout);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    void *p = malloc(100000);
    CHECK(p != NULL);
    memset(p, 1, 100000);
    printf("main %d\n", (int)getpid());
    fflush(stdout);
    const char *how = argv[1];
    if (!strcmp(how, "return"))
        return 0;
    if (!strcmp(how, "exit"))
        exit(0);
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "_Exit"))
        _Exit(0);
    if (!strcmp(how, "quick_exit"))
        quick_exit(0);
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, ends, NULL) == 0);
        pthread_join(thread, NULL);
    }
    if (!strcmp(how, "closed")) {
        atexit(close_streams);
        return 0;
    }
    if (!strcmp(how, "fork")) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            _exit(0);
        report_child(pid);
        return 0;
    }
    if (!strcmp(how, "vfork")) {
        pid_t pid = vfork();
        CHECK(pid >= 0);
        if (pid == 0)
            _exit(0);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        return 0;
    }
    if (!strcmp(how, "exec")) {
        execl("/proc/self/exe", argv[0], "return", (char *)NULL);
        return 5;
    }
    if (!strcmp(how, "status"))
        _exit(42);
    return 6;
}
