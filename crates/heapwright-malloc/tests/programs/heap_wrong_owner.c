/* hw_heap_free of another heap's block ends the program. */
#include "check.h"
#include <heapwright.h>

int main(int argc, char **argv)
{
    (void)argv;
    hw_heap *a = hw_heap_new(), *b = hw_heap_new();
    CHECK(a != NULL && b != NULL);
    void *block = argc > 1 ? malloc(48) : hw_heap_alloc(b, 48);
    CHECK(block != NULL);
    hw_heap_free(a, block);
    return 0;
}
