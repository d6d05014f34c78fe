// On a stack of its own a handler sees the stack overflow in its own guard page
// and ends the program as it had planned. It runs in a child.
// asan: alien
#include "corpus.h"
#include <signal.h>
#include <sys/wait.h>

static void on_fault(int number)
{
    static const char text[] = "stack used up\n";
    if (write(1, text, sizeof text - 1) < 0)
        _exit(number);
    _exit(42);
}

NOINLINE int deep(volatile char *above)
{
    volatile char here[4096];
    here[0] = above[0];
    return deep(here) + here[1];
}

int main(void)
{
    if (fork() == 0) {
        stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
        sigaltstack(&stack, NULL);
        struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK };
        sigaction(SIGSEGV, &action, NULL);
        char start[1] = { 0 };
        exit(deep(start));
    }
    int status;
    wait(&status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    return 0;
}
