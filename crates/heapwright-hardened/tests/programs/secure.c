/*
 * Writes a byte too many, if the process has more rights than the user who started it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

int main(void)
{
    if (!getauxval(AT_SECURE)) {
        puts("not secure");
        return 0;
    }
    volatile size_t bytes = 14;
    memset(malloc(13), 0, bytes);
    return 1;
}
