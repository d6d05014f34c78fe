/* Starts itself with nothing: no arguments, no environment, no open files. */
#include "check.h"
#include <fcntl.h>
#include <sys/syscall.h>

int main(int argc, char **argv)
{
    if (argc > 1) {
        for (int i = 0; i < 3; i++)
            close(i);
        char *nothing[] = { NULL };
        char *name[] = { argv[0], NULL };
        execve("/proc/self/exe", name, nothing);
        _exit(4);
    }
    for (size_t i = 1; i < 20000; i++) {
        char *p = malloc(i);
        if (!p)
            _exit(5);
        p[i - 1] = 1;
        p = realloc(p, i * 2);
        if (!p)
            _exit(6);
        free(p);
    }
    /* Options set after the start are too late, and harmless. */
    clearenv();
    setenv("HEAPWRIGHT", "nonsense", 1);
    free(malloc(100000));
    /* The descriptors are still free: the library has opened no file. */
    if (open("/dev/null", O_RDWR) != 0)
        _exit(7);
    return 0;
}
