// longjmp out of 2000 frames that hold blocks; a list knows them all.
#include "corpus.h"
#include <setjmp.h>

static jmp_buf out;
static char *held[2000];

NOINLINE int deep(int n)
{
    volatile char room[100];
    room[0] = (char)n;
    held[n] = malloc((size_t)n + 1);
    if (n == 1999)
        longjmp(out, 1);
    return deep(n + 1) + room[0];
}

int main(void)
{
    for (volatile int round = 0; round < 10; round++) {
        if (setjmp(out) == 0)
            deep(0);
        for (int i = 0; i < 2000; i++)
            free(held[i]);
    }
    return 0;
}
