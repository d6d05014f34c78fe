/* Uses some memory and ends with a core dump. */
#include "check.h"

int main(void)
{
    for (int i = 0; i < 2000; i++) {
        char *p = malloc(1000);
        CHECK(p != NULL);
        memset(p, 1, 1000);
    }
    abort();
}
