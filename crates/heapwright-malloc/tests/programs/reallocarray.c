/* reallocarray: realloc of a product. It changes nothing if the product overflows. */
#include "check.h"
#include <malloc.h>

int main(void)
{
    int *numbers = reallocarray(NULL, 10, sizeof *numbers);
    CHECK(numbers != NULL);
    for (int i = 0; i < 10; i++)
        numbers[i] = i;
    numbers = reallocarray(numbers, 100000, sizeof *numbers);
    CHECK(numbers != NULL);
    CHECK(malloc_usable_size(numbers) >= 100000 * sizeof *numbers);
    for (int i = 0; i < 10; i++)
        CHECK(numbers[i] == i);

    errno = 0;
    CHECK(reallocarray(numbers, SIZE_MAX / 2 + 1, 2) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(reallocarray(numbers, ((size_t)1 << 32) + 1, (size_t)1 << 32) == NULL);
    CHECK(errno == ENOMEM);
    for (int i = 0; i < 10; i++)
        CHECK(numbers[i] == i);

    void *gone = reallocarray(numbers, 0, 4);
    CHECK(gone == NULL);
    void *empty = reallocarray(NULL, 4, 0);
    CHECK(empty != NULL);
    free(empty);
    return 0;
}
