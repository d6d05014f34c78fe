// An alarm every half millisecond, whose handler does what it may (write, its
// own counters, errno), while main allocates.
#include "corpus.h"
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    int kept = errno;
    volatile char stack[3000];
    stack[number] = 1;
    if (write(-1, "", 0) == -1)
        alarms++;
    errno = kept;
}

int main(void)
{
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = { { 0, 500 }, { 0, 500 } };
    setitimer(ITIMER_REAL, &every, NULL);
    while (alarms < 200) {
        char *p = malloc(3000), *q = strdup("some text");
        p = realloc(p, 100);
        churn(50);
        free(q);
        free(p);
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    return 0;
}
