/* free: takes NULL, and keeps errno. */
#include "check.h"

int main(void)
{
    enum { COUNT = 300 };
    void *blocks[COUNT];

    errno = 17;
    free(NULL);
    CHECK(errno == 17);

    for (size_t size = 1; size <= (size_t)64 << 20; size = size * 4) {
        size_t many = size > 1 << 20 ? 2 : COUNT;
        for (size_t i = 0; i < many; i++) {
            blocks[i] = malloc(size);
            CHECK(blocks[i] != NULL);
            *(char *)blocks[i] = 1;
        }
        for (size_t i = 0; i < many; i++) {
            errno = 17;
            free(blocks[i]);
            CHECK(errno == 17);
        }
    }
    return 0;
}
