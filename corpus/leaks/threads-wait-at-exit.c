// leaks: definite 1 SIZE at A in main
// sizes: 24 3000
// flags: -pthread
// Threads wait in calls that the kernel does not restart after a signal. None may wake.
#include "corpus.h"
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

static void *waits(void *which)
{
    struct timespec long_time = {1000, 0};
    struct epoll_event event;
    sigset_t none;
    sem_t closed;
    sigemptyset(&none);
    sem_init(&closed, 0, 0);
    switch ((intptr_t)which) {
    case 0: poll(NULL, 0, -1); break;
    case 1: epoll_wait(epoll_create1(0), &event, 1, -1); break;
    case 2: select(0, NULL, NULL, NULL, NULL); break;
    case 3: nanosleep(&long_time, NULL); break;
    case 4: sigsuspend(&none); break;
    default: sem_wait(&closed); break;
    }
    _exit(3);
}

int main(void)
{
    for (intptr_t n = 0; n < 6; n++) {
        pthread_t thread;
        pthread_create(&thread, NULL, waits, (void *)n);
        pthread_detach(thread);
    }
    usleep(20000);
    char *volatile held = malloc(SIZE); // LEAK A
    POKE(held, 1);
    FIX(free(held);)
    held = hide(NULL);
    wipe();
    return 0;
}
