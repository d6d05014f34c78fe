/* A project whose build systems call valgrind: this test is right, wrong.c loses a block
   (ci/integrations.sh valgrind). */
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char *block = malloc(10);
    if (!block)
        return 1;
    puts("right");
    free(block);
    return 0;
}
