/* Reads beyond two hundred blocks of one call site. */
#include "check.h"

int main(void)
{
    for (int i = 0; i < 200; i++) {
        volatile char *block = malloc(16);
        (void)block[16];
        free((void *)block);
    }
    return 0;
}
