#include <stdlib.h>

int main(void)
{
    char *name = malloc(40);
    free(name);
    free(name);
    return 0;
}
